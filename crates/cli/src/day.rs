//! Days as people write them, `2026-11-16`, and as the usage counts them: in UTC, from 1970.

use quittance::Day;
use quittance::lifecycle::Timestamp;

pub(crate) const FORM: &str = "a day in UTC, such as 2026-11-16";
const FIRST_YEAR: u64 = 1970;
const LAST_YEAR: u64 = 9999;

const fn is_leap(year: u64) -> bool {
    year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400))
}

const fn days_of(year: u64) -> u64 {
    if is_leap(year) { 366 } else { 365 }
}

const fn months(year: u64) -> [u64; 12] {
    [31, if is_leap(year) { 29 } else { 28 }, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31]
}

pub(crate) fn render(Day(mut left): Day) -> String {
    let mut year = FIRST_YEAR;
    while year < LAST_YEAR && left >= days_of(year) {
        left -= days_of(year);
        year += 1;
    }
    let mut month = 1;
    for days in months(year) {
        if left < days || month == 12 {
            break;
        }
        left -= days;
        month += 1;
    }
    format!("{year:04}-{month:02}-{:02}", left + 1)
}

/// A moment as `/v1` reads it, such as `2026-11-16T03:34:28.000Z`.
pub(crate) fn moment(at: Timestamp) -> String {
    let ms = at.as_millis();
    let (hours, minutes, seconds) = (ms / 3_600_000 % 24, ms / 60_000 % 60, ms / 1000 % 60);
    format!("{}T{hours:02}:{minutes:02}:{seconds:02}.{:03}Z", render(Day::of(at)), ms % 1000)
}

pub(crate) fn parse(text: &str) -> Option<Day> {
    let parts: Vec<&str> = text.split('-').collect();
    let [year, month, day] = parts[..] else { return None };
    let number = |part: &str, digits: usize| {
        let is_plain = part.len() == digits && part.bytes().all(|b| b.is_ascii_digit());
        is_plain.then(|| part.parse::<u64>().ok()).flatten()
    };
    let (year, month, day) = (number(year, 4)?, number(month, 2)?, number(day, 2)?);
    let before = usize::try_from(month.checked_sub(1)?).ok()?;
    let days = *months(year).get(before)?;
    if year < FIRST_YEAR || !(1..=days).contains(&day) {
        return None;
    }
    let years: u64 = (FIRST_YEAR..year).map(days_of).sum();
    Some(Day(years + months(year)[..before].iter().sum::<u64>() + day - 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_day_is_read_as_it_is_written() {
        for (text, day) in [
            ("1970-01-01", 0),
            ("1970-03-01", 59),
            ("2000-02-29", 11_016),
            ("2026-11-16", 20_773),
            ("2100-03-01", 47_541),
        ] {
            assert_eq!(parse(text), Some(Day(day)), "{text}");
            assert_eq!(render(Day(day)), text);
        }
        assert!((0..60_000).all(|day| parse(&render(Day(day))) == Some(Day(day))));
    }

    #[test]
    fn what_is_no_day_is_not_guessed() {
        for text in [
            "",
            "today",
            "2026-11",
            "2026-11-31",
            "2023-02-29",
            "2026-13-01",
            "2026-00-01",
            "2026-01-00",
            "1969-12-31",
        ]
        .into_iter()
        .chain(["2026-1-1", "20261116", "+026-01-01", "2026-11-16T00", "2026-11-16-1"])
        {
            assert_eq!(parse(text), None, "{text}");
        }
        assert!(render(Day(u64::MAX)).starts_with("9999-12-"));
    }
}
