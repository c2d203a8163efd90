//! What callers and operators do to an order: place it, cancel it, replay it, and release a fixed account. A
//! placement does not pay by itself. It decides whether to join, resume or begin.

use super::{Advance, Decision, NextOrder, WhyIgnored};
use crate::account::currency_of;
use crate::answer::Answer;
use crate::counters::Counters;
use crate::fault::{Fault, Signal};
use crate::in_time::refuse_too_late;
use crate::key::Key;
use crate::order::{Attempt, DeadCause, FailCause, Order, Phase, Progress};
use crate::policy::Policy;
use crate::priority::Priority;
use crate::terms::Terms;
use crate::time::Timestamp;
use crate::timeline::{NOTE_BYTES_MAX, Timeline, TimelineEvent};
use alloc::boxed::Box;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::time::Duration;

/// Where a placement's answer comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// A new life begins: the answer will be bought.
    Api,
    Joined,
    Cached,
    /// The caller's own key had an answer already.
    Replayed,
    Stock,
}

impl Origin {
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Api => "api",
            Self::Joined => "joined",
            Self::Cached => "cached",
            Self::Replayed => "replayed",
            Self::Stock => "stock",
        }
    }
}

// A join is the hot path: a box would cost it an allocation, and the value lives in one place for a moment.
#[expect(clippy::large_enum_variant)]
#[must_use = "commit the advance before the caller gets its outcome"]
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Placement {
    Commit {
        origin: Origin,
        advance: Box<Advance>,
    },
    /// The order under this key does not change. Only the usage does.
    Stands {
        key: Key,
        origin: Origin,
        counters: Counters,
    },
    /// The answer on record belongs to the callers for which it was bought. After this advance is written, the order
    /// that follows is placed.
    Follow {
        advance: Box<Advance>,
    },
    Refused(Refusal),
}

/// Why a placement starts no new life.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The caller's key belongs to an order with other parameters.
    OtherParameters,
    /// An equal order failed a moment ago, and a new placement is held back.
    HeldBack { fault: Fault, until: Timestamp },
    /// The answer under the caller's key has expired. A new answer needs a new key.
    Expired,
    /// The order is a dead letter in doubt: only an operator may decide to pay again.
    NeedsAPerson,
    /// No answer of this kind came as quickly as this lately, so the order would be paid for in vain.
    TooShort { timeout: Duration, needs: Duration },
    /// The orders before this one take longer than its timeout, at the pace at which they leave the queue.
    QueueTooLong { timeout: Duration, wait: Duration },
    /// A budget allows no purchase until its period ends.
    NoBudget { ends: Timestamp },
}

/// Decides what a placement does, given the record under its key (`existing`) and the record of the order
/// that follows it (`follower`).
///
/// The record under the first key always decides whether a new life begins, so that two nodes never begin two
/// lives. It begins its own new life, or it names the order that follows.
pub fn place(
    existing: Option<&Order>,
    follower: Option<&Order>,
    key: Key,
    terms: &Arc<Terms>,
    now: Timestamp,
    policy: &Policy,
) -> Placement {
    let Some(order) = existing else { return begin(key, terms, now, policy) };
    let here = place_at(order, terms, now, policy);
    let Some(next) = order.followed_by else { return here };
    if matches!(here, Placement::Stands { .. } | Placement::Refused(_)) {
        return here;
    }
    match follower.map(|follower| (&follower.phase, follower)) {
        None => begin(next, terms, now, policy),
        Some((Phase::Solved { .. } | Phase::Claimed { .. } | Phase::Expired { .. }, follower))
            if !has_open_attempt(follower) =>
        {
            match place_at(follower, terms, now, policy) {
                // Its answer is no good for this placement either.
                Placement::Commit { origin: Origin::Api | Origin::Joined, .. } | Placement::Follow { .. } => {
                    here
                }
                placement => placement,
            }
        }
        Some((_, follower)) => place_at(follower, terms, now, policy),
    }
}

