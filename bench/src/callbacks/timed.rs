//! A store that measures how long it takes to write a callback. It passes all other calls on.

use crate::callbacks::number;
use crate::stopwatch::moment;
use async_trait::async_trait;
use quittance_lifecycle::{Counters, Key, Order, Target, Timestamp};
use quittance_ports::{
    Commit, Day, Due, OrderCounts, Store, StoreError, Unreadable, UsageRow, Version, Versioned, Watch, Which,
};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

#[derive(Clone, Copy, Debug)]
pub(super) struct CommitTimes {
    pub(super) start: Duration,
    pub(super) end: Duration,
}

pub(super) struct TimedStore {
    inner: Arc<dyn Store>,
    commits: Mutex<BTreeMap<u64, CommitTimes>>,
}

impl TimedStore {
    pub(super) fn new(inner: Arc<dyn Store>) -> Self {
        Self { inner, commits: Mutex::default() }
    }

    /// When the outcome of each order with a waiting caller was written, by the order's number.
    pub(super) fn commits(&self) -> BTreeMap<u64, CommitTimes> {
        self.commits.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

#[async_trait]
impl Store for TimedStore {
    async fn load(&self, key: &Key) -> Result<Option<Versioned>, StoreError> {
        self.inner.load(key).await
    }

    async fn commit(
        &self,
        expected: Version,
        next: &Arc<Order>,
        counters: &Counters,
        at: Timestamp,
    ) -> Result<Commit, StoreError> {
        if next.is_awaited() {
            return self.inner.commit(expected, next, counters, at).await;
        }
        let start = moment();
        let done = self.inner.commit(expected, next, counters, at).await;
        let end = moment();
        let n = number(next.terms.params.get("pageurl")) as u64;
        let mut commits = self.commits.lock().unwrap_or_else(PoisonError::into_inner);
        commits.entry(n).or_insert(CommitTimes { start, end });
        drop(commits);
        done
    }

    async fn claim_due(&self, now: Timestamp, until: Timestamp, limit: usize) -> Result<Due, StoreError> {
        self.inner.claim_due(now, until, limit).await
    }

    async fn take(
        &self,
        target: &Target,
        good_until: Timestamp,
        by: &Key,
        at: Timestamp,
        counters: &Counters,
    ) -> Result<Option<Versioned>, StoreError> {
        self.inner.take(target, good_until, by, at, counters).await
    }

    async fn list_stock(
        &self,
        target: &Target,
        now: Timestamp,
        limit: usize,
    ) -> Result<Vec<Key>, StoreError> {
        self.inner.list_stock(target, now, limit).await
    }

    async fn watch(&self, key: &Key) -> Result<Watch, StoreError> {
        self.inner.watch(key).await
    }

    async fn list(
        &self,
        which: Which<'_>,
        after: Option<&Key>,
        limit: usize,
    ) -> Result<Vec<Result<Versioned, Unreadable>>, StoreError> {
        self.inner.list(which, after, limit).await
    }

    async fn purge(&self, now: Timestamp, limit: usize) -> Result<usize, StoreError> {
        self.inner.purge(now, limit).await
    }

    async fn discard(&self, key: &Key) -> Result<bool, StoreError> {
        self.inner.discard(key).await
    }

    async fn count(&self, line: &UsageRow, counters: &Counters) -> Result<(), StoreError> {
        self.inner.count(line, counters).await
    }

    async fn usage(&self, from: Day, to: Day) -> Result<Vec<(UsageRow, Counters)>, StoreError> {
        self.inner.usage(from, to).await
    }

    async fn compact_usage(&self, detail: Day, sums: Day) -> Result<(), StoreError> {
        self.inner.compact_usage(detail, sums).await
    }

    async fn order_counts(&self) -> Result<OrderCounts, StoreError> {
        self.inner.order_counts().await
    }
}
