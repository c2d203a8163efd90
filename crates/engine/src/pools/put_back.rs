//! Pools, and what reports have taught, are put back after a shared store has forgotten them, like orders. A sheet that is no longer there
//! was removed by a person, or the store has forgotten it: which of the two shows when the store next says who it is.

use super::Pools;
use crate::{Engine, lock};
use quittance_ports::sheet::SHEETS_MAX;
use quittance_ports::{Sheet, SheetFound, SheetWritten, StoreError, Version};
use std::collections::BTreeMap;

const fn is_put_back(sheet: &Sheet) -> bool {
    matches!(sheet, Sheet::Pool(_) | Sheet::Trust(_))
}

impl Pools {
    /// These are all sheets that there are now. Those that are not among them any more are remembered for a while.
    pub(super) fn replace_sheets(&mut self, found: Vec<SheetFound>) {
        let next: BTreeMap<String, SheetFound> =
            found.into_iter().map(|found| (found.name.clone(), found)).collect();
        let before = std::mem::replace(&mut self.sheets, next);
        self.vanished.extend(before.into_iter().filter(|(_, found)| is_put_back(&found.sheet)));
        self.vanished.retain(|name, _| !self.sheets.contains_key(name));
        while self.vanished.len() > SHEETS_MAX {
            self.vanished.pop_first();
        }
    }
}

impl Engine {
    /// The names of sheets that were there and are not any more, as far as this node has read.
    #[must_use]
    pub fn vanished_pools(&self) -> Vec<String> {
        lock(&self.pools).vanished.keys().cloned().collect()
    }

    /// The store is the same as before: these were removed by a person.
    pub fn pools_were_removed(&self, names: &[String]) {
        let mut pools = lock(&self.pools);
        for name in names {
            pools.vanished.remove(name);
        }
    }

    /// The store has forgotten: the pools as this node knows them, and what reports have taught, with what has vanished since the
    /// store was last known to be the same.
    #[must_use]
    pub fn take_known_pools(&self) -> Vec<SheetFound> {
        let mut pools = lock(&self.pools);
        let vanished = std::mem::take(&mut pools.vanished);
        let there = pools.sheets.values().filter(|found| is_put_back(&found.sheet)).cloned();
        there.chain(vanished.into_values()).collect()
    }

    /// Puts back those of them that the store no longer has, as they were; says how many that were.
    pub async fn put_back_pools(&self, known: &[SheetFound]) -> Result<usize, StoreError> {
        if known.is_empty() {
            return Ok(0);
        }
        let sheets = self.world.roster.sheets().await?;
        let is_missing = |known: &&SheetFound| sheets.iter().all(|found| found.name != known.name);
        let mut put_back = 0;
        for found in known.iter().filter(is_missing) {
            // Another node may be faster, and knows as much.
            let written =
                self.world.roster.write_sheet(&found.name, Version::ABSENT, Some(&found.sheet)).await?;
            put_back += usize::from(matches!(written, SheetWritten::Done(_)));
        }
        self.look_at_pools_soon();
        Ok(put_back)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use quittance_pool::Trust;
    use quittance_ports::{AlertSheet, TrustSheet};

    fn found(name: &str, sheet: Sheet) -> SheetFound {
        SheetFound { name: name.into(), version: Version(1), sheet }
    }

    #[test]
    fn what_is_no_longer_there_is_remembered_until_it_is_back_and_within_bounds() {
        let trust = |name: &str| {
            let (tenant, kind, site) = (String::new(), String::new(), String::new());
            found(name, Sheet::Trust(TrustSheet { tenant, kind, site, trust: Trust::default() }))
        };
        let mut pools = Pools::default();
        pools.replace_sheets(vec![
            trust("a"),
            trust("b"),
            found("alerts", Sheet::Alerts(AlertSheet::default())),
        ]);
        pools.replace_sheets(vec![]);
        assert_eq!(pools.vanished.keys().collect::<Vec<_>>(), ["a", "b"], "alerts begin again by themselves");
        pools.replace_sheets(vec![trust("b")]);
        assert_eq!(pools.vanished.keys().collect::<Vec<_>>(), ["a"]);
        for n in 0..2 * SHEETS_MAX {
            pools.replace_sheets(vec![trust(&n.to_string())]);
        }
        assert_eq!(pools.vanished.len(), SHEETS_MAX);
    }
}
