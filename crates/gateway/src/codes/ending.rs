//! What a caller gets for an order without an answer: a true code, and the reason in our own words. The reason says
//! what happened, but no more about the account than a caller may know.

use super::{
    BAD_PARAMETERS, EXPIRED, NO_SLOT, NOT_READY, NOT_SENT_IN_TIME, TIMEOUT, TIMEOUT_TOO_SHORT, UNKNOWN_ID,
    UNSOLVABLE, ZERO_BALANCE,
};
use quittance_engine::Outcome;
use quittance_lifecycle::{DeadCause, FailCause, Fault, FaultClass};
use quittance_protocol::Dialect;
use quittance_protocol::classic::ClassicCodes;
use std::borrow::Cow;

const IN_DOUBT: &str = "it is not known whether the provider took the task, so the task is not sent again automatically: \
                        the operator decides (`quittance dead list`)";
const FORGOTTEN_STEPS: &str = "the gateway's store has lost the last steps of this task, so what was paid for is not known: \
                               the operator decides (`quittance dead list`)";

/// The code of an order without an answer for its caller. Each dialect then translates it.
pub(crate) fn code_of_outcome(outcome: &Outcome) -> Cow<'_, str> {
    match outcome {
        Outcome::Answered(_) | Outcome::NotYet => NOT_READY.into(),
        Outcome::Failed(FailCause::Rejected(fault))
        | Outcome::Dead(DeadCause::Spent(fault) | DeadCause::NotTaken(Some(fault))) => code_of_fault(fault),
        Outcome::Dead(DeadCause::NotTaken(None) | DeadCause::NoBudget(_)) => NO_SLOT.into(),
        Outcome::Dead(DeadCause::Deadline) => TIMEOUT.into(),
        Outcome::Dead(DeadCause::TooLate { .. }) => NOT_SENT_IN_TIME.into(),
        Outcome::Dead(DeadCause::DoubtsSpent(_) | DeadCause::Doubt | DeadCause::StoreForgot)
        | Outcome::Failed(FailCause::Cancelled)
        | Outcome::TakenByAnother => UNSOLVABLE.into(),
        Outcome::Expired => EXPIRED.into(),
        Outcome::Forgotten => UNKNOWN_ID.into(),
    }
}

/// Why an order has no answer for its caller, or `None` if the code is enough.
pub(crate) fn reason_of_outcome(outcome: &Outcome) -> Option<String> {
    Some(match outcome {
        Outcome::Answered(_) | Outcome::NotYet | Outcome::Forgotten => return None,
        Outcome::Failed(FailCause::Rejected(fault)) => reason_of_fault(fault),
        Outcome::Failed(FailCause::Cancelled) => "the order was cancelled".to_owned(),
        Outcome::Dead(DeadCause::Spent(fault)) => {
            format!("{}; all retries are used up", reason_of_fault(fault))
        }
        Outcome::Dead(DeadCause::NotTaken(Some(fault))) => {
            format!("the deadline was reached before the provider took the task: {}", reason_of_fault(fault))
        }
        Outcome::Dead(DeadCause::NotTaken(None)) => {
            "the deadline was reached before a provider could be given the task: all were paused, away or busy, or the gateway \
             was not at work"
                .to_owned()
        }
        Outcome::Dead(cause @ (DeadCause::TooLate { .. } | DeadCause::NoBudget(_))) => cause.to_string(),
        Outcome::Dead(DeadCause::Deadline) => "the deadline was reached before the answer came".to_owned(),
        Outcome::Dead(DeadCause::DoubtsSpent(_) | DeadCause::Doubt) => IN_DOUBT.to_owned(),
        Outcome::Dead(DeadCause::StoreForgot) => FORGOTTEN_STEPS.to_owned(),
        Outcome::TakenByAnother => "the answer went to another caller".to_owned(),
        Outcome::Expired => {
            "the answer has expired, or has less life left than this order asked for (`min_life_s`)"
                .to_owned()
        }
    })
}

fn reason_of_fault(fault: &Fault) -> String {
    let code = fault.code.escape_debug();
    match fault.class {
        FaultClass::Busy => format!("the provider has no free slot ({code})"),
        // What the network says may name hosts of the operator.
        FaultClass::Unreachable => "the provider cannot be reached".to_owned(),
        FaultClass::Unsolvable => format!("the provider could not solve the task ({code})"),
        FaultClass::NoFunds => "the gateway's account at the provider has no money".to_owned(),
        FaultClass::AccountBlocked => "the provider does not accept the gateway's account".to_owned(),
        FaultClass::Caller => format!("the provider rejected the task ({code})"),
        FaultClass::NotSold => format!("the provider does not sell this kind of captcha ({code})"),
        FaultClass::UnlistedCode => {
            format!("the provider answered with a code that is in no table ({code})")
        }
    }
}

