//! The decisions about money: what every event does to an order.
//!
//! Only one function spends money: `NextOrder::submit`. All other code here, and in the files of
//! `transition/`, decides whether that function is reached. Both entries, [`place`] and [`transition`], are
//! pure: the caller commits the next order first and performs the effect after.

mod answers;
mod charges;
mod follow_ups;
mod forgotten;
mod people;
mod provider_replies;
mod retries;

pub use answers::{age_at_hand_out, from_stock_order, surplus_as_order, would_be_too_old};
pub use people::{Origin, Placement, Refusal, place};

use crate::counters::Counters;
use crate::event::{Effect, Event, Offer, SubmitRoute};
use crate::fault::{Evidence, Fault, Reaction, Remedy, Signal};
use crate::in_time::too_late;
use crate::order::{Attempt, AttemptAccount, DeadCause, FailCause, Order, Phase, Progress};
use crate::policy::{Policy, WhenInDoubt};
use crate::shortage::Shortage;
use crate::time::Timestamp;
use crate::timeline::TimelineEvent;
use alloc::boxed::Box;
use core::time::Duration;

/// A step forward: the next order, what to add to the usage with it, and the effect to perform after the commit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Advance {
    pub next: Order,
    pub counters: Counters,
    pub effect: Option<Effect>,
}

