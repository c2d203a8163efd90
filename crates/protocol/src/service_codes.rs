//! The codes of one service, of either protocol, in one form.

use crate::classic::ClassicCodes;
use crate::classic::code::{ClassicCodeRow, CodePlace};
use crate::dialect::{Dialect, Protocol};
use crate::json::{JsonCodes, code};
use quittance_lifecycle::{Fault, FaultClass};
use std::time::Duration;

/// One code, with the meaning that it has at its service.
#[derive(Clone, Debug)]
pub struct ServiceCode {
    pub code: String,
    /// Whether the row applies to every code that begins with `code`.
    pub is_prefix: bool,
    /// The call that returns the code, if that is known.
    pub place: Option<CodePlace>,
    pub class: FaultClass,
    pub meaning: String,
    /// What an operator should do about it.
    pub advice: String,
    /// How long the service wants no submits, if that is known.
    pub pause: Option<Duration>,
    /// Whether the class comes from the operator's configuration, and not from the table.
    pub is_overridden: bool,
}

/// Codes that only CapSolver sends.
const OF_CAP_SOLVER: [&str; 6] = [
    "ERROR_BAD_REQUEST",
    "ERROR_INVALID_TASK_DATA",
    "ERROR_RATE_LIMIT",
    "ERROR_SERVICE_UNAVALIABLE",
    "ERROR_TASKID_INVALID",
    "ERROR_TASK_TIMEOUT",
];

/// What services reply to a poll for a task that they do not have, or do not keep any longer.
const NO_SUCH_TASK: [&str; 4] =
    ["ERROR_NO_SUCH_CAPCHA_ID", "ERROR_WRONG_CAPTCHA_ID", "WRONG_CAPTCHA_ID", "ERROR_TASKID_INVALID"];

/// Whether this reply to a poll says that the service does not have the task. The class counts as well, because an
/// operator may have given the code another meaning.
#[must_use]
pub fn is_no_such_task(fault: &Fault) -> bool {
    fault.class == FaultClass::Caller && NO_SUCH_TASK.contains(&fault.code.as_str())
}

/// The codes of one service, with the operator's corrections.
#[derive(Clone, Debug)]
pub enum ServiceCodes {
    Classic(ClassicCodes),
    Json(JsonCodes),
}

impl ServiceCodes {
    #[must_use]
    pub const fn of(protocol: Protocol) -> Self {
        match protocol {
            Protocol::Classic(dialect) => Self::Classic(ClassicCodes::of(dialect)),
            Protocol::Json(dialect) => Self::Json(JsonCodes::of(dialect)),
        }
    }

    /// Gives this exact code this class, overriding the table.
    #[must_use]
    pub fn with(self, code: &str, class: FaultClass) -> Self {
        match self {
            Self::Classic(codes) => Self::Classic(codes.with(code, class)),
            Self::Json(codes) => Self::Json(codes.with(code, class)),
        }
    }

    #[must_use]
    pub const fn dialect(&self) -> Dialect {
        match self {
            Self::Classic(codes) => Protocol::Classic(codes.dialect()).dialect(),
            Self::Json(codes) => Protocol::Json(codes.dialect()).dialect(),
        }
    }

    /// The fault for a code. A code that is in no table gets the class `unlisted_code`.
    #[must_use]
    pub fn classify(&self, code: &str) -> Fault {
        match self {
            Self::Classic(codes) => codes.classify(code),
            Self::Json(codes) => codes.classify(code),
        }
    }

    /// All codes, and the operator's own codes last.
    #[must_use]
    pub fn rows(&self) -> Vec<ServiceCode> {
        match self {
            Self::Classic(codes) => codes.rows().map(|row| of_classic(&row)).collect(),
            Self::Json(codes) => codes.classes().map(|(code, class)| of_json(code, class)).collect(),
        }
    }

    #[must_use]
    pub fn row(&self, code: &str) -> Option<ServiceCode> {
        match self {
            Self::Classic(codes) => codes.row(code).map(|row| of_classic(&row)),
            Self::Json(codes) => codes.is_known(code).then(|| of_json(code, codes.classify(code).class)),
        }
    }

    /// Whether the service itself sends this code. All JSON dialects share one table.
    #[must_use]
    pub fn has(&self, code: &str) -> bool {
        let is_elsewhere = OF_CAP_SOLVER.contains(&code) && self.dialect() != Dialect::CapSolver;
        !is_elsewhere && self.row(code).is_some()
    }
}

fn of_classic(row: &ClassicCodeRow<'_>) -> ServiceCode {
    ServiceCode {
        code: row.code.to_owned(),
        is_prefix: row.is_prefix,
        place: Some(row.place),
        class: row.class,
        meaning: row.meaning.to_owned(),
        advice: row.advice.to_owned(),
        pause: row.pause,
        is_overridden: row.is_overridden,
    }
}

fn of_json(code: &str, class: FaultClass) -> ServiceCode {
    let listed = code::row(code);
    ServiceCode {
        code: code.to_owned(),
        is_prefix: false,
        place: None,
        class,
        meaning: listed.map_or("(from the configuration)", |row| row.description).to_owned(),
        advice: advice(class).to_owned(),
        pause: None,
        is_overridden: listed.is_none_or(|row| row.class != class),
    }
}

/// What to do about a class, for a protocol whose table has no advice of its own.
const fn advice(class: FaultClass) -> &'static str {
    match class {
        FaultClass::Busy | FaultClass::Unreachable => "nothing: it is tried again by itself",
        FaultClass::Unsolvable => {
            "nothing at first: it is submitted again; if it stays, look at the parameters"
        }
        FaultClass::NoFunds => "top the account up, then release the provider",
        FaultClass::AccountBlocked => "check the key and the addresses in the provider's account page",
        FaultClass::Caller => "correct the parameters of the order",
        _ => "",
    }
}
