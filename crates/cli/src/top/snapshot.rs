//! A node at one moment, as `/v1/admin/now` tells it. Only what is shown is read, so that a daemon of another version can be
//! watched, too.

use serde::Deserialize;
use std::collections::BTreeMap;

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Snapshot {
    pub(super) at_ms: u64,
    /// The node of the snapshot; `None` if the store was read without one.
    pub(super) node: Option<Here>,
    pub(super) orders: Orders,
    pub(super) rates: BTreeMap<String, Option<f64>>,
    pub(super) latency_ms: Latency,
    pub(super) today: BTreeMap<String, Option<u64>>,
    /// What all money is in; empty if the daemon does not say it.
    pub(super) currency: String,
    pub(super) balance: Balance,
    pub(super) providers: Vec<Provider>,
    pub(super) pools: Vec<Pool>,
    pub(super) nodes: Vec<Node>,
    pub(super) alerts: Vec<Alert>,
    pub(super) store: Store,
}

impl Snapshot {
    pub(super) fn today(&self, line: &str) -> u64 {
        self.today.get(line).copied().flatten().unwrap_or_default()
    }

    /// Nothing, if it is not known.
    pub(super) fn rate(&self, line: &str) -> Option<f64> {
        self.rates.get(line).copied().flatten()
    }

    /// Those that stand.
    pub(super) fn standing(&self) -> impl Iterator<Item = &Alert> {
        self.alerts.iter().filter(|alert| alert.cleared_at.is_none())
    }
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Here {
    pub(super) name: String,
    pub(super) version: String,
    pub(super) uptime_s: u64,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Orders {
    pub(super) open: u64,
    pub(super) dead: u64,
    pub(super) phases: BTreeMap<String, u64>,
    pub(super) is_sampled: bool,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Latency {
    pub(super) p50: Option<u64>,
    pub(super) p95: Option<u64>,
    pub(super) p99: Option<u64>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Balance {
    pub(super) balance_micros: Option<u64>,
    pub(super) threads: Option<Threads>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Threads {
    pub(super) total: u64,
    pub(super) working: u64,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Provider {
    pub(super) name: String,
    pub(super) state: String,
    pub(super) until_ms: Option<u64>,
    pub(super) spacing_ms: Option<u64>,
    pub(super) fault: Option<Fault>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Fault {
    pub(super) code: String,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Pool {
    pub(super) name: String,
    pub(super) enabled: bool,
    pub(super) level: Option<Level>,
    pub(super) demand: Demand,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Level {
    pub(super) size: u32,
    pub(super) fresh: u32,
    pub(super) on_their_way: u32,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Demand {
    pub(super) hit_rate: Option<f64>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Node {
    pub(super) name: String,
    pub(super) is_here: bool,
    pub(super) is_alive: bool,
    pub(super) in_hand: u64,
    pub(super) answered: u64,
    pub(super) is_paused: bool,
    pub(super) store_was_away: bool,
    pub(super) has_spilled: bool,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Alert {
    pub(super) rule: String,
    pub(super) subject: String,
    pub(super) is_grave: bool,
    pub(super) words: String,
    pub(super) cleared_at: Option<String>,
    pub(super) seen_at: Option<String>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Store {
    pub(super) is_up: bool,
    pub(super) kind: Option<String>,
}
