//! Connections that have not shown a key ("strangers"). They get few seats. When there are too many, an idle one is
//! closed for the next, so that a health check or a provider's callback always gets in. A connection that shows a
//! tenant's key belongs to that tenant, which has a share of the other seats. A connection beyond that share is
//! surplus: it is closed as soon as its seat is needed, even if its request is being answered.
//!
//! The cost of an accepted connection must not grow with the number of strangers: else strangers that keep coming
//! fill the system's queue, and all others wait. So only a limited number of connections is checked: the oldest of
//! the address that has the most.

use super::timed_io::Stage;
use crate::Shown;
use quittance_engine::Shares;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::Notify;
use tokio::time::Instant;

/// How long a new connection can wait before it sends a request, while seats are free.
const GRACE: Duration = Duration::from_secs(1);
/// How long a new connection can wait before it sends a request when seats are scarce. A request usually comes with
/// its connection, or one round trip later.
const GRACE_IF_SCARCE: Duration = Duration::from_millis(100);

/// One in this many seats is for strangers, and one address can have half of these.
const STRANGERS_SHARE: usize = 8;
/// Seats are scarce if less than one in this many is free.
const SCARCE_SHARE: usize = 8;
/// How many connections are checked to find one that can be closed.
const LOOKED_AT_MAX: usize = 64;

#[derive(Debug)]
pub(super) struct Connections {
    connections_max: usize,
    strangers_max: usize,
    known_max: usize,
    inner: Mutex<Inner>,
}

#[derive(Debug)]
struct Inner {
    next_id: u64,
    /// The strangers by address, and then by id, which is by age.
    strangers: BTreeMap<IpAddr, BTreeMap<u64, Stranger>>,
    strangers_count: usize,
    /// The addresses of strangers, sorted by the number of connections. Of equal ones, the one with the oldest
    /// connection is last.
    crowds: BTreeSet<(usize, Reverse<u64>, IpAddr)>,
    known: Shares,
    /// The connections of tenants that have their share already, by tenant, and then by id, which is by age.
    surplus: BTreeMap<String, BTreeMap<u64, Surplus>>,
}

#[derive(Debug)]
struct Surplus {
    stage: Stage,
    evicted: Arc<Notify>,
}

/// Whose connection this is.
#[derive(Debug)]
enum Standing {
    Stranger,
    /// Within the share of this tenant.
    Known(String),
    /// Beyond the share of this tenant.
    Surplus(String),
    /// Not limited, because it is the operator's.
    Operator,
}

#[derive(Debug)]
struct Stranger {
    since: Instant,
    stage: Stage,
    evicted: Arc<Notify>,
}

/// One connection, while it is open.
pub(super) struct ConnectionEntry {
    connections: Arc<Connections>,
    address: IpAddr,
    id: u64,
    evicted: Arc<Notify>,
    stage: Stage,
    standing: Mutex<Standing>,
}

