//! The queue to the provider: whose turn it is, and which orders come too late. Each promise is a function, so that a
//! planted bug can be shown to break it.

use crate::stories::world::{StoryCaller, StoryNode, StoryOrder, StoryWorld, turnstile, world};
use quittance_engine::{Outcome, Settings, TenantRule};
use quittance_lifecycle::{DeadCause, Priority, Refusal};
use quittance_ports::MemorySpill;
use quittance_sim::plants::{
    A_JOIN_LEAVES_THE_PRIORITY, BULK_FIRST, LATE_TASKS_ARE_PAID, QueuePlant, THE_HOPELESS_ARE_ACCEPTED,
    TURNS_ARE_NOT_COUNTED, URGENT_ALWAYS_FIRST, WEIGHTS_ARE_IGNORED,
};
use std::sync::Arc;
use std::time::Duration;

/// A promise of the queue: what went wrong with this planted bug, if anything.
type QueuePromise = fn(Option<QueuePlant>) -> Result<(), String>;

fn check(is_kept: bool, what: impl Into<String>) -> Result<(), String> {
    if is_kept { Ok(()) } else { Err(what.into()) }
}

fn of(tenant: &str, mut order: StoryOrder) -> StoryOrder {
    order.draft.tenant = tenant.into();
    order
}

fn urgent(priority: Priority, mut order: StoryOrder) -> StoryOrder {
    order.draft.priority = Some(priority);
    order
}

/// A node with one submit in each `interval`, and these tenants with their weights.
fn node(world: &StoryWorld, plant: Option<QueuePlant>, interval: u64, weights: &[(&str, u32)]) -> StoryNode {
    world.node_with(Arc::new(MemorySpill::default()), |settings: &mut Settings| {
        settings.providers[0].throttle.submit_interval = Duration::from_millis(interval);
        let rule = |weight| TenantRule { weight: Some(weight), ..TenantRule::default() };
        settings.tenants = weights.iter().map(|(name, weight)| ((*name).to_owned(), rule(*weight))).collect();
        if let Some(plant) = plant {
            (plant.sow)(settings);
        }
    })
}

fn crowd(node: &StoryNode, count: usize, name: &str, order: impl Fn(StoryOrder) -> StoryOrder) {
    (0..count).for_each(|n| _ = node.begins(order(turnstile(&format!("{name}-{n}")))));
}

/// How many orders of a crowd have been submitted.
fn submitted(world: &StoryWorld, count: usize, name: &str) -> usize {
    (0..count).filter(|n| !world.provider.submits(&format!("{name}-{n}")).is_empty()).count()
}

/// How long after its placement each of these orders was submitted; `None` for one that was not.
fn delay(
    world: &StoryWorld,
    node: &StoryNode,
    site: &str,
    order: impl Fn(StoryOrder) -> StoryOrder,
) -> Option<u64> {
    let placed = world.now();
    node.asks(order(turnstile(site)));
    world.after(2);
    world.provider.submitted_at(site).first().map(|at| at - placed)
}

/// A tenant with 5,000 queued orders delays another's single order by less than the time of one slot.
fn a_single_order_waits_less_than_a_slot(plant: Option<QueuePlant>) -> Result<(), String> {
    let world = world();
    let node = node(&world, plant, 100, &[("alice", 1), ("bob", 1)]);
    crowd(&node, 5_000, "crowd", |order| of("alice", order));
    world.after(3);
    for n in 0..10 {
        let waited = delay(&world, &node, &format!("bob-{n}"), |order| of("bob", order));
        check(waited.is_some_and(|ms| ms <= 100), format!("bob-{n} waited {waited:?} ms"))?;
    }
    Ok(())
}

