//! A dead letter, for the operator who decides about it: its cause, its age, its cost, and what a replay would do.
//! This module decides nothing: the life cycle itself says what a replay does.

use crate::answer::{Money, PriceSum};
use crate::event::Event;
use crate::fault::FaultClass;
use crate::follow_up::DeliveryState;
use crate::order::{Attempt, DeadCause, Order, Phase, Progress};
use crate::policy::Policy;
use crate::time::Timestamp;
use crate::timeline::TimelineEvent;
use crate::transition::{Decision, transition};
use alloc::format;
use alloc::string::{String, ToString};
use alloc::sync::Arc;
use core::fmt;

/// Why a dead letter needs an operator, in one word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum DeadLetterCause {
    RetriesSpent,
    Deadline,
    Doubt,
    /// A budget allowed no purchase.
    NoBudget,
    /// The order has ended, and a webhook never accepted its delivery.
    Undelivered,
    /// The record exists and cannot be read.
    Unreadable,
    /// The store forgot the order, or its last steps.
    StoreForgot,
}

impl DeadLetterCause {
    pub const ALL: [Self; 7] = [
        Self::RetriesSpent,
        Self::Deadline,
        Self::Doubt,
        Self::NoBudget,
        Self::Undelivered,
        Self::Unreadable,
        Self::StoreForgot,
    ];

    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::RetriesSpent => "retries_spent",
            Self::Deadline => "deadline",
            Self::Doubt => "in_doubt",
            Self::NoBudget => "budget_spent",
            Self::Undelivered => "delivery",
            Self::Unreadable => "unreadable",
            Self::StoreForgot => "store_forgot",
        }
    }

    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|cause| cause.name() == name)
    }
}

/// What a replay would do now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnReplay {
    /// A replay calls the failed webhooks again and buys nothing.
    TellsAgain,
    /// A replay resumes a task that is paid for.
    GoesOn,
    /// A replay waits for a callback until the moment `until`, and buys if no callback comes.
    WaitsFirst {
        until: Timestamp,
    },
    /// A replay buys, although an earlier attempt may have been paid for.
    MayPayTwice,
    Pays,
    /// A replay would do nothing: the order's site may not be automated any more.
    NotAllowed,
}

impl OnReplay {
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::TellsAgain => "calls_webhook",
            Self::GoesOn => "resumes",
            Self::WaitsFirst { .. } => "waits_first",
            Self::MayPayTwice => "may_pay_twice",
            Self::Pays => "pays",
            Self::NotAllowed => "not_allowed",
        }
    }

    /// Whether a replay may cost the price of an answer.
    #[must_use]
    pub const fn may_pay(self) -> bool {
        matches!(self, Self::GoesOn | Self::WaitsFirst { .. } | Self::MayPayTwice | Self::Pays)
    }
}

impl fmt::Display for OnReplay {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::TellsAgain => "calls the undelivered webhooks again; buys nothing",
            Self::GoesOn => {
                "resumes the paid task, as long as the provider has it; otherwise pays for a new task"
            }
            Self::WaitsFirst { .. } => {
                "waits for a callback of the attempt that may have been paid for, then submits the order again"
            }
            Self::MayPayTwice => "submits the order again, although an earlier attempt may have been paid for",
            Self::Pays => "submits the order again; no earlier attempt can still bring an answer",
            Self::NotAllowed => {
                "is refused: the order's site is not in `targets.allow`"
            }
        })
    }
}

/// What an operator needs to know first about a dead letter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeadLetter {
    pub cause: DeadLetterCause,
    /// Why the order is a dead letter, as text.
    pub why: String,
    pub since: Timestamp,
    /// What the order's answers have cost so far.
    pub spent: PriceSum,
}

impl Order {
    /// What was paid for answers that were bought for this order, in all remembered lives.
    #[must_use]
    pub fn spent(&self) -> PriceSum {
        let mut spent = PriceSum::default();
        for attempt in self.attempts.iter().filter(|attempt| attempt.made_for.is_none()) {
            if attempt.cost.is_some() || attempt.is_unpriced() {
                spent.add(attempt.cost);
            }
        }
        spent
    }

