//! The possible cost of a replay: from recent prices of its kind, or else from the price on record.

use crate::AppState;
use quittance_lifecycle::{Money, Order, is_in_another_currency};
use quittance_ports::{Day, StoreError};
use std::collections::BTreeMap;

/// The prices are taken from the usage of this many last days.
const DAYS: u64 = 7;

/// Prices by kind, in the node's currency.
pub(crate) struct Prices {
    by_kind: BTreeMap<String, Money>,
    currency: String,
}

impl Prices {
    /// The cost of a replay that pays; `None` if no price is known in the order's currency. It is at least the price
    /// of the price list.
    pub(crate) fn of(&self, order: &Order) -> Option<Money> {
        let terms = &order.terms;
        if is_in_another_currency(&terms.account, &self.currency) {
            return None;
        }
        self.by_kind.get(&terms.kind).copied().max(terms.price)
    }
}

impl AppState {
    pub(crate) async fn prices(&self) -> Result<Prices, StoreError> {
        let today = Day::of(self.orders.clock().now());
        let usage = self.orders.usage(Day(today.0.saturating_sub(DAYS)), today).await?;
        let mut sums: BTreeMap<String, (u64, u64)> = BTreeMap::new();
        for (line, counters) in usage {
            let (cost, answers) = sums.entry(line.kind).or_default();
            *cost = cost.saturating_add(counters.cost_micros);
            *answers = answers.saturating_add(counters.priced);
        }
        let known = sums.into_iter().filter(|(_, (cost, answers))| *cost > 0 && *answers > 0);
        let by_kind = known.map(|(kind, (cost, answers))| (kind, Money(cost.div_ceil(answers)))).collect();
        Ok(Prices { by_kind, currency: self.orders.engine().currency().to_owned() })
    }
}
