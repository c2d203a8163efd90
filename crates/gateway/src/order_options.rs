//! The fields of a request for Quittance itself: which job it is, how urgent it is, how long it can take and how often it
//! is tried, and how fresh and how shared its answer can be. Both foreign protocols read them here, so a field has one meaning. No provider gets them: all
//! are on the catalogue's list of [control fields](quittance_protocol::kinds::CONTROL).

use crate::api::trace_of;
use hyper::HeaderMap;
use quittance_lifecycle::terms::{IDEMPOTENCY_KEY_BYTES_MAX, TIMEOUT_MAX};
use quittance_lifecycle::{Draft, MAX_RETRIES_MAX, Priority, RetryLimits, Reuse};
pub(crate) use quittance_protocol::kinds::order_field as field_named;
use quittance_protocol::kinds::order_field_meant;
use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::time::Duration;

/// The life that an answer must have for a client that gets an id and not the answer itself. Such a client first
/// polls after 5 to 15 seconds.
const COLLECTED_IN: Duration = Duration::from_secs(15);
pub(crate) const KEY: &str = "idempotency_key";
/// The range of `deadline_s`, in seconds.
const DEADLINE_S: RangeInclusive<u64> = 1..=TIMEOUT_MAX.as_secs();
/// The range of `min_life_s`. No answer that expires lives longer than a day.
const MIN_LIFE_S: RangeInclusive<u64> = 0..=86_400;

/// The range of `retry_base_s` and `retry_cap_s`, in seconds.
pub(crate) const RETRY_PAUSE_S: RangeInclusive<u64> = 0..=TIMEOUT_MAX.as_secs();

/// What is wrong with one of the fields.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum BadOption {
    #[error("the header {name} was sent {count} times: send it once")]
    TwoHeaders { name: &'static str, count: usize },
    #[error(
        "the headers Idempotency-Key and X-Idempotency-Key differ: send one of them, or the same in both"
    )]
    HeadersDiffer,
    #[error(
        "an idempotency key has 1 to {IDEMPOTENCY_KEY_BYTES_MAX} visible ASCII characters and no blank: \
         this one, of {bytes} bytes, does not"
    )]
    Key { bytes: usize },
    #[error(
        "the header Idempotency-Key and the field `idempotency_key` differ: send one of them, or the same in both"
    )]
    KeysDiffer,
    #[error("`{field}` must be a number of seconds from {least} to {most}")]
    Seconds { field: String, least: u64, most: u64 },
    #[error("`{field}` must be a whole number from 0 to {most}")]
    Count { field: String, most: u8 },
    #[error("`{field}` must be `shared` or `exclusive`")]
    Reuse { field: String },
    #[error("`{field}` must be `interactive`, `normal` or `bulk`")]
    Priority { field: String },
    #[error("`{field}` must be a text or a number")]
    Shape { field: String },
    #[error("`{field}` must be a text or a whole number: send it as text, in quotes")]
    KeyNumber { field: String },
    #[error("`{field}` was sent twice, with different values: send it once")]
    SentTwice { field: String },
    #[error("there is no field `{}`: did you mean `{meant}`?", .field.escape_debug())]
    Misspelt { field: String, meant: &'static str },
    #[error(
        "`{field}` stands beside the task and inside it, with different values: write it inside the task only"
    )]
    BesideTask { field: String },
    #[error("`{field}` stands beside the task, where it says nothing: write it inside the task")]
    OutsideTask { field: String },
    #[error("`{one}` and `{other}` are one field, and their values are different: send one of them")]
    TwoSpellings { one: String, other: String },
}

/// Refuses a name that is probably a misspelt field of ours.
pub(crate) fn check_not_misspelt(name: &str) -> Result<(), BadOption> {
    match order_field_meant(name) {
        Some(meant) => Err(BadOption::Misspelt { field: name.to_owned(), meant }),
        None => Ok(()),
    }
}

