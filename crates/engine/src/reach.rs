//! Since when callbacks could reach us: the evidence by which an answer that came by callback is dated. A callback that got
//! no answer is repeated by its provider, so every time in which that may have happened is an outage: a restart, a freeze, a
//! callback that we could not keep or were slow to answer, here or on another node behind the same address.

use crate::{Engine, lock};
use quittance_lifecycle::{Order, Outage, Receipt, Timestamp, would_be_too_old};
use quittance_ports::{Reach, Roll};
use std::collections::BTreeMap;
use std::time::Duration;

/// How often the worker shows that this process runs.
pub(crate) const BEAT_SPAN: Duration = Duration::from_secs(1);
/// A beat that is later than this, or a callback that takes longer, is an outage.
const BEAT_LATE: Duration = Duration::from_secs(2);
/// How long an outage is remembered. No answer with an expiry lives that long.
const REMEMBERED: Duration = Duration::from_secs(3600);
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
    /// Outages of other nodes, as of the last roll: those without an end go on. `None` before the first roll.
    elsewhere: Option<Vec<(Timestamp, Option<Timestamp>)>>,
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
        }
        self.last_beat = Some(now);
    }

    fn heed(&mut self, roll: &Roll, own: u64, now: Timestamp) {
        let mut elsewhere = Vec::new();
        for signed in roll.nodes.iter().filter(|signed| signed.card.node != own) {
            let Some(reach) = &signed.card.reach else { continue };
            elsewhere.extend(reach.outages.iter().map(|outage| (outage.from, Some(outage.to))));
            // The same node, started again, listens since then.
            let successor = roll.nodes.iter().map(|signed| &signed.card).find(|card| {
                card.node != signed.card.node
                    && card.name == signed.card.name
                    && card.started > signed.card.started
            });
            elsewhere.push((reach.until, successor.map(|card| card.started.max(reach.until))));
        }
        elsewhere.retain(|(_, to)| to.is_none_or(|to| to + REMEMBERED >= now));
        self.elsewhere = Some(elsewhere);
    }

    fn receipt(&self, now: Timestamp) -> Receipt {
        let mut outages = self.outages.clone();
        outages.retain(|outage| outage.to + REMEMBERED >= now);
        let until = self.answered_until(now);
        if until + BEAT_LATE < now {
            outages.push(Outage { from: until, to: now });
        }
        let open =
            |(from, to): &(Timestamp, Option<Timestamp>)| Outage { from: *from, to: to.unwrap_or(now) };
        match &self.elsewhere {
            Some(elsewhere) => outages.extend(elsewhere.iter().map(open)),
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
        lock(&self.reach).heed(roll, self.settings.node, now);
    }

    /// What this node tells the others about how callbacks could reach it; nothing, if it does not listen for them.
    #[must_use]
    pub fn reach(&self) -> Option<Reach> {
        let now = self.now();
        let reach = lock(&self.reach);
        reach.listens_since?;
        Some(Reach { until: reach.answered_until(now), outages: reach.outages.clone() })
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
