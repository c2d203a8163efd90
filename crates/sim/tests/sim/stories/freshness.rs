//! Never stale: which caller gets an answer, how old the answer may be, and when a new one is bought.

use crate::stories::provider::token;
use crate::stories::world::{
    StoryCaller, StoryNode, StoryWorld, recaptcha, turnstile, world, world_with, world_with_callbacks,
};
use quittance_engine::{CallbackOutcome, Outcome};
use quittance_lifecycle::{CallbackResult, Money, Origin, Payload, Phase, Policy, ProviderAnswer};
use std::time::Duration;

/// Trap: a finished order whose record outlives its token. While the answer keeps its margin, a placement is a
/// repeat. After that it buys again, although the record is kept for a day.
#[test]
fn a_repeat_shares_as_long_as_the_answer_keeps_its_margin_and_buys_after_that() {
    let world = world();
    let node = world.node();
    world.provider.solves("site", 3);
    let first = node.asks(turnstile("site"));
    world.after(10);
    assert_eq!(first.answered_at(), Some(3_236));
    // It lives for 300 s from its submit, as far as is known, and a reused one keeps 50 until it is handed
    // out, for which there is 1 s.
    world.after(239);
    let repeat = node.asks(turnstile("site"));
    assert_eq!((repeat.placed().origin, repeat.token().as_deref()), (Origin::Cached, Some("token-1")));
    world.after(1);
    let fresh = node.asks(turnstile("site"));
    assert_eq!(fresh.placed().origin, Origin::Api);
    world.after(15);
    assert_eq!(fresh.token().as_deref(), Some("token-2"));
    let usage = world.usage();
    assert_eq!((usage.asked, usage.cached, usage.paid), (3, 1, 2));
}

/// Trap: an expired answer in the window. It is within the time for repeats, but too old for what is promised.
#[test]
fn a_token_with_less_life_than_promised_is_not_handed_out_again_within_the_window() {
    let world = world_with_callbacks();
    let node = world.node();
    let first = node.asks(recaptcha("site"));
    world.after(40);
    let word = |text: &str| CallbackResult::Answered(crate::stories::provider::token(text));
    node.hears(world.provider.last_submit("site").callback(), word("gold")).expect("safe");
    world.settle();
    assert_eq!(first.token().as_deref(), Some("gold"));
    world.after(74);
    let repeat = node.asks(recaptcha("site"));
    assert_eq!(repeat.token().as_deref(), Some("gold"), "solved at 35 s or later, so at least 41 s are left");
    world.after_ms(1);
    let fresh = node.asks(recaptcha("site"));
    assert_eq!((fresh.placed().origin, fresh.last_outcome()), (Origin::Api, None));
    assert_eq!(world.provider.submits("site").len(), 2);
}

/// Trap: a placement that could not reuse an answer replaced it. The callers for which the answer was bought got "not
/// ready", or the outcome of the new order.
#[test]
fn a_new_order_leaves_the_answer_to_those_that_it_was_bought_for() {
    let world = world_with_callbacks();
    let (node, other) = (world.node(), world.node());
    let first = node.asks(recaptcha("site"));
    world.after(40);
    let hears = |text: &str| {
        let address = world.provider.last_submit("site").callback().to_owned();
        node.hears(&address, CallbackResult::Answered(token(text))).expect("safe");
        world.settle();
    };
    hears("gold");
    world.after(80);
    // Less than the margin is left: a herd on two nodes buys one more, under another key.
    let herd: Vec<StoryCaller> =
        (0..10).map(|n| if n % 2 == 0 { &node } else { &other }.asks(recaptcha("site"))).collect();
    assert_eq!(world.provider.submits("site").len(), 2);
    let key = herd[0].key();
    assert!(key != first.key() && herd.iter().all(|caller| caller.key() == key));
    let looks = |caller: &StoryCaller| {
        let (engine, placed) = (std::sync::Arc::clone(&node.engine), caller.placed());
        node.does(async move { engine.peek(&placed).await.expect("the store is there") })
    };
    let token_of = |outcome| match outcome {
        Some(Outcome::Answered(answer)) => answer.payload.text,
        other => panic!("{other:?}"),
    };
    assert_eq!(token_of(looks(&first)), "gold", "its caller may come again for it");
    hears("silver");
    world.after(10);
    assert!(herd.iter().all(|caller| caller.token().as_deref() == Some("silver")));
    assert_eq!(token_of(looks(&first)), "gold");
    // The first answer has expired; the second one is shared all the same.
    world.after(40);
    let late = node.asks(recaptcha("site"));
    assert_eq!((late.key(), late.placed().origin), (key, Origin::Cached));
    // When both have expired, there is one new purchase, and one order to join.
    world.after(120);
    let (again, joined) = (node.asks(recaptcha("site")), other.asks(recaptcha("site")));
    assert_eq!((again.placed().origin, joined.placed().origin), (Origin::Api, Origin::Joined));
    assert_eq!(world.provider.submits("site").len(), 3);
}

