//! How the timeline of an order is written: one flat object for each entry, with its name under `is`.

use crate::answer::{FaultRecord, SignalRecord};
use crate::attempt_account::{PassedOverRecord, read_passed_over, write_passed_over};
use crate::error::RecordError;
use crate::fields::{
    NamedVariant, Text, digest, mirror, moment, names, need, need_digest, need_moment, need_text, text,
};
use crate::phase::CauseRecord;
use quittance_lifecycle::{Key, Priority, Signal, TimelineEntry, TimelineEvent, Via};

names! { enum TimelineEventName {
    Placed = "placed",
    Rejoined = "rejoined",
    Hastened = "hastened",
    Deferred = "deferred",
    Routed = "routed",
    Submitted = "submitted",
    Accepted = "accepted",
    InDoubt = "in_doubt",
    GaveUp = "gave_up",
    Hedged = "hedged",
    Faulted = "faulted",
    Retried = "retried",
    Held = "held",
    Released = "released",
    Solved = "solved",
    CameLate = "came_late",
    TooOld = "too_old",
    Stocked = "stocked",
    Claimed = "claimed",
    ServedFromStock = "served_from_stock",
    Returned = "returned",
    HandedOver = "handed_over",
    Expired = "expired",
    Failed = "failed",
    MovedToDeadLetters = "moved_to_dead_letters",
    Cancelled = "cancelled",
    Replayed = "replayed",
    ReplayedAfterOutage = "replayed_after_outage",
    Dropped = "dropped",
    Reported = "reported",
    Noted = "noted",
    WebhookDelivered = "webhook_delivered",
    WebhookFailed = "webhook_failed",
    PutBack = "put_back",
    Recalled = "recalled",
} }

mirror! { EntryRecord<'a> {
    at: u64,
    is: Text<'a>,
    attempt: u32,
    life: u32,
    task: Text<'a>,
    via: Text<'a>,
    class: Text<'a>,
    number: u8,
    until: u64,
    fault: FaultRecord<'a>,
    cause: CauseRecord<'a>,
    is_good: bool,
    webhook: u32,
    why: Text<'a>,
    from: Text<'a>,
    to: Text<'a>,
    account: Text<'a>,
    priority: Text<'a>,
    passed_over: Vec<PassedOverRecord<'a>>,
} }

impl<'a> EntryRecord<'a> {
    pub(crate) fn of(entry: &'a TimelineEntry) -> Self {
        let TimelineEntry { at, event } = entry;
        Self { at: moment(*at), ..Self::of_beat(event) }
    }

