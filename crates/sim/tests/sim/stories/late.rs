//! Late answers: a paid answer settles the order, revives it, goes to the stock, or is counted as waste.

use crate::stories::provider::{SubmitScript, token};
use crate::stories::world::{StoryCaller, StoryNode, StoryWorld, recaptcha, turnstile, world_with_callbacks};
use quittance_engine::{CallbackOutcome, Outcome};
use quittance_lifecycle::{CallbackResult, DeadCause, Origin, Phase};
use std::time::Duration;

/// How long an attempt for turnstile stays in doubt: 99 of 100 answers come within 90 s, plus a reserve.
const DOUBT_S: u64 = 100;

fn call(node: &StoryNode, address: &str, text: &str) -> CallbackOutcome {
    node.hears(address, CallbackResult::Answered(token(text))).expect("safe")
}

/// An order whose first attempt was in doubt until the wait ended, and whose second attempt was accepted.
fn twice_submitted(world: &StoryWorld, node: &StoryNode) -> StoryCaller {
    world.provider.on_submit("site", &[SubmitScript::FallsSilent(1_000)]);
    let caller = node.asks(turnstile("site"));
    world.after(DOUBT_S + 1);
    assert_eq!(world.provider.submits("site").len(), 2);
    assert_eq!(node.reads(caller.key()).possible_doubles, 1);
    caller
}

/// Promise: an answer to an earlier attempt settles an order that is still open.
#[test]
fn a_late_answer_settles_an_order_that_is_still_open() {
    let world = world_with_callbacks();
    let node = world.node();
    let caller = twice_submitted(&world, &node);
    assert_eq!(call(&node, world.provider.submits("site")[0].callback(), "first"), CallbackOutcome::Applied);
    world.settle();
    assert_eq!(caller.token().as_deref(), Some("first"));
    let usage = world.usage();
    assert_eq!((usage.late, usage.solved, usage.in_doubt_settled, usage.possible_doubles), (1, 1, 1, 1));
}

/// Promise: an answer that no caller needs any more goes to the stock of its target, and an exclusive order gets it.
#[test]
fn a_late_answer_to_a_solved_order_goes_to_the_stock_and_an_exclusive_order_gets_it() {
    let world = world_with_callbacks();
    let node = world.node();
    let caller = twice_submitted(&world, &node);
    let submits = world.provider.submits("site");
    assert_eq!(call(&node, submits[1].callback(), "second"), CallbackOutcome::Applied);
    assert_eq!(call(&node, submits[0].callback(), "first"), CallbackOutcome::Applied);
    world.after(1);
    assert_eq!(caller.token().as_deref(), Some("second"));
    let lucky = node.asks(turnstile("site").exclusive());
    assert_eq!((lucky.placed().origin, lucky.token().as_deref()), (Origin::Stock, Some("first")));
    let unlucky = node.asks(turnstile("site").exclusive());
    assert_eq!(unlucky.placed().origin, Origin::Api, "there was one, and it went to one");
    let usage = world.usage();
    assert_eq!((usage.paid, usage.late, usage.from_stock, usage.wasted), (3, 1, 1, 0));
    assert_eq!(usage.cost_micros, 2 * 2_990);
}

/// Promise: a paid task that trails a settled order is polled, and its answer goes to the stock.
#[test]
fn a_task_that_trails_behind_a_settled_order_is_polled_and_stocked() {
    let world = world_with_callbacks();
    let node = world.node();
    let caller = twice_submitted(&world, &node);
    world.provider.solves("site", 20);
    assert_eq!(call(&node, world.provider.submits("site")[0].callback(), "first"), CallbackOutcome::Applied);
    world.after(60);
    assert_eq!(caller.token().as_deref(), Some("first"));
    let lucky = node.asks(turnstile("site").exclusive());
    assert_eq!((lucky.placed().origin, lucky.token().as_deref()), (Origin::Stock, Some("token-2")));
    assert_eq!(world.provider.taken(), 2);
}

/// Promise: an answer revives a dead letter, and a caller that places the order again gets it without paying.
#[test]
fn a_late_answer_revives_a_dead_letter() {
    let world = world_with_callbacks();
    let node = world.node();
    let caller = node.asks(turnstile("site").within(30));
    world.after(31);
    assert!(matches!(node.reads(caller.key()).phase, Phase::Dead { cause: DeadCause::Deadline, .. }));
    world.after(30);
    assert_eq!(call(&node, world.provider.last_submit("site").callback(), "gold"), CallbackOutcome::Applied);
    let again = node.asks(turnstile("site").within(30));
    assert_eq!((again.placed().origin, again.token().as_deref()), (Origin::Cached, Some("gold")));
    let usage = world.usage();
    assert_eq!((usage.dead, usage.revived, usage.late, usage.paid), (1, 1, 1, 1));
}

/// Promise: an answer that is late and too old is surplus: it is counted with its cost, and handed to no caller.
#[test]
fn a_late_answer_that_is_too_old_is_counted_as_waste_with_its_cost() {
    let world = world_with_callbacks();
    let node = world.node();
    world.provider.on_submit("site", &[SubmitScript::FallsSilent(1_000)]);
    let caller = node.asks(recaptcha("site"));
    world.after(20);
    // The provider calls, gets no answer, and calls again two minutes later.
    let address = world.provider.submits("site")[0].callback().to_owned();
    node.engine.callback_not_answered(address.rsplit('/').next().unwrap_or_default(), Duration::ZERO);
    world.after(130);
    assert_eq!(world.provider.submits("site").len(), 2);
    assert_eq!(call(&node, &address, "first"), CallbackOutcome::Applied);
    world.settle();
    assert_eq!(caller.last_outcome(), None, "it may be as old as the first call: 130 s");
    assert_eq!(call(&node, world.provider.submits("site")[1].callback(), "second"), CallbackOutcome::Applied);
    world.settle();
    assert_eq!(caller.token().as_deref(), Some("second"));
    let usage = world.usage();
    assert_eq!((usage.late, usage.wasted, usage.wasted_micros), (1, 1, 2_990));
    assert_eq!((usage.paid, usage.cost_micros), (2, 2 * 2_990));
}

/// Promise: callers of a failed order got the failure. An answer that comes later serves the next caller.
#[test]
fn a_late_answer_to_a_failed_order_serves_the_next_caller() {
    let world = world_with_callbacks();
    let node = world.node();
    world.provider.on_submit("site", &[SubmitScript::FallsSilent(1_000)]);
    let caller = node.asks(turnstile("site"));
    world.after(2);
    let engine = std::sync::Arc::clone(&node.engine);
    let key = caller.key();
    node.does(async move { engine.cancel(&key).await }).expect("the store is there");
    world.settle();
    assert!(matches!(caller.last_outcome(), Some(Outcome::Failed(_))));
    world.after(DOUBT_S);
    assert!(matches!(node.reads(key).phase, Phase::Failed { .. }), "nothing new is bought");
    assert_eq!(call(&node, world.provider.submits("site")[0].callback(), "gold"), CallbackOutcome::Applied);
    let next = node.asks(turnstile("site"));
    assert_eq!((next.placed().origin, next.token().as_deref()), (Origin::Cached, Some("gold")));
    assert_eq!(world.provider.taken(), 1);
}
