//! Since when callbacks could reach us: the evidence by which an answer that came by callback is dated. A callback that got
//! no answer is repeated by its provider, so every time in which that may have happened is an outage: a restart, a freeze, a
//! callback that we could not keep or were slow to answer, here or on another node behind the same address.

use crate::{Engine, lock};
use quittance_lifecycle::{Attempt, Order, Outage, Phase, Progress, Receipt, Timestamp, would_be_too_old};
use quittance_ports::{Reach, Roll, Which};
use std::collections::BTreeMap;
use std::time::Duration;

/// How often the worker shows that this process runs.
pub(crate) const BEAT_SPAN: Duration = Duration::from_secs(1);
/// A beat that is later than this, or a callback that takes longer, is an outage.
const BEAT_LATE: Duration = Duration::from_secs(2);
/// How long an outage is remembered. No answer with an expiry lives that long.
const REMEMBERED: Duration = Duration::from_secs(3600);
/// How long a load balancer may go on sending callbacks to a node that has died. After that, the death of one node makes no
/// answer look older that comes to another.
const STILL_ROUTED: Duration = Duration::from_secs(60);
/// How many open orders are read at once after an outage.
const PAGE: usize = 256;
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
    /// When an outage of this process ended after which open tasks have not been asked for yet.
    ended: Option<Timestamp>,
}

impl Reachability {
    fn note(&mut self, from: Timestamp, to: Timestamp) {
        self.outages.retain(|outage| outage.to + REMEMBERED >= to);
        self.outages.push(Outage { from, to });
        merge(&mut self.outages);
    }

    /// Every callback that came up to this moment was answered, as far as this process knows.
    fn answered_until(&self, now: Timestamp) -> Timestamp {
        let beat = self.last_beat.filter(|beat| *beat + BEAT_LATE < now).unwrap_or(now);
        self.unanswered.values().copied().min().map_or(beat, |oldest| oldest.min(beat))
    }

    fn beat(&mut self, now: Timestamp) {
        if let Some(last) = self.last_beat
            && last + BEAT_LATE < now
        {
            self.note(last, now);
            self.ended = Some(now);
        }
        self.last_beat = Some(now);
    }

    fn heed(&mut self, roll: &Roll, own: u64, address: &str, now: Timestamp) {
        let mut elsewhere = Vec::new();
        for signed in roll.nodes.iter().filter(|signed| signed.card.node != own) {
            let Some(reach) = signed.card.reach.as_ref().filter(|reach| reach.address == address) else {
                continue;
            };
            elsewhere.extend(reach.outages.iter().copied());
            // The same node, started again, listens since then.
            let successor = roll.nodes.iter().map(|signed| &signed.card).find(|card| {
                card.node != signed.card.node
                    && card.name == signed.card.name
                    && card.started > signed.card.started
            });
            let routed_until = reach.until + STILL_ROUTED;
            let to = successor.map_or(routed_until, |card| card.started.clamp(reach.until, routed_until));
            elsewhere.push(Outage { from: reach.until, to });
        }
        elsewhere.retain(|outage| outage.to + REMEMBERED >= now);
        self.elsewhere = Some(elsewhere);
    }

    fn receipt(&self, now: Timestamp) -> Receipt {
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
        Receipt { at: now, outages }
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
pub(crate) struct Unanswered<'a> {
    engine: &'a Engine,
    number: u64,
    arrived: Timestamp,
    is_answered: bool,
}

impl Unanswered<'_> {
    pub(crate) fn answer(mut self) {
        self.is_answered = true;
    }
}

