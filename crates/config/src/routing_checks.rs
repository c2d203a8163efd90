//! Checks the settings that say which provider gets which order: names that must exist, and settings with which no
//! provider gets an order.

use crate::Config;
use crate::effective::Effective;
use crate::error::Errors;
use crate::providers::ProviderConfig;
use crate::setting_name::Name;

/// Checks everything that needs no secrets. The kinds are checked with the table of kinds.
pub(crate) fn check(effective: &Effective, errors: &mut Errors) {
    check_tenants(effective, errors);
    check_lists(effective, errors);
    check_weights(effective, errors);
}

/// Checks that the lists of a provider, and the rules for single tenants, name tenants that exist.
fn check_tenants(effective: &Effective, errors: &mut Errors) {
    let tenants = effective.labels("tenant");
    let unknown = |name: &Name, tenant: &str| {
        let problem = format!("names the tenant `{}`, and there is none", tenant.escape_debug());
        effective.unsound(name, problem, "`quittance tenant list` shows them all")
    };
    for label in effective.labels("provider") {
        let name = Name::of(["provider", &label, "tenants"]);
        let listed: Vec<String> = effective.read_at(&name).unwrap_or_default();
        for tenant in listed.iter().filter(|tenant| !tenants.contains(tenant)) {
            errors.push(unknown(&name, tenant));
        }
    }
    for (name, _) in effective.below(&Name::of(["routing", "tenants"])) {
        if !tenants.iter().any(|tenant| tenant == name.last()) {
            errors.push(unknown(name, name.last()));
        }
    }
}

/// Checks that at least one provider has no empty list of kinds or tenants.
fn check_lists(effective: &Effective, errors: &mut Errors) {
    let empty_list = |label: &String| {
        let table = Name::of(["provider", label]);
        let is_empty =
            |name: &Name| effective.read_at::<Vec<String>>(name).is_some_and(|list| list.is_empty());
        ["kinds", "tenants"].map(|key| table.below(key)).into_iter().find(is_empty)
    };
    let empty: Option<Vec<Name>> = effective.labels("provider").iter().map(empty_list).collect();
    if let Some(first) = empty.as_deref().and_then(<[Name]>::first) {
        let problem = "is empty, and no provider gets an order";
        let remedy = "list what the provider gets, or leave it out, and the provider gets all";
        errors.push(effective.unsound(first, problem, remedy));
    }
}

/// Checks that at least one of several providers has a weight, if a rule uses weights: otherwise the first provider
/// would get all orders.
fn check_weights(effective: &Effective, errors: &mut Errors) {
    let rule = Name::of(["routing", "rule"]);
    let tables = ["kinds", "tenants"].map(|list| Name::of(["routing", list]));
    let of_one = tables.iter().flat_map(|table| effective.below(table)).map(|(name, _)| name);
    let weighted =
        [&rule].into_iter().chain(of_one).find(|name| effective.text_at(name).as_deref() == Some("weighted"));
    let labels = effective.labels("provider");
    let weight = |label: &String| Name::of(["provider", label, "weight"]);
    let (Some(rule), Some(first)) = (weighted, labels.first().map(weight)) else { return };
    let is_zero = |label: &String| effective.read_at::<u32>(&weight(label)) == Some(0);
    if labels.len() > 1 && labels.iter().all(is_zero) {
        let problem = format!("is 0, as at every provider, and `{rule}` is `weighted`");
        let remedy = "give at least one provider a weight of 1 or more";
        errors.push(effective.unsound(&first, problem, remedy));
    }
}

impl Config {
    /// What is valid about the providers and may surprise; each with what to do.
    pub fn provider_notes(&self) -> Vec<String> {
        let providers = self.providers.iter().enumerate();
        let twin = |(index, provider): (usize, &ProviderConfig)| {
            let key = provider.key.get().ok()?;
            let is_same = |other: &&ProviderConfig| {
                other.url() == provider.url() && other.key.get().is_ok_and(|other| other == key)
            };
            let other = self.providers[..index].iter().find(is_same)?;
            Some(format!(
                "`provider.{}` and `provider.{}` have the same address and the same key, so they are the same account: each \
                 has a pace, a circuit breaker and a pause of its own, and together they send faster than the account may \
                 allow. Remove one of them, or give it the key of another account",
                other.name, provider.name
            ))
        };
        providers.filter_map(twin).collect()
    }
}
