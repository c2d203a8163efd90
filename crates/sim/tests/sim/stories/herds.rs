//! Many callers that want one thing at the same time.

use crate::stories::provider::SubmitScript;
use crate::stories::world::{turnstile, world, world_with, world_with_callbacks};
use quittance_engine::Outcome;
use quittance_lifecycle::{FailCause, Fault, FaultClass, Origin, Phase, Policy, Refusal};

/// Trap: check, then set. A herd of 50 pays 2 to 36 times. The seeds try many orders of events.
#[test]
fn a_herd_of_fifty_on_three_nodes_pays_once() {
    for seed in 0..20 {
        let world = world_with(Policy::DEFAULT, seed);
        world.store.is_far_away(5);
        world.provider.solves("site", 10);
        let nodes = [world.node(), world.node(), world.node()];
        let callers: Vec<_> = (0..50).map(|n| nodes[n % 3].begins(turnstile("site"))).collect();
        world.after(30);
        assert_eq!(world.provider.submits("site").len(), 1, "seed {seed}");
        for caller in &callers {
            assert_eq!(caller.token().as_deref(), Some("token-1"), "seed {seed}");
        }
        let made = callers.iter().filter(|caller| caller.placed().origin == Origin::Api).count();
        assert_eq!(made, 1, "seed {seed}: one of them made it");
        let usage = world.usage();
        assert_eq!((usage.asked, usage.joined, usage.attempts, usage.paid), (50, 49, 1, 1), "seed {seed}");
    }
}

/// Promise: placing an order that exists costs one round trip to the store, and nothing else.
#[test]
fn joining_an_order_costs_one_call_to_the_store() {
    let world = world_with_callbacks();
    let node = world.node();
    let first = node.asks(turnstile("site"));
    let before = world.store.calls();
    let engine = std::sync::Arc::clone(&node.engine);
    let joined = node.does(async move { engine.place("turnstile", turnstile("site").draft).await });
    assert_eq!(joined.expect("joined").origin, Origin::Joined);
    let mut expected = before;
    *expected.entry("commit").or_default() += 1;
    assert_eq!(world.store.calls(), expected);
    first.hangs_up();
}

/// Trap: a waiter that polls. A hundred callers wait for a minute without a call to the store.
#[test]
fn a_hundred_waiters_wait_for_a_minute_and_never_look() {
    let world = world_with_callbacks();
    let node = world.node();
    let callers: Vec<_> = (0..100).map(|_| node.asks(turnstile("site"))).collect();
    let (loads, watches) = (world.store.calls_of("load"), world.store.calls_of("watch"));
    assert_eq!(world.store.truth().watching(), 100);
    // The first fallback poll would come a moment later.
    world.after(50);
    assert_eq!((world.store.calls_of("load"), world.store.calls_of("watch")), (loads, watches));
    let word = quittance_lifecycle::CallbackResult::Answered(crate::stories::provider::token("gold"));
    node.hears(world.provider.last_submit("site").callback(), word).expect("safe");
    world.settle();
    assert!(callers.iter().all(|caller| caller.answered_at() == Some(50_000)));
    assert_eq!(world.store.calls_of("load"), loads + 101, "one look each, and one for the callback");
    assert_eq!(world.store.truth().watching(), 0, "no watch is left behind");
}

/// Trap: a hundred waiters that read the store after every poll. A poll without a result wakes none of them.
#[test]
fn a_poll_that_finds_nothing_does_not_make_a_hundred_waiters_look() {
    let world = world();
    let node = world.node();
    let _callers: Vec<_> = (0..100).map(|_| node.asks(turnstile("site"))).collect();
    let loads = world.store.calls_of("load");
    world.after(60);
    let polls = world.provider.polled_at("task-1").len();
    let looks = world.store.calls_of("load") - loads;
    assert!(looks <= 2 * polls, "{looks} loads while one order was polled {polls} times in vain");
}