impl Drop for Unanswered<'_> {
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
    /// This process listens for callbacks from now on. An answer that comes by callback is dated from its arrival only where
    /// this was said; otherwise it is dated from its submit.
    pub fn listens_for_callbacks(&self) {
        let now = self.now();
        let before = self.world.spill.reachable_until();
        let mut reach = lock(&self.reach);
        if reach.listens_since.is_none() {
            reach.listens_since = Some(now);
            reach.last_beat = Some(now);
            reach.note(before.unwrap_or(Timestamp::ZERO).min(now), now);
            reach.ended = Some(now);
        }
    }

    /// A callback came to an address of ours and could not be taken in: its provider will repeat it. `segment` is the last
    /// part of the path that it came to.
    pub fn callback_not_answered(&self, segment: &str) {
        if self.settings.callback.as_ref().is_some_and(|address| address.recognise(segment).is_some()) {
            let now = self.now();
            lock(&self.reach).note(now, now);
        }
    }

    /// Who else could be called, and since when not: what other nodes say on the roll.
    pub fn heed_roll(&self, roll: &Roll) {
        let now = self.now();
        let address = self.settings.callback.as_ref().map_or("", |callback| callback.base());
        lock(&self.reach).heed(roll, self.settings.node, address, now);
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
    pub(crate) fn beat(&self) {
        let now = self.now();
        let until = {
            let mut reach = lock(&self.reach);
            let is_early = reach.last_beat.is_some_and(|last| last <= now && now < last + BEAT_SPAN);
            if reach.listens_since.is_none() || is_early {
                return;
            }
            reach.beat(now);
            reach.answered_until(now)
        };
        self.world.spill.mark_reachable(until);
    }

    /// After an outage every open task is asked for once. A callback that came meanwhile may never come again, and a task that is
    /// not solved yet has a later date from which its answer counts: without it, the answer would count from before the outage.
    pub(crate) async fn ask_after_outage(&self) {
        // The outage counts up to here by the clocks of other nodes.
        let skew = self.settings.policy.clock_skew;
        let is_over = |ended: &mut Timestamp| *ended + skew <= self.now();
        let Some(ended) = lock(&self.reach).ended.take_if(is_over) else { return };
        let mut after = None;
        loop {
            let page = match self.world.store.list(Which::OPEN, after.as_ref(), PAGE).await {
                Ok(page) => page,
                Err(error) => {
                    self.note_error(&error);
                    lock(&self.reach).ended.get_or_insert(ended);
                    return;
                }
            };
            let Some(last) = page.last() else { break };
            after = Some(last.as_ref().map_or_else(|unreadable| unreadable.key, |found| found.order.key));
            for found in page.into_iter().flatten() {
                let order = &found.order;
                let Phase::Solving { attempt, .. } = order.phase else { continue };
                // Another node may have asked since.
                let was_missed =
                    |attempt: &&Attempt| attempt.sent < ended && attempt.unsolved_at < ended + skew;
                if let Some(Attempt { progress: Progress::Solving { task }, .. }) =
                    order.attempt(attempt).filter(was_missed)
                {
                    self.ask(order, attempt, task.clone());
                }
            }
        }
        self.bell.ring();
    }

    /// Whether to let a callback be written first that may stand in a spill. A poll would bring an answer that counts as too old,
    /// and to throw it away would waste it, while a callback tells when the task was solved.
    pub(crate) fn awaits_spilled_callback(&self, order: &Order, attempt: u32) -> bool {
        self.settings.callback.is_some()
            && self.store_was_away(self.settings.others_first)
            && would_be_too_old(order, attempt, self.now(), &self.settings.policy)
    }

    /// The evidence about a callback that arrives now, and a guard to keep until it is answered.
    pub(crate) fn receive_callback(&self) -> (Option<Receipt>, Unanswered<'_>) {
        let now = self.now();
        let mut reach = lock(&self.reach);
        let receipt = reach.listens_since.map(|_| reach.receipt(now));
        reach.last_number += 1;
        let number = reach.last_number;
        reach.unanswered.insert(number, now);
        (receipt, Unanswered { engine: self, number, arrived: now, is_answered: false })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use quittance_ports::{Card, Signed, Vitals};

    const OURS: &str = "https://one.example.com/callback";

    const fn at(seconds: u64) -> Timestamp {
        Timestamp::from_millis(1_000_000 + seconds * 1000)
    }

    /// A node that has been answering callbacks until this moment.
    fn signed(node: u64, name: &str, address: &str, started: Timestamp, until: Timestamp) -> Signed {
        let reach = Some(Reach { address: address.into(), until, outages: Vec::new() });
        let card = Card {
            node,
            name: name.into(),
            version: String::new(),
            format: 1,
            started,
            at: until,
            skew_ms: None,
            vitals: Vitals::default(),
            reach,
            demand: BTreeMap::new(),
        };
        Signed { card, seen: until }
    }

    fn outages(nodes: Vec<Signed>, now: Timestamp) -> Vec<Outage> {
        let mut reach = Reachability { last_beat: Some(now), ..Reachability::default() };
        reach.heed(&Roll { now, nodes }, 1, OURS, now);
        reach.receipt(now).outages
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