    fn of_beat(event: &'a TimelineEvent) -> Self {
        let named = |name: TimelineEventName| Self { is: name.text(), ..Self::default() };
        let about = |name: TimelineEventName, attempt: &u32| Self { attempt: Some(*attempt), ..named(name) };
        match event {
            TimelineEvent::Placed { life } => Self { life: Some(*life), ..named(TimelineEventName::Placed) },
            TimelineEvent::Rejoined => named(TimelineEventName::Rejoined),
            TimelineEvent::Hastened { priority } => {
                Self { priority: priority.text(), ..named(TimelineEventName::Hastened) }
            }
            TimelineEvent::Deferred { until } => {
                Self { until: moment(*until), ..named(TimelineEventName::Deferred) }
            }
            TimelineEvent::Routed { attempt, to, passed_over } => Self {
                account: text(to),
                passed_over: write_passed_over(passed_over),
                ..about(TimelineEventName::Routed, attempt)
            },
            TimelineEvent::Submitted { attempt } => about(TimelineEventName::Submitted, attempt),
            TimelineEvent::Accepted { attempt, task } => {
                Self { task: text(task), ..about(TimelineEventName::Accepted, attempt) }
            }
            TimelineEvent::InDoubt { attempt, until } => {
                Self { until: moment(*until), ..about(TimelineEventName::InDoubt, attempt) }
            }
            TimelineEvent::GaveUp { attempt } => about(TimelineEventName::GaveUp, attempt),
            TimelineEvent::Hedged { attempt } => about(TimelineEventName::Hedged, attempt),
            TimelineEvent::Faulted { attempt, fault } => {
                Self { fault: Some(FaultRecord::of(fault)), ..about(TimelineEventName::Faulted, attempt) }
            }
            TimelineEvent::LeftInDoubt { attempt, evidence } => Self {
                fault: Some(FaultRecord::of_doubt(evidence)),
                ..about(TimelineEventName::Faulted, attempt)
            },
            // The moment of the retry is written as `until`, because `at` is the moment of the entry.
            TimelineEvent::Retried { class, number, at } => Self {
                class: class.text(),
                number: Some(*number),
                until: moment(*at),
                ..named(TimelineEventName::Retried)
            },
            TimelineEvent::Held => named(TimelineEventName::Held),
            TimelineEvent::Released => named(TimelineEventName::Released),
            TimelineEvent::Solved { attempt, via } => {
                Self { via: via.text(), ..about(TimelineEventName::Solved, attempt) }
            }
            TimelineEvent::CameLate { attempt } => about(TimelineEventName::CameLate, attempt),
            TimelineEvent::TooOld { attempt } => about(TimelineEventName::TooOld, attempt),
            TimelineEvent::Stocked { attempt } => about(TimelineEventName::Stocked, attempt),
            TimelineEvent::Claimed => named(TimelineEventName::Claimed),
            TimelineEvent::ServedFromStock { from } => {
                Self { from: digest(from.0), ..named(TimelineEventName::ServedFromStock) }
            }
            TimelineEvent::Returned => named(TimelineEventName::Returned),
            TimelineEvent::HandedOver { to } => {
                Self { to: digest(to.0), ..named(TimelineEventName::HandedOver) }
            }
            TimelineEvent::Noted { text: note } => {
                Self { why: text(note), ..named(TimelineEventName::Noted) }
            }
            TimelineEvent::Expired => named(TimelineEventName::Expired),
            TimelineEvent::Failed => named(TimelineEventName::Failed),
            TimelineEvent::MovedToDeadLetters { cause } => Self {
                cause: Some(CauseRecord::of_death(cause)),
                ..named(TimelineEventName::MovedToDeadLetters)
            },
            TimelineEvent::Cancelled => named(TimelineEventName::Cancelled),
            TimelineEvent::Replayed => named(TimelineEventName::Replayed),
            TimelineEvent::ReplayedAfterOutage { provider } => {
                Self { account: text(provider), ..named(TimelineEventName::ReplayedAfterOutage) }
            }
            TimelineEvent::Dropped => named(TimelineEventName::Dropped),
            TimelineEvent::Reported { attempt, is_good } => {
                Self { is_good: Some(*is_good), ..about(TimelineEventName::Reported, attempt) }
            }
            TimelineEvent::WebhookDelivered { webhook } => {
                Self { webhook: Some(*webhook), ..named(TimelineEventName::WebhookDelivered) }
            }
            TimelineEvent::WebhookFailed { webhook, why } => {
                Self { webhook: Some(*webhook), why: text(why), ..named(TimelineEventName::WebhookFailed) }
            }
            TimelineEvent::PutBack => named(TimelineEventName::PutBack),
            TimelineEvent::Recalled { attempt } => about(TimelineEventName::Recalled, attempt),
        }
    }

    pub(crate) fn read(self) -> Result<TimelineEntry, RecordError> {
        Ok(TimelineEntry { at: need_moment(self.at, "at")?, event: self.event()? })
    }

