//! How the engine works and spares the providers, what counts as the same order, and the open tables: kinds and
//! providers.

use super::{ANY, BYTES, POSITIVE, REUSE, SOME, count, flag, optional, row, span, text};
use crate::config::setting::Setting;
use crate::config::value::{Shape, Value};
use quittance::{ApiKey, ClassicSettings, Profile};
use quittance_engine::{Settings, Sparing};
use quittance_lifecycle::KeySettings;
use std::time::Duration;

const BATCH: Shape = Shape::Count { least: 1, most: 1000 };

/// For its defaults only; they are the same for every profile.
fn classic() -> ClassicSettings {
    ClassicSettings::new("", Profile::CaptchaAi, "", ApiKey::new(""))
}

fn engine() -> Settings {
    Settings::new(0, |_| None)
}

pub(super) static ROWS: &[Setting] = &[
    row(
        "provider_rules.submit_interval",
        ANY,
        |_| span(Sparing::DEFAULT.submit_interval),
        "the least time between two submits to one provider",
    ),
    row(
        "provider_rules.trip_at",
        SOME,
        |_| count(Sparing::DEFAULT.trip_at),
        "so many submits in a row must come to nothing before its circuit breaker trips",
    ),
    row(
        "provider_rules.probe",
        POSITIVE,
        |_| span(Sparing::DEFAULT.probe),
        "how long one order tries it while the others wait",
    ),
    row(
        "provider_rules.retry_share",
        Shape::Share,
        |_| Some(Value::Share(Sparing::DEFAULT.retry_share)),
        "retries may be this part of first submits",
    ),
    row(
        "provider_rules.retry_burst",
        SOME,
        |_| count(Sparing::DEFAULT.retry_burst),
        "so many retries may come at once",
    ),
    row(
        "provider_rules.retry_trickle",
        POSITIVE,
        |_| span(Sparing::DEFAULT.retry_trickle),
        "one retry earns its way back in this time",
    ),
    row("engine.submits_max", SOME, |_| count(engine().submits_max), "submits under way at once"),
    row("engine.polls_max", SOME, |_| count(engine().polls_max), "batches of polls under way at once"),
    row("engine.steps_max", SOME, |_| count(engine().steps_max), "other steps under way at once"),
    row(
        "engine.errands_max",
        SOME,
        |_| count(engine().errands_max),
        "webhook deliveries under way at once; no tenant gets more than half of them, and no host of a tenant more than an eighth",
    ),
    row(
        "engine.backlog_max",
        SOME,
        |_| count(engine().backlog_max),
        "orders that wait in memory for one of these, and 16 times as many by their key; the rest wait in the store",
    ),
    row("engine.claim_max", SOME, |_| count(engine().claim_max), "due orders taken from the store at once"),
    row(
        "engine.claim_span",
        POSITIVE,
        |_| span(engine().claim_span),
        "how long a claimed order is hidden from other nodes",
    ),
    row(
        "engine.sweep_span",
        POSITIVE,
        |_| span(engine().sweep_span),
        "the longest time between two looks for due orders",
    ),
    row(
        "engine.sweep_pause",
        POSITIVE,
        |_| span(engine().sweep_pause),
        "the shortest time between two looks for due orders",
    ),
    row(
        "engine.poll_wait",
        POSITIVE,
        |_| span(engine().poll_wait),
        "how long one poll may take before its reply no longer counts",
    ),
    row(
        "engine.place_wait",
        POSITIVE,
        |_| span(engine().place_wait),
        "how long placing goes on trying when the store is away",
    ),
    row(
        "engine.count_span",
        ANY,
        |_| span(engine().count_span),
        "how long a join may wait to be written into the books; a crash loses those that wait",
    ),
    row(
        "engine.others_first",
        ANY,
        |_| span(engine().others_first),
        "how long after an outage of the store other nodes may write first",
    ),
    row(
        "keys.proxy_counts",
        Shape::Flag,
        |_| flag(KeySettings::default().proxy_counts),
        "whether orders through different proxies are different orders",
    ),
    row(
        "keys.window",
        POSITIVE,
        |_| KeySettings::default().window.map(Value::Span),
        "equal orders in different windows of this length are different; absent: no windows",
    ),
    row(
        "reuse.default",
        REUSE,
        |_| text("by_kind"),
        "what equal orders without an idempotency key are (docs/reuse.md). `shared`: one job, one answer. `exclusive`: \
         each is a job with an answer of its own. `by_kind`: exclusive where the site takes an answer once, shared where it \
         can be used again",
    ),
    optional("reuse.kinds.*", REUSE, "as reuse.default, for one kind"),
    optional("reuse.targets.*", REUSE, "as reuse.default, for one page host, written as in targets.allow"),
    optional(
        "kinds.*.life",
        Shape::SpanOr { word: "forever", least: Duration::from_secs(1) },
        "how long an answer of this kind lives, from when it was solved",
    ),
    optional(
        "kinds.*.margin",
        ANY,
        "how much life a reused answer (cached, or from the stock) has left when it is handed out",
    ),
    optional("kinds.*.single_use", Shape::Flag, "whether the site takes an answer once only"),
    optional("kinds.*.p50", POSITIVE, "half of the answers take no longer, until we have seen for ourselves"),
    optional("kinds.*.p95", POSITIVE, "19 of 20 take no longer"),
    optional("kinds.*.p99", POSITIVE, "99 of 100 take no longer"),
    optional(
        "kinds.*.new",
        Shape::Flag,
        "true: a kind that Quittance does not know yet, and not a slip of the fingers",
    ),
    optional("provider.*.name", Shape::Label, "what this provider is called here and in the books"),
    row(
        "provider.*.protocol",
        Shape::OneOf(&["classic", "json"]),
        |_| text("classic"),
        "the wire protocol: `in.php` and `res.php`, or `createTask` and `getTaskResult`",
    ),
    optional("provider.*.profile", Shape::Profile, "the dialect: which service this is, or is a clone of"),
    optional("provider.*.url", Shape::WebAddress, "the address that `in.php`, or `createTask`, stands below"),
    optional("provider.*.key_env", Shape::Variable, "variable with the provider's key"),
    optional("provider.*.key_file", Shape::File, "file with the provider's key"),
    row(
        "provider.*.connect_wait",
        POSITIVE,
        |_| span(classic().connect_timeout),
        "how long connecting may take; nothing was sent, so nothing is in doubt",
    ),
    row(
        "provider.*.reply_wait",
        POSITIVE,
        |_| span(classic().submit_timeout),
        "how long the reply to a submit may take; after that it is a doubt",
    ),
    row(
        "provider.*.poll_reply_wait",
        POSITIVE,
        |_| span(classic().poll_timeout),
        "how long the reply to a poll may take",
    ),
    optional(
        "provider.*.poll_batch_max",
        BATCH,
        "tasks asked for in one poll (classic); absent: what the profile is known to take",
    ),
    optional(
        "provider.*.poll_quota_per_task",
        SOME,
        "polls that are allowed for each task; absent: the profile's",
    ),
    optional(
        "provider.*.poll_quota_slack",
        SOME,
        "polls that are allowed besides (classic); absent: the profile's",
    ),
    row("provider.*.reply_bytes_max", BYTES, |_| count(classic().response_bytes_max), "the largest reply"),
    row(
        "provider.*.idle_wait",
        ANY,
        |_| span(classic().idle_max),
        "how long a connection may rest and still be used again",
    ),
    row(
        "provider.*.idle_connections_max",
        SOME,
        |_| count(classic().idle_connections_max),
        "connections that may rest",
    ),
    optional("provider.*.ca_file", Shape::File, "certificates in PEM to trust besides the usual ones"),
    optional("provider.*.submit_interval", ANY, "overrules provider_rules for this provider"),
    optional("provider.*.trip_at", SOME, "overrules provider_rules for this provider"),
    optional("provider.*.probe", POSITIVE, "overrules provider_rules for this provider"),
    optional("provider.*.retry_share", Shape::Share, "overrules provider_rules for this provider"),
    optional("provider.*.retry_burst", SOME, "overrules provider_rules for this provider"),
    optional("provider.*.retry_trickle", POSITIVE, "overrules provider_rules for this provider"),
    optional("provider.*.faults.*", Shape::Class, "the class of fault that this code of the provider means"),
    optional("provider.*.prices.*", Shape::Money, "overrides `prices` for this provider"),
    optional(
        "provider.*.currency",
        Shape::Currency,
        "the currency of the account; amounts that were counted in another one keep that one. Absent: USD, and RUB at rucaptcha.com",
    ),
];
