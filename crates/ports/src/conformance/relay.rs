//! Several nodes behind one store, so that the suite also tests the promises between nodes.

use crate::store::{
    Commit, Day, Due, OrderCounts, Store, StoreError, Unreadable, UsageRow, Version, Versioned, Which,
};
use crate::watch::Watch;
use async_trait::async_trait;
use quittance_lifecycle::{Counters, Key, Order, Target, Timestamp};
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Sends each call to the next of its stores in turn. Give it several handles on the same orders, as several
/// processes have them, and run the suite: what one writes the others read, and a caller that waits at one is woken
/// by another.
pub struct Relay {
    nodes: Vec<Arc<dyn Store>>,
    calls: AtomicUsize,
}

impl Relay {
    /// A store that calls the stores of these nodes in turn.
    ///
    /// # Panics
    /// If `nodes` is empty.
    #[must_use]
    pub fn new(nodes: Vec<Arc<dyn Store>>) -> Self {
        assert!(!nodes.is_empty(), "a relay needs at least one store");
        Self { nodes, calls: AtomicUsize::new(0) }
    }

    fn next(&self) -> &dyn Store {
        &*self.nodes[self.calls.fetch_add(1, Ordering::Relaxed) % self.nodes.len()]
    }
}

#[async_trait]
impl Store for Relay {
    async fn load(&self, key: &Key) -> Result<Option<Versioned>, StoreError> {
        self.next().load(key).await
    }

    async fn commit(
        &self,
        expected: Version,
        next: &Arc<Order>,
        counters: &Counters,
        at: Timestamp,
    ) -> Result<Commit, StoreError> {
        self.next().commit(expected, next, counters, at).await
    }

    async fn claim_due(&self, now: Timestamp, until: Timestamp, limit: usize) -> Result<Due, StoreError> {
        self.next().claim_due(now, until, limit).await
    }

    async fn take(
        &self,
        target: &Target,
        good_until: Timestamp,
        by: &Key,
        at: Timestamp,
        counters: &Counters,
    ) -> Result<Option<Versioned>, StoreError> {
        self.next().take(target, good_until, by, at, counters).await
    }

    async fn list_stock(
        &self,
        target: &Target,
        now: Timestamp,
        limit: usize,
    ) -> Result<Vec<Key>, StoreError> {
        self.next().list_stock(target, now, limit).await
    }

    async fn watch(&self, key: &Key) -> Result<Watch, StoreError> {
        self.next().watch(key).await
    }

    async fn list(
        &self,
        which: Which<'_>,
        after: Option<&Key>,
        limit: usize,
    ) -> Result<Vec<Result<Versioned, Unreadable>>, StoreError> {
        self.next().list(which, after, limit).await
    }

    async fn purge(&self, now: Timestamp, limit: usize) -> Result<usize, StoreError> {
        self.next().purge(now, limit).await
    }

    async fn discard(&self, key: &Key) -> Result<bool, StoreError> {
        self.next().discard(key).await
    }

    async fn count(&self, line: &UsageRow, counters: &Counters) -> Result<(), StoreError> {
        self.next().count(line, counters).await
    }

    async fn usage(&self, from: Day, to: Day) -> Result<Vec<(UsageRow, Counters)>, StoreError> {
        self.next().usage(from, to).await
    }

    async fn compact_usage(&self, detail: Day, sums: Day) -> Result<(), StoreError> {
        self.next().compact_usage(detail, sums).await
    }

    async fn order_counts(&self) -> Result<OrderCounts, StoreError> {
        self.next().order_counts().await
    }
}

impl fmt::Debug for Relay {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Relay({} nodes)", self.nodes.len())
    }
}
