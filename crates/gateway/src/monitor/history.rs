//! What has been counted, as it grew: the last seconds for rates, and an hour in samples for whoever wants to see a curve.

use super::latencies::Latencies;
use quittance_lifecycle::{Counters, PriceSum, Timestamp};
use quittance_ports::{Day, OrderCounts};
use serde::Serialize;
use std::collections::VecDeque;
use std::time::Duration;
use utoipa::ToSchema;

/// Over which rates are taken.
const RATE_SPAN: Duration = Duration::from_secs(10);
/// Far more looks than fit into it.
const LOOKS_MAX: usize = 32;
const SAMPLES_MAX: usize = 720;

/// What has been counted since this node began to look. The usage begin anew each day; this goes on.
#[derive(Clone, Copy, Debug, Default)]
struct Grown {
    /// Of the first look, and of the last one.
    begun: u64,
    day: u64,
    /// At the first look, and of the days before today, the day before the first look among them.
    before: Counters,
    passed: Counters,
    today: Counters,
}

/// `a - b`, line by line.
fn less(mut a: Counters, b: &Counters) -> Counters {
    for (name, count) in b.lines() {
        if let Some(line) = a.line_mut(name) {
            *line = line.saturating_sub(count);
        }
    }
    a
}

impl Grown {
    fn booked(&self) -> Counters {
        let mut all = self.passed;
        all += self.today;
        all
    }

    fn all(&self) -> Counters {
        less(self.booked(), &self.before)
    }
}

/// One sample: the counts since the sample before.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, ToSchema)]
pub(crate) struct Sample {
    at_ms: u64,
    open: u64,
    dead: u64,
    asked: u64,
    joined: u64,
    cached: u64,
    from_stock: u64,
    paid: u64,
    solved: u64,
    failed: u64,
    /// Null if it is not known; see `unpriced` of the day.
    spent_micros: Option<u64>,
    saved_micros: Option<u64>,
    p50_ms: Option<u64>,
    p95_ms: Option<u64>,
}

#[derive(Debug, Default)]
pub(super) struct History {
    grown: Option<Grown>,
    looks: VecDeque<(Timestamp, Counters)>,
    samples: VecDeque<Sample>,
    /// What had been counted, and saved today, at the last sample.
    sampled: Option<(Timestamp, Counters, PriceSum)>,
}

impl History {
    /// The first day whose usage is to be read: what was counted between the last look and midnight counts, too; and at the
    /// first look what was counted before that, because the last hour may have begun yesterday.
    pub(super) fn day(&self, today: Day) -> Day {
        self.grown.map_or(Day(today.0.saturating_sub(1)), |grown| Day(grown.day).min(today))
    }

    /// The usage of today, and of the days since the last look; at the first, of the day before.
    pub(super) fn note(&mut self, at: Timestamp, today: Counters, before: Counters) {
        let day = Day::of(at).0;
        let first = Grown { begun: day, day, before: Counters::default(), passed: before, today };
        let grown = self.grown.get_or_insert_with(|| Grown { before: first.booked(), ..first });
        if grown.day != day {
            grown.passed += before;
            grown.day = day;
        }
        grown.today = today;
        let all = grown.all();
        // A clock that was set back begins anew.
        if self.looks.back().is_some_and(|(last, _)| *last > at) {
            self.looks.clear();
        }
        self.looks.push_back((at, all));
        while self.looks.len() > LOOKS_MAX
            || self.looks.get(1).is_some_and(|(second, _)| at.since(*second) >= RATE_SPAN)
        {
            self.looks.pop_front();
        }
    }

    /// What has been counted since this node began to look.
    pub(super) fn counted(&self) -> Option<Counters> {
        self.grown.map(|grown| grown.all())
    }

    /// What was counted on that day and the one before: what marks are counted in.
    pub(super) fn booked(&self) -> Option<Counters> {
        self.grown.map(|grown| grown.booked())
    }

    /// What the usage of its day said at the last look.
    pub(super) fn latest(&self) -> Option<(Timestamp, Counters)> {
        Some((self.looks.back()?.0, self.grown?.today))
    }

    /// What [`booked`](Self::booked) would have said when the usage of a day said this; nothing, if nobody knows.
    pub(super) fn booked_when(&self, day: Day, mut said: Counters) -> Option<Counters> {
        let grown = self.grown.filter(|grown| grown.begun == grown.day)?;
        if day.0 == grown.day {
            said += grown.passed;
        }
        (day.0 == grown.day || day.0 + 1 == grown.day).then_some(said)
    }

