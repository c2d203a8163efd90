//! The life of an order as spans: the order, each attempt in it, and each provider call in the attempt. The placement
//! and the hand-out stand beside it. Span ids are derived from the order's key, so a span that is sent twice has the
//! same id.

use super::{Span, SpanKind, SpanName, TraceParent};
use quittance_lifecycle::provider_of;
use quittance_lifecycle::{
    DeliveryState, Order, Origin, Phase, TimelineEntry, TimelineEvent, Timestamp, Via,
};

/// How many characters of an external text are kept.
const TEXT_CHARS_MAX: usize = 200;

/// The spans of an order. Each has its own id.
#[derive(Clone, Copy)]
enum Role {
    Order { life: u32 },
    Attempt { number: u32 },
    Submit { number: u32 },
    Poll { number: u32 },
    HandOut { nonce: u64 },
    Call { webhook: u32 },
}

/// The spans that the last step of an order adds to its trace: the whole life when it has ended, or a webhook call. Other steps, and
/// orders whose caller does not sample, add none. `label` is the kind's name in span names.
#[must_use]
pub fn news_of(order: &Order, label: &str) -> Vec<Span> {
    let Some(last) = order.timeline.entries.last() else { return Vec::new() };
    // A webhook was called or added since: that writes the order again, without a new entry in its timeline.
    let moved_on = |state: &DeliveryState| matches!(state, DeliveryState::Owed { at, .. } if *at > last.at);
    let is_news = || {
        !order.phase.is_open()
            && !order.webhooks.iter().any(|webhook| moved_on(&webhook.state))
            && trace_of(order).0.is_sampled
    };
    match &last.event {
        TimelineEvent::Solved { .. }
        | TimelineEvent::ServedFromStock { .. }
        | TimelineEvent::Failed
        | TimelineEvent::MovedToDeadLetters { .. }
        | TimelineEvent::Cancelled
            if is_news() && !was_moved(last_life(order)) =>
        {
            life_of(order, label)
        }
        TimelineEvent::WebhookDelivered { webhook } | TimelineEvent::WebhookFailed { webhook, .. }
            if is_news() =>
        {
            vec![called(order, *webhook, last)]
        }
        _ => Vec::new(),
    }
}

/// Whether the order was a dead letter before. Then it was exported at that time.
fn was_moved(life: &[TimelineEntry]) -> bool {
    let before = &life[..life.len().saturating_sub(1)];
    before.iter().any(|entry| matches!(entry.event, TimelineEvent::MovedToDeadLetters { .. }))
}

/// The trace of an order, and the parent of its span, from the caller's `traceparent` or else from the order's key.
fn trace_of(order: &Order) -> (TraceParent, Option<[u8; 8]>) {
    match TraceParent::parse(&order.terms.trace) {
        Some(parent) => (parent, Some(parent.span)),
        None => {
            let mut trace = [0; 16];
            trace.copy_from_slice(&order.key.0[..16]);
            // Each life is a trace of its own.
            for (byte, other) in trace.iter_mut().zip(mixed(u64::from(order.life)).to_le_bytes()) {
                *byte ^= other;
            }
            (TraceParent { trace, span: [0; 8], is_sampled: true }, None)
        }
    }
}

fn id_of(order: &Order, role: Role) -> [u8; 8] {
    let mut half = [0; 8];
    half.copy_from_slice(&order.key.0[16..24]);
    let salt = match role {
        Role::Order { life } => u64::from(life) << 3 | 1,
        Role::Attempt { number } => u64::from(number) << 3 | 2,
        Role::Submit { number } => u64::from(number) << 3 | 3,
        Role::HandOut { nonce } => mixed(nonce) << 3 | 4,
        Role::Poll { number } => u64::from(number) << 3 | 5,
        Role::Call { webhook } => u64::from(webhook) << 3 | 6,
    };
    mixed(u64::from_le_bytes(half) ^ mixed(salt)).max(1).to_le_bytes()
}

