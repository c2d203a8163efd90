//! Connections that have not shown a key. They are few: when there are too many, one that is doing nothing makes room for the
//! next, so that a health check or a provider's callback always gets in. A connection that shows a tenant's key belongs to that
//! tenant, which has a share of the others.

use super::timed_io::Stage;
use crate::Shown;
use quittance_engine::Shares;
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::Notify;
use tokio::time::Instant;

/// A connection that has just come has this long to say what it wants, however many there are.
const GRACE: Duration = Duration::from_secs(1);

/// One in so many connections may be a stranger's, and one address may have half of those.
const STRANGERS_SHARE: usize = 8;

#[derive(Debug)]
pub(super) struct Connections {
    strangers_max: usize,
    known_max: usize,
    inner: Mutex<Inner>,
}

#[derive(Debug)]
struct Inner {
    next_id: u64,
    strangers: BTreeMap<u64, Stranger>,
    by_address: BTreeMap<IpAddr, usize>,
    known: Shares,
}

#[derive(Debug)]
struct Stranger {
    address: IpAddr,
    since: Instant,
    stage: Stage,
    evicted: Arc<Notify>,
}

/// One connection, for as long as it is open.
pub(super) struct ConnectionEntry {
    connections: Arc<Connections>,
    id: u64,
    evicted: Arc<Notify>,
    stage: Stage,
    tenant: Mutex<Option<String>>,
}

impl Connections {
    pub(super) fn new(connections_max: usize) -> Arc<Self> {
        let strangers_max = (connections_max / STRANGERS_SHARE).clamp(1, connections_max.max(1));
        let known_max = connections_max.saturating_sub(strangers_max);
        let inner = Inner {
            next_id: 0,
            strangers: BTreeMap::new(),
            by_address: BTreeMap::new(),
            known: Shares::new(known_max),
        };
        Arc::new(Self { strangers_max, known_max, inner: Mutex::new(inner) })
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A new connection, which is a stranger's. If there are too many, one that is idle has to go.
    pub(super) fn enter(self: &Arc<Self>, address: IpAddr, stage: &Stage) -> ConnectionEntry {
        let evicted = Arc::new(Notify::new());
        let mut inner = self.lock();
        let of_address = inner.by_address.get(&address).copied().unwrap_or_default();
        let of_address_max = (self.strangers_max / 2).max(1);
        if of_address >= of_address_max {
            inner.evict(Some(address), of_address_max);
        } else if inner.strangers.len() >= self.strangers_max {
            inner.evict(None, self.strangers_max);
        }
        let id = inner.next_id;
        inner.next_id += 1;
        let stranger =
            Stranger { address, since: Instant::now(), stage: stage.clone(), evicted: Arc::clone(&evicted) };
        inner.strangers.insert(id, stranger);
        *inner.by_address.entry(address).or_default() += 1;
        ConnectionEntry {
            connections: Arc::clone(self),
            id,
            evicted,
            stage: stage.clone(),
            tenant: Mutex::default(),
        }
    }

    /// All seats are taken, and a connection waits for one.
    pub(super) fn make_room(&self) {
        self.lock().evict(None, self.strangers_max);
    }
}

impl Inner {
    /// Sends away the oldest connection that does nothing: of this address, or of the address that has the most. One whose body is
    /// on its way may be about to show a key. It goes last, and only if `max` of them are sending bodies: those that have just come
    /// and sent nothing yet leave by themselves, or can be sent away a second later.
    fn evict(&mut self, address: Option<IpAddr>, max: usize) {
        let now = Instant::now();
        let is_meant = |stranger: &Stranger| address.is_none_or(|address| stranger.address == address);
        let sending = |stranger: &&Stranger| is_meant(stranger) && stranger.stage.is_paused();
        let are_too_many_sending = self.strangers.values().filter(sending).count() >= max;
        let may_go = |stranger: &Stranger| {
            stranger.stage.is_idle()
                || (!stranger.stage.is_answering()
                    && now - stranger.since >= GRACE
                    && (are_too_many_sending || !stranger.stage.is_paused()))
        };
        let of = |stranger: &Stranger| self.by_address.get(&stranger.address).copied().unwrap_or_default();
        let found = self
            .strangers
            .iter()
            .filter(|(_, stranger)| is_meant(stranger) && may_go(stranger))
            .max_by_key(|(id, stranger)| (!stranger.stage.is_paused(), of(stranger), std::cmp::Reverse(**id)))
            .map(|(id, _)| *id);
        if let Some(stranger) = found.and_then(|id| self.remove(id)) {
            stranger.evicted.notify_one();
        }
    }

    fn remove(&mut self, id: u64) -> Option<Stranger> {
        let stranger = self.strangers.remove(&id)?;
        if let Some(count) = self.by_address.get_mut(&stranger.address) {
            *count -= 1;
            if *count == 0 {
                self.by_address.remove(&stranger.address);
            }
        }
        Some(stranger)
    }
}

impl ConnectionEntry {
    /// Returns when this connection has to make room for another.
    pub(super) async fn evicted(&self) {
        self.evicted.notified().await;
    }

    /// Where no key is needed, a connection has nothing to show.
    pub(super) fn is_let_in(&self) {
        self.connections.lock().remove(self.id);
        self.stage.set_known();
    }

    /// A key has shown who sends requests over this connection. A tenant that has its share of connections already stays a
    /// stranger with the next.
    pub(super) fn is_known_as(&self, shown: &Shown, is_alone: bool) {
        let tenant = match shown {
            Shown::Tenant(tenant) => Some(tenant),
            Shown::Operator => None,
            Shown::Nothing | Shown::WrongKey(_) => return,
        };
        let mut inner = self.connections.lock();
        if !inner.strangers.contains_key(&self.id) {
            return;
        }
        if let Some(tenant) = tenant {
            let is_full = inner.known.taken() >= self.connections.known_max;
            if is_full || !(is_alone || inner.known.may_take(tenant)) {
                return;
            }
            inner.known.take(tenant);
            *self.tenant.lock().unwrap_or_else(PoisonError::into_inner) = Some(tenant.clone());
        }
        inner.remove(self.id);
        self.stage.set_known();
    }
}

impl Drop for ConnectionEntry {
    fn drop(&mut self) {
        let mut inner = self.connections.lock();
        inner.remove(self.id);
        if let Some(tenant) = self.tenant.lock().unwrap_or_else(PoisonError::into_inner).take() {
            inner.known.give_back(&tenant);
        }
    }
}
