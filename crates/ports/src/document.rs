//! Shared documents: what all nodes must agree on besides orders. There are eight sorts, each written by
//! compare-and-swap: pools, reports about the answers of a site, bulk actions on dead letters, alerts, the gates
//! before provider accounts, endpoints of webhooks that fail, outages after which orders are replayed, and budgets.

use crate::hours::Hours;
use crate::store::Version;
use crate::trust::Trust;
use quittance_lifecycle::{DeadLetterFilter, Key, Money, PriceSum, Timestamp, Value};
use std::collections::BTreeMap;
use std::time::Duration;

/// The most shared documents in a store. Nodes read all of them every few seconds.
pub const DOCUMENTS_MAX: usize = 512;
/// The most answers that a pool may hold, whatever its goal.
pub const SIZE_MAX: u32 = 1000;
/// The longest name of a pool.
pub const POOL_NAME_BYTES_MAX: usize = 64;

/// The goal that the operator sets for a pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Goal {
    /// The share of orders that the stock should serve, in thousandths: 1 to 999.
    Served {
        permille: u32,
    },
    Fixed {
        size: u32,
    },
}

/// A standing instruction to keep the stock of one target at a level.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PoolSpec {
    pub name: String,
    /// The tenant whose orders the pool serves.
    pub tenant: String,
    pub kind: String,
    pub params: BTreeMap<String, Value>,
    pub goal: Goal,
    /// The most that the pool may spend in one hour.
    pub budget: Option<Money>,
    /// When the pool is kept filled; always, if the list is empty.
    pub hours: Vec<Hours>,
    /// How much life the pool's answers must have when they are handed out; `None` for the kind's margin.
    pub min_life: Option<Duration>,
    /// Whether the pool is on. A pool that is off is kept, and buys nothing.
    pub is_on: bool,
}

/// A pool, and how often each of its places has been filled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PoolDocument {
    pub spec: PoolSpec,
    /// The generation of each place that was ever filled, by its number. It only grows. The node that raises it then
    /// places the order of that generation. If that node dies before, the next node does it.
    pub generations: Vec<u64>,
    /// The generations of all places begin after this number, so a pool that was removed and set again meets none of
    /// its old orders.
    pub first_generation: u64,
    pub spent: Spent,
    /// Refills that are counted in `spent` at an expected price, by place. Their real cost is not known yet.
    pub reserved: BTreeMap<u32, Reservation>,
    /// What the pool's last answer cost. Valid only while `basis` is.
    pub price: Option<Money>,
    pub basis: PriceBasis,
    /// The currency of all amounts in this document; empty if it was written before currencies were named here.
    pub currency: String,
    /// When a caller last wanted an answer of this pool, or an operator set it. After a long time without demand, a
    /// pool of a fixed size holds nothing, also after a restart.
    pub asked_at: Timestamp,
    /// The level and its reason, written by the node that keeps the pool, for operators.
    pub level: Option<LevelView>,
    /// Whether the pool was removed. The document is kept so that a new pool of its name has no new budget in the
    /// same hour.
    pub is_removed: bool,
}

/// A refill that was counted and has not ended yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reservation {
    /// The hour in which the refill was counted.
    pub hour: u64,
    /// The price at which the refill was counted; `None` if none was known.
    pub price: Option<Money>,
}

/// The circumstances under which the price of a pool was learned. Under other circumstances the price counts as
/// unknown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PriceBasis {
    /// A digest of what is bought, where, in which currency, and at which price of the list.
    pub digest: u64,
    /// Only orders that were placed since then show the price.
    pub since: Timestamp,
}

const HOUR_MS: u64 = 3_600_000;

/// What a pool has spent, or reserved, in one hour.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Spent {
    /// Hours since 1970, in UTC.
    pub hour: u64,
    pub money: Money,
    pub refills: u64,
    /// Refills with an unknown price, which `money` does not include.
    pub unpriced: u64,
    /// The expected cost of those `unpriced` refills whose price was known when they were ordered.
    pub expected: Money,
    /// The other `unpriced` refills. Nothing shows what they cost, so the rest of a budget is not known.
    pub without_price: u64,
    /// Whether more than this may have been spent in this hour, because the store forgot.
    pub is_incomplete: bool,
}

