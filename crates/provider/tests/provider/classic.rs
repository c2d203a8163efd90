//! Tests of the classic provider against real sockets on this machine that end a call in every possible way.

mod account;
mod callbacks;
mod endings;
mod keep_alive;
mod polls;
mod reports;
mod requests;
mod secrets;
mod server;
mod statuses;
mod tls;

use crate::fixture::{hasty_settings, settings};
use quittance_lifecycle::SubmitOutcome;
use quittance_protocol::classic::ClassicDialect;
use quittance_provider::ClassicProvider;

fn provider(dialect: ClassicDialect, url: &str) -> ClassicProvider {
    ClassicProvider::new(dialect, settings(url)).unwrap()
}

/// A provider with short timeouts, for answers that do not come.
fn hasty(url: &str) -> ClassicProvider {
    ClassicProvider::new(ClassicDialect::TwoCaptcha, hasty_settings(url)).unwrap()
}

fn accepted(task: &str) -> SubmitOutcome {
    SubmitOutcome::Accepted { task: task.to_owned() }
}
