//! Rows in the order of their keys, and those that are open or dead letters: one such set for all orders, and one for
//! each tenant.

use quittance_ports::OrderClass;
use std::collections::BTreeSet;

/// The prefix of a key, and the id of its row.
pub(crate) type ListRow = (u64, i64);

#[derive(Default)]
pub(crate) struct Lists {
    pub(crate) keys: BTreeSet<ListRow>,
    pub(crate) open: BTreeSet<ListRow>,
    pub(crate) dead: BTreeSet<ListRow>,
}

impl Lists {
    /// Builds the lists from many rows, which is much faster than adding them one by one.
    pub(crate) fn of(rows: impl IntoIterator<Item = (ListRow, OrderClass)>) -> Self {
        let rows: Vec<_> = rows.into_iter().collect();
        let listed = |wanted| {
            let those = rows.iter().filter(move |(_, class)| *class == wanted);
            those.map(|(row, _)| *row).collect()
        };
        Self {
            keys: rows.iter().map(|(row, _)| *row).collect(),
            open: listed(OrderClass::Open),
            dead: listed(OrderClass::Dead),
        }
    }

    pub(crate) fn insert(&mut self, row: ListRow, class: OrderClass) {
        self.keys.insert(row);
        match class {
            OrderClass::Open => drop(self.open.insert(row)),
            OrderClass::Dead => drop(self.dead.insert(row)),
            OrderClass::AtRest => {}
        }
    }

    /// Removes a row. Returns whether it was there.
    pub(crate) fn remove(&mut self, row: &ListRow) -> bool {
        self.open.remove(row);
        self.dead.remove(row);
        self.keys.remove(row)
    }

    pub(crate) fn retain(&mut self, stays: impl Fn(&ListRow) -> bool) {
        for rows in [&mut self.keys, &mut self.open, &mut self.dead] {
            rows.retain(&stays);
        }
    }
}
