//! The provider through its own door, against real sockets on this machine that end a call in every way there is.

mod account;
mod polls;
mod reports;
mod server;
mod submits;

use quittance_lifecycle::{
    Draft, Evidence, Fault, Key, KeySettings, Policy, SubmitOutcome, Terms, Timestamp, Value,
};
use quittance_ports::{Provider, Submission};
use quittance_protocol::json::JsonDialect;
use quittance_protocol::kinds::kind;
use quittance_provider::ApiKey;
use quittance_provider::json::{JsonProvider, Settings};
use std::time::Duration;

const KEY: &str = "0123456789abcdef0123456789abcdef";

fn settings(dialect: JsonDialect, url: &str) -> Settings {
    let mut settings = Settings::new("test", dialect, url, ApiKey::new(KEY));
    settings.connect_timeout = Duration::from_secs(5);
    settings.submit_timeout = Duration::from_secs(10);
    settings.poll_timeout = Duration::from_secs(10);
    settings
}

fn provider(dialect: JsonDialect, url: &str) -> JsonProvider {
    JsonProvider::new(settings(dialect, url)).unwrap()
}

/// For answers that do not come: long enough for a busy machine to send, short enough to wait for.
fn hasty(url: &str) -> JsonProvider {
    let mut settings = settings(JsonDialect::TwoCaptcha, url);
    settings.connect_timeout = Duration::from_secs(1);
    settings.submit_timeout = Duration::from_secs(1);
    settings.poll_timeout = Duration::from_secs(1);
    JsonProvider::new(settings).unwrap()
}

fn order(name: &str, params: &[(&str, Value)]) -> (Key, Terms) {
    let mut draft = Draft::new("ada");
    draft.params = params.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect();
    let kind = kind(name).unwrap_or_else(|| quittance_protocol::kinds::open_kind(name));
    draft.check(&kind, KeySettings::default(), &Policy::DEFAULT, Timestamp::ZERO, 0).unwrap()
}

fn token_order() -> (Key, Terms) {
    order("turnstile", &[("sitekey", "s".into()), ("pageurl", "https://example.com/".into())])
}

async fn submit_order(
    provider: &JsonProvider,
    (key, terms): &(Key, Terms),
    callback: Option<&str>,
) -> SubmitOutcome {
    provider.submit(Submission { key: *key, attempt: 1, terms, callback, guard: &|_| Ok(()) }).await
}

async fn submit(provider: &JsonProvider) -> SubmitOutcome {
    submit_order(provider, &token_order(), None).await
}

#[track_caller]
fn in_doubt(outcome: SubmitOutcome) -> Evidence {
    match outcome {
        SubmitOutcome::InDoubt(evidence) => evidence,
        other => panic!("not in doubt: {other:?}"),
    }
}

#[track_caller]
fn refused(outcome: SubmitOutcome) -> Fault {
    match outcome {
        SubmitOutcome::Rejected(fault) => fault,
        other => panic!("not refused: {other:?}"),
    }
}
