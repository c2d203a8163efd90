//! Reads prices from replies, in exact millionths, because usage must not be rounded.

use quittance_lifecycle::Money;

/// Decimal places of a millionth.
const MICRO_DIGITS: i32 = 6;
/// The most digits of a price. A longer number is not a price.
const DIGITS_MAX: usize = 18;

/// A decimal number that is not negative. A fraction of a millionth is rounded up: usage never counts less than was
/// paid.
pub(super) fn money(text: &str) -> Option<Money> {
    let (mantissa, exponent) = match text.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, exponent.parse::<i32>().ok()?),
        None => (text, 0),
    };
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let digits = format!("{whole}{fraction}");
    if whole.is_empty() || digits.len() > DIGITS_MAX || !digits.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    let number: u64 = digits.parse().ok()?;
    let shift = MICRO_DIGITS.checked_add(exponent)?.checked_sub(i32::try_from(fraction.len()).ok()?)?;
    let power = 10_u64.checked_pow(shift.unsigned_abs());
    match (shift >= 0, power) {
        _ if number == 0 => Some(Money(0)),
        (true, power) => number.checked_mul(power?).map(Money),
        (false, power) => Some(Money(power.map_or(1, |power| number.div_ceil(power)))),
    }
}

/// Splits a reply to `get2` into the answer and the price after the last `|`. An answer can contain `|` too, so the
/// last part is a price only if it is a number with a point.
pub(super) fn split_off(text: &str) -> (&str, Option<Money>) {
    let priced = text.rsplit_once('|').and_then(|(answer, price)| {
        let is_written_so = price.contains('.') && price.bytes().all(|b| b.is_ascii_digit() || b == b'.');
        Some((answer, Some(money(price).filter(|_| is_written_so)?)))
    });
    priced.unwrap_or((text, None))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prices_are_read_to_the_millionth_and_never_rounded_down() {
        let cases = [
            ("0.00085", Some(850)),
            ("3.50", Some(3_500_000)),
            ("3", Some(3_000_000)),
            ("0", Some(0)),
            ("0.0000001", Some(1)),
            ("8.5e-4", Some(850)),
            ("1e3", Some(1_000_000_000)),
            ("1e-400", Some(1)),
            ("0e999", Some(0)),
            ("", None),
            (".5", None),
            ("-1", None),
            ("1,5", None),
            ("1e99", None),
            ("99999999999999999999", None),
            ("1.2.3", None),
            ("CAPCHA_NOT_READY", None),
        ];
        for (text, micros) in cases {
            assert_eq!(money(text), micros.map(Money), "{text}");
        }
    }

    #[test]
    fn the_price_is_split_off_from_the_right() {
        assert_eq!(split_off("token|0.00299"), ("token", Some(Money(2990))));
        assert_eq!(split_off("40|200|-120|0.0005"), ("40|200|-120", Some(Money(500))));
        assert_eq!(split_off("40|200"), ("40|200", None), "no price is taken from an answer");
        assert_eq!(split_off("token"), ("token", None));
    }
}
