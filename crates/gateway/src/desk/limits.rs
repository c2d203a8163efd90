//! What a tenant may take of what all tenants share, and what it may see of it.

use super::{Declined, Desk, Inner, PAGE};
use crate::hub::{OpenPlace, Reservation, is_counted};
use crate::seats::{Seat, Seats};
use crate::tenant::{Caller, TenantSettings};
use crate::wrong_keys::WrongKeys;
use hashbrown::HashSet;
use quittance_engine::PlaceError;
use quittance_lifecycle::{Draft, Money};
use quittance_ports::{Threads, Which};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::time::Instant;

/// How often the open orders of a tenant with a large limit are counted in a store that other nodes share.
const NEIGHBOURS_SPAN: Duration = Duration::from_millis(500);

/// The balance that tenants are told that may not see the account's.
const ENOUGH_MONEY: Money = Money(10_000_000);

/// Three quarters of all requests may wait; the others are for those that do not.
pub(super) fn waits(requests_max: usize) -> Seats {
    Seats::new(requests_max - requests_max / 4)
}

/// When the open orders of each tenant were last counted in a store that other nodes share.
#[derive(Debug, Default)]
pub(super) struct Neighbours(Mutex<BTreeMap<String, Instant>>);

impl Neighbours {
    /// Whether it is time to count again; if so, this is taken for the moment of the count.
    fn is_due(&self, tenant: &str) -> bool {
        let (mut counted, now) = (self.0.lock().unwrap_or_else(PoisonError::into_inner), Instant::now());
        let is_due = counted.get(tenant).is_none_or(|at| now - *at >= NEIGHBOURS_SPAN);
        if is_due {
            counted.insert(tenant.to_owned(), now);
        }
        is_due
    }
}

impl Desk {
    /// Other nodes accept orders into the same store.
    ///
    /// # Panics
    /// If it is shared already.
    #[must_use]
    pub fn with_neighbours(mut self) -> Self {
        Arc::get_mut(&mut self.inner)
            .expect("a desk is told of other nodes before it is shared")
            .neighbours = Some(Neighbours::default());
        self
    }

    /// Behind a server that works on so many requests at once.
    ///
    /// # Panics
    /// If it is shared already.
    #[must_use]
    pub fn with_requests_max(mut self, requests_max: usize) -> Self {
        Arc::get_mut(&mut self.inner).expect("a desk is told its limits before it is shared").waits =
            waits(requests_max);
        self
    }

    /// A seat for a request that waits; nothing, if this tenant has its share of them already.
    pub(super) fn wait_seat(&self, tenant: &str) -> Option<Seat> {
        self.inner.waits.take(tenant, self.inner.tenants.is_only_one())
    }

    /// Keeps a tenant within its limits. Limits are for what is new: a caller that repeats itself must get what is its own, and
    /// needs no place.
    pub(super) async fn admit(
        &self,
        caller: &Caller,
        kind: &str,
        draft: &Draft,
    ) -> Result<Option<Reservation>, Declined> {
        let Inner { engine, hub, clock, .. } = &*self.inner;
        let TenantSettings { name, open_max, rate, .. } = &caller.tenant.settings;
        if open_max.is_none() && rate.is_none() {
            return Ok(None);
        }
        let mut full = None;
        let reservation = loop {
            // Another placement may have begun the very same order since the last look.
            if engine.is_repeat(kind, draft).await? {
                return Ok(None);
            }
            if let Some(open) = full {
                return Err(Declined::TooManyOpen { open });
            }
            let Some(most) = *open_max else { break None };
            self.count_neighbours(name, most).await?;
            match hub.reserve(name, most) {
                OpenPlace::Reserved(reservation) => break Some(reservation),
                OpenPlace::Full { open } => full = Some(open),
                // It ends soon: each of those placements takes no longer than a placement may take.
                OpenPlace::Contested(mut given_back) => _ = given_back.changed().await,
            }
        };
        caller.tenant.spend(clock.now()).map_err(|again_in| Declined::TooFast { again_in })?;
        Ok(reservation)
    }

    /// Counts the open orders of a tenant in the store, where other nodes accept orders of it, too, and tell us nothing. A limit
    /// that fits into one page is looked at for every placement, a larger one a few times a second.
    async fn count_neighbours(&self, tenant: &str, most: usize) -> Result<(), Declined> {
        let Inner { engine, hub, neighbours: Some(neighbours), .. } = &*self.inner else { return Ok(()) };
        if most > PAGE && !neighbours.is_due(tenant) {
            return Ok(());
        }
        let (before, mut found, mut after) = (hub.counted_of(tenant), HashSet::new(), None);
        loop {
            let page = engine.list(Which::OPEN.of(tenant), after.as_ref(), PAGE).await;
            let page = page.map_err(PlaceError::Store)?;
            let Some(last) = page.last() else { break };
            after = Some(last.as_ref().map_or_else(|unreadable| unreadable.key, |found| found.order.key));
            let is_last = page.len() < PAGE;
            let orders = page.into_iter().flatten().map(|found| found.order);
            found.extend(orders.filter(|order| is_counted(order)).map(|order| order.key));
            if is_last || found.len() >= most {
                break;
            }
        }
        // Where there are enough of them the others were not read, and may stand or not.
        let before = if found.len() >= most { HashSet::new() } else { before };
        hub.recount_of(tenant, &before, &found);
        Ok(())
    }

    pub(crate) fn wrong_keys(&self) -> &WrongKeys {
        &self.inner.wrong_keys
    }

    /// The balance that this caller is told, if any: the account's own to those that may see it. Others are told a number that
    /// never changes, and is enough for clients that look before they order.
    pub(crate) async fn balance_for(&self, caller: &Caller) -> Option<Money> {
        if !self.sees_account(caller) {
            return Some(ENOUGH_MONEY);
        }
        self.account().await.and_then(|account| account.balance)
    }

    /// The threads of the account, to those that may see them.
    pub(crate) async fn threads_for(&self, caller: &Caller) -> Option<Threads> {
        if !self.sees_account(caller) {
            return None;
        }
        self.account().await.and_then(|account| account.threads)
    }

    fn sees_account(&self, caller: &Caller) -> bool {
        self.inner.tenants.is_open() || caller.tenant.settings.sees_balance
    }
}
