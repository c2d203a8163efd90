//! What each code of the JSON protocol means. The table decides whether a fault is retried or reported to an
//! operator. It also holds the number and the text that our own API returns with a code. An operator can correct it.

mod json_codes;

use crate::json::dialect::JsonDialect;
use json_codes::TABLE;
use quittance_lifecycle::{Fault, FaultClass};
use std::collections::BTreeMap;
use std::time::Duration;

/// One row of the table: a code and its meaning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CodeRow {
    pub code: &'static str,
    /// The `errorId` in dialects in which the number has a meaning. Other dialects always send 1.
    pub error_id: u32,
    pub class: FaultClass,
    pub description: &'static str,
}

/// The number for an unlisted code: that of a bad request.
const STRANGE_ERROR_ID: u32 = 110;
const STRANGE_DESCRIPTION: &str = "The task could not be done";

/// The class of every code at one provider.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JsonCodes {
    dialect: JsonDialect,
    overrides: BTreeMap<String, FaultClass>,
}

/// How long, in seconds, a provider wants no submits after a code, and whether it wants no polls either.
const PENALTIES: [(&str, u64, bool); 4] = [
    ("ERROR_NO_SLOT_AVAILABLE", 5, false),
    ("ERROR_IP_BLOCKED_5MIN", 300, true),
    ("ERROR_IP_BANNED", 300, true),
    ("IP_BANNED", 300, true),
];

/// How long a provider wants no submits after a code, and whether it wants no polls either.
#[must_use]
pub fn penalty(code: &str) -> Option<(Duration, bool)> {
    let (_, seconds, is_block) = PENALTIES.into_iter().find(|(known, ..)| *known == code)?;
    Some((Duration::from_secs(seconds), is_block))
}

/// The whole table.
#[must_use]
pub const fn rows() -> &'static [CodeRow] {
    TABLE
}

/// The row of the table for a code.
#[must_use]
pub fn row(code: &str) -> Option<&'static CodeRow> {
    TABLE.iter().find(|row| row.code == code)
}

#[must_use]
pub fn error_id(dialect: JsonDialect, code: &str) -> u32 {
    match row(code) {
        _ if dialect.facts().error_id_always_one => 1,
        Some(row) => row.error_id,
        None => STRANGE_ERROR_ID,
    }
}

#[must_use]
pub fn description(code: &str) -> &'static str {
    row(code).map_or(STRANGE_DESCRIPTION, |row| row.description)
}

impl JsonCodes {
    #[must_use]
    pub const fn of(dialect: JsonDialect) -> Self {
        Self { dialect, overrides: BTreeMap::new() }
    }

    /// Gives this exact code this class, overriding the table.
    #[must_use]
    pub fn with(mut self, code: impl Into<String>, class: FaultClass) -> Self {
        self.overrides.insert(code.into(), class);
        self
    }

    #[must_use]
    pub const fn dialect(&self) -> JsonDialect {
        self.dialect
    }

    /// The fault for a code. A code that is in no table gets the class `unlisted_code`.
    #[must_use]
    pub fn classify(&self, code: &str) -> Fault {
        let code = code.trim();
        Fault::new(self.class(code).unwrap_or(FaultClass::UnlistedCode), code)
    }

    #[must_use]
    pub fn is_known(&self, code: &str) -> bool {
        self.class(code.trim()).is_some()
    }

    fn class(&self, code: &str) -> Option<FaultClass> {
        self.overrides.get(code).copied().or_else(|| row(code).map(|row| row.class))
    }

