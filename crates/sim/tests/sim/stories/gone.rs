//! A node that dies for good: no callback comes to its address any more, and another node continues its orders.

use crate::stories::provider::token;
use crate::stories::world::{
    StoryCaller, StoryNode, StoryWorld, recaptcha, world_with, world_with_callbacks,
};
use quittance_engine::{CallbackAddress, Outcome};
use quittance_lifecycle::{CallbackResult, Order, Phase, Policy, Timestamp};
use quittance_ports::membership::{HEARTBEAT_INTERVAL, SILENT_AFTER};
use quittance_ports::{Membership, MemorySpill, NodeStatus};
use std::sync::Arc;

/// A node with this callback address, which sends heartbeats.
fn member(world: &StoryWorld, name: &str, address: &str) -> StoryNode {
    let address = CallbackAddress::new(address, [7; 32]);
    let spill = Arc::new(MemorySpill::default());
    let node = world.node_with(spill, |settings| settings.callback = Some(address));
    let (engine, membership, executor) =
        (Arc::clone(&node.engine), world.membership.clone(), world.executor.clone());
    let (name, started) = (name.to_owned(), world.moment(world.now()));
    node.keeps_doing(async move {
        loop {
            let node_status = NodeStatus {
                node: engine.node(),
                name: name.clone(),
                version: String::new(),
                format: 1,
                started,
                at: Timestamp::from_millis(executor.now()),
                skew_ms: None,
                node_stats: engine.node_stats(),
                reach: engine.reach(),
                demand: engine.demand(),
            };
            membership.heartbeat(&node_status).await.expect("the membership is there");
            engine.heed_members(&membership.members().await.expect("the membership is there"));
            executor.sleep(u64::try_from(HEARTBEAT_INTERVAL.as_millis()).expect("seconds")).await;
        }
    });
    world.settle();
    node
}

const ONE: &str = "http://one/callback";
const TWO: &str = "http://two/callback";
/// How long it takes at most, in milliseconds, until the loss of a node is noticed and its tasks are polled.
const NOTICED_MS: u64 = 8_000 + 2_000 + 1_000;

/// Looks for the answer through this node every `every` seconds, until there is an outcome.
fn looks(world: &StoryWorld, node: &StoryNode, caller: &StoryCaller, every: u64) -> Option<Outcome> {
    let placed = caller.placed();
    for _ in 0..20 {
        world.after(every);
        let (engine, placed) = (Arc::clone(&node.engine), placed.clone());
        let peeked = node.does(async move { engine.peek(&placed).await });
        if let Some(outcome) = peeked.expect("the store is there") {
            return Some(outcome);
        }
    }
    None
}

fn earliest(order: &Order) -> Timestamp {
    match &order.phase {
        Phase::Solved { answer, .. } | Phase::Claimed { answer, .. } => answer.earliest,
        other => panic!("{}", other.name()),
    }
}

#[test]
fn the_loss_of_a_node_is_noticed_within_the_time_that_the_stories_count_with() {
    let noticed = SILENT_AFTER + HEARTBEAT_INTERVAL + HEARTBEAT_INTERVAL / 2;
    assert_eq!(noticed.as_millis(), u128::from(NOTICED_MS));
}

/// Trap: after a node had died for good, answers were dated from their submit, because a first poll brought them.
/// Callers that looked every 20 s were refused tokens with 19 to 64 s of life left.
#[test]
fn a_fresh_answer_is_given_to_its_caller_although_the_node_that_bought_it_died_for_good() {
    for (solve, look) in [(67, 20), (67, 22), (69, 45), (110, 20), (46, 20), (14, 45)] {
        let world = world_with_callbacks();
        let (first, second) = (member(&world, "one", ONE), member(&world, "two", TWO));
        world.provider.solves("site", solve);
        let caller = first.asks(recaptcha("site"));
        world.after(5);
        first.kill();
        let outcome = looks(&world, &second, &caller, look);
        assert!(matches!(outcome, Some(Outcome::Answered(_))), "{solve} s, every {look} s: {outcome:?}");
        let usage = world.usage();
        assert_eq!((usage.attempts, usage.wasted), (1, 0), "{solve} s, every {look} s");
        let earliest = earliest(&second.reads(caller.key()));
        // Polled every 3 s from when one of ten answers is there: after 7 s for this kind.
        let youngest = if solve > 20 { solve * 1000 - 5_000 } else { 0 };
        assert!(
            earliest >= world.moment(youngest) && earliest <= world.moment(solve * 1000),
            "{solve} s: dated {earliest:?}"
        );
    }
}

