//! Budgets: how much money all nodes together may spend in an hour, a day or a month, for some orders or for all.

use crate::Engine;
use quittance_lifecycle::{Money, Timestamp};
use quittance_ports::StoreError;
use quittance_ports::moment::{date_text, read_date};

/// The time after which a budget begins again. All of them are in UTC.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum BudgetPeriod {
    Hour,
    Day,
    Month,
}

/// What happens to an order that its budget does not allow any more.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AtLimit {
    /// New orders are refused, and orders that were accepted become dead letters.
    #[default]
    Refuse,
    /// Orders wait for the next period, up to their deadline.
    Wait,
    /// Orders go to a provider whose price the rest of the budget allows. If there is none, they are refused.
    CheaperProvider,
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

/// The days since the epoch on which the month of a day begins, and on which the next one does.
fn month(day: u64) -> (u64, u64) {
    let first_of = |day: u64| {
        let date = date_text(day);
        read_date(&format!("{}01", &date[..date.len() - 2])).unwrap_or(day)
    };
    let first = first_of(day);
    (first, first_of(first + 31))
}

/// The present period of a budget.
fn period(period: BudgetPeriod, now: Timestamp) -> (Timestamp, Timestamp) {
    const HOUR: u64 = 3_600_000;
    let at = |hour: u64| Timestamp::from_millis(hour * HOUR);
    let hour = now.as_millis() / HOUR;
    let day = hour / 24;
    match period {
        BudgetPeriod::Hour => (at(hour), at(hour + 1)),
        BudgetPeriod::Day => (at(day * 24), at(day * 24 + 24)),
        BudgetPeriod::Month => {
            let (first, next) = month(day);
            (at(first * 24), at(next * 24))
        }
    }
}

impl Engine {
    /// The state of all budgets, in the order of the configuration.
    pub async fn budget_views(&self) -> Result<Vec<BudgetView>, StoreError> {
        let view = |rule: &BudgetRule| {
            let (begins, ends) = period(rule.period, self.now());
            BudgetView {
                rule: rule.clone(),
                begins,
                ends,
                spent: Money(0),
                reserved: Money(0),
                unpriced: 0,
                stopped: None,
                runs_out: None,
            }
        };
        std::future::ready(Ok(self.settings.budgets.iter().map(view).collect())).await
    }
}
