//! How the life of an order reads as spans: the order, in it each attempt, in that the call to the provider, and beside it
//! whoever placed it and whoever was given the answer. Names of spans follow from the order's key, so a node that tells the
//! same once more tells it under the same names.

use crate::{Span, SpanKind, TraceParent};
use quittance_lifecycle::{Beat, Entry, Order, Phase, Timestamp, Via};

/// What tells the spans of one order apart.
#[derive(Clone, Copy)]
enum Role {
    Order { life: u32 },
    Attempt { number: u32 },
    Call { number: u32 },
    HandOut { nonce: u64 },
}

/// Whether an order has just come to something that a trace should tell.
#[must_use]
pub fn is_worth_telling(order: &Order) -> bool {
    let mut beats = order.story.entries.iter().rev().map(|entry| &entry.beat);
    let has_ended = matches!(
        beats.next(),
        Some(
            Beat::Solved { .. }
                | Beat::Supplied { .. }
                | Beat::Failed
                | Beat::Buried { .. }
                | Beat::Cancelled
        )
    );
    // A dead letter that is dropped was told when it died.
    let mut this_life = beats.take_while(|beat| !matches!(beat, Beat::Placed { .. } | Beat::Replayed));
    !order.phase.is_open() && has_ended && !this_life.any(|beat| matches!(beat, Beat::Buried { .. }))
}

/// Under whose name it goes, and below what: what its caller said, or else its own.
fn place_of(order: &Order) -> (TraceParent, Option<[u8; 8]>) {
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
        Role::Call { number } => u64::from(number) << 3 | 3,
        Role::HandOut { nonce } => mixed(nonce) << 3 | 4,
    };
    mixed(u64::from_le_bytes(half) ^ mixed(salt)).max(1).to_le_bytes()
}

