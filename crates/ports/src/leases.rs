//! Limits that several nodes keep together, exactly. A node leases a part of a limit for a time, and only what it has
//! leased may become use of that limit. What is in use is counted by the node in its own way; a store only keeps
//! which node has leased how much.
//!
//! `in use + all living leases <= limit` holds if a node that wants more
//! 1. reads what is [leased](Leases::leased),
//! 2. *then* counts what is in use,
//! 3. and [leases](Leases::lease) more only if that fits, under the version that it has read;
//!
//! and if it gives a part back only after the use of that part can be counted.

use crate::clock::Clock;
use crate::store::{StoreError, Version};
use async_trait::async_trait;
use quittance_lifecycle::Timestamp;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// A limit under which nothing was leased for so long is forgotten, with its version. Steps 1 to 3 must take less
/// time than this.
pub const LEASES_FORGOTTEN_AFTER: Duration = Duration::from_secs(120);

/// What is leased of one limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LeaseTotal {
    /// It changes whenever a node leases more.
    pub version: Version,
    /// The living leases of all other nodes together.
    pub by_others: u64,
}

#[must_use = "a node that lost the race has leased nothing"]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LeaseOutcome {
    /// The version of the lease, which is that of the limit as well until a node leases more.
    Done(Version),
    /// Another node was first. Count again before the next try, which expects the version that is named here.
    Conflict(LeaseTotal),
}

/// Every call returns within a bounded time, as those of a store do. All moments are those of the store's own clock.
#[async_trait]
pub trait Leases: Send + Sync {
    /// What nodes other than `node` have leased of this limit.
    async fn leased(&self, limit: &str, node: u64) -> Result<LeaseTotal, StoreError>;

    /// Lets `node` have `amount` of this limit from now on until `life` has passed, in place of what it had, if no
    /// node has leased more since `expected` (where nothing is leased: [`Version::ABSENT`]). No version comes back
    /// while the limit is remembered, which is [`LEASES_FORGOTTEN_AFTER`] the last lease; `life` is shorter than
    /// that.
    async fn lease(
        &self,
        limit: &str,
        expected: Version,
        node: u64,
        amount: u64,
        life: Duration,
    ) -> Result<LeaseOutcome, StoreError>;

    /// Makes the lease of this version smaller, if `node` still has it. It changes no version and no end of a lease,
    /// and never makes one larger, so it does no harm if it comes late.
    async fn give_back(
        &self,
        limit: &str,
        node: u64,
        version: Version,
        amount: u64,
    ) -> Result<(), StoreError>;
}

/// The leases of nodes in one process, by a clock that is given.
#[derive(Clone)]
pub struct MemoryLeases {
    clock: Arc<dyn Clock>,
    state: Arc<Mutex<LeasesState>>,
}

#[derive(Default)]
struct LeasesState {
    last_version: u64,
    limits: BTreeMap<String, Limit>,
}

#[derive(Default)]
struct Limit {
    version: Version,
    forget_at: Timestamp,
    by_node: BTreeMap<u64, Lease>,
}

struct Lease {
    version: Version,
    amount: u64,
    until: Timestamp,
}

impl Limit {
    fn leased(&self, node: u64, now: Timestamp) -> LeaseTotal {
        let others = self.by_node.iter().filter(|(other, lease)| **other != node && lease.until > now);
        LeaseTotal { version: self.version, by_others: others.map(|(_, lease)| lease.amount).sum() }
    }
}

impl MemoryLeases {
    #[must_use]
    pub fn new(clock: Arc<dyn Clock>) -> Self {
        Self { clock, state: Arc::default() }
    }

    /// A panic elsewhere cannot have left a map half-written.
    fn with_state<T>(&self, act: impl FnOnce(&mut LeasesState, Timestamp) -> T) -> T {
        let (mut state, now) = (self.state.lock().unwrap_or_else(PoisonError::into_inner), self.clock.now());
        state.limits.retain(|_, limit| limit.forget_at > now);
        act(&mut state, now)
    }
}

impl fmt::Debug for MemoryLeases {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.with_state(|state, _| write!(f, "MemoryLeases({} limits)", state.limits.len()))
    }
}

#[async_trait]
impl Leases for MemoryLeases {
    async fn leased(&self, limit: &str, node: u64) -> Result<LeaseTotal, StoreError> {
        let nothing = LeaseTotal { version: Version::ABSENT, by_others: 0 };
        Ok(self.with_state(|state, now| {
            state.limits.get(limit).map_or(nothing, |limit| limit.leased(node, now))
        }))
    }

    async fn lease(
        &self,
        limit: &str,
        expected: Version,
        node: u64,
        amount: u64,
        life: Duration,
    ) -> Result<LeaseOutcome, StoreError> {
        Ok(self.with_state(|state, now| {
            let there = state.limits.get(limit).map_or(Version::ABSENT, |limit| limit.version);
            if there != expected {
                let limit = state.limits.get(limit);
                let nothing = LeaseTotal { version: there, by_others: 0 };
                return LeaseOutcome::Conflict(limit.map_or(nothing, |limit| limit.leased(node, now)));
            }
            state.last_version += 1;
            let version = Version(state.last_version);
            let limit = state.limits.entry(limit.to_owned()).or_default();
            limit.by_node.retain(|_, lease| lease.until > now);
            limit.by_node.insert(node, Lease { version, amount, until: now + life });
            (limit.version, limit.forget_at) = (version, now + LEASES_FORGOTTEN_AFTER);
            LeaseOutcome::Done(version)
        }))
    }

    async fn give_back(
        &self,
        limit: &str,
        node: u64,
        version: Version,
        amount: u64,
    ) -> Result<(), StoreError> {
        self.with_state(|state, _| {
            let lease = state.limits.get_mut(limit).and_then(|limit| limit.by_node.get_mut(&node));
            if let Some(lease) = lease.filter(|lease| lease.version == version) {
                lease.amount = lease.amount.min(amount);
            }
        });
        Ok(())
    }
}
