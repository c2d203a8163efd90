//! The provider through its own door, against real sockets on this machine that end a call in every way there is.

mod account;
mod polls;
mod reports;
mod server;
mod submits;

use crate::common::{hasty_settings, settings};
use quittance_protocol::json::Flavour;
use quittance_provider::JsonProvider;

fn provider(flavour: Flavour, url: &str) -> JsonProvider {
    JsonProvider::new(flavour, settings(url)).unwrap()
}

/// For answers that do not come.
fn hasty(url: &str) -> JsonProvider {
    JsonProvider::new(Flavour::TwoCaptcha, hasty_settings(url)).unwrap()
}
