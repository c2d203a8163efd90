//! A clock that stands still, so that results do not depend on speed. The tests of all APIs share it.

use async_trait::async_trait;
use quittance_lifecycle::Timestamp;
use quittance_ports::Clock;
use std::time::Duration;

/// A moment in the year 2100.
pub(crate) const NOW: Timestamp = Timestamp::from_millis(4_102_444_800_000);

pub(crate) struct StillClock;

#[async_trait]
impl Clock for StillClock {
    fn now(&self) -> Timestamp {
        NOW
    }

    /// Returns at once for a pause of up to a second, and never for a later moment.
    async fn sleep_until(&self, moment: Timestamp) {
        if moment > NOW + Duration::from_secs(1) {
            std::future::pending::<()>().await;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}
