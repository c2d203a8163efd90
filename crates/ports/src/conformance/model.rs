//! Random operations on a store and on the memory store side by side, with a comparison of every result. This finds
//! bugs that no single promise names. One seed is one run, and a failure names its seed and its step.

use super::AVAILABLE;
use super::samples::{self, POLICY, START};
use crate::memory::MemoryStore;
use crate::store::{Commit, Day, Store, UsageRow, Version, Versioned, Which};
use crate::watch::Watch;
use futures_util::FutureExt;
use quittance_lifecycle::{
    Advance, CallbackResult, Counters, Decision, Event, Evidence, FaultClass, Key, KeySettings, Order,
    Placement, PollOutcome, SubmitOutcome, SubmitRoute, Timestamp, place, transition,
};
use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;

const NAMES: usize = 16;
const PAGES: usize = 2;
const TENANTS: [&str; 3] = ["O'Hara & S\u{f8}n", "alice", ""];
const WATCHES_MAX: usize = 6;

/// Runs a thousand operations of one seed. A store's own tests may run [`random_operations`] with many more.
pub async fn it_answers_like_the_memory_store(store: Arc<dyn Store>) {
    random_operations(store, 1, 1000).await;
}

/// Panics at the first result in which the store differs from the memory store.
pub async fn random_operations(store: Arc<dyn Store>, seed: u64, steps: usize) {
    let mut model = ModelCheck {
        store,
        reference: MemoryStore::default(),
        dice: ModelDice(seed),
        now: START,
        written: BTreeMap::new(),
        watches: Vec::new(),
        at: String::new(),
    };
    for step in 0..steps {
        model.at = format!("seed {seed}, step {step}");
        model.step().await;
        model.look_at_watches().await;
    }
}

fn key_of(name: &str) -> Key {
    Key::chosen(&samples::draft("").tenant, name)
}

/// A random number generator (SplitMix64).
struct ModelDice(u64);

impl ModelDice {
    fn members(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, sides: usize) -> usize {
        usize::try_from(self.members() % sides as u64).expect("it is less than a usize")
    }

    fn one_of<T: Clone>(&mut self, choices: &[T]) -> T {
        choices[self.below(choices.len())].clone()
    }
}

/// A write to both stores, with the version that each gave it.
#[derive(Clone)]
struct ModelWrite {
    order: Arc<Order>,
    ours: Version,
    theirs: Version,
}

/// One order, watched in both stores.
struct ModelWatch {
    ours: Watch,
    theirs: Watch,
    /// How many notices of earlier writes may still be on their way, if the store sends notices between processes.
    late: usize,
}

struct ModelCheck {
    store: Arc<dyn Store>,
    reference: MemoryStore,
    dice: ModelDice,
    now: Timestamp,
    /// Every write ever made, also of removed records: a frozen node may write over any of them.
    written: BTreeMap<Key, Vec<ModelWrite>>,
    watches: Vec<ModelWatch>,
    /// The seed and the step, for the message of a failure.
    at: String,
}

impl ModelCheck {
    async fn step(&mut self) {
        // Mostly little by little, or nothing would be alive; now and then far, or nothing would be forgotten.
        let span = match self.dice.below(60) {
            0 => 4_000_000,
            1 => 300_000,
            2..20 => self.dice.one_of(&[1, 10, 1000, 5000, 20_000]),
            _ => 0,
        };
        self.now = self.now + Duration::from_millis(span);
        match self.dice.below(22) {
            0..8 => self.commit().await,
            8..10 => self.claim_due().await,
            10 => self.list_stock().await,
            11..13 => self.take().await,
            13 => self.list().await,
            14 => self.purge().await,
            15 => self.count().await,
            16 => self.usage().await,
            17 => self.load().await,
            18 => self.watch().await,
            19 => self.compact_usage().await,
            20 => self.order_counts().await,
            _ => drop((!self.watches.is_empty()).then(|| self.watches.remove(0))),
        }
    }

    fn name(&mut self) -> String {
        format!("order {}", self.dice.below(NAMES))
    }

    fn page(&mut self) -> String {
        format!("https://example.com/{}", self.dice.below(PAGES))
    }

    fn key(&mut self) -> Key {
        key_of(&self.name())
    }