/// One poll as soon as the loss is noticed, and then polls as usual: no callback can come, so the node waits for
/// none.
#[test]
fn the_tasks_of_a_lost_node_are_polled_from_when_its_loss_is_noticed() {
    let world = world_with_callbacks();
    let (first, second) = (member(&world, "one", ONE), member(&world, "two", TWO));
    let third = member(&world, "three", "http://three/callback");
    world.provider.solves("site", 40);
    world.provider.solves("other", 3_600);
    let caller = first.asks(recaptcha("site"));
    let other = second.asks(recaptcha("other"));
    world.after(5);
    first.kill();
    world.after(60);
    let polled = world.provider.polled_at("task-1");
    assert!(polled[0] <= 5_000 + NOTICED_MS, "the first at {} ms", polled[0]);
    assert_eq!(polled.iter().filter(|at| **at < 16_000).count(), 1, "one node asks, once: {polled:?}");
    let pauses = polled.windows(2).map(|pair| pair[1] - pair[0]).filter(|pause| *pause < 3_000).count();
    assert_eq!(pauses, 0, "never sooner than the provider allows: {polled:?}");
    assert!(polled.last().is_some_and(|at| (40_000..=46_000).contains(at)), "{polled:?}");
    assert!(matches!(second.reads(caller.key()).phase, Phase::Solved { .. }));
    assert!(
        world.provider.polled_at("task-2").is_empty(),
        "its node is there, and the callback is waited for"
    );
    assert!(matches!(third.reads(other.key()).phase, Phase::Solving { .. }));
}

/// A node that is back answers its callbacks again, so other nodes wait for callbacks as before.
#[test]
fn callbacks_are_waited_for_again_when_their_address_is_back() {
    let world = world_with_callbacks();
    let (first, _second) = (member(&world, "one", ONE), member(&world, "two", TWO));
    world.provider.solves("site", 3_600);
    let caller = first.asks(recaptcha("site"));
    world.after(5);
    first.kill();
    world.after(20);
    let again = member(&world, "one", ONE);
    world.after(10);
    let before = world.provider.polled_at("task-1").len();
    world.after(25);
    assert_eq!(world.provider.polled_at("task-1").len(), before, "waited for until it is overdue");
    let address = world.provider.last_submit("site").callback().to_owned();
    again.hears(&address, CallbackResult::Answered(token("token-1"))).expect("safe");
    world.after(1);
    assert!(earliest(&again.reads(caller.key())) >= world.moment(55_000), "it came after 60 s");
}

/// Two nodes behind one address: callbacks come to the node that is left. A load balancer may still send some to the
/// dead node for a while. One poll at the end of that time shows which tasks were not solved in it.
#[test]
fn a_callback_to_an_address_that_a_dead_node_shared_is_dated_from_its_arrival() {
    let world = world_with_callbacks();
    let (first, second) = (member(&world, "one", ONE), member(&world, "two", ONE));
    world.provider.solves("site", 3_600);
    let caller = first.asks(recaptcha("site"));
    world.after(5);
    first.kill();
    world.after(85);
    let address = world.provider.last_submit("site").callback().to_owned();
    second.hears(&address, CallbackResult::Answered(token("token-1"))).expect("safe");
    world.after(1);
    let polled = world.provider.polled_at("task-1");
    assert!(polled[0] <= 5_000 + NOTICED_MS, "polled when the loss was noticed: {polled:?}");
    assert!(earliest(&second.reads(caller.key())) >= world.moment(80_000), "{polled:?}");
}

/// The last node, after two have died one after the other, polls the tasks of both.
#[test]
fn the_last_node_that_is_left_asks_for_the_tasks_of_all_others() {
    for seed in 1..=6 {
        let world = world_with(Policy { callbacks: true, ..Policy::DEFAULT }, seed);
        let (first, second) = (member(&world, "one", ONE), member(&world, "two", TWO));
        let third = member(&world, "three", "http://three/callback");
        // Which node asks depends on the numbers of all nodes.
        for n in 0..seed {
            member(&world, "more", &format!("http://more-{n}/callback"));
        }
        for site in ["a", "b"] {
            world.provider.solves(site, 67);
        }
        let callers = [first.asks(recaptcha("a")), second.asks(recaptcha("b"))];
        world.after(5);
        first.kill();
        world.after(3);
        second.kill();
        world.after(75);
        for caller in &callers {
            let at = earliest(&third.reads(caller.key()));
            assert!(at >= world.moment(60_000), "seed {seed}: {at:?}");
        }
    }
}