impl PoolDocument {
    /// The document of a pool that has bought nothing yet, set at `at`.
    #[must_use]
    pub const fn new(spec: PoolSpec, at: Timestamp) -> Self {
        Self {
            spec,
            generations: Vec::new(),
            first_generation: at.as_millis(),
            spent: Spent {
                hour: 0,
                money: Money(0),
                refills: 0,
                unpriced: 0,
                expected: Money(0),
                without_price: 0,
                is_incomplete: false,
            },
            reserved: BTreeMap::new(),
            price: None,
            basis: PriceBasis { digest: 0, since: at },
            currency: String::new(),
            asked_at: at,
            level: None,
            is_removed: false,
        }
    }

    /// The document of a pool that is set at `at` again after this one was removed. It meets none of the old orders,
    /// and keeps what was spent.
    #[must_use]
    pub fn set_again(self, spec: PoolSpec, at: Timestamp) -> Self {
        let Self { spent, price, basis, currency, .. } = self;
        Self { spent, price, basis, currency, ..Self::new(spec, at) }
    }

    /// The document for a node with this `currency`. Amounts in another currency become unknown.
    #[must_use]
    pub fn in_currency(mut self, currency: &str) -> Self {
        if self.currency != currency {
            if !self.currency.is_empty() {
                let refills = self.spent.refills;
                self.spent = Spent {
                    money: Money(0),
                    unpriced: refills,
                    expected: Money(0),
                    without_price: refills,
                    ..self.spent
                };
                self.reserved.values_mut().for_each(|reserved| reserved.price = None);
                self.price = None;
            }
            currency.clone_into(&mut self.currency);
        }
        self
    }
}

impl Spent {
    /// The hour of a moment, counted from 1970, in UTC.
    #[must_use]
    pub const fn hour_of(at: Timestamp) -> u64 {
        at.as_millis() / HOUR_MS
    }

    /// What was spent in the hour of `now`: what was spent in an earlier hour does not count.
    #[must_use]
    pub fn in_hour_of(self, now: Timestamp) -> Self {
        let hour = Self::hour_of(now);
        if self.hour == hour { self } else { Self { hour, ..Self::default() } }
    }

    #[must_use]
    pub const fn sum(&self) -> PriceSum {
        PriceSum { sum: self.money, unpriced: self.unpriced }
    }
}

/// The last decided level of a pool, and its reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LevelView {
    pub at: Timestamp,
    pub size: u32,
    pub why: String,
    /// Orders in 1000 seconds.
    pub rate_milli: u64,
    pub lead: Duration,
    /// How many fresh answers the stock had at that moment.
    pub fresh: u32,
    /// How many answers were bought and had not arrived at that moment.
    pub on_their_way: u32,
}

/// What callers have reported about the answers of one site.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TrustDocument {
    pub tenant: String,
    pub kind: String,
    pub site: String,
    pub trust: Trust,
}

/// What a bulk action does with dead letters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BulkAction {
    Replay,
    Drop,
}

/// A bulk action: many dead letters that an operator replays or drops. Any node can continue where the last one
/// stopped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BulkDocument {
    /// A unique number.
    pub number: u64,
    pub action: BulkAction,
    pub filter: DeadLetterFilter,
    /// When the action began. Only orders that were dead before that are included: an order that dies again is not
    /// replayed a second time.
    pub begun: Timestamp,
    pub per_second: u32,
    /// All dead letters up to this key are done.
    pub after: Option<Key>,
    /// How many dead letters were replayed or dropped.
    pub done: u64,
    /// How many matching orders were no dead letters any more, or could not be read.
    pub passed_over: u64,
    /// When the action ended: nothing was left to do, or an operator stopped it.
    pub ended: Option<Timestamp>,
    pub was_stopped: bool,
}

/// An alert that is active, or was active a short while ago.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AlertNote {
    /// The name of the rule.
    pub rule: String,
    /// What the alert is about: a provider, a pool, a node; empty if the rule has only one subject.
    pub subject: String,
    pub is_grave: bool,
    pub words: String,
    pub raised: Timestamp,
    pub cleared: Option<Timestamp>,
    /// When an operator acknowledged the alert.
    pub seen: Option<Timestamp>,
}

