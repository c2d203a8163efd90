//! The counters of a quota: the units that this node has leased, and their state. Time is an argument.

use super::{DRAWN_FOR, GIVE_BACK_PAUSE, GIVE_BACK_PAUSE_TIGHT, LEASE_LIFE};
use quittance_ports::Version;
use std::collections::VecDeque;
use std::time::Duration;
use tokio::time::Instant;

/// How long a unit in doubt is kept back. A write that was sent has arrived by then, or never does.
pub(super) const DOUBT: Duration = Duration::from_secs(10);
/// Units in doubt whose ends are this close together end together.
const DOUBT_GRAIN: Duration = Duration::from_secs(1);
/// Units that were leased ahead are given back if none was taken for this time.
pub(super) const IDLE: Duration = Duration::from_millis(500);
/// The time in which taken units are counted; the count decides how many are leased ahead.
const RECENT: Duration = Duration::from_secs(1);
/// The part of the free units that a node leases ahead: one in this many.
const AHEAD_SHARE: u64 = 8;
/// If less than one in this many of the limit is free, used units are given back at once.
const TIGHT_SHARE: u64 = 4;

/// The result of one request for a lease.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum RoundEnd {
    Leased,
    Full {
        in_use: u64,
    },
    /// Some units are not in use, but all of these are leased, here or elsewhere.
    Contested {
        in_use: u64,
    },
    Failed {
        doing: &'static str,
        why: String,
    },
}

/// The lease that a node asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct LeaseRequest {
    /// All units: those that the node has, and those that it still needs.
    pub(super) amount: u64,
    /// The units that the node does not have yet.
    pub(super) more: u64,
}

#[derive(Debug)]
pub(super) struct LeaseState {
    /// Requests that wait for a unit.
    pub(super) waiting: u64,
    /// Whether a task is giving back settled units.
    pub(super) is_giving_back: bool,
    /// How many rounds of requests have begun.
    pub(super) rounds: u64,
    /// The leased units: `free` can be taken, `busy` are taken. `done` are in use or not needed any more, and must be
    /// given back.
    free: u64,
    busy: u64,
    done: u64,
    /// Units in doubt, and the moment until which they are kept back, the oldest first.
    doubts: VecDeque<(Instant, u64)>,
    /// The version of the last lease, and when it was requested.
    version: Option<(Version, Instant)>,
    /// The last result that is not a lease: its round, its time and the result.
    answer: Option<(u64, Instant, RoundEnd)>,
    taken_at: Instant,
    /// The start of the current count, the units taken since, and the units taken in the time before.
    recent: (Instant, u64, u64),
    /// Whether few units were free at the last request.
    is_tight: bool,
}

impl LeaseState {
    pub(super) fn new(now: Instant) -> Self {
        Self {
            waiting: 0,
            is_giving_back: false,
            rounds: 0,
            free: 0,
            busy: 0,
            done: 0,
            doubts: VecDeque::new(),
            version: None,
            answer: None,
            taken_at: now,
            recent: (now, 0, 0),
            is_tight: false,
        }
    }

    fn doubtful(&self) -> u64 {
        self.doubts.iter().map(|(_, units)| units).sum()
    }

    /// Takes a unit, if one is free and its lease lives long enough.
    pub(super) fn draw(&mut self, now: Instant) -> bool {
        let is_drawn_on = self.version.is_some_and(|(_, since)| now < since + DRAWN_FOR);
        if self.free == 0 || !is_drawn_on {
            return false;
        }
        self.free -= 1;
        self.busy += 1;
        self.taken_at = now;
        self.turn_recent(now);
        self.recent.1 += 1;
        true
    }

    fn turn_recent(&mut self, now: Instant) {
        let (since, count, _) = self.recent;
        if now >= since + RECENT * 2 {
            self.recent = (now, 0, 0);
        } else if now >= since + RECENT {
            self.recent = (since + RECENT, 0, count);
        }
    }

    pub(super) fn used(&mut self, _: Instant) {
        self.busy -= 1;
        self.done += 1;
    }

    pub(super) fn unused(&mut self, _: Instant) {
        self.busy -= 1;
        self.free += 1;
    }

    pub(super) fn in_doubt(&mut self, now: Instant) {
        self.busy -= 1;
        // Where the store did not answer, what was leased ahead may be forgotten: no use of it without another look.
        self.lay_down();
        match self.doubts.back_mut() {
            Some((until, units)) if now + DOUBT < *until + DOUBT_GRAIN => {
                *until = now + DOUBT;
                *units += 1;
            }
            _ => self.doubts.push_back((now + DOUBT, 1)),
        }
    }