/// The code for a caller, from a fault of the provider. A fault that is not about the task (no slot, unreachable,
/// account) gets a code of ours. Any other fault keeps the provider's code, if clients can know it.
pub(super) fn code_of_fault(fault: &Fault) -> Cow<'_, str> {
    match fault.class {
        FaultClass::Busy | FaultClass::Unreachable | FaultClass::AccountBlocked => NO_SLOT.into(),
        FaultClass::NoFunds => ZERO_BALANCE.into(),
        FaultClass::Caller | FaultClass::NotSold if is_listed(&fault.code) => fault.code.as_str().into(),
        FaultClass::Caller | FaultClass::NotSold => BAD_PARAMETERS.into(),
        FaultClass::Unsolvable if is_listed(&fault.code) => fault.code.as_str().into(),
        FaultClass::Unsolvable | FaultClass::UnlistedCode => UNSOLVABLE.into(),
    }
}

fn is_listed(code: &str) -> bool {
    ClassicCodes::of(Dialect::TwoCaptcha.classic_reply()).is_known(code)
        || quittance_protocol::json::code::row(code).is_some()
}

/// The classic code for a code that only the JSON protocol has. Strict clients stop at any other code.
pub(crate) fn in_classic(code: &str) -> &str {
    use quittance_protocol::json::code::row;
    match row(code) {
        _ if code == super::DOMAIN => "ERROR_PAGEURL",
        _ if code == NOT_SENT_IN_TIME => NO_SLOT,
        _ if code == TIMEOUT_TOO_SHORT => BAD_PARAMETERS,
        Some(_) if ClassicCodes::of(Dialect::TwoCaptcha.classic_reply()).is_known(code) => code,
        Some(row) => nearest(row.class),
        None => code,
    }
}

/// The JSON code for a code that only the classic protocol has.
pub(crate) fn in_json(code: &str) -> &str {
    let classic = ClassicCodes::of(Dialect::TwoCaptcha.classic_reply());
    if quittance_protocol::json::code::row(code).is_some() || !classic.is_known(code) {
        return code;
    }
    nearest(classic.classify(code).class)
}

