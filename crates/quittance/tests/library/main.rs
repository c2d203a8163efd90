//! Tests of the library as its users see it: with the mock provider over real HTTP, and on a real store.
#![expect(clippy::unwrap_used, reason = "whatever goes wrong in a test is to be seen at once")]

mod answers;
mod copying;
mod features;
mod fixture;
mod hosts;
mod restarts;
mod stock;
