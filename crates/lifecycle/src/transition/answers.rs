//! What to do with answers. They are paid for, so no usable answer is thrown away. The age of an answer follows from
//! the earliest moment at which it can have been solved, never from when we received it.

use super::people::new_order;
use super::{Decision, NextOrder, WhyIgnored};
use crate::answer::{Answer, Money, ProviderAnswer};
use crate::counters::Counters;
use crate::event::{CallbackResult, Effect, Outage, Receipt, Via};
use crate::fault::{Fault, FaultClass};
use crate::key::Key;
use crate::order::{Attempt, Order, Phase, Progress, TASK_BYTES_MAX};
use crate::policy::Policy;
use crate::time::{Timestamp, millis};
use crate::timeline::TimelineEvent;
use alloc::string::String;
use alloc::sync::Arc;
use core::time::Duration;

/// The surplus answer of an attempt as an order of its own, solved and free to be taken.
#[must_use]
pub fn surplus_as_order(order: &Order, attempt: u32, now: Timestamp) -> Option<Order> {
    let made = order.attempt(attempt)?;
    let Progress::Surplus { answer, since } = &made.progress else { return None };
    let mut surplus = new_order(order.key.surplus(order.born, attempt), Arc::clone(&order.terms), order.born);
    surplus.life = 1;
    surplus.wanted = false;
    surplus.uncollected = answer.expires.is_some();
    // Only with the task id can the answer be reported.
    surplus.attempts.push(Attempt {
        progress: Progress::Answered,
        report: None,
        drawn: None,
        ..made.clone()
    });
    surplus.last_attempt = attempt;
    surplus.phase = Phase::Solved { answer: answer.clone(), at: *since };
    surplus.timeline.tell(now, TimelineEvent::Stocked { attempt });
    Some(surplus)
}

/// What the usage counts when an order is served from stock: the time saved, compared with buying an answer.
#[must_use]
pub fn from_stock_order(policy: &Policy) -> Counters {
    Counters { asked: 1, from_stock: 1, saved_ms: millis(policy.pace.p50), ..Counters::default() }
}

/// The usage entry for the age of an answer when it was handed out.
#[must_use]
pub fn age_at_hand_out(answer: &Answer, at: Timestamp) -> Counters {
    Counters { stock_age_ms: millis(at.since(answer.earliest)), ..Counters::default() }
}

/// The earliest moment at which an answer that came by callback can have been solved. Providers call at once, and
/// repeat a call that got no reply. So if there was an outage since the task was last known to be unsolved, the first
/// call may have come when the outage began.
fn solved_after(unsolved_at: Timestamp, receipt: &Receipt, policy: &Policy) -> Timestamp {
    let missed = missed_since(unsolved_at, receipt, policy);
    let first_call = missed.map_or(receipt.at, |begun| begun.min(receipt.at));
    (first_call - policy.callback_lag).max(unsolved_at)
}

/// When the first outage began in which a callback of this task may have come.
fn missed_since(unsolved_at: Timestamp, receipt: &Receipt, policy: &Policy) -> Option<Timestamp> {
    let matters = |outage: &&Outage| outage.to + policy.clock_skew > unsolved_at;
    receipt.outages.iter().filter(matters).map(|outage| outage.from).min()
}

/// The earliest moment at which an answer that arrived at `arrived` can have been solved. Each piece of evidence
/// names a moment before which the task was unsolved: the submit or last "not ready" poll, the callback, and the
/// duration that the provider reports. The latest of them counts.
fn earliest_solve(
    attempt: &Attempt,
    took_at_least: Option<Duration>,
    receipt: Option<&Receipt>,
    arrived: Timestamp,
    policy: &Policy,
) -> Timestamp {
    let unsolved_at = attempt.unsolved_at;
    let by_callback = receipt.map_or(unsolved_at, |receipt| solved_after(unsolved_at, receipt, policy));
    // The provider cannot have taken the task before it was sent. A duration that ends after the answer arrived is no
    // evidence: the provider's clock was set meanwhile, or its times are not in seconds.
    let by_duration = took_at_least
        .map(|took| attempt.sent + took)
        .filter(|solved| *solved <= arrived + policy.clock_skew)
        .map_or(unsolved_at, |solved| solved.min(arrived));
    unsolved_at.max(by_callback).max(by_duration)
}