/// Promise: a caller that requests more life gets an order of its own, and not an answer with less. Other callers
/// still get theirs.
#[test]
fn a_caller_that_needs_more_life_has_its_own_order_and_is_not_given_less() {
    let world = world_with_callbacks();
    let node = world.node();
    let modest = node.asks(recaptcha("site"));
    let of_modest = world.provider.last_submit("site").callback().to_owned();
    let demanding = node.asks(recaptcha("site").needing(80));
    assert_eq!(demanding.placed().origin, Origin::Api);
    assert_ne!(demanding.placed().key, modest.placed().key);
    let joined = node.asks(recaptcha("site").needing(80));
    assert_eq!((joined.placed().origin, joined.placed().key), (Origin::Joined, demanding.placed().key));
    let of_demanding = world.provider.last_submit("site").callback().to_owned();
    assert_eq!(world.provider.submits("site").len(), 2);
    world.after(20);
    let solved_15_s_after_the_submit = |token: &str| {
        let took_at_least = Some(Duration::from_secs(15));
        CallbackResult::Answered(ProviderAnswer {
            payload: Payload::text(token),
            took_at_least,
            cost: Some(Money(1)),
        })
    };
    node.hears(&of_modest, solved_15_s_after_the_submit("gold")).expect("safe");
    node.hears(&of_demanding, solved_15_s_after_the_submit("silver")).expect("safe");
    world.settle();
    assert_eq!(modest.token().as_deref(), Some("gold"));
    assert_eq!((demanding.token().as_deref(), joined.token().as_deref()), (Some("silver"), Some("silver")));
    world.after(50);
    // Of both 65 s are left.
    assert_eq!(node.asks(recaptcha("site")).token().as_deref(), Some("gold"));
    let again = node.asks(recaptcha("site").needing(80));
    assert_eq!((again.placed().origin, again.token()), (Origin::Api, None));
    assert_eq!(world.provider.submits("site").len(), 3);
}

/// Promise: an answer of unknown age counts as old as it can be. If it is too old when it comes, it is not handed
/// out. It is counted with its cost, and bought again within the limit.
#[test]
fn an_answer_that_is_too_old_when_it_comes_is_counted_as_waste_and_bought_again() {
    let world = world_with_callbacks();
    let node = world.node();
    let caller = node.asks(recaptcha("site"));
    world.after(60);
    let old = ProviderAnswer { payload: Payload::text("old"), took_at_least: None, cost: Some(Money(777)) };
    world.store.goes_away();
    let address = world.provider.last_submit("site").callback().to_owned();
    node.hears(&address, CallbackResult::Answered(old)).expect("safe");
    world.after(120);
    world.store.comes_back();
    world.after(3);
    assert_eq!(caller.last_outcome(), None);
    assert_eq!(world.provider.submits("site").len(), 2);
    let word = CallbackResult::Answered(crate::stories::provider::token("gold"));
    node.hears(world.provider.last_submit("site").callback(), word).expect("safe");
    world.settle();
    assert_eq!(caller.token().as_deref(), Some("gold"));
    let usage = world.usage();
    assert_eq!((usage.wasted, usage.wasted_micros, usage.paid), (1, 777, 2));
}

/// Promise: the duration that a provider reports counts only if it can be true. A duration that ends in the future is
/// ignored.
#[test]
fn a_provider_cannot_make_its_answers_younger_than_now() {
    let world = world_with_callbacks();
    let node = world.node();
    let caller = node.asks(recaptcha("site"));
    world.after(30);
    let boast = ProviderAnswer {
        payload: Payload::text("gold"),
        took_at_least: Some(Duration::from_secs(9_000)),
        cost: Some(Money(1)),
    };
    node.hears(world.provider.last_submit("site").callback(), CallbackResult::Answered(boast)).expect("safe");
    world.settle();
    let Some(Outcome::Answered(answer)) = caller.last_outcome() else {
        panic!("{:?}", caller.last_outcome())
    };
    assert_eq!(answer.expires, Some(world.moment(145_000)), "5 s before its callback");
}

/// Promise: an answer in the reply to the submit is handed out at once.
#[test]
fn an_answer_in_the_reply_to_the_submit_is_returned_at_once() {
    let world = world();
    let node = world.node();
    world.provider.on_submit("site", &[crate::stories::provider::SubmitScript::Answers("gold")]);
    let caller = node.asks(turnstile("site"));
    assert_eq!((caller.token().as_deref(), caller.answered_at()), (Some("gold"), Some(0)));
    assert!(world.provider.polls().is_empty());
    assert_eq!(world.usage().paid, 1);
}