    /// The known cost, for the caller of this order: what the answer cost, even if the answer has expired. Without an
    /// answer, the cost is what was [spent](Self::spent) once the order is over. `None` while the order is open.
    #[must_use]
    pub fn cost(&self) -> Option<PriceSum> {
        let of = |cost: Option<Money>| {
            let mut sum = PriceSum::default();
            sum.add(cost);
            sum
        };
        match &self.phase {
            phase if phase.is_open() => None,
            Phase::Solved { answer, .. } | Phase::Claimed { answer, .. } => Some(of(answer.cost)),
            Phase::Expired { .. } => {
                let answered = |attempt: &&Attempt| attempt.progress == Progress::Answered;
                let last = self.attempts.iter().filter(answered).max_by_key(|attempt| attempt.number);
                Some(last.map_or_else(|| self.spent(), |attempt| of(attempt.cost)))
            }
            _ => Some(self.spent()),
        }
    }

    /// The order as a dead letter, if it is one.
    #[must_use]
    pub fn dead_letter(&self) -> Option<DeadLetter> {
        if !self.needs_a_person() {
            return None;
        }
        let spent = self.spent();
        if let Phase::Dead { cause, at } = &self.phase {
            let named = match cause {
                DeadCause::Spent(_) | DeadCause::DoubtsSpent(_) => DeadLetterCause::RetriesSpent,
                DeadCause::Deadline | DeadCause::NotTaken(_) | DeadCause::TooLate { .. } => {
                    DeadLetterCause::Deadline
                }
                DeadCause::NoBudget(_) => DeadLetterCause::NoBudget,
                DeadCause::Doubt => DeadLetterCause::Doubt,
                DeadCause::StoreForgot => DeadLetterCause::StoreForgot,
            };
            return Some(DeadLetter { cause: named, why: cause.to_string(), since: *at, spent });
        }
        if let Some(since) = self.put_back {
            let why = self.why_put_back();
            return Some(DeadLetter { cause: DeadLetterCause::StoreForgot, why, since, spent });
        }
        let untold = || {
            self.webhooks.iter().filter_map(|webhook| match &webhook.state {
                DeliveryState::Dead { at, why } => Some((*at, why)),
                DeliveryState::Owed { .. } => None,
            })
        };
        let (since, last) = untold().max_by_key(|(at, _)| *at)?;
        let why =
            format!("{} webhooks could not be delivered, last: {}", untold().count(), last.escape_debug());
        Some(DeadLetter { cause: DeadLetterCause::Undelivered, why, since, spent })
    }

    fn why_put_back(&self) -> String {
        let phase = self.phase.name();
        let former = self.attempts.iter().filter(|attempt| attempt.former.is_some()).count();
        if former == 0 {
            return format!(
                "the store forgot the order or its last steps, and the order continues in the phase {phase}: compare the \
                 provider's list, then drop this entry"
            );
        }
        let bought = if self.attempts.iter().any(crate::Attempt::is_own) {
            "the order was bought again since, so both may have been paid for"
        } else {
            "nothing was bought for the order since"
        };
        format!(
            "the store forgot the order, and it was placed again: {former} attempts of the forgotten record count for it, \
             and {bought}; its phase is {phase} now: compare the provider's list, then drop this entry"
        )
    }

    /// What a replay would do now; `None` if the order cannot be replayed.
    #[must_use]
    pub fn on_replay(&self, now: Timestamp, policy: &Policy) -> Option<OnReplay> {
        let Decision::Advance(advance) = transition(self, Event::Replayed, now, policy) else { return None };
        let may_be_paid = self
            .attempts
            .iter()
            .any(|attempt| attempt.is_open() || attempt.progress == (Progress::GivenUp { counted: false }));
        Some(match advance.next.phase {
            Phase::Solving { .. } => OnReplay::GoesOn,
            Phase::InDoubt { until, .. } => OnReplay::WaitsFirst { until },
            Phase::Queued { .. } if may_be_paid => OnReplay::MayPayTwice,
            Phase::Queued { .. } => OnReplay::Pays,
            _ => OnReplay::TellsAgain,
        })
    }
}

