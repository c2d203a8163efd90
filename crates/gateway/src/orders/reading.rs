//! Reads orders for their callers, now or after a wait. An order that a caller may not see is unknown to it.

use super::{Accepted, Inner, NotSeen, OrderService, OrderView, PAGE, PAGES_MAX};
use crate::order_id::OrderId;
use crate::tenant::Caller;
use quittance_engine::{Outcome, PlacedOrder};
use quittance_lifecycle::{Key, Order, Origin, Phase, Timestamp};
use quittance_ports::{OrderClass, StoreError, Which};
use quittance_telemetry::trace::TraceParent;
use std::sync::Arc;
use std::time::Duration;

impl OrderService {
    /// The present state of the order with this id, for its caller. Reads only our own record.
    pub async fn look(&self, caller: &Caller, id: OrderId) -> Result<OrderView, NotSeen> {
        let (order, placed) = self.claim_of(caller, id).await?;
        self.look_at(order, &placed, None).await
    }

    /// Like [`look`](Self::look), but without its effects: the answer does not count as collected or handed out.
    pub async fn glance(&self, caller: &Caller, id: OrderId) -> Result<OrderView, NotSeen> {
        let (order, placed) = self.claim_of(caller, id).await?;
        let outcome = self.inner.engine.glance(&placed, &order).unwrap_or(Outcome::NotYet);
        Ok(OrderView { order, outcome })
    }

    /// Waits until this id has an outcome for its caller, but no longer than `timeout`.
    pub async fn wait(&self, caller: &Caller, id: OrderId, timeout: Duration) -> Result<OrderView, NotSeen> {
        let (order, placed) = self.claim_of(caller, id).await?;
        self.wait_for(order, placed, timeout, None).await
    }

    /// Waits for an order that was just accepted. An outcome that the placement had already needs no read of the
    /// store.
    pub async fn wait_for_accepted(
        &self,
        accepted: &Accepted,
        timeout: Duration,
    ) -> Result<OrderView, NotSeen> {
        let Inner { engine, .. } = &*self.inner;
        let placed = &accepted.placed;
        let order = match &placed.order {
            Some(order) => Arc::clone(order),
            None => {
                let found = engine.read(&placed.key).await.map_err(NotSeen::StoreAway)?;
                found.ok_or(NotSeen::Unknown)?
            }
        };
        match engine.outcome_at_once(placed) {
            Some(outcome) => Ok(self.seen(order, outcome, self.inner.engine.now(), accepted.above)),
            None => self.wait_for(order, placed.clone(), timeout, accepted.above).await,
        }
    }

    async fn wait_for(
        &self,
        order: Arc<Order>,
        placed: PlacedOrder,
        timeout: Duration,
        above: Option<TraceParent>,
    ) -> Result<OrderView, NotSeen> {
        if timeout.is_zero() {
            return self.look_at(order, &placed, above).await;
        }
        // A tenant that has its share of waiting requests gets the state of now, and can ask again.
        let Some(_seat) = self.wait_seat(&order.terms.tenant) else {
            return self.look_at(order, &placed, above).await;
        };
        let since = self.inner.engine.now();
        let waited = PlacedOrder { until: since + timeout, ..placed };
        let mut is_closing = self.inner.is_closing.subscribe();
        let outcome = tokio::select! {
            biased;
            outcome = self.inner.engine.wait(&waited) => outcome,
            _ = is_closing.wait_for(|is_closing| *is_closing) => Outcome::NotYet,
        };
        let order = self.inner.engine.read(&order.key).await.ok().flatten().unwrap_or(order);
        Ok(self.seen(order, outcome, since, above))
    }

    /// The view for a caller that has waited since `since`.
    fn seen(
        &self,
        order: Arc<Order>,
        outcome: Outcome,
        since: Timestamp,
        above: Option<TraceParent>,
    ) -> OrderView {
        if let (Some(traces), Outcome::Answered(_)) = (self.inner.commit_feed.traces(), &outcome) {
            traces.handed_out(&order, above, since, self.inner.engine.now());
        }
        OrderView { order, outcome }
    }

