//! What a replay may cost: told beside each dead letter, in its story and in a dry run, by what answers of the same kind have
//! cost lately, and by the price on record where nobody has paid for one.

use super::Room;
use quittance_lifecycle::{Money, Order};
use quittance_ports::{Day, StoreError};
use std::collections::BTreeMap;

/// For so many days the books are asked what an answer costs.
const DAYS: u64 = 7;

/// By kind.
pub(super) struct Prices(BTreeMap<String, Money>);

impl Prices {
    /// What replaying it costs if it pays; `None` if no price is known. The price list's price is the least.
    pub(super) fn of(&self, order: &Order) -> Option<Money> {
        let terms = &order.terms;
        self.0.get(&terms.kind).copied().max(terms.price)
    }
}

impl Room {
    pub(super) async fn prices(&self) -> Result<Prices, StoreError> {
        let today = Day::of(self.desk.clock().now());
        let books = self.desk.books(Day(today.0.saturating_sub(DAYS)), today).await?;
        let mut sums: BTreeMap<String, (u64, u64)> = BTreeMap::new();
        for (line, tally) in books {
            let (cost, answers) = sums.entry(line.kind).or_default();
            *cost = cost.saturating_add(tally.cost_micros);
            *answers = answers.saturating_add(tally.priced);
        }
        let known = sums.into_iter().filter(|(_, (cost, answers))| *cost > 0 && *answers > 0);
        Ok(Prices(known.map(|(kind, (cost, answers))| (kind, Money(cost.div_ceil(answers)))).collect()))
    }
}