impl Order {
    /// Whether an outage of the provider made this a dead letter, and nothing else: it was unreachable or busy, or the
    /// account was empty, until the deadline or the last retry. False if anything may have been paid for, or if this
    /// was replayed after an outage before and no caller has placed it since.
    #[must_use]
    pub fn died_of_outage(&self) -> bool {
        let Phase::Dead { cause, .. } = &self.phase else { return false };
        let is_outage = |class: FaultClass| {
            matches!(class, FaultClass::Busy | FaultClass::Unreachable | FaultClass::NoFunds)
        };
        let is_cause = match cause {
            DeadCause::NotTaken(fault) => fault.as_ref().is_none_or(|fault| is_outage(fault.class)),
            // A caller that wanted only so many attempts has had them.
            DeadCause::Spent(fault) => self.terms.retry.max_retries.is_none() && is_outage(fault.class),
            _ => false,
        };
        let is_free =
            self.attempts.iter().filter(|attempt| attempt.sent >= self.placed).all(Attempt::is_rejected);
        is_cause
            && is_free
            && self.wanted
            && !self.steps_lost
            && self.put_back.is_none()
            && !self.was_replayed()
    }

    /// Whether the order was replayed after an outage since a caller last placed it.
    fn was_replayed(&self) -> bool {
        let events = self.timeline.entries.iter().rev().map(|entry| &entry.event);
        let is_placement =
            |event: &&TimelineEvent| matches!(event, TimelineEvent::Placed { .. } | TimelineEvent::Rejoined);
        events
            .take_while(|event| !is_placement(event))
            .any(|event| matches!(event, TimelineEvent::ReplayedAfterOutage { .. }))
    }

    /// This dead letter, as it is imported from a file into a store that has not counted it. `site` and `price` are
    /// computed by this node. The cost of an attempt that may still bring an answer is not known yet: usage counts it
    /// when the answer comes. Finished attempts stay as in the file, and are not counted.
    #[must_use]
    pub fn imported(mut self, site: String, price: Option<Money>) -> Self {
        let terms = Arc::make_mut(&mut self.terms);
        (terms.site, terms.price) = (site, price);
        let may_answer = |attempt: &&mut Attempt| {
            attempt.is_open() || matches!(attempt.progress, Progress::GivenUp { .. })
        };
        // This store has counted no money for it.
        self.attempts.iter_mut().for_each(|attempt| attempt.drawn = None);
        for attempt in self.attempts.iter_mut().filter(may_answer) {
            (attempt.cost, attempt.unpriced_since) = (None, None);
        }
        self
    }
}

/// Which dead letters a command applies to. An absent field matches all.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DeadLetterFilter {
    pub cause: Option<DeadLetterCause>,
    pub kind: Option<String>,
    /// The [site](crate::Terms::site).
    pub site: Option<String>,
    pub tenant: Option<String>,
    /// Only dead letters that died before this moment.
    pub before: Option<Timestamp>,
    /// Only dead letters that died at this moment or later.
    pub since: Option<Timestamp>,
}

impl DeadLetterFilter {
    /// Whether this order is a dead letter that the filter matches.
    #[must_use]
    pub fn fits(&self, order: &Order) -> bool {
        let terms = &order.terms;
        let is =
            |wanted: &Option<String>, value: &str| wanted.as_deref().is_none_or(|wanted| wanted == value);
        is(&self.kind, &terms.kind)
            && is(&self.site, &terms.site)
            && is(&self.tenant, &terms.tenant)
            && order.dead_letter().is_some_and(|dead_letter| {
                self.cause.is_none_or(|cause| cause == dead_letter.cause)
                    && self.before.is_none_or(|before| dead_letter.since < before)
                    && self.since.is_none_or(|since| dead_letter.since >= since)
            })
    }

    /// Whether the filter matches a record that cannot be read. Nothing else is known of such a record.
    #[must_use]
    pub fn fits_unreadable(&self) -> bool {
        let Self { cause, kind, site, tenant, before, since } = self;
        let is_open =
            kind.is_none() && site.is_none() && tenant.is_none() && before.is_none() && since.is_none();
        is_open && cause.is_none_or(|cause| cause == DeadLetterCause::Unreadable)
    }
}
