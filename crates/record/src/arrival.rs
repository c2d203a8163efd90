//! How an event for an order is written while the order itself cannot be written.

use crate::VERSION;
use crate::answer::{AnswerRecord, DeliveryRecord, FaultRecord, SignalRecord};
use crate::attempt::AttemptRecord;
use crate::attempt_account::RouteRecord;
use crate::error::{RecordError, Within};
use crate::fields::{
    NamedVariant, Text, digest, mirror, moment, names, need, need_digest, need_moment, need_span, need_stamp,
    need_text, parse, span, stamp, text, write,
};
use crate::order::read_attempts;
use crate::receipt::ReceiptRecord;
use quittance_lifecycle::{
    CallbackResult, DeliveryOutcome, Event, Evidence, Fault, FaultClass, Key, PollOutcome, ReportOutcome,
    SubmitOutcome,
};
use quittance_ports::IncomingEvent;
use std::borrow::Cow;

mirror! { IncomingEventRecord<'a> { v: u64, key: Text<'a>, born: u64, target: Text<'a>, event: EventRecord<'a> } }

#[must_use]
pub fn encode_incoming(arrival: &IncomingEvent) -> Vec<u8> {
    let IncomingEvent { key, born, target, event } = arrival;
    write(&IncomingEventRecord {
        v: Some(VERSION),
        key: digest(key.0),
        born: moment(*born),
        target: target.and_then(stamp),
        event: Some(EventRecord::of(event)),
    })
}

pub fn decode_incoming(bytes: &[u8]) -> Result<IncomingEvent, RecordError> {
    let record: IncomingEventRecord<'_> = parse(bytes)?;
    Ok(IncomingEvent {
        key: Key(need_digest(record.key, "key")?),
        born: need_moment(record.born, "born")?,
        target: record.target.map(|target| need_stamp(Some(target), "target")).transpose()?,
        event: need(record.event, "event")?.read().within("event")?,
    })
}

names! { enum EventName {
    Woken = "woken",
    Submitted = "submitted",
    Polled = "polled",
    CalledBack = "called_back",
    Stocked = "stocked",
    Claimed = "claimed",
    ServedFromStock = "served_from_stock",
    Returned = "returned",
    HandedOver = "handed_over",
    Cancelled = "cancelled",
    Replayed = "replayed",
    ReplayedAfterOutage = "replayed_after_outage",
    Dropped = "dropped",
    Noted = "noted",
    Released = "released",
    Reported = "reported",
    ReportPassed = "report_passed",
    WebhookAdded = "webhook_added",
    WebhookTried = "webhook_tried",
    PutBack = "put_back",
    Lost = "lost",
    Recalled = "recalled",
} }

mirror! { EventRecord<'a> {
    is: Text<'a>,
    stamp: Text<'a>,
    route: RouteRecord<'a>,
    attempt: u32,
    asked: u64,
    task: Text<'a>,
    outcome: OutcomeRecord<'a>,
    by: Text<'a>,
    min_life_ms: u64,
    is_good: bool,
    url: Text<'a>,
    dialect: Text<'a>,
    webhook: u32,
    from: Text<'a>,
    to: Text<'a>,
    answer: AnswerRecord<'a>,
    made: AttemptRecord<'a>,
    text: Text<'a>,
    until: u64,
    born: u64,
    attempts: Vec<AttemptRecord<'a>>,
    receipt: ReceiptRecord,
} }

