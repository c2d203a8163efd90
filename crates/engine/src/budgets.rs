//! Budgets: how much money all nodes together may spend in an hour, a day or a month, for some orders or for all.

mod budget_math;
mod drawing;
mod leasing;
mod local_budget;
mod periods;

pub use budget_math::BudgetMath;
pub use quittance_lifecycle::AtLimit;

use crate::{Engine, lock};
use local_budget::{LocalBudget, micros, money};
use quittance_lifecycle::time::millis;
use quittance_lifecycle::{Money, Timestamp, WhyShort};
use quittance_ports::{BudgetShare, SharedDocument, StoreError};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

/// The time after which a budget begins again. All of them are in UTC.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum BudgetPeriod {
    Hour,
    Day,
    Month,
}

/// Which spending a budget counts. An absent field means all.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BudgetScope {
    pub tenant: Option<String>,
    /// A pattern of hosts, as in `targets.allow`.
    pub target: Option<String>,
    pub kind: Option<String>,
    pub provider: Option<String>,
    pub pool: Option<String>,
    /// Whether it counts hedged attempts, and nothing else.
    pub hedges: bool,
}

/// One budget, as the operator sets it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BudgetRule {
    /// Unique among the budgets.
    pub name: String,
    pub scope: BudgetScope,
    pub period: BudgetPeriod,
    pub limit: Money,
    /// The currency of the limit, by ISO 4217.
    pub currency: String,
    pub at_limit: AtLimit,
}

/// One budget, as an operator sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BudgetView {
    pub rule: BudgetRule,
    /// The present period.
    pub begins: Timestamp,
    pub ends: Timestamp,
    /// What was charged in this period.
    pub spent: Money,
    /// What attempts in progress will cost, and what nodes hold for their next attempts.
    pub reserved: Money,
    /// How many attempts have a cost that is not known.
    pub unpriced: u64,
    /// Why nothing is bought from this budget now; `None` while it allows purchases.
    pub stopped: Option<String>,
    /// When the limit is reached if spending goes on as in this period; `None` if that is later than its end, or is not
    /// known.
    pub runs_out: Option<Timestamp>,
}

/// What this node has of all budgets.
#[derive(Default)]
pub(crate) struct Budgets {
    /// By the name of the document, so that a budget may be set again at any time.
    locals: BTreeMap<String, LocalBudget>,
    /// The nodes that have sent a heartbeat lately; empty if that is not known.
    alive: BTreeSet<u64>,
    /// The last cost of an answer, by account and kind, where it was higher than expected.
    dearest: BTreeMap<(String, String), Money>,
}

impl Engine {
    /// The state of all budgets, in the order of the configuration.
    pub async fn budget_views(&self) -> Result<Vec<BudgetView>, StoreError> {
        let rules = self.budgets();
        if rules.is_empty() {
            return Ok(Vec::new());
        }
        let documents = self.world.membership.documents().await?;
        let now = self.now();
        let mut budgets = lock(&self.budgets);
        let view = |rule: &Arc<BudgetRule>| {
            let (local, budget) = self.local(&mut budgets, rule, now);
            let name = rule.document_name();
            let stored = documents.iter().find_map(|stored| match &stored.document {
                SharedDocument::Budget(document) if document.budget == name => Some(document),
                _ => None,
            });
            view_of(rule, &local.with_own(stored, budget.node), local.why_short, now)
        };
        Ok(rules.iter().map(view).collect())
    }
}

fn view_of(rule: &BudgetRule, sum: &BudgetShare, why_short: Option<WhyShort>, now: Timestamp) -> BudgetView {
    let (begins, ends) = (rule.period.begins(now), rule.period.ends(now));
    let (spent, limit) = (money(sum.charged), rule.limit);
    let stopped = if spent >= limit {
        Some(format!("the limit of {limit} {} is reached", rule.currency))
    } else {
        // What was held a moment ago may have come back.
        let is_held = sum.leased >= micros(limit);
        why_short.filter(|why| *why != WhyShort::Held || is_held).map(|why| why.to_string())
    };
    let passed = u128::from(millis(now.since(begins)));
    // spent : passed = limit : until the limit is reached
    let needed = (passed * u128::from(limit.0)).checked_div(u128::from(spent.0));
    let needed = needed.and_then(|needed| u64::try_from(needed).ok()).map(Duration::from_millis);
    let runs_out = needed.map(|needed| (begins + needed).max(now)).filter(|at| *at < ends);
    BudgetView {
        rule: rule.clone(),
        begins,
        ends,
        spent,
        reserved: money(sum.leased.saturating_sub(sum.charged)),
        unpriced: u64::try_from(sum.unpriced).unwrap_or(0),
        stopped,
        runs_out,
    }
}
