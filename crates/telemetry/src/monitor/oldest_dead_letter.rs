//! Finds since when the oldest dead letter waits. There may be a million, so each call reads one page and continues
//! after the last one. Once a dead letter has waited too long, only that one is read until it is replayed or dropped.

use quittance_engine::Engine;
use quittance_lifecycle::{Key, Timestamp};
use quittance_ports::{StoreError, Which};
use std::time::Duration;

/// How many dead letters one call reads.
const PAGE: usize = 256;

#[derive(Debug, Default)]
pub(super) struct OldestDeadLetter {
    /// The oldest of the last complete pass.
    last_pass: Option<(Timestamp, Key)>,
    /// The oldest of this pass so far.
    this_pass: Option<(Timestamp, Key)>,
    after: Option<Key>,
    /// How many records could not be read: in the last complete pass, and in this pass so far.
    unreadable: (Option<u64>, u64),
}

impl OldestDeadLetter {
    /// Since when the oldest known dead letter waits. A wait of `age_max` is too long.
    pub(super) async fn read(
        &mut self,
        engine: &Engine,
        now: Timestamp,
        age_max: Duration,
    ) -> Result<Option<Timestamp>, StoreError> {
        let known = self.known();
        // What cannot be read is counted until it is gone.
        let is_all_readable = self.unreadable().is_some_and(|count| count == 0);
        if let Some((since, key)) = known.filter(|(since, _)| is_all_readable && now.since(*since) >= age_max)
        {
            let order = engine.read(&key).await?;
            if order.and_then(|order| order.dead_letter()).is_some_and(|letter| letter.since <= since) {
                return Ok(Some(since));
            }
            *self = Self { after: self.after, unreadable: self.unreadable, ..Self::default() };
        }
        let page = engine.list(Which::DEAD, self.after.as_ref(), PAGE).await?;
        self.unreadable.1 += page.iter().filter(|found| found.is_err()).count() as u64;
        for found in page.iter().flatten() {
            let Some(letter) = found.order.dead_letter() else { continue };
            if self.this_pass.is_none_or(|(since, _)| letter.since < since) {
                self.this_pass = Some((letter.since, found.order.key));
            }
        }
        match page.last() {
            Some(last) if page.len() == PAGE => {
                self.after = Some(last.as_ref().map_or_else(|odd| odd.key, |found| found.order.key));
            }
            _ => {
                (self.last_pass, self.this_pass, self.after) = (self.this_pass.take(), None, None);
                self.unreadable = (Some(self.unreadable.1), 0);
            }
        }
        Ok(self.known().map(|(since, _)| since))
    }

    /// How many records cannot be read, as far as is known. `None` before the first complete pass, if none was found
    /// yet.
    pub(super) fn unreadable(&self) -> Option<u64> {
        let (last_pass, this_pass) = self.unreadable;
        last_pass.max((this_pass > 0).then_some(this_pass))
    }

    fn known(&self) -> Option<(Timestamp, Key)> {
        [self.last_pass, self.this_pass].into_iter().flatten().min()
    }
}
