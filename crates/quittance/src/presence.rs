//! Keeps a node in the membership with a heartbeat every few seconds. Each time, the node compares its clock with
//! those of other nodes, and follows theirs if its own is far off. It also learns whether
//! the orders were moved away.

use crate::SystemClock;
use crate::clock::FleetClock;
use crate::store_memory::StoreMemory;
use quittance_engine::Engine;

use quittance_ports::membership::{HEARTBEAT_INTERVAL, SILENT_AFTER, SKEW_MAX};
use quittance_ports::{Clock, Member, Members, Membership, NodeStatus, StoreError};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::oneshot;
use tokio::time::Instant;

/// How often a node checks that its store is still the same.
const LOOK_SPAN: Duration = Duration::from_secs(1);

/// A reply that took longer than this is no evidence about a clock.
const REPLY_MAX: Duration = Duration::from_secs(1);

/// A clock that is set back by no more than this is not logged.
const SET_BACK_MAX: Duration = Duration::from_secs(1);

/// The smallest change of a correction: a reply shows the time no more exactly.
const STEP_MS: u64 = 500;

/// The median of how far the clocks are ahead of the store, among the store itself and `mine`. If there are two in
/// the middle, the one that is nearer to the store.
fn usual(mine: i64, others: impl Iterator<Item = i64>) -> i64 {
    let mut all: Vec<i64> = others.chain([0, mine]).collect();
    all.sort_unstable();
    let (low, high) = (all[(all.len() - 1) / 2], all[all.len() / 2]);
    if low.unsigned_abs() <= high.unsigned_abs() { low } else { high }
}

pub(crate) struct Presence {
    membership: Arc<dyn Membership>,
    engine: Arc<Engine>,
    node_status: NodeStatus,
    clock: FleetClock,
    is_sealed: bool,
    /// Whether it was logged that this machine's clock was set back.
    is_set_back: bool,
    memory: StoreMemory,
}

impl Presence {
    pub(crate) fn new(
        membership: Arc<dyn Membership>,
        engine: Arc<Engine>,
        node: u64,
        name: String,
        clock: FleetClock,
        memory: StoreMemory,
    ) -> Self {
        let now = SystemClock.now();
        let node_status = NodeStatus {
            node,
            name,
            version: env!("CARGO_PKG_VERSION").into(),
            format: quittance_record::VERSION,
            started: now,
            at: now,
            skew_ms: None,
            node_stats: engine.node_stats(),
            reach: engine.reach(),
            demand: engine.demand(),
        };
        Self { membership, engine, node_status, clock, is_sealed: false, is_set_back: false, memory }
    }

    /// Sends heartbeats until it is stopped. Then it checks the store once more, so that nothing is lost that the
    /// store has forgotten. Returns whether the store has all orders that this node has in hand. A store that is away
    /// gets the heartbeat when it is back.
    pub(crate) async fn keep_up(mut self, mut ends: oneshot::Receiver<()>) -> bool {
        self.memory.remind(&self.engine);
        let engine = Arc::clone(&self.engine);
        let mut signed_in = Instant::now();
        let mut is_suspected = false;
        loop {
            self.memory.look(&engine, std::mem::take(&mut is_suspected)).await;
            self.watch_the_clock();
            if signed_in.elapsed() >= HEARTBEAT_INTERVAL {
                signed_in = Instant::now();
                if self.heartbeat().await.is_err() {
                    self.look_for_seal().await;
                }
            }
            tokio::select! {
                () = tokio::time::sleep(LOOK_SPAN) => {}
                () = engine.suspects() => is_suspected = true,
                _ = &mut ends => return self.memory.look(&engine, is_suspected).await,
            }
        }
    }

