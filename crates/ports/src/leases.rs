//! Limits that several nodes keep together, exactly. A node leases a part of a limit for a time, and may use only
//! what it has leased. Each node counts its own use; a store only keeps how much each node has leased.
//!
//! `in use + all living leases <= limit` holds if a node that wants more
//! 1. reads what is [leased](Leases::leased),
//! 2. *then* counts what is in use,
//! 3. and [leases](Leases::lease) more only if that fits, under the version that it has read;
//!
//! This also requires that a node gives a part back only after the use of that part can be counted.

use crate::clock::Clock;
use crate::store::{StoreError, Version};
use async_trait::async_trait;
use quittance_lifecycle::Timestamp;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// A limit with no lease for this long is forgotten, with its version. Steps 1 to 3 must take less time than this.
pub const LEASES_FORGOTTEN_AFTER: Duration = Duration::from_secs(120);

/// How much of one limit is leased.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LeaseTotal {
    /// The version of the limit. It changes whenever a node leases more.
    pub version: Version,
    /// The living leases of all other nodes together.
    pub by_others: u64,
}

#[must_use = "a node that lost the race has leased nothing"]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LeaseOutcome {
    /// The lease was written. Holds its version, which is also that of the limit until a node leases more.
    Done(Version),
    /// Another node was first. Count again before the next try, which must expect the version given here.
    Conflict(LeaseTotal),
}

/// The leases of the nodes of a store. Every call returns within a bounded time. All moments are those of the store's
/// own clock.
#[async_trait]
pub trait Leases: Send + Sync {
    /// What nodes other than `node` have leased of this limit.
    async fn leased(&self, limit: &str, node: u64) -> Result<LeaseTotal, StoreError>;

    /// Gives `node` a lease of `amount` of this limit for `life`, in place of its earlier lease. Fails if a node has
    /// leased more since `expected`, which is [`Version::ABSENT`] if nothing is leased. No version is used again
    /// while the limit is remembered, until [`LEASES_FORGOTTEN_AFTER`] after the last lease. `life` must be shorter
    /// than that.
    async fn lease(
        &self,
        limit: &str,
        expected: Version,
        node: u64,
        amount: u64,
        life: Duration,
    ) -> Result<LeaseOutcome, StoreError>;

    /// Makes the lease of this version smaller, if `node` still has it. This changes no version and no end of a
    /// lease, and never makes a lease larger, so a late call does no harm.
    async fn give_back(
        &self,
        limit: &str,
        node: u64,
        version: Version,
        amount: u64,
    ) -> Result<(), StoreError>;
}

/// The leases of nodes in one process, by a given clock.
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

    /// Locks the state, even if the lock is poisoned: no panic elsewhere can leave a map half-written.
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
