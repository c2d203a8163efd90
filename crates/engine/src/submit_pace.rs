//! How fast submits go out and how many tasks may be at the provider: for all tenants, or for one whose submits met a
//! busy provider.

use crate::gate_rules::GateRules;
use crate::limit::{Limit, SeatCount};
use crate::spacing::Spacing;
use quittance_lifecycle::{Backoff, Timestamp};
use std::time::Duration;

pub(crate) struct SubmitPace {
    backoff: Backoff,
    pub(crate) spacing: Spacing,
    pub(crate) limit: Limit,
}

impl SubmitPace {
    pub(crate) const fn new(backoff: Backoff, spacing: Spacing, rules: GateRules) -> Self {
        Self { backoff, spacing, limit: Limit::new(rules) }
    }

    pub(crate) fn follow(&mut self, rules: &GateRules, backoff: Backoff, interval: Duration) {
        self.backoff = backoff;
        self.spacing.follow(rules, backoff, interval);
    }

    /// A submit met a busy provider. If the provider has some of our tasks, the limit learns from it. If it has none,
    /// other users of the account have all its slots: submits are kept apart, and wait longer each time. `count` is
    /// without the submit. Returns whether that is new information.
    pub(crate) fn met_busy(
        &mut self,
        submit: (u64, Timestamp),
        count: SeatCount,
        now: Timestamp,
        grain: u64,
    ) -> bool {
        if count.taken() == 0 {
            self.limit.restart();
            return self.spacing.met_busy(now, grain);
        }
        self.limit.met_busy(submit, count, now, |retry| self.backoff.pause(retry, grain))
    }

    pub(crate) fn accepted(&mut self, submit: u64, count: SeatCount, now: Timestamp) {
        self.spacing.accepted();
        self.limit.accepted(submit, count, now);
    }

    /// Whether submits meet a busy provider: the last one did, or all seats that the provider gives are in use.
    pub(crate) fn is_busy(&self, count: SeatCount) -> bool {
        self.spacing.is_busy() || self.limit.is_full(count)
    }

    /// Whether the pace is the usual one, so that it need not be remembered for a tenant.
    pub(crate) fn is_usual(&self) -> bool {
        !self.spacing.is_throttled() && self.limit.learned().is_none()
    }
}
