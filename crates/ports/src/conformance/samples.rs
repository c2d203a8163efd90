//! Orders for tests of a store, made by the same functions as any other: checked, placed, and advanced by events. The
//! kinds and the moments are made up.

use quittance_lifecycle::{
    CallbackResult, Counters, Decision, DeliveryState, Draft, Event, Evidence, Fault, FaultClass, Field,
    HostRules, Identity, Key, KeySettings, Kind, Money, Offer, Order, Pace, Payload, Placement, Policy,
    PollOutcome, ProviderAnswer, Reuse, Shape, SubmitOutcome, SubmitRoute, Target, Terms, Timestamp, Value,
    Webhook, place, transition,
};
use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

/// The beginning of the year 2100, and of a day. This is so late that no store removes expired records by the real
/// clock during a test.
pub const START: Timestamp = Timestamp::from_millis(4_102_444_800_000);

/// The life of the answer to a riddle.
pub const LIFE: Duration = Duration::from_secs(120);

pub const POLICY: Policy = Policy { keep: Duration::from_secs(3600), ..Policy::DEFAULT };

static FIELDS: [Field; 2] = [
    Field {
        name: "page",
        shape: Shape::Text,
        required: true,
        substitutes: &[],
        identifies: true,
        default: None,
    },
    Field {
        name: "picture",
        shape: Shape::File { bytes_min: 1, bytes_max: 2 * 1024 * 1024 },
        required: false,
        substitutes: &[],
        identifies: false,
        default: None,
    },
];

/// A kind whose answers live for a while and can be used once.
#[must_use]
pub fn riddle() -> Kind {
    Kind {
        name: Cow::Borrowed("riddle"),
        fields: &FIELDS,
        identity: Identity::Fields,
        immaterial: &[],
        address_fields: &[],
        bound_to_address: false,
        life: Some(LIFE),
        margin: Duration::from_secs(40),
        single_use: true,
        hosts: HostRules::NONE,
        pace: Pace {
            p50: Duration::from_secs(10),
            p95: Duration::from_secs(30),
            p99: Duration::from_secs(60),
        },
    }
}

/// A kind whose answers live for ever and can be shared.
#[must_use]
pub fn scribble() -> Kind {
    Kind { name: Cow::Borrowed("scribble"), life: None, single_use: false, ..riddle() }
}

/// This many seconds after the start.
#[must_use]
pub fn after(seconds: u64) -> Timestamp {
    START + Duration::from_secs(seconds)
}

/// A sample order, the time at which its last step was made, and what that step adds to the usage.
#[derive(Clone, Debug)]
pub struct SampleOrder {
    pub order: Arc<Order>,
    pub counters: Counters,
    pub now: Timestamp,
    pub policy: Policy,
}

impl SampleOrder {
    /// Places the order of a draft; `name` is its idempotency key.
    #[must_use]
    pub fn placed(name: &str, draft: Draft, kind: &Kind, now: Timestamp) -> Self {
        Self::placed_under(POLICY, name, draft, kind, now)
    }

    #[must_use]
    pub fn placed_under(policy: Policy, name: &str, draft: Draft, kind: &Kind, now: Timestamp) -> Self {
        let draft = Draft { idempotency_key: Some(name.into()), ..draft };
        let (key, mut terms) = draft
            .check(kind, KeySettings::default(), &policy, now, 0)
            .expect("samples ask for nothing wrong");
        terms.account = "provider USD".into();
        match place(None, None, key, &Arc::new(terms), now, &policy) {
            Placement::Commit { advance, .. } => {
                Self { order: Arc::new(advance.next), counters: advance.counters, now, policy }
            }
            other => panic!("the first placement of an order commits it: {other:?}"),
        }
    }

    #[must_use]
    pub fn at(self, now: Timestamp) -> Self {
        Self { now, ..self }
    }

    #[must_use]
    pub fn under(self, policy: Policy) -> Self {
        Self { policy, ..self }
    }

    /// The order after this event, which must not be ignored.
    #[must_use]
    pub fn then(self, event: Event) -> Self {
        match transition(&self.order, event, self.now, &self.policy) {
            Decision::Advance(advance) => {
                Self { order: Arc::new(advance.next), counters: advance.counters, ..self }
            }
            other => panic!("a sample in phase {} cannot take this: {other:?}", self.order.phase.name()),
        }
    }
}

/// The next version of an order from a store, after this event.
#[must_use]
pub fn next(order: &Order, event: Event, now: Timestamp) -> Order {
    match transition(order, event, now, &POLICY) {
        Decision::Advance(advance) => advance.next,
        other => panic!("an order in phase {} cannot take this: {other:?}", order.phase.name()),
    }
}

#[must_use]
pub const fn woken() -> Event {
    Event::Woken { stamp: 7, route: SubmitRoute::To(Offer::OF_TERMS) }
}

#[must_use]
pub const fn submitted(attempt: u32, outcome: SubmitOutcome) -> Event {
    Event::Submitted { attempt, outcome }
}

#[must_use]
pub fn accepted(attempt: u32) -> Event {
    submitted(attempt, SubmitOutcome::Accepted { task: format!("task-{attempt}") })
}

#[must_use]
pub fn refused(attempt: u32, class: FaultClass) -> Event {
    submitted(attempt, SubmitOutcome::Rejected(Fault::new(class, "ERROR_\"QUOTED\"_\u{1F600}")))
}

/// This order, with a webhook that was never delivered.
#[must_use]
pub fn webhooks_failed(order: &Order, at: Timestamp) -> Order {
    let state = DeliveryState::Dead { at, why: "no answer".into() };
    let caller = Webhook { number: 1, url: "http://127.0.0.1/webhook".into(), dialect: "v1".into(), state };
    Order { webhooks: vec![caller], last_webhook: 1, ..order.clone() }
}

