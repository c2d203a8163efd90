//! A store with faults. It loses requests, loses replies after the write, performs writes of dead nodes, ignores its
//! own claims, and is away at times.

use crate::executor::{Executor, ReplySlot, WORLD, locked};
use crate::rng::Rng;
use crate::weather::Weather;
use async_trait::async_trait;
use quittance_lifecycle::{Counters, Key, Order, Target, Timestamp};
use quittance_ports::{
    Commit, Day, Due, MemoryStore, OrderCounts, Store, StoreError, Unreadable, UsageRow, Version, Versioned,
    Watch, Which,
};
use std::sync::{Arc, Mutex};

pub(crate) struct RudeStore {
    pub inner: MemoryStore,
    pub executor: Executor,
    pub weather: Arc<Weather>,
    pub rng: Mutex<Rng>,
}

fn away(doing: &'static str) -> StoreError {
    StoreError::Unavailable { doing, source: "the simulated store is away".into() }
}

impl RudeStore {
    fn roll(&self, fault_rate: fn(&crate::weather::FaultRates) -> u64) -> bool {
        self.weather.strikes(&mut locked(&self.rng), fault_rate)
    }

    fn delay(&self) -> u64 {
        let slow = self.roll(|t| t.store_slow);
        locked(&self.rng).in_range(if slow { 100..3000 } else { 0..4 })
    }

    /// The way of a request to the store, on which it may be lost.
    async fn go(&self, doing: &'static str) -> Result<(), StoreError> {
        self.executor.sleep(self.delay()).await;
        if self.roll(|t| t.store_request_lost) || self.weather.is_store_down(self.executor.now()) {
            return Err(away(doing));
        }
        Ok(())
    }

    /// The way of a reply back, on which it may be lost.
    async fn come_back<T>(&self, doing: &'static str, reply: Result<T, StoreError>) -> Result<T, StoreError> {
        self.executor.sleep(self.delay()).await;
        if self.roll(|t| t.store_reply_lost) { Err(away(doing)) } else { reply }
    }
}

#[async_trait]
impl Store for RudeStore {
    async fn load(&self, key: &Key) -> Result<Option<Versioned>, StoreError> {
        self.go("loading").await?;
        self.inner.load(key).await
    }

    async fn commit(
        &self,
        expected: Version,
        next: &Arc<Order>,
        counters: &Counters,
        at: Timestamp,
    ) -> Result<Commit, StoreError> {
        self.go("committing").await?;
        // From here on the write is on its way: it happens even if its sender is killed.
        let slot = ReplySlot::default();
        let (inner, executor, delay) = (self.inner.clone(), self.executor.clone(), self.delay());
        let (next, counters, reply) = (next.clone(), *counters, slot.clone());
        self.executor.spawn(WORLD, async move {
            executor.sleep(delay).await;
            let done = inner.commit(expected, &next, &counters, at).await;
            if let Ok(Commit::Done(version)) = &done {
                executor.note(|| format!("{:?} v{} {}", next.key, version.0, describe(&next)));
            }
            reply.fill(done);
        });
        let reply = slot.filled().await;
        self.come_back("committing", reply).await
    }

    async fn claim_due(&self, now: Timestamp, until: Timestamp, limit: usize) -> Result<Due, StoreError> {
        self.go("claiming").await?;
        let until = if self.roll(|t| t.claims_ignored) { now } else { until };
        let reply = self.inner.claim_due(now, until, limit).await;
        self.come_back("claiming", reply).await
    }

    async fn take(
        &self,
        target: &Target,
        good_until: Timestamp,
        by: &Key,
        at: Timestamp,
        counters: &Counters,
    ) -> Result<Option<Versioned>, StoreError> {
        self.go("taking").await?;
        // As with a commit: it happens even if its sender is killed.
        let slot = ReplySlot::default();
        let (inner, executor, delay) = (self.inner.clone(), self.executor.clone(), self.delay());
        let (target, by, counters, reply) = (*target, *by, *counters, slot.clone());
        self.executor.spawn(WORLD, async move {
            executor.sleep(delay).await;
            let done = inner.take(&target, good_until, &by, at, &counters).await;
            if let Ok(Some(taken)) = &done {
                executor.note(|| format!("{:?} is taken by {by:?}", taken.order.key));
            }
            reply.fill(done);
        });
        let reply = slot.filled().await;
        self.come_back("taking", reply).await
    }

    async fn list_stock(
        &self,
        target: &Target,
        now: Timestamp,
        limit: usize,
    ) -> Result<Vec<Key>, StoreError> {
        self.go("looking at a stock").await?;
        self.inner.list_stock(target, now, limit).await
    }

    async fn watch(&self, key: &Key) -> Result<Watch, StoreError> {
        self.go("watching").await?;
        self.inner.watch(key).await
    }

    async fn list(
        &self,
        which: Which<'_>,
        after: Option<&Key>,
        limit: usize,
    ) -> Result<Vec<Result<Versioned, Unreadable>>, StoreError> {
        self.go("listing").await?;
        self.inner.list(which, after, limit).await
    }

    async fn purge(&self, now: Timestamp, limit: usize) -> Result<usize, StoreError> {
        self.go("purging").await?;
        self.inner.purge(now, limit).await
    }

    async fn discard(&self, key: &Key) -> Result<bool, StoreError> {
        self.go("discarding").await?;
        let reply = self.inner.discard(key).await;
        self.come_back("discarding", reply).await
    }

    async fn count(&self, line: &UsageRow, counters: &Counters) -> Result<(), StoreError> {
        self.go("counting").await?;
        let reply = self.inner.count(line, counters).await;
        self.come_back("counting", reply).await
    }

    async fn usage(&self, from: Day, to: Day) -> Result<Vec<(UsageRow, Counters)>, StoreError> {
        self.go("reading the usage").await?;
        self.inner.usage(from, to).await
    }

    async fn compact_usage(&self, detail: Day, sums: Day) -> Result<(), StoreError> {
        self.go("closing the usage").await?;
        self.inner.compact_usage(detail, sums).await
    }

    async fn order_counts(&self) -> Result<OrderCounts, StoreError> {
        self.go("taking a order_counts").await?;
        self.inner.order_counts().await
    }
}

fn describe(order: &Order) -> String {
    let last = order.timeline.entries.last().map(ToString::to_string).unwrap_or_default();
    format!("{} life {} ({last})", order.phase.name(), order.life)
}
