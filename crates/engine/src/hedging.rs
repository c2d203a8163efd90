//! Hedging: an urgent order whose task takes long is also bought at another provider, within a budget for each day. The
//! first answer counts, and the other one goes to the stock.

use crate::{BudgetPeriod, BudgetRule, BudgetScope, Engine, Settings};
use quittance_lifecycle::{AtLimit, Money, Order, Pace, Policy, Priority, WhyShort};
use std::time::Duration;

/// After which age of its task an urgent order is hedged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HedgeAfter {
    P50,
    P95,
    P99,
}

impl HedgeAfter {
    pub const ALL: [Self; 3] = [Self::P50, Self::P95, Self::P99];

    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::P50 => "p50",
            Self::P95 => "p95",
            Self::P99 => "p99",
        }
    }

    /// The percentile of this name.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|after| after.name() == name)
    }

    const fn of(self, pace: Pace) -> Duration {
        match self {
            Self::P50 => pace.p50,
            Self::P95 => pace.p95,
            Self::P99 => pace.p99,
        }
    }
}

/// What the operator sets about hedging.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Hedging {
    /// After this percentile of the solve times; `None` switches hedging off.
    pub after: Option<HedgeAfter>,
    /// What hedged attempts may cost in a day (UTC). Without it, nothing is hedged.
    pub budget: Option<Money>,
}

impl Hedging {
    /// The name of the budget of hedged attempts.
    pub const BUDGET: &'static str = "hedging";
}

impl Settings {
    /// The budget of hedged attempts. An order for which it has no money waits for the task that it has.
    pub(crate) fn hedging_budget(&self) -> Option<BudgetRule> {
        let limit = self.hedging.after.and(self.hedging.budget)?;
        let currency = self.providers.first().map(|rules| rules.currency.clone()).unwrap_or_default();
        Some(BudgetRule {
            name: Hedging::BUDGET.to_owned(),
            scope: BudgetScope { hedges: true, ..BudgetScope::default() },
            period: BudgetPeriod::Day,
            limit,
            currency,
            at_limit: AtLimit::Wait,
        })
    }
}

impl Engine {
    /// After which age of the task of this attempt the order is bought at another provider as well; `None` if it is
    /// not.
    pub(crate) fn hedge_after(
        &self,
        order: &Order,
        attempt: Option<u32>,
        policy: &Policy,
    ) -> Option<Duration> {
        let Hedging { after, budget: Some(_) } = self.settings().hedging else { return None };
        let is_meant = order.priority == Priority::Interactive && order.phase.is_open();
        let after = after.filter(|_| is_meant && policy.can_fail_over)?;
        let number = attempt.and_then(|number| order.attempt(number));
        let account = number.map_or_else(|| order.account(), |attempt| order.account_of(attempt));
        let now = self.now();
        let others = self.providers_for(&order.terms.kind, &order.terms.tenant);
        let is_affordable = others
            .iter()
            .filter(|it| it.account != account && !order.used_up.contains(&it.account))
            .any(|it| {
                let shortage = self.shortage(&order.terms, it, true, now);
                // What other nodes hold may come back.
                shortage.is_none_or(|shortage| shortage.why == WhyShort::Held)
            });
        is_affordable.then(|| after.of(policy.pace))
    }
}
