//! Each attempt of an order that was or may have been paid: why it was made, its state, and who got its answer. All
//! of it comes from the order's record. A shortened timeline is reported.

use quittance_lifecycle::{
    Attempt, FaultClass, Key, Money, Order, Phase, Progress, Signal, TimelineEvent, Timestamp,
};

/// State of an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    Answered,
    Solving,
    /// It is not known whether the provider took the attempt.
    InDoubt,
    /// The provider took the attempt, and the order does not wait for its answer any more.
    GivenUp,
    Faulted,
    /// The order continues without the attempt, which is still polled.
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

    /// The state of an attempt; `None` if the provider certainly did not take it, so it was not paid.
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

pub(crate) const EXPIRED: &str = "the answer expired before it was collected, and is wasted";
const UNCOLLECTED: &str = "no caller has the answer yet";

/// The recipient of an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Recipient {
    /// The caller that placed the order, and callers that joined it.
    Caller,
    /// Another order, which took the answer from stock. Holds its key, if it is still known.
    Taker(Option<Key>),
    /// The answer is in stock.
    StockPlace,
    /// The answer went to the stock as an order of its own.
    Stock(Key),
    /// No order got the answer. Holds the reason.
    None(&'static str),
}

impl Recipient {
    pub(crate) const fn taker(&self) -> Option<Key> {
        match self {
            Self::Taker(taker) => *taker,
            _ => None,
        }
    }

    pub(crate) fn words(&self, tenant: &str) -> String {
        match self {
            Self::Caller => format!("{tenant}, and any placements that joined"),
            Self::Taker(_) => format!("another order of {tenant}, from the stock"),
            Self::StockPlace => "no order yet: the answer is in the stock".to_owned(),
            Self::Stock(key) => format!("the stock, as order {}", key.short()),
            Self::None(why) => format!("no order: {why}"),
        }
    }
}

/// An attempt that was or may have been paid.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Paid {
    pub(crate) attempt: u32,
    /// The account that it went to.
    pub(crate) account: String,
    /// The provider's id of the task, if it is known.
    pub(crate) task: Option<String>,
    pub(crate) sent: Timestamp,
    pub(crate) why: String,
    pub(crate) state: State,
    /// The cost; `None` if it is not known, or not yet.
    pub(crate) cost: Option<Money>,
    /// Whether the attempt was or may have been charged at an unknown price.
    pub(crate) is_unpriced: bool,
    pub(crate) recipient: Recipient,
    /// The order that took the answer from stock, also if no caller got it there.
    pub(crate) claimed_by: Option<Key>,
    /// Whether an earlier attempt of the order may have been paid, too.
    pub(crate) is_possible_double: bool,
}

/// The paid attempts of an order, without an answer from stock, which another order paid.
pub(crate) fn paid(order: &Order) -> Vec<Paid> {
    if is_surplus(order) {
        return Vec::new();
    }
    let own = || order.attempts.iter().filter(|attempt| attempt.made_for.is_none());
    let seen = |attempt: &Attempt| {
        let state = State::of(attempt)?;
        let before = own().filter(|earlier| earlier.number < attempt.number).max_by_key(|last| last.number);
        let recipient = recipient(order, attempt, state);
        Some(Paid {
            attempt: attempt.number,
            account: order.account_of(attempt).to_owned(),
            task: order.task_of(attempt).map(str::to_owned),
            sent: attempt.sent,
            why: why(order, attempt.number),
            state,
            cost: attempt.cost,
            is_unpriced: attempt.is_unpriced(),
            claimed_by: recipient.taker(),
            recipient,
            is_possible_double: before.is_some_and(|before| was_open(order, before, attempt.number)),
        })
    };
    own().filter_map(seen).collect()
}

/// Who has an answer that went from the order `from` to this one: from the stock, or into it as an order of its own.
/// `None` if this order does not know.
pub(crate) fn passed_on(order: &Order, from: &Key) -> Option<Recipient> {
    let is_it = |attempt: &&Attempt| match is_surplus(order) {
        true => attempt.made_for.is_none(),
        false => attempt.made_for == Some(*from),
    };
    let attempt = order.attempts.iter().rev().find(is_it)?;
    if is_surplus(order) && matches!(order.phase, Phase::Expired { .. }) {
        return Some(Recipient::None(EXPIRED));
    }
    Some(recipient(order, attempt, State::of(attempt)?))
}