/// The fields of ours in a request, each with the name that the client wrote.
#[derive(Debug, Default)]
pub(crate) struct OptionFields(BTreeMap<&'static str, (String, String)>);

impl OptionFields {
    /// Adds a field if it is one of ours, and returns whether it is. Two values of one field must be equal. An empty
    /// value means "not set", as clients of both protocols write it, except for the key.
    pub(crate) fn add(
        &mut self,
        name: &str,
        value: impl FnOnce() -> Result<String, BadOption>,
    ) -> Result<bool, BadOption> {
        let Some(field) = field_named(name) else { return Ok(false) };
        let value = value()?;
        match self.0.get(field) {
            _ if field != KEY && value.trim().is_empty() => {}
            Some((_, known)) if *known == value => {}
            Some((one, _)) if one == name => return Err(BadOption::SentTwice { field: name.to_owned() }),
            Some((one, _)) => {
                return Err(BadOption::TwoSpellings { one: one.clone(), other: name.to_owned() });
            }
            None => _ = self.0.insert(field, (name.to_owned(), value)),
        }
        Ok(true)
    }

    fn get(&self, field: &str) -> Option<(&str, &str)> {
        self.0.get(field).map(|(name, value)| (name.as_str(), value.as_str()))
    }
}

/// The idempotency key in the headers, if there is one.
pub(crate) fn key_in_header(headers: &HeaderMap) -> Result<Option<String>, BadOption> {
    let read = |name: &str, shown: &'static str| {
        let mut given = headers.get_all(name).iter();
        let Some(key) = given.next() else { return Ok(None) };
        match given.count() {
            0 => checked_key(key.as_bytes()).map(Some),
            more => Err(BadOption::TwoHeaders { name: shown, count: more + 1 }),
        }
    };
    match (read("idempotency-key", "Idempotency-Key")?, read("x-idempotency-key", "X-Idempotency-Key")?) {
        (Some(one), Some(other)) if one != other => Err(BadOption::HeadersDiffer),
        (one, other) => Ok(one.or(other)),
    }
}

fn checked_key(key: &[u8]) -> Result<String, BadOption> {
    let is_good =
        (1..=IDEMPOTENCY_KEY_BYTES_MAX).contains(&key.len()) && key.iter().all(u8::is_ascii_graphic);
    match std::str::from_utf8(key) {
        Ok(key) if is_good => Ok(key.to_owned()),
        _ => Err(BadOption::Key { bytes: key.len() }),
    }
}

impl OptionFields {
    /// The order without its parameters, for a client that polls for its answer later.
    pub(crate) fn draft(&self, headers: &HeaderMap) -> Result<Draft, BadOption> {
        let is_set = |field| self.get(field).is_some_and(|(_, text)| is_yes(text));
        let is_fresh_wanted = is_set("nocache");
        let reuse = match self.get("reuse") {
            _ if is_fresh_wanted => Some(Reuse::Exclusive),
            None => None,
            Some((_, "shared")) => Some(Reuse::Shared),
            Some((_, "exclusive")) => Some(Reuse::Exclusive),
            Some((name, _)) => return Err(BadOption::Reuse { field: name.to_owned() }),
        };
        let priority = |(name, text): (&str, &str)| {
            Priority::parse(text.trim()).ok_or_else(|| BadOption::Priority { field: name.to_owned() })
        };
        let duration = |field, range: RangeInclusive<u64>| {
            self.get(field).map(|(name, text)| seconds(name, text, &range)).transpose()
        };
        let max_retries = self.get("max_retries").map(|(name, text)| {
            let count = text.trim().parse().ok().filter(|count| *count <= MAX_RETRIES_MAX);
            count.ok_or_else(|| BadOption::Count { field: name.to_owned(), most: MAX_RETRIES_MAX })
        });
        let retry = RetryLimits {
            max_retries: max_retries.transpose()?,
            base: duration("retry_base_s", RETRY_PAUSE_S)?,
            cap: duration("retry_cap_s", RETRY_PAUSE_S)?,
        };
        // An empty key is an error: its caller wants a retry to be safe, and it would not be.
        let key = self.get(KEY).map(|(_, key)| key.to_owned());
        Ok(Draft {
            idempotency_key: one_key(key_in_header(headers)?, key)?,
            reuse,
            timeout: duration("deadline_s", DEADLINE_S)?,
            retry,
            min_life: duration("min_life_s", MIN_LIFE_S)?,
            no_stock: is_fresh_wanted || is_set("no_stock"),
            collected_in: COLLECTED_IN,
            priority: self.get("priority").map(priority).transpose()?,
            trace: trace_of(headers),
            ..Draft::default()
        })
    }
}

/// The idempotency key of a request: in its header, in a field, or in both.
pub(crate) fn one_key(
    in_header: Option<String>,
    in_field: Option<String>,
) -> Result<Option<String>, BadOption> {
    let in_field = in_field.map(|key| checked_key(key.as_bytes())).transpose()?;
    match (in_header, in_field) {
        (Some(header), Some(field)) if header != field => Err(BadOption::KeysDiffer),
        (header, field) => Ok(header.or(field)),
    }
}

