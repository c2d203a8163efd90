//! The stock serves callers that share and callers with a key of their own, but not callers that want nothing from
//! it. Answers that sites refuse late in their life lower the trusted life.

use crate::stories::world::{StoryNode, StoryWorld, turnstile, world};
use quittance_engine::{ApplyOutcome, Outcome};
use quittance_lifecycle::{Key, Origin, Phase};
use std::sync::Arc;
use std::time::Duration;

fn cancel(node: &StoryNode, key: Key) {
    let engine = Arc::clone(&node.engine);
    node.does(async move { engine.cancel(&key).await }).expect("the store is there");
}

fn report(node: &StoryNode, key: Key, is_good: bool) -> ApplyOutcome {
    let engine = Arc::clone(&node.engine);
    node.does(async move { engine.report(&key, is_good).await }).expect("the store is there")
}

/// An exclusive order that its caller cancelled, so its answer is in stock.
fn stocked(world: &StoryWorld, node: &StoryNode) -> Key {
    world.provider.solves("site", 3);
    let caller = node.asks(turnstile("site").exclusive());
    world.after(1);
    cancel(node, caller.key());
    world.after(20);
    assert!(node.reads(caller.key()).list_stock().is_some());
    caller.key()
}

/// Promise: a repeat of an order gets the same answer, also if it came from stock.
#[test]
fn a_caller_with_a_key_is_served_from_the_stock_and_gets_the_same_again() {
    let world = world();
    let (one, two) = (world.node(), world.node());
    stocked(&world, &one);
    let first = one.asks(turnstile("site").exclusive().keyed("mine"));
    world.after(1);
    assert_eq!(first.token().as_deref(), Some("token-1"));
    assert!(one.reads(first.key()).is_from_stock());
    let again = two.asks(turnstile("site").exclusive().keyed("mine"));
    world.after(1);
    assert_eq!((again.placed().origin, again.token().as_deref()), (Origin::Replayed, Some("token-1")));
    let other = two.asks(turnstile("site").exclusive().keyed("another"));
    world.after(1);
    assert_eq!(other.last_outcome(), None, "it went to one order");
    assert_eq!(world.provider.taken(), 2);
    let usage = world.usage();
    assert_eq!((usage.from_stock, usage.asked, usage.cached), (1, 4, 1));
    assert!(usage.saved_ms > 0 && usage.stock_age_ms >= 15_000, "{usage:?}");
}

/// Promise: never wasted. A surplus answer serves the next caller, even if it would share an answer.
#[test]
fn a_shared_order_is_served_from_the_stock_before_anything_is_bought() {
    let world = world();
    let node = world.node();
    stocked(&world, &node);
    let callers = [0, 1, 2].map(|_| node.asks(turnstile("site")));
    world.after(1);
    for caller in &callers {
        assert_eq!(caller.token().as_deref(), Some("token-1"));
    }
    assert_eq!(world.provider.taken(), 1);
    assert_eq!((world.usage().from_stock, world.usage().joined + world.usage().cached), (1, 2));
}

/// Promise: never wasted, and the usage shows waste. An answer that an order got from stock counts as waste once if
/// no caller fetches it, and not at all if one does.
#[test]
fn an_answer_that_an_order_got_from_the_stock_is_waste_once_or_not_at_all() {
    let used = world();
    let node = used.node();
    stocked(&used, &node);
    let caller = node.asks(turnstile("site"));
    used.after(400);
    assert_eq!(caller.token().as_deref(), Some("token-1"));
    assert_eq!((used.usage().from_stock, used.usage().wasted), (1, 0));

    let left = world();
    let node = left.node();
    stocked(&left, &node);
    let engine = Arc::clone(&node.engine);
    let request_spec = turnstile("site");
    let placed =
        node.does(async move { engine.place("turnstile", request_spec.draft).await }).expect("it is placed");
    left.after(1);
    assert!(node.reads(placed.key).is_from_stock());
    left.after(400);
    assert_eq!((left.usage().from_stock, left.usage().wasted), (1, 1));
}