/// Whether the order is an answer that was put into the stock as an order of its own.
fn is_surplus(order: &Order) -> bool {
    matches!(order.timeline.entries.first().map(|entry| &entry.event), Some(TimelineEvent::Stocked { .. }))
}

fn events(order: &Order) -> impl DoubleEndedIterator<Item = &TimelineEvent> + Clone {
    order.timeline.entries.iter().map(|entry| &entry.event)
}

/// The reason for a submit: the last event before it that demanded one.
fn why(order: &Order, number: u32) -> String {
    let is_it =
        |event: &&TimelineEvent| matches!(event, TimelineEvent::Submitted { attempt } if *attempt == number);
    let before = events(order).rev().skip_while(|event| !is_it(event)).skip(1);
    let before =
        before.map_while(|event| (!matches!(event, TimelineEvent::Submitted { .. })).then_some(event));
    if before.clone().any(|event| matches!(event, TimelineEvent::Replayed)) {
        return "replayed by a person".to_owned();
    }
    let reason = { before }.find_map(|event| match event {
        TimelineEvent::ReplayedAfterOutage { .. } => Some("replayed after an outage".to_owned()),
        TimelineEvent::Placed { .. } if order.terms.slot.is_some() => {
            Some("to fill a place in a pool".to_owned())
        }
        TimelineEvent::Placed { life: 1 } => Some("the first of the order".to_owned()),
        TimelineEvent::Placed { life } => Some(format!("placed again: life {life}")),
        TimelineEvent::Retried { class: Signal::InDoubt, .. } | TimelineEvent::GaveUp { .. } => {
            Some("after a doubt that was not settled in time".to_owned())
        }
        TimelineEvent::Hedged { attempt } => {
            Some(format!("beside attempt {attempt}, which took long: the order is urgent"))
        }
        TimelineEvent::Retried { class, number, .. } => Some(format!("retry {number} for {}", class.name())),
        TimelineEvent::TooOld { .. } => Some("the answer of an earlier attempt was too old".to_owned()),
        _ => None,
    });
    reason.unwrap_or_else(|| "not known: the middle of a long timeline is left out".to_owned())
}

/// Whether an earlier attempt could still be answered or charged when a later one was made.
fn was_open(order: &Order, earlier: &Attempt, later: u32) -> bool {
    // The provider did not take it.
    if earlier.progress == Progress::Faulted && !earlier.accepted {
        return false;
    }
    let until = events(order)
        .position(|event| matches!(event, TimelineEvent::Submitted { attempt } if *attempt == later));
    let is_earlier = |attempt: u32| attempt == earlier.number;
    let timeline = || events(order).take(until.unwrap_or_default());
    let is_known =
        timeline().any(|event| matches!(event, TimelineEvent::Submitted { attempt } if is_earlier(*attempt)));
    if !is_known {
        return earlier.progress == (Progress::GivenUp { counted: true });
    }
    // An unlisted code does not end the attempt.
    let is_over = |class: FaultClass| class != FaultClass::UnlistedCode;
    !timeline().any(|event| match event {
        TimelineEvent::Faulted { attempt, fault } => is_earlier(*attempt) && is_over(fault.class),
        TimelineEvent::Solved { attempt, .. }
        | TimelineEvent::CameLate { attempt }
        | TimelineEvent::TooOld { attempt } => is_earlier(*attempt),
        _ => false,
    })
}