fn begin(key: Key, terms: &Arc<Terms>, now: Timestamp, policy: &Policy) -> Placement {
    NextOrder::new(&new_order(key, Arc::clone(terms), now), now).begin_life(terms, policy)
}

/// Decides what a placement does to one order on record.
fn place_at(order: &Order, terms: &Arc<Terms>, now: Timestamp, policy: &Policy) -> Placement {
    // A place in a pool that is filled, or is being filled: a second placement has nothing to do.
    if terms.slot.is_some() {
        return Placement::Stands { key: order.key, origin: Origin::Joined, counters: Counters::default() };
    }
    if order.terms.keyed && order.terms.fingerprint != terms.fingerprint {
        return Placement::Refused(Refusal::OtherParameters);
    }
    let least_life = least_life(order, terms);
    let good = |answer: &Answer| answer.is_good_for(least_life, now);
    let again = if order.terms.keyed { Origin::Replayed } else { Origin::Cached };
    let asked = Counters { asked: 1, ..Counters::default() };
    let stands = |origin| Placement::Stands {
        key: order.key,
        origin,
        counters: if origin == Origin::Joined {
            Counters { joined: 1, ..asked }
        } else {
            Counters { cached: 1, ..asked }
        },
    };
    match &order.phase {
        phase if phase.is_open() => {
            // A herd joins without a write; only a placement that would soon get "too late" moves the deadline.
            // So does one that is more urgent than all before it.
            let is_urgent = terms.priority < order.priority;
            if order.wanted && !is_urgent && order.deadline.since(now) >= terms.timeout / 2 {
                return stands(Origin::Joined);
            }
            NextOrder::new(order, now).rejoin(terms)
        }
        Phase::Solved { answer, .. } if good(answer) && order.list_stock().is_some() => {
            NextOrder::new(order, now).take_off_the_stock(again)
        }
        // An answer that a caller reported bad is not handed out again; a placement with its own key is a repeat and
        // gets it.
        Phase::Solved { .. }
            if !order.terms.keyed && order.report().is_some_and(|report| !report.is_good) =>
        {
            NextOrder::new(order, now).begin_or_follow(terms, policy)
        }
        Phase::Solved { answer, at } if good(answer) && is_a_repeat(order, *at, now, policy) => stands(again),
        Phase::Claimed { answer, by, .. } if good(answer) && *by == order.key => stands(Origin::Replayed),
        // The key has had no answer yet.
        Phase::Claimed { by, .. } if order.terms.keyed && *by != order.key && !had_expired(order) => {
            NextOrder::new(order, now).begin_or_follow(terms, policy)
        }
        Phase::Solved { .. } | Phase::Claimed { .. } | Phase::Expired { .. } if order.terms.keyed => {
            Placement::Refused(Refusal::Expired)
        }
        Phase::Failed { cause: FailCause::Rejected(fault), at } if now < *at + policy.refusal_hold => {
            Placement::Refused(Refusal::HeldBack { fault: fault.clone(), until: *at + policy.refusal_hold })
        }
        Phase::Dead { cause: DeadCause::Doubt, .. } if is_in_doubt(order) => {
            Placement::Refused(Refusal::NeedsAPerson)
        }
        _ if order.steps_lost && !has_paid_task(order, now, policy) => {
            Placement::Refused(Refusal::NeedsAPerson)
        }
        _ => NextOrder::new(order, now).begin_or_follow(terms, policy),
    }
}

/// How much life the answer of an order must have now for a placement. A key names the job that the answer was bought
/// for: its caller gets the answer as long as it lives, or as long as it will have the life that the caller asked for.
/// Any other placement reuses the answer, and it must keep its margin until the caller can come for it.
fn least_life(order: &Order, terms: &Terms) -> Duration {
    match (order.terms.keyed, terms.min_life) {
        (true, Duration::ZERO) => Duration::ZERO,
        (true, min_life) => min_life + terms.collected_in,
        (false, _) => terms.margin + terms.promised_for(),
    }
}

