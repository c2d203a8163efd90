//! Since when the oldest dead letter waits. There may be a million of them, so each look reads a few and goes on where the last one
//! stopped; once one is found that has waited for too long, only that one is looked at until somebody has seen to it.

use crate::OrderService;
use quittance_lifecycle::{Key, Timestamp};
use quittance_ports::{StoreError, Which};
use std::time::Duration;

/// How many are read in one look.
const PAGE: usize = 256;

#[derive(Debug, Default)]
pub(super) struct Oldest {
    /// The oldest of the last time round, and of this one so far.
    last: Option<(Timestamp, Key)>,
    this: Option<(Timestamp, Key)>,
    after: Option<Key>,
}

impl Oldest {
    /// Since when the oldest that is known of waits. `bar` is how long is too long.
    pub(super) async fn look(
        &mut self,
        orders: &OrderService,
        now: Timestamp,
        bar: Duration,
    ) -> Result<Option<Timestamp>, StoreError> {
        let known = self.known();
        if let Some((since, key)) = known.filter(|(since, _)| now.since(*since) >= bar) {
            let order = orders.engine().read(&key).await?;
            if order.and_then(|order| order.dead_letter()).is_some_and(|letter| letter.since <= since) {
                return Ok(Some(since));
            }
            *self = Self { after: self.after, ..Self::default() };
        }
        let page = orders.engine().list(Which::DEAD, self.after.as_ref(), PAGE).await?;
        for found in page.iter().flatten() {
            let Some(letter) = found.order.dead_letter() else { continue };
            if self.this.is_none_or(|(since, _)| letter.since < since) {
                self.this = Some((letter.since, found.order.key));
            }
        }
        match page.last() {
            Some(last) if page.len() == PAGE => {
                self.after = Some(last.as_ref().map_or_else(|odd| odd.key, |found| found.order.key));
            }
            _ => (self.last, self.this, self.after) = (self.this.take(), None, None),
        }
        Ok(self.known().map(|(since, _)| since))
    }

    fn known(&self) -> Option<(Timestamp, Key)> {
        [self.last, self.this].into_iter().flatten().min()
    }
}