/// Trap: a waiter that waits for a node that died.
#[test]
fn a_waiter_gets_the_answer_from_another_node_when_the_one_that_submitted_is_dead() {
    let world = world();
    let (owner, other) = (world.node(), world.node());
    world.provider.solves("site", 12);
    let made = owner.asks(turnstile("site"));
    let waiter = other.asks(turnstile("site"));
    assert_eq!((made.placed().origin, waiter.placed().origin), (Origin::Api, Origin::Joined));
    world.after(5);
    owner.kill();
    world.after(20);
    assert_eq!(waiter.token().as_deref(), Some("token-1"));
    assert!(waiter.answered_at().is_some_and(|at| at <= 20_000), "{:?}", waiter.answered_at());
    assert_eq!(world.provider.submits("site").len(), 1);
}

/// Promise: a herd does not pay for one rejection many times. Trap: a failed order that is remembered for ever.
#[test]
fn a_refusal_is_held_against_a_herd_for_a_while_and_then_forgotten() {
    let world = world();
    let nodes = [world.node(), world.node()];
    world.provider.on_submit("typo", &[SubmitScript::Refuses(FaultClass::Caller, "ERROR_WRONG_GOOGLEKEY")]);
    let first = nodes[0].asks(turnstile("typo"));
    let fault = Fault::new(FaultClass::Caller, "ERROR_WRONG_GOOGLEKEY");
    assert_eq!(first.last_outcome(), Some(Outcome::Failed(FailCause::Rejected(fault.clone()))));
    for n in 0..20 {
        world.after(1);
        let again = nodes[n % 2].asks(turnstile("typo"));
        let expected = Refusal::HeldBack { fault: fault.clone(), until: world.moment(30_000) };
        assert_eq!(again.refusal(), Some(expected));
    }
    assert_eq!(world.provider.submits("typo").len(), 1);
    world.after(10);
    world.provider.solves("typo", 5);
    let fixed = nodes[1].asks(turnstile("typo"));
    assert_eq!(fixed.placed().origin, Origin::Api);
    world.after(20);
    assert_eq!(fixed.token().as_deref(), Some("token-2"), "the operator has fixed the site key");
    let usage = world.usage();
    assert_eq!((usage.asked, usage.refused, usage.attempts), (22, 20, 2));
}

/// Promise: paid once. The store wrote the intent and its reply was lost. The node recognises its own write and
/// submits once, without doubt.
#[test]
fn a_lost_reply_to_the_commit_of_the_intent_is_recognised_as_our_own() {
    let world = world();
    let (node, _other) = (world.node(), world.node());
    world.provider.solves("site", 5);
    world.store.loses_one_reply(|order| matches!(order.phase, Phase::Submitting { .. }));
    let caller = node.asks(turnstile("site"));
    assert_eq!(world.provider.submits("site").len(), 0, "not before it is known");
    world.after(20);
    assert_eq!(world.provider.submitted_at("site").len(), 1);
    assert!(world.provider.submitted_at("site")[0] <= 200);
    assert_eq!(caller.token().as_deref(), Some("token-1"));
    let usage = world.usage();
    assert_eq!((usage.attempts, usage.in_doubt, usage.possible_doubles, usage.paid), (1, 0, 0, 1));
}

/// Promise: paid once. The store wrote the order and its reply was lost. The caller learns that the order exists, and
/// it is created once.
#[test]
fn a_lost_reply_to_the_commit_of_a_placement_places_the_order_once() {
    let world = world();
    let node = world.node();
    world.provider.solves("site", 5);
    world.store.loses_one_reply(|order| matches!(order.phase, Phase::Queued { .. }));
    let caller = node.asks(turnstile("site").exclusive());
    world.after(20);
    assert_eq!(caller.token().as_deref(), Some("token-1"));
    assert_eq!((world.orders().len(), world.provider.taken()), (1, 1));
    assert_eq!(world.usage().asked, 1);
}

/// Promise: no caller gets the id of an order that does not exist. Without a store, a caller gets an error within
/// seconds.
#[test]
fn a_placement_without_a_store_is_refused_within_seconds_and_buys_nothing() {
    let world = world();
    let node = world.node();
    world.store.goes_away();
    let caller = node.asks(turnstile("site"));
    world.after(3);
    assert!(!caller.is_placed());
    assert!(caller.placed_at().is_some_and(|at| at <= 2_200), "{:?}", caller.placed_at());
    world.store.comes_back();
    world.after(60);
    assert!(world.orders().is_empty() && world.provider.taken() == 0);
}
