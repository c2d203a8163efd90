//! How many tasks may be at the provider at once, learned from its replies.
//!
//! Before the provider was ever busy, the number of submits in progress grows with each that it accepts: the slow
//! start. The first busy reply ends it, and the limit is what the provider has taken. From time to time one task more
//! is tried. If that is taken, the next is tried at once; if not, the next try comes later. A busy reply below the
//! limit lowers it by a quarter. With six slots:
//!
//! ```text
//! submits    1 2 3 4 5 6 7       15 s later: 7    an answer comes: 7
//! replies    + + + + + + busy    busy             +
//! limit      -           6       6, not for 30 s  6
//! ```

use crate::gate_rules::GateRules;
use quittance_lifecycle::Timestamp;
use std::time::Duration;

/// How many seats are in use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct SeatCount {
    /// All tasks that are or may be at the provider.
    pub(crate) held: u32,
    /// Those of them whose submit has begun a moment ago and has no reply yet.
    pub(crate) asking: u32,
}

impl SeatCount {
    /// How many tasks the provider has, as far as this node knows.
    pub(crate) const fn taken(self) -> u32 {
        self.held.saturating_sub(self.asking)
    }
}

pub(crate) struct Limit {
    rules: GateRules,
    /// The limit; `None` in the slow start.
    learned: Option<u32>,
    /// How many submits were accepted in the slow start.
    accepted: u32,
    /// The most that the account allows; `None` if that is not known.
    bound: Option<u32>,
    /// When the provider was last busy. Busy replies to submits from before say nothing new.
    busy_at: Timestamp,
    busy_in_a_row: u32,
    /// No submit goes out until then, or until an answer comes.
    held_until: Timestamp,
    /// When one task more than the limit may be tried, and the submit that tries it.
    next_probe: Timestamp,
    probe: Option<u64>,
    failed_probes: u32,
    /// How long the slowest tasks of the last submit's kind take.
    p99: Duration,
}

impl Limit {
    pub(crate) const fn new(rules: GateRules) -> Self {
        Self {
            rules,
            learned: None,
            accepted: 0,
            bound: None,
            busy_at: Timestamp::ZERO,
            busy_in_a_row: 0,
            held_until: Timestamp::ZERO,
            next_probe: Timestamp::ZERO,
            probe: None,
            failed_probes: 0,
            p99: Duration::MAX,
        }
    }

    pub(crate) const fn learned(&self) -> Option<u32> {
        self.learned
    }

    pub(crate) fn set_bound(&mut self, threads: Option<u64>) {
        self.bound = threads.map(self.rules.bound);
    }

    /// How many more submits may begin now. `of_tenant` is how many of one tenant are in progress: in the slow start a
    /// tenant leaves as many places free as it has.
    pub(crate) fn room(&self, count: SeatCount, of_tenant: u32, now: Timestamp) -> u32 {
        let below = self.bound.unwrap_or(u32::MAX).saturating_sub(count.held);
        let Some(limit) = self.learned else {
            let free = (self.rules.slow_start)(self.accepted).saturating_sub(count.asking);
            return below.min(free.saturating_sub(of_tenant).div_ceil(2));
        };
        if now < self.held_until {
            return 0;
        }
        let with_probe = limit.saturating_add(u32::from(self.may_probe(now)));
        below.min(with_probe.saturating_sub(count.held))
    }

    fn may_probe(&self, now: Timestamp) -> bool {
        self.probe.is_none() && now >= self.next_probe
    }

    /// When there may be room if nothing else happens before; `None` if only a reply or an answer makes room.
    pub(crate) fn opens_at(&self, now: Timestamp) -> Option<Timestamp> {
        self.learned?;
        let moments = [Some(self.held_until), self.probe.is_none().then_some(self.next_probe)];
        moments.into_iter().flatten().filter(|moment| *moment > now).min()
    }

    /// Whether the limit is known and used in full.
    pub(crate) fn is_full(&self, count: SeatCount) -> bool {
        self.learned.is_some_and(|limit| count.held >= limit)
    }

    /// A submit goes out. `count` is without it, and `p99` is how long the slowest tasks of its kind take.
    pub(crate) fn passed(&mut self, submit: u64, count: SeatCount, p99: Duration) {
        self.p99 = p99;
        if self.is_full(count) {
            self.probe = Some(submit);
        }
    }

    /// A submit was not made, or its outcome says nothing about slots.
    pub(crate) fn left(&mut self, submit: u64, now: Timestamp) {
        if self.probe == Some(submit) {
            self.probe = None;
            self.next_probe = now + (self.rules.probe_pause)(self.failed_probes, self.p99);
        }
    }

    /// A submit was accepted. `count` is with it.
    pub(crate) fn accepted(&mut self, submit: u64, count: SeatCount, now: Timestamp) {
        self.accepted = self.accepted.saturating_add(1);
        self.learned = self.learned.map(|limit| limit.max(count.taken()));
        (self.busy_in_a_row, self.held_until) = (0, Timestamp::ZERO);
        if self.probe == Some(submit) {
            (self.probe, self.failed_probes, self.next_probe) = (None, 0, now);
        }
    }

