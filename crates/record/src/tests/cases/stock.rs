//! Cases of the stock: orders that fill a place in a pool, and orders that got an answer from stock.

use super::{answer, arrival, at, attempt, digest, order, plain_answer, secret, token_terms};
use crate::tests::AnyRecord;
use quittance_lifecycle::{
    Attempt, Event, Key, Order, Phase, Progress, Slot, Terms, Timeline, TimelineEntry, TimelineEvent,
};
use std::sync::Arc;

pub(super) fn terms() -> Vec<(&'static str, AnyRecord)> {
    let on_a_page = Terms { site: "www.example.com".into(), ..token_terms() };
    let slot = Slot { pool: "w\u{e4}rm \"door\"".into(), number: 4, generation: u64::MAX };
    let for_a_pool = Terms { takes_stock: false, slot: Some(slot), ..on_a_page.clone() };
    let no_stock = Terms { takes_stock: false, ..on_a_page.clone() };
    let collected = Terms { collected_in: std::time::Duration::from_secs(15), ..on_a_page.clone() };
    [
        ("terms-on-a-page", on_a_page),
        ("terms-for-a-pool", for_a_pool),
        ("terms-no-stock", no_stock),
        ("terms-collected-later", collected),
    ]
    .map(|(name, terms)| (name, AnyRecord::Terms(Arc::new(terms))))
    .into()
}

fn bought_for_another() -> Attempt {
    Attempt {
        task: Some(secret("73045")),
        made_for: Some(Key(digest(0x7a))),
        ..attempt(2, Progress::Answered)
    }
}

pub(super) fn orders() -> Vec<(&'static str, AnyRecord)> {
    let timeline = |events: &[TimelineEvent]| {
        let entries = events
            .iter()
            .zip(1..)
            .map(|(event, second)| TimelineEntry { at: at(second), event: event.clone() });
        Timeline { entries: entries.collect(), left_out: 0 }
    };
    let served_from_stock = Order {
        attempts: vec![bought_for_another()],
        last_attempt: 2,
        timeline: timeline(&[
            TimelineEvent::Placed { life: 1 },
            TimelineEvent::ServedFromStock { from: Key(digest(0x7a)) },
        ]),
        ..order(Phase::Claimed { answer: answer(), by: Key(digest(0x3c)), at: at(22) })
    };
    let returned = Order {
        wanted: false,
        timeline: timeline(&[TimelineEvent::Claimed, TimelineEvent::Returned]),
        ..order(Phase::Solved { answer: answer(), at: at(21) })
    };
    let handed_over = Order {
        wanted: false,
        timeline: timeline(&[TimelineEvent::Claimed, TimelineEvent::HandedOver { to: Key(digest(0x3c)) }]),
        ..order(Phase::Claimed { answer: answer(), by: Key(digest(0x8b)), at: at(22) })
    };
    super::orders([
        ("order-supplied", served_from_stock),
        ("order-returned", returned),
        ("order-handed-over", handed_over),
    ])
}

pub(super) fn arrivals() -> Vec<(&'static str, AnyRecord)> {
    let from = Key(digest(0x7a));
    let served_from_stock = |answer, attempt| Event::ServedFromStock {
        by: Key(digest(0x8b)),
        from,
        answer,
        attempt: Box::new(attempt),
    };
    [
        ("arrival-supplied", served_from_stock(answer(), bought_for_another())),
        ("arrival-supplied-plain", served_from_stock(plain_answer(), attempt(1, Progress::Answered))),
        ("arrival-returned", Event::Returned { by: from }),
        ("arrival-handed-over", Event::HandedOver { by: from, to: Key(digest(0x3c)) }),
    ]
    .map(|(name, event)| (name, AnyRecord::IncomingEvent(arrival(event))))
    .into()
}
