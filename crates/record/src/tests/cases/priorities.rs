//! Cases of priorities, and of orders that could not be answered in time.

use super::{at, order, token_terms};
use crate::tests::AnyRecord;
use quittance_lifecycle::{DeadCause, Order, Phase, Priority, Terms, Timeline, TimelineEntry, TimelineEvent};
use std::sync::Arc;
use std::time::Duration;

pub(super) fn terms() -> Vec<(&'static str, AnyRecord)> {
    let of = |priority| AnyRecord::Terms(Arc::new(Terms { priority, ..token_terms() }));
    vec![("terms-interactive", of(Priority::Interactive)), ("terms-bulk", of(Priority::Bulk))]
}

pub(super) fn orders() -> Vec<(&'static str, AnyRecord)> {
    let queued = Phase::Queued { until: at(0), held: false };
    let events = Priority::ALL.map(|priority| TimelineEvent::Hastened { priority });
    let entries = events.map(|event| TimelineEntry { at: at(3), event }).to_vec();
    let hastened = Order {
        priority: Priority::Interactive,
        timeline: Timeline { entries, left_out: 0 },
        ..order(queued.clone())
    };
    let cause = DeadCause::TooLate { left: Duration::from_secs(3), needs: Duration::from_millis(9_500) };
    let event = TimelineEvent::MovedToDeadLetters { cause: cause.clone() };
    let too_late = Order {
        timeline: Timeline { entries: vec![TimelineEntry { at: at(297), event }], left_out: 0 },
        ..order(Phase::Dead { cause, at: at(297) })
    };
    super::orders([
        ("order-hastened", hastened),
        ("order-bulk", Order { priority: Priority::Bulk, ..order(queued) }),
        ("order-dead-too-late", too_late),
    ])
}
