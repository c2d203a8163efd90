//! Since when callbacks could reach us: the evidence that dates an answer that came by callback. A provider repeats a
//! callback that got no reply. So a time in which callbacks may not have reached us is an outage: a restart, a freeze,
//! or a time without a free connection, here or on another node behind the same address. A callback that we could not
//! keep, or answered slowly, is an outage for its own order only.

use crate::callback::Addressee;
use crate::evidence::Rounds;
use crate::{Engine, lock};
use quittance_lifecycle::{Key, Order, Outage, Receipt, Timestamp, would_be_too_old};
use quittance_ports::{Members, NodeStatus, Reach};
use std::collections::BTreeMap;
use std::time::Duration;

/// How often the worker notes that this process runs.
pub(crate) const BEAT_SPAN: Duration = Duration::from_secs(1);
/// A delay of the worker, or the handling of a callback, that takes longer than this is an outage.
const BEAT_LATE: Duration = Duration::from_secs(2);
/// How long an outage is remembered. No answer with an expiry lives that long.
const REMEMBERED: Duration = Duration::from_secs(3600);
/// How long a load balancer may still send callbacks to a node that has died. After that, the death of one node does
/// not make answers to another look older.
pub(crate) const STILL_ROUTED: Duration = Duration::from_secs(60);
/// The name of the work of polling the tasks of lost nodes. One of the present nodes does it.
const LOST_NODES: &str = "tasks of lost nodes";
/// How many outages are remembered. More are merged, which can only make answers look older.
const OUTAGES_MAX: usize = 16;
/// For how many orders an unanswered callback is remembered. Beyond that, it counts as an outage for every order.
const UNANSWERED_MAX: usize = 128;

#[derive(Default)]
pub(crate) struct Reachability {
    /// When this process began to listen for callbacks; `None` if it does not.
    listens_since: Option<Timestamp>,
    last_beat: Option<Timestamp>,
    outages: Vec<Outage>,
    /// The present time without a free connection, so far: callbacks may be waiting to be accepted.
    late: Option<Outage>,
    /// Orders with a callback that got no reply, or a late one.
    unanswered: BTreeMap<Key, Outage>,
    /// Callbacks that are being handled: their orders, and when their requests began.
    open: BTreeMap<u64, (Key, Timestamp)>,
    last_number: u64,
    /// What other nodes behind the same address have missed, as of the last read of the membership; `None` before the
    /// first read.
    elsewhere: Option<Elsewhere>,
    /// The open tasks that must be polled, because their callbacks may have got no reply.
    pub(crate) rounds: Rounds,
}

#[derive(Default)]
struct Elsewhere {
    outages: Vec<Outage>,
    unanswered: BTreeMap<Key, Outage>,
}

/// Extends the outage of this order to include `outage`.
fn widen(unanswered: &mut BTreeMap<Key, Outage>, key: Key, outage: Outage) {
    let whole = unanswered.entry(key).or_insert(outage);
    *whole = Outage { from: whole.from.min(outage.from), to: whole.to.max(outage.to) };
}

