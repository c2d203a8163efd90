//! The parameters of a request, whatever they were wrapped in: query and body are merged, and the body is recognised
//! by what it is, not by what its content type says. Real clients send nine shapes; the tests below are that list.

use crate::classic::json_document::{self, BadDocument};
use crate::kinds::order_field;
use futures_util::FutureExt;
use multer::Multipart;
use multer::bytes::Bytes;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::convert::Infallible;
use std::fmt;

/// How many parameters one request may have; the largest real one has about thirty.
pub const PARAMETERS_MAX: usize = 500;
/// How long a parameter's name may be.
pub const NAME_BYTES_MAX: usize = 256;
/// RFC 2046 allows no longer one.
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
    /// A part may be a key, a password or an answer: its size is all that `{:?}` tells.
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
    /// A field of an order in a JSON body. Written as text, `true` and `["a"]` would be values that its client never meant.
    #[error("`{field}` must be a text or a number")]
    Shape { field: String },
}

impl Form {
    /// Query and body, merged; where both name a parameter, the body decides, and within one of them the last.
    /// Broken percent signs and bytes that are no UTF-8 are taken as they are: the reader of the parameter decides.
    pub fn read(query: &str, content_type: Option<&str>, body: &[u8]) -> Result<Self, BadForm> {
        Ok(FormReader::of(query, content_type, body)?.form)
    }

    /// As [`Form::read`], and the names of the parameters that were sent with different values.
    pub fn read_with_doubles(
        query: &str,
        content_type: Option<&str>,
        body: &[u8],
    ) -> Result<(Self, BTreeSet<String>), BadForm> {
        let FormReader { form, doubled } = FormReader::of(query, content_type, body)?;
        Ok((form, doubled))
    }

    /// A parameter that is text and not empty.
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
            Err(doubled @ BadDocument::SentTwice { .. }) => return Err(doubled.into()),
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

/// Whether a parameter may be neither text nor number: an order field is a switch then.
fn may_be(name: &str, value: &Value) -> bool {
    match order_field(name) {
        None => true,
        Some("no_stock" | "nocache") => value.is_boolean(),
        Some(_) => false,
    }
}

/// A name or a value as it was before it was written into a form: in one go, because every order pays for it.
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

/// A multipart body has several lines; pairs are one.
fn has_lines(body: &[u8]) -> bool {
    body.starts_with(b"--") || body.trim_ascii_end().contains(&b'\n')
}

/// The boundary as the body itself shows it: its first line, if the next one can only be a part's header. Clients
/// set a content type by hand and lose the boundary, or spell it in ways that no header parser takes.
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
