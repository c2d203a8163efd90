//! Which `method` and which fields stand for which kind, both ways: [`spell`] writes an order as a provider wants to
//! read it, [`understand`] reads what a client wrote. A method that nobody has described passes through untouched,
//! as an open kind of its own name: new ones appear every few months.

mod table;

use crate::form::{Form, Part};
use crate::profile::Profile;
use base64::Engine as _;
use base64::alphabet;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use quittance_lifecycle::Value;
use std::collections::BTreeMap;
use table::{COMPANIONS, PLAIN, Spelling, TABLE};

pub use quittance_catalog::CONTROL;

/// As clients write it, and not only as it should be written.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &alphabet::STANDARD,
    GeneralPurposeConfig::new()
        .with_decode_padding_mode(DecodePaddingMode::Indifferent)
        .with_decode_allow_trailing_bits(true),
);

/// What a client wants, in the words of the catalog.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wanted {
    pub kind: String,
    pub params: BTreeMap<String, Value>,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadWish {
    #[error("it says neither `method` nor anything that would tell it")]
    NoMethod,
    #[error("`{field}` is not a file in base64")]
    NotBase64 { field: String },
}

/// Whether the answer is of no use without what a reply brings beside it. Pingbacks have no place for that.
#[must_use]
pub fn has_companions(profile: Profile, kind: &str, params: &BTreeMap<String, Value>) -> bool {
    let says = |name: &str| params.get(name).is_some_and(|value| !matches!(value.as_bytes(), b"" | b"0"));
    COMPANIONS.iter().any(|(at, of, if_said)| (*at, *of) == (profile, kind) && if_said.is_none_or(says))
}

/// The fields of `in.php` for an order: the method and all that it takes, but neither the key nor anything else about
/// how to talk. Files that can only be uploaded are [`Part::File`]; all others are base64.
#[must_use]
pub fn spell(profile: Profile, kind: &str, params: &BTreeMap<String, Value>) -> Form {
    let spelling = TABLE.iter().find(|spelling| spelling.kind == kind).unwrap_or(&PLAIN);
    let wire = spelling.at(profile);
    let mut form = Form::default();
    for (name, value) in params.iter().filter(|(name, _)| !CONTROL.contains(&name.as_str())) {
        let part = match value {
            Value::Text(text) if text.is_empty() => continue,
            Value::Text(text) => Part::Text(text.clone()),
            Value::Bytes(bytes) if spelling.is_base64(name) => Part::Text(BASE64.encode(bytes)),
            Value::Bytes(bytes) => Part::File(bytes.clone()),
        };
        let name =
            wire.names.iter().find(|(ours, _)| ours == name).map_or(name.as_str(), |(_, theirs)| theirs);
        form.0.insert(name.to_owned(), part);
    }
    for (name, said) in wire.marks {
        form.0.entry((*name).to_owned()).or_insert_with(|| Part::Text((*said).to_owned()));
    }
    let method = if spelling.kind.is_empty() { kind } else { wire.method };
    if !method.is_empty() {
        form.0.insert("method".to_owned(), Part::Text(method.to_owned()));
    }
    form
}

/// What a request to `in.php` asks for, whichever provider's spelling it follows.
pub fn understand(form: &Form) -> Result<Wanted, BadWish> {
    let method = form.text("method").map_or("", str::trim);
    let spelling = TABLE.iter().find(|spelling| spelling.is_told_by(method, form));
    let spelling = match spelling {
        Some(spelling) => spelling,
        None if method.is_empty() => return Err(BadWish::NoMethod),
        None => &PLAIN,
    };
    let kind = if spelling.kind.is_empty() { method } else { spelling.kind };
    let mut params = BTreeMap::new();
    for (name, part) in form.0.iter().filter(|(name, _)| !CONTROL.contains(&name.as_str())) {
        let ours = spelling.our_name(name);
        if spelling.is_mark(name, part) || (ours != name && form.0.contains_key(ours)) {
            continue;
        }
        if let Some(value) = value(spelling, ours, part)? {
            params.insert(ours.to_owned(), value);
        }
    }
    Ok(Wanted { kind: kind.to_owned(), params })
}

/// What the part says; nothing, if it is empty: that is how clients say what they do not set.
fn value(spelling: &Spelling, name: &str, part: &Part) -> Result<Option<Value>, BadWish> {
    match part {
        Part::Text(text) if text.is_empty() => Ok(None),
        Part::Text(text) if spelling.is_file(name) => match decode(text) {
            Some(bytes) => Ok(Some(Value::Bytes(bytes))),
            None => Err(BadWish::NotBase64 { field: name.to_owned() }),
        },
        // Clients write it either way, and the same proxy must not make two orders.
        Part::Text(text) if name == "proxytype" => Ok(Some(Value::Text(text.to_ascii_uppercase()))),
        Part::Text(text) => Ok(Some(Value::Text(text.clone()))),
        Part::File(bytes) if !spelling.is_file(name) && !spelling.kind.is_empty() => {
            // Some clients upload everything as if it were a file.
            match std::str::from_utf8(bytes) {
                Ok(text) => value(spelling, name, &Part::Text(text.to_owned())),
                Err(_) => Ok(Some(Value::Bytes(bytes.clone()))),
            }
        }
        Part::File(bytes) => Ok(Some(Value::Bytes(bytes.clone()))),
    }
}

/// Base64, also as the body of a data address, in lines, or with a plus sign that a form has turned into a space.
fn decode(text: &str) -> Option<Vec<u8>> {
    let text = text.trim();
    let text = match text.strip_prefix("data:") {
        Some(address) => address.split_once(',')?.1.trim(),
        None => text,
    };
    let text: String = text
        .chars()
        .filter(|c| !matches!(c, '\r' | '\n' | '\t'))
        .map(|c| if c == ' ' { '+' } else { c })
        .collect();
    BASE64.decode(text).ok()
}

#[cfg(test)]
mod tests;
