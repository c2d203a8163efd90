//! A provider of the JSON task protocol, over the wire: the only crate that may call `createTask` and `getTaskResult`. Its
//! one hard duty is to say, whenever a submit ends without an answer, whether it *never arrived* or *who knows*.
#![forbid(unsafe_code)]

mod account;
mod manners;
mod provider;
mod report;
mod settings;

pub use provider::JsonProvider;
pub use quittance_ports::AskError;
pub use quittance_wire::ApiKey;
pub use quittance_wire::BadSettings;
pub use settings::{PaceSettings, Settings};
