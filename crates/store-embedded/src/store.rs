//! The store for callers. What memory can answer is answered on their own thread; for the rest they wait for the
//! store's threads.

use crate::EmbeddedStore;
use crate::cache::Miss;
use crate::ledger::{IndexClaims, Rung};
use crate::reader::{Question, ReadAnswer};
use crate::row::{BrokenRow, EmbeddedRow, StoredOrder};
use crate::writer::{OrderWrite, TakeWork, WriteResult, WriteTask};
use async_trait::async_trait;
use quittance_lifecycle::{Counters, Key, Order, Target, Timestamp};
use quittance_ports::{
    Commit, Day, Due, OrderCounts, Store, StoreError, Unreadable, UsageRow, Version, Versioned, Watch, Which,
};
use std::sync::Arc;

/// How many rows are read or erased at once, because other calls need a turn.
const ROWS_AT_ONCE: usize = 256;

const LOADING: &str = "loading an order";
const COMMITTING: &str = "committing an order";
const CLAIMING: &str = "claiming what is due";
const TAKING: &str = "taking from a stock";
const LISTING: &str = "listing orders";
const PURGING: &str = "purging orders";
const DISCARDING: &str = "discarding a record";
const COUNTING: &str = "adding to the usage";
const CLOSING: &str = "closing the usage";

const ASKED: &str = "each answer is of the requested sort";

type StoredRows = Vec<Result<EmbeddedRow, StoreError>>;

impl EmbeddedStore {
    async fn rows(&self, ids: Vec<i64>) -> Result<StoredRows, StoreError> {
        match self.shared().questions.ask(Question::Rows(ids)).await? {
            ReadAnswer::Rows(rows) => Ok(rows),
            _ => unreachable!("{ASKED}"),
        }
    }

    pub(crate) async fn write(&self, task: WriteTask) -> Result<WriteResult, StoreError> {
        self.shared().tasks.ask(task).await
    }

    /// Reads an order that is not in the cache.
    async fn find(&self, key: &Key, mut miss: Miss) -> Result<Option<Versioned>, StoreError> {
        let shared = self.shared();
        let candidates = || shared.ledger().rows(key);
        let mut ids = candidates();
        loop {
            if let Some(corrupt) = shared.is_broken(key) {
                return Err(corrupt);
            }
            if ids.is_empty() {
                return Ok(None);
            }
            for (id, row) in ids.iter().zip(self.rows(ids.clone()).await?) {
                match row? {
                    EmbeddedRow::Whole(stored_order) if stored_order.versioned.order.key == *key => {
                        shared.cache.offer(miss, &stored_order);
                        return Ok(Some(stored_order.versioned));
                    }
                    EmbeddedRow::Whole(_) | EmbeddedRow::Gone => {}
                    // If even its key cannot be read, it may be this one.
                    EmbeddedRow::Broken(BrokenRow { unreadable, .. }) => {
                        return Err(shared.set_aside(key, *id, &unreadable.detail));
                    }
                }
            }
            // It was purged a moment ago; and perhaps created again.
            match shared.cache.look(key) {
                Ok(stored_order) => return Ok(Some(stored_order.versioned)),
                Err(later) => miss = later,
            }
            let before = std::mem::replace(&mut ids, candidates());
            if before == ids {
                return Ok(None);
            }
        }
    }

    /// Reads the orders of the timers that have fired. Each read can fail by itself.
    async fn behind(&self, rung: &[Rung]) -> Result<Vec<Result<EmbeddedRow, StoreError>>, StoreError> {
        let shared = self.shared();
        let mut record = Vec::with_capacity(rung.len());
        let mut misses = Vec::new();
        for (at, Rung { key, id, .. }) in rung.iter().enumerate() {
            match shared.cache.look(key) {
                Ok(stored_order) => record.push(Ok(EmbeddedRow::Whole(stored_order))),
                Err(miss) => {
                    record.push(Ok(EmbeddedRow::Gone));
                    misses.push((at, *id, miss));
                }
            }
        }
        for some in misses.chunks(ROWS_AT_ONCE) {
            let rows = self.rows(some.iter().map(|(_, id, _)| *id).collect()).await?;
            for ((at, _, miss), row) in some.iter().zip(rows) {
                if let Ok(EmbeddedRow::Whole(stored_order)) = &row {
                    shared.cache.offer(*miss, stored_order);
                }
                record[*at] = row;
            }
        }
        Ok(record)
    }

