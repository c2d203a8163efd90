//! What one order learns about the provider holds for all orders: busy, no funds, blocked, unreachable.

use crate::stories::provider::{PollScript, SubmitScript};
use crate::stories::world::{turnstile, world};
use quittance_engine::Outcome;
use quittance_lifecycle::{DeadCause, FaultClass, Phase, Policy, Preset, Signal};
use std::sync::Arc;

/// Promise: an account that is blocked or has no funds stops every submit. Nothing is retried automatically. When an
/// operator has fixed the account, all orders continue.
#[test]
fn an_account_that_needs_a_person_stops_every_submit_until_it_is_released() {
    for (class, code) in [
        (FaultClass::NoFunds, "ERROR_ZERO_BALANCE"),
        (FaultClass::AccountBlocked, "ERROR_KEY_DOES_NOT_EXIST"),
    ] {
        let world = world();
        let node = world.node();
        world.provider.on_submit("first", &[SubmitScript::Refuses(class, code)]);
        let first = node.asks(turnstile("first"));
        let others: Vec<_> = (0..5).map(|n| node.asks(turnstile(&format!("other-{n}")))).collect();
        world.after(120);
        assert_eq!(world.provider.submits("first").len(), 1, "{code}");
        assert_eq!(world.provider.taken(), 0, "{code}: no other order tries");
        assert!(
            others.iter().chain([&first]).all(|caller| caller.last_outcome().is_none()),
            "{code}: they wait"
        );
        assert!(matches!(node.reads(first.key()).phase, Phase::Queued { held: true, .. }), "{code}");

        let engine = Arc::clone(&node.engine);
        let released = node.does(async move { engine.release().await }).expect("the store is there");
        assert_eq!(released, 6, "{code}: the one that was held, and those that found the gate shut");
        world.provider.solves("first", 5);
        world.after(25);
        assert!(first.token().is_some(), "{code}");
        assert_eq!(world.provider.taken(), 6, "{code}");
    }
}

/// Promise: held orders wait for an operator until their deadline, and then become dead letters.
#[test]
fn a_held_order_is_a_dead_letter_at_its_deadline() {
    let world = world();
    let node = world.node();
    world
        .provider
        .on_submit("site", &[SubmitScript::Refuses(FaultClass::NoFunds, "ERROR_ZERO_BALANCE"); 500]);
    let caller = node.asks(turnstile("site").within(60));
    world.after(61);
    assert!(matches!(
        caller.last_outcome(),
        Some(Outcome::NotYet | Outcome::Dead(DeadCause::Deadline | DeadCause::NotTaken(_)))
    ));
    assert!(matches!(
        node.reads(caller.key()).phase,
        Phase::Dead { cause: DeadCause::Deadline | DeadCause::NotTaken(_), .. }
    ));
    assert_eq!(world.provider.submits("site").len(), 1);
}

/// Promise: a closed account in the reply to a poll costs nothing: the task is polled again after the release.
#[test]
fn a_task_that_cannot_be_polled_is_kept_until_the_account_is_fixed() {
    let world = world();
    let node = world.node();
    world.provider.solves("site", 5);
    world
        .provider
        .on_poll("site", &[PollScript::Faults(FaultClass::AccountBlocked, "ERROR_KEY_DOES_NOT_EXIST")]);
    let caller = node.asks(turnstile("site"));
    world.after(120);
    assert_eq!((world.provider.polled_at("task-1").len(), caller.last_outcome()), (1, None));
    let engine = Arc::clone(&node.engine);
    assert_eq!(node.does(async move { engine.release().await }).expect("the store is there"), 1);
    world.after(3);
    assert_eq!(caller.token().as_deref(), Some("token-1"));
    assert_eq!(world.provider.taken(), 1);
}

/// Promise: a busy provider slows every submit, not only the one that was rejected.
#[test]
fn a_busy_provider_slows_every_submit() {
    let world = world();
    let node = world.node();
    world.provider.on_submit("first", &[SubmitScript::Refuses(FaultClass::Busy, "ERROR_NO_SLOT_AVAILABLE")]);
    let first = node.asks(turnstile("first"));
    let second = node.asks(turnstile("second"));
    world.after_ms(900);
    assert!(world.provider.submits("second").is_empty(), "the provider is left in peace");
    world.after(3);
    assert_eq!(world.provider.submits("first").len(), 2);
    let [second_at] = world.provider.submitted_at("second")[..] else { panic!("one submit") };
    assert!((1_000..=2_100).contains(&second_at), "{second_at}");
    assert!(node.reads(second.key()).retries.iter().all(|retries| *retries == 0), "waiting is not a retry");
    assert!(first.is_placed());
}

