//! The decisions about money: what placing an order means, and what every event does to it.
//!
//! An attempt is paid for in one function only, [`Step::submit`]; everything else in this file decides whether
//! that function is reached. Both doors, [`place`] and [`transition`], are pure: the caller commits the next
//! order first and performs the effect after.

use crate::answer::{Answer, Delivery};
use crate::event::{Effect, Event, Gate, PollOutcome, SubmitOutcome, Via, Word};
use crate::fault::{Fault, FaultClass, Remedy};
use crate::key::Key;
use crate::order::{ATTEMPTS_KEPT_MAX, Attempt, DeadCause, FailCause, Order, Phase, Progress};
use crate::policy::{Policy, WithoutWord};
use crate::story::{Beat, Story};
use crate::tally::Tally;
use crate::terms::Terms;
use crate::time::Timestamp;
use alloc::boxed::Box;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::time::Duration;

/// How late an alarm may ring on a machine that is merely busy.
const ALARM_LATE: Duration = Duration::from_secs(5);

/// How long a doubt lasts at least if it can be settled: time enough for another node to write down what it kept
/// while the store was away.
const DOUBT_LEAST: Duration = Duration::from_secs(10);

/// A step forward: what to write, what to add to the books with it, and what to do after.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Advance {
    pub next: Order,
    pub tally: Tally,
    pub effect: Option<Effect>,
}

#[must_use = "commit the next order first, then perform the effect"]
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Decision {
    Advance(Box<Advance>),
    /// There is nothing to write first: an effect that may be repeated at will.
    Act(Effect),
    Ignore(WhyIgnored),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum WhyIgnored {
    NotDueYet,
    /// The order is not in a phase in which this means anything.
    WrongPhase,
    /// No attempt of this number is remembered.
    UnknownAttempt,
    /// This attempt has given its answer already.
    AlreadyAnswered,
    /// Something newer is known of this attempt.
    OldNews,
    /// A callback that says nothing final.
    NotFinal,
    TakenByAnother,
    AlreadyYours,
    TooOld,
}

impl WhyIgnored {
    pub const ALL: [Self; 9] = [
        Self::NotDueYet,
        Self::WrongPhase,
        Self::UnknownAttempt,
        Self::AlreadyAnswered,
        Self::OldNews,
        Self::NotFinal,
        Self::TakenByAnother,
        Self::AlreadyYours,
        Self::TooOld,
    ];
}

/// Where a placement's answer comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// A new life: it will be bought.
    Api,
    Joined,
    Cached,
    /// The caller's own key had an answer already.
    Replayed,
    Stock,
}

#[must_use = "commit the advance before the caller is told"]
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Placement {
    Commit {
        origin: Origin,
        advance: Box<Advance>,
    },
    /// The order stands as it is; only the books change.
    Stands {
        origin: Origin,
        tally: Tally,
    },
    Refused(Refusal),
}

/// Why a placement starts no new life.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The caller's key belongs to an order with other parameters.
    OtherParameters,
    /// The same thing was refused a moment ago, and asking again is held back.
    HeldBack { fault: Fault, until: Timestamp },
    /// The answer under the caller's key has expired; another one needs another key.
    Expired,
    /// A dead letter in doubt: only a person may decide to pay again.
    NeedsAPerson,
}

/// What placing an order means, given what is on record under its key.
pub fn place(
    found: Option<&Order>,
    key: Key,
    terms: &Arc<Terms>,
    now: Timestamp,
    policy: &Policy,
) -> Placement {
    let Some(order) = found else {
        let order = unborn(key, Arc::clone(terms), now);
        return Step::new(&order, now).begin_life(terms, policy);
    };
    if order.terms.keyed && order.terms.fingerprint != terms.fingerprint {
        return Placement::Refused(Refusal::OtherParameters);
    }
    let good = |answer: &Answer| answer.is_good_for(terms.min_life, now);
    let asked = Tally { asked: 1, ..Tally::default() };
    let stands = |origin| Placement::Stands {
        origin,
        tally: if origin == Origin::Joined {
            Tally { joined: 1, ..asked }
        } else {
            Tally { cached: 1, ..asked }
        },
    };
    match &order.phase {
        phase if phase.is_open() => {
            // A herd joins without a write; only who would otherwise be told "too late" soon moves the deadline.
            if order.wanted && order.deadline.since(now) >= terms.patience / 2 {
                return stands(Origin::Joined);
            }
            Step::new(order, now).rejoin(terms)
        }
        Phase::Solved { answer, .. } if good(answer) && order.shelf().is_some() => {
            Step::new(order, now).take_off_the_shelf()
        }
        Phase::Solved { answer, at } if good(answer) && is_a_repeat(order, *at, now, policy) => {
            stands(if order.terms.keyed { Origin::Replayed } else { Origin::Cached })
        }
        Phase::Taken { answer, by, .. } if good(answer) && *by == order.key => stands(Origin::Replayed),
        Phase::Solved { .. } | Phase::Taken { .. } | Phase::Spoiled { .. } if order.terms.keyed => {
            Placement::Refused(Refusal::Expired)
        }
        Phase::Failed { cause: FailCause::Refused(fault), at } if now < *at + policy.refusal_hold => {
            Placement::Refused(Refusal::HeldBack { fault: fault.clone(), until: *at + policy.refusal_hold })
        }
        Phase::Dead { cause: DeadCause::Doubt, .. } => Placement::Refused(Refusal::NeedsAPerson),
        _ => Step::new(order, now).begin_life(terms, policy),
    }
}

