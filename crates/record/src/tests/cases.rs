//! The values that the golden files contain. A case is never changed or removed. Add another case instead.

mod budgets;
mod forgotten;
mod freshness;
mod priorities;
mod providers;
mod retries;
mod shared;
mod sight;
mod stock;

use super::AnyRecord;
use quittance_lifecycle::{
    Answer, Attempt, CallbackResult, DeadCause, DeliveryOutcome, DeliveryState, Event, Evidence, FailCause,
    Fault, FaultClass, Key, Money, Offer, Order, Payload, Phase, PollOutcome, Priority, Progress,
    ProviderAnswer, Report, ReportOutcome, ReportState, RetryLimits, Reuse, Signal, SubmitOutcome,
    SubmitRoute, Target, Terms, Timeline, TimelineEntry, TimelineEvent, Timestamp, Value, Via, Webhook,
};
use quittance_ports::IncomingEvent;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// A part of every text that must not leak.
pub(super) const SECRET: &str = "s3cr3t";

pub(super) fn all() -> Vec<(&'static str, AnyRecord)> {
    let mut cases = terms();
    cases.extend(phases());
    cases.extend(parts());
    cases.extend(arrivals());
    cases.extend(shared::node_statuses());
    cases.extend(shared::documents());
    cases.extend(stock::terms());
    cases.extend(stock::orders());
    cases.extend(stock::arrivals());
    cases.extend(sight::terms());
    cases.extend(sight::orders());
    cases.extend(sight::arrivals());
    cases.extend(sight::documents());
    cases.extend(retries::terms());
    cases.extend(retries::orders());
    cases.extend(retries::arrivals());
    cases.extend(retries::documents());
    cases.extend(priorities::terms());
    cases.extend(priorities::orders());
    cases.extend(providers::orders());
    cases.extend(providers::arrivals());
    cases.extend(providers::documents());
    cases.extend(budgets::orders());
    cases.extend(budgets::documents());
    cases.extend(budgets::arrivals());
    cases.extend(forgotten::orders());
    cases.extend(forgotten::arrivals());
    cases.extend(freshness::terms());
    cases.extend(freshness::orders());
    cases.extend(freshness::arrivals());
    cases.extend(freshness::node_statuses());
    cases.extend(freshness::documents());
    cases
}

fn at(seconds: u64) -> Timestamp {
    Timestamp::from_millis(1_700_000_000_000 + seconds * 1000)
}

fn digest(first: u8) -> [u8; 32] {
    let mut bytes = [first; 32];
    for at in 1..bytes.len() {
        bytes[at] = bytes[at - 1].wrapping_mul(5).wrapping_add(3);
    }
    bytes
}

fn secret(what: &str) -> String {
    format!("{what}-{SECRET}")
}

fn token_terms() -> Terms {
    let params = [("googlekey", secret("6Le")), ("pageurl", "https://example.com/login".into())];
    Terms {
        tenant: "archive".into(),
        kind: "recaptcha_v2".into(),
        params: params.into_iter().map(|(name, value)| (name.into(), Value::Text(value))).collect(),
        target: Target(digest(0x1a)),
        fingerprint: digest(0x2b),
        keyed: false,
        reuse: Reuse::Shared,
        single_use: true,
        life: Some(Duration::from_secs(120)),
        min_life: Duration::from_secs(40),
        margin: Duration::from_secs(40),
        timeout: Duration::from_secs(300),
        retry: RetryLimits::NONE,
        keep: Duration::from_secs(3600),
        site: String::new(),
        takes_stock: true,
        collected_in: Duration::ZERO,
        slot: None,
        priority: Priority::Normal,
        account: String::new(),
        price: None,
        trace: String::new(),
    }
}

