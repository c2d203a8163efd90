//! Load, decide, commit, perform: the engine carries out what the pure life cycle decides, with any store, provider
//! and clock. It holds no lock across an await, and keeps no order in memory that is not in the store. It does
//! nothing at shutdown that would be missing after a crash.
//!
//! Read `apply.rs` first: every change to an order goes through it.
#![forbid(unsafe_code)]

mod apply;
mod at_the_gate;
mod breaker;
mod budgets;
mod bulk;
pub mod callback;
mod chores;
mod circuit;
mod evidence;
mod fair;
mod follow_ups;
mod gate;
mod gate_rules;
mod hedging;
mod in_hand;
pub mod inspect;
mod lanes;
mod lifetimes;
mod limit;
mod live_settings;
mod moments;
mod node_stats;
mod outage_replays;
mod place;
mod poll_queue;
mod pools;
mod providers;
mod queue_pace;
mod quickest;
mod reachability;
mod recovery;
mod retry_budget;
mod retry_rules;
mod run_queue;
mod seats;
mod settings;
mod shared_gates;
pub mod sizing;
mod solve_times;
mod spacing;
mod spilled;
mod stock;
mod submit_pace;
pub mod targets;
mod unlisted;
mod wait;
mod wakeup;
mod webhook_endpoints;
mod work;

pub use apply::ApplyOutcome;
#[doc(hidden)]
pub use budgets::BudgetMath;
pub use budgets::{AtLimit, BudgetPeriod, BudgetRule, BudgetScope, BudgetView};
pub use bulk::{AdoptOutcome, BULKS_MAX, BulkError, DropOutcome, PER_SECOND_MAX};
pub use callback::{CallbackAddress, CallbackOutcome, NotSafe};
pub use fair::Shares;
pub use gate::ProviderState;
#[doc(hidden)]
pub use gate_rules::GateRules;
pub use hedging::{HedgeAfter, Hedging};
pub use in_hand::PutBack;
pub use lifetimes::{LifeRule, TrustView, show_trust, with_life_rules};
#[doc(hidden)]
pub use live_settings::ReloadRules;
pub use live_settings::{ReloadError, ReloadedProvider};
pub use outage_replays::OutageReplays;
pub use place::{PlaceError, PlacedOrder};
pub use pools::{KnownDocument, PoolError, PoolView, price_not_known, spending_not_known};
pub use providers::{Measured, ProviderRules, RoutingRules};
pub use retry_rules::RetryRules;
pub use settings::{KindTranslator, Kinds, OnCommit, Rules, Settings, TenantRule, Throttle, TranslatedKind};
pub use shared_gates::ProviderView;
pub use targets::Targets;
pub use wait::Outcome;

use arc_swap::ArcSwap;
use budgets::Budgets;
use bulk::BulkWatch;
use in_hand::InHand;
use live_settings::LiveSettings;
use node_stats::NodeCounters;
use outage_replays::OutageWatch;
use pools::Pools;
use providers::ProviderAccount;
use quittance_lifecycle::{Counters, Fault, Kind, OnReplay, Order, Pace, Policy, Timestamp, WhyIgnored};
use quittance_ports::{
    Clock, Day, Membership, OrderCounts, Provider, Spill, Store, StoreError, StoreForgot, Threads, UsageRow,
    WebhookSender,
};
use reachability::Reachability;
use run_queue::RunQueue;
use spilled::SpilledCounts;
use std::collections::BTreeMap;
use std::error::Error;
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use unlisted::UnlistedCodes;
use wakeup::Wakeup;
use webhook_endpoints::EndpointHealth;

/// The parts that the engine works with: store, provider, clock and so on.
#[derive(Clone)]
pub struct World {
    pub store: Arc<dyn Store>,
    /// The providers, in the order of their rules in [`Settings::providers`]. At least one.
    pub providers: Vec<Arc<dyn Provider>>,
    pub clock: Arc<dyn Clock>,
    pub spill: Arc<dyn Spill>,
    pub webhook_sender: Arc<dyn WebhookSender>,
    pub membership: Arc<dyn Membership>,
}

/// The number of unreadable records is not known.
const NOT_COUNTED: u64 = u64::MAX;

