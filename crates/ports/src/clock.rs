//! The time, as an argument. In a simulation it may jump, stop or differ between nodes, as on real machines.

use async_trait::async_trait;
use quittance_lifecycle::Timestamp;

#[async_trait]
pub trait Clock: Send + Sync {
    fn now(&self) -> Timestamp;

    /// Waits until [`now`](Self::now) has reached `moment`, or a little longer.
    async fn sleep_until(&self, moment: Timestamp);
}