#[test]
fn a_caller_that_wants_nothing_from_the_stock_buys() {
    let world = world();
    let node = world.node();
    let key = stocked(&world, &node);
    for request_spec in [turnstile("site").exclusive(), turnstile("site"), turnstile("site").keyed("mine")] {
        let mut request_spec = request_spec;
        request_spec.draft.no_stock = true;
        let caller = node.asks(request_spec);
        assert_eq!(caller.placed().origin, Origin::Api);
        assert_eq!(caller.last_outcome(), None);
    }
    world.settle();
    assert_eq!(world.provider.taken(), 4);
    assert!(node.reads(key).list_stock().is_some(), "it still stands there");
}

/// Promise: never lost. The stock gave an answer, and the node died before it replied: the order finds the answer
/// again.
#[test]
fn a_node_that_dies_with_an_answer_from_the_stock_in_hand_loses_nothing() {
    let world = world();
    let (one, two) = (world.node(), world.node());
    stocked(&world, &two);
    world.store.is_far_away(200);
    let caller = one.begins(turnstile("site").exclusive().keyed("mine"));
    // Placed after 400 ms; on its way back from the stock at 700.
    world.after_ms(700);
    assert!(caller.is_placed());
    one.kill();
    world.store.is_far_away(0);
    world.after(20);
    let again = two.asks(turnstile("site").exclusive().keyed("mine"));
    world.after(20);
    assert_eq!(again.token().as_deref(), Some("token-1"));
    assert_eq!(world.provider.taken(), 1);
    let taken = world.orders().iter().filter(|order| matches!(order.phase, Phase::Claimed { .. })).count();
    assert_eq!(taken, 2, "the order, and what it took");
}

/// Promise: one round trip. A caller that does not share is served in one call to the store. That the answer has
/// reached it is written afterwards.
#[test]
fn an_order_served_from_the_stock_costs_one_call() {
    let world = world();
    let node = world.node();
    stocked(&world, &node);
    let before = world.store.calls();
    let caller = node.asks(turnstile("site").exclusive());
    assert_eq!(caller.token().as_deref(), Some("token-1"));
    let after = world.store.calls();
    let made: Vec<_> = after
        .iter()
        .filter_map(|(verb, count)| {
            let more = count - before.get(verb).copied().unwrap_or_default();
            (more > 0).then_some((*verb, more))
        })
        .collect();
    assert_eq!(made, [("commit", 1), ("load", 1), ("take", 1)]);
    assert_eq!(caller.answered_at(), caller.placed_at(), "it waited for nothing but the take");
}

/// Promise: refusals late in an answer's life lower the trusted life, and answers that exist keep their own expiry.
#[test]
fn refusals_late_in_life_lower_what_is_trusted_and_early_ones_do_not() {
    let world = world();
    let node = world.node();
    let life_of = |site: &str| {
        let caller = node.asks(turnstile(site).exclusive());
        world.after(20);
        match caller.last_outcome() {
            Some(Outcome::Answered(answer)) => answer.expires.expect("it expires").since(answer.earliest),
            other => panic!("{other:?}"),
        }
    };
    world.provider.solves("early", 3);
    for _ in 0..6 {
        let caller = node.asks(turnstile("early").exclusive());
        world.after(20);
        report(&node, caller.key(), false);
    }
    world.after(15);
    assert_eq!(
        life_of("early"),
        Duration::from_secs(300),
        "what is bad from the start says nothing about life"
    );

    let world = crate::stories::world::world();
    let node = world.node();
    world.provider.solves("late", 3);
    for _ in 0..3 {
        let first = node.asks(turnstile("late").exclusive());
        world.after(1);
        cancel(&node, first.key());
        world.after(220);
        let second = node.asks(turnstile("late").exclusive());
        assert_eq!(second.placed().origin, Origin::Stock);
        report(&node, second.key(), false);
    }
    world.after(15);
    let trusts = node.engine.trusts();
    assert_eq!(trusts.len(), 1);
    assert!(trusts[0].trusted < trusts[0].life && trusts[0].trusted >= trusts[0].life / 2, "{trusts:?}");
    let caller = node.asks(turnstile("late").exclusive());
    world.after(20);
    let Some(Outcome::Answered(answer)) = caller.last_outcome() else {
        panic!("{:?}", caller.last_outcome())
    };
    assert_eq!(answer.expires, Some(answer.earliest + trusts[0].trusted));
}
