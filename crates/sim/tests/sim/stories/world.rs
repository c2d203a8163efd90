//! The fixture of the scenarios: one store, one scripted provider, nodes that start and stop, and callers that record
//! their outcomes and when they got them.

use crate::stories::far_membership::FarMembership;
use crate::stories::post::StoryWebhooks;
use crate::stories::provider::StoryScript;
use crate::stories::store::MoodyStore;
use async_trait::async_trait;
use futures_util::FutureExt;
use futures_util::future::{AbortHandle, abortable};
use quittance_engine::{
    CallbackAddress, CallbackOutcome, Engine, NotSafe, Outcome, PlaceError, PlacedOrder, Settings,
};
use quittance_lifecycle::{CallbackResult, Counters, Draft, Key, Order, Policy, Refusal, Reuse, Timestamp};
use quittance_ports::{Clock, Day, Members, MemoryMembership, MemorySpill, Provider, Spill, Store, Which};
use quittance_sim::executor::{Executor, Group, WORLD};
use std::cell::Cell;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

/// A moment in 2027. Any moment would do.
const START: u64 = 1_800_000_000_000;

pub(crate) const fn since_start(now: u64) -> u64 {
    now - START
}

pub(crate) struct StoryWorld {
    pub(crate) executor: Executor,
    pub(crate) store: MoodyStore,
    pub(crate) provider: StoryScript,
    pub(crate) post: StoryWebhooks,
    pub(crate) membership: MemoryMembership,
    /// The way from the nodes to the membership.
    pub(crate) way: FarMembership,
    pub(crate) policy: Policy,
    last_group: Cell<Group>,
}

/// A fixture in which the provider cannot call us, so answers are polled.
pub(crate) fn world() -> StoryWorld {
    world_with(Policy::DEFAULT, 1)
}

/// A fixture in which the provider calls us when the test says so.
pub(crate) fn world_with_callbacks() -> StoryWorld {
    world_with(Policy { callbacks: true, ..Policy::DEFAULT }, 1)
}

/// A fixture in which `seed` decides which task runs first if several can.
pub(crate) fn world_with(policy: Policy, seed: u64) -> StoryWorld {
    let executor = Executor::new(seed, START, false);
    let membership = MemoryMembership::default();
    StoryWorld {
        store: MoodyStore::new(&executor),
        provider: StoryScript::new(&executor),
        post: StoryWebhooks::new(&executor),
        way: FarMembership::new(&executor, membership.clone()),
        membership,
        executor,
        policy,
        last_group: Cell::new(WORLD),
    }
}

impl StoryWorld {
    /// Milliseconds since the test began.
    pub(crate) fn now(&self) -> u64 {
        since_start(self.executor.now())
    }

    /// The moment this many milliseconds after the test began.
    pub(crate) fn moment(&self, ms: u64) -> Timestamp {
        Timestamp::from_millis(START + ms)
    }

    /// Advances the time, and runs everything that happens in it.
    pub(crate) fn after(&self, seconds: u64) {
        self.after_ms(seconds * 1000);
    }

    pub(crate) fn after_ms(&self, span: u64) {
        let until = self.executor.now() + span;
        let timer = self.executor.sleep_until(until);
        self.executor.spawn(WORLD, timer);
        self.executor.run(until, || false);
    }

    /// Runs everything that is due at this moment.
    pub(crate) fn settle(&self) {
        self.after_ms(0);
    }

    pub(crate) fn node(&self) -> StoryNode {
        self.node_with(Arc::new(MemorySpill::default()), |_| {})
    }

    /// Starts a node with the spill of an earlier one.
    pub(crate) fn node_on(&self, spill: Arc<dyn Spill>) -> StoryNode {
        self.node_with(spill, |_| {})
    }

    pub(crate) fn node_with(&self, spill: Arc<dyn Spill>, adjust: impl FnOnce(&mut Settings)) -> StoryNode {
        self.node_at(spill, vec![Arc::new(self.provider.clone())], adjust)
    }

    /// Starts a node with these providers.
    pub(crate) fn node_at(
        &self,
        spill: Arc<dyn Spill>,
        providers: Vec<Arc<dyn Provider>>,
        adjust: impl FnOnce(&mut Settings),
    ) -> StoryNode {
        self.last_group.set(self.last_group.get() + 1);
        let group = self.last_group.get();
        let mut settings = Settings::new(group, quittance_protocol::kinds::kind);
        settings.policy = self.policy;
        settings.callback =
            self.policy.callbacks.then(|| CallbackAddress::new("http://us/callback", [7; 32]));
        adjust(&mut settings);
        let clock = Arc::new(TrueClock { executor: self.executor.clone(), asked: Mutex::default() });
        let store = Arc::new(self.store.clone());
        let engine = Engine::new(
            quittance_engine::World {
                store,
                providers,
                clock,
                spill,
                webhook_sender: Arc::new(self.post.clone()),
                membership: Arc::new(self.way.clone()),
            },
            settings,
        );
        let node = StoryNode {
            engine: Arc::new(engine),
            executor: self.executor.clone(),
            group,
            working: Arc::new(AtomicBool::new(true)),
        };
        // Other nodes are learned of from the roll, and there is none that says anything.
        node.engine.heed_members(&Members::default());
        if self.policy.callbacks {
            node.engine.listens_for_callbacks();
        }
        let (engine, working) = (Arc::clone(&node.engine), Arc::clone(&node.working));
        self.executor.spawn(group, async move {
            engine.work().await;
            working.store(false, Ordering::Relaxed);
        });
        self.settle();
        node
    }