/// What the usage of a day had counted at one moment, as far as alerts need it. A node that restarts computes from
/// this what was counted in the last hour.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Mark {
    pub at: Timestamp,
    pub dead: u64,
    pub attempts: u64,
    pub in_doubt: u64,
    pub webhooks_failed: u64,
    pub solved: u64,
    pub recovered_by_poll: u64,
    pub spent: Money,
    /// Answers with an unknown price, which `spent` does not include.
    pub unpriced: u64,
}

/// The alerts of the node that runs the alert engine, and the marks of the last hour, the oldest first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AlertDocument {
    pub alerts: Vec<AlertNote>,
    pub marks: Vec<Mark>,
}

/// What an operator wants a provider to be given.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ProviderMode {
    #[default]
    Active,
    /// No submits. Tasks that the provider has are polled.
    Paused,
    /// As `Paused`: the provider finishes its tasks, and is then taken out.
    Drained,
}

impl ProviderMode {
    pub const ALL: [Self; 3] = [Self::Active, Self::Paused, Self::Drained];

    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Active => "active",
            Self::Paused => "paused",
            Self::Drained => "drained",
        }
    }
}

/// Why nothing is submitted to an account until it is fixed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AccountPause {
    /// The provider's code, shortened.
    pub code: String,
    pub at: Timestamp,
    /// Whether the account has no money: then more money ends the pause. Otherwise an operator must end it.
    pub is_no_funds: bool,
    /// The balance in millionths, or the number of threads, when a node looked first; `None` until then.
    pub funds: Option<u64>,
}

/// The node that tries a provider which does not answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GateProbe {
    pub node: u64,
    /// Until when the other nodes leave it to this node.
    pub until: Timestamp,
}

/// What all nodes know about the gate before one provider account.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GateDocument {
    pub provider: String,
    pub mode: ProviderMode,
    pub pause: Option<AccountPause>,
    /// When the account was last resumed. A pause that a node has from before this moment is over.
    pub resumed_at: Timestamp,
    /// Until when the provider wants no submits.
    pub no_submits_until: Timestamp,
    /// Until when the provider wants no polls.
    pub no_polls_until: Timestamp,
    /// Who tries the provider while it does not answer.
    pub probe: Option<GateProbe>,
    /// When the provider last answered after an outage. Zero if never.
    pub answered_at: Timestamp,
}

/// The most endpoints that are remembered. Endpoints that are switched off are removed last.
pub const ENDPOINTS_MAX: usize = 256;

/// What is known of an endpoint of webhooks: one host of one tenant.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EndpointNote {
    pub tenant: String,
    pub host: String,
    /// Since when every delivery has failed; `None` if the last one was accepted.
    pub failing_since: Option<Timestamp>,
    /// How many deliveries have failed since then, as one node counts them.
    pub failures: u32,
    /// When a delivery was last accepted, or an operator switched the endpoint on. Zero if never.
    pub ok_at: Timestamp,
    /// When the endpoint was switched off.
    pub off_at: Option<Timestamp>,
    /// When the endpoint was last called although it is off, to see whether it works again. Zero if never.
    pub probed_at: Timestamp,
    /// Why the last delivery failed, shortened.
    pub why: String,
}

impl EndpointNote {
    /// Adds what another node knows of the same endpoint.
    pub fn merge(&mut self, other: &Self) {
        self.ok_at = self.ok_at.max(other.ok_at);
        let earlier = |one: Option<Timestamp>, other: Option<Timestamp>| {
            [one, other].into_iter().flatten().filter(|at| *at > self.ok_at).min()
        };
        let (failing_since, off_at) =
            (earlier(self.failing_since, other.failing_since), earlier(self.off_at, other.off_at));
        (self.failing_since, self.off_at) = (failing_since, off_at);
        self.probed_at = self.probed_at.max(other.probed_at);
        self.failures = if failing_since.is_some() { self.failures.max(other.failures) } else { 0 };
        if self.why.is_empty() {
            self.why.clone_from(&other.why);
        }
    }
}

/// The endpoints of webhooks that have failed for a while, or did a short time ago.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EndpointsDocument {
    pub endpoints: Vec<EndpointNote>,
}

/// An outage of a provider, after which orders are replayed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OutageNote {
    pub provider: String,
    pub began: Timestamp,
    /// When a node last found the provider tripped or paused.
    pub last_seen: Timestamp,
    /// When a node last found it well again. Zero if none has.
    pub well_at: Timestamp,
}

