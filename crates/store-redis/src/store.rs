//! The store for callers. Each step is one request to one partition. A call about all orders reads all partitions at
//! once and merges their answers.

use crate::commit::CommitResult;
use crate::discard::DiscardResult;
use crate::failure::RedisFailure;
use crate::layout::{score, stock_range};
use crate::row::{RedisRow, text};
use crate::take::RedisTake;
use crate::{RedisInner, RedisStore};
use async_trait::async_trait;
use futures_util::future::try_join_all;
use quittance_lifecycle::{Counters, Key, Order, Target, Timestamp};
use quittance_ports::{
    Commit, Day, Due, OrderCounts, Store, StoreError, Unreadable, UsageRow, Version, Versioned, Watch, Which,
};
use redis::Value;
use std::sync::Arc;

const LOADING: &str = "loading an order";
const COMMITTING: &str = "committing an order";
const CLAIMING: &str = "claiming what is due";
const TAKING: &str = "taking from a stock";
const LISTING: &str = "listing orders";
const PURGING: &str = "purging orders";
const DISCARDING: &str = "discarding a record";
const COUNTING: &str = "adding to the usage";
const CLOSING: &str = "closing the usage";

/// How many records are read at once, because other calls need a turn.
const ROWS_AT_ONCE: usize = 256;

fn read_names(names: Value) -> Result<Vec<String>, RedisFailure> {
    let Value::Array(names) = names else { return Err(RedisFailure::Garbled) };
    let read = |name| String::from_utf8(text(name)?.unwrap_or_default()).map_err(|_| RedisFailure::Garbled);
    names.into_iter().map(read).collect()
}

impl RedisInner {
    /// The members of a sorted set from `start` to `end`, in order.
    async fn names(
        &self,
        set: String,
        start: &str,
        end: &str,
        limit: usize,
    ) -> Result<Vec<String>, RedisFailure> {
        let mut command = redis::cmd("ZRANGEBYLEX");
        command.arg(set).arg(start).arg(end).arg("LIMIT").arg(0).arg(limit);
        read_names(self.ask(&command).await?)
    }

    async fn read_stock(
        &self,
        target: &Target,
        now: Timestamp,
        limit: usize,
    ) -> Result<Vec<Key>, RedisFailure> {
        let (start, end) = stock_range(target, now);
        let partitions = self
            .layout
            .all()
            .map(|partition| self.names(self.layout.name(partition, "stocks"), &start, &end, limit));
        let mut members: Vec<String> = try_join_all(partitions).await?.into_iter().flatten().collect();
        members.sort_unstable();
        let key = |member: &String| {
            member.rsplit_once(':').and_then(|(_, key)| Key::parse(key).ok()).ok_or(RedisFailure::Garbled)
        };
        members.iter().take(limit).map(key).collect()
    }

    /// The first keys of one list, from all partitions.
    async fn page(
        &self,
        which: Which<'_>,
        after: Option<&Key>,
        limit: usize,
    ) -> Result<Vec<Key>, RedisFailure> {
        let start = after.map_or_else(|| "-".to_owned(), |key| format!("({key}"));
        let partitions = self.layout.all().map(|partition| self.pages(partition, which, &start, limit));
        let mut names: Vec<String> = try_join_all(partitions).await?.into_iter().flatten().collect();
        names.sort_unstable();
        names.dedup();
        names.iter().take(limit).map(|name| Key::parse(name).map_err(|_| RedisFailure::Garbled)).collect()
    }

    /// The first members of each of these lists of a partition.
    async fn pages(
        &self,
        partition: u16,
        which: Which<'_>,
        start: &str,
        limit: usize,
    ) -> Result<Vec<String>, RedisFailure> {
        let keys = self.layout.lists(partition, which);
        let limit = limit.to_string();
        let args = [start.as_bytes(), limit.as_bytes()];
        let Value::Array(pages) = self.run_plain(&self.scripts.page, &keys, &args).await? else {
            return Err(RedisFailure::Garbled);
        };
        let mut all = Vec::new();
        for page in pages {
            all.extend(read_names(page)?);
        }
        Ok(all)
    }

    async fn list(
        &self,
        which: Which<'_>,
        after: Option<&Key>,
        limit: usize,
    ) -> Result<Vec<Result<Versioned, Unreadable>>, RedisFailure> {
        let mut listed = Vec::new();
        let mut after = after.copied();
        while listed.len() < limit {
            let some = (limit - listed.len()).min(ROWS_AT_ONCE);
            let keys = self.page(which, after.as_ref(), some).await?;
            for record in try_join_all(keys.iter().map(|key| self.find(key))).await? {
                match record {
                    RedisRow::Whole(versioned) if which.includes(&versioned.order) => {
                        listed.push(Ok(versioned));
                    }
                    // It expired, or moved on a moment ago.
                    RedisRow::Whole(_) | RedisRow::Gone => {}
                    RedisRow::Broken(broken) => {
                        self.set_aside(&broken, false).await?;
                        listed.extend(which.includes_unreadable().then(|| Err(broken.unreadable())));
                    }
                }
            }
            match keys.last() {
                Some(last) if keys.len() == some => after = Some(*last),
                _ => break,
            }
        }
        Ok(listed)
    }

