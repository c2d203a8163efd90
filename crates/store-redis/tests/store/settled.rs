//! A node that has received every earlier notice before it begins to watch. A notice can reach another node shortly
//! after its commit, and wake a caller that begins to watch at that moment. That is allowed, but the suite checks for
//! it.

use super::FreshPrefix;
use async_trait::async_trait;
use quittance_lifecycle::{Counters, Key, Order, Target, Timestamp};
use quittance_ports::{
    Commit, Day, Due, OrderCounts, Store, StoreError, Unreadable, UsageRow, Version, Versioned, Watch, Which,
};
use quittance_store_redis::RedisStore;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

pub(crate) struct SettledNode {
    pub(crate) node: RedisStore,
    pub(crate) place: FreshPrefix,
}

impl SettledNode {
    /// Waits for a probe notice of each server. A server sends its notices in order, so all earlier ones have come
    /// too.
    async fn settle(&self) -> Result<(), StoreError> {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        for server in &self.place.servers {
            let mut probe = [0xee; 32];
            probe[..8].copy_from_slice(&COUNT.fetch_add(1, Ordering::Relaxed).to_be_bytes());
            let probe = Key(probe);
            let mut watch = self.node.watch(&probe).await?;
            server.command(&["PUBLISH", &format!("{}:news", self.place.prefix), &probe.to_string()]);
            watch.changed().await;
        }
        Ok(())
    }
}

#[async_trait]
impl Store for SettledNode {
    async fn load(&self, key: &Key) -> Result<Option<Versioned>, StoreError> {
        self.node.load(key).await
    }

    async fn commit(
        &self,
        expected: Version,
        next: &Arc<Order>,
        counters: &Counters,
        at: Timestamp,
    ) -> Result<Commit, StoreError> {
        self.node.commit(expected, next, counters, at).await
    }

    async fn claim_due(&self, now: Timestamp, until: Timestamp, limit: usize) -> Result<Due, StoreError> {
        self.node.claim_due(now, until, limit).await
    }

    async fn take(
        &self,
        target: &Target,
        good_until: Timestamp,
        by: &Key,
        at: Timestamp,
        counters: &Counters,
    ) -> Result<Option<Versioned>, StoreError> {
        self.node.take(target, good_until, by, at, counters).await
    }

    async fn list_stock(
        &self,
        target: &Target,
        now: Timestamp,
        limit: usize,
    ) -> Result<Vec<Key>, StoreError> {
        self.node.list_stock(target, now, limit).await
    }

    async fn watch(&self, key: &Key) -> Result<Watch, StoreError> {
        self.settle().await?;
        self.node.watch(key).await
    }

    async fn list(
        &self,
        which: Which<'_>,
        after: Option<&Key>,
        limit: usize,
    ) -> Result<Vec<Result<Versioned, Unreadable>>, StoreError> {
        self.node.list(which, after, limit).await
    }

    async fn purge(&self, now: Timestamp, limit: usize) -> Result<usize, StoreError> {
        self.node.purge(now, limit).await
    }

    async fn discard(&self, key: &Key) -> Result<bool, StoreError> {
        self.node.discard(key).await
    }

    async fn count(&self, line: &UsageRow, counters: &Counters) -> Result<(), StoreError> {
        self.node.count(line, counters).await
    }

    async fn usage(&self, from: Day, to: Day) -> Result<Vec<(UsageRow, Counters)>, StoreError> {
        self.node.usage(from, to).await
    }

    async fn compact_usage(&self, detail: Day, sums: Day) -> Result<(), StoreError> {
        self.node.compact_usage(detail, sums).await
    }

    async fn order_counts(&self) -> Result<OrderCounts, StoreError> {
        self.node.order_counts().await
    }
}
