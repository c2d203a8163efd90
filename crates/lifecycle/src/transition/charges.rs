//! What each attempt costs, for usage. A price that is known is counted once. An attempt that was charged, or may
//! have been, at a price that is not known is counted as `unpriced`, so that no sum takes it for 0.

use super::NextOrder;
use crate::answer::Money;
use crate::fault::FaultClass;
use crate::order::{Attempt, Progress};
use crate::policy::{Policy, Unsolvable};
use crate::time::Timestamp;
use alloc::vec::Vec;

const DAY_MS: u64 = 24 * 3600 * 1000;

/// Whether two moments are on the same day (UTC). Usage is counted by day, and each day must be correct by itself.
const fn is_same_day(a: Timestamp, b: Timestamp) -> bool {
    a.as_millis() / DAY_MS == b.as_millis() / DAY_MS
}

impl NextOrder {
    /// Sets the cost of an attempt; `None` if it stays unknown.
    pub(super) fn charge(&mut self, number: u32, cost: Option<Money>) {
        let now = self.now;
        let Some(attempt) = self.next.attempt_mut(number) else { return };
        match (cost, attempt.cost) {
            (Some(cost), before) => {
                attempt.cost = Some(cost);
                let Money(counted) = before.unwrap_or_default();
                let is_priced = cost != Money(0) || attempt.progress == Progress::Answered;
                self.counters.cost_micros += cost.0.saturating_sub(counted);
                self.counters.priced += u64::from(is_priced && counted == 0);
                self.counters.free += u64::from(!is_priced && before.is_none() && attempt.accepted);
                self.is_unpriced_no_more(number);
            }
            (None, None) if attempt.unpriced_since.is_none() => {
                attempt.unpriced_since = Some(now);
                self.counters.unpriced += 1;
            }
            (None, _) => {}
        }
    }

    /// Sets the cost of an attempt that ended with a fault. It is zero if the provider did not take the task, and
    /// follows the provider's rules if the task was unsolvable. Otherwise it is unknown.
    pub(super) fn charge_for_a_fault(&mut self, number: u32, class: FaultClass, policy: &Policy) {
        let price = self.listed_price(number).filter(|_| !policy.other_currency);
        let is_accepted = self.next.attempt(number).is_some_and(|attempt| attempt.accepted);
        if !is_accepted {
            return self.is_unpriced_no_more(number);
        }
        let cost = match (class, policy.unsolvable) {
            (FaultClass::Unsolvable, Unsolvable::Charged) => price,
            (FaultClass::Unsolvable, Unsolvable::Free) => Some(Money(0)),
            _ => self.free(number),
        };
        self.charge(number, cost);
    }

    fn is_unpriced_no_more(&mut self, number: u32) {
        let now = self.now;
        let since = self.next.attempt_mut(number).and_then(|attempt| attempt.unpriced_since.take());
        // A day that is over keeps saying "at least", which stays true.
        self.counters.priced_late += u64::from(since.is_some_and(|since| is_same_day(since, now)));
    }

    /// Counts attempts that may have been charged and that the order does not wait for any more. Their price is
    /// unknown unless a late reply brings it.
    pub(super) fn count_what_is_left(&mut self) {
        let awaited = self.next.current().filter(|_| self.next.wanted);
        let is_left = |attempt: &&Attempt| {
            let is_silent = attempt.is_open() || matches!(attempt.progress, Progress::GivenUp { .. });
            is_silent && attempt.made_for.is_none() && Some(attempt.number) != awaited
        };
        let left: Vec<u32> =
            self.next.attempts.iter().filter(is_left).map(|attempt| attempt.number).collect();
        for number in left {
            self.charge(number, self.free(number));
        }
    }

    /// The price of an answer to this attempt by the price list of its account.
    pub(super) fn listed_price(&self, number: u32) -> Option<Money> {
        self.next.attempt(number).and_then(|attempt| self.next.listed_price_of(attempt))
    }

    /// A price of 0 if answers are free by the price list: then attempts without an answer are free, too.
    fn free(&self, number: u32) -> Option<Money> {
        self.listed_price(number).filter(|price| *price == Money(0))
    }

    /// Whether an attempt of this order was charged, or may have been.
    pub(super) fn may_be_charged(&self) -> bool {
        self.next.attempts.iter().any(Attempt::may_be_charged)
    }
}
