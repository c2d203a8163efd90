//! How the phase of an order is written: its name under `is`, and beside that the values of the phase.

use crate::answer::{AnswerRecord, FaultRecord, SignalRecord};
use crate::budget_records::ShortageRecord;
use crate::error::{RecordError, Within};
use crate::fields::{
    NamedVariant, Text, digest, mirror, moment, names, need, need_digest, need_moment, need_span, need_stamp,
    span, stamp, unless_default,
};
use quittance_lifecycle::{DeadCause, FailCause, Key, Phase};

names! { enum PhaseName {
    Queued = "queued",
    Submitting = "submitting",
    Solving = "solving",
    InDoubt = "in_doubt",
    Solved = "solved",
    Claimed = "claimed",
    Expired = "expired",
    Failed = "failed",
    Dead = "dead",
} }

mirror! { PhaseRecord<'a> {
    is: Text<'a>,
    until: u64,
    held: bool,
    attempt: u32,
    stamp: Text<'a>,
    poll_at: u64,
    misses: u8,
    at: u64,
    by: Text<'a>,
    cause: CauseRecord<'a>,
    answer: AnswerRecord<'a>,
} }

impl<'a> PhaseRecord<'a> {
    pub(crate) fn of(phase: &'a Phase) -> Self {
        let named = |name: PhaseName| Self { is: name.text(), ..Self::default() };
        match phase {
            Phase::Queued { until, held } => {
                Self { until: moment(*until), held: Some(*held), ..named(PhaseName::Queued) }
            }
            Phase::Submitting { attempt, stamp: number, until } => Self {
                attempt: Some(*attempt),
                stamp: stamp(*number),
                until: moment(*until),
                ..named(PhaseName::Submitting)
            },
            Phase::Solving { attempt, poll_at, misses } => Self {
                attempt: Some(*attempt),
                poll_at: moment(*poll_at),
                misses: unless_default(*misses),
                ..named(PhaseName::Solving)
            },
            Phase::InDoubt { attempt, until } => {
                Self { attempt: Some(*attempt), until: moment(*until), ..named(PhaseName::InDoubt) }
            }
            Phase::Solved { answer, at } => {
                Self { answer: Some(AnswerRecord::of(answer)), at: moment(*at), ..named(PhaseName::Solved) }
            }
            Phase::Claimed { answer, by, at } => Self {
                answer: Some(AnswerRecord::of(answer)),
                by: digest(by.0),
                at: moment(*at),
                ..named(PhaseName::Claimed)
            },
            Phase::Expired { at } => Self { at: moment(*at), ..named(PhaseName::Expired) },
            Phase::Failed { cause, at } => Self {
                cause: Some(CauseRecord::of_failure(cause)),
                at: moment(*at),
                ..named(PhaseName::Failed)
            },
            Phase::Dead { cause, at } => {
                Self { cause: Some(CauseRecord::of_death(cause)), at: moment(*at), ..named(PhaseName::Dead) }
            }
        }
    }

    pub(crate) fn read(raw: Option<Self>) -> Result<Phase, RecordError> {
        let raw = need(raw, "phase")?;
        raw.parts().within("phase")
    }

    fn parts(self) -> Result<Phase, RecordError> {
        let until = || need_moment(self.until, "until");
        let at = || need_moment(self.at, "at");
        let attempt = || need(self.attempt, "attempt");
        Ok(match PhaseName::read(self.is, "is")? {
            PhaseName::Queued => Phase::Queued { until: until()?, held: need(self.held, "held")? },
            PhaseName::Submitting => Phase::Submitting {
                attempt: attempt()?,
                stamp: need_stamp(self.stamp, "stamp")?,
                until: until()?,
            },
            PhaseName::Solving => Phase::Solving {
                attempt: attempt()?,
                poll_at: need_moment(self.poll_at, "poll_at")?,
                misses: self.misses.unwrap_or_default(),
            },
            PhaseName::InDoubt => Phase::InDoubt { attempt: attempt()?, until: until()? },
            PhaseName::Solved => Phase::Solved { answer: AnswerRecord::read(self.answer)?, at: at()? },
            PhaseName::Claimed => Phase::Claimed {
                answer: AnswerRecord::read(self.answer)?,
                by: Key(need_digest(self.by, "by")?),
                at: at()?,
            },
            PhaseName::Expired => Phase::Expired { at: at()? },
            PhaseName::Failed => Phase::Failed { cause: CauseRecord::read_failure(self.cause)?, at: at()? },
            PhaseName::Dead => Phase::Dead { cause: CauseRecord::read_death(self.cause)?, at: at()? },
        })
    }
}

