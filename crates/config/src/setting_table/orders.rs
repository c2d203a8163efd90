//! Where the node listens, where orders are kept, how long each step may take, and how often it is retried.

use super::{ANY, BYTES, MOST_RETRIES, POSITIVE, count, duration, rows};
use crate::Config;
use crate::setting::Setting;
use crate::setting_shape::{HOSTS, SettingShape};
use crate::value::{SettingField, SettingValue};
use quittance_lifecycle::Signal;
use quittance_lifecycle::fault::FaultClass as Class;
use quittance_lifecycle::terms::TIMEOUT_MAX;
use std::time::Duration;

const DEADLINE: SettingShape = duration(Duration::from_secs(1), TIMEOUT_MAX);
const RETRIES: SettingShape = count(0, 100);
/// The limit for retries that cost nothing: a number, or `deadline` for any number until the order's deadline.
const FREE_RETRIES: SettingShape = RETRIES.or("deadline");
/// The limit of retries of permanent faults, which are never retried. Their names exist only to show this.
const NEVER: SettingShape = count(0, 0);

pub(crate) fn limit(config: &Config, signal: impl Into<Signal>) -> Option<SettingValue> {
    config.policy.faults.rule(signal).limit.value()
}

pub(crate) fn set_limit(config: &mut Config, signal: impl Into<Signal>, value: &SettingValue) {
    let signal = signal.into();
    let mut rule = config.policy.faults.rule(signal);
    rule.limit = SettingField::of(value);
    config.policy.faults.set(signal, rule);
}

