//! What a node knows of a pool: what it has seen asked of it, where each of its places stands, and what it may spend.

use super::{Pools, SILENT_AFTER, alive, pool_draft};
use crate::sizing::Sizer;
use quittance_lifecycle::{Key, Money, Slot, Target, Terms, Timestamp};
use quittance_ports::{Demand, DocumentFound, Members, PoolSpec, SharedDocument};
use std::collections::BTreeMap;
use std::time::Duration;

/// How often pools are looked at while one of them holds or buys anything; while none does; and while there is none.
pub(super) const BUSY_SPAN: Duration = Duration::from_secs(1);
const IDLE_SPAN: Duration = Duration::from_secs(3);
const NONE_SPAN: Duration = Duration::from_secs(10);

/// What is known of one place in a pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// Nobody here has looked.
    Unknown,
    /// Bought, or about to be; when it was last looked at.
    OnItsWay {
        looked: Timestamp,
    },
    Stands,
    Free,
}

/// What this node knows of a pool.
#[derive(Clone, Debug)]
pub(super) struct Kept {
    pub(super) spec: PoolSpec,
    pub(super) target: Target,
    pub(super) usable: Duration,
    pub(super) min_life: Duration,
    /// What the price list says for its kind, and a digest of all that a price depends on.
    pub(super) list_price: Option<Money>,
    pub(super) basis: u64,
    pub(super) sizer: Sizer,
    /// What each node had been asked when it was last heard of.
    pub(super) heard: BTreeMap<u64, Demand>,
    pub(super) places: Vec<Place>,
    /// Refills in a row that came to nothing, and until when it rests because of that.
    pub(super) failures: u32,
    /// What the last of them ended in.
    pub(super) failed_with: String,
    /// Whether anybody has asked since the last look.
    pub(super) is_asked_for: bool,
    pub(super) rests_until: Timestamp,
    pub(super) is_idle: bool,
}

impl Pools {
    pub(super) fn looks_at(&self) -> Timestamp {
        let span = if self.kept.is_empty() {
            NONE_SPAN
        } else if self.kept.values().all(|kept| kept.is_idle) {
            IDLE_SPAN
        } else {
            BUSY_SPAN
        };
        self.looked_at + span
    }

    /// Takes in what was read; forgets what is gone.
    pub(super) fn learn(
        &mut self,
        found: Vec<DocumentFound>,
        now: Timestamp,
        make: impl Fn(&PoolSpec) -> Option<Kept>,
    ) {
        self.looked_at = now;
        self.replace_documents(found);
        let specs: BTreeMap<String, PoolSpec> = self
            .documents
            .values()
            .filter_map(|found| match &found.document {
                SharedDocument::Pool(document) if !document.is_removed => {
                    Some((document.spec.name.clone(), document.spec.clone()))
                }
                _ => None,
            })
            .collect();
        self.kept.retain(|name, _| specs.contains_key(name));
        for (name, spec) in specs {
            match self.kept.get_mut(&name) {
                Some(kept) if kept.spec == spec => {}
                // Only how much is wanted has changed: what was seen still holds.
                Some(kept)
                    if kept.spec.kind == spec.kind
                        && pool_draft(&kept.spec, None) == pool_draft(&spec, None) =>
                {
                    kept.sizer.set_goal(spec.goal);
                    kept.spec = spec;
                }
                _ => match make(&spec) {
                    Some(kept) => drop(self.kept.insert(name, kept)),
                    None => drop(self.kept.remove(&name)),
                },
            }
        }
        self.by_target = self.kept.iter().map(|(name, kept)| (kept.target, name.clone())).collect();
        self.demand.retain(|name, _| self.kept.contains_key(name));
        for name in self.kept.keys() {
            self.demand.entry(name.clone()).or_default();
        }
    }
}

impl Kept {
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
            heard: BTreeMap::new(),
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

    /// How many orders came since each node was last heard of. One that was never heard of has been counting for a while,
    /// unless it has only just started.
    pub(super) fn read_callback(&mut self, now: Timestamp, own: (u64, Demand), members: &Members) {
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
        let mut asked = 0_u64;
        for (node, (demand, is_new)) in &counts {
            let before = match self.heard.get(node) {
                Some(heard) => total(heard),
                None if *is_new => 0,
                None => total(demand),
            };
            asked = asked.saturating_add(total(demand).saturating_sub(before));
        }
        self.heard = counts.into_iter().map(|(node, (demand, _))| (node, demand)).collect();
        self.is_asked_for = asked > 0;
        self.sizer.asked(now, asked);
    }

    pub(super) fn is_open(&self, now: Timestamp) -> bool {
        self.spec.hours.is_empty() || self.spec.hours.iter().any(|hours| hours.includes(now))
    }
}
