//! Rows in the order of their keys, and those of them that are open or wait for a person: of all orders, and of each tenant's.

use quittance_ports::Standing;
use std::collections::BTreeSet;

/// The prefix of its key, and its id.
pub(crate) type Row = (u64, i64);

#[derive(Default)]
pub(crate) struct Lists {
    pub(crate) keys: BTreeSet<Row>,
    pub(crate) open: BTreeSet<Row>,
    pub(crate) dead: BTreeSet<Row>,
}

impl Lists {
    /// Many rows at once; much faster than one by one.
    pub(crate) fn of(rows: impl IntoIterator<Item = (Row, Standing)>) -> Self {
        let rows: Vec<_> = rows.into_iter().collect();
        let listed = |wanted| {
            let those = rows.iter().filter(move |(_, standing)| *standing == wanted);
            those.map(|(row, _)| *row).collect()
        };
        Self {
            keys: rows.iter().map(|(row, _)| *row).collect(),
            open: listed(Standing::Open),
            dead: listed(Standing::Dead),
        }
    }

    pub(crate) fn insert(&mut self, row: Row, standing: Standing) {
        self.keys.insert(row);
        match standing {
            Standing::Open => drop(self.open.insert(row)),
            Standing::Dead => drop(self.dead.insert(row)),
            Standing::AtRest => {}
        }
    }

    /// Says whether it was there.
    pub(crate) fn remove(&mut self, row: &Row) -> bool {
        self.open.remove(row);
        self.dead.remove(row);
        self.keys.remove(row)
    }

    pub(crate) fn retain(&mut self, stays: impl Fn(&Row) -> bool) {
        for rows in [&mut self.keys, &mut self.open, &mut self.dead] {
            rows.retain(&stays);
        }
    }
}
