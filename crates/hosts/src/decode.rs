//! The forms that a text can take in some reader: trimmed, unescaped or decoded. Each result is searched like the
//! text itself, within limits.

use crate::encoding::{text_of, unmarked_wide_texts, wide_text};
use crate::escapes::{backslashes, entities, percent, percent_bytes};
use crate::host_search::names;
use crate::packed;
use crate::{Hosts, Unclear};
use base64::Engine as _;
use base64::alphabet;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use std::borrow::Cow;
use std::collections::{BTreeSet, VecDeque};
use unicode_normalization::UnicodeNormalization;

/// Limits for one text: the number of different readings, and their bytes in all, as a minimum and for each byte of
/// the text. Scripts in pages have many escapes, and each doubles the readings.
const READINGS_MAX: usize = 256;
const BYTES_MIN: usize = 64 * 1024;
const BYTES_FOR_EACH: usize = 20;
/// The shortest base64 that can hold a host: `a.co`.
const BASE64_CHARS_MIN: usize = 6;

/// From this length on, random bytes are hardly ever text.
const LONG_TEXT_BYTES: usize = 16;
/// The shortest host: `a.co`.
const HOST_CHARS_MIN: usize = 4;

const LENIENT: GeneralPurposeConfig = GeneralPurposeConfig::new()
    .with_decode_padding_mode(DecodePaddingMode::Indifferent)
    .with_decode_allow_trailing_bits(true);
const BASE64: GeneralPurpose = GeneralPurpose::new(&alphabet::STANDARD, LENIENT);

/// Whether a text can hold a host. Most values are short words and numbers, which cannot.
pub(crate) fn may_name_a_host(text: &str) -> bool {
    let is_plain =
        |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b' ' | b',' | b'=');
    text.len() >= BASE64_CHARS_MIN || !text.bytes().all(is_plain)
}

/// The readings of a text that still have to be searched.
pub(crate) struct Texts {
    waiting: VecDeque<String>,
    visited: BTreeSet<String>,
    bytes_left: usize,
    holds_gzip: bool,
}

impl Texts {
    pub(crate) fn new(text: &str) -> Self {
        let bytes_left = BYTES_MIN + text.len() * BYTES_FOR_EACH;
        let mut texts =
            Self { waiting: VecDeque::new(), visited: BTreeSet::new(), bytes_left, holds_gzip: false };
        texts.push_normalized(text);
        texts
    }

    /// Whether a reading held gzip before its control characters were dropped.
    pub(crate) const fn holds_gzip(&self) -> bool {
        self.holds_gzip
    }

    pub(crate) fn push_normalized(&mut self, text: &str) {
        self.holds_gzip |= packed::holds_gzip(text);
        for reading in normalized(text) {
            if !reading.is_empty() && self.visited.insert(reading.clone()) {
                self.waiting.push_back(reading);
            }
        }
    }

    /// Adds every text that the bytes can be, or what a tolerant reader makes of them.
    pub(crate) fn push_bytes(&mut self, bytes: &[u8]) {
        self.push_normalized(&text_of(bytes));
        texts_of(bytes).iter().for_each(|text| self.push_normalized(text));
    }

    /// The next reading, or an error if there are too many.
    pub(crate) fn next(&mut self) -> Result<Option<String>, Unclear> {
        let Some(text) = self.waiting.pop_front() else { return Ok(None) };
        self.bytes_left = self.bytes_left.checked_sub(text.len()).ok_or(Unclear::TooDeep)?;
        if self.visited.len() > READINGS_MAX {
            return Err(Unclear::TooDeep);
        }
        Ok(Some(text))
    }

    /// Removes one layer of escapes.
    pub(crate) fn decode(&mut self, text: &str) {
        for decoded in [percent(text), backslashes(text), entities(text)].into_iter().flatten() {
            self.push_normalized(&decoded);
        }
    }
}

