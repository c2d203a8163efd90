//! When a person is told, and where. Zero, or false, switches a rule off.

use super::{ANY, count, flag, optional, row, span};
use crate::config::alerts::WEBHOOK;
use crate::config::setting::Setting;
use crate::config::value::{SPAN_MOST, Shape, Value};
use quittance_alert::Thresholds;
use quittance_lifecycle::Preset;
use std::time::Duration;

const MANY: Shape = Shape::Count { least: 0, most: 1_000_000_000 };

/// At once would be to come and go.
const A_WHILE: Shape = Shape::Span { least: Duration::from_secs(1), most: SPAN_MOST };

fn bars() -> Thresholds {
    Thresholds::default()
}

#[expect(clippy::unnecessary_wraps, reason = "it is what a row takes")]
const fn share(permille: u32) -> Option<Value> {
    Some(Value::Share(permille))
}

fn balance_low(_: Preset) -> Option<Value> {
    Some(Value::Money(bars().balance_low))
}

pub(super) static ROWS: &[Setting] = &[
    row(
        "alerts.dead_new",
        MANY,
        |_| count(bars().dead_new),
        "tell when more orders than this become dead letters in an hour",
    ),
    row(
        "alerts.dead_age",
        ANY,
        |_| span(bars().dead_age),
        "tell when a dead letter has waited for a person for so long",
    ),
    row(
        "alerts.provider_paused",
        Shape::Flag,
        |_| flag(bars().provider_paused),
        "tell when nothing is submitted until a person has mended the account",
    ),
    row(
        "alerts.provider_broken_for",
        ANY,
        |_| span(bars().provider_broken_for),
        "tell when the provider has not answered for so long",
    ),
    row("alerts.balance_low", Shape::Money, balance_low, "tell when the balance is less than this"),
    row(
        "alerts.balance_lasts",
        ANY,
        |_| span(bars().balance_lasts),
        "tell when the balance is spent sooner than this, at the pace of the last hour",
    ),
    row(
        "alerts.budget_used",
        Shape::Share,
        |_| share(bars().budget_used_permille),
        "tell when a pool has spent this part of what it may in the hour",
    ),
    row(
        "alerts.doubt_rate",
        Shape::Share,
        |_| share(bars().doubt_permille),
        "tell when more than this part of the attempts of ten minutes end in doubt",
    ),
    row(
        "alerts.doubt_attempts",
        MANY,
        |_| count(bars().doubt_attempts),
        "how many attempts there must be for that to mean anything",
    ),
    row(
        "alerts.untold",
        MANY,
        |_| count(bars().untold),
        "tell when more calls to callers than this are not taken in an hour",
    ),
    row(
        "alerts.polled_rate",
        Shape::Share,
        |_| share(bars().polled_permille),
        "tell when more than this part of the answers of ten minutes had to be fetched although a callback was due",
    ),
    row(
        "alerts.polled_answers",
        MANY,
        |_| count(bars().polled_answers),
        "how many answers there must be for that to mean anything",
    ),
    row(
        "alerts.pool_starves_for",
        ANY,
        |_| span(bars().pool_starves_for),
        "tell when a pool has had nothing to give for so long while it was asked",
    ),
    row(
        "alerts.store_away_for",
        ANY,
        |_| span(bars().store_away_for),
        "tell when the store has not answered for so long",
    ),
    row(
        "alerts.spill_for",
        ANY,
        |_| span(bars().spill_for),
        "tell when something has waited in the spill of a node for so long",
    ),
    row(
        "alerts.node_silent_for",
        ANY,
        |_| span(bars().node_silent_for),
        "tell when a node has been silent for so long; it counts as silent after 8 s",
    ),
    row(
        "alerts.clear_after",
        A_WHILE,
        |_| span(bars().clear_after),
        "how long all must be well before an alert is cleared",
    ),
    optional(
        WEBHOOK,
        Shape::WebAddress,
        "who is called with each alert that is raised or cleared, by POST, signed; it needs a secret",
    ),
    optional(
        "alerts.webhook_secret_env",
        Shape::Variable,
        "variable with the secret that those calls are signed with",
    ),
    optional("alerts.webhook_secret_file", Shape::File, "file with that secret"),
    row(
        "alerts.command",
        Shape::Program,
        |_| Some(Value::List(Vec::new())),
        "what is run for each alert, with the alert as JSON on its standard input and in QUITTANCE_ALERT_... of its environment",
    ),
];