/// The code that is nearest to a class of faults and exists in every dialect.
const fn nearest(class: FaultClass) -> &'static str {
    match class {
        FaultClass::Busy | FaultClass::Unreachable | FaultClass::AccountBlocked => NO_SLOT,
        FaultClass::NoFunds => ZERO_BALANCE,
        FaultClass::Caller | FaultClass::NotSold => BAD_PARAMETERS,
        FaultClass::Unsolvable | FaultClass::UnlistedCode => UNSOLVABLE,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use quittance_engine::PlaceError;
    use quittance_lifecycle::Refusal;
    use std::time::Duration;

    fn dead(cause: DeadCause) -> Outcome {
        Outcome::Dead(cause)
    }

    fn refused(class: FaultClass, code: &str) -> Outcome {
        Outcome::Failed(FailCause::Rejected(Fault::new(class, code)))
    }

    #[test]
    fn a_verdict_of_the_provider_is_passed_on_if_it_is_listed_and_its_prose_is_not() {
        for code in
            ["ERROR_BAD_DUPLICATES", "ERROR_PAGEURL", "ERROR_PROXY_NOT_AUTHORISED", "TOO_MANY_BAD_IMAGES"]
        {
            assert_eq!(code_of_outcome(&refused(FaultClass::Caller, code)), code);
        }
        for strange in ["ERROR_SOMETHING_NEW", "solved, but without an answer", "", "<html>", "ERROR_A|OK"] {
            assert_eq!(code_of_outcome(&refused(FaultClass::Caller, strange)), BAD_PARAMETERS, "{strange}");
            assert_eq!(code_of_outcome(&refused(FaultClass::UnlistedCode, strange)), UNSOLVABLE, "{strange}");
        }
        assert_eq!(code_of_outcome(&Outcome::NotYet), "CAPCHA_NOT_READY");
    }

    #[test]
    fn no_room_at_the_provider_never_becomes_a_task_that_cannot_be_solved() {
        let busy = || Fault::new(FaultClass::Busy, "ERROR_NO_SLOT_AVAILABLE");
        for cause in [
            DeadCause::Spent(busy()),
            DeadCause::NotTaken(Some(busy())),
            DeadCause::NotTaken(None),
            DeadCause::Spent(Fault::new(FaultClass::Busy, "HTTP 429")),
            DeadCause::NotTaken(Some(Fault::new(FaultClass::Unreachable, "connection refused"))),
            DeadCause::NotTaken(Some(Fault::new(FaultClass::AccountBlocked, "ERROR_KEY_DOES_NOT_EXIST"))),
        ] {
            assert_eq!(code_of_outcome(&dead(cause)), NO_SLOT);
        }
        let hopeless = Fault::new(FaultClass::Unsolvable, "ERROR_CAPTCHA_UNSOLVABLE");
        assert_eq!(code_of_outcome(&dead(DeadCause::Spent(hopeless))), UNSOLVABLE);
    }

    #[test]
    fn an_order_that_no_provider_could_take_says_what_may_have_kept_it() {
        let cause = DeadCause::NotTaken(None);
        assert!(cause.to_string().contains("all were paused, away or busy"), "{cause}");
        assert!(cause.to_string().contains("`quittance provider list`"), "{cause}");
        // A caller cannot run the command.
        let reason = reason_of_outcome(&dead(cause)).unwrap_or_default();
        assert!(
            reason.contains("all were paused, away or busy") && !reason.contains("quittance"),
            "{reason}"
        );
    }

    #[test]
    fn an_order_that_was_too_late_to_be_paid_for_says_so() {
        let (left, needs) = (Duration::from_secs(3), Duration::from_secs(9));
        let too_late = dead(DeadCause::TooLate { left, needs });
        assert_eq!(in_classic(&code_of_outcome(&too_late)), NO_SLOT);
        let reason = reason_of_outcome(&too_late).unwrap_or_default();
        assert!(
            reason.contains("not submitted") && reason.contains("3s") && reason.contains("9s"),
            "{reason}"
        );
    }

    #[test]
    fn a_queue_is_described_in_whole_seconds() {
        let (timeout, wait) = (Duration::from_secs(60), Duration::from_nanos(116_153_846_153));
        let why = PlaceError::Refused(Refusal::QueueTooLong { timeout, wait }).to_string();
        assert!(why.contains("in the queue take 117s, and its timeout is 60s"), "{why}");
        let (timeout, needs) = (Duration::from_secs(5), Duration::from_millis(14_983));
        let why = PlaceError::Refused(Refusal::TooShort { timeout, needs }).to_string();
        assert!(why.contains("its timeout is 5s") && why.contains("took 15s"), "{why}");
    }

    #[test]
    fn a_code_of_the_other_protocol_becomes_one_that_clients_of_this_one_know() {
        for (code, classic) in [
            ("ERROR_INVALID_TASK_DATA", BAD_PARAMETERS),
            ("ERROR_TASK_TIMEOUT", UNSOLVABLE),
            ("ERROR_DOMAIN_NOT_ALLOWED", "ERROR_PAGEURL"),
            ("ERROR_CAPTCHA_UNSOLVABLE", UNSOLVABLE),
            ("ERROR_RECORD_DAMAGED", "ERROR_RECORD_DAMAGED"),
        ] {
            assert_eq!(in_classic(code), classic);
        }
        assert_eq!(in_json("ERROR_CAPTCHA_TYPE"), BAD_PARAMETERS);
        assert_eq!(in_json("ERROR_TASK_TIMEOUT"), TIMEOUT);
    }

    #[test]
    fn the_reason_names_what_happened_and_says_nothing_of_the_account_but_that() {
        let reason = |outcome: &Outcome| reason_of_outcome(outcome).unwrap_or_default();
        let broke = Fault::new(FaultClass::NoFunds, "balance 0.00012");
        assert_eq!(
            reason(&dead(DeadCause::NotTaken(Some(broke)))),
            "the deadline was reached before the provider took the task: the gateway's account at the provider has no money"
        );
        let strange = Fault::new(FaultClass::UnlistedCode, "ERROR_MOON_PHASE");
        assert!(reason(&dead(DeadCause::Spent(strange))).contains("in no table (ERROR_MOON_PHASE)"));
        assert!(reason(&dead(DeadCause::Doubt)).contains("not known whether"));
        assert_eq!(reason_of_outcome(&Outcome::NotYet), None);
    }
}
