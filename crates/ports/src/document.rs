//! What all nodes must agree on besides orders, in a few small documents that are written by compare-and-swap: the
//! pools that people have set, what reports have taught about how long the answers of a site really live, what people
//! do with a great many dead letters at once, and the alerts that stand.

use crate::hours::Hours;
use crate::store::Version;
use crate::trust::Trust;
use quittance_lifecycle::{DeadLetterFilter, Key, Money, PriceSum, Timestamp, Value};
use std::collections::BTreeMap;
use std::time::Duration;

/// The most shared documents in a store. Nodes read all of them every few seconds.
pub const DOCUMENTS_MAX: usize = 512;
/// No pool holds more than this, whatever is asked of it.
pub const SIZE_MAX: u32 = 1000;
/// The longest name of a pool.
pub const POOL_NAME_BYTES_MAX: usize = 64;

/// What the operator asks of a pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Goal {
    /// The share of orders, in thousandths, that the stock is to serve: 1 to 999.
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
    /// The tenant whose orders it serves.
    pub tenant: String,
    pub kind: String,
    pub params: BTreeMap<String, Value>,
    pub goal: Goal,
    /// The most that it may spend in an hour.
    pub budget: Option<Money>,
    /// When it is kept filled; always, if there is none.
    pub hours: Vec<Hours>,
    /// How much life its answers must have when they are handed out; the kind's margin if absent.
    pub min_life: Option<Duration>,
    /// A pool that is off is remembered, and buys nothing.
    pub is_on: bool,
}

/// A pool, and how often each of its places has been filled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PoolDocument {
    pub spec: PoolSpec,
    /// The generation of each place that was ever filled, by its number. It only grows. The node that raises it then
    /// places the order of that generation; if it dies before that, the next node does it.
    pub generations: Vec<u64>,
    /// The generations of every place begin after this number: a pool that was removed and set again meets none of
    /// its old orders.
    pub first_generation: u64,
    pub spent: Spent,
    /// Refills that are counted in `spent` at a price that was expected, by place: what they really cost is not known
    /// yet.
    pub reserved: BTreeMap<u32, Reservation>,
    /// What its last answer cost. It holds only as long as `basis` does.
    pub price: Option<Money>,
    pub basis: PriceBasis,
    /// What all money on this document is in; empty if it was written before currencies were named here.
    pub currency: String,
    /// When a caller last wanted what it keeps, or an operator set it: a fixed size without demand is given up, also
    /// after a restart.
    pub asked_at: Timestamp,
    /// How it is sized, by the node that keeps it: for people to read.
    pub level: Option<LevelView>,
    /// It was removed, and is kept only so that a pool of its name that is set again in the same hour has not more to
    /// spend.
    pub is_removed: bool,
}

/// A refill that has been counted and has not ended yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reservation {
    /// The hour in which it was counted.
    pub hour: u64,
    /// The price at which it was counted; `None` if none was known.
    pub price: Option<Money>,
}

/// Under which circumstances the price of a pool was learned. A price that was learned under others is not known now.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PriceBasis {
    /// A digest of what is bought, where, in which currency, and at which price of the list.
    pub digest: u64,
    /// Only orders that were placed since then tell the price.
    pub since: Timestamp,
}

const HOUR_MS: u64 = 3_600_000;

/// What a pool has set out to spend in an hour.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Spent {
    /// Hours since 1970, in UTC.
    pub hour: u64,
    pub money: Money,
    pub refills: u64,
    /// Refills whose price is not known: they are not in `money`.
    pub unpriced: u64,
    /// What some of the `unpriced` are expected to have cost: a price was known when they were ordered.
    pub expected: Money,
    /// The rest of the `unpriced`: nothing says what they cost, or what is left of a budget.
    pub without_price: u64,
    /// The store forgot, and in this hour more may have been spent than this.
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

    /// The document of a pool that is set at `at` in place of this one, which was removed: it meets none of the old
    /// orders, and what was spent stays spent.
    #[must_use]
    pub fn set_again(self, spec: PoolSpec, at: Timestamp) -> Self {
        let Self { spent, price, basis, currency, .. } = self;
        Self { spent, price, basis, currency, ..Self::new(spec, at) }
    }

    /// The document for a node whose money is in `currency`. Amounts in another currency say nothing here: what was
    /// bought for them has no known price.
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

