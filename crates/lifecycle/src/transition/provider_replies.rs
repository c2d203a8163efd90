//! What a provider's reply or callback means for the order.

use super::{Decision, NextOrder, WhyIgnored};
use crate::event::{CallbackResult, PollOutcome, Receipt, SubmitOutcome, Via};
use crate::fault::{Evidence, Fault, FaultClass, Signal};
use crate::order::{Attempt, DeadCause, Phase, Progress, TASK_BYTES_MAX};
use crate::policy::Policy;
use crate::time::Timestamp;
use crate::timeline::TimelineEvent;
use alloc::string::String;

/// After so many polls in a row without a reply, a provider counts as gone for an order that another one can take.
const MISSES_MAX: u8 = 3;

impl NextOrder {
    pub(super) fn submitted(mut self, number: u32, outcome: SubmitOutcome, policy: &Policy) -> Decision {
        let Some(attempt) = self.next.attempt(number) else {
            return Decision::Ignore(WhyIgnored::UnknownAttempt);
        };
        let outcome = match outcome {
            // A task with such an id cannot be polled, and the id would fill the record.
            SubmitOutcome::Accepted { task } if task.len() > TASK_BYTES_MAX => {
                SubmitOutcome::InDoubt(Evidence::new("the task id is too long"))
            }
            outcome => outcome,
        };
        match (&attempt.progress, outcome) {
            (Progress::Answered | Progress::Surplus { .. }, _) => {
                Decision::Ignore(WhyIgnored::AlreadyAnswered)
            }
            (_, SubmitOutcome::Answered(delivery)) => {
                self.answered(number, delivery, (Via::Submit, None), policy)
            }
            (Progress::Sent | Progress::GivenUp { .. }, SubmitOutcome::Accepted { task }) => {
                self.accepted(number, task, policy);
                self.done()
            }
            (_, SubmitOutcome::InDoubt(evidence)) if self.is_submitting(number) => {
                if evidence != Evidence::default() {
                    self.tell(TimelineEvent::LeftInDoubt { attempt: number, evidence });
                }
                self.doubt(number, policy)
            }
            (Progress::Sent | Progress::GivenUp { .. }, SubmitOutcome::Rejected(fault)) => {
                // What did not arrive says nothing about the provider's will.
                self.counters.rejected = u64::from(fault.class != FaultClass::Unreachable);
                self.faulted(number, fault, policy)
            }
            _ => Decision::Ignore(WhyIgnored::OldNews),
        }
    }

    pub(super) fn is_submitting(&self, number: u32) -> bool {
        matches!(self.next.phase, Phase::Submitting { attempt, .. } if attempt == number)
    }

    /// The provider has taken the task. If the order has not paid again meanwhile, it waits for this task; otherwise
    /// the attempt trails.
    pub(super) fn accepted(&mut self, number: u32, task: String, policy: &Policy) {
        let first_ask_at = self.first_ask_at(number, policy);
        self.mark_paid(number);
        self.tell(TimelineEvent::Accepted { attempt: number, task: task.clone() });
        let waits_for_it =
            self.next.current() == Some(number) || matches!(self.next.phase, Phase::Queued { .. });
        if waits_for_it {
            self.set_progress(number, Progress::Solving { task });
            self.next.phase = Phase::Solving { attempt: number, poll_at: first_ask_at, misses: 0 };
            let poll_at = self.before_the_hedge(number, first_ask_at, policy);
            self.ask_again(number, poll_at, 0);
        } else {
            let attempt = self.next.attempt(number);
            let counted =
                attempt.is_some_and(|attempt| attempt.progress == (Progress::GivenUp { counted: true }));
            self.set_progress(number, Progress::Trailing { task, poll_at: first_ask_at, counted });
        }
    }

    pub(super) fn first_ask_at(&self, number: u32, policy: &Policy) -> Timestamp {
        self.next.first_ask_at(number, policy).unwrap_or(self.now + policy.first_poll())
    }

    /// Counts the attempt as paid, once, because the provider is known to have taken it.
    pub(super) fn mark_paid(&mut self, number: u32) {
        let was_in_doubt = !self.is_submitting(number);
        let Some(attempt) = self.next.attempt_mut(number) else { return };
        if !attempt.accepted {
            attempt.accepted = true;
            self.counters.paid = 1;
            self.counters.in_doubt_settled = u64::from(was_in_doubt);
        }
    }

