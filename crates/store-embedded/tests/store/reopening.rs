//! Tests that a reopened store is unchanged: orders, versions, indices, usage. Only claims end with the process.

use super::{NO_CACHE, commit, create, now, write};
use async_trait::async_trait;
use quittance_lifecycle::{Counters, Key, Order, Target, Timestamp};
use quittance_ports::conformance::{model, samples};
use quittance_ports::{
    Commit, Day, Due, Membership, OrderCounts, Store, StoreError, Unreadable, UsageRow, Version, Versioned,
    Watch, Watchers, Which,
};
use quittance_store_embedded::{EmbeddedStore, Settings};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

/// A store that is reopened before every call, unless an order is claimed, because claims do not survive that. A
/// waiting caller waits here.
struct Restless {
    dir: PathBuf,
    settings: Settings,
    state: Mutex<ReopenState>,
    watchers: Watchers,
}

struct ReopenState {
    store: Option<EmbeddedStore>,
    claimed: BTreeSet<Key>,
    last_write: Version,
    reopened: usize,
}

impl ReopenState {
    /// Notes a write, which ends a claim. An answer that a claimant gets again is not written.
    fn note(&mut self, version: Version, key: &Key) {
        if version > self.last_write {
            self.last_write = version;
            self.claimed.remove(key);
        }
    }
}

impl Restless {
    fn new(dir: &Path, settings: Settings) -> Self {
        let state =
            ReopenState { store: None, claimed: BTreeSet::new(), last_write: Version::ABSENT, reopened: 0 };
        Self { dir: dir.to_owned(), settings, state: Mutex::new(state), watchers: Watchers::default() }
    }

    fn store(&self) -> EmbeddedStore {
        let mut state = self.state.lock().unwrap();
        if state.claimed.is_empty() {
            state.store = None;
            state.reopened += 1;
        }
        let open = || EmbeddedStore::open_with(&self.dir, &self.settings).unwrap();
        state.store.get_or_insert_with(open).clone()
    }
}

#[async_trait]
impl Store for Restless {
    async fn load(&self, key: &Key) -> Result<Option<Versioned>, StoreError> {
        self.store().load(key).await
    }

    async fn commit(
        &self,
        expected: Version,
        next: &Arc<Order>,
        counters: &Counters,
        at: Timestamp,
    ) -> Result<Commit, StoreError> {
        let commit = self.store().commit(expected, next, counters, at).await?;
        if let Commit::Done(version) = &commit {
            self.state.lock().unwrap().note(*version, &next.key);
            if !next.is_awaited() {
                self.watchers.wake(&next.key);
            }
        }
        Ok(commit)
    }

    async fn claim_due(&self, now: Timestamp, until: Timestamp, limit: usize) -> Result<Due, StoreError> {
        let due = self.store().claim_due(now, until, limit).await?;
        let keys = due.orders.iter().map(|record| record.order.key);
        self.state.lock().unwrap().claimed.extend(keys);
        Ok(due)
    }

    async fn take(
        &self,
        target: &Target,
        good_until: Timestamp,
        by: &Key,
        at: Timestamp,
        counters: &Counters,
    ) -> Result<Option<Versioned>, StoreError> {
        let taken = self.store().take(target, good_until, by, at, counters).await?;
        if let Some(record) = &taken {
            self.state.lock().unwrap().note(record.version, &record.order.key);
        }
        Ok(taken)
    }

    async fn list_stock(
        &self,
        target: &Target,
        now: Timestamp,
        limit: usize,
    ) -> Result<Vec<Key>, StoreError> {
        self.store().list_stock(target, now, limit).await
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
        self.store().list(which, after, limit).await
    }

    async fn purge(&self, now: Timestamp, limit: usize) -> Result<usize, StoreError> {
        self.store().purge(now, limit).await
    }

    async fn discard(&self, key: &Key) -> Result<bool, StoreError> {
        self.store().discard(key).await
    }

    async fn count(&self, line: &UsageRow, counters: &Counters) -> Result<(), StoreError> {
        self.store().count(line, counters).await
    }

    async fn usage(&self, from: Day, to: Day) -> Result<Vec<(UsageRow, Counters)>, StoreError> {
        self.store().usage(from, to).await
    }

    async fn compact_usage(&self, detail: Day, sums: Day) -> Result<(), StoreError> {
        self.store().compact_usage(detail, sums).await
    }

    async fn order_counts(&self) -> Result<OrderCounts, StoreError> {
        self.store().order_counts().await
    }
}

#[test]
fn a_store_that_is_closed_and_opened_again_and_again_answers_like_the_memory_store() {
    let mut reopened = 0;
    for seed in 1..=8 {
        let dir = tempfile::tempdir().unwrap();
        let settings = if seed % 2 == 0 { NO_CACHE } else { Settings::default() };
        let store = Arc::new(Restless::new(dir.path(), settings));
        now(model::random_operations(store.clone(), seed, 400));
        reopened += store.state.lock().unwrap().reopened;
    }
    assert!(reopened > 100, "it was reopened only {reopened} times");
}

