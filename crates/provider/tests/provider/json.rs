//! Tests of the JSON provider against real sockets on this machine that end a call in every possible way.

mod account;
mod polls;
mod reports;
mod server;
mod submits;

use crate::fixture::{hasty_settings, settings};
use quittance_protocol::json::JsonDialect;
use quittance_provider::JsonProvider;

fn provider(dialect: JsonDialect, url: &str) -> JsonProvider {
    JsonProvider::new(dialect, settings(url)).unwrap()
}

/// A provider with short timeouts, for answers that do not come.
fn hasty(url: &str) -> JsonProvider {
    JsonProvider::new(JsonDialect::TwoCaptcha, hasty_settings(url)).unwrap()
}
