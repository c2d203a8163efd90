//! A limit that several nodes keep together, exactly, at all times: `in_use + leased <= limit`. A node leases units
//! in batches before it uses them, so most requests find a unit here. Only the caller can count the units in use.
//!
//! The order of the steps matters; [`quittance_ports::leases`] explains why.
#![forbid(unsafe_code)]

mod lease_state;
#[cfg(test)]
mod tests;

use futures_util::future::BoxFuture;
use hashbrown::HashMap;
use lease_state::{LeaseRequest, LeaseState, RoundEnd};
use quittance_ports::{LeaseOutcome, Leases, StoreError};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::runtime::Handle;
use tokio::sync::Notify;
use tokio::time::{Instant, sleep, timeout};

/// A lease ends after this time unless it is renewed. The units of a killed node are unavailable until then.
const LEASE_LIFE: Duration = Duration::from_secs(30);
/// Units are taken from a lease only for this time. So each unit has [`USE_MAX`], and 5 s remain for slow clocks and
/// calls.
const DRAWN_FOR: Duration = Duration::from_secs(10);
/// A unit that was taken is used within this time, or not at all.
pub const USE_MAX: Duration = Duration::from_secs(15);
/// The most time from reading the leases to the next lease.
const ROUND_MAX: Duration = Duration::from_secs(20);
/// How long a request waits for units that other requests or nodes have leased and may not use. It is less than an
/// API waits for a placement, so that the caller learns why it is refused.
const CONTEST_MAX: Duration = Duration::from_secs(3);
/// The first pause between two checks while all units are leased. It doubles up to `CONTEST_PAUSE_MAX`.
const CONTEST_PAUSE: Duration = Duration::from_millis(10);
const CONTEST_PAUSE_MAX: Duration = Duration::from_millis(160);
/// Used units are given back after this time, so that many are given back together.
const GIVE_BACK_PAUSE: Duration = Duration::from_millis(100);
/// Used units are given back after this time if other nodes may wait for them.
const GIVE_BACK_PAUSE_TIGHT: Duration = Duration::from_millis(2);

/// The pause after an attempt that failed.
const GIVE_BACK_AGAIN: Duration = Duration::from_secs(1);

/// Counts the units of a limit that are in use.
pub type Count<'a> = dyn Fn() -> BoxFuture<'a, Result<u64, StoreError>> + Sync + 'a;

/// The quotas of this node.
pub struct Quotas {
    leases: Arc<dyn Leases>,
    node: u64,
    /// One entry for each name of a limit. The names come from the configuration.
    by_name: Mutex<HashMap<String, Arc<Quota>>>,
}

/// What this node has leased of one limit.
pub struct Quota {
    leases: Arc<dyn Leases>,
    node: u64,
    name: String,
    state: Mutex<LeaseState>,
    /// Held by the one request that asks for all waiting requests. The leased units change only under this lock.
    asking: tokio::sync::Mutex<()>,
    /// Notified when a unit was settled.
    settled: Notify,
}

/// The result for a request that needs a unit.
#[derive(Debug)]
pub enum Taken {
    Unit(Unit),
    /// All units are in use, or other nodes kept the rest leased for longer than a request waits.
    Full {
        in_use: u64,
    },
}

/// A unit of a limit. Its holder can use it within [`USE_MAX`]. If it is dropped, it may have been used, so it is
/// kept back for a while.
#[derive(Debug)]
pub struct Unit {
    quota: Option<Arc<Quota>>,
}

impl Unit {
    /// Marks the unit as used. Every count includes it from now on.
    pub fn used(mut self) {
        self.settle(LeaseState::used);
    }

    /// Marks the unit as not used. It must not be used afterwards.
    pub fn unused(mut self) {
        self.settle(LeaseState::unused);
    }

    fn settle(&mut self, settle: impl FnOnce(&mut LeaseState, Instant)) {
        if let Some(quota) = self.quota.take() {
            settle(&mut quota.state(), Instant::now());
            quota.settled.notify_waiters();
            quota.give_back_soon();
        }
    }
}

impl Drop for Unit {
    fn drop(&mut self) {
        self.settle(LeaseState::in_doubt);
    }
}

impl fmt::Debug for Quotas {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Quotas").field("node", &self.node).finish_non_exhaustive()
    }
}

impl fmt::Debug for Quota {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Quota").field("name", &self.name).finish_non_exhaustive()
    }
}

impl Quotas {
    #[must_use]
    pub fn new(leases: Arc<dyn Leases>, node: u64) -> Self {
        Self { leases, node, by_name: Mutex::default() }
    }

    #[must_use]
    pub fn of(&self, name: &str) -> Arc<Quota> {
        let mut by_name = self.by_name.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(quota) = by_name.get(name) {
            return Arc::clone(quota);
        }
        let quota = Arc::new(Quota {
            leases: Arc::clone(&self.leases),
            node: self.node,
            name: name.to_owned(),
            state: Mutex::new(LeaseState::new(Instant::now())),
            asking: tokio::sync::Mutex::default(),
            settled: Notify::new(),
        });
        by_name.insert(name.to_owned(), Arc::clone(&quota));
        quota
    }

    /// Gives back everything that is not in use, for a node that stops. Leases in a store that is away expire by
    /// themselves.
    pub async fn close(&self) {
        let all: Vec<Arc<Quota>> =
            self.by_name.lock().unwrap_or_else(PoisonError::into_inner).values().cloned().collect();
        for quota in all {
            let _asking = quota.asking.lock().await;
            quota.state().lay_down();
            _ = quota.give_back().await;
        }
    }
}

