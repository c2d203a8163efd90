//! The growth of the usage: the last seconds, for rates, and samples of the last hour.

use crate::alert::difference;
use crate::latencies::Latencies;
use quittance_lifecycle::{Counters, PriceSum, Timestamp};
use quittance_ports::{Day, OrderCounts};
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;
use std::time::Duration;
use utoipa::ToSchema;

/// The period of the rates.
const RATE_PERIOD: Duration = Duration::from_secs(10);
/// Far more readings than one period has.
const READINGS_MAX: usize = 32;
const SAMPLES_MAX: usize = 720;

/// Usage since the monitor started. The store counts by day; this count continues over midnight.
#[derive(Clone, Copy, Debug, Default)]
struct Growth {
    /// The day of the first reading.
    first_day: u64,
    /// The day of the last reading.
    day: u64,
    /// The total at the first reading.
    at_start: Counters,
    /// Usage of the days before today, from the day before the first reading.
    past_days: Counters,
    today: Counters,
}

impl Growth {
    /// Usage from the day before the first reading.
    fn total(&self) -> Counters {
        let mut all = self.past_days;
        all += self.today;
        all
    }

    fn since_start(&self) -> Counters {
        difference(self.total(), &self.at_start)
    }
}

/// One sample: the counts since the sample before.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Sample {
    pub at_ms: u64,
    pub open: u64,
    pub dead: u64,
    pub asked: u64,
    pub joined: u64,
    pub cached: u64,
    pub from_stock: u64,
    pub paid: u64,
    pub solved: u64,
    pub failed: u64,
    /// Null if it is not known; see `unpriced` of the day.
    pub spent_micros: Option<u64>,
    pub saved_micros: Option<u64>,
    pub p50_ms: Option<u64>,
    pub p95_ms: Option<u64>,
}

#[derive(Debug, Default)]
pub(super) struct History {
    growth: Option<Growth>,
    readings: VecDeque<(Timestamp, Counters)>,
    samples: VecDeque<Sample>,
    /// The time, the usage and today's savings of the last sample.
    sampled: Option<(Timestamp, Counters, PriceSum)>,
}

impl History {
    /// The first day whose usage must be read: the day of the last reading. For the first reading it is yesterday,
    /// because the last hour may have begun then.
    pub(super) fn day(&self, today: Day) -> Day {
        self.growth.map_or(Day(today.0.saturating_sub(1)), |growth| Day(growth.day).min(today))
    }

    /// Adds a reading: the usage of today, and of the days before today since the last reading.
    pub(super) fn note(&mut self, at: Timestamp, today: Counters, before: Counters) {
        let day = Day::of(at).0;
        let first = Growth { first_day: day, day, at_start: Counters::default(), past_days: before, today };
        let growth = self.growth.get_or_insert_with(|| Growth { at_start: first.total(), ..first });
        if growth.day != day {
            growth.past_days += before;
            growth.day = day;
        }
        growth.today = today;
        let all = growth.since_start();
        // Start again if the clock was set back.
        if self.readings.back().is_some_and(|(last, _)| *last > at) {
            self.readings.clear();
        }
        self.readings.push_back((at, all));
        while self.readings.len() > READINGS_MAX
            || self.readings.get(1).is_some_and(|(second, _)| at.since(*second) >= RATE_PERIOD)
        {
            self.readings.pop_front();
        }
    }

    /// Usage since the monitor started.
    pub(super) fn since_start(&self) -> Option<Counters> {
        self.growth.map(|growth| growth.since_start())
    }

    /// Usage from the day before the start: the counters of marks.
    pub(super) fn total(&self) -> Option<Counters> {
        self.growth.map(|growth| growth.total())
    }

    /// Moment of the last reading, and the usage of its day.
    pub(super) fn latest(&self) -> Option<(Timestamp, Counters)> {
        Some((self.readings.back()?.0, self.growth?.today))
    }

    /// The value of [`total`](Self::total) when the usage of `day` was `usage`. `None` if that is not known.
    pub(super) fn total_when(&self, day: Day, mut usage: Counters) -> Option<Counters> {
        let growth = self.growth.filter(|growth| growth.first_day == growth.day)?;
        if day.0 == growth.day {
            usage += growth.past_days;
        }
        (day.0 == growth.day || day.0 + 1 == growth.day).then_some(usage)
    }

    /// The usage of the last seconds, and the number of seconds.
    pub(super) fn recent(&self) -> (Counters, Duration) {
        match (self.readings.front(), self.readings.back()) {
            (Some((from, before)), Some((to, now))) => (difference(*now, before), to.since(*from)),
            _ => (Counters::default(), Duration::ZERO),
        }
    }

    /// Adds a sample if one is due.
    pub(super) fn add_sample(
        &mut self,
        at: Timestamp,
        interval: Duration,
        order_counts: OrderCounts,
        saved_today: PriceSum,
        latencies: &Latencies,
    ) {
        let Some(all) = self.since_start() else { return };
        let (last, before, saved_before) = self.sampled.unwrap_or((at, all, saved_today));
        let is_first = self.sampled.is_none();
        // Ticks are not exact, and a clock may be set back.
        if !is_first && last <= at && at.since(last) + interval / 10 < interval {
            return;
        }
        self.sampled = Some((at, all, saved_today));
        let counted = difference(all, &before);
        let took = latencies.within(at, at.since(last).max(interval));
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

    /// All samples, oldest first.
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
        assert_eq!(history.since_start(), Some(paid(10)), "eight before midnight, two after");
        let (recent, period) = history.recent();
        assert_eq!((recent.paid, period), (10, Duration::from_secs(9)));
    }

    #[test]
    fn what_was_marked_before_a_restart_is_counted_from_also_across_midnight() {
        let mut history = History::default();
        assert_eq!(history.day(Day(20_000)), Day(19_999), "the hour may have begun yesterday");
        history.note(at(MIDNIGHT + 600), paid(5), paid(100));
        assert_eq!((history.since_start(), history.total()), (Some(paid(0)), Some(paid(105))));
        assert_eq!(history.latest(), Some((at(MIDNIGHT + 600), paid(5))));
        assert_eq!(history.total_when(Day(20_000), paid(3)), Some(paid(103)), "two since then");
        assert_eq!(history.total_when(Day(19_999), paid(90)), Some(paid(90)), "fifteen");
        assert_eq!(history.total_when(Day(19_998), paid(90)), None);
    }

    #[test]
    fn rates_are_of_the_last_seconds_and_samples_are_bounded() {
        let mut history = History::default();
        let (latencies, interval) = (Latencies::default(), Duration::from_secs(5));
        for second in 0..10_000 {
            history.note(at(second), paid(second * 3), Counters::default());
            let saved = PriceSum { sum: Money(second), unpriced: 0 };
            history.add_sample(
                at(second),
                interval,
                OrderCounts { open: second, dead: 1 },
                saved,
                &latencies,
            );
        }
        let (recent, period) = history.recent();
        assert_eq!((recent.paid, period), (30, Duration::from_secs(10)));
        let samples = history.samples();
        assert_eq!(samples.len(), SAMPLES_MAX);
        let last = samples[SAMPLES_MAX - 1];
        assert_eq!((last.paid, last.saved_micros, last.dead), (15, Some(5), 1));
        assert_eq!(last.at_ms - samples[0].at_ms, 5000 * (SAMPLES_MAX as u64 - 1));
    }
}