/// Three nodes share a backlog of 5,000 orders. A slot of one node is as long as three of the provider.
fn a_single_order_waits_less_than_a_slot_on_three_nodes(plant: Option<QueuePlant>) -> Result<(), String> {
    let world = world();
    let nodes = [(); 3].map(|()| node(&world, plant, 300, &[("alice", 1), ("bob", 1)]));
    for n in 0..5_000 {
        nodes[n % 3].begins(of("alice", turnstile(&format!("crowd-{n}"))));
    }
    world.after(3);
    for n in 0..9 {
        let waited = delay(&world, &nodes[n % 3], &format!("bob-{n}"), |order| of("bob", order));
        check(waited.is_some_and(|ms| ms <= 300), format!("bob-{n} waited {waited:?} ms"))?;
    }
    Ok(())
}

fn three_turns_for_one(plant: Option<QueuePlant>) -> Result<(), String> {
    let world = world();
    let node = node(&world, plant, 100, &[("alice", 3), ("bob", 1)]);
    crowd(&node, 400, "alice", |order| of("alice", order));
    crowd(&node, 400, "bob", |order| of("bob", order));
    world.after(20);
    let turns = (submitted(&world, 400, "alice"), submitted(&world, 400, "bob"));
    check((145..=160).contains(&turns.0) && (45..=55).contains(&turns.1), format!("{turns:?}"))
}

/// The urgent orders of a tenant come first, and the others get a share of its turns.
fn no_priority_starves(plant: Option<QueuePlant>) -> Result<(), String> {
    let world = world();
    let node = node(&world, plant, 100, &[]);
    for priority in [Priority::Bulk, Priority::Normal, Priority::Interactive] {
        crowd(&node, 300, priority.name(), |order| urgent(priority, order));
    }
    world.after(2);
    let early = submitted(&world, 300, "bulk");
    check((1..=3).contains(&early), format!("{early} of the first 20 turns are bulk"))?;
    world.after(18);
    let turns = Priority::ALL.map(|priority| submitted(&world, 300, priority.name()));
    check(turns[0] >= 155 && turns[1..].iter().all(|turns| (18..=25).contains(turns)), format!("{turns:?}"))
}

fn an_urgent_order_passes_those_that_can_wait(plant: Option<QueuePlant>) -> Result<(), String> {
    let world = world();
    let node = node(&world, plant, 100, &[]);
    crowd(&node, 1_000, "bulk", |order| urgent(Priority::Bulk, order));
    world.after(3);
    for n in 0..5 {
        let waited = delay(&world, &node, &format!("a-{n}"), |order| urgent(Priority::Interactive, order));
        check(waited.is_some_and(|ms| ms <= 200), format!("a-{n} waited {waited:?} ms"))?;
    }
    Ok(())
}

fn a_join_makes_an_order_more_urgent(plant: Option<QueuePlant>) -> Result<(), String> {
    let world = world();
    let node = node(&world, plant, 100, &[]);
    crowd(&node, 1_000, "crowd", |order| order);
    crowd(&node, 50, "bulk", |order| urgent(Priority::Bulk, order));
    let shared = |priority| urgent(priority, turnstile("wanted"));
    let first = node.asks(shared(Priority::Bulk));
    world.after(1);
    let placed = world.now();
    let second = node.asks(shared(Priority::Interactive));
    world.after(1);
    check(first.key() == second.key(), "it is one order")?;
    let at = world.provider.submitted_at("wanted");
    let waited = at.first().and_then(|at| at.checked_sub(placed));
    check(
        at.len() == 1 && waited.is_some_and(|ms| ms <= 200),
        format!("submitted at {at:?}, wanted since {placed}"),
    )
}

/// Solves turnstiles in 20 s, so that it is known that they take no less than 15 s.
fn measured(world: &StoryWorld, plant: Option<QueuePlant>) -> StoryNode {
    let node = node(world, plant, 0, &[]);
    let callers: Vec<StoryCaller> = (0..40)
        .map(|n| {
            let site = format!("measured-{n}");
            world.provider.solves(&site, 20);
            world.after_ms(300);
            node.asks(turnstile(&site))
        })
        .collect();
    world.after(60);
    assert!(callers.iter().all(|caller| caller.token().is_some()), "all were answered");
    node
}

