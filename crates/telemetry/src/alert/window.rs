//! How much was counted in the last while, from counts that only grow. It remembers an hour, in steps, and says whether it has
//! looked for as long as it is asked about.

use quittance_lifecycle::{Counters, Money, Timestamp};
use std::collections::VecDeque;
use std::time::Duration;

/// The longest period that a rule looks at.
pub(crate) const HOUR: Duration = Duration::from_secs(3600);
/// How far apart what is remembered stands.
const STEP: Duration = Duration::from_secs(10);
const POINTS_MAX: usize = 400;
/// What is recalled may be so much older than the hour and still be what that is counted from.
const RECALLED_MOST: Duration = Duration::from_secs(3600 + 300);

/// What the rules count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    pub dead: u64,
    pub attempts: u64,
    pub doubts: u64,
    pub webhooks_failed: u64,
    pub solved: u64,
    pub recovered_by_poll: u64,
    pub spent: Money,
    /// Answers whose price is not known: they are not in `spent`.
    pub unpriced: u64,
}

impl From<&Counters> for Counts {
    fn from(counters: &Counters) -> Self {
        Self {
            dead: counters.dead,
            attempts: counters.attempts,
            doubts: counters.doubts,
            webhooks_failed: counters.webhooks_failed,
            solved: counters.solved,
            recovered_by_poll: counters.recovered_by_poll,
            spent: Money(counters.cost_micros),
            unpriced: counters.spent().unpriced,
        }
    }
}

impl Counts {
    const fn since(&self, before: &Self) -> Self {
        Self {
            dead: self.dead.saturating_sub(before.dead),
            attempts: self.attempts.saturating_sub(before.attempts),
            doubts: self.doubts.saturating_sub(before.doubts),
            webhooks_failed: self.webhooks_failed.saturating_sub(before.webhooks_failed),
            solved: self.solved.saturating_sub(before.solved),
            recovered_by_poll: self.recovered_by_poll.saturating_sub(before.recovered_by_poll),
            spent: Money(self.spent.0.saturating_sub(before.spent.0)),
            unpriced: self.unpriced.saturating_sub(before.unpriced),
        }
    }
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Window {
    points: VecDeque<(Timestamp, Counts)>,
    latest: Option<(Timestamp, Counts)>,
}

/// What was counted lately.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Lately {
    pub(crate) counts: Counts,
    /// How long has really been looked.
    pub(crate) span: Duration,
    /// Whether that is as long as was asked about: less than that says nothing about all being well.
    pub(crate) is_whole: bool,
}

impl Window {
    pub(crate) fn note(&mut self, at: Timestamp, counts: Counts) {
        // A clock that was set back begins anew.
        if self.latest.is_some_and(|(last, _)| at < last) {
            self.points.clear();
        }
        self.latest = Some((at, counts));
        if self.points.back().is_none_or(|(last, _)| at.since(*last) >= STEP) {
            self.points.push_back((at, counts));
        }
        // One that is older than all that is asked about is what that is counted from.
        while self.points.get(1).is_some_and(|(second, _)| at.since(*second) >= HOUR)
            || self.points.len() > POINTS_MAX
        {
            self.points.pop_front();
        }
    }

    /// Adds counts from before the first reading, oldest first. Counts that are older than the longest period are left out.
    pub(crate) fn recall(&mut self, now: Timestamp, counted: impl IntoIterator<Item = (Timestamp, Counts)>) {
        let fresh = counted.into_iter().filter(|(at, _)| *at <= now && now.since(*at) <= RECALLED_MOST);
        fresh.for_each(|(at, counts)| self.note(at, counts));
    }

    pub(crate) fn lately(&self, span: Duration) -> Option<Lately> {
        let (now, latest) = self.latest?;
        let is_old = |at: Timestamp| now.since(at) >= span;
        let whole = self.points.iter().rev().find(|(at, _)| is_old(*at));
        let (from, before) = whole.or_else(|| self.points.front())?;
        Some(Lately { counts: latest.since(before), span: now.since(*from), is_whole: whole.is_some() })
    }
}