/// Whether an answer that a poll brought now would be too old for any caller. A poll seldom reports how long the
/// provider took, so its answer counts as old as it can be.
#[must_use]
pub fn would_be_too_old(order: &Order, attempt: u32, now: Timestamp, policy: &Policy) -> bool {
    let expires = |attempt: &Attempt| Some(attempt.unsolved_at + order.terms.life? - policy.clock_skew);
    order.attempt(attempt).and_then(expires).is_some_and(|expires| now + order.terms.min_life >= expires)
}

impl NextOrder {
    /// Handles the answer to an attempt. It is paid for: it settles the order, revives it, goes to the stock, or is
    /// waste.
    pub(super) fn answered(
        mut self,
        number: u32,
        delivery: ProviderAnswer,
        (via, receipt): (Via, Option<Receipt>),
        policy: &Policy,
    ) -> Decision {
        let answer = self.receive(number, delivery, receipt.as_ref(), policy);
        let was_current = self.next.current() == Some(number);
        let good = answer.is_good_for(self.life_needed(), self.now);
        let is_late = !was_current;
        match &self.next.phase {
            phase if phase.is_open() => {
                self.counters.late = u64::from(is_late);
                if good {
                    return self.solve(number, answer, via, policy);
                }
                self.waste(&answer);
                self.tell(TimelineEvent::TooOld { attempt: number });
                if was_current {
                    self.retry_or_end(number, Fault::new(FaultClass::Unsolvable, "ANSWER_TOO_OLD"), policy)
                } else {
                    self.done()
                }
            }
            Phase::Dead { .. } if good => {
                self.counters.late = 1;
                self.counters.revived = 1;
                self.solve(number, answer, via, policy)
            }
            // The waiting callers have their outcome. An answer that comes later stands in the stock for the next
            // caller.
            Phase::Failed { .. } | Phase::Expired { .. } if good => {
                self.counters.late = 1;
                self.next.wanted = false;
                self.solve(number, answer, via, policy)
            }
            Phase::Dead { .. } => self.too_late(number, &answer),
            _ if good && self.next.terms.single_use => {
                self.counters.late = 1;
                self.tell(TimelineEvent::CameLate { attempt: number });
                self.set_progress(number, Progress::Surplus { answer, since: self.now });
                self.then(Effect::Stock { attempt: number })
            }
            _ => self.too_late(number, &answer),
        }
    }

    pub(super) fn too_late(mut self, number: u32, answer: &Answer) -> Decision {
        self.counters.late = 1;
        self.waste(answer);
        self.tell(TimelineEvent::TooOld { attempt: number });
        self.done()
    }

    /// How much life a new answer must have: what its callers requested if it settles their order, or the margin of a
    /// reused answer if it goes to the stock.
    fn life_needed(&self) -> Duration {
        let terms = &self.next.terms;
        let is_for_callers = match self.next.phase {
            Phase::Dead { .. } => true,
            _ => self.next.is_awaited() && terms.slot.is_none(),
        };
        if is_for_callers { terms.min_life } else { terms.margin }
    }

    /// Accepts an answer: it counts as paid, and gets the expiry that follows from the earliest possible solve.
    fn receive(
        &mut self,
        number: u32,
        delivery: ProviderAnswer,
        receipt: Option<&Receipt>,
        policy: &Policy,
    ) -> Answer {
        self.mark_paid(number);
        self.remember_task(number);
        self.set_progress(number, Progress::Answered);
        // A callback says no price, and some providers never do: then the price list decides.
        let cost = delivery.cost.or_else(|| self.listed_price(number)).filter(|_| !policy.other_currency);
        self.charge(number, cost);
        let arrived = receipt.map_or(self.now, |receipt| receipt.at.min(self.now));
        let earliest = self.next.attempt(number).map_or(self.now, |attempt| {
            earliest_solve(attempt, delivery.took_at_least, receipt, arrived, policy)
        });
        // The node that hands it out may have a clock that is behind ours.
        let expires = self.next.terms.life.map(|life| earliest + life - policy.clock_skew);
        Answer { payload: delivery.payload, attempt: number, earliest, expires, cost }
    }

