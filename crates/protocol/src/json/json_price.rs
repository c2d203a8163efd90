//! Reads and writes prices in JSON, as text or number, in exact millionths, because usage must not be rounded.

use quittance_lifecycle::Money;
use serde_json::Value;

/// The most digits of a price. A longer number is not a price.
const DIGITS_MAX: usize = 18;

/// A price. A negative number is not a price. A fraction of a millionth is rounded up: usage never counts less than
/// was paid.
pub(crate) fn read_price(value: &Value) -> Option<Money> {
    micros(&decimal(value)?).map(Money)
}

fn decimal(value: &Value) -> Option<String> {
    match value {
        Value::Number(number) => Some(number.to_string()),
        Value::String(text) => Some(text.trim().to_owned()),
        _ => None,
    }
}

/// A balance. A debt counts as zero.
pub(crate) fn read(value: &Value) -> Option<Money> {
    let text = decimal(value)?;
    if let Some(debt) = text.strip_prefix('-') {
        return micros(debt).map(|_| Money(0));
    }
    micros(&text).map(Money)
}

fn micros(text: &str) -> Option<u64> {
    let (mantissa, exponent) = match text.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, exponent.parse::<i32>().ok()?),
        None => (text, 0),
    };
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    // A float that was computed has more digits than it means; those beyond any price are cut, and round up.
    let room = DIGITS_MAX.saturating_sub(whole.len());
    let (remaining, rest) = fraction.split_at_checked(room.min(fraction.len()))?;
    let digits = format!("{whole}{remaining}");
    let are_digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if whole.is_empty() || digits.len() > DIGITS_MAX || !are_digits(&digits) || !are_digits(rest) {
        return None;
    }
    let number = digits.parse::<u64>().ok()?;
    let shift = 6_i32.checked_add(exponent)?.checked_sub(i32::try_from(remaining.len()).ok()?)?;
    let power = 10_u64.checked_pow(shift.unsigned_abs());
    match (number, shift >= 0) {
        (0, _) => Some(0),
        (number, true) => number.checked_mul(power?),
        (number, false) => Some(power.map_or(1, |power| number.div_ceil(power))),
    }
}

/// An amount as text, with at least `places` decimal places.
pub(crate) fn write(Money(micros): Money, places: usize) -> String {
    let mut text = format!("{}.{:06}", micros / 1_000_000, micros % 1_000_000);
    let least = text.len() - 6 + places.min(6);
    while text.len() > least && text.ends_with('0') {
        text.pop();
    }
    text.trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn prices_are_read_to_the_millionth_and_never_rounded_down() {
        let cases = [
            (json!("0.00299"), Some(2990)),
            (json!(0.00299), Some(2990)),
            (json!(3), Some(3_000_000)),
            (json!("8.5e-4"), Some(850)),
            (json!("0.0000001"), Some(1)),
            (json!("12.300000000000000710542735760100"), Some(12_300_001)),
            (json!(-1.5), Some(0)),
            (json!("1,5"), None),
            (json!(""), None),
            (json!(true), None),
            (json!("1e99"), None),
            (json!("99999999999999999999"), None),
        ];
        for (value, micros) in cases {
            assert_eq!(read(&value), micros.map(Money), "{value}");
        }
    }

    #[test]
    fn prices_are_written_as_they_were() {
        assert_eq!(write(Money(2990), 5), "0.00299");
        assert_eq!(write(Money(3_500_000), 2), "3.50");
        assert_eq!(write(Money(1), 0), "0.000001");
        assert_eq!(write(Money(3_000_000), 0), "3");
    }
}
