//! What a text may become on its way through a reader: trimmed, unescaped, decoded. Each result is looked at like the text
//! itself, within a bound.

use crate::TooDeep;
use base64::Engine as _;
use base64::alphabet;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use std::collections::{BTreeSet, VecDeque};
use unicode_normalization::UnicodeNormalization;

/// How many different readings of one text are looked at, and how many bytes in all beyond four times its own.
const READINGS_MAX: usize = 64;
const BYTES_MIN: usize = 64 * 1024;
/// The shortest base64 that can hold a host: `a.co`.
const BASE64_CHARS_MIN: usize = 6;

const LENIENT: GeneralPurposeConfig = GeneralPurposeConfig::new()
    .with_decode_padding_mode(DecodePaddingMode::Indifferent)
    .with_decode_allow_trailing_bits(true);
const STANDARD: GeneralPurpose = GeneralPurpose::new(&alphabet::STANDARD, LENIENT);
const URL_SAFE: GeneralPurpose = GeneralPurpose::new(&alphabet::URL_SAFE, LENIENT);

/// Most values are short words and numbers, of which nothing can be made.
pub(crate) fn may_name_a_host(text: &str, is_anything: bool) -> bool {
    let is_plain =
        |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b' ' | b',' | b'=');
    let is_long = is_anything && text.len() >= BASE64_CHARS_MIN;
    is_long || !text.bytes().all(is_plain)
}

/// The readings of a text that have not been looked at yet.
pub(crate) struct Texts {
    waiting: VecDeque<String>,
    seen: BTreeSet<String>,
    bytes_left: usize,
}

impl Texts {
    pub(crate) fn new(text: &str) -> Self {
        let bytes_left = (text.len() * 4).max(BYTES_MIN) + text.len() * 4;
        let mut texts = Self { waiting: VecDeque::new(), seen: BTreeSet::new(), bytes_left };
        for reading in normalized(text) {
            texts.push(reading);
        }
        texts
    }

    fn push(&mut self, text: String) {
        if !text.is_empty() && self.seen.insert(text.clone()) {
            self.waiting.push_back(text);
        }
    }

    /// The next one; an error if there are more than can be looked at.
    pub(crate) fn next(&mut self) -> Result<Option<String>, TooDeep> {
        let Some(text) = self.waiting.pop_front() else { return Ok(None) };
        self.bytes_left = self.bytes_left.checked_sub(text.len()).ok_or(TooDeep)?;
        if self.seen.len() > READINGS_MAX {
            return Err(TooDeep);
        }
        Ok(Some(text))
    }

    /// Takes one layer of escapes off.
    pub(crate) fn decode(&mut self, text: &str) {
        for decoded in [percent(text), backslashes(text), entities(text)].into_iter().flatten() {
            for reading in normalized(&decoded) {
                self.push(reading);
            }
        }
    }

    /// Whatever in it is text in base64.
    pub(crate) fn unwrap_base64(&mut self, text: &str) {
        let joined: String = text.chars().filter(|c| !c.is_whitespace()).collect();
        let mut found = BTreeSet::new();
        for text in [text, &joined] {
            for run in
                text.split(|c: char| !(c.is_ascii_alphanumeric() || matches!(c, '+' | '/' | '-' | '_')))
            {
                for part in std::iter::once(run).chain(run.split(['/', '+', '-', '_'])) {
                    found.extend(unbase64(part));
                }
            }
        }
        for decoded in found {
            for reading in normalized(&decoded) {
                self.push(reading);
            }
        }
    }
}

/// Without what readers leave out: control characters, invisible characters, look-alikes of ASCII. Small letters would lose what
/// base64 says, so letters stay as they are.
fn normalized(text: &str) -> Vec<String> {
    if text.bytes().all(|byte| (b' '..0x7f).contains(&byte)) {
        return vec![text.to_owned()];
    }
    let text: String = text.nfkc().filter(|c| !is_invisible(*c)).map(plain).collect();
    if !text.contains(char::is_control) {
        return vec![text];
    }
    // Some readers drop a tab or a line break, for others it ends the address.
    let without = text.chars().filter(|c| !c.is_control()).collect();
    let spaced = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    vec![without, spaced]
}

fn is_invisible(c: char) -> bool {
    matches!(c, '\u{ad}' | '\u{34f}' | '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}')
}

