//! What the monitor has read at one moment. A value that could not be read is absent and changes no alert.

use quittance_lifecycle::{Counters, Money, Timestamp};
use quittance_ports::Spent;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Readings {
    pub at: Timestamp,
    /// Whether the store answers, and who asks it.
    pub store_is_up: bool,
    pub here: String,
    /// What the store has lost, in words, until a person has seen it.
    pub forgot: Option<String>,
    pub dead: Option<DeadLetterReading>,
    /// How many records cannot be read and wait for a person.
    pub unreadable: Option<u64>,
    /// What has been counted since the node began to look; it only grows.
    pub counts: Option<Counters>,
    /// What people call the provider, and how it is.
    pub provider: Option<(String, Health)>,
    pub balance: Option<Money>,
    /// What all money is in.
    pub currency: String,
    pub pools: Option<Vec<Pool>>,
    pub nodes: Option<Vec<Node>>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DeadLetterReading {
    pub count: u64,
    /// Since when the oldest that was found waits.
    pub oldest: Option<Timestamp>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Health {
    Well,
    /// It does not answer.
    Broken,
    /// A person must fix the account. `code` is the provider's error code, or empty if it is not known.
    Paused {
        code: String,
    },
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Pool {
    pub name: String,
    pub is_on: bool,
    pub budget: Option<Money>,
    /// What it has spent in this hour.
    pub spent: Spent,
    /// Why it buys nothing, if that is not because its budget is used up.
    pub stopped: Option<String>,
    /// What the next refill costs, as far as it is known.
    pub price: Option<Money>,
    pub level: u32,
    pub fresh: u32,
    /// Orders that had to be bought, as all nodes have counted them.
    pub missed: u64,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Node {
    pub name: String,
    pub is_silent: bool,
    pub has_spilled: bool,
}
