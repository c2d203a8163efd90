//! Pools, and what reports have taught, are put back after a shared store has forgotten them, like orders.

use crate::{Engine, lock};
use quittance_ports::{Sheet, SheetFound, SheetWritten, StoreError, Version};

impl Engine {
    /// The pools as this node last read them, and what reports have taught.
    #[must_use]
    pub fn known_pools(&self) -> Vec<SheetFound> {
        let is_kept = |found: &&SheetFound| matches!(found.sheet, Sheet::Pool(_) | Sheet::Trust(_));
        lock(&self.pools).sheets.values().filter(is_kept).cloned().collect()
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
