//! Translates one field of a task between JSON and our text. A value that had a JSON type (`true`, 3, an object) gets
//! it back when it is written again.

use super::task_row::{FieldShape, TaskRow};
use crate::classic::json_document;
use base64::Engine as _;
use base64::alphabet;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use quittance_lifecycle::Value as Param;
use serde_json::{Map, Number, Value};

/// Base64 as real clients write it, with and without padding.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &alphabet::STANDARD,
    GeneralPurposeConfig::new()
        .with_decode_padding_mode(DecodePaddingMode::Indifferent)
        .with_decode_allow_trailing_bits(true),
);

/// The most digits of a text that is written as a number. A longer one is probably a name, and stays text.
const COUNT_LETTERS_MAX: usize = 5;

/// The field at a path, at most one object deep. An object may be packed into a text.
pub(super) fn at<'a>(task: &'a Map<String, Value>, path: &str) -> Option<&'a Value> {
    match path.split_once('.') {
        Some((outer, inner)) => task.get(outer)?.get(inner),
        None => task.get(path),
    }
}

/// All fields with their paths. An object is opened only as far as its fields have known names.
pub(super) fn flatten(task: &Map<String, Value>, row: &TaskRow) -> Vec<(String, Value)> {
    let mut fields = Vec::with_capacity(task.len());
    for (name, value) in task {
        let inner = match value {
            Value::Object(inner) => Some(inner.clone()),
            Value::String(text) if row.packed.contains(&name.as_str()) => {
                match json_document::in_text(text) {
                    Some(Value::Object(inner)) => Some(inner),
                    _ => None,
                }
            }
            _ => None,
        };
        let Some(inner) = inner else {
            fields.push((name.clone(), value.clone()));
            continue;
        };
        let mut rest = Map::new();
        for (inside, value) in inner {
            let path = format!("{name}.{inside}");
            if row.name_of(&path).is_some() {
                fields.push((path, value));
            } else {
                rest.insert(inside, value);
            }
        }
        if !rest.is_empty() {
            fields.push((name.clone(), Value::Object(rest)));
        }
    }
    fields
}

/// The value as text, or `None` for `null`.
pub(super) fn text(value: &Value) -> Option<String> {
    match value {
        Value::Null => None,
        Value::Bool(stated) => Some(stated.to_string()),
        Value::Number(number) => Some(number.to_string()),
        Value::String(text) => Some(text.clone()),
        Value::Array(_) | Value::Object(_) => Some(value.to_string()),
    }
}

/// Whether the value equals `stated`, as the most tolerant provider reads it.
pub(super) fn says(value: &Value, stated: &str) -> bool {
    text(value).is_some_and(|text| text.trim().eq_ignore_ascii_case(stated))
}

/// Reads a field. The inner `None` means an empty field; the outer `None` means a broken file.
pub(super) fn read(shape: FieldShape, value: &Value) -> Option<Option<Param>> {
    let stated = match (shape, value) {
        (FieldShape::Flag | FieldShape::Number, Value::Bool(stated)) => Some(u8::from(*stated).to_string()),
        _ => text(value),
    };
    let Some(stated) = stated.filter(|stated| !stated.is_empty()) else { return Some(None) };
    let stated = match shape {
        FieldShape::File => return decode(&stated).map(|bytes| Some(Param::Bytes(bytes))),
        FieldShape::Flag => match stated.as_str() {
            "true" | "True" => "1".to_owned(),
            "false" | "False" => "0".to_owned(),
            _ => stated,
        },
        FieldShape::Host if !stated.contains("://") => format!("https://{stated}"),
        FieldShape::Cookies if !is_list(&stated) => recut(&stated, '=', ':', ";"),
        FieldShape::Text | FieldShape::Number | FieldShape::Host | FieldShape::Cookies => stated,
    };
    Some(Some(Param::Text(stated)))
}

/// The value as the JSON protocol writes it; `None` for an empty text. Without a shape, its type follows from the text.
pub(super) fn write(shape: Option<FieldShape>, param: &Param) -> Option<Value> {
    let text = match param {
        Param::Bytes(bytes) => return Some(Value::String(BASE64.encode(bytes))),
        Param::Text(text) if text.is_empty() => return None,
        Param::Text(text) => text,
    };
    Some(match shape {
        Some(FieldShape::Flag) => match text.as_str() {
            "1" => Value::Bool(true),
            "0" => Value::Bool(false),
            _ => Value::from(text.as_str()),
        },
        Some(FieldShape::Number) => number(text).unwrap_or_else(|| Value::from(text.as_str())),
        Some(FieldShape::Host) => Value::from(text.strip_prefix("https://").unwrap_or(text)),
        Some(FieldShape::Text | FieldShape::File | FieldShape::Cookies) => Value::from(text.as_str()),
        None => typed(text),
    })
}