    async fn look_at(
        &self,
        order: Arc<Order>,
        placed: &PlacedOrder,
        above: Option<TraceParent>,
    ) -> Result<OrderView, NotSeen> {
        let since = self.inner.engine.now();
        let outcome = self.inner.engine.peek_at(placed, &order).await.map_err(NotSeen::StoreAway)?;
        Ok(self.seen(order, outcome.unwrap_or(Outcome::NotYet), since, above))
    }

    /// The order of an id, if it is this caller's, and the caller's claim on it.
    async fn claim_of(&self, caller: &Caller, id: OrderId) -> Result<(Arc<Order>, PlacedOrder), NotSeen> {
        let order = self.find(caller, id).await?;
        let claimant = match &order.phase {
            Phase::Claimed { by, .. } if id.is_from_stock() => *by,
            _ => order.key,
        };
        let placed = PlacedOrder {
            key: order.key,
            claimant,
            origin: if id.is_from_stock() { Origin::Stock } else { Origin::Joined },
            min_life: if id.is_from_stock() { self.life_promised(&order) } else { order.terms.min_life },
            until: order.deadline,
            order: None,
        };
        Ok((order, placed))
    }

    /// The life that an answer from the stock must have when it is handed out: its margin, once. After that its
    /// `min_life` counts.
    fn life_promised(&self, order: &Order) -> Duration {
        let margin = order.terms.margin;
        match &order.phase {
            _ if !order.uncollected => order.terms.min_life,
            // A pool may want more of its answers than the caller that took one.
            Phase::Claimed { answer, at, .. } if !answer.is_good_for(margin, *at) => {
                self.inner.engine.kind(&order.terms.kind).map_or(margin, |kind| kind.margin.min(margin))
            }
            _ => margin,
        }
    }

    /// The record of an order of this caller.
    pub async fn find(&self, caller: &Caller, id: OrderId) -> Result<Arc<Order>, NotSeen> {
        let tenant = caller.tenant.name();
        let Inner { engine, names, .. } = &*self.inner;
        if let Some(key) = names.recall(tenant, id) {
            let order = engine.read(&key).await.map_err(NotSeen::StoreAway)?;
            return order.filter(|order| is_for(order, tenant, id)).ok_or(NotSeen::Unknown);
        }
        let mut found = engine.find(id.head()).await.map_err(NotSeen::StoreAway)?;
        found.retain(|order| is_for(order, tenant, id));
        // Two that are named alike: to hand out the wrong one would be worse than none.
        match <[_; 1]>::try_from(found) {
            Ok([order]) => {
                names.learn(tenant, id, order.key);
                Ok(order)
            }
            Err(_) => Err(NotSeen::Unknown),
        }
    }

    /// Orders that callers have placed, sorted by key, and a cursor if there are more.
    pub async fn list(
        &self,
        which: Which<'_>,
        after: Option<Key>,
        limit: usize,
    ) -> Result<(Vec<Arc<Order>>, Option<Key>), StoreError> {
        let mut listed = Vec::new();
        let mut after = after;
        // A cancelled order whose task goes on for the stock is open for us, and over for its caller.
        let is_shown = |order: &Order| {
            order.terms.slot.is_none() && (which.class != Some(OrderClass::Open) || order.wanted)
        };
        for _ in 0..PAGES_MAX {
            let page = self.inner.engine.list(which, after.as_ref(), PAGE).await?;
            let is_last = page.len() < PAGE;
            for found in page {
                after =
                    Some(found.as_ref().map_or_else(|unreadable| unreadable.key, |found| found.order.key));
                let Ok(found) = found else { continue };
                if is_shown(&found.order) {
                    listed.push(found.order);
                }
                if listed.len() == limit {
                    return Ok((listed, after));
                }
            }
            if is_last {
                return Ok((listed, None));
            }
        }
        Ok((listed, after))
    }
}

/// Whether an order was placed by this tenant. An order that fills a pool has no caller.
pub(crate) fn is_placed_by(order: &Order, tenant: &str) -> bool {
    order.terms.tenant == tenant && order.terms.slot.is_none()
}

/// Whether this tenant may read the order by this id. An answer in the stock cannot be read before it is claimed.
fn is_for(order: &Order, tenant: &str, id: OrderId) -> bool {
    if id.is_from_stock() {
        order.terms.tenant == tenant && order.taker().is_some()
    } else {
        is_placed_by(order, tenant)
    }
}
