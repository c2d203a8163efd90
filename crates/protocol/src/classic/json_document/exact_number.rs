//! Numbers as they are written in a JSON text, to find those that a double would round.

use std::cell::Cell;

/// No double has more decimal digits.
const DIGITS_MAX: usize = 767;

/// The numbers of a document, in the order in which they are written. The text of a number is looked for only if the
/// number is read as a double.
pub(super) struct NumberTexts<'a> {
    rest: Cell<&'a [u8]>,
    /// How many numbers of the rest were read already.
    passed: Cell<usize>,
}

impl<'a> NumberTexts<'a> {
    pub(super) const fn of(json: &'a [u8]) -> Self {
        Self { rest: Cell::new(json), passed: Cell::new(0) }
    }

    /// Passes over the next number.
    pub(super) fn skip(&self) {
        self.passed.set(self.passed.get() + 1);
    }

    /// The next number as a double, or `None` if a double does not keep it exactly.
    pub(super) fn next_exact(&self) -> Option<f64> {
        for _ in 0..self.passed.take() {
            self.take();
        }
        exact(self.take())
    }

    /// Takes the next number out of the text.
    fn take(&self) -> &'a str {
        let mut rest = self.rest.take();
        let number = loop {
            match rest {
                [] => break rest,
                [b'"', inside @ ..] => rest = after_string(inside),
                [b'-' | b'0'..=b'9', ..] => {
                    let is_of_number =
                        |byte: &u8| matches!(byte, b'0'..=b'9' | b'+' | b'-' | b'.' | b'e' | b'E');
                    let length = rest.iter().position(|byte| !is_of_number(byte)).unwrap_or(rest.len());
                    let (number, after) = rest.split_at(length);
                    rest = after;
                    break number;
                }
                [_, after @ ..] => rest = after,
            }
        };
        self.rest.set(rest);
        std::str::from_utf8(number).unwrap_or_default()
    }
}

/// What follows a string; `inside` begins after its opening quote.
fn after_string(mut inside: &[u8]) -> &[u8] {
    while let Some(at) = inside.iter().position(|byte| matches!(byte, b'"' | b'\\')) {
        let length = if inside[at] == b'"' { 1 } else { 2 };
        let after = inside.get(at + length..).unwrap_or_default();
        if length == 1 {
            return after;
        }
        inside = after;
    }
    &[]
}

/// The double that is nearest to this number, if the number means it: written with as many digits, the double is the
/// number. A whole number must fit into 64 bits, because as a double it would be written in another way.
fn exact(text: &str) -> Option<f64> {
    let (value, written): (f64, _) = (text.parse().ok()?, Decimal::of(text)?);
    if written.digits.is_empty() {
        return Some(value);
    }
    let is_whole = !text.contains(['.', 'e', 'E']);
    if is_whole || written.digits.len() > DIGITS_MAX {
        return None;
    }
    let rounded = format!("{value:.*e}", written.digits.len() - 1);
    let is_it = |text: &str| Decimal::of(text).as_ref() == Some(&written);
    (is_it(&rounded) || is_it(&value.to_string())).then_some(value)
}

/// A decimal number without zeros at its ends: `digits * 10^exponent`.
#[derive(PartialEq, Eq)]
struct Decimal {
    is_negative: bool,
    digits: String,
    exponent: i64,
}

impl Decimal {
    fn of(text: &str) -> Option<Self> {
        let is_negative = text.starts_with('-');
        let text = text.strip_prefix('-').unwrap_or(text);
        let (mantissa, exponent) = text.split_once(['e', 'E']).unwrap_or((text, "0"));
        let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        let digits = format!("{whole}{fraction}");
        let significant = digits.trim_end_matches('0');
        let exponent: i64 = exponent.parse().ok()?;
        let shift = i64::try_from(digits.len() - significant.len()).ok()?;
        let exponent = exponent.checked_add(shift)?.checked_sub(i64::try_from(fraction.len()).ok()?)?;
        Some(Self { is_negative, digits: significant.trim_start_matches('0').to_owned(), exponent })
    }
}