impl Connections {
    pub(super) fn new(connections_max: usize) -> Arc<Self> {
        let strangers_max = (connections_max / STRANGERS_SHARE).clamp(1, connections_max.max(1));
        let known_max = connections_max.saturating_sub(strangers_max).max(1);
        let inner = Inner {
            next_id: 0,
            strangers: BTreeMap::new(),
            strangers_count: 0,
            crowds: BTreeSet::new(),
            known: Shares::new(known_max),
            surplus: BTreeMap::new(),
        };
        Arc::new(Self { connections_max, strangers_max, known_max, inner: Mutex::new(inner) })
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn is_scarce(&self, free_seats: usize) -> bool {
        free_seats < self.connections_max / SCARCE_SHARE
    }

    /// Adds a new connection as a stranger. If there are too many, an idle one is closed. If seats are scarce, an idle
    /// connection of a tenant beyond its share is closed, too.
    pub(super) fn enter(
        self: &Arc<Self>,
        address: IpAddr,
        stage: &Stage,
        free_seats: usize,
    ) -> ConnectionEntry {
        let evicted = Arc::new(Notify::new());
        let is_scarce = self.is_scarce(free_seats);
        let mut inner = self.lock();
        let of_address_max = (self.strangers_max / 2).max(1);
        if inner.strangers.get(&address).map_or(0, BTreeMap::len) >= of_address_max {
            inner.evict(Some(address), of_address_max, is_scarce);
        } else if inner.strangers_count >= self.strangers_max {
            inner.evict(None, self.strangers_max, is_scarce);
        }
        if is_scarce {
            inner.evict_surplus(Stage::is_idle);
        }
        let stranger =
            Stranger { since: Instant::now(), stage: stage.clone(), evicted: Arc::clone(&evicted) };
        let id = inner.insert(address, stranger);
        ConnectionEntry {
            connections: Arc::clone(self),
            address,
            id,
            evicted,
            stage: stage.clone(),
            standing: Mutex::new(Standing::Stranger),
        }
    }

    /// Closes a connection, because all seats are taken and a further connection waits for one. The first choice is a
    /// tenant's connection beyond its share. Its order goes on without it.
    pub(super) fn make_room(&self) {
        let mut inner = self.lock();
        if !inner.evict_surplus(Stage::is_idle)
            && !inner.evict_surplus(|stage| stage.may_be_cut() || is_slow_to_begin(stage))
        {
            inner.evict(None, self.strangers_max, true);
        }
    }
}

/// Whether no whole head has come although there was time.
fn is_slow_to_begin(stage: &Stage) -> bool {
    (stage.is_new() || stage.is_in_head()) && stage.request_begun().elapsed() >= GRACE_IF_SCARCE
}

impl Inner {
    fn insert(&mut self, address: IpAddr, stranger: Stranger) -> u64 {
        let id = self.next_id;
        self.next_id += 1;
        self.change(address, |strangers| strangers.insert(id, stranger));
        self.strangers_count += 1;
        id
    }

    fn remove(&mut self, address: IpAddr, id: u64) -> Option<Stranger> {
        let stranger = self.change(address, |strangers| strangers.remove(&id))?;
        self.strangers_count -= 1;
        Some(stranger)
    }

    /// Changes the strangers of an address, and updates its place in `crowds`.
    fn change<T>(&mut self, address: IpAddr, change: impl FnOnce(&mut BTreeMap<u64, Stranger>) -> T) -> T {
        let place = |strangers: &BTreeMap<u64, Stranger>| {
            strangers.first_key_value().map(|(oldest, _)| (strangers.len(), Reverse(*oldest), address))
        };
        let strangers = self.strangers.entry(address).or_default();
        let before = place(strangers);
        let changed = change(strangers);
        let after = place(strangers);
        if before != after {
            before.map(|before| self.crowds.remove(&before));
            after.map(|after| self.crowds.insert(after));
        }
        if after.is_none() {
            self.strangers.remove(&address);
        }
        changed
    }

    fn add_surplus(&mut self, tenant: &str, id: u64, surplus: Surplus) {
        self.surplus.entry(tenant.to_owned()).or_default().insert(id, surplus);
    }

    fn remove_surplus(&mut self, tenant: &str, id: u64) -> Option<Surplus> {
        let of_tenant = self.surplus.get_mut(tenant)?;
        let removed = of_tenant.remove(&id);
        if of_tenant.is_empty() {
            self.surplus.remove(tenant);
        }
        removed
    }

    /// Closes the oldest connection that may go, of the tenant with the most connections beyond its share. Returns
    /// whether there was one.
    fn evict_surplus(&mut self, may_go: impl Fn(&Stage) -> bool) -> bool {
        let Some((tenant, most)) = self.surplus.iter().max_by_key(|(_, surplus)| surplus.len()) else {
            return false;
        };
        let oldest = most.iter().take(LOOKED_AT_MAX).find(|(_, surplus)| may_go(&surplus.stage));
        let Some((tenant, id)) = oldest.map(|(id, _)| (tenant.clone(), *id)) else { return false };
        if let Some(surplus) = self.remove_surplus(&tenant, id) {
            surplus.evicted.notify_one();
        }
        true
    }