fn recipient(order: &Order, attempt: &Attempt, state: State) -> Recipient {
    match state {
        State::Answered => {}
        State::Solving | State::Trailing => return Recipient::None("the provider still works on the task"),
        State::InDoubt => return Recipient::None("it is not known whether the provider took the task"),
        State::GivenUp => return Recipient::None("no answer came in time"),
        State::Faulted => return Recipient::None("the attempt got no answer"),
    }
    let stands = |number: u32| number == attempt.number;
    match &order.phase {
        Phase::Solved { answer, .. } if stands(answer.attempt) => {
            return match (order.wanted, order.uncollected) {
                (true, true) => Recipient::None(UNCOLLECTED),
                (true, false) => Recipient::Caller,
                (false, _) => Recipient::StockPlace,
            };
        }
        Phase::Claimed { answer, .. } if stands(answer.attempt) => {
            if has_expired_untaken(order) {
                return Recipient::None(EXPIRED);
            }
            // The first webhook call reserves the answer. It is given out when a call is acknowledged, or when it is read.
            if order.uncollected && order.taker().is_none() {
                return Recipient::None(UNCOLLECTED);
            }
            // An order that took the answer at its placement has no record of its own: only the key of its claim.
            return match (handed_over(events(order)), order.taker()) {
                (None, None) => Recipient::Caller,
                (order, claimant) => Recipient::Taker(order.or(claimant)),
            };
        }
        _ => {}
    }
    if matches!(attempt.progress, Progress::Surplus { .. }) {
        return Recipient::StockPlace;
    }
    let last = events(order).rev().find_map(|event| match event {
        TimelineEvent::Stocked { attempt } if stands(*attempt) => {
            Some(Recipient::Stock(order.key.surplus(order.born, *attempt)))
        }
        TimelineEvent::TooOld { attempt } if stands(*attempt) => {
            Some(Recipient::None("the answer came too late to be used, and is wasted"))
        }
        event if brings(event, attempt) => Some(of_a_life_that_is_over(order, attempt)),
        _ => None,
    });
    last.unwrap_or(Recipient::None("not known: the middle of a long timeline is left out"))
}

/// Whether the order got the answer of this attempt with this event.
fn brings(event: &TimelineEvent, attempt: &Attempt) -> bool {
    match event {
        TimelineEvent::Solved { attempt: number, .. } => *number == attempt.number,
        TimelineEvent::ServedFromStock { from } => attempt.made_for == Some(*from),
        _ => false,
    }
}

/// The order to which an answer was handed over, after its last claim.
fn handed_over<'a>(events: impl DoubleEndedIterator<Item = &'a TimelineEvent>) -> Option<Key> {
    let after_the_claim = events.rev().take_while(|event| !matches!(event, TimelineEvent::Claimed));
    { after_the_claim }.find_map(|event| match event {
        TimelineEvent::HandedOver { to } => Some(*to),
        _ => None,
    })
}

/// Whether a claimed answer expired before it reached a caller. Later webhook calls carry no answer.
fn has_expired_untaken(order: &Order) -> bool {
    let is_claim = |event: &&TimelineEvent| matches!(event, TimelineEvent::Claimed);
    let mut after_the_claim = events(order).rev().take_while(|event| !is_claim(event));
    after_the_claim.any(|event| matches!(event, TimelineEvent::Expired))
}

/// The recipient of an answer from an earlier life of the order.
fn of_a_life_that_is_over(order: &Order, attempt: &Attempt) -> Recipient {
    let is_placed = |event: &TimelineEvent| matches!(event, TimelineEvent::Placed { .. });
    let events: Vec<&TimelineEvent> = events(order).collect();
    let Some(answered) = events.iter().position(|event| brings(event, attempt)) else {
        return Recipient::Caller;
    };
    let begin = events[..answered].iter().rposition(|event| is_placed(event)).unwrap_or_default();
    let end = events[answered..].iter().position(|event| is_placed(event));
    let end = end.map_or(events.len(), |after| answered + after);
    let (life, after) = (&events[begin..end], events[answered..end].iter().copied());
    if after.clone().any(|event| matches!(event, TimelineEvent::Expired)) {
        return Recipient::None(EXPIRED);
    }
    // A cancelled order's answer is for others, until the order is placed again.
    let wanted = life.iter().rev().find_map(|event| match event {
        TimelineEvent::Cancelled => Some(false),
        TimelineEvent::Rejoined | TimelineEvent::Hastened { .. } => Some(true),
        _ => None,
    });
    match handed_over(after) {
        None if wanted != Some(false) => Recipient::Caller,
        taker => Recipient::Taker(taker),
    }
}

#[cfg(test)]
mod tests;