#[must_use = "commit the next order first, then perform the effect"]
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Decision {
    Advance(Box<Advance>),
    /// Perform this effect without a commit. It may be repeated any number of times.
    Act(Effect),
    Ignore(WhyIgnored),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum WhyIgnored {
    NotDueYet,
    /// The event has no meaning in the phase of the order.
    WrongPhase,
    /// The order has no attempt of this number on record.
    UnknownAttempt,
    /// This attempt has given its answer already.
    AlreadyAnswered,
    /// The record has something newer about this attempt than the event.
    OldNews,
    /// The callback brings no final result.
    NotFinal,
    TakenByAnother,
    AlreadyYours,
    TooOld,
    TooMany,
    /// The callback names another task than the one that its address was made for.
    OtherTask,
}

impl WhyIgnored {
    pub const ALL: [Self; 11] = [
        Self::NotDueYet,
        Self::WrongPhase,
        Self::UnknownAttempt,
        Self::AlreadyAnswered,
        Self::OldNews,
        Self::NotFinal,
        Self::TakenByAnother,
        Self::AlreadyYours,
        Self::TooOld,
        Self::TooMany,
        Self::OtherTask,
    ];
}

/// Decides what an event does to an order.
pub fn transition(order: &Order, event: Event, now: Timestamp, policy: &Policy) -> Decision {
    let mut step = NextOrder::new(order, now);
    if let Some(attempt) = event.attempt() {
        step.book_on(attempt);
    }
    match event.without_secrets_of(&order.terms.params) {
        Event::Woken { stamp, route } => step.woken(stamp, route, policy),
        Event::Submitted { attempt, outcome } => step.submitted(attempt, outcome, policy),
        Event::Polled { attempt, asked, outcome } => step.polled(attempt, asked, outcome, policy),
        Event::CalledBack { attempt, task, word, receipt } => {
            step.called_back(attempt, task, word, receipt, policy)
        }
        Event::Stocked { attempt } => step.stocked(attempt),
        Event::Claimed { by, min_life } => step.claimed(by, min_life, policy),
        Event::ServedFromStock { by, from, answer, attempt } => {
            step.served_from_stock(by, (from, answer, *attempt), policy)
        }
        Event::Returned { by } => step.returned(by),
        Event::HandedOver { by, to } => step.handed_over(by, to),
        Event::Cancelled => step.cancelled(),
        Event::Replayed => step.replayed(policy),
        Event::ReplayedAfterOutage { provider, died_since } => {
            step.replayed_after_outage(provider, died_since, policy)
        }
        Event::Dropped => step.dropped(),
        Event::Noted { text } => step.noted(text),
        Event::Released => step.released(),
        Event::Reported { is_good } => step.reported(is_good),
        Event::ReportPassed { attempt, outcome } => step.report_passed(attempt, outcome),
        Event::WebhookAdded { url, dialect } => step.webhook_added(url, dialect),
        Event::WebhookTried { webhook, outcome } => step.webhook_tried(webhook, outcome, policy),
        Event::PutBack { others_by } => step.put_back(others_by),
        Event::Lost => step.lost(policy),
        Event::Recalled { born, attempts } => step.recalled(born, attempts, policy),
    }
}

/// The next version of an order, while a decision builds it.
struct NextOrder {
    next: Order,
    counters: Counters,
    now: Timestamp,
}

impl NextOrder {
    fn new(order: &Order, now: Timestamp) -> Self {
        Self { next: Order { booked_on: None, ..order.clone() }, counters: Counters::default(), now }
    }

    /// Counts this step on the account of this attempt.
    fn book_on(&mut self, attempt: u32) {
        let has_own = self.next.attempt(attempt).is_some_and(|attempt| attempt.account.is_some());
        self.next.booked_on = has_own.then_some(attempt);
    }

    fn tell(&mut self, event: TimelineEvent) {
        self.next.timeline.tell(self.now, event);
    }

    fn done(self) -> Decision {
        self.advance(None)
    }

    fn then(self, effect: Effect) -> Decision {
        self.advance(Some(effect))
    }

    fn advance(mut self, effect: Option<Effect>) -> Decision {
        self.count_what_is_left();
        Decision::Advance(Box::new(Advance { next: self.next, counters: self.counters, effect }))
    }

    // ---- timers --------------------------------------------------------------------------------------------

    fn woken(mut self, stamp: u64, route: SubmitRoute, policy: &Policy) -> Decision {
        let now = self.now;
        if self.next.phase_due().is_some_and(|due| due <= now) {
            let late = now >= self.next.deadline;
            return match self.next.phase.clone() {
                Phase::Queued { .. } if late => {
                    let cause = DeadCause::NotTaken(self.last_fault());
                    self.move_to_dead_letters(cause, policy)
                }
                // A later deadline is no reason to try again what only an operator can fix.
                Phase::Queued { held: true, .. } => {
                    self.next.phase = Phase::Queued { until: self.next.deadline, held: true };
                    self.done()
                }
                Phase::Queued { .. } => self.submit_if_open(stamp, route, policy),
                // No outcome was written in time: the node that made the call is gone, or the call hangs.
                Phase::Submitting { attempt, .. } => self.doubt(attempt, policy),
                // A timer that fires late shows that we were away. The callback may be in a spill that has
                // not been replayed yet.
                Phase::InDoubt { attempt, until }
                    if now > until + policy.timer_late
                        && !late
                        && self.may_wait_longer(attempt, until, policy) =>
                {
                    let until = now + policy.submit_wait;
                    self.next.phase = Phase::InDoubt { attempt, until };
                    self.tell(TimelineEvent::InDoubt { attempt, until });
                    self.done()
                }
                Phase::InDoubt { .. } if late => self.move_to_dead_letters(DeadCause::Deadline, policy),
                Phase::InDoubt { attempt, .. } => self.doubt_waited_out(attempt, stamp, route, policy),
                Phase::Solving { .. } if late => self.move_to_dead_letters(DeadCause::Deadline, policy),
                Phase::Solving { attempt, .. } => self.ask(attempt),
                Phase::Solved { answer, .. } => {
                    self.waste(&answer);
                    self.next.phase = Phase::Expired { at: now };
                    self.next.uncollected = false;
                    self.tell(TimelineEvent::Expired);
                    self.done()
                }
                // The caller that took it from the stock did not come for it. The phase keeps its claimant.
                Phase::Claimed { answer, .. } => {
                    self.waste(&answer);
                    self.next.uncollected = false;
                    self.tell(TimelineEvent::Expired);
                    self.done()
                }
                _ => Decision::Ignore(WhyIgnored::WrongPhase),
            };
        }
        let due = self.next.attempts.iter().find_map(|attempt| match &attempt.progress {
            Progress::Trailing { poll_at, counted, .. } if *poll_at <= now => {
                Some((attempt.number, attempt.sent, Some(*counted)))
            }
            Progress::Surplus { since, .. } if *since <= now => Some((attempt.number, attempt.sent, None)),
            _ => None,
        });
        match due {
            Some((attempt, sent, Some(counted))) if now >= sent + policy.task_life => {
                self.set_progress(attempt, Progress::GivenUp { counted });
                self.tell(TimelineEvent::GaveUp { attempt });
                self.done()
            }
            Some((attempt, _, Some(_))) => self.ask(attempt),
            Some((attempt, ..)) => Decision::Act(Effect::Stock { attempt }),
            None => self.run_follow_up(),
        }
    }

    fn ask(self, attempt: u32) -> Decision {
        match self.next.attempt(attempt).map(|attempt| &attempt.progress) {
            Some(Progress::Solving { task } | Progress::Trailing { task, .. }) => {
                Decision::Act(Effect::Poll { attempt, task: task.clone() })
            }
            _ => Decision::Ignore(WhyIgnored::UnknownAttempt),
        }
    }

    fn submit_if_open(mut self, stamp: u64, route: SubmitRoute, policy: &Policy) -> Decision {
        // What was paid for is not known: only an operator may decide to pay again.
        if self.next.steps_lost {
            return self.move_to_dead_letters(DeadCause::StoreForgot, policy);
        }
        if let Some(cause) = too_late(&self.next, self.now, policy) {
            return self.move_to_dead_letters(cause, policy);
        }
        match route {
            // A pool counts one price for each refill before it is ordered. If that may be charged already, the pool
            // must decide again.
            SubmitRoute::To(_) if self.next.terms.slot.is_some() && self.may_be_charged() => {
                self.fail(FailCause::Cancelled)
            }
            // Whatever led here, a life makes no more attempts than it may.
            SubmitRoute::To(_) if self.is_life_spent(policy) => {
                let doubt = DeadCause::DoubtsSpent(Evidence::default());
                let cause = self.last_fault().map_or(doubt, DeadCause::Spent);
                self.move_to_dead_letters(cause, policy)
            }
            // What was drawn counts in a period that is over: the order draws again.
            SubmitRoute::To(Offer { drawn: Some(drawn), .. }) if self.now >= drawn.until => {
                self.next.phase = Phase::Queued { until: self.now, held: false };
                self.done()
            }
            SubmitRoute::To(offer) => self.submit(stamp, offer, policy),
            SubmitRoute::NoBudget(shortage) if shortage.ends_the_order() => {
                self.move_to_dead_letters(DeadCause::NoBudget(shortage), policy)
            }
            SubmitRoute::NoBudget(Shortage { until, .. }) => self.defer(until),
            SubmitRoute::ShutUntil(until) => self.defer(until),
        }
    }

    /// Looks again at this moment, or a moment from now, so that a gate that shuts for no time at all cannot spin.
    fn defer(mut self, until: Timestamp) -> Decision {
        let until = until.max(self.now + Duration::from_millis(10));
        self.next.phase = Phase::Queued { until, held: false };
        self.tell(TimelineEvent::Deferred { until });
        self.done()
    }

    /// The only place where money is spent. An earlier attempt that may have been paid for is counted here,
    /// and nowhere else, as a possible double payment.
    fn submit(mut self, stamp: u64, offer: Offer, policy: &Policy) -> Decision {
        let now = self.now;
        let order = &mut self.next;
        let is_hedge = order.is_hedging();
        let mut doubles = 0;
        for earlier in &mut order.attempts {
            match &mut earlier.progress {
                // Its answer is still fetched, for this order or for the stock.
                Progress::Trailing { counted, .. } => {
                    doubles += u32::from(!core::mem::replace(counted, true));
                }
                Progress::GivenUp { counted: true }
                | Progress::Faulted
                | Progress::Answered
                | Progress::Surplus { .. } => {}
                progress @ (Progress::Sent
                | Progress::Solving { .. }
                | Progress::GivenUp { counted: false }) => {
                    *progress = Progress::GivenUp { counted: true };
                    doubles += 1;
                }
            }
        }
        let is_retry = order.attempts.last().is_some_and(|attempt| attempt.sent >= order.placed);
        order.possible_doubles += doubles;
        order.life_attempts = order.life_attempts.saturating_add(1);
        let Offer { account, passed_over, drawn } = offer;
        let is_of_terms =
            |at: &AttemptAccount| at.account == order.terms.account && at.price == order.terms.price;
        let account = account.filter(|at| !is_of_terms(at));
        let to = account.as_ref().map_or(&order.terms.account, |at| &at.account).clone();
        order.held_off = None;
        let attempt = order.remember(Attempt {
            number: 0,
            sent: now,
            unsolved_at: now,
            accepted: false,
            progress: Progress::Sent,
            task: None,
            report: None,
            made_for: None,
            cost: None,
            unpriced_since: None,
            former: None,
            callback_address: policy.callback_address,
            account,
            drawn,
        });
        order.phase = Phase::Submitting { attempt, stamp, until: now + policy.submit_wait };
        self.counters.attempts = 1;
        self.counters.retried = u64::from(is_retry && !is_hedge);
        self.counters.hedged = is_hedge.into();
        self.counters.possible_doubles = doubles.into();
        self.book_on(attempt);
        if !passed_over.is_empty() {
            self.tell(TimelineEvent::Routed { attempt, to, passed_over });
        }
        self.tell(TimelineEvent::Submitted { attempt });
        self.then(Effect::Submit { attempt })
    }

    // ---- doubt ---------------------------------------------------------------------------------------------

    /// Puts an attempt in doubt: the provider may have taken the task, so the order waits for a callback. Another
    /// node may hold the callback if it could not write for a while, most likely if the submit has no outcome in
    /// time.
    fn doubt(mut self, attempt: u32, policy: &Policy) -> Decision {
        self.counters.in_doubt = 1;
        let is_overdue = self.next.phase_due().is_some_and(|due| due <= self.now);
        let grace = match (is_overdue, policy.callbacks) {
            (true, _) => policy.submit_wait,
            (false, true) => policy.in_doubt_min,
            (false, false) => Duration::ZERO,
        };
        let sent = self.next.attempt(attempt).map_or(self.now, |attempt| attempt.sent);
        let until = match (policy.callbacks, policy.when_in_doubt) {
            (true, _) => sent + policy.doubt_wait(),
            (false, WhenInDoubt::Resubmit) => self.now + self.pause(Signal::InDoubt, policy),
            (false, WhenInDoubt::DeadLetter) => {
                return self.move_to_dead_letters(DeadCause::Doubt, policy);
            }
        };
        let until = until.max(self.now + grace);
        self.next.phase = Phase::InDoubt { attempt, until };
        self.tell(TimelineEvent::InDoubt { attempt, until });
        self.done()
    }

    /// Whether a wait in doubt may be prolonged because this node or its store was away. There is a limit, so that
    /// the wait ends even on a machine that is always late.
    fn may_wait_longer(&self, attempt: u32, until: Timestamp, policy: &Policy) -> bool {
        let sent = self.next.attempt(attempt).map_or(Timestamp::ZERO, |attempt| attempt.sent);
        until <= sent + policy.doubt_wait() + policy.submit_wait * 2
    }

    fn doubt_waited_out(mut self, attempt: u32, stamp: u64, route: SubmitRoute, policy: &Policy) -> Decision {
        self.tell(TimelineEvent::GaveUp { attempt });
        if !self.next.wanted {
            return self.fail(FailCause::Cancelled);
        }
        if self.resume_paid(policy) {
            return self.done();
        }
        if self.are_retries_spent(attempt, Signal::InDoubt, policy) {
            let cause = DeadCause::DoubtsSpent(self.why_in_doubt(attempt));
            return self.leave_account(attempt, cause, policy);
        }
        let spent = &mut self.next.retries[Signal::InDoubt.index()];
        *spent = spent.saturating_add(1);
        self.submit_if_open(stamp, route, policy)
    }

    /// What the provider's adapter saw of an attempt whose submit ended in doubt.
    fn why_in_doubt(&self, number: u32) -> Evidence {
        let evidence = self.next.timeline.entries.iter().rev().find_map(|entry| match &entry.event {
            TimelineEvent::LeftInDoubt { attempt, evidence } if *attempt == number => Some(evidence.clone()),
            _ => None,
        });
        evidence.unwrap_or_default()
    }

    /// The last fault of an attempt in this life, unless the provider has taken an attempt after it.
    fn last_fault(&self) -> Option<Fault> {
        let events = self.next.timeline.entries.iter().rev().map(|entry| &entry.event);
        let is_before = |event: &&TimelineEvent| {
            matches!(
                event,
                TimelineEvent::Placed { .. }
                    | TimelineEvent::Replayed
                    | TimelineEvent::ReplayedAfterOutage { .. }
                    | TimelineEvent::Accepted { .. }
                    | TimelineEvent::GaveUp { .. }
            )
        };
        events.take_while(|event| !is_before(event)).find_map(|event| match event {
            TimelineEvent::Faulted { fault, .. } => Some(fault.clone()),
            _ => None,
        })
    }

    /// Ends an attempt with a fault. If the order waited for this attempt, the fault table decides what comes
    /// next.
    fn faulted(mut self, number: u32, fault: Fault, policy: &Policy) -> Decision {
        let was_current = self.next.current() == Some(number);
        self.set_progress(number, Progress::Faulted);
        self.charge_for_a_fault(number, fault.class, policy);
        self.tell(TimelineEvent::Faulted { attempt: number, fault: fault.clone() });
        if was_current { self.retry_or_end(number, fault, policy) } else { self.done() }
    }

    fn retry_or_end(mut self, number: u32, fault: Fault, policy: &Policy) -> Decision {
        if !self.next.wanted && !self.next.steps_lost {
            return self.fail(FailCause::Cancelled);
        }
        if self.resume_paid(policy) {
            return self.done();
        }
        if self.next.steps_lost {
            return self.move_to_dead_letters(DeadCause::StoreForgot, policy);
        }
        let rule = policy.faults.rule(fault.class);
        let can_fail_over = self.can_fail_over(policy);
        let pause = match rule.remedy {
            Remedy::Tell => return self.fail(FailCause::Rejected(fault)),
            Remedy::Elsewhere if !can_fail_over => return self.fail(FailCause::Rejected(fault)),
            Remedy::Elsewhere => {
                self.use_up(number);
                return self.done();
            }
            Remedy::Hold if self.are_attempts_spent(number, policy) => {
                return self.leave_account(number, DeadCause::Spent(fault), policy);
            }
            // Its gate is shut, so the order goes to another account.
            Remedy::Hold if can_fail_over => {
                self.next.phase = Phase::Queued { until: self.now, held: false };
                return self.done();
            }
            Remedy::Hold => {
                self.next.phase = Phase::Queued { until: self.next.deadline, held: true };
                self.tell(TimelineEvent::Held);
                return self.done();
            }
            Remedy::AtOnce => Duration::ZERO,
            Remedy::BackOff => self.pause(fault.class.into(), policy),
        };
        if self.are_retries_spent(number, fault.class.into(), policy) {
            return self.leave_account(number, DeadCause::Spent(fault), policy);
        }
        let spent = &mut self.next.retries[Signal::from(fault.class).index()];
        *spent = spent.saturating_add(1);
        let count = *spent;
        let mut until = self.now + pause;
        if can_fail_over && !pause.is_zero() {
            let is_busy = rule.provider == Reaction::Slow;
            until = self.hold_off(number, until, is_busy, policy);
        }
        if until >= self.next.deadline {
            return self.move_to_dead_letters(DeadCause::NotTaken(Some(fault)), policy);
        }
        if let Some(cause) = too_late(&self.next, until, policy) {
            return self.move_to_dead_letters(cause, policy);
        }
        self.next.phase = Phase::Queued { until, held: false };
        self.tell(TimelineEvent::Retried { class: fault.class.into(), number: count, at: until });
        self.done()
    }

    // ---- endings -------------------------------------------------------------------------------------------

    fn fail(mut self, cause: FailCause) -> Decision {
        self.counters.failed = u64::from(cause != FailCause::Cancelled);
        self.next.phase = Phase::Failed { cause, at: self.now };
        self.tell(TimelineEvent::Failed);
        self.done()
    }

    fn move_to_dead_letters(mut self, cause: DeadCause, policy: &Policy) -> Decision {
        self.leave(policy);
        // If the store lost steps of this order, that is the cause that a person must look at first.
        let cause = if self.next.steps_lost { DeadCause::StoreForgot } else { cause };
        // No caller wants it, or only a pool, which asks again. Whether it was paid for is a question for an operator
        // all the same.
        if (!self.next.wanted || self.next.terms.slot.is_some())
            && !matches!(cause, DeadCause::Doubt | DeadCause::StoreForgot)
        {
            return self.fail(FailCause::Cancelled);
        }
        self.counters.dead = u64::from(!matches!(self.next.phase, Phase::Dead { .. }));
        self.next.phase = Phase::Dead { cause: cause.clone(), at: self.now };
        self.tell(TimelineEvent::MovedToDeadLetters { cause });
        self.done()
    }

    /// Leaves the attempt for which the order waited. If the provider has taken it, it is paid for, so it is polled
    /// further in the background (it trails).
    fn leave(&mut self, policy: &Policy) {
        let poll_at = self.now + policy.usual_interval();
        let Some(number) = self.next.current() else { return };
        let is_submitting = self.is_submitting(number);
        let Some(attempt) = self.next.attempt_mut(number) else { return };
        match &attempt.progress {
            Progress::Solving { task } => {
                attempt.progress = Progress::Trailing { task: task.clone(), poll_at, counted: false };
            }
            // No timer of this attempt remains, so it counts as in doubt from here on.
            Progress::Sent if is_submitting => self.counters.in_doubt = 1,
            _ => {}
        }
    }

    fn set_progress(&mut self, number: u32, progress: Progress) {
        if let Some(attempt) = self.next.attempt_mut(number) {
            attempt.progress = progress;
        }
    }
}
