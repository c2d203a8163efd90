//! Reads the parameters of a request in every encoding. Query and body are merged, and the format of the body is
//! recognized from its bytes, not from its content type. Real clients send nine shapes, which the tests below list.

use crate::classic::json_document::{self, BadDocument};
use crate::kinds::order_field;
use futures_util::FutureExt;
use multer::Multipart;
use multer::bytes::Bytes;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::convert::Infallible;
use std::fmt;

/// The most parameters of one request. The largest real request has about thirty.
pub const PARAMETERS_MAX: usize = 500;
/// The longest name of a parameter.
pub const NAME_BYTES_MAX: usize = 256;
/// The longest boundary that RFC 2046 allows.
const BOUNDARY_BYTES_MAX: usize = 70;

/// One parameter: text, or the bytes of an uploaded file.
#[derive(Clone, PartialEq, Eq)]
pub enum Part {
    Text(String),
    File(Vec<u8>),
}

impl Part {
    fn as_bytes(&self) -> &[u8] {
        match self {
            Self::Text(text) => text.as_bytes(),
            Self::File(bytes) => bytes,
        }
    }
}

impl fmt::Debug for Part {
    /// Shows only the size, because a part can be a key, a password or an answer.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} bytes", self.as_bytes().len())
    }
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Form(pub BTreeMap<String, Part>);

