//! A store and a spill in memory, which forget everything when the process ends. They are the reference: one lock
//! over plain ordered maps, so that the contract is easy to read, and a seed replays byte for byte.

use crate::spill::{IncomingEvent, Spill, SpillError};
use crate::store::{
    Commit, Day, Due, OrderClass, OrderCounts, Store, StoreError, Unreadable, UsageRow, Version, Versioned,
    Which,
};
use crate::watch::{Watch, Watchers};
use async_trait::async_trait;
use quittance_lifecycle::{Counters, Key, Order, Target, Timestamp};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fmt;
use std::ops::Bound;
use std::sync::{Arc, Mutex, MutexGuard};

/// A store in memory. Clones of a handle share the same orders.
#[derive(Clone, Default)]
pub struct MemoryStore {
    ledger: Arc<Mutex<MemoryRecords>>,
    watchers: Watchers,
}

#[derive(Default)]
struct MemoryRecords {
    /// One count for all orders. A version is not used again after a purge, so a node that was frozen meanwhile
    /// cannot write over a record that it never saw.
    last_version: u64,
    records: BTreeMap<Key, MemoryRecord>,
    timers: BTreeSet<(Timestamp, Key)>,
    stocks: BTreeSet<(Target, Timestamp, Key)>,
    /// The answer that each claimant took from each stock.
    takers: BTreeMap<(Key, Target), Key>,
    forgettable: BTreeSet<(Timestamp, Key)>,
    by_tenant: BTreeMap<String, BTreeSet<Key>>,
    usage: BTreeMap<UsageRow, Counters>,
}

struct MemoryRecord {
    versioned: Versioned,
    /// When the order is next returned by `claim_due`: when it is due, or when its claim lapses.
    timer: Option<Timestamp>,
}

impl MemoryStore {
    /// How many watches there are: zero if no caller waits, unless there is a leak.
    #[must_use]
    pub fn watching(&self) -> usize {
        self.watchers.len()
    }

    /// Loses a record with its index entries, and returns whether there was one. Records here are always readable: a
    /// test store that reports a record as unreadable discards it with this.
    pub fn lose(&self, key: &Key) -> bool {
        let mut ledger = self.ledger();
        let is_there = ledger.records.contains_key(key);
        ledger.erase(key);
        is_there
    }

    fn ledger(&self) -> MutexGuard<'_, MemoryRecords> {
        self.ledger.lock().expect("nothing panics in the middle of a write; if it did, nothing here is true")
    }
}

impl MemoryRecords {
    fn write(&mut self, next: &Arc<Order>) -> Version {
        self.erase(&next.key);
        self.last_version += 1;
        let version = Version(self.last_version);
        let timer = next.due();
        if let Some(at) = timer {
            self.timers.insert((at, next.key));
        }
        if let Some((target, expires)) = next.list_stock() {
            self.stocks.insert((target, expires, next.key));
        }
        if let Some(taker) = next.taker() {
            self.takers.insert((taker, next.terms.target), next.key);
        }
        if let Some(at) = next.forget_at() {
            self.forgettable.insert((at, next.key));
        }
        self.by_tenant.entry(next.terms.tenant.clone()).or_default().insert(next.key);
        let versioned = Versioned { version, order: Arc::clone(next) };
        self.records.insert(next.key, MemoryRecord { versioned, timer });
        version
    }

    /// Removes a record and its index entries.
    fn erase(&mut self, key: &Key) {
        let Some(MemoryRecord { versioned: Versioned { order, .. }, timer }) = self.records.remove(key)
        else {
            return;
        };
        if let Some(at) = timer {
            self.timers.remove(&(at, *key));
        }
        if let Some((target, expires)) = order.list_stock() {
            self.stocks.remove(&(target, expires, *key));
        }
        let taken = order.taker().map(|taker| (taker, order.terms.target));
        if let Some(taken) = taken.filter(|taken| self.takers.get(taken) == Some(key)) {
            self.takers.remove(&taken);
        }
        if let Some(at) = order.forget_at() {
            self.forgettable.remove(&(at, *key));
        }
        let tenant = &order.terms.tenant;
        if let Some(keys) = self.by_tenant.get_mut(tenant)
            && keys.remove(key)
            && keys.is_empty()
        {
            self.by_tenant.remove(tenant);
        }
    }

