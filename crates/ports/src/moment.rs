//! Writes and reads moments and days as text: RFC 3339 in UTC.

use quittance_lifecycle::Timestamp;
use std::time::Duration;

/// The last moment of the year 9999: RFC 3339 has no later one.
const LAST: u64 = 253_402_300_799_999;
const DAY_MS: u64 = 24 * 3600 * 1000;

/// A moment like `2026-11-16T03:34:28.000Z`.
#[must_use]
pub fn rfc3339(moment: Timestamp) -> String {
    let ms = moment.as_millis().min(LAST);
    let (year, month, day) = date(ms / DAY_MS);
    let (ms, s) = (ms % 1000, ms % DAY_MS / 1000);
    // Every order in a response has two or three of these; `format!` would be slower.
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

/// A duration in one unit, rounded down, such as `5 min`.
#[must_use]
pub fn roughly(duration: Duration) -> String {
    match duration.as_secs() {
        seconds @ 0..120 => format!("{seconds} s"),
        seconds @ 120..7200 => format!("{} min", seconds / 60),
        seconds @ 7200..172_800 => format!("{} h", seconds / 3600),
        seconds => format!("{} d", seconds / 86_400),
    }
}

/// The date of a day since the epoch. Years are counted from March, so that the leap day is the last day of a year, and in
/// periods of 400 years, which all have the same length.
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

/// The date of a day since the epoch, like `2026-11-16`.
#[must_use]
pub fn date_text(day: u64) -> String {
    let (year, month, day) = date(day);
    format!("{year:04}-{month:02}-{day:02}")
}

/// The day since the epoch of a date like `2026-11-16`; `None` if there is no such day.
#[must_use]
pub fn read_date(text: &str) -> Option<u64> {
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

/// The moment of an RFC 3339 text with any offset from UTC, or the first moment of a date; `None` if there is no such moment.
#[must_use]
pub fn read_rfc3339(text: &str) -> Option<Timestamp> {
    let day_ms = |date: &str| read_date(date).map(|day| day * DAY_MS);
    let Some((date, time)) = text.split_at_checked(10).filter(|(_, time)| !time.is_empty()) else {
        return day_ms(text).map(Timestamp::from_millis);
    };
    let time = time.strip_prefix(['T', 't', ' '])?;
    let zone_at = time.find(['Z', 'z', '+', '-'])?;
    let (time, zone) = time.split_at(zone_at);
    let (time, fraction) = time.split_once('.').unwrap_or((time, "0"));
    let ms = day_ms(date)? + clock_ms(time, 3)? + fraction_ms(fraction)?;
    let behind = match zone.split_at_checked(1)? {
        ("Z" | "z", "") => return Some(Timestamp::from_millis(ms)),
        ("+", offset) => return ms.checked_sub(clock_ms(offset, 2)?).map(Timestamp::from_millis),
        ("-", offset) => clock_ms(offset, 2)?,
        _ => return None,
    };
    Some(Timestamp::from_millis(ms + behind))
}

/// Hours and minutes, and seconds if there are three parts.
fn clock_ms(text: &str, parts: usize) -> Option<u64> {
    let limits = [(24, 3_600_000), (60, 60_000), (60, 1000)];
    let numbers: Vec<&str> = text.split(':').collect();
    if numbers.len() != parts {
        return None;
    }
    numbers.iter().zip(limits).try_fold(0, |sum, (number, (limit, ms))| {
        let is_plain = number.len() == 2 && number.bytes().all(|byte| byte.is_ascii_digit());
        let number: u64 = is_plain.then(|| number.parse().ok())??;
        (number < limit).then(|| sum + number * ms)
    })
}

/// Reads the digits after the decimal point as milliseconds. Further digits are ignored.
fn fraction_ms(digits: &str) -> Option<u64> {
    let is_plain = (1..=9).contains(&digits.len()) && digits.bytes().all(|byte| byte.is_ascii_digit());
    is_plain.then(|| format!("{digits:0<3}")[..3].parse().ok())?
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
    fn moments_are_read_as_they_are_written_and_in_other_zones() {
        let ms = 1_794_800_068_007;
        for text in [
            "2026-11-16T03:34:28.007Z",
            "2026-11-16t03:34:28.007z",
            "2026-11-16 03:34:28.0079Z",
            "2026-11-16T05:34:28.007+02:00",
            "2026-11-15T22:04:28.007-05:30",
        ] {
            assert_eq!(read_rfc3339(text), Some(Timestamp::from_millis(ms)), "{text}");
        }
        assert_eq!(read_rfc3339("1970-01-02"), Some(Timestamp::from_millis(DAY_MS)));
        for odd in [
            "",
            "now",
            "2026-11-16T",
            "2026-11-16T03:34:28",
            "2026-11-16T24:00:00Z",
            "2026-11-16T03:34Z",
            "2026-11-16T03:34:28.Z",
            "2026-11-16T03:34:28Z!",
            "2026-02-30T00:00:00Z",
            "1970-01-01T00:00:00+01:00",
            "2026-11-16日03:34:28Z",
        ] {
            assert_eq!(read_rfc3339(odd), None, "{odd}");
        }
    }
}
