//! The outcomes of an order for scripts: each reason has a stable code, and each code an exit code.

use crate::exit::Exit;
use quittance::lifecycle::time::millis;
use quittance::lifecycle::{FailCause, Refusal};
use quittance::{NoAnswer, PlaceError, SolveError, Solved, StoreError};
use serde_json::{Map, Value, json};

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

pub(crate) fn solved_json(solved: &Solved, currency: &str) -> Map<String, Value> {
    let answer = &solved.answer;
    let mut fields = Map::new();
    fields.insert("order".into(), json!(solved.order.to_string()));
    fields.insert("origin".into(), json!(solved.origin.name()));
    fields.insert("answer".into(), answer_json(solved));
    fields.insert("extras".into(), json!(answer.payload.extras));
    fields.insert("expires_ms".into(), json!(answer.expires.map(|at| at.as_millis())));
    fields.insert("expires_in_ms".into(), json!(solved.remaining_life.map(millis)));
    // `null`: the price is not known.
    fields.insert("cost_micros".into(), json!(answer.cost.map(|cost| cost.0)));
    fields.insert("currency".into(), json!(currency));
    fields.insert("attempt".into(), json!(answer.attempt));
    fields
}
