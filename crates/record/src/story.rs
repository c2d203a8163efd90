//! How the story of an order is written: one flat object for each beat, with its name under `is`.

use crate::answer::{FaultRecord, Trouble};
use crate::error::RecordError;
use crate::fields::{
    Named, Text, digest, mirror, moment, names, need, need_digest, need_moment, need_text, text,
};
use crate::phase::CauseRecord;
use quittance_lifecycle::{Beat, Entry, Key, Signal, Via};

names! { enum BeatName {
    Placed = "placed",
    Rejoined = "rejoined",
    Deferred = "deferred",
    Submitted = "submitted",
    Accepted = "accepted",
    Doubted = "doubted",
    GaveUp = "gave_up",
    Faulted = "faulted",
    Retried = "retried",
    Held = "held",
    Released = "released",
    Solved = "solved",
    CameLate = "came_late",
    TooOld = "too_old",
    Stocked = "stocked",
    Taken = "taken",
    Supplied = "supplied",
    Returned = "returned",
    Spoiled = "spoiled",
    Failed = "failed",
    Buried = "buried",
    Cancelled = "cancelled",
    Replayed = "replayed",
    Dropped = "dropped",
    Reported = "reported",
    Noted = "noted",
    Told = "told",
    NotTold = "not_told",
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
    listener: u32,
    why: Text<'a>,
    from: Text<'a>,
} }

impl<'a> EntryRecord<'a> {
    pub(crate) fn of(entry: &'a Entry) -> Self {
        let Entry { at, beat } = entry;
        Self { at: moment(*at), ..Self::of_beat(beat) }
    }

    fn of_beat(beat: &'a Beat) -> Self {
        let named = |name: BeatName| Self { is: name.text(), ..Self::default() };
        let about = |name: BeatName, attempt: &u32| Self { attempt: Some(*attempt), ..named(name) };
        match beat {
            Beat::Placed { life } => Self { life: Some(*life), ..named(BeatName::Placed) },
            Beat::Rejoined => named(BeatName::Rejoined),
            Beat::Deferred { until } => Self { until: moment(*until), ..named(BeatName::Deferred) },
            Beat::Submitted { attempt } => about(BeatName::Submitted, attempt),
            Beat::Accepted { attempt, task } => {
                Self { task: text(task), ..about(BeatName::Accepted, attempt) }
            }
            Beat::Doubted { attempt, until } => {
                Self { until: moment(*until), ..about(BeatName::Doubted, attempt) }
            }
            Beat::GaveUp { attempt } => about(BeatName::GaveUp, attempt),
            Beat::Faulted { attempt, fault } => {
                Self { fault: Some(FaultRecord::of(fault)), ..about(BeatName::Faulted, attempt) }
            }
            Beat::LeftInDoubt { attempt, evidence } => {
                Self { fault: Some(FaultRecord::of_doubt(evidence)), ..about(BeatName::Faulted, attempt) }
            }
            // The moment of the retry is written as `until`, because `at` is the moment of the entry.
            Beat::Retried { class, number, at } => Self {
                class: class.text(),
                number: Some(*number),
                until: moment(*at),
                ..named(BeatName::Retried)
            },
            Beat::Held => named(BeatName::Held),
            Beat::Released => named(BeatName::Released),
            Beat::Solved { attempt, via } => Self { via: via.text(), ..about(BeatName::Solved, attempt) },
            Beat::CameLate { attempt } => about(BeatName::CameLate, attempt),
            Beat::TooOld { attempt } => about(BeatName::TooOld, attempt),
            Beat::Stocked { attempt } => about(BeatName::Stocked, attempt),
            Beat::Taken => named(BeatName::Taken),
            Beat::Supplied { from } => Self { from: digest(from.0), ..named(BeatName::Supplied) },
            Beat::Returned => named(BeatName::Returned),
            Beat::Noted { text: note } => Self { why: text(note), ..named(BeatName::Noted) },
            Beat::Spoiled => named(BeatName::Spoiled),
            Beat::Failed => named(BeatName::Failed),
            Beat::Buried { cause } => {
                Self { cause: Some(CauseRecord::of_death(cause)), ..named(BeatName::Buried) }
            }
            Beat::Cancelled => named(BeatName::Cancelled),
            Beat::Replayed => named(BeatName::Replayed),
            Beat::Dropped => named(BeatName::Dropped),
            Beat::Reported { attempt, is_good } => {
                Self { is_good: Some(*is_good), ..about(BeatName::Reported, attempt) }
            }
            Beat::Told { listener } => Self { listener: Some(*listener), ..named(BeatName::Told) },
            Beat::NotTold { listener, why } => {
                Self { listener: Some(*listener), why: text(why), ..named(BeatName::NotTold) }
            }
            Beat::PutBack => named(BeatName::PutBack),
            Beat::Recalled { attempt } => about(BeatName::Recalled, attempt),
        }
    }

