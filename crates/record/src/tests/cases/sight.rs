//! Cases of what operators can see: the provider and price of an order, notes, the provider's whole text, and
//! operators' work.

use super::{answer, arrival, at, attempt, digest, order, secret, token_terms};
use crate::tests::AnyRecord;
use quittance_lifecycle::{
    Answer, Attempt, DeadCause, DeadLetterCause, DeadLetterFilter, Event, Fault, FaultClass, Key, Money,
    Order, Phase, Progress, Terms, Timeline, TimelineEntry, TimelineEvent,
};
use quittance_ports::{AlertDocument, AlertNote, BulkAction, BulkDocument, Mark, SharedDocument};
use std::sync::Arc;

pub(super) fn terms() -> Vec<(&'static str, AnyRecord)> {
    let by_provider = Terms {
        account: "main \u{1f5dd}".into(),
        price: Some(Money(2990)),
        trace: "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01".into(),
        ..token_terms()
    };
    vec![("terms-by-provider", AnyRecord::Terms(Arc::new(by_provider)))]
}

pub(super) fn orders() -> Vec<(&'static str, AnyRecord)> {
    let fault = Fault::new(FaultClass::UnlistedCode, "ERROR_NEW").with_text(&secret("<html>ERROR_NEW"));
    let events = [
        TimelineEvent::Faulted { attempt: 1, fault: fault.clone() },
        TimelineEvent::Noted { text: secret("asked them, \"wait\"\n") },
    ];
    let entries =
        events.iter().zip(1..).map(|(event, second)| TimelineEntry { at: at(second), event: event.clone() });
    let noted = Order {
        attempts: vec![Attempt { cost: Some(Money(2990)), ..attempt(1, Progress::Answered) }],
        timeline: Timeline { entries: entries.collect(), left_out: 0 },
        ..order(Phase::Dead { cause: DeadCause::Spent(fault), at: at(22) })
    };
    // An answer that its provider says is free; an absent cost is one that is not known.
    let free = Order {
        attempts: vec![Attempt { cost: Some(Money(0)), ..attempt(1, Progress::Answered) }],
        ..order(Phase::Solved { answer: Answer { cost: Some(Money(0)), ..answer() }, at: at(50) })
    };
    super::orders([("order-noted", noted), ("order-free", free)])
}

pub(super) fn arrivals() -> Vec<(&'static str, AnyRecord)> {
    vec![("arrival-noted", AnyRecord::IncomingEvent(arrival(Event::Noted { text: secret("look") })))]
}

pub(super) fn documents() -> Vec<(&'static str, AnyRecord)> {
    let filter = DeadLetterFilter {
        cause: Some(DeadLetterCause::RetriesSpent),
        kind: Some("turnstile".into()),
        site: Some(String::new()),
        tenant: Some("archive".into()),
        before: Some(at(50)),
        since: Some(at(1)),
    };
    let bulk = BulkDocument {
        number: u64::MAX,
        action: BulkAction::Replay,
        filter,
        begun: at(60),
        per_second: 50,
        after: Some(Key(digest(0x9d))),
        done: 17,
        passed_over: 2,
        ended: Some(at(70)),
        was_stopped: true,
    };
    let whole = SharedDocument::Bulk(bulk.clone());
    let begun = BulkDocument {
        action: BulkAction::Drop,
        filter: DeadLetterFilter::default(),
        after: None,
        done: 0,
        passed_over: 0,
        ended: None,
        was_stopped: false,
        ..bulk
    };
    let alert = AlertNote {
        rule: "pool_starving".into(),
        subject: "w\u{e4}rm \"door\"".into(),
        is_grave: true,
        words: "nothing fresh for 60 s".into(),
        raised: at(10),
        cleared: Some(at(20)),
        seen: Some(at(15)),
    };
    let standing =
        AlertNote { subject: String::new(), is_grave: false, cleared: None, seen: None, ..alert.clone() };
    let mark = Mark {
        at: at(30),
        dead: 1,
        attempts: 2,
        in_doubt: 3,
        webhooks_failed: 4,
        solved: 5,
        recovered_by_poll: 6,
        spent: Money(2990),
        unpriced: 0,
    };
    let marks = vec![Mark { at: at(29), ..Mark::default() }, mark];
    let marked = AlertDocument { alerts: vec![standing.clone()], marks };
    [
        ("document-bulk", whole),
        ("document-bulk-begun", SharedDocument::Bulk(begun)),
        (
            "document-alerts",
            SharedDocument::Alerts(AlertDocument { alerts: vec![alert, standing], marks: Vec::new() }),
        ),
        ("document-alerts-marked", SharedDocument::Alerts(marked)),
        ("document-alerts-none", SharedDocument::Alerts(AlertDocument::default())),
    ]
    .map(|(name, document)| (name, AnyRecord::SharedDocument(Box::new(document))))
    .into()
}
