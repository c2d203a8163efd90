//! Splits one reply into yes or no, and its value. This module tells the shapes of replies apart; `answer` decides
//! what the words mean.

use super::{ClassicSight, REPLY_BYTES_MAX, ThreadsReply, price};
use crate::classic::code::{ClassicCodes, is_pending, looks_like_a_code};
use quittance_lifecycle::Money;
use serde_json::value::RawValue;
use std::collections::BTreeMap;

type JsonMembers<'a> = BTreeMap<String, &'a RawValue>;

/// Limits of the extra fields that are kept with an answer.
const EXTRAS_MAX: usize = 16;
const EXTRA_BYTES_MAX: usize = 16 * 1024;

/// Members that belong to the protocol or to an error, and are no extra fields of an answer.
const NOT_EXTRAS: &[&str] =
    &["status", "request", "result", "price", "error", "error_text", "error_code", "errorCode", "errorId"];

/// Members that can hold a code, the most likely first, and text for people last.
const CODE_MEMBERS: &[&str] =
    &["request", "error_code", "errorCode", "error", "result", "error_text", "errorDescription"];

/// Some replies are only the fields of an answer to a puzzle. These fields together identify such a reply.
const BARE_ANSWERS: &[&[&str]] = &[
    &["challenge", "validate", "seccode"],
    &["geetest_challenge", "geetest_validate", "geetest_seccode"],
    &["captcha_id", "lot_number", "pass_token", "captcha_output"],
];

pub(super) enum ReplyValue {
    Text(String),
    Number(String),
    /// A JSON object or array.
    Document(String),
}

pub(super) enum ClassicBody {
    Yes {
        answer: ReplyValue,
        extras: BTreeMap<String, String>,
        cost: Option<Money>,
        is_plain: bool,
    },
    /// The reply reports success, but contains no answer.
    Hollow,
    No(String),
    Puzzling(ClassicSight),
}

impl ClassicBody {
    pub(super) fn read(body: &[u8], codes: &ClassicCodes) -> Self {
        match text_of(body) {
            Ok(text) if text.starts_with('{') => match members(text) {
                Some(members) => Self::json(text, &members, codes),
                None => Self::Puzzling(ClassicSight::BrokenJson),
            },
            Ok(text) if text.starts_with('"') => match serde_json::from_str::<String>(text) {
                Ok(inside) => Self::plain(inside.trim(), codes),
                Err(_) => Self::Puzzling(ClassicSight::BrokenJson),
            },
            Ok(text) => Self::plain(text, codes),
            Err(sight) => Self::Puzzling(sight),
        }
    }

    fn plain(text: &str, codes: &ClassicCodes) -> Self {
        match text.strip_prefix("OK|").map(str::trim) {
            Some("") => return Self::Hollow,
            Some(answer) => {
                let answer = ReplyValue::Text(answer.to_owned());
                return Self::Yes { answer, extras: BTreeMap::new(), cost: None, is_plain: true };
            }
            None => {}
        }
        // Only a word, never a page of prose: a proxy's error page may begin with a word in capitals, too.
        let is_code = codes.is_known(text) || looks_like_a_code(text);
        let is_several = text.split('|').all(|part| is_pending(part) || looks_like_a_code(part));
        if is_pending(text) || is_several || (is_code && !text.contains(['<', '\n'])) {
            Self::No(text.to_owned())
        } else {
            Self::Puzzling(ClassicSight::Junk)
        }
    }

    fn json(text: &str, members: &JsonMembers<'_>, codes: &ClassicCodes) -> Self {
        match status(members) {
            Some(true) => Self::yes(members),
            Some(false) => {
                Self::No(code(members, codes).unwrap_or_else(|| "a refusal without a code".to_owned()))
            }
            None if is_bare_answer(members) => {
                let answer = ReplyValue::Document(compact(text));
                Self::Yes { answer, extras: BTreeMap::new(), cost: None, is_plain: false }
            }
            None => match code(members, codes).filter(|code| is_pending(code) || looks_like_a_code(code)) {
                Some(code) => Self::No(code),
                None => Self::Puzzling(ClassicSight::BrokenJson),
            },
        }
    }

    fn yes(members: &JsonMembers<'_>) -> Self {
        let Some(answer) = ["request", "result"].iter().find_map(|name| spoken(members.get(*name)?)) else {
            return Self::Hollow;
        };
        let cost = members.get("price").and_then(|raw| price::money(&word(raw)?));
        Self::Yes { answer, extras: extras(members), cost, is_plain: false }
    }
}

/// The numbers of threads: at the top, or inside `request`, as an object or as text that holds one.
pub(super) fn threads(body: &[u8]) -> Option<ThreadsReply> {
    let outer = members(text_of(body).ok()?)?;
    let inner = outer.get("request").map(|raw| match serde_json::from_str::<String>(raw.get()) {
        Ok(text) => text,
        Err(_) => raw.get().to_owned(),
    });
    let inner = inner.as_deref().and_then(members);
    [Some(&outer), inner.as_ref()].into_iter().flatten().find_map(|members| {
        let count = |name| members.get(name).and_then(|raw| word(raw)?.parse().ok());
        Some(ThreadsReply { total: count("threads")?, working: count("working_threads")? })
    })
}

