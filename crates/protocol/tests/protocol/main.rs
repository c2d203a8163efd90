//! What the tables say about kinds, and how the two protocols spell the same order.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

mod apis;
mod kinds;
