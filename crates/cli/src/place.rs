//! From the store that somebody named to one that is open, and what goes wrong on the way in words that say what to do.

use crate::config::StoreConfig;
use crate::exit::{Exit, Trouble};
use quittance::{Opened, SPILL_NAME};
use std::path::{Path, PathBuf};

/// Opens a store by itself, without a node.
pub(crate) async fn open(store: &StoreConfig) -> Result<Opened, Trouble> {
    let place = store.place().map_err(|error| Trouble::of(Exit::Config, &error))?;
    place.open().await.map_err(|error| Trouble::of(Exit::Store, &error))
}

/// The spill of this folder, if something waits in it.
pub(crate) fn spilled(folder: &Path) -> Option<PathBuf> {
    let spill = folder.join(SPILL_NAME);
    std::fs::metadata(&spill).is_ok_and(|found| found.len() > 0).then_some(spill)
}
