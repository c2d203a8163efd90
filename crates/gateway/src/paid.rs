//! Each attempt of an order that was paid for, or may have been: why it was made, what became of it, and who got its answer. All
//! of it is read from the order's record; a story that was shortened in the middle is said to be.

use quittance_lifecycle::{Attempt, Beat, FaultClass, Key, Money, Order, Phase, Progress, Signal, Timestamp};

/// How far it has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    Answered,
    Solving,
    /// It may have been taken, and nobody knows.
    InDoubt,
    /// It was taken, and is waited for no more.
    GivenUp,
    Faulted,
    /// The order goes on without it, and it is asked for all the same.
    Trailing,
}

impl State {
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Answered => "answered",
            Self::Solving => "solving",
            Self::InDoubt => "in_doubt",
            Self::GivenUp => "given_up",
            Self::Faulted => "faulted",
            Self::Trailing => "trailing",
        }
    }

    /// None of what was certainly not taken: nobody paid for that.
    fn of(attempt: &Attempt) -> Option<Self> {
        Some(match (&attempt.progress, attempt.accepted) {
            (Progress::Answered | Progress::Spare { .. }, _) => Self::Answered,
            (Progress::Solving { .. }, _) => Self::Solving,
            (Progress::Trailing { .. }, _) => Self::Trailing,
            (Progress::Sent | Progress::GivenUp { .. }, false) => Self::InDoubt,
            (Progress::Sent | Progress::GivenUp { .. }, true) => Self::GivenUp,
            (Progress::Faulted, true) => Self::Faulted,
            (Progress::Faulted, false) => return None,
        })
    }
}

pub(crate) const SPOILED: &str = "it spoiled untaken, and is wasted";
/// Why it reached no caller yet.
const UNCOLLECTED: &str = "no caller has been given it yet";

/// Where the answer went.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Who {
    /// Whoever placed the order, and whoever joined it.
    Caller,
    /// Another order, from the shelf.
    Taker(Key),
    /// It stands on the shelf for whoever comes.
    Shelf,
    /// It went to the shelf as an order of its own, which knows more.
    Stock(Key),
    /// Nobody, and why.
    Nobody(&'static str),
}

impl Who {
    pub(crate) fn words(&self, tenant: &str) -> String {
        match self {
            Self::Caller => format!("{tenant}, and whoever joined"),
            Self::Taker(_) => format!("another order of {tenant}, from the shelf"),
            Self::Shelf => "nobody yet: it stands on the shelf".to_owned(),
            Self::Stock(key) => format!("the shelf, as order {}", key.short()),
            Self::Nobody(why) => format!("nobody: {why}"),
        }
    }
}

/// One attempt that was paid for, or may have been.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Paid {
    pub(crate) attempt: u32,
    /// The provider's name for it, if it was ever told.
    pub(crate) task: Option<String>,
    pub(crate) sent: Timestamp,
    pub(crate) why: String,
    pub(crate) state: State,
    /// What it cost; `None` if that is not known, or not yet.
    pub(crate) cost: Option<Money>,
    /// It was charged, or may have been, and the price is not known.
    pub(crate) is_unpriced: bool,
    pub(crate) who: Who,
    /// An earlier attempt of the same order may have been paid for, too.
    pub(crate) is_possible_double: bool,
}

/// Those of an order. What came from the shelf was paid for by another order, and so was what stands there by itself.
pub(crate) fn paid(order: &Order) -> Vec<Paid> {
    if is_spare(order) {
        return Vec::new();
    }
    let own = || order.attempts.iter().filter(|attempt| attempt.made_for.is_none());
    let seen = |attempt: &Attempt| {
        let state = State::of(attempt)?;
        let before = own().filter(|earlier| earlier.number < attempt.number).max_by_key(|last| last.number);
        Some(Paid {
            attempt: attempt.number,
            task: order.task_of(attempt).map(str::to_owned),
            sent: attempt.sent,
            why: why(order, attempt.number),
            state,
            cost: attempt.cost,
            is_unpriced: attempt.is_unpriced(),
            who: who(order, attempt, state),
            is_possible_double: before.is_some_and(|before| was_open(order, before, attempt.number)),
        })
    };
    own().filter_map(seen).collect()
}

/// An answer that stands in the stock as an order of its own.
fn is_spare(order: &Order) -> bool {
    matches!(order.story.entries.first().map(|entry| &entry.beat), Some(Beat::Stocked { .. }))
}

fn beats(order: &Order) -> impl DoubleEndedIterator<Item = &Beat> + Clone {
    order.story.entries.iter().map(|entry| &entry.beat)
}

