//! When the balance of a provider ends, at the spending of the last 24 hours.

use quittance_lifecycle::{Counters, Money, Timestamp, currency_of, provider_of};
use quittance_ports::{Day, UsageRow};
use std::time::Duration;

const DAY: Duration = Duration::from_secs(24 * 3600);

/// What was spent at this provider in the last 24 hours, in this currency. The usage is kept by day, so that of yesterday
/// counts in proportion to the part that is within 24 hours. `None` if a cost is not known.
pub(super) fn spent_last_day(
    usage: &[(UsageRow, Counters)],
    provider: &str,
    currency: &str,
    now: Timestamp,
) -> Option<Money> {
    let today = Day::of(now);
    let (mut sum, mut before) = (Counters::default(), Counters::default());
    let is_own = |row: &UsageRow| {
        // Usage without a currency is in the present one. What was spent in another one came from another balance.
        provider_of(&row.account) == provider
            && currency_of(&row.account).is_none_or(|known| known == currency)
    };
    for (row, counters) in usage.iter().filter(|(row, _)| is_own(row)) {
        match row.day {
            day if day == today => sum += *counters,
            day if day.0 + 1 == today.0 => before += *counters,
            _ => {}
        }
    }
    let is_known = |counters: &Counters| counters.spent().unpriced == 0;
    let (Some(today_spent), Some(before_spent)) = (sum.spent_known(), before.spent_known()) else {
        return None;
    };
    let of_day = now.as_millis() % u64::try_from(DAY.as_millis()).unwrap_or(u64::MAX);
    let part = u128::from(before_spent.0) * (DAY.as_millis() - u128::from(of_day)) / DAY.as_millis();
    let all = today_spent.0.saturating_add(u64::try_from(part).unwrap_or(u64::MAX));
    (is_known(&sum) && is_known(&before)).then_some(Money(all))
}

/// When this balance ends at this spending in 24 hours; `None` if nothing is spent, or one of them is not known.
#[must_use]
pub fn balance_ends(
    balance: Option<Money>,
    spent_last_day: Option<Money>,
    now: Timestamp,
) -> Option<Timestamp> {
    let (Money(balance), Money(spent)) = (balance?, spent_last_day?);
    let left_ms = (u128::from(balance) * DAY.as_millis()).checked_div(u128::from(spent))?;
    Some(now + Duration::from_millis(u64::try_from(left_ms).unwrap_or(u64::MAX)))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Six o'clock in the morning.
    const NOW: Timestamp = Timestamp::from_millis((100 * 24 + 6) * 3_600_000);

    fn bought(day: u64, account: &str, answers: u64, unpriced: u64) -> (UsageRow, Counters) {
        let row = UsageRow {
            day: Day(day),
            tenant: "anna".into(),
            kind: "turnstile".into(),
            site: String::new(),
            account: account.into(),
        };
        let all = answers + unpriced;
        let cost_micros = answers * 1_000;
        (
            row,
            Counters {
                paid: all,
                solved: all,
                priced: answers,
                cost_micros,
                unpriced,
                ..Counters::default()
            },
        )
    }

    #[test]
    fn yesterday_counts_as_far_as_it_is_within_24_hours() {
        let usage = [
            bought(100, "main USD", 10, 0),
            bought(99, "main USD", 100, 0),
            bought(98, "main USD", 7_000, 0),
            bought(100, "spare USD", 500, 0),
            bought(100, "main RUB", 500, 0),
        ];
        assert_eq!(spent_last_day(&usage, "main", "USD", NOW), Some(Money(10_000 + 75_000)));
        assert_eq!(spent_last_day(&usage, "spare", "USD", NOW), Some(Money(500_000)));
        assert_eq!(spent_last_day(&[], "main", "USD", NOW), Some(Money(0)));
    }

    #[test]
    fn an_unknown_cost_makes_the_spending_unknown() {
        for usage in [[bought(100, "main USD", 10, 1)], [bought(99, "main USD", 0, 3)]] {
            assert_eq!(spent_last_day(&usage, "main", "USD", NOW), None);
        }
        let open = Counters { attempts: 2, paid: 2, ..Counters::default() };
        let row = bought(100, "main USD", 0, 0).0;
        assert_eq!(spent_last_day(&[(row, open)], "main", "USD", NOW), None, "the price is not known yet");
    }

    #[test]
    fn a_balance_ends_when_the_spending_has_used_it_up() {
        let ends = |balance: u64, spent: u64| balance_ends(Some(Money(balance)), Some(Money(spent)), NOW);
        assert_eq!(ends(85_000, 85_000), Some(NOW + DAY));
        assert_eq!(ends(21_250, 85_000), Some(NOW + DAY / 4));
        assert_eq!(ends(0, 85_000), Some(NOW));
        assert_eq!(ends(85_000, 0), None, "it does not end");
        assert_eq!(ends(u64::MAX, 1), Some(Timestamp::MAX), "too far for any clock");
        assert_eq!(balance_ends(None, Some(Money(1)), NOW), None);
        assert_eq!(balance_ends(Some(Money(1)), None, NOW), None);
    }
}
