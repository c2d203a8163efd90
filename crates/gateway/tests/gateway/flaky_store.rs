//! A store that can be down or hang.

use async_trait::async_trait;
use quittance_lifecycle::{Counters, Key, Order, Target, Timestamp};
use quittance_ports::{
    Commit, Day, Due, MemoryStore, OrderCounts, Store, StoreError, Unreadable, UsageRow, Version, Versioned,
    Watch, Which,
};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

pub(crate) struct FlakyStore {
    inner: MemoryStore,
    is_away: Arc<AtomicBool>,
    /// Whether the store never answers.
    pub(crate) hangs: Arc<AtomicBool>,
}

impl FlakyStore {
    /// A store that is down while the flag is set.
    pub(crate) fn new(is_away: &Arc<AtomicBool>) -> Self {
        Self { inner: MemoryStore::default(), is_away: Arc::clone(is_away), hangs: Arc::default() }
    }

    async fn there(&self) -> Result<&MemoryStore, StoreError> {
        if self.hangs.load(Ordering::Relaxed) {
            std::future::pending::<()>().await;
        }
        if self.is_away.load(Ordering::Relaxed) {
            return Err(StoreError::Unavailable { doing: "testing", source: "it is away".into() });
        }
        Ok(&self.inner)
    }
}

#[async_trait]
impl Store for FlakyStore {
    async fn load(&self, key: &Key) -> Result<Option<Versioned>, StoreError> {
        self.there().await?.load(key).await
    }
    async fn commit(
        &self,
        expected: Version,
        next: &Arc<Order>,
        counters: &Counters,
        at: Timestamp,
    ) -> Result<Commit, StoreError> {
        self.there().await?.commit(expected, next, counters, at).await
    }
    async fn claim_due(&self, now: Timestamp, until: Timestamp, limit: usize) -> Result<Due, StoreError> {
        self.there().await?.claim_due(now, until, limit).await
    }
    async fn take(
        &self,
        target: &Target,
        good_until: Timestamp,
        by: &Key,
        at: Timestamp,
        counters: &Counters,
    ) -> Result<Option<Versioned>, StoreError> {
        self.there().await?.take(target, good_until, by, at, counters).await
    }
    async fn list_stock(
        &self,
        target: &Target,
        now: Timestamp,
        limit: usize,
    ) -> Result<Vec<Key>, StoreError> {
        self.there().await?.list_stock(target, now, limit).await
    }
    async fn watch(&self, key: &Key) -> Result<Watch, StoreError> {
        self.there().await?.watch(key).await
    }
    async fn list(
        &self,
        which: Which<'_>,
        after: Option<&Key>,
        limit: usize,
    ) -> Result<Vec<Result<Versioned, Unreadable>>, StoreError> {
        self.there().await?.list(which, after, limit).await
    }
    async fn purge(&self, now: Timestamp, limit: usize) -> Result<usize, StoreError> {
        self.there().await?.purge(now, limit).await
    }
    /// Removes a record. No record here is unreadable unless a wrapper says so.
    async fn discard(&self, key: &Key) -> Result<bool, StoreError> {
        Ok(self.there().await?.lose(key))
    }
    async fn count(&self, line: &UsageRow, counters: &Counters) -> Result<(), StoreError> {
        self.there().await?.count(line, counters).await
    }
    async fn usage(&self, from: Day, to: Day) -> Result<Vec<(UsageRow, Counters)>, StoreError> {
        self.there().await?.usage(from, to).await
    }

    async fn compact_usage(&self, detail: Day, sums: Day) -> Result<(), StoreError> {
        self.there().await?.compact_usage(detail, sums).await
    }

    async fn order_counts(&self) -> Result<OrderCounts, StoreError> {
        self.there().await?.order_counts().await
    }
}
