//! In plain sight: one long scenario, and every counter of the usage after it.

use crate::stories::provider::{SubmitScript, token};
use crate::stories::world::{turnstile, world_with_callbacks};
use quittance_lifecycle::{CallbackResult, Counters, FaultClass};
use quittance_ports::MemorySpill;
use quittance_sim::plants::story_rules::{TransitionRule, what_did_not_arrive_was_rejected};
use std::sync::Arc;

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
        rejected: 1,
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

/// How many submits count as rejected, if the provider first cannot be reached, then has no slot, and then takes the task.
fn rejected(plant: Option<TransitionRule>) -> u64 {
    let world = world_with_callbacks();
    let node = world.node_with(Arc::new(MemorySpill::default()), |settings| {
        if let Some(rule) = plant {
            settings.rules.plant_transition(rule);
        }
    });
    let unreachable = SubmitScript::Refuses(FaultClass::Unreachable, "no route");
    let busy = SubmitScript::Refuses(FaultClass::Busy, "ERROR_NO_SLOT_AVAILABLE");
    world.provider.on_submit("flaky", &[unreachable, busy]);
    node.asks(turnstile("flaky"));
    world.after(30);
    let usage = world.usage();
    assert_eq!((usage.attempts, usage.paid), (3, 1));
    usage.rejected
}

/// Promise: the usage tells a provider that rejects from one that cannot be reached.
#[test]
fn a_submit_that_did_not_arrive_is_not_rejected() {
    assert_eq!(rejected(None), 1);
    assert_eq!(rejected(Some(what_did_not_arrive_was_rejected)), 2);
}
