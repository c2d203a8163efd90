//! The time, as an argument. In a simulation it jumps, stands still and disagrees between nodes, as it does in life.

use async_trait::async_trait;
use quittance_lifecycle::Timestamp;

#[async_trait]
pub trait Clock: Send + Sync {
    fn now(&self) -> Timestamp;

    /// Returns when [`now`](Self::now) has reached `moment`, or a little after.
    async fn sleep_until(&self, moment: Timestamp);
}