/// Whether the order had an answer in this life that expired, before a late one came and went to another order.
fn had_expired(order: &Order) -> bool {
    let events = order.timeline.entries.iter().rev().map(|entry| &entry.event);
    let before_the_claim = events.skip_while(|event| !matches!(event, TimelineEvent::Claimed));
    let mut of_this_life =
        before_the_claim.take_while(|event| !matches!(event, TimelineEvent::Placed { .. }));
    of_this_life.any(|event| matches!(event, TimelineEvent::Expired))
}

/// Why a new life begins with no purchase, if a budget allows none.
fn no_budget(policy: &Policy) -> Option<Refusal> {
    policy.no_budget_until.map(|ends| Refusal::NoBudget { ends })
}

/// Whether a paid answer may still come.
fn has_open_attempt(order: &Order) -> bool {
    order.attempts.iter().any(Attempt::is_open)
}

/// Whether the order has a task that a new life would resume.
fn has_paid_task(order: &Order, now: Timestamp, policy: &Policy) -> bool {
    order.attempts.iter().any(|attempt| is_resumable(attempt, now, policy))
}

/// Whether the order has left this task, and the provider still knows it.
fn is_resumable(attempt: &Attempt, now: Timestamp, policy: &Policy) -> bool {
    matches!(attempt.progress, Progress::Trailing { .. }) && now < attempt.sent + policy.task_life
}

/// Whether the outcome of an attempt is still not known.
fn is_in_doubt(order: &Order) -> bool {
    order.attempts.iter().any(|attempt| attempt.progress == Progress::Sent)
}

/// Whether a placement repeats the order. With an idempotency key, it does as long as the record exists. Without one,
/// a single-use answer counts only for placements within the window, and a reusable answer counts for every caller.
fn is_a_repeat(order: &Order, solved: Timestamp, now: Timestamp, policy: &Policy) -> bool {
    let is_in_window = policy.share_window.is_none_or(|window| now <= solved + window);
    order.terms.keyed || !order.terms.single_use || is_in_window
}

pub(super) fn new_order(key: Key, terms: Arc<Terms>, now: Timestamp) -> Order {
    Order {
        key,
        priority: terms.priority,
        terms,
        born: now,
        life: 0,
        placed: now,
        deadline: now,
        wanted: true,
        uncollected: false,
        phase: Phase::Queued { until: now, held: false },
        attempts: Vec::new(),
        last_attempt: 0,
        retries: [0; Signal::ALL.len()],
        life_attempts: 0,
        possible_doubles: 0,
        webhooks: Vec::new(),
        last_webhook: 0,
        put_back: None,
        steps_lost: false,
        followed_by: None,
        used_up: Vec::new(),
        held_off: None,
        booked_on: None,
        timeline: Timeline::default(),
    }
}

impl NextOrder {
    fn placement(mut self, origin: Origin) -> Placement {
        self.count_what_is_left();
        let advance = Advance { next: self.next, counters: self.counters, effect: None };
        Placement::Commit { origin, advance: Box::new(advance) }
    }

    /// Begins a new life, or lets another order follow. A new life would overwrite a living answer that the callers
    /// for which it was bought may still fetch. But if a task is paid for and not answered yet, the new life resumes
    /// it: otherwise it would be paid twice.
    fn begin_or_follow(mut self, terms: &Arc<Terms>, policy: &Policy) -> Placement {
        let order = &mut self.next;
        match &order.phase {
            Phase::Solved { answer, .. } | Phase::Claimed { answer, .. }
                if answer.is_good_for(Duration::ZERO, self.now) && !has_open_attempt(order) =>
            {
                let next = order.key.follower(order.born, order.life, order.followed_by.as_ref());
                order.followed_by = Some(next);
                let advance = Advance { next: self.next, counters: self.counters, effect: None };
                Placement::Follow { advance: Box::new(advance) }
            }
            _ => self.begin_life(terms, policy),
        }
    }