/// One node. Callers use [`place`](Self::place) and [`wait`](Self::wait) from anywhere; one task must run
/// [`work`](Self::work), which carries the orders out.
pub struct Engine {
    world: World,
    live: ArcSwap<LiveSettings>,
    /// The address that providers call.
    callback: Option<CallbackAddress>,
    node: u64,
    /// How many other nodes work on the store, as far as this node knows.
    other_nodes: AtomicU32,
    /// The currency of the first provider.
    currency: String,
    unlisted: Mutex<UnlistedCodes>,
    run_queue: Mutex<RunQueue>,
    wakeup: Wakeup,
    in_hand: Mutex<InHand>,
    spilled: Mutex<SpilledCounts>,
    /// Wakes the recovery when this node misses an order that it has in hand.
    suspicion: Wakeup,
    /// Until when nodes put back what the store has forgotten, in milliseconds.
    recovering_until: AtomicU64,
    /// How many records of a store on this machine cannot be read; [`NOT_COUNTED`] if that is not counted.
    records_unreadable: AtomicU64,
    /// The last hour in which the store forgot what pools had spent, as far as this node knows.
    spending_lost_in: AtomicU64,
    /// The secret under which the keys of orders are hashed.
    key_secret: Mutex<Option<[u8; 32]>>,
    /// What the store has forgotten, until an operator has acknowledged it.
    forgetting: Mutex<Option<StoreLoss>>,
    pools: Mutex<Pools>,
    budgets: Mutex<Budgets>,
    reach: Mutex<Reachability>,
    bulk_watch: Mutex<BulkWatch>,
    endpoints: Mutex<EndpointHealth>,
    outages: Mutex<OutageWatch>,
    /// Counters that no commit has written yet.
    uncounted: Mutex<BTreeMap<UsageRow, Counters>>,
    ignored: [AtomicU64; WhyIgnored::ALL.len()],
    forged: AtomicU64,
    kept_without_order: AtomicU64,
    node_counters: NodeCounters,
    /// Whether this node is the one that reads the accounts without money.
    reads_funds: AtomicBool,
    /// When this node last let all orders continue that waited for the account.
    let_go_at: AtomicU64,
    /// The last error of the store; `None` if it has never failed.
    store_error: Mutex<Option<String>>,
    /// When the store was last unavailable, in milliseconds; zero if never.
    store_failed_at: AtomicU64,
    stamps: AtomicU64,
    stopping: AtomicBool,
    /// When the usage was last compacted, in milliseconds; zero if never.
    usage_compacted_at: AtomicU64,
}

/// What the store has lost.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoreLoss {
    /// When this node noticed the loss.
    pub at: Timestamp,
    /// What happened and what to do, as text.
    pub what: String,
}

/// Locks a mutex, even if it is poisoned: no panic elsewhere can leave these short critical sections half-done.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// An error with all its causes, as text.
fn why(error: &(dyn Error + 'static)) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text = format!("{text}: {error}");
        cause = error.source();
    }
    text
}

impl Engine {
    #[must_use]
    pub fn new(world: World, mut settings: Settings) -> Self {
        // One truth: word can come exactly if there is an address for it to come to.
        settings.policy.callbacks = settings.callback.is_some();
        settings.policy.callback_address = settings.callback.as_ref().map(CallbackAddress::mark);
        settings.targets.undescribed.get_or_insert(settings.tenants.is_empty());
        Self {
            callback: settings.callback.clone(),
            node: settings.node,
            other_nodes: AtomicU32::new(0),
            currency: settings.providers.first().map(|rules| rules.currency.clone()).unwrap_or_default(),
            unlisted: Mutex::default(),
            run_queue: Mutex::new(RunQueue::new(&settings)),
            wakeup: Wakeup::default(),
            in_hand: Mutex::default(),
            spilled: Mutex::default(),
            suspicion: Wakeup::default(),
            recovering_until: AtomicU64::new(0),
            records_unreadable: AtomicU64::new(NOT_COUNTED),
            spending_lost_in: AtomicU64::new(0),
            key_secret: Mutex::new(settings.keys.secret),
            forgetting: Mutex::default(),
            pools: Mutex::default(),
            budgets: Mutex::default(),
            reach: Mutex::default(),
            bulk_watch: Mutex::default(),
            endpoints: Mutex::default(),
            outages: Mutex::default(),
            uncounted: Mutex::default(),
            ignored: Default::default(),
            forged: AtomicU64::new(0),
            kept_without_order: AtomicU64::new(0),
            node_counters: NodeCounters::default(),
            store_error: Mutex::default(),
            reads_funds: AtomicBool::new(false),
            let_go_at: AtomicU64::new(0),
            store_failed_at: AtomicU64::new(0),
            stamps: AtomicU64::new(0),
            stopping: AtomicBool::new(false),
            usage_compacted_at: AtomicU64::new(0),
            live: ArcSwap::from_pointee(LiveSettings::new(settings, &world.providers)),
            world,
        }
    }

