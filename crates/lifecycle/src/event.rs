//! What can happen to an order, and what a decision asks the engine to do. The name of an event is a past participle,
//! and the name of an effect an imperative.

use crate::answer::{Answer, ProviderAnswer};
use crate::fault::{Evidence, Fault};
use crate::key::Key;
use crate::order::{Attempt, AttemptAccount};
use crate::routing::PassedOver;
use crate::shortage::{BudgetDraw, Shortage};
use crate::time::Timestamp;
use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;
use core::time::Duration;

/// The outcome of a submit. There is no `Result`: the adapter must say whether the provider certainly did not take
/// the task (`Rejected`) or may have taken it (`InDoubt`). Money depends on this decision. A [`Fault`] has no class
/// for "in doubt", so an adapter cannot report it as a rejection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SubmitOutcome {
    /// The provider took the task. Holds the provider's task id.
    Accepted { task: String },
    /// The provider took the task and sent the answer at once.
    Answered(ProviderAnswer),
    /// The provider certainly did not take the task. Holds the reason.
    Rejected(Fault),
    /// The provider may have taken the task. Holds what was seen of the call.
    InDoubt(Evidence),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PollOutcome {
    Pending,
    Answered(ProviderAnswer),
    Faulted(Fault),
    /// The provider does not know the task: it has lost it, or has removed its result.
    NoSuchTask(Fault),
    /// The poll or its reply was lost, or the reply could not be read. Nothing is lost: the provider still has the
    /// task.
    NoReply,
}

/// The outcome of a report to the provider.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReportOutcome {
    /// The provider has counted the report, now or before.
    Accepted,
    /// The provider will never accept this report. Holds the provider's code.
    Refused { code: String },
    /// The report or the reply to it was lost. Sending it again is safe.
    NoReply,
}

/// The outcome of a call to a webhook.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DeliveryOutcome {
    Delivered,
    /// The webhook did not accept the call. Holds what was observed, for an operator.
    NotDelivered {
        why: String,
    },
    /// The endpoint is switched off, because it has failed for days. Holds why, for an operator.
    SwitchedOff {
        why: String,
    },
}

/// The content of a callback.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CallbackResult {
    Answered(ProviderAnswer),
    Faulted(Fault),
}

/// A time in which a callback may have got no reply from us, so that the provider had to repeat it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Outage {
    pub from: Timestamp,
    pub to: Timestamp,
}

/// When a callback arrived, and all earlier times in which callbacks are known to have been lost.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Receipt {
    pub at: Timestamp,
    pub outages: Vec<Outage>,
}

/// How an answer came to us.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Via {
    Submit,
    Callback,
    Poll,
}

/// Whether a submit may go to a provider now, and to which one. The gates have agreed, and the submit is counted there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SubmitRoute {
    /// The submit may go out now.
    To(Offer),
    ShutUntil(Timestamp),
    /// A budget does not allow the submit.
    NoBudget(Shortage),
}

/// The account that takes a submit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Offer {
    /// `None` is the account of the order's terms.
    pub account: Option<AttemptAccount>,
    /// The accounts that would have come first.
    pub passed_over: Vec<PassedOver>,
    /// What was drawn from budgets for the submit; `None` if no budget counts it.
    pub drawn: Option<BudgetDraw>,
}

impl Offer {
    /// The account of the order's terms.
    pub const OF_TERMS: Self = Self { account: None, passed_over: Vec::new(), drawn: None };
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// The order's timer fired. `stamp` is new each time. If the reply to a commit is lost, the stamp shows which
    /// write the store has.
    Woken {
        stamp: u64,
        route: SubmitRoute,
    },
    Submitted {
        attempt: u32,
        outcome: SubmitOutcome,
    },
    /// `asked` is when the poll was sent: a task that was not ready was unsolved at least until then.
    Polled {
        attempt: u32,
        asked: Timestamp,
        outcome: PollOutcome,
    },
    /// A genuine callback has come. It may contain the provider's task id.
    CalledBack {
        attempt: u32,
        task: Option<String>,
        word: CallbackResult,
        /// `None` if the arrival time is not known. Then only evidence from before it counts.
        receipt: Option<Receipt>,
    },
    /// The surplus answer of this attempt is now in stock, as an order of its own.
    Stocked {
        attempt: u32,
    },
    /// The order got an answer from stock under its [claimant](crate::Order::claimant), before anything was bought
    /// for it. Holds the attempt that brought the answer.
    ServedFromStock {
        by: Key,
        from: Key,
        answer: Answer,
        attempt: Box<Attempt>,
    },
    /// The order that claimed the answer from stock does not need it any more.
    Returned {
        by: Key,
    },
    /// The order `to` has the answer that was claimed from stock under its claimant `by`. Whether the answer reaches a
    /// caller, that order knows.
    HandedOver {
        by: Key,
        to: Key,
    },
    /// A caller claims the answer, which then goes to no other.
    Claimed {
        by: Key,
        min_life: Duration,
    },
    Cancelled,
    /// An operator replays a dead letter.
    Replayed,
    /// An outage is over in which the order died.
    ReplayedAfterOutage {
        /// The name of the provider that is back.
        provider: String,
        /// Only an order that has been dead since then, or a shorter time, is replayed.
        died_since: Timestamp,
    },
    /// An operator drops a dead letter.
    Dropped,
    /// An operator adds a note to the order.
    Noted {
        text: String,
    },
    /// An operator has fixed the provider's account.
    Released,
    /// A caller reports whether the answer was good.
    Reported {
        is_good: bool,
    },
    ReportPassed {
        attempt: u32,
        outcome: ReportOutcome,
    },
    /// A caller wants a webhook when the order has ended.
    WebhookAdded {
        url: String,
        dialect: String,
    },
    WebhookTried {
        webhook: u32,
        outcome: DeliveryOutcome,
    },
    /// The store forgot this order, and a node puts it back. Other nodes may remember later steps, so nothing is
    /// submitted before `others_by`.
    PutBack {
        others_by: Timestamp,
    },
    /// The store has lost the last steps of this order, and no node remembers them.
    Lost,
    /// The store forgot an earlier record of this order, made at `born`. These are the attempts of that record.
    Recalled {
        born: Timestamp,
        attempts: Vec<Attempt>,
    },
}

impl Event {
    /// The attempt that the event is about; `None` if it is about the order as a whole.
    #[must_use]
    pub const fn attempt(&self) -> Option<u32> {
        match self {
            Self::Submitted { attempt, .. }
            | Self::Polled { attempt, .. }
            | Self::CalledBack { attempt, .. }
            | Self::Stocked { attempt }
            | Self::ReportPassed { attempt, .. } => Some(*attempt),
            _ => None,
        }
    }
}

/// What the engine must do after the next order is committed. All effects except `Submit` may be repeated at any
/// time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Effect {
    Submit { attempt: u32 },
    Poll { attempt: u32, task: String },
    Stock { attempt: u32 },
    Report { attempt: u32, task: String, is_good: bool },
    DeliverWebhook { webhook: u32 },
}
