//! The outcomes of an order for scripts: each reason has a stable code, and each code an exit code.

use crate::exit::Exit;
use quittance::lifecycle::time::millis;
use quittance::lifecycle::{FailCause, Refusal};
use quittance::{NoAnswer, PlaceError, SolveError, Solved, StoreError};
use serde_json::{Value, json};

/// The stable name of a reason, and its exit code.
pub(crate) const fn code(error: &SolveError) -> (&'static str, Exit) {
    match error {
        SolveError::Place(PlaceError::UnknownKind { .. } | PlaceError::BadRequest(_)) => {
            ("bad_request", Exit::Usage)
        }
        SolveError::Place(PlaceError::NotAllowed(_)) => ("not_allowed", Exit::Usage),
        SolveError::Place(PlaceError::Refused(Refusal::OtherParameters)) => ("other_parameters", Exit::Usage),
        SolveError::Place(PlaceError::Refused(Refusal::HeldBack { .. })) => ("held_back", Exit::Bad),
        SolveError::Place(PlaceError::Refused(Refusal::Expired)) => ("key_expired", Exit::Bad),
        SolveError::Place(PlaceError::Refused(Refusal::TooShort { .. })) => ("too_late", Exit::Bad),
        SolveError::Place(PlaceError::Refused(Refusal::QueueTooLong { .. })) => ("queue_too_long", Exit::Bad),
        SolveError::Place(PlaceError::Refused(Refusal::NoBudget { .. })) => ("budget_spent", Exit::Bad),
        SolveError::Place(PlaceError::Refused(Refusal::NeedsAPerson)) => ("needs_a_person", Exit::Bad),
        SolveError::Place(PlaceError::Store(StoreError::Corrupt { .. })) => ("needs_a_person", Exit::Store),
        SolveError::Place(PlaceError::Store(_)) => ("store", Exit::Store),
        SolveError::NoAnswer(NoAnswer::Failed(FailCause::Rejected(_))) => ("rejected", Exit::Bad),
        SolveError::NoAnswer(NoAnswer::Failed(FailCause::Cancelled)) => ("cancelled", Exit::Bad),
        SolveError::NoAnswer(NoAnswer::Dead(..)) => ("dead", Exit::Bad),
        SolveError::NoAnswer(NoAnswer::Expired) => ("expired", Exit::Bad),
        SolveError::NoAnswer(NoAnswer::TakenByAnother) => ("claimed", Exit::Bad),
        SolveError::NoAnswer(NoAnswer::NotYet) => ("not_yet", Exit::Bad),
        SolveError::NoAnswer(NoAnswer::Forgotten) => ("forgotten", Exit::Bad),
    }
}

/// The answer. A JSON answer is passed on as JSON; should it not parse after all, as the text that it is.
pub(crate) fn answer_json(solved: &Solved) -> Value {
    let payload = &solved.answer.payload;
    let document = payload.is_json.then(|| serde_json::from_str(&payload.text).ok()).flatten();
    document.unwrap_or_else(|| json!(payload.text))
}

pub(crate) fn solved_json(solved: &Solved, currency: &str) -> Value {
    let answer = &solved.answer;
    json!({
        "order": solved.order.to_string(),
        "origin": solved.origin.name(),
        "answer": answer_json(solved),
        "extras": answer.payload.extras,
        "expires_ms": answer.expires.map(|at| at.as_millis()),
        "expires_in_ms": solved.remaining_life.map(millis),
        // `null`: the price is not known.
        "cost_micros": answer.cost.map(|cost| cost.0),
        "currency": currency,
        "attempt": answer.attempt,
    })
}
