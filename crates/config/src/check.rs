//! Checks settings against each other, and checks that names refer to something.

use crate::Config;
use crate::config_file::{LIFETIMES, LISTS};
use crate::duration::render;
use crate::effective::Effective;
use crate::error::{ConfigError, Errors};
use crate::named_secret::{CallerKey, Credential};
use crate::origin::SettingOrigin;
use crate::setting_name::Name;
use crate::setting_shape::{HOSTS, SettingShape, is_label};
use crate::value::SettingValue;
use quittance_engine::targets::HostPattern;
use std::collections::BTreeMap;
use std::time::Duration;

/// Pairs of settings of which the first must be shorter than the second, or at most as long if the third value is
/// false.
const RELATIONS: [(&str, &str, bool, &str); 8] = [
    ("engine.poll_wait", "engine.claim_duration", true, "a poll that outlives its claim is sent twice"),
    (
        "engine.sweep_pause",
        "engine.sweep_interval",
        false,
        "one is the shortest and the other the longest pause",
    ),
    ("retry.base", "retry.cap", false, "pauses grow from the base up to the cap"),
    (
        "timing.in_doubt_min",
        "timing.in_doubt_wait",
        false,
        "one is the shortest and the other the longest doubt",
    ),
    ("timing.callback_wait", "timing.task_life", true, "a task would be given up before it is polled"),
    ("timing.first_poll", "timing.task_life", true, "a task would be given up before it is polled"),
    ("timing.p50", "timing.p95", false, "more answers take longer"),
    ("timing.p95", "timing.p99", false, "more answers take longer"),
];

/// The reason for the limit of a margin.
pub(crate) const MARGIN_MAX: &str =
    "promise at most three quarters of the life, because part of it is over before we know the answer";

/// Checks everything that needs no secrets and files.
pub(crate) fn settings(effective: &Effective, errors: &mut Errors) {
    for relation in RELATIONS {
        errors.keep(check_relation(effective, relation));
    }
    check_provider_waits(effective, errors);
    check_names(effective, errors);
    crate::routing_checks::check(effective, errors);
    crate::retry_settings::check_retries(effective, errors);
    errors.keep(check_usage(effective));
}

/// The name of a closed setting.
fn closed(path: &str) -> Name {
    Name::of(path.split('.'))
}

fn check_relation(
    effective: &Effective,
    (short, long, strictly, why): (&str, &str, bool, &str),
) -> Result<(), ConfigError> {
    let span = |path: &str| effective.read_at::<Duration>(&closed(path));
    // A word in place of a time has no relation to others.
    let (Some(less), Some(more)) = (span(short), span(long)) else { return Ok(()) };
    if less < more || (less == more && !strictly) {
        return Ok(());
    }
    // The error is about the one that was set.
    let blame_short = effective.held(long).origin == SettingOrigin::Default;
    let (name, other) = if blame_short { (short, long) } else { (long, short) };
    let must_be = match (blame_short, strictly) {
        (true, true) => "shorter than",
        (true, false) => "at most",
        (false, true) => "longer than",
        (false, false) => "at least",
    };
    let held = effective.held(other);
    let problem = format!("is {}", effective.held(name).value);
    let remedy = format!("it must be {must_be} `{other}` = {} ({}), because {why}", held.value, held.origin);
    Err(effective.unsound(&closed(name), problem, remedy))
}

fn check_provider_waits(effective: &Effective, errors: &mut Errors) {
    let submit_wait: Duration = effective.read("timing.submit_wait");
    for label in effective.labels("provider") {
        let table = Name::of(["provider", &label]);
        let (connect, reply) = (table.below("connect_wait"), table.below("reply_wait"));
        let [connect_wait, reply_wait] =
            [&connect, &reply].map(|name| effective.read_at::<Duration>(name).unwrap_or_default());
        if connect_wait + reply_wait > submit_wait {
            let problem =
                format!("is {}, after up to {} for `{connect}`", render(reply_wait), render(connect_wait));
            let remedy = format!(
                "together they must be at most `timing.submit_wait` = {}, or the engine gives up a submit before its call \
                 times out",
                render(submit_wait)
            );
            errors.push(effective.unsound(&reply, problem, remedy));
        }
    }
}

/// Names that the operator chose, in flags and variables as well as in the file.
fn check_names(effective: &Effective, errors: &mut Errors) {
    for list in LISTS.into_iter().filter(|list| *list != LIFETIMES) {
        for label in effective.labels(list) {
            let table = Name::of([list, &label]);
            let name = table.below("name");
            if !is_label(&label) {
                errors.push(bad_name(&table, &effective.origin(&name), &SettingShape::Label.describe()));
            }
            if effective.get(&name).is_none_or(|held| held.value != SettingValue::Text(label.clone())) {
                let remedy =
                    format!("names are given in the file only; leave this out, or use `{list}.NEW_NAME`");
                errors.push(effective.unsound(&name, "would rename it", remedy));
            }
        }
    }
    let mut targets: BTreeMap<String, &Name> = BTreeMap::new();
    for (name, held) in effective.below(&Name::of(["reuse", "targets"])) {
        let Ok(pattern) = HostPattern::parse(name.last()) else {
            let expected = HOSTS.describe().replace("a list of hosts", "named by a host");
            errors.push(bad_name(name, &held.origin, &expected));
            continue;
        };
        if let Some(same) = targets.insert(pattern.to_string(), name) {
            let problem = format!("is another spelling of `{same}`");
            errors.push(effective.unsound(name, problem, "take one of them out"));
        }
    }
}

pub(crate) fn bad_name(name: &Name, at: &SettingOrigin, expected: &str) -> ConfigError {
    ConfigError::bad_value(at, name, "a wrong name", expected)
}

/// Checks that sums are kept longer than details: otherwise sums would be removed together with the details.
fn check_usage(effective: &Effective) -> Result<(), ConfigError> {
    let [detail, sums] = ["usage.detail_days", "usage.sum_days"];
    if effective.read::<u64>(detail) <= effective.read(sums) {
        return Ok(());
    }
    let blamed = if effective.held(sums).origin == SettingOrigin::Default { detail } else { sums };
    let problem = format!("is {}", effective.held(blamed).value);
    let remedy = format!("days in detail are days that are kept: set `{sums}` to at least `{detail}`");
    Err(effective.unsound(&closed(blamed), problem, remedy))
}

/// Checks that all callers have different keys: with equal keys the first tenant, or the operator, would be the
/// caller. Also checks that the callback secret is too long to be guessed.
pub(crate) fn secrets(config: &Config, errors: &mut Errors) {
    let keys: Vec<&CallerKey> =
        config.admin.iter().chain(config.tenants.iter().map(|tenant| &tenant.key)).collect();
    for (index, key) in keys.iter().enumerate() {
        let is_same =
            |other: &&&CallerKey| key.any_digest().is_some() && other.any_digest() == key.any_digest();
        if let Some(other) = keys[..index].iter().find(is_same) {
            let table = Name::parse(key.name().trim_end_matches(".key")).unwrap_or_else(Name::top);
            let at = config.effective.origin(&table.below("name"));
            let problem = format!("is the same as `{}`", other.name());
            let remedy = "give each tenant a key of its own, and the operator another";
            errors.push(ConfigError::at(&at, key.name(), format!("{problem}: {remedy}")));
        }
    }
    errors.keep(config.alerts.check(&config.effective));
    // A secret may be missing as long as the node does not listen; but one that is there must make sense.
    if config.callback_secret.as_ref().is_some_and(Credential::is_set) {
        errors.keep(config.callback_secret());
    }
}