#[derive(Debug, thiserror::Error)]
pub enum BadForm {
    #[error("the body cannot be read: {what}")]
    Malformed { what: &'static str },
    #[error(transparent)]
    Document(#[from] BadDocument),
    /// A field of an order in a JSON body has another type. As text, `true` or `["a"]` would be a value that the
    /// client did not mean.
    #[error("`{field}` must be a text or a number")]
    Shape { field: String },
    #[error("`{field}` must be a text or a whole number: send it as text, in quotes")]
    KeyNumber { field: String },
}

impl Form {
    /// Reads query and body. If both name a parameter, the body wins; within one of them, the last value wins. Broken
    /// percent signs and bytes that are not UTF-8 are kept as they are: the reader of the parameter decides.
    pub fn read(query: &str, content_type: Option<&str>, body: &[u8]) -> Result<Self, BadForm> {
        Ok(FormReader::of(query, content_type, body)?.form)
    }

    /// Reads like [`Form::read`], and also returns the names of the parameters that were sent with different values.
    pub fn read_with_doubles(
        query: &str,
        content_type: Option<&str>,
        body: &[u8],
    ) -> Result<(Self, BTreeSet<String>), BadForm> {
        let FormReader { form, doubled } = FormReader::of(query, content_type, body)?;
        Ok((form, doubled))
    }

    /// The text of a parameter, or `None` if it is empty or a file.
    #[must_use]
    pub fn text(&self, name: &str) -> Option<&str> {
        match self.0.get(name)? {
            Part::Text(text) if !text.is_empty() => Some(text),
            _ => None,
        }
    }
}

/// A form that is being read.
#[derive(Default)]
struct FormReader {
    form: Form,
    /// The parameters that were sent with different values.
    doubled: BTreeSet<String>,
}

impl FormReader {
    fn of(query: &str, content_type: Option<&str>, body: &[u8]) -> Result<Self, BadForm> {
        let mut form = Self::default();
        form.read_urlencoded(query.as_bytes())?;
        let body = body.strip_prefix(b"\xef\xbb\xbf").unwrap_or(body).trim_ascii_start();
        if body.is_empty() {
            return Ok(form);
        }
        let is_multipart = content_type.is_some_and(is_multipart);
        // Clients write `multipart/form-data` over JSON and over plain pairs, so the body counts for more than the
        // header.
        match boundary_of(body) {
            Some(boundary) => form.read_multipart(boundary, body)?,
            None if body[0] == b'{' => form.read_json(body)?,
            None if is_multipart && has_lines(body) => {
                let boundary =
                    content_type.and_then(|content_type| multer::parse_boundary(content_type).ok());
                let missing = BadForm::Malformed { what: "it is multipart without a boundary" };
                form.read_multipart(boundary.ok_or(missing)?, body)?;
            }
            None => form.read_urlencoded(body.trim_ascii_end())?,
        }
        Ok(form)
    }

    fn add(&mut self, name: String, part: Part) -> Result<(), BadForm> {
        if name.is_empty() {
            return Ok(());
        }
        if name.len() > NAME_BYTES_MAX {
            return Err(BadForm::Malformed { what: "the name of a parameter is too long" });
        }
        match self.form.0.get(&name) {
            Some(known) if known.as_bytes() == part.as_bytes() => return Ok(()),
            // An empty text is how clients write what they do not set.
            Some(known) if !known.as_bytes().is_empty() && !part.as_bytes().is_empty() => {
                self.doubled.insert(name.clone());
            }
            Some(_) | None => {}
        }
        self.form.0.insert(name, part);
        if self.form.0.len() > PARAMETERS_MAX {
            return Err(BadForm::Malformed { what: "too many parameters" });
        }
        Ok(())
    }

    fn read_urlencoded(&mut self, bytes: &[u8]) -> Result<(), BadForm> {
        for pair in bytes.split(|byte| *byte == b'&').filter(|pair| !pair.is_empty()) {
            let middle = pair.iter().position(|byte| *byte == b'=').unwrap_or(pair.len());
            let value = pair.get(middle + 1..).unwrap_or_default();
            self.add(decoded(&pair[..middle]), Part::Text(decoded(value)))?;
        }
        Ok(())
    }

    fn read_json(&mut self, body: &[u8]) -> Result<(), BadForm> {
        let members = match json_document::read(String::from_utf8_lossy(body).as_bytes()) {
            Ok(Value::Object(members)) => members,
            Err(bad @ (BadDocument::SentTwice { .. } | BadDocument::InexactNumber { .. })) => {
                return Err(bad.into());
            }
            Ok(_) | Err(BadDocument::NotJson { .. }) => {
                return Err(BadForm::Malformed { what: "it begins like a JSON object and is none" });
            }
        };
        for (name, value) in members {
            let text = match value {
                // A form has no null; it can only leave the field out.
                Value::Null => continue,
                Value::String(text) => text,
                Value::Bool(_) | Value::Array(_) | Value::Object(_) if !may_be(&name, &value) => {
                    return Err(BadForm::Shape { field: name });
                }
                // `1.0` and `1.00` would be one key.
                Value::Number(number) if number.is_f64() && order_field(&name) == Some("idempotency_key") => {
                    return Err(BadForm::KeyNumber { field: name });
                }
                // A form would say it so, and the same order must not get two identities.
                Value::Bool(is_set) => u8::from(is_set).to_string(),
                number_or_nested => number_or_nested.to_string(),
            };
            self.add(name, Part::Text(text))?;
        }
        Ok(())
    }

    fn read_multipart(&mut self, boundary: String, body: &[u8]) -> Result<(), BadForm> {
        const BROKEN: BadForm =
            BadForm::Malformed { what: "it is multipart and does not end at its boundary" };
        let whole = futures_util::stream::iter([Ok::<_, Infallible>(Bytes::copy_from_slice(body))]);
        let mut parts = Multipart::new(whole, boundary);
        // All bytes are there, so nothing can be waited for: pending would be a broken body, too.
        while let Some(part) = parts.next_field().now_or_never().ok_or(BROKEN)?.map_err(|_| BROKEN)? {
            let name = part.name().unwrap_or_default().to_owned();
            let is_file = part.file_name().is_some();
            let bytes = part.bytes().now_or_never().ok_or(BROKEN)?.map_err(|_| BROKEN)?;
            let part = if is_file {
                Part::File(bytes.to_vec())
            } else {
                Part::Text(String::from_utf8_lossy(&bytes).into_owned())
            };
            self.add(name, part)?;
        }
        Ok(())
    }
}

/// Whether a parameter may have a value that is neither text nor number. Of the order fields, only a switch may.
fn may_be(name: &str, value: &Value) -> bool {
    match order_field(name) {
        None => true,
        Some("no_stock" | "nocache") => value.is_boolean(),
        Some(_) => false,
    }
}

/// Decodes a name or a value of a form. It takes one pass, because every order pays for it.
fn decoded(written: &[u8]) -> String {
    let mut plain = Vec::with_capacity(written.len());
    let mut rest = written;
    while let Some(at) = rest.iter().position(|byte| matches!(byte, b'+' | b'%')) {
        plain.extend_from_slice(&rest[..at]);
        let (byte, length) = match rest[at..] {
            [b'+', ..] => (b' ', 1),
            [_, high, low, ..] => match (digit(high), digit(low)) {
                (Some(high), Some(low)) => (high << 4 | low, 3),
                _ => (b'%', 1),
            },
            _ => (b'%', 1),
        };
        plain.push(byte);
        rest = &rest[at + length..];
    }
    plain.extend_from_slice(rest);
    String::from_utf8(plain).unwrap_or_else(|odd| String::from_utf8_lossy(odd.as_bytes()).into_owned())
}

const fn digit(letter: u8) -> Option<u8> {
    match letter {
        b'0'..=b'9' => Some(letter - b'0'),
        b'a'..=b'f' => Some(letter - b'a' + 10),
        b'A'..=b'F' => Some(letter - b'A' + 10),
        _ => None,
    }
}

fn is_multipart(content_type: &str) -> bool {
    content_type.trim_start().get(..10).is_some_and(|start| start.eq_ignore_ascii_case("multipart/"))
}

/// Whether the body can be multipart: it has several lines, and pairs have one.
fn has_lines(body: &[u8]) -> bool {
    body.starts_with(b"--") || body.trim_ascii_end().contains(&b'\n')
}

/// The boundary that the body itself shows: its first line, if the next line can only be a part's header. Some
/// clients set a content type by hand and lose the boundary, or write it in ways that no header parser takes.
fn boundary_of(body: &[u8]) -> Option<String> {
    let rest = body.strip_prefix(b"--")?;
    let end = rest.iter().take(BOUNDARY_BYTES_MAX + 2).position(|byte| *byte == b'\r')?;
    let header = rest[end..].strip_prefix(b"\r\n")?.get(..8)?;
    if end == 0 || !header.eq_ignore_ascii_case(b"content-") {
        return None;
    }
    std::str::from_utf8(&rest[..end]).ok().map(str::to_owned)
}

#[cfg(test)]
mod tests;
