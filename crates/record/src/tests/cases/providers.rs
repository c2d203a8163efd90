//! Cases of several providers: attempts at other accounts than that of the terms, and why they went there.

use super::{arrival, at, attempt, order};
use crate::tests::AnyRecord;
use quittance_lifecycle::{
    Attempt, AttemptAccount, Event, HeldOff, Money, Offer, Order, PassedOver, Phase, Progress, SubmitRoute,
    Timeline, TimelineEntry, TimelineEvent, WhyPassedOver,
};
use quittance_ports::{AccountPause, GateDocument, GateProbe, IncomingEvent, ProviderMode, SharedDocument};

fn account(price: Option<Money>) -> AttemptAccount {
    AttemptAccount { account: "second RUB".into(), price }
}

fn passed_over(why: WhyPassedOver) -> PassedOver {
    PassedOver { account: "first USD".into(), why }
}

pub(super) fn orders() -> Vec<(&'static str, AnyRecord)> {
    let passed_over = WhyPassedOver::ALL.map(passed_over).to_vec();
    let event = TimelineEvent::Routed { attempt: 2, to: "second RUB".into(), passed_over };
    let routed = Order {
        attempts: vec![
            Attempt { account: Some(account(None)), ..attempt(1, Progress::Faulted) },
            Attempt { account: Some(account(Some(Money(2990)))), ..attempt(2, Progress::Answered) },
        ],
        last_attempt: 2,
        used_up: vec!["first USD".into(), "third USD".into()],
        held_off: Some(HeldOff { account: "second RUB".into(), until: at(8), is_busy: true }),
        booked_on: Some(2),
        timeline: Timeline { entries: vec![TimelineEntry { at: at(2), event }], left_out: 0 },
        ..order(Phase::Queued { until: at(20), held: false })
    };
    let held_off = HeldOff { account: "first USD".into(), until: at(9), is_busy: false };
    let held_off = Order { held_off: Some(held_off), ..order(Phase::Queued { until: at(3), held: false }) };
    let left = Progress::Trailing { task: "7".into(), poll_at: at(44), counted: true };
    let hedged = TimelineEntry { at: at(3), event: TimelineEvent::Hedged { attempt: 1 } };
    let left = Order {
        timeline: Timeline { entries: vec![hedged], left_out: 0 },
        attempts: vec![
            attempt(1, left),
            Attempt { account: Some(account(None)), ..attempt(2, Progress::Sent) },
        ],
        last_attempt: 2,
        possible_doubles: 1,
        ..order(Phase::InDoubt { attempt: 2, until: at(90) })
    };
    super::orders([
        ("order-at-two-accounts", routed),
        ("order-held-off", held_off),
        ("order-left-at-a-provider", left),
    ])
}

pub(super) fn documents() -> Vec<(&'static str, AnyRecord)> {
    let gate = |mode| GateDocument { provider: "first".into(), mode, ..GateDocument::default() };
    let pause =
        AccountPause { code: "ERROR_ZERO_BALANCE".into(), at: at(7), is_no_funds: true, funds: Some(0) };
    let blocked = AccountPause { is_no_funds: false, funds: None, ..pause.clone() };
    let probe = Some(GateProbe { node: u64::MAX, until: at(12) });
    [
        ("document-gate-tripped", GateDocument { probe, answered_at: at(8), ..gate(ProviderMode::Active) }),
        ("document-gate", GateDocument { pause: Some(pause), ..gate(ProviderMode::Active) }),
        ("document-gate-blocked", GateDocument { pause: Some(blocked), ..gate(ProviderMode::Paused) }),
        (
            "document-gate-resumed",
            GateDocument {
                resumed_at: at(9),
                no_submits_until: at(10),
                no_polls_until: at(11),
                ..gate(ProviderMode::Drained)
            },
        ),
    ]
    .map(|(name, gate)| (name, AnyRecord::SharedDocument(Box::new(SharedDocument::Gate(gate)))))
    .into()
}

pub(super) fn arrivals() -> Vec<(&'static str, AnyRecord)> {
    let offer = Offer {
        account: Some(account(Some(Money(5)))),
        passed_over: vec![passed_over(WhyPassedOver::Busy)],
        drawn: None,
    };
    let woken: IncomingEvent = arrival(Event::Woken { stamp: 3, route: SubmitRoute::To(offer) });
    vec![("arrival-woken-for-another", AnyRecord::IncomingEvent(woken))]
}
