//! How an order is shown: in full to whoever placed it, and in short, without its answer, in lists and live events.

use super::moment::{decimal, rfc3339};
use crate::OrderId;
use quittance_engine::Outcome;
use quittance_lifecycle::{Answer, DeadCause, FailCause, Fault, Order, Origin, Phase, Timestamp};
use serde::Serialize;
use std::collections::BTreeMap;
use utoipa::ToSchema;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub(super) enum Status {
    /// On its way.
    Pending,
    Solved,
    /// It will not be solved, and the error says why.
    Failed,
    /// A dead letter: a person must look.
    Dead,
    /// There was an answer, and it has too little life left.
    Expired,
    Cancelled,
}

/// Where this placement's answer comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub(super) enum Source {
    /// Bought for this order.
    Api,
    /// The same order was in flight.
    Joined,
    /// The same order had an answer that may be shared.
    Cached,
    /// It stood on the shelf: kept there by a pool, or nobody needed it any more.
    Stock,
    /// The same Idempotency-Key had it.
    Replayed,
}

impl Source {
    /// Whoever comes with an id is told whether it was bought or taken from the stock.
    pub(super) fn by(id: OrderId, order: &Order) -> Self {
        if id.is_from_stock() || order.is_supplied() { Self::Stock } else { Self::Api }
    }

    /// What this placement was told, unless the shelf has served it since.
    pub(super) fn of(origin: Origin, order: &Order) -> Self {
        match origin {
            Origin::Api if order.is_supplied() => Self::Stock,
            Origin::Api => Self::Api,
            Origin::Joined => Self::Joined,
            Origin::Cached => Self::Cached,
            Origin::Stock => Self::Stock,
            Origin::Replayed => Self::Replayed,
        }
    }
}

#[derive(Serialize, ToSchema)]
pub(super) struct ShownAnswer {
    text: String,
    /// The text as a document, if it is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    json: Option<serde_json::Value>,
    /// What came along with it, such as the user agent that it is bound to.
    extras: BTreeMap<String, String>,
    /// Which attempt brought it.
    attempt: u32,
}

#[derive(Clone, Debug, Serialize, ToSchema)]
pub(super) struct Trouble {
    /// `refused`, `cancelled`, `retries_spent`, `deadline`, `doubt`, `answer_expired` or `taken_by_another`.
    #[schema(pattern = "^[a-z_]+$")]
    code: &'static str,
    message: String,
    /// The provider's own word for it.
    #[serde(skip_serializing_if = "Option::is_none")]
    provider_code: Option<String>,
}

/// An order without its answer.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub(super) struct OrderInShort {
    #[schema(pattern = "^[1-9][0-9]{0,15}$", example = "4503599627370496")]
    pub(super) id: String,
    /// Its name in the store and in the logs.
    #[schema(pattern = "^[0-9a-f]{64}$")]
    pub(super) key: String,
    pub(super) kind: String,
    /// How far it has come: `queued`, `submitting`, `solving`, `unsure`, `solved`, `taken`, `spoiled`, `failed` or `dead`.
    pub(super) phase: &'static str,
    pub(super) status: Status,
    /// How often it was submitted.
    pub(super) attempts: u32,
    #[schema(format = DateTime)]
    pub(super) created_at: String,
    #[schema(format = DateTime)]
    pub(super) deadline_at: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) error: Option<Trouble>,
}

/// An order as its caller sees it.
#[derive(Serialize, ToSchema)]
pub(super) struct OrderInFull {
    #[serde(flatten)]
    pub(super) short: OrderInShort,
    origin: Source,
    #[serde(skip_serializing_if = "Option::is_none")]
    answer: Option<ShownAnswer>,
    /// When the answer is worth nothing any more; absent if it never is.
    #[schema(format = DateTime)]
    #[serde(skip_serializing_if = "Option::is_none")]
    expires_at: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    expires_in_ms: Option<u64>,
    /// What the answer cost, in `currency`, also when it has expired; of an order without an answer, what its attempts cost.
    /// `null` if that is not known, and while the order is pending.
    #[schema(pattern = "^[0-9]+(\\.[0-9]{1,6})?$", example = "0.00299")]
    cost: Option<String>,
    cost_micros: Option<u64>,
    /// How many prices are missing from `cost`: something was charged, or may have been, at a price that is not known.
    unpriced: u64,
    /// What the cost is in.
    #[schema(pattern = "^[A-Z]{3}$", example = "USD")]
    currency: String,
}

/// A change of an order, for whoever watches many.
#[derive(Serialize, ToSchema)]
pub(super) struct Change {
    id: String,
    kind: String,
    phase: &'static str,
    status: Status,
    #[schema(format = DateTime)]
    at: String,
}

fn refused(fault: &Fault) -> Trouble {
    Trouble { code: "refused", message: fault.to_string(), provider_code: Some(fault.code.clone()) }
}

fn trouble(code: &'static str, message: impl Into<String>) -> Trouble {
    Trouble { code, message: message.into(), provider_code: None }
}