    pub(crate) async fn heartbeat(&mut self) -> Result<(), StoreError> {
        self.node_status.node_stats = self.engine.node_stats();
        self.node_status.demand = self.engine.demand();
        self.node_status.reach = self.engine.reach();
        let sent = SystemClock.now();
        self.node_status.at = sent;
        let there = self.membership.heartbeat(&self.node_status).await?;
        let reply = SystemClock.now().since(sent);
        let members = self.membership.members().await?;
        if reply <= REPLY_MAX {
            // It was read somewhere between; the middle is wrong by half of the reply at most.
            let here = sent + reply / 2;
            let skew = i128::from(here.as_millis()) - i128::from(there.as_millis());
            let skew = i64::try_from(skew).unwrap_or(i64::MAX);
            self.node_status.skew_ms = Some(skew);
            self.agree_on_the_time(skew, &members);
        }
        self.engine.heed_members(&members);
        if self.node_status.node_stats.store_was_away {
            self.look_for_seal().await;
        }
        Ok(())
    }

    fn watch_the_clock(&mut self) {
        let set_back = SystemClock.set_back();
        let was_set_back = std::mem::replace(&mut self.is_set_back, set_back > SET_BACK_MAX);
        if self.is_set_back && !was_set_back {
            tracing::warn!(
                seconds = set_back.as_secs(),
                "this machine's clock was set back: this node's time goes on without that step until the clock has \
                 caught up or the node is restarted, so that no answer lives longer; set the clock by NTP"
            );
        } else if was_set_back && !self.is_set_back {
            tracing::info!("this machine's clock has caught up with this node's time");
        }
    }

    fn others<'a>(&self, members: &'a Members) -> impl Iterator<Item = &'a NodeStatus> + use<'a> {
        let (me, now) = (self.node_status.node, members.now);
        let is_other =
            move |signed: &&Member| signed.node_status.node != me && now.since(signed.seen) < SILENT_AFTER;
        members.nodes.iter().filter(is_other).map(|signed| &signed.node_status)
    }

    /// Corrects the time of a node whose clock is far from most others, including the store's, until its clock is
    /// right.
    fn agree_on_the_time(&mut self, skew: i64, members: &Members) {
        let ahead = skew
            .saturating_sub(usual(skew, self.others(members).filter_map(|node_status| node_status.skew_ms)));
        let is_beyond = |bound: Duration| u128::from(ahead.unsigned_abs()) > bound.as_millis();
        let was_off = self.clock.correction() != 0;
        // A clock on the line must not be corrected and let go by turns.
        let is_off = is_beyond(if was_off { SKEW_MAX / 2 } else { SKEW_MAX });
        if is_off && !was_off {
            tracing::warn!(
                ahead_ms = ahead,
                "this machine's clock differs too much from the clocks of the other nodes: this node uses their time; set \
                 the clock by NTP"
            );
        } else if was_off && !is_off {
            tracing::info!("this machine's clock agrees with the other nodes again");
        }
        let correction = if is_off { ahead } else { 0 };
        if correction == 0 || correction.abs_diff(self.clock.correction()) > STEP_MS {
            self.clock.correct(correction);
        }
    }

    async fn look_for_seal(&mut self) {
        let Ok(note) = self.membership.sealed().await else { return };
        if let Some(note) = note.as_ref().filter(|_| !self.is_sealed) {
            tracing::error!(
                note,
                "the store is sealed and accepts no orders: set store.url to the store that has its orders now, and restart \
                 this node; callbacks and replies since then are kept in the spill"
            );
        }
        self.is_sealed = note.is_some();
    }
}

#[cfg(test)]
mod tests {
    use super::usual;

    #[test]
    fn most_decide_what_time_it_is_and_the_store_where_there_are_two() {
        let ahead = |mine: i64, others: &[i64]| mine - usual(mine, others.iter().copied());
        assert_eq!(ahead(600_000, &[]), 600_000, "alone, it goes by the store");
        assert_eq!(ahead(600_000, &[3]), 600_000 - 3);
        assert_eq!(ahead(3, &[600_000]), 0, "and the other does not mind");
        assert_eq!(ahead(-600_000, &[-600_010]), 0, "it is the store that is wrong");
        assert_eq!(ahead(5, &[-600_000, 600_000]), 5);
        assert_eq!(ahead(600_000, &[-600_000, 5]), 600_000);
    }
}
