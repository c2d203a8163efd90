//! What each code of the classic protocol means, by provider. The table decides whether a fault is retried or
//! reported to an operator. Operators can read it (`quittance errors`) and correct it without a new build.

mod classic_codes;

use crate::classic::dialect::ClassicDialect;
use classic_codes::TABLE;
use quittance_lifecycle::{Fault, FaultClass};
use std::collections::BTreeMap;
use std::time::Duration;

/// The codes of a task that is not solved yet. The first has the spelling of the protocol; some other services
/// correct it.
pub const PENDING: [&str; 2] = ["CAPCHA_NOT_READY", "CAPTCHA_NOT_READY"];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CodePlace {
    Submit,
    Poll,
    Both,
}

/// One row of the table, for one dialect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClassicCodeRow<'a> {
    pub code: &'a str,
    /// Whether the row applies to every code that begins with `code`.
    pub is_prefix: bool,
    pub place: CodePlace,
    pub class: FaultClass,
    pub meaning: &'a str,
    /// What an operator should do about it.
    pub advice: &'a str,
    /// How long the provider wants no submits, if that is known. The gate obeys it.
    pub pause: Option<Duration>,
    /// Whether the provider takes no polls for this time either, because the account or our address is blocked.
    pub is_block: bool,
    /// Whether the class comes from the operator's configuration, and not from the table.
    pub is_overridden: bool,
}

/// The class of every code at one provider.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClassicCodes {
    dialect: ClassicDialect,
    overrides: BTreeMap<String, FaultClass>,
}

#[must_use]
pub fn is_pending(text: &str) -> bool {
    PENDING.contains(&text)
}

/// The class with this name, as operators write it in a configuration.
#[must_use]
pub fn class_named(name: &str) -> Option<FaultClass> {
    FaultClass::ALL.into_iter().find(|class| class.name() == name || class.name().replace(' ', "_") == name)
}

/// Whether a text is written like a code: capital letters, digits and underscores, with at least two words. A text
/// that begins with `ERROR` always counts as a code (`ERROR: 1001`).
#[must_use]
pub fn looks_like_a_code(text: &str) -> bool {
    let is_written_so = |c: char| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_';
    text.starts_with("ERROR")
        || (text.len() <= 64
            && text.contains('_')
            && text.starts_with(|c: char| c.is_ascii_uppercase())
            && text.chars().all(is_written_so))
}

impl ClassicCodes {
    #[must_use]
    pub const fn of(dialect: ClassicDialect) -> Self {
        Self { dialect, overrides: BTreeMap::new() }
    }

    /// Gives this exact code this class, overriding the table.
    #[must_use]
    pub fn with(mut self, code: impl Into<String>, class: FaultClass) -> Self {
        self.overrides.insert(code.into(), class);
        self
    }

    #[must_use]
    pub const fn dialect(&self) -> ClassicDialect {
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
        let word = first_word(code);
        [code, word].into_iter().find_map(|spelling| self.overrides.get(spelling).copied()).or_else(|| {
            classic_codes::find(code)
                .or_else(|| classic_codes::find(word))
                .map(|entry| entry.class(self.dialect))
        })
    }

    /// The row of the table for a code, for an operator to read.
    #[must_use]
    pub fn row(&self, code: &str) -> Option<ClassicCodeRow<'_>> {
        let code = code.trim();
        let entry = classic_codes::find(code).or_else(|| classic_codes::find(first_word(code)));
        let own =
            self.overrides.get_key_value(code).or_else(|| self.overrides.get_key_value(first_word(code)));
        match (entry, own) {
            (Some(entry), _) => Some(self.row_of(entry)),
            (None, Some((code, class))) => Some(own_row(code, *class)),
            (None, None) => None,
        }
    }

    /// The whole table with the operator's corrections, and the operator's own codes last.
    pub fn rows(&self) -> impl Iterator<Item = ClassicCodeRow<'_>> {
        let own = self.overrides.iter().filter(|(code, _)| !TABLE.iter().any(|entry| entry.code == **code));
        TABLE.iter().map(|entry| self.row_of(entry)).chain(own.map(|(code, class)| own_row(code, *class)))
    }

    fn row_of(&self, entry: &'static classic_codes::CodeEntry) -> ClassicCodeRow<'_> {
        let own = self.overrides.get(entry.code);
        ClassicCodeRow {
            code: entry.code,
            is_prefix: entry.is_prefix,
            place: entry.place,
            class: own.copied().unwrap_or_else(|| entry.class(self.dialect)),
            meaning: entry.meaning(self.dialect),
            advice: entry.advice(self.dialect),
            pause: entry.pause(self.dialect),
            is_block: entry.is_block,
            is_overridden: own.is_some(),
        }
    }
}

