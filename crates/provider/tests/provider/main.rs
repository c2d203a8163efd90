//! Tests of both adapters against real sockets on this machine that end a call in every possible way.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

mod classic;
mod fixture;
mod json;
