//! In plain sight: one long scenario, and every counter of the usage after it.

use crate::stories::provider::{SubmitScript, token};
use crate::stories::world::{turnstile, world_with_callbacks};
use quittance_lifecycle::{CallbackResult, Counters, FaultClass};

/// Promise: the usage shows what was ordered, paid, saved, retried and lost, and its numbers add up.
#[test]
fn the_usage_of_a_day_add_up() {
    let world = world_with_callbacks();
    let node = world.node();
    let call = |site: &str, text: &str| {
        let address = world.provider.last_submit(site).callback().to_owned();
        node.hears(&address, CallbackResult::Answered(token(text))).expect("safe");
        world.settle();
    };
    // Bought once, joined twice, and repeated once.
    (0..3).for_each(|_| drop(node.asks(turnstile("popular"))));
    world.after(10);
    call("popular", "one");
    node.asks(turnstile("popular"));
    // Refused, and held back.
    world.provider.on_submit("typo", &[SubmitScript::Refuses(FaultClass::Caller, "ERROR_WRONG_GOOGLEKEY")]);
    (0..2).for_each(|_| drop(node.asks(turnstile("typo"))));
    // Unreachable at first.
    world.provider.on_submit("flaky", &[SubmitScript::Refuses(FaultClass::Unreachable, "no route")]);
    node.asks(turnstile("flaky"));
    world.after(5);
    call("flaky", "two");
    // The callback is lost: the fallback poll finds it.
    world.provider.solves("quiet", 20);
    node.asks(turnstile("quiet"));
    world.after(60);
    let expected = Counters {
        asked: 8,
        joined: 2,
        cached: 1,
        refused: 1,
        attempts: 5,
        paid: 3,
        retried: 1,
        recovered_by_poll: 1,
        solved: 3,
        failed: 1,
        priced: 3,
        cost_micros: 3 * 2_990,
        ..Counters::default()
    };
    assert_eq!(world.usage(), expected);
}