    fn limit(&mut self) -> usize {
        self.dice.one_of(&[0, 1, 2, 3, 100])
    }

    /// The current time with an error, because the clocks of nodes differ.
    fn skewed_now(&mut self) -> Timestamp {
        Timestamp::from_millis(self.now.as_millis() - self.dice.one_of(&[0, 0, 0, 1, 500, 7000]))
    }

    #[track_caller]
    fn same<T: Debug + PartialEq>(&self, what: &str, ours: &T, theirs: &T) {
        assert!(
            ours == theirs,
            "{}: {what}\n the reference says {ours:?}\n the store says {theirs:?}",
            self.at
        );
    }

    /// Compares records. Each store chooses its own versions, but they must name the same write.
    #[track_caller]
    fn same_records(&self, what: &str, ours: &[Versioned], theirs: &[Versioned]) {
        let orders = |all: &[Versioned]| all.iter().map(|record| record.order.clone()).collect::<Vec<_>>();
        self.same(what, &orders(ours), &orders(theirs));
        for (ours, theirs) in ours.iter().zip(theirs) {
            let writes = self.written.get(&ours.order.key).into_iter().flatten();
            let write = writes.filter(|write| write.ours == ours.version).map(|write| write.theirs).next();
            self.same(what, &write, &Some(theirs.version));
        }
    }

    async fn commit(&mut self) {
        let name = self.name();
        let key = key_of(&name);
        let class = self.reference.load(&key).await.expect(AVAILABLE).map(|record| record.version);
        let writes = self.written.get(&key).cloned().unwrap_or_default();
        let expected = match self.dice.below(8) {
            0 => None,
            1 if !writes.is_empty() => Some(self.dice.one_of(&writes)),
            _ => writes.iter().find(|write| Some(write.ours) == class).cloned(),
        };
        let Some(Advance { next, counters, .. }) =
            self.advance(&name, expected.as_ref().map(|expected| &*expected.order))
        else {
            return;
        };
        let (ours, theirs) =
            expected.map_or((Version::ABSENT, Version::ABSENT), |expected| (expected.ours, expected.theirs));
        let at = self.skewed_now();
        let next = Arc::new(next);
        let ours = self.reference.commit(ours, &next, &counters, at).await.expect(AVAILABLE);
        let theirs = self.store.commit(theirs, &next, &counters, at).await.expect(AVAILABLE);
        match (ours, theirs) {
            (Commit::Done(ours), Commit::Done(theirs)) => {
                let earlier = writes.iter().map(|write| write.theirs).max().unwrap_or(Version::ABSENT);
                assert!(theirs > earlier, "{}: {theirs:?} was given after {earlier:?}", self.at);
                self.written.entry(key).or_default().push(ModelWrite { order: next, ours, theirs });
            }
            (Commit::Conflict(ours), Commit::Conflict(theirs)) => {
                let list =
                    |record: Option<Box<Versioned>>| record.into_iter().map(|f| *f).collect::<Vec<_>>();
                self.same_records("who won", &list(ours), &list(theirs));
            }
            (ours, theirs) => self.same("a commit", &ours, &theirs),
        }
    }

    /// A random step of the order, if one is possible.
    fn advance(&mut self, name: &str, order: Option<&Order>) -> Option<Advance> {
        let now = self.now;
        if self.dice.below(4) == 0 {
            return Some(self.stock(name));
        }
        let Some(order) = order else { return self.place(name, None) };
        if self.dice.below(12) == 0 {
            // The same again: nothing is new but the version.
            return Some(Advance { next: order.clone(), counters: Counters::default(), effect: None });
        }
        if self.dice.below(12) == 0 {
            let next = samples::webhooks_failed(order, now);
            return Some(Advance { next, counters: Counters::default(), effect: None });
        }
        (0..8).find_map(|_| match self.event(order) {
            None => self.place(name, Some(order)),
            Some(event) => match transition(order, event, now, &POLICY) {
                Decision::Advance(advance) => Some(*advance),
                Decision::Act(_) | Decision::Ignore(_) => None,
            },
        })
    }

