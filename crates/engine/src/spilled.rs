//! Knows for which orders the spill holds a callback. A callback for an order that the store has forgotten waits in
//! the spill. If the order is placed again, this callback answers it before anything is submitted. With the keys in
//! memory, a placement need not read the file.

use crate::{Engine, lock};
use quittance_lifecycle::Key;
use quittance_ports::IncomingEvent;
use std::collections::BTreeMap;

/// How many events the spill holds for each order; `None` until the spill was read. The spill is bounded, so this is,
/// too.
#[derive(Default)]
pub(crate) struct SpilledCounts(Option<BTreeMap<Key, u32>>);

impl Engine {
    /// Notes that an event for this order was added to the spill.
    pub(crate) fn note_spilled(&self, key: &Key) {
        if let Some(spilled) = &mut lock(&self.spilled).0 {
            *spilled.entry(*key).or_default() += 1;
        }
    }

    /// Notes that these events were removed from the spill.
    pub(crate) fn note_removed(&self, removed: &[IncomingEvent]) {
        let mut spilled = lock(&self.spilled);
        let Some(spilled) = &mut spilled.0 else { return };
        for IncomingEvent { key, .. } in removed {
            if let Some(count) = spilled.get_mut(key) {
                *count = count.saturating_sub(1);
                if *count == 0 {
                    spilled.remove(key);
                }
            }
        }
    }

    /// Whether the spill may hold an event for this order.
    pub(crate) fn may_be_spilled(&self, key: &Key) -> bool {
        let mut spilled = lock(&self.spilled);
        if spilled.0.is_none() {
            // What cannot be read now may be there.
            let Ok(waiting) = self.world.spill.waiting() else { return true };
            let mut counts = BTreeMap::new();
            for IncomingEvent { key, .. } in waiting {
                *counts.entry(key).or_default() += 1;
            }
            spilled.0 = Some(counts);
        }
        spilled.0.as_ref().is_some_and(|spilled| spilled.contains_key(key))
    }
}
