//! The indices as they will be once a batch is written. A later entry of the batch must see what earlier entries take
//! from a stock and add to it, although other readers must not see that yet.

use crate::ledger::{FIRST_KEY, OrderIndex, StockIndex, Takers, class, own};
use quittance_lifecycle::{Key, Order, Target, Timestamp};
use std::collections::BTreeMap;

/// A place in a stock.
type StockSpot = (Timestamp, Key);

const LAST: StockSpot = (Timestamp::MAX, Key([0xff; 32]));

#[derive(Default)]
pub(crate) struct Ahead {
    /// The orders that this batch writes, by their place among the changes.
    written: BTreeMap<Key, usize>,
    stocks: StockIndex,
    takers: Takers,
    /// The range of each stock in which the index has nothing that this batch did not write. Without it, every taker
    /// would pass over everything that earlier takers took.
    emptied: BTreeMap<Target, (Timestamp, StockSpot)>,
}

impl Ahead {
    /// The place of an order among the changes of this batch, if it has one.
    pub(crate) fn written(&self, key: &Key) -> Option<usize> {
        self.written.get(key).copied()
    }

    /// Notes that an order is written. `earlier` is what this batch was to write for it before.
    pub(crate) fn write(&mut self, at: usize, earlier: Option<&Order>, next: &Order) {
        let key = next.key;
        if let Some(earlier) = earlier {
            if let Some((target, expires)) = earlier.list_stock() {
                self.stocks.remove(&(target, expires, key));
            }
            if let Some(by) = earlier.taker() {
                self.takers.remove(&(by, earlier.terms.target, key));
            }
        }
        if let Some((target, expires)) = next.list_stock() {
            self.stocks.insert((target, expires, key));
        }
        if let Some(by) = next.taker() {
            self.takers.insert((by, next.terms.target, key));
        }
        self.written.insert(key, at);
    }

    /// The answer that this claimant already has from this stock.
    pub(crate) fn own(&self, ledger: &OrderIndex, by: &Key, target: &Target) -> Option<Key> {
        let before = ledger.own(by, target, |key| self.written.contains_key(key));
        own(&self.takers, by, target).next().into_iter().chain(before).min()
    }

    /// The answer in the stock that expires first, but not before `good_until`.
    pub(crate) fn soonest(
        &mut self,
        ledger: &OrderIndex,
        target: &Target,
        good_until: Timestamp,
    ) -> Option<Key> {
        let start = (good_until, FIRST_KEY);
        let (since, from) = match self.emptied.get(target) {
            Some((since, through)) if *since <= good_until && start <= *through => (*since, *through),
            _ => (good_until, start),
        };
        let before = ledger.soonest(target, from, |key| self.written.contains_key(key));
        self.emptied.insert(*target, (since, before.unwrap_or(LAST)));
        let here = class(&self.stocks, target, start).next();
        here.into_iter().chain(before).min().map(|(_, key)| key)
    }
}
