//! The codes of one provider, of either protocol, in one form.

use quittance_config::Config;
use quittance_lifecycle::FaultClass;
use quittance_protocol::classic::code::CodePlace;
use quittance_protocol::classic::{ClassicCodes, ClassicDialect};
use quittance_protocol::{Dialect, Protocol};
use std::time::Duration;

/// One code, with the provider's meaning.
pub(super) struct ErrorRow {
    pub(super) code: String,
    pub(super) is_prefix: bool,
    /// The call that returns the code, if that is known.
    pub(super) place: Option<CodePlace>,
    pub(super) class: FaultClass,
    pub(super) meaning: String,
    pub(super) advice: String,
    pub(super) pause: Option<Duration>,
    pub(super) is_overridden: bool,
}

/// Codes that only CapSolver sends. All JSON dialects share one table.
const OF_CAP_SOLVER: [&str; 6] = [
    "ERROR_BAD_REQUEST",
    "ERROR_INVALID_TASK_DATA",
    "ERROR_RATE_LIMIT",
    "ERROR_SERVICE_UNAVALIABLE",
    "ERROR_TASKID_INVALID",
    "ERROR_TASK_TIMEOUT",
];

/// The other dialects that have a code, by name.
pub(super) fn dialects_with(code: &str, codes: &Codes, config: &Config) -> Vec<&'static str> {
    let is_of = |name: &str| !OF_CAP_SOLVER.contains(&code) || name == Dialect::CapSolver.name();
    let has = |name: &&'static str| is_of(name) && Codes::of(Some(name), config).row(code).is_some();
    dialects().into_iter().filter(|name| *name != codes.name()).filter(has).collect()
}

pub(super) enum Codes {
    Classic(ClassicCodes),
    Json(quittance_protocol::json::JsonCodes),
}

/// The dialects, by name.
pub(super) fn dialects() -> Vec<&'static str> {
    Dialect::ALL.into_iter().map(Dialect::name).collect()
}

impl Codes {
    /// The codes of the dialect that the command names, or else of the configured provider, with the operator's
    /// corrections.
    pub(super) fn of(dialect: Option<&str>, config: &Config) -> Self {
        let configured = config
            .providers
            .first()
            .filter(|provider| dialect.is_none_or(|name| provider.dialect().name() == name));
        if let Some(provider) = configured {
            return match provider.protocol {
                Protocol::Classic(_) => Self::Classic(provider.codes()),
                Protocol::Json(dialect) => {
                    let codes = quittance_protocol::json::JsonCodes::of(dialect);
                    let corrections = provider.corrections().iter();
                    Self::Json(corrections.fold(codes, |codes, (code, class)| codes.with(code, *class)))
                }
            };
        }
        let dialect = dialect.and_then(|name| name.parse().ok()).unwrap_or(Dialect::CaptchaAi);
        match (dialect.classic(), dialect.json()) {
            (None, Some(dialect)) => Self::Json(quittance_protocol::json::JsonCodes::of(dialect)),
            (dialect, _) => Self::Classic(ClassicCodes::of(dialect.unwrap_or(ClassicDialect::CaptchaAi))),
        }
    }

    pub(super) fn name(&self) -> &'static str {
        match self {
            Self::Classic(codes) => codes.dialect().name(),
            Self::Json(codes) => codes.dialect().name(),
        }
    }

    pub(super) fn rows(&self) -> Vec<ErrorRow> {
        match self {
            Self::Classic(codes) => codes.rows().map(|row| of_classic(&row)).collect(),
            Self::Json(codes) => codes.classes().map(|(code, class)| of_json(code, class)).collect(),
        }
    }

    pub(super) fn row(&self, code: &str) -> Option<ErrorRow> {
        match self {
            Self::Classic(codes) => codes.row(code).map(|row| of_classic(&row)),
            Self::Json(codes) => codes.is_known(code).then(|| of_json(code, codes.classify(code).class)),
        }
    }
}

fn of_classic(row: &quittance_protocol::classic::code::ClassicCodeRow<'_>) -> ErrorRow {
    ErrorRow {
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

fn of_json(code: &str, class: FaultClass) -> ErrorRow {
    let listed = quittance_protocol::json::code::row(code);
    ErrorRow {
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
