//! What a node knows of a pool: its demand, the state of each of its places, and what it may spend.

use super::{Pools, SILENT_AFTER, alive, pool_draft};
use crate::sizing::Sizer;
use quittance_lifecycle::{Key, Money, Slot, Target, Terms, Timestamp};
use quittance_ports::{Demand, Members, PoolSpec, SharedDocument, StoredDocument};
use std::collections::BTreeMap;
use std::time::Duration;

/// How often pools are checked while one of them holds or buys an answer.
pub(super) const BUSY_SPAN: Duration = Duration::from_secs(1);
/// How often pools are checked while all of them are idle.
const IDLE_SPAN: Duration = Duration::from_secs(3);
/// How often pools are checked while there is none.
const NONE_SPAN: Duration = Duration::from_secs(10);

/// What is known of one place in a pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PoolPlace {
    /// No node has read the state of this place yet.
    Unknown,
    /// An order for this place is open or about to be placed; also when it was last checked.
    OnItsWay {
        looked: Timestamp,
    },
    Stands,
    Free,
}

/// What this node knows of a pool.
#[derive(Clone, Debug)]
pub(super) struct LocalPool {
    pub(super) spec: PoolSpec,
    pub(super) target: Target,
    pub(super) usable: Duration,
    pub(super) min_life: Duration,
    /// The price of this kind on the price list.
    pub(super) list_price: Option<Money>,
    pub(super) basis: u64,
    pub(super) sizer: Sizer,
    /// The demand that each node had counted when it last wrote its status.
    pub(super) demands: BTreeMap<u64, Demand>,
    pub(super) places: Vec<PoolPlace>,
    /// How many refills in a row have failed.
    pub(super) failures: u32,
    /// How the last failed refill ended.
    pub(super) failed_with: String,
    /// Whether there was demand since the last look.
    pub(super) is_asked_for: bool,
    pub(super) rests_until: Timestamp,
    pub(super) is_idle: bool,
}

impl Pools {
    pub(super) fn looks_at(&self) -> Timestamp {
        let span = if self.local.is_empty() {
            NONE_SPAN
        } else if self.local.values().all(|local| local.is_idle) {
            IDLE_SPAN
        } else {
            BUSY_SPAN
        };
        self.looked_at + span
    }

    /// Updates the pool from what was read.
    pub(super) fn learn(
        &mut self,
        stored: Vec<StoredDocument>,
        now: Timestamp,
        make: impl Fn(&PoolSpec) -> Option<LocalPool>,
    ) {
        self.looked_at = now;
        self.replace_documents(stored);
        let specs: BTreeMap<String, PoolSpec> = self
            .documents
            .values()
            .filter_map(|stored| match &stored.document {
                SharedDocument::Pool(document) if !document.is_removed => {
                    Some((document.spec.name.clone(), document.spec.clone()))
                }
                _ => None,
            })
            .collect();
        self.local.retain(|name, _| specs.contains_key(name));
        for (name, spec) in specs {
            match self.local.get_mut(&name) {
                Some(local) if local.spec == spec => {}
                // Only how much is wanted has changed: what was seen still holds.
                Some(local)
                    if local.spec.kind == spec.kind
                        && pool_draft(&local.spec, None) == pool_draft(&spec, None) =>
                {
                    local.sizer.set_goal(spec.goal);
                    local.spec = spec;
                }
                _ => match make(&spec) {
                    Some(local) => drop(self.local.insert(name, local)),
                    None => drop(self.local.remove(&name)),
                },
            }
        }
        self.by_target = self.local.iter().map(|(name, local)| (local.target, name.clone())).collect();
        self.demand.retain(|name, _| self.local.contains_key(name));
        for name in self.local.keys() {
            self.demand.entry(name.clone()).or_default();
        }
    }
}

impl LocalPool {
    pub(super) fn new(spec: &PoolSpec, terms: &Terms, basis: u64, lead: Duration) -> Option<Self> {
        let usable = terms.usable()?;
        Some(Self {
            spec: spec.clone(),
            target: terms.target,
            usable,
            min_life: terms.margin,
            list_price: terms.price,
            basis,
            sizer: Sizer::new(spec.goal, usable, lead),
            demands: BTreeMap::new(),
            places: Vec::new(),
            failures: 0,
            failed_with: String::new(),
            is_asked_for: false,
            rests_until: Timestamp::ZERO,
            is_idle: true,
        })
    }

    pub(super) fn key(&self, number: usize, generation: u64, secret: Option<&[u8; 32]>) -> Key {
        Key::slot(&self.spec.tenant, &self.slot(number, generation)).hidden(secret)
    }

    pub(super) fn slot(&self, number: usize, generation: u64) -> Slot {
        let number = u32::try_from(number).unwrap_or(u32::MAX);
        Slot { pool: self.spec.name.clone(), number, generation }
    }

    /// Counts the orders that have come since the last status of each node. For a node whose status is new here, all
    /// its orders count as old, unless the node has only just started.
    pub(super) fn see_demand(&mut self, now: Timestamp, own: (u64, Demand), members: &Members) {
        let others = alive(members).filter(|node_status| node_status.node != own.0);
        let counts: BTreeMap<u64, (Demand, bool)> = others
            .map(|node_status| {
                let is_new = node_status.at.since(node_status.started) < SILENT_AFTER;
                (
                    node_status.node,
                    (node_status.demand.get(&self.spec.name).copied().unwrap_or_default(), is_new),
                )
            })
            .chain([(own.0, (own.1, true))])
            .collect();
        let total = |demand: &Demand| demand.served.saturating_add(demand.missed);
        let mut requests = 0_u64;
        for (node, (demand, is_new)) in &counts {
            let before = match self.demands.get(node) {
                Some(demands) => total(demands),
                None if *is_new => 0,
                None => total(demand),
            };
            requests = requests.saturating_add(total(demand).saturating_sub(before));
        }
        self.demands = counts.into_iter().map(|(node, (demand, _))| (node, demand)).collect();
        self.is_asked_for = requests > 0;
        self.sizer.asked(now, requests);
    }

    pub(super) fn is_open(&self, now: Timestamp) -> bool {
        self.spec.hours.is_empty() || self.spec.hours.iter().any(|hours| hours.includes(now))
    }
}
