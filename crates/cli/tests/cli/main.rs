//! The built binary: what a shell sees, commands on a store, and the daemon.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on may end where it is")]

mod commands;
#[cfg(unix)]
mod serve;
mod shell;
