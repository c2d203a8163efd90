//! A store that can be away. Several test binaries share it.

use async_trait::async_trait;
use quittance_lifecycle::{Key, Order, Tally, Target, Timestamp};
use quittance_ports::{
    Census, Commit, Day, Due, Line, MemoryStore, Store, StoreError, Unreadable, Version, Versioned, Watch,
    Which,
};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

pub(crate) struct FlakyStore {
    inner: MemoryStore,
    is_away: Arc<AtomicBool>,
}

impl FlakyStore {
    /// Away for as long as the flag says so.
    pub(crate) fn new(is_away: &Arc<AtomicBool>) -> Self {
        Self { inner: MemoryStore::default(), is_away: Arc::clone(is_away) }
    }

    fn there(&self) -> Result<&MemoryStore, StoreError> {
        if self.is_away.load(Ordering::Relaxed) {
            return Err(StoreError::Unavailable { doing: "testing", source: "it is away".into() });
        }
        Ok(&self.inner)
    }
}

#[async_trait]
impl Store for FlakyStore {
    async fn load(&self, key: &Key) -> Result<Option<Versioned>, StoreError> {
        self.there()?.load(key).await
    }
    async fn commit(
        &self,
        expected: Version,
        next: &Arc<Order>,
        tally: &Tally,
        at: Timestamp,
    ) -> Result<Commit, StoreError> {
        self.there()?.commit(expected, next, tally, at).await
    }
    async fn claim_due(&self, now: Timestamp, until: Timestamp, limit: usize) -> Result<Due, StoreError> {
        self.there()?.claim_due(now, until, limit).await
    }
    async fn take(
        &self,
        target: &Target,
        good_until: Timestamp,
        by: &Key,
        at: Timestamp,
        tally: &Tally,
    ) -> Result<Option<Versioned>, StoreError> {
        self.there()?.take(target, good_until, by, at, tally).await
    }
    async fn shelf(&self, target: &Target, now: Timestamp, limit: usize) -> Result<Vec<Key>, StoreError> {
        self.there()?.shelf(target, now, limit).await
    }
    async fn watch(&self, key: &Key) -> Result<Watch, StoreError> {
        self.there()?.watch(key).await
    }
    async fn list(
        &self,
        which: Which<'_>,
        after: Option<&Key>,
        limit: usize,
    ) -> Result<Vec<Result<Versioned, Unreadable>>, StoreError> {
        self.there()?.list(which, after, limit).await
    }
    async fn purge(&self, now: Timestamp, limit: usize) -> Result<usize, StoreError> {
        self.there()?.purge(now, limit).await
    }
    /// Nothing here is unreadable; whoever stands before it has said that this one is.
    async fn discard(&self, key: &Key) -> Result<bool, StoreError> {
        Ok(self.there()?.lose(key))
    }
    async fn count(&self, line: &Line, tally: &Tally) -> Result<(), StoreError> {
        self.there()?.count(line, tally).await
    }
    async fn books(&self, from: Day, to: Day) -> Result<Vec<(Line, Tally)>, StoreError> {
        self.there()?.books(from, to).await
    }

    async fn close_books(&self, detail: Day, sums: Day) -> Result<(), StoreError> {
        self.there()?.close_books(detail, sums).await
    }

    async fn census(&self) -> Result<Census, StoreError> {
        self.there()?.census().await
    }
}