/// A callback comes after 60 s to the first of two nodes while the store is away, and is spilled. The store is back
/// `back_after_ms` later.
fn spilled(back_after_ms: u64) -> (StoryWorld, StoryNode, StoryNode, StoryCaller) {
    let world = world_with_callbacks();
    let (first, second) = (world.node(), world.node());
    world.provider.solves("site", 60);
    let caller = second.asks(recaptcha("site"));
    world.after(10);
    world.store.goes_away();
    world.after(50);
    let address = world.provider.last_submit("site").callback().to_owned();
    let reply = first.hears(&address, CallbackResult::Answered(token("token-1"))).expect("safe");
    assert_eq!(reply, CallbackOutcome::Spilled);
    world.after_ms(back_after_ms);
    world.store.comes_back();
    (world, first, second, caller)
}

/// Trap: an answer that came by callback was dated from its submit, because a poll of its task was faster than the
/// spill.
#[test]
fn a_callback_from_the_spill_dates_the_answer_although_a_poll_was_faster() {
    let mut by_poll = 0;
    for tenth in 0..30 {
        let (world, .., caller) = spilled(20_000 + tenth * 100);
        world.after(30);
        let order = world.orders().pop().expect("it is on record");
        let Phase::Solved { answer, .. } = &order.phase else { panic!("{}", order.phase.name()) };
        assert_eq!(answer.expires, Some(world.moment(55_000 + 120_000)), "back after {tenth} tenths");
        assert_eq!(caller.token().as_deref(), Some("token-1"));
        by_poll += usize::from(!world.provider.polls().is_empty());
    }
    assert!(by_poll > 0, "the story is about polls that are faster");
}

/// Trap: an answer was thrown away for its age and bought again, because a poll was faster than the callback in the
/// spill.
#[test]
fn an_answer_whose_callback_is_in_a_spill_is_not_thrown_away_because_a_poll_was_faster() {
    for tenth in 0..30 {
        let (world, .., caller) = spilled(70_000 + tenth * 100);
        world.after(30);
        assert_eq!(caller.token().as_deref(), Some("token-1"), "back after {tenth} tenths");
        let usage = world.usage();
        assert_eq!((usage.attempts, usage.wasted), (1, 0), "back after {tenth} tenths");
    }
}

/// Trap: an answer by callback counted from before a restart, because nothing was known of its task since. One poll
/// after the restart shows that the task was not solved then. After that, the node waits for the callback as before.
#[test]
fn a_task_is_polled_once_after_a_restart_so_that_its_answer_is_dated_from_later() {
    let world = world_with_callbacks();
    let first = world.node();
    world.provider.solves("site", 3_600);
    let caller = first.asks(recaptcha("site"));
    world.after(5);
    first.kill();
    world.after(2);
    let second = world.node();
    world.after(43);
    let task = "task-1";
    assert_eq!(world.provider.polled_at(task).len(), 1, "polled once, and the callback is not overdue yet");
    let address = world.provider.last_submit("site").callback().to_owned();
    second.hears(&address, CallbackResult::Answered(token("token-1"))).expect("safe");
    world.after(1);
    let order = second.reads(caller.key());
    let Phase::Solved { answer, .. } = &order.phase else { panic!("{}", order.phase.name()) };
    assert_eq!(
        answer.earliest,
        world.moment(45_000),
        "its callback came after 50 s, and providers call within 5 s"
    );
}

/// Trap: on a shared store, the time before a start counts for longer, by how far clocks can differ. An order
/// submitted in these seconds was not polled, so its answer counted from its submit.
#[test]
fn an_answer_that_is_submitted_right_after_the_start_is_dated_from_its_callback_on_a_shared_store_too() {
    let shared = Policy { callbacks: true, clock_skew: Duration::from_secs(4), ..Policy::DEFAULT };
    for after_the_start_ms in [0, 1, 1_000, 3_999, 4_000, 4_001] {
        let world = world_with(shared, 1);
        let node = world.node();
        world.provider.solves("site", 3_600);
        world.after_ms(after_the_start_ms);
        let caller = node.asks(recaptcha("site"));
        world.after(40);
        let address = world.provider.last_submit("site").callback().to_owned();
        node.hears(&address, CallbackResult::Answered(token("token-1"))).expect("safe");
        world.after(1);
        let order = node.reads(caller.key());
        let Phase::Solved { answer, .. } = &order.phase else { panic!("{}", order.phase.name()) };
        assert_eq!(answer.earliest, world.moment(after_the_start_ms + 35_000), "{after_the_start_ms} ms");
    }
}