    /// Marks free units to be given back; they are not taken any more.
    pub(super) fn lay_down(&mut self) {
        self.done += std::mem::take(&mut self.free);
    }

    pub(super) fn lay_down_idle(&mut self, now: Instant) {
        if self.waiting == 0 && now >= self.taken_at + IDLE {
            self.lay_down();
        }
    }

    fn end_doubts(&mut self, now: Instant) {
        while let Some((_, units)) = self.doubts.front().filter(|(until, _)| *until <= now) {
            self.done += units;
            self.doubts.pop_front();
        }
    }

    /// How many units need no lease any more, if a count of used units begins now.
    pub(super) fn settled(&mut self, now: Instant) -> u64 {
        self.end_doubts(now);
        if self.version.is_none_or(|(_, since)| now >= since + DRAWN_FOR) {
            self.lay_down();
        }
        self.done
    }

    /// The lease to ask for when `in_use` units are in use, or the reason why nothing can be leased.
    pub(super) fn want(
        &mut self,
        limit: u64,
        in_use: u64,
        by_others: u64,
        settled: u64,
        now: Instant,
    ) -> Result<LeaseRequest, RoundEnd> {
        if in_use >= limit {
            self.is_tight = true;
            return Err(RoundEnd::Full { in_use });
        }
        let has = self.free + self.busy + self.doubtful() + (self.done - settled);
        let left = limit.saturating_sub(in_use.saturating_add(by_others).saturating_add(has));
        let needed = self.waiting.saturating_sub(self.free);
        self.is_tight = left.saturating_sub(needed) < limit.div_ceil(TIGHT_SHARE);
        if left == 0 {
            return Err(RoundEnd::Contested { in_use });
        }
        self.turn_recent(now);
        let ahead = (left.saturating_sub(needed) / AHEAD_SHARE).min(self.recent.1.max(self.recent.2));
        let more = left.min(needed + ahead);
        Ok(LeaseRequest { amount: has + more, more })
    }

    /// Records the lease that was requested at `sent`.
    pub(super) fn leased(&mut self, version: Version, settled: u64, more: u64, sent: Instant) {
        self.version = Some((version, sent));
        self.done -= settled;
        self.free += more;
        self.taken_at = sent;
        self.answer = None;
    }

    pub(super) fn keep_answer(&mut self, answer: RoundEnd, now: Instant) {
        self.answer = (answer != RoundEnd::Leased).then_some((self.rounds, now, answer));
    }

    /// The final result of a round that began after this one, if there is one.
    pub(super) fn answer_since(&self, round: u64) -> Option<RoundEnd> {
        let (of, _, answer) = self.answer.as_ref()?;
        let is_an_end = !matches!(answer, RoundEnd::Contested { .. });
        (*of > round && is_an_end).then(|| answer.clone())
    }

    /// The number of units in use, if the quota was full no longer than `stale_max` ago.
    pub(super) fn refusal_since(&self, now: Instant, stale_max: Duration) -> Option<u64> {
        match self.answer {
            Some((_, at, RoundEnd::Full { in_use })) if now < at + stale_max => Some(in_use),
            _ => None,
        }
    }

    /// What can be given back: the version of the lease, its next amount, and the difference.
    pub(super) fn surplus(&mut self, now: Instant) -> Option<(Version, u64, u64)> {
        self.end_doubts(now);
        let (version, since) = self.version?;
        if now >= since + LEASE_LIFE {
            // It has ended by itself.
            self.done = 0;
        }
        (self.done > 0).then(|| (version, self.free + self.busy + self.doubtful(), self.done))
    }

    pub(super) fn gave_back(&mut self, settled: u64) {
        self.done -= settled;
    }

    /// When to check again for units to give back. `None` until another unit is settled.
    pub(super) fn next_give_back(&self, now: Instant) -> Option<Duration> {
        let of_used = (self.done > 0).then_some(match self.is_tight {
            true => GIVE_BACK_PAUSE_TIGHT,
            false => GIVE_BACK_PAUSE,
        });
        let of_free = (self.free > 0).then(|| (self.taken_at + IDLE).saturating_duration_since(now));
        let of_doubts = self.doubts.front().map(|(until, _)| until.saturating_duration_since(now));
        let soonest = [of_used, of_free, of_doubts].into_iter().flatten().min()?;
        // Where the store is away, it is not asked without a pause.
        Some(soonest.max(GIVE_BACK_PAUSE_TIGHT))
    }
}