    /// What is known about a kind of this name.
    #[must_use]
    pub fn kind(&self, name: &str) -> Option<Kind> {
        (self.settings().kinds)(name)
    }

    /// Asks [`work`](Self::work) to take nothing new and to return when what it does is done.
    pub fn stop(&self) {
        self.stopping.store(true, Ordering::Relaxed);
        self.wakeup.ring();
    }

    /// How often an event changed nothing, by reason.
    #[must_use]
    pub fn ignored(&self) -> [(WhyIgnored, u64); WhyIgnored::ALL.len()] {
        std::array::from_fn(|n| (WhyIgnored::ALL[n], self.ignored[n].load(Ordering::Relaxed)))
    }

    /// How many genuine callbacks are or were kept because the store did not have their order: a sign of a store that
    /// has lost orders, unless an operator has dropped them.
    #[must_use]
    pub fn kept_without_order(&self) -> u64 {
        self.kept_without_order.load(Ordering::Relaxed)
    }

    /// How many callbacks had an invalid MAC.
    #[must_use]
    pub fn forged(&self) -> u64 {
        self.forged.load(Ordering::Relaxed)
    }

    /// How many pieces of work ended in a panic. Each panic is a bug, and affected its own order only.
    #[must_use]
    pub fn panics(&self) -> u64 {
        NodeCounters::read(&self.node_counters.panics)
    }

    /// How many stored records could not be understood.
    #[must_use]
    pub fn unreadable(&self) -> u64 {
        NodeCounters::read(&self.node_counters.unreadable)
    }

    /// Sets the number of stored records that cannot be read and need an operator.
    pub fn note_unreadable(&self, count: u64) {
        self.records_unreadable.store(count, Ordering::Relaxed);
    }

    /// How many records cannot be read and need an operator; `None` if the store does not count them.
    #[must_use]
    pub fn records_unreadable(&self) -> Option<u64> {
        let count = self.records_unreadable.load(Ordering::Relaxed);
        (count != NOT_COUNTED).then_some(count)
    }

    /// Why this node submits nothing until an operator releases a provider's account; `None` while it submits. With
    /// several providers, it submits as long as one of them is not paused.
    #[must_use]
    pub fn paused(&self) -> Option<Fault> {
        let providers = self.providers();
        let mut faults = providers.iter().map(|it| lock(&it.gate).account_fault());
        let first = faults.next()??;
        faults.all(|fault| fault.is_some()).then_some(first.fault)
    }

    /// Sets the threads of this provider's account, for the part that reads the account: no more tasks than that are at
    /// the provider at once. `None` if the provider sells no threads.
    pub fn note_threads(&self, provider: &str, threads: Option<Threads>) {
        if let Some(provider) = self.provider_at(provider) {
            lock(&provider.gate).set_threads(threads);
            self.wakeup.ring();
        }
    }

    /// The number of this node: new for each start of each process.
    #[must_use]
    pub const fn node(&self) -> u64 {
        self.node
    }

    /// The currency of the node: that of its first provider. Amounts in another currency count as not known.
    #[must_use]
    pub fn currency(&self) -> &str {
        &self.currency
    }

    /// The clock and the timers of this node.
    #[must_use]
    pub fn clock(&self) -> &Arc<dyn Clock> {
        &self.world.clock
    }

    /// The nodes that share the store, and the documents that they share.
    #[must_use]
    pub fn membership(&self) -> &Arc<dyn Membership> {
        &self.world.membership
    }

    /// The usage of all nodes on these days, both included. Each amount is in the currency of its row's account.
    pub async fn usage(&self, from: Day, to: Day) -> Result<Vec<(UsageRow, Counters)>, StoreError> {
        self.world.store.usage(from, to).await
    }

    /// How many orders there are, on all nodes.
    pub async fn order_counts(&self) -> Result<OrderCounts, StoreError> {
        self.world.store.order_counts().await
    }

    /// What a replay of this order would do now.
    #[must_use]
    pub fn on_replay(&self, order: &Order) -> Option<OnReplay> {
        let replay = order.on_replay(self.now(), &self.policy(order))?;
        Some(if self.may_replay(order) { replay } else { OnReplay::NotAllowed })
    }

    /// Calls `on_commit`, so that another part of the process sees what this node has just written.
    fn note_commit(&self, order: &Arc<Order>) {
        if let Some(on_commit) = &self.settings().on_commit {
            on_commit(order);
        }
    }

