//! Tests of the table of kinds, and of how the two protocols write the same order.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

mod apis;
mod kinds;