    /// The usage of all days, after counters without a commit are written.
    pub(crate) fn usage(&self) -> Counters {
        let mut sum = Counters::default();
        self.usage_by_account().into_values().for_each(|counters| sum += counters);
        sum
    }

    /// The usage of all days for each account: its provider and its currency.
    pub(crate) fn usage_by_account(&self) -> BTreeMap<String, Counters> {
        self.after(2);
        let mut accounts: BTreeMap<String, Counters> = BTreeMap::new();
        let lines = self.store.truth().usage(Day(0), Day(u64::MAX)).now_or_never().and_then(Result::ok);
        for (line, counters) in lines.expect("the usage can be read") {
            *accounts.entry(line.account).or_default() += counters;
        }
        accounts
    }

    /// Every order on record.
    pub(crate) fn orders(&self) -> Vec<Arc<Order>> {
        let record =
            self.store.truth().list(Which::ALL, None, usize::MAX).now_or_never().and_then(Result::ok);
        record.expect("the orders can be read").into_iter().flatten().map(|record| record.order).collect()
    }
}

/// The true time. It also detects a worker that spins: then time does not advance, and the test would never end.
struct TrueClock {
    executor: Executor,
    /// How often the clock was read since time last advanced.
    asked: Mutex<(u64, u32)>,
}

/// A correct node never reads the clock so often within one millisecond.
const LOOKS_MAX: u32 = 100_000;

#[async_trait]
impl Clock for TrueClock {
    fn now(&self) -> Timestamp {
        let now = self.executor.now();
        let mut asked = lock(&self.asked);
        *asked = (now, if asked.0 == now { asked.1 + 1 } else { 0 });
        let is_spinning = asked.1 > LOOKS_MAX;
        drop(asked);
        assert!(
            !is_spinning,
            "the worker spins: it looks at the clock again and again, and waits for nothing"
        );
        Timestamp::from_millis(now)
    }

    async fn sleep_until(&self, moment: Timestamp) {
        self.executor.sleep_until(moment.as_millis()).await;
    }
}

/// A node of the fixture. Every call to the node runs inside it, so a kill also ends the request.
pub(crate) struct StoryNode {
    pub(crate) engine: Arc<Engine>,
    executor: Executor,
    group: Group,
    working: Arc<AtomicBool>,
}

impl StoryNode {
    pub(crate) fn kill(&self) {
        self.executor.kill(self.group);
    }

    /// Whether the node still carries out orders. False after it was stopped and has finished.
    pub(crate) fn is_working(&self) -> bool {
        self.working.load(Ordering::Relaxed)
    }

    /// Places an order at this node for a caller that waits. When this returns, everything that can happen at once
    /// has happened.
    pub(crate) fn asks(&self, request_spec: StoryOrder) -> StoryCaller {
        let caller = self.begins(request_spec);
        self.executor.run(self.executor.now(), || false);
        caller
    }

    /// Places an order at this node for a caller that waits. When this returns, nothing has happened yet.
    pub(crate) fn begins(&self, request_spec: StoryOrder) -> StoryCaller {
        let notes = Arc::new(Mutex::new(CallerNotes::default()));
        let (engine, executor, noted) = (Arc::clone(&self.engine), self.executor.clone(), Arc::clone(&notes));
        let (served, hang_up) = abortable(async move {
            let placed = engine.place(request_spec.kind, request_spec.draft).await;
            let ticket = placed.as_ref().ok().cloned();
            lock(&noted).placed = Some((since_start(executor.now()), placed));
            let Some(ticket) = ticket else { return };
            let outcome = engine.wait(&ticket).await;
            lock(&noted).last_outcome = Some((since_start(executor.now()), outcome));
        });
        self.executor.spawn(self.group, served.map(drop));
        StoryCaller { notes, hang_up }
    }

    /// Sends a callback of the provider. Returns when it has been answered.
    pub(crate) fn hears(&self, address: &str, word: CallbackResult) -> Result<CallbackOutcome, NotSafe> {
        let engine = Arc::clone(&self.engine);
        let segment = address.rsplit('/').next().unwrap_or_default().to_owned();
        self.does(async move { engine.called_back(&segment, None, word, Duration::ZERO).await })
    }

    pub(crate) fn reads(&self, key: Key) -> Arc<Order> {
        let engine = Arc::clone(&self.engine);
        let read = self.does(async move { engine.read(&key).await });
        read.expect("the store is there").expect("the order is on record")
    }

