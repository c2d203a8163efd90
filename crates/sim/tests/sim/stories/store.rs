//! The memory store with faults: it counts its calls. On request it is away, refuses writes, loses a reply or cannot
//! read a record.

use async_trait::async_trait;
use quittance_lifecycle::{Counters, Key, Order, Target, Timestamp};
use quittance_ports::{
    Commit, Day, Due, MemoryStore, OrderCounts, Store, StoreError, Unreadable, UsageRow, Version, Versioned,
    Watch, Which,
};
use quittance_sim::executor::Executor;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard};

#[derive(Default)]
struct Mood {
    is_away: bool,
    is_read_only: bool,
    /// How long a request or a reply travels.
    wire_ms: u64,
    broken: BTreeSet<Key>,
    /// The reply to the first commit of an order for which this is true is lost, after the write.
    loses_reply: Option<fn(&Order) -> bool>,
    calls: BTreeMap<&'static str, usize>,
}

/// The store with faults. Clones of a handle share it.
#[derive(Clone)]
pub(crate) struct MoodyStore {
    inner: MemoryStore,
    executor: Executor,
    mood: Arc<Mutex<Mood>>,
}

fn away(doing: &'static str) -> StoreError {
    StoreError::Unavailable { doing, source: "as the story says".into() }
}

impl MoodyStore {
    pub(crate) fn new(executor: &Executor) -> Self {
        Self { inner: MemoryStore::default(), executor: executor.clone(), mood: Arc::default() }
    }

    fn mood(&self) -> MutexGuard<'_, Mood> {
        self.mood.lock().expect("nothing panics while it holds the mood")
    }

    pub(crate) fn goes_away(&self) {
        self.mood().is_away = true;
    }

    pub(crate) fn comes_back(&self) {
        let mut mood = self.mood();
        (mood.is_away, mood.is_read_only) = (false, false);
    }

    /// From now on reads work and every write fails: a full disk, or a replica that was not promoted.
    pub(crate) fn takes_no_writes(&self) {
        self.mood().is_read_only = true;
    }

    /// Makes every request and every reply travel this long, so that concurrent calls overlap.
    pub(crate) fn is_far_away(&self, wire_ms: u64) {
        self.mood().wire_ms = wire_ms;
    }

    pub(crate) fn breaks_record(&self, key: Key) {
        self.mood().broken.insert(key);
    }

    pub(crate) fn repairs_record(&self, key: Key) {
        self.mood().broken.remove(&key);
    }

    pub(crate) fn loses_one_reply(&self, to: fn(&Order) -> bool) {
        self.mood().loses_reply = Some(to);
    }

    /// How often each method was called.
    pub(crate) fn calls(&self) -> BTreeMap<&'static str, usize> {
        self.mood().calls.clone()
    }

    pub(crate) fn calls_of(&self, verb: &str) -> usize {
        self.mood().calls.get(verb).copied().unwrap_or(0)
    }

    /// The real store, without faults.
    pub(crate) const fn truth(&self) -> &MemoryStore {
        &self.inner
    }

    async fn go(&self, verb: &'static str, writes: bool) -> Result<(), StoreError> {
        let wire_ms = {
            let mut mood = self.mood();
            *mood.calls.entry(verb).or_default() += 1;
            mood.wire_ms
        };
        self.executor.sleep(wire_ms).await;
        let mood = self.mood();
        if mood.is_away || (writes && mood.is_read_only) { Err(away(verb)) } else { Ok(()) }
    }

    async fn come_back(&self) {
        let wire_ms = self.mood().wire_ms;
        self.executor.sleep(wire_ms).await;
    }

    fn read(&self, key: &Key) -> Result<(), StoreError> {
        if self.mood().broken.contains(key) {
            return Err(StoreError::Corrupt { key: *key, detail: "as the story says".into() });
        }
        Ok(())
    }
}

#[async_trait]
impl Store for MoodyStore {
    async fn load(&self, key: &Key) -> Result<Option<Versioned>, StoreError> {
        self.go("load", false).await?;
        self.read(key)?;
        let record = self.inner.load(key).await;
        self.come_back().await;
        record
    }

    async fn commit(
        &self,
        expected: Version,
        next: &Arc<Order>,
        counters: &Counters,
        at: Timestamp,
    ) -> Result<Commit, StoreError> {
        self.go("commit", true).await?;
        self.read(&next.key)?;
        let done = self.inner.commit(expected, next, counters, at).await;
        self.come_back().await;
        let is_lost = self.mood().loses_reply.take_if(|to| to(next)).is_some();
        if is_lost { Err(away("commit")) } else { done }
    }

    async fn claim_due(&self, now: Timestamp, until: Timestamp, limit: usize) -> Result<Due, StoreError> {
        self.go("claim_due", true).await?;
        let due = self.inner.claim_due(now, until, limit).await;
        self.come_back().await;
        due
    }

    async fn take(
        &self,
        target: &Target,
        good_until: Timestamp,
        by: &Key,
        at: Timestamp,
        counters: &Counters,
    ) -> Result<Option<Versioned>, StoreError> {
        self.go("take", true).await?;
        let taken = self.inner.take(target, good_until, by, at, counters).await;
        self.come_back().await;
        if let Ok(Some(record)) = &taken {
            let is_lost = self.mood().loses_reply.take_if(|to| to(&record.order)).is_some();
            if is_lost {
                return Err(away("take"));
            }
        }
        taken
    }

    async fn list_stock(
        &self,
        target: &Target,
        now: Timestamp,
        limit: usize,
    ) -> Result<Vec<Key>, StoreError> {
        self.go("stock", false).await?;
        let stock = self.inner.list_stock(target, now, limit).await;
        self.come_back().await;
        stock
    }

    async fn watch(&self, key: &Key) -> Result<Watch, StoreError> {
        self.go("watch", false).await?;
        self.inner.watch(key).await
    }

    async fn list(
        &self,
        which: Which<'_>,
        after: Option<&Key>,
        limit: usize,
    ) -> Result<Vec<Result<Versioned, Unreadable>>, StoreError> {
        self.go("list", false).await?;
        self.inner.list(which, after, limit).await
    }

    async fn purge(&self, now: Timestamp, limit: usize) -> Result<usize, StoreError> {
        self.go("purge", true).await?;
        self.inner.purge(now, limit).await
    }

    async fn discard(&self, key: &Key) -> Result<bool, StoreError> {
        self.go("discard", true).await?;
        Ok(self.mood().broken.remove(key) && self.inner.lose(key))
    }

    async fn count(&self, line: &UsageRow, counters: &Counters) -> Result<(), StoreError> {
        self.go("count", true).await?;
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
