//! Recovery after a shared store has forgotten acknowledged orders. Nodes first put back the orders that they had in
//! hand. Until then this node begins no order: what looks new here may be paid for and in hand on another node.

use crate::callback::{beginning, nameless};
use crate::{Engine, lock};
use quittance_lifecycle::{CallbackResult, Counters, Decision, Event, KeySettings, Order, Timestamp};
use quittance_ports::{Commit, IncomingEvent, StoreError, StoreForgot, Version};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// How long a placement waits for the recovery to end.
const PLACE_WAIT_MAX: Duration = Duration::from_secs(10);

impl Engine {
    /// For `span` from now, this node begins no order and submits nothing. A `span` of zero ends the recovery.
    pub fn recover_for(&self, span: Duration) {
        let until = if span.is_zero() { Timestamp::ZERO } else { self.now() + span };
        self.recovering_until.store(until.as_millis(), Ordering::Relaxed);
    }

    /// Until when nodes put back what the store has forgotten; `None` if they do not.
    #[must_use]
    pub fn recovering(&self) -> Option<Timestamp> {
        let until = Timestamp::from_millis(self.recovering_until.load(Ordering::Relaxed));
        (self.now() < until).then_some(until)
    }

    /// Waits until orders may begin again. Fails if that takes too long for a placement that began at `since`.
    pub(crate) async fn wait_for_recovery(&self, since: Timestamp) -> Result<(), StoreError> {
        let give_up_at = since + PLACE_WAIT_MAX;
        while let Some(until) = self.recovering() {
            if self.now() >= give_up_at {
                let source = Box::new(StoreForgot);
                return Err(StoreError::Unavailable { doing: "accepting a new order", source });
            }
            self.world.clock.sleep_until(until.min(give_up_at)).await;
        }
        Ok(())
    }

    /// The settings that make the keys of orders.
    pub(crate) fn keys(&self) -> KeySettings {
        KeySettings { secret: *lock(&self.key_secret), ..self.settings().keys }
    }

    /// Sets the secret under which the keys of orders are hashed. All nodes of a store have agreed on it.
    pub fn set_key_secret(&self, secret: [u8; 32]) {
        *lock(&self.key_secret) = Some(secret);
    }

    /// Fails if the key of a new order was hashed under an old secret: no other node would recognise the order.
    pub(crate) fn check_key_secret(&self, secret: Option<[u8; 32]>) -> Result<(), StoreError> {
        if self.keys().secret == secret {
            return Ok(());
        }
        Err(StoreError::Unavailable { doing: "accepting a new order", source: Box::new(StoreForgot) })
    }

    /// Looks for a kept callback with a paid answer for an order that is placed again after its record was lost. The
    /// order resumes that attempt, and nothing is submitted. If `is_listed`, the record's entry among the unreadable
    /// ones is removed. Returns `None` if there is no such callback, or if another node was faster.
    pub(crate) async fn revive(
        &self,
        placed: &Order,
        mut counters: Counters,
        is_listed: bool,
    ) -> Result<Option<Arc<Order>>, StoreError> {
        let Some((callback, attempt)) = self.spilled_answer(placed) else { return Ok(None) };
        let recalled =
            Event::Recalled { born: callback.born, attempts: vec![nameless(attempt, callback.born)] };
        let (at, policy) = (self.now(), self.policy(placed));
        let Decision::Advance(advance) = (self.settings().rules.transition)(placed, recalled, at, &policy)
        else {
            return Ok(None);
        };
        if is_listed && !self.world.store.discard(&placed.key).await? {
            return Ok(None);
        }
        let next = Arc::new(advance.next);
        counters += advance.counters;
        match self.world.store.commit(Version::ABSENT, &next, &counters, at).await {
            Ok(Commit::Done(_)) => {}
            Ok(Commit::Conflict(_)) => return Ok(None),
            // It is listed, which shows only now.
            Err(StoreError::Corrupt { .. }) if !is_listed => return Ok(None),
            Err(error) => return Err(error),
        }
        self.note_commit(&next);
        // It stays in the spill, and is found to be known when that is replayed.
        self.apply_incoming(&callback).await?;
        self.expect_spill();
        Ok(Some(next))
    }

    /// The kept callback with an answer for the placed order, and its attempt.
    fn spilled_answer(&self, placed: &Order) -> Option<(IncomingEvent, u32)> {
        if !self.may_be_spilled(&placed.key) {
            return None;
        }
        let target = Some(beginning(&placed.terms.target));
        let is_meant = |arrival: &IncomingEvent| arrival.key == placed.key && arrival.target == target;
        let waiting = self.world.spill.waiting().ok()?;
        let mut meant =
            waiting.into_iter().filter(|arrival| is_meant(arrival) && self.may_come_back(arrival));
        meant.find_map(|arrival| match arrival.event {
            Event::CalledBack { attempt, word: CallbackResult::Answered(_), .. } => Some((arrival, attempt)),
            _ => None,
        })
    }
}