/// The text without what readers leave out: control characters, invisible characters and look-alikes of ASCII. Case
/// is kept, because base64 depends on it.
pub(crate) fn normalized(text: &str) -> Vec<String> {
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

/// Whether Unicode calls a character "default ignorable". Readers ignore such a character inside a host.
pub(crate) fn is_invisible(c: char) -> bool {
    matches!(c,
        '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}'..='\u{1160}' | '\u{17b4}'..='\u{17b5}'
        | '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}'
        | '\u{3164}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{ffa0}' | '\u{fff0}'..='\u{fff8}'
        | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e0fff}')
}

/// Replaces look-alikes that the normal form keeps and some readers do not.
const fn plain(c: char) -> char {
    match c {
        '\u{3002}' | '\u{ff61}' | '\u{ff0e}' => '.',
        '\u{2044}' | '\u{2215}' | '\u{29f8}' => '/',
        '\u{29f5}' | '\u{29f9}' => '\\',
        '\u{2236}' | '\u{a789}' => ':',
        c => c,
    }
}

/// Whether bytes are text, or text with a few foreign bytes in it. Some readers still see the address in such a text.
#[must_use]
pub fn is_text(bytes: &[u8]) -> bool {
    is_mostly_text(&String::from_utf8_lossy(bytes))
}

/// Whether at least three of four characters are text.
fn is_mostly_text(text: &str) -> bool {
    let (mut letters, mut others) = (0_usize, 0_usize);
    for c in text.chars().filter(|c| *c != '\0') {
        *(if is_text_char(c) { &mut letters } else { &mut others }) += 1;
    }
    letters >= others * 3
}

/// Whether a character is one of texts, or looks like one of ASCII.
fn is_text_char(c: char) -> bool {
    let is_letter = c.is_alphanumeric() || c.is_ascii_graphic() || c.is_whitespace() || is_invisible(c);
    let looks_plain = || std::iter::once(c).nfkc().all(|c| plain(c).is_ascii_graphic());
    is_letter || (!c.is_ascii() && c != char::REPLACEMENT_CHARACTER && looks_plain())
}

/// Every text that some reader takes decoded bytes for: UTF-8 with a few foreign bytes, or UTF-16 or UTF-32. Random
/// bytes are none of these.
pub(crate) fn texts_of(bytes: &[u8]) -> Vec<String> {
    if let Some(text) = wide_text(bytes) {
        let is_one = !text.contains(char::REPLACEMENT_CHARACTER) || is_mostly_text(&text);
        return is_one.then_some(text).into_iter().collect();
    }
    let plain = String::from_utf8_lossy(bytes);
    let is_valid = matches!(plain, Cow::Borrowed(_));
    // Readers trim what is foreign at either end.
    let core = plain.trim_matches(|c| !is_text_char(c));
    let is_one = match is_valid {
        true => core.len() == plain.len() && is_printable(core) || can_hold_a_host(&plain),
        false => core.len() >= HOST_CHARS_MIN && is_mostly_text(core) && can_hold_a_host(core),
    };
    let mut texts: Vec<String> = is_one.then(|| plain.into_owned()).into_iter().collect();
    texts.extend(unmarked_wide_texts(bytes).filter(|text| has_sign(text)));
    texts
}

fn is_printable(text: &str) -> bool {
    text.chars().all(is_text_char)
}

/// Whether a text can name a host. Of short texts, this leaves out most that random letters decode to: there may be
/// many, and the number of readings is limited.
fn can_hold_a_host(text: &str) -> bool {
    let is_escape = |c: char| matches!(c, '%' | '&' | '\\');
    let is_long = |run: &str| run.len() >= BASE64_CHARS_MIN;
    if text.len() >= LONG_TEXT_BYTES {
        return has_sign(text) || text.split(|c: char| !c.is_ascii_alphanumeric()).any(is_long);
    }
    normalized(text).iter().any(|text| {
        let mut hosts = Hosts::new();
        names(text, &mut hosts);
        !hosts.is_empty()
            || text.contains(is_escape)
            || text.split(|c: char| !c.is_ascii_alphanumeric()).any(is_long)
    })
}

/// Whether a text has a sign that an address, or an escape of one, cannot do without. Most bytes are some letters of
/// UTF-16, but few are signs.
fn has_sign(text: &str) -> bool {
    let is_sign = |c: char| matches!(c, '.' | '/' | '\\' | ':' | '%' | '&');
    normalized(text).iter().any(|text| text.contains(is_sign))
}

/// Decodes everything in the text that can be base64. Some readers skip other characters, so the whole text, each
/// quoted text and each run of base64 letters is tried. Parts of a run are tried only if they decode to text.
pub(crate) fn base64_in(text: &str) -> BTreeSet<Vec<u8>> {
    let is_base64_char = |c: char| c.is_ascii_alphanumeric() || matches!(c, '+' | '/' | '-' | '_');
    let mut hosts = BTreeSet::new();
    for piece in std::iter::once(text).chain(text.split('"')).chain(text.split(|c| !is_base64_char(c))) {
        hosts.extend(from_base64(piece));
    }
    let is_plain = |decoded: &Vec<u8>| !decoded.contains(&0) && std::str::from_utf8(decoded).is_ok();
    for part in text.split(|c: char| !c.is_ascii_alphanumeric()) {
        hosts.extend(from_base64(part).filter(is_plain));
    }
    hosts
}

/// The text without its signed tokens (JWT): three parts in base64 with dots between them, the first two of which begin
/// as JSON objects do.
pub(crate) fn without_jwts(text: &str) -> String {
    let is_jwt_char = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    let is_jwt = |word: &str| {
        let parts: Vec<&str> = word.split('.').collect();
        parts.len() == 3 && parts[..2].iter().all(|part| part.starts_with("eyJ"))
    };
    let words = text.split_inclusive(|c| !is_jwt_char(c));
    words.filter(|word| !is_jwt(word.trim_end_matches(|c| !is_jwt_char(c)))).collect()
}

/// The bytes of a text, one for each character, and also with percent signs decoded.
pub(crate) fn as_bytes(text: &str) -> Vec<Vec<u8>> {
    let letters: Option<Vec<u8>> = text.chars().map(|c| u8::try_from(u32::from(c)).ok()).collect();
    letters.into_iter().chain(percent_bytes(text)).collect()
}

/// The decoded text, if all of it is base64.
pub(crate) fn whole_base64(text: &str) -> Option<Vec<u8>> {
    let text = text.trim();
    let is_base64_char = |byte: u8| letter(byte).is_some() || byte == b'=' || byte.is_ascii_whitespace();
    text.bytes().all(is_base64_char).then(|| from_base64(text)).flatten()
}

/// Decodes the base64 letters in a text.
pub(crate) fn from_base64(piece: &str) -> Option<Vec<u8>> {
    let mut letters: Vec<u8> = piece.bytes().filter_map(letter).collect();
    if letters.len() < BASE64_CHARS_MIN {
        return None;
    }
    if letters.len() % 4 == 1 {
        letters.pop();
    }
    BASE64.decode(letters).ok()
}

/// Maps the letters of both base64 alphabets to the standard one.
const fn letter(byte: u8) -> Option<u8> {
    match byte {
        b'-' => Some(b'+'),
        b'_' => Some(b'/'),
        byte if byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/') => Some(byte),
        _ => None,
    }
}