/// The outages whose dead letters are not replayed yet, and what replays have used of the budget of one hour.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OutagesDocument {
    pub outages: Vec<OutageNote>,
    /// The hour of the numbers below, counted as in [`Spent::hour`].
    pub hour: u64,
    pub replays: u64,
    /// The expected price of these replays.
    pub money: Money,
}

/// The most nodes of which a budget keeps a share. The shares of nodes that are gone are added up before that.
pub const SHARES_MAX: usize = 64;

/// What one node has of a budget, in one period. Only that node writes it. Amounts are in millionths, and may be below
/// zero: a node may get money back that another node has leased.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BudgetShare {
    /// Grows with each write, so the higher step is the later one.
    pub step: u64,
    /// What the node has leased and not given back. Attempts are paid from this only.
    pub leased: i64,
    /// What attempts that are over have cost, as far as this node has settled them.
    pub charged: i64,
    /// How many attempts that are over have a cost that is not known. `charged` has their expected cost.
    pub unpriced: i64,
}

/// What all nodes have spent of one budget, and what they have leased, in one period.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BudgetDocument {
    /// The period and the name of the budget, such as `hour/team-a`.
    pub budget: String,
    /// The currency of all amounts.
    pub currency: String,
    /// When the period began.
    pub begins: Timestamp,
    /// Until when no node leases, because the store forgot, and other nodes may know of more leases.
    pub no_leases_until: Timestamp,
    pub nodes: BTreeMap<u64, BudgetShare>,
    /// The sum of the shares of nodes that are gone. Its step counts how often a share was added.
    pub gone: BudgetShare,
}

#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(clippy::large_enum_variant, reason = "most documents are pools, and few are in memory at a time")]
pub enum SharedDocument {
    Pool(PoolDocument),
    Trust(TrustDocument),
    Bulk(BulkDocument),
    Alerts(AlertDocument),
    Gate(GateDocument),
    Endpoints(EndpointsDocument),
    Outages(OutagesDocument),
    Budget(BudgetDocument),
}

impl SharedDocument {
    /// The name of the document: one for each pool, and one for each site of a kind and tenant.
    #[must_use]
    pub fn name(&self) -> String {
        match self {
            Self::Pool(document) => Self::pool_name(&document.spec.name),
            Self::Trust(TrustDocument { tenant, kind, site, .. }) => Self::trust_name(tenant, kind, site),
            Self::Bulk(document) => Self::bulk_name(document.number),
            Self::Alerts(_) => Self::ALERTS.to_owned(),
            Self::Gate(document) => Self::gate_name(&document.provider),
            Self::Endpoints(_) => Self::ENDPOINTS.to_owned(),
            Self::Outages(_) => Self::OUTAGES.to_owned(),
            Self::Budget(document) => Self::budget_name(&document.budget),
        }
    }

    /// The name of the one document of all alerts.
    pub const ALERTS: &'static str = "alerts";
    /// The name of the one document of all endpoints of webhooks.
    pub const ENDPOINTS: &'static str = "endpoints";
    /// The name of the one document of all outages.
    pub const OUTAGES: &'static str = "outages";

    #[must_use]
    pub fn bulk_name(number: u64) -> String {
        format!("bulk/{number:016x}")
    }

    /// The name of the document of a budget, from its period and name.
    #[must_use]
    pub fn budget_name(budget: &str) -> String {
        format!("budget/{budget}")
    }

    #[must_use]
    pub fn gate_name(provider: &str) -> String {
        format!("gate/{provider}")
    }

    #[must_use]
    pub fn pool_name(pool: &str) -> String {
        format!("pool/{pool}")
    }

    /// The name of the document for reports about a site. None of the three parts may contain a line break, so names
    /// are unique.
    #[must_use]
    pub fn trust_name(tenant: &str, kind: &str, site: &str) -> String {
        format!("trust/{kind}\n{site}\n{tenant}")
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredDocument {
    pub name: String,
    pub version: Version,
    pub document: SharedDocument,
}

#[must_use = "a writer that lost the race must not act as if it had won"]
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DocumentWritten {
    Done(Version),
    /// Another writer was first. Read again, and decide again.
    Conflict,
    /// There are already [`DOCUMENTS_MAX`] documents.
    NoRoom,
}
