//! When a person is told, and where. Zero, or false, switches a rule off.

use super::{ANY, count, flag, optional, row, span};
use crate::config::alerts::WEBHOOK;
use crate::config::setting::Setting;
use crate::config::value::{SPAN_MOST, Shape, Value};
use quittance_lifecycle::Preset;
use quittance_telemetry::alert::Thresholds;
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
        "alert when more orders than this become dead letters in an hour",
    ),
    row(
        "alerts.dead_age",
        ANY,
        |_| span(bars().dead_age),
        "alert when a dead letter has waited this long for a person",
    ),
    row(
        "alerts.provider_paused",
        Shape::Flag,
        |_| flag(bars().provider_paused),
        "alert when submits are paused until a person fixes the account",
    ),
    row(
        "alerts.provider_broken_for",
        ANY,
        |_| span(bars().provider_broken_for),
        "alert when the provider has not answered for this long",
    ),
    row("alerts.balance_low", Shape::Money, balance_low, "alert when the balance is less than this"),
    row(
        "alerts.balance_lasts",
        ANY,
        |_| span(bars().balance_lasts),
        "alert when the balance lasts less than this, at the spending rate of the last hour",
    ),
    row(
        "alerts.budget_used",
        Shape::Share,
        |_| share(bars().budget_used_permille),
        "alert when a pool has spent this ratio of its hourly budget",
    ),
    row(
        "alerts.doubt_rate",
        Shape::Share,
        |_| share(bars().doubt_permille),
        "alert when more than this ratio of the attempts of ten minutes end in doubt",
    ),
    row(
        "alerts.doubt_attempts",
        MANY,
        |_| count(bars().doubt_attempts),
        "fewest attempts for which doubt_rate is checked",
    ),
    row(
        "alerts.webhooks_failed",
        MANY,
        |_| count(bars().webhooks_failed),
        "alert when more webhook deliveries than this fail in an hour",
    ),
    row(
        "alerts.polled_rate",
        Shape::Share,
        |_| share(bars().polled_permille),
        "alert when more than this ratio of the answers of ten minutes came by poll although a callback was due",
    ),
    row(
        "alerts.polled_answers",
        MANY,
        |_| count(bars().polled_answers),
        "fewest answers for which polled_rate is checked",
    ),
    row(
        "alerts.pool_starves_for",
        ANY,
        |_| span(bars().pool_starves_for),
        "alert when a pool with demand has been empty for this long",
    ),
    row(
        "alerts.store_away_for",
        ANY,
        |_| span(bars().store_away_for),
        "alert when the store has not answered for this long",
    ),
    row(
        "alerts.spill_for",
        ANY,
        |_| span(bars().spill_for),
        "alert when something has waited in a node's spill for this long",
    ),
    row(
        "alerts.node_silent_for",
        ANY,
        |_| span(bars().node_silent_for),
        "alert when a node has been silent for this long; a node counts as silent after 8 s without a heartbeat",
    ),
    row(
        "alerts.clear_after",
        A_WHILE,
        |_| span(bars().clear_after),
        "how long the cause must be gone before an alert is cleared",
    ),
    optional(
        WEBHOOK,
        Shape::WebAddress,
        "address that gets a signed POST for each alert that is raised or cleared; needs a secret",
    ),
    optional(
        "alerts.webhook_secret_env",
        Shape::Variable,
        "variable with the secret that signs the calls to alerts.webhook",
    ),
    optional(
        "alerts.webhook_secret_file",
        Shape::File,
        "file with the secret that signs the calls to alerts.webhook",
    ),
    row(
        "alerts.command",
        Shape::Program,
        |_| Some(Value::List(Vec::new())),
        "program to run for each alert; it gets the alert as JSON on standard input and in QUITTANCE_ALERT_... variables",
    ),
];