fn seconds(field: &str, text: &str, range: &RangeInclusive<u64>) -> Result<Duration, BadOption> {
    let (least, most) = (*range.start(), *range.end());
    let span = text.trim().parse().ok().and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    span.filter(|span| (Duration::from_secs(least)..=Duration::from_secs(most)).contains(span))
        .ok_or_else(|| BadOption::Seconds { field: field.to_owned(), least, most })
}

/// Whether a switch is on: empty, `0` and `false` are off, as in both protocols.
fn is_yes(text: &str) -> bool {
    let text = text.trim();
    !matches!(text, "" | "0") && !text.eq_ignore_ascii_case("false")
}

#[cfg(test)]
mod tests {
    use super::*;
    use hyper::header::HeaderValue;

    fn read(header: Option<&'static str>, fields: &[(&str, &str)]) -> Result<Draft, BadOption> {
        let mut headers = HeaderMap::new();
        if let Some(key) = header {
            headers.insert("idempotency-key", HeaderValue::from_static(key));
        }
        let mut given = OptionFields::default();
        for (name, text) in fields {
            assert!(given.add(name, || Ok((*text).to_owned()))?, "{name} is one of ours");
        }
        given.draft(&headers)
    }

    fn key(header: Option<&'static str>, fields: &[(&str, &str)]) -> Result<Option<String>, BadOption> {
        read(header, fields).map(|options| options.idempotency_key)
    }

    #[test]
    fn a_key_comes_in_the_header_or_in_a_field_and_two_must_agree() {
        let field = |text| [("idempotency_key", text)];
        let login = Ok(Some("login-42".to_owned()));
        assert_eq!(key(Some("login-42"), &[]), login);
        assert_eq!(key(None, &field("login-42")), login);
        assert_eq!(key(Some("login-42"), &field("login-42")), login);
        assert_eq!(key(None, &[]), Ok(None));
        assert_eq!(key(Some("login-42"), &field("login-43")), Err(BadOption::KeysDiffer));
    }

    #[test]
    fn a_key_that_no_api_takes_is_an_error_and_never_no_key() {
        let long = "k".repeat(IDEMPOTENCY_KEY_BYTES_MAX);
        assert_eq!(key(None, &[("idempotency_key", &long)]), Ok(Some(long.clone())));
        for bad in ["", " ", "a b", "a\n", "\u{e9}", "\u{7f}", &format!("{long}k")] {
            let response = key(None, &[("idempotency_key", bad)]);
            assert_eq!(response, Err(BadOption::Key { bytes: bad.len() }), "{bad:?}");
        }
        assert_eq!(key(Some(""), &[]), Err(BadOption::Key { bytes: 0 }));
        let mut headers = HeaderMap::new();
        headers.append("idempotency-key", HeaderValue::from_static("a"));
        headers.append("idempotency-key", HeaderValue::from_static("a"));
        assert_eq!(key_in_header(&headers), Err(BadOption::TwoHeaders { name: "Idempotency-Key", count: 2 }));
    }

    #[test]
    fn spans_are_seconds_within_their_limits_and_an_empty_text_is_not_set() {
        let deadline = |text| read(None, &[("deadline_s", text)]).map(|options| options.timeout);
        assert_eq!(deadline("60"), Ok(Some(Duration::from_secs(60))));
        assert_eq!(deadline(" 1.5 "), Ok(Some(Duration::from_millis(1500))));
        assert_eq!(deadline(""), Ok(None));
        for bad in ["0", "0.9", "-1", "86401", "1e99", "nan", "inf", "60s", "1,5"] {
            let wrong = BadOption::Seconds { field: "deadline_s".to_owned(), least: 1, most: 86_400 };
            assert_eq!(deadline(bad), Err(wrong), "{bad}");
        }
        let min_life = |text| read(None, &[("min_life_s", text)]).map(|options| options.min_life);
        assert_eq!(min_life("0"), Ok(Some(Duration::ZERO)));
        assert!(min_life("-1").is_err());
    }

    #[test]
    fn a_number_of_retries_is_whole_and_within_its_limits() {
        let retries = |text| read(None, &[("maxRetries", text)]).map(|options| options.retry.max_retries);
        for (text, count) in [("0", Some(0)), (" 3 ", Some(3)), ("50", Some(50)), ("", None)] {
            assert_eq!(retries(text), Ok(count), "{text}");
        }
        for bad in ["-1", "1.5", "51", "256", "three"] {
            let wrong = BadOption::Count { field: "maxRetries".to_owned(), most: 50 };
            assert_eq!(retries(bad), Err(wrong), "{bad}");
        }
        let pauses = [("retry_base_s", "1.5"), ("retry_cap_s", "0")];
        let retry = read(None, &pauses).unwrap().retry;
        assert_eq!((retry.base, retry.cap), (Some(Duration::from_millis(1500)), Some(Duration::ZERO)));
    }

