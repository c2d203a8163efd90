//! How fast orders leave the queue to the provider. An order that would have to wait longer than its timeout is
//! refused, so the pace counts only as far as it was limited by the provider and not by the demand.

use quittance_lifecycle::Timestamp;
use std::collections::VecDeque;
use std::time::Duration;

/// The time over which one pace is measured.
const SPAN: Duration = Duration::from_secs(10);
/// How many spans are remembered: ten minutes. The fastest of them counts, because the provider may be as fast again.
const SPANS_MAX: usize = 60;
/// How many spans must have been measured: a minute. Less says too little to refuse an order.
const SPANS_MIN: usize = 6;

struct PaceSpan {
    /// The number of the span since the beginning of time.
    number: u64,
    /// How many orders have left the queue.
    left: u32,
    /// Whether the queue was empty at some moment. Then the demand has limited the pace.
    was_empty: bool,
}

/// The pace of the last minutes.
#[derive(Default)]
pub(crate) struct QueuePace(VecDeque<PaceSpan>);

impl QueuePace {
    fn number(now: Timestamp) -> u64 {
        now.as_millis() / (SPAN.as_secs() * 1000)
    }

    fn span(&mut self, now: Timestamp) -> &mut PaceSpan {
        let number = Self::number(now);
        if self.0.back().is_none_or(|last| last.number != number) {
            if self.0.len() > SPANS_MAX {
                self.0.pop_front();
            }
            self.0.push_back(PaceSpan { number, left: 0, was_empty: false });
        }
        let last = self.0.len() - 1;
        &mut self.0[last]
    }

    pub(crate) fn note_left(&mut self, now: Timestamp) {
        self.span(now).left += 1;
    }

    pub(crate) fn note_empty(&mut self, now: Timestamp) {
        self.span(now).was_empty = true;
    }

    /// The least time until this many orders have left the queue; `None` if the pace is not known.
    pub(crate) fn wait(&self, orders: usize, now: Timestamp) -> Option<Duration> {
        let now = Self::number(now);
        let oldest = now.saturating_sub(SPANS_MAX as u64);
        let is_measured =
            |span: &&PaceSpan| !span.was_empty && span.left > 0 && (oldest..now).contains(&span.number);
        let measured: Vec<u32> = self.0.iter().filter(is_measured).map(|span| span.left).collect();
        let fastest = measured.iter().max().filter(|_| measured.len() >= SPANS_MIN)?;
        Some(SPAN.saturating_mul(u32::try_from(orders).unwrap_or(u32::MAX)) / *fastest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Timestamp {
        Timestamp::from_millis(1_000_000_000 + ms)
    }

    /// Ten orders leave in each span.
    fn measured(spans: u64) -> QueuePace {
        let mut pace = QueuePace::default();
        (0..spans * 10).for_each(|n| pace.note_left(at(n * 1000)));
        pace
    }

    #[test]
    fn the_wait_follows_from_the_fastest_pace_of_the_last_minutes() {
        let pace = measured(7);
        assert_eq!(pace.wait(300, at(70_000)), Some(Duration::from_secs(300)));
        assert_eq!(pace.wait(300, at(30 * 60_000)), None, "it is too long ago");
        assert_eq!(measured(5).wait(300, at(50_000)), None, "that is too little to say");
        let mut faster = measured(7);
        (0..20).for_each(|n| faster.note_left(at(70_000 + n)));
        assert_eq!(faster.wait(300, at(80_000)), Some(Duration::from_secs(150)));
    }

    #[test]
    fn a_span_in_which_the_queue_was_empty_says_nothing() {
        let mut pace = QueuePace::default();
        for n in 0..100 {
            pace.note_left(at(n * 1000));
            pace.note_empty(at(n * 1000));
        }
        assert_eq!(pace.wait(300, at(100_000)), None);
    }
}
