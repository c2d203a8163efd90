//! Cases of stores that forget: orders that were put back, attempts of a forgotten record, and lost orders. Also
//! orders that another order follows.

use super::{arrival, at, attempt, order, secret};
use crate::tests::AnyRecord;
use quittance_lifecycle::{
    Attempt, DeadCause, Event, Key, Order, Phase, Progress, Timeline, TimelineEntry, TimelineEvent,
};
use quittance_ports::IncomingEvent;

pub(super) fn orders() -> Vec<(&'static str, AnyRecord)> {
    let events = [
        TimelineEvent::PutBack,
        TimelineEvent::Recalled { attempt: 2 },
        TimelineEvent::MovedToDeadLetters { cause: DeadCause::StoreForgot },
    ];
    let entries =
        events.iter().zip(1..).map(|(event, second)| TimelineEntry { at: at(second), event: event.clone() });
    let former = Attempt {
        former: Some((at(0), 1)),
        ..attempt(2, Progress::Trailing { task: secret("73045"), poll_at: at(44), counted: false })
    };
    let put_back = Order {
        attempts: vec![former],
        last_attempt: 2,
        put_back: Some(at(9)),
        timeline: Timeline { entries: entries.collect(), left_out: 0 },
        ..order(Phase::Queued { until: at(20), held: false })
    };
    let lost = order(Phase::Dead { cause: DeadCause::StoreForgot, at: at(30) });
    let resumed =
        Order { steps_lost: true, ..order(Phase::Solving { attempt: 1, poll_at: at(32), misses: 0 }) };
    let followed = Order { followed_by: Some(Key([0x5a; 32])), ..order(Phase::Expired { at: at(31) }) };
    super::orders([
        ("order-put-back", put_back),
        ("order-dead-store-forgot", lost),
        ("order-steps-lost", resumed),
        ("order-followed", followed),
    ])
}

pub(super) fn arrivals() -> Vec<(&'static str, AnyRecord)> {
    let attempts = vec![attempt(1, Progress::Sent), attempt(2, Progress::Solving { task: secret("1") })];
    [
        ("arrival-put-back", arrival(Event::PutBack { others_by: at(10) })),
        ("arrival-lost", arrival(Event::Lost)),
        ("arrival-recalled", arrival(Event::Recalled { born: at(3), attempts })),
        ("arrival-with-target", IncomingEvent { target: Some(u64::MAX - 7), ..super::called_back(1) }),
    ]
    .map(|(name, arrival)| (name, AnyRecord::IncomingEvent(arrival)))
    .into()
}