    fn place(&mut self, name: &str, record: Option<&Order>) -> Option<Advance> {
        let (key, terms) = match record {
            Some(order) => (order.key, Arc::clone(&order.terms)),
            None => {
                let kind = if self.dice.below(4) == 0 { samples::scribble() } else { samples::riddle() };
                let mut draft = samples::draft(&self.page());
                draft.idempotency_key = Some(name.into());
                let checked = draft.check(&kind, KeySettings::default(), &POLICY, self.now, 0);
                let (key, mut terms) = checked.expect("samples ask for nothing wrong");
                terms.tenant = self.dice.one_of(&TENANTS).into();
                (key, Arc::new(terms))
            }
        };
        match place(record, None, key, &terms, self.now, &POLICY) {
            Placement::Commit { advance, .. } => Some(*advance),
            Placement::Stands { .. } | Placement::Follow { .. } | Placement::Refused(_) => None,
        }
    }

    /// Puts an answer into stock directly. With random events alone, two answers would seldom be in one stock.
    fn stock(&mut self, name: &str) -> Advance {
        let expires = self.now + Duration::from_secs(self.dice.one_of(&[1, 30, 60, 120]));
        let stocked = samples::stocked(name, &self.page(), expires);
        let order = samples::of_tenant(&stocked.order, self.dice.one_of(&TENANTS));
        Advance { next: Arc::unwrap_or_clone(order), counters: stocked.counters, effect: None }
    }

    fn event(&mut self, order: &Order) -> Option<Event> {
        let attempt = order.last_attempt;
        let delivery = samples::delivery();
        let shut = SubmitRoute::ShutUntil(self.now + Duration::from_secs(30));
        let class = self.dice.one_of(&FaultClass::ALL);
        let refused = samples::refused(attempt, class);
        Some(match self.dice.below(17) {
            0 => return None,
            1..4 => samples::woken(),
            4 => Event::Woken { stamp: 1, route: shut },
            5 | 6 => samples::accepted(attempt),
            7 => refused,
            8 => Event::Submitted { attempt, outcome: SubmitOutcome::InDoubt(Evidence::default()) },
            9 => Event::Submitted { attempt, outcome: SubmitOutcome::Answered(delivery) },
            10 => Event::Polled { attempt, asked: self.now, outcome: PollOutcome::Answered(delivery) },
            11 => Event::Polled { attempt, asked: self.now, outcome: PollOutcome::Pending },
            12 => Event::CalledBack {
                attempt: 1,
                task: None,
                word: CallbackResult::Answered(delivery),
                receipt: None,
            },
            13 => Event::Claimed { by: order.key, min_life: Duration::ZERO },
            14 => Event::Cancelled,
            15 => Event::Returned { by: order.taker()? },
            _ => Event::Replayed,
        })
    }

    async fn claim_due(&mut self) {
        let (now, limit) = (self.skewed_now(), self.limit());
        let until = now + self.dice.one_of(&[0, 1, 30, 300]) * Duration::from_secs(1);
        let ours = self.reference.claim_due(now, until, limit).await.expect(AVAILABLE);
        let theirs = self.store.claim_due(now, until, limit).await.expect(AVAILABLE);
        self.same_records("what is due", &ours.orders, &theirs.orders);
        self.same("the next timer", &ours.next, &theirs.next);
    }

    async fn list_stock(&mut self) {
        let (target, now, limit) = (samples::target(&self.page()), self.skewed_now(), self.limit());
        let ours = self.reference.list_stock(&target, now, limit).await.expect(AVAILABLE);
        let theirs = self.store.list_stock(&target, now, limit).await.expect(AVAILABLE);
        self.same("a stock", &ours, &theirs);
    }

    /// Takes from stock, with few takers for each page, so that some repeat.
    async fn take(&mut self) {
        let page = self.page();
        let target = samples::target(&page);
        let by = key_of(&format!("taker {} of {page}", self.dice.below(4)));
        let good_until = self.now + Duration::from_secs(self.dice.one_of(&[0, 30, 60]));
        let at = self.skewed_now();
        let counters = Counters { from_stock: 1, ..Counters::default() };
        let ours = self.reference.take(&target, good_until, &by, at, &counters).await.expect(AVAILABLE);
        let theirs = self.store.take(&target, good_until, &by, at, &counters).await.expect(AVAILABLE);
        let orders = |record: &Option<Versioned>| record.as_ref().map(|record| Arc::clone(&record.order));
        self.same("what was taken", &orders(&ours), &orders(&theirs));
        let (Some(ours), Some(theirs)) = (ours, theirs) else { return };
        let writes = self.written.entry(ours.order.key).or_default();
        if writes.iter().all(|write| write.ours != ours.version) {
            let (order, ours, theirs) = (ours.order, ours.version, theirs.version);
            writes.push(ModelWrite { order, ours, theirs });
        }
    }