    /// Dates an answer again when a callback comes after a poll has brought it: the poll was a moment faster, the callback
    /// waited in the spill, or the provider repeats it after an outage of ours. A callback is better evidence than a
    /// poll. One that dates the solve after the poll is no evidence: it may be the repeat of one that was lost on its way.
    pub(super) fn date_again(
        mut self,
        number: u32,
        word: &CallbackResult,
        receipt: Option<&Receipt>,
        policy: &Policy,
    ) -> Decision {
        let ignored = Decision::Ignore(WhyIgnored::AlreadyAnswered);
        let attempt = self.next.attempt(number).cloned();
        let (Some(receipt), Some(attempt), CallbackResult::Answered(delivery)) = (receipt, attempt, word)
        else {
            return ignored;
        };
        let dated = |receipt: Option<&Receipt>, arrived| {
            earliest_solve(&attempt, delivery.took_at_least, receipt, arrived, policy)
        };
        match &mut self.next.phase {
            Phase::Solved { answer, at }
                if answer.attempt == number
                    && answer.payload.text == delivery.payload.text
                    && answer.earliest == dated(None, *at) =>
            {
                let earliest = dated(Some(receipt), receipt.at.min(*at));
                if earliest <= answer.earliest || earliest > *at {
                    return ignored;
                }
                let later = earliest.since(answer.earliest);
                (answer.earliest, answer.expires) = (earliest, answer.expires.map(|expires| expires + later));
                self.done()
            }
            _ => ignored,
        }
    }

    /// Stores the provider's task id from a callback.
    pub(super) fn learn_task(&mut self, number: u32, task: Option<String>) {
        // A callback without an id says nothing about the one that is known.
        if let Some(task) = task.filter(|task| task.len() <= TASK_BYTES_MAX)
            && let Some(attempt) = self.next.attempt_mut(number)
        {
            attempt.task = Some(task);
        }
    }

    /// Keeps the task id of the attempt: only with it can the answer be reported.
    fn remember_task(&mut self, number: u32) {
        if let Some(attempt) = self.next.attempt_mut(number)
            && let Progress::Solving { task } | Progress::Trailing { task, .. } = &attempt.progress
        {
            attempt.task = Some(task.clone());
        }
    }

    pub(super) fn solve(mut self, number: u32, answer: Answer, via: Via, policy: &Policy) -> Decision {
        self.counters.solved = 1;
        self.counters.recovered_by_poll = u64::from(policy.callbacks && via == Via::Poll);
        self.leave(policy);
        // A refill of a pool was bought for no caller.
        self.next.wanted &= self.next.terms.slot.is_none();
        self.counters.stocked = u64::from(!self.next.wanted && self.next.terms.single_use);
        self.next.uncollected = answer.expires.is_some();
        // The order stays on the operator's list: any of its lost steps may have been paid for.
        if core::mem::take(&mut self.next.steps_lost) {
            self.next.put_back = Some(self.now);
        }
        self.next.phase = Phase::Solved { answer, at: self.now };
        self.tell(TimelineEvent::Solved { attempt: number, via });
        self.done()
    }

    pub(super) fn waste(&mut self, answer: &Answer) {
        self.book_on(answer.attempt);
        self.counters.wasted = 1;
        self.counters.wasted_micros = answer.cost.map_or(0, |Money(micros)| micros);
        self.counters.wasted_unpriced = u64::from(answer.cost.is_none());
    }

    pub(super) fn stocked(mut self, number: u32) -> Decision {
        match self.next.attempt(number).map(|attempt| &attempt.progress) {
            Some(Progress::Surplus { .. }) => {
                self.counters.stocked = 1;
                self.set_progress(number, Progress::Answered);
                self.tell(TimelineEvent::Stocked { attempt: number });
                self.done()
            }
            Some(_) => Decision::Ignore(WhyIgnored::OldNews),
            None => Decision::Ignore(WhyIgnored::UnknownAttempt),
        }
    }

