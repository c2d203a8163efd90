//! Whether an order can still be answered in time. A submit that cannot bring an answer before the deadline would be
//! money for nothing, so the order is refused, or fails early.

use crate::order::{DeadCause, Order};
use crate::policy::Policy;
use crate::terms::Terms;
use crate::time::Timestamp;
use crate::transition::Refusal;
use core::time::Duration;

impl Policy {
    /// The time that an answer needs at least, if that is more than `left`. `None` if an answer may come in time, or
    /// if it is not known how quickly answers come.
    #[must_use]
    pub fn needs_more_than(&self, left: Duration) -> Option<Duration> {
        self.quickest.filter(|quickest| left < *quickest)
    }
}

/// Why an order with these terms cannot be answered in time, if that is known when it is placed.
pub(crate) fn refuse_too_late(terms: &Terms, policy: &Policy) -> Option<Refusal> {
    // The stock may still have an answer, or the order is of a pool, for which no caller waits.
    if terms.may_be_stocked() || terms.slot.is_some() {
        return None;
    }
    let timeout = terms.timeout;
    if let Some(needs) = policy.needs_more_than(timeout) {
        return Some(Refusal::TooShort { timeout, needs });
    }
    let wait = policy.queue_wait.filter(|wait| *wait >= timeout)?;
    Some(Refusal::QueueTooLong { timeout, wait })
}

/// Why a submit of this order at the moment `at` would come too late, if it would.
pub(crate) fn too_late(order: &Order, at: Timestamp, policy: &Policy) -> Option<DeadCause> {
    let left = order.deadline.since(at);
    policy.needs_more_than(left).map(|needs| DeadCause::TooLate { left, needs })
}
