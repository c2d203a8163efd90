//! Callbacks: which are accepted, which are not, and what happens if none comes.

use crate::stories::provider::{PollScript as Poll, SubmitScript, token};
use crate::stories::world::{recaptcha, turnstile, world_with, world_with_callbacks};
use quittance_engine::{CallbackOutcome, Outcome};
use quittance_lifecycle::{
    CallbackResult, Counters, FailCause, Fault, FaultClass, Phase, Policy, WhyIgnored,
};
use std::time::Duration;

fn answered(text: &str) -> CallbackResult {
    CallbackResult::Answered(token(text))
}

fn faulted(class: FaultClass, code: &str) -> CallbackResult {
    CallbackResult::Faulted(Fault::new(class, code))
}

/// Promise: callback first. A callback settles the order without a poll, and the caller gets the answer at once.
#[test]
fn a_callback_settles_the_order_and_no_poll_is_made() {
    let world = world_with_callbacks();
    let node = world.node();
    let caller = node.asks(turnstile("site"));
    world.after(20);
    let outcome = node.hears(world.provider.last_submit("site").callback(), answered("gold"));
    assert_eq!(outcome.expect("safe"), CallbackOutcome::Applied);
    world.after(600);
    assert_eq!((caller.token().as_deref(), caller.answered_at()), (Some("gold"), Some(20_000)));
    assert!(world.provider.polls().is_empty());
    let expected = Counters {
        asked: 1,
        attempts: 1,
        paid: 1,
        solved: 1,
        priced: 1,
        cost_micros: 2_990,
        ..Counters::default()
    };
    assert_eq!(world.usage(), expected);
}

/// Trap: a callback accepted without a check, with a made-up MAC, or with the MAC of another order or attempt.
#[test]
fn a_callback_without_a_valid_proof_changes_nothing() {
    let world = world_with_callbacks();
    let node = world.node();
    let caller = node.asks(turnstile("ours"));
    node.asks(turnstile("other"));
    let before = node.reads(caller.key());
    let parts = |site: &str| -> Vec<String> {
        let address = world.provider.last_submit(site).callback().to_owned();
        address.rsplit('/').next().unwrap_or_default().split('-').map(str::to_owned).collect()
    };
    let (ours, others) = (parts("ours"), parts("other"));
    let [key, born, attempt, target, mac] = &ours[..] else { panic!("{ours:?}") };
    let forgeries = [
        format!("{key}-{born}-{attempt}-{target}-{:032x}", 0),
        format!("{key}-{born}-{attempt}-{target}-{}", others[4]),
        format!("{key}-{born}-2-{target}-{mac}"),
        format!("{key}-{born}-{attempt}-{}-{mac}", others[3]),
        format!("{}-{born}-{attempt}-{target}-{mac}", others[0]),
        format!("{key}-{born}-{attempt}-{target}"),
        "task-1".to_owned(),
    ];
    for forgery in &forgeries {
        assert_eq!(
            node.hears(forgery, answered("forged")).expect("safe"),
            CallbackOutcome::Forged,
            "{forgery}"
        );
    }
    assert_eq!(node.engine.forged(), forgeries.len() as u64);
    assert_eq!(node.reads(caller.key()), before);
    assert_eq!(caller.last_outcome(), None);
}

/// A sender that knows an address of ours and makes up the rest must change nothing.
#[test]
fn a_callback_that_names_another_task_changes_nothing() {
    let world = world_with_callbacks();
    let node = world.node();
    let caller = node.asks(turnstile("site"));
    world.after(1);
    let address = world.provider.last_submit("site").callback().to_owned();
    let hears = |task: &str, text: &str| {
        let (engine, task, word) = (std::sync::Arc::clone(&node.engine), task.to_owned(), answered(text));
        let segment = address.rsplit('/').next().unwrap_or_default().to_owned();
        node.does(async move { engine.called_back(&segment, Some(task), word, Duration::ZERO).await })
            .expect("safe")
    };
    assert_eq!(hears("task-99", "forged"), CallbackOutcome::Ignored(WhyIgnored::OtherTask));
    world.settle();
    assert_eq!(caller.last_outcome(), None);
    assert_eq!(hears("task-1", "gold"), CallbackOutcome::Applied);
    world.settle();
    assert_eq!(caller.token().as_deref(), Some("gold"));
}

