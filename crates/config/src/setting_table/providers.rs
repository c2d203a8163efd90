//! How the engine works and limits its load on providers, what makes orders equal, the kinds, and the providers.

use super::{
    ANY, BYTES, MOST_RETRIES, MOST_RETRIES_HELP, POSITIVE, RETRY_BASE_HELP, RETRY_CAP_HELP, REUSE,
    SECOND_OR_MORE, SOME, count, row, rows,
};
use crate::Config;
use crate::setting::Setting;
use crate::setting_shape::SettingShape;
use quittance::ProviderSettings;
use quittance_engine::{Settings, Throttle};

const BATCH: SettingShape = count(1, 1000);
const PERCENTILE: SettingShape = SettingShape::OneOf(&["p50", "p95", "p99"]);
const RULE: SettingShape = SettingShape::OneOf(&["ordered", "weighted", "cheapest", "fastest", "best"]);
const OVERRIDES: &str = "overrides provider_rules for this provider";

pub(super) fn rows() -> impl Iterator<Item = &'static Setting> {
    [FOR_ALL, OUTAGES, ROUTING, HEDGING, ENGINE, SAME_ORDER, KINDS, PROVIDERS, FOR_ONE, PROVIDER_TABLES]
        .into_iter()
        .flatten()
}

/// Each of these rules is a setting for all providers, and one for a single provider.
macro_rules! throttle {
    ($($key:literal $field:tt $shape:expr, $help:expr;)*) => {
        static FOR_ALL: &[Setting] =
            &[$(row!(Throttle, concat!("provider_rules.", $key), $field, $shape, $help)),*];
        static FOR_ONE: &[Setting] =
            &[$(Setting { default: |_| None, ..row!(Throttle, concat!("provider.*.", $key), $field, $shape, OVERRIDES) }),*];
    };
}
throttle! {
    "submit_interval" [submit_interval] ANY, "shortest time between two submits to one provider";
    "trip_at" [trip_at] SOME,
        "failed submits in a row that trip the circuit breaker; for all tenants only if submits of several fail";
    "probe" [probe] POSITIVE, "how long one order may probe the provider while the others wait";
    "retry_share" [retry_share] SettingShape::Ratio, "most retries, as a ratio of first submits";
    "retry_burst" [retry_burst] SOME, "retries that may come at once";
    "retry_trickle" [retry_trickle] POSITIVE,
        "time after which one more retry is allowed, even without first submits";
}

static ENGINE: &[Setting] = rows! {
    Settings:
    "engine.submits_max" [submits_max] SOME, "submits in progress at once";
    "engine.polls_max" [polls_max] SOME, "how many batches of polls may be in progress at once";
    "engine.steps_max" [steps_max] SOME, "other steps in progress at once";
    "engine.follow_ups_max" [follow_ups_max] SOME,
        "webhook deliveries in progress at once; a tenant gets at most half of them, and one host of a tenant at most \
         an eighth";
    "engine.backlog_max" [backlog_max] SOME,
        "orders that wait in memory for one of the slots above, and 16 times as many by key only; the rest wait in \
         the store";
    "engine.claim_max" [claim_max] SOME, "due orders claimed from the store at once";
    "engine.claim_duration" [claim_duration] POSITIVE, "how long a claimed order is hidden from other nodes";
    "engine.sweep_interval" [sweep_interval] POSITIVE, "longest time between two searches for due orders";
    "engine.sweep_pause" [sweep_pause] POSITIVE, "shortest time between two searches for due orders";
    "engine.poll_wait" [poll_wait] POSITIVE, "how long one poll may take before its reply is ignored";
    "engine.place_wait" [place_wait] POSITIVE, "how long a placement is retried while the store is down";
    "engine.count_interval" [count_interval] ANY,
        "how long a join may wait before it is written to the usage; a crash loses waiting joins";
    "engine.others_first" [others_first] ANY, "how long other nodes may write first after an outage of the store";
};

static OUTAGES: &[Setting] = rows! {
    Settings:
    "dead_letters.replay_after_outage" [outage_replays.is_on] SettingShape::Flag,
        "whether dead letters of an outage are replayed when it is over: the provider could not be reached, was busy or \
         the account was empty until the deadline, and nothing can be paid twice";
    "dead_letters.replays_per_hour" [outage_replays.per_hour] SOME, "most replays after outages in one hour";
    "dead_letters.replay_money_per_hour" [outage_replays.money_per_hour] SettingShape::Money,
        "most that the replays of one hour may cost, by the price list; an order without a price is then not replayed. \
         Absent: any amount";
    "dead_letters.replays_per_second" [outage_replays.per_second] SOME, "most replays after outages in one second";
    "dead_letters.replay_age_max" [outage_replays.age_max] POSITIVE,
        "an order that has been dead for longer is not replayed after an outage";
};

static HEDGING: &[Setting] = rows! {
    Settings:
    "hedging.after" [hedging.after] PERCENTILE,
        "an order with the priority `interactive` whose task has taken longer than this percentile of the solve times is \
         also bought at another provider; the first answer counts. Absent: no order is";
    "hedging.money_per_day" [hedging.budget] SettingShape::Money,
        "most that these second purchases may cost in a day (UTC), by all nodes together; needed with hedging.after";
};

