//! Tests of the built binary: its behaviour in a shell, commands on a store, and the daemon.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on may end where it is")]

mod commands;
#[cfg(unix)]
mod serve;
mod shell;
