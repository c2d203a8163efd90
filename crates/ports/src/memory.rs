//! The store and the spill that forget everything when the process ends. They are the reference: one lock over
//! plain ordered maps, so that whoever reads them sees what the contract means, and a seed replays byte for byte.

use crate::spill::{Arrival, Spill, SpillError};
use crate::store::{
    Census, Commit, Day, Due, Line, Standing, Store, StoreError, Unreadable, Version, Versioned, Which,
};
use crate::watch::{Watch, Watchers};
use async_trait::async_trait;
use quittance_lifecycle::{Key, Order, Tally, Target, Timestamp};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fmt;
use std::ops::Bound;
use std::sync::{Arc, Mutex, MutexGuard};

/// A handle; its clones share the same orders.
#[derive(Clone, Default)]
pub struct MemoryStore {
    ledger: Arc<Mutex<Ledger>>,
    watchers: Watchers,
}

#[derive(Default)]
struct Ledger {
    /// One count for all orders: a version of a record that was purged never comes back with its successor, so
    /// a node that slept through both cannot write over what it never saw.
    last_version: u64,
    records: BTreeMap<Key, Record>,
    alarms: BTreeSet<(Timestamp, Key)>,
    shelves: BTreeSet<(Target, Timestamp, Key)>,
    /// Who took what from which shelf.
    takers: BTreeMap<(Key, Target), Key>,
    forgettable: BTreeSet<(Timestamp, Key)>,
    by_tenant: BTreeMap<String, BTreeSet<Key>>,
    books: BTreeMap<Line, Tally>,
}

struct Record {
    versioned: Versioned,
    /// When it next comes up in `claim_due`: when it is due, or when its claim lapses.
    alarm: Option<Timestamp>,
}

impl MemoryStore {
    /// How many watches there are: zero when nobody waits, or something leaks.
    #[must_use]
    pub fn watching(&self) -> usize {
        self.watchers.len()
    }

    /// Loses a record with all that was derived from it, and says whether there was one. Nothing here is ever unreadable:
    /// whoever stands before this store and says that something is discards it in this way.
    pub fn lose(&self, key: &Key) -> bool {
        let mut ledger = self.ledger();
        let is_there = ledger.records.contains_key(key);
        ledger.erase(key);
        is_there
    }

    fn ledger(&self) -> MutexGuard<'_, Ledger> {
        self.ledger.lock().expect("nothing panics in the middle of a write; if it did, nothing here is true")
    }
}

impl Ledger {
    fn write(&mut self, next: &Arc<Order>) -> Version {
        self.erase(&next.key);
        self.last_version += 1;
        let version = Version(self.last_version);
        let alarm = next.due();
        if let Some(at) = alarm {
            self.alarms.insert((at, next.key));
        }
        if let Some((target, spoils)) = next.shelf() {
            self.shelves.insert((target, spoils, next.key));
        }
        if let Some(taker) = next.taker() {
            self.takers.insert((taker, next.terms.target), next.key);
        }
        if let Some(at) = next.forget_at() {
            self.forgettable.insert((at, next.key));
        }
        self.by_tenant.entry(next.terms.tenant.clone()).or_default().insert(next.key);
        let versioned = Versioned { version, order: Arc::clone(next) };
        self.records.insert(next.key, Record { versioned, alarm });
        version
    }

