//! Marks: counters with their time, stored beside the alerts. The counters of a node are in memory. From the marks, a
//! node that has just started knows what was counted in the last hour.

use super::history::History;
use quittance_lifecycle::{Counters, Money, PriceSum, Timestamp};
use quittance_ports::{Day, Mark};
use std::time::Duration;

/// The time between two marks.
const INTERVAL: Duration = Duration::from_secs(120);
/// How long a mark is kept. The last hour is counted from a mark that is older than an hour.
const KEPT: Duration = Duration::from_secs(3600 + 240);

fn counters(mark: &Mark) -> Counters {
    let Mark { at: _, dead, attempts, in_doubt, webhooks_failed, solved, recovered_by_poll, spent, unpriced } =
        *mark;
    let Money(cost_micros) = spent;
    Counters {
        dead,
        attempts,
        in_doubt,
        webhooks_failed,
        solved,
        recovered_by_poll,
        cost_micros,
        unpriced,
        ..Counters::default()
    }
}

fn mark(at: Timestamp, usage: &Counters) -> Mark {
    let Counters { dead, attempts, in_doubt, webhooks_failed, solved, recovered_by_poll, .. } = *usage;
    let PriceSum { sum: spent, unpriced } = usage.spent();
    Mark { at, dead, attempts, in_doubt, webhooks_failed, solved, recovered_by_poll, spent, unpriced }
}

pub(super) fn is_due(marks: &[Mark], now: Timestamp) -> bool {
    // Start again if the clock was set back.
    marks.last().is_none_or(|last| last.at > now || now.since(last.at) >= INTERVAL)
}

/// The marks that are still needed, and a new one if it is due.
pub(super) fn next(marks: &[Mark], history: &History, now: Timestamp) -> Vec<Mark> {
    let is_needed = |mark: &&Mark| mark.at <= now && now.since(mark.at) < KEPT;
    let mut next: Vec<Mark> = marks.iter().filter(is_needed).copied().collect();
    if let Some((at, usage)) = history.latest().filter(|(at, _)| is_due(&next, *at)) {
        next.push(mark(at, &usage));
    }
    next
}

/// The counters at each mark, comparable to the counters of this node.
pub(super) fn recalled(marks: &[Mark], history: &History) -> Vec<(Timestamp, Counters)> {
    let counted = |mark: &Mark| Some((mark.at, history.total_when(Day::of(mark.at), counters(mark))?));
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
        assert_eq!(earlier.len(), 1, "start again if the clock was set back");
    }
}
