//! Money as people write it: a decimal number, to the millionth, and the currency of the provider's account behind it.

use quittance_lifecycle::Money;

pub const FORM: &str = "an amount in the provider's currency, such as 2 or 0.75";
const DIGITS: usize = 6;
const UNIT: u64 = 1_000_000;

pub fn parse(text: &str) -> Option<Money> {
    let (whole, part) = text.split_once('.').unwrap_or((text, "0"));
    let is_digits = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    if !is_digits(whole) || !is_digits(part) || part.trim_end_matches('0').len() > DIGITS {
        return None;
    }
    let part: u64 = format!("{part:0<DIGITS$}")[..DIGITS].parse().ok()?;
    whole.parse::<u64>().ok()?.checked_mul(UNIT)?.checked_add(part).map(Money)
}

/// With as many digits as it needs.
pub fn render(amount: Money) -> String {
    amount.to_string()
}

/// As people read it: `0.00299 USD`.
pub fn named(amount: Money, currency: &str) -> String {
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
            assert_eq!(parse(text), Some(Money(micros)), "{text}");
            assert_eq!(render(Money(micros)), shown);
        }
        for text in ["", ".", "1.", ".5", "-1", "1e3", "1,5", "0.0000001", "99999999999999", "$1", "inf"] {
            assert_eq!(parse(text), None, "{text}");
        }
    }
}