impl<'a> EventRecord<'a> {
    fn of(event: &'a Event) -> Self {
        let named = |name: EventName| Self { is: name.text(), ..Self::default() };
        let about = |name: EventName, attempt: &u32| Self { attempt: Some(*attempt), ..named(name) };
        match event {
            Event::Woken { stamp: number, route } => {
                Self { stamp: stamp(*number), route: Some(RouteRecord::of(route)), ..named(EventName::Woken) }
            }
            Event::Submitted { attempt, outcome } => Self {
                outcome: Some(OutcomeRecord::of_submit(outcome)),
                ..about(EventName::Submitted, attempt)
            },
            Event::Polled { attempt, asked, outcome } => Self {
                asked: moment(*asked),
                outcome: Some(OutcomeRecord::of_poll(outcome)),
                ..about(EventName::Polled, attempt)
            },
            Event::CalledBack { attempt, task, word, receipt } => Self {
                task: task.as_deref().and_then(text),
                receipt: receipt.as_ref().map(ReceiptRecord::of),
                outcome: Some(OutcomeRecord::of_word(word)),
                ..about(EventName::CalledBack, attempt)
            },
            Event::Stocked { attempt } => about(EventName::Stocked, attempt),
            Event::Claimed { by, min_life } => {
                Self { by: digest(by.0), min_life_ms: span(*min_life), ..named(EventName::Claimed) }
            }
            Event::ServedFromStock { by, from, answer, attempt } => Self {
                by: digest(by.0),
                from: digest(from.0),
                answer: Some(AnswerRecord::of(answer)),
                made: Some(AttemptRecord::of(attempt)),
                ..named(EventName::ServedFromStock)
            },
            Event::Returned { by } => Self { by: digest(by.0), ..named(EventName::Returned) },
            Event::HandedOver { by, to } => {
                Self { by: digest(by.0), to: digest(to.0), ..named(EventName::HandedOver) }
            }
            Event::Cancelled => named(EventName::Cancelled),
            Event::Replayed => named(EventName::Replayed),
            Event::ReplayedAfterOutage { provider, died_since } => Self {
                text: text(provider),
                until: moment(*died_since),
                ..named(EventName::ReplayedAfterOutage)
            },
            Event::Dropped => named(EventName::Dropped),
            Event::Noted { text: note } => Self { text: text(note), ..named(EventName::Noted) },
            Event::Released => named(EventName::Released),
            Event::Reported { is_good } => Self { is_good: Some(*is_good), ..named(EventName::Reported) },
            Event::ReportPassed { attempt, outcome } => Self {
                outcome: Some(OutcomeRecord::of_report(outcome)),
                ..about(EventName::ReportPassed, attempt)
            },
            Event::WebhookAdded { url, dialect } => {
                Self { url: text(url), dialect: text(dialect), ..named(EventName::WebhookAdded) }
            }
            Event::WebhookTried { webhook, outcome } => Self {
                webhook: Some(*webhook),
                outcome: Some(OutcomeRecord::of_tell(outcome)),
                ..named(EventName::WebhookTried)
            },
            Event::PutBack { others_by } => Self { until: moment(*others_by), ..named(EventName::PutBack) },
            Event::Lost => named(EventName::Lost),
            Event::Recalled { born, attempts } => Self {
                born: moment(*born),
                attempts: Some(attempts.iter().map(AttemptRecord::of).collect()),
                ..named(EventName::Recalled)
            },
        }
    }

    fn read(self) -> Result<Event, RecordError> {
        let attempt = || need(self.attempt, "attempt");
        Ok(match EventName::read(self.is, "is")? {
            EventName::Woken => Event::Woken {
                stamp: need_stamp(self.stamp, "stamp")?,
                route: need(self.route, "route")?.read().within("route")?,
            },
            EventName::Submitted => Event::Submitted {
                attempt: attempt()?,
                outcome: need(self.outcome, "outcome")?.read_submit().within("outcome")?,
            },
            EventName::Polled => Event::Polled {
                attempt: attempt()?,
                asked: need_moment(self.asked, "asked")?,
                outcome: need(self.outcome, "outcome")?.read_poll().within("outcome")?,
            },
            EventName::CalledBack => Event::CalledBack {
                attempt: attempt()?,
                task: self.task.map(Cow::into_owned),
                word: need(self.outcome, "outcome")?.read_word().within("outcome")?,
                receipt: self.receipt.map(|record| record.read().within("receipt")).transpose()?,
            },
            EventName::Stocked => Event::Stocked { attempt: attempt()? },
            EventName::Claimed => Event::Claimed {
                by: Key(need_digest(self.by, "by")?),
                min_life: need_span(self.min_life_ms, "min_life_ms")?,
            },
            EventName::ServedFromStock => Event::ServedFromStock {
                by: Key(need_digest(self.by, "by")?),
                from: Key(need_digest(self.from, "from")?),
                answer: AnswerRecord::read(self.answer)?,
                attempt: Box::new(need(self.made, "made")?.read().within("made")?),
            },
            EventName::Returned => Event::Returned { by: Key(need_digest(self.by, "by")?) },
            EventName::HandedOver => Event::HandedOver {
                by: Key(need_digest(self.by, "by")?),
                to: Key(need_digest(self.to, "to")?),
            },
            EventName::Cancelled => Event::Cancelled,
            EventName::Replayed => Event::Replayed,
            EventName::ReplayedAfterOutage => Event::ReplayedAfterOutage {
                provider: need_text(self.text, "text")?,
                died_since: need_moment(self.until, "until")?,
            },
            EventName::Dropped => Event::Dropped,
            EventName::Noted => Event::Noted { text: need_text(self.text, "text")? },
            EventName::Released => Event::Released,
            EventName::Reported => Event::Reported { is_good: need(self.is_good, "is_good")? },
            EventName::ReportPassed => Event::ReportPassed {
                attempt: attempt()?,
                outcome: need(self.outcome, "outcome")?.read_report().within("outcome")?,
            },
            EventName::WebhookAdded => Event::WebhookAdded {
                url: need_text(self.url, "url")?,
                dialect: need_text(self.dialect, "dialect")?,
            },
            EventName::WebhookTried => Event::WebhookTried {
                webhook: need(self.webhook, "webhook")?,
                outcome: need(self.outcome, "outcome")?.read_tell().within("outcome")?,
            },
            EventName::PutBack => Event::PutBack { others_by: need_moment(self.until, "until")? },
            EventName::Lost => Event::Lost,
            EventName::Recalled => Event::Recalled {
                born: need_moment(self.born, "born")?,
                attempts: read_attempts(need(self.attempts, "attempts")?)?,
            },
        })
    }
}