/// Whoever comes with his own key repeats himself for as long as there is a record. Without one, a single-use
/// answer is for repeats within the window, and one that can be used again is for everybody.
fn is_a_repeat(order: &Order, solved: Timestamp, now: Timestamp, policy: &Policy) -> bool {
    order.terms.keyed || !order.terms.single_use || now <= solved + policy.share_window
}

fn unborn(key: Key, terms: Arc<Terms>, now: Timestamp) -> Order {
    Order {
        key,
        terms,
        born: now,
        life: 0,
        placed: now,
        deadline: now,
        wanted: true,
        phase: Phase::Queued { until: now, held: false },
        attempts: Vec::new(),
        last_attempt: 0,
        retries: [0; FaultClass::ALL.len()],
        possible_doubles: 0,
        story: Story::default(),
    }
}

/// The spare answer of an attempt as an order of its own, solved and for anybody to take.
#[must_use]
pub fn spare_as_order(order: &Order, attempt: u32, now: Timestamp) -> Option<Order> {
    let Progress::Spare { answer, since } = &order.attempt(attempt)?.progress else { return None };
    let mut spare = unborn(order.key.spare(order.born, attempt), Arc::clone(&order.terms), order.born);
    spare.life = 1;
    spare.wanted = false;
    spare.phase = Phase::Solved { answer: answer.clone(), at: *since };
    spare.story.tell(now, Beat::Stocked { attempt });
    Some(spare)
}

/// What an event does to an order.
pub fn transition(order: &Order, event: Event, now: Timestamp, policy: &Policy) -> Decision {
    let step = Step::new(order, now);
    match event {
        Event::Woken { stamp, gate } => step.woken(stamp, gate, policy),
        Event::Submitted { attempt, outcome } => step.submitted(attempt, outcome, policy),
        Event::Polled { attempt, asked, outcome } => step.polled(attempt, asked, outcome, policy),
        Event::CalledBack { attempt, task, word } => step.called_back(attempt, task, word, policy),
        Event::Stocked { attempt } => step.stocked(attempt),
        Event::Claimed { by, min_life } => step.claimed(by, min_life),
        Event::Cancelled => step.cancelled(),
        Event::Replayed => step.replayed(policy),
        Event::Released => step.released(),
    }
}

/// The next order in the making.
struct Step {
    next: Order,
    tally: Tally,
    now: Timestamp,
}

impl Step {
    fn new(order: &Order, now: Timestamp) -> Self {
        Self { next: order.clone(), tally: Tally::default(), now }
    }

    fn tell(&mut self, beat: Beat) {
        self.next.story.tell(self.now, beat);
    }

    fn done(self) -> Decision {
        self.advance(None)
    }

    fn then(self, effect: Effect) -> Decision {
        self.advance(Some(effect))
    }

    fn advance(self, effect: Option<Effect>) -> Decision {
        Decision::Advance(Box::new(Advance { next: self.next, tally: self.tally, effect }))
    }

    fn placement(self, origin: Origin) -> Placement {
        let advance = Advance { next: self.next, tally: self.tally, effect: None };
        Placement::Commit { origin, advance: Box::new(advance) }
    }

    // ---- placing -------------------------------------------------------------------------------------------

