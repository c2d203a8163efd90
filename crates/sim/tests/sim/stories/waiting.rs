//! Waiting callers: how they are woken, and that they leave nothing behind.

use crate::stories::provider::token;
use crate::stories::world::{turnstile, world_with_callbacks};
use quittance_engine::Outcome;
use quittance_lifecycle::CallbackResult;

/// Promise: a commit wakes waiters on every node at once, without a timer.
#[test]
fn waiters_on_every_node_get_the_answer_when_it_comes() {
    let world = world_with_callbacks();
    let nodes = [world.node(), world.node(), world.node()];
    let callers: Vec<_> = (0..9).map(|n| nodes[n % 3].asks(turnstile("site"))).collect();
    world.after_ms(12_345);
    let address = world.provider.last_submit("site").callback().to_owned();
    nodes[2].hears(&address, CallbackResult::Answered(token("gold"))).expect("safe");
    world.settle();
    for caller in &callers {
        assert_eq!((caller.token().as_deref(), caller.answered_at()), (Some("gold"), Some(12_345)));
    }
}

/// Promise: a caller waits no longer than its timeout, and the order continues without it.
#[test]
fn a_caller_whose_time_is_up_gets_a_timeout_and_the_order_goes_on() {
    let world = world_with_callbacks();
    let node = world.node();
    let patient = node.asks(turnstile("site"));
    let hasty = node.asks(turnstile("site").within(10));
    world.after(11);
    assert_eq!((hasty.last_outcome(), hasty.answered_at()), (Some(Outcome::NotYet), Some(10_000)));
    let address = world.provider.last_submit("site").callback().to_owned();
    node.hears(&address, CallbackResult::Answered(token("gold"))).expect("safe");
    world.settle();
    assert_eq!(patient.token().as_deref(), Some("gold"));
    assert_eq!(world.store.truth().watching(), 0);
}

/// Promise: waiting continues when a store is away for a while.
#[test]
fn a_waiter_outlasts_a_store_that_goes_away_and_comes_back() {
    let world = world_with_callbacks();
    let node = world.node();
    let first = node.asks(turnstile("site"));
    let address = world.provider.last_submit("site").callback().to_owned();
    let waiter = node.begins(turnstile("site"));
    world.settle();
    world.store.goes_away();
    world.after(10);
    world.store.comes_back();
    node.hears(&address, CallbackResult::Answered(token("gold"))).expect("safe");
    world.after(2);
    assert_eq!((first.token().as_deref(), waiter.token().as_deref()), (Some("gold"), Some("gold")));
}