    /// The current time of this node's clock.
    #[must_use]
    pub fn now(&self) -> Timestamp {
        self.world.clock.now()
    }

    /// A number that no other call, on this node or another, gets.
    fn unique(&self) -> u128 {
        u128::from(self.node) << 64 | u128::from(self.stamps.fetch_add(1, Ordering::Relaxed))
    }

    /// A number of few bits, which shows which write an order's record holds.
    fn stamp(&self) -> u64 {
        let count = self.stamps.fetch_add(1, Ordering::Relaxed);
        self.node.wrapping_add(count.wrapping_mul(0x9e37_79b9_7f4a_7c15))
    }

    /// The settings, with what is known about the provider that the order is at.
    fn policy(&self, order: &Order) -> Policy {
        self.policy_about(order, None)
    }

    /// The settings, with what is known about the provider of this attempt, or of the last one.
    fn policy_about(&self, order: &Order, attempt: Option<u32>) -> Policy {
        let kind = order.terms.kind.as_str();
        let provider = self.provider_of(order, attempt);
        let policy = self.policy_for(&provider, kind, || (self.settings().kinds)(kind).map(|kind| kind.pace));
        let policy = self.with_provider(policy, order, attempt);
        let hedge_after = self.hedge_after(order, attempt, &policy);
        Policy { callback_lost: self.is_callback_lost(order), hedge_after, ..policy }
    }

    /// The settings, with the measured solve time of this kind at this provider.
    fn policy_for(
        &self,
        provider: &ProviderAccount,
        kind: &str,
        usual: impl FnOnce() -> Option<Pace>,
    ) -> Policy {
        let mut policy = self.settings().policy;
        policy.poll_rules = provider.adapter.poll_rules(kind).unwrap_or(policy.poll_rules);
        let learned = lock(&provider.paces).of(kind);
        if let Some(pace) = learned.or_else(usual) {
            policy.pace = pace;
        }
        policy
    }

    fn count_ignored(&self, why: WhyIgnored) {
        if let Some(n) = WhyIgnored::ALL.iter().position(|known| *known == why) {
            self.ignored[n].fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Counts something that changed no order. The worker writes it after a moment.
    fn count(&self, line: UsageRow, counters: Counters) {
        let is_first = {
            let mut uncounted = lock(&self.uncounted);
            let is_first = uncounted.is_empty();
            *uncounted.entry(line).or_default() += counters;
            is_first
        };
        // The others are written with it.
        if is_first {
            self.expect_counts();
        }
    }

    fn note_error(&self, error: &StoreError) {
        match error {
            StoreError::Corrupt { .. } => NodeCounters::add(&self.node_counters.unreadable, 1),
            StoreError::Unavailable { source, .. } => {
                if source.is::<StoreForgot>() {
                    self.suspect();
                }
                NodeCounters::add(&self.node_counters.store_errors, 1);
                *lock(&self.store_error) = Some(why(error));
                self.store_failed_at.store(self.now().as_millis(), Ordering::Relaxed);
            }
        }
    }

    /// The last error of the store; `None` if it has never failed.
    #[must_use]
    pub fn store_error(&self) -> Option<String> {
        lock(&self.store_error).clone()
    }

    /// The address that providers call, with its secrets; `None` if providers cannot call.
    #[must_use]
    pub fn callback_address(&self) -> Option<&CallbackAddress> {
        self.callback.as_ref()
    }

    /// What the store has lost, as far as this node knows; `None` after an operator has acknowledged it.
    #[must_use]
    pub fn forgetting(&self) -> Option<StoreLoss> {
        lock(&self.forgetting).clone()
    }

    /// Notes that the store has lost something now. This replaces an earlier note.
    pub fn note_forgetting(&self, what: String) {
        *lock(&self.forgetting) = Some(StoreLoss { at: self.now(), what });
    }

    /// An operator has acknowledged the loss.
    pub fn forgetting_was_seen(&self) {
        *lock(&self.forgetting) = None;
    }

    /// Whether this node found the store unavailable within the last `within`.
    #[must_use]
    pub fn store_was_away(&self, within: Duration) -> bool {
        let failed_at = Timestamp::from_millis(self.store_failed_at.load(Ordering::Relaxed));
        failed_at > Timestamp::ZERO && self.now().since(failed_at) < within
    }
}

impl fmt::Debug for Engine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Engine").field("node", &self.node).finish_non_exhaustive()
    }
}

impl fmt::Debug for World {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("World")
    }
}
