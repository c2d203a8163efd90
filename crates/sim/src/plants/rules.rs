//! Planted bugs in the meaning of events: each calls the real rule, and then changes its decision.

use crate::provider::TASK_ENDED;
use quittance_lifecycle::{
    CallbackResult, Decision, Event, Fault, FaultClass, HandOut, Key, Order, Phase, Placement, Policy,
    PollOutcome, Progress, ProviderAnswer, Receipt, SubmitOutcome, Terms, Timestamp, WhyIgnored, place,
    transition,
};
use std::sync::Arc;
use std::time::Duration;

const DROPPED: Decision = Decision::Ignore(WhyIgnored::OldNews);

/// The real decision, with its next order changed by `how`.
pub(super) fn falsify(decision: Decision, how: impl FnOnce(&mut Order)) -> Decision {
    match decision {
        Decision::Advance(mut advance) => {
            how(&mut advance.next);
            Decision::Advance(advance)
        }
        other => other,
    }
}

pub(super) fn a_crash_is_resubmitted(
    order: &Order,
    event: Event,
    now: Timestamp,
    policy: &Policy,
) -> Decision {
    let is_silent = matches!((&order.phase, &event), (Phase::Submitting { .. }, Event::Woken { .. }));
    falsify(transition(order, event, now, policy), |next| {
        if is_silent && let Phase::InDoubt { attempt, .. } = next.phase {
            next.phase = Phase::Queued { until: now, held: false };
            if let Some(attempt) = next.attempts.iter_mut().find(|known| known.number == attempt) {
                attempt.progress = Progress::Faulted;
            }
        }
    })
}

pub(super) fn no_fallback(order: &Order, event: Event, now: Timestamp, policy: &Policy) -> Decision {
    falsify(transition(order, event, now, policy), |next| {
        if let Phase::Solving { poll_at, .. } = &mut next.phase {
            *poll_at = Timestamp::MAX;
        }
        for attempt in &mut next.attempts {
            if let Progress::Trailing { .. } = attempt.progress {
                attempt.progress = Progress::GivenUp { counted: false };
            }
        }
    })
}

pub(super) fn doubtful_callbacks_dropped(
    order: &Order,
    event: Event,
    now: Timestamp,
    policy: &Policy,
) -> Decision {
    match &event {
        Event::CalledBack { attempt, .. }
            if order.attempt(*attempt).is_some_and(|attempt| attempt.progress == Progress::Sent)
                && !matches!(order.phase, Phase::Submitting { .. }) =>
        {
            DROPPED
        }
        _ => transition(order, event, now, policy),
    }
}

pub(super) fn late_answers_dropped(order: &Order, event: Event, now: Timestamp, policy: &Policy) -> Decision {
    match &event {
        Event::CalledBack { attempt, .. } | Event::Polled { attempt, .. }
            if order.current().is_some_and(|current| current != *attempt) || !order.phase.is_open() =>
        {
            DROPPED
        }
        _ => transition(order, event, now, policy),
    }
}

pub(super) fn nothing_trails(order: &Order, event: Event, now: Timestamp, policy: &Policy) -> Decision {
    falsify(transition(order, event, now, policy), |next| {
        for attempt in &mut next.attempts {
            if let Progress::Trailing { .. } = attempt.progress {
                attempt.progress = Progress::GivenUp { counted: true };
            }
        }
    })
}

pub(super) fn a_left_task_is_forgotten(
    order: &Order,
    event: Event,
    now: Timestamp,
    policy: &Policy,
) -> Decision {
    falsify(transition(order, event, now, policy), |next| {
        for attempt in &mut next.attempts {
            if let Progress::Trailing { counted: true, .. } = attempt.progress {
                attempt.progress = Progress::GivenUp { counted: true };
            }
        }
    })
}

pub(super) fn doubts_end_at_once(order: &Order, event: Event, now: Timestamp, policy: &Policy) -> Decision {
    falsify(transition(order, event, now, policy), |next| {
        if policy.can_fail_over
            && let Phase::InDoubt { .. } = next.phase
        {
            next.phase = Phase::Queued { until: now, held: false };
        }
    })
}

