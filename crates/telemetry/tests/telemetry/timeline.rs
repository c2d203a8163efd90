//! Tests of a life with a fault and an attempt in doubt, as spans: each attempt and each call is a span, errors are
//! where they happened, and a second export has the same ids.

use quittance_lifecycle::{
    CallbackResult, DeadCause, Decision, DeliveryState, Draft, Event, Evidence, Fault, FaultClass, HostRules,
    Identity, KeySettings, Kind, Money, Offer, Order, Origin, Pace, Payload, Placement, Policy, PollOutcome,
    ProviderAnswer, SubmitOutcome, SubmitRoute, TimelineEntry, TimelineEvent, Timestamp, Webhook, place,
    transition,
};
use quittance_telemetry::trace::{
    Placing, Span, SpanKind, SpanName, TraceParent, encode, handed_out, news_of, placed,
};
use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

const fn at(seconds: u64) -> Timestamp {
    Timestamp::from_millis(1_000_000 + seconds * 1000)
}

fn kind() -> Kind {
    Kind {
        name: Cow::Borrowed("thing"),
        fields: &[],
        identity: Identity::Fields,
        immaterial: &[],
        address_fields: &[],
        bound_to_address: false,
        life: Some(Duration::from_secs(120)),
        margin: Duration::from_secs(40),
        single_use: true,
        hosts: HostRules::NONE,
        pace: Pace {
            p50: Duration::from_secs(10),
            p95: Duration::from_secs(40),
            p99: Duration::from_secs(60),
        },
    }
}

fn exported(order: &Order) -> Vec<Span> {
    news_of(order, "thing")
}

fn woken(stamp: u64) -> Event {
    Event::Woken { stamp, route: SubmitRoute::To(Offer::OF_TERMS) }
}

fn delivery() -> ProviderAnswer {
    ProviderAnswer { payload: Payload::text("token"), took_at_least: None, cost: Some(Money(5)) }
}

/// An order after these events, each at its second. Only the last event may export spans.
fn after(events: impl IntoIterator<Item = (u64, Event)>) -> Order {
    let policy = Policy { callbacks: true, ..Policy::DEFAULT };
    let draft = Draft::new("<ann>");
    let (key, terms) = draft.check(&kind(), KeySettings::default(), &policy, at(0), 0).unwrap();
    let Placement::Commit { advance, .. } = place(None, None, key, &Arc::new(terms), at(0), &policy) else {
        panic!("it is placed")
    };
    let mut order = advance.next;
    for (second, event) in events {
        assert_eq!(exported(&order), [], "it is on its way");
        let Decision::Advance(advance) = transition(&order, event, at(second), &policy) else {
            panic!("at {second}")
        };
        order = advance.next;
    }
    order
}

fn solved() -> Order {
    let refused = SubmitOutcome::Rejected(Fault::new(FaultClass::Busy, "ERROR_NO_SLOT_AVAILABLE"));
    after([
        (1, woken(1)),
        (2, Event::Submitted { attempt: 1, outcome: refused }),
        (10, woken(2)),
        (11, Event::Submitted { attempt: 2, outcome: SubmitOutcome::Accepted { task: "7".into() } }),
        (30, Event::Polled { attempt: 2, asked: at(29), outcome: PollOutcome::Answered(delivery()) }),
    ])
}

#[test]
fn each_attempt_has_its_span_and_what_went_wrong_stands_where_it_did() {
    let order = solved();
    let spans = exported(&order);
    let shown: Vec<_> = spans
        .iter()
        .map(|span| (span.name.as_str(), span.start.since(at(0)).as_secs(), span.end.since(at(0)).as_secs()))
        .collect();
    let expected = [
        ("order thing", 0, 30),
        ("attempt 1", 1, 2),
        ("submit", 1, 2),
        ("attempt 2", 10, 30),
        ("submit", 10, 11),
        ("poll", 11, 30),
    ];
    assert_eq!(shown, expected);
    let wrong: Vec<bool> = spans.iter().map(|span| span.error.is_some()).collect();
    assert_eq!(wrong, [false, true, true, false, false, false]);
    assert_eq!(spans[1].parent, Some(spans[0].id));
    assert_eq!((spans[4].parent, spans[4].kind), (Some(spans[3].id), SpanKind::Client));
    let mut ids: Vec<_> = spans.iter().map(|span| span.id).collect();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), spans.len(), "no two have one name");
    assert_eq!(exported(&order), spans, "a second export is the same");
}

#[test]
fn a_body_for_a_collector_is_json_and_holds_no_answer() {
    let order = solved();
    let body = String::from_utf8(encode("here", "0.1", &exported(&order))).unwrap();
    let json: serde_json::Value = serde_json::from_str(&body).unwrap();
    let spans = &json["resourceSpans"][0]["scopeSpans"][0]["spans"];
    assert_eq!(spans.as_array().unwrap().len(), 6);
    assert_eq!(spans[0]["startTimeUnixNano"], "1000000000000");
    assert_eq!(spans[1]["status"]["code"], 2);
    assert!(!body.contains("token"), "{body}");
}

