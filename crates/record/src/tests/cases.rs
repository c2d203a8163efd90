//! The values that the golden files hold. A case is never changed and never removed: add another one.

mod forgotten;
mod freshness;
mod shared;
mod sight;
mod stock;

use super::Written;
use quittance_lifecycle::{
    Answer, Attempt, Beat, DeadCause, Delivery, Entry, Event, Evidence, FailCause, Fault, FaultClass, Gate,
    Goods, Key, Listener, Money, Order, Passing, Phase, PollOutcome, Progress, Report, ReportOutcome, Reuse,
    Signal, Story, SubmitOutcome, Target, TellOutcome, Telling, Terms, Timestamp, Value, Via, Word,
};
use quittance_ports::Arrival;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// Part of every text that must not leak.
pub(super) const SECRET: &str = "s3cr3t";

pub(super) fn all() -> Vec<(&'static str, Written)> {
    let mut cases = terms();
    cases.extend(phases());
    cases.extend(parts());
    cases.extend(arrivals());
    cases.extend(shared::cards());
    cases.extend(shared::sheets());
    cases.extend(stock::terms());
    cases.extend(stock::orders());
    cases.extend(stock::arrivals());
    cases.extend(sight::terms());
    cases.extend(sight::orders());
    cases.extend(sight::arrivals());
    cases.extend(sight::sheets());
    cases.extend(forgotten::orders());
    cases.extend(forgotten::arrivals());
    cases.extend(freshness::terms());
    cases.extend(freshness::orders());
    cases.extend(freshness::arrivals());
    cases.extend(freshness::cards());
    cases.extend(freshness::sheets());
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
        patience: Duration::from_secs(300),
        keep: Duration::from_secs(3600),
        site: String::new(),
        takes_stock: true,
        collected_in: Duration::ZERO,
        slot: None,
        account: String::new(),
        price: None,
        trace: String::new(),
    }
}

fn terms() -> Vec<(&'static str, Written)> {
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
    .map(|(name, terms)| (name, Written::Terms(Arc::new(terms))))
    .into()
}

fn goods() -> Goods {
    let extras = [("useragent", secret("Mozilla")), ("cookie", secret("cf"))];
    Goods {
        text: secret("03AGdBq"),
        is_json: false,
        extras: extras.into_iter().map(|(name, value)| (name.into(), value)).collect(),
    }
}

fn answer() -> Answer {
    Answer { goods: goods(), attempt: 2, earliest: at(20), expires: Some(at(140)), cost: Some(Money(2990)) }
}

/// Lives for ever, has no known cost and brings nothing along.
fn plain_answer() -> Answer {
    let goods = Goods { is_json: true, ..Goods::text(format!("{{\"x\":\"{SECRET}\"}}")) };
    Answer { goods, attempt: 1, earliest: at(20), expires: None, cost: None }
}

fn fault(class: FaultClass) -> Fault {
    Fault { class, code: secret("ERROR_"), said: String::new() }
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
    }
}

fn order(phase: Phase) -> Order {
    Order {
        key: Key(digest(0x3c)),
        terms: Arc::new(token_terms()),
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
        possible_doubles: 0,
        listeners: Vec::new(),
        last_listener: 0,
        put_back: None,
        followed_by: None,
        story: Story { entries: vec![Entry { at: at(0), beat: Beat::Placed { life: 1 } }], left_out: 0 },
    }
}

fn orders<const N: usize>(named: [(&'static str, Order); N]) -> Vec<(&'static str, Written)> {
    named.map(|(name, order)| (name, Written::Order(Box::new(order)))).into()
}

fn phases() -> Vec<(&'static str, Written)> {
    let refused = FailCause::Refused(fault(FaultClass::Caller));
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
        ("order-unsure", order(Phase::Unsure { attempt: 1, until: at(180) })),
        ("order-solved", order(Phase::Solved { answer: answer(), at: at(21) })),
        ("order-solved-for-ever", order(Phase::Solved { answer: plain_answer(), at: at(21) })),
        ("order-taken", order(Phase::Taken { answer: answer(), by: Key(digest(0x4d)), at: at(22) })),
        ("order-spoiled", order(Phase::Spoiled { at: at(140) })),
        ("order-refused", order(Phase::Failed { cause: refused, at: at(3) })),
        ("order-cancelled", order(Phase::Failed { cause: FailCause::Cancelled, at: at(3) })),
        ("order-dead-spent", order(Phase::Dead { cause: spent, at: at(90) })),
        ("order-dead-deadline", order(Phase::Dead { cause: DeadCause::Deadline, at: at(300) })),
        ("order-dead-not-taken", {
            let busy = DeadCause::NotTaken(Some(fault(FaultClass::Busy)));
            let buried = Entry { at: at(299), beat: Beat::Buried { cause: DeadCause::NotTaken(None) } };
            let story = Story { entries: vec![buried], left_out: 0 };
            Order { story, ..order(Phase::Dead { cause: busy, at: at(300) }) }
        }),
        ("order-dead-doubt", order(Phase::Dead { cause: DeadCause::Doubt, at: at(180) })),
    ])
}