    fn event(self) -> Result<TimelineEvent, RecordError> {
        let attempt = || need(self.attempt, "attempt");
        let until = || need_moment(self.until, "until");
        Ok(match TimelineEventName::read(self.is, "is")? {
            TimelineEventName::Placed => TimelineEvent::Placed { life: need(self.life, "life")? },
            TimelineEventName::Rejoined => TimelineEvent::Rejoined,
            TimelineEventName::Hastened => {
                TimelineEvent::Hastened { priority: Priority::read(self.priority, "priority")? }
            }
            TimelineEventName::Deferred => TimelineEvent::Deferred { until: until()? },
            TimelineEventName::Routed => TimelineEvent::Routed {
                attempt: attempt()?,
                to: need_text(self.account, "account")?,
                passed_over: read_passed_over(self.passed_over)?,
            },
            TimelineEventName::Submitted => TimelineEvent::Submitted { attempt: attempt()? },
            TimelineEventName::Accepted => {
                TimelineEvent::Accepted { attempt: attempt()?, task: need_text(self.task, "task")? }
            }
            TimelineEventName::InDoubt => TimelineEvent::InDoubt { attempt: attempt()?, until: until()? },
            TimelineEventName::GaveUp => TimelineEvent::GaveUp { attempt: attempt()? },
            TimelineEventName::Hedged => TimelineEvent::Hedged { attempt: attempt()? },
            TimelineEventName::Faulted => match (attempt()?, FaultRecord::read_either(self.fault)?) {
                (attempt, SignalRecord::Fault(fault)) => TimelineEvent::Faulted { attempt, fault },
                (attempt, SignalRecord::Doubt(evidence)) => TimelineEvent::LeftInDoubt { attempt, evidence },
            },
            TimelineEventName::Retried => TimelineEvent::Retried {
                class: Signal::read(self.class, "class")?,
                number: need(self.number, "number")?,
                at: until()?,
            },
            TimelineEventName::Held => TimelineEvent::Held,
            TimelineEventName::Released => TimelineEvent::Released,
            TimelineEventName::Solved => {
                TimelineEvent::Solved { attempt: attempt()?, via: Via::read(self.via, "via")? }
            }
            TimelineEventName::CameLate => TimelineEvent::CameLate { attempt: attempt()? },
            TimelineEventName::TooOld => TimelineEvent::TooOld { attempt: attempt()? },
            TimelineEventName::Stocked => TimelineEvent::Stocked { attempt: attempt()? },
            TimelineEventName::Claimed => TimelineEvent::Claimed,
            TimelineEventName::ServedFromStock => {
                TimelineEvent::ServedFromStock { from: Key(need_digest(self.from, "from")?) }
            }
            TimelineEventName::Returned => TimelineEvent::Returned,
            TimelineEventName::HandedOver => {
                TimelineEvent::HandedOver { to: Key(need_digest(self.to, "to")?) }
            }
            TimelineEventName::Noted => TimelineEvent::Noted { text: need_text(self.why, "why")? },
            TimelineEventName::Expired => TimelineEvent::Expired,
            TimelineEventName::Failed => TimelineEvent::Failed,
            TimelineEventName::MovedToDeadLetters => {
                TimelineEvent::MovedToDeadLetters { cause: CauseRecord::read_death(self.cause)? }
            }
            TimelineEventName::Cancelled => TimelineEvent::Cancelled,
            TimelineEventName::Replayed => TimelineEvent::Replayed,
            TimelineEventName::ReplayedAfterOutage => {
                TimelineEvent::ReplayedAfterOutage { provider: need_text(self.account, "account")? }
            }
            TimelineEventName::Dropped => TimelineEvent::Dropped,
            TimelineEventName::Reported => {
                TimelineEvent::Reported { attempt: attempt()?, is_good: need(self.is_good, "is_good")? }
            }
            TimelineEventName::WebhookDelivered => {
                TimelineEvent::WebhookDelivered { webhook: need(self.webhook, "webhook")? }
            }
            TimelineEventName::WebhookFailed => TimelineEvent::WebhookFailed {
                webhook: need(self.webhook, "webhook")?,
                why: need_text(self.why, "why")?,
            },
            TimelineEventName::PutBack => TimelineEvent::PutBack,
            TimelineEventName::Recalled => TimelineEvent::Recalled { attempt: attempt()? },
        })
    }
}
