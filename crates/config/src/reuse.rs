//! Whether equal orders share an answer, by tenant, host and kind.

use crate::effective::Effective;
use crate::setting_name::Name;
use quittance::Order;
use quittance_engine::targets::{HostPattern, host_of_page};
use quittance_gateway::ReuseSetting;
use quittance_lifecycle::{Reuse, Value};
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// One setting of reuse.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ReuseEntry {
    /// The name of the setting in the configuration, such as `reuse.kinds.turnstile`.
    name: String,
    /// The setting; `None` if the kind decides.
    reuse: Option<Reuse>,
}

/// Every setting of reuse. A tenant's setting is stronger than a host's, that is stronger than a kind's, and that is
/// stronger than the default. An order's own setting is the strongest.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReuseRules {
    default: ReuseEntry,
    pub(crate) kinds: BTreeMap<String, ReuseEntry>,
    /// The settings by host, the narrowest pattern first.
    pub(crate) targets: Vec<(HostPattern, ReuseEntry)>,
    tenants: BTreeMap<String, ReuseEntry>,
}

impl ReuseRules {
    pub(crate) fn of(effective: &Effective) -> Self {
        let entry = |name: &Name| {
            let reuse = effective.get(name)?;
            Some(ReuseEntry { name: name.to_string(), reuse: crate::value::SettingField::of(&reuse.value) })
        };
        let entries = |table: &str| {
            let table = Name::of(["reuse", table]);
            let below: Vec<_> = effective.below(&table).map(|(name, _)| name.clone()).collect();
            below
                .into_iter()
                .filter_map(|name| Some((name.last().to_owned(), entry(&name)?)))
                .collect::<Vec<_>>()
        };
        let pattern = |(host, entry): (String, _)| Some((HostPattern::parse(&host).ok()?, entry));
        let mut targets: Vec<_> = entries("targets").into_iter().filter_map(pattern).collect();
        targets.sort_by_key(|(pattern, _)| Reverse(pattern.narrowness()));
        let of_tenant =
            |label: String| entry(&Name::of(["tenant", &label, "reuse"])).map(|entry| (label, entry));
        Self {
            default: entry(&Name::of(["reuse", "default"])).unwrap_or_default(),
            kinds: entries("kinds").into_iter().collect(),
            targets,
            tenants: effective.labels("tenant").into_iter().filter_map(of_tenant).collect(),
        }
    }

    /// Applies the rules to an order that does not set its own.
    #[must_use]
    pub fn apply(&self, order: Order) -> Order {
        let draft = order.draft();
        if draft.reuse.is_some() {
            return order;
        }
        let host = match draft.params.get("pageurl") {
            Some(Value::Text(page)) => host_of_page(page),
            _ => None,
        };
        match self.setting(&draft.tenant, order.kind(), host.as_deref()).map(|setting| setting.reuse) {
            Some(Reuse::Shared) => order.shared(),
            Some(Reuse::Exclusive) => order.exclusive(),
            None => order,
        }
    }

    /// The setting for an order of this tenant and kind, with the host of its page as
    /// [`host_of_page`] writes it, if it has one. `None` if the kind decides.
    pub fn setting(&self, tenant: &str, kind: &str, host: Option<&str>) -> Option<ReuseSetting> {
        let by_host = || {
            let host = host?;
            self.targets.iter().find(|(pattern, _)| pattern.covers(host)).map(|(_, entry)| entry)
        };
        let by_tenant = self.tenants.get(tenant);
        let entry = by_tenant.or_else(by_host).or_else(|| self.kinds.get(kind)).unwrap_or(&self.default);
        entry.reuse.map(|reuse| ReuseSetting { reuse, name: entry.name.clone() })
    }
}
