//! One order is one record: its terms, its phase, and every attempt that may still bring an answer. `due()`,
//! `list_stock()` and `forget_at()` follow from the phase, so a store can index them without knowing the rules.

use crate::answer::{Answer, Money};
use crate::fault::{Evidence, Fault, Signal};
use crate::follow_up::{Report, Webhook};
use crate::key::{Key, Target};
use crate::priority::Priority;
use crate::shortage::{BudgetDraw, Shortage};
use crate::terms::{Reuse, TIMEOUT_MAX, Terms};
use crate::time::Timestamp;
use crate::timeline::{Timeline, TimelineEvent};
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;
use core::time::Duration;

/// The most bytes of a provider's task id. A longer text is not accepted as an id.
pub const TASK_BYTES_MAX: usize = 128;

/// How many attempts an order remembers. Only an order that is placed very often makes so many. Over this limit,
/// finished attempts are removed first.
pub const ATTEMPTS_KEPT_MAX: usize = 64;

/// The phase of an order. Every phase that waits holds the moment at which the wait ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Phase {
    /// The order waits until the moment `until`, and is then submitted. It waits for no attempt.
    /// A placement, a replay, a retry after a fault and a shut gate set it.
    /// `held` means that only an operator can end the wait: the provider's account must be fixed first.
    /// Next: `Submitting`, `Solved` (an answer from the stock), `Dead` at the deadline, or `Failed` if it is cancelled.
    /// A late reply or callback for an earlier attempt leads to `Solving` or `Solved`.
    Queued { until: Timestamp, held: bool },
    /// An attempt is in the store, and one node makes the call to the provider. Money may be spent from here on.
    /// The node that submits sets it, before the call. Only that node has the `stamp`, so no other takes over the call.
    /// Next, as the provider replies or calls back: `Solving`, `Solved`, `Queued` (a retry), `Failed` or `Dead`.
    /// After an unclear reply, or without a reply by `until`: `InDoubt`, or `Dead` if the policy wants that.
    Submitting { attempt: u32, stamp: u64, until: Timestamp },
    /// The provider has taken the task, and it is paid for or will be.
    /// The reply to the submit sets it, also a late one. A replay, a retry or a placement sets it if it resumes a task.
    /// The order waits for the callback, and polls at `poll_at`. `misses` counts polls in a row without a clear reply.
    /// Next: `Solved`, `Queued` (a retry), `Failed`, or `Dead`.
    Solving { attempt: u32, poll_at: Timestamp, misses: u8 },
    /// A submit ended without a clear reply: the provider may have taken the task, or not.
    /// A lost reply, a timeout or the crash of a node sets it.
    /// Nothing is submitted before `until`, because a second submit could pay twice.
    /// A callback or a late reply settles the doubt. Next: `Solved`, `Solving`, `Queued` (a retry), `Failed` or `Dead`.
    /// After the wait: `Submitting`, `Queued` (the gate is shut), `Solving` (an older task is resumed), `Dead` (the
    /// deadline is over, or the retries are used up), or `Failed` (it was cancelled).
    InDoubt { attempt: u32, until: Timestamp },
    /// The answer is here, and is handed out until it expires.
    /// A callback, a poll, the reply to the submit or a take from the stock sets it.
    /// A single-use answer that belongs to no order (late, cancelled, or of a pool) stands in the stock of its target.
    /// Next: `Claimed`, if the answer is for one order only. `Expired`, if no caller got the answer in time. An answer
    /// that reached its callers stays `Solved` until the record is removed or a placement begins a new life.
    Solved { answer: Answer, at: Timestamp },
    /// The answer has gone to one order, `by`, and goes to no other.
    /// A caller that reads the single-use answer of an exclusive order sets it. So does the first call to its webhook,
    /// and an order that takes the answer from the stock.
    /// A repeat by the same claimant gets the same answer. The record is removed some time later.
    /// Next: `Solved`, if the claimant returns the answer to the stock; or a new life, by a later placement.
    Claimed { answer: Answer, by: Key, at: Timestamp },
    /// The answer expired before a caller got it, or while it was in the stock.
    /// The order's own timer sets it at the moment of expiry, and the answer is counted as waste.
    /// The record is removed some time later. A new placement begins a new life, but an order with an idempotency key
    /// is never bought again under that key. Next: `Solved` by a late answer, which goes to the stock; or a new life.
    Expired { at: Timestamp },
    /// The order has ended without an answer, and another try would not help.
    /// A fault in the request sets it, or a cancellation. The caller gets the cause.
    /// No operator is needed. A new placement begins a new life, but it is refused for `Policy::refusal_hold` after a
    /// rejection. Next: `Solved` by a late answer, which goes to the stock; or a new life.
    Failed { cause: FailCause, at: Timestamp },
    /// A dead letter: the order has no answer, and an operator should look at it.
    /// Used-up retries, the deadline, an unsettled doubt or a store that forgot set it; `cause` says which.
    /// The caller gets an error. The record is kept until an operator replays or drops it, or a caller places it again.
    /// A placement is refused as long as it is not known whether the order was paid for.
    /// Next: `Queued`, `Solving` (an open paid task is resumed) or `InDoubt` (an open doubt is waited out).
    /// A late answer leads to `Solved`. An operator's drop leads to `Failed`.
    Dead { cause: DeadCause, at: Timestamp },
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FailCause {
    Rejected(Fault),
    Cancelled,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DeadCause {
    /// The retries for this fault are used up.
    Spent(Fault),
    /// The retries for attempts in doubt are used up. Holds what was observed of the last one.
    DoubtsSpent(Evidence),
    Deadline,
    /// The deadline was reached before the provider took the task. Holds the last fault, if there was one.
    NotTaken(Option<Fault>),
    /// The order was not submitted (again), because no answer would have come in time: so much was `left` until the
    /// deadline, and an answer `needs` more at least.
    TooLate {
        left: Duration,
        needs: Duration,
    },
    /// A budget allows no purchase.
    NoBudget(Shortage),
    /// It is not known whether the order was paid for, and only an operator may decide to pay again.
    Doubt,
    /// The store has lost the last steps of the order, so it is not known what was paid for.
    StoreForgot,
}

impl fmt::Display for DeadCause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Spent(fault) => {
                write!(
                    f,
                    "retries for {} are used up, last: {}",
                    fault.class.name(),
                    fault.code.escape_debug()
                )
            }
            Self::DoubtsSpent(Evidence { summary, .. }) if summary.is_empty() => {
                f.write_str("retries for attempts in doubt are used up")
            }
            Self::DoubtsSpent(Evidence { summary, .. }) => {
                write!(f, "retries for attempts in doubt are used up, last: {}", summary.escape_debug())
            }
            Self::Deadline => f.write_str("the deadline was reached"),
            Self::NoBudget(shortage) => write!(f, "{shortage}"),
            Self::NotTaken(None) => {
                f.write_str(
                    "the deadline was reached before a provider could be given the task: all were paused, away or busy, or no \
                     node was at work; see `quittance provider list`",
                )
            }
            Self::NotTaken(Some(fault)) => {
                write!(f, "the deadline was reached before the provider took the task, last: {fault}")
            }
            Self::TooLate { left, needs } => write!(
                f,
                "not submitted, because no answer would come in time: {left:?} were left until the deadline, and the quickest \
                 of the last answers took {needs:?}"
            ),
            Self::Doubt => f.write_str("it is not known whether the order was paid for"),
            Self::StoreForgot => {
                f.write_str("the store has lost the last steps of this order: what was paid for is not known")
            }
        }
    }
}