/// The last thing before the submit that asks for one.
fn why(order: &Order, number: u32) -> String {
    let is_it = |beat: &&Beat| matches!(beat, Beat::Submitted { attempt } if *attempt == number);
    let before = beats(order).rev().skip_while(|beat| !is_it(beat)).skip(1);
    let before = before.map_while(|beat| (!matches!(beat, Beat::Submitted { .. })).then_some(beat));
    // Whatever it had to wait for then, it was a person who wanted it.
    if before.clone().any(|beat| matches!(beat, Beat::Replayed)) {
        return "replayed by a person".to_owned();
    }
    let reason = { before }.find_map(|beat| match beat {
        Beat::Placed { .. } if order.terms.slot.is_some() => Some("to fill a place in a pool".to_owned()),
        Beat::Placed { life: 1 } => Some("the first of the order".to_owned()),
        Beat::Placed { life } => Some(format!("placed again: life {life}")),
        Beat::Retried { class: Signal::InDoubt, .. } | Beat::GaveUp { .. } => {
            Some("after a doubt that nobody settled in time".to_owned())
        }
        Beat::Retried { class, number, .. } => Some(format!("retry {number} for {}", class.name())),
        Beat::TooOld { .. } => Some("the answer before came too old to be of use".to_owned()),
        _ => None,
    });
    reason.unwrap_or_else(|| "not told any more: the middle of a long story is left out".to_owned())
}

/// Whether an earlier attempt could still have been answered, or paid for unheard, when a later one was made.
fn was_open(order: &Order, earlier: &Attempt, later: u32) -> bool {
    // Refused at the door.
    if earlier.progress == Progress::Faulted && !earlier.accepted {
        return false;
    }
    let until =
        beats(order).position(|beat| matches!(beat, Beat::Submitted { attempt } if *attempt == later));
    let told = |attempt: u32| attempt == earlier.number;
    let story = || beats(order).take(until.unwrap_or_default());
    let is_told = story().any(|beat| matches!(beat, Beat::Submitted { attempt } if told(*attempt)));
    if !is_told {
        return earlier.progress == (Progress::GivenUp { counted: true });
    }
    // A fault that nobody understands leaves the attempt as it was.
    let is_over = |class: FaultClass| class != FaultClass::UnknownCode;
    !story().any(|beat| match beat {
        Beat::Faulted { attempt, fault } => told(*attempt) && is_over(fault.class),
        Beat::Solved { attempt, .. } | Beat::CameLate { attempt } | Beat::TooOld { attempt } => {
            told(*attempt)
        }
        _ => false,
    })
}

fn who(order: &Order, attempt: &Attempt, state: State) -> Who {
    match state {
        State::Answered => {}
        State::Solving | State::Trailing => return Who::Nobody("it is being worked on"),
        State::InDoubt => return Who::Nobody("it is not known whether it was taken"),
        State::GivenUp => return Who::Nobody("no answer came in time"),
        State::Faulted => return Who::Nobody("it came to no answer"),
    }
    let stands = |number: u32| number == attempt.number;
    match &order.phase {
        Phase::Solved { answer, .. } if stands(answer.attempt) => {
            return match (order.wanted, order.uncollected) {
                (true, true) => Who::Nobody(UNCOLLECTED),
                (true, false) => Who::Caller,
                (false, _) => Who::Shelf,
            };
        }
        Phase::Taken { answer, .. } if stands(answer.attempt) => {
            if matches!(beats(order).next_back(), Some(Beat::Spoiled)) {
                return Who::Nobody(SPOILED);
            }
            return order.taker().map_or(Who::Caller, Who::Taker);
        }
        _ => {}
    }
    if matches!(attempt.progress, Progress::Spare { .. }) {
        return Who::Shelf;
    }
    let last = beats(order).rev().find_map(|beat| match beat {
        Beat::Stocked { attempt } if stands(*attempt) => {
            Some(Who::Stock(order.key.spare(order.born, *attempt)))
        }
        Beat::TooOld { attempt } if stands(*attempt) => {
            Some(Who::Nobody("it came too late to be of use, and is wasted"))
        }
        Beat::Solved { attempt, .. } if stands(*attempt) => Some(of_a_life_that_is_over(order, *attempt)),
        _ => None,
    });
    last.unwrap_or(Who::Nobody("not told any more: the middle of a long story is left out"))
}

/// Whether what was solved then was handed out before its life was over.
fn of_a_life_that_is_over(order: &Order, number: u32) -> Who {
    let is_it = |beat: &&Beat| matches!(beat, Beat::Solved { attempt, .. } if *attempt == number);
    let after = beats(order).skip_while(|beat| !is_it(beat)).skip(1);
    let mut of_that_life = after.take_while(|beat| !matches!(beat, Beat::Placed { .. }));
    match of_that_life.any(|beat| matches!(beat, Beat::Spoiled)) {
        true => Who::Nobody(SPOILED),
        false => Who::Caller,
    }
}

#[cfg(test)]
mod tests;
