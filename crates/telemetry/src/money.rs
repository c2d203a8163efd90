//! Amounts derived from the usage: the mean price of an answer, and the money saved by answers that were not bought
//! again. docs/usage.md describes these sums; they are never too high.

use quittance_lifecycle::{Counters, Money, PriceSum, currency_of, is_in_another_currency};
use quittance_ports::UsageRow;
use std::collections::BTreeMap;

/// The usage for a node that works in `currency`. Every count stays, and amounts in another currency become unknown.
#[must_use]
pub fn in_currency(mut usage: Vec<(UsageRow, Counters)>, currency: &str) -> Vec<(UsageRow, Counters)> {
    for (line, counters) in &mut usage {
        if is_in_another_currency(&line.account, currency) {
            *counters = counters.in_another_currency();
        }
    }
    usage
}

/// The usage that was counted in other currencies than `currency`, by currency.
#[must_use]
pub fn other_currencies(usage: &[(UsageRow, Counters)], currency: &str) -> BTreeMap<String, Counters> {
    let mut others: BTreeMap<String, Counters> = BTreeMap::new();
    for (line, counters) in usage {
        if let Some(other) = currency_of(&line.account).filter(|other| *other != currency) {
            *others.entry(other.to_owned()).or_default() += *counters;
        }
    }
    others
}

/// Mean price of a charged attempt; `None` if no price is known. Attempts without a known price do not count.
#[must_use]
pub fn mean_price(counters: &Counters) -> Option<Money> {
    let price = counters.cost_micros.checked_div(counters.priced)?;
    // Answers whose every price is known to be 0 are free; attempts without an answer have no price.
    let is_free = counters.solved > 0 && counters.spent().unpriced == 0;
    (price > 0 || is_free).then_some(Money(price))
}

/// The savings of each row, in order: the price of its placements that joined an order in flight or shared a solved
/// answer. The price is the mean price of the row, else that of its kind. If neither is known, the placements count
/// as unpriced.
#[must_use]
pub fn savings(usage: &[(UsageRow, Counters)]) -> Vec<PriceSum> {
    let mut kinds: BTreeMap<&str, Counters> = BTreeMap::new();
    for (line, counters) in usage {
        *kinds.entry(&line.kind).or_default() += *counters;
    }
    let saved = |(line, counters): &(UsageRow, Counters)| {
        let of_kind = || kinds.get(line.kind.as_str()).and_then(mean_price);
        let placements = counters.joined.saturating_add(counters.cached);
        match mean_price(counters).or_else(of_kind) {
            Some(Money(price)) => PriceSum { sum: Money(placements.saturating_mul(price)), unpriced: 0 },
            None => PriceSum { sum: Money(0), unpriced: placements },
        }
    };
    usage.iter().map(saved).collect()
}

/// The sum of all savings.
#[must_use]
pub fn saved(usage: &[(UsageRow, Counters)]) -> PriceSum {
    let mut all = PriceSum::default();
    savings(usage).into_iter().for_each(|saved| all += saved);
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use quittance_ports::Day;

    fn line(kind: &str, site: &str) -> UsageRow {
        UsageRow {
            day: Day(1),
            tenant: "anna".into(),
            kind: kind.into(),
            site: site.into(),
            account: "main USD".into(),
        }
    }

    fn known(micros: u64) -> PriceSum {
        PriceSum { sum: Money(micros), unpriced: 0 }
    }

    fn bought(paid: u64, cost_micros: u64) -> Counters {
        Counters { asked: paid, paid, solved: paid, priced: paid, cost_micros, ..Counters::default() }
    }

    #[test]
    fn what_others_had_paid_for_is_saved_at_the_price_of_its_own_line() {
        let shared = Counters { joined: 3, cached: 2, from_stock: 9, ..bought(2, 5_980) };
        let usage = [(line("turnstile", "a"), shared), (line("image", ""), bought(4, 2_000))];
        assert_eq!(savings(&usage), [known(5 * 2_990), known(0)]);
        assert_eq!(saved(&usage), known(14_950));
    }

    #[test]
    fn a_line_that_bought_nothing_goes_by_its_kind_and_else_has_no_known_price() {
        let joins = Counters { asked: 4, joined: 4, ..Counters::default() };
        let usage = [
            (line("turnstile", "a"), bought(2, 5_980)),
            (line("turnstile", "b"), joins),
            (line("hcaptcha", "b"), joins),
        ];
        let not_known = PriceSum { sum: Money(0), unpriced: 4 };
        assert_eq!(savings(&usage), [known(0), known(4 * 2_990), not_known]);
        assert_eq!((not_known.known(), saved(&usage).known()), (None, Some(Money(4 * 2_990))));
    }

    #[test]
    fn what_came_to_nothing_makes_no_answer_dearer_or_cheaper() {
        let unsolved = Counters { solved: 1, priced: 1, joined: 10, ..bought(2, 2_990) };
        assert_eq!(mean_price(&unsolved), Some(Money(2_990)));
        assert_eq!(mean_price(&Counters::default()), None);
        let untold = Counters { paid: 5, ..Counters::default() };
        assert_eq!(mean_price(&untold), None, "no price is known");
        let in_doubt = Counters { unpriced: 3, ..bought(2, 5_980) };
        assert_eq!(mean_price(&in_doubt), Some(Money(2_990)), "a doubt makes no answer dearer");
        // Taken before midnight and answered after it.
        let answered = Counters { solved: 2, priced: 2, cost_micros: 5_980, ..Counters::default() };
        assert_eq!(mean_price(&answered), Some(Money(2_990)));
    }

    #[test]
    fn sums_are_written_without_a_float() {
        for (micros, text) in [(0, "0"), (2990, "0.00299"), (1_000_000, "1"), (12_500_000, "12.5")] {
            assert_eq!(Money(micros).to_string(), text);
        }
    }

    #[test]
    fn sums_that_no_number_holds_stay_at_the_greatest() {
        let odd = Counters { joined: u64::MAX, cached: 1, ..bought(1, u64::MAX) };
        assert_eq!(saved(&[(line("image", ""), odd), (line("image", "a"), odd)]), known(u64::MAX));
    }
}