    pub(super) fn polled(
        mut self,
        number: u32,
        asked: Timestamp,
        outcome: PollOutcome,
        policy: &Policy,
    ) -> Decision {
        let Some(attempt) = self.next.attempt_mut(number) else {
            return Decision::Ignore(WhyIgnored::UnknownAttempt);
        };
        let is_polled = matches!(attempt.progress, Progress::Solving { .. } | Progress::Trailing { .. });
        match outcome {
            PollOutcome::Answered(_)
                if matches!(attempt.progress, Progress::Answered | Progress::Surplus { .. }) =>
            {
                Decision::Ignore(WhyIgnored::AlreadyAnswered)
            }
            PollOutcome::Answered(delivery) => self.answered(number, delivery, (Via::Poll, None), policy),
            _ if !is_polled => Decision::Ignore(WhyIgnored::OldNews),
            PollOutcome::Pending => {
                // Not `now`: the reply may have been on its way while the task was solved.
                attempt.unsolved_at = attempt.unsolved_at.max(asked);
                let age = asked.since(attempt.sent);
                if self.is_hedge_due(number, policy) {
                    return self.hedge(number, policy);
                }
                let again = asked + policy.ask_again(age, self.next.usable_at(asked));
                // If the reply was slow, the provider has too much to do already.
                let again = again.max(self.now + policy.least_interval());
                // Polled early, for evidence: the answer is still expected by callback.
                let overdue = if policy.callbacks { self.first_ask_at(number, policy) } else { again };
                let poll_at = self.before_the_hedge(number, again.max(overdue), policy);
                self.ask_again(number, poll_at, 0);
                self.done()
            }
            PollOutcome::NoReply => self.missed(number, policy),
            PollOutcome::NoSuchTask(fault) => self.no_such_task(number, fault, policy),
            PollOutcome::Faulted(fault) => match fault.class {
                // The task is paid for, and the provider still has it: only the poll failed.
                FaultClass::Busy | FaultClass::Unreachable => self.missed(number, policy),
                FaultClass::NoFunds | FaultClass::AccountBlocked => self.shut_out(number, policy),
                FaultClass::Unsolvable | FaultClass::Caller | FaultClass::NotSold => {
                    self.faulted(number, fault, policy)
                }
                FaultClass::UnlistedCode => self.puzzled(number, fault, policy),
            },
        }
    }

    /// Whether an urgent order has waited so long for this task that another provider is asked as well.
    fn is_hedge_due(&self, number: u32, policy: &Policy) -> bool {
        let sent = self.next.attempt(number).map_or(self.now, |attempt| attempt.sent);
        let is_slow = policy.hedge_after.is_some_and(|after| self.now >= sent + after);
        let is_first =
            self.next.attempts.iter().all(|attempt| attempt.number == number || !attempt.is_open());
        is_slow && is_first && self.may_leave(number, policy)
    }

    /// Leaves the task where it is, to be polled on, and asks another provider as well. The second payment is meant, so it
    /// is no possible double.
    fn hedge(mut self, number: u32, policy: &Policy) -> Decision {
        self.leave(policy);
        if let Some(Attempt { progress: Progress::Trailing { counted, .. }, .. }) =
            self.next.attempt_mut(number)
        {
            *counted = true;
        }
        self.tell(TimelineEvent::Hedged { attempt: number });
        self.use_up(number);
        self.done()
    }

    /// This moment of the next poll, or the moment at which the order is hedged if the task is open then.
    fn before_the_hedge(&self, number: u32, poll_at: Timestamp, policy: &Policy) -> Timestamp {
        let sent = self.next.attempt(number).map_or(self.now, |attempt| attempt.sent);
        let hedge_at =
            policy.hedge_after.filter(|_| self.may_leave(number, policy)).map(|after| sent + after);
        match hedge_at {
            Some(at) => poll_at.min(at.max(self.now + policy.least_interval())),
            None => poll_at,
        }
    }

    /// Handles a reply that is not understood: a few more polls, then an operator must look. The task stays.
    pub(super) fn puzzled(mut self, number: u32, fault: Fault, policy: &Policy) -> Decision {
        self.tell(TimelineEvent::Faulted { attempt: number, fault: fault.clone() });
        if self.next.current() != Some(number) {
            return self.missed(number, policy);
        }
        let spent = &mut self.next.retries[Signal::from(fault.class).index()];
        if policy.faults.rule(fault.class).is_spent(*spent) {
            return self.move_to_dead_letters(DeadCause::Spent(fault), policy);
        }
        *spent = spent.saturating_add(1);
        self.missed(number, policy)
    }

    pub(super) fn missed(mut self, number: u32, policy: &Policy) -> Decision {
        let misses = if let Phase::Solving { misses, .. } = self.next.phase { misses } else { 0 };
        if self.is_lost_there(number, misses.saturating_add(1), policy) {
            self.leave_task(number, policy);
            return self.done();
        }
        let grain = self.next.key.grain() ^ u64::from(number);
        let pause = policy.backoff.pause(misses.into(), grain).max(policy.usual_interval());
        let poll_at = self.now + policy.before_it_is_gone(pause, self.next.usable_at(self.now));
        self.ask_again(number, poll_at, misses.saturating_add(1));
        self.done()
    }

