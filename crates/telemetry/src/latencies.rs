//! The times of the last few thousand answers. This module sees every commit, so it takes no lock and allocates
//! nothing: a counter selects the next place to write.

use quittance_lifecycle::time::millis;
use quittance_lifecycle::{Order, TimelineEvent, Timestamp};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;
use utoipa::ToSchema;

/// How many answers are kept.
const KEPT: usize = 4096;
/// Upper bounds of the histogram's buckets, in seconds.
pub(crate) const BUCKETS_S: [u64; 13] = [1, 2, 5, 10, 15, 20, 30, 45, 60, 90, 120, 180, 300];

/// Times from placement to answer of the orders solved at this node.
pub struct Latencies {
    /// Upper half: the second of the solve; lower half: the milliseconds that it took; zero: no answer yet.
    places: Box<[AtomicU64]>,
    next: AtomicUsize,
    /// Since the start, for each bucket: the answers that took longer than the bucket before. The last one is for all longer times.
    counts: [AtomicU64; BUCKETS_S.len() + 1],
    total_ms: AtomicU64,
}

/// The times since the start, as a Prometheus histogram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Histogram {
    /// For each bucket, the number of answers that took no longer.
    pub within: [u64; BUCKETS_S.len()],
    pub count: u64,
    pub total_ms: u64,
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

/// Time from placement to answer in milliseconds, for orders solved at this node; null without answers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct LatencyPercentiles {
    pub p50: Option<u64>,
    pub p95: Option<u64>,
    pub p99: Option<u64>,
    pub count: u64,
}

impl Latencies {
    /// Notes a commit. Refills of a pool do not count: no caller waits for them.
    pub fn note(&self, order: &Order) {
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
        let bucket = BUCKETS_S.iter().position(|seconds| took <= seconds * 1000).unwrap_or(BUCKETS_S.len());
        self.counts[bucket].fetch_add(1, Ordering::Relaxed);
        self.total_ms.fetch_add(took, Ordering::Relaxed);
    }

    pub(crate) fn histogram(&self) -> Histogram {
        let mut sum = 0;
        let mut read = |count: &AtomicU64| {
            sum += count.load(Ordering::Relaxed);
            sum
        };
        let within = std::array::from_fn(|bucket| read(&self.counts[bucket]));
        let count = read(&self.counts[BUCKETS_S.len()]);
        Histogram { within, count, total_ms: self.total_ms.load(Ordering::Relaxed) }
    }

    /// The percentiles of the answers of the last `span`.
    pub(crate) fn within(&self, now: Timestamp, span: Duration) -> LatencyPercentiles {
        let from = (now.as_millis() / 1000).saturating_sub(span.as_secs());
        let read = self.places.iter().map(|place| place.load(Ordering::Relaxed));
        let lately = read.filter(|packed| *packed > 0 && packed >> 32 >= from);
        let mut took: Vec<u64> = lately.map(|packed| packed & u64::from(u32::MAX)).collect();
        took.sort_unstable();
        let part = |percent: usize| {
            took.get((took.len() * percent / 100).min(took.len().saturating_sub(1))).copied()
        };
        LatencyPercentiles { p50: part(50), p95: part(95), p99: part(99), count: took.len() as u64 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_last_thousands_count_and_only_those_of_the_last_while() {
        let (latencies, now) = (Latencies::default(), Timestamp::from_millis(4_102_444_800_000));
        assert_eq!(latencies.within(now, Duration::from_secs(300)), LatencyPercentiles::default());
        for took in 1..=100 {
            latencies.add(now, Duration::from_millis(took));
        }
        let spread = LatencyPercentiles { p50: Some(51), p95: Some(96), p99: Some(100), count: 100 };
        assert_eq!(latencies.within(now, Duration::from_secs(300)), spread);
        let later = now + Duration::from_secs(301);
        assert_eq!(latencies.within(later, Duration::from_secs(300)), LatencyPercentiles::default());
        for _ in 0..2 * KEPT {
            latencies.add(later, Duration::from_secs(1_000_000_000));
        }
        let spread = latencies.within(later, Duration::from_secs(300));
        assert_eq!((spread.count, spread.p50), (KEPT as u64, Some(u64::from(u32::MAX))));
    }
}
