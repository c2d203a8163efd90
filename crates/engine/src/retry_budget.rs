//! The retry budget: during an outage, retries stay a set share of first submits. With a share of 200 in a thousand,
//! five first submits earn one retry; a retry is also earned each second, so that a lone order may try again.
//! While fewer of a tenant's submits fail than that share, its retries need no budget.

use crate::Throttle;
use crate::gate_rules::GateRules;
use quittance_lifecycle::Timestamp;
use std::collections::BTreeMap;
use std::time::Duration;

/// The weight of one submit in the failing share is 1 in this number: the last few dozen submits decide.
const FAILING_MEMORY: u64 = 16;

pub(crate) struct RetryBudget {
    rules: GateRules,
    throttle: Throttle,
    /// The share of each tenant's last submits that failed, in thousandths. A tenant without an entry has no failures.
    failing: BTreeMap<String, u64>,
    /// The retry credit, in thousandths of a retry.
    credit: u64,
    credited_at: Timestamp,
}

impl RetryBudget {
    pub(crate) const fn new(rules: GateRules, throttle: Throttle) -> Self {
        let credit = burst(throttle);
        Self { rules, throttle, failing: BTreeMap::new(), credit, credited_at: Timestamp::ZERO }
    }

    pub(crate) fn follow(&mut self, throttle: Throttle) {
        self.throttle = throttle;
        self.credit = self.credit.min(burst(throttle));
    }

    /// Whether a retry of this tenant may go out now. If it needs credit, the credit is spent.
    pub(crate) fn may_retry(&mut self, tenant: &str, now: Timestamp) -> bool {
        let failing = self.failing.get(tenant).copied().unwrap_or_default();
        (self.rules.is_retry_free)(failing, u64::from(self.throttle.retry_share)) || self.spend(now)
    }

    /// How long a retry without credit waits.
    pub(crate) const fn trickle(&self) -> Duration {
        self.throttle.retry_trickle
    }

    fn spend(&mut self, now: Timestamp) -> bool {
        let earned =
            now.since(self.credited_at).as_millis() * 1000 / self.throttle.retry_trickle.as_millis().max(1);
        let earned = u64::try_from(earned).unwrap_or(u64::MAX);
        if earned > 0 {
            self.credited_at = now;
            self.credit = self.credit.saturating_add(earned).min(burst(self.throttle));
        }
        let left = self.credit.checked_sub(1000);
        self.credit = left.unwrap_or(self.credit);
        left.is_some()
    }

    /// A first submit goes out, and earns its share of a retry.
    pub(crate) fn earn(&mut self) {
        self.credit = (self.credit + u64::from(self.throttle.retry_share)).min(burst(self.throttle));
    }

    pub(crate) fn failed(&mut self, tenant: &str) {
        let failing = self.failing.entry(tenant.to_owned()).or_default();
        *failing += (1000 - *failing) / FAILING_MEMORY;
    }

    pub(crate) fn succeeded(&mut self, tenant: &str) {
        if let Some(failing) = self.failing.get_mut(tenant) {
            *failing -= failing.div_ceil(FAILING_MEMORY);
            if *failing == 0 {
                self.failing.remove(tenant);
            }
        }
    }

    pub(crate) fn reset(&mut self) {
        self.failing.clear();
    }
}

/// The most retries that may go out at once, in thousandths of a retry.
const fn burst(throttle: Throttle) -> u64 {
    throttle.retry_burst as u64 * 1000
}
