//! In doubt does not mean rejected: a submit without a reply waits for one. Only then it is made again, once, and
//! counted.

use crate::stories::provider::{SubmitScript, token};
use crate::stories::world::{
    StoryCaller, StoryNode, StoryWorld, turnstile, world, world_with, world_with_callbacks,
};
use quittance_engine::{ApplyOutcome, Outcome};
use quittance_lifecycle::{CallbackResult, DeadCause, Key, Origin, Phase, Policy, Refusal, WhenInDoubt};
use std::sync::Arc;
use std::time::Duration;

/// An order whose node died during the submit, and the node that finds it.
fn crashed_while_submitting(world: &StoryWorld) -> (Key, StoryNode) {
    let node = world.node();
    world.provider.on_submit("site", &[SubmitScript::Hangs]);
    let key = node.asks(turnstile("site")).key();
    assert_eq!(world.provider.submits("site").len(), 1);
    node.kill();
    (key, world.node())
}

/// Promise: after our own crash during a submit, the attempt is in doubt, and the callback settles it without a
/// second payment.
#[test]
fn a_crash_while_submitting_is_a_doubt_that_the_callback_settles() {
    let world = world_with_callbacks();
    let (key, node) = crashed_while_submitting(&world);
    world.after(29);
    assert!(matches!(node.reads(key).phase, Phase::Submitting { .. }));
    world.after(3);
    assert!(matches!(node.reads(key).phase, Phase::InDoubt { .. }));
    let caller = node.asks(turnstile("site"));
    assert_eq!(caller.placed().origin, Origin::Joined);
    world.after(28);
    node.hears(world.provider.last_submit("site").callback(), CallbackResult::Answered(token("gold")))
        .expect("safe");
    world.after(600);
    assert_eq!((caller.token().as_deref(), caller.answered_at()), (Some("gold"), Some(60_000)));
    assert_eq!(world.provider.submits("site").len(), 1);
    let usage = world.usage();
    assert_eq!((usage.in_doubt, usage.in_doubt_settled, usage.possible_doubles), (1, 1, 0));
    assert_eq!((usage.attempts, usage.paid), (1, 1));
}

/// Promise: if no callback comes, the order is submitted again after the wait, and the usage counts one possible
/// double payment.
#[test]
fn a_doubt_that_stays_silent_is_submitted_again_after_the_wait_and_counted_once() {
    let world = world_with_callbacks();
    let (key, node) = crashed_while_submitting(&world);
    let caller = node.asks(turnstile("site"));
    world.provider.solves("site", 5);
    world.after(99);
    assert_eq!(world.provider.submits("site").len(), 1);
    world.after(2);
    assert_eq!(world.provider.submits("site").len(), 2);
    world.after(60);
    assert_eq!(caller.token().as_deref(), Some("token-2"));
    assert_eq!(node.reads(key).possible_doubles, 1);
    let usage = world.usage();
    assert_eq!((usage.in_doubt, usage.possible_doubles, usage.attempts, usage.paid), (1, 1, 2, 1));
}

/// Promise: without callbacks, too, the attempt is in doubt first, and the usual pause comes before the second
/// payment.
#[test]
fn without_callbacks_a_lost_reply_is_submitted_again_after_a_pause_and_counted() {
    let world = world();
    let node = world.node();
    world.provider.on_submit("site", &[SubmitScript::FallsSilent(20_000)]);
    world.provider.solves("site", 5);
    let caller = node.asks(turnstile("site"));
    world.after(20);
    assert!(matches!(node.reads(caller.key()).phase, Phase::InDoubt { .. }));
    world.after(40);
    let [_, second] = world.provider.submitted_at("site")[..] else { panic!("two submits") };
    assert!((21_000..=22_100).contains(&second), "{second}");
    assert_eq!(caller.token().as_deref(), Some("token-2"));
    let usage = world.usage();
    assert_eq!((usage.in_doubt, usage.possible_doubles), (1, 1));
}

/// Trap: a retry counter that begins at zero again, for attempts in doubt. There are never more than four submits.
#[test]
fn a_provider_that_never_replies_is_tried_four_times() {
    let world = world();
    let node = world.node();
    world.provider.on_submit("site", &[SubmitScript::FallsSilent(1_000); 500]);
    let caller = node.asks(turnstile("site"));
    world.after(3600);
    let attempts: Vec<u32> = world.provider.submits("site").iter().map(|submit| submit.attempt).collect();
    assert_eq!(attempts, [1, 2, 3, 4]);
    assert!(matches!(caller.last_outcome(), Some(Outcome::Dead(DeadCause::DoubtsSpent(_)))));
    let usage = world.usage();
    assert_eq!((usage.attempts, usage.in_doubt, usage.possible_doubles, usage.dead), (4, 4, 3, 1));
}