#[test]
fn it_answers_like_the_memory_store_on_many_seeds_with_a_cache_that_is_too_small() {
    let settings = Settings { cache_orders_max: 64, cache_bytes_max: 1 << 20, waiting_max: 100 };
    for seed in 100..108 {
        let dir = tempfile::tempdir().unwrap();
        let store = EmbeddedStore::open_with(dir.path(), &settings).unwrap();
        now(model::random_operations(Arc::new(store), seed, 1500));
    }
}

/// Everything that is visible of a store.
fn everything(store: &EmbeddedStore) -> impl PartialEq + std::fmt::Debug + use<> {
    let list = |which| {
        let record = now(store.list(which, None, 1000)).unwrap();
        record.into_iter().map(Result::unwrap).collect::<Vec<_>>()
    };
    let stock =
        now(store.list_stock(&samples::target("https://example.com/login"), samples::START, 100)).unwrap();
    let usage = now(store.usage(Day(0), Day(u64::MAX))).unwrap();
    let next = now(store.claim_due(Timestamp::ZERO, Timestamp::ZERO, 0)).unwrap().next;
    (list(Which::ALL), list(Which::OPEN), list(Which::DEAD), stock, usage, next)
}

#[test]
fn what_is_closed_and_opened_again_is_what_it_was() {
    let dir = tempfile::tempdir().unwrap();
    let store = EmbeddedStore::open(dir.path()).unwrap();
    let mut last = Version::ABSENT;
    for sample in samples::every_phase() {
        let done =
            now(store.commit(Version::ABSENT, &sample.order, &sample.counters, samples::START)).unwrap();
        let Commit::Done(version) = done else { panic!("only this test writes here") };
        last = last.max(version);
    }
    let before = everything(&store);
    let later = samples::after(100_000);
    drop(store);

    let store = EmbeddedStore::open(dir.path()).unwrap();
    assert_eq!(everything(&store), before);
    assert_eq!(store.transactions(), 0, "to look at it writes nothing");
    assert!(create(&store, &samples::queued("new", samples::START).order) > last, "versions grow on");
    let mut due = now(store.claim_due(later, later, 1000)).unwrap().orders;
    assert!(!due.is_empty());
    assert!(due.iter().all(|record| record.order.due().is_some_and(|at| at <= later)));
    due.sort_by_key(|record| record.order.key);
    let waiting: Vec<_> = now(store.list(Which::ALL, None, 1000)).unwrap();
    let waiting: Vec<_> =
        waiting.into_iter().map(Result::unwrap).filter(|f| f.order.due().is_some()).collect();
    assert_eq!(due, waiting, "and every order that waits has a timer");
}

#[test]
fn a_version_never_comes_back_even_if_its_record_was_purged_and_the_store_reopened() {
    let dir = tempfile::tempdir().unwrap();
    let store = EmbeddedStore::open(dir.path()).unwrap();
    let failed = samples::failed("phoenix", samples::START).order;
    let version = create(&store, &failed);
    let last = write(&store, version, &failed);
    assert_eq!(now(store.purge(samples::after(100_000), 10)).unwrap(), 1);
    drop(store);
    let store = EmbeddedStore::open(dir.path()).unwrap();
    assert_eq!(now(store.load(&failed.key)).unwrap(), None);
    assert!(create(&store, &failed) > last);
}

#[test]
fn a_claim_ends_with_the_process_and_writes_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let order = samples::queued("claimed", samples::START).order;
    let store = EmbeddedStore::open(dir.path()).unwrap();
    create(&store, &order);
    let claim = |store: &EmbeddedStore| {
        now(store.claim_due(samples::after(1), samples::after(1000), 10)).unwrap().orders.len()
    };
    let written = store.transactions();
    assert_eq!((claim(&store), claim(&store)), (1, 0));
    assert_eq!(store.transactions(), written);
    drop(store);
    let store = EmbeddedStore::open(dir.path()).unwrap();
    assert_eq!(claim(&store), 1);
}

#[test]
fn a_sealed_store_stays_sealed_and_can_be_read() {
    let dir = tempfile::tempdir().unwrap();
    let order = samples::queued("moved", samples::START).order;
    {
        let store = EmbeddedStore::open(dir.path()).unwrap();
        create(&store, &order);
        now(store.seal(Some("moved to the other machine"))).unwrap();
        assert!(matches!(commit(&store, Version::ABSENT, &order), Err(StoreError::Unavailable { .. })));
    }
    let store = EmbeddedStore::open(dir.path()).unwrap();
    assert_eq!(now(store.sealed()).unwrap().as_deref(), Some("moved to the other machine"));
    let far = Timestamp::MAX;
    assert!(now(store.claim_due(far, far, 10)).is_err(), "no node works here any more");
    assert!(now(store.purge(far, 10)).is_err());
    assert!(now(store.compact_usage(Day(9), Day(5))).is_err());
    assert_eq!(now(store.order_counts()).unwrap(), OrderCounts { open: 1, dead: 0 });
    assert_eq!(now(store.load(&order.key)).unwrap().unwrap().order, order);
    now(store.seal(None)).unwrap();
    assert_eq!(now(store.claim_due(far, far, 10)).unwrap().orders.len(), 1);
}
