//! The simulated nodes: started, killed, frozen and restarted, each with a clock and a disk of its own. A call to a
//! node runs inside the node, so a kill also ends the request.

use crate::executor::{Executor, Group, ReplySlot, locked};
use crate::provider::{ProviderLink, Service};
use crate::rng::Rng;
use crate::store::RudeStore;
use crate::truth::{SimFault, Truth};
use crate::weather::Weather;
use async_trait::async_trait;
use quittance_engine::{Engine, Settings, World};
use quittance_lifecycle::{CallbackResult, Timestamp};
use quittance_ports::{
    Clock, Membership, MemoryMembership, MemorySpill, MemoryStore, MemoryWebhooks, NodeStatus, Provider,
    Spill, Store,
};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// How often a node sends a heartbeat, as in production.
const SIGN_IN: u64 = 2_000;

/// How long a load balancer may send callbacks to a node that does not answer. The promises about freshness hold within
/// this limit.
const STILL_ROUTED: u64 = 60_000;

/// The most by which a clock is wrong. The promises about freshness hold within this limit.
pub(crate) const SKEW_MAX: i64 = 2_500;

/// A clock that may be wrong, and may be set at any time to the true time or to another wrong one.
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

struct SimNode {
    /// The running engine and its group; `None` while the node is down.
    up: Option<(Arc<Engine>, Group)>,
    restart_at: u64,
    off_by: Arc<AtomicI64>,
    /// The disk, which survives the death of the node.
    spill: MemorySpill,
}

/// Makes a store for one node from the shared one.
pub(crate) type WrapStore = fn(Arc<dyn Store>, &Executor, Group) -> Arc<dyn Store>;

/// The parts of a node, which a planted bug may replace.
pub struct Parts {
    pub settings: Settings,
    pub wrap_store: WrapStore,
    pub wrap_provider: fn(Arc<dyn Provider>) -> Arc<dyn Provider>,
    pub wrap_spill: fn(Arc<dyn Spill>) -> Arc<dyn Spill>,
    /// Whether callbacks are acknowledged before they are durable.
    pub acks_early: bool,
    pub callbacks_count_from_their_end: bool,
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
    services: Vec<Arc<Service>>,
    store: MemoryStore,
    membership: MemoryMembership,
    parts: Parts,
    nodes: Mutex<Vec<SimNode>>,
    rng: Mutex<Rng>,
    last_group: Mutex<Group>,
    /// Since when nodes are frozen.
    frozen: Mutex<BTreeMap<Group, u64>>,
}

impl Fleet {
    pub(crate) fn new(
        services: &[Arc<Service>],
        store: MemoryStore,
        parts: Parts,
        size: usize,
        mut rng: Rng,
    ) -> Arc<Self> {
        let skew = |rng: &mut Rng| Arc::new(AtomicI64::new(random_skew(rng)));
        let nodes = (0..size)
            .map(|_| SimNode {
                up: None,
                restart_at: 0,
                off_by: skew(&mut rng),
                spill: MemorySpill::default(),
            })
            .collect();
        let fleet = Arc::new(Self {
            executor: services[0].executor.clone(),
            weather: Arc::clone(&services[0].weather),
            truth: Arc::clone(&services[0].truth),
            services: services.to_vec(),
            store,
            membership: MemoryMembership::default(),
            parts,
            nodes: Mutex::new(nodes),
            rng: Mutex::new(rng),
            last_group: Mutex::new(0),
            frozen: Mutex::default(),
        });
        for service in services {
            *locked(&service.fleet) = Some(Arc::clone(&fleet));
        }
        fleet
    }

