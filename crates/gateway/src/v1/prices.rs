//! What a replay may cost: told beside each dead letter, in its story and in a dry run, by what answers of the same kind have
//! cost lately, and by the price on record where nobody has paid for one.

use super::AppState;
use quittance_lifecycle::{Money, Order, is_in_another_currency};
use quittance_ports::{Day, StoreError};
use std::collections::BTreeMap;

/// For so many days the usage is asked what an answer costs.
const DAYS: u64 = 7;

/// Prices by kind, in the node's currency.
pub(super) struct Prices {
    by_kind: BTreeMap<String, Money>,
    currency: String,
}

impl Prices {
    /// What replaying it costs if it pays; `None` if no price is known in the order's currency. The price list's price is the least.
    pub(super) fn of(&self, order: &Order) -> Option<Money> {
        let terms = &order.terms;
        if is_in_another_currency(&terms.account, &self.currency) {
            return None;
        }
        self.by_kind.get(&terms.kind).copied().max(terms.price)
    }
}

impl AppState {
    pub(super) async fn prices(&self) -> Result<Prices, StoreError> {
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
