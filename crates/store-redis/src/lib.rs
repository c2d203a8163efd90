//! The store of many machines, in Redis 6.2 or later, or Valkey; no other crate knows Redis. Every step of an order is
//! one script in one slot, so placing and joining cost one round trip, on one server, behind sentinels or in a cluster.
//!
//! | to | it does |
//! | --- | --- |
//! | read an order | one `HMGET` |
//! | write | one script: compare, write, index, count and notify, or return the winner |
//! | take from a stock | one script; with more than one partition a look at each comes first |
//! | find what is due, on a stock, or may be forgotten | looks into sorted sets, one for each partition |
//! | wake waiting callers | reads notices on a connection of its own, and looks again every few seconds |
//!
//! # What it promises
//!
//! Redis decides how durable a write is. With `appendonly yes` and `appendfsync always`, accepted writes survive
//! `kill -9` and power loss of the one server. With `everysec`, a power loss can lose the last second or two.
//! Replicas get a write afterwards, so a failover can lose the last writes with any settings.
//! [`checkup`](quittance_ports::Membership::checkup) reports the current state. An order that can be forgotten
//! expires by itself an hour after its purge time; an order that is still owed does not expire.
//!
//! # For people with `redis-cli`
//!
//! `HGETALL {quittance:0}:order:KEY` shows an order with its record as JSON, `ZRANGE {quittance:0}:dead 0 -1` the
//! dead letters of a partition, and `ZRANGE {quittance:0}:due 0 9 WITHSCORES` the next timers. Manual writes do not
//! update the indices.
#![forbid(unsafe_code)]

mod checkup;
mod closing;
mod commit;
mod discard;
mod documents;
mod failure;
mod identity;
mod layout;
mod leases;
mod link;
mod membership;
mod notices;
mod open;
mod row;
mod scripts;
mod settings;
mod store;
mod sweep;
mod take;
mod timers;
mod url;
mod usage;
mod wire;

pub use failure::RedisOpenError;
pub use settings::Settings;
pub use url::BadRedisUrl;

use crate::failure::RedisFailure;
use crate::layout::{FIRST, Layout};
use crate::link::Link;
use crate::notices::OwnWrites;
use crate::row::text;
use crate::scripts::Scripts;
use crate::timers::TimerSweeps;
use quittance_ports::{StoreError, Watchers};
use redis::{Cmd, Value};
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use tokio::task::AbortHandle;

/// A handle of the store; its clones share the same connections. When the last one is dropped, the connections are
/// closed.
#[derive(Clone)]
pub struct RedisStore {
    inner: Arc<RedisInner>,
    /// Kept outside of `inner`, because the tasks refer to `inner`.
    _tasks: Arc<Tasks>,
}

struct RedisInner {
    address: String,
    link: Link,
    layout: Layout,
    channel: String,
    scripts: Scripts,
    watchers: Watchers,
    own: Arc<OwnWrites>,
    writes: AtomicU64,
    round_trips: AtomicU64,
    /// The identity and the epoch that this node trusts; see [`RedisStore::trust`].
    known: Mutex<Option<([u8; 16], u64)>>,
    timer_sweeps: TimerSweeps,
    /// How many timers were missing in the index and were restored.
    timers_restored: AtomicU64,
}

/// The background tasks, which end when this is dropped.
struct Tasks(Vec<AbortHandle>);

impl Drop for Tasks {
    fn drop(&mut self) {
        self.0.iter().for_each(AbortHandle::abort);
    }
}

impl RedisStore {
    /// Connects to the store and settles its layout, or fails within seconds. It needs a tokio runtime, on which its
    /// tasks run until the last handle is dropped.
    pub async fn open(settings: Settings) -> Result<Self, RedisOpenError> {
        open::open(&settings).await
    }

    /// How many timers were missing in the index and were restored by this handle.
    #[must_use]
    pub fn timers_restored(&self) -> u64 {
        self.inner().timers_restored.load(Ordering::Relaxed)
    }

    /// The secret that all nodes of this store share, or `None` if no node has drawn it yet.
    pub async fn secret_as_it_is(&self) -> Result<Option<[u8; 32]>, StoreError> {
        let inner = self.inner();
        let mut stands = redis::cmd("GET");
        stands.arg(inner.layout.name(FIRST, "secret"));
        let record = async {
            let record = text(inner.ask(&stands).await?)?;
            record.map(|secret| secret.try_into().map_err(|_| RedisFailure::Garbled)).transpose()
        };
        record.await.map_err(|failure: RedisFailure| failure.unavailable("agreeing on a secret"))
    }

    /// The secret that all nodes of this store share: `drawn`, unless another node has drawn one before.
    pub async fn shared_secret(&self, drawn: [u8; 32]) -> Result<[u8; 32], StoreError> {
        let inner = self.inner();
        let keys = [inner.layout.name(FIRST, "secret")];
        let record = async {
            // Read first: a server that takes no writes just now must not keep a node from starting.
            let mut stands = redis::cmd("GET");
            stands.arg(&keys[0]);
            let secret = match text(inner.ask(&stands).await?)? {
                Some(secret) => Some(secret),
                None => text(inner.run_plain(&inner.scripts.secret, &keys, &[&drawn]).await?)?,
            };
            secret.unwrap_or_default().try_into().map_err(|_| RedisFailure::Garbled)
        };
        record.await.map_err(|failure| failure.unavailable("agreeing on a secret"))
    }

    /// Replaces the secret that the nodes share. The keys of orders depend on it, so this is only for a store without
    /// orders.
    pub async fn replace_secret(&self, secret: [u8; 32]) -> Result<(), StoreError> {
        let inner = self.inner();
        let keys = ["identity", "secret"].map(|what| inner.layout.name(FIRST, what));
        let set = inner.run_plain(&inner.scripts.replace_secret, &keys, &[&secret]).await;
        set.map(drop).map_err(|failure| failure.unavailable("replacing the secret of the store"))
    }

    /// How many requests its calls have sent, for tests of the cost of a step.
    #[must_use]
    pub fn round_trips(&self) -> u64 {
        self.inner.round_trips.load(Ordering::Relaxed)
    }

    /// The number of watches. If it is not zero although no caller waits, a watch leaks.
    #[must_use]
    pub fn watching(&self) -> usize {
        self.inner.watchers.len()
    }

    fn inner(&self) -> &RedisInner {
        &self.inner
    }
}

impl RedisInner {
    /// Sends one request of a call.
    async fn ask(&self, command: &Cmd) -> Result<Value, RedisFailure> {
        self.round_trips.fetch_add(1, Ordering::Relaxed);
        self.link.ask(command).await
    }
}

impl fmt::Debug for RedisStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let RedisInner { address, layout, .. } = self.inner();
        write!(f, "RedisStore({address}, {} partitions, {} watches)", layout.partitions, self.watching())
    }
}