fn terms() -> Vec<(&'static str, AnyRecord)> {
    let picture: Vec<u8> = (0..=255).chain(SECRET.bytes()).collect();
    let image = Terms {
        kind: "image".into(),
        params: BTreeMap::from([
            ("body".into(), Value::Bytes(picture)),
            ("empty".into(), Value::Bytes(Vec::new())),
            ("lang".into(), Value::Text(String::new())),
        ]),
        single_use: false,
        takes_stock: false,
        collected_in: Duration::ZERO,
        life: None,
        min_life: Duration::ZERO,
        margin: Duration::ZERO,
        ..token_terms()
    };
    let unicode = Terms {
        tenant: "Zürich \u{1f5dd}".into(),
        params: BTreeMap::from([
            (secret("имя"), Value::Text(format!("\"quoted\"\\ \u{0}\u{1e}\r\n\t\u{2028} 日本 {SECRET}"))),
            ("e\u{301}".into(), Value::Text("combining".into())),
        ]),
        ..token_terms()
    };
    let keyed = Terms { keyed: true, target: Target(digest(0xff)), fingerprint: [0; 32], ..token_terms() };
    let exclusive = Terms { reuse: Reuse::Exclusive, ..token_terms() };
    [
        ("terms-text", token_terms()),
        ("terms-image-without-end", image),
        ("terms-unicode", unicode),
        ("terms-keyed", keyed),
        ("terms-exclusive", exclusive),
    ]
    .map(|(name, terms)| (name, AnyRecord::Terms(Arc::new(terms))))
    .into()
}

fn payload() -> Payload {
    let extras = [("useragent", secret("Mozilla")), ("cookie", secret("cf"))];
    Payload {
        text: secret("03AGdBq"),
        is_json: false,
        extras: extras.into_iter().map(|(name, value)| (name.into(), value)).collect(),
    }
}

fn answer() -> Answer {
    Answer {
        payload: payload(),
        attempt: 2,
        earliest: at(20),
        expires: Some(at(140)),
        cost: Some(Money(2990)),
    }
}

/// An answer that lives for ever, has no known cost and no extras.
fn plain_answer() -> Answer {
    let payload = Payload { is_json: true, ..Payload::text(format!("{{\"x\":\"{SECRET}\"}}")) };
    Answer { payload, attempt: 1, earliest: at(20), expires: None, cost: None }
}

fn fault(class: FaultClass) -> Fault {
    Fault { class, code: secret("ERROR_"), text: String::new() }
}

fn evidence() -> Evidence {
    Evidence::new(fault(FaultClass::Busy).code)
}

fn attempt(number: u32, progress: Progress) -> Attempt {
    Attempt {
        number,
        sent: at(1),
        unsolved_at: at(16),
        accepted: number != 1,
        progress,
        task: None,
        report: None,
        made_for: None,
        cost: None,
        unpriced_since: None,
        former: None,
        callback_address: None,
        account: None,
        drawn: None,
    }
}

fn order(phase: Phase) -> Order {
    Order {
        key: Key(digest(0x3c)),
        terms: Arc::new(token_terms()),
        priority: Priority::Normal,
        born: at(0),
        life: 1,
        placed: at(0),
        deadline: at(300),
        wanted: true,
        uncollected: false,
        phase,
        attempts: Vec::new(),
        last_attempt: 0,
        retries: [0; Signal::ALL.len()],
        life_attempts: 0,
        possible_doubles: 0,
        webhooks: Vec::new(),
        last_webhook: 0,
        put_back: None,
        steps_lost: false,
        followed_by: None,
        used_up: Vec::new(),
        held_off: None,
        booked_on: None,
        timeline: Timeline {
            entries: vec![TimelineEntry { at: at(0), event: TimelineEvent::Placed { life: 1 } }],
            left_out: 0,
        },
    }
}

