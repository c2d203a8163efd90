//! Prices of answers: the list that ships for the service, overridden by the operator's `prices`; their currency; and
//! budgets that have no known price.

use crate::Config;
use crate::providers::ProviderConfig;
use quittance_lifecycle::{Money, Unsolvable};
use quittance_protocol::kinds::{PriceList, price_list};
use std::collections::BTreeMap;

/// The currency if there is no provider.
pub(crate) const DEFAULT_CURRENCY: &str = "USD";

impl ProviderConfig {
    /// The list that ships for this service, if its prices are in the currency of the account.
    fn price_list(&self) -> Option<&'static PriceList> {
        price_list(self.dialect().name()).filter(|list| list.currency == self.currency)
    }

    /// What an answer of each kind costs here if the provider does not report it; `all` are the operator's prices for
    /// all providers. A kind without an entry has no known price.
    pub(crate) fn price_table(&self, all: &BTreeMap<String, Money>) -> BTreeMap<String, Money> {
        let listed = self.price_list().into_iter().flat_map(PriceList::prices);
        let mut own = all.clone();
        own.extend(self.prices.clone());
        // The operator's price of a kind is that of its variants, too.
        let is_overridden = |name: &str| own.contains_key(name.split('+').next().unwrap_or(name));
        let mut table: BTreeMap<String, Money> = listed
            .filter(|(name, _)| !is_overridden(name))
            .map(|(name, price)| (name.to_owned(), price))
            .collect();
        table.extend(own);
        table
    }

    /// Whether the service charges for unsolvable tasks, in any currency.
    pub(crate) fn unsolvable(&self) -> Unsolvable {
        price_list(self.dialect().name()).map_or(Unsolvable::NotKnown, |list| list.unsolvable)
    }
}

/// The currency of an account at this address, if the operator does not set it.
pub(crate) fn currency_at(url: &str) -> &'static str {
    let host = url.split("://").nth(1).unwrap_or(url).split(['/', ':', '?']).next().unwrap_or_default();
    let is_rucaptcha = host == "rucaptcha.com" || host.ends_with(".rucaptcha.com");
    if is_rucaptcha { "RUB" } else { DEFAULT_CURRENCY }
}

impl Config {
    /// The currency of all amounts of this node: that of its provider, the first one.
    pub fn currency(&self) -> &str {
        self.providers.first().map_or(DEFAULT_CURRENCY, |provider| &provider.currency)
    }

    /// What an answer of each kind costs at the first provider if it does not report it. A kind without an entry has
    /// no known price.
    pub fn price_table(&self) -> BTreeMap<String, Money> {
        self.providers.first().map_or_else(|| self.prices.clone(), |first| first.price_table(&self.prices))
    }

    /// Pools whose budget lets them buy nothing, because the price is not known or more than the budget, each with what
    /// to do.
    pub fn budgets_that_buy_nothing(&self) -> Vec<String> {
        let table = self.price_table();
        let currency = self.currency();
        let pools = self.pools.iter().filter(|pool| pool.is_on);
        let stopped = pools.filter_map(|pool| {
            let budget = pool.budget?;
            let why = match table.get(&pool.kind) {
                None => quittance_engine::price_not_known(&pool.kind),
                Some(price) if *price > budget => format!(
                    "the budget of {budget} {currency} an hour is smaller than the price of one answer, {price} {currency}: the pool buys \
                     nothing until `budget_per_hour` is raised"
                ),
                Some(_) => return None,
            };
            Some(format!("pool `{}`: {why}", pool.name))
        });
        stopped.collect()
    }

    /// Where the prices of each provider come from.
    pub fn price_sources(&self) -> Vec<PriceSource> {
        let Some(_) = self.providers.first() else {
            let words = format!("no provider, so no price list{}", own_prices(self.prices.len()));
            return vec![PriceSource { words, is_empty: self.prices.is_empty() }];
        };
        let source = |provider: &ProviderConfig| {
            let own = own_prices(self.prices.len() + provider.prices.len());
            let words = match provider.price_list() {
                None => {
                    format!("no price list ships for {} in {}{own}", provider.dialect(), provider.currency)
                }
                Some(list) => format!("list of {list}: {}{own}", list.note),
            };
            let words = match self.providers.len() {
                1 => words,
                _ => format!("{}: {words}", provider.name),
            };
            PriceSource { words, is_empty: provider.price_table(&self.prices).is_empty() }
        };
        self.providers.iter().map(source).collect()
    }
}

/// Where the prices of a provider come from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PriceSource {
    pub words: String,
    /// Whether no price is known.
    pub is_empty: bool,
}

fn own_prices(own: usize) -> String {
    match own {
        0 => String::new(),
        own => format!("; {own} set in the configuration"),
    }
}
