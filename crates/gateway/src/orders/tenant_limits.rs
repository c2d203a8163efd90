//! The limits of a tenant on what all tenants share, and what it may see of that.

use super::{Declined, Inner, OrderService, PAGE};
use crate::commit_feed::{OpenPlace, PlaceReservation, is_counted};
use crate::streams::Streams;
use crate::tenant::{Caller, TenantSettings};
use crate::tenant_permits::{TenantPermit, TenantPermits};
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use hashbrown::HashSet;
use quittance_engine::{PlaceError, PlacedOrder};
use quittance_http_server::{Limits, WrongKeys};
use quittance_lifecycle::{Draft, Money};
use quittance_ports::{Leases, StoreError, Threads, Which};
use quittance_quota::{Quotas, Taken, USE_MAX, Unit};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::timeout;

/// How long a refusal is repeated before the orders are counted again, for a limit that does not fit into one page.
/// It ends earlier if an order ends on this node.
const REFUSED_FOR: Duration = Duration::from_millis(500);

/// The balance that is shown to tenants that may not see the account's.
const ENOUGH_MONEY: Money = Money(10_000_000);

/// The slots for requests that wait: three quarters of all requests, or of all connections if these are fewer.
pub(super) fn waits(limits: &Limits) -> TenantPermits {
    let most = limits.requests_max.min(limits.connections_max);
    TenantPermits::new(most - most / 4)
}

/// A place among a tenant's open orders, for a placement in progress.
#[derive(Debug)]
pub(super) enum HeldPlace {
    /// The tenant has no limit.
    NotNeeded,
    /// This node is the only one, and counts the limit.
    Reserved(#[expect(dead_code, reason = "it is given back when it is dropped")] PlaceReservation),
    /// Several nodes keep the limit: this node has leased the unit.
    Leased(Unit),
}

/// Whether a placement needs a place within its tenant's limits.
#[derive(Debug)]
pub(super) enum Admission {
    /// The placement opened no order and is done.
    Repeat(PlacedOrder),
    /// The placement may open an order with this place.
    Place(HeldPlace),
}

impl HeldPlace {
    /// Places an order with this place, within the time for which the place is leased.
    pub(super) async fn with<T>(
        self,
        placing: impl Future<Output = Result<T, PlaceError>>,
    ) -> Result<T, PlaceError> {
        let Self::Leased(unit) = self else { return placing.await };
        let placed = match timeout(USE_MAX, placing).await {
            Ok(placed) => placed,
            Err(elapsed) => Err(PlaceError::Store(StoreError::Unavailable {
                doing: "placing an order",
                source: elapsed.into(),
            })),
        };
        match &placed {
            Ok(_) => unit.used(),
            // It may have been written.
            Err(PlaceError::Store(_)) => drop(unit),
            Err(_) => unit.unused(),
        }
        placed
    }

    /// Gives the place back, because no order was placed with it.
    fn give_back(self) {
        if let Self::Leased(unit) = self {
            unit.unused();
        }
    }
}

impl OrderService {
    /// Lets this `node` keep limits together with other nodes that accept orders into the same store.
    ///
    /// # Panics
    /// If the service is shared already.
    #[must_use]
    pub fn with_neighbours(mut self, leases: Arc<dyn Leases>, node: u64) -> Self {
        Arc::get_mut(&mut self.inner).expect("other nodes are set before the service is shared").quotas =
            Some(Quotas::new(leases, node));
        self
    }

    /// Gives back this node's leases of limits, for a node that stops.
    pub async fn give_back_leases(&self) {
        if let Some(quotas) = &self.inner.quotas {
            quotas.close().await;
        }
    }

    /// Sets the limits of the server. They also limit how many requests can wait, and how many live streams there are.
    ///
    /// # Panics
    /// If the service is shared already.
    #[must_use]
    pub fn with_limits(mut self, limits: &Limits) -> Self {
        let inner = Arc::get_mut(&mut self.inner).expect("limits are set before the service is shared");
        inner.waits = waits(limits);
        inner.streams = Streams::new(inner.tenants.load().is_only_one(), limits);
        self
    }

    /// A slot for a request that waits, or `None` if this tenant has its share already.
    pub(super) fn wait_seat(&self, tenant: &str) -> Option<TenantPermit> {
        self.inner.waits.take(tenant, self.tenants().is_only_one())
    }

