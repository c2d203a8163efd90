//! Since when callbacks could reach us: the evidence by which an answer that came by callback is dated. A callback
//! that got no answer is repeated by its provider, so every time in which that may have happened is an outage: a
//! restart, a freeze, a callback that we could not keep or were slow to answer, here or on another node behind the
//! same address.

use crate::evidence::Rounds;
use crate::{Engine, lock};
use quittance_lifecycle::{Order, Outage, Receipt, Timestamp, would_be_too_old};
use quittance_ports::{Members, NodeStatus, Reach};
use std::collections::BTreeMap;
use std::time::Duration;

/// How often the worker shows that this process runs.
pub(crate) const BEAT_SPAN: Duration = Duration::from_secs(1);
/// A beat that is later than this, or a callback that takes longer, is an outage.
const BEAT_LATE: Duration = Duration::from_secs(2);
/// How long an outage is remembered. No answer with an expiry lives that long.
const REMEMBERED: Duration = Duration::from_secs(3600);
/// How long a load balancer may go on sending callbacks to a node that has died. After that, the death of one node
/// makes no answer look older that comes to another.
pub(crate) const STILL_ROUTED: Duration = Duration::from_secs(60);
/// The work of asking for the tasks of lost nodes. One node of all that are there does it.
const LOST_NODES: &str = "tasks of lost nodes";
/// How many outages are remembered; more are merged, which can only make answers look older.
const OUTAGES_MAX: usize = 16;

#[derive(Default)]
pub(crate) struct Reachability {
    /// When this process began to listen for callbacks, if it does.
    listens_since: Option<Timestamp>,
    last_beat: Option<Timestamp>,
    outages: Vec<Outage>,
    /// When each callback arrived that has not been answered yet.
    unanswered: BTreeMap<u64, Timestamp>,
    last_number: u64,
    /// Outages of other nodes behind the same address, as of the last roll; `None` before the first roll.
    elsewhere: Option<Vec<Outage>>,
    /// Which open tasks are to be polled, because their callbacks may have got no reply.
    pub(crate) rounds: Rounds,
}

/// This node, started again: it listens since then.
pub(crate) fn successor<'a>(node_status: &NodeStatus, members: &'a Members) -> Option<&'a NodeStatus> {
    let is_successor = |other: &&NodeStatus| {
        other.node != node_status.node
            && other.name == node_status.name
            && other.started > node_status.started
    };
    members.nodes.iter().map(|signed| &signed.node_status).find(is_successor)
}

impl Reachability {
    fn note(&mut self, from: Timestamp, to: Timestamp) {
        self.outages.retain(|outage| outage.to + REMEMBERED >= to);
        self.outages.push(Outage { from, to });
        merge(&mut self.outages);
    }

    /// Every callback that came up to this moment was answered, as far as this process knows.
    fn answered_until(&self, now: Timestamp) -> Timestamp {
        let event = self.last_beat.filter(|event| *event + BEAT_LATE < now).unwrap_or(now);
        self.unanswered.values().copied().min().map_or(event, |oldest| oldest.min(event))
    }

    fn event(&mut self, now: Timestamp, skew: Duration) {
        if let Some(last) = self.last_beat
            && last + BEAT_LATE < now
        {
            self.note(last, now);
            self.rounds.plan_for_all(now, skew);
        }
        self.last_beat = Some(now);
    }

    fn heed(&mut self, members: &Members, own: u64, address: &str, now: Timestamp) {
        let mut elsewhere = Vec::new();
        for signed in members.nodes.iter().filter(|signed| signed.node_status.node != own) {
            let Some(reach) = signed.node_status.reach.as_ref().filter(|reach| reach.address == address)
            else {
                continue;
            };
            elsewhere.extend(reach.outages.iter().copied());
            let routed_until = reach.until + STILL_ROUTED;
            let to = successor(&signed.node_status, members)
                .map_or(routed_until, |node_status| node_status.started.clamp(reach.until, routed_until));
            elsewhere.push(Outage { from: reach.until, to });
        }
        elsewhere.retain(|outage| outage.to + REMEMBERED >= now);
        self.elsewhere = Some(elsewhere);
    }

