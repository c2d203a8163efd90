//! What answers cost: the list that ships for the service, overridden by the operator's `prices`; the currency that all
//! of it is in; and which budgets meet a price that is not known.

use crate::Config;
use crate::providers::ProviderConfig;
use quittance_lifecycle::{Money, Unsolvable};
use quittance_protocol::kinds::{PriceList, price_list};
use std::collections::BTreeMap;

/// What all money is in where there is no provider.
const DEFAULT_CURRENCY: &str = "USD";

impl ProviderConfig {
    /// The list that ships for this service, if its prices are in the currency of the account.
    fn price_list(&self) -> Option<&'static PriceList> {
        price_list(self.dialect().name()).filter(|list| list.currency == self.currency)
    }

    /// Whether the service charges what it could not solve, whatever the currency.
    pub(crate) fn unsolvable(&self) -> Unsolvable {
        price_list(self.dialect().name()).map_or(Unsolvable::NotKnown, |list| list.unsolvable)
    }
}

/// The currency of an account at this address, where the operator does not name it.
pub(crate) fn currency_at(url: &str) -> &'static str {
    let host = url.split("://").nth(1).unwrap_or(url).split(['/', ':', '?']).next().unwrap_or_default();
    let is_rucaptcha = host == "rucaptcha.com" || host.ends_with(".rucaptcha.com");
    if is_rucaptcha { "RUB" } else { DEFAULT_CURRENCY }
}

impl Config {
    /// The currency that all money of this node is in: it uses one provider, the first.
    pub fn currency(&self) -> &str {
        self.providers.first().map_or(DEFAULT_CURRENCY, |provider| &provider.currency)
    }

    /// What an answer of each kind costs where the provider does not say. What is not in it is not known.
    pub fn price_table(&self) -> BTreeMap<String, Money> {
        let first = self.providers.first();
        let listed = first.and_then(ProviderConfig::price_list).into_iter().flat_map(PriceList::prices);
        let mut own = self.prices.clone();
        own.extend(first.map(|provider| provider.prices.clone()).unwrap_or_default());
        // The operator's price of a kind is that of its variants, too.
        let is_overridden = |name: &str| own.contains_key(name.split('+').next().unwrap_or(name));
        let mut table: BTreeMap<String, Money> = listed
            .filter(|(name, _)| !is_overridden(name))
            .map(|(name, price)| (name.to_owned(), price))
            .collect();
        table.extend(own);
        table
    }

    /// Pools that have a budget and no price to hold against it, each with what to do.
    pub fn budgets_without_price(&self) -> Vec<String> {
        let table = self.price_table();
        let stopped = self
            .pools
            .iter()
            .filter(|pool| pool.is_on && pool.budget.is_some() && !table.contains_key(&pool.kind));
        stopped
            .map(|pool| format!("pool `{}`: {}", pool.name, quittance_engine::price_not_known(&pool.kind)))
            .collect()
    }

    /// Where prices come from, for people.
    pub fn price_source(&self) -> String {
        let own = self.prices.len() + self.providers.first().map_or(0, |provider| provider.prices.len());
        let own = match own {
            0 => String::new(),
            own => format!("; {own} set in the configuration"),
        };
        match self.providers.first().map(|provider| (provider, provider.price_list())) {
            None => format!("no provider, so no price list{own}"),
            Some((provider, None)) => {
                format!("no price list ships for {} in {}{own}", provider.dialect(), provider.currency)
            }
            Some((_, Some(list))) => format!("list of {list}: {}{own}", list.note),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::Place;

    fn config(more: &str) -> Config {
        let provider = "[[provider]]\nname = \"a\"\nurl = \"http://127.0.0.1:1\"\nkey_env = \"K\"\n";
        Place::with_file(&format!("{provider}{more}")).load().unwrap()
    }

    #[test]
    fn a_price_comes_from_the_operator_or_else_from_the_list_and_else_it_is_not_known() {
        let listed = config("profile = \"2captcha\"").price_table();
        assert_eq!(listed.get("recaptcha_v2"), Some(&Money(2_990)));
        assert_eq!(listed.get("keycaptcha"), None, "no source for a price, so it is not known");
        let own =
            config("profile = \"capsolver\"\nprotocol = \"json\"\n[provider.prices]\nrecaptcha_v3 = 0.002")
                .price_table();
        assert_eq!(own.get("recaptcha_v3"), Some(&Money(2_000)));
        assert_eq!(own.get("recaptcha_v3+enterprise"), None, "what the operator says is for all of the kind");
        assert_eq!(own.get("recaptcha_v2+enterprise"), Some(&Money(1_000)));
        let variant =
            "profile = \"capsolver\"\nprotocol = \"json\"\n[prices]\n\"recaptcha_v2+enterprise\" = 0.009";
        let variant = config(variant).price_table();
        assert_eq!(
            variant.get("recaptcha_v2+enterprise"),
            Some(&Money(9_000)),
            "a variant has a price of its own"
        );
        assert_eq!(variant.get("recaptcha_v2"), Some(&Money(800)), "and leaves the others as they are");
        let flat = config("profile = \"captchaai\"");
        assert!(flat.price_table().is_empty(), "threads are sold at a flat price");
        assert!(flat.price_source().contains("flat"), "{}", flat.price_source());
    }

    #[test]
    fn a_list_in_another_currency_does_not_count() {
        let rubles = config("profile = \"2captcha\"\ncurrency = \"RUB\"");
        assert_eq!((rubles.currency(), rubles.price_table().len()), ("RUB", 0));
        assert_eq!(config("profile = \"2captcha\"").currency(), "USD");
        for (url, currency) in [
            ("https://rucaptcha.com", "RUB"),
            ("https://api.rucaptcha.com:443/x", "RUB"),
            ("https://2captcha.com", "USD"),
            ("https://notrucaptcha.com", "USD"),
        ] {
            assert_eq!(currency_at(url), currency, "{url}");
        }
    }

    #[test]
    fn a_budget_without_a_price_is_reported_before_anything_starts() {
        let pool = "[pools.warm]\nkind = \"turnstile\"\nsize = 2\nbudget_per_hour = 1\n\
                    [pools.warm.params]\nsitekey = \"x\"\npageurl = \"https://example.com/\"\n";
        let reported = config(&format!("profile = \"captchaai\"\n{pool}")).budgets_without_price();
        assert!(
            reported.len() == 1 && reported[0].contains("warm") && reported[0].contains("`prices.turnstile`"),
            "{reported:?}"
        );
        assert!(config(&format!("profile = \"2captcha\"\n{pool}")).budgets_without_price().is_empty());
        let free = format!("profile = \"captchaai\"\n{pool}[prices]\nturnstile = 0\n");
        assert!(config(&free).budgets_without_price().is_empty(), "0 is a price");
    }
}