    pub(super) fn begin_life(mut self, terms: &Arc<Terms>, policy: &Policy) -> Placement {
        if currency_of(&self.next.terms.account) != currency_of(&terms.account) {
            self.next.forget_prices();
        }
        self.next.keep_accounts(terms);
        self.next.terms = Arc::clone(terms);
        self.counters.asked = u64::from(terms.slot.is_none());
        self.restart(policy);
        if matches!(self.next.phase, Phase::Queued { .. })
            && let Some(refusal) = refuse_too_late(terms, policy).or_else(|| no_budget(policy))
        {
            return Placement::Refused(refusal);
        }
        let life = self.next.life;
        self.tell(TimelineEvent::Placed { life });
        // Resuming what an earlier life has paid for is joining it, as far as the money goes.
        let origin =
            if matches!(self.next.phase, Phase::Queued { .. }) { Origin::Api } else { Origin::Joined };
        self.counters.joined = u64::from(origin == Origin::Joined);
        self.placement(origin)
    }

    pub(super) fn rejoin(mut self, terms: &Arc<Terms>) -> Placement {
        self.counters.asked = 1;
        self.counters.joined = 1;
        self.next.wanted = true;
        self.next.deadline = self.next.deadline.max(self.now + terms.timeout);
        self.hasten(terms.priority);
        self.placement(Origin::Joined)
    }

    /// Makes the order as urgent as this placement, if it was less urgent.
    fn hasten(&mut self, priority: Priority) {
        if priority >= self.next.priority {
            return self.tell(TimelineEvent::Rejoined);
        }
        self.next.priority = priority;
        self.tell(TimelineEvent::Hastened { priority });
    }

    pub(super) fn take_off_the_stock(mut self, origin: Origin) -> Placement {
        self.counters.asked = 1;
        self.counters.cached = 1;
        self.next.wanted = true;
        self.tell(TimelineEvent::Rejoined);
        self.placement(origin)
    }

    /// Begins a new life. It resumes what an earlier life may have paid for, and pays only if there is nothing.
    pub(super) fn restart(&mut self, policy: &Policy) {
        let now = self.now;
        if let Phase::Solved { answer, .. } = &self.next.phase
            && self.next.uncollected
        {
            let answer = answer.clone();
            self.waste(&answer);
            self.tell(TimelineEvent::Expired);
        }
        let order = &mut self.next;
        let mut dead_since = Timestamp::ZERO;
        if let Phase::Dead { at, .. } = order.phase {
            dead_since = at;
            self.counters.revived = 1;
        }
        order.life += 1;
        order.placed = now;
        order.deadline = now + order.terms.timeout;
        order.wanted = true;
        order.uncollected = false;
        order.followed_by = None;
        order.priority = order.terms.priority;
        order.retries = [0; Signal::ALL.len()];
        order.life_attempts = 0;
        order.used_up.clear();
        order.held_off = None;
        order.phase = Phase::Queued { until: now, held: false };
        self.wait_for_what_is_paid(dead_since, policy);
    }