/// Counts a waiting request until it is dropped.
struct Waiting<'a>(&'a Quota);

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.state().waiting -= 1;
    }
}

impl Quota {
    /// The state. A panic elsewhere cannot leave it half changed, because no step in between panics.
    fn state(&self) -> MutexGuard<'_, LeaseState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn unit(self: &Arc<Self>) -> Taken {
        Taken::Unit(Unit { quota: Some(Arc::clone(self)) })
    }

    /// Takes a unit of this limit. A refusal that is not older than `stale_max` is repeated without a request.
    pub async fn take(
        self: &Arc<Self>,
        limit: u64,
        stale_max: Duration,
        count: &Count<'_>,
    ) -> Result<Taken, StoreError> {
        let arrived = {
            let (mut state, now) = (self.state(), Instant::now());
            if state.draw(now) {
                return Ok(self.unit());
            }
            if let Some(in_use) = state.refusal_since(now, stale_max) {
                return Ok(Taken::Full { in_use });
            }
            state.waiting += 1;
            state.rounds
        };
        let waiting = Waiting(self);
        let _asking = self.asking.lock().await;
        let (end, mut pause) = (Instant::now() + CONTEST_MAX, CONTEST_PAUSE);
        loop {
            let settled = self.settled.notified();
            if self.state().draw(Instant::now()) {
                drop(waiting);
                self.give_back_soon();
                return Ok(self.unit());
            }
            // What another request learned in a round that began after this one arrived is true for this one, too.
            let answer = self.state().answer_since(arrived);
            let answer = match answer {
                Some(answer) => answer,
                None => self.ask_and_keep(limit, count).await,
            };
            match answer {
                RoundEnd::Failed { doing, why } => {
                    return Err(StoreError::Unavailable { doing, source: why.into() });
                }
                RoundEnd::Full { in_use } => return Ok(Taken::Full { in_use }),
                RoundEnd::Contested { in_use } if Instant::now() >= end => {
                    self.state().keep_answer(RoundEnd::Full { in_use }, Instant::now());
                    return Ok(Taken::Full { in_use });
                }
                RoundEnd::Contested { .. } => {
                    _ = timeout(pause, settled).await;
                    pause = (pause * 2).min(CONTEST_PAUSE_MAX);
                }
                RoundEnd::Leased => {}
            }
        }
    }

    /// Asks once for all waiting requests, and keeps the result for requests that get the lock later.
    async fn ask_and_keep(&self, limit: u64, count: &Count<'_>) -> RoundEnd {
        self.state().rounds += 1;
        let asked = match timeout(ROUND_MAX, self.ask(limit, count)).await {
            Ok(asked) => asked,
            Err(_) => {
                Ok(RoundEnd::Failed { doing: "leasing a part of a limit", why: "it took too long".into() })
            }
        };
        let answer = asked.unwrap_or_else(|error| match error {
            StoreError::Unavailable { doing, source } => RoundEnd::Failed { doing, why: source.to_string() },
            StoreError::Corrupt { .. } => {
                RoundEnd::Failed { doing: "counting what is in use", why: error.to_string() }
            }
        });
        self.state().keep_answer(answer.clone(), Instant::now());
        answer
    }

    async fn ask(&self, limit: u64, count: &Count<'_>) -> Result<RoundEnd, StoreError> {
        let mut leased = self.leases.leased(&self.name, self.node).await?;
        loop {
            // What is settled by now can be counted, so it needs no lease after the count.
            let settled = self.state().settled(Instant::now());
            let in_use = count().await?;
            let wanted = self.state().want(limit, in_use, leased.by_others, settled, Instant::now());
            let LeaseRequest { amount, more } = match wanted {
                Ok(wanted) => wanted,
                Err(answer) => {
                    // Others may wait for just these units, as this node waits for theirs.
                    self.give_back().await?;
                    return Ok(answer);
                }
            };
            let sent = Instant::now();
            let outcome =
                self.leases.lease(&self.name, leased.version, self.node, amount, LEASE_LIFE).await?;
            match outcome {
                LeaseOutcome::Done(version) => {
                    self.state().leased(version, settled, more, sent);
                    return Ok(RoundEnd::Leased);
                }
                LeaseOutcome::Conflict(now) => leased = now,
            }
        }
    }

    /// Gives back the settled units, under the lock of [`Self::asking`].
    async fn give_back(&self) -> Result<(), StoreError> {
        let Some((version, amount, settled)) = self.state().surplus(Instant::now()) else {
            return Ok(());
        };
        self.leases.give_back(&self.name, self.node, version, amount).await?;
        self.state().gave_back(settled);
        Ok(())
    }

    /// Makes sure that unneeded units are given back: used ones soon, idle ones after a while.
    fn give_back_soon(self: &Arc<Self>) {
        // Without a runtime nothing goes on here, and the lease ends by itself.
        let Ok(runtime) = Handle::try_current() else { return };
        let mut state = self.state();
        if !std::mem::replace(&mut state.is_giving_back, true) {
            runtime.spawn(Arc::clone(self).keep_giving_back());
        }
    }

    async fn keep_giving_back(self: Arc<Self>) {
        loop {
            let pause = {
                let mut state = self.state();
                let pause = state.next_give_back(Instant::now());
                state.is_giving_back = pause.is_some();
                pause
            };
            let Some(pause) = pause else { return };
            sleep(pause).await;
            let asking = self.asking.lock().await;
            self.state().lay_down_idle(Instant::now());
            if self.give_back().await.is_err() {
                // The store is away: it is tried again until the lease has ended.
                drop(asking);
                sleep(GIVE_BACK_AGAIN).await;
            }
        }
    }
}
