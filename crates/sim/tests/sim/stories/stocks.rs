//! Exclusive orders, cancelled orders, and the stock between them: one answer goes to one order.

use crate::stories::provider::token;
use crate::stories::world::{StoryCaller, StoryNode, StoryWorld, turnstile, world, world_with};
use quittance_engine::{ApplyOutcome, Outcome};
use quittance_lifecycle::{CallbackResult, FailCause, Key, Origin, Phase, Policy};
use std::collections::BTreeSet;
use std::sync::Arc;

fn cancel(node: &StoryNode, key: Key) -> ApplyOutcome {
    let engine = Arc::clone(&node.engine);
    node.does(async move { engine.cancel(&key).await }).expect("the store is there")
}

/// Puts one answer into the stock of a site: a caller ordered it, and then cancelled.
fn stocked(world: &StoryWorld, node: &StoryNode, site: &str) {
    let caller = node.asks(turnstile(site).exclusive());
    cancel(node, caller.key());
    world.settle();
    let address = world.provider.last_submit(site).callback().to_owned();
    node.hears(&address, CallbackResult::Answered(token("stocked"))).expect("safe");
    world.settle();
    assert!(node.reads(caller.key()).list_stock().is_some());
}

fn with_callbacks(seed: u64) -> StoryWorld {
    world_with(Policy { callbacks: true, ..Policy::DEFAULT }, seed)
}

/// Trap: one token given to 23 callers. With `exclusive`, each placement gets an answer of its own.
#[test]
fn exclusive_placements_get_an_answer_each() {
    let world = world();
    let nodes = [world.node(), world.node()];
    world.provider.solves("site", 5);
    let callers: Vec<_> = (0..23).map(|n| nodes[n % 2].asks(turnstile("site").exclusive())).collect();
    world.after(30);
    let tokens: BTreeSet<_> = callers.iter().filter_map(StoryCaller::token).collect();
    assert_eq!(tokens.len(), 23);
    assert_eq!(world.provider.taken(), 23);
    assert_eq!(world.usage().joined, 0);
}

/// Trap: check, then take. Two nodes see one answer in stock at the same instant: it goes to one.
#[test]
fn a_stocked_answer_goes_to_one_although_two_nodes_claim_it_at_the_same_instant() {
    for seed in 0..20 {
        let world = with_callbacks(seed);
        let (one, two) = (world.node(), world.node());
        stocked(&world, &one, "site");
        world.store.is_far_away(5);
        let callers = [&one, &two].map(|node| node.begins(turnstile("site").exclusive()));
        world.after(1);
        let served = callers.iter().filter(|caller| caller.token().as_deref() == Some("stocked")).count();
        assert_eq!(served, 1, "seed {seed}");
        assert_eq!(world.provider.taken(), 2, "seed {seed}: the other one bought its own");
        let usage = world.usage();
        assert_eq!((usage.from_stock, usage.asked, usage.wasted), (1, 3, 0), "seed {seed}");
    }
}

/// Trap: a token that was just handed out is also put into the stock.
#[test]
fn an_answer_that_was_handed_out_is_on_no_stock() {
    let world = with_callbacks(1);
    let node = world.node();
    stocked(&world, &node, "site");
    let first = node.asks(turnstile("site").exclusive());
    assert_eq!(first.token().as_deref(), Some("stocked"));
    assert!(world.orders().iter().all(|order| order.list_stock().is_none()));
    let second = node.asks(turnstile("site").exclusive());
    assert_eq!((second.placed().origin, second.last_outcome()), (Origin::Api, None));
}

/// Promise: answers do not change each other's life, and an answer with too little life left is not taken.
#[test]
fn each_answer_on_a_stock_keeps_its_own_expiry() {
    let world = with_callbacks(1);
    let node = world.node();
    stocked(&world, &node, "site");
    world.after(200);
    // While one that is too old for the caller stands there, the caller buys, and leaves it for one that needs less.
    let demanding = node.asks(turnstile("site").exclusive().needing(150));
    assert_eq!(demanding.placed().origin, Origin::Api);
    let modest = node.asks(turnstile("site").exclusive());
    assert_eq!(modest.token().as_deref(), Some("stocked"));
    let Some(Outcome::Answered(answer)) = modest.last_outcome() else {
        panic!("{:?}", modest.last_outcome())
    };
    assert_eq!(answer.expires, Some(world.moment(300_000)));
}

/// Trap: the last token in a stock is thrown away. An answer that is not taken is kept until it expires, and then is
/// waste.
#[test]
fn an_unclaimed_answer_expires_on_time_and_is_counted() {
    let world = with_callbacks(1);
    let node = world.node();
    stocked(&world, &node, "site");
    world.after(297);
    assert_eq!(world.usage().wasted, 0);
    assert_eq!(
        world.orders().iter().filter(|order| order.list_stock().is_some()).count(),
        1,
        "one second to go"
    );
    world.after(2);
    assert!(world.orders().iter().all(|order| matches!(order.phase, Phase::Expired { .. })));
    let usage = world.usage();
    assert_eq!((usage.wasted, usage.wasted_micros), (1, 2_990));
}

