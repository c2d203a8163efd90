//! The real time. This is wall-clock time, because another process may read a stored moment later. While a process
//! runs, its time never goes back: otherwise an answer would live longer, and a timer would fire later.

use async_trait::async_trait;
use quittance_lifecycle::Timestamp;
use quittance_ports::Clock;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, LazyLock};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// The longest sleep without a read of the clock, which may have been set meanwhile.
const LOOK: Duration = Duration::from_secs(10);

/// The time of this process. It follows the wall clock forward. If the wall clock is set back, the time follows the
/// monotonic clock until the wall clock has caught up.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemClock;

/// The state that keeps the time of a process from going back.
struct SteadyTime {
    /// The most that the wall clock has been ahead of the monotonic clock, in milliseconds.
    ahead_ms: AtomicI64,
}

/// One reading of the clocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct TimeReading {
    now: Timestamp,
    /// How far the wall clock is behind the time of this process.
    set_back: Duration,
}

static TIME: SteadyTime = SteadyTime::new();

impl SteadyTime {
    const fn new() -> Self {
        Self { ahead_ms: AtomicI64::new(i64::MIN) }
    }

    fn read(&self, wall: Duration, monotonic: Duration) -> TimeReading {
        let signed = |span: Duration| i64::try_from(span.as_millis()).unwrap_or(i64::MAX);
        let (wall, monotonic) = (signed(wall), signed(monotonic));
        let ahead = wall.saturating_sub(monotonic);
        let most = self.ahead_ms.fetch_max(ahead, Ordering::Relaxed).max(ahead);
        let now = u64::try_from(monotonic.saturating_add(most)).unwrap_or_default();
        TimeReading {
            now: Timestamp::from_millis(now),
            set_back: Duration::from_millis(most.abs_diff(ahead)),
        }
    }

    #[expect(clippy::disallowed_methods, reason = "this is where the real time comes in")]
    fn look(&self) -> TimeReading {
        static BEGUN: LazyLock<Instant> = LazyLock::new(Instant::now);
        let begun = *BEGUN;
        // The wall clock first. If this thread is put to sleep between the two, the wall clock looks late, which changes
        // nothing. The other way round, it would look ahead, and time would stay ahead.
        let wall = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        self.read(wall, begun.elapsed())
    }
}

impl SystemClock {
    /// How far the wall clock is behind the time of this process, because it was set back.
    pub(crate) fn set_back(self) -> Duration {
        TIME.look().set_back
    }
}

#[async_trait]
impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        TIME.look().now
    }

    async fn sleep_until(&self, moment: Timestamp) {
        sleep_until(self, moment).await;
    }
}

/// The real time, corrected if this machine's clock is far from those of the other nodes of the store. A node that is
/// ten minutes ahead would treat every order as overdue. Clones share the correction.
#[derive(Clone, Debug, Default)]
pub(crate) struct FleetClock {
    /// How far this machine's clock is ahead, in milliseconds.
    ahead_ms: Arc<AtomicI64>,
}

impl FleetClock {
    pub(crate) fn correct(&self, ahead_ms: i64) {
        self.ahead_ms.store(ahead_ms, Ordering::Relaxed);
    }

    pub(crate) fn correction(&self) -> i64 {
        self.ahead_ms.load(Ordering::Relaxed)
    }
}

#[async_trait]
impl Clock for FleetClock {
    fn now(&self) -> Timestamp {
        let now = SystemClock.now().as_millis();
        Timestamp::from_millis(now.saturating_add_signed(self.correction().saturating_neg()))
    }

    async fn sleep_until(&self, moment: Timestamp) {
        sleep_until(self, moment).await;
    }
}

async fn sleep_until(clock: &impl Clock, moment: Timestamp) {
    loop {
        let now = clock.now();
        if now >= moment {
            return;
        }
        tokio::time::sleep(moment.since(now).min(LOOK)).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn secs(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    /// Trap: the wall clock was set back by 60 s after a solve, and the token was handed out for 60 s too long.
    #[test]
    fn time_follows_the_wall_clock_forward_and_never_goes_back() {
        let time = SteadyTime::new();
        // The wall clock, the monotonic clock, and what follows: the time of the process, and how far it is ahead.
        for (wall, monotonic, now, set_back) in [
            (1_000, 0, 1_000, 0),
            (1_010, 10, 1_010, 0),
            (1_080, 20, 1_080, 0),
            (1_085, 25, 1_085, 0),
            (1_026, 26, 1_086, 60),
            (1_050, 50, 1_110, 60),
            (1_170, 110, 1_170, 0),
            (5_000, 111, 5_000, 0),
            (0, 112, 5_001, 5_001),
        ] {
            let reading = TimeReading { now: Timestamp::from_millis(now * 1_000), set_back: secs(set_back) };
            assert_eq!(time.read(secs(wall), secs(monotonic)), reading, "{wall} {monotonic}");
        }
    }

    #[test]
    fn the_time_of_a_process_is_that_of_its_machine() {
        let before = SystemClock.now();
        assert!(before > Timestamp::from_millis(1_700_000_000_000), "{before:?}");
        assert!(SystemClock.now() >= before && SystemClock.set_back() < secs(1));
    }
}
