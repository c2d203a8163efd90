//! The `method` and the fields of each kind, in both directions: [`spell`] writes an order for a provider,
//! [`understand`] reads a client's request. An undescribed method passes through unchanged as an open kind with its
//! own name, because new ones appear every few months.

mod classic_methods;

use crate::classic::dialect::ClassicDialect;
use crate::classic::form::{Form, Part};
use base64::Engine as _;
use base64::alphabet;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use classic_methods::{COMPANIONS, MethodSpelling, PLAIN, TABLE};
use quittance_lifecycle::Value;
use std::collections::BTreeMap;

pub use crate::kinds::CONTROL;
use crate::kinds::OrderParams;

/// Base64 as real clients write it, with and without padding.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &alphabet::STANDARD,
    GeneralPurposeConfig::new()
        .with_decode_padding_mode(DecodePaddingMode::Indifferent)
        .with_decode_allow_trailing_bits(true),
);

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadMethod {
    #[error("there is no `method`, and no parameter that names the kind of captcha")]
    NoMethod,
    #[error("`{field}` is not a file in base64")]
    NotBase64 { field: String },
    #[error(
        "`{one}` and `{other}` are two names of one parameter, and their values differ: send one of them"
    )]
    ContradictoryNames { one: String, other: String },
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CannotSpellMethod {
    #[error(
        "`cookies` is a list, and this provider takes them as text only: write them as name=value; name=value"
    )]
    ListOfCookies,
}

/// Whether the answer is useless without the other fields of a reply. A pingback has no place for these fields.
#[must_use]
pub fn has_companions(dialect: ClassicDialect, kind: &str, params: &BTreeMap<String, Value>) -> bool {
    let says = |name: &str| params.get(name).is_some_and(|value| !matches!(value.as_bytes(), b"" | b"0"));
    COMPANIONS.iter().any(|(at, of, if_stated)| (*at, *of) == (dialect, kind) && if_stated.is_none_or(says))
}

/// The fields of `in.php` for an order: the method and its parameters, without the key and without fields that
/// control the reply. Files that can only be uploaded are [`Part::File`]; all other files are base64.
pub fn spell(
    dialect: ClassicDialect,
    kind: &str,
    params: &BTreeMap<String, Value>,
) -> Result<Form, CannotSpellMethod> {
    let is_list = |value: &Value| value.as_bytes().trim_ascii_start().starts_with(b"[");
    if params.get("cookies").is_some_and(is_list) && crate::kinds::kind(kind).is_some() {
        return Err(CannotSpellMethod::ListOfCookies);
    }
    let spelling = TABLE.iter().find(|spelling| spelling.kind == kind).unwrap_or(&PLAIN);
    let wire = spelling.at(dialect);
    let mut form = Form::default();
    let is_renamed = |name: &str| wire.names.iter().any(|(ours, _)| *ours == name);
    let params_sent = || params.iter().filter(|(name, _)| !CONTROL.contains(&name.as_str()));
    // What has another name on the wire goes first: a parameter that is called so by its caller never replaces it.
    let renamed = params_sent().filter(|(name, _)| is_renamed(name));
    for (name, value) in renamed.chain(params_sent().filter(|(name, _)| !is_renamed(name))) {
        let part = match value {
            Value::Text(text) if text.is_empty() => continue,
            Value::Text(text) => Part::Text(text.clone()),
            Value::Bytes(bytes) if spelling.is_base64(name) => Part::Text(BASE64.encode(bytes)),
            Value::Bytes(bytes) => Part::File(bytes.clone()),
        };
        let name =
            wire.names.iter().find(|(ours, _)| ours == name).map_or(name.as_str(), |(_, theirs)| theirs);
        form.0.entry(name.to_owned()).or_insert(part);
    }
    for (name, params_sent) in wire.marks {
        form.0.entry((*name).to_owned()).or_insert_with(|| Part::Text((*params_sent).to_owned()));
    }
    let method = if spelling.kind.is_empty() { kind } else { wire.method };
    if !method.is_empty() {
        form.0.insert("method".to_owned(), Part::Text(method.to_owned()));
    }
    Ok(form)
}

