//! The views of an order: in full for the caller that placed it, and in short, without its answer, for lists and live
//! events.

use super::decimal;
use crate::OrderId;
use quittance_engine::Outcome;
use quittance_lifecycle::{Answer, DeadCause, FailCause, Fault, Order, Origin, Phase, Timestamp};
use quittance_ports::moment::rfc3339;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use utoipa::ToSchema;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum Status {
    /// In progress.
    Pending,
    Solved,
    /// The order failed; the error says why.
    Failed,
    /// A dead letter: it needs a person.
    Dead,
    /// The answer has expired or has too little life left.
    Expired,
    Cancelled,
}

/// Source of the answer of this placement.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum Source {
    /// Bought for this order.
    Api,
    /// Joined an equal order in flight.
    Joined,
    /// Shared from an equal order that was solved.
    Cached,
    /// Taken from the stock: bought by a pool, or left over from another order.
    Stock,
    /// Repeated for the same Idempotency-Key.
    Replayed,
}

impl Source {
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Api => "api",
            Self::Joined => "joined",
            Self::Cached => "cached",
            Self::Stock => "stock",
            Self::Replayed => "replayed",
        }
    }

    /// The source for a request by id: bought, or taken from the stock.
    pub(crate) fn by(id: OrderId, order: &Order) -> Self {
        if id.is_from_stock() || order.is_from_stock() { Self::Stock } else { Self::Api }
    }

    /// The source for a placement, unless the stock has served it since.
    pub(super) fn of(origin: Origin, order: &Order) -> Self {
        match origin {
            Origin::Api if order.is_from_stock() => Self::Stock,
            Origin::Api => Self::Api,
            Origin::Joined => Self::Joined,
            Origin::Cached => Self::Cached,
            Origin::Stock => Self::Stock,
            Origin::Replayed => Self::Replayed,
        }
    }
}

#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct ShownAnswer {
    pub text: String,
    /// The text as JSON, if it is JSON.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub json: Option<serde_json::Value>,
    /// Additional values, such as the user agent that the answer is bound to.
    pub extras: BTreeMap<String, String>,
    /// Number of the attempt that got the answer.
    pub attempt: u32,
}

#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct ErrorView {
    /// `refused`, `cancelled`, `retries_spent`, `deadline`, `too_late`, `in_doubt`, `budget_spent`, `answer_expired` or `claimed_by_another`.
    #[schema(pattern = "^[a-z_]+$")]
    pub code: String,
    pub message: String,
    /// The provider's own error code.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub provider_code: Option<String>,
}

/// An order without its answer.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct OrderInShort {
    #[schema(pattern = "^[1-9][0-9]{0,15}$", example = "4503599627370496")]
    pub id: String,
    /// Key of the order in the store and in the logs.
    #[schema(pattern = "^[0-9a-f]{64}$")]
    pub key: String,
    pub kind: String,
    /// `queued`, `submitting`, `solving`, `in_doubt`, `solved`, `claimed`, `expired`, `failed` or `dead`.
    pub phase: String,
    pub status: Status,
    /// Number of attempts.
    pub attempts: u32,
    #[schema(format = DateTime)]
    pub created_at: String,
    #[schema(format = DateTime)]
    pub deadline_at: String,
    /// Which placements are this order: `keyed`, those with its idempotency key; `shared`, equal ones; `exclusive`, no other.
    pub reuse: String,
    /// `interactive`, `normal` or `bulk`: how urgent the order is among the orders of its tenant.
    pub priority: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<ErrorView>,
}

/// An order as its caller sees it.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct OrderInFull {
    #[serde(flatten)]
    pub short: OrderInShort,
    pub origin: Source,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub answer: Option<ShownAnswer>,
    /// When the answer expires; absent if it does not.
    #[schema(format = DateTime)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expires_in_ms: Option<u64>,
    /// Cost of the answer in `currency`, also after it has expired; without an answer, the cost of the attempts.
    /// `null` if it is not known, and while the order is pending.
    #[schema(pattern = "^[0-9]+(\\.[0-9]{1,6})?$", example = "0.00299")]
    pub cost: Option<String>,
    pub cost_micros: Option<u64>,
    /// Number of charges or possible charges at a price that is not known; they are not in `cost`.
    pub unpriced: u64,
    /// Currency of the cost.
    #[schema(pattern = "^[A-Z]{3}$", example = "USD")]
    pub currency: String,
}

/// A change of an order, in a stream of many orders.
#[derive(Serialize, ToSchema)]
pub(super) struct StreamedChange {
    id: String,
    kind: String,
    phase: &'static str,
    status: Status,
    #[schema(format = DateTime)]
    at: String,
}

