//! What had been counted when, written down beside the alerts. Counts live in memory; by the marks whoever is started anew, or comes
//! later, knows what was counted in the hour before he came.

use super::history::History;
use quittance_alert::Counts;
use quittance_lifecycle::{Counters, Money, Timestamp};
use quittance_ports::{Day, Mark};
use std::time::Duration;

/// How far apart they are, and how long one is kept: the hour is counted from one that is older than it.
const SPAN: Duration = Duration::from_secs(120);
const KEPT: Duration = Duration::from_secs(3600 + 240);

fn counters(mark: &Mark) -> Counters {
    let Mark { at: _, dead, attempts, doubts, webhooks_failed, solved, recovered_by_poll, spent, unpriced } =
        *mark;
    let Money(cost_micros) = spent;
    Counters {
        dead,
        attempts,
        doubts,
        webhooks_failed,
        solved,
        recovered_by_poll,
        cost_micros,
        unpriced,
        ..Counters::default()
    }
}

fn mark(at: Timestamp, usage: &Counters) -> Mark {
    let Counts { dead, attempts, doubts, webhooks_failed, solved, recovered_by_poll, spent, unpriced } =
        Counts::from(usage);
    Mark { at, dead, attempts, doubts, webhooks_failed, solved, recovered_by_poll, spent, unpriced }
}

pub(super) fn is_due(marks: &[Mark], now: Timestamp) -> bool {
    // A clock that was set back begins anew.
    marks.last().is_none_or(|last| last.at > now || now.since(last.at) >= SPAN)
}

/// Those that are still of use, and one of the last look if it is time for it.
pub(super) fn next(marks: &[Mark], history: &History, now: Timestamp) -> Vec<Mark> {
    let is_of_use = |mark: &&Mark| mark.at <= now && now.since(mark.at) < KEPT;
    let mut next: Vec<Mark> = marks.iter().filter(is_of_use).copied().collect();
    if let Some((at, usage)) = history.latest().filter(|(at, _)| is_due(&next, *at)) {
        next.push(mark(at, &usage));
    }
    next
}

/// What had been counted at each of them, as this node counts.
pub(super) fn recalled(marks: &[Mark], history: &History) -> Vec<(Timestamp, Counts)> {
    let counted = |mark: &Mark| {
        let booked = history.booked_when(Day::of(mark.at), counters(mark))?;
        Some((mark.at, Counts::from(&booked)))
    };
    marks.iter().filter_map(counted).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_are_made_every_two_minutes_and_kept_for_a_little_more_than_an_hour() {
        let (mut history, mut marks) = (History::default(), Vec::new());
        for second in (0..9000).step_by(5) {
            let now = Timestamp::from_millis(second * 1000);
            history.note(now, Counters { dead: second, ..Counters::default() }, Counters::default());
            marks = next(&marks, &history, now);
        }
        assert_eq!(marks.len(), 32, "{marks:?}");
        let (first, last) = (marks[0], marks[31]);
        assert_eq!((first.dead, last.dead, last.at.since(first.at).as_secs()), (5160, 8880, 3720));
        let earlier = next(&marks, &history, Timestamp::from_millis(1000));
        assert_eq!(earlier.len(), 1, "a clock that was set back begins anew");
    }
}
