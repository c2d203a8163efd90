//! How long answers took, for the last few thousand. It is told of every commit, so it takes no lock and allocates nothing: one
//! counter says which place is written next.

use quittance_lifecycle::time::millis;
use quittance_lifecycle::{Order, TimelineEvent, Timestamp};
use std::fmt;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

/// How many are remembered.
const KEPT: usize = 4096;
/// The bars of the histogram.
pub(crate) const SECONDS: [u64; 13] = [1, 2, 5, 10, 15, 20, 30, 45, 60, 90, 120, 180, 300];

/// The second in which it was solved in the upper half, how many milliseconds it took in the lower; zero: nothing yet.
pub(crate) struct Latencies {
    places: Box<[AtomicU64]>,
    next: AtomicUsize,
    /// Since the start: how many took no longer than each of [`SECONDS`] and longer than the one before, those that took longer
    /// than all of them, and how many milliseconds all took together.
    counts: [AtomicU64; SECONDS.len() + 1],
    total_ms: AtomicU64,
}

/// Since the start, as a monitoring system wants it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Histogram {
    /// How many took no longer than each of [`SECONDS`], and how many there were.
    pub(crate) within: [u64; SECONDS.len()],
    pub(crate) count: u64,
    pub(crate) total_ms: u64,
}

impl Default for Latencies {
    fn default() -> Self {
        Self {
            places: (0..KEPT).map(|_| AtomicU64::new(0)).collect(),
            next: AtomicUsize::new(0),
            counts: Default::default(),
            total_ms: AtomicU64::new(0),
        }
    }
}

impl fmt::Debug for Latencies {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Latencies")
    }
}

/// Where the middle and the ends lie.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Spread {
    pub(crate) p50: Option<u64>,
    pub(crate) p95: Option<u64>,
    pub(crate) p99: Option<u64>,
    pub(crate) count: u64,
}

impl Latencies {
    /// An order was written. What fills a pool keeps nobody waiting.
    pub(crate) fn note(&self, order: &Order) {
        let Some(last) = order.timeline.entries.last() else { return };
        if matches!(last.event, TimelineEvent::Solved { .. }) && order.terms.slot.is_none() {
            self.add(last.at, last.at.since(order.placed));
        }
    }

    fn add(&self, at: Timestamp, took: Duration) {
        let took = millis(took).min(u64::from(u32::MAX));
        let packed = (at.as_millis() / 1000) << 32 | took;
        let place = self.next.fetch_add(1, Ordering::Relaxed) % KEPT;
        self.places[place].store(packed, Ordering::Relaxed);
        let bar = SECONDS.iter().position(|seconds| took <= seconds * 1000).unwrap_or(SECONDS.len());
        self.counts[bar].fetch_add(1, Ordering::Relaxed);
        self.total_ms.fetch_add(took, Ordering::Relaxed);
    }

    pub(crate) fn histogram(&self) -> Histogram {
        let mut sum = 0;
        let mut read = |count: &AtomicU64| {
            sum += count.load(Ordering::Relaxed);
            sum
        };
        let within = std::array::from_fn(|bar| read(&self.counts[bar]));
        let count = read(&self.counts[SECONDS.len()]);
        Histogram { within, count, total_ms: self.total_ms.load(Ordering::Relaxed) }
    }

    /// Of those that were solved within the last `span`.
    pub(crate) fn within(&self, now: Timestamp, span: Duration) -> Spread {
        let from = (now.as_millis() / 1000).saturating_sub(span.as_secs());
        let read = self.places.iter().map(|place| place.load(Ordering::Relaxed));
        let lately = read.filter(|packed| *packed > 0 && packed >> 32 >= from);
        let mut took: Vec<u64> = lately.map(|packed| packed & u64::from(u32::MAX)).collect();
        took.sort_unstable();
        let part = |percent: usize| {
            took.get((took.len() * percent / 100).min(took.len().saturating_sub(1))).copied()
        };
        Spread { p50: part(50), p95: part(95), p99: part(99), count: took.len() as u64 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_last_thousands_count_and_only_those_of_the_last_while() {
        let (latencies, now) = (Latencies::default(), Timestamp::from_millis(4_102_444_800_000));
        assert_eq!(latencies.within(now, Duration::from_secs(300)), Spread::default());
        for took in 1..=100 {
            latencies.add(now, Duration::from_millis(took));
        }
        let spread = Spread { p50: Some(51), p95: Some(96), p99: Some(100), count: 100 };
        assert_eq!(latencies.within(now, Duration::from_secs(300)), spread);
        let later = now + Duration::from_secs(301);
        assert_eq!(latencies.within(later, Duration::from_secs(300)), Spread::default());
        for _ in 0..2 * KEPT {
            latencies.add(later, Duration::from_secs(1_000_000_000));
        }
        let spread = latencies.within(later, Duration::from_secs(300));
        assert_eq!((spread.count, spread.p50), (KEPT as u64, Some(u64::from(u32::MAX))));
    }
}
