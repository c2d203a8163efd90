//! A provider of the JSON task protocol: calls `createTask` and `getTaskResult`.

mod account;
mod poll_counts;
mod provider;
mod report;

pub use provider::JsonProvider;