    /// Waits for an attempt that is paid for and was left, if there is one, to avoid a second payment.
    pub(super) fn resume_paid(&mut self, policy: &Policy) -> bool {
        let now = self.now;
        let phase = self.next.attempts.iter_mut().rev().find_map(|attempt| match &attempt.progress {
            Progress::Trailing { task, .. } if is_resumable(attempt, now, policy) => {
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

    /// Cancels the order: nothing new is bought. An attempt that may be paid for continues, and its answer
    /// goes to the stock.
    pub(super) fn cancelled(mut self) -> Decision {
        match &self.next.phase {
            _ if !self.next.wanted => Decision::Ignore(WhyIgnored::OldNews),
            Phase::Queued { .. } => {
                self.counters.cancelled = 1;
                self.tell(TimelineEvent::Cancelled);
                self.fail(FailCause::Cancelled)
            }
            Phase::Submitting { .. } | Phase::Solving { .. } | Phase::InDoubt { .. } => {
                self.counters.cancelled = 1;
                self.next.wanted = false;
                self.tell(TimelineEvent::Cancelled);
                self.done()
            }
            Phase::Solved { .. } if self.next.must_be_claimed() => {
                self.counters.stocked = 1;
                self.counters.cancelled = 1;
                self.next.wanted = false;
                self.tell(TimelineEvent::Cancelled);
                self.done()
            }
            _ => Decision::Ignore(WhyIgnored::WrongPhase),
        }
    }

    pub(super) fn replayed(mut self, policy: &Policy) -> Decision {
        let is_called_again = self.tell_again();
        match self.next.phase {
            Phase::Dead { .. } => {
                self.next.steps_lost = false;
                self.restart(policy);
            }
            _ if is_called_again => {}
            _ => return Decision::Ignore(WhyIgnored::WrongPhase),
        }
        self.tell(TimelineEvent::Replayed);
        self.done()
    }

    /// Replays a dead letter because the outage is over that made it one. Only if this cannot pay twice.
    pub(super) fn replayed_after_outage(
        mut self,
        provider: String,
        died_since: Timestamp,
        policy: &Policy,
    ) -> Decision {
        match self.next.phase {
            Phase::Dead { at, .. } if at >= died_since => {}
            _ => return Decision::Ignore(WhyIgnored::TooOld),
        }
        let may_bring_an_answer = |attempt: &Attempt| {
            attempt.is_open() || attempt.progress == (Progress::GivenUp { counted: false })
        };
        if !self.next.died_of_outage() || self.next.attempts.iter().any(may_bring_an_answer) {
            return Decision::Ignore(WhyIgnored::WrongPhase);
        }
        self.restart(policy);
        self.tell(TimelineEvent::ReplayedAfterOutage { provider });
        self.done()
    }

    /// Drops a dead letter: the order ends as if it had been cancelled. An attempt that may be paid for is
    /// still polled, and its answer goes to the stock.
    pub(super) fn dropped(mut self) -> Decision {
        let is_called_no_more = self.tell_no_more() | self.next.put_back.take().is_some();
        if !matches!(self.next.phase, Phase::Dead { .. }) {
            self.tell(TimelineEvent::Dropped);
            return if is_called_no_more { self.done() } else { Decision::Ignore(WhyIgnored::WrongPhase) };
        }
        self.counters.cancelled = 1;
        self.next.wanted = false;
        self.next.steps_lost = false;
        self.tell(TimelineEvent::Dropped);
        self.fail(FailCause::Cancelled)
    }

    /// Adds an operator's note to the timeline. Nothing else changes.
    pub(super) fn noted(mut self, mut text: String) -> Decision {
        text.truncate(text.floor_char_boundary(NOTE_BYTES_MAX));
        self.tell(TimelineEvent::Noted { text });
        self.done()
    }

    pub(super) fn released(mut self) -> Decision {
        let now = self.now;
        // It found every gate shut. What it waits for after a fault is another matter.
        let last = self.next.timeline.entries.last().map(|entry| &entry.event);
        let is_deferred = matches!(last, Some(TimelineEvent::Deferred { until }) if *until > now);
        match &mut self.next.phase {
            Phase::Queued { until, held } if *held || is_deferred => (*until, *held) = (now, false),
            // Only polls that were held. All others keep the provider's pauses.
            Phase::Solving { poll_at, .. } if *poll_at >= self.next.deadline => *poll_at = now,
            _ => return Decision::Ignore(WhyIgnored::WrongPhase),
        }
        self.tell(TimelineEvent::Released);
        self.done()
    }
}
