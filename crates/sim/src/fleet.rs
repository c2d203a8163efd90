//! The nodes: started, killed, frozen, restarted, each with a clock and a disk of its own. Whoever calls a node
//! runs inside it, so that a kill takes the half-finished request along.

use crate::dice::Dice;
use crate::executor::{Executor, Group, Slot, locked};
use crate::provider::{Line, Service};
use crate::store::RudeStore;
use crate::truth::{Trouble, Truth};
use crate::weather::Weather;
use async_trait::async_trait;
use quittance_engine::{Engine, Settings, World};
use quittance_lifecycle::{Timestamp, Word};
use quittance_ports::{
    Card, Clock, MemoryCourier, MemoryRoster, MemorySpill, MemoryStore, Provider, Roster, Spill, Store,
};
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex};

/// How often a node signs in, as outside the simulation.
const SIGN_IN: u64 = 2_000;

/// No clock is further from the truth than this. What is promised about freshness is promised within it.
pub(crate) const SKEW_MAX: i64 = 2_500;

/// A clock that may be wrong, and may be set right, or more wrong, at any time.
pub(crate) struct NodeClock {
    executor: Executor,
    off_by: Arc<AtomicI64>,
}

#[async_trait]
impl Clock for NodeClock {
    fn now(&self) -> Timestamp {
        let off_by = self.off_by.load(Ordering::Relaxed);
        Timestamp::from_millis(self.executor.now().saturating_add_signed(off_by))
    }

    async fn sleep_until(&self, moment: Timestamp) {
        let span = moment.as_millis().saturating_sub(self.now().as_millis());
        self.executor.sleep(span).await;
    }
}

struct Node {
    /// Absent while it is down.
    up: Option<(Arc<Engine>, Group)>,
    restart_at: u64,
    off_by: Arc<AtomicI64>,
    /// The disk: it survives what the node does not.
    spill: MemorySpill,
}

/// A store for one node, made from the real one.
pub(crate) type WrapStore = fn(Arc<dyn Store>, &Executor, Group) -> Arc<dyn Store>;

/// What the nodes are built from, and what a planted wrong idea may replace.
pub struct Parts {
    pub settings: Settings,
    pub wrap_store: WrapStore,
    pub wrap_provider: fn(Arc<dyn Provider>) -> Arc<dyn Provider>,
    pub wrap_spill: fn(Arc<dyn Spill>) -> Arc<dyn Spill>,
    /// Whether callbacks are acknowledged before they are taken in.
    pub acks_early: bool,
}

impl std::fmt::Debug for Parts {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Parts").field("settings", &self.settings).finish_non_exhaustive()
    }
}

pub(crate) struct Fleet {
    executor: Executor,
    weather: Arc<Weather>,
    truth: Arc<Mutex<Truth>>,
    service: Arc<Service>,
    store: MemoryStore,
    roster: MemoryRoster,
    parts: Parts,
    nodes: Mutex<Vec<Node>>,
    dice: Mutex<Dice>,
    last_group: Mutex<Group>,
}

impl Fleet {
    pub(crate) fn new(
        service: &Arc<Service>,
        store: MemoryStore,
        parts: Parts,
        size: usize,
        mut dice: Dice,
    ) -> Arc<Self> {
        let skew = |dice: &mut Dice| Arc::new(AtomicI64::new(random_skew(dice)));
        let nodes = (0..size)
            .map(|_| Node { up: None, restart_at: 0, off_by: skew(&mut dice), spill: MemorySpill::default() })
            .collect();
        let fleet = Arc::new(Self {
            executor: service.executor.clone(),
            weather: Arc::clone(&service.weather),
            truth: Arc::clone(&service.truth),
            service: Arc::clone(service),
            store,
            roster: MemoryRoster::default(),
            parts,
            nodes: Mutex::new(nodes),
            dice: Mutex::new(dice),
            last_group: Mutex::new(0),
        });
        *locked(&service.fleet) = Some(Arc::clone(&fleet));
        fleet
    }

    /// Starts every node that is down and may come back.
    pub(crate) fn start_nodes(self: &Arc<Self>) {
        self.bury_the_dead();
        let now = self.executor.now();
        for (number, node) in locked(&self.nodes).iter_mut().enumerate() {
            if node.up.is_none() && now >= node.restart_at {
                let group = self.new_group();
                let engine = Arc::new(self.new_engine(group, node));
                self.executor.note(|| format!("node {number} starts as {group}"));
                self.executor.spawn(group, {
                    let engine = Arc::clone(&engine);
                    async move { engine.work().await }
                });
                self.keep_on_the_roll(number, group, &engine);
                node.up = Some((engine, group));
            }
        }
    }

    /// A node listens for callbacks, and tells the others how it could be reached, for as long as it runs.
    fn keep_on_the_roll(&self, number: usize, group: Group, engine: &Arc<Engine>) {
        let (executor, roster, engine) = (self.executor.clone(), self.roster.clone(), Arc::clone(engine));
        if self.parts.settings.callback.is_some() {
            engine.listens_for_callbacks();
        }
        let started = Timestamp::from_millis(executor.now());
        self.executor.spawn(group, async move {
            loop {
                let card = Card {
                    node: engine.node(),
                    name: format!("node {number}"),
                    version: String::new(),
                    format: 1,
                    started,
                    at: Timestamp::from_millis(executor.now()),
                    skew_ms: None,
                    vitals: engine.vitals(),
                    reach: engine.reach(),
                    demand: engine.demand(),
                };
                if roster.sign_in(&card).await.is_ok()
                    && let Ok(roll) = roster.roll().await
                {
                    engine.heed_roll(&roll);
                }
                executor.sleep(SIGN_IN).await;
            }
        });
    }

