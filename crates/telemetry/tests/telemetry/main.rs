//! Tests of this crate through its public interface.
#![expect(clippy::unwrap_used, reason = "a failure in a test must be seen at once")]

mod alert;
mod timeline;
