//! The classic door, over real sockets: what every client may send, and what it is told, to the byte.
#![expect(clippy::unwrap_used, reason = "whatever goes wrong in a test is to be seen at once")]

mod answers;
mod broken;
mod callers;
mod encodings;
#[path = "../shared/flaky_store.rs"]
mod flaky_store;
#[path = "../shared/still_clock.rs"]
mod still_clock;
mod world;