fn orders<const N: usize>(named: [(&'static str, Order); N]) -> Vec<(&'static str, AnyRecord)> {
    named.map(|(name, order)| (name, AnyRecord::Order(Box::new(order)))).into()
}

fn phases() -> Vec<(&'static str, AnyRecord)> {
    let refused = FailCause::Rejected(fault(FaultClass::Caller));
    let spent = DeadCause::Spent(fault(FaultClass::Busy));
    let solving = Progress::Solving { task: secret("73045") };
    orders([
        ("order-queued", order(Phase::Queued { until: at(0), held: false })),
        ("order-held", order(Phase::Queued { until: Timestamp::MAX, held: true })),
        (
            "order-submitting",
            Order {
                attempts: vec![attempt(1, Progress::Sent)],
                last_attempt: 1,
                ..order(Phase::Submitting { attempt: 1, stamp: u64::MAX - 1, until: at(30) })
            },
        ),
        (
            "order-solving",
            Order {
                attempts: vec![attempt(2, solving)],
                last_attempt: 2,
                ..order(Phase::Solving { attempt: 2, poll_at: at(15), misses: 3 })
            },
        ),
        ("order-solving-without-misses", order(Phase::Solving { attempt: 2, poll_at: at(15), misses: 0 })),
        ("order-unsure", order(Phase::InDoubt { attempt: 1, until: at(180) })),
        ("order-solved", order(Phase::Solved { answer: answer(), at: at(21) })),
        ("order-solved-for-ever", order(Phase::Solved { answer: plain_answer(), at: at(21) })),
        ("order-taken", order(Phase::Claimed { answer: answer(), by: Key(digest(0x4d)), at: at(22) })),
        ("order-expired", order(Phase::Expired { at: at(140) })),
        ("order-refused", order(Phase::Failed { cause: refused, at: at(3) })),
        ("order-cancelled", order(Phase::Failed { cause: FailCause::Cancelled, at: at(3) })),
        ("order-dead-spent", order(Phase::Dead { cause: spent, at: at(90) })),
        ("order-dead-deadline", order(Phase::Dead { cause: DeadCause::Deadline, at: at(300) })),
        ("order-dead-not-taken", {
            let busy = DeadCause::NotTaken(Some(fault(FaultClass::Busy)));
            let dead_letter_event = TimelineEntry {
                at: at(299),
                event: TimelineEvent::MovedToDeadLetters { cause: DeadCause::NotTaken(None) },
            };
            let timeline = Timeline { entries: vec![dead_letter_event], left_out: 0 };
            Order { timeline, ..order(Phase::Dead { cause: busy, at: at(300) }) }
        }),
        ("order-dead-doubt", order(Phase::Dead { cause: DeadCause::Doubt, at: at(180) })),
    ])
}

fn parts() -> Vec<(&'static str, AnyRecord)> {
    let dropped =
        Timeline { entries: vec![TimelineEntry { at: at(5), event: TimelineEvent::Dropped }], left_out: 0 };
    let progress = [
        Progress::Sent,
        Progress::Solving { task: secret("1") },
        Progress::Trailing { task: secret("2"), poll_at: at(44), counted: false },
        Progress::GivenUp { counted: false },
        Progress::GivenUp { counted: true },
        Progress::Faulted,
        Progress::Answered,
        Progress::Surplus { answer: answer(), since: at(50) },
        Progress::Surplus { answer: plain_answer(), since: at(51) },
    ];
    let timeline =
        events().into_iter().zip(1..).map(|(event, second)| TimelineEntry { at: at(second), event });
    let queued = Phase::Queued { until: at(60), held: false };
    let every_retry = retries([
        (FaultClass::Busy.into(), 5),
        (FaultClass::Unreachable.into(), 3),
        (Signal::InDoubt, 2),
        (FaultClass::Unsolvable.into(), 1),
        (FaultClass::NoFunds.into(), 255),
        (FaultClass::AccountBlocked.into(), 6),
        (FaultClass::Caller.into(), 7),
        (FaultClass::UnlistedCode.into(), 8),
        (FaultClass::NotSold.into(), 9),
    ]);
    orders([
        (
            "order-every-progress",
            Order {
                attempts: progress.into_iter().zip(1..).map(|(step, number)| attempt(number, step)).collect(),
                last_attempt: 9,
                possible_doubles: 1,
                ..order(queued.clone())
            },
        ),
        (
            "order-every-beat",
            Order {
                life: 2,
                wanted: false,
                timeline: Timeline { entries: timeline.collect(), left_out: 12 },
                ..order(queued.clone())
            },
        ),
        ("order-every-retry", Order { retries: every_retry, ..order(queued.clone()) }),
        (
            "order-one-retry",
            Order { retries: retries([(FaultClass::Unsolvable.into(), 2)]), ..order(queued.clone()) },
        ),
        ("order-without-a-timeline", Order { timeline: Timeline::default(), ..order(queued.clone()) }),
        ("order-dropped", Order { timeline: dropped, ..order(queued) }),
        (
            "order-with-follow_ups",
            Order {
                attempts: reports().into_iter().zip(1..).map(|(report, n)| reported(n, report)).collect(),
                webhooks: webhooks(),
                last_webhook: 7,
                timeline: Timeline {
                    entries: follow_ups()
                        .into_iter()
                        .zip(1..)
                        .map(|(event, n)| TimelineEntry { at: at(n), event })
                        .collect(),
                    left_out: 0,
                },
                ..order(Phase::Solved { answer: answer(), at: at(21) })
            },
        ),
    ])
}

fn reported(number: u32, report: Report) -> Attempt {
    Attempt { task: Some(secret("73045")), report: Some(report), ..attempt(number, Progress::Answered) }
}

fn reports() -> Vec<Report> {
    let report = |is_good, state| Report { is_good, at: at(30), state };
    vec![
        report(true, ReportState::Owed { at: at(60), tries: 2 }),
        report(false, ReportState::Passed),
        report(false, ReportState::Refused { code: "ERROR_DUPLICATE_REPORT".into() }),
        report(true, ReportState::Lost),
    ]
}

fn webhooks() -> Vec<Webhook> {
    let webhook = |number, dialect: &str, state| {
        let url = format!("https://caller.example.com/{SECRET}");
        Webhook { number, url, dialect: dialect.into(), state }
    };
    vec![
        webhook(3, "2captcha", DeliveryState::Owed { at: at(40), tries: 0 }),
        webhook(5, "v1", DeliveryState::Owed { at: at(41), tries: 3 }),
        webhook(7, "capsolver", DeliveryState::Dead { at: at(99), why: "HTTP 500".into() }),
    ]
}

fn follow_ups() -> Vec<TimelineEvent> {
    vec![
        TimelineEvent::Reported { attempt: 1, is_good: false },
        TimelineEvent::WebhookDelivered { webhook: 1 },
        TimelineEvent::WebhookFailed { webhook: 7, why: "HTTP 500".into() },
    ]
}

fn retries<const N: usize>(counts: [(Signal, u8); N]) -> [u8; Signal::ALL.len()] {
    let mut retries = [0; Signal::ALL.len()];
    for (signal, count) in counts {
        retries[signal.index()] = count;
    }
    retries
}

fn events() -> Vec<TimelineEvent> {
    let mut events = vec![
        TimelineEvent::Placed { life: 2 },
        TimelineEvent::Rejoined,
        TimelineEvent::Deferred { until: at(9) },
        TimelineEvent::Submitted { attempt: 1 },
        TimelineEvent::Accepted { attempt: 1, task: secret("73045") },
        TimelineEvent::InDoubt { attempt: 1, until: at(99) },
        TimelineEvent::GaveUp { attempt: 1 },
        TimelineEvent::Held,
        TimelineEvent::Released,
        TimelineEvent::CameLate { attempt: 1 },
        TimelineEvent::TooOld { attempt: 1 },
        TimelineEvent::Stocked { attempt: 1 },
        TimelineEvent::Claimed,
        TimelineEvent::Expired,
        TimelineEvent::Failed,
        TimelineEvent::Cancelled,
        TimelineEvent::Replayed,
    ];
    events
        .extend([Via::Submit, Via::Callback, Via::Poll].map(|via| TimelineEvent::Solved { attempt: 3, via }));
    events.extend(Signal::ALL.map(|signal| match signal {
        Signal::Fault(class) => TimelineEvent::Faulted { attempt: 2, fault: fault(class) },
        Signal::InDoubt => TimelineEvent::LeftInDoubt { attempt: 2, evidence: evidence() },
    }));
    events.extend(Signal::ALL.map(|class| TimelineEvent::Retried { class, number: 4, at: at(70) }));
    let causes = [DeadCause::DoubtsSpent(evidence()), DeadCause::Deadline, DeadCause::Doubt];
    events.extend(causes.map(|cause| TimelineEvent::MovedToDeadLetters { cause }));
    events
}

pub(super) fn arrival(event: Event) -> IncomingEvent {
    IncomingEvent { key: Key(digest(0x5e)), born: at(0), target: None, event }
}

pub(super) fn called_back(attempt: u32) -> IncomingEvent {
    let word = CallbackResult::Answered(ProviderAnswer {
        payload: payload(),
        took_at_least: None,
        cost: Some(Money(2990)),
    });
    arrival(Event::CalledBack { attempt, task: Some(secret("73045")), word, receipt: None })
}

fn arrivals() -> Vec<(&'static str, AnyRecord)> {
    let delivery =
        |took_at_least| ProviderAnswer { payload: Payload::text(SECRET), took_at_least, cost: None };
    let submitted = |outcome| Event::Submitted { attempt: 1, outcome };
    let polled = |outcome| Event::Polled { attempt: 1, asked: at(19), outcome };
    let unsolvable = || fault(FaultClass::Unsolvable);
    let no_task = Event::CalledBack {
        attempt: 7,
        task: None,
        word: CallbackResult::Faulted(unsolvable()),
        receipt: None,
    };
    let taken = SubmitOutcome::Accepted { task: secret("73045") };
    let mut cases: Vec<_> = [
        ("arrival-called-back-faulted", no_task),
        ("arrival-submitted-accepted", submitted(taken)),
        ("arrival-submitted-answered", submitted(SubmitOutcome::Answered(delivery(None)))),
        ("arrival-submitted-refused", submitted(SubmitOutcome::Rejected(unsolvable()))),
        ("arrival-submitted-in-doubt", submitted(SubmitOutcome::InDoubt(evidence()))),
        ("arrival-submitted-unknown", submitted(SubmitOutcome::InDoubt(Evidence::default()))),
        ("arrival-polled-pending", polled(PollOutcome::Pending)),
        ("arrival-polled-no-such-task", polled(PollOutcome::NoSuchTask(fault(FaultClass::Caller)))),
        ("arrival-polled-answered", polled(PollOutcome::Answered(delivery(None)))),
        (
            "arrival-polled-answered-after",
            polled(PollOutcome::Answered(delivery(Some(Duration::from_secs(19))))),
        ),
        ("arrival-polled-faulted", polled(PollOutcome::Faulted(unsolvable()))),
        ("arrival-polled-no-word", polled(PollOutcome::NoReply)),
        ("arrival-woken", Event::Woken { stamp: 0, route: SubmitRoute::To(Offer::OF_TERMS) }),
        ("arrival-woken-shut", Event::Woken { stamp: u64::MAX, route: SubmitRoute::ShutUntil(at(66)) }),
        ("arrival-stocked", Event::Stocked { attempt: u32::MAX }),
        (
            "arrival-claimed",
            Event::Claimed { by: Key(digest(0x6f)), min_life: Duration::from_millis(40_500) },
        ),
        ("arrival-cancelled", Event::Cancelled),
        ("arrival-replayed", Event::Replayed),
        ("arrival-dropped", Event::Dropped),
        ("arrival-released", Event::Released),
        ("arrival-reported", Event::Reported { is_good: false }),
        ("arrival-report-passed", Event::ReportPassed { attempt: 1, outcome: ReportOutcome::Accepted }),
        ("arrival-report-no-word", Event::ReportPassed { attempt: 1, outcome: ReportOutcome::NoReply }),
        (
            "arrival-report-refused",
            Event::ReportPassed { attempt: 1, outcome: ReportOutcome::Refused { code: "ERROR_X".into() } },
        ),
        (
            "arrival-listened-for",
            Event::WebhookAdded { url: secret("https://a.test/"), dialect: "v1".into() },
        ),
        ("arrival-told", Event::WebhookTried { webhook: 2, outcome: DeliveryOutcome::Delivered }),
        (
            "arrival-not-told",
            Event::WebhookTried {
                webhook: 2,
                outcome: DeliveryOutcome::NotDelivered { why: "HTTP 500".into() },
            },
        ),
    ]
    .map(|(name, event)| (name, AnyRecord::IncomingEvent(arrival(event))))
    .into();
    cases.push(("arrival-called-back-answered", AnyRecord::IncomingEvent(called_back(7))));
    cases
}
