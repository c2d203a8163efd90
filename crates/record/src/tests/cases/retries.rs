//! Cases of retries: limits that an order asks for, a replay after an outage, endpoints that are switched off.

use super::{arrival, at, order, token_terms};
use crate::tests::AnyRecord;
use quittance_lifecycle::{
    DeliveryOutcome, Event, Money, Order, Phase, RetryLimits, Terms, Timeline, TimelineEntry, TimelineEvent,
    Timestamp,
};
use quittance_ports::{EndpointNote, EndpointsDocument, OutageNote, OutagesDocument, SharedDocument};
use std::sync::Arc;
use std::time::Duration;

pub(super) fn terms() -> Vec<(&'static str, AnyRecord)> {
    let base = Some(Duration::from_secs(2));
    let retry = RetryLimits { max_retries: Some(0), base, cap: Some(Duration::from_secs(90)) };
    let terms = Terms { retry, ..token_terms() };
    vec![("terms-with-few-retries", AnyRecord::Terms(Arc::new(terms)))]
}

pub(super) fn orders() -> Vec<(&'static str, AnyRecord)> {
    let event = TimelineEvent::ReplayedAfterOutage { provider: "first".into() };
    let replayed = Order {
        life_attempts: 3,
        timeline: Timeline { entries: vec![TimelineEntry { at: at(2), event }], left_out: 0 },
        ..order(Phase::Queued { until: at(20), held: false })
    };
    super::orders([("order-replayed-after-an-outage", replayed)])
}

pub(super) fn arrivals() -> Vec<(&'static str, AnyRecord)> {
    let why = "switched off".to_owned();
    [
        (
            "arrival-replayed-after-an-outage",
            Event::ReplayedAfterOutage { provider: "first".into(), died_since: at(3) },
        ),
        (
            "arrival-switched-off",
            Event::WebhookTried { webhook: 2, outcome: DeliveryOutcome::SwitchedOff { why } },
        ),
    ]
    .map(|(name, event)| (name, AnyRecord::IncomingEvent(arrival(event))))
    .into()
}

pub(super) fn documents() -> Vec<(&'static str, AnyRecord)> {
    let quiet = EndpointNote {
        tenant: "archive".into(),
        host: "hooks.example.org".into(),
        failing_since: None,
        failures: 0,
        ok_at: at(9),
        off_at: None,
        probed_at: Timestamp::ZERO,
        why: String::new(),
    };
    let off = EndpointNote {
        failing_since: Some(at(1)),
        failures: 20,
        ok_at: Timestamp::ZERO,
        off_at: Some(at(7)),
        probed_at: at(8),
        why: "HTTP 500".into(),
        ..quiet.clone()
    };
    let outage = OutageNote { provider: "first".into(), began: at(1), last_seen: at(5), well_at: at(6) };
    let outages = vec![outage];
    let outages = OutagesDocument { outages, hour: 472_222, replays: 4, money: Money(2990) };
    [
        ("document-endpoints", SharedDocument::Endpoints(EndpointsDocument { endpoints: vec![quiet, off] })),
        ("document-outages", SharedDocument::Outages(outages)),
    ]
    .map(|(name, document)| (name, AnyRecord::SharedDocument(Box::new(document))))
    .into()
}