fn died_in_doubt(world: &StoryWorld) -> (StoryCaller, StoryNode) {
    let node = world.node();
    world.provider.on_submit("site", &[SubmitScript::FallsSilent(1_000)]);
    world.provider.solves("site", 5);
    let caller = node.asks(turnstile("site"));
    world.after(2);
    (caller, node)
}

fn world_without_second_tries() -> StoryWorld {
    world_with(Policy { when_in_doubt: WhenInDoubt::DeadLetter, ..Policy::DEFAULT }, 1)
}

/// Promise: if no callback can come and the operator chose so, an attempt in doubt makes a dead letter. A placement
/// is then refused until an operator decides.
#[test]
fn a_doubt_may_be_a_dead_letter_that_only_a_person_sends_on() {
    let world = world_without_second_tries();
    let (caller, node) = died_in_doubt(&world);
    assert_eq!(caller.last_outcome(), Some(Outcome::Dead(DeadCause::Doubt)));
    assert_eq!(caller.answered_at(), Some(1000));
    assert_eq!(node.asks(turnstile("site")).refusal(), Some(Refusal::NeedsAPerson));
    world.after(24 * 3600);
    assert_eq!(node.asks(turnstile("site")).refusal(), Some(Refusal::NeedsAPerson));
    assert_eq!(world.provider.submits("site").len(), 1);

    let (engine, key) = (Arc::clone(&node.engine), caller.key());
    let replayed = node.does(async move { engine.replay(&key).await }).expect("the store is there");
    assert!(matches!(replayed, ApplyOutcome::Advanced { .. }));
    let again = node.asks(turnstile("site"));
    world.after(60);
    assert_eq!(again.token().as_deref(), Some("token-2"));
    let usage = world.usage();
    assert_eq!((usage.dead, usage.revived, usage.possible_doubles, usage.refused), (1, 1, 1, 2));
}

/// Promise: an immediate replay still waits for a callback that may be on its way.
#[test]
fn a_replay_right_after_the_dead_letter_first_waits_for_a_late_callback() {
    let world = world_without_second_tries();
    let (caller, node) = died_in_doubt(&world);
    let (engine, key) = (Arc::clone(&node.engine), caller.key());
    node.does(async move { engine.replay(&key).await }).expect("the store is there");
    assert!(matches!(node.reads(key).phase, Phase::InDoubt { .. }));
    world.after(120);
    assert_eq!(world.provider.submits("site").len(), 2);
    assert!(world.provider.submitted_at("site")[1] >= 31_000);
    assert!(matches!(node.reads(key).phase, Phase::Solved { .. }));
}

/// Promise: a late reply, from a node that seemed dead, is accepted: the task is polled and not paid again.
#[test]
fn a_reply_that_comes_while_the_order_is_in_doubt_settles_the_doubt() {
    let world = world_with_callbacks();
    let node = world.node();
    world.provider.on_submit("site", &[SubmitScript::FallsSilent(1_000)]);
    let caller = node.asks(turnstile("site"));
    world.after(2);
    // A callback that says nothing final still says that the task exists.
    let engine = Arc::clone(&node.engine);
    let address = world.provider.last_submit("site").callback().rsplit('/').next().map(str::to_owned);
    let fault = quittance_lifecycle::Fault::new(quittance_lifecycle::FaultClass::UnlistedCode, "CAPCHA_SLOW");
    let word = CallbackResult::Faulted(fault);
    let segment = address.expect("an address");
    let outcome = node
        .does(async move { engine.called_back(&segment, Some("task-1".into()), word, Duration::ZERO).await });
    assert_eq!(outcome.expect("safe"), quittance_engine::CallbackOutcome::Applied);
    assert!(matches!(node.reads(caller.key()).phase, Phase::Solving { .. }));
    world.provider.solves("site", 5);
    world.after(60);
    assert_eq!(caller.token().as_deref(), Some("token-1"));
    assert_eq!(world.provider.submits("site").len(), 1);
    assert_eq!(world.usage().possible_doubles, 0);
}