/// Promise: after a cancel nothing new is bought. An order that was still queued ends at once.
#[test]
fn a_cancelled_order_that_was_not_submitted_is_never_bought() {
    let world = world();
    let node = world.node();
    let busy = crate::stories::provider::SubmitScript::Refuses(
        quittance_lifecycle::FaultClass::Busy,
        "ERROR_NO_SLOT_AVAILABLE",
    );
    world.provider.on_submit("site", &[busy]);
    let caller = node.asks(turnstile("site"));
    cancel(&node, caller.key());
    world.after(600);
    assert_eq!(caller.last_outcome(), Some(Outcome::Failed(FailCause::Cancelled)));
    assert_eq!(caller.answered_at(), Some(0));
    assert_eq!(world.provider.submits("site").len(), 1);
    let usage = world.usage();
    assert_eq!((usage.cancelled, usage.failed, usage.dead), (1, 0, 0));
}

/// Promise: after a cancel nothing new is bought, and a paid answer goes to the stock.
#[test]
fn a_cancelled_order_is_still_polled_and_its_answer_goes_to_the_stock() {
    let world = world();
    let node = world.node();
    world.provider.solves("site", 12);
    let caller = node.asks(turnstile("site"));
    world.after(5);
    cancel(&node, caller.key());
    world.settle();
    assert_eq!(caller.last_outcome(), Some(Outcome::Failed(FailCause::Cancelled)));
    world.after(20);
    let other = node.asks(turnstile("site").exclusive());
    assert_eq!((other.placed().origin, other.token().as_deref()), (Origin::Stock, Some("token-1")));
    assert_eq!(world.provider.taken(), 1);
    let usage = world.usage();
    assert_eq!((usage.cancelled, usage.from_stock, usage.wasted), (1, 1, 0));
}

/// Promise: after a cancel nothing new is bought. If the task is unsolvable, it is not submitted again, because no
/// caller wants it.
#[test]
fn a_cancelled_order_whose_task_fails_is_not_submitted_again() {
    let world = world();
    let node = world.node();
    let unsolvable = quittance_lifecycle::FaultClass::Unsolvable;
    world.provider.on_poll(
        "site",
        &[crate::stories::provider::PollScript::Faults(unsolvable, "ERROR_CAPTCHA_UNSOLVABLE")],
    );
    let caller = node.asks(turnstile("site"));
    world.after(3);
    cancel(&node, caller.key());
    world.after(60);
    assert_eq!(world.provider.taken(), 1);
    assert!(matches!(node.reads(caller.key()).phase, Phase::Failed { cause: FailCause::Cancelled, .. }));
}

/// Promise: a caller that places a cancelled order again joins the running task, and pays nothing.
#[test]
fn a_cancelled_order_that_is_placed_again_joins_the_running_task() {
    let world = world();
    let node = world.node();
    world.provider.solves("site", 12);
    let first = node.asks(turnstile("site"));
    world.after(5);
    cancel(&node, first.key());
    world.after(1);
    let second = node.asks(turnstile("site"));
    assert_eq!(second.placed().origin, Origin::Joined);
    world.after(20);
    assert_eq!(second.token().as_deref(), Some("token-1"));
    assert_eq!(world.provider.taken(), 1);
    assert!(
        world.orders().iter().all(|order| order.list_stock().is_none()),
        "it belongs to its caller, and stands in no stock"
    );
}

/// Promise: a caller that places a cancelled order again after the solve gets its answer from stock, and no other
/// caller does.
#[test]
fn a_cancelled_order_that_is_placed_again_after_the_solve_takes_its_answer_off_the_stock() {
    let world = world();
    let node = world.node();
    world.provider.solves("site", 5);
    let first = node.asks(turnstile("site"));
    cancel(&node, first.key());
    world.after(20);
    let second = node.asks(turnstile("site"));
    assert_eq!((second.placed().origin, second.token().as_deref()), (Origin::Cached, Some("token-1")));
    let stranger = node.asks(turnstile("site").exclusive());
    assert_eq!(stranger.placed().origin, Origin::Api);
    assert_eq!(world.provider.taken(), 2);
}

/// Promise: never wasted. The caller of an exclusive order cancels, and its solved answer goes to another order.
#[test]
fn a_solved_exclusive_answer_goes_to_another_when_its_order_is_cancelled() {
    let world = with_callbacks(1);
    let node = world.node();
    let gone = node.asks(turnstile("site").exclusive());
    gone.hangs_up();
    world.after(5);
    let address = world.provider.last_submit("site").callback().to_owned();
    node.hears(&address, CallbackResult::Answered(token("gold"))).expect("safe");
    let before = node.asks(turnstile("site").exclusive());
    assert_eq!(before.placed().origin, Origin::Api, "it belongs to its caller until it is cancelled");
    cancel(&node, gone.key());
    let after = node.asks(turnstile("site").exclusive());
    assert_eq!((after.placed().origin, after.token().as_deref()), (Origin::Stock, Some("gold")));
}
