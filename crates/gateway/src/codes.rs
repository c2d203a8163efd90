//! The codes of our refusals in the protocols. Every API that replies with codes uses this module, so one error has
//! one code.

mod ending;
mod own;

use ending::code_of_fault;
pub(crate) use ending::{code_of_outcome, in_classic, in_json, reason_of_outcome};
pub use own::{OWN_CODES, OwnCode, own_code};

use crate::orders::Declined;
use crate::tenant::NotKnown;
use quittance_engine::PlaceError;
use quittance_engine::targets::{NotAllowed, NotAllowedPart};
use quittance_lifecycle::{BadRequest, Refusal};
use quittance_ports::StoreError;
use quittance_protocol::classic::method::BadMethod;
use std::borrow::Cow;

/// There is no slot, or no store, at the moment. Every client knows that it should try again.
pub(crate) const NO_SLOT: &str = "ERROR_NO_SLOT_AVAILABLE";
/// The code for a task that is not solved yet, as the protocol spells it.
pub(crate) const NOT_READY: &str = quittance_protocol::classic::code::PENDING[0];
pub(crate) const BAD_PARAMETERS: &str = "ERROR_BAD_PARAMETERS";
pub(crate) const UNSOLVABLE: &str = "ERROR_CAPTCHA_UNSOLVABLE";
/// The deadline passed while the provider worked on the task. Dialects without this code call the task unsolvable, as
/// their services do.
pub(crate) const TIMEOUT: &str = "ERROR_TASK_TIMEOUT";
/// The order was not sent, because no answer would come before its deadline. No service has this code, so each dialect
/// translates it: to its code for a timeout, or else for a missing slot, because an order that was never sent is not
/// unsolvable.
pub(crate) const NOT_SENT_IN_TIME: &str = "ERROR_NOT_SENT_IN_TIME";
/// The timeout of an order is shorter than any solve. No service has this code, so each dialect translates it: to its
/// code for a timeout, or else for a wrong parameter. A client must not repeat the order at once, as it would without
/// a slot.
pub(crate) const TIMEOUT_TOO_SHORT: &str = "ERROR_TIMEOUT_TOO_SHORT";
/// The account at the provider has no money. An immediate retry is useless.
const ZERO_BALANCE: &str = "ERROR_ZERO_BALANCE";
/// The order does not exist, or belongs to another tenant.
pub(crate) const UNKNOWN_ID: &str = "ERROR_WRONG_CAPTCHA_ID";
/// The record of the order exists and is damaged. No service has such a code: a client must neither wait nor buy
/// again.
pub(crate) const DAMAGED: &str = "ERROR_RECORD_DAMAGED";
pub(crate) const DAMAGED_REASON: &str = "the record of this task is damaged: whether it was paid for is not known; the operator must look (`quittance dead list`)";
pub(crate) const NO_ID: &str = "ERROR_WRONG_ID_FORMAT";
pub(crate) const TOO_BIG: &str = "ERROR_TOO_BIG_CAPTCHA_FILESIZE";
const ZERO_SIZE: &str = "ERROR_ZERO_CAPTCHA_FILESIZE";
pub(crate) const EXPIRED: &str = "ERROR_TOKEN_EXPIRED";
/// The host may not be automated. This is CapMonster's code; the other dialects have none.
pub(crate) const DOMAIN: &str = "ERROR_DOMAIN_NOT_ALLOWED";

pub(crate) const fn code_of_not_known(why: NotKnown) -> &'static str {
    match why {
        NotKnown::NoKey => "ERROR_WRONG_USER_KEY",
        NotKnown::WrongKey => "ERROR_KEY_DOES_NOT_EXIST",
    }
}

pub(crate) fn code_of_declined(declined: &Declined) -> Cow<'_, str> {
    match declined {
        Declined::Place(error) => code_of_place_error(error),
        Declined::HostNotForYou(why) => code_of_not_allowed(why).into(),
        Declined::TooFast { .. }
        | Declined::TooManyOpen { .. }
        | Declined::TooManyWebhooks
        | Declined::TimedOut => NO_SLOT.into(),
        Declined::Callback(_) => "ERROR_IP_ADDRES".into(),
        Declined::KindNotForYou { .. } | Declined::InFlight { .. } => BAD_PARAMETERS.into(),
    }
}

fn code_of_place_error(error: &PlaceError) -> Cow<'_, str> {
    match error {
        PlaceError::UnknownKind { .. } => BAD_PARAMETERS.into(),
        PlaceError::BadRequest(bad) => code_of_bad_request(bad).into(),
        PlaceError::NotAllowed(why) => code_of_not_allowed(why).into(),
        PlaceError::Refused(Refusal::HeldBack { fault, .. }) => code_of_fault(fault),
        PlaceError::Refused(Refusal::OtherParameters) => BAD_PARAMETERS.into(),
        PlaceError::Refused(Refusal::Expired) => EXPIRED.into(),
        PlaceError::Refused(Refusal::TooShort { .. }) => TIMEOUT_TOO_SHORT.into(),
        PlaceError::Refused(Refusal::QueueTooLong { .. } | Refusal::NoBudget { .. }) => NO_SLOT.into(),
        // To ask again changes nothing until a person has looked.
        PlaceError::Refused(Refusal::NeedsAPerson) | PlaceError::Store(StoreError::Corrupt { .. }) => {
            UNSOLVABLE.into()
        }
        PlaceError::Store(StoreError::Unavailable { .. }) => NO_SLOT.into(),
    }
}

fn code_of_not_allowed(why: &NotAllowed) -> &'static str {
    match why.part() {
        NotAllowedPart::Host(_) => DOMAIN,
        NotAllowedPart::Param(_) | NotAllowedPart::Params | NotAllowedPart::Kind => BAD_PARAMETERS,
    }
}

fn code_of_bad_request(bad: &BadRequest) -> &'static str {
    let is_file = |field: &str| matches!(field, "body" | "file" | "image") || field.starts_with("file_");
    match bad {
        BadRequest::MissingField { field: "pageurl", .. } | BadRequest::NotAPageAddress { .. } => {
            "ERROR_PAGEURL"
        }
        BadRequest::MissingField { field: "googlekey", .. } => "ERROR_GOOGLEKEY",
        BadRequest::MissingField { field, .. } if is_file(field) => ZERO_SIZE,
        BadRequest::FileTooSmall { .. } => ZERO_SIZE,
        BadRequest::FileTooLarge { .. } => TOO_BIG,
        BadRequest::NotAFile { .. } => "ERROR_UPLOAD",
        _ => BAD_PARAMETERS,
    }
}

pub(crate) const fn code_of_bad_method(bad: &BadMethod) -> &'static str {
    match bad {
        BadMethod::NoMethod | BadMethod::ContradictoryNames { .. } => BAD_PARAMETERS,
        BadMethod::NotBase64 { .. } => "ERROR_UPLOAD",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missing_has_the_code_that_clients_know_for_it() {
        let missing = |field| {
            let bad = BadRequest::MissingField { kind: "any".into(), field };
            code_of_declined(&Declined::Place(PlaceError::BadRequest(bad))).into_owned()
        };
        for (field, code) in [
            ("pageurl", "ERROR_PAGEURL"),
            ("googlekey", "ERROR_GOOGLEKEY"),
            ("body", "ERROR_ZERO_CAPTCHA_FILESIZE"),
            ("sitekey", "ERROR_BAD_PARAMETERS"),
        ] {
            assert_eq!(missing(field), code);
        }
    }
}
