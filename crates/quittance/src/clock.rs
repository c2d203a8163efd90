//! The real time. Wall-clock time, because what is written down today is read by another process tomorrow.

use async_trait::async_trait;
use quittance_lifecycle::Timestamp;
use quittance_ports::Clock;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Nobody sleeps longer than this without looking at the clock, which may have been set meanwhile.
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
        loop {
            let now = self.now();
            if now >= moment {
                return;
            }
            tokio::time::sleep(moment.since(now).min(LOOK)).await;
        }
    }
}