/// Mixes bits: one changed bit changes half of them (the finaliser of splitmix64).
const fn mixed(n: u64) -> u64 {
    let n = (n ^ (n >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let n = (n ^ (n >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    n ^ (n >> 31)
}

/// Text from outside, cut to a useful length, with invisible characters escaped.
fn legible(text: &str) -> String {
    let mut cut = String::new();
    for c in text.chars().take(TEXT_CHARS_MAX) {
        match c {
            '"' | '\'' | '\\' => cut.push(c),
            _ => cut.extend(c.escape_debug()),
        }
    }
    cut
}

fn about(order: &Order) -> Vec<(&'static str, String)> {
    let terms = &order.terms;
    let all = [
        ("quittance.order", order.key.to_string()),
        ("quittance.kind", legible(&terms.kind)),
        ("quittance.tenant", legible(&terms.tenant)),
        ("quittance.site", legible(&terms.site)),
        ("quittance.provider", legible(provider_of(order.account()))),
        ("quittance.life", order.life.to_string()),
    ];
    all.into_iter().filter(|(_, value)| !value.is_empty()).collect()
}

/// The timeline entries of the current life of the order, or else of its last one.
fn last_life(order: &Order) -> &[TimelineEntry] {
    let entries = &order.timeline.entries;
    let begins = |entry: &TimelineEntry| {
        matches!(
            entry.event,
            TimelineEvent::Placed { .. }
                | TimelineEvent::Replayed
                | TimelineEvent::ReplayedAfterOutage { .. }
        )
    };
    let first = entries.iter().rposition(begins).unwrap_or(0);
    &entries[first..]
}

/// The ids of the span of the whole life.
fn name_of(order: &Order) -> SpanName {
    SpanName { trace: trace_of(order).0.trace, id: id_of(order, Role::Order { life: order.life }) }
}

/// The spans of the life that has just ended.
fn life_of(order: &Order, label: &str) -> Vec<Span> {
    let entries = last_life(order);
    let (Some(first), Some(last)) = (entries.first(), entries.last()) else { return Vec::new() };
    let error = match &order.phase {
        Phase::Failed { .. } | Phase::Dead { .. } => Some(last.to_string()),
        _ => None,
    };
    let SpanName { trace, id } = name_of(order);
    let whole = Span {
        trace,
        id,
        parent: trace_of(order).1,
        name: format!("order {label}"),
        kind: SpanKind::Internal,
        start: first.at,
        end: last.at,
        attributes: about(order),
        events: entries.iter().map(|entry| (entry.at, entry.to_string())).collect(),
        link: None,
        error,
    };
    let attempts = entries.iter().enumerate().filter_map(|(n, entry)| match entry.event {
        TimelineEvent::Submitted { attempt } => Some((attempt, &entries[n..])),
        _ => None,
    });
    let attempts = attempts.flat_map(|(number, rest)| spans_of_attempt(order, &whole, number, rest));
    let attempts: Vec<Span> = attempts.collect();
    std::iter::once(whole).chain(attempts).collect()
}

/// The spans of an attempt and of its calls. `rest` begins with the entry of its submit.
fn spans_of_attempt(order: &Order, whole: &Span, number: u32, rest: &[TimelineEntry]) -> Vec<Span> {
    let start = rest[0].at;
    let mut entries = rest.iter().skip(1).filter(|entry| attempt_of(&entry.event) == Some(number));
    let replied = entries.clone().next();
    // An attempt in doubt may have answered later: the last entry counts.
    let end = entries.clone().rfind(|entry| is_end(&entry.event));
    let provider = || {
        let attempt = order.attempt(number);
        let account = attempt.map_or_else(|| order.account(), |attempt| order.account_of(attempt));
        vec![("quittance.provider", legible(provider_of(account)))]
    };
    let task = order.attempt(number).and_then(|attempt| order.task_of(attempt));
    let attempt = Span {
        id: id_of(order, Role::Attempt { number }),
        parent: Some(whole.id),
        name: format!("attempt {number}"),
        start,
        end: end.map_or(whole.end, |entry| entry.at),
        attributes: task.map(|task| ("quittance.task", legible(task))).into_iter().collect(),
        events: Vec::new(),
        error: end.and_then(error_of),
        ..whole.clone()
    };
    let submit = Span {
        id: id_of(order, Role::Submit { number }),
        parent: Some(attempt.id),
        name: "submit".into(),
        kind: SpanKind::Client,
        end: replied.map_or(start, |entry| entry.at),
        attributes: provider(),
        error: replied.and_then(error_of),
        ..attempt.clone()
    };
    let accepted = entries.find(|entry| matches!(entry.event, TimelineEvent::Accepted { .. }));
    let polled = end.filter(|entry| matches!(entry.event, TimelineEvent::Solved { via: Via::Poll, .. }));
    // Polls without an answer are not on record; one span stands for all polls.
    let poll = polled.map(|solved| Span {
        id: id_of(order, Role::Poll { number }),
        name: "poll".into(),
        start: accepted.map_or(start, |entry| entry.at),
        end: solved.at,
        error: None,
        ..submit.clone()
    });
    [attempt, submit].into_iter().chain(poll).collect()
}

const fn attempt_of(event: &TimelineEvent) -> Option<u32> {
    match event {
        TimelineEvent::Submitted { attempt }
        | TimelineEvent::Accepted { attempt, .. }
        | TimelineEvent::InDoubt { attempt, .. }
        | TimelineEvent::GaveUp { attempt }
        | TimelineEvent::Hedged { attempt }
        | TimelineEvent::Faulted { attempt, .. }
        | TimelineEvent::LeftInDoubt { attempt, .. }
        | TimelineEvent::Solved { attempt, .. }
        | TimelineEvent::CameLate { attempt }
        | TimelineEvent::TooOld { attempt } => Some(*attempt),
        _ => None,
    }
}

const fn is_end(event: &TimelineEvent) -> bool {
    matches!(
        event,
        TimelineEvent::Solved { .. }
            | TimelineEvent::Faulted { .. }
            | TimelineEvent::GaveUp { .. }
            | TimelineEvent::TooOld { .. }
            | TimelineEvent::CameLate { .. }
    )
}

fn error_of(entry: &TimelineEntry) -> Option<String> {
    match entry.event {
        TimelineEvent::Faulted { .. }
        | TimelineEvent::LeftInDoubt { .. }
        | TimelineEvent::InDoubt { .. }
        | TimelineEvent::GaveUp { .. }
        | TimelineEvent::Hedged { .. }
        | TimelineEvent::TooOld { .. }
        | TimelineEvent::WebhookFailed { .. } => Some(entry.to_string()),
        _ => None,
    }
}

/// The span of a webhook call, delivered or failed, from the end of the order.
fn called(order: &Order, webhook: u32, call: &TimelineEntry) -> Span {
    let is_end = |entry: &&TimelineEntry| {
        !matches!(entry.event, TimelineEvent::WebhookDelivered { .. } | TimelineEvent::WebhookFailed { .. })
    };
    let since = last_life(order).iter().rfind(is_end).map_or(call.at, |entry| entry.at);
    Span {
        id: id_of(order, Role::Call { webhook }),
        kind: SpanKind::Client,
        error: error_of(call),
        ..hand_out(order, name_of(order), (since, call.at))
    }
}

/// A placement in progress: the caller's span, and the id of the placement's own span. The id is drawn before the
/// order is placed, because the order's span is below it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Placing {
    pub caller: TraceParent,
    pub id: [u8; 8],
    pub start: Timestamp,
}

impl Placing {
    /// The parent for the spans below the placement.
    #[must_use]
    pub const fn above(&self) -> TraceParent {
        TraceParent { span: self.id, ..self.caller }
    }
}

/// The span of a placement over HTTP. If it joined another order, it links to that order's span.
#[must_use]
pub fn placed(
    placing: &Placing,
    label: &str,
    outcome: Result<(&Order, Origin), &str>,
    end: Timestamp,
) -> Span {
    let Placing { caller, id, start } = *placing;
    let mut attributes = Vec::new();
    if let Ok((order, origin)) = outcome {
        attributes = about(order);
        attributes.push(("quittance.origin", origin.name().to_owned()));
    }
    let link =
        outcome.ok().filter(|(order, _)| trace_of(order).1 != Some(id)).map(|(order, _)| name_of(order));
    Span {
        trace: caller.trace,
        id,
        parent: Some(caller.span).filter(|span| *span != [0; 8]),
        name: format!("place {label}"),
        kind: SpanKind::Server,
        start,
        end,
        attributes,
        events: Vec::new(),
        link,
        error: outcome.err().map(legible),
    }
}

/// The span of a hand-out, for a caller that waited from the first moment of `took` to the second. `nonce` gives each
/// hand-out its own span. The span is below the placement `above`, or in the order's trace if there is none.
#[must_use]
pub fn handed_out(
    order: &Order,
    above: Option<TraceParent>,
    took: (Timestamp, Timestamp),
    nonce: u64,
) -> Option<Span> {
    let (own, parent) = trace_of(order);
    let is_sampled = above.map_or(own.is_sampled, |above| above.is_sampled);
    let span = match above.filter(|above| Some(above.span) != parent) {
        Some(TraceParent { trace, span, .. }) => {
            Span { link: Some(name_of(order)), ..hand_out(order, SpanName { trace, id: span }, took) }
        }
        None => hand_out(order, name_of(order), took),
    };
    is_sampled.then(|| Span { id: id_of(order, Role::HandOut { nonce }), ..span })
}

fn hand_out(order: &Order, above: SpanName, (start, end): (Timestamp, Timestamp)) -> Span {
    Span {
        trace: above.trace,
        id: [0; 8],
        parent: Some(above.id),
        name: "hand out".into(),
        kind: SpanKind::Server,
        start,
        end,
        attributes: about(order),
        events: Vec::new(),
        link: None,
        error: None,
    }
}