/// The level of a pool and why it is that, as it was last decided.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LevelView {
    pub at: Timestamp,
    pub size: u32,
    pub why: String,
    /// Orders in a thousand seconds.
    pub rate_milli: u64,
    pub lead: Duration,
    /// What stood there fresh, and what was on its way.
    pub fresh: u32,
    pub on_their_way: u32,
}

/// What callers have reported about answers of one site.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TrustDocument {
    pub tenant: String,
    pub kind: String,
    pub site: String,
    pub trust: Trust,
}

/// What is to be done with dead letters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BulkAction {
    Replay,
    Drop,
}

/// A bulk action: many dead letters that a person wants replayed or dropped. Any node can continue where the
/// last one stopped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BulkDocument {
    /// A unique number.
    pub number: u64,
    pub action: BulkAction,
    pub filter: DeadLetterFilter,
    /// Only what was dead before it began: what is replayed and dies again is not replayed a second time.
    pub begun: Timestamp,
    pub per_second: u32,
    /// All up to this key have been seen to.
    pub after: Option<Key>,
    /// How many were done, and how many were meant and were no dead letters any more, or could not be read.
    pub done: u64,
    pub passed_over: u64,
    /// When there was nothing left to do, or a person stopped it.
    pub ended: Option<Timestamp>,
    pub was_stopped: bool,
}

/// An alert that stands, or has stood a short while ago.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AlertNote {
    /// The rule's name, and what it is about: a provider, a pool, a node; nothing, if there is only one.
    pub rule: String,
    pub subject: String,
    pub is_grave: bool,
    pub words: String,
    pub raised: Timestamp,
    pub cleared: Option<Timestamp>,
    /// When an operator acknowledged the alert.
    pub seen: Option<Timestamp>,
}

/// What the usage of its day had counted at a moment, as far as alerts are about it. A node that restarts knows by it
/// what was counted in the hour before.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Mark {
    pub at: Timestamp,
    pub dead: u64,
    pub attempts: u64,
    pub doubts: u64,
    pub webhooks_failed: u64,
    pub solved: u64,
    pub recovered_by_poll: u64,
    pub spent: Money,
    /// Answers whose price is not known: they are not in `spent`.
    pub unpriced: u64,
}

/// The alerts, as the node has them that looks after them, and the marks of the last hour, the oldest first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AlertDocument {
    pub alerts: Vec<AlertNote>,
    pub marks: Vec<Mark>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(clippy::large_enum_variant, reason = "most documents are pools, and few are in memory at a time")]
pub enum SharedDocument {
    Pool(PoolDocument),
    Trust(TrustDocument),
    Bulk(BulkDocument),
    Alerts(AlertDocument),
}

impl SharedDocument {
    /// Under which name it is kept: one for each pool, and one for each site of a kind and tenant.
    #[must_use]
    pub fn name(&self) -> String {
        match self {
            Self::Pool(document) => Self::pool_name(&document.spec.name),
            Self::Trust(TrustDocument { tenant, kind, site, .. }) => Self::trust_name(tenant, kind, site),
            Self::Bulk(document) => Self::bulk_name(document.number),
            Self::Alerts(_) => Self::ALERTS.to_owned(),
        }
    }

    /// There is one for all.
    pub const ALERTS: &'static str = "alerts";

    #[must_use]
    pub fn bulk_name(number: u64) -> String {
        format!("bulk/{number:016x}")
    }

    #[must_use]
    pub fn pool_name(pool: &str) -> String {
        format!("pool/{pool}")
    }

    /// None of the three may hold a line break, so no two of them are written alike.
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
    /// Another writer was first: read again, and decide again.
    Conflict,
    /// There are [`DOCUMENTS_MAX`] already.
    NoRoom,
}
