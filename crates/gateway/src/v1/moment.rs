//! How a moment and a sum are written for people and programs: RFC 3339 in UTC, and decimals without a float.

use quittance_lifecycle::{Money, Timestamp};

/// The last moment of the year 9999: beyond it, RFC 3339 has no words.
const LAST: u64 = 253_402_300_799_999;
const DAY_MS: u64 = 24 * 3600 * 1000;

/// As in `2026-11-16T03:34:28.000Z`.
pub(crate) fn rfc3339(moment: Timestamp) -> String {
    let ms = moment.as_millis().min(LAST);
    let (year, month, day) = date(ms / DAY_MS);
    let (ms, s) = (ms % 1000, ms % DAY_MS / 1000);
    // Every order that is shown has two or three of these, so they are not put together by `format!`.
    let mut text = String::with_capacity("2026-11-16T03:34:28.000Z".len());
    let parts = [
        (year, 1000, '-'),
        (month, 10, '-'),
        (day, 10, 'T'),
        (s / 3600, 10, ':'),
        (s / 60 % 60, 10, ':'),
        (s % 60, 10, '.'),
        (ms, 100, 'Z'),
    ];
    for (number, mut place, after) in parts {
        while place > 0 {
            text.push(char::from(b"0123456789"[(number / place % 10) as usize]));
            place /= 10;
        }
        text.push(after);
    }
    text
}

/// The date of a day since the epoch. Years are counted from March, so that the day that is not in every year is the
/// last one, and in spans of 400 years, which are all alike.
const fn date(day: u64) -> (u64, u64, u64) {
    // The epoch is this many days after the first of March of the year 0.
    let day = day + 719_468;
    let (span, day) = (day / 146_097, day % 146_097);
    let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let date = day - (153 * month + 2) / 5 + 1;
    let is_next_year = month >= 10;
    let month = if is_next_year { month - 9 } else { month + 3 };
    (400 * span + year + is_next_year as u64, month, date)
}

/// As in `2026-11-16`, of a day since the epoch.
pub(super) fn date_text(day: u64) -> String {
    let (year, month, day) = date(day);
    format!("{year:04}-{month:02}-{day:02}")
}

/// The day since the epoch that such a text means; none, if there is no such day.
pub(super) fn read_date(text: &str) -> Option<u64> {
    let mut parts = text.split('-');
    let mut number = |digits: usize| -> Option<u64> {
        let part = parts.next().filter(|part| part.len() == digits)?;
        part.bytes().all(|byte| byte.is_ascii_digit()).then(|| part.parse().ok())?
    };
    let (year, month, day) = (number(4)?, number(2)?, number(2)?);
    if parts.next().is_some() || !(1..=12).contains(&month) || year < 1970 {
        return None;
    }
    // Years are counted from March, as in `date`.
    let (of, since_march) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let days = 365 * of + of / 4 - of / 100 + of / 400 + (153 * since_march + 2) / 5 + day;
    let found = days.checked_sub(719_469)?;
    (date(found) == (year, month, day)).then_some(found)
}

/// As in `0.00299`, with no more places than it needs.
pub(super) fn decimal(sum: Money) -> String {
    sum.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_written_as_the_standard_says() {
        for (ms, text) in [
            (0, "1970-01-01T00:00:00.000Z"),
            (951_782_399_999, "2000-02-28T23:59:59.999Z"),
            (951_782_400_000, "2000-02-29T00:00:00.000Z"),
            (1_794_800_068_007, "2026-11-16T03:34:28.007Z"),
            (4_107_542_400_000, "2100-03-01T00:00:00.000Z"),
            (LAST, "9999-12-31T23:59:59.999Z"),
            (u64::MAX, "9999-12-31T23:59:59.999Z"),
        ] {
            assert_eq!(rfc3339(Timestamp::from_millis(ms)), text);
        }
    }

    #[test]
    fn every_date_is_read_as_it_is_written_and_no_other_is() {
        for day in (0..2_932_896).step_by(97).chain([0, 2_932_896]) {
            assert_eq!(read_date(&date_text(day)), Some(day), "{}", date_text(day));
        }
        for odd in
            ["", "2026", "2026-1-01", "2026-02-30", "2026-13-01", "2026-00-01", "2026-01-00", "1969-12-31"]
        {
            assert_eq!(read_date(odd), None, "{odd}");
        }
        for odd in ["2026-01-01-", "2026-01-01-01", "+026-01-01", "9999-99-99", "0000-00-00", "２026-01-01"]
        {
            assert_eq!(read_date(odd), None, "{odd}");
        }
    }

    #[test]
    fn sums_are_written_without_a_float() {
        for (micros, text) in [(0, "0"), (2990, "0.00299"), (1_000_000, "1"), (12_500_000, "12.5")] {
            assert_eq!(decimal(Money(micros)), text);
        }
    }
}
