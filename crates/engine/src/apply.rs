//! The only way to change an order after its placement: load it, decide, commit with compare-and-swap, and
//! only then return the effect. A writer that loses a race decides again on what the winner wrote. A writer
//! that does not know whether its write happened reads the record again, and never guesses.

use crate::Engine;
use quittance_lifecycle::{Advance, Decision, Effect, Event, Key, Order, WhyIgnored};
use quittance_ports::{Commit, StoreError, Version, Versioned};
use std::sync::Arc;
use std::time::Duration;

/// How long to wait before the record is read again, to find out whether a write happened.
const LOOK_AGAIN: Duration = Duration::from_millis(100);

/// How many commits with an unknown outcome are tried before the store's error is returned.
const COMMITS_LOST_MAX: u32 = 5;

/// What an event did.
#[derive(Debug)]
pub enum ApplyOutcome {
    /// The change is committed. The caller must now perform the effect, if there is one.
    Advanced {
        now: Versioned,
        effect: Option<Effect>,
    },
    /// Nothing was committed. The caller may perform the effect.
    Act {
        now: Versioned,
        effect: Effect,
    },
    Ignored {
        now: Versioned,
        why: WhyIgnored,
    },
    /// The store has no order under this key.
    Missing,
}

impl Engine {
    /// Applies `event` to an order, beginning with `record` if the caller has just read it.
    pub(crate) async fn apply(
        &self,
        key: &Key,
        record: Option<Versioned>,
        event: &Event,
    ) -> Result<ApplyOutcome, StoreError> {
        self.apply_if(key, record, event, |_| true).await
    }

    /// Applies an event to an order only if `is_meant` is true for the order. The condition is checked again
    /// on what another writer has written.
    pub(crate) async fn apply_if(
        &self,
        key: &Key,
        record: Option<Versioned>,
        event: &Event,
        is_meant: impl Fn(&Order) -> bool + Send + Sync,
    ) -> Result<ApplyOutcome, StoreError> {
        let mut record = match record {
            Some(record) => Some(record),
            None => self.load(key).await?,
        };
        let mut commits_lost = 0;
        loop {
            let Some(current) = record else { return Ok(ApplyOutcome::Missing) };
            if !is_meant(&current.order) {
                return Ok(ApplyOutcome::Ignored { now: current, why: WhyIgnored::OldNews });
            }
            let at = self.now();
            let policy = self.policy_about(&current.order, event.attempt());
            match (self.settings().rules.transition)(&current.order, event.clone(), at, &policy) {
                Decision::Ignore(why) => {
                    self.count_ignored(why);
                    return Ok(ApplyOutcome::Ignored { now: current, why });
                }
                Decision::Act(effect) => return Ok(ApplyOutcome::Act { now: current, effect }),
                Decision::Advance(advance) => {
                    let Advance { next, counters, effect } = *advance;
                    let next = Arc::new(next);
                    match self.world.store.commit(current.version, &next, &counters, at).await {
                        Ok(Commit::Done(version)) => {
                            self.settle_budgets(&current.order, &next);
                            return Ok(self.advanced(Versioned { version, order: next }, effect));
                        }
                        Ok(Commit::Conflict(None)) if self.is_held(key) => record = self.load(key).await?,
                        Ok(Commit::Conflict(winner)) => record = winner.map(|winner| *winner),
                        Err(error @ StoreError::Corrupt { .. }) => return Err(error),
                        Err(error @ StoreError::Unavailable { .. }) => {
                            self.note_error(&error);
                            commits_lost += 1;
                            // A store that can be read but not written may stay like that. The error is
                            // returned, so that a node can use its spill.
                            if commits_lost == COMMITS_LOST_MAX {
                                return Err(error);
                            }
                            record = self.look_again(key).await?;
                            if let Some(record) =
                                record.take_if(|record| is_ours(record, current.version, &next))
                            {
                                return Ok(self.advanced(record, effect));
                            }
                        }
                    }
                }
            }
        }
    }

    pub(crate) async fn pause_before_looking(&self) {
        self.world.clock.sleep_until(self.now() + LOOK_AGAIN).await;
    }

    /// Reads the record after a short pause, if it is not known whether a write happened.
    pub(crate) async fn look_again(&self, key: &Key) -> Result<Option<Versioned>, StoreError> {
        self.pause_before_looking().await;
        self.load(key).await
    }

    fn advanced(&self, now: Versioned, effect: Option<Effect>) -> ApplyOutcome {
        self.note_commit(&now.order);
        self.hold(&now);
        self.see(&now.order);
        self.expect_poll(&now.order);
        if let Some(due) = now.order.due() {
            self.expect_timer(due);
        }
        ApplyOutcome::Advanced { now, effect }
    }
}

/// Whether `record` is our own write of `next`, whose reply was lost. A submit carries a stamp that is unique to one
/// wake-up, so no node mistakes another node's submit for its own. For all other writes it does not matter which node
/// wrote.
pub(crate) fn is_ours(record: &Versioned, expected: Version, next: &quittance_lifecycle::Order) -> bool {
    record.version != expected && *record.order == *next
}
