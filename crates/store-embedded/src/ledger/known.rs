//! What the indices still know of the orders when the files no longer tell.

use super::{Ledger, prefix};
use crate::row::{Kept, Marks};
use quittance_lifecycle::Key;

impl Ledger {
    /// The rows of all orders that can be read, as far as is known.
    pub(crate) fn ids(&self) -> Vec<i64> {
        self.lists.keys.iter().map(|(_, id)| *id).collect()
    }

    /// Whether an order that was read from its row is the one that was written there last, as far as the indices tell.
    pub(crate) fn agrees(&self, kept: &Kept) -> bool {
        let order = &kept.versioned.order;
        let has_alarm = |due| {
            self.claimed.contains_key(&order.key) || self.alarms.get(&(due, order.key)) == Some(&kept.id)
        };
        self.lists.keys.contains(&(prefix(&order.key), kept.id)) && Marks::of(order).due.is_none_or(has_alarm)
    }

    /// The orders that wait for a moment, and those that cannot be read, with their rows.
    pub(crate) fn awaited(&self) -> Vec<(Key, i64)> {
        let alarms = self.alarms.iter().map(|((_, key), id)| (*key, *id));
        let broken = self.broken.keys().map(|key| (*key, 0));
        alarms.chain(broken).collect()
    }
}