    /// The oldest connections of this address, or of the addresses that have the most.
    fn oldest(&self, address: Option<IpAddr>) -> Vec<(IpAddr, u64, &Stranger)> {
        let crowded = self.crowds.iter().rev().map(|(_, _, crowded)| *crowded);
        let addresses = address.into_iter().chain(crowded.filter(|_| address.is_none()));
        let of = |address: IpAddr| {
            let strangers = self.strangers.get(&address).into_iter().flatten();
            strangers.map(move |(id, stranger)| (address, *id, stranger))
        };
        addresses.flat_map(of).take(LOOKED_AT_MAX).collect()
    }

    /// Closes the oldest idle connection: of this address, or of the address that has the most. A connection whose
    /// body is arriving may be about to show a key; it is closed last, and only if at least `max` are sending bodies.
    /// A new connection that has sent nothing gets `GRACE`, or `GRACE_IF_SCARCE` when seats are scarce. Then half a
    /// head gets no time at all, because only clients that are slow on purpose send one.
    fn evict(&mut self, address: Option<IpAddr>, max: usize, is_scarce: bool) {
        let now = Instant::now();
        let oldest = self.oldest(address);
        let sending = oldest.iter().filter(|(_, _, stranger)| stranger.stage.is_paused()).count();
        let are_too_many_sending = sending >= max.min(LOOKED_AT_MAX);
        let may_go = |stranger: &Stranger| {
            let stage = &stranger.stage;
            let grace = match is_scarce {
                true if stage.is_in_head() => Duration::ZERO,
                true if stage.is_new() => GRACE_IF_SCARCE,
                _ => GRACE,
            };
            stage.is_idle()
                || (!stage.is_answering()
                    && now - stranger.since >= grace
                    && (are_too_many_sending || !stage.is_paused()))
        };
        // They are sorted: by how many their address has, and by age.
        let found = oldest
            .iter()
            .filter(|(_, _, stranger)| may_go(stranger))
            .min_by_key(|(_, _, stranger)| stranger.stage.is_paused())
            .map(|(address, id, _)| (*address, *id));
        if let Some(stranger) = found.and_then(|(address, id)| self.remove(address, id)) {
            stranger.evicted.notify_one();
        }
    }
}

impl ConnectionEntry {
    /// Returns when this connection must be closed for another.
    pub(super) async fn evicted(&self) {
        self.evicted.notified().await;
    }

    /// Counts the connection as one of a caller, because no key is needed.
    pub(super) fn is_let_in(&self) {
        self.belongs_to("", true);
        self.stage.set_known();
    }

    /// Records who sends requests over this connection, after a key has shown it. A connection of a tenant that
    /// already has its share is surplus.
    pub(super) fn is_known_as(&self, shown: &Shown, is_alone: bool) {
        match shown {
            Shown::Tenant(tenant) => self.belongs_to(tenant, is_alone),
            Shown::Operator => self.belongs_to_operator(),
            Shown::Nothing | Shown::WrongKey(_) => {}
        }
    }

    fn standing(&self) -> MutexGuard<'_, Standing> {
        self.standing.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn belongs_to(&self, tenant: &str, is_alone: bool) {
        let mut standing = self.standing();
        if matches!(*standing, Standing::Known(_) | Standing::Operator) {
            return;
        }
        let mut inner = self.connections.lock();
        let is_full = inner.known.taken() >= self.connections.known_max;
        let has_share = !is_full && (is_alone || inner.known.may_take(tenant));
        let is_there = match &*standing {
            Standing::Surplus(surplus) if surplus == tenant && !has_share => return,
            Standing::Surplus(surplus) => inner.remove_surplus(surplus, self.id).is_some(),
            _ => inner.remove(self.address, self.id).is_some(),
        };
        // If not, it has just been closed for another.
        if !is_there {
            return;
        }
        if has_share {
            inner.known.take(tenant);
            *standing = Standing::Known(tenant.to_owned());
            self.stage.set_known();
        } else {
            let surplus = Surplus { stage: self.stage.clone(), evicted: Arc::clone(&self.evicted) };
            inner.add_surplus(tenant, self.id, surplus);
            *standing = Standing::Surplus(tenant.to_owned());
        }
    }