/// The later start of the same node, which has listened since then; `None` if there is none.
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

    /// Notes that a callback of this order got no reply, or a late one.
    fn note_unanswered(&mut self, key: Key, from: Timestamp, to: Timestamp) {
        self.unanswered.retain(|_, outage| outage.to + REMEMBERED >= to);
        widen(&mut self.unanswered, key, Outage { from, to });
        if self.unanswered.len() > UNANSWERED_MAX {
            let oldest = self.unanswered.iter().min_by_key(|(_, outage)| **outage).map(|(key, _)| *key);
            if let Some(outage) = oldest.and_then(|key| self.unanswered.remove(&key)) {
                self.note(outage.from, outage.to);
            }
        }
    }

    /// The outages of this process, with the present time without a free connection.
    fn outages(&self) -> Vec<Outage> {
        self.outages.iter().copied().chain(self.late).collect()
    }

    /// Until when callbacks could reach this process, as far as it knows.
    fn reachable_until(&self, now: Timestamp) -> Timestamp {
        self.last_beat.filter(|beat| *beat + BEAT_LATE < now).unwrap_or(now)
    }

    /// Until when every callback was answered, as far as this process knows.
    fn answered_until(&self, now: Timestamp) -> Timestamp {
        let reachable = self.reachable_until(now);
        let reachable = self.late.map_or(reachable, |late| late.from.min(reachable));
        self.open.values().map(|(_, begun)| *begun).fold(reachable, Timestamp::min)
    }

    /// The orders with a callback that has got no reply so far.
    fn unanswered_until(&self, now: Timestamp) -> BTreeMap<Key, Outage> {
        let mut unanswered = self.unanswered.clone();
        unanswered.retain(|_, outage| outage.to + REMEMBERED >= now);
        for (key, begun) in self.open.values() {
            widen(&mut unanswered, *key, Outage { from: *begun, to: now });
        }
        unanswered
    }

    fn beat(&mut self, now: Timestamp, skew: Duration) {
        if let Some(last) = self.last_beat
            && last + BEAT_LATE < now
        {
            self.note(last, now);
            self.rounds.plan_for_all(now, skew);
        }
        self.last_beat = Some(now);
    }

    /// Notes that no connection was accepted from `from` to `now`, or that one may have waited as long.
    fn note_late(&mut self, from: Timestamp, now: Timestamp, is_over: bool, skew: Duration) {
        let from = self.late.map_or(from, |late| late.from.min(from));
        self.late = Some(Outage { from, to: now }).filter(|_| !is_over);
        if is_over {
            self.note(from, now);
            self.rounds.plan_for_all(now, skew);
        }
    }

    fn heed(&mut self, members: &Members, own: u64, address: &str, now: Timestamp) {
        let mut elsewhere = Elsewhere::default();
        for signed in members.nodes.iter().filter(|signed| signed.node_status.node != own) {
            let Some(reach) = signed.node_status.reach.as_ref().filter(|reach| reach.address == address)
            else {
                continue;
            };
            elsewhere.outages.extend(reach.outages.iter().copied());
            for (key, outage) in &reach.unanswered {
                widen(&mut elsewhere.unanswered, *key, *outage);
            }
            let routed_until = reach.until + STILL_ROUTED;
            let to = successor(&signed.node_status, members)
                .map_or(routed_until, |node_status| node_status.started.clamp(reach.until, routed_until));
            elsewhere.outages.push(Outage { from: reach.until, to });
        }
        elsewhere.outages.retain(|outage| outage.to + REMEMBERED >= now);
        elsewhere.unanswered.retain(|_, outage| outage.to + REMEMBERED >= now);
        self.elsewhere = Some(elsewhere);
    }

    /// The evidence for a callback of this order that has arrived now. Its request began at `begun`.
    fn receipt(&self, key: &Key, begun: Timestamp, now: Timestamp) -> Receipt {
        let mut outages = self.outages();
        outages.retain(|outage| outage.to + REMEMBERED >= now);
        let until = self.reachable_until(now);
        if until < now {
            outages.push(Outage { from: until, to: now });
        }
        outages.extend(self.unanswered.get(key));
        let earlier = self.open.values().filter(|(open, _)| open == key);
        outages.extend(earlier.map(|(_, begun)| Outage { from: *begun, to: now }));
        let so_far = |outage: &Outage| Outage { from: outage.from, to: outage.to.min(now) };
        match &self.elsewhere {
            Some(elsewhere) => {
                outages.extend(elsewhere.outages.iter().map(so_far));
                outages.extend(elsewhere.unanswered.get(key).map(so_far));
            }
            None => outages.push(Outage { from: Timestamp::ZERO, to: now }),
        }
        outages.retain(|outage| outage.from < now);
        merge(&mut outages);
        Receipt { at: begun, outages }
    }
}

/// Sorts outages, and merges the oldest until there are few enough.
fn merge(outages: &mut Vec<Outage>) {
    outages.sort_unstable();
    while outages.len() > OUTAGES_MAX {
        let oldest = outages.remove(0);
        outages[0].from = oldest.from;
        outages[0].to = outages[0].to.max(oldest.to);
    }
}

