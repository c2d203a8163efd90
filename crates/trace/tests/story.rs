//! A life with a fault and a doubt in it, as spans: each attempt and each call by itself, what went wrong where it did, and the
//! same names whoever tells it.
#![expect(clippy::unwrap_used, reason = "whatever goes wrong in a test is to be seen at once")]

use quittance_lifecycle::{
    Beat, DeadCause, Decision, Delivery, Draft, Entry, Event, Fault, FaultClass, Gate, Goods, Identity,
    KeySettings, Kind, Money, Order, Pace, Placement, Policy, PollOutcome, SubmitOutcome, Timestamp, place,
    transition,
};
use quittance_trace::{SpanKind, encode, is_worth_telling, spans_of};
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
        pace: Pace {
            p50: Duration::from_secs(10),
            p95: Duration::from_secs(40),
            p99: Duration::from_secs(60),
        },
    }
}

fn solved() -> Order {
    let policy = Policy::DEFAULT;
    let draft = Draft::new("<ann>");
    let (key, terms) = draft.check(&kind(), KeySettings::default(), &policy, at(0), 0).unwrap();
    let Placement::Commit { advance, .. } = place(None, key, &Arc::new(terms), at(0), &policy) else {
        panic!("it is placed")
    };
    let woken = |stamp| Event::Woken { stamp, gate: Gate::Open };
    let refused = SubmitOutcome::Refused(Fault::new(FaultClass::Busy, "ERROR_NO_SLOT_AVAILABLE"));
    let delivery = Delivery { goods: Goods::text("token"), solved_at: None, cost: Money(5) };
    let events = [
        (1, woken(1)),
        (2, Event::Submitted { attempt: 1, outcome: refused }),
        (10, woken(2)),
        (11, Event::Submitted { attempt: 2, outcome: SubmitOutcome::Accepted { task: "7".into() } }),
        (30, Event::Polled { attempt: 2, asked: at(29), outcome: PollOutcome::Answered(delivery) }),
    ];
    let mut order = advance.next;
    for (second, event) in events {
        assert!(!is_worth_telling(&order), "it is on its way");
        let Decision::Advance(advance) = transition(&order, event, at(second), &policy) else {
            panic!("at {second}")
        };
        order = advance.next;
    }
    order
}

#[test]
fn each_attempt_has_its_span_and_what_went_wrong_stands_where_it_did() {
    let order = solved();
    assert!(is_worth_telling(&order));
    let spans = spans_of(&order);
    let told: Vec<_> = spans
        .iter()
        .map(|span| (span.name.as_str(), span.start.since(at(0)).as_secs(), span.end.since(at(0)).as_secs()))
        .collect();
    let expected = [
        ("order thing", 0, 30),
        ("attempt 1", 1, 2),
        ("submit", 1, 2),
        ("attempt 2", 10, 30),
        ("submit", 10, 11),
    ];
    assert_eq!(told, expected);
    let wrong: Vec<bool> = spans.iter().map(|span| span.error.is_some()).collect();
    assert_eq!(wrong, [false, true, true, false, false]);
    assert_eq!(spans[1].parent, Some(spans[0].id));
    assert_eq!((spans[4].parent, spans[4].kind), (Some(spans[3].id), SpanKind::Client));
    let mut ids: Vec<_> = spans.iter().map(|span| span.id).collect();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), spans.len(), "no two have one name");
    assert_eq!(spans_of(&order), spans, "and whoever tells it tells the same");
}

#[test]
fn a_body_for_a_collector_is_json_and_holds_no_answer() {
    let order = solved();
    let body = String::from_utf8(encode("here", "0.1", &spans_of(&order))).unwrap();
    let said: serde_json::Value = serde_json::from_str(&body).unwrap();
    let spans = &said["resourceSpans"][0]["scopeSpans"][0]["spans"];
    assert_eq!(spans.as_array().unwrap().len(), 5);
    assert_eq!(spans[0]["startTimeUnixNano"], "1000000000000");
    assert_eq!(spans[1]["status"]["code"], 2);
    assert!(!body.contains("token"), "{body}");
}

#[test]
fn a_dead_letter_is_told_when_it_dies_and_not_again_when_it_is_dropped() {
    let mut order = solved();
    let mut beats = |more: &[Beat]| {
        let fresh = more.iter().map(|beat| Entry { at: at(20), beat: beat.clone() });
        order.story.entries.extend(fresh);
        is_worth_telling(&order)
    };
    let buried = Beat::Buried { cause: DeadCause::Deadline };
    assert!(beats(std::slice::from_ref(&buried)));
    assert!(!beats(&[Beat::Dropped, Beat::Failed]));
    assert!(beats(&[Beat::Replayed, Beat::Submitted { attempt: 9 }, buried]), "another life, another trace");
}
