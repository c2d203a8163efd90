//! The one way to change an order: load, decide, commit with compare-and-swap, and only then hand out the effect.
//! Whoever loses a race decides again on what the winner wrote; whoever does not know whether his write
//! happened looks, and never acts on hope.

use crate::Engine;
use quittance_lifecycle::{Advance, Decision, Effect, Event, Key, Order, WhyIgnored};
use quittance_ports::{Commit, StoreError, Version, Versioned};
use std::sync::Arc;
use std::time::Duration;

/// How long to wait before looking whether a write happened.
const LOOK_AGAIN: Duration = Duration::from_millis(100);

/// How often a commit is tried whose fate is not known.
const COMMITS_LOST_MAX: u32 = 5;

/// What an event did.
#[derive(Debug)]
pub enum Applied {
    /// Committed; the effect, if any, is now to be performed.
    Advanced {
        now: Versioned,
        effect: Option<Effect>,
    },
    /// Nothing to commit; the effect may be performed.
    Act {
        now: Versioned,
        effect: Effect,
    },
    Ignored {
        now: Versioned,
        why: WhyIgnored,
    },
    /// There is no such order.
    Missing,
}

impl Engine {
    /// Applies `event` to an order, beginning with `found` if the caller has just read it.
    pub(crate) async fn apply(
        &self,
        key: &Key,
        found: Option<Versioned>,
        event: &Event,
    ) -> Result<Applied, StoreError> {
        self.apply_if(key, found, event, |_| true).await
    }

    /// Applies an event that is meant for the order only while `is_meant` holds; it is asked
    /// again of whatever a winner wrote.
    pub(crate) async fn apply_if(
        &self,
        key: &Key,
        found: Option<Versioned>,
        event: &Event,
        is_meant: impl Fn(&Order) -> bool + Send + Sync,
    ) -> Result<Applied, StoreError> {
        let mut found = match found {
            Some(found) => Some(found),
            None => self.load(key).await?,
        };
        let mut commits_lost = 0;
        loop {
            let Some(current) = found else { return Ok(Applied::Missing) };
            if !is_meant(&current.order) {
                return Ok(Applied::Ignored { now: current, why: WhyIgnored::OldNews });
            }
            let at = self.now();
            let policy = self.policy(&current.order);
            match (self.settings.rules.transition)(&current.order, event.clone(), at, &policy) {
                Decision::Ignore(why) => {
                    self.count_ignored(why);
                    return Ok(Applied::Ignored { now: current, why });
                }
                Decision::Act(effect) => return Ok(Applied::Act { now: current, effect }),
                Decision::Advance(advance) => {
                    let Advance { next, counters, effect } = *advance;
                    let next = Arc::new(next);
                    match self.world.store.commit(current.version, &next, &counters, at).await {
                        Ok(Commit::Done(version)) => {
                            return Ok(self.advanced(Versioned { version, order: next }, effect));
                        }
                        Ok(Commit::Conflict(None)) if self.is_held(key) => found = self.load(key).await?,
                        Ok(Commit::Conflict(winner)) => found = winner.map(|winner| *winner),
                        Err(error @ StoreError::Corrupt { .. }) => return Err(error),
                        Err(error @ StoreError::Unavailable { .. }) => {
                            self.note_error(&error);
                            commits_lost += 1;
                            // A store that can be read but not written may stay so; whoever has a spill needs it now.
                            if commits_lost == COMMITS_LOST_MAX {
                                return Err(error);
                            }
                            found = self.look_again(key).await?;
                            if let Some(found) = found.take_if(|found| is_ours(found, current.version, &next))
                            {
                                return Ok(self.advanced(found, effect));
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

    /// A write may or may not have happened: what stands now?
    pub(crate) async fn look_again(&self, key: &Key) -> Result<Option<Versioned>, StoreError> {
        self.pause_before_looking().await;
        self.load(key).await
    }

    fn advanced(&self, now: Versioned, effect: Option<Effect>) -> Applied {
        self.note_commit(&now.order);
        self.hold(&now);
        if let Some(due) = now.order.due() {
            self.expect_timer(due);
        }
        Applied::Advanced { now, effect }
    }
}

/// Whether the record that stands is the write that was in question. A submit carries a stamp that only its
/// own ring of the timer has, so nobody takes another's intent for his; for all else it does not matter whose it is.
pub(crate) fn is_ours(found: &Versioned, expected: Version, next: &quittance_lifecycle::Order) -> bool {
    found.version != expected && *found.order == *next
}
