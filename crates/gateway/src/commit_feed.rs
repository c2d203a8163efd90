//! Passes on what this node writes: live events, and the number of open orders of each tenant. It gets each commit,
//! keeps no order, and delays no request.

use hashbrown::{HashMap, HashSet};
use quittance_engine::OnCommit;
use quittance_lifecycle::{Key, Order, Phase, TimelineEvent};
use quittance_telemetry::{Latencies, Traces};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::{broadcast, watch};

/// How many events a slow watcher can lag behind. After that it misses some, and gets their number.
const EVENTS_KEPT: usize = 4096;

/// Distributes the commits of this node. Create it before the engine, which needs its [`on_commit`](Self::on_commit).
#[derive(Clone)]
pub struct CommitFeed {
    events: broadcast::Sender<Arc<Order>>,
    /// The open orders of tenants with a limit. The limits bound its size.
    open: Arc<Mutex<HashMap<String, HashSet<Key>>>>,
    reserved: Arc<Reserved>,
    traces: Option<Traces>,
    latencies: Arc<Latencies>,
}

/// Places that are reserved for orders that are being placed.
#[derive(Debug, Default)]
struct Reserved {
    by_tenant: Mutex<HashMap<String, usize>>,
    /// Notified when a place is given back.
    given_back: watch::Sender<()>,
}

/// A place among a tenant's open orders, given back when this is dropped.
#[derive(Debug)]
pub(crate) struct PlaceReservation {
    reserved: Arc<Reserved>,
    tenant: String,
}

impl Drop for PlaceReservation {
    fn drop(&mut self) {
        let mut by_tenant = self.reserved.by_tenant.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(count) = by_tenant.get_mut(&self.tenant) {
            *count -= 1;
            if *count == 0 {
                by_tenant.remove(&self.tenant);
            }
        }
        drop(by_tenant);
        self.reserved.given_back.send_replace(());
    }
}

/// The result for a placement that needs a place among its tenant's open orders.
#[derive(Debug)]
pub(crate) enum OpenPlace {
    Reserved(PlaceReservation),
    /// The limit is reached: no further order may be opened.
    Full {
        open: usize,
    },
    /// The last places are reserved for placements in progress, and some of these may fail. The receiver is notified
    /// when one has ended.
    Contested(watch::Receiver<()>),
}

impl fmt::Debug for CommitFeed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "CommitFeed({} watchers)", self.events.receiver_count())
    }
}

impl CommitFeed {
    /// A feed that counts the open orders of the `limited` tenants.
    #[must_use]
    pub fn new(limited: impl IntoIterator<Item = String>) -> Self {
        let open = limited.into_iter().map(|name| (name, HashSet::new())).collect();
        Self {
            events: broadcast::Sender::new(EVENTS_KEPT),
            open: Arc::new(Mutex::new(open)),
            reserved: Arc::default(),
            traces: None,
            latencies: Arc::default(),
        }
    }

    /// Sets the collector of traces.
    #[must_use]
    pub fn with_traces(mut self, traces: Option<Traces>) -> Self {
        self.traces = traces;
        self
    }

    #[must_use]
    pub fn traces(&self) -> Option<&Traces> {
        self.traces.as_ref()
    }

    #[must_use]
    pub fn on_commit(&self) -> OnCommit {
        let commit_feed = self.clone();
        Arc::new(move |order| commit_feed.note(order))
    }

    /// Records a commit of an order.
    pub fn note(&self, order: &Arc<Order>) {
        if let Some(open) = self.open().get_mut(&order.terms.tenant) {
            if is_counted(order) {
                open.insert(order.key);
            } else {
                open.remove(&order.key);
            }
        }
        if is_collection(order) {
            return;
        }
        if let Some(traces) = &self.traces {
            traces.note(order);
        }
        self.latencies.note(order);
        // It is no error if there is no watcher.
        if self.events.receiver_count() > 0 {
            _ = self.events.send(Arc::clone(order));
        }
    }

    /// Times from placement to answer of the orders that were solved at this node.
    #[must_use]
    pub fn latencies(&self) -> &Arc<Latencies> {
        &self.latencies
    }

    /// The tenants that have a limit.
    pub(crate) fn limited(&self) -> Vec<String> {
        self.open().keys().cloned().collect()
    }