fn timed(seconds: u64, mut order: StoryOrder) -> StoryOrder {
    order.draft.timeout = Some(Duration::from_secs(seconds));
    order
}

fn no_task_is_paid_for_that_comes_too_late(plant: Option<QueuePlant>) -> Result<(), String> {
    let world = world();
    let node = measured(&world, plant);
    let caller = node.asks(timed(5, turnstile("late").keyed("late")));
    world.after(1);
    let submits = world.provider.submits("late").len();
    check(submits == 0, format!("{submits} submits"))?;
    let outcome = caller.last_outcome();
    let is_too_late = matches!(outcome, Some(Outcome::Dead(DeadCause::TooLate { .. })));
    check(is_too_late, format!("{outcome:?}"))?;
    world.provider.solves("in-time", 20);
    let in_time = node.asks(timed(60, turnstile("in-time").keyed("in-time")));
    world.after(40);
    check(in_time.token().is_some(), "an order with enough time is answered")
}

fn an_order_that_cannot_be_answered_in_time_is_refused(plant: Option<QueuePlant>) -> Result<(), String> {
    let world = world();
    let node = measured(&world, plant);
    let refusal = node.asks(timed(5, turnstile("short").exclusive())).refusal();
    check(matches!(refusal, Some(Refusal::TooShort { .. })), format!("{refusal:?}"))?;
    check(node.asks(timed(30, turnstile("long").exclusive())).is_placed(), "30 s are enough")
}

fn an_order_behind_a_queue_longer_than_its_timeout_is_refused(
    plant: Option<QueuePlant>,
) -> Result<(), String> {
    let world = world();
    let node = node(&world, plant, 1_000, &[("alice", 1), ("bob", 1)]);
    crowd(&node, 450, "crowd", |order| of("alice", order));
    world.after(90);
    let refusal = node.asks(of("alice", turnstile("late").exclusive())).refusal();
    check(matches!(refusal, Some(Refusal::QueueTooLong { .. })), format!("{refusal:?}"))?;
    let urgent = urgent(Priority::Interactive, of("alice", turnstile("urgent").exclusive()));
    check(node.asks(urgent).is_placed(), "it passes the queue")?;
    check(node.asks(timed(3600, of("alice", turnstile("patient").exclusive()))).is_placed(), "it can wait")?;
    check(node.asks(of("bob", turnstile("bob").exclusive())).is_placed(), "the queue is another tenant's")
}

/// Each promise, and a planted bug that breaks it.
const PROMISES: [(QueuePromise, QueuePlant); 9] = [
    (a_single_order_waits_less_than_a_slot, TURNS_ARE_NOT_COUNTED),
    (a_single_order_waits_less_than_a_slot_on_three_nodes, TURNS_ARE_NOT_COUNTED),
    (three_turns_for_one, WEIGHTS_ARE_IGNORED),
    (no_priority_starves, URGENT_ALWAYS_FIRST),
    (an_urgent_order_passes_those_that_can_wait, BULK_FIRST),
    (a_join_makes_an_order_more_urgent, A_JOIN_LEAVES_THE_PRIORITY),
    (no_task_is_paid_for_that_comes_too_late, LATE_TASKS_ARE_PAID),
    (an_order_that_cannot_be_answered_in_time_is_refused, THE_HOPELESS_ARE_ACCEPTED),
    (an_order_behind_a_queue_longer_than_its_timeout_is_refused, THE_HOPELESS_ARE_ACCEPTED),
];

#[test]
fn tenants_priorities_and_deadlines_get_what_the_queue_promises() {
    for (number, (promise, _)) in PROMISES.into_iter().enumerate() {
        assert_eq!(promise(None), Ok(()), "promise {number}");
    }
}

#[test]
fn every_planted_bug_of_the_queue_is_caught() {
    for (number, (promise, plant)) in PROMISES.into_iter().enumerate() {
        assert!(promise(Some(plant)).is_err(), "promise {number}: {plant:?} is not caught");
    }
}