/// The state of an attempt, as far as we know.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Progress {
    /// The attempt is on record, and the provider has not replied yet.
    Sent,
    /// The provider has taken the attempt's task, and the order waits for the answer.
    Solving {
        task: String,
    },
    /// The order does not wait for the attempt any more, but it is paid for. It is polled until it answers or its
    /// life is over. `counted` is true once a later attempt was made, and the usage counts this one as a possible double.
    Trailing {
        task: String,
        poll_at: Timestamp,
        counted: bool,
    },
    /// The order does not wait for the attempt any more, and it is not polled. An answer may still come by callback.
    /// `counted` is true once a later attempt was made, and the usage counts this one as a possible double.
    GivenUp {
        counted: bool,
    },
    Faulted,
    Answered,
    /// The answer came when the order did not need it any more. It is on its way to the stock.
    Surplus {
        answer: Answer,
        since: Timestamp,
    },
}

/// One submission to the provider, which is paid for or may be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attempt {
    pub number: u32,
    pub sent: Timestamp,
    /// The earliest moment at which the provider can have solved the task.
    pub unsolved_at: Timestamp,
    /// Whether the provider is known to have taken the task.
    pub accepted: bool,
    pub progress: Progress,
    /// The provider's task id; `None` until it is known. A report to the provider needs the id.
    pub task: Option<String>,
    pub report: Option<Report>,
    /// The order for which the attempt was made, if its answer came from stock.
    pub made_for: Option<Key>,
    /// The cost of the attempt once it is over. `None` is "not known"; `Some(Money(0))` is "free".
    pub cost: Option<Money>,
    /// Since when the usage counts the attempt as one that may have been charged at an unknown price.
    pub unpriced_since: Option<Timestamp>,
    /// Set if the store forgot the record for which the attempt was made: when that record was made, and the
    /// attempt's number there. Callbacks use these two values.
    pub former: Option<(Timestamp, u32)>,
    /// A short digest of the address to which the callback goes; `None` if the attempt was sent without one, or by a
    /// node that did not store it.
    pub callback_address: Option<u32>,
    /// The account at the provider that got the attempt; `None` if it is the account of the order's terms.
    pub account: Option<AttemptAccount>,
    /// What the attempt has drawn from budgets; `None` if no budget counts it.
    pub drawn: Option<BudgetDraw>,
}

