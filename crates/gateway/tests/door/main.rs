//! The callback door, over real sockets: what a provider, a forger and a broken client can say to it, and what becomes of
//! the order.
#![expect(clippy::unwrap_used, reason = "whatever goes wrong in a test is to be seen at once")]

mod callbacks;
#[path = "../shared/flaky_store.rs"]
mod flaky_store;
#[path = "../shared/still_clock.rs"]
mod still_clock;
mod world;