    fn take(
        &mut self,
        target: &Target,
        good_until: Timestamp,
        by: &Key,
        at: Timestamp,
        counters: &Counters,
    ) -> Option<Versioned> {
        if let Some(own) = self.takers.get(&(*by, *target)).and_then(|key| self.records.get(key)) {
            return Some(own.versioned.clone());
        }
        let first = self.stocks.range((*target, good_until, Key([0; 32]))..).next();
        let key = first.filter(|(of, ..)| of == target)?.2;
        let order = (*self.records.get(&key)?.versioned.order).clone();
        let taken = Arc::new(order.taken(*by, at));
        self.book(UsageRow::of(&taken, at), counters);
        let version = self.write(&taken);
        Some(Versioned { version, order: taken })
    }

    /// Adds to one row of the usage. Counters that are all zero create no row.
    fn book(&mut self, line: UsageRow, counters: &Counters) {
        if *counters != Counters::default() {
            *self.usage.entry(line).or_default() += *counters;
        }
    }

    fn claim_due(&mut self, now: Timestamp, until: Timestamp, limit: usize) -> Due {
        let due: Vec<_> = self.timers.iter().take_while(|(at, _)| *at <= now).take(limit).copied().collect();
        for timer in &due {
            self.timers.remove(timer);
        }
        // What is returned now is in the claimer's hands: the claimer knows when its claim lapses.
        let next = self.timers.first().map(|(at, _)| *at);
        let mut orders = Vec::with_capacity(due.len());
        for (at, key) in due {
            let Some(record) = self.records.get_mut(&key) else { continue };
            // A claim puts the timer off, and that is all it does: a write sets it again.
            let lapses = at.max(until);
            record.timer = Some(lapses);
            self.timers.insert((lapses, key));
            orders.push(record.versioned.clone());
        }
        Due { orders, next, unreadable: Vec::new() }
    }
}

#[async_trait]
impl Store for MemoryStore {
    async fn load(&self, key: &Key) -> Result<Option<Versioned>, StoreError> {
        Ok(self.ledger().records.get(key).map(|record| record.versioned.clone()))
    }

    async fn commit(
        &self,
        expected: Version,
        next: &Arc<Order>,
        counters: &Counters,
        at: Timestamp,
    ) -> Result<Commit, StoreError> {
        let version = {
            let mut ledger = self.ledger();
            let stored = ledger.records.get(&next.key).map(|record| &record.versioned);
            if stored.map_or(Version::ABSENT, |stored| stored.version) != expected {
                return Ok(Commit::Conflict(stored.cloned().map(Box::new)));
            }
            ledger.book(UsageRow::of(next, at), counters);
            ledger.write(next)
        };
        if !next.is_awaited() {
            // After the lock is gone: a woken caller may come straight back to read.
            self.watchers.wake(&next.key);
        }
        Ok(Commit::Done(version))
    }

    async fn claim_due(&self, now: Timestamp, until: Timestamp, limit: usize) -> Result<Due, StoreError> {
        Ok(self.ledger().claim_due(now, until, limit))
    }

    async fn take(
        &self,
        target: &Target,
        good_until: Timestamp,
        by: &Key,
        at: Timestamp,
        counters: &Counters,
    ) -> Result<Option<Versioned>, StoreError> {
        Ok(self.ledger().take(target, good_until, by, at, counters))
    }

    async fn list_stock(
        &self,
        target: &Target,
        now: Timestamp,
        limit: usize,
    ) -> Result<Vec<Key>, StoreError> {
        let expired = Bound::Excluded((*target, now, Key([0xff; 32])));
        let ledger = self.ledger();
        let fresh = ledger.stocks.range((expired, Bound::Unbounded));
        Ok(fresh.take_while(|(of, ..)| of == target).take(limit).map(|(.., key)| *key).collect())
    }

    async fn watch(&self, key: &Key) -> Result<Watch, StoreError> {
        Ok(self.watchers.watch(key))
    }

