//! Spans of time as people write them: one number and one unit. `90s` has one spelling in ours, and no arithmetic to
//! get wrong; `1m30s` is refused with that advice.

use std::time::Duration;

const UNITS: [(&str, u64); 5] =
    [("ms", 1), ("s", 1000), ("m", 60 * 1000), ("h", 3600 * 1000), ("d", 24 * 3600 * 1000)];

pub const FORM: &str = "one number and one unit (ms, s, m, h or d), such as \"90s\"";

pub fn parse(text: &str) -> Option<Duration> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (number, unit) = text.split_at(digits);
    let (_, millis) = UNITS.iter().find(|(name, _)| *name == unit.trim_start_matches(' '))?;
    number.parse::<u64>().ok()?.checked_mul(*millis).map(Duration::from_millis)
}

/// The largest unit that people would use for it: seconds up to the hour, because so do all who write about these
/// services, then hours up to a day.
pub fn render(span: Duration) -> String {
    let millis = quittance_lifecycle::time::millis(span);
    let whole = |unit: u64, least: u64| millis >= least && millis.is_multiple_of(unit);
    let (unit, size) = match () {
        () if whole(24 * 3600 * 1000, 48 * 3600 * 1000) => ("d", 24 * 3600 * 1000),
        () if whole(3600 * 1000, 3600 * 1000) => ("h", 3600 * 1000),
        () if whole(1000, 0) => ("s", 1000),
        () => ("ms", 1),
    };
    format!("{}{unit}", millis / size)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_are_one_number_and_one_unit_and_come_back_as_they_were_meant() {
        for (text, millis, shown) in [
            ("120s", 120_000, "120s"),
            ("250ms", 250, "250ms"),
            ("5m", 300_000, "300s"),
            ("1h", 3_600_000, "1h"),
            ("24h", 86_400_000, "24h"),
            ("7d", 604_800_000, "7d"),
            ("0s", 0, "0s"),
            ("1500ms", 1500, "1500ms"),
            ("10 s", 10_000, "10s"),
        ] {
            let span = Duration::from_millis(millis);
            assert_eq!(parse(text), Some(span), "{text}");
            assert_eq!(render(span), shown);
            assert_eq!(parse(shown), Some(span), "{shown}");
        }
    }

    #[test]
    fn what_is_not_a_span_is_not_guessed() {
        for text in
            ["", "s", "120", "1m30s", "1.5s", "-1s", "120S", "5 minutes", "99999999999999999999s", "1y"]
        {
            assert_eq!(parse(text), None, "{text}");
        }
        assert_eq!(parse(&format!("{}d", u64::MAX)), None, "too long to count");
    }
}