/// Trap: an unknown id stored for ever.
#[test]
fn a_callback_for_an_unknown_order_is_not_stored() {
    let world = world_with_callbacks();
    let node = world.node();
    let stranger = format!("{}-{}-1-{:032x}", "ab".repeat(32), 1_800_000_000_000u64, 7);
    assert_eq!(node.hears(&stranger, answered("forged")).expect("safe"), CallbackOutcome::Forged);
    assert!(world.orders().is_empty());

    // A genuine one, for an order that we have long forgotten.
    let caller = node.asks(turnstile("site"));
    let address = world.provider.last_submit("site").callback().to_owned();
    assert_eq!(node.hears(&address, answered("gold")).expect("safe"), CallbackOutcome::Applied);
    world.settle();
    assert!(caller.token().is_some());
    world.after(2 * 24 * 3600);
    assert!(world.orders().is_empty(), "the record was purged");
    assert_eq!(node.hears(&address, answered("gold")).expect("safe"), CallbackOutcome::Forgotten);
    assert!(world.orders().is_empty());

    // And for the forgotten record of a key that has a new one.
    let again = node.asks(turnstile("site"));
    let outcome = node.hears(&address, answered("stale")).expect("safe");
    assert_eq!(outcome, CallbackOutcome::Ignored(WhyIgnored::UnknownAttempt));
    assert_eq!(again.last_outcome(), None);
}

/// Trap: an error code stored as a token.
#[test]
fn an_error_code_in_a_callback_is_never_handed_out_as_an_answer() {
    let world = world_with_callbacks();
    let node = world.node();
    let call =
        |site: &str, word| node.hears(world.provider.last_submit(site).callback(), word).expect("safe");

    let typo = node.asks(turnstile("typo"));
    assert_eq!(call("typo", faulted(FaultClass::Caller, "ERROR_BAD_TOKEN")), CallbackOutcome::Applied);
    let fault = Fault::new(FaultClass::Caller, "ERROR_BAD_TOKEN");
    assert_eq!(typo.last_outcome(), None, "it gets its outcome when the world goes on");
    world.settle();
    assert_eq!(typo.last_outcome(), Some(Outcome::Failed(FailCause::Rejected(fault))));

    let hard = node.asks(turnstile("hard"));
    assert_eq!(
        call("hard", faulted(FaultClass::Unsolvable, "ERROR_CAPTCHA_UNSOLVABLE")),
        CallbackOutcome::Applied
    );
    world.after(1);
    assert_eq!(hard.last_outcome(), None);
    assert_eq!(world.provider.submits("hard").len(), 2, "submitted again");

    let odd = node.asks(turnstile("odd"));
    let outcome = call("odd", faulted(FaultClass::UnlistedCode, "ERROR_BLUE_MOON"));
    assert_eq!(outcome, CallbackOutcome::Ignored(WhyIgnored::NotFinal));
    assert_eq!(call("odd", answered("gold")), CallbackOutcome::Applied);
    world.settle();
    assert_eq!(odd.token().as_deref(), Some("gold"), "and the true answer is still taken");
}

/// Trap: a callback thrown away because it came before the reply to the submit.
#[test]
fn a_callback_before_the_reply_to_the_submit_settles_the_order_and_is_paid_once() {
    let world = world_with_callbacks();
    let node = world.node();
    world.provider.on_submit("quick", &[SubmitScript::Takes(3_000)]);
    let caller = node.asks(turnstile("quick"));
    world.after(1);
    let outcome = node.hears(world.provider.last_submit("quick").callback(), answered("gold"));
    assert_eq!(outcome.expect("safe"), CallbackOutcome::Applied);
    world.after(600);
    assert_eq!((caller.token().as_deref(), caller.answered_at()), (Some("gold"), Some(1000)));
    assert_eq!(world.provider.submits("quick").len(), 1);
    assert!(world.provider.polls().is_empty(), "the reply that came after wakes nothing");
    let usage = world.usage();
    assert_eq!((usage.paid, usage.solved, usage.in_doubt, usage.cost_micros), (1, 1, 0, 2_990));
}