#[test]
fn a_dead_letter_is_exported_when_it_dies_and_not_again_when_it_is_dropped() {
    let mut order = solved();
    let mut events = |more: &[TimelineEvent]| {
        let fresh = more.iter().map(|event| TimelineEntry { at: at(20), event: event.clone() });
        order.timeline.entries.extend(fresh);
        !exported(&order).is_empty()
    };
    let moved = TimelineEvent::MovedToDeadLetters { cause: DeadCause::Deadline };
    assert!(events(std::slice::from_ref(&moved)));
    assert!(!events(&[TimelineEvent::Dropped, TimelineEvent::Failed]));
    assert!(
        events(&[TimelineEvent::Replayed, TimelineEvent::Submitted { attempt: 9 }, moved]),
        "another life, another trace"
    );
}

#[test]
fn a_doubt_lasts_until_it_is_settled_and_is_no_failure_then() {
    let order = after([
        (1, woken(1)),
        (3, Event::Submitted { attempt: 1, outcome: SubmitOutcome::InDoubt(Evidence::default()) }),
        (
            20,
            Event::CalledBack {
                attempt: 1,
                task: Some("7".into()),
                word: CallbackResult::Answered(delivery()),
                receipt: None,
            },
        ),
    ]);
    let spans = exported(&order);
    let [_, attempt, submit] = &spans[..] else { panic!("{spans:?}") };
    assert_eq!((attempt.end, &attempt.error), (at(20), &None), "it has answered after all");
    assert_eq!(submit.end, at(3));
    assert!(submit.error.is_some(), "the call itself came to nothing");
}

#[test]
fn a_webhook_is_exported_when_it_is_sent_and_nothing_is_exported_twice() {
    let mut order = solved();
    let owed = |at| Webhook {
        number: 1,
        url: "https://a.test/".into(),
        dialect: "v1".into(),
        state: DeliveryState::Owed { at, tries: 0 },
    };
    order.webhooks = vec![owed(at(0))];
    assert_eq!(exported(&order).len(), 6, "the caller has waited for it");
    order.webhooks = vec![owed(at(31))];
    assert_eq!(exported(&order), [], "it was written again because a webhook is due");
    order.webhooks.clear();
    order.timeline.tell(at(32), TimelineEvent::WebhookDelivered { webhook: 1 });
    let spans = exported(&order);
    let [call] = &spans[..] else { panic!("{spans:?}") };
    assert_eq!(
        (call.name.as_str(), call.kind, call.start, call.end),
        ("hand out", SpanKind::Client, at(30), at(32))
    );
    assert_eq!(call.parent, Some(exported(&solved())[0].id));
}

#[test]
fn a_caller_that_joins_an_order_finds_it_from_its_own_trace() {
    let order = solved();
    let whole = exported(&order).remove(0);
    let link = Some(SpanName { trace: whole.trace, id: whole.id });
    let caller = TraceParent { trace: [7; 16], span: [8; 8], is_sampled: true };
    let placing = Placing { caller, id: [9; 8], start: at(40) };
    let place = placed(&placing, "thing", Ok((&order, Origin::Cached)), at(41));
    assert_eq!((place.trace, place.parent, place.link), ([7; 16], Some([8; 8]), link));
    assert!(place.attributes.contains(&("quittance.origin", "cached".to_owned())), "{place:?}");
    let given = handed_out(&order, Some(placing.above()), (at(41), at(42)), 1).unwrap();
    assert_eq!((given.trace, given.parent, given.link), ([7; 16], Some([9; 8]), link));
    let polled = handed_out(&order, None, (at(41), at(42)), 2).unwrap();
    assert_eq!((polled.trace, polled.parent, polled.link), (whole.trace, Some(whole.id), None));
    let unwanted = TraceParent { is_sampled: false, ..placing.above() };
    assert_eq!(handed_out(&order, Some(unwanted), (at(41), at(42)), 3), None);
}

#[test]
fn what_a_caller_wrote_is_exported_in_part_and_so_that_it_can_be_read() {
    let caller = TraceParent { trace: [7; 16], span: [8; 8], is_sampled: true };
    let placing = Placing { caller, id: [9; 8], start: at(0) };
    let long = format!("no `\u{1b}[31m\u{202e}{}`", "x".repeat(1_000_000));
    let error = placed(&placing, "other", Err(&long), at(1)).error.unwrap();
    assert!(error.starts_with("no `\\u{1b}[31m\\u{202e}xxx") && error.len() < 300, "{error}");
}