/// What the normal form leaves, and some readers do not.
const fn plain(c: char) -> char {
    match c {
        '\u{3002}' | '\u{ff61}' | '\u{ff0e}' => '.',
        '\u{2044}' | '\u{2215}' | '\u{29f8}' => '/',
        '\u{29f5}' | '\u{29f9}' => '\\',
        '\u{2236}' | '\u{a789}' => ':',
        c => c,
    }
}

fn digit(byte: u8) -> Option<u32> {
    char::from(byte).to_digit(16)
}

fn hex(digits: &[u8]) -> Option<u32> {
    digits.iter().try_fold(0, |sum, byte| Some(sum * 16 + digit(*byte)?))
}

/// `%2F`, and the `%u002F` of old.
fn percent(text: &str) -> Option<String> {
    let bytes = text.as_bytes();
    let mut decoded = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        let rest = &bytes[at..];
        match rest {
            [b'%', high, low, ..] if digit(*high).is_some() && digit(*low).is_some() => {
                decoded.push(u8::try_from(hex(&rest[1..3]).unwrap_or_default()).unwrap_or_default());
                at += 3;
            }
            [b'%', b'u' | b'U', digits @ ..] if digits.len() >= 4 && hex(&digits[..4]).is_some() => {
                let letter = hex(&digits[..4]).and_then(char::from_u32).unwrap_or('\u{fffd}');
                decoded.extend_from_slice(letter.encode_utf8(&mut [0; 4]).as_bytes());
                at += 6;
            }
            _ => {
                decoded.push(bytes[at]);
                at += 1;
            }
        }
    }
    (decoded != bytes).then(|| String::from_utf8_lossy(&decoded).into_owned())
}

/// `\/`, `\u002f` and `\x2f`, as JSON and its relatives write them.
fn backslashes(text: &str) -> Option<String> {
    let mut decoded = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('\\') {
        decoded.push_str(&rest[..at]);
        let after = &rest.as_bytes()[at + 1..];
        let escaped = |digits: usize| hex(after.get(1..=digits)?).and_then(char::from_u32);
        let (letter, length) = match after.first() {
            Some(b'u') => (escaped(4), 6),
            Some(b'x') => (escaped(2), 4),
            Some(b'/') => (Some('/'), 2),
            Some(b'"') => (Some('"'), 2),
            Some(b'\\') => (Some('\\'), 2),
            Some(b'n' | b't' | b'r') => (Some(' '), 2),
            _ => (None, 0),
        };
        match letter {
            Some(letter) => {
                decoded.push(letter);
                rest = &rest[at + length..];
            }
            None => {
                decoded.push('\\');
                rest = &rest[at + 1..];
            }
        }
    }
    decoded.push_str(rest);
    (decoded != text).then_some(decoded)
}

/// `&#47;`, `&#x2f;` and the names that an address can need.
fn entities(text: &str) -> Option<String> {
    const NAMES: [(&str, char); 5] =
        [("amp", '&'), ("sol", '/'), ("colon", ':'), ("period", '.'), ("bsol", '\\')];
    let mut decoded = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('&') {
        decoded.push_str(&rest[..at]);
        let after = &rest[at + 1..];
        let name_end = after.find(|c: char| !(c.is_ascii_alphanumeric() || c == '#')).unwrap_or(after.len());
        let name = &after[..name_end];
        let number = |digits: &str| match digits.strip_prefix(['x', 'X']) {
            Some(digits) => u32::from_str_radix(digits, 16).ok(),
            None => digits.parse().ok(),
        };
        let letter = match name.strip_prefix('#') {
            Some(digits) => number(digits).and_then(char::from_u32),
            None => NAMES.iter().find(|(known, _)| *known == name).map(|(_, letter)| *letter),
        };
        match letter {
            Some(letter) => {
                decoded.push(letter);
                rest = after[name_end..].strip_prefix(';').unwrap_or(&after[name_end..]);
            }
            None => {
                decoded.push('&');
                rest = after;
            }
        }
    }
    decoded.push_str(rest);
    (decoded != text).then_some(decoded)
}

/// The text that this is in base64; nothing, if it is none or if it holds something else than text.
fn unbase64(run: &str) -> Option<String> {
    if run.len() < BASE64_CHARS_MIN {
        return None;
    }
    let bytes = STANDARD.decode(run).or_else(|_| URL_SAFE.decode(run)).ok()?;
    let text = String::from_utf8(bytes).ok()?;
    let is_text = text.chars().all(|c| !c.is_control() || c.is_ascii_whitespace());
    let may_name_a_host = text.contains(['.', ':', '%', '&', '\\']) || text.len() >= BASE64_CHARS_MIN;
    (is_text && may_name_a_host).then_some(text)
}