    async fn list(&mut self) {
        let which = self.dice.one_of(&[Which::ALL, Which::OPEN, Which::DEAD]);
        let which = if self.dice.below(2) == 0 { which } else { which.of(self.dice.one_of(&TENANTS)) };
        let after = (self.dice.below(2) == 0).then(|| self.key());
        let limit = self.limit();
        let ours = super::list(&self.reference, which, after.as_ref(), limit).await;
        let theirs = super::list(&*self.store, which, after.as_ref(), limit).await;
        self.same_records("a list", &ours, &theirs);
    }

    async fn purge(&mut self) {
        let (now, limit) = (self.skewed_now(), self.limit());
        let ours = self.reference.purge(now, limit).await.expect(AVAILABLE);
        let theirs = self.store.purge(now, limit).await.expect(AVAILABLE);
        self.same("a purge", &ours, &theirs);
    }

    async fn count(&mut self) {
        let tenant = self.dice.one_of(&["ann", "Bob", "eve", "Zoe"]).into();
        let site = self.dice.one_of(&["", "a.test", "b.test"]).into();
        let account = self.dice.one_of(&["one USD", "two USD", "one RUB"]).into();
        let line = UsageRow { day: Day::of(self.now), tenant, kind: "riddle".into(), site, account };
        let amount = self.dice.one_of(&[0, 1, 1_000_000_007]);
        let counters = Counters { asked: amount, joined: amount / 2, ..Counters::default() };
        self.reference.count(&line, &counters).await.expect(AVAILABLE);
        self.store.count(&line, &counters).await.expect(AVAILABLE);
    }

    async fn usage(&mut self) {
        let today = Day::of(self.now);
        let from = Day(today.0 - self.dice.members() % 6);
        let ours = self.reference.usage(from, today).await.expect(AVAILABLE);
        let theirs = self.store.usage(from, today).await.expect(AVAILABLE);
        self.same("the usage", &ours, &theirs);
    }

    async fn compact_usage(&mut self) {
        let today = Day::of(self.now);
        let detail = Day(today.0 - self.dice.members() % 3);
        let sums = Day(detail.0 - self.dice.members() % 3);
        self.reference.compact_usage(detail, sums).await.expect(AVAILABLE);
        self.store.compact_usage(detail, sums).await.expect(AVAILABLE);
    }

    async fn order_counts(&mut self) {
        let ours = self.reference.order_counts().await.expect(AVAILABLE);
        let theirs = self.store.order_counts().await.expect(AVAILABLE);
        self.same("a order_counts", &ours, &theirs);
    }

    async fn load(&mut self) {
        let key = self.key();
        let ours = self.reference.load(&key).await.expect(AVAILABLE);
        let theirs = self.store.load(&key).await.expect(AVAILABLE);
        self.same_records("a record", ours.as_slice(), theirs.as_slice());
    }

    async fn watch(&mut self) {
        if self.watches.len() < WATCHES_MAX {
            let key = self.key();
            let ours = self.reference.watch(&key).await.expect(AVAILABLE);
            let theirs = self.store.watch(&key).await.expect(AVAILABLE);
            let awaited =
                self.written.get(&key).into_iter().flatten().filter(|write| !write.order.is_awaited());
            self.watches.push(ModelWatch { ours, theirs, late: awaited.count() });
        }
    }

    /// Compares watches: if the reference has woken one, the store must wake it, too, though perhaps later. Otherwise
    /// the store should not have.
    async fn look_at_watches(&mut self) {
        for ModelWatch { ours, theirs, late } in &mut self.watches {
            if ours.changed().now_or_never().is_some() {
                theirs.changed().await;
            } else if theirs.changed().now_or_never().is_some() {
                assert!(*late > 0, "{}: woken for nothing", self.at);
                *late -= 1;
            }
        }
    }
}