fn parts() -> Vec<(&'static str, Written)> {
    let dropped = Story { entries: vec![Entry { at: at(5), beat: Beat::Dropped }], left_out: 0 };
    let progress = [
        Progress::Sent,
        Progress::Solving { task: secret("1") },
        Progress::Trailing { task: secret("2"), poll_at: at(44) },
        Progress::GivenUp { counted: false },
        Progress::GivenUp { counted: true },
        Progress::Faulted,
        Progress::Answered,
        Progress::Spare { answer: answer(), since: at(50) },
        Progress::Spare { answer: plain_answer(), since: at(51) },
    ];
    let story = beats().into_iter().zip(1..).map(|(beat, second)| Entry { at: at(second), beat });
    let queued = Phase::Queued { until: at(60), held: false };
    let every_retry = retries([
        (FaultClass::Busy.into(), 5),
        (FaultClass::Unreachable.into(), 3),
        (Signal::InDoubt, 2),
        (FaultClass::Unsolvable.into(), 1),
        (FaultClass::Broke.into(), 255),
        (FaultClass::Account.into(), 6),
        (FaultClass::Caller.into(), 7),
        (FaultClass::UnknownCode.into(), 8),
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
                story: Story { entries: story.collect(), left_out: 12 },
                ..order(queued.clone())
            },
        ),
        ("order-every-retry", Order { retries: every_retry, ..order(queued.clone()) }),
        (
            "order-one-retry",
            Order { retries: retries([(FaultClass::Unsolvable.into(), 2)]), ..order(queued.clone()) },
        ),
        ("order-without-a-story", Order { story: Story::default(), ..order(queued.clone()) }),
        ("order-dropped", Order { story: dropped, ..order(queued) }),
        (
            "order-with-errands",
            Order {
                attempts: reports().into_iter().zip(1..).map(|(report, n)| reported(n, report)).collect(),
                listeners: listeners(),
                last_listener: 7,
                story: Story {
                    entries: errands()
                        .into_iter()
                        .zip(1..)
                        .map(|(beat, n)| Entry { at: at(n), beat })
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
    let report = |is_good, passing| Report { is_good, at: at(30), passing };
    vec![
        report(true, Passing::Owed { at: at(60), tries: 2 }),
        report(false, Passing::Passed),
        report(false, Passing::Refused { code: "ERROR_DUPLICATE_REPORT".into() }),
        report(true, Passing::Lost),
    ]
}

fn listeners() -> Vec<Listener> {
    let listener = |number, dialect: &str, telling| {
        let url = format!("https://caller.example.com/{SECRET}");
        Listener { number, url, dialect: dialect.into(), telling }
    };
    vec![
        listener(3, "2captcha", Telling::Owed { at: at(40), tries: 0 }),
        listener(5, "v1", Telling::Owed { at: at(41), tries: 3 }),
        listener(7, "capsolver", Telling::Dead { at: at(99), why: "HTTP 500".into() }),
    ]
}

fn errands() -> Vec<Beat> {
    vec![
        Beat::Reported { attempt: 1, is_good: false },
        Beat::Told { listener: 1 },
        Beat::NotTold { listener: 7, why: "HTTP 500".into() },
    ]
}

fn retries<const N: usize>(counts: [(Signal, u8); N]) -> [u8; Signal::ALL.len()] {
    let mut retries = [0; Signal::ALL.len()];
    for (signal, count) in counts {
        retries[signal.index()] = count;
    }
    retries
}

fn beats() -> Vec<Beat> {
    let mut beats = vec![
        Beat::Placed { life: 2 },
        Beat::Rejoined,
        Beat::Deferred { until: at(9) },
        Beat::Submitted { attempt: 1 },
        Beat::Accepted { attempt: 1, task: secret("73045") },
        Beat::Doubted { attempt: 1, until: at(99) },
        Beat::GaveUp { attempt: 1 },
        Beat::Held,
        Beat::Released,
        Beat::CameLate { attempt: 1 },
        Beat::TooOld { attempt: 1 },
        Beat::Stocked { attempt: 1 },
        Beat::Taken,
        Beat::Spoiled,
        Beat::Failed,
        Beat::Cancelled,
        Beat::Replayed,
    ];
    beats.extend([Via::Submit, Via::Callback, Via::Poll].map(|via| Beat::Solved { attempt: 3, via }));
    beats.extend(Signal::ALL.map(|signal| match signal {
        Signal::Fault(class) => Beat::Faulted { attempt: 2, fault: fault(class) },
        Signal::InDoubt => Beat::LeftInDoubt { attempt: 2, evidence: evidence() },
    }));
    beats.extend(Signal::ALL.map(|class| Beat::Retried { class, number: 4, at: at(70) }));
    let causes = [DeadCause::DoubtsSpent(evidence()), DeadCause::Deadline, DeadCause::Doubt];
    beats.extend(causes.map(|cause| Beat::Buried { cause }));
    beats
}

pub(super) fn arrival(event: Event) -> Arrival {
    Arrival { key: Key(digest(0x5e)), born: at(0), target: None, event }
}

pub(super) fn called_back(attempt: u32) -> Arrival {
    let word = Word::Answered(Delivery { goods: goods(), solved_at: None, cost: Some(Money(2990)) });
    arrival(Event::CalledBack { attempt, task: Some(secret("73045")), word, receipt: None })
}

fn arrivals() -> Vec<(&'static str, Written)> {
    let delivery = || Delivery { goods: Goods::text(SECRET), solved_at: Some(at(20)), cost: None };
    let submitted = |outcome| Event::Submitted { attempt: 1, outcome };
    let polled = |outcome| Event::Polled { attempt: 1, asked: at(19), outcome };
    let unsolvable = || fault(FaultClass::Unsolvable);
    let no_task =
        Event::CalledBack { attempt: 7, task: None, word: Word::Faulted(unsolvable()), receipt: None };
    let taken = SubmitOutcome::Accepted { task: secret("73045") };
    let mut cases: Vec<_> = [
        ("arrival-called-back-faulted", no_task),
        ("arrival-submitted-accepted", submitted(taken)),
        ("arrival-submitted-answered", submitted(SubmitOutcome::Answered(delivery()))),
        ("arrival-submitted-refused", submitted(SubmitOutcome::Rejected(unsolvable()))),
        ("arrival-submitted-in-doubt", submitted(SubmitOutcome::InDoubt(evidence()))),
        ("arrival-submitted-unknown", submitted(SubmitOutcome::InDoubt(Evidence::default()))),
        ("arrival-polled-pending", polled(PollOutcome::Pending)),
        ("arrival-polled-answered", polled(PollOutcome::Answered(delivery()))),
        ("arrival-polled-faulted", polled(PollOutcome::Faulted(unsolvable()))),
        ("arrival-polled-no-word", polled(PollOutcome::NoWord)),
        ("arrival-woken", Event::Woken { stamp: 0, gate: Gate::Pass }),
        ("arrival-woken-shut", Event::Woken { stamp: u64::MAX, gate: Gate::ShutUntil(at(66)) }),
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
        ("arrival-report-passed", Event::ReportPassed { attempt: 1, outcome: ReportOutcome::Taken }),
        ("arrival-report-no-word", Event::ReportPassed { attempt: 1, outcome: ReportOutcome::NoWord }),
        (
            "arrival-report-refused",
            Event::ReportPassed { attempt: 1, outcome: ReportOutcome::Refused { code: "ERROR_X".into() } },
        ),
        ("arrival-listened-for", Event::ListenedFor { url: secret("https://a.test/"), dialect: "v1".into() }),
        ("arrival-told", Event::Told { listener: 2, outcome: TellOutcome::Taken }),
        (
            "arrival-not-told",
            Event::Told { listener: 2, outcome: TellOutcome::NotTaken { why: "HTTP 500".into() } },
        ),
    ]
    .map(|(name, event)| (name, Written::Arrival(arrival(event))))
    .into();
    cases.push(("arrival-called-back-answered", Written::Arrival(called_back(7))));
    cases
}
