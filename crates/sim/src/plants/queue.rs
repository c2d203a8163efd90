//! Planted bugs in the queue to the provider: whose turn it is, and which orders come too late.

use super::QueuePlant;
use quittance_lifecycle::{
    Decision, Event, Key, Order, Placement, Policy, Terms, Timestamp, place, transition,
};
use std::sync::Arc;

pub const TURNS_ARE_NOT_COUNTED: QueuePlant = QueuePlant {
    name: "a tenant's turns are not counted",
    sow: |settings| settings.rules.plant_turn_cost(|_| 0),
};

pub const WEIGHTS_ARE_IGNORED: QueuePlant =
    QueuePlant { name: "weights are ignored", sow: |settings| settings.rules.plant_turn_cost(|_| 1_000_000) };

pub const URGENT_ALWAYS_FIRST: QueuePlant = QueuePlant {
    name: "the most urgent come first, always",
    sow: |settings| settings.rules.plant_lane(|_, lane| (true, lane)),
};

pub const BULK_FIRST: QueuePlant = QueuePlant {
    name: "the least urgent come first",
    sow: |settings| settings.rules.plant_lane(|lanes, lane| (true, lanes.len() - lane)),
};

pub const A_JOIN_LEAVES_THE_PRIORITY: QueuePlant = QueuePlant {
    name: "a more urgent placement that joins changes nothing",
    sow: |settings| settings.rules.plant_place(no_haste),
};

pub const LATE_TASKS_ARE_PAID: QueuePlant = QueuePlant {
    name: "a task is paid for although no answer can come in time",
    sow: |settings| settings.rules.plant_transition(pays_too_late),
};

pub const THE_HOPELESS_ARE_ACCEPTED: QueuePlant = QueuePlant {
    name: "an order is accepted although no answer can come in time",
    sow: |settings| settings.rules.plant_place(accepts_all),
};

fn no_haste(
    existing: Option<&Order>,
    follower: Option<&Order>,
    key: Key,
    terms: &Arc<Terms>,
    now: Timestamp,
    policy: &Policy,
) -> Placement {
    let priority = existing.map_or(terms.priority, |order| order.priority);
    let terms = Arc::new(Terms { priority, ..(**terms).clone() });
    place(existing, follower, key, &terms, now, policy)
}

fn pays_too_late(order: &Order, event: Event, now: Timestamp, policy: &Policy) -> Decision {
    transition(order, event, now, &Policy { quickest: None, ..*policy })
}

fn accepts_all(
    existing: Option<&Order>,
    follower: Option<&Order>,
    key: Key,
    terms: &Arc<Terms>,
    now: Timestamp,
    policy: &Policy,
) -> Placement {
    let policy = Policy { quickest: None, queue_wait: None, ..*policy };
    place(existing, follower, key, terms, now, &policy)
}