    /// The evidence about a callback that has arrived now, and whose request began at `begun`.
    fn receipt(&self, begun: Timestamp, now: Timestamp) -> Receipt {
        let mut outages = self.outages.clone();
        outages.retain(|outage| outage.to + REMEMBERED >= now);
        let until = self.answered_until(now);
        if until + BEAT_LATE < now {
            outages.push(Outage { from: until, to: now });
        }
        let so_far = |outage: &Outage| Outage { from: outage.from, to: outage.to.min(now) };
        match &self.elsewhere {
            Some(elsewhere) => outages.extend(elsewhere.iter().map(so_far)),
            None => outages.push(Outage { from: Timestamp::ZERO, to: now }),
        }
        outages.retain(|outage| outage.from < now);
        merge(&mut outages);
        Receipt { at: begun, outages }
    }
}

/// Sorts outages and joins the oldest until there are few enough.
fn merge(outages: &mut Vec<Outage>) {
    outages.sort_unstable();
    while outages.len() > OUTAGES_MAX {
        let oldest = outages.remove(0);
        outages[0].from = oldest.from;
        outages[0].to = outages[0].to.max(oldest.to);
    }
}

/// A callback that is being taken in. Dropped before it was answered, it leaves an outage.
pub(crate) struct OpenCallback<'a> {
    engine: &'a Engine,
    number: u64,
    arrived: Timestamp,
    is_answered: bool,
}

impl OpenCallback<'_> {
    pub(crate) fn answer(mut self) {
        self.is_answered = true;
    }
}

impl Drop for OpenCallback<'_> {
    fn drop(&mut self) {
        let now = self.engine.now();
        let mut reach = lock(&self.engine.reach);
        reach.unanswered.remove(&self.number);
        if !self.is_answered || self.arrived + BEAT_LATE < now {
            reach.note(self.arrived, now);
        }
    }
}

impl Engine {
    /// This process listens for callbacks from now on. An answer that comes by callback is dated from its arrival
    /// only after this call; otherwise it is dated from its submit.
    pub fn listens_for_callbacks(&self) {
        let now = self.now();
        let before = self.world.spill.reachable_until();
        let mut reach = lock(&self.reach);
        if reach.listens_since.is_none() {
            reach.listens_since = Some(now);
            reach.last_beat = Some(now);
            reach.note(before.unwrap_or(Timestamp::ZERO).min(now), now);
            reach.rounds.plan_for_all(now, self.settings.policy.clock_skew);
        }
    }

    /// A callback came to an address of ours and could not be taken in or read: its provider may repeat it. `segment` is
    /// the last part of the path that it came to. Its request began `open_for` ago. The outage counts for every open
    /// attempt, and other nodes read of it.
    pub fn callback_not_answered(&self, segment: &str, open_for: Duration) {
        if self.settings.callback.as_ref().is_some_and(|address| address.recognise(segment).is_some()) {
            let now = self.now();
            lock(&self.reach).note(now - open_for, now);
        }
    }

    /// Which other addresses could be called, and since when not: what other nodes write in their status.
    pub fn heed_members(&self, members: &Members) {
        let now = self.now();
        let address = self.settings.callback.as_ref().map_or("", |callback| callback.base());
        let is_keeper = self.is_keeper(LOST_NODES, members);
        let mut reach = lock(&self.reach);
        reach.heed(members, self.settings.node, address, now);
        let lost = reach.rounds.heed(members, self.settings.node, now);
        if is_keeper {
            reach.rounds.plan_for_lost(lost, now, self.settings.policy.clock_skew);
        }
    }