/// The attempts of an order count as made at the account of its terms.
pub(super) fn attempts_forget_their_account(
    order: &Order,
    event: Event,
    now: Timestamp,
    policy: &Policy,
) -> Decision {
    falsify(transition(order, event, now, policy), |next| {
        for attempt in next.attempts.iter_mut().filter(|attempt| attempt.progress == Progress::Answered) {
            attempt.account = None;
        }
    })
}

pub(super) fn retries_restart(order: &Order, event: Event, now: Timestamp, policy: &Policy) -> Decision {
    falsify(transition(order, event, now, policy), |next| {
        if let Phase::Submitting { .. } = next.phase {
            next.retries = Default::default();
        }
    })
}

pub(super) fn permanent_is_retried(order: &Order, event: Event, now: Timestamp, policy: &Policy) -> Decision {
    let event = match event {
        Event::Submitted { attempt, outcome: SubmitOutcome::Rejected(fault) }
            if fault.class == FaultClass::Caller =>
        {
            let outcome = SubmitOutcome::Rejected(Fault::new(FaultClass::Busy, fault.code));
            Event::Submitted { attempt, outcome }
        }
        event => event,
    };
    transition(order, event, now, policy)
}

pub(super) fn expiry_from_arrival(order: &Order, event: Event, now: Timestamp, policy: &Policy) -> Decision {
    // As if the provider had solved it this moment.
    let in_flight = |attempt| order.attempt(attempt).map(|attempt| now.since(attempt.sent));
    let event = match event {
        Event::CalledBack { attempt, task, word: CallbackResult::Answered(mut delivery), receipt } => {
            delivery.took_at_least = in_flight(attempt);
            Event::CalledBack { attempt, task, word: CallbackResult::Answered(delivery), receipt }
        }
        Event::Polled { attempt, asked, outcome: PollOutcome::Answered(mut delivery) } => {
            delivery.took_at_least = in_flight(attempt);
            Event::Polled { attempt, asked, outcome: PollOutcome::Answered(delivery) }
        }
        event => event,
    };
    transition(order, event, now, policy)
}

pub(super) fn handed_out_and_stocked(
    order: &Order,
    event: Event,
    now: Timestamp,
    policy: &Policy,
) -> Decision {
    falsify(transition(order, event, now, policy), |next| {
        if let Phase::Solved { answer, .. } = next.phase.clone()
            && let Some(attempt) = next.attempts.iter_mut().find(|known| known.number == answer.attempt)
            && order.phase.is_open()
            && next.terms.single_use
        {
            attempt.progress = Progress::Surplus { answer, since: now };
        }
    })
}

pub(super) fn no_timer(order: &Order, event: Event, now: Timestamp, policy: &Policy) -> Decision {
    falsify(transition(order, event, now, policy), |next| {
        if let Phase::Submitting { until, .. } = &mut next.phase {
            *until = now + Duration::from_secs(365 * 24 * 3600);
            next.deadline = *until;
        }
    })
}

pub(super) fn doubles_unlisted(order: &Order, event: Event, now: Timestamp, policy: &Policy) -> Decision {
    match transition(order, event, now, policy) {
        Decision::Advance(mut advance) => {
            advance.next.possible_doubles = 0;
            advance.counters.possible_doubles = 0;
            Decision::Advance(advance)
        }
        other => other,
    }
}

pub(super) fn failure_for_ever(
    existing: Option<&Order>,
    follower: Option<&Order>,
    key: Key,
    terms: &Arc<Terms>,
    now: Timestamp,
    policy: &Policy,
) -> Placement {
    let policy = Policy { refusal_hold: Duration::from_secs(1 << 40), ..*policy };
    place(existing, follower, key, terms, now, &policy)
}

pub(super) fn shared_for_ever(
    existing: Option<&Order>,
    follower: Option<&Order>,
    key: Key,
    terms: &Arc<Terms>,
    now: Timestamp,
    policy: &Policy,
) -> Placement {
    match existing.map(|order| &order.phase) {
        Some(Phase::Solved { .. }) => Placement::Stands {
            key,
            origin: quittance_lifecycle::Origin::Cached,
            counters: Default::default(),
        },
        _ => place(existing, follower, key, terms, now, policy),
    }
}

