//! How one attempt is written: its progress under `is`, flat beside its number, so that it reads as one line.

use crate::answer::AnswerRecord;
use crate::attempt_account::AccountRecord;
use crate::budget_records::DrawRecord;
use crate::error::{RecordError, Within};
use crate::fields::{
    NamedVariant, Text, digest, mirror, moment, names, need, need_moment, need_text, read_key, text,
};
use crate::follow_up::ReportRecord;
use quittance_lifecycle::{Attempt, Money, Progress, Timestamp};

names! { enum ProgressName {
    Sent = "sent",
    Solving = "solving",
    Trailing = "trailing",
    GivenUp = "given_up",
    Faulted = "faulted",
    Answered = "answered",
    Surplus = "surplus",
} }

mirror! { AttemptRecord<'a> {
    number: u32,
    sent: u64,
    unsolved_at: u64,
    accepted: bool,
    is: Text<'a>,
    task: Text<'a>,
    poll_at: u64,
    counted: bool,
    since: u64,
    answer: AnswerRecord<'a>,
    report: ReportRecord<'a>,
    made_for: Text<'a>,
    cost_micros: u64,
    unpriced_since: u64,
    former_born: u64,
    former_number: u32,
    callback_address: u32,
    account: AccountRecord<'a>,
    drawn: DrawRecord<'a>,
} }

impl<'a> AttemptRecord<'a> {
    pub(crate) fn of(attempt: &'a Attempt) -> Self {
        let Attempt {
            number,
            sent,
            unsolved_at,
            accepted,
            progress,
            task,
            report,
            made_for,
            cost,
            unpriced_since,
            former,
            callback_address,
            account,
            drawn,
        } = attempt;
        let written = Self::of_progress(progress);
        Self {
            number: Some(*number),
            sent: moment(*sent),
            unsolved_at: moment(*unsolved_at),
            accepted: Some(*accepted),
            // The name of a task in flight stands with its progress, in the same place.
            task: written.task.or_else(|| task.as_deref().and_then(text)),
            report: report.as_ref().map(ReportRecord::of),
            made_for: made_for.and_then(|key| digest(key.0)),
            cost_micros: cost.map(|Money(micros)| micros),
            unpriced_since: unpriced_since.and_then(moment),
            former_born: former.and_then(|(born, _)| moment(born)),
            former_number: former.map(|(_, number)| number),
            callback_address: *callback_address,
            account: account.as_ref().map(AccountRecord::of),
            drawn: drawn.as_ref().map(DrawRecord::of),
            ..written
        }
    }

    fn of_progress(progress: &'a Progress) -> Self {
        let named = |name: ProgressName| Self { is: name.text(), ..Self::default() };
        match progress {
            Progress::Sent => named(ProgressName::Sent),
            Progress::Solving { task } => Self { task: text(task), ..named(ProgressName::Solving) },
            Progress::Trailing { task, poll_at, counted } => Self {
                task: text(task),
                poll_at: moment(*poll_at),
                counted: counted.then_some(true),
                ..named(ProgressName::Trailing)
            },
            Progress::GivenUp { counted } => Self { counted: Some(*counted), ..named(ProgressName::GivenUp) },
            Progress::Faulted => named(ProgressName::Faulted),
            Progress::Answered => named(ProgressName::Answered),
            Progress::Surplus { answer, since } => Self {
                answer: Some(AnswerRecord::of(answer)),
                since: moment(*since),
                ..named(ProgressName::Surplus)
            },
        }
    }

    /// The task id of an attempt that is over. In flight, the id belongs to the progress.
    fn task_if_over(&self) -> Option<String> {
        let is_in_flight = matches!(self.is.as_deref(), Some("solving" | "trailing"));
        self.task.as_deref().filter(|_| !is_in_flight).map(str::to_owned)
    }

    pub(crate) fn read(mut self) -> Result<Attempt, RecordError> {
        Ok(Attempt {
            number: need(self.number, "number")?,
            sent: need_moment(self.sent, "sent")?,
            unsolved_at: need_moment(self.unsolved_at, "unsolved_at")?,
            accepted: need(self.accepted, "accepted")?,
            task: self.task_if_over(),
            made_for: read_key(self.made_for.take(), "made_for")?,
            report: self.report.take().map(ReportRecord::read).transpose()?,
            cost: self.cost_micros.map(Money),
            unpriced_since: self.unpriced_since.map(Timestamp::from_millis),
            former: self.former_born.map(Timestamp::from_millis).zip(self.former_number),
            callback_address: self.callback_address,
            account: self.account.take().map(AccountRecord::read).transpose().within("account")?,
            drawn: self.drawn.take().map(DrawRecord::read).transpose().within("drawn")?,
            progress: self.progress()?,
        })
    }

    fn progress(self) -> Result<Progress, RecordError> {
        Ok(match ProgressName::read(self.is, "is")? {
            ProgressName::Sent => Progress::Sent,
            ProgressName::Solving => Progress::Solving { task: need_text(self.task, "task")? },
            ProgressName::Trailing => Progress::Trailing {
                task: need_text(self.task, "task")?,
                poll_at: need_moment(self.poll_at, "poll_at")?,
                counted: self.counted.unwrap_or(false),
            },
            ProgressName::GivenUp => Progress::GivenUp { counted: need(self.counted, "counted")? },
            ProgressName::Faulted => Progress::Faulted,
            ProgressName::Answered => Progress::Answered,
            ProgressName::Surplus => Progress::Surplus {
                answer: AnswerRecord::read(self.answer)?,
                since: need_moment(self.since, "since")?,
            },
        })
    }
}