    /// Removes a record and all that was derived from it.
    fn erase(&mut self, key: &Key) {
        let Some(Record { versioned: Versioned { order, .. }, alarm }) = self.records.remove(key) else {
            return;
        };
        if let Some(at) = alarm {
            self.alarms.remove(&(at, *key));
        }
        if let Some((target, spoils)) = order.shelf() {
            self.shelves.remove(&(target, spoils, *key));
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
        tally: &Tally,
    ) -> Option<Versioned> {
        if let Some(his) = self.takers.get(&(*by, *target)).and_then(|key| self.records.get(key)) {
            return Some(his.versioned.clone());
        }
        let first = self.shelves.range((*target, good_until, Key([0; 32]))..).next();
        let key = first.filter(|(of, ..)| of == target)?.2;
        let order = (*self.records.get(&key)?.versioned.order).clone();
        let taken = Arc::new(order.taken(*by, at));
        self.book(Line::of(&taken, at), tally);
        let version = self.write(&taken);
        Some(Versioned { version, order: taken })
    }

    /// A tally of nothing opens no line.
    fn book(&mut self, line: Line, tally: &Tally) {
        if *tally != Tally::default() {
            *self.books.entry(line).or_default() += *tally;
        }
    }

    fn claim_due(&mut self, now: Timestamp, until: Timestamp, limit: usize) -> Due {
        let due: Vec<_> = self.alarms.iter().take_while(|(at, _)| *at <= now).take(limit).copied().collect();
        for alarm in &due {
            self.alarms.remove(alarm);
        }
        // What is returned now is in the claimer's hands: he knows himself when his claim lapses.
        let next = self.alarms.first().map(|(at, _)| *at);
        let mut orders = Vec::with_capacity(due.len());
        for (at, key) in due {
            let Some(record) = self.records.get_mut(&key) else { continue };
            // A claim puts the alarm off, and that is all it does: a write sets it anew.
            let lapses = at.max(until);
            record.alarm = Some(lapses);
            self.alarms.insert((lapses, key));
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
        tally: &Tally,
        at: Timestamp,
    ) -> Result<Commit, StoreError> {
        let version = {
            let mut ledger = self.ledger();
            let found = ledger.records.get(&next.key).map(|record| &record.versioned);
            if found.map_or(Version::ABSENT, |found| found.version) != expected {
                return Ok(Commit::Conflict(found.cloned().map(Box::new)));
            }
            ledger.book(Line::of(next, at), tally);
            ledger.write(next)
        };
        if !next.is_awaited() {
            // After the lock is gone: whoever is woken may come straight back to read.
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
        tally: &Tally,
    ) -> Result<Option<Versioned>, StoreError> {
        Ok(self.ledger().take(target, good_until, by, at, tally))
    }

    async fn shelf(&self, target: &Target, now: Timestamp, limit: usize) -> Result<Vec<Key>, StoreError> {
        let spoiled = Bound::Excluded((*target, now, Key([0xff; 32])));
        let ledger = self.ledger();
        let fresh = ledger.shelves.range((spoiled, Bound::Unbounded));
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
        let records: Box<dyn Iterator<Item = &Record>> = match which.tenant {
            None => Box::new(ledger.records.range(range).map(|(_, record)| record)),
            Some(tenant) => {
                let keys = ledger.by_tenant.get(tenant).into_iter().flat_map(|keys| keys.range(range));
                Box::new(keys.filter_map(|key| ledger.records.get(key)))
            }
        };
        let listed = records.map(|record| &record.versioned).filter(|found| which.includes(&found.order));
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

    /// Nothing is written down here, so nothing is unreadable.
    async fn discard(&self, _key: &Key) -> Result<bool, StoreError> {
        Ok(false)
    }

    async fn count(&self, line: &Line, tally: &Tally) -> Result<(), StoreError> {
        self.ledger().book(line.clone(), tally);
        Ok(())
    }

    async fn books(&self, from: Day, to: Day) -> Result<Vec<(Line, Tally)>, StoreError> {
        let ledger = self.ledger();
        let asked = ledger.books.iter().filter(|(line, _)| from <= line.day && line.day <= to);
        Ok(asked.map(|(line, tally)| (line.clone(), *tally)).collect())
    }

    async fn close_books(&self, detail: Day, sums: Day) -> Result<(), StoreError> {
        let mut ledger = self.ledger();
        let books = std::mem::take(&mut ledger.books);
        for (mut line, tally) in books.into_iter().filter(|(line, _)| line.day >= sums) {
            if line.day < detail {
                line.site = Line::ALL_SITES.to_owned();
            }
            ledger.book(line, &tally);
        }
        Ok(())
    }

    async fn census(&self) -> Result<Census, StoreError> {
        let ledger = self.ledger();
        let mut census = Census::default();
        for record in ledger.records.values() {
            match Standing::of(&record.versioned.order) {
                Standing::Open => census.open += 1,
                Standing::Dead => census.dead += 1,
                Standing::AtRest => {}
            }
        }
        Ok(census)
    }
}

impl fmt::Debug for MemoryStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "MemoryStore({} orders, {} watches)", self.ledger().records.len(), self.watching())
    }
}

/// A handle; its clones share the same arrivals. It holds whatever it is given, and is never full.
#[derive(Clone, Debug, Default)]
pub struct MemorySpill {
    arrivals: Arc<Mutex<VecDeque<Arrival>>>,
    reachable_until: Arc<Mutex<Option<Timestamp>>>,
}

impl MemorySpill {
    fn arrivals(&self) -> MutexGuard<'_, VecDeque<Arrival>> {
        self.arrivals.lock().expect("nothing panics while it holds the arrivals")
    }
}

impl Spill for MemorySpill {
    fn keep(&self, arrival: &Arrival) -> Result<(), SpillError> {
        self.arrivals().push_back(arrival.clone());
        Ok(())
    }

    fn waiting(&self) -> Result<Vec<Arrival>, SpillError> {
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
