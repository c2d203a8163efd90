//! The settings of one node, with defaults, and `Rules`, where the simulation plants wrong rules.

use crate::budgets::{BudgetMath, BudgetRule};
use crate::callback::CallbackAddress;
use crate::fair::turn_cost;
use crate::gate_rules::GateRules;
use crate::hedging::Hedging;
use crate::inspect::{Inspection, inspect};
use crate::lanes::{LaneRule, rank};
use crate::lifetimes::LifeRule;
use crate::live_settings::ReloadRules;
use crate::outage_replays::OutageReplays;
use crate::providers::{ProviderRules, RoutingRules};
use crate::retry_rules::RetryRules;
use crate::targets::{NotAllowed, Targets};
use quittance_lifecycle::routing::Choice;
use quittance_lifecycle::{
    BadRequest, Candidate, Decision, Event, HandOut, Key, KeySettings, Kind, Money, Order, Placement, Policy,
    Priority, Routing, Terms, Timestamp, Value, choose,
};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// A kind and its parameters in the names of the catalogue; `None` if they have those names already.
pub type TranslatedKind = Option<(String, BTreeMap<String, Value>)>;

/// Translates a kind and its parameters into the names of the catalogue.
pub type KindTranslator =
    Arc<dyn Fn(&str, &BTreeMap<String, Value>) -> Result<TranslatedKind, BadRequest> + Send + Sync>;

/// What one tenant may order. An absent field means all that the node allows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TenantRule {
    pub targets: Option<Targets>,
    pub kinds: Option<Vec<String>>,
    /// How many turns the tenant's orders get for one of a tenant without a weight; `None` is 1.
    pub weight: Option<u32>,
    /// The priority of an order that sets none; `None` is normal.
    pub priority: Option<Priority>,
}

/// The rule for placing an order: see `quittance_lifecycle::place`.
pub(crate) type PlaceRule =
    fn(Option<&Order>, Option<&Order>, Key, &Arc<Terms>, Timestamp, &Policy) -> Placement;

/// The decision functions: always those of `quittance-lifecycle`. Only the simulation replaces them, with the feature
/// `planted`, to prove that it finds wrong rules.
#[derive(Clone, Copy, Debug)]
pub struct Rules {
    pub(crate) place: PlaceRule,
    pub(crate) transition: fn(&Order, Event, Timestamp, &Policy) -> Decision,
    pub(crate) hand_out: for<'a> fn(&'a Order, Key, Duration, Timestamp) -> HandOut<'a>,
    pub(crate) inspect: fn(&Inspection<'_>) -> Result<(), NotAllowed>,
    pub(crate) choose: fn(&Order, &[Candidate], Routing, Timestamp) -> Choice,
    pub(crate) gate: GateRules,
    pub(crate) budget: BudgetMath,
    /// What a turn costs a tenant of this weight.
    pub(crate) turn_cost: fn(u32) -> u64,
    pub(crate) lane: LaneRule,
    pub(crate) reload: ReloadRules,
}

impl Rules {
    pub(crate) const REAL: Self = Self {
        place: quittance_lifecycle::place,
        transition: quittance_lifecycle::transition,
        hand_out: Order::hand_out,
        inspect,
        choose,
        gate: GateRules::REAL,
        budget: BudgetMath::REAL,
        turn_cost,
        lane: rank,
        reload: ReloadRules::REAL,
    };
}