#[must_use]
pub fn delivery() -> ProviderAnswer {
    let extras = [("agent".into(), "curl/8".into()), ("\u{e9}\n".into(), String::new())];
    let text = "{\"token\": \"\\u0000 'x' \u{0} \u{1F511}\"}".into();
    ProviderAnswer {
        payload: Payload { text, is_json: true, extras: extras.into() },
        took_at_least: None,
        cost: Some(Money(2990)),
    }
}

/// A request with all that makes records hard to write: quotes, a zero byte, an empty text, raw bytes.
#[must_use]
pub fn draft(page: &str) -> Draft {
    Draft { reuse: Some(Reuse::Shared), ..Draft::new("O'Hara & S\u{f8}n") }
        .with("page", page)
        .with("words", "a \"quoted\" \\ line\r\n\u{0} \u{4f60}\u{597d}")
        .with("nothing", "")
        .with("raw", Value::Bytes((0..=255).collect()))
}

/// This order with another tenant.
#[must_use]
pub fn of_tenant(order: &Order, tenant: &str) -> Arc<Order> {
    let terms = Terms { tenant: tenant.into(), ..(*order.terms).clone() };
    Arc::new(Order { terms: Arc::new(terms), ..order.clone() })
}

/// A queued order that is due at this moment.
#[must_use]
pub fn queued(name: &str, due: Timestamp) -> SampleOrder {
    SampleOrder::placed(name, draft("https://example.com/login"), &riddle(), due)
}

#[must_use]
pub fn submitting(name: &str, now: Timestamp) -> SampleOrder {
    queued(name, now).then(woken())
}

#[must_use]
pub fn solving(name: &str, now: Timestamp) -> SampleOrder {
    submitting(name, now).then(accepted(1))
}

#[must_use]
pub fn in_doubt(name: &str, now: Timestamp) -> SampleOrder {
    submitting(name, now).then(submitted(1, SubmitOutcome::InDoubt(Evidence::default())))
}

/// A solved order, for the caller that placed it.
#[must_use]
pub fn solved(name: &str, now: Timestamp) -> SampleOrder {
    let outcome = PollOutcome::Answered(delivery());
    solving(name, now).then(Event::Polled { attempt: 1, asked: now, outcome })
}

/// A solved order in the stock of its page, free to be taken until it expires.
#[must_use]
pub fn stocked(name: &str, page: &str, expires: Timestamp) -> SampleOrder {
    let now = Timestamp::from_millis(expires.as_millis() - 120_000);
    SampleOrder::placed(name, draft(page), &riddle(), now)
        .then(woken())
        .then(Event::Cancelled)
        .then(submitted(1, SubmitOutcome::Answered(delivery())))
}

/// The target in whose stock [`stocked`] puts its order.
#[must_use]
pub fn target(page: &str) -> Target {
    SampleOrder::placed("any", draft(page), &riddle(), START).order.terms.target
}

#[must_use]
pub fn taken(sample: SampleOrder) -> SampleOrder {
    sample.then(Event::Claimed { by: Key([9; 32]), min_life: Duration::ZERO })
}

#[must_use]
pub fn expired(name: &str, expires: Timestamp) -> SampleOrder {
    stocked(name, "https://example.com/login", expires).at(expires).then(woken())
}

/// An order that failed at this moment. It may be removed an hour later.
#[must_use]
pub fn failed(name: &str, now: Timestamp) -> SampleOrder {
    submitting(name, now).then(refused(1, FaultClass::Caller))
}

/// A dead letter since its deadline.
#[must_use]
pub fn dead(name: &str, placed: Timestamp) -> SampleOrder {
    let sample = queued(name, placed);
    let deadline = sample.order.deadline;
    sample.at(deadline).then(woken())
}

/// Orders that together have every phase, and every state of an attempt.
#[must_use]
pub fn every_phase() -> Vec<SampleOrder> {
    let twice = |name| {
        let doubted = in_doubt(name, START);
        let until = doubted.order.due().expect("a doubt has a timer");
        doubted.at(until).then(woken())
    };
    let trailing = solving("trailing", START);
    let deadline = trailing.order.deadline;
    let patient = Policy { callbacks: true, ..POLICY };
    let late = Event::CalledBack {
        attempt: 1,
        task: None,
        word: CallbackResult::Answered(delivery()),
        receipt: None,
    };
    vec![
        queued("queued", START),
        queued("held", START).then(woken()).then(refused(1, FaultClass::AccountBlocked)),
        queued("later", START).then(woken()).then(refused(1, FaultClass::Busy)),
        submitting("submitting", START),
        solving("solving", START),
        in_doubt("in-doubt", START),
        submitting("patient", START)
            .under(patient)
            .then(submitted(1, SubmitOutcome::InDoubt(Evidence::default()))),
        solved("solved", START),
        SampleOrder::placed("for ever", draft("https://example.com/wall"), &scribble(), START)
            .then(woken())
            .then(submitted(1, SubmitOutcome::Answered(delivery()))),
        stocked("stocked", "https://example.com/login", after(120)),
        taken(stocked("taken", "https://example.com/login", after(120))),
        expired("expired", after(120)),
        failed("failed", START),
        queued("cancelled", START).then(Event::Cancelled),
        dead("dead", START),
        trailing.at(deadline).then(woken()),
        twice("twice"),
        twice("spare").then(submitted(2, SubmitOutcome::Answered(delivery()))).then(late),
    ]
}
