//! The contract of a store. [`Store::commit`] writes orders by compare-and-swap: a lost race is a result, and returns
//! the record that won. [`Store::take`] gives an answer in stock to an order in one step, because a read before it
//! would cost a second round trip. [`Store::discard`] is for operators and unreadable records. Indices (`due`,
//! `stock`, `forget_at`) are derived from the order, so a store knows no rules, and all stores behave alike.

use crate::watch::Watch;
use async_trait::async_trait;
use quittance_lifecycle::{Counters, Key, Order, Target, Terms, Timestamp};
use std::error::Error;
use std::sync::Arc;

/// The version of one write of one record. The versions of a key only grow. No version is used again after its record
/// was purged and created again: a node that was frozen meanwhile must lose the race.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Version(pub u64);

impl Version {
    /// The version to expect if there is no record yet.
    pub const ABSENT: Self = Self(0);
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Versioned {
    pub version: Version,
    /// The order. It is shared, because mostly a store has it in memory already.
    pub order: Arc<Order>,
}

/// A record that exists and cannot be read. It is reported and left alone until a person
/// [discards](Store::discard) it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unreadable {
    pub key: Key,
    pub detail: String,
}

#[must_use = "a writer that lost the race must not act as if it had won"]
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Commit {
    Done(Version),
    /// Another writer was first. Holds the record as it is now (`None` if the record is gone).
    Conflict(Option<Box<Versioned>>),
}

/// What [`Store::claim_due`] found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Due {
    pub orders: Vec<Versioned>,
    /// The next moment at which an order that was not returned is due or its claim lapses. It may already have
    /// passed.
    pub next: Option<Timestamp>,
    /// Due records that could not be read. They are reported and do not hold up other orders. A record
    /// that a later version may have written stays due for nodes that can read it.
    pub unreadable: Vec<Unreadable>,
}

/// Days since the Unix epoch, in UTC.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Day(pub u64);

impl Day {
    #[must_use]
    pub const fn of(moment: Timestamp) -> Self {
        Self(moment.as_millis() / (24 * 3600 * 1000))
    }
}

/// A row of the usage, to which counters are added.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct UsageRow {
    pub day: Day,
    pub tenant: String,
    pub kind: String,
    /// The [site](quittance_lifecycle::Terms::site), or [all of them](Self::ALL_SITES) once the day is no longer kept
    /// in detail.
    pub site: String,
    /// The provider and the currency of the amounts: see [`account`](quittance_lifecycle::account::account).
    /// To a store it is one name. Stored columns call it the provider.
    pub account: String,
}

impl UsageRow {
    /// The site of rows that sum up all sites, for days that are no longer kept in detail. No host has this
    /// name.
    pub const ALL_SITES: &'static str = "*";

    /// The row that counts the last change of this order: that of the account of the attempt that it was about.
    #[must_use]
    pub fn of(order: &Order, at: Timestamp) -> Self {
        Self { account: order.booked_account().to_owned(), ..Self::for_terms(&order.terms, at) }
    }

    #[must_use]
    pub fn for_terms(terms: &Terms, at: Timestamp) -> Self {
        let Terms { tenant, kind, site, account, .. } = terms;
        Self {
            day: Day::of(at),
            tenant: tenant.clone(),
            kind: kind.clone(),
            site: site.clone(),
            account: account.clone(),
        }
    }
}

/// The class of an order, for lists of orders.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum OrderClass {
    Open,
    Dead,
    AtRest,
}

impl OrderClass {
    #[must_use]
    pub fn of(order: &Order) -> Self {
        match &order.phase {
            _ if order.needs_a_person() => Self::Dead,
            phase if phase.is_open() => Self::Open,
            _ => Self::AtRest,
        }
    }
}

/// How many orders are open, and how many are dead letters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OrderCounts {
    pub open: u64,
    /// Orders that need an operator, and records that cannot be read.
    pub dead: u64,
}

/// Which orders to list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Which<'a> {
    /// Only orders of this class; all classes if `None`.
    pub class: Option<OrderClass>,
    /// Only orders of this tenant; all tenants if `None`.
    pub tenant: Option<&'a str>,
}

impl<'a> Which<'a> {
    pub const ALL: Self = Self { class: None, tenant: None };
    pub const OPEN: Self = Self { class: Some(OrderClass::Open), tenant: None };
    pub const DEAD: Self = Self { class: Some(OrderClass::Dead), tenant: None };

    /// Limits the selection to one tenant.
    #[must_use]
    pub const fn of(self, tenant: &'a str) -> Self {
        Self { tenant: Some(tenant), ..self }
    }

    #[must_use]
    pub fn includes(self, order: &Order) -> bool {
        self.tenant.is_none_or(|tenant| tenant == order.terms.tenant)
            && self.class.is_none_or(|class| class == OrderClass::of(order))
    }

    /// Whether the selection includes records that cannot be read. Their tenant is not known, and they need an
    /// operator.
    #[must_use]
    pub fn includes_unreadable(self) -> bool {
        self.tenant.is_none() && self.class.is_none_or(|class| class == OrderClass::Dead)
    }
}

