//! How the rules about budgets judge them: one that is nearly used up, and one that allows no purchase.

use super::readings::BudgetReading;
use super::rule::Rule;
use super::rule_reading::{AlertLevel, Judge, RuleReading, level};
use super::words::span;
use quittance_lifecycle::Money;

impl Judge<'_> {
    /// A reading of each budget. An alert about a budget that is gone is cleared.
    pub(super) fn budgets(&self, rule: Rule) -> Option<Vec<RuleReading>> {
        let budgets = self.readings.budgets.as_ref()?.iter();
        let seen = budgets.map(|budget| match rule {
            Rule::BudgetSpent => spent(budget),
            _ => low(budget, self.thresholds.budget_low_permille),
        });
        Some(seen.collect())
    }
}

fn spent(budget: &BudgetReading) -> RuleReading {
    let BudgetReading { name, stopped, left, .. } = budget;
    let why = stopped.as_deref().unwrap_or_default();
    let words = format!(
        "the budget {name} allows no purchase, and begins again in {}: {why}. See `quittance budget show {name}`; to allow \
         more, raise its limit",
        span(*left)
    );
    RuleReading { subject: name.clone(), level: level(stopped.is_some(), true), words }
}

fn low(budget: &BudgetReading, low_permille: u32) -> RuleReading {
    let BudgetReading { name, currency, period, limit, used, stopped, left } = budget;
    let rest = Money(limit.0.saturating_sub(used.0));
    let part = |permille: u32| u128::from(limit.0) * u128::from(permille) / 1000;
    let words = format!(
        "{rest} {currency} is left of the {limit} {currency} that the budget {name} allows in this {period}, which ends in {}: \
         see who spends (`quittance usage --by tenant,site`), and raise its limit, or leave it",
        span(*left)
    );
    let rest = u128::from(rest.0);
    // While the budget is stopped, its other alert says so.
    let level = match stopped {
        Some(_) => AlertLevel::Between,
        None => level(rest < part(low_permille), rest >= part(low_permille.saturating_add(50).min(1000))),
    };
    RuleReading { subject: name.clone(), level, words }
}