    pub(crate) fn read(self) -> Result<Entry, RecordError> {
        Ok(Entry { at: need_moment(self.at, "at")?, beat: self.beat()? })
    }

    fn beat(self) -> Result<Beat, RecordError> {
        let attempt = || need(self.attempt, "attempt");
        let until = || need_moment(self.until, "until");
        Ok(match BeatName::read(self.is, "is")? {
            BeatName::Placed => Beat::Placed { life: need(self.life, "life")? },
            BeatName::Rejoined => Beat::Rejoined,
            BeatName::Deferred => Beat::Deferred { until: until()? },
            BeatName::Submitted => Beat::Submitted { attempt: attempt()? },
            BeatName::Accepted => Beat::Accepted { attempt: attempt()?, task: need_text(self.task, "task")? },
            BeatName::Doubted => Beat::Doubted { attempt: attempt()?, until: until()? },
            BeatName::GaveUp => Beat::GaveUp { attempt: attempt()? },
            BeatName::Faulted => match (attempt()?, FaultRecord::read_either(self.fault)?) {
                (attempt, Trouble::Fault(fault)) => Beat::Faulted { attempt, fault },
                (attempt, Trouble::Doubt(evidence)) => Beat::LeftInDoubt { attempt, evidence },
            },
            BeatName::Retried => Beat::Retried {
                class: Signal::read(self.class, "class")?,
                number: need(self.number, "number")?,
                at: until()?,
            },
            BeatName::Held => Beat::Held,
            BeatName::Released => Beat::Released,
            BeatName::Solved => Beat::Solved { attempt: attempt()?, via: Via::read(self.via, "via")? },
            BeatName::CameLate => Beat::CameLate { attempt: attempt()? },
            BeatName::TooOld => Beat::TooOld { attempt: attempt()? },
            BeatName::Stocked => Beat::Stocked { attempt: attempt()? },
            BeatName::Taken => Beat::Taken,
            BeatName::Supplied => Beat::Supplied { from: Key(need_digest(self.from, "from")?) },
            BeatName::Returned => Beat::Returned,
            BeatName::Noted => Beat::Noted { text: need_text(self.why, "why")? },
            BeatName::Spoiled => Beat::Spoiled,
            BeatName::Failed => Beat::Failed,
            BeatName::Buried => Beat::Buried { cause: CauseRecord::read_death(self.cause)? },
            BeatName::Cancelled => Beat::Cancelled,
            BeatName::Replayed => Beat::Replayed,
            BeatName::Dropped => Beat::Dropped,
            BeatName::Reported => {
                Beat::Reported { attempt: attempt()?, is_good: need(self.is_good, "is_good")? }
            }
            BeatName::Told => Beat::Told { listener: need(self.listener, "listener")? },
            BeatName::NotTold => {
                Beat::NotTold { listener: need(self.listener, "listener")?, why: need_text(self.why, "why")? }
            }
            BeatName::PutBack => Beat::PutBack,
            BeatName::Recalled => Beat::Recalled { attempt: attempt()? },
        })
    }
}