    /// Runs a future on this node as long as the node runs.
    pub(crate) fn keeps_doing(&self, work: impl Future<Output = ()> + Send + 'static) {
        self.executor.spawn(self.group, work);
    }

    /// Runs a future on this node until it ends, for at most a minute.
    pub(crate) fn does<T: Send + 'static>(&self, work: impl Future<Output = T> + Send + 'static) -> T {
        self.tries(work, 60).expect("it is done within a minute")
    }

    /// Runs a future on this node for this many seconds. Returns its result if it has ended by then.
    pub(crate) fn tries<T: Send + 'static>(
        &self,
        work: impl Future<Output = T> + Send + 'static,
        seconds: u64,
    ) -> Option<T> {
        let done = Arc::new(Mutex::new(None));
        let slot = Arc::clone(&done);
        self.executor.spawn(self.group, async move {
            let outcome = work.await;
            *lock(&slot) = Some(outcome);
        });
        self.executor.run(self.executor.now() + seconds * 1000, || lock(&done).is_some());
        lock(&done).take()
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().expect("one thread, and a panic ends the story")
}

#[derive(Default)]
struct CallerNotes {
    placed: Option<(u64, Result<PlacedOrder, PlaceError>)>,
    last_outcome: Option<(u64, Outcome)>,
}

/// A caller that placed an order.
pub(crate) struct StoryCaller {
    notes: Arc<Mutex<CallerNotes>>,
    hang_up: AbortHandle,
}

impl StoryCaller {
    /// Closes the caller's connection, and drops the future that served it.
    pub(crate) fn hangs_up(&self) {
        self.hang_up.abort();
    }

    pub(crate) fn placed(&self) -> PlacedOrder {
        match &lock(&self.notes).placed {
            Some((_, Ok(placed))) => placed.clone(),
            other => panic!("the order was not accepted: {other:?}"),
        }
    }

    pub(crate) fn is_placed(&self) -> bool {
        matches!(lock(&self.notes).placed, Some((_, Ok(_))))
    }

    /// When the placement was accepted or refused, in milliseconds since the test began.
    pub(crate) fn placed_at(&self) -> Option<u64> {
        lock(&self.notes).placed.as_ref().map(|(at, _)| *at)
    }

    pub(crate) fn key(&self) -> Key {
        self.placed().key
    }

    pub(crate) fn refusal(&self) -> Option<Refusal> {
        match &lock(&self.notes).placed {
            Some((_, Err(PlaceError::Refused(refusal)))) => Some(refusal.clone()),
            _ => None,
        }
    }

    pub(crate) fn last_outcome(&self) -> Option<Outcome> {
        lock(&self.notes).last_outcome.as_ref().map(|(_, outcome)| outcome.clone())
    }

    pub(crate) fn answered_at(&self) -> Option<u64> {
        lock(&self.notes).last_outcome.as_ref().map(|(at, _)| *at)
    }

    /// The text of the answer that this caller got.
    pub(crate) fn token(&self) -> Option<String> {
        match self.last_outcome() {
            Some(Outcome::Answered(answer)) => Some(answer.payload.text),
            _ => None,
        }
    }
}

/// The order that a caller places.
#[derive(Clone)]
pub(crate) struct StoryOrder {
    kind: &'static str,
    pub(crate) draft: Draft,
}

/// A token that lives 300 s, with a margin of 50 s. Half of the answers come within 10 s.
pub(crate) fn turnstile(site: &str) -> StoryOrder {
    shared("turnstile", &[("sitekey", site), ("pageurl", "https://example.com/login")])
}

/// A token that lives 120 s, with a margin of 40 s. Half of the answers come within 20 s.
pub(crate) fn recaptcha(site: &str) -> StoryOrder {
    shared("recaptcha_v2", &[("googlekey", site), ("pageurl", "https://example.com/login")])
}

/// A shared order, because most tests are about equal orders without a key.
fn shared(kind: &'static str, params: &[(&str, &str)]) -> StoryOrder {
    let draft = Draft { reuse: Some(Reuse::Shared), ..Draft::new("ada") };
    let draft = params.iter().fold(draft, |draft, (name, value)| draft.with(name, *value));
    StoryOrder { kind, draft }
}

impl StoryOrder {
    pub(crate) fn exclusive(mut self) -> Self {
        self.draft.reuse = Some(Reuse::Exclusive);
        self
    }

    pub(crate) fn keyed(mut self, key: &str) -> Self {
        self.draft.idempotency_key = Some(key.into());
        self
    }

    /// Requests this many seconds of life for the answer.
    pub(crate) fn needing(mut self, seconds: u64) -> Self {
        self.draft.min_life = Some(Duration::from_secs(seconds));
        self
    }

    /// Sets how many seconds the order may take.
    pub(crate) fn within(mut self, seconds: u64) -> Self {
        self.draft.timeout = Some(Duration::from_secs(seconds));
        self
    }
}
