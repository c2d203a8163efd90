//! One call over HTTP: its reply or, if there is none, whether the request can have arrived. No other crate may
//! decide that. It counts the bytes that it hands to the kernel, and does not retry after the first one.
#![forbid(unsafe_code)]

mod base;
pub mod call;
mod client;
mod connect;
mod key;
mod meter;
mod pool;
mod redact;

pub use base::Base;
pub use client::{Client, Settings, WireError};
pub use key::ApiKey;
pub use pool::Reply;
pub use redact::{CallbackBase, without_secrets};

/// What is wrong with the settings. It does not show the URL, which can hold a password.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadSettings {
    #[error("provider.url {why}")]
    Url { why: &'static str },
    #[error("provider.key is empty or has a character that no key has")]
    Key,
    #[error("provider.extra_ca cannot be used: {why}")]
    ExtraCa { why: String },
    #[error("TLS cannot be set up: {why}")]
    Tls { why: String },
}