    /// What this node tells the others about how callbacks could reach it; nothing, if it does not listen for them.
    #[must_use]
    pub fn reach(&self) -> Option<Reach> {
        let now = self.now();
        let reach = lock(&self.reach);
        reach.listens_since?;
        let address = self.settings.callback.as_ref().map_or("", |callback| callback.base()).to_owned();
        Some(Reach { address, until: reach.answered_until(now), outages: reach.outages.clone() })
    }

    /// The worker runs.
    pub(crate) fn event(&self) {
        let now = self.now();
        let until = {
            let mut reach = lock(&self.reach);
            let is_early = reach.last_beat.is_some_and(|last| last <= now && now < last + BEAT_SPAN);
            if reach.listens_since.is_none() || is_early {
                return;
            }
            reach.event(now, self.settings.policy.clock_skew);
            reach.answered_until(now)
        };
        self.world.spill.mark_reachable(until);
    }

    /// Whether to let a callback be written first that may stand in a spill. A poll would bring an answer that counts
    /// as too old, and to throw it away would waste it, while a callback tells when the task was solved.
    pub(crate) fn awaits_spilled_callback(&self, order: &Order, attempt: u32) -> bool {
        self.settings.callback.is_some()
            && self.store_was_away(self.settings.others_first)
            && would_be_too_old(order, attempt, self.now(), &self.settings.policy)
    }

    /// The evidence about a callback whose request began `open_for` ago, and a guard to keep until it is answered.
    pub(crate) fn receive_callback(&self, open_for: Duration) -> (Option<Receipt>, OpenCallback<'_>) {
        let now = self.now();
        let mut reach = lock(&self.reach);
        let receipt = reach.listens_since.map(|_| reach.receipt(now - open_for, now));
        reach.last_number += 1;
        let number = reach.last_number;
        reach.unanswered.insert(number, now);
        (receipt, OpenCallback { engine: self, number, arrived: now, is_answered: false })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use quittance_ports::{Member, NodeStats, NodeStatus};

    const OURS: &str = "https://one.example.com/callback";

    const fn at(seconds: u64) -> Timestamp {
        Timestamp::from_millis(1_000_000 + seconds * 1000)
    }

    /// A node that has been answering callbacks until this moment.
    fn signed(node: u64, name: &str, address: &str, started: Timestamp, until: Timestamp) -> Member {
        let reach = Some(Reach { address: address.into(), until, outages: Vec::new() });
        let node_status = NodeStatus {
            node,
            name: name.into(),
            version: String::new(),
            format: 1,
            started,
            at: until,
            skew_ms: None,
            node_stats: NodeStats::default(),
            reach,
            demand: BTreeMap::new(),
        };
        Member { node_status, seen: until }
    }

    fn outages(nodes: Vec<Member>, now: Timestamp) -> Vec<Outage> {
        let mut reach = Reachability { last_beat: Some(now), ..Reachability::default() };
        reach.heed(&Members { now, nodes }, 1, OURS, now);
        reach.receipt(now, now).outages
    }

    #[test]
    fn a_node_with_another_address_that_dies_makes_no_answer_look_older() {
        let other = signed(2, "two", "https://two.example.com/callback", at(0), at(100));
        assert_eq!(outages(vec![other], at(300)), []);
    }

    #[test]
    fn a_node_behind_the_same_address_that_dies_is_an_outage_until_it_gets_no_more_callbacks() {
        let dead = || signed(2, "two", OURS, at(0), at(100));
        let to = |to| Outage { from: at(100), to };
        assert_eq!(outages(vec![dead()], at(130)), [to(at(130))], "it may still be sent callbacks");
        assert_eq!(outages(vec![dead()], at(300)), [to(at(100) + STILL_ROUTED)]);
        let again = || signed(3, "two", OURS, at(107), at(110));
        assert_eq!(outages(vec![dead(), again()], at(110)), [to(at(107))], "it listens again");
    }
}
