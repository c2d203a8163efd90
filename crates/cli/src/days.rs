//! A span of days as people type it: a word, a number of days up to today, one day, or two with dots between them.

use crate::day;
use quittance::Day;

pub(crate) const FORM: &str =
    "`today`, `yesterday`, `7d`, a day such as 2026-11-16, or two as in 2026-11-01..2026-11-15";

/// As it was typed; what it means depends on the day.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Days {
    Today,
    Yesterday,
    /// So many, today among them.
    Last(u64),
    Span(Day, Day),
}

impl Days {
    /// Both are included.
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
    match (day::parse(from), day::parse(to)) {
        (Some(from), Some(to)) if from <= to => Ok(Days::Span(from, to)),
        (Some(_), Some(_)) => Err(format!("{from} is after {to}: turn them around")),
        _ => Err(wrong()),
    }
}

/// `2026-11-16`, or `2026-11-01 to 2026-11-15`.
pub(crate) fn words(from: Day, to: Day) -> String {
    match from == to {
        true => day::render(from),
        false => format!("{} to {}", day::render(from), day::render(to)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_people_type_for_days_is_understood() {
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