names! { enum SubmitName {
    Accepted = "accepted", Answered = "answered", Rejected = "rejected", InDoubt = "in_doubt",
} }

names! { enum PollName {
    Pending = "pending",
    Answered = "answered",
    Faulted = "faulted",
    NoSuchTask = "no_such_task",
    NoReply = "no_reply",
} }

names! { enum ReportName { Accepted = "accepted", Refused = "refused", NoReply = "no_reply" } }

names! { enum DeliveryName { Delivered = "delivered", NotDelivered = "not_delivered", SwitchedOff = "switched_off" } }

names! { enum CallbackResultName { Answered = "answered", Faulted = "faulted" } }

mirror! {
    /// The outcome of a submit or a poll, or the content of a callback.
    OutcomeRecord<'a> {
        is: Text<'a>,
        task: Text<'a>,
        delivery: DeliveryRecord<'a>,
        fault: FaultRecord<'a>,
        why: Text<'a>,
    }
}

impl<'a> OutcomeRecord<'a> {
    fn of_submit(outcome: &'a SubmitOutcome) -> Self {
        let named = |name: SubmitName| Self { is: name.text(), ..Self::default() };
        match outcome {
            SubmitOutcome::Accepted { task } => Self { task: text(task), ..named(SubmitName::Accepted) },
            SubmitOutcome::Answered(delivery) => {
                Self { delivery: Some(DeliveryRecord::of(delivery)), ..named(SubmitName::Answered) }
            }
            SubmitOutcome::Rejected(fault) => {
                Self { fault: Some(FaultRecord::of(fault)), ..named(SubmitName::Rejected) }
            }
            SubmitOutcome::InDoubt(evidence) => {
                let seen = (*evidence != Evidence::default()).then(|| FaultRecord::of_doubt(evidence));
                Self { fault: seen, ..named(SubmitName::InDoubt) }
            }
        }
    }

    fn read_submit(self) -> Result<SubmitOutcome, RecordError> {
        Ok(match SubmitName::read(self.is, "is")? {
            SubmitName::Accepted => SubmitOutcome::Accepted { task: need_text(self.task, "task")? },
            SubmitName::Answered => SubmitOutcome::Answered(DeliveryRecord::read(self.delivery)?),
            // Files of before have doubts under this name, too.
            SubmitName::Rejected => match FaultRecord::read_either(self.fault)? {
                SignalRecord::Fault(fault) => SubmitOutcome::Rejected(fault),
                SignalRecord::Doubt(evidence) => SubmitOutcome::InDoubt(evidence),
            },
            SubmitName::InDoubt => match self.fault {
                None => SubmitOutcome::InDoubt(Evidence::default()),
                record => match FaultRecord::read_either(record)? {
                    SignalRecord::Doubt(evidence) => SubmitOutcome::InDoubt(evidence),
                    SignalRecord::Fault(_) => {
                        return Err(RecordError::malformed("fault", "what was seen of an attempt in doubt"));
                    }
                },
            },
        })
    }

