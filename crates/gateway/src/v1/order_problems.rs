//! Errors of the order service, the engine and the store, as problems of the native API.

use super::orders::{LOOK_SOONEST, address};
use super::problem::{Code, Refused};
use crate::{Declined, NotSeen};
use quittance_engine::PlaceError;
use quittance_engine::targets::{NotAllowed, NotAllowedPart};
use quittance_lifecycle::{BadRequest, Refusal, Timestamp};
use quittance_ports::StoreError;
use std::time::Duration;

/// `Retry-After` while the store is not available.
const STORE_PAUSE: Duration = Duration::from_secs(2);

pub fn store_away() -> Refused {
    Code::StoreUnavailable.plain().again_in(STORE_PAUSE)
}

pub fn store_problem(error: &StoreError) -> Refused {
    match error {
        StoreError::Unavailable { .. } => store_away(),
        StoreError::Corrupt { .. } => {
            Code::NeedsAPerson.because(
                "The record of this order is damaged: whether it was paid for is not known. The operator must look at it \
                 (`quittance dead list --cause unreadable`) and drop it before it can be placed again.",
            )
        }
    }
}

pub(super) fn not_seen(why: NotSeen) -> Refused {
    match why {
        NotSeen::Unknown => Code::UnknownOrder.plain(),
        NotSeen::StoreAway(error) => store_problem(&error),
    }
}

pub fn declined(why: Declined, now: Timestamp) -> Refused {
    let detail = why.to_string();
    match why {
        Declined::Place(error) => not_placed(error, detail, now),
        Declined::KindNotForYou { .. } => Code::KindNotAllowed.because(detail).at("kind"),
        Declined::HostNotForYou(why) => not_allowed(&why, detail),
        Declined::TooFast { again_in } => Code::RateLimited.because(detail).again_in(again_in),
        Declined::TooManyOpen { .. } => Code::TooManyOpen.because(detail).again_in(LOOK_SOONEST),
        Declined::Callback(_) => Code::BadCallback.because(detail).at("callback_url"),
        Declined::TooManyWebhooks => Code::TooManyWebhooks.because(detail).at("callback_url"),
        Declined::TimedOut => store_away(),
        Declined::InFlight { id } => Code::InFlight.because(detail).again_in(LOOK_SOONEST).see(address(id)),
    }
}

pub fn not_allowed(why: &NotAllowed, detail: String) -> Refused {
    match why.part() {
        NotAllowedPart::Host(field) => Code::TargetNotAllowed.because(detail).at(&format!("params.{field}")),
        NotAllowedPart::Param(field) => Refused::bad(&format!("params.{field}"), detail),
        NotAllowedPart::Params => Refused::bad("params", detail),
        NotAllowedPart::Kind => Code::KindNotAllowed.because(detail).at("kind"),
    }
}

pub fn not_placed(why: PlaceError, detail: String, now: Timestamp) -> Refused {
    match why {
        PlaceError::UnknownKind { .. } => {
            Refused::bad("kind", "There is no kind of this name: GET /v1/kinds lists the kinds.")
        }
        PlaceError::BadRequest(why) => Refused::bad(&field(&why), detail),
        PlaceError::NotAllowed(why) => not_allowed(&why, detail),
        PlaceError::Store(error) => store_problem(&error),
        PlaceError::Refused(refusal) => match refusal {
            Refusal::OtherParameters => Code::IdempotencyMismatch.because(detail),
            Refusal::HeldBack { fault, until } => {
                Code::HeldBack.because(detail).with_provider_code(fault.code).again_in(until.since(now))
            }
            Refusal::Expired => Code::AnswerExpired.because(detail),
            Refusal::TooShort { .. } => Code::TooLate.because(detail).at("deadline_s"),
            Refusal::QueueTooLong { timeout, wait } => {
                Code::QueueTooLong.because(detail).again_in(wait.saturating_sub(timeout).max(LOOK_SOONEST))
            }
            Refusal::NoBudget { ends } => {
                Code::BudgetSpent.because(detail).again_in(ends.since(now).max(LOOK_SOONEST))
            }
            Refusal::NeedsAPerson => Code::NeedsAPerson.because(detail),
        },
    }
}

/// The name of the field that is wrong.
fn field(why: &BadRequest) -> String {
    match why {
        BadRequest::MissingField { field, .. } => format!("params.{field}"),
        BadRequest::NotAPageAddress { field, .. }
        | BadRequest::NotText { field }
        | BadRequest::NotAFile { field }
        | BadRequest::FileTooSmall { field, .. }
        | BadRequest::FileTooLarge { field, .. }
        | BadRequest::TextTooLong { field, .. }
        | BadRequest::BadParamName { name: field } => format!("params.{field}"),
        BadRequest::TooManyParams { .. } | BadRequest::BadTenant { .. } => "params".into(),
        BadRequest::BadKindName { .. } | BadRequest::MisspeltKind { .. } => "kind".into(),
        BadRequest::MisspeltParam { name, .. }
        | BadRequest::MisspeltValue { name, .. }
        | BadRequest::OtherKind { name, .. }
        | BadRequest::NoSuchVersion { name, .. }
        | BadRequest::ContradictoryNames { other: name, .. } => format!("params.{name}"),
        BadRequest::IdempotencyKeyLength { .. } => "Idempotency-Key".into(),
        BadRequest::LifeNotToBeHad { .. } => "min_life_s".into(),
        BadRequest::BadTimeout { .. } => "deadline_s".into(),
    }
}