/// A callback that is being handled. If this is dropped before the callback was answered, the order has an outage.
pub(crate) struct OpenCallback<'a> {
    engine: &'a Engine,
    number: u64,
    key: Key,
    begun: Timestamp,
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
        reach.open.remove(&self.number);
        if !self.is_answered || self.begun + BEAT_LATE < now {
            reach.note_unanswered(self.key, self.begun, now);
        }
    }
}

impl Engine {
    /// Notes that this process listens for callbacks from now on. Before this call, an answer that comes by callback
    /// is dated from its submit, and after it from its arrival.
    pub fn listens_for_callbacks(&self) {
        let now = self.now();
        let before = self.world.spill.reachable_until();
        let mut reach = lock(&self.reach);
        if reach.listens_since.is_none() {
            reach.listens_since = Some(now);
            reach.last_beat = Some(now);
            reach.note(before.unwrap_or(Timestamp::ZERO).min(now), now);
            reach.rounds.plan_for_all(now, self.settings().policy.clock_skew);
        }
    }

    /// Notes a callback to our address that could not be handled or read, so its provider may repeat it. `segment` is
    /// the last part of its path. Its request began `open_for` ago. Other nodes read of it in the membership.
    pub fn callback_not_answered(&self, segment: &str, open_for: Duration) {
        let address = self.callback.as_ref();
        if let Some(Addressee { key, .. }) = address.and_then(|address| address.recognise(segment)) {
            let now = self.now();
            lock(&self.reach).note_unanswered(key, now - open_for, now);
        }
    }

    /// Notes that callbacks may have waited for `waited` before their connections are accepted, because no connection
    /// was free. While this lasts it is noted again and again, and a last time when it is over.
    pub fn callbacks_waited(&self, waited: Duration, is_over: bool) {
        let now = self.now();
        let mut reach = lock(&self.reach);
        if reach.listens_since.is_some() {
            reach.note_late(now - waited, now, is_over, self.settings().policy.clock_skew);
        }
    }

    /// Reads from the status of other nodes which addresses could be called, and since when not.
    pub fn heed_members(&self, members: &Members) {
        let now = self.now();
        self.share_the_pace(members);
        let address = self.callback.as_ref().map_or("", |callback| callback.base());
        let is_keeper = self.is_keeper(LOST_NODES, members);
        self.note_funds_keeper(members);
        let mut reach = lock(&self.reach);
        reach.heed(members, self.node, address, now);
        let lost = reach.rounds.heed(members, self.node, now);
        if is_keeper {
            reach.rounds.plan_for_lost(lost, now, self.settings().policy.clock_skew);
        }
    }

    /// When callbacks could reach this node, for its status; `None` if it does not listen for callbacks.
    #[must_use]
    pub fn reach(&self) -> Option<Reach> {
        let now = self.now();
        let reach = lock(&self.reach);
        reach.listens_since?;
        let address = self.callback.as_ref().map_or("", |callback| callback.base()).to_owned();
        let (until, unanswered) = (reach.reachable_until(now), reach.unanswered_until(now));
        Some(Reach { address, until, outages: reach.outages(), unanswered })
    }

    /// Notes that the worker runs.
    pub(crate) fn beat(&self) {
        let now = self.now();
        let until = {
            let mut reach = lock(&self.reach);
            let is_early = reach.last_beat.is_some_and(|last| last <= now && now < last + BEAT_SPAN);
            if reach.listens_since.is_none() || is_early {
                return;
            }
            reach.beat(now, self.settings().policy.clock_skew);
            reach.answered_until(now)
        };
        self.world.spill.mark_reachable(until);
    }

    /// Whether to write a spilled callback of this task before a poll. The answer of a poll may count as too old and
    /// be wasted, but a callback shows when the task was solved.
    pub(crate) fn awaits_spilled_callback(&self, order: &Order, attempt: u32) -> bool {
        self.callback.is_some()
            && self.store_was_away(self.settings().others_first)
            && would_be_too_old(order, attempt, self.now(), &self.settings().policy)
    }

