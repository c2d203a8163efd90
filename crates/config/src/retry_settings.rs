//! Limits of retries of a kind, a tenant or a provider.

use crate::effective::Effective;
use crate::error::{ConfigError, Errors};
use crate::setting_name::Name;
use quittance_engine::RetryRules;
use quittance_lifecycle::RetryLimits;
use std::collections::BTreeSet;
use std::time::Duration;

/// The limits that this table sets.
pub(crate) fn retry_limits(effective: &Effective, table: &Name) -> RetryLimits {
    RetryLimits {
        max_retries: effective.read_at(&table.below("max_retries")),
        base: effective.read_at(&table.below("retry_base")),
        cap: effective.read_at(&table.below("retry_cap")),
    }
}

/// The limits of all kinds and tenants that set some.
pub(crate) fn retry_rules(effective: &Effective) -> RetryRules {
    let limits = |list: &'static str, name: String| {
        let limits = retry_limits(effective, &Name::of([list, &name]));
        (limits != RetryLimits::NONE).then_some((name, limits))
    };
    RetryRules {
        kinds: kinds(effective).into_iter().filter_map(|kind| limits("kinds", kind)).collect(),
        tenants: effective.labels("tenant").into_iter().filter_map(|name| limits("tenant", name)).collect(),
    }
}

fn kinds(effective: &Effective) -> BTreeSet<String> {
    let below = Name::of(["kinds"]);
    effective.below(&below).filter_map(|(name, _)| name.segments().nth(1).map(str::to_owned)).collect()
}

/// Checks that the first pause is not longer than the longest one.
pub(crate) fn check_retries(effective: &Effective, errors: &mut Errors) {
    let tables = kinds(effective).into_iter().map(|kind| Name::of(["kinds", &kind]));
    let entries = ["tenant", "provider"]
        .into_iter()
        .flat_map(|list| effective.labels(list).into_iter().map(move |label| Name::of([list, &label])));
    for table in tables.chain(entries) {
        errors.keep(check_table(effective, &table));
    }
}

fn check_table(effective: &Effective, table: &Name) -> Result<(), ConfigError> {
    let own: RetryLimits = retry_limits(effective, table);
    let of_all = |path: &str| -> Duration { effective.read(path) };
    let (base, cap) =
        (own.base.unwrap_or_else(|| of_all("retry.base")), own.cap.unwrap_or_else(|| of_all("retry.cap")));
    if (own.base.is_none() && own.cap.is_none()) || base <= cap {
        return Ok(());
    }
    let blamed = table.below(if own.base.is_some() { "retry_base" } else { "retry_cap" });
    let problem = "makes the first pause longer than the longest one";
    Err(effective.unsound(
        &blamed,
        problem,
        "set both, so that pauses grow from `retry_base` up to `retry_cap`",
    ))
}