    fn begin_life(mut self, terms: &Arc<Terms>, policy: &Policy) -> Placement {
        self.next.terms = Arc::clone(terms);
        self.tally.asked = 1;
        self.restart(policy);
        let life = self.next.life;
        self.tell(Beat::Placed { life });
        // Resuming what an earlier life has paid for is joining it, as far as the money goes.
        let origin =
            if matches!(self.next.phase, Phase::Queued { .. }) { Origin::Api } else { Origin::Joined };
        self.tally.joined = u64::from(origin == Origin::Joined);
        self.placement(origin)
    }

    fn rejoin(mut self, terms: &Arc<Terms>) -> Placement {
        self.tally.asked = 1;
        self.tally.joined = 1;
        self.next.wanted = true;
        self.next.deadline = self.next.deadline.max(self.now + terms.patience);
        self.tell(Beat::Rejoined);
        self.placement(Origin::Joined)
    }

    fn take_off_the_shelf(mut self) -> Placement {
        self.tally.asked = 1;
        self.tally.cached = 1;
        self.next.wanted = true;
        self.tell(Beat::Rejoined);
        self.placement(Origin::Cached)
    }

    /// A new life goes on with whatever an earlier one may have paid for, and pays only if there is nothing.
    fn restart(&mut self, policy: &Policy) {
        let now = self.now;
        let order = &mut self.next;
        let mut buried = Timestamp::ZERO;
        if let Phase::Dead { at, .. } = order.phase {
            buried = at;
            self.tally.revived = 1;
        }
        order.life += 1;
        order.placed = now;
        order.deadline = now + order.terms.patience;
        order.wanted = true;
        order.retries = [0; FaultClass::ALL.len()];
        order.phase = Phase::Queued { until: now, held: false };
        if self.resume_paid(policy) {
            return;
        }
        let doubt_wait = if policy.callbacks { policy.doubt_wait() } else { Duration::ZERO };
        let doubtful = self.next.attempts.iter().rev().find(|attempt| attempt.progress == Progress::Sent);
        if let Some(Attempt { number, sent, .. }) = doubtful {
            let until = (*sent + doubt_wait).max(buried + policy.submit_wait);
            if now < until {
                self.next.phase = Phase::Unsure { attempt: *number, until };
            }
        }
    }

    /// Waits for an attempt that is paid for and was left behind, if there is one, rather than pay again.
    fn resume_paid(&mut self, policy: &Policy) -> bool {
        let now = self.now;
        let phase = self.next.attempts.iter_mut().rev().find_map(|attempt| match &attempt.progress {
            Progress::Trailing { task, .. } if now < attempt.sent + policy.task_life => {
                attempt.progress = Progress::Solving { task: task.clone() };
                Some(Phase::Solving { attempt: attempt.number, poll_at: now, misses: 0 })
            }
            _ => None,
        });
        let is_resumed = phase.is_some();
        if let Some(phase) = phase {
            self.next.phase = phase;
        }
        is_resumed
    }

    // ---- alarms --------------------------------------------------------------------------------------------