/// Whether the text is a JSON object or a list of objects. A list of numbers is text: some answers are written so.
pub(super) fn is_document(text: &str) -> bool {
    let begins_so = text.starts_with('{') || text.starts_with("[{");
    begins_so && serde_json::from_str::<&RawValue>(text).is_ok()
}

fn text_of(body: &[u8]) -> Result<&str, ClassicSight> {
    if body.len() > REPLY_BYTES_MAX {
        return Err(ClassicSight::TooLong);
    }
    let text = std::str::from_utf8(body).map_err(|_| ClassicSight::Junk)?;
    match text.trim_start_matches('\u{feff}').trim() {
        "" => Err(ClassicSight::Nothing),
        text if text.starts_with('<') => Err(ClassicSight::Html),
        text => Ok(text),
    }
}

fn members(text: &str) -> Option<JsonMembers<'_>> {
    serde_json::from_str(text).ok()
}

/// The value of a member that is a text, a number or a boolean.
fn word(raw: &RawValue) -> Option<String> {
    match raw.get().as_bytes().first()? {
        b'"' => serde_json::from_str::<String>(raw.get()).ok(),
        b'{' | b'[' | b'n' => None,
        _ => Some(raw.get().to_owned()),
    }
}

fn status(members: &JsonMembers<'_>) -> Option<bool> {
    match word(members.get("status")?)?.as_str() {
        "1" | "true" => Some(true),
        "0" | "false" => Some(false),
        _ => None,
    }
}

fn spoken(raw: &RawValue) -> Option<ReplyValue> {
    match raw.get().as_bytes().first()? {
        b'{' | b'[' => Some(ReplyValue::Document(compact(raw.get()))),
        b'"' => {
            word(raw).map(|text| text.trim().to_owned()).filter(|text| !text.is_empty()).map(ReplyValue::Text)
        }
        b'-' | b'0'..=b'9' => Some(ReplyValue::Number(raw.get().to_owned())),
        _ => None,
    }
}

/// The code, wherever it stands. Text for people beside or around the code does not hide it.
fn code(members: &JsonMembers<'_>, codes: &ClassicCodes) -> Option<String> {
    let texts = || {
        let value_text = CODE_MEMBERS.iter().filter_map(|name| word(members.get(*name)?));
        value_text.map(|text| text.trim().to_owned()).filter(|text| !text.is_empty())
    };
    let within = |text: String| {
        let is_spelled = |c: char| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_';
        let mut words = text.split(|c| !is_spelled(c)).filter(|word| word.contains('_'));
        words.find(|word| codes.is_known(word)).map(str::to_owned)
    };
    texts()
        .find(|text| is_pending(text) || codes.is_known(text))
        .or_else(|| texts().find_map(within))
        .or_else(|| texts().find(|text| looks_like_a_code(text)))
        .or_else(|| texts().next())
}

fn is_bare_answer(members: &JsonMembers<'_>) -> bool {
    let has = |name: &&str| members.contains_key(*name);
    BARE_ANSWERS.iter().any(|fields| fields.iter().all(has))
}

fn extras(members: &JsonMembers<'_>) -> BTreeMap<String, String> {
    let rest = members.iter().filter(|(name, _)| !NOT_EXTRAS.contains(&name.as_str()));
    rest.filter_map(|(name, raw)| {
        let value_text = match raw.get().as_bytes().first()? {
            b'{' | b'[' => compact(raw.get()),
            _ => word(raw)?,
        };
        // One browser, three spellings.
        let name = if name.replace('_', "").eq_ignore_ascii_case("useragent") { "user_agent" } else { name };
        (!value_text.is_empty() && value_text.len() <= EXTRA_BYTES_MAX).then(|| (name.to_owned(), value_text))
    })
    .take(EXTRAS_MAX)
    .collect()
}

/// A JSON document without white space between its parts. Member order and number format stay as the provider sent
/// them.
fn compact(json: &str) -> String {
    let mut is_quoted = false;
    let mut is_escaped = false;
    let keep = |c: &char| {
        if is_quoted {
            is_quoted = is_escaped || *c != '"';
            is_escaped = !is_escaped && *c == '\\';
            true
        } else {
            is_quoted = *c == '"';
            !c.is_ascii_whitespace()
        }
    };
    json.chars().filter(keep).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn compacting_touches_nothing_inside_quotes() {
        assert_eq!(
            compact("{ \"a b\" : [1, 2.50 ],\n\"c\\\" d\": \" e \" }"),
            "{\"a b\":[1,2.50],\"c\\\" d\":\" e \"}"
        );
    }
}