    /// Starts every node that is down and may come back.
    pub(crate) fn start_nodes(self: &Arc<Self>) {
        self.move_to_dead_letters();
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
                self.keep_among_members(number, group, &engine);
                node.up = Some((engine, group));
            }
        }
    }

    /// Sends heartbeats and listens for callbacks as long as the node runs.
    fn keep_among_members(&self, number: usize, group: Group, engine: &Arc<Engine>) {
        let (executor, membership, engine) =
            (self.executor.clone(), self.membership.clone(), Arc::clone(engine));
        if self.parts.settings.callback.is_some() {
            engine.listens_for_callbacks();
        }
        let started = Timestamp::from_millis(executor.now());
        self.executor.spawn(group, async move {
            loop {
                let node_status = NodeStatus {
                    node: engine.node(),
                    name: format!("node {number}"),
                    version: String::new(),
                    format: 1,
                    started,
                    at: Timestamp::from_millis(executor.now()),
                    skew_ms: None,
                    node_stats: engine.node_stats(),
                    reach: engine.reach(),
                    demand: engine.demand(),
                };
                if membership.heartbeat(&node_status).await.is_ok()
                    && let Ok(roll) = membership.members().await
                {
                    engine.heed_members(&roll);
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

    fn new_engine(&self, group: Group, node: &SimNode) -> Engine {
        let store: Arc<dyn Store> = Arc::new(RudeStore {
            inner: self.store.clone(),
            executor: self.executor.clone(),
            weather: Arc::clone(&self.weather),
            rng: Mutex::new(Rng::new(locked(&self.rng).roll(), "store")),
        });
        let links = self.services.iter().map(|service| {
            (self.parts.wrap_provider)(Arc::new(ProviderLink { service: Arc::clone(service), node: group }))
        });
        let clock = Arc::new(NodeClock { executor: self.executor.clone(), off_by: Arc::clone(&node.off_by) });
        let world = World {
            store: (self.parts.wrap_store)(store, &self.executor, group),
            providers: links.collect(),
            clock,
            spill: (self.parts.wrap_spill)(Arc::new(node.spill.clone())),
            webhook_sender: Arc::new(MemoryWebhooks::default()),
            membership: Arc::new(self.membership.clone()),
        };
        let mut settings = self.parts.settings.clone();
        settings.node = locked(&self.rng).roll();
        Engine::new(world, settings)
    }

    fn move_to_dead_letters(&self) {
        for group in self.executor.take_deaths() {
            let now = self.executor.now();
            self.executor.note(|| format!("node {group} is killed"));
            let mut fault = SimFault::Killed;
            let mut nodes = locked(&self.nodes);
            let others_up =
                nodes.iter().filter(|node| node.up.as_ref().is_some_and(|(_, g)| *g != group)).count();
            for node in nodes.iter_mut() {
                if let Some((engine, _)) = node.up.take_if(|(_, g)| *g == group) {
                    let mut truth = locked(&self.truth);
                    truth.panics += engine.panics();
                    truth.turned_away += engine.forged();
                    let away = locked(&self.rng).in_range(100..20_000);
                    // One in six dies for good: it is back in the calm.
                    let is_for_good = away.is_multiple_of(6) && others_up > 0 && !self.weather.is_calm();
                    node.restart_at = if is_for_good { u64::MAX } else { now + away };
                    fault = if is_for_good { SimFault::Gone } else { SimFault::Killed };
                }
            }
            locked(&self.truth).faults.push((group, fault, now));
        }
    }

    /// A running node, chosen as a load balancer does. A frozen node looks alive from outside.
    pub(crate) fn pick(&self) -> Option<(Arc<Engine>, Group)> {
        self.move_to_dead_letters();
        let nodes = locked(&self.nodes);
        let up: Vec<_> = nodes.iter().filter_map(|node| node.up.clone()).collect();
        drop(nodes);
        (!up.is_empty()).then(|| up[locked(&self.rng).index(up.len())].clone())
    }

    #[must_use]
    pub(crate) fn up(&self) -> Vec<(Arc<Engine>, Group)> {
        self.move_to_dead_letters();
        locked(&self.nodes).iter().filter_map(|node| node.up.clone()).collect()
    }

    /// A running node, chosen as a load balancer does that gives up a node that has been silent for a while.
    fn pick_for_callback(&self) -> Option<(Arc<Engine>, Group)> {
        let now = self.executor.now();
        let is_given_up =
            |group: &Group| locked(&self.frozen).get(group).is_some_and(|since| *since + STILL_ROUTED < now);
        let up: Vec<_> = self.up().into_iter().filter(|(_, group)| !is_given_up(group)).collect();
        (!up.is_empty()).then(|| up[locked(&self.rng).index(up.len())].clone())
    }

    /// Sends a callback to a node. The slot is filled with the node once the callback may be acknowledged. The call
    /// began `open_for` ago.
    pub(crate) fn call_back(
        &self,
        segment: &str,
        task: Option<String>,
        word: CallbackResult,
        open_for: Duration,
    ) -> Option<(ReplySlot<bool>, Group)> {
        let (engine, group) = self.pick_for_callback()?;
        let slot = ReplySlot::default();
        let (ack, segment, early) = (slot.clone(), segment.to_owned(), self.parts.acks_early);
        let executor = self.executor.clone();
        let from_its_end = self.parts.callbacks_count_from_their_end;
        let sent_at = executor.now();
        self.executor.spawn(group, async move {
            // A connection that the node had accepted before it was frozen stays open meanwhile. Others are accepted
            // when the node runs again.
            let open_for = if from_its_end || open_for.is_zero() {
                Duration::ZERO
            } else {
                open_for + Duration::from_millis(executor.now() - sent_at)
            };
            if early {
                ack.fill(true);
                executor.sleep(200).await;
            }
            let outcome = engine.called_back(&segment, task, word, open_for).await;
            if !early {
                ack.fill(outcome.is_ok());
            }
        });
        Some((slot, group))
    }

    pub(crate) fn doom_one(&self, polls: u64) {
        if let Some((_, group)) = self.pick() {
            self.executor.doom(group, polls);
        }
    }

    /// Freezes a node, and returns its group so that it can be resumed.
    pub(crate) fn freeze_one(&self) -> Option<Group> {
        let (_, group) = self.pick()?;
        let now = self.executor.now();
        self.executor.freeze(group);
        locked(&self.frozen).entry(group).or_insert(now);
        locked(&self.truth).faults.push((group, SimFault::Frozen, now));
        self.executor.note(|| format!("node {group} is frozen"));
        Some(group)
    }

    pub(crate) fn thaw(&self, group: Group) {
        self.executor.thaw(group);
        locked(&self.frozen).remove(&group);
        self.executor.note(|| format!("node {group} thaws"));
    }

    /// Sets one node's clock to another wrong time.
    pub(crate) fn jump_one(&self) {
        let nodes = locked(&self.nodes);
        let mut rng = locked(&self.rng);
        let node = rng.index(nodes.len());
        let off_by = random_skew(&mut rng);
        let before = nodes[node].off_by.swap(off_by, Ordering::Relaxed);
        locked(&self.truth).clock_steps.push(self.executor.now());
        self.executor.note(|| format!("the clock of node {node} moves by {} ms", off_by - before));
    }

    /// Starts every node that is down.
    pub(crate) fn revive_all(&self) {
        self.move_to_dead_letters();
        for node in locked(&self.nodes).iter_mut() {
            node.restart_at = 0;
        }
    }

    #[must_use]
    pub(crate) fn panics(&self) -> u64 {
        self.up().iter().map(|(engine, _)| engine.panics()).sum()
    }

    /// How many callbacks the running nodes have recognised as forged.
    #[must_use]
    pub(crate) fn forged(&self) -> u64 {
        self.up().iter().map(|(engine, _)| engine.forged()).sum()
    }

    #[must_use]
    pub(crate) fn spilled(&self) -> usize {
        locked(&self.nodes).iter().map(|node| node.spill.waiting().map_or(0, |waiting| waiting.len())).sum()
    }
}

fn random_skew(rng: &mut Rng) -> i64 {
    i64::try_from(rng.in_range(0..2 * SKEW_MAX.unsigned_abs())).unwrap_or(0) - SKEW_MAX
}
