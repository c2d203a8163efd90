//! Errors of a request, or of an order's outcome, in the codes and numbers of the dialect. The text says what to fix,
//! and repeats nothing that may be secret.

use crate::codes;
use crate::order_options::BadOption;
use crate::orders::Declined;
use quittance_engine::{Outcome, PlaceError};
use quittance_lifecycle::BadRequest;
use quittance_protocol::Dialect;
use quittance_protocol::classic::json_document::BadDocument;
use quittance_protocol::json::BadTask;
use serde_json::Value;

/// The longest text of an error. It can quote a name from the client, which can be as long as a request.
const WORDS_CHARS_MAX: usize = 300;

/// Our names for fields, and the names that clients of this protocol use.
const THEIR_NAMES: [(&str, &str); 3] =
    [("`pageurl`", "`websiteURL`"), ("`googlekey`", "`websiteKey`"), ("`sitekey`", "`websiteKey`")];

#[derive(Debug, thiserror::Error)]
pub(super) enum JsonError {
    #[error(
        "There is no such method; there are createTask, getTaskResult, getBalance, reportCorrect and reportIncorrect"
    )]
    NoSuchMethod,
    #[error("Every method wants a POST with a JSON body")]
    NotPost,
    #[error("The body is not valid JSON: see line {line}, column {column}")]
    NotJson { line: usize, column: usize },
    #[error("The body must be a JSON object, like {{\"clientKey\": ..}}")]
    NotAnObject,
    #[error("The clientKey is missing or not known here")]
    Key,
    #[error("The task is missing, empty, or not an object")]
    TaskAbsent,
    #[error(transparent)]
    InexactNumber(BadDocument),
    #[error(transparent)]
    BadTask(#[from] BadTask),
    #[error(transparent)]
    BadOption(#[from] BadOption),
    #[error("The callbackUrl must be a text")]
    CallbackType,
    #[error("The result must have a field `invalid` that is true or false")]
    NoVerdict,
    #[error(transparent)]
    Declined(#[from] Declined),
    #[error("There is no such task, or it is not kept any longer")]
    TaskUnknown,
    #[error("{}", codes::DAMAGED_REASON)]
    Damaged,
    #[error("{}", codes::reason_of_outcome(.0).unwrap_or_default())]
    Outcome(Outcome),
    #[error("Nothing can be accepted for the moment: send the task again")]
    Away,
    #[error("The balance is not known for the moment: ask again in half a minute")]
    BalanceNotKnown,
    #[error("The opposite has been reported before")]
    Contradicted,
    #[error("There is no answer to report on")]
    NothingToReport,
    #[error("The report could not be stored for the moment: send the report again")]
    NotReported,
}

impl JsonError {
    /// The whole reply.
    pub(super) fn response_text(&self, dialect: Dialect) -> String {
        let code = self.code();
        let code = spelled(dialect, &code);
        let words = in_their_names(&self.to_string());
        format!(
            "{{\"errorId\":{},\"errorCode\":{},\"errorDescription\":{}}}",
            quittance_protocol::json::error_id(dialect.json_reply(), code),
            Value::from(code),
            Value::from(words)
        )
    }

    fn code(&self) -> String {
        let code = match self {
            Self::NoSuchMethod | Self::NotPost => "ERROR_NO_SUCH_METHOD",
            Self::NotJson { .. } | Self::NotAnObject => "ERROR_BAD_REQUEST",
            Self::Key => "ERROR_KEY_DOES_NOT_EXIST",
            Self::TaskAbsent => "ERROR_TASK_ABSENT",
            Self::Damaged => codes::DAMAGED,
            Self::BadTask(BadTask::NoType)
            | Self::Declined(Declined::Place(PlaceError::BadRequest(BadRequest::MisspeltKind { .. }))) => {
                "ERROR_TASK_NOT_SUPPORTED"
            }
            Self::BadTask(BadTask::ContradictoryNames { .. }) => "ERROR_BAD_PARAMETERS",
            Self::BadTask(BadTask::NotBase64 { .. }) => "ERROR_IMAGE_TYPE_NOT_SUPPORTED",
            Self::Declined(
                Declined::KindNotForYou { .. } | Declined::Place(PlaceError::UnknownKind { .. }),
            ) => "ERROR_TASK_NOT_SUPPORTED",
            Self::CallbackType
            | Self::NoVerdict
            | Self::BadOption(_)
            | Self::InexactNumber(_)
            | Self::Declined(Declined::Callback(_)) => "ERROR_BAD_PARAMETERS",
            Self::Declined(declined) => return codes::code_of_declined(declined).into(),
            Self::TaskUnknown => "ERROR_NO_SUCH_CAPCHA_ID",
            Self::Outcome(outcome) => return codes::code_of_outcome(outcome).into(),
            Self::Away | Self::BalanceNotKnown => "ERROR_NO_SLOT_AVAILABLE",
            Self::Contradicted => "ERROR_DUPLICATE_REPORT",
            Self::NothingToReport | Self::NotReported => "ERROR_REPORT_NOT_RECORDED",
        };
        code.to_owned()
    }
}

fn in_their_names(words: &str) -> String {
    let words: String = words.chars().take(WORDS_CHARS_MAX).collect();
    THEIR_NAMES.iter().fold(words, |words, (ours, theirs)| words.replace(ours, theirs))
}

/// A code in the spelling that clients of this dialect know.
pub(crate) fn spelled(dialect: Dialect, code: &str) -> &str {
    let code = match code {
        "ERROR_WRONG_USER_KEY" => "ERROR_KEY_DOES_NOT_EXIST",
        "ERROR_WRONG_CAPTCHA_ID" | "ERROR_WRONG_ID_FORMAT" => "ERROR_NO_SUCH_CAPCHA_ID",
        "ERROR_GOOGLEKEY" | "ERROR_WRONG_GOOGLEKEY" => "ERROR_RECAPTCHA_INVALID_SITEKEY",
        code => codes::in_json(code),
    };
    match (dialect, code) {
        (Dialect::TwoCaptcha | Dialect::CaptchaAi | Dialect::AntiCaptcha, codes::TIMEOUT) => {
            codes::UNSOLVABLE
        }
        (Dialect::TwoCaptcha | Dialect::CaptchaAi | Dialect::AntiCaptcha, codes::NOT_SENT_IN_TIME) => {
            codes::NO_SLOT
        }
        (Dialect::TwoCaptcha | Dialect::CaptchaAi | Dialect::AntiCaptcha, codes::TIMEOUT_TOO_SHORT) => {
            codes::BAD_PARAMETERS
        }
        (Dialect::CapSolver, codes::NOT_SENT_IN_TIME | codes::TIMEOUT_TOO_SHORT) => codes::TIMEOUT,
        (Dialect::CapMonster, codes::TIMEOUT | codes::NOT_SENT_IN_TIME | codes::TIMEOUT_TOO_SHORT) => {
            "ERROR_MAXIMUM_TIME_EXCEED"
        }
        (Dialect::TwoCaptcha | Dialect::CaptchaAi, codes::DOMAIN) => "ERROR_PAGEURL",
        (Dialect::AntiCaptcha, codes::DOMAIN) => "ERROR_RECAPTCHA_INVALID_DOMAIN",
        (Dialect::CapSolver, codes::DOMAIN) => "ERROR_INVALID_TASK_DATA",
        (Dialect::CapSolver, "ERROR_NO_SUCH_CAPCHA_ID") => "ERROR_TASKID_INVALID",
        (
            Dialect::CapSolver,
            "ERROR_TASK_ABSENT"
            | "ERROR_BAD_PARAMETERS"
            | "ERROR_PAGEURL"
            | "ERROR_RECAPTCHA_INVALID_SITEKEY",
        ) => "ERROR_INVALID_TASK_DATA",
        // The spelling is the provider's.
        (Dialect::CapSolver, "ERROR_NO_SLOT_AVAILABLE") => "ERROR_SERVICE_UNAVALIABLE",
        (Dialect::CapSolver, "ERROR_NO_SUCH_METHOD") => "ERROR_BAD_REQUEST",
        (_, code) => code,
    }
}
