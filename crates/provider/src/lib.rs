//! Providers over the wire: the only crate that may call one. An adapter turns each reply into an outcome. Its one
//! hard duty: when a submit ends without an answer, it says whether the task was *never sent* or is *in doubt*.
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