    fn belongs_to_operator(&self) {
        let mut standing = self.standing();
        let mut inner = self.connections.lock();
        let is_there = match &*standing {
            Standing::Known(_) | Standing::Operator => false,
            Standing::Surplus(tenant) => inner.remove_surplus(tenant, self.id).is_some(),
            Standing::Stranger => inner.remove(self.address, self.id).is_some(),
        };
        if is_there {
            *standing = Standing::Operator;
            self.stage.set_known();
        }
    }
}

impl Drop for ConnectionEntry {
    fn drop(&mut self) {
        let standing = self.standing();
        let mut inner = self.connections.lock();
        match &*standing {
            Standing::Stranger => _ = inner.remove(self.address, self.id),
            Standing::Known(tenant) => inner.known.give_back(tenant),
            Standing::Surplus(tenant) => _ = inner.remove_surplus(tenant, self.id),
            Standing::Operator => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::timed_io::Answering;
    use futures_util::FutureExt;

    const HERE: IpAddr = IpAddr::V4(std::net::Ipv4Addr::LOCALHOST);

    fn anna() -> Shown {
        Shown::Tenant("anna".to_owned())
    }

    fn is_evicted(entry: &ConnectionEntry) -> bool {
        entry.evicted().now_or_never().is_some()
    }

    #[tokio::test(start_paused = true)]
    async fn a_request_beyond_the_share_of_its_tenant_makes_room_and_a_callback_does_not() {
        let connections = Connections::new(8);
        let answering = |shown: &Shown, is_reserved: bool| {
            let stage = Stage::default();
            let entry = connections.enter(HERE, &stage, 0);
            let answering = stage.begin_answer();
            if !is_reserved {
                stage.set_may_be_cut();
            }
            entry.is_known_as(shown, false);
            (entry, answering)
        };
        let is_evicted = |(entry, _): &(ConnectionEntry, Answering)| is_evicted(entry);
        let callback = answering(&Shown::Nothing, true);
        let in_share: Vec<_> = (0..4).map(|_| answering(&anna(), false)).collect();
        let beyond: Vec<_> = (0..2).map(|_| answering(&anna(), false)).collect();
        let operator = answering(&Shown::Operator, true);
        connections.make_room();
        assert_eq!(beyond.iter().map(is_evicted).collect::<Vec<_>>(), [true, false], "the oldest one goes");
        connections.make_room();
        connections.make_room();
        assert!(is_evicted(&beyond[1]));
        assert!(!in_share.iter().chain([&callback, &operator]).any(is_evicted));
        drop(in_share);
        let again = answering(&anna(), false);
        connections.make_room();
        assert!(!is_evicted(&again), "the share was given back");
    }

    #[tokio::test(start_paused = true)]
    async fn a_connection_beyond_the_share_of_its_tenant_is_kept_when_its_next_request_finds_a_free_share() {
        let connections = Connections::new(2);
        let enter = || connections.enter(HERE, &Stage::default(), 2);
        let (first, second) = (enter(), enter());
        first.is_known_as(&anna(), false);
        second.is_known_as(&anna(), false);
        drop(first);
        second.is_known_as(&anna(), false);
        connections.make_room();
        assert!(!is_evicted(&second));
        let third = enter();
        third.is_known_as(&anna(), false);
        connections.make_room();
        assert!(!is_evicted(&third), "its request may be about to come");
        tokio::time::advance(GRACE_IF_SCARCE).await;
        connections.make_room();
        assert!(is_evicted(&third));
    }
}
