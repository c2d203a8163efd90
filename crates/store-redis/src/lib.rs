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
//! What Redis promises: with `appendonly yes` and `appendfsync always` what is accepted survives `kill -9` and power
//! loss of the one server; with `everysec` a loss of power can take the last second or two. Replicas get it
//! afterwards, so a failover can lose the last writes, whatever is set.
//! [`checkup`](quittance_ports::Membership::checkup) says what stands. Whatever may be forgotten expires by itself,
//! an hour after it might have been purged; nothing that is owed expires.
//!
//! # For people with `redis-cli`
//!
//! `HGETALL {quittance:0}:order:KEY` shows an order, its record as JSON; `ZRANGE {quittance:0}:dead 0 -1` the dead
//! letters of a partition, `ZRANGE {quittance:0}:due 0 9 WITHSCORES` what is due next. Writing by hand leaves the
//! indices behind.
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

/// A handle; its clones share the same connections. When the last one is dropped they are closed.
#[derive(Clone)]
pub struct RedisStore {
    inner: Arc<RedisInner>,
    /// Apart, because the tasks know the rest.
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
    /// The identity and the epoch that this node knows; see [`RedisStore::trust`].
    known: Mutex<Option<([u8; 16], u64)>>,
    timer_sweeps: TimerSweeps,
    /// How many timers were written again that the index had lost.
    timers_restored: AtomicU64,
}

/// What goes on behind the scenes, until it is dropped.
struct Tasks(Vec<AbortHandle>);

impl Drop for Tasks {
    fn drop(&mut self) {
        self.0.iter().for_each(AbortHandle::abort);
    }
}

impl RedisStore {
    /// Reaches the store, or says within seconds why not, and settles how it is laid out. It needs a tokio runtime, on
    /// which its tasks run until the last handle is dropped.
    pub async fn open(settings: Settings) -> Result<Self, RedisOpenError> {
        open::open(&settings).await
    }

    /// How many timers this handle has written again that the index had lost.
    #[must_use]
    pub fn timers_restored(&self) -> u64 {
        self.inner().timers_restored.load(Ordering::Relaxed)
    }

    /// The secret that all nodes of this store share, if one of them has drawn it.
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

    /// The secret that all nodes of this store share: `drawn`, or what another has drawn before.
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

    /// Puts this secret in the place of the one that nodes share. The keys of orders follow from it, so it is only
    /// for a store without orders.
    pub async fn replace_secret(&self, secret: [u8; 32]) -> Result<(), StoreError> {
        let inner = self.inner();
        let keys = ["identity", "secret"].map(|what| inner.layout.name(FIRST, what));
        let set = inner.run_plain(&inner.scripts.replace_secret, &keys, &[&secret]).await;
        set.map(drop).map_err(|failure| failure.unavailable("replacing the secret of the store"))
    }

    /// How many requests its calls have sent: for tests of what a step costs.
    #[must_use]
    pub fn round_trips(&self) -> u64 {
        self.inner.round_trips.load(Ordering::Relaxed)
    }

    /// How many watches there are: zero when no caller waits, or something leaks.
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