/// The account that an attempt goes to, and what the attempt costs there by the price list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AttemptAccount {
    /// The provider and the currency, as [`account`](crate::account::account) writes them.
    pub account: String,
    /// `None` if the price list has no price.
    pub price: Option<Money>,
}

/// An account that gave an order a fault, and until when the order does not go there again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeldOff {
    pub account: String,
    pub until: Timestamp,
    /// Whether the account was only busy: then the order waits for it, and does not go to another one at once.
    pub is_busy: bool,
}

impl Attempt {
    /// Whether the attempt may still bring an answer that we have not had.
    #[must_use]
    pub const fn is_open(&self) -> bool {
        matches!(self.progress, Progress::Sent | Progress::Solving { .. } | Progress::Trailing { .. })
    }

    /// Whether the attempt was made for this record of the order and may have been paid for.
    #[must_use]
    pub fn is_own(&self) -> bool {
        self.former.is_none() && self.made_for.is_none() && self.progress != Progress::Faulted
    }

    /// Whether the provider rejected the attempt, so that it cost nothing.
    #[must_use]
    pub fn is_rejected(&self) -> bool {
        self.progress == Progress::Faulted && !self.accepted
    }

    /// Whether the attempt is over and was charged, or may have been, at a price that is not known.
    #[must_use]
    pub fn is_unpriced(&self) -> bool {
        let is_answered = matches!(self.progress, Progress::Answered | Progress::Surplus { .. });
        self.cost.is_none() && (is_answered || self.unpriced_since.is_some())
    }