fn failed(cause: &FailCause) -> (Status, Option<Trouble>) {
    match cause {
        FailCause::Refused(fault) => (Status::Failed, Some(refused(fault))),
        FailCause::Cancelled => (Status::Cancelled, Some(trouble("cancelled", "nobody wants it any more"))),
    }
}

fn dead(cause: &DeadCause) -> (Status, Option<Trouble>) {
    let trouble = match cause {
        DeadCause::Spent(fault) => {
            Trouble { provider_code: Some(fault.code.clone()), ..trouble("retries_spent", cause.to_string()) }
        }
        DeadCause::DoubtsSpent(_) => trouble("retries_spent", cause.to_string()),
        DeadCause::Deadline => trouble("deadline", cause.to_string()),
        DeadCause::NotTaken(fault) => {
            let provider_code = fault.as_ref().map(|fault| fault.code.clone());
            Trouble { provider_code, ..trouble("deadline", cause.to_string()) }
        }
        DeadCause::Doubt => trouble("doubt", cause.to_string()),
        DeadCause::StoreForgot => trouble("store_forgot", cause.to_string()),
    };
    (Status::Dead, Some(trouble))
}

fn expired() -> (Status, Option<Trouble>) {
    (Status::Expired, Some(trouble("answer_expired", "the answer has too little life left")))
}

/// Where an order stands, for whoever does not take its answer.
fn standing(order: &Order, now: Timestamp) -> (Status, Option<Trouble>) {
    let good = |answer: &Answer| answer.is_good_for(order.terms.min_life, now);
    match &order.phase {
        Phase::Taken { answer, .. } if good(answer) => (Status::Solved, None),
        Phase::Solved { answer, .. } if order.wanted && good(answer) => (Status::Solved, None),
        Phase::Solved { .. } if !order.wanted => failed(&FailCause::Cancelled),
        Phase::Solved { .. } | Phase::Taken { .. } | Phase::Spoiled { .. } => expired(),
        Phase::Failed { cause, .. } => failed(cause),
        Phase::Dead { cause, .. } => dead(cause),
        _ if order.wanted => (Status::Pending, None),
        _ => failed(&FailCause::Cancelled),
    }
}

impl OrderInShort {
    pub(super) fn of(order: &Order, now: Timestamp) -> Self {
        let (status, error) = standing(order, now);
        Self::new(OrderId::new(&order.key, false), order, status, error)
    }

    fn new(id: OrderId, order: &Order, status: Status, error: Option<Trouble>) -> Self {
        Self {
            id: id.to_string(),
            key: order.key.to_string(),
            kind: order.terms.kind.clone(),
            phase: order.phase.name(),
            status,
            attempts: order.last_attempt,
            created_at: rfc3339(order.placed),
            deadline_at: rfc3339(order.deadline),
            error,
        }
    }
}

impl OrderInFull {
    /// Nothing, if the record is gone.
    pub(super) fn of(
        id: OrderId,
        origin: Source,
        order: &Order,
        outcome: &Outcome,
        now: Timestamp,
        currency: &str,
    ) -> Option<Self> {
        let (status, error) = match outcome {
            Outcome::Answered(_) => (Status::Solved, None),
            Outcome::Expired => expired(),
            Outcome::TakenByAnother => {
                (Status::Failed, Some(trouble("taken_by_another", "the answer went to another order")))
            }
            Outcome::Failed(cause) => failed(cause),
            Outcome::Dead(cause) => dead(cause),
            Outcome::NotYet => (Status::Pending, None),
            Outcome::Forgotten => return None,
        };
        let short = OrderInShort::new(id, order, status, error);
        let cost = order.cost();
        let known = cost.and_then(|cost| cost.known());
        let without_answer = Self {
            short,
            origin,
            answer: None,
            expires_at: None,
            expires_in_ms: None,
            cost: known.map(decimal),
            cost_micros: known.map(|cost| cost.0),
            unpriced: cost.map_or(0, |cost| cost.unpriced),
            currency: order.terms.currency(currency).to_owned(),
        };
        let Outcome::Answered(answer) = outcome else { return Some(without_answer) };
        Some(Self {
            answer: Some(ShownAnswer {
                text: answer.goods.text.clone(),
                json: answer.goods.is_json.then(|| serde_json::from_str(&answer.goods.text).ok()).flatten(),
                extras: answer.goods.extras.clone(),
                attempt: answer.attempt,
            }),
            expires_at: answer.expires.map(rfc3339),
            expires_in_ms: answer.remaining_life(now).map(quittance_lifecycle::time::millis),
            ..without_answer
        })
    }

    pub(super) fn is_pending(&self) -> bool {
        self.short.status == Status::Pending
    }
}

impl Change {
    pub(super) fn of(order: &Order, now: Timestamp) -> Self {
        let at = order.story.entries.last().map_or(order.placed, |entry| entry.at);
        Self {
            id: OrderId::new(&order.key, false).to_string(),
            kind: order.terms.kind.clone(),
            phase: order.phase.name(),
            status: standing(order, now).0,
            at: rfc3339(at),
        }
    }
}
