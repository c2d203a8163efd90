//! The part of the day in which a pool is kept filled. It is in UTC, because the nodes of a pool may be in different
//! time zones.

use quittance_lifecycle::Timestamp;
use std::fmt;

const DAY_MINUTES: u16 = 24 * 60;

/// A part of the day in UTC, in minutes after midnight. If it ends before it begins, it spans midnight. Equal ends
/// mean the whole day.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hours {
    pub from: u16,
    pub to: u16,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HoursError {
    /// The text has no dash between two times.
    NotASpan {
        found: String,
    },
    NotATime {
        found: String,
    },
}

impl Hours {
    pub fn parse(text: &str) -> Result<Self, HoursError> {
        let Some((from, to)) = text.split_once('-') else {
            return Err(HoursError::NotASpan { found: text.to_owned() });
        };
        let from = minutes(from)?;
        // Midnight is the end of a day, and the beginning of the next one only.
        if from == DAY_MINUTES {
            return Err(HoursError::NotATime { found: "24:00".to_owned() });
        }
        Ok(Self { from, to: minutes(to)? })
    }

    #[must_use]
    pub fn includes(self, now: Timestamp) -> bool {
        let Self { from, to } = self;
        let minute = now.as_millis() / 60_000 % u64::from(DAY_MINUTES);
        let (is_begun, is_over) = (minute >= from.into(), minute >= to.into());
        match from.cmp(&to) {
            std::cmp::Ordering::Less => is_begun && !is_over,
            std::cmp::Ordering::Equal => true,
            std::cmp::Ordering::Greater => is_begun || !is_over,
        }
    }
}

fn minutes(text: &str) -> Result<u16, HoursError> {
    let text = text.trim();
    let number = |digits: &str| -> Option<u16> {
        let is_plain = (1..=2).contains(&digits.len()) && digits.bytes().all(|byte| byte.is_ascii_digit());
        is_plain.then(|| digits.parse().ok()).flatten()
    };
    let read = || {
        let (hour, minute) = text.split_once(':')?;
        let (hour, minute) = (number(hour)?, number(minute).filter(|_| minute.len() == 2)?);
        (minute < 60).then_some(hour * 60 + minute).filter(|minutes| *minutes <= DAY_MINUTES)
    };
    read().ok_or_else(|| HoursError::NotATime { found: text.to_owned() })
}

impl fmt::Display for Hours {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { from, to } = self;
        write!(f, "{:02}:{:02}-{:02}:{:02}", from / 60, from % 60, to / 60, to % 60)
    }
}

impl fmt::Display for HoursError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotASpan { found } => {
                write!(f, "hours are written like 08:00-20:30, and this is {found:?}")
            }
            Self::NotATime { found } => write!(f, "{found:?} is no time of day such as 08:00"),
        }
    }
}

impl std::error::Error for HoursError {}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(hour: u64, minute: u64) -> Timestamp {
        // Some day that is not the first.
        Timestamp::from_millis((20_000 * 1440 + hour * 60 + minute) * 60_000)
    }

    fn hours(text: &str) -> Hours {
        Hours::parse(text).unwrap()
    }

    #[test]
    fn the_first_minute_is_in_and_the_last_is_out() {
        let day = hours("08:00-20:30");
        assert_eq!(day, Hours { from: 480, to: 1230 });
        assert!(!day.includes(at(7, 59)) && day.includes(at(8, 0)));
        assert!(day.includes(at(20, 29)) && !day.includes(at(20, 30)));
    }

    #[test]
    fn hours_that_end_before_they_begin_go_over_midnight() {
        let night = hours("22:00-06:00");
        assert!(night.includes(at(23, 0)) && night.includes(at(0, 0)) && night.includes(at(5, 59)));
        assert!(!night.includes(at(6, 0)) && !night.includes(at(21, 59)));
        assert!(hours("22:00-00:00").includes(at(23, 59)) && !hours("22:00-00:00").includes(at(0, 0)));
    }

    #[test]
    fn equal_ends_and_midnight_to_midnight_are_the_whole_day() {
        for whole in ["00:00-24:00", "00:00-00:00", "9:30-9:30"] {
            assert!((0..24).all(|hour| hours(whole).includes(at(hour, 30))), "{whole}");
        }
    }

    #[test]
    fn what_is_printed_can_be_read_again() {
        for text in ["08:00-20:30", "22:05-06:00", "00:00-24:00"] {
            assert_eq!(hours(text).to_string(), text);
        }
        assert_eq!(hours(" 8:00 - 9:05 ").to_string(), "08:00-09:05");
    }

    #[test]
    fn what_is_no_time_is_named() {
        for (text, named) in [
            ("08:00", "08:00"),
            ("25:00-26:00", "25:00"),
            ("23:00-25:00", "25:00"),
            ("24:00-08:00", "24:00"),
            ("08:60-09:00", "08:60"),
            ("8-9", "8"),
            ("08:0-09:00", "08:0"),
            ("+8:00-09:00", "+8:00"),
            ("24:01-09:00", "24:01"),
            ("", ""),
        ] {
            let error = Hours::parse(text).expect_err(text).to_string();
            assert!(error.contains(&format!("{named:?}")), "{text}: {error}");
        }
    }
}