/// Every field of a form that [`spell`] has made, for the check of outgoing fields: its name, its parameter (`None`
/// if unknown) and its value. Fields that our own table adds are left out.
#[must_use]
pub fn leaves<'a>(
    dialect: ClassicDialect,
    kind: &str,
    form: &'a Form,
) -> Vec<(&'a str, Option<&'a str>, &'a Part)> {
    let spelling = TABLE.iter().find(|spelling| spelling.kind == kind).unwrap_or(&PLAIN);
    let wire = spelling.at(dialect);
    let is_ours = |name: &str, part: &Part| {
        let is_mark = wire
            .marks
            .iter()
            .any(|(mark, params_sent)| *mark == name && *part == Part::Text((*params_sent).to_owned()));
        // The name of a kind without a description is the caller's own.
        is_mark || (name == "method" && (!spelling.kind.is_empty() || crate::kinds::kind(kind).is_some()))
    };
    let fields = form.0.iter().filter(|(name, part)| !is_ours(name, part));
    fields
        .map(|(name, part)| {
            let param =
                wire.names.iter().find(|(_, theirs)| theirs == name).map_or(name.as_str(), |(ours, _)| ours);
            (name.as_str(), (name != "method").then_some(param), part)
        })
        .collect()
}

/// The parameter that clients of this protocol write under this name, in any case, and whether it is a file in
/// base64.
#[must_use]
pub fn alias(kind: &str, name: &str) -> Option<(&'static str, bool)> {
    let spellings = TABLE.iter().filter(|spelling| spelling.kind == kind);
    let mut names = spellings.flat_map(|spelling| spelling.all_names().map(move |pair| (spelling, pair)));
    names
        .find(|(_, (_, theirs))| theirs.eq_ignore_ascii_case(name))
        .map(|(spelling, (ours, _))| (ours, spelling.is_base64(ours)))
}

/// Every `method` that the table knows.
pub fn methods() -> impl Iterator<Item = &'static str> {
    TABLE.iter().flat_map(MethodSpelling::methods).filter(|method| !method.is_empty())
}

/// Fields that turn a request with the method of `kind` into another kind: the field, its value (`None` for any
/// value), and the other kind.
pub fn tells(kind: &str) -> impl Iterator<Item = (&'static str, Option<&'static str>, &'static str)> {
    let own: Vec<&str> =
        TABLE.iter().filter(|spelling| spelling.kind == kind).flat_map(MethodSpelling::methods).collect();
    let others = TABLE.iter().filter(move |other| other.methods().any(|method| own.contains(&method)));
    let kind = kind.to_owned();
    others.filter(move |other| other.kind != kind).flat_map(MethodSpelling::tells)
}

/// All fields that turn a request of some method into another kind, with their values (`None` for any value).
pub fn all_tells() -> impl Iterator<Item = (&'static str, Option<&'static str>)> {
    TABLE.iter().flat_map(MethodSpelling::tells).map(|(tell, params_sent, _)| (tell, params_sent))
}

/// The fields that repeat what the kind is, with their values.
pub fn marks(kind: &str) -> impl Iterator<Item = (&'static str, &'static str)> {
    let kind = kind.to_owned();
    TABLE.iter().filter(move |spelling| spelling.kind == kind).flat_map(MethodSpelling::all_marks)
}

/// The order that a request to `in.php` asks for, in the spelling of any provider.
pub fn understand(form: &Form) -> Result<OrderParams, BadMethod> {
    let method = form.text("method").map_or("", str::trim);
    let spelling = TABLE.iter().find(|spelling| spelling.is_marked_by(method, form));
    let spelling = match spelling {
        Some(spelling) => spelling,
        None if method.is_empty() => return Err(BadMethod::NoMethod),
        None => &PLAIN,
    };
    let kind = if spelling.kind.is_empty() { method } else { spelling.kind };
    let mut params = BTreeMap::new();
    for (name, part) in form.0.iter().filter(|(name, _)| !CONTROL.contains(&name.as_str())) {
        let ours = spelling.our_name(name);
        if spelling.is_mark(name, part) {
            continue;
        }
        let Some(value) = value(spelling, ours, part)? else { continue };
        match params.get(ours) {
            Some(params_sent) if *params_sent != value => {
                let mut names = form.0.keys().filter(|name| spelling.our_name(name) == ours).cloned();
                let mut next = || names.next().unwrap_or_default();
                return Err(BadMethod::ContradictoryNames { one: next(), other: next() });
            }
            _ => _ = params.insert(ours.to_owned(), value),
        }
    }
    Ok(OrderParams { kind: kind.to_owned(), params })
}

/// The value of a part, or `None` if it is empty: clients send empty parts for what they do not set.
fn value(spelling: &MethodSpelling, name: &str, part: &Part) -> Result<Option<Value>, BadMethod> {
    match part {
        Part::Text(text) if text.is_empty() => Ok(None),
        Part::Text(text) if spelling.is_file(name) => match decode(text) {
            Some(bytes) => Ok(Some(Value::Bytes(bytes))),
            None => Err(BadMethod::NotBase64 { field: name.to_owned() }),
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

/// Decodes base64, also from a `data:` URL, with line breaks, or with a plus sign that a form has turned into a
/// space.
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