    /// A submit that was sent at `sent` met a busy provider, which has some of our tasks. `count` is without it.
    /// Returns whether that is new information. `pause` gives the next pause of the backoff.
    pub(crate) fn met_busy(
        &mut self,
        (submit, sent): (u64, Timestamp),
        count: SeatCount,
        now: Timestamp,
        pause: impl Fn(u32) -> Duration,
    ) -> bool {
        let was_probe = self.probe == Some(submit);
        if was_probe {
            self.probe = None;
            self.failed_probes = self.failed_probes.saturating_add(1);
        }
        let is_news = sent > self.busy_at;
        if was_probe || is_news {
            self.next_probe =
                self.next_probe.max(now + (self.rules.probe_pause)(self.failed_probes, self.p99));
        }
        if !is_news {
            return false;
        }
        self.busy_at = now;
        match self.learned {
            None => self.learned = Some(count.taken().max(1)),
            Some(limit) if count.held >= limit => {}
            Some(limit) => {
                self.learned = Some((self.rules.lower_limit)(limit, count.taken()));
                self.held_until = now + pause(self.busy_in_a_row);
                self.busy_in_a_row = self.busy_in_a_row.saturating_add(1);
            }
        }
        true
    }

    /// An answer has come: there is a free slot.
    pub(crate) fn answered(&mut self) {
        self.held_until = Timestamp::ZERO;
    }

    /// Begins the slow start again: nothing of ours is at the provider, so its busy replies set no limit.
    pub(crate) fn restart(&mut self) {
        *self = Self { bound: self.bound, ..Self::new(self.rules) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn at(seconds: u64) -> Timestamp {
        Timestamp::from_millis(1_000_000 + seconds * 1000)
    }

    const fn count(held: u32, asking: u32) -> SeatCount {
        SeatCount { held, asking }
    }

    const fn pause(_: u32) -> Duration {
        Duration::from_secs(2)
    }

    /// A limit that has met "busy" with six tasks at the provider.
    fn six() -> Limit {
        let mut limit = Limit::new(GateRules::REAL);
        (1..=6).for_each(|n| limit.accepted(n, count(u32::try_from(n).unwrap(), 0), at(0)));
        assert!(limit.met_busy((7, at(0)), count(6, 0), at(1), pause));
        limit
    }

    #[test]
    fn the_slow_start_grows_with_each_accepted_submit_and_leaves_room_for_another_tenant() {
        let mut limit = Limit::new(GateRules::REAL);
        assert_eq!(limit.room(count(0, 0), 0, at(0)), 4);
        assert_eq!(limit.room(count(4, 4), 4, at(0)), 0, "half of the places are for others");
        assert_eq!(limit.room(count(4, 4), 0, at(0)), 2);
        (0..20).for_each(|n| limit.accepted(n, count(1, 0), at(0)));
        assert_eq!(limit.room(count(20, 0), 0, at(0)), 9);
    }

    #[test]
    fn the_first_busy_reply_sets_the_limit_to_what_was_taken_and_an_answer_makes_room() {
        let mut limit = six();
        assert_eq!((limit.learned(), limit.room(count(6, 0), 0, at(1))), (Some(6), 0));
        assert!(
            !limit.met_busy((8, at(0)), count(6, 0), at(2), pause),
            "it was sent before the first came back"
        );
        limit.answered();
        assert_eq!(limit.room(count(5, 0), 0, at(2)), 1);
    }

    #[test]
    fn one_task_more_is_tried_after_a_while_and_then_less_often_or_at_once() {
        let mut limit = six();
        assert_eq!(limit.opens_at(at(1)), Some(at(16)));
        assert_eq!(limit.room(count(6, 0), 0, at(16)), 1);
        limit.passed(9, count(6, 0), Duration::from_secs(100));
        assert_eq!(limit.room(count(6, 0), 0, at(17)), 0, "one at a time");
        limit.met_busy((9, at(16)), count(6, 0), at(17), pause);
        assert_eq!((limit.learned(), limit.opens_at(at(17))), (Some(6), Some(at(47))));
        limit.passed(10, count(6, 0), Duration::from_secs(100));
        limit.accepted(10, count(7, 0), at(47));
        assert_eq!((limit.learned(), limit.room(count(7, 0), 0, at(47))), (Some(7), 1));
    }

    #[test]
    fn a_busy_reply_below_the_limit_lowers_it_and_holds_submits_until_an_answer_comes() {
        let mut limit = six();
        limit.met_busy((9, at(5)), count(2, 0), at(5), pause);
        assert_eq!((limit.learned(), limit.room(count(2, 0), 0, at(6))), (Some(4), 0));
        assert_eq!(limit.opens_at(at(6)), Some(at(7)));
        limit.answered();
        assert_eq!(limit.room(count(1, 0), 0, at(6)), 3);
    }

    #[test]
    fn the_threads_of_the_account_bound_the_slow_start_and_the_probes() {
        let mut limit = Limit::new(GateRules::REAL);
        limit.set_bound(Some(2));
        assert_eq!([0, 1, 2, 3].map(|held| limit.room(count(held, 0), 0, at(0))), [2, 1, 0, 0]);
        let mut limit = six();
        limit.set_bound(Some(6));
        assert_eq!(limit.room(count(6, 0), 0, at(1000)), 0);
    }
}
