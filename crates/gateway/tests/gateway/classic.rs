//! The classic API, over real sockets: what every client may send, and what it receives, to the byte.

mod answers;
mod broken;
mod callers;
mod encodings;
pub(crate) mod fixture;
