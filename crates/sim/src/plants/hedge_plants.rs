//! Planted bugs in hedging. The stories about it catch them (`tests/sim/stories/hedging.rs`).

use super::RoutingPlant;
use super::rules::{a_left_task_is_forgotten, falsify};
use quittance_lifecycle::{Pace, Policy, transition};
use std::time::Duration;

const AT_ONCE: Duration = Duration::from_secs(5);

pub const HEDGE_PLANTS: &[RoutingPlant] = &[
    RoutingPlant {
        name: "an urgent order is bought twice at once",
        sow: |rules| {
            rules.plant_transition(|order, event, now, policy| {
                let hedge_after = policy.hedge_after.map(|_| AT_ONCE);
                transition(order, event, now, &Policy { hedge_after, ..*policy })
            });
        },
    },
    RoutingPlant {
        name: "every order is hedged, and the budget does not matter",
        sow: |rules| {
            rules.plant_transition(|order, event, now, policy| {
                let Pace { p95, .. } = policy.pace;
                transition(order, event, now, &Policy { hedge_after: Some(p95), ..*policy })
            });
        },
    },
    RoutingPlant {
        name: "the task that takes long is not polled any more",
        sow: |rules| rules.plant_transition(a_left_task_is_forgotten),
    },
    RoutingPlant {
        name: "a second purchase is counted as a possible double",
        sow: |rules| {
            rules.plant_transition(|order, event, now, policy| {
                let was_hedging = order.is_hedging();
                falsify(transition(order, event, now, policy), |next| {
                    next.possible_doubles += u32::from(was_hedging && !next.is_hedging());
                })
            });
        },
    },
];
