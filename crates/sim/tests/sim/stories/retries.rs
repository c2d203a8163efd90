//! Which faults are retried, how often, and which are not.

use crate::stories::provider::{PollScript, SubmitScript};
use crate::stories::world::{StoryNode, StoryWorld, turnstile, world, world_with};
use quittance_engine::Outcome;
use quittance_lifecycle::{
    Counters, DeadCause, FailCause, Fault, FaultClass, Key, Phase, Policy, Preset, TimelineEvent,
};
use quittance_ports::MemorySpill;
use std::sync::Arc;

const OFF: SubmitScript = SubmitScript::Refuses(FaultClass::Unreachable, "connection refused");

/// Trap: a retry through the submit that begins counting at zero, so a limit of 3 makes 487 submits.
#[test]
fn a_retry_limit_of_three_means_at_most_four_submits() {
    let world = world_with(Policy::DEFAULT.with_preset(Preset::Standard), 1);
    let node = world.node();
    world.provider.on_submit("down", &[OFF; 500]);
    let caller = node.asks(turnstile("down"));
    world.after(3600);
    let at = world.provider.submitted_at("down");
    assert_eq!(at.len(), 4);
    let pauses: Vec<u64> = at.windows(2).map(|pair| pair[1] - pair[0]).collect();
    for (pause, base) in pauses.iter().zip([1000, 2000, 4000]) {
        assert!((base..=base + 1100).contains(pause), "{pauses:?}");
    }
    let fault = Fault::new(FaultClass::Unreachable, "connection refused");
    assert_eq!(caller.last_outcome(), Some(Outcome::Dead(DeadCause::Spent(fault))));
    assert_eq!(caller.answered_at(), at.last().copied(), "returned as soon as it is known");
    let expected = Counters { asked: 1, attempts: 4, retried: 3, dead: 1, ..Counters::default() };
    assert_eq!(world.usage(), expected);
}

/// Promise: retry counts survive restarts. The node dies after every single submit, and another node continues to
/// count.
#[test]
fn a_retry_limit_holds_although_the_node_dies_between_the_retries() {
    let world = world_with(Policy::DEFAULT.with_preset(Preset::Standard), 1);
    world.provider.on_submit("down", &[OFF; 500]);
    let mut node = world.node();
    let key = node.asks(turnstile("down")).key();
    for submits in 1..=4 {
        wait_for_submits(&world, submits);
        node.kill();
        world.after(1);
        node = world.node();
    }
    world.after(600);
    assert_eq!(world.provider.submits("down").len(), 4);
    assert!(matches!(node.reads(key).phase, Phase::Dead { cause: DeadCause::Spent(_), .. }));
}

fn wait_for_submits(world: &StoryWorld, count: usize) {
    while world.provider.submits("down").len() < count {
        world.after_ms(10);
    }
}

/// Trap: a retry that sleeps in the loop, so that twenty good orders wait 49 s behind failing ones. Here there is
/// only one submit at a time, which is the hardest case.
#[test]
fn twenty_good_orders_do_not_wait_behind_failing_ones() {
    let world = world();
    let node = world.node_with(Arc::new(MemorySpill::default()), |settings| settings.submits_max = 1);
    for bad in ["bad-1", "bad-2", "bad-3"] {
        world.provider.on_submit(bad, &[OFF; 500]);
        node.asks(turnstile(bad));
    }
    world.after(1);
    let begun = world.now();
    let good: Vec<_> = (0..20).map(|n| format!("good-{n}")).collect();
    let callers: Vec<_> = good
        .iter()
        .map(|site| {
            world.provider.solves(site, 10);
            node.asks(turnstile(site))
        })
        .collect();
    world.after(13);
    for (site, caller) in good.iter().zip(&callers) {
        assert_eq!(world.provider.submitted_at(site), [begun], "{site}");
        assert!(
            caller.answered_at().is_some_and(|at| at <= begun + 12_400),
            "{site}: {:?}",
            caller.answered_at()
        );
    }
}

/// Trap: a network error on submit that is neither retried nor reported.
#[test]
fn a_network_error_on_submit_is_retried_and_reported() {
    let world = world();
    let node = world.node();
    world.provider.on_submit("flaky", &[OFF]);
    world.provider.solves("flaky", 5);
    let caller = node.asks(turnstile("flaky"));
    world.after(30);
    assert_eq!(world.provider.submits("flaky").len(), 2);
    assert_eq!(caller.token().as_deref(), Some("token-2"));
    let expected = TimelineEvent::Faulted {
        attempt: 1,
        fault: Fault::new(FaultClass::Unreachable, "connection refused"),
    };
    assert!(is_on_timeline(&node, caller.key(), &expected));
    let usage = world.usage();
    assert_eq!((usage.attempts, usage.retried, usage.paid, usage.solved), (2, 1, 1, 1));
}

