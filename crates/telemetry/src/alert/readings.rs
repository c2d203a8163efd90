//! The values that the monitor has read at one moment. A value that could not be read is absent and changes no alert.

use quittance_lifecycle::{Counters, Money, Timestamp};
use quittance_ports::Spent;
use std::time::Duration;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Readings {
    pub at: Timestamp,
    /// Whether the store answers this node.
    pub store_is_up: bool,
    /// The name of this node.
    pub here: String,
    /// A description of data that the store has lost, until an operator has acknowledged it.
    pub forgot: Option<String>,
    pub dead: Option<DeadLetterReading>,
    /// How many records cannot be read and wait for an operator.
    pub unreadable: Option<u64>,
    /// The counters since the node began to watch; they only grow.
    pub counts: Option<Counters>,
    /// The name and the health of each provider.
    pub providers: Option<Vec<(String, Health)>>,
    /// The balances at the providers.
    pub balances: Vec<Balance>,
    /// The currency of all amounts, except balances.
    pub currency: String,
    pub pools: Option<Vec<Pool>>,
    /// The limits of what may be spent.
    pub budgets: Option<Vec<BudgetReading>>,
    pub nodes: Option<Vec<Node>>,
    /// The endpoints of webhooks that fail or failed a short time ago.
    pub endpoints: Option<Vec<FailingEndpoint>>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FailingEndpoint {
    pub tenant: String,
    pub host: String,
    pub is_off: bool,
    /// Why the last delivery failed.
    pub why: String,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DeadLetterReading {
    pub count: u64,
    /// Since when the oldest known dead letter waits.
    pub oldest: Option<Timestamp>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Health {
    Well,
    /// The provider does not answer.
    Broken,
    /// An operator must fix the account. `code` is the provider's error code, or empty if it is not known.
    Paused {
        code: String,
    },
}

/// What is left at a provider.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Balance {
    pub provider: String,
    /// By ISO 4217.
    pub currency: String,
    /// `None` if it is not known.
    pub money: Option<Money>,
}

/// What is spent of a budget in the present period.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BudgetReading {
    pub name: String,
    /// By ISO 4217.
    pub currency: String,
    /// The name of its period, such as `day`.
    pub period: &'static str,
    pub limit: Money,
    /// What was charged, and what is held for attempts, in progress or next.
    pub used: Money,
    /// Why nothing is bought from it now; `None` while it allows purchases.
    pub stopped: Option<String>,
    /// Until the next period begins.
    pub left: Duration,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Pool {
    pub name: String,
    pub is_on: bool,
    pub budget: Option<Money>,
    /// What the pool has spent in this hour.
    pub spent: Spent,
    /// Why the pool buys nothing, if its budget is not the reason.
    pub stopped: Option<String>,
    /// The cost of the next refill, if it is known.
    pub price: Option<Money>,
    pub level: u32,
    pub fresh: u32,
    /// Orders that had to be bought, counted by all nodes.
    pub missed: u64,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Node {
    pub name: String,
    pub is_silent: bool,
    pub has_spilled: bool,
}