static ROUTING: &[Setting] = rows! {
    Settings:
    "routing.rule" [routing.routing.rule] RULE,
        "which provider gets an order. `ordered`: the first in this file that can take it. `weighted`: by chance, in \
         proportion to `weight`. `cheapest`, `fastest`, `best`: by price, by measured solve time, by measured share of \
         answers";
    "routing.busy_wait" [routing.routing.busy_wait] ANY,
        "how long after its placement an order waits for a provider that is only busy, before it goes to the next one";
    "routing.kinds.*" [] RULE, "overrides routing.rule for one kind";
    "routing.tenants.*" [] RULE, "overrides routing.rule for one tenant";
};

static SAME_ORDER: &[Setting] = rows! {
    Config:
    "keys.proxy_counts" [keys.proxy_counts] SettingShape::Flag,
        "whether orders through different proxies are different orders";
    "keys.window" [keys.window] POSITIVE,
        "orders that are equal but placed in different time windows of this length are different orders; absent: no \
         windows";
    "reuse.default" ["by_kind"] REUSE,
        "how to treat equal orders without an idempotency key (docs/reuse.md). `shared`: one job, one answer. \
         `exclusive`: each is a job with its own answer. `by_kind`: exclusive where a site accepts an answer only \
         once, else shared";
    "reuse.kinds.*" [] REUSE, "overrides reuse.default for one kind";
    "reuse.targets.*" [] REUSE, "overrides reuse.default for one page host, written as in targets.allow";
};

static KINDS: &[Setting] = rows! {
    Kind:
    "kinds.*.life" [override life] SECOND_OR_MORE.or("forever"), "how long an answer of this kind is good after the solve";
    "kinds.*.margin" [override margin] ANY,
        "life that a reused answer (cached, or from the stock) must have left when it is handed out";
    "kinds.*.single_use" [override single_use] SettingShape::Flag, "whether a site accepts an answer only once";
    "kinds.*.p50" [override pace.p50] POSITIVE, "half of the answers come within this time; used until measured times are known";
    "kinds.*.p95" [override pace.p95] POSITIVE, "19 of 20 answers come within this time";
    "kinds.*.p99" [override pace.p99] POSITIVE, "99 of 100 answers come within this time";
    "kinds.*.max_retries" [] MOST_RETRIES, MOST_RETRIES_HELP;
    "kinds.*.retry_base" [] POSITIVE, RETRY_BASE_HELP;
    "kinds.*.retry_cap" [] POSITIVE, RETRY_CAP_HELP;
    "kinds.*.new" [false] SettingShape::Flag,
        "true: adds a kind that Quittance does not know; without it, an unknown name is an error";
};

static PROVIDERS: &[Setting] = rows! {
    ProviderSettings:
    "provider.*.name" [] SettingShape::Label, "name of the provider, here and in the usage";
    "provider.*.protocol" ["classic"] SettingShape::OneOf(&["classic", "json"]),
        "wire protocol: `in.php` and `res.php`, or `createTask` and `getTaskResult`";
    "provider.*.dialect" [] SettingShape::Dialect, "which service this is, or is a clone of";
    "provider.*.url" [] SettingShape::WebAddress, "base address of `in.php` or `createTask`";
    "provider.*.key_env" [] SettingShape::Variable, "variable with the provider's key";
    "provider.*.key_file" [] SettingShape::File, "file with the provider's key";
    "provider.*.kinds" [] SettingShape::List(&SettingShape::Kind), "kinds that the provider gets; absent: all";
    "provider.*.tenants" [] SettingShape::List(&SettingShape::Label), "tenants whose orders the provider gets; absent: all";
    "provider.*.weight" [] count(0, 1_000_000), "its share of the orders with the rule `weighted`; absent: 1";
    "provider.*.max_retries" [] MOST_RETRIES,
        "most attempts of an order at this provider after the first one; then another provider gets the order, or it is \
         a dead letter";
    "provider.*.retry_base" [] POSITIVE, "overrides retry.base, and that of a kind or tenant, after a fault of this provider";
    "provider.*.retry_cap" [] POSITIVE, "overrides retry.cap, and that of a kind or tenant, after a fault of this provider";
    "provider.*.connect_wait" [connect_timeout] POSITIVE,
        "how long connecting may take; nothing has been sent, so nothing is in doubt";
    "provider.*.reply_wait" [submit_timeout] POSITIVE,
        "how long the reply to a submit may take; after that the attempt is in doubt";
    "provider.*.poll_reply_wait" [poll_timeout] POSITIVE, "how long the reply to a poll may take";
    "provider.*.poll_batch_max" [poll_batch_max] BATCH,
        "tasks in one poll (classic); absent: the known limit of the dialect";
    "provider.*.poll_quota_per_task" [] SOME,
        "polls that the provider allows for each task; absent: the dialect's value";
    "provider.*.poll_quota_slack" [] SOME,
        "polls that the provider allows in addition (classic); absent: the dialect's value";
    "provider.*.reply_bytes_max" [response_bytes_max] BYTES, "largest reply, in bytes";
    "provider.*.idle_wait" [idle_max] ANY, "how long an idle connection can be reused";
    "provider.*.idle_connections_max" [idle_connections_max] SOME, "idle connections that are kept";
    "provider.*.ca_file" [] SettingShape::File, "PEM file with certificates to trust in addition to the usual ones";
};

static PROVIDER_TABLES: &[Setting] = rows! {
    ProviderSettings:
    "provider.*.faults.*" [] SettingShape::FaultClass, "fault class of this error code of the provider";
    "provider.*.prices.*" [] SettingShape::Money, "overrides `prices` for this provider";
    "provider.*.currency" [] SettingShape::Currency,
        "currency of the account; amounts that were counted in another currency keep it. Absent: USD, and RUB at \
         rucaptcha.com";
};
