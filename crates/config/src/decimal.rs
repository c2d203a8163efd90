//! Decimal numbers as people write them: amounts of money to the millionth, and ratios to the thousandth.

use quittance_lifecycle::Money;

/// What an amount of money looks like, to follow "must be".
pub const MONEY_FORM: &str = "an amount in the provider's currency, such as 2 or 0.75";

/// An amount of money, such as `0.75`.
pub fn money(text: &str) -> Option<Money> {
    decimal(text, 6).map(Money)
}

/// A ratio from 0 to 1, in thousandths.
pub(crate) fn ratio(text: &str) -> Option<u32> {
    decimal(text, 3).and_then(|thousandths| u32::try_from(thousandths).ok()).filter(|ratio| *ratio <= 1000)
}

/// The number times ten to the power of `places`; `None` if it has more places, or is not a plain decimal number.
fn decimal(text: &str, places: usize) -> Option<u64> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, "0"));
    let is_digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if !is_digits(whole) || !is_digits(fraction) {
        return None;
    }
    let fraction = fraction.trim_end_matches('0');
    if fraction.len() > places { None } else { format!("{whole}{fraction:0<places$}").parse().ok() }
}

/// An amount as people read it: `0.00299 USD`.
pub fn with_currency(amount: Money, currency: &str) -> String {
    format!("{amount} {currency}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_amount_comes_back_as_it_was_meant() {
        for (text, micros, shown) in [
            ("2", 2_000_000, "2"),
            ("0.75", 750_000, "0.75"),
            ("0.00299", 2_990, "0.00299"),
            ("10.000000", 10_000_000, "10"),
            ("0", 0, "0"),
        ] {
            assert_eq!(money(text), Some(Money(micros)), "{text}");
            assert_eq!(Money(micros).to_string(), shown);
        }
        for text in ["", ".", "1.", ".5", "-1", "1e3", "1,5", "0.0000001", "99999999999999", "$1", "inf"] {
            assert_eq!(money(text), None, "{text}");
        }
    }

    #[test]
    fn a_ratio_is_from_zero_to_one() {
        for (text, thousandths) in
            [("0", Some(0)), ("1", Some(1000)), ("0.25", Some(250)), ("1.001", None), ("20", None)]
        {
            assert_eq!(ratio(text), thousandths, "{text}");
        }
        assert_eq!(ratio("0.12345"), None, "too many digits");
    }
}