    pub(super) fn claimed(mut self, by: Key, min_life: Duration, policy: &Policy) -> Decision {
        match self.next.phase.clone() {
            Phase::Claimed { by: owner, .. } if owner != by => Decision::Ignore(WhyIgnored::TakenByAnother),
            Phase::Claimed { .. } if !self.next.uncollected => Decision::Ignore(WhyIgnored::AlreadyYours),
            Phase::Solved { .. } if !self.next.must_be_claimed() && !self.next.uncollected => {
                Decision::Ignore(WhyIgnored::WrongPhase)
            }
            Phase::Solved { .. }
                if self.next.must_be_claimed() && self.next.wanted && by != self.next.key =>
            {
                Decision::Ignore(WhyIgnored::TakenByAnother)
            }
            Phase::Solved { answer, .. } | Phase::Claimed { answer, .. }
                if !answer.is_good_for(min_life, self.now) =>
            {
                Decision::Ignore(WhyIgnored::TooOld)
            }
            // The answer stays for others to share, or belongs to this caller already. It reaches a caller only now.
            Phase::Claimed { .. } => self.collected(),
            Phase::Solved { .. } if !self.next.must_be_claimed() => self.collected(),
            Phase::Solved { answer, .. } => {
                self.next.uncollected = false;
                if by != self.next.key {
                    self.counters = from_stock_order(policy);
                    self.counters += age_at_hand_out(&answer, self.now);
                }
                self.next = self.next.taken(by, self.now);
                self.done()
            }
            _ => Decision::Ignore(WhyIgnored::WrongPhase),
        }
    }

    fn collected(mut self) -> Decision {
        self.next.uncollected = false;
        self.done()
    }

    /// Serves the order from stock. Nothing was bought for it yet, and now nothing needs to be bought.
    pub(super) fn served_from_stock(
        mut self,
        by: Key,
        (from, answer, attempt): (Key, Answer, Attempt),
        policy: &Policy,
    ) -> Decision {
        let is_waiting = matches!(self.next.phase, Phase::Queued { .. }) && self.next.wanted;
        if !is_waiting || !self.next.terms.takes_stock || by != self.next.claimant() {
            return Decision::Ignore(WhyIgnored::WrongPhase);
        }
        if !answer.is_good_for(self.next.terms.margin, self.now) {
            return Decision::Ignore(WhyIgnored::TooOld);
        }
        self.counters = Counters { asked: 0, ..from_stock_order(policy) };
        self.counters += age_at_hand_out(&answer, self.now);
        let number = self.next.remember(Attempt { made_for: Some(from), ..attempt });
        self.next.uncollected = answer.expires.is_some();
        self.next.phase = Phase::Solved { answer: Answer { attempt: number, ..answer }, at: self.now };
        self.tell(TimelineEvent::ServedFromStock { from });
        self.done()
    }

    /// Notes which order has the answer that was claimed from stock. That order counts the answer as waste if no caller
    /// gets it: this one must not count it, too.
    pub(super) fn handed_over(mut self, by: Key, to: Key) -> Decision {
        match &self.next.phase {
            Phase::Claimed { by: owner, .. } if *owner != by => Decision::Ignore(WhyIgnored::TakenByAnother),
            Phase::Claimed { .. } if !self.next.uncollected => Decision::Ignore(WhyIgnored::AlreadyYours),
            Phase::Claimed { .. } => {
                self.next.uncollected = false;
                self.tell(TimelineEvent::HandedOver { to });
                self.done()
            }
            _ => Decision::Ignore(WhyIgnored::WrongPhase),
        }
    }

    /// Returns the answer to the stock from which it was taken.
    pub(super) fn returned(mut self, by: Key) -> Decision {
        match self.next.phase.clone() {
            Phase::Claimed { answer, by: owner, at } if owner == by && !self.next.wanted => {
                self.next.phase = Phase::Solved { answer, at };
                self.tell(TimelineEvent::Returned);
                self.done()
            }
            _ => Decision::Ignore(WhyIgnored::WrongPhase),
        }
    }
}
