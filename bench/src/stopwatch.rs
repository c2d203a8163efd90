//! Real time, in one place. Whoever shares two cores with others measures the same thing several times in turn with what
//! it is compared with, and believes the best: what is slower was disturbed.

use std::time::{Duration, Instant};

/// A moment to measure from.
#[expect(clippy::disallowed_methods, reason = "a benchmark measures real time")]
pub(crate) fn now() -> Instant {
    Instant::now()
}

pub(crate) fn time<T>(work: impl FnOnce() -> T) -> (Duration, T) {
    let start = now();
    let done = work();
    (start.elapsed(), done)
}

/// The least that one of something has cost so far.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Best(Duration);

impl Best {
    pub(crate) const NONE: Self = Self(Duration::MAX);

    /// So many took so long.
    pub(crate) fn note(&mut self, span: Duration, count: u64) {
        let each = span.as_nanos() / u128::from(count.max(1));
        self.0 = self.0.min(Duration::from_nanos(u64::try_from(each).unwrap_or(u64::MAX)));
    }

    pub(crate) fn nanos(self) -> f64 {
        self.0.as_secs_f64() * 1e9
    }

    pub(crate) fn per_second(self) -> f64 {
        1.0 / self.0.as_secs_f64().max(1e-9)
    }
}