    #[test]
    fn no_cache_asks_for_an_answer_of_its_own_whatever_reuse_says() {
        let body =
            |fields: &[(&str, &str)]| read(None, fields).map(|options| (options.reuse, options.no_stock));
        assert_eq!(body(&[]), Ok((None, false)));
        assert_eq!(body(&[("reuse", "shared")]), Ok((Some(Reuse::Shared), false)));
        assert_eq!(body(&[("reuse", "exclusive"), ("no_stock", "1")]), Ok((Some(Reuse::Exclusive), true)));
        assert_eq!(body(&[("reuse", "shared"), ("nocache", "true")]), Ok((Some(Reuse::Exclusive), true)));
        assert_eq!(body(&[("nocache", "0"), ("no_stock", "False")]), Ok((None, false)));
        assert_eq!(body(&[("reuse", "Shared")]), Err(BadOption::Reuse { field: "reuse".to_owned() }));
    }

    #[test]
    fn a_priority_is_one_of_three_words_and_an_empty_text_is_not_set() {
        let priority = |text| read(None, &[("priority", text)]).map(|draft| draft.priority);
        for known in Priority::ALL {
            assert_eq!(priority(known.name()), Ok(Some(known)));
        }
        assert_eq!(priority(""), Ok(None));
        for bad in ["urgent", "Bulk", "1", "normal,bulk"] {
            assert_eq!(priority(bad), Err(BadOption::Priority { field: "priority".to_owned() }), "{bad}");
        }
    }

    #[test]
    fn a_name_that_is_nearly_one_of_ours_is_refused_with_the_one_that_is_meant() {
        for (name, meant) in [
            ("idempotency", "idempotency_key"),
            ("idempotencyKeys", "idempotency_key"),
            ("idempotency_kye", "idempotency_key"),
            ("deadline", "deadline_s"),
            ("deadlineMs", "deadline_s"),
            ("min_life", "min_life_s"),
            ("Idempotency", "idempotency_key"),
            ("idempotency_id", "idempotency_key"),
            ("idempkey", "idempotency_key"),
            ("idempotency.key", "idempotency_key"),
            ("idempotency_key[0]", "idempotency_key"),
            ("deadlineSeconds", "deadline_s"),
            ("reuse_mode", "reuse"),
            ("no_cache_at_all", "nocache"),
        ] {
            let misspelt = BadOption::Misspelt { field: name.into(), meant };
            assert_eq!(check_not_misspelt(name), Err(misspelt), "{name}");
        }
        for name in ["Idempotency-Key", "idempotencyKey", "deadlineS", "minLength", "softId", "languagePool"]
        {
            assert_eq!(check_not_misspelt(name), Ok(()), "{name}");
        }
        assert_eq!(field_named("Idempotency-Key"), Some("idempotency_key"));
    }

    #[test]
    fn case_underscores_and_hyphens_of_a_name_do_not_count_and_two_values_are_an_error() {
        for name in [
            "idempotency_key",
            "idempotencyKey",
            "IdempotencyKey",
            "IDEMPOTENCY_KEY",
            "idempotencykey",
            "Idempotency-Key",
        ] {
            assert_eq!(field_named(name), Some("idempotency_key"), "{name}");
        }
        for (name, field) in [("deadlineS", "deadline_s"), ("minLifeS", "min_life_s"), ("noCache", "nocache")]
        {
            assert_eq!(field_named(name), Some(field));
        }
        for name in ["", "_", "key", "deadline", "min_life", "pageurl"] {
            assert_eq!(field_named(name), None, "{name}");
        }
        let equal = [("deadline_s", "60"), ("deadlineS", "60"), ("deadline_s", " ")];
        assert_eq!(read(None, &equal).map(|read| read.timeout), Ok(Some(Duration::from_secs(60))));
        let (one, other) = ("deadline_s".to_owned(), "deadlineS".to_owned());
        let spelled = read(None, &[("deadline_s", "60"), ("deadlineS", "61")]);
        assert_eq!(spelled, Err(BadOption::TwoSpellings { one: one.clone(), other }));
        let doubled = read(None, &[("deadline_s", "60"), ("deadline_s", "61")]);
        assert_eq!(doubled, Err(BadOption::SentTwice { field: one }));
    }
}
