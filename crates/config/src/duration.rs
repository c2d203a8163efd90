//! Durations as people write them, such as `90s`, `500ms`, `2h` or `1m30s`.

use std::time::Duration;

/// What a duration looks like, to follow "must be".
pub const FORM: &str = "numbers with units (ms, s, m, h or d), such as \"90s\" or \"1m30s\"";

/// Reads a duration in whole milliseconds.
pub fn parse(text: &str) -> Option<Duration> {
    let duration = humantime::parse_duration(text).ok()?;
    // Without a unit, only 0 has a meaning to the library; here a duration always has a unit.
    let has_unit = text.ends_with(|c: char| c.is_ascii_alphabetic());
    (has_unit && duration.subsec_nanos().is_multiple_of(1_000_000)).then_some(duration)
}

/// One number and one unit: days from two days up, hours from one hour up, else seconds or milliseconds.
pub fn render(duration: Duration) -> String {
    const HOUR: u64 = 3600 * 1000;
    let millis = quittance_lifecycle::time::millis(duration);
    let is_whole = |unit: u64, least: u64| millis >= least && millis.is_multiple_of(unit);
    let (unit, size) = match () {
        () if is_whole(24 * HOUR, 48 * HOUR) => ("d", 24 * HOUR),
        () if is_whole(HOUR, HOUR) => ("h", HOUR),
        () if is_whole(1000, 0) => ("s", 1000),
        () => ("ms", 1),
    };
    format!("{}{unit}", millis / size)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_come_back_as_they_were_meant() {
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
            ("1m30s", 90_000, "90s"),
            ("1h 30m", 5_400_000, "5400s"),
            ("1s500ms", 1500, "1500ms"),
        ] {
            let duration = Duration::from_millis(millis);
            assert_eq!(parse(text), Some(duration), "{text}");
            assert_eq!(render(duration), shown);
            assert_eq!(parse(shown), Some(duration), "{shown}");
        }
    }

    #[test]
    fn what_is_not_a_duration_is_not_guessed() {
        for text in ["", "s", "0", "120", "-1s", "120S", "5 apples", "99999999999999999999s", "1us", "1m30"] {
            assert_eq!(parse(text), None, "{text}");
        }
        assert_eq!(parse(&format!("{}d", u64::MAX)), None, "too long to count");
    }
}
