//! Each attempt of an order that was paid for, or may have been: why it was made, what became of it, and who got its answer. All
//! of it is read from the order's record; a story that was shortened in the middle is said to be.

use quittance_lifecycle::{
    Attempt, FaultClass, Key, Money, Order, Phase, Progress, Signal, TimelineEvent, Timestamp,
};

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
            (Progress::Answered | Progress::Surplus { .. }, _) => Self::Answered,
            (Progress::Solving { .. }, _) => Self::Solving,
            (Progress::Trailing { .. }, _) => Self::Trailing,
            (Progress::Sent | Progress::GivenUp { .. }, false) => Self::InDoubt,
            (Progress::Sent | Progress::GivenUp { .. }, true) => Self::GivenUp,
            (Progress::Faulted, true) => Self::Faulted,
            (Progress::Faulted, false) => return None,
        })
    }
}

pub(crate) const EXPIRED: &str = "it expired untaken, and is wasted";
/// Why it reached no caller yet.
const UNCOLLECTED: &str = "no caller has been given it yet";

/// Where the answer went.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Who {
    /// Whoever placed the order, and whoever joined it.
    Caller,
    /// Another order, from the stock.
    Taker(Key),
    /// It stands on the stock for whoever comes.
    StockPlace,
    /// It went to the stock as an order of its own, which knows more.
    Stock(Key),
    /// Nobody, and why.
    Nobody(&'static str),
}

impl Who {
    pub(crate) fn words(&self, tenant: &str) -> String {
        match self {
            Self::Caller => format!("{tenant}, and whoever joined"),
            Self::Taker(_) => format!("another order of {tenant}, from the stock"),
            Self::StockPlace => "nobody yet: it stands on the stock".to_owned(),
            Self::Stock(key) => format!("the stock, as order {}", key.short()),
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

/// Those of an order. What came from the stock was paid for by another order, and so was what stands there by itself.
pub(crate) fn paid(order: &Order) -> Vec<Paid> {
    if is_surplus(order) {
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
fn is_surplus(order: &Order) -> bool {
    matches!(order.timeline.entries.first().map(|entry| &entry.event), Some(TimelineEvent::Stocked { .. }))
}

fn events(order: &Order) -> impl DoubleEndedIterator<Item = &TimelineEvent> + Clone {
    order.timeline.entries.iter().map(|entry| &entry.event)
}

/// The last thing before the submit that asks for one.
fn why(order: &Order, number: u32) -> String {
    let is_it =
        |event: &&TimelineEvent| matches!(event, TimelineEvent::Submitted { attempt } if *attempt == number);
    let before = events(order).rev().skip_while(|event| !is_it(event)).skip(1);
    let before =
        before.map_while(|event| (!matches!(event, TimelineEvent::Submitted { .. })).then_some(event));
    // Whatever it had to wait for then, it was a person who wanted it.
    if before.clone().any(|event| matches!(event, TimelineEvent::Replayed)) {
        return "replayed by a person".to_owned();
    }
    let reason = { before }.find_map(|event| match event {
        TimelineEvent::Placed { .. } if order.terms.slot.is_some() => {
            Some("to fill a place in a pool".to_owned())
        }
        TimelineEvent::Placed { life: 1 } => Some("the first of the order".to_owned()),
        TimelineEvent::Placed { life } => Some(format!("placed again: life {life}")),
        TimelineEvent::Retried { class: Signal::InDoubt, .. } | TimelineEvent::GaveUp { .. } => {
            Some("after a doubt that nobody settled in time".to_owned())
        }
        TimelineEvent::Retried { class, number, .. } => Some(format!("retry {number} for {}", class.name())),
        TimelineEvent::TooOld { .. } => Some("the answer before came too old to be of use".to_owned()),
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
    let until = events(order)
        .position(|event| matches!(event, TimelineEvent::Submitted { attempt } if *attempt == later));
    let told = |attempt: u32| attempt == earlier.number;
    let timeline = || events(order).take(until.unwrap_or_default());
    let is_told =
        timeline().any(|event| matches!(event, TimelineEvent::Submitted { attempt } if told(*attempt)));
    if !is_told {
        return earlier.progress == (Progress::GivenUp { counted: true });
    }
    // A fault that nobody understands leaves the attempt as it was.
    let is_over = |class: FaultClass| class != FaultClass::UnlistedCode;
    !timeline().any(|event| match event {
        TimelineEvent::Faulted { attempt, fault } => told(*attempt) && is_over(fault.class),
        TimelineEvent::Solved { attempt, .. }
        | TimelineEvent::CameLate { attempt }
        | TimelineEvent::TooOld { attempt } => told(*attempt),
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
                (false, _) => Who::StockPlace,
            };
        }
        Phase::Claimed { answer, .. } if stands(answer.attempt) => {
            if matches!(events(order).next_back(), Some(TimelineEvent::Expired)) {
                return Who::Nobody(EXPIRED);
            }
            return order.taker().map_or(Who::Caller, Who::Taker);
        }
        _ => {}
    }
    if matches!(attempt.progress, Progress::Surplus { .. }) {
        return Who::StockPlace;
    }
    let last = events(order).rev().find_map(|event| match event {
        TimelineEvent::Stocked { attempt } if stands(*attempt) => {
            Some(Who::Stock(order.key.surplus(order.born, *attempt)))
        }
        TimelineEvent::TooOld { attempt } if stands(*attempt) => {
            Some(Who::Nobody("it came too late to be of use, and is wasted"))
        }
        TimelineEvent::Solved { attempt, .. } if stands(*attempt) => {
            Some(of_a_life_that_is_over(order, *attempt))
        }
        _ => None,
    });
    last.unwrap_or(Who::Nobody("not told any more: the middle of a long story is left out"))
}

/// Whether what was solved then was handed out before its life was over.
fn of_a_life_that_is_over(order: &Order, number: u32) -> Who {
    let is_it =
        |event: &&TimelineEvent| matches!(event, TimelineEvent::Solved { attempt, .. } if *attempt == number);
    let after = events(order).skip_while(|event| !is_it(event)).skip(1);
    let mut of_that_life = after.take_while(|event| !matches!(event, TimelineEvent::Placed { .. }));
    match of_that_life.any(|event| matches!(event, TimelineEvent::Expired)) {
        true => Who::Nobody(EXPIRED),
        false => Who::Caller,
    }
}

#[cfg(test)]
mod tests;