    /// Sorts what was read into due orders and others.
    fn hand_over(&self, claims: IndexClaims, rows: StoredRows, now: Timestamp) -> Result<Due, StoreError> {
        let shared = self.shared();
        let reported = |(key, detail)| Unreadable { key, detail };
        let mut due = Due {
            orders: Vec::with_capacity(rows.len()),
            next: claims.next,
            unreadable: claims.broken.into_iter().map(reported).collect(),
        };
        let mut failure = None;
        for (rung, row) in claims.rung.iter().zip(rows) {
            let put_back = |at| shared.ledger().put_back(rung, at);
            match row {
                Ok(EmbeddedRow::Whole(stored_order)) if stored_order.versioned.order.key == rung.key => {
                    match stored_order.versioned.order.due() {
                        Some(at) if at <= now => due.orders.push(stored_order.versioned),
                        // It was written since its timer fired.
                        later => put_back(later),
                    }
                }
                Ok(EmbeddedRow::Whole(_) | EmbeddedRow::Gone) => put_back(None),
                Ok(EmbeddedRow::Broken(BrokenRow { unreadable, .. })) => {
                    put_back(None);
                    let _corrupt = shared.set_aside(&rung.key, rung.id, &unreadable.detail);
                    due.unreadable.push(Unreadable { key: rung.key, detail: unreadable.detail });
                }
                Err(error) => {
                    put_back(Some(rung.at));
                    due.next = Some(due.next.map_or(rung.at, |next| next.min(rung.at)));
                    failure = Some(error);
                }
            }
        }
        match failure {
            // One row that cannot be read just now must not hold up the others.
            Some(error) if due.orders.is_empty() && due.unreadable.is_empty() => Err(error),
            _ => Ok(due),
        }
    }
}

#[async_trait]
impl Store for EmbeddedStore {
    async fn load(&self, key: &Key) -> Result<Option<Versioned>, StoreError> {
        self.shared().check_up(LOADING)?;
        match self.shared().cache.look(key) {
            Ok(stored_order) => Ok(Some(stored_order.versioned)),
            Err(miss) => self.find(key, miss).await,
        }
    }

    async fn commit(
        &self,
        expected: Version,
        next: &Arc<Order>,
        counters: &Counters,
        at: Timestamp,
    ) -> Result<Commit, StoreError> {
        self.shared().check_open(COMMITTING)?;
        let record = match self.shared().cache.look(&next.key) {
            Ok(stored_order) => Some(stored_order.versioned),
            Err(miss) => self.find(&next.key, miss).await?,
        };
        // A writer with an older version has lost already. Only the writer thread can judge any other version.
        if let Some(record) = record.filter(|record| expected < record.version) {
            return Ok(Commit::Conflict(Some(Box::new(record))));
        }
        let write = OrderWrite::new(expected, next, counters, at);
        match self.write(WriteTask::Commit(Box::new(write))).await? {
            WriteResult::Committed(commit) => Ok(commit),
            _ => unreachable!("{ASKED}"),
        }
    }

    async fn claim_due(&self, now: Timestamp, until: Timestamp, limit: usize) -> Result<Due, StoreError> {
        self.shared().check_open(CLAIMING)?;
        let claims = self.shared().ledger().claim(now, until, limit);
        match self.behind(&claims.rung).await {
            Ok(rows) => self.hand_over(claims, rows, now),
            Err(error) => {
                let mut ledger = self.shared().ledger();
                for rung in &claims.rung {
                    ledger.put_back(rung, Some(rung.at));
                }
                // What could not be reported to this caller is reported to the next.
                for (key, _) in &claims.broken {
                    ledger.tell_at(Some(now), key, 0);
                }
                Err(error)
            }
        }
    }

    async fn take(
        &self,
        target: &Target,
        good_until: Timestamp,
        by: &Key,
        at: Timestamp,
        counters: &Counters,
    ) -> Result<Option<Versioned>, StoreError> {
        self.shared().check_open(TAKING)?;
        // Most stocks are empty, and every new order asks: that costs no wait for the disk.
        if !self.shared().ledger().has_for(by, target, good_until) {
            return Ok(None);
        }
        let taking = TakeWork { target: *target, good_until, by: *by, at, counters: *counters };
        match self.write(WriteTask::Take(Box::new(taking))).await? {
            WriteResult::Taken(taken) => Ok(taken),
            _ => unreachable!("{ASKED}"),
        }
    }