fn is_on_timeline(node: &StoryNode, key: Key, event: &TimelineEvent) -> bool {
    node.reads(key).timeline.entries.iter().any(|entry| entry.event == *event)
}

/// Trap: a permanent code, hidden behind a text for people and retried 199 times.
#[test]
fn a_permanent_code_is_never_retried_and_the_caller_gets_it() {
    let world = world();
    let node = world.node();
    world
        .provider
        .on_submit("typo", &[SubmitScript::Refuses(FaultClass::Caller, "ERROR_WRONG_GOOGLEKEY"); 500]);
    let caller = node.asks(turnstile("typo"));
    world.after(3600);
    assert_eq!(world.provider.submitted_at("typo"), [0]);
    let fault = Fault::new(FaultClass::Caller, "ERROR_WRONG_GOOGLEKEY");
    assert_eq!(caller.last_outcome(), Some(Outcome::Failed(FailCause::Rejected(fault))));
    assert_eq!(caller.answered_at(), Some(0));
    assert_eq!(
        world.usage(),
        Counters { asked: 1, attempts: 1, rejected: 1, failed: 1, ..Counters::default() }
    );
}

/// Trap: a permanent code in the reply to a poll that is retried. The task is paid for and gone, so another poll
/// would change nothing.
#[test]
fn a_permanent_code_in_a_poll_ends_the_order_with_that_code() {
    let world = world();
    let node = world.node();
    world.provider.on_poll("gone", &[PollScript::Faults(FaultClass::Caller, "ERROR_WRONG_CAPTCHA_ID"); 500]);
    let caller = node.asks(turnstile("gone"));
    world.after(3600);
    assert_eq!(world.provider.submits("gone").len(), 1);
    assert_eq!(world.provider.polled_at("task-1").len(), 1);
    let fault = Fault::new(FaultClass::Caller, "ERROR_WRONG_CAPTCHA_ID");
    assert_eq!(caller.last_outcome(), Some(Outcome::Failed(FailCause::Rejected(fault))));
    let usage = world.usage();
    assert_eq!((usage.paid, usage.failed, usage.retried), (1, 1, 0));
}

/// Trap: an unsolvable task that is polled again instead of submitted again.
#[test]
fn an_unsolvable_task_is_submitted_again_and_not_polled_again() {
    let world = world();
    let node = world.node();
    world.provider.on_poll("hard", &[PollScript::Faults(FaultClass::Unsolvable, "ERROR_CAPTCHA_UNSOLVABLE")]);
    world.provider.solves("hard", 5);
    let caller = node.asks(turnstile("hard"));
    world.after(60);
    assert_eq!(world.provider.polled_at("task-1").len(), 1);
    let [first, second] = world.provider.submitted_at("hard")[..] else { panic!("two submits") };
    assert_eq!(first, 0);
    let polled_at_first = world.provider.polled_at("task-1")[0];
    assert!(
        (polled_at_first..=polled_at_first + 20).contains(&second),
        "at once, since the provider has room: {second}"
    );
    assert_eq!(caller.token().as_deref(), Some("token-2"));
    let usage = world.usage();
    assert_eq!((usage.paid, usage.retried, usage.possible_doubles), (2, 1, 0));
}

/// Promise: never wasted. An unsolvable captcha is bought three times, and then an operator decides.
#[test]
fn what_cannot_be_solved_is_bought_three_times_and_then_is_a_dead_letter() {
    let world = world();
    let node = world.node();
    world
        .provider
        .on_poll("hopeless", &[PollScript::Faults(FaultClass::Unsolvable, "ERROR_CAPTCHA_UNSOLVABLE"); 500]);
    let caller = node.asks(turnstile("hopeless"));
    world.after(3600);
    assert_eq!(world.provider.submits("hopeless").len(), 3);
    assert_eq!(world.provider.polls().len(), 3);
    let fault = Fault::new(FaultClass::Unsolvable, "ERROR_CAPTCHA_UNSOLVABLE");
    assert_eq!(caller.last_outcome(), Some(Outcome::Dead(DeadCause::Spent(fault))));
}

/// Promise: an unlisted code is retried twice, with pauses, and its raw text is kept for an operator.
#[test]
fn an_unlisted_code_is_retried_twice_and_kept() {
    let world = world();
    let node = world.node();
    world
        .provider
        .on_submit("odd", &[SubmitScript::Refuses(FaultClass::UnlistedCode, "ERROR_BLUE_MOON"); 500]);
    let caller = node.asks(turnstile("odd"));
    world.after(3600);
    assert_eq!(world.provider.submits("odd").len(), 3);
    let fault = Fault::new(FaultClass::UnlistedCode, "ERROR_BLUE_MOON");
    assert_eq!(caller.last_outcome(), Some(Outcome::Dead(DeadCause::Spent(fault))));
}