#[cfg(feature = "planted")]
impl Rules {
    #[doc(hidden)]
    pub fn plant_hand_out(
        &mut self,
        hand_out: for<'a> fn(&'a Order, Key, Duration, Timestamp) -> HandOut<'a>,
    ) {
        self.hand_out = hand_out;
    }

    #[doc(hidden)]
    pub fn plant_place(&mut self, place: PlaceRule) {
        self.place = place;
    }

    #[doc(hidden)]
    pub fn plant_transition(&mut self, transition: fn(&Order, Event, Timestamp, &Policy) -> Decision) {
        self.transition = transition;
    }

    #[doc(hidden)]
    pub fn plant_gate(&mut self, plant: impl FnOnce(&mut GateRules)) {
        plant(&mut self.gate);
    }

    #[doc(hidden)]
    pub fn plant_budget(&mut self, plant: impl FnOnce(&mut BudgetMath)) {
        plant(&mut self.budget);
    }

    #[doc(hidden)]
    pub fn plant_choose(&mut self, choose: fn(&Order, &[Candidate], Routing, Timestamp) -> Choice) {
        self.choose = choose;
    }

    #[doc(hidden)]
    pub fn plant_turn_cost(&mut self, turn_cost: fn(u32) -> u64) {
        self.turn_cost = turn_cost;
    }

    #[doc(hidden)]
    pub fn plant_lane(&mut self, lane: fn(&[usize; 3], usize) -> (bool, usize)) {
        self.lane = lane;
    }

    #[doc(hidden)]
    pub fn plant_reload(&mut self, reload: ReloadRules) {
        self.reload = reload;
    }

    #[doc(hidden)]
    pub fn plant_inspect(&mut self, inspect: fn(&Inspection<'_>) -> Result<(), NotAllowed>) {
        self.inspect = inspect;
    }
}

/// Finds a known kind by name.
pub type Kinds = Arc<dyn Fn(&str) -> Option<Kind> + Send + Sync>;

/// A function that is called at once with every order that this node has written. It must not wait or fail.
pub type OnCommit = Arc<dyn Fn(&Arc<Order>) + Send + Sync>;

/// The limits that protect the provider.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Throttle {
    /// The least time between two submits; zero for no limit.
    pub submit_interval: Duration,
    /// How many submits in a row must fail before the circuit breaker trips.
    pub trip_at: u32,
    /// How long one order may try the provider while the others wait for the result.
    pub probe: Duration,
    /// The most retries, in thousandths of the first submits.
    pub retry_share: u32,
    /// The most retries that may go out at once.
    pub retry_burst: u32,
    /// One retry is allowed again after this time, even if nothing else is submitted.
    pub retry_trickle: Duration,
}

impl Throttle {
    pub const DEFAULT: Self = Self {
        submit_interval: Duration::ZERO,
        trip_at: 5,
        probe: Duration::from_secs(3),
        retry_share: 200,
        retry_burst: 20,
        retry_trickle: Duration::from_secs(1),
    };
}

#[derive(Clone)]
pub struct Settings {
    /// A number that is new for each start of each process, so that no process mistakes another's writes for its own.
    pub node: u64,
    pub policy: Policy,
    pub keys: KeySettings,
    pub kinds: Kinds,
    /// Rules for the life of answers that differ from their kind's. The last rule that fits counts.
    pub lifetimes: Vec<LifeRule>,
    /// The rules of the providers, in the order of [`World::providers`](crate::World::providers). The currency of the
    /// first one is that of the node. At least one.
    pub providers: Vec<ProviderRules>,
    /// How a provider is chosen for an order.
    pub routing: RoutingRules,
    /// The limits of what may be spent.
    pub budgets: Vec<BudgetRule>,
    /// Whether, and within what budget, slow tasks of urgent orders are also bought at another provider.
    pub hedging: Hedging,
    /// Limits of retries for some kinds and tenants.
    pub retries: RetryRules,
    /// Whether, and how fast, dead letters of an outage are replayed when it is over.
    pub outage_replays: OutageReplays,
    /// After this time with failures only, an endpoint of webhooks is switched off. Zero: never.
    pub webhook_off_after: Duration,
    /// How many days the usage is kept in detail.
    pub usage_days: u64,
    /// How many days the sums of the usage are kept.
    pub sums_days: u64,
    /// Which sites may be automated.
    pub targets: Targets,
    /// Limits of tenants that may order less than the node allows, by name.
    pub tenants: BTreeMap<String, TenantRule>,
    /// Translates an order into the names of the catalogue; `None` leaves the order as it is.
    pub meaning: Option<KindTranslator>,
    /// Whether several tenants share the provider.
    pub is_shared: bool,
    /// The address that providers call; `None` if they cannot call.
    pub callback: Option<CallbackAddress>,
    pub rules: Rules,
    pub on_commit: Option<OnCommit>,
    /// How many submits may be under way at once.
    pub submits_max: usize,
    /// How many batches of polls may be under way at once.
    pub polls_max: usize,
    /// How many other steps may be under way at once.
    pub steps_max: usize,
    /// How many webhook deliveries may be under way at once; a tenant gets a share of them.
    pub follow_ups_max: usize,
    /// How many orders may wait in memory for one of the limits above. The rest wait in the store.
    pub backlog_max: usize,
    /// How many due orders one sweep may claim.
    pub claim_max: usize,
    /// How long a claimed order is hidden from other nodes. This must be longer than a poll may take, or tasks are
    /// polled twice. If the node that claimed it dies, another node continues after this time.
    pub claim_duration: Duration,
    /// The longest time between two sweeps for due orders.
    pub sweep_interval: Duration,
    /// The shortest time between two sweeps for due orders.
    pub sweep_pause: Duration,
    /// How long one poll may take. After that its reply is ignored.
    pub poll_wait: Duration,
    /// How long a placement is retried while the store is not available.
    pub place_wait: Duration,
    /// After an outage of the store, how long other nodes may write what they received during it.
    pub others_first: Duration,
    /// How long the counters of a join, which writes no order, may wait to be written. A crash loses counters that
    /// wait.
    pub count_interval: Duration,
    /// How many orders in flight this node remembers, for a store that can forget; 0 if no other node writes to the
    /// store.
    pub in_hand_max: usize,
}

