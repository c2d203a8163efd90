//! How the engine works and spares the providers, what counts as the same order, and the open tables: kinds and
//! providers.

use super::{ANY, BYTES, POSITIVE, REUSE, SOME, count, flag, optional, row, span, text};
use crate::setting::Setting;
use crate::value::{Shape, Value};
use quittance::{ApiKey, ClassicSettings, Profile};
use quittance_engine::{Settings, Throttle};
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
        |_| span(Throttle::DEFAULT.submit_interval),
        "shortest time between two submits to one provider",
    ),
    row(
        "provider_rules.trip_at",
        SOME,
        |_| count(Throttle::DEFAULT.trip_at),
        "failed submits in a row that trip the circuit breaker",
    ),
    row(
        "provider_rules.probe",
        POSITIVE,
        |_| span(Throttle::DEFAULT.probe),
        "how long one order may probe the provider while the others wait",
    ),
    row(
        "provider_rules.retry_share",
        Shape::Share,
        |_| Some(Value::Share(Throttle::DEFAULT.retry_share)),
        "most retries, as a ratio of first submits",
    ),
    row(
        "provider_rules.retry_burst",
        SOME,
        |_| count(Throttle::DEFAULT.retry_burst),
        "retries that may come at once",
    ),
    row(
        "provider_rules.retry_trickle",
        POSITIVE,
        |_| span(Throttle::DEFAULT.retry_trickle),
        "time after which one more retry is allowed, even without first submits",
    ),
    row("engine.submits_max", SOME, |_| count(engine().submits_max), "submits in progress at once"),
    row("engine.polls_max", SOME, |_| count(engine().polls_max), "batches of polls in progress at once"),
    row("engine.steps_max", SOME, |_| count(engine().steps_max), "other steps in progress at once"),
    row(
        "engine.follow_ups_max",
        SOME,
        |_| count(engine().follow_ups_max),
        "webhook deliveries in progress at once; a tenant gets at most half of them, and one host of a tenant at most an eighth",
    ),
    row(
        "engine.backlog_max",
        SOME,
        |_| count(engine().backlog_max),
        "orders that wait in memory for one of the slots above, and 16 times as many by key only; the rest wait in the store",
    ),
    row("engine.claim_max", SOME, |_| count(engine().claim_max), "due orders claimed from the store at once"),
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
        "longest time between two searches for due orders",
    ),
    row(
        "engine.sweep_pause",
        POSITIVE,
        |_| span(engine().sweep_pause),
        "shortest time between two searches for due orders",
    ),
    row(
        "engine.poll_wait",
        POSITIVE,
        |_| span(engine().poll_wait),
        "how long one poll may take before its reply is ignored",
    ),
    row(
        "engine.place_wait",
        POSITIVE,
        |_| span(engine().place_wait),
        "how long a placement is retried while the store is down",
    ),
    row(
        "engine.count_span",
        ANY,
        |_| span(engine().count_span),
        "how long a join may wait before it is written to the usage; a crash loses waiting joins",
    ),
    row(
        "engine.others_first",
        ANY,
        |_| span(engine().others_first),
        "how long other nodes may write first after an outage of the store",
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
        "orders that are equal but placed in different time windows of this length are different orders; absent: no windows",
    ),
    row(
        "reuse.default",
        REUSE,
        |_| text("by_kind"),
        "how to treat equal orders without an idempotency key (docs/reuse.md). `shared`: one job, one answer. \
         `exclusive`: each is a job with its own answer. `by_kind`: exclusive where a site accepts an answer only once, else \
         shared",
    ),
    optional("reuse.kinds.*", REUSE, "overrides reuse.default for one kind"),
    optional(
        "reuse.targets.*",
        REUSE,
        "overrides reuse.default for one page host, written as in targets.allow",
    ),
    optional(
        "kinds.*.life",
        Shape::SpanOr { word: "forever", least: Duration::from_secs(1) },
        "how long an answer of this kind is good after the solve",
    ),
    optional(
        "kinds.*.margin",
        ANY,
        "life that a reused answer (cached, or from the stock) must have left when it is handed out",
    ),
    optional("kinds.*.single_use", Shape::Flag, "whether a site accepts an answer only once"),
    optional(
        "kinds.*.p50",
        POSITIVE,
        "half of the answers take no longer; used until measured times are known",
    ),
    optional("kinds.*.p95", POSITIVE, "19 of 20 answers take no longer"),
    optional("kinds.*.p99", POSITIVE, "99 of 100 answers take no longer"),
    optional(
        "kinds.*.new",
        Shape::Flag,
        "true: adds a kind that Quittance does not know; without it, an unknown name is an error",
    ),
    optional("provider.*.name", Shape::Label, "name of the provider, here and in the usage"),
    row(
        "provider.*.protocol",
        Shape::OneOf(&["classic", "json"]),
        |_| text("classic"),
        "wire protocol: `in.php` and `res.php`, or `createTask` and `getTaskResult`",
    ),
    optional("provider.*.profile", Shape::Profile, "dialect: which service this is, or is a clone of"),
    optional("provider.*.url", Shape::WebAddress, "base address of `in.php` or `createTask`"),
    optional("provider.*.key_env", Shape::Variable, "variable with the provider's key"),
    optional("provider.*.key_file", Shape::File, "file with the provider's key"),
    row(
        "provider.*.connect_wait",
        POSITIVE,
        |_| span(classic().connect_timeout),
        "how long connecting may take; nothing has been sent, so nothing is in doubt",
    ),
    row(
        "provider.*.reply_wait",
        POSITIVE,
        |_| span(classic().submit_timeout),
        "how long the reply to a submit may take; after that the attempt is in doubt",
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
        "tasks in one poll (classic); absent: the known limit of the profile",
    ),
    optional(
        "provider.*.poll_quota_per_task",
        SOME,
        "polls that the provider allows for each task; absent: the profile's value",
    ),
    optional(
        "provider.*.poll_quota_slack",
        SOME,
        "polls that the provider allows in addition (classic); absent: the profile's value",
    ),
    row(
        "provider.*.reply_bytes_max",
        BYTES,
        |_| count(classic().response_bytes_max),
        "largest reply, in bytes",
    ),
    row(
        "provider.*.idle_wait",
        ANY,
        |_| span(classic().idle_max),
        "how long an idle connection can be reused",
    ),
    row(
        "provider.*.idle_connections_max",
        SOME,
        |_| count(classic().idle_connections_max),
        "idle connections that are kept",
    ),
    optional(
        "provider.*.ca_file",
        Shape::File,
        "PEM file with certificates to trust in addition to the usual ones",
    ),
    optional("provider.*.submit_interval", ANY, "overrides provider_rules for this provider"),
    optional("provider.*.trip_at", SOME, "overrides provider_rules for this provider"),
    optional("provider.*.probe", POSITIVE, "overrides provider_rules for this provider"),
    optional("provider.*.retry_share", Shape::Share, "overrides provider_rules for this provider"),
    optional("provider.*.retry_burst", SOME, "overrides provider_rules for this provider"),
    optional("provider.*.retry_trickle", POSITIVE, "overrides provider_rules for this provider"),
    optional("provider.*.faults.*", Shape::Class, "fault class of this error code of the provider"),
    optional("provider.*.prices.*", Shape::Money, "overrides `prices` for this provider"),
    optional(
        "provider.*.currency",
        Shape::Currency,
        "currency of the account; amounts that were counted in another currency keep it. Absent: USD, and RUB at rucaptcha.com",
    ),
];