    /// The class of each code with the operator's corrections, and the operator's own codes last.
    pub fn classes(&self) -> impl Iterator<Item = (&str, FaultClass)> {
        let described = TABLE.iter().map(|row| (row.code, self.class(row.code).unwrap_or(row.class)));
        let own = self.overrides.iter().filter(|(code, _)| row(code).is_none());
        described.chain(own.map(|(code, class)| (code.as_str(), *class)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_numbers_of_the_protocol_stand_by_their_codes() {
        let numbers = [
            (1, "ERROR_KEY_DOES_NOT_EXIST"),
            (2, "ERROR_NO_SLOT_AVAILABLE"),
            (10, "ERROR_ZERO_BALANCE"),
            (12, "ERROR_CAPTCHA_UNSOLVABLE"),
            (16, "ERROR_NO_SUCH_CAPCHA_ID"),
            (22, "ERROR_TASK_ABSENT"),
            (23, "ERROR_TASK_NOT_SUPPORTED"),
            (31, "ERROR_RECAPTCHA_INVALID_SITEKEY"),
        ];
        for (number, code) in numbers {
            assert_eq!(error_id(JsonDialect::TwoCaptcha, code), number);
            assert_eq!(error_id(JsonDialect::AntiCaptcha, code), number);
            assert_eq!(error_id(JsonDialect::CapSolver, code), 1);
            assert_eq!(error_id(JsonDialect::CapMonster, code), 1);
        }
        assert_ne!(error_id(JsonDialect::TwoCaptcha, "ERROR_MOON_PHASE"), 0);
    }

    #[test]
    fn every_code_has_the_class_of_the_facts() {
        use FaultClass::{AccountBlocked, Busy, Caller, NoFunds, Unsolvable};
        let classes = [
            (
                Busy,
                "ERROR_NO_SLOT_AVAILABLE ERROR_RATE_LIMIT ERROR_SERVICE_UNAVALIABLE ERROR_TOO_MUCH_REQUESTS",
            ),
            (Unsolvable, "ERROR_CAPTCHA_UNSOLVABLE ERROR_TASK_TIMEOUT ERROR_RECAPTCHA_TIMEOUT"),
            (NoFunds, "ERROR_ZERO_BALANCE"),
            (AccountBlocked, "ERROR_KEY_DOES_NOT_EXIST ERROR_IP_NOT_ALLOWED ERROR_IP_BLOCKED"),
            (
                Caller,
                "ERROR_INVALID_TASK_DATA ERROR_TASKID_INVALID ERROR_TASK_ABSENT PROXY_BANNED WRONG_USERAGENT",
            ),
        ];
        for (class, codes) in classes {
            for code in codes.split(' ') {
                for dialect in JsonDialect::ALL {
                    assert_eq!(JsonCodes::of(dialect).classify(code).class, class, "{code}");
                }
            }
        }
    }

    /// An unlisted code leads to useless retries. These codes stand in the documentation of the services.
    #[test]
    fn every_code_that_the_services_document_is_in_the_table() {
        let of_all = "ERROR_KEY_DOES_NOT_EXIST ERROR_NO_SLOT_AVAILABLE ERROR_ZERO_CAPTCHA_FILESIZE ERROR_TOO_BIG_CAPTCHA_FILESIZE \
            ERROR_ZERO_BALANCE ERROR_IP_NOT_ALLOWED ERROR_CAPTCHA_UNSOLVABLE ERROR_BAD_DUPLICATES ERROR_NO_SUCH_METHOD \
            ERROR_IMAGE_TYPE_NOT_SUPPORTED ERROR_NO_SUCH_CAPCHA_ID ERROR_IP_BLOCKED ERROR_TASK_ABSENT ERROR_TASK_NOT_SUPPORTED \
            ERROR_RECAPTCHA_INVALID_SITEKEY ERROR_METHOD_CALL";
        let of_anticaptcha = "ERROR_INVISIBLE_RECAPTCHA ERROR_VISIBLE_RECAPTCHA ERROR_FAILED_LOADING_WIDGET \
            ERROR_ALL_WORKERS_FILTERED ERROR_TEMPLATE_NOT_FOUND";
        let of_capmonster = "ERROR_TOO_MUCH_REQUESTS ERROR_DOMAIN_NOT_ALLOWED ERROR_RECAPTCHA_TIMEOUT PROXY_CONNECT_REFUSED \
            PROXY_BANNED PROXY_MISSING PROXY_NOT_AUTHORISED PROXY_READ_TIMEOUT WRONG_USERAGENT ERROR_TOKEN_EXPIRED";
        let of_capsolver = "ERROR_SERVICE_UNAVALIABLE ERROR_RATE_LIMIT ERROR_INVALID_TASK_DATA ERROR_BAD_REQUEST \
            ERROR_TASKID_INVALID ERROR_TASK_TIMEOUT";
        for code in [of_all, of_anticaptcha, of_capmonster, of_capsolver]
            .iter()
            .flat_map(|codes| codes.split_whitespace())
        {
            assert!(
                JsonDialect::ALL.into_iter().all(|dialect| JsonCodes::of(dialect).is_known(code)),
                "{code}"
            );
        }
        let class = |code: &str| JsonCodes::of(JsonDialect::TwoCaptcha).classify(code).class;
        assert_eq!(class("ERROR_METHOD_CALL"), FaultClass::Caller);
        assert_eq!(
            class("ERROR_FAILED_LOADING_WIDGET"),
            FaultClass::Unsolvable,
            "the advice is to send a new task"
        );
    }

    #[test]
    fn the_operator_has_the_last_word_and_a_strange_code_is_kept() {
        let codes = JsonCodes::of(JsonDialect::CapMonster)
            .with("ERROR_ZERO_BALANCE", FaultClass::Busy)
            .with("ERROR_OWN", FaultClass::Caller);
        assert_eq!(codes.classify("ERROR_ZERO_BALANCE").class, FaultClass::Busy);
        assert_eq!(codes.classes().last(), Some(("ERROR_OWN", FaultClass::Caller)));
        let strange = codes.classify(" ERROR_MOON_PHASE ");
        assert_eq!((strange.class, strange.code.as_str()), (FaultClass::UnlistedCode, "ERROR_MOON_PHASE"));
    }

    #[test]
    fn no_code_stands_in_the_table_twice() {
        for (at, row) in TABLE.iter().enumerate() {
            assert!(!TABLE[..at].iter().any(|other| other.code == row.code), "{}", row.code);
            assert!(row.error_id > 0 && !row.description.is_empty());
        }
    }
}
