//! For which orders the limits of retries differ from those of the policy.

use quittance_lifecycle::{RetryLimits, Terms};
use std::collections::BTreeMap;

/// Limits of retries for some kinds and tenants. A provider has its own in
/// [`ProviderRules`](crate::ProviderRules).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RetryRules {
    /// The limits for a kind, by its name.
    pub kinds: BTreeMap<String, RetryLimits>,
    /// The limits for a tenant, by its name. They come before those for a kind.
    pub tenants: BTreeMap<String, RetryLimits>,
}

impl RetryRules {
    pub(crate) fn of(&self, terms: &Terms) -> RetryLimits {
        let of = |limits: Option<&RetryLimits>| limits.copied().unwrap_or_default();
        of(self.tenants.get(&terms.tenant)).or(of(self.kinds.get(&terms.kind)))
    }
}