    /// The evidence for a callback of this order whose request began at `begun`, and a guard to hold until the
    /// callback is answered.
    pub(crate) fn receive_callback(&self, key: Key, begun: Timestamp) -> (Option<Receipt>, OpenCallback<'_>) {
        let now = self.now();
        let mut reach = lock(&self.reach);
        let receipt = reach.listens_since.map(|_| reach.receipt(&key, begun, now));
        reach.last_number += 1;
        let number = reach.last_number;
        reach.open.insert(number, (key, begun));
        (receipt, OpenCallback { engine: self, number, key, begun, is_answered: false })
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

    /// The heartbeat of a node that has answered callbacks until `until`.
    fn signed(node: u64, name: &str, address: &str, started: Timestamp, until: Timestamp) -> Member {
        let reach = Some(Reach { address: address.into(), until, ..Reach::default() });
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

    const KEY: Key = Key([7; 32]);
    const OTHER: Key = Key([8; 32]);

    /// The state of a node that has read the status of these nodes.
    fn reading(nodes: Vec<Member>, now: Timestamp) -> Reachability {
        let mut reach = Reachability { last_beat: Some(now), ..Reachability::default() };
        reach.heed(&Members { now, nodes }, 1, OURS, now);
        reach
    }

    fn outages(nodes: Vec<Member>, now: Timestamp) -> Vec<Outage> {
        reading(nodes, now).receipt(&KEY, now, now).outages
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

    #[test]
    fn a_callback_that_got_no_answer_makes_the_answer_of_its_own_order_look_older_and_no_other() {
        let mut reach = reading(Vec::new(), at(100));
        reach.note_unanswered(KEY, at(90), at(95));
        let whole = [Outage { from: at(90), to: at(95) }];
        assert_eq!(reach.receipt(&KEY, at(100), at(100)).outages, whole);
        assert_eq!(reach.receipt(&OTHER, at(100), at(100)).outages, []);
    }

    #[test]
    fn a_callback_that_is_being_taken_in_makes_its_repeat_look_older_and_no_other() {
        let mut reach = reading(Vec::new(), at(100));
        reach.open.insert(1, (KEY, at(99)));
        assert_eq!(reach.receipt(&KEY, at(100), at(100)).outages, [Outage { from: at(99), to: at(100) }]);
        assert_eq!(reach.receipt(&OTHER, at(100), at(100)).outages, []);
    }

    #[test]
    fn what_another_node_did_not_answer_counts_for_that_order() {
        let mut other = signed(2, "two", OURS, at(0), at(100));
        let missed = Outage { from: at(50), to: at(55) };
        other.node_status.reach.as_mut().unwrap().unanswered = BTreeMap::from([(KEY, missed)]);
        let reach = reading(vec![other], at(100));
        assert_eq!(reach.receipt(&KEY, at(100), at(100)).outages, [missed]);
        assert_eq!(reach.receipt(&OTHER, at(100), at(100)).outages, []);
    }

    /// Trap: a callback waited 20 s for a free connection, and its answer looked 20 s younger than it was.
    #[test]
    fn a_time_without_a_free_connection_is_an_outage_from_its_beginning_and_outlasts_its_end() {
        let mut reach = reading(Vec::new(), at(100));
        let late = |to| [Outage { from: at(90), to: at(to) }];
        reach.note_late(at(90), at(93), false, Duration::ZERO);
        reach.note_late(at(91), at(100), false, Duration::ZERO);
        assert_eq!(reach.receipt(&KEY, at(100), at(100)).outages, late(100), "while it lasts");
        assert_eq!(reach.answered_until(at(100)), at(90), "a restart would find callbacks without a reply");
        reach.note_late(at(90), at(110), true, Duration::ZERO);
        reach.last_beat = Some(at(120));
        assert_eq!(reach.receipt(&KEY, at(120), at(120)).outages, late(110));
        assert_eq!(reach.answered_until(at(120)), at(120));
    }

    #[test]
    fn more_unanswered_callbacks_than_are_remembered_count_for_every_order() {
        let mut reach = reading(Vec::new(), at(1_000));
        for number in 0..=UNANSWERED_MAX as u64 {
            let mut key = [1; 32];
            key[..8].copy_from_slice(&number.to_be_bytes());
            reach.note_unanswered(Key(key), at(number), at(number + 1));
        }
        assert_eq!(reach.receipt(&OTHER, at(1_000), at(1_000)).outages, [Outage { from: at(0), to: at(1) }]);
        assert_eq!(reach.unanswered.len(), UNANSWERED_MAX);
    }
}