/// Promise: a repeated callback changes nothing, whatever its content.
#[test]
fn a_repeated_callback_changes_nothing() {
    let world = world_with_callbacks();
    let node = world.node();
    let caller = node.asks(turnstile("site"));
    let address = world.provider.last_submit("site").callback().to_owned();
    assert_eq!(node.hears(&address, answered("gold")).expect("safe"), CallbackOutcome::Applied);
    world.settle();
    let before = node.reads(caller.key());
    for word in [answered("gold"), answered("brass"), faulted(FaultClass::Caller, "ERROR_BAD_TOKEN")] {
        let outcome = node.hears(&address, word).expect("safe");
        assert_eq!(outcome, CallbackOutcome::Ignored(WhyIgnored::AlreadyAnswered));
    }
    assert_eq!(node.reads(caller.key()), before);
    assert_eq!(caller.token().as_deref(), Some("gold"));
    let usage = world.usage();
    assert_eq!((usage.paid, usage.solved, usage.cost_micros), (1, 1, 2_990));
}

/// Trap: a flat 120 s before the fallback poll, which expires a token that lives 120 s.
#[test]
fn the_fallback_poll_comes_while_a_token_of_120_seconds_can_still_be_used() {
    let world = world_with_callbacks();
    let node = world.node();
    world.provider.solves("lost", 3);
    let caller = node.asks(recaptcha("lost"));
    world.after(120);
    assert_eq!(world.provider.polled_at("task-1").len(), 1);
    let Some(Outcome::Answered(answer)) = caller.last_outcome() else {
        panic!("{:?}", caller.last_outcome())
    };
    let answered_at = caller.answered_at().expect("it has an outcome");
    assert!(answered_at <= 80_000, "{answered_at}");
    let truly_expires = world.moment(3_000 + 120_000);
    assert!(answer.expires.is_some_and(|expires| expires <= truly_expires), "no life is made up");
    assert!(answer.expires.is_some_and(|expires| expires >= world.moment(answered_at + 40_000)));
    let usage = world.usage();
    assert_eq!((usage.recovered_by_poll, usage.paid, usage.wasted), (1, 1, 0));
}

/// Promise: never lost. Anti-Captcha removes a result 60 s after the solve, and the answer that was paid was gone when
/// it was first polled, at 67 s.
#[test]
fn the_fallback_poll_comes_before_the_provider_removes_the_result() {
    let kept = Some(Duration::from_secs(60));
    let world = world_with(Policy { callbacks: true, result_kept: kept, ..Policy::DEFAULT }, 1);
    let node = world.node();
    world.provider.solves("lost", 3);
    let caller = node.asks(recaptcha("lost"));
    world.after(62);
    assert_eq!(world.provider.polled_at("task-1").len(), 1, "{:?}", world.provider.polled_at("task-1"));
    assert!(matches!(caller.last_outcome(), Some(Outcome::Answered(_))), "{:?}", caller.last_outcome());
}

/// Promise: never wasted. The token was ready all the time, and one lost reply must not waste it.
#[test]
fn one_lost_reply_to_the_fallback_poll_does_not_cost_the_answer() {
    let world = world_with_callbacks();
    let node = world.node();
    world.provider.takes_its_time(50);
    world.provider.solves("lost", 3);
    world.provider.on_poll("lost", &[Poll::Lost]);
    let caller = node.asks(recaptcha("lost"));
    world.after(120);
    assert_eq!(world.provider.polled_at("task-1").len(), 2);
    assert_eq!(world.provider.submits("lost").len(), 1, "polled at {:?}", world.provider.polled_at("task-1"));
    assert_eq!(caller.token().as_deref(), Some("token-1"));
}

/// Promise: no token counts as newer than it is. A token that took 100 s, with polls until then, is fresh.
#[test]
fn a_slow_token_that_was_polled_too_early_is_fresh_when_it_comes() {
    let world = world_with_callbacks();
    let node = world.node();
    let caller = node.asks(recaptcha("slow"));
    world.after(100);
    let outcome = node.hears(world.provider.last_submit("slow").callback(), answered("gold"));
    assert_eq!(outcome.expect("safe"), CallbackOutcome::Applied);
    world.settle();
    let Some(Outcome::Answered(answer)) = caller.last_outcome() else {
        panic!("{:?}", caller.last_outcome())
    };
    let last_in_vain = world.provider.polled_at("task-1").last().copied().expect("polled");
    // A provider calls within 5 s of the solve.
    assert_eq!(answer.expires, Some(world.moment(last_in_vain.max(95_000) + 120_000)));
    assert!(matches!(node.reads(caller.key()).phase, Phase::Solved { .. }));
}
