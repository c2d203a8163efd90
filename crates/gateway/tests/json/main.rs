//! The JSON door as clients reach it: over a socket, beside the other doors, on one connection or many. What it answers to
//! what is tested where it stands.
#![expect(clippy::unwrap_used, reason = "whatever goes wrong in a test is to be seen at once")]

mod doors;
#[path = "../shared/still_clock.rs"]
mod still_clock;
mod world;
