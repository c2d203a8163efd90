//! A store that records its calls. A test can make some of its records unreadable.

use crate::flaky_store::FlakyStore;
use async_trait::async_trait;
use quittance_lifecycle::{Counters, Key, Order, Target, Timestamp};
use quittance_ports::{
    Commit, Day, Due, OrderCounts, Store, StoreError, Unreadable, UsageRow, Version, Versioned, Watch, Which,
};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

/// What the store says about an unreadable record; it can hold any text.
pub(crate) const BROKEN: &str = "<b>no JSON</b> \u{1b}[2J";

pub(crate) struct CountingStore {
    inner: FlakyStore,
    calls: Mutex<Vec<&'static str>>,
    /// The unreadable records, each with whether a later version wrote it.
    broken: Mutex<BTreeMap<Key, bool>>,
}

impl CountingStore {
    pub(crate) fn new(inner: FlakyStore) -> Self {
        Self { inner, calls: Mutex::default(), broken: Mutex::default() }
    }

    /// The calls since the last look.
    pub(crate) fn calls(&self) -> Vec<&'static str> {
        std::mem::take(&mut *self.calls.lock().unwrap())
    }

    pub(crate) fn break_record(&self, key: Key, is_later: bool) {
        self.broken.lock().unwrap().insert(key, is_later);
    }

    fn is_broken(&self, key: &Key) -> bool {
        self.broken.lock().unwrap().contains_key(key)
    }

    fn read(&self, key: &Key) -> Result<(), StoreError> {
        if self.is_broken(key) {
            return Err(StoreError::Corrupt { key: *key, detail: BROKEN.into() });
        }
        Ok(())
    }

    fn asked(&self, what: &'static str) -> &FlakyStore {
        self.calls.lock().unwrap().push(what);
        &self.inner
    }
}

#[async_trait]
impl Store for CountingStore {
    async fn load(&self, key: &Key) -> Result<Option<Versioned>, StoreError> {
        self.read(key)?;
        self.asked("load").load(key).await
    }
    async fn commit(
        &self,
        expected: Version,
        next: &Arc<Order>,
        counters: &Counters,
        at: Timestamp,
    ) -> Result<Commit, StoreError> {
        self.read(&next.key)?;
        self.asked("commit").commit(expected, next, counters, at).await
    }
    async fn claim_due(&self, now: Timestamp, until: Timestamp, limit: usize) -> Result<Due, StoreError> {
        self.asked("claim_due").claim_due(now, until, limit).await
    }
    async fn take(
        &self,
        target: &Target,
        good_until: Timestamp,
        by: &Key,
        at: Timestamp,
        counters: &Counters,
    ) -> Result<Option<Versioned>, StoreError> {
        self.asked("take").take(target, good_until, by, at, counters).await
    }
    async fn list_stock(
        &self,
        target: &Target,
        now: Timestamp,
        limit: usize,
    ) -> Result<Vec<Key>, StoreError> {
        self.asked("stock").list_stock(target, now, limit).await
    }
    async fn watch(&self, key: &Key) -> Result<Watch, StoreError> {
        self.asked("watch").watch(key).await
    }
    async fn list(
        &self,
        which: Which<'_>,
        after: Option<&Key>,
        limit: usize,
    ) -> Result<Vec<Result<Versioned, Unreadable>>, StoreError> {
        let mut page = self.asked("list").list(which, after, limit).await?;
        for found in &mut page {
            if let Ok(Versioned { order, .. }) = found
                && self.is_broken(&order.key)
            {
                *found = Err(Unreadable { key: order.key, detail: BROKEN.into() });
            }
        }
        Ok(page)
    }
    async fn purge(&self, now: Timestamp, limit: usize) -> Result<usize, StoreError> {
        self.asked("purge").purge(now, limit).await
    }
    async fn discard(&self, key: &Key) -> Result<bool, StoreError> {
        let inner = self.asked("discard");
        let is_later = self.broken.lock().unwrap().get(key).copied();
        match is_later {
            None => return Ok(false),
            Some(true) => self.read(key)?,
            Some(false) => {}
        }
        self.broken.lock().unwrap().remove(key);
        inner.discard(key).await
    }
    async fn count(&self, line: &UsageRow, counters: &Counters) -> Result<(), StoreError> {
        self.asked("count").count(line, counters).await
    }
    async fn usage(&self, from: Day, to: Day) -> Result<Vec<(UsageRow, Counters)>, StoreError> {
        self.asked("usage").usage(from, to).await
    }

    async fn compact_usage(&self, detail: Day, sums: Day) -> Result<(), StoreError> {
        self.asked("compact_usage").compact_usage(detail, sums).await
    }

    async fn order_counts(&self) -> Result<OrderCounts, StoreError> {
        self.asked("order_counts").order_counts().await
    }
}
