//! Planted bugs in what an order does when its provider fails it. Each is caught by a story
//! (`tests/sim/stories/two_providers.rs`). Those that the judge finds in random lives are in `plants.rs`.

use super::rules::falsify;
use quittance_engine::Rules;
use quittance_lifecycle::routing::Choice;
use quittance_lifecycle::{
    Candidate, Event, FailCause, FaultClass, Order, Phase, Policy, Progress, Routing, SubmitOutcome,
    Timestamp, choose, transition,
};
use std::fmt;
use std::time::Duration;

/// A bug in the choice of a provider, and how to plant it.
#[derive(Clone, Copy)]
pub struct RoutingPlant {
    pub name: &'static str,
    pub sow: fn(&mut Rules),
}

impl fmt::Debug for RoutingPlant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

macro_rules! routing_plants {
    ($($name:literal => $sow:expr),* $(,)?) => { &[$(RoutingPlant { name: $name, sow: $sow }),*] };
}

pub const ROUTING_PLANTS: &[RoutingPlant] = routing_plants! {
    "an attempt in doubt goes to another provider at once" => |rules| rules.plant_transition(|order, event, now, policy| {
        let is_doubt = matches!(&event, Event::Submitted { outcome: SubmitOutcome::InDoubt(_), .. });
        falsify(transition(order, event, now, policy), |next| {
            if is_doubt && let Phase::InDoubt { .. } = next.phase {
                next.phase = Phase::Queued { until: now, held: false };
            }
        })
    }),
    "a kind that a provider does not sell fails the order" => |rules| rules.plant_transition(|order, event, now, policy| {
        let fault = match &event {
            Event::Submitted { outcome: SubmitOutcome::Rejected(fault), .. }
                if fault.class == FaultClass::NotSold => Some(fault.clone()),
            _ => None,
        };
        falsify(transition(order, event, now, policy), |next| {
            if let Some(fault) = fault {
                next.phase = Phase::Failed { cause: FailCause::Rejected(fault), at: now };
            }
        })
    }),
    "an order waits for a provider that has blocked the account" => |rules| rules.plant_transition(|order, event, now, policy| {
        transition(order, event, now, &Policy { can_fail_over: false, ..*policy })
    }),
    "an order whose task is lost waits until its deadline" => |rules| rules.plant_transition(|order, event, now, policy| {
        let can_fail_over = policy.can_fail_over && !matches!(event, Event::Polled { .. });
        transition(order, event, now, &Policy { can_fail_over, ..*policy })
    }),
    "an order goes back to a provider that it has used up" => |rules| rules.plant_choose(used_up_again),
    "an order passes over a provider that is well" => |rules| rules.plant_choose(the_last_comes_first),
    "an order waits for a provider that is down" => |rules| rules.plant_choose(only_the_first),
    "money is counted on the account of the terms" => |rules| rules.plant_transition(|order, event, now, policy| {
        falsify(transition(order, event, now, policy), |next| next.booked_on = None)
    }),
    "an attempt forgets its account" => |rules| rules.plant_transition(|order, event, now, policy| {
        falsify(transition(order, event, now, policy), |next| {
            for attempt in next.attempts.iter_mut().filter(|attempt| attempt.progress != Progress::Sent) {
                attempt.account = None;
            }
        })
    }),
};

fn used_up_again(order: &Order, candidates: &[Candidate], routing: Routing, now: Timestamp) -> Choice {
    let order = Order { used_up: Vec::new(), held_off: None, ..order.clone() };
    choose(&order, candidates, routing, now)
}

fn the_last_comes_first(order: &Order, candidates: &[Candidate], routing: Routing, now: Timestamp) -> Choice {
    let turned: Vec<Candidate> = candidates.iter().rev().cloned().collect();
    let choice = choose(order, &turned, routing, now);
    Choice { chosen: choice.chosen.map(|at| candidates.len() - 1 - at), ..choice }
}

fn only_the_first(order: &Order, candidates: &[Candidate], routing: Routing, now: Timestamp) -> Choice {
    let choice = choose(order, &candidates[..1], routing, now);
    Choice { until: choice.until.min(now + Duration::from_secs(1)), ..choice }
}
