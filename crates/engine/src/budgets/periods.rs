//! When the period of a budget begins and ends. All periods are in UTC.

use super::BudgetPeriod;
use quittance_lifecycle::Timestamp;

const HOUR_MS: u64 = 3_600_000;
const DAY_MS: u64 = 24 * HOUR_MS;

impl BudgetPeriod {
    pub const ALL: [Self; 3] = [Self::Hour, Self::Day, Self::Month];

    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Hour => "hour",
            Self::Day => "day",
            Self::Month => "month",
        }
    }

    /// The period of this name.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|period| period.name() == name)
    }

    /// When the period of this moment began.
    #[must_use]
    pub const fn begins(self, at: Timestamp) -> Timestamp {
        let ms = at.as_millis();
        Timestamp::from_millis(match self {
            Self::Hour => ms - ms % HOUR_MS,
            Self::Day => ms - ms % DAY_MS,
            Self::Month => month_around(ms / DAY_MS).0 * DAY_MS,
        })
    }

    /// When the period of this moment ends, and the next one begins.
    #[must_use]
    pub const fn ends(self, at: Timestamp) -> Timestamp {
        let begins = self.begins(at).as_millis();
        Timestamp::from_millis(match self {
            Self::Hour => begins.saturating_add(HOUR_MS),
            Self::Day => begins.saturating_add(DAY_MS),
            Self::Month => month_around(at.as_millis() / DAY_MS).1.saturating_mul(DAY_MS),
        })
    }
}

/// The first day of the month of a day, and that of the next month, as days since 1970.
const fn month_around(day: u64) -> (u64, u64) {
    // Years are counted from March, so that the leap day is the last day of a year.
    const DAYS_TO_MARCH_1970: u64 = 719_468;
    let day = day + DAYS_TO_MARCH_1970;
    let of_era = day % 146_097;
    let year = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let month = (5 * of_year + 2) / 153;
    let first = day - (of_year - (153 * month + 2) / 5);
    // March is month 0, so February is month 11.
    let is_leap = (year + 1).is_multiple_of(4) && (!(year + 1).is_multiple_of(100) || year + 1 == 400);
    let length = match month {
        11 if is_leap => 29,
        11 => 28,
        1 | 3 | 6 | 8 => 30,
        _ => 31,
    };
    (first - DAYS_TO_MARCH_1970, first - DAYS_TO_MARCH_1970 + length)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_month_is_as_long_as_in_the_calendar() {
        let lengths = [31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
        let mut first = 0;
        for year in 1970..2500_u64 {
            let is_leap = year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
            for (month, length) in lengths.iter().enumerate() {
                let next = first + length + u64::from(month == 1 && is_leap);
                for day in first..next {
                    assert_eq!(month_around(day), (first, next), "day {day}, in {year}");
                }
                first = next;
            }
        }
    }

    #[test]
    fn a_period_contains_its_first_moment_and_not_its_last() {
        for period in BudgetPeriod::ALL {
            let at = Timestamp::from_millis(1_800_000_123_456);
            let (begins, ends) = (period.begins(at), period.ends(at));
            assert!(begins <= at && at < ends, "{period:?}");
            assert_eq!((period.begins(begins), period.begins(ends)), (begins, ends), "{period:?}");
        }
    }
}
