//! Planted bugs in when tasks are polled. The judge does not count calls; the stories about polls do, and each of these
//! bugs must fail one of them.

use super::rules::falsify;
use quittance_engine::Settings;
use quittance_lifecycle::{Decision, Event, Order, Phase, Policy, PollOutcome, Timestamp, transition};
use std::fmt;
use std::time::Duration;

/// A bug, and how to plant it into the settings of a node.
#[derive(Clone, Copy)]
pub struct PollPlant {
    pub name: &'static str,
    pub sow: fn(&mut Settings),
}

impl fmt::Debug for PollPlant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

/// The first poll comes when half of the answers are there.
pub const MEDIAN_FIRST: PollPlant = PollPlant {
    name: "the first poll waits for the median",
    sow: |settings| settings.rules.plant_transition(median_first),
};

/// A task is polled every 10 s, whatever its service allows.
pub const FLAT_INTERVAL: PollPlant = PollPlant {
    name: "all tasks are polled every ten seconds",
    sow: |settings| settings.rules.plant_transition(flat_interval),
};

/// A task is polled each second, whatever its service allows.
pub const EACH_SECOND: PollPlant = PollPlant {
    name: "all tasks are polled each second",
    sow: |settings| settings.rules.plant_transition(each_second),
};

/// Tasks with a callback address are polled like those without one.
pub const NO_WAIT_FOR_CALLBACKS: PollPlant = PollPlant {
    name: "a callback is not waited for",
    sow: |settings| settings.rules.plant_transition(no_wait_for_callbacks),
};

/// What is known about how long a service keeps its results is used by nothing.
pub const KEPT_FOR_EVER: PollPlant = PollPlant {
    name: "a result is kept for ever",
    sow: |settings| settings.rules.plant_transition(kept_for_ever),
};

fn median_first(order: &Order, event: Event, now: Timestamp, policy: &Policy) -> Decision {
    let was_solving = matches!(order.phase, Phase::Solving { .. });
    falsify(transition(order, event, now, policy), |next| {
        if let Phase::Solving { poll_at, .. } = &mut next.phase
            && !was_solving
        {
            *poll_at = now + policy.pace.p50.max(Duration::from_secs(5));
        }
    })
}

fn pending_again(
    order: &Order,
    event: Event,
    now: Timestamp,
    policy: &Policy,
    interval: Duration,
) -> Decision {
    let is_pending = matches!(event, Event::Polled { outcome: PollOutcome::Pending, .. });
    falsify(transition(order, event, now, policy), |next| {
        if let Phase::Solving { poll_at, .. } = &mut next.phase
            && is_pending
        {
            *poll_at = now + interval;
        }
    })
}

fn flat_interval(order: &Order, event: Event, now: Timestamp, policy: &Policy) -> Decision {
    pending_again(order, event, now, policy, Duration::from_secs(10))
}

fn each_second(order: &Order, event: Event, now: Timestamp, policy: &Policy) -> Decision {
    pending_again(order, event, now, policy, Duration::from_secs(1))
}

fn no_wait_for_callbacks(order: &Order, event: Event, now: Timestamp, policy: &Policy) -> Decision {
    transition(order, event, now, &Policy { callback_lost: true, ..*policy })
}

fn kept_for_ever(order: &Order, event: Event, now: Timestamp, policy: &Policy) -> Decision {
    transition(order, event, now, &Policy { result_kept: None, ..*policy })
}