    async fn list_stock(
        &self,
        target: &Target,
        now: Timestamp,
        limit: usize,
    ) -> Result<Vec<Key>, StoreError> {
        self.shared().check_up(LISTING)?;
        Ok(self.shared().ledger().list_stock(target, now, limit))
    }

    async fn watch(&self, key: &Key) -> Result<Watch, StoreError> {
        Ok(self.shared().watchers.watch(key))
    }

    async fn list(
        &self,
        which: Which<'_>,
        after: Option<&Key>,
        limit: usize,
    ) -> Result<Vec<Result<Versioned, Unreadable>>, StoreError> {
        let shared = self.shared();
        let mut listed = Vec::new();
        let mut after = after.copied();
        while listed.len() < limit {
            shared.check_up(LISTING)?;
            let page = shared.ledger().page(which, after.as_ref(), (limit - listed.len()).min(ROWS_AT_ONCE));
            let reported = |(key, detail)| (key, Err(Unreadable { key, detail }));
            let mut some: Vec<_> = page.broken.into_iter().map(reported).collect();
            for (id, row) in page.ids.iter().zip(self.rows(page.ids.clone()).await?) {
                match row? {
                    EmbeddedRow::Whole(StoredOrder { versioned, .. }) if which.includes(&versioned.order) => {
                        some.push((versioned.order.key, Ok(versioned)));
                    }
                    EmbeddedRow::Whole(_) | EmbeddedRow::Gone => {}
                    EmbeddedRow::Broken(BrokenRow { unreadable, .. }) => {
                        let _corrupt = shared.set_aside(&unreadable.key, *id, &unreadable.detail);
                        some.extend(which.includes_unreadable().then_some((unreadable.key, Err(unreadable))));
                    }
                }
            }
            some.sort_by_key(|(key, _)| *key);
            let beyond = some.into_iter().filter(|(key, _)| after.is_none_or(|after| *key > after));
            listed.extend(beyond.map(|(_, record)| record));
            match page.through {
                Some(through) => after = Some(through),
                None => break,
            }
        }
        listed.truncate(limit);
        Ok(listed)
    }

    async fn purge(&self, now: Timestamp, limit: usize) -> Result<usize, StoreError> {
        let mut purged = 0;
        while purged < limit {
            self.shared().check_open(PURGING)?;
            let some = (limit - purged).min(ROWS_AT_ONCE);
            match self.write(WriteTask::Purge { now, limit: some }).await? {
                WriteResult::Purged(0) => break,
                WriteResult::Purged(count) => purged += count,
                _ => unreachable!("{ASKED}"),
            }
        }
        Ok(purged)
    }

    async fn discard(&self, key: &Key) -> Result<bool, StoreError> {
        self.shared().check_open(DISCARDING)?;
        match self.write(WriteTask::Discard(*key)).await? {
            WriteResult::Discarded(was_there) => Ok(was_there),
            _ => unreachable!("{ASKED}"),
        }
    }

    async fn count(&self, line: &UsageRow, counters: &Counters) -> Result<(), StoreError> {
        self.shared().check_open(COUNTING)?;
        if *counters != Counters::default() {
            self.write(WriteTask::Count(Box::new((line.clone(), *counters)))).await?;
        }
        Ok(())
    }

    async fn usage(&self, from: Day, to: Day) -> Result<Vec<(UsageRow, Counters)>, StoreError> {
        self.shared().check_up(LISTING)?;
        match self.shared().questions.ask(Question::Usage(from, to)).await? {
            ReadAnswer::Usage(usage) => Ok(usage),
            _ => unreachable!("{ASKED}"),
        }
    }

    async fn compact_usage(&self, detail: Day, sums: Day) -> Result<(), StoreError> {
        loop {
            self.shared().check_open(CLOSING)?;
            match self.write(WriteTask::CompactUsage { detail, sums }).await? {
                WriteResult::Closed(true) => {}
                WriteResult::Closed(false) => return Ok(()),
                _ => unreachable!("{ASKED}"),
            }
        }
    }

    async fn order_counts(&self) -> Result<OrderCounts, StoreError> {
        self.shared().check_up(LISTING)?;
        Ok(self.shared().ledger().order_counts())
    }
}