#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The store did not answer. The call may work later, and a write *may have happened*: load the record,
    /// then decide again.
    #[error("the store is not available while {doing}")]
    Unavailable { doing: &'static str, source: Box<dyn Error + Send + Sync> },
    /// A stored record cannot be read. An operator must look at it.
    #[error("the record of order {key} cannot be read: {detail}")]
    Corrupt { key: Key, detail: String },
}

/// Where orders are kept. Every call returns within a bounded time, with a result or an error: a node that
/// waits for a store for ever can do no work.
#[async_trait]
pub trait Store: Send + Sync {
    async fn load(&self, key: &Key) -> Result<Option<Versioned>, StoreError>;

    /// Writes `next` if its record still has the version `expected`, adds `counters` to the usage of the day
    /// of `at` and updates every index: all of it or nothing, durable when this returns. If `next` is no
    /// longer [awaited](Order::is_awaited), the commit also wakes every watch of the order. A commit that
    /// leaves the order awaited should wake no watch: a hundred waiters would read the record, and find
    /// nothing new. Counters that are all zero make no row in the usage. A writer that loses changes nothing
    /// and wakes no watch.
    async fn commit(
        &self,
        expected: Version,
        next: &Arc<Order>,
        counters: &Counters,
        at: Timestamp,
    ) -> Result<Commit, StoreError>;

    /// Returns orders due by `now`, soonest first and then by key, and hides them from other claimers until
    /// `until` or until they are written. A claim only saves work: it is no lock, and nothing relies on it. A
    /// claim puts the order's timer off to `until`. So an order that no node can finish goes behind orders
    /// that were due sooner, and holds up no other order.
    async fn claim_due(&self, now: Timestamp, until: Timestamp, limit: usize) -> Result<Due, StoreError>;

    /// Takes one answer from the stock of `target` and gives it to `by`: the answer that expires soonest, of
    /// those that do not expire before `good_until`. Then the record is [`Order::taken`] by `by` at the
    /// moment `at`, and `counters` is in the usage of that day: all of it or nothing, durable when this
    /// returns. Two takers at the same instant get two answers, or one of them gets none. The call is
    /// idempotent for each claimant `by`: a claimant that has taken an answer gets the same one again, as
    /// long as that answer is on record and claimed by it. Then `good_until` is ignored, and nothing is
    /// counted. So a taker that lost the reply simply takes again. An answer that cannot be read is passed
    /// over.
    async fn take(
        &self,
        target: &Target,
        good_until: Timestamp,
        by: &Key,
        at: Timestamp,
        counters: &Counters,
    ) -> Result<Option<Versioned>, StoreError>;

    /// The orders in the stock of `target` whose answers expire after `now`, soonest first and then by key.
    async fn list_stock(&self, target: &Target, now: Timestamp, limit: usize)
    -> Result<Vec<Key>, StoreError>;

    /// Watches one order. After this returns, the watch misses no commit that leaves the order no longer
    /// [awaited](Order::is_awaited). It may miss other commits.
    async fn watch(&self, key: &Key) -> Result<Watch, StoreError>;

    /// Lists orders by key, beginning with the first key after `after`. A record that cannot be read is
    /// listed as [`Unreadable`] among [all](Which::ALL) and among the [dead](Which::DEAD), and in the list of
    /// no tenant. A tenant's list is read from an index of that tenant, so the time that it takes shows
    /// nothing about other tenants' orders.
    async fn list(
        &self,
        which: Which<'_>,
        after: Option<&Key>,
        limit: usize,
    ) -> Result<Vec<Result<Versioned, Unreadable>>, StoreError>;

    /// Removes up to `limit` orders whose removal time is not after `now`, the earliest first and then by
    /// key. Returns how many it removed. It wakes no watch.
    async fn purge(&self, now: Timestamp, limit: usize) -> Result<usize, StoreError>;

    /// Removes the record of this key if it cannot be read, with its index entries. Returns whether it
    /// removed one; durable when this returns. Then the key is free, and its versions continue to grow. A
    /// readable record is left alone. A record that a later version wrote is left alone, too, because other
    /// nodes can read it: then the error is the one of reading it. It wakes no watch.
    async fn discard(&self, key: &Key) -> Result<bool, StoreError>;

    /// Adds counters to the usage for events that changed no order, such as a join.
    async fn count(&self, line: &UsageRow, counters: &Counters) -> Result<(), StoreError>;

    /// The usage of the days from `from` to `to`, both included, sorted by row.
    async fn usage(&self, from: Day, to: Day) -> Result<Vec<(UsageRow, Counters)>, StoreError>;

    /// Compacts old usage. For each day before `detail`, the rows of all sites become one row,
    /// [`UsageRow::ALL_SITES`], for each tenant, kind and provider. Days before `sums` are removed. The
    /// totals of the days that remain do not change, also while other nodes count. A repeat changes nothing.
    async fn compact_usage(&self, detail: Day, sums: Day) -> Result<(), StoreError>;

    /// How many orders are open, and how many are dead letters. It need not wait for writes in progress.
    async fn order_counts(&self) -> Result<OrderCounts, StoreError>;
}