/// Promise: faults that cost nothing are retried until the deadline, and the caller then gets the reason.
#[test]
fn a_busy_provider_is_tried_until_the_deadline_and_the_caller_learns_that_it_was_busy() {
    let world = world();
    let node = world.node();
    let busy = SubmitScript::Refuses(FaultClass::Busy, "ERROR_NO_SLOT_AVAILABLE");
    world.provider.on_submit("soon", &[busy; 7]);
    world.provider.solves("soon", 8);
    let lucky = node.asks(turnstile("soon"));
    world.after(280);
    assert!(lucky.token().is_some(), "seven refusals, and still served: {:?}", lucky.last_outcome());
    world.provider.on_submit("never", &[busy; 500]);
    let caller = node.asks(turnstile("never"));
    world.after(3600);
    let last_outcome = caller.last_outcome();
    assert!(
        matches!(&last_outcome, Some(Outcome::Dead(DeadCause::NotTaken(Some(fault)))) if fault.class == FaultClass::Busy),
        "{last_outcome:?}"
    );
}

/// Promise: after a code with a penalty nothing is submitted before the pause is over. If the code is a block,
/// nothing is polled either.
#[test]
fn a_provider_that_wants_to_be_left_alone_is_left_alone() {
    let world = world();
    let node = world.node();
    world.provider.solves("early", 400);
    let _early = node.asks(turnstile("early"));
    world.after(30);
    world
        .provider
        .on_submit("late", &[SubmitScript::Refuses(FaultClass::Busy, crate::stories::provider::BLOCK)]);
    let _late = node.asks(turnstile("late"));
    world.after_ms(100);
    let blocked_at = world.now();
    let _other = node.asks(turnstile("other"));
    world.after(150);
    assert!(world.provider.submits("other").is_empty(), "no submit during the pause");
    let asked = world.provider.polls().iter().filter(|(at, _)| *at > blocked_at).count();
    assert_eq!(asked, 0, "no poll during the pause");
    assert_eq!(node.engine.provider_states()[0].1.name(), "throttled");
    world.after(200);
    assert_eq!(world.provider.submits("other").len(), 1, "afterwards all goes on");
    assert!(world.provider.polls().iter().any(|(at, _)| *at > blocked_at));
}

/// Promise: with the preset `standard`, "busy" has a limit of five retries.
#[test]
fn a_provider_that_stays_busy_is_tried_six_times() {
    let world = crate::stories::world::world_with(Policy::DEFAULT.with_preset(Preset::Standard), 1);
    let node = world.node();
    world
        .provider
        .on_submit("site", &[SubmitScript::Refuses(FaultClass::Busy, "ERROR_NO_SLOT_AVAILABLE"); 500]);
    let caller = node.asks(turnstile("site"));
    world.after(3600);
    assert_eq!(world.provider.submits("site").len(), 6);
    assert!(matches!(caller.last_outcome(), Some(Outcome::Dead(DeadCause::Spent(_)))));
}

/// Promise: one order at a time tries an unreachable provider, and orders that only wait for the result use up no
/// retries.
#[test]
fn an_outage_is_probed_by_one_at_a_time_and_the_others_wait() {
    let world = world();
    let node = world.node();
    let off = SubmitScript::Refuses(FaultClass::Unreachable, "connection refused");
    for n in 0..5 {
        world.provider.on_submit(&format!("early-{n}"), &[off]);
        node.asks(turnstile(&format!("early-{n}")));
    }
    let late: Vec<_> = (0..20).map(|n| node.asks(turnstile(&format!("late-{n}")))).collect();
    world.after_ms(900);
    assert_eq!(world.provider.taken(), 0);
    world.after(60);
    assert_eq!(world.provider.taken(), 25, "the first that is taken opens it for all");
    for caller in &late {
        let order = node.reads(caller.key());
        assert_eq!((order.last_attempt, order.retries), (1, [0; Signal::ALL.len()]));
    }
}
