//! Where orders are written down. One verb writes, [`Store::commit`], and it is a compare-and-swap: losing a race is
//! an answer, and says who won. [`Store::take`] gives away what stands in a stock, in one step, because a read before
//! it would cost a second round trip. [`Store::discard`] is for an operator, and for records that cannot be read.
//! Indices (`due`, `stock`, `forget_at`) are derived from the order, so a store knows no rule and the engine cannot
//! tell stores apart.

use crate::watch::Watch;
use async_trait::async_trait;
use quittance_lifecycle::{Counters, Key, Order, Target, Terms, Timestamp};
use std::error::Error;
use std::sync::Arc;

/// Names one write of one record. The versions of a key only grow, and none comes back when its record was purged and
/// created again: a node that slept through all of that must lose to what it has never seen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Version(pub u64);

impl Version {
    /// What to expect where there is no record yet.
    pub const ABSENT: Self = Self(0);
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Versioned {
    pub version: Version,
    /// Shared, because the hot path is to read an order that a store has in memory anyway.
    pub order: Arc<Order>,
}

/// A record that is there and cannot be understood. It is reported and left alone until a person
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
    /// Another writer was first; this is what stands now (nothing, if the record is gone).
    Conflict(Option<Box<Versioned>>),
}

/// What [`Store::claim_due`] found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Due {
    pub orders: Vec<Versioned>,
    /// The next moment at which an order that was not returned is due or its claim lapses. It may already have
    /// passed.
    pub next: Option<Timestamp>,
    /// Records that were due and could not be understood: reported, and out of the way of the others. One that a
    /// later version may have written stays due for nodes that can read it.
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

/// Which line of the usage something is added to.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct UsageRow {
    pub day: Day,
    pub tenant: String,
    pub kind: String,
    /// The [site](quittance_lifecycle::Terms::site), or [all of them](Self::ALL_SITES) once the day is no longer kept
    /// in detail.
    pub site: String,
    /// The provider, and the currency that the amounts are in: see
    /// [`account`](quittance_lifecycle::account::account). To a store it is one name; its columns call it the
    /// provider.
    pub account: String,
}

impl UsageRow {
    /// What stands for the site in the sums of days that are no longer kept in detail. No host is called that.
    pub const ALL_SITES: &'static str = "*";

    #[must_use]
    pub fn of(order: &Order, at: Timestamp) -> Self {
        Self::for_terms(&order.terms, at)
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

/// How many orders stand where.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OrderCounts {
    pub open: u64,
    /// Those that wait for a person, records that cannot be understood among them.
    pub dead: u64,
}

/// Which orders to list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Which<'a> {
    /// Those that stand there; all, if absent.
    pub class: Option<OrderClass>,
    /// The tenant whose orders are meant; all tenants, if absent.
    pub tenant: Option<&'a str>,
}

impl<'a> Which<'a> {
    pub const ALL: Self = Self { class: None, tenant: None };
    pub const OPEN: Self = Self { class: Some(OrderClass::Open), tenant: None };
    pub const DEAD: Self = Self { class: Some(OrderClass::Dead), tenant: None };

    /// Of these, the orders of one tenant.
    #[must_use]
    pub const fn of(self, tenant: &'a str) -> Self {
        Self { tenant: Some(tenant), ..self }
    }

    #[must_use]
    pub fn includes(self, order: &Order) -> bool {
        self.tenant.is_none_or(|tenant| tenant == order.terms.tenant)
            && self.class.is_none_or(|class| class == OrderClass::of(order))
    }

    /// Whether records that cannot be understood are among them. Their tenant is not known, and they wait for an
    /// operator.
    #[must_use]
    pub fn includes_unreadable(self) -> bool {
        self.tenant.is_none() && self.class.is_none_or(|class| class == OrderClass::Dead)
    }
}

#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// It may work later, and a write *may have happened*: reload, then decide again.
    #[error("the store is not available while {doing}")]
    Unavailable { doing: &'static str, source: Box<dyn Error + Send + Sync> },
    /// A stored record cannot be understood. A person must look.
    #[error("the record of order {key} cannot be read: {detail}")]
    Corrupt { key: Key, detail: String },
}

/// Every call returns, with an answer or an error, within a bounded time: a node that waits for a store for ever can
/// carry nothing out.
#[async_trait]
pub trait Store: Send + Sync {
    async fn load(&self, key: &Key) -> Result<Option<Versioned>, StoreError>;