    /// Whether the provider has charged the attempt, or may have. False if it rejected the task, or gave the
    /// money back.
    #[must_use]
    pub fn may_be_charged(&self) -> bool {
        self.made_for.is_none() && !self.is_rejected() && self.cost != Some(Money(0))
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Order {
    pub key: Key,
    pub terms: Arc<Terms>,
    /// How urgent the order is: as its most urgent placement in this life.
    pub priority: Priority,
    /// When this record was made. The callback address contains it, so that a callback for an earlier, forgotten
    /// record of the same key does not count for this one.
    pub born: Timestamp,
    /// Each placement after the end starts a new life, with fresh retries.
    pub life: u32,
    pub placed: Timestamp,
    pub deadline: Timestamp,
    /// Whether a caller is entitled to the answer. Otherwise the answer goes to the stock.
    pub wanted: bool,
    /// Whether the answer can expire and has not reached a caller yet. If it expires now, it counts as waste.
    pub uncollected: bool,
    pub phase: Phase,
    pub attempts: Vec<Attempt>,
    /// The number of the last attempt, of any life.
    pub last_attempt: u32,
    /// Retries in this life at the present account, by fault class. They stay when the order is submitted again, and
    /// begin again at another account.
    pub retries: [u8; Signal::ALL.len()],
    /// How many attempts this life has made, at all accounts.
    pub life_attempts: u32,
    /// How often an attempt was made while an earlier one may have been paid for, in all lives.
    pub possible_doubles: u32,
    /// The webhooks that must be called when the order has ended.
    pub webhooks: Vec<Webhook>,
    pub last_webhook: u32,
    /// When a node put this order back after the store had forgotten it, or when it was answered after the store had
    /// lost its last steps. `None` again once an operator has dropped it from the list.
    pub put_back: Option<Timestamp>,
    /// Whether the store has lost the last steps of this order, so that what was paid for is not known. Until it has an
    /// answer, or an operator replays or drops it, a paid task may be resumed and nothing is submitted.
    pub steps_lost: bool,
    /// The order that takes new placements while the answer here still belongs to the callers for which it was
    /// bought, and is too old for others.
    pub followed_by: Option<Key>,
    /// The accounts that this life does not go to any more: its retries there are used up, or the provider does not
    /// sell the kind.
    pub used_up: Vec<String>,
    /// The account that gave the last fault, if the order may try it again.
    pub held_off: Option<HeldOff>,
    /// The attempt that the last change was about: the usage counts the change on its account. `None` if it was about
    /// no attempt, or about one at the account of the terms.
    pub booked_on: Option<u32>,
    pub timeline: Timeline,
}

impl Order {
    /// This order without the operator's drop, if `dead_letter` is its state from before the drop. What was learned
    /// of its attempts since then stays: money that was spent is not forgotten.
    #[must_use]
    pub fn taken_back(&self, dead_letter: &Self) -> Option<Self> {
        let is_same =
            (self.key, self.born, self.life) == (dead_letter.key, dead_letter.born, dead_letter.life);
        if !is_same || self.needs_a_person() || !dead_letter.needs_a_person() {
            return None;
        }
        let phase = match (&self.phase, &dead_letter.phase) {
            (Phase::Failed { cause: FailCause::Cancelled, .. }, dead @ Phase::Dead { .. }) => dead.clone(),
            // Only the webhook delivery was dropped.
            (now, then) if now == then => now.clone(),
            _ => return None,
        };
        Some(Self {
            phase,
            wanted: dead_letter.wanted,
            steps_lost: dead_letter.steps_lost,
            webhooks: dead_letter.webhooks.clone(),
            ..self.clone()
        })
    }
}

impl Phase {
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Queued { .. } => "queued",
            Self::Submitting { .. } => "submitting",
            Self::Solving { .. } => "solving",
            Self::InDoubt { .. } => "in_doubt",
            Self::Solved { .. } => "solved",
            Self::Claimed { .. } => "claimed",
            Self::Expired { .. } => "expired",
            Self::Failed { .. } => "failed",
            Self::Dead { .. } => "dead",
        }
    }

    /// Whether the order is held: only an operator can end its wait.
    #[must_use]
    pub const fn is_held(&self) -> bool {
        matches!(self, Self::Queued { held: true, .. })
    }

    #[must_use]
    pub const fn is_dead(&self) -> bool {
        matches!(self, Self::Dead { .. })
    }

    /// Whether the order still waits for an answer or works on it.
    #[must_use]
    pub const fn is_open(&self) -> bool {
        matches!(
            self,
            Self::Queued { .. } | Self::Submitting { .. } | Self::Solving { .. } | Self::InDoubt { .. }
        )
    }
}

