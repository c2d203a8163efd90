//! What the protocols call a refusal: our reasons, in the codes that their clients know. Every door that speaks codes asks
//! here, so the same trouble has the same name at each.

use crate::desk::Declined;
use crate::tenant::NotKnown;
use quittance_classic::code::looks_like_a_code;
use quittance_classic::method::BadWish;
use quittance_classic::{FaultCodes, Profile};
use quittance_engine::{Outcome, PlaceError};
use quittance_lifecycle::{BadRequest, FailCause, Fault, Refusal};
use quittance_ports::StoreError;
use std::borrow::Cow;

/// There is no room, or no store, for the moment; every client knows that it should come again.
pub(crate) const NO_SLOT: &str = "ERROR_NO_SLOT_AVAILABLE";
/// As the protocol spells it.
pub(crate) const NOT_READY: &str = quittance_classic::code::PENDING[0];
pub(crate) const BAD_PARAMETERS: &str = "ERROR_BAD_PARAMETERS";
pub(crate) const UNSOLVABLE: &str = "ERROR_CAPTCHA_UNSOLVABLE";
/// Nobody's order, or somebody else's.
pub(crate) const UNKNOWN_ID: &str = "ERROR_WRONG_CAPTCHA_ID";
pub(crate) const NO_ID: &str = "ERROR_WRONG_ID_FORMAT";
pub(crate) const TOO_BIG: &str = "ERROR_TOO_BIG_CAPTCHA_FILESIZE";
const ZERO_SIZE: &str = "ERROR_ZERO_CAPTCHA_FILESIZE";
const EXPIRED: &str = "ERROR_TOKEN_EXPIRED";

pub(crate) const fn code_of_not_known(why: NotKnown) -> &'static str {
    match why {
        NotKnown::NoKey => "ERROR_WRONG_USER_KEY",
        NotKnown::WrongKey => "ERROR_KEY_DOES_NOT_EXIST",
    }
}

pub(crate) fn code_of_declined(declined: &Declined) -> Cow<'_, str> {
    match declined {
        Declined::Place(error) => code_of_place_error(error),
        Declined::HostNotForYou(_) => "ERROR_DOMAIN_NOT_ALLOWED".into(),
        Declined::TooFast { .. } | Declined::TooManyOpen { .. } | Declined::TooManyListeners => {
            NO_SLOT.into()
        }
        Declined::Callback(_) => "ERROR_IP_ADDRES".into(),
        Declined::KindNotForYou { .. } | Declined::InFlight { .. } => BAD_PARAMETERS.into(),
    }
}

fn code_of_place_error(error: &PlaceError) -> Cow<'_, str> {
    match error {
        PlaceError::UnknownKind { .. } => BAD_PARAMETERS.into(),
        PlaceError::BadRequest(bad) => code_of_bad_request(bad).into(),
        PlaceError::NotAllowed(_) => "ERROR_DOMAIN_NOT_ALLOWED".into(),
        PlaceError::Refused(Refusal::HeldBack { fault, .. }) => code_of_fault(fault),
        PlaceError::Refused(Refusal::OtherParameters) => BAD_PARAMETERS.into(),
        PlaceError::Refused(Refusal::Expired) => EXPIRED.into(),
        // To ask again changes nothing until a person has looked.
        PlaceError::Refused(Refusal::NeedsAPerson) | PlaceError::Store(StoreError::Corrupt { .. }) => {
            UNSOLVABLE.into()
        }
        PlaceError::Store(StoreError::Unavailable { .. }) => NO_SLOT.into(),
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

pub(crate) const fn code_of_bad_wish(bad: &BadWish) -> &'static str {
    match bad {
        BadWish::NoMethod => BAD_PARAMETERS,
        BadWish::NotBase64 { .. } => "ERROR_UPLOAD",
    }
}

/// Whoever has an answer asks for no code.
pub(crate) fn code_of_outcome(outcome: &Outcome) -> Cow<'_, str> {
    match outcome {
        Outcome::Answered(_) | Outcome::NotYet => NOT_READY.into(),
        Outcome::Failed(FailCause::Refused(fault)) => code_of_fault(fault),
        Outcome::Failed(FailCause::Cancelled) | Outcome::Dead(_) | Outcome::TakenByAnother => {
            UNSOLVABLE.into()
        }
        Outcome::Expired => EXPIRED.into(),
        Outcome::Forgotten => UNKNOWN_ID.into(),
    }
}

/// The provider's own word, if a client can know it. Whatever else a provider said is for the operator to read.
fn code_of_fault(fault: &Fault) -> Cow<'_, str> {
    let code = fault.code.as_str();
    let is_plain = code.bytes().all(|byte| byte.is_ascii_graphic() || byte == b' ') && !code.contains('|');
    let is_code = looks_like_a_code(code) || FaultCodes::of(Profile::TwoCaptcha).is_known(code);
    if is_plain && is_code { code.into() } else { UNSOLVABLE.into() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use quittance_lifecycle::{DeadCause, FaultClass};

    #[test]
    fn a_providers_code_is_passed_on_and_its_prose_is_not() {
        let told = |code: &str| {
            let fault = Fault::new(FaultClass::UnknownCode, code);
            code_of_outcome(&Outcome::Failed(FailCause::Refused(fault))).into_owned()
        };
        for code in ["ERROR_BAD_DUPLICATES", "ERROR: 1001", "ERROR_SOMETHING_NEW", "IP_BANNED"] {
            assert_eq!(told(code), code);
        }
        for prose in ["solved, but without an answer", "", "<html>", "ERROR_A|OK", "ERROR\n"] {
            assert_eq!(told(prose), UNSOLVABLE, "{prose}");
        }
        assert_eq!(code_of_outcome(&Outcome::Dead(DeadCause::Deadline)), UNSOLVABLE);
        assert_eq!(code_of_outcome(&Outcome::NotYet), "CAPCHA_NOT_READY");
    }

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
