//! A provider of the classic protocol, over the wire: the only crate that may call `in.php` and `res.php`. Its one hard
//! duty is to say, whenever a submit ends without an answer, whether it *never arrived* or *who knows*.
#![forbid(unsafe_code)]

mod account;
mod batch;
mod exchange;
mod pace;
mod provider;
mod report;
mod settings;

pub use provider::ClassicProvider;
pub use quittance_ports::Account;
pub use quittance_ports::AskError;
pub use quittance_wire::ApiKey;
pub use quittance_wire::BadSettings;
pub use settings::{PaceSettings, Settings};