fn own_row(code: &str, class: FaultClass) -> ClassicCodeRow<'_> {
    ClassicCodeRow {
        code,
        is_prefix: false,
        place: CodePlace::Both,
        class,
        meaning: "(from the configuration)",
        advice: "",
        pause: None,
        is_block: false,
        is_overridden: true,
    }
}

/// The code without the sentence that some servers write after it.
fn first_word(code: &str) -> &str {
    let end = code.find(|c: char| !(c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_'));
    &code[..end.unwrap_or(code.len())]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn class(dialect: ClassicDialect, code: &str) -> FaultClass {
        ClassicCodes::of(dialect).classify(code).class
    }

    #[test]
    fn no_balance_means_no_money_at_one_and_no_thread_at_the_other() {
        assert_eq!(class(ClassicDialect::TwoCaptcha, "ERROR_ZERO_BALANCE"), FaultClass::NoFunds);
        assert_eq!(class(ClassicDialect::CaptchaAi, "ERROR_ZERO_BALANCE"), FaultClass::Busy);
    }

    #[test]
    fn the_best_known_codes_have_their_class() {
        use FaultClass::{AccountBlocked, Busy, Caller, Unsolvable};
        let classes = [
            (
                Busy,
                "ERROR_NO_SLOT_AVAILABLE MAX_USER_TURN IP_BANNED ERROR_TOO_MUCH_REQUESTS ERROR_SERVER_ERROR",
            ),
            (AccountBlocked, "ERROR_KEY_DOES_NOT_EXIST ERROR_WRONG_USER_KEY ERROR_IP_NOT_ALLOWED"),
            (
                Caller,
                "ERROR_WRONG_CAPTCHA_ID ERROR_WRONG_ID_FORMAT ERROR_PAGEURL ERROR_GOOGLEKEY ERROR_BAD_PROXY",
            ),
            (Caller, "ERROR_UPLOAD ERROR_ZERO_CAPTCHA_FILESIZE TOO_MANY_BAD_IMAGES ERROR_TOKEN_EXPIRED"),
            (Unsolvable, "ERROR_CAPTCHA_UNSOLVABLE ERROR_BAD_DUPLICATES"),
        ];
        for (expected, codes) in classes {
            for code in codes.split(' ') {
                for dialect in ClassicDialect::ALL {
                    assert_eq!(class(dialect, code), expected, "{code} at {}", dialect.name());
                }
            }
        }
    }

    /// A code that is in no table leads to useless retries. These codes are in the documentation of the services.
    #[test]
    fn every_code_that_the_services_document_is_in_the_table() {
        let of_submits = "ERROR_METHOD_CALL ERROR_WRONG_USER_KEY ERROR_KEY_DOES_NOT_EXIST ERROR_ZERO_BALANCE \
            ERROR_NO_SLOT_AVAILABLE MAX_USER_TURN ERROR_TOO_MUCH_REQUESTS IP_BANNED ERROR_IP_NOT_ALLOWED ERROR_SERVER_ERROR \
            ERROR_INTERNAL_SERVER_ERROR ERROR_PAGEURL ERROR_GOOGLEKEY ERROR_WRONG_GOOGLEKEY ERROR_BAD_TOKEN_OR_PAGEURL \
            ERROR_BAD_PARAMETERS ERROR_CAPTCHA_ID ERROR_PROXY_FORMAT ERROR_DOMAIN_NOT_ALLOWED ERROR_ZERO_CAPTCHA_FILESIZE \
            ERROR_TOO_BIG_CAPTCHA_FILESIZE ERROR_WRONG_FILE_EXTENSION ERROR_IMAGE_TYPE_NOT_SUPPORTED ERROR_UPLOAD \
            ERROR_IMAGE_DIMENSIONS_TOO_LARGE ERROR_CAPTCHAIMAGE_BLOCKED TOO_MANY_BAD_IMAGES ERROR_BAD_PROXY";
        let of_polls = "ERROR_CAPTCHA_UNSOLVABLE ERROR_WRONG_ID_FORMAT ERROR_WRONG_CAPTCHA_ID ERROR_NO_SUCH_CAPCHA_ID \
            ERROR_BAD_DUPLICATES ERROR_TOKEN_EXPIRED ERROR_PROXY_CONNECTION_FAILED ERROR_EMPTY_ACTION \
            ERROR_REPORT_NOT_RECORDED REPORT_NOT_RECORDED ERROR_DUPLICATE_REPORT ERROR_IP_ADDRES ERROR_FAILED_LOADING_WIDGET";
        let blocks = ["ERROR: 1001", "ERROR: 1002", "ERROR: 1003", "ERROR: 1004", "ERROR: 1005"];
        for code in of_submits.split_whitespace().chain(of_polls.split_whitespace()).chain(blocks) {
            for dialect in ClassicDialect::ALL {
                assert_ne!(class(dialect, code), FaultClass::UnlistedCode, "{code} at {}", dialect.name());
            }
        }
        assert_eq!(class(ClassicDialect::TwoCaptcha, "ERROR_METHOD_CALL"), FaultClass::NotSold);
    }

    #[test]
    fn a_blocked_address_is_busy_also_with_an_unlisted_number() {
        for code in ["ERROR: 1001", "ERROR: 1005", "ERROR: 1009"] {
            assert_eq!(class(ClassicDialect::TwoCaptcha, code), FaultClass::Busy, "{code}");
        }
        let codes = ClassicCodes::of(ClassicDialect::TwoCaptcha);
        assert_eq!(codes.row("ERROR: 1003").unwrap().pause, Some(Duration::from_secs(30)));
        assert_eq!(class(ClassicDialect::TwoCaptcha, "ERROR: 2001"), FaultClass::UnlistedCode);
    }

    #[test]
    fn an_unlisted_code_says_so_and_is_kept() {
        let fault = ClassicCodes::of(ClassicDialect::CaptchaAi).classify(" ERROR_MOON_PHASE ");
        assert_eq!((fault.class, fault.code.as_str()), (FaultClass::UnlistedCode, "ERROR_MOON_PHASE"));
    }

    #[test]
    fn a_sentence_behind_a_code_does_not_hide_it() {
        assert_eq!(
            class(ClassicDialect::TwoCaptcha, "ERROR_ZERO_BALANCE: please top up"),
            FaultClass::NoFunds
        );
    }

    #[test]
    fn the_address_of_an_article_is_the_callers_fault() {
        assert_eq!(
            class(ClassicDialect::TwoCaptcha, "https://2captcha.com/blog/google-search-recaptcha"),
            FaultClass::Caller
        );
    }

    #[test]
    fn the_operator_has_the_last_word_and_the_table_shows_it() {
        let codes = ClassicCodes::of(ClassicDialect::TwoCaptcha)
            .with("ERROR_BAD_PROXY", FaultClass::Busy)
            .with("ERROR_MOON_PHASE", class_named("unsolvable").unwrap());
        assert_eq!(codes.classify("ERROR_BAD_PROXY").class, FaultClass::Busy);
        assert_eq!(codes.classify("ERROR_MOON_PHASE").class, FaultClass::Unsolvable);
        let own: Vec<_> =
            codes.rows().filter(|row| row.is_overridden).map(|row| row.code.to_owned()).collect();
        assert_eq!(own, ["ERROR_BAD_PROXY", "ERROR_MOON_PHASE"]);
        assert!(codes.row("ERROR_BAD_PROXY").unwrap().is_overridden);
    }

    #[test]
    fn classes_have_names_for_a_configuration() {
        assert_eq!(class_named("unlisted_code"), Some(FaultClass::UnlistedCode));
        assert_eq!(class_named("unlisted_code"), Some(FaultClass::UnlistedCode));
        assert_eq!(class_named("permanent"), None);
    }

    #[test]
    fn no_code_stands_in_the_table_twice_and_none_is_pending() {
        for (at, entry) in TABLE.iter().enumerate() {
            assert!(!TABLE[..at].iter().any(|other| other.code == entry.code), "{}", entry.code);
            assert!(!is_pending(entry.code) && !entry.meaning.is_empty() && !entry.advice.is_empty());
        }
    }

    #[test]
    fn tokens_do_not_look_like_codes() {
        for token in ["03AGdBq24PBCbwiDRaS", "XKCD7", "click:3/8/9", "ABC123", "42", "P1_eyJ0eXAiOiJKV1Qi"] {
            assert!(!looks_like_a_code(token), "{token}");
        }
        for code in ["IP_BANNED", "ERROR_X", "ERROR: 1001", "TOO_MANY_BAD_IMAGES"] {
            assert!(looks_like_a_code(code), "{code}");
        }
    }
}
