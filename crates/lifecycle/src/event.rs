//! What can happen to an order, and what a decision asks the engine to do. A past participle is an event, an
//! imperative an effect.

use crate::answer::{Answer, ProviderAnswer};
use crate::fault::{Evidence, Fault};
use crate::key::Key;
use crate::order::Attempt;
use crate::time::Timestamp;
use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;
use core::time::Duration;

/// What became of a submit. There is no `Result`: the adapter must say whether the provider certainly did not take the
/// task (`Rejected`) or may have taken it (`InDoubt`). Money depends on that one decision, so a [`Fault`] has no class
/// for a doubt: an adapter cannot call a doubt a rejection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SubmitOutcome {
    /// Taken; the provider's name for the task.
    Accepted { task: String },
    /// Taken and solved in the same breath.
    Answered(ProviderAnswer),
    /// Certainly not taken, and why.
    Rejected(Fault),
    /// The provider may have taken the task. Holds what was seen of the call.
    InDoubt(Evidence),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PollOutcome {
    Pending,
    Answered(ProviderAnswer),
    Faulted(Fault),
    /// The question or the reply was lost, or the reply could not be read. Harmless: the task is still there.
    NoReply,
}

/// What became of a report.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReportOutcome {
    /// Counted, now or before.
    Accepted,
    /// The provider will never accept this report. Holds the provider's code.
    Refused { code: String },
    /// The report or the reply to it was lost. The report may be repeated without harm.
    NoReply,
}

/// What became of a call to a webhook.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DeliveryOutcome {
    Delivered,
    /// The webhook did not accept the call; what was observed, for people to read.
    NotDelivered {
        why: String,
    },
}

/// What a callback says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CallbackResult {
    Answered(ProviderAnswer),
    Faulted(Fault),
}

/// A time in which a callback may have come and got no answer from us, so that the provider had to repeat it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Outage {
    pub from: Timestamp,
    pub to: Timestamp,
}

/// When a callback arrived, and every known time before that in which callbacks could not arrive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Receipt {
    pub at: Timestamp,
    pub outages: Vec<Outage>,
}

/// Which way an answer came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Via {
    Submit,
    Callback,
    Poll,
}

/// Whether a submit may go to the provider now. The engine decides this, and the order obeys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Gate {
    /// The submit may go out now.
    Pass,
    ShutUntil(Timestamp),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// The order's timer fired. `stamp` is new each time: after a commit with a lost reply it shows which write
    /// stands.
    Woken {
        stamp: u64,
        gate: Gate,
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
    /// A genuine callback has come. It may bring the provider's task id.
    CalledBack {
        attempt: u32,
        task: Option<String>,
        word: CallbackResult,
        /// `None`: the arrival time is not known, so only what was known before it counts.
        receipt: Option<Receipt>,
    },
    /// The spare answer of this attempt now stands in the stock, as an order of its own.
    Stocked {
        attempt: u32,
    },
    /// An answer from the stock was taken in the [name](crate::Order::claimant) of this order, before anything was
    /// bought for it; and the attempt that it came of.
    ServedFromStock {
        by: Key,
        from: Key,
        answer: Answer,
        attempt: Box<Attempt>,
    },
    /// The order that took the answer no longer needs it.
    Returned {
        by: Key,
    },
    /// A caller claims the answer for itself alone.
    Claimed {
        by: Key,
        min_life: Duration,
    },
    Cancelled,
    /// A person replays a dead letter.
    Replayed,
    /// A person drops a dead letter.
    Dropped,
    /// A person adds a note to the order.
    Noted {
        text: String,
    },
    /// An operator has fixed the provider's account.
    Released,
    /// A caller says whether the answer was any good.
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
    /// The store forgot this order, and a node puts it back as it remembers it. Other nodes may remember
    /// more: nothing is submitted before `others_by`.
    PutBack {
        others_by: Timestamp,
    },
    /// The store has lost the last steps of this order, and no node remembers them.
    Lost,
    /// The store forgot an earlier record of the same order, made at `born`, and these are its attempts.
    Recalled {
        born: Timestamp,
        attempts: Vec<Attempt>,
    },
}

/// What to do once the next order is committed. All effects but `Submit` may be repeated at will.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Effect {
    Submit { attempt: u32 },
    Poll { attempt: u32, task: String },
    Stock { attempt: u32 },
    Report { attempt: u32, task: String, is_good: bool },
    DeliverWebhook { webhook: u32 },
}
