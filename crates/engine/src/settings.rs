//! What the operator decides for one node, with defaults, and the one seam by which the simulation plants wrong ideas.

use crate::callback::CallbackAddress;
use crate::inspect::{Inspection, inspect};
use crate::lifetimes::LifeRule;
use crate::targets::{NotAllowed, Targets};
use quittance_lifecycle::{
    BadRequest, Decision, Event, HandOut, Key, KeySettings, Kind, Money, Order, Placement, Policy, Terms,
    Timestamp, Value,
};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// A kind and its parameters, in the names of the catalogue; `None` if they had those names already.
pub type TranslatedKind = Option<(String, BTreeMap<String, Value>)>;

/// Translates a kind and its parameters into the names of the catalogue.
pub type KindTranslator =
    Arc<dyn Fn(&str, &BTreeMap<String, Value>) -> Result<TranslatedKind, BadRequest> + Send + Sync>;

/// What one tenant may order; all that the node allows, where a field is absent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TenantRule {
    pub targets: Option<Targets>,
    pub kinds: Option<Vec<String>>,
}

/// What placing an order means: see `quittance_lifecycle::place`.
pub(crate) type PlaceRule =
    fn(Option<&Order>, Option<&Order>, Key, &Arc<Terms>, Timestamp, &Policy) -> Placement;

/// The decisions themselves: those of `quittance-lifecycle`, and no others. Only the simulation replaces them,
/// through the feature `planted`: a simulation that no wrong rule fails would test nothing.
#[derive(Clone, Copy, Debug)]
pub struct Rules {
    pub(crate) place: PlaceRule,
    pub(crate) transition: fn(&Order, Event, Timestamp, &Policy) -> Decision,
    pub(crate) hand_out: for<'a> fn(&'a Order, Key, Duration, Timestamp) -> HandOut<'a>,
    pub(crate) inspect: fn(&Inspection<'_>) -> Result<(), NotAllowed>,
}

impl Rules {
    pub(crate) const REAL: Self = Self {
        place: quittance_lifecycle::place,
        transition: quittance_lifecycle::transition,
        hand_out: Order::hand_out,
        inspect,
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
    pub fn plant_inspect(&mut self, inspect: fn(&Inspection<'_>) -> Result<(), NotAllowed>) {
        self.inspect = inspect;
    }
}

/// The kinds that are known, by name.
pub type Kinds = Arc<dyn Fn(&str) -> Option<Kind> + Send + Sync>;

/// Called with every order that this node has written, at once: it must neither wait nor fail.
pub type OnCommit = Arc<dyn Fn(&Arc<Order>) + Send + Sync>;

/// How the provider is spared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Throttle {
    /// The least time between two submits; zero for none.
    pub submit_interval: Duration,
    /// How many submits in a row must fail before the circuit breaker trips.
    pub trip_at: u32,
    /// How long one order may try the provider while the others wait for what it learns.
    pub probe: Duration,
    /// Retries may be this many thousandths of first submits, with a burst of so many retries.
    pub retry_share: u32,
    pub retry_burst: u32,
    /// One retry earns its way back in this time even when nothing else is submitted.
    pub retry_trickle: Duration,
}

impl Throttle {
    pub const DEFAULT: Self = Self {
        submit_interval: Duration::ZERO,
        trip_at: 5,
        probe: Duration::from_secs(5),
        retry_share: 200,
        retry_burst: 20,
        retry_trickle: Duration::from_secs(1),
    };
}

#[derive(Clone)]
pub struct Settings {
    /// New for each start of each process, so that no two ever mistake each other's writes for their own.
    pub node: u64,
    pub policy: Policy,
    pub keys: KeySettings,
    pub kinds: Kinds,
    /// How long answers live where that is not what their kind says; the last rule that fits counts.
    pub lifetimes: Vec<LifeRule>,
    /// What people call the provider.
    pub provider: String,
    /// What an answer of a kind costs, where the provider does not say; a kind that is not here has no known price. A
    /// name such as `recaptcha_v2+enterprise` is for orders of that kind that have this parameter set to 1.
    pub prices: BTreeMap<String, Money>,
    /// The currency of the provider's account, by ISO 4217: all money of this node is in it.
    pub currency: String,
    /// How many days the usage is kept in detail, and how many their sums.
    pub usage_days: u64,
    pub sums_days: u64,
    /// Which pages may be automated.
    pub targets: Targets,
    /// What tenants may order where that is less than the node allows, by name.
    pub tenants: BTreeMap<String, TenantRule>,
    /// Translates an order into the names of the catalogue; `None` leaves the order as it is.
    pub meaning: Option<KindTranslator>,
    pub throttle: Throttle,
    /// Whether several tenants share the provider.
    pub is_shared: bool,
    /// Where providers can call us, if they can.
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
    /// How many orders may wait in memory for one of the above; the rest wait in the store.
    pub backlog_max: usize,
    /// How many due orders are taken from the store at once.
    pub claim_max: usize,
    /// How long a claimed order is hidden from other nodes. It is longer than a poll may take, or tasks are polled
    /// twice. When the node that claimed it dies, another takes over after this time.
    pub claim_span: Duration,
    /// The longest and the shortest time between two looks for due orders.
    pub sweep_span: Duration,
    pub sweep_pause: Duration,
    /// How long one poll may take before its reply no longer counts.
    pub poll_wait: Duration,
    /// How long a placement is retried while the store is not available.
    pub place_wait: Duration,
    /// How long after an outage of the store other nodes are given to write down what came in during it.
    pub others_first: Duration,
    /// How long a join, which writes no order, may wait to be written into the usage; a crash loses those that wait.
    pub count_span: Duration,
    /// How many orders in flight this node remembers, for a store that can forget them; none, if no other node writes
    /// to the store.
    pub in_hand_max: usize,
}

impl Settings {
    #[must_use]
    pub fn new(node: u64, kinds: impl Fn(&str) -> Option<Kind> + Send + Sync + 'static) -> Self {
        Self {
            node,
            policy: Policy::DEFAULT,
            keys: KeySettings::default(),
            kinds: Arc::new(kinds),
            lifetimes: Vec::new(),
            provider: String::new(),
            prices: BTreeMap::new(),
            currency: "USD".to_owned(),
            usage_days: 7,
            sums_days: 400,
            targets: Targets::default(),
            tenants: BTreeMap::new(),
            meaning: None,
            throttle: Throttle::DEFAULT,
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
            claim_span: Duration::from_secs(7),
            sweep_span: Duration::from_secs(2),
            sweep_pause: Duration::from_millis(20),
            poll_wait: Duration::from_secs(6),
            place_wait: Duration::from_secs(2),
            others_first: Duration::from_secs(10),
            count_span: Duration::from_millis(100),
            in_hand_max: 0,
        }
    }
}

/// The price of these terms on a price list; `None` if it is not known.
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
