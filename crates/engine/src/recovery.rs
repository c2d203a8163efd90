//! After a shared store has forgotten what it had acknowledged, nodes first put back what they had in hand. Until then no order is new:
//! one that this node takes for new may be paid for, and in the hands of another.

use crate::Engine;
use quittance_lifecycle::Timestamp;
use quittance_ports::{StoreError, StoreForgot};
use std::sync::atomic::Ordering;
use std::time::Duration;

/// How long whoever places an order waits for the recovery to end.
const PLACE_WAIT_MAX: Duration = Duration::from_secs(10);

impl Engine {
    /// For so long from now on this node begins no order and submits nothing. No time at all ends it.
    pub fn recover_for(&self, span: Duration) {
        let until = if span.is_zero() { Timestamp::ZERO } else { self.now() + span };
        self.recovering_until.store(until.as_millis(), Ordering::Relaxed);
    }

    /// Until when nodes put back what the store has forgotten, if they do.
    #[must_use]
    pub fn recovering(&self) -> Option<Timestamp> {
        let until = Timestamp::from_millis(self.recovering_until.load(Ordering::Relaxed));
        (self.now() < until).then_some(until)
    }

    /// Returns when an order may be new again; or fails, if that takes too long for whoever began to place one `since` then.
    pub(crate) async fn wait_for_recovery(&self, since: Timestamp) -> Result<(), StoreError> {
        let give_up_at = since + PLACE_WAIT_MAX;
        while let Some(until) = self.recovering() {
            if self.now() >= give_up_at {
                let source = Box::new(StoreForgot);
                return Err(StoreError::Unavailable { doing: "accepting a new order", source });
            }
            self.world.clock.sleep_until(until.min(give_up_at)).await;
        }
        Ok(())
    }
}