impl Settings {
    /// What one turn in the queue costs each tenant with a weight.
    pub(crate) fn turn_costs(&self) -> BTreeMap<String, u64> {
        let cost = |rule: &TenantRule| rule.weight.map(self.rules.turn_cost);
        self.tenants.iter().filter_map(|(name, rule)| Some((name.clone(), cost(rule)?))).collect()
    }

    #[must_use]
    pub fn new(node: u64, kinds: impl Fn(&str) -> Option<Kind> + Send + Sync + 'static) -> Self {
        Self {
            node,
            policy: Policy::DEFAULT,
            keys: KeySettings::default(),
            kinds: Arc::new(kinds),
            lifetimes: Vec::new(),
            providers: vec![ProviderRules::default()],
            routing: RoutingRules::default(),
            budgets: Vec::new(),
            hedging: Hedging::default(),
            retries: RetryRules::default(),
            outage_replays: OutageReplays::DEFAULT,
            webhook_off_after: Duration::from_secs(5 * 24 * 3600),
            usage_days: 7,
            sums_days: 400,
            targets: Targets::default(),
            tenants: BTreeMap::new(),
            meaning: None,
            is_shared: false,
            callback: None,
            rules: Rules::REAL,
            on_commit: None,
            submits_max: 256,
            polls_max: 64,
            steps_max: 256,
            follow_ups_max: 256,
            backlog_max: 1024,
            claim_max: 256,
            claim_duration: Duration::from_secs(7),
            sweep_interval: Duration::from_secs(2),
            sweep_pause: Duration::from_millis(20),
            poll_wait: Duration::from_secs(6),
            place_wait: Duration::from_secs(2),
            others_first: Duration::from_secs(10),
            count_interval: Duration::from_millis(100),
            in_hand_max: 0,
        }
    }
}

/// The price of these terms on a price list; `None` if it is not listed.
pub(crate) fn listed_price(prices: &BTreeMap<String, Money>, terms: &Terms) -> Option<Money> {
    let kind = terms.kind.as_str();
    let variants = prices.range(format!("{kind}+")..).map_while(|(name, price)| {
        let param = name.strip_prefix(kind)?.strip_prefix('+')?;
        Some((param, *price))
    });
    let is_set = |param: &str| matches!(terms.params.get(param), Some(Value::Text(text)) if text == "1" || text.eq_ignore_ascii_case("true"));
    let variant = variants.filter(|(param, _)| is_set(param)).map(|(_, price)| price).max();
    variant.or_else(|| prices.get(kind).copied())
}

impl fmt::Debug for Settings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Settings")
            .field("node", &self.node)
            .field("policy", &self.policy)
            .finish_non_exhaustive()
    }
}