    fn new_group(&self) -> Group {
        let mut last = locked(&self.last_group);
        *last += 1;
        *last
    }

    fn new_engine(&self, group: Group, node: &Node) -> Engine {
        let store: Arc<dyn Store> = Arc::new(RudeStore {
            inner: self.store.clone(),
            executor: self.executor.clone(),
            weather: Arc::clone(&self.weather),
            dice: Mutex::new(Dice::new(locked(&self.dice).roll(), "store")),
        });
        let provider = Arc::new(Line { service: Arc::clone(&self.service), node: group });
        let clock = Arc::new(NodeClock { executor: self.executor.clone(), off_by: Arc::clone(&node.off_by) });
        let world = World {
            store: (self.parts.wrap_store)(store, &self.executor, group),
            provider: (self.parts.wrap_provider)(provider),
            clock,
            spill: (self.parts.wrap_spill)(Arc::new(node.spill.clone())),
            courier: Arc::new(MemoryCourier::default()),
            roster: Arc::new(self.roster.clone()),
        };
        let mut settings = self.parts.settings.clone();
        settings.node = locked(&self.dice).roll();
        Engine::new(world, settings)
    }

    fn bury_the_dead(&self) {
        for group in self.executor.take_deaths() {
            let now = self.executor.now();
            self.executor.note(|| format!("node {group} is killed"));
            locked(&self.truth).troubles.push((group, Trouble::Killed, now));
            for node in locked(&self.nodes).iter_mut() {
                if let Some((engine, _)) = node.up.take_if(|(_, g)| *g == group) {
                    let mut truth = locked(&self.truth);
                    truth.panics += engine.panics();
                    truth.turned_away += engine.forged();
                    node.restart_at = now + locked(&self.dice).in_range(100..20_000);
                }
            }
        }
    }

    /// A node that answers, as a load balancer would find one. A frozen one looks alive from outside.
    pub(crate) fn pick(&self) -> Option<(Arc<Engine>, Group)> {
        self.bury_the_dead();
        let nodes = locked(&self.nodes);
        let up: Vec<_> = nodes.iter().filter_map(|node| node.up.clone()).collect();
        drop(nodes);
        (!up.is_empty()).then(|| up[locked(&self.dice).index(up.len())].clone())
    }

    #[must_use]
    pub(crate) fn up(&self) -> Vec<(Arc<Engine>, Group)> {
        self.bury_the_dead();
        locked(&self.nodes).iter().filter_map(|node| node.up.clone()).collect()
    }

    /// Hands a callback to a node; the slot is filled once it may be acknowledged, by the node that is named.
    pub(crate) fn call_back(
        &self,
        segment: &str,
        task: Option<String>,
        word: Word,
    ) -> Option<(Slot<bool>, Group)> {
        let (engine, group) = self.pick()?;
        let slot = Slot::default();
        let (ack, segment, early) = (slot.clone(), segment.to_owned(), self.parts.acks_early);
        let executor = self.executor.clone();
        self.executor.spawn(group, async move {
            if early {
                ack.fill(true);
                executor.sleep(200).await;
            }
            let heard = engine.called_back(&segment, task, word).await;
            if !early {
                ack.fill(heard.is_ok());
            }
        });
        Some((slot, group))
    }

    pub(crate) fn doom_one(&self, polls: u64) {
        if let Some((_, group)) = self.pick() {
            self.executor.doom(group, polls);
        }
    }

    /// Freezes a node and says which, so that it can be thawed.
    pub(crate) fn freeze_one(&self) -> Option<Group> {
        let (_, group) = self.pick()?;
        let now = self.executor.now();
        self.executor.freeze(group);
        locked(&self.truth).troubles.push((group, Trouble::Frozen, now));
        self.executor.note(|| format!("node {group} is frozen"));
        Some(group)
    }

    pub(crate) fn thaw(&self, group: Group) {
        self.executor.thaw(group);
        self.executor.note(|| format!("node {group} thaws"));
    }

    /// Sets one node's clock to another wrong time.
    pub(crate) fn jump_one(&self) {
        let nodes = locked(&self.nodes);
        let mut dice = locked(&self.dice);
        let node = dice.index(nodes.len());
        let off_by = random_skew(&mut dice);
        let before = nodes[node].off_by.swap(off_by, Ordering::Relaxed);
        locked(&self.truth).clock_steps.push(self.executor.now());
        self.executor.note(|| format!("the clock of node {node} moves by {} ms", off_by - before));
    }

    /// No node stays down longer than it takes to start it.
    pub(crate) fn revive_all(&self) {
        self.bury_the_dead();
        for node in locked(&self.nodes).iter_mut() {
            node.restart_at = 0;
        }
    }

    #[must_use]
    pub(crate) fn panics(&self) -> u64 {
        self.up().iter().map(|(engine, _)| engine.panics()).sum()
    }

    /// How many callbacks the living nodes have recognised as not theirs.
    #[must_use]
    pub(crate) fn forged(&self) -> u64 {
        self.up().iter().map(|(engine, _)| engine.forged()).sum()
    }

    #[must_use]
    pub(crate) fn spilled(&self) -> usize {
        locked(&self.nodes).iter().map(|node| node.spill.waiting().map_or(0, |waiting| waiting.len())).sum()
    }
}

fn random_skew(dice: &mut Dice) -> i64 {
    i64::try_from(dice.in_range(0..2 * SKEW_MAX.unsigned_abs())).unwrap_or(0) - SKEW_MAX
}