    /// Begins to count the open orders of these tenants. Returns those that were not counted before.
    pub(crate) fn count_also<'a>(&self, limited: impl Iterator<Item = &'a str>) -> Vec<String> {
        let mut open = self.open();
        let new: Vec<String> = limited.filter(|name| !open.contains_key(*name)).map(str::to_owned).collect();
        open.extend(new.iter().map(|name| (name.clone(), HashSet::new())));
        new
    }

    /// Counts the open orders of no other tenants than these.
    pub(crate) fn count_only<'a>(&self, limited: impl Iterator<Item = &'a str>) {
        let limited: HashSet<&str> = limited.collect();
        self.open().retain(|name, _| limited.contains(name.as_str()));
    }

    /// The counted open orders of one tenant, as far as this node knows.
    pub(crate) fn counted_of(&self, tenant: &str) -> HashSet<Key> {
        self.open().get(tenant).cloned().unwrap_or_default()
    }

    /// Corrects the open orders of one tenant by what the store has `found`, because other nodes begin and end orders
    /// without a notice. `before` is what was counted before the read. What this node wrote since then is in neither,
    /// and stays.
    pub(crate) fn recount_of(&self, tenant: &str, before: &HashSet<Key>, found: &HashSet<Key>) {
        if let Some(counted) = self.open().get_mut(tenant) {
            counted.retain(|key| found.contains(key) || !before.contains(key));
            counted.extend(found);
        }
    }

    /// Reserves a place for an order that is about to be placed, unless the tenant has `most` already. Two placements
    /// at the same moment must not both get the last place.
    pub(crate) fn reserve(&self, tenant: &str, most: usize) -> OpenPlace {
        let Reserved { by_tenant, given_back } = &*self.reserved;
        let given_back = given_back.subscribe();
        let mut open = self.open();
        let mut by_tenant = by_tenant.lock().unwrap_or_else(PoisonError::into_inner);
        let open = open.entry(tenant.to_owned()).or_default().len();
        let ahead = by_tenant.get(tenant).copied().unwrap_or_default();
        if open >= most {
            return OpenPlace::Full { open };
        }
        if open + ahead >= most {
            return OpenPlace::Contested(given_back);
        }
        *by_tenant.entry(tenant.to_owned()).or_default() += 1;
        OpenPlace::Reserved(PlaceReservation {
            reserved: Arc::clone(&self.reserved),
            tenant: tenant.to_owned(),
        })
    }

    #[must_use]
    pub fn watch(&self) -> broadcast::Receiver<Arc<Order>> {
        self.events.subscribe()
    }

    /// How many orders of this tenant are open, if it has a limit.
    #[must_use]
    pub fn open_orders(&self, tenant: &str) -> usize {
        self.open().get(tenant).map_or(0, HashSet::len)
    }

    fn open(&self) -> MutexGuard<'_, HashMap<String, HashSet<Key>>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether this write only records that a caller got the answer. The feed has sent every earlier change of the order.
fn is_collection(order: &Order) -> bool {
    let last = order.timeline.entries.last().map(|entry| &entry.event);
    match &order.phase {
        Phase::Solved { answer, .. } => {
            answer.expires.is_some()
                && !order.uncollected
                && matches!(last, Some(TimelineEvent::Solved { .. }))
        }
        Phase::Claimed { .. } => {
            order.taker().is_some()
                && !order.uncollected
                && matches!(last, Some(TimelineEvent::Claimed | TimelineEvent::HandedOver { .. }))
        }
        _ => false,
    }
}

/// Whether the order counts towards its tenant's limit. An order that fills a pool was not placed by the tenant.
pub(crate) fn is_counted(order: &Order) -> bool {
    order.is_awaited() && order.terms.slot.is_none()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Trap: a placement in progress can fail or only join, so the next one must not be refused because of it.
    #[tokio::test]
    async fn a_place_that_is_kept_for_a_placement_under_way_is_waited_for_and_not_refused() {
        let commit_feed = CommitFeed::new(["anna".to_owned()]);
        let OpenPlace::Reserved(first) = commit_feed.reserve("anna", 1) else { panic!("nothing is open") };
        let OpenPlace::Contested(mut given_back) = commit_feed.reserve("anna", 1) else {
            panic!("nothing is open yet, and the only place is kept")
        };
        assert!(
            matches!(commit_feed.reserve("bert", 1), OpenPlace::Reserved(_)),
            "another tenant has places of its own"
        );
        drop(first);
        given_back.changed().await.expect("the commit feed is there");
        assert!(matches!(commit_feed.reserve("anna", 1), OpenPlace::Reserved(_)));
        assert!(matches!(commit_feed.reserve("anna", 0), OpenPlace::Full { open: 0 }));
    }
}