    fn woken(mut self, stamp: u64, gate: Gate, policy: &Policy) -> Decision {
        let now = self.now;
        if self.next.phase_due().is_some_and(|due| due <= now) {
            let late = now >= self.next.deadline;
            return match self.next.phase.clone() {
                Phase::Queued { .. } if late => self.bury(DeadCause::Deadline, policy),
                // A later deadline is no reason to try again what only a person can mend.
                Phase::Queued { held: true, .. } => {
                    self.next.phase = Phase::Queued { until: self.next.deadline, held: true };
                    self.done()
                }
                Phase::Queued { .. } => self.submit_if_open(stamp, gate, policy),
                // Nobody reported back in time: whoever made the call is gone, or the call hangs.
                Phase::Submitting { attempt, .. } => self.doubt(attempt, policy),
                // An alarm that rings late says that we were away, and the word may be on its way from where it
                // was kept meanwhile.
                Phase::Unsure { attempt, until } if now > until + ALARM_LATE && !late => {
                    let until = now + policy.submit_wait;
                    self.next.phase = Phase::Unsure { attempt, until };
                    self.tell(Beat::Doubted { attempt, until });
                    self.done()
                }
                Phase::Unsure { .. } if late => self.bury(DeadCause::Deadline, policy),
                Phase::Unsure { attempt, .. } => self.doubt_waited_out(attempt, stamp, gate, policy),
                Phase::Solving { .. } if late => self.bury(DeadCause::Deadline, policy),
                Phase::Solving { attempt, .. } => self.ask(attempt),
                Phase::Solved { answer, .. } => {
                    self.waste(&answer);
                    self.next.phase = Phase::Spoiled { at: now };
                    self.tell(Beat::Spoiled);
                    self.done()
                }
                _ => Decision::Ignore(WhyIgnored::WrongPhase),
            };
        }
        let due = self.next.attempts.iter().find_map(|attempt| match &attempt.progress {
            Progress::Trailing { poll_at, .. } if *poll_at <= now => {
                Some((attempt.number, attempt.sent, true))
            }
            Progress::Spare { since, .. } if *since <= now => Some((attempt.number, attempt.sent, false)),
            _ => None,
        });
        match due {
            Some((attempt, sent, true)) if now >= sent + policy.task_life => {
                self.set_progress(attempt, Progress::GivenUp { counted: false });
                self.tell(Beat::GaveUp { attempt });
                self.done()
            }
            Some((attempt, _, true)) => self.ask(attempt),
            Some((attempt, ..)) => Decision::Act(Effect::Stock { attempt }),
            None => Decision::Ignore(WhyIgnored::NotDueYet),
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

    fn submit_if_open(mut self, stamp: u64, gate: Gate, policy: &Policy) -> Decision {
        match gate {
            Gate::Open => self.submit(stamp, policy),
            Gate::ShutUntil(until) => {
                // At least a moment ahead, so that a gate that shuts for no time at all cannot spin.
                let until = until.max(self.now + Duration::from_millis(10));
                self.next.phase = Phase::Queued { until, held: false };
                self.tell(Beat::Deferred { until });
                self.done()
            }
        }
    }

    /// The one place where money is spent. What an earlier attempt may have cost is counted here, and nowhere else.
    fn submit(mut self, stamp: u64, policy: &Policy) -> Decision {
        let now = self.now;
        let order = &mut self.next;
        let mut doubles = 0;
        for earlier in &mut order.attempts {
            if earlier.is_open() || earlier.progress == (Progress::GivenUp { counted: false }) {
                earlier.progress = Progress::GivenUp { counted: true };
                doubles += 1;
            }
        }
        let is_retry = order.attempts.last().is_some_and(|attempt| attempt.sent >= order.placed);
        order.possible_doubles += doubles;
        order.last_attempt += 1;
        let attempt = order.last_attempt;
        if order.attempts.len() >= ATTEMPTS_KEPT_MAX {
            let over = |attempt: &Attempt| matches!(attempt.progress, Progress::Faulted | Progress::Answered);
            let oldest = order.attempts.iter().position(over).unwrap_or(0);
            order.attempts.remove(oldest);
        }
        order.attempts.push(Attempt {
            number: attempt,
            sent: now,
            unsolved_at: now,
            accepted: false,
            progress: Progress::Sent,
        });
        order.phase = Phase::Submitting { attempt, stamp, until: now + policy.submit_wait };
        self.tally.attempts = 1;
        self.tally.retried = u64::from(is_retry);
        self.tally.possible_doubles = doubles.into();
        self.tell(Beat::Submitted { attempt });
        self.then(Effect::Submit { attempt })
    }

    // ---- doubt ---------------------------------------------------------------------------------------------

    /// Unknown is not no: wait for the word that may still come. It may also be here already: with a node of ours
    /// that could not write it down for a while, and more likely so if nobody has reported in time.
    fn doubt(mut self, attempt: u32, policy: &Policy) -> Decision {
        self.tally.doubts = 1;
        let is_overdue = self.next.phase_due().is_some_and(|due| due <= self.now);
        let grace = match (is_overdue, policy.callbacks) {
            (true, _) => policy.submit_wait,
            (false, true) => DOUBT_LEAST,
            (false, false) => Duration::ZERO,
        };
        let sent = self.next.attempt(attempt).map_or(self.now, |attempt| attempt.sent);
        let until = match (policy.callbacks, policy.without_word) {
            (true, _) => sent + policy.doubt_wait(),
            (false, WithoutWord::Resubmit) => self.now + self.pause(FaultClass::Unknown, policy),
            (false, WithoutWord::Bury) => return self.bury(DeadCause::Doubt, policy),
        };
        let until = until.max(self.now + grace);
        self.next.phase = Phase::Unsure { attempt, until };
        self.tell(Beat::Doubted { attempt, until });
        self.done()
    }

    fn doubt_waited_out(mut self, attempt: u32, stamp: u64, gate: Gate, policy: &Policy) -> Decision {
        self.tell(Beat::GaveUp { attempt });
        if !self.next.wanted {
            return self.fail(FailCause::Cancelled);
        }
        if self.resume_paid(policy) {
            return self.done();
        }
        let spent = &mut self.next.retries[FaultClass::Unknown as usize];
        if *spent >= policy.faults.rule(FaultClass::Unknown).limit {
            return self.bury(DeadCause::Spent(Fault::new(FaultClass::Unknown, "NO_WORD")), policy);
        }
        *spent += 1;
        self.submit_if_open(stamp, gate, policy)
    }

    // ---- words from the provider ---------------------------------------------------------------------------

    fn submitted(mut self, number: u32, outcome: SubmitOutcome, policy: &Policy) -> Decision {
        let Some(attempt) = self.next.attempt(number) else {
            return Decision::Ignore(WhyIgnored::UnknownAttempt);
        };
        match (&attempt.progress, outcome) {
            (Progress::Answered | Progress::Spare { .. }, _) => Decision::Ignore(WhyIgnored::AlreadyAnswered),
            (
                Progress::Sent | Progress::GivenUp { .. } | Progress::Faulted,
                SubmitOutcome::Answered(delivery),
            ) => self.answered(number, delivery, Via::Submit, policy),
            (Progress::Sent | Progress::GivenUp { .. }, SubmitOutcome::Accepted { task }) => {
                self.accepted(number, task, policy);
                self.done()
            }
            (
                _,
                SubmitOutcome::Unknown | SubmitOutcome::Refused(Fault { class: FaultClass::Unknown, .. }),
            ) if self.is_submitting(number) => self.doubt(number, policy),
            (_, SubmitOutcome::Refused(Fault { class: FaultClass::Unknown, .. })) => {
                Decision::Ignore(WhyIgnored::OldNews)
            }
            (Progress::Sent | Progress::GivenUp { .. }, SubmitOutcome::Refused(fault)) => {
                self.faulted(number, fault, policy)
            }
            _ => Decision::Ignore(WhyIgnored::OldNews),
        }
    }

    fn is_submitting(&self, number: u32) -> bool {
        matches!(self.next.phase, Phase::Submitting { attempt, .. } if attempt == number)
    }

    /// The provider has it. An order that has not paid again meanwhile waits for it; any other lets it trail.
    fn accepted(&mut self, number: u32, task: String, policy: &Policy) {
        let poll_at = self.first_ask_at(number, policy);
        self.mark_paid(number);
        self.tell(Beat::Accepted { attempt: number, task: task.clone() });
        let waits_for_it =
            self.next.current() == Some(number) || matches!(self.next.phase, Phase::Queued { .. });
        if waits_for_it {
            self.set_progress(number, Progress::Solving { task });
            self.next.phase = Phase::Solving { attempt: number, poll_at, misses: 0 };
        } else {
            self.set_progress(number, Progress::Trailing { task, poll_at });
        }
    }

    fn first_ask_at(&self, number: u32, policy: &Policy) -> Timestamp {
        let sent = self.next.attempt(number).map_or(self.now, |attempt| attempt.sent);
        sent + policy.first_ask(self.next.terms.usable())
    }

    /// We know now that this attempt was taken: it counts as paid, once.
    fn mark_paid(&mut self, number: u32) {
        let was_in_doubt = !self.is_submitting(number);
        let Some(attempt) = self.next.attempt_mut(number) else { return };
        if !attempt.accepted {
            attempt.accepted = true;
            self.tally.paid = 1;
            self.tally.recovered_from_doubt = u64::from(was_in_doubt);
        }
    }

    fn polled(mut self, number: u32, asked: Timestamp, outcome: PollOutcome, policy: &Policy) -> Decision {
        let Some(attempt) = self.next.attempt_mut(number) else {
            return Decision::Ignore(WhyIgnored::UnknownAttempt);
        };
        let is_asked_for = matches!(attempt.progress, Progress::Solving { .. } | Progress::Trailing { .. });
        match outcome {
            PollOutcome::Answered(_)
                if matches!(attempt.progress, Progress::Answered | Progress::Spare { .. }) =>
            {
                Decision::Ignore(WhyIgnored::AlreadyAnswered)
            }
            PollOutcome::Answered(delivery) => self.answered(number, delivery, Via::Poll, policy),
            _ if !is_asked_for => Decision::Ignore(WhyIgnored::OldNews),
            PollOutcome::Pending => {
                // Not `now`: the reply may have been on its way while the task was solved.
                attempt.unsolved_at = attempt.unsolved_at.max(asked);
                let poll_at = self.now + policy.poll_interval;
                self.ask_again(number, poll_at, 0);
                self.done()
            }
            PollOutcome::NoWord => self.missed(number, policy),
            PollOutcome::Faulted(fault) => match fault.class {
                // The task is paid for and still there: only the question failed.
                FaultClass::Busy | FaultClass::Unreachable | FaultClass::Unknown => {
                    self.missed(number, policy)
                }
                FaultClass::Broke | FaultClass::Account => {
                    self.tell(Beat::Held);
                    let deadline = self.next.deadline;
                    let poll_at = deadline.max(self.now + policy.backoff.cap);
                    self.ask_again(number, poll_at, 0);
                    self.done()
                }
                FaultClass::Unsolvable | FaultClass::Caller => self.faulted(number, fault, policy),
                FaultClass::UnknownCode => self.puzzled(number, fault, policy),
            },
        }
    }

    /// Nobody knows what the provider means: ask a few more times, then leave it to a person. The task stays.
    fn puzzled(mut self, number: u32, fault: Fault, policy: &Policy) -> Decision {
        self.tell(Beat::Faulted { attempt: number, fault: fault.clone() });
        if self.next.current() != Some(number) {
            return self.missed(number, policy);
        }
        let spent = &mut self.next.retries[fault.class as usize];
        if *spent >= policy.faults.rule(fault.class).limit {
            return self.bury(DeadCause::Spent(fault), policy);
        }
        *spent += 1;
        self.missed(number, policy)
    }

    fn missed(mut self, number: u32, policy: &Policy) -> Decision {
        let misses = if let Phase::Solving { misses, .. } = self.next.phase { misses } else { 0 };
        let grain = self.next.key.grain() ^ u64::from(number);
        let pause = policy.backoff.pause(misses.into(), grain).max(policy.poll_interval);
        let poll_at = self.now + pause;
        self.ask_again(number, poll_at, misses.saturating_add(1));
        self.done()
    }

    fn ask_again(&mut self, number: u32, at: Timestamp, missed: u8) {
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

    fn called_back(mut self, number: u32, task: Option<String>, word: Word, policy: &Policy) -> Decision {
        let Some(attempt) = self.next.attempt(number) else {
            return Decision::Ignore(WhyIgnored::UnknownAttempt);
        };
        if matches!(attempt.progress, Progress::Answered | Progress::Spare { .. }) {
            return Decision::Ignore(WhyIgnored::AlreadyAnswered);
        }
        let nameless = matches!(attempt.progress, Progress::Sent | Progress::GivenUp { .. });
        let faulted = attempt.progress == Progress::Faulted;
        match (word, task) {
            // Whatever came before: it is paid for.
            (Word::Answered(delivery), _) => self.answered(number, delivery, Via::Callback, policy),
            (Word::Faulted(_), _) if faulted => Decision::Ignore(WhyIgnored::OldNews),
            (Word::Faulted(fault), _)
                if matches!(fault.class, FaultClass::Unsolvable | FaultClass::Caller) =>
            {
                self.mark_paid(number);
                self.faulted(number, fault, policy)
            }
            // It says nothing final, but it says that the task exists, and its name.
            (Word::Faulted(_), Some(task)) if nameless => {
                self.accepted(number, task, policy);
                self.done()
            }
            (Word::Faulted(_), _) => Decision::Ignore(WhyIgnored::NotFinal),
        }
    }

    /// This attempt brings nothing. If the order waited for it, the table says what comes next.
    fn faulted(mut self, number: u32, fault: Fault, policy: &Policy) -> Decision {
        let was_current = self.next.current() == Some(number);
        self.set_progress(number, Progress::Faulted);
        self.tell(Beat::Faulted { attempt: number, fault: fault.clone() });
        if was_current { self.retry_or_end(fault, policy) } else { self.done() }
    }

    fn retry_or_end(mut self, fault: Fault, policy: &Policy) -> Decision {
        if !self.next.wanted {
            return self.fail(FailCause::Cancelled);
        }
        if self.resume_paid(policy) {
            return self.done();
        }
        let rule = policy.faults.rule(fault.class);
        let pause = match rule.remedy {
            Remedy::Tell => return self.fail(FailCause::Refused(fault)),
            Remedy::Hold => {
                self.next.phase = Phase::Queued { until: self.next.deadline, held: true };
                self.tell(Beat::Held);
                return self.done();
            }
            Remedy::AtOnce => Duration::ZERO,
            Remedy::BackOff => self.pause(fault.class, policy),
        };
        let spent = &mut self.next.retries[fault.class as usize];
        if *spent >= rule.limit {
            return self.bury(DeadCause::Spent(fault), policy);
        }
        *spent += 1;
        let number = *spent;
        let until = self.now + pause;
        if until >= self.next.deadline {
            return self.bury(DeadCause::Deadline, policy);
        }
        self.next.phase = Phase::Queued { until, held: false };
        self.tell(Beat::Retried { class: fault.class, number, at: until });
        self.done()
    }

    /// Jitter is a hash of the order and its attempt, so every node computes the same moment.
    fn pause(&self, class: FaultClass, policy: &Policy) -> Duration {
        let retry = self.next.retries[class as usize];
        policy.backoff.pause(retry.into(), self.next.key.grain() ^ u64::from(self.next.last_attempt))
    }

    // ---- answers -------------------------------------------------------------------------------------------

    /// An answer to any attempt is paid for: it settles the order, revives it, goes to the stock, or is waste.
    fn answered(mut self, number: u32, delivery: Delivery, via: Via, policy: &Policy) -> Decision {
        let answer = self.receive(number, delivery);
        let was_current = self.next.current() == Some(number);
        let good = answer.is_good_for(self.next.terms.min_life, self.now);
        let is_late = !was_current;
        match &self.next.phase {
            phase if phase.is_open() => {
                self.tally.late = u64::from(is_late);
                if good {
                    return self.solve(number, answer, via, policy);
                }
                self.waste(&answer);
                self.tell(Beat::TooOld { attempt: number });
                if was_current {
                    self.retry_or_end(Fault::new(FaultClass::Unsolvable, "ANSWER_TOO_OLD"), policy)
                } else {
                    self.done()
                }
            }
            Phase::Dead { .. } if good => {
                self.tally.late = 1;
                self.tally.revived = 1;
                self.solve(number, answer, via, policy)
            }
            // Whoever waited has been told; what came after all stands on the shelf for whoever asks next.
            Phase::Failed { .. } | Phase::Spoiled { .. } if good => {
                self.tally.late = 1;
                self.next.wanted = false;
                self.solve(number, answer, via, policy)
            }
            Phase::Dead { .. } => self.too_late(number, &answer),
            _ if good && self.next.terms.single_use => {
                self.tally.late = 1;
                self.tell(Beat::CameLate { attempt: number });
                self.set_progress(number, Progress::Spare { answer, since: self.now });
                self.then(Effect::Stock { attempt: number })
            }
            _ => self.too_late(number, &answer),
        }
    }

    fn too_late(mut self, number: u32, answer: &Answer) -> Decision {
        self.tally.late = 1;
        self.waste(answer);
        self.tell(Beat::TooOld { attempt: number });
        self.done()
    }

    /// Takes the delivery in: booked as paid, with the expiry that follows from the earliest it can have been solved.
    fn receive(&mut self, number: u32, delivery: Delivery) -> Answer {
        self.mark_paid(number);
        self.set_progress(number, Progress::Answered);
        self.tally.cost_micros = delivery.cost.0;
        let unsolved_at = self.next.attempt(number).map_or(self.now, |attempt| attempt.unsolved_at);
        let earliest = delivery.solved_at.map_or(unsolved_at, |at| at.min(self.now).max(unsolved_at));
        let expires = self.next.terms.life.map(|life| earliest + life);
        Answer { goods: delivery.goods, attempt: number, earliest, expires, cost: delivery.cost }
    }

    fn solve(mut self, number: u32, answer: Answer, via: Via, policy: &Policy) -> Decision {
        self.tally.solved = 1;
        self.tally.recovered_by_poll = u64::from(policy.callbacks && via == Via::Poll);
        self.leave(policy);
        self.next.phase = Phase::Solved { answer, at: self.now };
        self.tell(Beat::Solved { attempt: number, via });
        self.done()
    }

    fn waste(&mut self, answer: &Answer) {
        self.tally.wasted = 1;
        self.tally.wasted_micros = answer.cost.0;
    }

    fn stocked(mut self, number: u32) -> Decision {
        match self.next.attempt(number).map(|attempt| &attempt.progress) {
            Some(Progress::Spare { .. }) => {
                self.set_progress(number, Progress::Answered);
                self.tell(Beat::Stocked { attempt: number });
                self.done()
            }
            Some(_) => Decision::Ignore(WhyIgnored::OldNews),
            None => Decision::Ignore(WhyIgnored::UnknownAttempt),
        }
    }

    fn claimed(mut self, by: Key, min_life: Duration) -> Decision {
        match self.next.phase.clone() {
            Phase::Taken { by: owner, .. } if owner == by => Decision::Ignore(WhyIgnored::AlreadyYours),
            Phase::Taken { .. } => Decision::Ignore(WhyIgnored::TakenByAnother),
            Phase::Solved { .. } if !self.next.must_be_claimed() => Decision::Ignore(WhyIgnored::WrongPhase),
            Phase::Solved { .. } if self.next.wanted && by != self.next.key => {
                Decision::Ignore(WhyIgnored::TakenByAnother)
            }
            Phase::Solved { answer, .. } if !answer.is_good_for(min_life, self.now) => {
                Decision::Ignore(WhyIgnored::TooOld)
            }
            Phase::Solved { answer, .. } => {
                if by != self.next.key {
                    self.tally.asked = 1;
                    self.tally.from_stock = 1;
                }
                self.next.phase = Phase::Taken { answer, by, at: self.now };
                self.tell(Beat::Taken);
                self.done()
            }
            _ => Decision::Ignore(WhyIgnored::WrongPhase),
        }
    }

    // ---- people --------------------------------------------------------------------------------------------

    /// Nobody wants it any more. What may be paid for goes on, for the stock; nothing new is bought.
    fn cancelled(mut self) -> Decision {
        match &self.next.phase {
            _ if !self.next.wanted => Decision::Ignore(WhyIgnored::OldNews),
            Phase::Queued { .. } => {
                self.tally.cancelled = 1;
                self.tell(Beat::Cancelled);
                self.fail(FailCause::Cancelled)
            }
            Phase::Submitting { .. } | Phase::Solving { .. } | Phase::Unsure { .. } => {
                self.tally.cancelled = 1;
                self.next.wanted = false;
                self.tell(Beat::Cancelled);
                self.done()
            }
            Phase::Solved { .. } if self.next.must_be_claimed() => {
                self.tally.cancelled = 1;
                self.next.wanted = false;
                self.tell(Beat::Cancelled);
                self.done()
            }
            _ => Decision::Ignore(WhyIgnored::WrongPhase),
        }
    }

    fn replayed(mut self, policy: &Policy) -> Decision {
        if !matches!(self.next.phase, Phase::Dead { .. }) {
            return Decision::Ignore(WhyIgnored::WrongPhase);
        }
        self.restart(policy);
        self.tell(Beat::Replayed);
        self.done()
    }

    fn released(mut self) -> Decision {
        let now = self.now;
        match &mut self.next.phase {
            Phase::Queued { until, held } if *held => (*until, *held) = (now, false),
            Phase::Solving { poll_at, .. } if *poll_at > now => *poll_at = now,
            _ => return Decision::Ignore(WhyIgnored::WrongPhase),
        }
        self.tell(Beat::Released);
        self.done()
    }

    // ---- endings -------------------------------------------------------------------------------------------

    fn fail(mut self, cause: FailCause) -> Decision {
        self.tally.failed = u64::from(cause != FailCause::Cancelled);
        self.next.phase = Phase::Failed { cause, at: self.now };
        self.tell(Beat::Failed);
        self.done()
    }

    fn bury(mut self, cause: DeadCause, policy: &Policy) -> Decision {
        self.leave(policy);
        if !self.next.wanted {
            return self.fail(FailCause::Cancelled);
        }
        self.tally.dead = 1;
        self.next.phase = Phase::Dead { cause: cause.clone(), at: self.now };
        self.tell(Beat::Buried { cause });
        self.done()
    }

    /// The order goes on without the attempt that it waited for; that one is paid for, so it trails behind.
    fn leave(&mut self, policy: &Policy) {
        let poll_at = self.now + policy.poll_interval;
        let Some(number) = self.next.current() else { return };
        let is_submitting = self.is_submitting(number);
        let Some(attempt) = self.next.attempt_mut(number) else { return };
        match &attempt.progress {
            Progress::Solving { task } => {
                attempt.progress = Progress::Trailing { task: task.clone(), poll_at };
            }
            // No alarm will ask what became of it, so it is a doubt from here on.
            Progress::Sent if is_submitting => self.tally.doubts = 1,
            _ => {}
        }
    }

    fn set_progress(&mut self, number: u32, progress: Progress) {
        if let Some(attempt) = self.next.attempt_mut(number) {
            attempt.progress = progress;
        }
    }
}
