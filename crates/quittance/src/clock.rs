//! The real time. Wall-clock time, because what is written down today is read by another process tomorrow.

use async_trait::async_trait;
use quittance_lifecycle::Timestamp;
use quittance_ports::Clock;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// No sleep is longer than this without a look at the clock, which may have been set meanwhile.
const LOOK: Duration = Duration::from_secs(10);

#[derive(Clone, Copy, Debug, Default)]
pub struct SystemClock;

#[async_trait]
impl Clock for SystemClock {
    #[expect(clippy::disallowed_methods, reason = "this is where the real time comes in")]
    fn now(&self) -> Timestamp {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Timestamp::from_millis(u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
    }

    async fn sleep_until(&self, moment: Timestamp) {
        sleep_until(self, moment).await;
    }
}

/// The real time, corrected where this machine's clock is far from those of the others who work on the same orders: a
/// node that is ten minutes ahead would take every order for overdue. Clones share the correction.
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