    /// Writes `next` if its record still has the version `expected`, adds `counters` to the usage of the day of
    /// `at`, updates every index and, if `next` is no longer [awaited](Order::is_awaited), wakes every watch of the
    /// order: all of it or nothing, durable when it returns. A commit that leaves the order awaited need not wake
    /// a watch, and should not: a hundred waiters would look, and learn nothing. Counters of nothing open no row in
    /// the usage. A writer that loses changes nothing and wakes no watch.
    async fn commit(
        &self,
        expected: Version,
        next: &Arc<Order>,
        counters: &Counters,
        at: Timestamp,
    ) -> Result<Commit, StoreError>;

    /// Orders due by `now`, soonest first and then by key, hidden from other claimers until `until` or until they
    /// are written: a courtesy that saves work, never a lock that anything relies on. A claim puts the order's
    /// timer off to `until`, so an order that no node can finish stands behind what was due sooner, and starves no
    /// other.
    async fn claim_due(&self, now: Timestamp, until: Timestamp, limit: usize) -> Result<Due, StoreError>;

    /// Gives the answer in the stock that expires soonest, of those that do not expire before `good_until`, to `by`.
    /// Then the record is [`Order::taken`] by `by` `at` this moment, and `counters` is in the usage of the day: all
    /// of it or nothing, durable when it returns. Two takers at the same instant get two answers, or one of them gets
    /// none. `by` is the key of one order, which needs one answer from one stock: a claimant that has taken one
    /// already gets the same again, whatever `good_until` says, for as long as it is on record and claimed by it, and
    /// nothing is counted. So a taker that lost the reply takes again. An answer that cannot be understood is passed
    /// over.
    async fn take(
        &self,
        target: &Target,
        good_until: Timestamp,
        by: &Key,
        at: Timestamp,
        counters: &Counters,
    ) -> Result<Option<Versioned>, StoreError>;

    /// The orders on a stock that expire after `now`, soonest to expire first and then by key.
    async fn list_stock(&self, target: &Target, now: Timestamp, limit: usize)
    -> Result<Vec<Key>, StoreError>;

    /// Misses no commit that is made after it returns and leaves this order no longer
    /// [awaited](Order::is_awaited). Of other commits it need not hear.
    async fn watch(&self, key: &Key) -> Result<Watch, StoreError>;

    /// Orders in the order of their keys, from the first one after `after`. A record that cannot be understood stands
    /// among [all](Which::ALL) and among the [dead](Which::DEAD), as what it is, and in the list of no tenant. A
    /// tenant's list is read from an index of that tenant, so how long it takes says nothing about other tenants'
    /// orders.
    async fn list(
        &self,
        which: Which<'_>,
        after: Option<&Key>,
        limit: usize,
    ) -> Result<Vec<Result<Versioned, Unreadable>>, StoreError>;

    /// Removes up to `limit` orders that may be forgotten by `now`, those that could be forgotten first and then by
    /// key, and says how many it removed. It wakes no watch.
    async fn purge(&self, now: Timestamp, limit: usize) -> Result<usize, StoreError>;

    /// Removes the record of this key if it cannot be read, with all that the indices say of it, and says whether
    /// there was one; durable when it returns. The key is free then, and its versions go on growing. A readable
    /// record is left alone. So is one that a later version wrote: other nodes can read it, and the error is the one
    /// that reading it has. It wakes no watch.
    async fn discard(&self, key: &Key) -> Result<bool, StoreError>;

    /// Adds to the usage what changed no order.
    async fn count(&self, line: &UsageRow, counters: &Counters) -> Result<(), StoreError>;

    /// The usage of these days, both included, in the order of their lines.
    async fn usage(&self, from: Day, to: Day) -> Result<Vec<(UsageRow, Counters)>, StoreError>;

    /// Of each day before `detail`, the lines of all sites become one, [`UsageRow::ALL_SITES`], for each tenant, kind
    /// and provider; of days before `sums` nothing is left. All that was counted stays counted, also while others
    /// count. To do it again changes nothing.
    async fn compact_usage(&self, detail: Day, sums: Day) -> Result<(), StoreError>;

    /// How many orders there are; it need not wait for writes that are under way.
    async fn order_counts(&self) -> Result<OrderCounts, StoreError>;
}
