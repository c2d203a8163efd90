//! Where we listen, where orders are kept, how long everything may take, and how often it is tried.

use super::{ANY, BYTES, POSITIVE, PRESET_NAMES, count, flag, optional, policy, row, span, text};
use crate::setting::Setting;
use crate::value::{Shape, UNTIL_DEADLINE, Value};
use quittance::SPILL_BYTES_MAX;
use quittance_engine::Targets;
use quittance_lifecycle::fault::FaultClass as Class;
use quittance_lifecycle::terms::TIMEOUT_MAX;
use quittance_lifecycle::{Jitter, Policy, Preset, Signal, UnsettledDoubt};
use std::time::Duration;

const DEADLINE: Shape = Shape::Span { least: Duration::from_secs(1), most: TIMEOUT_MAX };
const RETRIES: Shape = Shape::Count { least: 0, most: 100 };
/// What is permanent is never tried again: that is a promise, not a setting. The names are there to say so.
/// What costs nothing may be tried for as long as the order lives.
const FREE_RETRIES: Shape = Shape::CountOr { word: UNTIL_DEADLINE, most: 100 };
const NEVER: Shape = Shape::Count { least: 0, most: 0 };

fn jitter(preset: Preset) -> Option<Value> {
    match policy(preset).backoff.jitter {
        Jitter::UpTo(most) => span(most),
        Jitter::Full => text("full"),
    }
}

fn unsettled_doubt() -> Option<Value> {
    text(match Policy::DEFAULT.unsettled_doubt {
        UnsettledDoubt::Resubmit => "resubmit",
        UnsettledDoubt::DeadLetter => "dead_letter",
    })
}

fn limit(preset: Preset, signal: impl Into<Signal>) -> Option<Value> {
    match policy(preset).faults.rule(signal).limit {
        Some(limit) => count(limit),
        None => text(UNTIL_DEADLINE),
    }
}

