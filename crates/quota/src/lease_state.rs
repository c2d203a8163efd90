//! The sums of a quota: what this node has leased, and what became of it. Time is an argument.

use super::{DRAWN_FOR, GIVE_BACK_PAUSE, GIVE_BACK_PAUSE_TIGHT, LEASE_LIFE};
use quittance_ports::Version;
use std::collections::VecDeque;
use std::time::Duration;
use tokio::time::Instant;

/// A unit that may have been used is kept back for this time: a write that was sent has arrived by then, or never does.
pub(super) const DOUBT: Duration = Duration::from_secs(10);
/// Doubts that end within this time of each other end together.
const DOUBT_GRAIN: Duration = Duration::from_secs(1);
/// Units that were leased ahead are given back when none was taken for this time.
pub(super) const IDLE: Duration = Duration::from_millis(500);
/// How many units were taken in this time tells how many are leased ahead.
const RECENT: Duration = Duration::from_secs(1);
/// Of the units that are left, a node leases one in so many ahead.
const AHEAD_SHARE: u64 = 8;
/// Where so small a share of the limit is left, used units are given back at once.
const TIGHT_SHARE: u64 = 4;

/// How a round of asking ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum RoundEnd {
    Leased,
    Full {
        in_use: u64,
    },
    /// Not all units are in use, but all others are leased, here or elsewhere.
    Contested {
        in_use: u64,
    },
    Failed {
        doing: &'static str,
        why: String,
    },
}

/// What a node wants to lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct LeaseRequest {
    /// All that it has and wants.
    pub(super) amount: u64,
    /// The part of it that it does not have yet.
    pub(super) more: u64,
}

#[derive(Debug)]
pub(super) struct LeaseState {
    /// Requests that wait for a unit.
    pub(super) waiting: u64,
    /// Whether a task gives back what is settled.
    pub(super) is_giving_back: bool,
    /// How many rounds of asking have begun.
    pub(super) rounds: u64,
    /// The units that are leased: `free` ones may be taken, `busy` ones are taken, `done` ones are in use, or not needed any more,
    /// and are to be given back.
    free: u64,
    busy: u64,
    done: u64,
    /// Units that may be in use, and until when that is not known, the oldest first.
    doubts: VecDeque<(Instant, u64)>,
    /// Of the last lease, and when it was asked for.
    version: Option<(Version, Instant)>,
    /// The last answer that is no lease: its round, its moment, and what it was.
    answer: Option<(u64, Instant, RoundEnd)>,
    taken_at: Instant,
    /// Units taken since a moment, and in the time before it.
    recent: (Instant, u64, u64),
    /// Whether few units were left when this node last asked.
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

    /// Takes a unit, if one is leased that lives long enough.
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

    /// Units that are free are not taken any more, and given back.
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

    /// How many units need no lease any more if what is in use is counted from here on.
    pub(super) fn settled(&mut self, now: Instant) -> u64 {
        self.end_doubts(now);
        if self.version.is_none_or(|(_, since)| now >= since + DRAWN_FOR) {
            self.lay_down();
        }
        self.done
    }

    /// What to lease, where so much is in use and leased by others; or why nothing can be leased.
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

    /// What was wanted was leased; it was asked for at `sent`.
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

    /// What was answered in a round that began after this one, if that ends the matter.
    pub(super) fn answer_since(&self, round: u64) -> Option<RoundEnd> {
        let (of, _, answer) = self.answer.as_ref()?;
        let is_an_end = !matches!(answer, RoundEnd::Contested { .. });
        (*of > round && is_an_end).then(|| answer.clone())
    }

    /// That all is in use, if that was found no longer ago than this.
    pub(super) fn refusal_since(&self, now: Instant, stale_max: Duration) -> Option<u64> {
        match self.answer {
            Some((_, at, RoundEnd::Full { in_use })) if now < at + stale_max => Some(in_use),
            _ => None,
        }
    }

    /// What can be given back: the version of the lease, its next amount, and how much less that is.
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

    /// When to look again for what can be given back; `None` if nothing ever can until another unit is settled.
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
