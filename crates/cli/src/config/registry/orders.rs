//! Where we listen, where orders are kept, how long everything may take, and how often it is tried.

use super::{ANY, BYTES, POSITIVE, PRESET_NAMES, count, flag, optional, policy, row, span, text};
use crate::config::setting::Setting;
use crate::config::value::{Shape, UNTIL_DEADLINE, Value};
use quittance::SPILL_BYTES_MAX;
use quittance_engine::Targets;
use quittance_lifecycle::fault::FaultClass as Class;
use quittance_lifecycle::terms::PATIENCE_MAX;
use quittance_lifecycle::{Jitter, Policy, Preset, Signal, WithoutWord};
use std::time::Duration;

const DEADLINE: Shape = Shape::Span { least: Duration::from_secs(1), most: PATIENCE_MAX };
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

fn without_word() -> Option<Value> {
    text(match Policy::DEFAULT.without_word {
        WithoutWord::Resubmit => "resubmit",
        WithoutWord::Bury => "bury",
    })
}

fn limit(preset: Preset, signal: impl Into<Signal>) -> Option<Value> {
    match policy(preset).faults.rule(signal).limit {
        Some(limit) => count(limit),
        None => text(UNTIL_DEADLINE),
    }
}

pub(super) static ROWS: &[Setting] = &[
    row("listen", Shape::Listen, |_| text("127.0.0.1:8780"), "where to listen, for callbacks and callers"),
    optional(
        "public_url",
        Shape::WebAddress,
        "where the provider can call this node; absent: no callbacks, polling only, and an order whose submit got no reply is submitted again and may be paid twice (see retry.without_word)",
    ),
    optional(
        "callback_secret_env",
        Shape::Variable,
        "variable with the secret that callback addresses are signed with",
    ),
    optional(
        "callback_secret_file",
        Shape::File,
        "file with that secret; neither: made at the first start and kept with the store",
    ),
    row(
        "store.url",
        Shape::Store,
        |_| text("embedded:./quittance-data"),
        "where orders are kept; a relative folder is meant from this file's. Many nodes can share Redis or PostgreSQL",
    ),
    optional(
        "store.password_env",
        Shape::Variable,
        "variable with the store's password; in the URL it may stand only if that comes from the environment",
    ),
    optional("store.password_file", Shape::File, "file with the store's password"),
    optional("store.ca_file", Shape::File, "PEM file with the authority of the store's certificate"),
    optional(
        "store.listen_url",
        Shape::DirectUrl,
        "PostgreSQL behind a pooler: its own address, for the one connection that hears of news",
    ),
    row(
        "store.migrate",
        Shape::Flag,
        |_| flag(true),
        "whether `serve`, `solve`, `dead replay` and `store copy` (in TO) bring PostgreSQL's tables up to date; other commands \
         never do, `quittance store migrate` always",
    ),
    optional(
        "store.home",
        Shape::Folder,
        "folder of a node on a shared store, for what comes in while that is away; absent: quittance-data beside this file",
    ),
    row(
        "store.keep",
        ANY,
        |_| span(Policy::DEFAULT.keep),
        "how long a settled order is remembered after its answer has expired",
    ),
    row(
        "store.spill_max",
        BYTES,
        |_| count(SPILL_BYTES_MAX),
        "bytes of what came in while the store was away",
    ),
    row("targets.allow", Shape::Hosts, |_| Some(Value::List(Vec::new())), "page hosts that may be automated"),
    row(
        "targets.images",
        Shape::Flag,
        |_| flag(Targets::default().images),
        "whether orders that name no page, such as pictures, are taken",
    ),
    optional(
        "targets.undescribed",
        Shape::Flag,
        "whether orders of kinds that `quittance kinds` does not list are taken; unset: only if there are no tenants",
    ),
    optional(
        "targets.vendors.*",
        Shape::Hosts,
        "hosts of the vendor of this kind of captcha (its scripts, challenges, APIs), beside those that are known",
    ),
    row(
        "timing.callback_wait",
        POSITIVE,
        |_| span(Policy::DEFAULT.callback_wait),
        "the longest that a taken task waits for its callback before it is asked for",
    ),
    row(
        "timing.unsure_wait",
        POSITIVE,
        |_| span(Policy::DEFAULT.unsure_wait),
        "the longest that a doubt waits for a callback",
    ),
    row(
        "timing.first_poll",
        POSITIVE,
        |_| span(Policy::DEFAULT.first_poll),
        "the soonest that a task may be asked for",
    ),
    row(
        "timing.poll_interval",
        POSITIVE,
        |_| span(Policy::DEFAULT.poll_interval),
        "the time between two polls of one task",
    ),
    row(
        "timing.deadline",
        DEADLINE,
        |_| span(Policy::DEFAULT.patience),
        "how long an order may take when it does not say",
    ),
    row(
        "timing.submit_wait",
        POSITIVE,
        |_| span(Policy::DEFAULT.submit_wait),
        "the longest that a submit may stay unreported before it is a doubt",
    ),
    row(
        "timing.doubt_least",
        ANY,
        |_| span(Policy::DEFAULT.doubt_least),
        "the shortest that a doubt lasts if a callback can settle it",
    ),
    row(
        "timing.alarm_late",
        POSITIVE,
        |_| span(Policy::DEFAULT.alarm_late),
        "how late an alarm may ring when nothing is wrong",
    ),
    row(
        "timing.task_life",
        POSITIVE,
        |_| span(Policy::DEFAULT.task_life),
        "how long after its submission a task is worth asking for",
    ),
    row(
        "timing.share_window",
        Shape::SpanOr { word: "auto", least: Duration::ZERO },
        |_| Policy::DEFAULT.share_window.map_or_else(|| text("auto"), span),
        "how long after the solve a placement counts as a repeat; `auto`: as long as the answer keeps its margin",
    ),
    row(
        "timing.callback_lag",
        ANY,
        |_| span(Policy::DEFAULT.callback_lag),
        "the longest that a provider takes to call back after the solve; an answer counts as so much older than its callback",
    ),
    row(
        "timing.refusal_hold",
        ANY,
        |_| span(Policy::DEFAULT.refusal_hold),
        "how long a refusal holds back new lives of the same order",
    ),
    row(
        "timing.p50",
        POSITIVE,
        |_| span(Policy::DEFAULT.pace.p50),
        "half of the answers take no longer, of a kind nobody has described",
    ),
    row("timing.p95", POSITIVE, |_| span(Policy::DEFAULT.pace.p95), "19 of 20 take no longer"),
    row("timing.p99", POSITIVE, |_| span(Policy::DEFAULT.pace.p99), "99 of 100 take no longer"),
    row(
        "retry.preset",
        Shape::OneOf(PRESET_NAMES),
        |_| text("patient"),
        "named set of the pauses and limits below; what you set yourself wins",
    ),
    row(
        "retry.base",
        POSITIVE,
        |preset| span(policy(preset).backoff.base),
        "the first pause before a retry; each next one is twice as long",
    ),
    row("retry.cap", POSITIVE, |preset| span(policy(preset).backoff.cap), "the longest pause"),
    row(
        "retry.jitter",
        Shape::SpanOr { word: "full", least: Duration::ZERO },
        jitter,
        "added to a pause, evenly from zero up to this; `full`: the whole pause is spread",
    ),
    row(
        "retry.without_word",
        Shape::OneOf(&["resubmit", "bury"]),
        |_| without_word(),
        "what to do about a doubt that no callback can settle",
    ),
    row(
        "retry.limits.busy",
        FREE_RETRIES,
        |preset| limit(preset, Class::Busy),
        "retries of an order when the provider has no room; `deadline`: until the order's deadline",
    ),
    row(
        "retry.limits.unreachable",
        FREE_RETRIES,
        |preset| limit(preset, Class::Unreachable),
        "retries when nothing could be sent; `deadline`: until the order's deadline",
    ),
    row(
        "retry.limits.unknown",
        RETRIES,
        |preset| limit(preset, Signal::InDoubt),
        "retries of an attempt in doubt, when it was sent and no reply came; each may pay twice",
    ),
    row(
        "retry.limits.unsolvable",
        RETRIES,
        |preset| limit(preset, Class::Unsolvable),
        "retries when the provider gave up",
    ),
    row(
        "retry.limits.broke",
        NEVER,
        |preset| limit(preset, Class::Broke),
        "no money: never retried, only 0 is taken",
    ),
    row(
        "retry.limits.account",
        NEVER,
        |preset| limit(preset, Class::Account),
        "account not accepted: never retried, only 0 is taken",
    ),
    row(
        "retry.limits.caller",
        NEVER,
        |preset| limit(preset, Class::Caller),
        "the order makes no sense: never retried, only 0 is taken",
    ),
    row(
        "retry.limits.unknown_code",
        RETRIES,
        |preset| limit(preset, Class::UnknownCode),
        "retries on a code that nobody has seen",
    ),
];