/// Bug: a repeat of an order in flight starts a life of its own.
pub(super) fn placing_pays(
    existing: Option<&Order>,
    follower: Option<&Order>,
    key: Key,
    terms: &Arc<Terms>,
    now: Timestamp,
    policy: &Policy,
) -> Placement {
    match existing {
        Some(order) if order.phase.is_open() => {
            let mut ended = order.clone();
            ended.attempts.iter_mut().for_each(|attempt| attempt.progress = Progress::Faulted);
            ended.phase = Phase::Expired { at: now };
            place(Some(&ended), follower, key, terms, now, policy)
        }
        _ => place(existing, follower, key, terms, now, policy),
    }
}

pub(super) fn dated_from_submit(order: &Order, event: Event, now: Timestamp, policy: &Policy) -> Decision {
    let event = match event {
        Event::CalledBack { attempt, task, word, receipt: _ } => {
            Event::CalledBack { attempt, task, word, receipt: None }
        }
        event => event,
    };
    transition(order, event, now, policy)
}

/// Bug: the answer is dated by the end of its task on the provider's clock, and not by its duration.
pub(super) fn a_foreign_clock_dates(
    order: &Order,
    event: Event,
    now: Timestamp,
    policy: &Policy,
) -> Decision {
    let took_by_its_clock = |attempt: u32, answer: &ProviderAnswer| {
        let ended: u64 = answer.payload.extras.get(TASK_ENDED)?.parse().ok()?;
        let solved = Timestamp::from_millis(ended * 1_000).min(now);
        Some(solved.since(order.attempt(attempt)?.sent))
    };
    let event = match event {
        Event::CalledBack { attempt, task, word: CallbackResult::Answered(mut answer), mut receipt } => {
            if let Some(took) = took_by_its_clock(attempt, &answer) {
                (answer.took_at_least, receipt) = (Some(took), None);
            }
            Event::CalledBack { attempt, task, word: CallbackResult::Answered(answer), receipt }
        }
        Event::Polled { attempt, asked, outcome: PollOutcome::Answered(mut answer) } => {
            answer.took_at_least = took_by_its_clock(attempt, &answer).or(answer.took_at_least);
            Event::Polled { attempt, asked, outcome: PollOutcome::Answered(answer) }
        }
        event => event,
    };
    transition(order, event, now, policy)
}

pub(super) fn outages_forgotten(order: &Order, event: Event, now: Timestamp, policy: &Policy) -> Decision {
    let event = match event {
        Event::CalledBack { attempt, task, word, receipt: Some(receipt) } => {
            let receipt = Some(Receipt { outages: Vec::new(), ..receipt });
            Event::CalledBack { attempt, task, word, receipt }
        }
        event => event,
    };
    transition(order, event, now, policy)
}

pub(super) fn margin_for_all(order: &Order, by: Key, min_life: Duration, now: Timestamp) -> HandOut<'_> {
    order.hand_out(by, min_life.max(order.terms.margin), now)
}

pub(super) fn no_time_to_collect(
    existing: Option<&Order>,
    follower: Option<&Order>,
    key: Key,
    terms: &Arc<Terms>,
    now: Timestamp,
    policy: &Policy,
) -> Placement {
    let terms = Arc::new(Terms { collected_in: Duration::ZERO, ..(**terms).clone() });
    place(existing, follower, key, &terms, now, policy)
}

/// Bug: a placement that cannot reuse a living answer begins a new life over it.
pub(super) fn overwrites_what_is_alive(
    existing: Option<&Order>,
    follower: Option<&Order>,
    key: Key,
    terms: &Arc<Terms>,
    now: Timestamp,
    policy: &Policy,
) -> Placement {
    match place(existing, follower, key, terms, now, policy) {
        Placement::Follow { advance } => {
            let ended = Order { phase: Phase::Expired { at: now }, followed_by: None, ..advance.next };
            place(Some(&ended), None, key, terms, now, policy)
        }
        placement => placement,
    }
}
