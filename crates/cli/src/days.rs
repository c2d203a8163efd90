//! Days in UTC, and ranges of days as typed: a word, a number of days up to today, one day, or two with dots between
//! them.

use quittance::Day;
use quittance_ports::moment::{date_text, read_date};

pub(crate) const DAY_FORM: &str = "a day in UTC, such as 2026-11-16";
pub(crate) const FORM: &str =
    "`today`, `yesterday`, `7d`, a day such as 2026-11-16, or two as in 2026-11-01..2026-11-15";

/// A range as typed. Its meaning depends on the current day.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Days {
    Today,
    Yesterday,
    /// A number of days, including today.
    Last(u64),
    Span(Day, Day),
}

impl Days {
    /// The first and the last day.
    pub(crate) fn from(self, today: Day) -> (Day, Day) {
        let before = |days: u64| Day(today.0.saturating_sub(days));
        match self {
            Self::Today => (today, today),
            Self::Yesterday => (before(1), before(1)),
            Self::Last(days) => (before(days.saturating_sub(1)), today),
            Self::Span(from, to) => (from, to),
        }
    }
}

pub(crate) fn render(day: Day) -> String {
    date_text(day.0)
}

pub(crate) fn parse(text: &str) -> Option<Day> {
    read_date(text).map(Day)
}

pub(crate) fn read(typed: &str) -> Result<Days, String> {
    let wrong = || format!("write {FORM}");
    match typed {
        "today" => return Ok(Days::Today),
        "yesterday" => return Ok(Days::Yesterday),
        _ => {}
    }
    if let Some(days) = typed.strip_suffix('d').and_then(|digits| digits.parse().ok()) {
        return if days > 0 { Ok(Days::Last(days)) } else { Err(wrong()) };
    }
    let (from, to) = typed.split_once("..").unwrap_or((typed, typed));
    match (parse(from), parse(to)) {
        (Some(from), Some(to)) if from <= to => Ok(Days::Span(from, to)),
        (Some(_), Some(_)) => Err(format!("{from} is after {to}: exchange them")),
        _ => Err(wrong()),
    }
}

/// `2026-11-16`, or `2026-11-01 to 2026-11-15`.
pub(crate) fn words(from: Day, to: Day) -> String {
    match from == to {
        true => render(from),
        false => format!("{} to {}", render(from), render(to)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_of_days_is_read() {
        let today = Day(20_773);
        for (typed, from, to) in [
            ("today", 20_773, 20_773),
            ("yesterday", 20_772, 20_772),
            ("1d", 20_773, 20_773),
            ("7d", 20_767, 20_773),
            ("99999999d", 0, 20_773),
            ("2026-11-16", 20_773, 20_773),
            ("2026-11-01..2026-11-15", 20_758, 20_772),
        ] {
            assert_eq!(read(typed).unwrap().from(today), (Day(from), Day(to)), "{typed}");
        }
        for typed in ["", "0d", "d", "-1d", "2026-11", "2026-11-02..2026-11-01", "a..b", "2026-11-01.."] {
            assert!(read(typed).is_err(), "{typed}");
        }
        assert_eq!(words(Day(20_772), Day(20_773)), "2026-11-15 to 2026-11-16");
    }
}