pub(super) static ROWS: &[Setting] = rows! {
    Config:
    "listen" [listen] SettingShape::ListenAddress, "address to listen on, for callbacks and callers";
    "public_url" [public_url] SettingShape::WebAddress,
        "address at which the provider can call this node; absent: polling only, and an order whose submit got no \
         reply is submitted again and may be paid twice (see retry.when_in_doubt)";
    "callback_secret_env" [] SettingShape::Variable, "variable with the secret that signs callback addresses";
    "callback_secret_file" [] SettingShape::File,
        "file with the secret that signs callback addresses; neither: created at the first start and kept in the \
         store";
    "store.url" ["embedded:./quittance-data"] SettingShape::StoreUrl,
        "where orders are kept; a relative folder is relative to the config file. Several nodes can share Redis or \
         PostgreSQL";
    "store.password_env" [] SettingShape::Variable,
        "variable with the store's password; the URL may contain it only if the URL comes from the environment";
    "store.password_file" [] SettingShape::File, "file with the store's password";
    "store.ca_file" [] SettingShape::File, "PEM file with the certificate authority of the store's certificate";
    "store.listen_url" [] SettingShape::PostgresUrl,
        "for PostgreSQL behind a pooler: its direct address, for the one connection that uses LISTEN";
    "store.migrate" [true] SettingShape::Flag,
        "whether `serve`, `solve`, `dead replay` and `store copy` (in TO) migrate PostgreSQL's tables; other commands \
         never do, `quittance store migrate` always does";
    "store.home" [] SettingShape::Folder,
        "local folder of a node on a shared store, for callbacks that come while the store is down; absent: \
         quittance-data next to the config file";
    "store.keep" [policy.keep] ANY, "how long a settled order is kept after its answer has expired";
    "store.spill_max" [spill_bytes_max] BYTES,
        "largest size of the spill (callbacks that came while the store was down), in bytes";
    "targets.allow" [targets.allow] HOSTS, "page hosts that may be automated";
    "targets.images" [targets.images] SettingShape::Flag, "whether orders without a page, such as images, are accepted";
    "targets.undescribed" [targets.undescribed] SettingShape::Flag,
        "whether orders of kinds that `quittance kinds` does not list are accepted; absent: only if there are no \
         tenants";
    "targets.vendors.*" [] HOSTS,
        "hosts of the vendor of this kind of captcha (scripts, challenges, APIs), in addition to the known ones";
    "timing.callback_wait" [policy.callback_wait] POSITIVE,
        "longest wait for the callback of a task before the task is polled";
    "timing.in_doubt_wait" [policy.in_doubt_wait] POSITIVE,
        "longest time that an attempt in doubt waits for a callback";
    "timing.first_poll" [policy.first_poll] POSITIVE.or("auto"),
        "shortest time from the submit to the first poll of a task; `auto`: the rules of the provider";
    "timing.poll_interval" [policy.poll_interval] POSITIVE.or("auto"),
        "time between two polls of one task; `auto`: 3 s for a young task, more for an old one, within the rules of the \
         provider";
    "timing.deadline" [policy.timeout] DEADLINE, "how long an order may take, unless it sets its own deadline";
    "timing.submit_wait" [policy.submit_wait] POSITIVE,
        "how long a submit may have no recorded outcome before it is in doubt";
    "timing.in_doubt_min" [policy.in_doubt_min] ANY,
        "shortest time that an attempt stays in doubt if a callback can settle it";
    "timing.timer_late" [policy.timer_late] POSITIVE, "how late a timer may fire in normal operation";
    "timing.task_life" [policy.task_life] POSITIVE, "how long after its submit a task is still polled";
    "timing.share_window" [policy.share_window] ANY.or("auto"),
        "how long after the solve an equal placement counts as a repeat; `auto`: as long as the answer keeps its \
         margin";
    "timing.callback_lag" [policy.callback_lag] ANY,
        "longest delay from the solve to the provider's callback; an answer counts as this much older than its \
         callback";
    "timing.refusal_hold" [policy.refusal_hold] ANY,
        "how long the same order is refused after the provider rejected it";
    "timing.p50" [policy.pace.p50] POSITIVE, "half of the answers come within this time; for kinds that are not described";
    "timing.p95" [policy.pace.p95] POSITIVE, "19 of 20 answers come within this time";
    "timing.p99" [policy.pace.p99] POSITIVE, "99 of 100 answers come within this time";
    "retry.preset" ["patient"] SettingShape::OneOf(&["patient", "standard", "conservative", "aggressive"]),
        "named set of the pauses and limits below; single settings override it";
    "retry.max_retries" [policy.max_retries] MOST_RETRIES.or("unlimited"),
        "most attempts of an order after the first one, at all providers and whatever went wrong; 0: one attempt only; \
         `unlimited`: as many as the limits below allow. An order can ask for fewer";
    "retry.base" [policy.backoff.base] POSITIVE, "first pause before a retry; each next pause is twice as long";
    "retry.cap" [policy.backoff.cap] POSITIVE, "longest pause before a retry";
    "retry.jitter" [policy.backoff.jitter] ANY.or("full"),
        "random time added to a pause, uniform from zero to this; `full`: the whole pause is random";
    "retry.when_in_doubt" [policy.when_in_doubt] SettingShape::OneOf(&["resubmit", "dead_letter"]),
        "what to do with an attempt in doubt that no callback can settle";
    "retry.limits.busy" [limit(Class::Busy)] FREE_RETRIES,
        "retries of an order when the provider is busy; `deadline`: until the order's deadline";
    "retry.limits.unreachable" [limit(Class::Unreachable)] FREE_RETRIES,
        "retries when the provider could not be reached and nothing was sent; `deadline`: until the order's deadline";
    "retry.limits.in_doubt" [limit(Signal::InDoubt)] RETRIES,
        "retries after an attempt in doubt (sent, but no reply came); each may pay twice";
    "retry.limits.unsolvable" [limit(Class::Unsolvable)] RETRIES,
        "retries when the provider could not solve the task";
    "retry.limits.no_funds" [limit(Class::NoFunds)] NEVER, "retries when the account has no money: there are none";
    "retry.limits.account_blocked" [limit(Class::AccountBlocked)] NEVER,
        "retries when the provider does not accept the account: there are none";
    "retry.limits.caller" [limit(Class::Caller)] NEVER, "retries of an invalid order: there are none";
    "retry.limits.not_sold" [limit(Class::NotSold)] NEVER,
        "retries of an order whose kind the provider does not sell: there are none, but another provider may take it";
    "retry.limits.unlisted_code" [limit(Class::UnlistedCode)] RETRIES, "retries after an unlisted error code";
};
