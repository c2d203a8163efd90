//! A provider of the classic protocol, over the wire: the only crate that may call `in.php` and `res.php`. Its one hard
//! duty is to say, whenever a submit ends without an answer, whether it *never arrived* or *who knows*; so it
//! counts the bytes that it hands to the kernel and never tries again once there was one.
#![forbid(unsafe_code)]

mod account;
mod batch;
mod connect;
mod exchange;
mod pace;
mod pool;
mod provider;
mod settings;
mod wire;

pub use account::{Account, AskError};
pub use provider::ClassicProvider;
pub use settings::{ApiKey, BadSettings, PaceSettings, Settings};