/// What an order can give now to a caller that requests it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HandOut<'a> {
    NotYet,
    /// A good answer, which this caller can have now.
    Answer(&'a Answer),
    /// A good answer that must be claimed first: it goes to one order only, or this caller is the first to get it.
    Claim,
    /// The order had an answer, and it has too little life left.
    Expired,
    /// The answer went to another order.
    TakenByAnother,
    Failed(&'a FailCause),
    Dead(&'a DeadCause),
}

impl Order {
    // Stores keep the values of `due`, `list_stock` and `forget_at` beside the record. A change in how one of them
    // follows from the phase needs a migration in every store.

    /// The moment at which this order must be woken, if there is one.
    #[must_use]
    pub fn due(&self) -> Option<Timestamp> {
        let attempts = self.attempts.iter().filter_map(|attempt| match attempt.progress {
            Progress::Trailing { poll_at, .. } => Some(poll_at),
            Progress::Surplus { since, .. } => Some(since),
            _ => None,
        });
        self.phase_due().into_iter().chain(attempts).chain(self.follow_up_due()).min()
    }

    /// The moment at which the phase itself stops waiting.
    #[must_use]
    pub fn phase_due(&self) -> Option<Timestamp> {
        match &self.phase {
            Phase::Queued { until, .. } | Phase::InDoubt { until, .. } => Some(self.deadline.min(*until)),
            Phase::Solving { poll_at, .. } => Some(self.deadline.min(*poll_at)),
            Phase::Submitting { until, .. } => Some(*until),
            Phase::Solved { answer, .. } if self.must_be_claimed() => answer.expires,
            Phase::Solved { answer, .. } | Phase::Claimed { answer, .. } if self.uncollected => {
                answer.expires
            }
            _ => None,
        }
    }

    /// The target in whose stock the answer is, free to be taken, and when the answer expires.
    #[must_use]
    pub fn list_stock(&self) -> Option<(Target, Timestamp)> {
        match &self.phase {
            Phase::Solved { answer, .. } if self.terms.single_use && !self.wanted => {
                answer.expires.map(|expires| (self.terms.target, expires))
            }
            _ => None,
        }
    }

    /// The order after `by` took its answer from stock. A store writes only that the answer was taken, and builds the
    /// order from the record and that fact with this function.
    #[must_use]
    pub fn taken(mut self, by: Key, at: Timestamp) -> Self {
        if let Phase::Solved { answer, .. } = self.phase {
            self.phase = Phase::Claimed { answer, by, at };
            self.timeline.tell(at, TimelineEvent::Claimed);
        }
        self
    }

    /// The timer and the removal time after an order has taken the answer from stock. They do not depend on which
    /// order took it, or when.
    #[must_use]
    pub fn once_taken(&self) -> (Option<Timestamp>, Option<Timestamp>) {
        let at = self.list_stock().map_or(Timestamp::ZERO, |(_, expires)| expires);
        let taken = self.clone().taken(self.key, at);
        (taken.due(), taken.forget_at())
    }

    /// The claimant under which this order takes an answer from the stock. It changes with each life and attempt.
    #[must_use]
    pub fn claimant(&self) -> Key {
        self.key.claimant(self.life, self.last_attempt)
    }

    /// The order that took this order's answer from stock.
    #[must_use]
    pub fn taker(&self) -> Option<Key> {
        match self.phase {
            Phase::Claimed { by, .. } if by != self.key => Some(by),
            _ => None,
        }
    }

    /// Whether the present answer came from stock, and was not bought for this order.
    #[must_use]
    pub fn is_from_stock(&self) -> bool {
        match &self.phase {
            Phase::Solved { answer, .. } | Phase::Claimed { answer, .. } => {
                self.attempt(answer.attempt).is_some_and(|attempt| attempt.made_for.is_some())
            }
            _ => false,
        }
    }

    /// When the record may be removed. `None` while a timer or a dead webhook remains, and for dead letters.
    #[must_use]
    pub fn forget_at(&self) -> Option<Timestamp> {
        if self.due().is_some() || self.has_dead_webhook() || self.put_back.is_some() {
            return None;
        }
        let settled = match &self.phase {
            Phase::Solved { answer, at } | Phase::Claimed { answer, at, .. } => {
                (*at).max(answer.expires.unwrap_or(*at))
            }
            Phase::Expired { at } | Phase::Failed { at, .. } => *at,
            _ => return None,
        };
        // Placements find the order that follows through this record, so it stays for as long as that one may be open.
        let follows = if self.followed_by.is_some() { TIMEOUT_MAX } else { Duration::ZERO };
        Some(settled + self.terms.keep + follows)
    }

    /// What a caller that needs `min_life` can have of this order now. An answer from stock must keep its margin.
    #[must_use]
    pub fn hand_out(&self, by: Key, min_life: Duration, now: Timestamp) -> HandOut<'_> {
        let min_life = if self.is_from_stock() { min_life.max(self.terms.margin) } else { min_life };
        match &self.phase {
            _ if self.phase.is_open() && !self.wanted => HandOut::Failed(&FailCause::Cancelled),
            Phase::Solved { answer, .. } if !answer.is_good_for(min_life, now) => HandOut::Expired,
            Phase::Solved { .. } if self.must_be_claimed() || self.uncollected => HandOut::Claim,
            Phase::Solved { answer, .. } => HandOut::Answer(answer),
            Phase::Claimed { by: owner, .. } if *owner != by => HandOut::TakenByAnother,
            Phase::Claimed { answer, .. } if answer.is_good_for(min_life, now) && self.uncollected => {
                HandOut::Claim
            }
            Phase::Claimed { answer, .. } if answer.is_good_for(min_life, now) => HandOut::Answer(answer),
            Phase::Claimed { .. } | Phase::Expired { .. } => HandOut::Expired,
            Phase::Failed { cause, .. } => HandOut::Failed(cause),
            Phase::Dead { cause, .. } => HandOut::Dead(cause),
            Phase::Queued { .. }
            | Phase::Submitting { .. }
            | Phase::Solving { .. }
            | Phase::InDoubt { .. } => HandOut::NotYet,
        }
    }

    /// Whether callers that wait for this order have no outcome yet.
    #[must_use]
    pub const fn is_awaited(&self) -> bool {
        self.phase.is_open() && self.wanted
    }

    /// Whether the answer must be claimed: only one order can have it, once.
    #[must_use]
    pub fn must_be_claimed(&self) -> bool {
        self.terms.single_use && (self.terms.reuse == Reuse::Exclusive || !self.wanted)
    }

    /// Whether the next attempt is bought beside a task that takes long: the order has left the task of its last
    /// attempt, and has counted it already.
    #[must_use]
    pub fn is_hedging(&self) -> bool {
        let is_left =
            |attempt: &Attempt| matches!(attempt.progress, Progress::Trailing { counted: true, .. });
        matches!(self.phase, Phase::Queued { .. }) && self.attempts.last().is_some_and(is_left)
    }

    #[must_use]
    pub fn attempt(&self, number: u32) -> Option<&Attempt> {
        self.attempts.iter().find(|attempt| attempt.number == number)
    }

    /// The account that this attempt went to.
    #[must_use]
    pub fn account_of<'a>(&'a self, attempt: &'a Attempt) -> &'a str {
        attempt.account.as_ref().map_or(&self.terms.account, |at| &at.account)
    }

    /// The price of an answer to this attempt by the price list.
    #[must_use]
    pub fn listed_price_of(&self, attempt: &Attempt) -> Option<Money> {
        attempt.account.as_ref().map_or(self.terms.price, |at| at.price)
    }

    /// The account on which the usage counts the last change.
    #[must_use]
    pub fn booked_account(&self) -> &str {
        let attempt = self.booked_on.and_then(|number| self.attempt(number));
        attempt.map_or(&self.terms.account, |attempt| self.account_of(attempt))
    }

    /// The account that the order works with: that of its last attempt in this life, or else that of its terms.
    #[must_use]
    pub fn account(&self) -> &str {
        let last = self.attempts.last().filter(|attempt| attempt.sent >= self.placed);
        last.map_or(&self.terms.account, |attempt| self.account_of(attempt))
    }

    /// The provider's id of an attempt, if it is known. The id of a failed attempt is in the timeline only.
    #[must_use]
    pub fn task_of<'a>(&'a self, attempt: &'a Attempt) -> Option<&'a str> {
        let view = || {
            self.timeline.entries.iter().find_map(|entry| match &entry.event {
                TimelineEvent::Accepted { attempt: number, task } if *number == attempt.number => {
                    Some(task.as_str())
                }
                _ => None,
            })
        };
        match &attempt.progress {
            Progress::Solving { task } | Progress::Trailing { task, .. } => Some(task),
            _ => attempt.task.as_deref().or_else(view),
        }
    }

    /// Adds an attempt under the next number. At most [`ATTEMPTS_KEPT_MAX`] are kept; attempts that are over
    /// are removed first.
    pub(crate) fn remember(&mut self, attempt: Attempt) -> u32 {
        if self.attempts.len() >= ATTEMPTS_KEPT_MAX {
            let over = |attempt: &Attempt| matches!(attempt.progress, Progress::Faulted | Progress::Answered);
            let oldest = self.attempts.iter().position(over).unwrap_or(0);
            self.attempts.remove(oldest);
        }
        self.last_attempt += 1;
        self.attempts.push(Attempt { number: self.last_attempt, ..attempt });
        self.last_attempt
    }

    pub(crate) fn attempt_mut(&mut self, number: u32) -> Option<&mut Attempt> {
        self.attempts.iter_mut().find(|attempt| attempt.number == number)
    }

    /// The attempt that the phase is about.
    #[must_use]
    pub const fn current(&self) -> Option<u32> {
        match self.phase {
            Phase::Submitting { attempt, .. }
            | Phase::Solving { attempt, .. }
            | Phase::InDoubt { attempt, .. } => Some(attempt),
            _ => None,
        }
    }
}