    fn of_poll(outcome: &'a PollOutcome) -> Self {
        let named = |name: PollName| Self { is: name.text(), ..Self::default() };
        match outcome {
            PollOutcome::Pending => named(PollName::Pending),
            PollOutcome::Answered(delivery) => {
                Self { delivery: Some(DeliveryRecord::of(delivery)), ..named(PollName::Answered) }
            }
            PollOutcome::Faulted(fault) => {
                Self { fault: Some(FaultRecord::of(fault)), ..named(PollName::Faulted) }
            }
            PollOutcome::NoSuchTask(fault) => {
                Self { fault: Some(FaultRecord::of(fault)), ..named(PollName::NoSuchTask) }
            }
            PollOutcome::NoReply => named(PollName::NoReply),
        }
    }

    fn read_poll(self) -> Result<PollOutcome, RecordError> {
        Ok(match PollName::read(self.is, "is")? {
            PollName::Pending => PollOutcome::Pending,
            PollName::Answered => PollOutcome::Answered(DeliveryRecord::read(self.delivery)?),
            PollName::Faulted => match FaultRecord::read_either(self.fault)? {
                SignalRecord::Fault(fault) => PollOutcome::Faulted(fault),
                // Files of before may say so.
                SignalRecord::Doubt(_) => PollOutcome::NoReply,
            },
            PollName::NoSuchTask => match FaultRecord::read_either(self.fault)? {
                SignalRecord::Fault(fault) => PollOutcome::NoSuchTask(fault),
                SignalRecord::Doubt(_) => PollOutcome::NoReply,
            },
            PollName::NoReply => PollOutcome::NoReply,
        })
    }

    fn of_report(outcome: &'a ReportOutcome) -> Self {
        let named = |name: ReportName| Self { is: name.text(), ..Self::default() };
        match outcome {
            ReportOutcome::Accepted => named(ReportName::Accepted),
            ReportOutcome::Refused { code } => Self { why: text(code), ..named(ReportName::Refused) },
            ReportOutcome::NoReply => named(ReportName::NoReply),
        }
    }

    fn read_report(self) -> Result<ReportOutcome, RecordError> {
        Ok(match ReportName::read(self.is, "is")? {
            ReportName::Accepted => ReportOutcome::Accepted,
            ReportName::Refused => ReportOutcome::Refused { code: need_text(self.why, "why")? },
            ReportName::NoReply => ReportOutcome::NoReply,
        })
    }

    fn of_tell(outcome: &'a DeliveryOutcome) -> Self {
        let named = |name: DeliveryName| Self { is: name.text(), ..Self::default() };
        match outcome {
            DeliveryOutcome::Delivered => named(DeliveryName::Delivered),
            DeliveryOutcome::SwitchedOff { why } => {
                Self { why: text(why), ..named(DeliveryName::SwitchedOff) }
            }
            DeliveryOutcome::NotDelivered { why } => {
                Self { why: text(why), ..named(DeliveryName::NotDelivered) }
            }
        }
    }

    fn read_tell(self) -> Result<DeliveryOutcome, RecordError> {
        Ok(match DeliveryName::read(self.is, "is")? {
            DeliveryName::Delivered => DeliveryOutcome::Delivered,
            DeliveryName::SwitchedOff => DeliveryOutcome::SwitchedOff { why: need_text(self.why, "why")? },
            DeliveryName::NotDelivered => DeliveryOutcome::NotDelivered { why: need_text(self.why, "why")? },
        })
    }

    fn of_word(word: &'a CallbackResult) -> Self {
        let named = |name: CallbackResultName| Self { is: name.text(), ..Self::default() };
        match word {
            CallbackResult::Answered(delivery) => {
                Self { delivery: Some(DeliveryRecord::of(delivery)), ..named(CallbackResultName::Answered) }
            }
            CallbackResult::Faulted(fault) => {
                Self { fault: Some(FaultRecord::of(fault)), ..named(CallbackResultName::Faulted) }
            }
        }
    }

    fn read_word(self) -> Result<CallbackResult, RecordError> {
        Ok(match CallbackResultName::read(self.is, "is")? {
            CallbackResultName::Answered => CallbackResult::Answered(DeliveryRecord::read(self.delivery)?),
            CallbackResultName::Faulted => {
                CallbackResult::Faulted(match FaultRecord::read_either(self.fault)? {
                    SignalRecord::Fault(fault) => fault,
                    // Files of before may say so. As then, it says nothing final.
                    SignalRecord::Doubt(evidence) => Fault::new(FaultClass::UnlistedCode, evidence.summary),
                })
            }
        })
    }
}
