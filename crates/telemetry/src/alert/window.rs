//! How much was counted in the last period, from counters that only grow. It keeps an hour in steps, and reports
//! whether it has watched for the whole period.

use quittance_lifecycle::{Counters, Timestamp};
use std::collections::VecDeque;
use std::time::Duration;

/// The longest period of a rule.
pub(crate) const HOUR: Duration = Duration::from_secs(3600);
/// The time between two kept points.
const STEP: Duration = Duration::from_secs(10);
const POINTS_MAX: usize = 400;
/// The greatest age of a recalled point from which the last hour can still be counted.
const RECALLED_MOST: Duration = Duration::from_secs(3600 + 300);

/// `a - b`, for each counter.
pub(crate) fn difference(mut a: Counters, b: &Counters) -> Counters {
    for (name, count) in b.lines() {
        if let Some(line) = a.line_mut(name) {
            *line = line.saturating_sub(count);
        }
    }
    a
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Window {
    points: VecDeque<(Timestamp, Counters)>,
    latest: Option<(Timestamp, Counters)>,
}

/// The counts of the last period.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Lately {
    pub(crate) counts: Counters,
    /// How long was really watched.
    pub(crate) span: Duration,
    /// Whether the whole period was watched. A shorter time does not prove that all is well.
    pub(crate) is_whole: bool,
}

impl Window {
    pub(crate) fn note(&mut self, at: Timestamp, counts: Counters) {
        // A clock that was set back begins again.
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

    /// Adds counts from before the first reading, oldest first. Counts older than `RECALLED_MOST` are left out.
    pub(crate) fn recall(
        &mut self,
        now: Timestamp,
        counted: impl IntoIterator<Item = (Timestamp, Counters)>,
    ) {
        let fresh = counted.into_iter().filter(|(at, _)| *at <= now && now.since(*at) <= RECALLED_MOST);
        fresh.for_each(|(at, counts)| self.note(at, counts));
    }

    pub(crate) fn lately(&self, span: Duration) -> Option<Lately> {
        let (now, latest) = self.latest?;
        let is_old = |at: Timestamp| now.since(at) >= span;
        let whole = self.points.iter().rev().find(|(at, _)| is_old(*at));
        let (from, before) = whole.or_else(|| self.points.front())?;
        Some(Lately { counts: difference(latest, before), span: now.since(*from), is_whole: whole.is_some() })
    }
}
