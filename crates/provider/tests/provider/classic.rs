//! The provider through its own door, against real sockets on this machine that end a call in every way there is.

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

use quittance_lifecycle::{
    Draft, Evidence, Fault, Key, KeySettings, Policy, SubmitOutcome, Terms, Timestamp, Value,
};
use quittance_ports::{Provider, Submission};
use quittance_protocol::classic::ClassicDialect;
use quittance_protocol::kinds::kind;
use quittance_provider::ApiKey;
use quittance_provider::classic::{ClassicProvider, Settings};
use std::time::Duration;

const KEY: &str = "0123456789abcdef0123456789abcdef";

fn settings(profile: ClassicDialect, url: &str) -> Settings {
    let mut settings = Settings::new("test", profile, url, ApiKey::new(KEY));
    settings.pace.submit_interval = Some(Duration::ZERO);
    settings.connect_timeout = Duration::from_secs(5);
    settings.submit_timeout = Duration::from_secs(10);
    settings.poll_timeout = Duration::from_secs(10);
    settings
}

fn provider(profile: ClassicDialect, url: &str) -> ClassicProvider {
    ClassicProvider::new(settings(profile, url)).unwrap()
}

/// Long enough for a busy machine to send, short enough to wait for.
const HASTE: Duration = Duration::from_secs(1);

/// For answers that do not come.
fn hasty(url: &str) -> ClassicProvider {
    let mut settings = settings(ClassicDialect::TwoCaptcha, url);
    settings.connect_timeout = HASTE;
    settings.submit_timeout = HASTE;
    settings.poll_timeout = HASTE;
    ClassicProvider::new(settings).unwrap()
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

async fn submit_order(provider: &ClassicProvider, (key, terms): &(Key, Terms)) -> SubmitOutcome {
    provider.submit(Submission { key: *key, attempt: 1, terms, callback: None, guard: &|_| Ok(()) }).await
}

async fn submit(provider: &ClassicProvider) -> SubmitOutcome {
    submit_order(provider, &token_order()).await
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

fn accepted(task: &str) -> SubmitOutcome {
    SubmitOutcome::Accepted { task: task.to_owned() }
}