    /// Keeps a tenant within its limits. They apply to placements that open an order: a new one, a new life of an
    /// ended one, or a cancelled one that is placed again. A placement that joins an open order or gets a recorded
    /// answer needs no place, and is done here.
    pub(super) async fn admit(
        &self,
        caller: &Caller,
        kind: &str,
        draft: &Draft,
    ) -> Result<Admission, Declined> {
        let Inner { engine, commit_feed, quotas, .. } = &*self.inner;
        let TenantSettings { name, open_max, rate, .. } = &caller.tenant.settings;
        if open_max.is_none() && rate.is_none() {
            return Ok(Admission::Place(HeldPlace::NotNeeded));
        }
        let mut full = None;
        let place = loop {
            // Another placement may have begun the very same order since the last look.
            if let Some(placed) = engine.place_without_opening(kind, draft).await? {
                return Ok(Admission::Repeat(placed));
            }
            if let Some(open) = full {
                return Err(Declined::TooManyOpen { open });
            }
            let Some(most) = *open_max else { break HeldPlace::NotNeeded };
            if let Some(quotas) = quotas {
                match self.lease(quotas, name, most).await? {
                    Taken::Unit(unit) => break HeldPlace::Leased(unit),
                    Taken::Full { in_use } => full = Some(usize::try_from(in_use).unwrap_or(usize::MAX)),
                }
                continue;
            }
            match commit_feed.reserve(name, most) {
                OpenPlace::Reserved(reservation) => break HeldPlace::Reserved(reservation),
                OpenPlace::Full { open } => full = Some(open),
                // It ends soon: each of those placements takes no longer than a placement may take.
                OpenPlace::Contested(mut given_back) => _ = given_back.changed().await,
            }
        };
        match caller.tenant.spend(engine.now()) {
            Ok(()) => Ok(Admission::Place(place)),
            Err(again_in) => {
                place.give_back();
                Err(Declined::TooFast { again_in })
            }
        }
    }

    /// Takes a place of a limit that several nodes keep. If the limit is reached, a limit that fits into one page is
    /// counted for every placement, a larger one a few times a second.
    async fn lease(&self, quotas: &Quotas, tenant: &str, most: usize) -> Result<Taken, Declined> {
        let is_large = most > PAGE && self.inner.commit_feed.open_orders(tenant) >= most;
        let stale_max = if is_large { REFUSED_FOR } else { Duration::ZERO };
        let count = || -> BoxFuture<'_, Result<u64, StoreError>> { self.count_open_of(tenant, most).boxed() };
        let taken = quotas.of(&format!("open/{tenant}")).take(most as u64, stale_max, &count).await;
        Ok(taken.map_err(PlaceError::Store)?)
    }

    /// Counts the open orders of a tenant in the store, up to `most`.
    pub(super) async fn count_open_of(&self, tenant: &str, most: usize) -> Result<u64, StoreError> {
        let Inner { engine, commit_feed, .. } = &*self.inner;
        let (before, mut found, mut after) = (commit_feed.counted_of(tenant), HashSet::new(), None);
        loop {
            let page = engine.list(Which::OPEN.of(tenant), after.as_ref(), PAGE).await?;
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
        commit_feed.recount_of(tenant, &before, &found);
        Ok(found.len() as u64)
    }

    pub(crate) fn wrong_keys(&self) -> &WrongKeys {
        &self.inner.wrong_keys
    }

    /// The balance for this caller, if it is known. Tenants that may not see the account's balance get a fixed number
    /// that is enough for clients that check it before they order.
    pub(crate) async fn balance_for(&self, caller: &Caller) -> Option<Money> {
        if !self.sees_account(caller) {
            return Some(ENOUGH_MONEY);
        }
        self.account().await.and_then(|account| account.balance)
    }

    /// The threads of the account, for tenants that may see them.
    pub(crate) async fn threads_for(&self, caller: &Caller) -> Option<Threads> {
        if !self.sees_account(caller) {
            return None;
        }
        self.account().await.and_then(|account| account.threads)
    }

    fn sees_account(&self, caller: &Caller) -> bool {
        self.tenants().is_open() || caller.tenant.settings.sees_balance
    }
}
