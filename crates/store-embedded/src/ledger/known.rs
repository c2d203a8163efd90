//! What the indices still know about the orders when the files are lost.

use super::{OrderIndex, prefix};
use crate::row::{EmbeddedMarks, StoredOrder};
use quittance_lifecycle::Key;

impl OrderIndex {
    /// The rows of all orders that were readable.
    pub(crate) fn ids(&self) -> Vec<i64> {
        self.lists.keys.iter().map(|(_, id)| *id).collect()
    }

    /// Whether an order that was read from its row agrees with the indices, so that it is the last version.
    pub(crate) fn agrees(&self, stored_order: &StoredOrder) -> bool {
        let order = &stored_order.versioned.order;
        let has_timer = |due| {
            self.claimed.contains_key(&order.key)
                || self.timers.get(&(due, order.key)) == Some(&stored_order.id)
        };
        self.lists.keys.contains(&(prefix(&order.key), stored_order.id))
            && EmbeddedMarks::of(order).due.is_none_or(has_timer)
    }

    /// The orders with a timer, and those that cannot be read, with their rows.
    pub(crate) fn awaited(&self) -> Vec<(Key, i64)> {
        let timers = self.timers.iter().map(|((_, key), id)| (*key, *id));
        let broken = self.broken.keys().map(|key| (*key, 0));
        timers.chain(broken).collect()
    }
}
