//! After a crash, orders resume and do not restart. A graceful stop loses nothing.

use crate::stories::provider::SubmitScript;
use crate::stories::world::{recaptcha, turnstile, world, world_with_callbacks};
use quittance_engine::Outcome;
use quittance_lifecycle::{DeadCause, Origin, Phase};

/// Promise: if the node of an order is gone, another node continues it, and polls the same task id.
#[test]
fn a_crash_while_solving_goes_on_asking_for_the_same_task() {
    let world = world();
    let node = world.node();
    world.provider.solves("site", 40);
    let key = node.asks(turnstile("site")).key();
    world.after(17);
    assert_eq!(world.provider.polled_at("task-1").len(), 5);
    node.kill();
    world.after(5);
    let other = world.node();
    let waiter = other.asks(turnstile("site"));
    world.after(30);
    assert_eq!(waiter.token().as_deref(), Some("token-1"));
    assert!(waiter.answered_at().is_some_and(|at| at <= 46_000), "{:?}", waiter.answered_at());
    assert_eq!(world.provider.submits("site").len(), 1);
    assert!(world.provider.polls().iter().all(|(_, tasks)| *tasks == ["task-1"]));
    assert_eq!(other.reads(key).attempts.len(), 1);
    let usage = world.usage();
    assert_eq!((usage.attempts, usage.paid, usage.in_doubt), (1, 1, 0));
}

/// Promise: an accepted order is carried out, even if its node died before the first submit.
#[test]
fn a_crash_right_after_the_placement_loses_nothing() {
    let world = world();
    let node = world.node();
    world.store.is_far_away(5);
    world.provider.solves("site", 5);
    let caller = node.begins(turnstile("site"));
    world.after_ms(11);
    assert!(caller.is_placed());
    node.kill();
    assert!(world.provider.submits("site").is_empty());
    let other = world.node();
    world.after(30);
    assert_eq!(world.provider.submits("site").len(), 1);
    assert!(matches!(other.reads(caller.key()).phase, Phase::Solved { .. }));
}

/// Promise: an order becomes a dead letter at its deadline. A caller that places it again resumes the same task and
/// pays nothing.
#[test]
fn an_order_past_its_deadline_is_a_dead_letter_and_resumes_the_same_task() {
    let world = world();
    let node = world.node();
    world.provider.solves("site", 100);
    let caller = node.asks(turnstile("site").within(30));
    world.after(31);
    assert!(matches!(
        caller.last_outcome(),
        Some(Outcome::NotYet | Outcome::Dead(DeadCause::Deadline | DeadCause::NotTaken(_)))
    ));
    assert_eq!(caller.answered_at(), Some(30_000));
    assert!(matches!(
        node.reads(caller.key()).phase,
        Phase::Dead { cause: DeadCause::Deadline | DeadCause::NotTaken(_), .. }
    ));
    world.after(39);
    let again = node.asks(turnstile("site"));
    assert_eq!(again.placed().origin, Origin::Joined);
    world.after(60);
    assert_eq!(again.token().as_deref(), Some("token-1"));
    assert_eq!(world.provider.submits("site").len(), 1);
    let usage = world.usage();
    assert_eq!((usage.dead, usage.revived, usage.attempts, usage.paid), (1, 1, 1, 1));
}

/// Promise: a caller that joins shortly before the deadline does not get "too late" at once.
#[test]
fn a_late_joiner_moves_the_deadline() {
    let world = world();
    let node = world.node();
    world.provider.solves("site", 45);
    let first = node.asks(turnstile("site").within(40));
    world.after(30);
    let second = node.asks(turnstile("site").within(40));
    assert_eq!(second.placed().origin, Origin::Joined);
    world.after(30);
    assert_eq!(first.last_outcome(), Some(Outcome::NotYet), "its own time was up");
    assert_eq!(second.token().as_deref(), Some("token-1"));
    assert_eq!(world.usage().dead, 0);
}

/// Promise: a graceful stop accepts nothing new, finishes its work, and loses nothing.
#[test]
fn a_graceful_stop_waits_for_the_submit_under_way_and_loses_nothing() {
    let world = world();
    let node = world.node();
    world.provider.on_submit("slow", &[SubmitScript::Takes(10_000)]);
    world.provider.solves("slow", 30);
    let key = node.asks(turnstile("slow")).key();
    world.after(1);
    node.engine.stop();
    world.after(5);
    assert!(node.is_working(), "the reply is still to come, and it is worth money");
    world.after(5);
    assert!(!node.is_working());
    assert!(matches!(node.reads(key).phase, Phase::Solving { .. }));
    let queued = node.asks(turnstile("later"));
    world.after(5);
    assert!(world.provider.submits("later").is_empty(), "a stopped node buys nothing");

    let successor = world.node();
    world.after(30);
    assert!(
        matches!(&successor.reads(key).phase, Phase::Solved { answer, .. } if answer.payload.text == "token-1")
    );
    assert_eq!(world.provider.submits("later").len(), 1, "what it had accepted is carried out");
    assert!(queued.is_placed());
    assert_eq!(world.usage().in_doubt, 0);
}

/// Promise: a graceful stop also writes the counters of the last second.
#[test]
fn a_graceful_stop_writes_down_what_was_counted_last() {
    let world = world_with_callbacks();
    let node = world.node();
    node.asks(turnstile("site"));
    world.after_ms(1_500);
    for _ in 0..5 {
        node.asks(turnstile("site"));
    }
    node.engine.stop();
    world.after(5);
    assert!(!node.is_working());
    let usage = world.usage();
    assert_eq!((usage.asked, usage.joined), (6, 5));
}

/// Promise: an order is carried out whatever happens to the caller.
#[test]
fn a_caller_that_hangs_up_does_not_cancel_the_order() {
    let world = world();
    let node = world.node();
    world.provider.solves("site", 12);
    let caller = node.asks(turnstile("site"));
    world.after(3);
    caller.hangs_up();
    world.after(20);
    assert_eq!(caller.last_outcome(), None);
    assert_eq!(world.store.truth().watching(), 0, "no watch is left");
    let again = node.asks(turnstile("site"));
    assert_eq!((again.placed().origin, again.token().as_deref()), (Origin::Cached, Some("token-1")));
    assert_eq!(world.provider.taken(), 1);
}

/// Promise: every waiting order has a timer, so an outage of the store makes an order late but does not lose it.
#[test]
fn a_store_that_was_away_for_a_minute_makes_an_order_late_and_never_lost() {
    let world = world();
    let node = world.node();
    world.provider.solves("site", 12);
    let caller = node.asks(recaptcha("site"));
    world.after(5);
    world.store.goes_away();
    world.after(60);
    assert_eq!(caller.last_outcome(), None);
    world.store.comes_back();
    world.after(10);
    assert_eq!(caller.token().as_deref(), Some("token-1"));
    assert_eq!(world.provider.taken(), 1);
}