fn rejected(fault: &Fault) -> ErrorView {
    ErrorView {
        code: "rejected".to_owned(),
        message: fault.to_string(),
        provider_code: Some(fault.code.clone()),
    }
}

fn error(code: &str, message: impl Into<String>) -> ErrorView {
    ErrorView { code: code.to_owned(), message: message.into(), provider_code: None }
}

fn failed(cause: &FailCause) -> (Status, Option<ErrorView>) {
    match cause {
        FailCause::Rejected(fault) => (Status::Failed, Some(rejected(fault))),
        FailCause::Cancelled => (Status::Cancelled, Some(error("cancelled", "it was cancelled"))),
    }
}

fn dead(cause: &DeadCause) -> (Status, Option<ErrorView>) {
    let view = match cause {
        DeadCause::Spent(fault) => {
            ErrorView { provider_code: Some(fault.code.clone()), ..error("retries_spent", cause.to_string()) }
        }
        DeadCause::DoubtsSpent(_) => error("retries_spent", cause.to_string()),
        DeadCause::Deadline => error("deadline", cause.to_string()),
        DeadCause::NotTaken(fault) => {
            let provider_code = fault.as_ref().map(|fault| fault.code.clone());
            ErrorView { provider_code, ..error("deadline", cause.to_string()) }
        }
        DeadCause::TooLate { .. } => error("too_late", cause.to_string()),
        DeadCause::NoBudget(_) => error("budget_spent", cause.to_string()),
        DeadCause::Doubt => error("in_doubt", cause.to_string()),
        DeadCause::StoreForgot => error("store_forgot", cause.to_string()),
    };
    (Status::Dead, Some(view))
}

fn expired() -> (Status, Option<ErrorView>) {
    (Status::Expired, Some(error("answer_expired", "the answer has too little life left")))
}

/// The status of an order for a reader that does not take its answer.
fn class(order: &Order, now: Timestamp) -> (Status, Option<ErrorView>) {
    let good = |answer: &Answer| answer.is_good_for(order.terms.min_life, now);
    match &order.phase {
        Phase::Claimed { answer, .. } if good(answer) => (Status::Solved, None),
        Phase::Solved { answer, .. } if order.wanted && good(answer) => (Status::Solved, None),
        Phase::Solved { .. } if !order.wanted => failed(&FailCause::Cancelled),
        Phase::Solved { .. } | Phase::Claimed { .. } | Phase::Expired { .. } => expired(),
        Phase::Failed { cause, .. } => failed(cause),
        Phase::Dead { cause, .. } => dead(cause),
        _ if order.wanted => (Status::Pending, None),
        _ => failed(&FailCause::Cancelled),
    }
}

impl OrderInShort {
    #[must_use]
    pub fn of(order: &Order, now: Timestamp) -> Self {
        let (status, error) = class(order, now);
        Self::new(OrderId::new(&order.key, false), order, status, error)
    }

    fn new(id: OrderId, order: &Order, status: Status, error: Option<ErrorView>) -> Self {
        Self {
            id: id.to_string(),
            key: order.key.to_string(),
            kind: order.terms.kind.clone(),
            phase: order.phase.name().to_owned(),
            status,
            attempts: order.last_attempt,
            created_at: rfc3339(order.placed),
            deadline_at: rfc3339(order.deadline),
            reuse: if order.terms.keyed { "keyed" } else { order.terms.reuse.name() }.to_owned(),
            priority: order.priority.name().to_owned(),
            error,
        }
    }
}

impl OrderInFull {
    /// The view of an order, or `None` if its record is gone.
    pub(crate) fn of(
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
                (Status::Failed, Some(error("claimed_by_another", "the answer went to another order")))
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
            currency: order.currency(currency).to_owned(),
        };
        let Outcome::Answered(answer) = outcome else { return Some(without_answer) };
        Some(Self {
            answer: Some(ShownAnswer {
                text: answer.payload.text.clone(),
                json: answer
                    .payload
                    .is_json
                    .then(|| serde_json::from_str(&answer.payload.text).ok())
                    .flatten(),
                extras: answer.payload.extras.clone(),
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

impl StreamedChange {
    pub(super) fn of(order: &Order, now: Timestamp) -> Self {
        let at = order.timeline.entries.last().map_or(order.placed, |entry| entry.at);
        Self {
            id: OrderId::new(&order.key, false).to_string(),
            kind: order.terms.kind.clone(),
            phase: order.phase.name(),
            status: class(order, now).0,
            at: rfc3339(at),
        }
    }
}