    /// What was counted lately, and in how much time.
    pub(super) fn lately(&self) -> (Counters, Duration) {
        match (self.looks.front(), self.looks.back()) {
            (Some((from, before)), Some((to, now))) => (less(*now, before), to.since(*from)),
            _ => (Counters::default(), Duration::ZERO),
        }
    }

    /// Adds a step, if it is time for one.
    pub(super) fn sample(
        &mut self,
        at: Timestamp,
        step: Duration,
        order_counts: OrderCounts,
        saved_today: PriceSum,
        latencies: &Latencies,
    ) {
        let Some(all) = self.counted() else { return };
        let (last, before, saved_before) = self.sampled.unwrap_or((at, all, saved_today));
        let is_first = self.sampled.is_none();
        // Ticks are not exact, and a clock may be set back.
        if !is_first && last <= at && at.since(last) + step / 10 < step {
            return;
        }
        self.sampled = Some((at, all, saved_today));
        let counted = less(all, &before);
        let took = latencies.within(at, at.since(last).max(step));
        self.samples.push_back(Sample {
            at_ms: at.as_millis(),
            open: order_counts.open,
            dead: order_counts.dead,
            asked: counted.asked,
            joined: counted.joined,
            cached: counted.cached,
            from_stock: counted.from_stock,
            paid: counted.paid,
            solved: counted.solved,
            failed: counted.failed,
            spent_micros: counted.spent_known().map(|spent| spent.0),
            saved_micros: saved_today.since(&saved_before).known().map(|saved| saved.0),
            p50_ms: took.p50,
            p95_ms: took.p95,
        });
        while self.samples.len() > SAMPLES_MAX {
            self.samples.pop_front();
        }
    }

    pub(super) fn newest(&self) -> Option<Sample> {
        self.samples.back().copied()
    }

    /// The oldest first.
    pub(super) fn samples(&self) -> Vec<Sample> {
        self.samples.iter().copied().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use quittance_lifecycle::Money;

    const MIDNIGHT: u64 = 20_000 * 24 * 3600;

    fn paid(paid: u64) -> Counters {
        Counters { paid, ..Counters::default() }
    }

    fn at(seconds: u64) -> Timestamp {
        Timestamp::from_millis(seconds * 1000)
    }

    #[test]
    fn nothing_is_lost_at_midnight() {
        let mut history = History::default();
        history.note(at(MIDNIGHT - 5), paid(100), Counters::default());
        assert_eq!(history.day(Day(20_000)), Day(19_999));
        history.note(at(MIDNIGHT - 1), paid(103), Counters::default());
        history.note(at(MIDNIGHT + 4), paid(2), paid(108));
        assert_eq!(history.counted(), Some(paid(10)), "eight before midnight, two after");
        let (lately, span) = history.lately();
        assert_eq!((lately.paid, span), (10, Duration::from_secs(9)));
    }

    #[test]
    fn what_was_marked_before_a_restart_is_counted_from_also_across_midnight() {
        let mut history = History::default();
        assert_eq!(history.day(Day(20_000)), Day(19_999), "the hour may have begun yesterday");
        history.note(at(MIDNIGHT + 600), paid(5), paid(100));
        assert_eq!((history.counted(), history.booked()), (Some(paid(0)), Some(paid(105))));
        assert_eq!(history.latest(), Some((at(MIDNIGHT + 600), paid(5))));
        assert_eq!(history.booked_when(Day(20_000), paid(3)), Some(paid(103)), "two since then");
        assert_eq!(history.booked_when(Day(19_999), paid(90)), Some(paid(90)), "fifteen");
        assert_eq!(history.booked_when(Day(19_998), paid(90)), None);
    }

    #[test]
    fn rates_are_of_the_last_seconds_and_samples_are_bounded() {
        let mut history = History::default();
        let (latencies, step) = (Latencies::default(), Duration::from_secs(5));
        for second in 0..10_000 {
            history.note(at(second), paid(second * 3), Counters::default());
            let saved = PriceSum { sum: Money(second), unpriced: 0 };
            history.sample(at(second), step, OrderCounts { open: second, dead: 1 }, saved, &latencies);
        }
        let (lately, span) = history.lately();
        assert_eq!((lately.paid, span), (30, Duration::from_secs(10)));
        let samples = history.samples();
        assert_eq!(samples.len(), SAMPLES_MAX);
        let last = samples[SAMPLES_MAX - 1];
        assert_eq!((last.paid, last.saved_micros, last.dead), (15, Some(5), 1));
        assert_eq!(last.at_ms - samples[0].at_ms, 5000 * (SAMPLES_MAX as u64 - 1));
    }
}
