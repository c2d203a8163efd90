//! Settings, orders and checks for the tests of both adapters.

use quittance_lifecycle::{
    Draft, Evidence, Fault, Key, KeySettings, Policy, SubmitOutcome, Terms, Timestamp, Value,
};
use quittance_ports::{Provider, Submission};
use quittance_protocol::kinds::{kind, open_kind};
use quittance_provider::{ApiKey, Settings};
use std::time::Duration;

pub(crate) const KEY: &str = "0123456789abcdef0123456789abcdef";

/// Long enough for a busy machine to send, short enough to wait for.
pub(crate) const HASTE: Duration = Duration::from_secs(1);

pub(crate) fn settings(url: &str) -> Settings {
    let mut settings = Settings::new("test", url, ApiKey::new(KEY));
    settings.submit_interval = Some(Duration::ZERO);
    settings.connect_timeout = Duration::from_secs(5);
    settings.submit_timeout = Duration::from_secs(10);
    settings.poll_timeout = Duration::from_secs(10);
    settings
}

/// Settings with short timeouts, for answers that do not come.
pub(crate) fn hasty_settings(url: &str) -> Settings {
    Settings { connect_timeout: HASTE, submit_timeout: HASTE, poll_timeout: HASTE, ..settings(url) }
}

pub(crate) fn order(name: &str, params: &[(&str, Value)]) -> (Key, Terms) {
    let mut draft = Draft::new("ada");
    draft.params = params.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect();
    let kind = kind(name).unwrap_or_else(|| open_kind(name));
    draft.check(&kind, KeySettings::default(), &Policy::DEFAULT, Timestamp::ZERO, 0).unwrap()
}

pub(crate) fn token_order() -> (Key, Terms) {
    order("turnstile", &[("sitekey", "s".into()), ("pageurl", "https://example.com/".into())])
}

pub(crate) async fn submit_order(
    provider: &impl Provider,
    (key, terms): &(Key, Terms),
    callback: Option<&str>,
) -> SubmitOutcome {
    provider.submit(Submission { key: *key, attempt: 1, terms, callback, guard: &|_| Ok(()) }).await
}

pub(crate) async fn submit(provider: &impl Provider) -> SubmitOutcome {
    submit_order(provider, &token_order(), None).await
}

#[track_caller]
pub(crate) fn in_doubt(outcome: SubmitOutcome) -> Evidence {
    match outcome {
        SubmitOutcome::InDoubt(evidence) => evidence,
        other => panic!("not in doubt: {other:?}"),
    }
}

#[track_caller]
pub(crate) fn refused(outcome: SubmitOutcome) -> Fault {
    match outcome {
        SubmitOutcome::Rejected(fault) => fault,
        other => panic!("not refused: {other:?}"),
    }
}
