//! The account that an order is paid from: the provider's name and the currency, as one text (`main USD`). Orders and
//! usage store this text, so an amount keeps its currency in every store, even after the configuration changes.

use crate::answer::{Money, PriceSum};
use crate::counters::Counters;
use crate::order::{AttemptAccount, Order, Phase};
use crate::terms::Terms;
use alloc::format;
use alloc::string::String;

/// The account at this provider in this currency.
#[must_use]
pub fn account(provider: &str, currency: &str) -> String {
    format!("{provider} {currency}")
}

/// Splits an account at its last blank, if a currency (ISO 4217) seems to follow. An old account without a currency
/// has none.
fn split(account: &str) -> (&str, Option<&str>) {
    let is_currency = |code: &str| code.len() == 3 && code.bytes().all(|byte| byte.is_ascii_uppercase());
    match account.rsplit_once(' ') {
        Some((provider, code)) if is_currency(code) => (provider, Some(code)),
        _ => (account, None),
    }
}

/// The provider's name, without the currency.
#[must_use]
pub fn provider_of(account: &str) -> &str {
    split(account).0
}

/// The currency of an account; `None` if it was written before currencies were named.
#[must_use]
pub fn currency_of(account: &str) -> Option<&str> {
    split(account).1
}

/// Whether amounts of this account are unknown in `currency`, because it is in another one.
#[must_use]
pub fn is_in_another_currency(account: &str, currency: &str) -> bool {
    currency_of(account).is_some_and(|own| own != currency)
}

/// Makes a price in another currency unknown. A price of 0 stays: it is 0 in every currency.
fn not_known(cost: &mut Option<Money>) {
    *cost = cost.filter(|cost| *cost == Money(0));
}

impl Order {
    /// The currency of the order's last attempt: the node's `currency`, if the order was written before currencies were
    /// named.
    #[must_use]
    pub fn currency<'a>(&'a self, currency: &'a str) -> &'a str {
        currency_of(self.account()).unwrap_or(currency)
    }

    /// What was spent, for a node with this `currency`: amounts in another currency are unknown.
    #[must_use]
    pub fn spent_in(&self, currency: &str) -> PriceSum {
        let mut spent = PriceSum::default();
        for attempt in self.attempts.iter().filter(|attempt| attempt.made_for.is_none()) {
            if attempt.cost.is_some() || attempt.is_unpriced() {
                let mut cost = attempt.cost;
                if is_in_another_currency(self.account_of(attempt), currency) {
                    not_known(&mut cost);
                }
                spent.add(cost);
            }
        }
        spent
    }

    /// Writes the account into the attempts that went to the account of the terms, because the next terms may name
    /// another one.
    pub(crate) fn keep_accounts(&mut self, next: &Terms) {
        let terms = &self.terms;
        if (&terms.account, terms.price) == (&next.account, next.price) {
            return;
        }
        let account = AttemptAccount { account: terms.account.clone(), price: terms.price };
        for attempt in self.attempts.iter_mut().filter(|attempt| attempt.account.is_none()) {
            attempt.account = Some(account.clone());
        }
    }

    /// Makes the prices of earlier lives unknown, because the new life is paid from an account in another currency.
    pub(crate) fn forget_prices(&mut self) {
        if let Phase::Solved { answer, .. } | Phase::Claimed { answer, .. } = &mut self.phase {
            not_known(&mut answer.cost);
        }
        for attempt in &mut self.attempts {
            if attempt.cost.is_some_and(|cost| cost != Money(0)) {
                not_known(&mut attempt.cost);
                attempt.unpriced_since.get_or_insert(attempt.sent);
            }
        }
    }
}

impl Counters {
    /// These counters for sums in another currency: every count stays, and amounts become unknown.
    #[must_use]
    pub fn in_another_currency(self) -> Self {
        let mut counters = self;
        if counters.cost_micros > 0 {
            counters.unpriced = counters.unpriced.saturating_add(counters.priced.max(1));
            (counters.cost_micros, counters.priced) = (0, 0);
        }
        if counters.wasted_micros > 0 {
            counters.wasted_unpriced = counters.wasted.max(1);
            counters.wasted_micros = 0;
        }
        counters
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_account_is_a_provider_and_a_currency_whatever_the_provider_is_called() {
        for provider in ["main", "", "two words", "EUR", "a USD"] {
            let written = account(provider, "USD");
            assert_eq!((provider_of(&written), currency_of(&written)), (provider, Some("USD")));
        }
        for old in ["main", "", "two words"] {
            assert_eq!(
                (provider_of(old), currency_of(old)),
                (old, None),
                "written before currencies were named"
            );
            assert!(!is_in_another_currency(old, "RUB"));
        }
        assert!(is_in_another_currency("main USD", "RUB") && !is_in_another_currency("main USD", "USD"));
    }

    #[test]
    fn amounts_in_another_currency_are_not_known_and_every_count_stays() {
        let dollars = Counters {
            asked: 5,
            paid: 4,
            priced: 3,
            unpriced: 2,
            priced_late: 1,
            cost_micros: 8_970,
            ..Counters::default()
        };
        let dollars = Counters { wasted: 2, wasted_micros: 2_990, wasted_unpriced: 1, ..dollars };
        let here = dollars.in_another_currency();
        assert_eq!((here.asked, here.paid, here.wasted), (5, 4, 2));
        assert_eq!(here.spent(), PriceSum { sum: Money(0), unpriced: 4 });
        assert_eq!(here.wasted_cost(), PriceSum { sum: Money(0), unpriced: 2 });
        let free = Counters { priced: 3, ..Counters::default() };
        assert_eq!(free.in_another_currency(), free, "what is free is free in every currency");
    }
}
