//! What comes in over HTTP: the only crate that listens for callers and providers. So far that is the callback door;
//! the protocols that clients speak come beside it.
#![forbid(unsafe_code)]

pub mod callbacks;

pub use callbacks::{CALLBACK_PATH, CallbackDoor, Limits};
