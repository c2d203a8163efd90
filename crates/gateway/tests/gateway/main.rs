//! Tests of the gateway over real sockets: each API, the server around them, callbacks and webhooks.
#![expect(clippy::unwrap_used, reason = "a failure in a test must be seen at once")]

mod callbacks;
mod classic;
mod eventually;
mod flaky_store;
mod ids;
mod json;
mod keys;
mod server;
mod still_clock;
mod v1;
mod webhooks;