    /// The account is blocked, so the provider does not say what has become of the task. If another provider can take
    /// the order, the task is asked for once more when its answer should long have come, and then left. A callback may
    /// bring the answer before.
    fn shut_out(mut self, number: u32, policy: &Policy) -> Decision {
        self.tell(TimelineEvent::Held);
        let overdue_at = self.overdue_at(number, policy);
        if !self.may_leave(number, policy) {
            let poll_at = self.next.deadline.max(self.now + policy.backoff.cap);
            self.ask_again(number, poll_at, 0);
        } else if self.now < overdue_at {
            self.ask_again(number, overdue_at, 0);
        } else {
            self.leave_task(number, policy);
        }
        self.done()
    }

    /// The provider does not know the task any more. Another provider gets the order at once. The task may have been paid
    /// for, and its callback may still come.
    fn no_such_task(mut self, number: u32, fault: Fault, policy: &Policy) -> Decision {
        if !self.may_leave(number, policy) {
            return self.faulted(number, fault, policy);
        }
        self.tell(TimelineEvent::Faulted { attempt: number, fault });
        self.set_progress(number, Progress::GivenUp { counted: false });
        self.tell(TimelineEvent::GaveUp { attempt: number });
        self.use_up(number);
        self.done()
    }

    /// Goes to another provider. The task stays on record, and is still polled.
    fn leave_task(&mut self, number: u32, policy: &Policy) {
        self.leave(policy);
        self.tell(TimelineEvent::GaveUp { attempt: number });
        self.use_up(number);
    }

    /// Whether the provider that has this task is gone, so that another one should get the order: several polls in a
    /// row had no reply, and the answer should have come long ago.
    fn is_lost_there(&self, number: u32, misses: u8, policy: &Policy) -> bool {
        let is_overdue = misses >= MISSES_MAX && self.now >= self.overdue_at(number, policy);
        is_overdue && self.may_leave(number, policy)
    }

    /// When the answer to this attempt should long have come.
    fn overdue_at(&self, number: u32, policy: &Policy) -> Timestamp {
        let sent = self.next.attempt(number).map_or(self.now, |attempt| attempt.sent);
        sent + policy.doubt_wait()
    }

    /// Whether another provider could get the order that waits for this task. The task is paid for, so this may pay
    /// twice, as after a doubt that was waited out.
    fn may_leave(&self, number: u32, policy: &Policy) -> bool {
        let is_awaited = self.next.current() == Some(number) && self.next.is_awaited();
        let may_pay_again = self.next.terms.slot.is_none() && !self.next.steps_lost;
        self.can_fail_over(policy) && is_awaited && may_pay_again
    }

    pub(super) fn ask_again(&mut self, number: u32, at: Timestamp, missed: u8) {
        match &mut self.next.phase {
            Phase::Solving { attempt, poll_at, misses } if *attempt == number => {
                (*poll_at, *misses) = (at, missed);
            }
            _ => {
                if let Some(Attempt { progress: Progress::Trailing { poll_at, .. }, .. }) =
                    self.next.attempt_mut(number)
                {
                    *poll_at = at;
                }
            }
        }
    }

    pub(super) fn called_back(
        mut self,
        number: u32,
        task: Option<String>,
        word: CallbackResult,
        receipt: Option<Receipt>,
        policy: &Policy,
    ) -> Decision {
        let Some(attempt) = self.next.attempt(number) else {
            return Decision::Ignore(WhyIgnored::UnknownAttempt);
        };
        if matches!(attempt.progress, Progress::Answered | Progress::Surplus { .. }) {
            return self.date_again(number, &word, receipt.as_ref(), policy);
        }
        // The caller knows the address, but not the protocol. A poll can still find out what is true.
        if let (Progress::Solving { task: known } | Progress::Trailing { task: known, .. }, Some(named)) =
            (&attempt.progress, &task)
            && known != named
        {
            return Decision::Ignore(WhyIgnored::OtherTask);
        }
        let nameless = matches!(attempt.progress, Progress::Sent | Progress::GivenUp { .. });
        let faulted = attempt.progress == Progress::Faulted;
        match (word, task) {
            // Whatever came before, the answer is paid for.
            (CallbackResult::Answered(delivery), task) => {
                self.learn_task(number, task);
                self.answered(number, delivery, (Via::Callback, receipt), policy)
            }
            (CallbackResult::Faulted(_), _) if faulted => Decision::Ignore(WhyIgnored::OldNews),
            (CallbackResult::Faulted(fault), task)
                if matches!(
                    fault.class,
                    FaultClass::Unsolvable | FaultClass::Caller | FaultClass::NotSold
                ) =>
            {
                self.mark_paid(number);
                // Only with the task id can the provider's ledger be compared with our usage.
                if nameless {
                    self.learn_task(number, task);
                }
                self.faulted(number, fault, policy)
            }
            // The callback brings no final result, but it shows that the task exists, and its id.
            (CallbackResult::Faulted(_), Some(task)) if nameless && task.len() <= TASK_BYTES_MAX => {
                self.accepted(number, task, policy);
                self.done()
            }
            (CallbackResult::Faulted(_), _) => Decision::Ignore(WhyIgnored::NotFinal),
        }
    }
}
