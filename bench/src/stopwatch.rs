//! Real time, in one place. On two shared cores, a measurement and its comparison run several times in turn, and the
//! best result counts: a slower one was disturbed.

use std::fs::read_to_string;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

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

/// A moment that another process of this machine can compare with its own.
#[expect(clippy::disallowed_methods, reason = "a benchmark measures real time")]
pub(crate) fn moment() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).expect("it is later than 1970")
}

/// A thread of this process whose work can be measured separately.
#[derive(Clone, Debug)]
pub(crate) struct WorkThread(String);

impl WorkThread {
    /// The current thread.
    pub(crate) fn mine() -> Self {
        let me = std::fs::read_link("/proc/thread-self").expect("this is measured on Linux");
        Self(format!("/proc/{}/schedstat", me.display()))
    }

    /// How long the thread has worked so far, without the time in which other threads had the processor.
    pub(crate) fn at_work(&self) -> Duration {
        let output = read_to_string(&self.0).expect("the thread is still there");
        let nanos = output.split(' ').next().and_then(|nanos| nanos.parse().ok());
        Duration::from_nanos(nanos.expect("the first of its numbers is the time on a processor"))
    }
}

/// The least cost of one operation so far.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LeastCost(Duration);

impl LeastCost {
    pub(crate) const NONE: Self = Self(Duration::MAX);

    /// Notes that `count` operations took this long.
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