pub(super) static ROWS: &[Setting] = &[
    row(
        "listen",
        Shape::Listen,
        |_| text("127.0.0.1:8780"),
        "address to listen on, for callbacks and callers",
    ),
    optional(
        "public_url",
        Shape::WebAddress,
        "address at which the provider can call this node; absent: polling only, and an order whose submit got no reply is submitted again and may be paid twice (see retry.unsettled_doubt)",
    ),
    optional(
        "callback_secret_env",
        Shape::Variable,
        "variable with the secret that signs callback addresses",
    ),
    optional(
        "callback_secret_file",
        Shape::File,
        "file with the secret that signs callback addresses; neither: created at the first start and kept in the store",
    ),
    row(
        "store.url",
        Shape::Store,
        |_| text("embedded:./quittance-data"),
        "where orders are kept; a relative folder is relative to the config file. Several nodes can share Redis or PostgreSQL",
    ),
    optional(
        "store.password_env",
        Shape::Variable,
        "variable with the store's password; the URL may contain it only if the URL comes from the environment",
    ),
    optional("store.password_file", Shape::File, "file with the store's password"),
    optional(
        "store.ca_file",
        Shape::File,
        "PEM file with the certificate authority of the store's certificate",
    ),
    optional(
        "store.listen_url",
        Shape::DirectUrl,
        "for PostgreSQL behind a pooler: its direct address, for the one connection that uses LISTEN",
    ),
    row(
        "store.migrate",
        Shape::Flag,
        |_| flag(true),
        "whether `serve`, `solve`, `dead replay` and `store copy` (in TO) migrate PostgreSQL's tables; other commands never \
         do, `quittance store migrate` always does",
    ),
    optional(
        "store.home",
        Shape::Folder,
        "local folder of a node on a shared store, for callbacks that come while the store is down; absent: quittance-data next to the config file",
    ),
    row(
        "store.keep",
        ANY,
        |_| span(Policy::DEFAULT.keep),
        "how long a settled order is kept after its answer has expired",
    ),
    row(
        "store.spill_max",
        BYTES,
        |_| count(SPILL_BYTES_MAX),
        "largest size of the spill (callbacks that came while the store was down), in bytes",
    ),
    row("targets.allow", Shape::Hosts, |_| Some(Value::List(Vec::new())), "page hosts that may be automated"),
    row(
        "targets.images",
        Shape::Flag,
        |_| flag(Targets::default().images),
        "whether orders without a page, such as images, are accepted",
    ),
    optional(
        "targets.undescribed",
        Shape::Flag,
        "whether orders of kinds that `quittance kinds` does not list are accepted; absent: only if there are no tenants",
    ),
    optional(
        "targets.vendors.*",
        Shape::Hosts,
        "hosts of the vendor of this kind of captcha (scripts, challenges, APIs), in addition to the known ones",
    ),
    row(
        "timing.callback_wait",
        POSITIVE,
        |_| span(Policy::DEFAULT.callback_wait),
        "longest wait for the callback of a task before the task is polled",
    ),
    row(
        "timing.in_doubt_wait",
        POSITIVE,
        |_| span(Policy::DEFAULT.in_doubt_wait),
        "longest time that an attempt in doubt waits for a callback",
    ),
    row(
        "timing.first_poll",
        POSITIVE,
        |_| span(Policy::DEFAULT.first_poll),
        "shortest time from the submit to the first poll of a task",
    ),
    row(
        "timing.poll_interval",
        POSITIVE,
        |_| span(Policy::DEFAULT.poll_interval),
        "time between two polls of one task",
    ),
    row(
        "timing.deadline",
        DEADLINE,
        |_| span(Policy::DEFAULT.timeout),
        "how long an order may take, unless it sets its own deadline",
    ),
    row(
        "timing.submit_wait",
        POSITIVE,
        |_| span(Policy::DEFAULT.submit_wait),
        "how long a submit may have no recorded outcome before it is in doubt",
    ),
    row(
        "timing.in_doubt_min",
        ANY,
        |_| span(Policy::DEFAULT.in_doubt_min),
        "shortest time that an attempt stays in doubt if a callback can settle it",
    ),
    row(
        "timing.timer_late",
        POSITIVE,
        |_| span(Policy::DEFAULT.timer_late),
        "how late a timer may fire in normal operation",
    ),
    row(
        "timing.task_life",
        POSITIVE,
        |_| span(Policy::DEFAULT.task_life),
        "how long after its submit a task is still polled",
    ),
    row(
        "timing.share_window",
        Shape::SpanOr { word: "auto", least: Duration::ZERO },
        |_| Policy::DEFAULT.share_window.map_or_else(|| text("auto"), span),
        "how long after the solve an equal placement counts as a repeat; `auto`: as long as the answer keeps its margin",
    ),
    row(
        "timing.callback_lag",
        ANY,
        |_| span(Policy::DEFAULT.callback_lag),
        "longest delay from the solve to the provider's callback; an answer counts as this much older than its callback",
    ),
    row(
        "timing.refusal_hold",
        ANY,
        |_| span(Policy::DEFAULT.refusal_hold),
        "how long the same order is refused after the provider rejected it",
    ),
    row(
        "timing.p50",
        POSITIVE,
        |_| span(Policy::DEFAULT.pace.p50),
        "half of the answers take no longer; for kinds that are not described",
    ),
    row("timing.p95", POSITIVE, |_| span(Policy::DEFAULT.pace.p95), "19 of 20 answers take no longer"),
    row("timing.p99", POSITIVE, |_| span(Policy::DEFAULT.pace.p99), "99 of 100 answers take no longer"),
    row(
        "retry.preset",
        Shape::OneOf(PRESET_NAMES),
        |_| text("patient"),
        "named set of the pauses and limits below; single settings override it",
    ),
    row(
        "retry.base",
        POSITIVE,
        |preset| span(policy(preset).backoff.base),
        "first pause before a retry; each next pause is twice as long",
    ),
    row("retry.cap", POSITIVE, |preset| span(policy(preset).backoff.cap), "longest pause before a retry"),
    row(
        "retry.jitter",
        Shape::SpanOr { word: "full", least: Duration::ZERO },
        jitter,
        "random time added to a pause, uniform from zero to this; `full`: the whole pause is random",
    ),
    row(
        "retry.unsettled_doubt",
        Shape::OneOf(&["resubmit", "dead_letter"]),
        |_| unsettled_doubt(),
        "what to do with an attempt in doubt that no callback can settle",
    ),
    row(
        "retry.limits.busy",
        FREE_RETRIES,
        |preset| limit(preset, Class::Busy),
        "retries of an order when the provider is busy; `deadline`: until the order's deadline",
    ),
    row(
        "retry.limits.unreachable",
        FREE_RETRIES,
        |preset| limit(preset, Class::Unreachable),
        "retries when the provider could not be reached and nothing was sent; `deadline`: until the order's deadline",
    ),
    row(
        "retry.limits.in_doubt",
        RETRIES,
        |preset| limit(preset, Signal::InDoubt),
        "retries after an attempt in doubt (sent, but no reply came); each may pay twice",
    ),
    row(
        "retry.limits.unsolvable",
        RETRIES,
        |preset| limit(preset, Class::Unsolvable),
        "retries when the provider could not solve the task",
    ),
    row(
        "retry.limits.no_funds",
        NEVER,
        |preset| limit(preset, Class::NoFunds),
        "no money on the account: never retried, must be 0",
    ),
    row(
        "retry.limits.account_blocked",
        NEVER,
        |preset| limit(preset, Class::AccountBlocked),
        "account not accepted by the provider: never retried, must be 0",
    ),
    row(
        "retry.limits.caller",
        NEVER,
        |preset| limit(preset, Class::Caller),
        "invalid order: never retried, must be 0",
    ),
    row(
        "retry.limits.unlisted_code",
        RETRIES,
        |preset| limit(preset, Class::UnlistedCode),
        "retries after an unlisted error code",
    ),
];
