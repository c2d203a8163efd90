//! Adapters that call providers; no other crate may call one. An adapter turns each reply into an outcome. If a
//! submit ends without an answer, the adapter must say whether the task was *never sent* or is *in doubt*.
#![forbid(unsafe_code)]

#[cfg(feature = "classic")]
pub mod classic;
#[cfg(feature = "json")]
pub mod json;
mod provider_call;
mod settings;

#[cfg(feature = "classic")]
pub use classic::ClassicProvider;
#[cfg(feature = "json")]
pub use json::JsonProvider;
pub use quittance_ports::{Account, AskError};
pub use quittance_wire::{ApiKey, BadSettings};
pub use settings::Settings;