    async fn order_counts(&self) -> Result<OrderCounts, RedisFailure> {
        let parts = self.layout.all().map(|partition| async move {
            let keys = ["open", "dead"].map(|list| self.layout.name(partition, list));
            self.run_plain(&self.scripts.order_counts, &keys, &[]).await
        });
        let mut order_counts = OrderCounts::default();
        for counts in try_join_all(parts).await? {
            let Value::Array(counts) = counts else { return Err(RedisFailure::Garbled) };
            let [Value::Int(open), Value::Int(dead)] = counts[..] else { return Err(RedisFailure::Garbled) };
            order_counts.open += open.unsigned_abs();
            order_counts.dead += dead.unsigned_abs();
        }
        Ok(order_counts)
    }
}

#[async_trait]
impl Store for RedisStore {
    async fn load(&self, key: &Key) -> Result<Option<Versioned>, StoreError> {
        match self.inner().find(key).await.map_err(|failure| failure.unavailable(LOADING))? {
            RedisRow::Gone => Ok(None),
            RedisRow::Whole(versioned) => Ok(Some(versioned)),
            RedisRow::Broken(broken) => Err(broken.corrupt()),
        }
    }

    async fn commit(
        &self,
        expected: Version,
        next: &Arc<Order>,
        counters: &Counters,
        at: Timestamp,
    ) -> Result<Commit, StoreError> {
        let outcome = self.inner().commit(expected, next, counters, at).await;
        match outcome.map_err(|failure| failure.unavailable(COMMITTING))? {
            CommitResult::Done(version) => Ok(Commit::Done(version)),
            CommitResult::Lost(RedisRow::Gone) => Ok(Commit::Conflict(None)),
            CommitResult::Lost(RedisRow::Whole(versioned)) => Ok(Commit::Conflict(Some(Box::new(versioned)))),
            CommitResult::Lost(RedisRow::Broken(broken)) => Err(broken.corrupt()),
        }
    }

    async fn claim_due(&self, now: Timestamp, until: Timestamp, limit: usize) -> Result<Due, StoreError> {
        self.inner().claim_due(now, until, limit).await.map_err(|failure| failure.unavailable(CLAIMING))
    }

    async fn take(
        &self,
        target: &Target,
        good_until: Timestamp,
        by: &Key,
        at: Timestamp,
        counters: &Counters,
    ) -> Result<Option<Versioned>, StoreError> {
        let request = RedisTake::new(target, good_until, by, at, counters);
        self.inner().take(&request).await.map_err(|failure| failure.unavailable(TAKING))
    }

    async fn list_stock(
        &self,
        target: &Target,
        now: Timestamp,
        limit: usize,
    ) -> Result<Vec<Key>, StoreError> {
        self.inner().read_stock(target, now, limit).await.map_err(|failure| failure.unavailable(LISTING))
    }

    /// Watches an order, without a connection. After a time without notices, all callers are woken when notices
    /// arrive again.
    async fn watch(&self, key: &Key) -> Result<Watch, StoreError> {
        Ok(self.inner().watchers.watch(key))
    }

    async fn list(
        &self,
        which: Which<'_>,
        after: Option<&Key>,
        limit: usize,
    ) -> Result<Vec<Result<Versioned, Unreadable>>, StoreError> {
        self.inner().list(which, after, limit).await.map_err(|failure| failure.unavailable(LISTING))
    }

    async fn purge(&self, now: Timestamp, limit: usize) -> Result<usize, StoreError> {
        let purged = self.inner().purge(score(now), limit).await;
        let restored = self.inner().restore_timers().await;
        let purged = purged.and_then(|purged| restored.map(|()| purged));
        purged.map_err(|failure| failure.unavailable(PURGING))
    }

    async fn discard(&self, key: &Key) -> Result<bool, StoreError> {
        match self.inner().discard(key).await.map_err(|failure| failure.unavailable(DISCARDING))? {
            DiscardResult::Done(was_there) => Ok(was_there),
            DiscardResult::Later(broken) => Err(broken.corrupt()),
        }
    }

    async fn count(&self, line: &UsageRow, counters: &Counters) -> Result<(), StoreError> {
        if *counters == Counters::default() {
            return Ok(());
        }
        self.inner().count(line, counters).await.map_err(|failure| failure.unavailable(COUNTING))
    }

    async fn usage(&self, from: Day, to: Day) -> Result<Vec<(UsageRow, Counters)>, StoreError> {
        self.inner().read_usage(from, to).await.map_err(|failure| failure.unavailable(LISTING))
    }

    async fn compact_usage(&self, detail: Day, sums: Day) -> Result<(), StoreError> {
        self.inner().compact_usage(detail, sums).await.map_err(|failure| failure.unavailable(CLOSING))
    }

    async fn order_counts(&self) -> Result<OrderCounts, StoreError> {
        self.inner().order_counts().await.map_err(|failure| failure.unavailable(LISTING))
    }
}