    async fn list(
        &self,
        which: Which<'_>,
        after: Option<&Key>,
        limit: usize,
    ) -> Result<Vec<Result<Versioned, Unreadable>>, StoreError> {
        let start = after.map_or(Bound::Unbounded, |key| Bound::Excluded(*key));
        let range = (start, Bound::Unbounded);
        let ledger = self.ledger();
        let records: Box<dyn Iterator<Item = &MemoryRecord>> = match which.tenant {
            None => Box::new(ledger.records.range(range).map(|(_, record)| record)),
            Some(tenant) => {
                let keys = ledger.by_tenant.get(tenant).into_iter().flat_map(|keys| keys.range(range));
                Box::new(keys.filter_map(|key| ledger.records.get(key)))
            }
        };
        let listed = records.map(|record| &record.versioned).filter(|stored| which.includes(&stored.order));
        Ok(listed.take(limit).cloned().map(Ok).collect())
    }

    async fn purge(&self, now: Timestamp, limit: usize) -> Result<usize, StoreError> {
        let mut ledger = self.ledger();
        let old: Vec<_> =
            ledger.forgettable.iter().take_while(|(at, _)| *at <= now).take(limit).copied().collect();
        for (_, key) in &old {
            ledger.erase(key);
        }
        Ok(old.len())
    }

    /// Removes nothing: records in memory are always readable.
    async fn discard(&self, _key: &Key) -> Result<bool, StoreError> {
        Ok(false)
    }

    async fn count(&self, line: &UsageRow, counters: &Counters) -> Result<(), StoreError> {
        self.ledger().book(line.clone(), counters);
        Ok(())
    }

    async fn usage(&self, from: Day, to: Day) -> Result<Vec<(UsageRow, Counters)>, StoreError> {
        let ledger = self.ledger();
        let in_range = ledger.usage.iter().filter(|(line, _)| from <= line.day && line.day <= to);
        Ok(in_range.map(|(line, counters)| (line.clone(), *counters)).collect())
    }

    async fn compact_usage(&self, detail: Day, sums: Day) -> Result<(), StoreError> {
        let mut ledger = self.ledger();
        let usage = std::mem::take(&mut ledger.usage);
        for (mut line, counters) in usage.into_iter().filter(|(line, _)| line.day >= sums) {
            if line.day < detail {
                line.site = UsageRow::ALL_SITES.to_owned();
            }
            ledger.book(line, &counters);
        }
        Ok(())
    }

    async fn order_counts(&self) -> Result<OrderCounts, StoreError> {
        let ledger = self.ledger();
        let mut order_counts = OrderCounts::default();
        for record in ledger.records.values() {
            match OrderClass::of(&record.versioned.order) {
                OrderClass::Open => order_counts.open += 1,
                OrderClass::Dead => order_counts.dead += 1,
                OrderClass::AtRest => {}
            }
        }
        Ok(order_counts)
    }
}

impl fmt::Debug for MemoryStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "MemoryStore({} orders, {} watches)", self.ledger().records.len(), self.watching())
    }
}

/// A spill in memory. Clones of a handle share the same events. It is never full.
#[derive(Clone, Debug, Default)]
pub struct MemorySpill {
    arrivals: Arc<Mutex<VecDeque<IncomingEvent>>>,
    reachable_until: Arc<Mutex<Option<Timestamp>>>,
}

impl MemorySpill {
    fn arrivals(&self) -> MutexGuard<'_, VecDeque<IncomingEvent>> {
        self.arrivals.lock().expect("nothing panics while it holds the arrivals")
    }
}

impl Spill for MemorySpill {
    fn keep(&self, arrival: &IncomingEvent) -> Result<(), SpillError> {
        self.arrivals().push_back(arrival.clone());
        Ok(())
    }

    fn waiting(&self) -> Result<Vec<IncomingEvent>, SpillError> {
        Ok(self.arrivals().iter().cloned().collect())
    }

    fn forget(&self, count: usize) -> Result<(), SpillError> {
        let mut arrivals = self.arrivals();
        let count = count.min(arrivals.len());
        arrivals.drain(..count);
        Ok(())
    }

    fn mark_reachable(&self, until: Timestamp) {
        *self.reachable_until.lock().expect("nothing panics while it holds the mark") = Some(until);
    }

    fn reachable_until(&self) -> Option<Timestamp> {
        *self.reachable_until.lock().expect("nothing panics while it holds the mark")
    }
}