/// One bit changed changes half of them (the finaliser of splitmix64).
const fn mixed(n: u64) -> u64 {
    let n = (n ^ (n >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let n = (n ^ (n >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    n ^ (n >> 31)
}

fn about(order: &Order) -> Vec<(&'static str, String)> {
    let terms = &order.terms;
    let all = [
        ("quittance.order", order.key.to_string()),
        ("quittance.kind", terms.kind.clone()),
        ("quittance.tenant", terms.tenant.clone()),
        ("quittance.site", terms.site.clone()),
        ("quittance.provider", terms.provider.clone()),
        ("quittance.life", order.life.to_string()),
    ];
    all.into_iter().filter(|(_, value)| !value.is_empty()).collect()
}

/// The beats of the life that the order is in, or was in last.
fn last_life(order: &Order) -> &[Entry] {
    let entries = &order.story.entries;
    let begins = |entry: &Entry| matches!(entry.beat, Beat::Placed { .. } | Beat::Replayed);
    let first = entries.iter().rposition(begins).unwrap_or(0);
    &entries[first..]
}

/// The spans of the life that has just ended; none, if whoever placed it wants none.
#[must_use]
pub fn spans_of(order: &Order) -> Vec<Span> {
    let (place, parent) = place_of(order);
    let entries = last_life(order);
    let (Some(first), Some(last)) = (entries.first(), entries.last()) else { return Vec::new() };
    if !place.is_sampled {
        return Vec::new();
    }
    let error = match &order.phase {
        Phase::Failed { .. } | Phase::Dead { .. } => Some(last.to_string()),
        _ => None,
    };
    let whole = Span {
        trace: place.trace,
        id: id_of(order, Role::Order { life: order.life }),
        parent,
        name: format!("order {}", order.terms.kind),
        kind: SpanKind::Internal,
        start: first.at,
        end: last.at,
        attributes: about(order),
        events: entries.iter().map(|entry| (entry.at, entry.to_string())).collect(),
        error,
    };
    let attempts = entries.iter().enumerate().filter_map(|(n, entry)| match entry.beat {
        Beat::Submitted { attempt } => Some((attempt, &entries[n..])),
        _ => None,
    });
    let attempts = attempts.flat_map(|(number, rest)| spans_of_attempt(order, &whole, number, rest));
    let attempts: Vec<Span> = attempts.collect();
    std::iter::once(whole).chain(attempts).collect()
}

/// The attempt, and the call that it was made with. `rest` begins with the beat of its submit.
fn spans_of_attempt(order: &Order, whole: &Span, number: u32, rest: &[Entry]) -> [Span; 2] {
    let is_of_it = |entry: &&Entry| attempt_of(&entry.beat) == Some(number);
    let start = rest[0].at;
    let answered = rest.iter().skip(1).find(is_of_it);
    let ends = |entry: &&Entry| {
        let is_end = matches!(
            entry.beat,
            Beat::Solved { .. }
                | Beat::Faulted { .. }
                | Beat::GaveUp { .. }
                | Beat::TooOld { .. }
                | Beat::CameLate { .. }
        );
        is_end && is_of_it(entry)
    };
    let end = rest.iter().find(ends);
    let attempt = Span {
        id: id_of(order, Role::Attempt { number }),
        parent: Some(whole.id),
        name: format!("attempt {number}"),
        kind: SpanKind::Internal,
        start,
        end: end.map_or(whole.end, |entry| entry.at),
        attributes: task_of(order, number).into_iter().collect(),
        events: Vec::new(),
        error: end.and_then(trouble),
        ..whole.clone()
    };
    let call = Span {
        id: id_of(order, Role::Call { number }),
        parent: Some(attempt.id),
        name: "submit".into(),
        kind: SpanKind::Client,
        start,
        end: answered.map_or(start, |entry| entry.at),
        attributes: vec![("quittance.provider", order.terms.provider.clone())],
        events: Vec::new(),
        error: answered.and_then(|entry| match entry.beat {
            Beat::Solved { via: Via::Submit, .. } | Beat::Accepted { .. } => None,
            _ => trouble(entry),
        }),
        ..whole.clone()
    };
    [attempt, call]
}

fn task_of(order: &Order, number: u32) -> Option<(&'static str, String)> {
    let attempt = order.attempt(number)?;
    attempt.task.as_ref().map(|task| ("quittance.task", task.clone()))
}

const fn attempt_of(beat: &Beat) -> Option<u32> {
    match beat {
        Beat::Submitted { attempt }
        | Beat::Accepted { attempt, .. }
        | Beat::Doubted { attempt, .. }
        | Beat::GaveUp { attempt }
        | Beat::Faulted { attempt, .. }
        | Beat::Solved { attempt, .. }
        | Beat::CameLate { attempt }
        | Beat::TooOld { attempt } => Some(*attempt),
        _ => None,
    }
}

fn trouble(entry: &Entry) -> Option<String> {
    match entry.beat {
        Beat::Faulted { .. } | Beat::Doubted { .. } | Beat::GaveUp { .. } | Beat::TooOld { .. } => {
            Some(entry.to_string())
        }
        _ => None,
    }
}

/// A placement over HTTP, which took from `start` to `end`. What the order's own trace is to stand below is this span, so its
/// name is drawn before the order is placed.
#[must_use]
pub fn placed(
    caller: TraceParent,
    id: [u8; 8],
    kind: &str,
    outcome: Result<&Order, &str>,
    (start, end): (Timestamp, Timestamp),
) -> Span {
    let attributes = match outcome {
        Ok(order) => about(order),
        Err(_) => vec![("quittance.kind", kind.to_owned())],
    };
    Span {
        trace: caller.trace,
        id,
        parent: Some(caller.span).filter(|span| *span != [0; 8]),
        name: format!("place {kind}"),
        kind: SpanKind::Server,
        start,
        end,
        attributes,
        events: Vec::new(),
        error: outcome.err().map(str::to_owned),
    }
}

/// Somebody was given the answer, after he had waited since `start`; `nonce` tells apart who asks again.
#[must_use]
pub fn handed_out(order: &Order, start: Timestamp, end: Timestamp, nonce: u64) -> Option<Span> {
    let (place, _) = place_of(order);
    place.is_sampled.then(|| Span {
        trace: place.trace,
        id: id_of(order, Role::HandOut { nonce }),
        parent: Some(id_of(order, Role::Order { life: order.life })),
        name: "hand out".into(),
        kind: SpanKind::Server,
        start,
        end,
        attributes: about(order),
        events: Vec::new(),
        error: None,
    })
}
