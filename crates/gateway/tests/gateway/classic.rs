//! Tests of the classic API over real sockets: what clients send, and what they receive, exact to the byte.

mod answers;
mod broken;
mod callers;
mod encodings;
pub(crate) mod fixture;
