//! A provider of the JSON task protocol: calls `createTask` and `getTaskResult`.

mod account;
mod manners;
mod provider;
mod report;
mod settings;

pub use provider::JsonProvider;
pub use settings::{JsonPaceSettings, Settings};