/// Cookies as the wire has them: pairs in one text, or a list, which not all dialects take. `None` if they cannot be
/// written.
pub(super) fn write_cookies(param: &Param, takes_lists: bool) -> Option<Option<Value>> {
    match write(Some(FieldShape::Text), param) {
        Some(Value::String(text)) if is_list(&text) => {
            json_document::in_text(&text).filter(|_| takes_lists).map(Some)
        }
        Some(Value::String(text)) => Some(Some(Value::String(recut(&text, ':', '=', "; ")))),
        other => Some(other),
    }
}

fn is_list(text: &str) -> bool {
    text.trim_start().starts_with(['[', '{'])
}

/// Whether the value is a text that would be read back as another JSON type.
pub(super) fn looks_otherwise(value: &Value) -> bool {
    matches!(value, Value::String(text) if !typed(text).is_string())
}

fn typed(text: &str) -> Value {
    match text {
        "true" => Value::Bool(true),
        "false" => Value::Bool(false),
        text if text.starts_with(['{', '[']) => {
            json_document::in_text(text).unwrap_or_else(|| Value::from(text))
        }
        text if text.len() <= COUNT_LETTERS_MAX => number(text).unwrap_or_else(|| Value::from(text)),
        text => Value::from(text),
    }
}

/// The number, if it would be written exactly like this text.
fn number(text: &str) -> Option<Value> {
    let number: Number = text.parse().ok()?;
    (number.to_string() == text).then_some(Value::Number(number))
}

/// The score that an absent score means.
pub(super) const USUAL_SCORE: f64 = 0.4;

/// The lowest score of Anti-Captcha that is not below the requested one. Anti-Captcha needs a score.
pub(super) fn score(requested: Option<&str>) -> f64 {
    const OFFERED: [f64; 3] = [0.3, 0.7, 0.9];
    let requested = requested.and_then(|text| text.parse().ok()).unwrap_or(USUAL_SCORE);
    OFFERED.into_iter().find(|offered| *offered >= requested).unwrap_or(OFFERED[2])
}

/// Sets a field unless it has another value. Returns false if it has: no value is ever replaced.
pub(super) fn put(task: &mut Map<String, Value>, path: &str, value: Value) -> bool {
    fn insert(task: &mut Map<String, Value>, name: &str, value: Value) -> bool {
        match (task.get_mut(name), value) {
            (None, value) => {
                task.insert(name.to_owned(), value);
                true
            }
            (Some(Value::Object(there)), Value::Object(more)) => {
                more.into_iter().all(|(name, value)| insert(there, &name, value))
            }
            (Some(there), value) => *there == value,
        }
    }
    match path.split_once('.') {
        Some((outer, inner)) => {
            let object = task.entry(outer).or_insert_with(|| Value::Object(Map::new()));
            match object {
                Value::Object(object) => insert(object, inner, value),
                _ => false,
            }
        }
        None => insert(task, path, value),
    }
}

/// Replaces `from` by `to` as the separator inside all pairs. Unchanged if a pair is not written so.
fn recut(text: &str, from: char, to: char, between: &str) -> String {
    let pairs: Vec<_> = text.split(';').map(str::trim).filter(|pair| !pair.is_empty()).collect();
    let cut = |pair: &&str| match pair.find(['=', ':']) {
        Some(at) if pair[at..].starts_with(from) => Some(format!("{}{to}{}", &pair[..at], &pair[at + 1..])),
        _ => None,
    };
    let recut: Option<Vec<_>> = pairs.iter().map(cut).collect();
    recut.filter(|pairs| !pairs.is_empty()).map_or(text.to_owned(), |pairs| pairs.join(between))
}

/// Decodes base64, also from a `data:` URL or with line breaks.
fn decode(text: &str) -> Option<Vec<u8>> {
    let text = text.trim();
    let text = match text.strip_prefix("data:") {
        Some(address) => address.split_once(',')?.1.trim(),
        None => text,
    };
    let text: String = text.chars().filter(|c| !c.is_ascii_whitespace()).collect();
    BASE64.decode(text).ok().filter(|bytes| !bytes.is_empty())
}