names! { enum FailName { Rejected = "rejected", Cancelled = "cancelled" } }

names! { enum DeadName {
    Spent = "spent", Deadline = "deadline", NotTaken = "not_taken", TooLate = "too_late", Doubt = "in_doubt",
    StoreForgot = "store_forgot", NoBudget = "no_budget",
} }

mirror! {
    /// Why an order failed, or why it is a dead letter.
    CauseRecord<'a> { is: Text<'a>, fault: FaultRecord<'a>, left_ms: u64, needs_ms: u64, shortage: ShortageRecord<'a> }
}

impl<'a> CauseRecord<'a> {
    fn of_failure(cause: &'a FailCause) -> Self {
        match cause {
            FailCause::Rejected(fault) => {
                Self { is: FailName::Rejected.text(), fault: Some(FaultRecord::of(fault)), ..Self::default() }
            }
            FailCause::Cancelled => Self { is: FailName::Cancelled.text(), ..Self::default() },
        }
    }

    fn read_failure(raw: Option<Self>) -> Result<FailCause, RecordError> {
        let raw = need(raw, "cause")?;
        FailName::read(raw.is, "is")
            .and_then(|name| match name {
                FailName::Rejected => FaultRecord::read(raw.fault).map(FailCause::Rejected),
                FailName::Cancelled => Ok(FailCause::Cancelled),
            })
            .within("cause")
    }

    pub(crate) fn of_death(cause: &'a DeadCause) -> Self {
        let named = |name: DeadName| Self { is: name.text(), ..Self::default() };
        match cause {
            DeadCause::Spent(fault) => Self { fault: Some(FaultRecord::of(fault)), ..named(DeadName::Spent) },
            DeadCause::DoubtsSpent(evidence) => {
                Self { fault: Some(FaultRecord::of_doubt(evidence)), ..named(DeadName::Spent) }
            }
            DeadCause::Deadline => named(DeadName::Deadline),
            DeadCause::NotTaken(fault) => {
                Self { fault: fault.as_ref().map(FaultRecord::of), ..named(DeadName::NotTaken) }
            }
            DeadCause::TooLate { left, needs } => {
                Self { left_ms: span(*left), needs_ms: span(*needs), ..named(DeadName::TooLate) }
            }
            DeadCause::NoBudget(shortage) => {
                Self { shortage: Some(ShortageRecord::of(shortage)), ..named(DeadName::NoBudget) }
            }
            DeadCause::Doubt => named(DeadName::Doubt),
            DeadCause::StoreForgot => named(DeadName::StoreForgot),
        }
    }

    pub(crate) fn read_death(raw: Option<Self>) -> Result<DeadCause, RecordError> {
        let raw = need(raw, "cause")?;
        DeadName::read(raw.is, "is")
            .and_then(|name| match name {
                DeadName::Spent => Ok(match FaultRecord::read_either(raw.fault)? {
                    SignalRecord::Fault(fault) => DeadCause::Spent(fault),
                    SignalRecord::Doubt(evidence) => DeadCause::DoubtsSpent(evidence),
                }),
                DeadName::Deadline => Ok(DeadCause::Deadline),
                DeadName::NotTaken => {
                    let fault = raw.fault.map(|fault| FaultRecord::read(Some(fault))).transpose()?;
                    Ok(DeadCause::NotTaken(fault))
                }
                DeadName::TooLate => Ok(DeadCause::TooLate {
                    left: need_span(raw.left_ms, "left_ms")?,
                    needs: need_span(raw.needs_ms, "needs_ms")?,
                }),
                DeadName::NoBudget => {
                    need(raw.shortage, "shortage")?.read().within("shortage").map(DeadCause::NoBudget)
                }
                DeadName::Doubt => Ok(DeadCause::Doubt),
                DeadName::StoreForgot => Ok(DeadCause::StoreForgot),
            })
            .within("cause")
    }
}
