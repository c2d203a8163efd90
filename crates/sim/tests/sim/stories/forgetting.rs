//! A store that forgets acknowledged orders: it is flushed or restored from an old copy while orders are in flight.
//! Nothing is paid for again, no answer is lost, and an operator sees what happened.

use crate::stories::provider::{SubmitScript, token};
use crate::stories::world::{StoryCaller, StoryNode, StoryWorld, turnstile, world_with_callbacks};
use quittance_engine::{CallbackOutcome, PutBack, Settings};
use quittance_lifecycle::{
    CallbackResult, Counters, DeadLetterCause, FaultClass, Key, Order, Phase, Timestamp,
};
use quittance_ports::{Commit, MemorySpill, Store, Version};
use std::sync::{Arc, Mutex};
use std::time::Duration;

fn answered(text: &str) -> CallbackResult {
    CallbackResult::Answered(token(text))
}

fn shared(settings: &mut Settings) {
    settings.in_hand_max = 100;
}

fn node(world: &StoryWorld) -> StoryNode {
    world.node_with(Arc::new(MemorySpill::default()), shared)
}

fn flush(world: &StoryWorld) {
    for order in world.orders() {
        assert!(world.store.truth().lose(&order.key));
    }
}

fn puts_back(node: &StoryNode) -> Vec<Key> {
    let engine = Arc::clone(&node.engine);
    node.does(async move { engine.put_back().await }).put_back
}

#[test]
fn orders_in_flight_are_put_back_for_a_person_to_see_and_their_callbacks_settle_them() {
    let world = world_with_callbacks();
    let first = node(&world);
    let other = node(&world);
    let callers: Vec<_> = ["a", "b", "c"].map(|site| first.asks(turnstile(site))).into();
    world.after(5);
    flush(&world);
    // It comes to a node that has none of them in hand: it is kept.
    let early = world.provider.last_submit("a").callback().to_owned();
    assert_eq!(other.hears(&early, answered("A")).expect("safe"), CallbackOutcome::Spilled);

    let mut keys: Vec<Key> = callers.iter().map(|caller| caller.key()).collect();
    keys.sort_unstable();
    assert_eq!(puts_back(&first), keys);
    for order in world.orders() {
        let dead = order.dead_letter().expect("a person is to see it");
        assert_eq!(dead.cause, DeadLetterCause::StoreForgot, "{}", dead.why);
    }
    world.after(5);
    assert_eq!(callers[0].token().as_deref(), Some("A"), "what was kept is matched");
    for (site, text) in [("b", "B"), ("c", "C")] {
        let address = world.provider.last_submit(site).callback().to_owned();
        assert_eq!(other.hears(&address, answered(text)).expect("safe"), CallbackOutcome::Applied);
    }
    world.after(1);
    let tokens: Vec<_> = callers.iter().map(|caller| caller.token()).collect();
    assert_eq!(tokens, ["A", "B", "C"].map(|text| Some(text.to_owned())));
    assert_eq!(world.provider.taken(), 3, "nothing is paid for again");
    assert_eq!((first.engine.forged(), other.engine.forged()), (0, 0));
    assert_eq!(puts_back(&first), [], "nothing is in hand any more");
}

#[test]
fn a_repeat_on_the_same_node_joins_the_order_that_the_store_forgot() {
    let world = world_with_callbacks();
    let node = node(&world);
    let caller = node.asks(turnstile("a"));
    world.after(5);
    flush(&world);
    let again = node.asks(turnstile("a"));
    let submit = world.provider.last_submit("a");
    assert_eq!(node.hears(submit.callback(), answered("A")).expect("safe"), CallbackOutcome::Applied);
    world.after(1);
    assert_eq!((caller.token().as_deref(), again.token().as_deref()), (Some("A"), Some("A")));
    assert_eq!(world.provider.taken(), 1);
}

#[test]
fn an_order_that_was_placed_again_elsewhere_is_settled_by_the_callback_of_the_forgotten_one() {
    let world = world_with_callbacks();
    let first = node(&world);
    let other = node(&world);
    first.asks(turnstile("a"));
    let forgotten = world.provider.last_submit("a").callback().to_owned();
    world.after(5);
    flush(&world);
    let again = other.asks(turnstile("a"));
    world.after(1);
    assert_eq!(world.provider.taken(), 2, "the other node could not know");
    // Whichever comes first, the callback or the node that remembers.
    assert_eq!(other.hears(&forgotten, answered("A")).expect("safe"), CallbackOutcome::Applied);
    assert_eq!(puts_back(&first), []);
    world.after(1);
    assert_eq!(again.token().as_deref(), Some("A"), "it is for the same thing");
    let order = other.reads(again.key());
    assert!(matches!(order.phase, Phase::Solved { .. }));
    assert_eq!(order.possible_doubles, 1, "and the second payment is in plain sight");
    assert_eq!(
        other.hears(&forgotten, answered("A")).expect("safe"),
        CallbackOutcome::Ignored(quittance_lifecycle::WhyIgnored::AlreadyAnswered)
    );
}

#[test]
fn a_callback_for_another_target_under_the_same_key_settles_nothing() {
    let world = world_with_callbacks();
    let node = node(&world);
    let with_key = |site: &str| {
        let mut request_spec = turnstile(site);
        request_spec.draft.idempotency_key = Some("job 1".into());
        request_spec
    };
    let first = node.asks(with_key("a"));
    let forgotten = world.provider.last_submit("a").callback().to_owned();
    node.kill();
    drop(node);
    world.after(1);
    flush(&world);
    let other = self::node(&world);
    let second = other.asks(with_key("b"));
    assert_eq!(first.key(), second.key());
    let outcome = other.hears(&forgotten, answered("A")).expect("safe");
    assert_eq!(outcome, CallbackOutcome::Ignored(quittance_lifecycle::WhyIgnored::UnknownAttempt));
    world.after(1);
    assert_eq!(second.token(), None);
}

#[test]
fn a_callback_without_an_order_is_kept_until_a_caller_places_the_order_again() {
    let world = world_with_callbacks();
    let first = node(&world);
    first.asks(turnstile("a"));
    let forgotten = world.provider.last_submit("a").callback().to_owned();
    first.kill();
    drop(first);
    flush(&world);
    let other = node(&world);
    assert_eq!(other.hears(&forgotten, answered("A")).expect("safe"), CallbackOutcome::Spilled);
    world.after(30);
    let again = other.asks(turnstile("a"));
    world.after(4);
    assert_eq!(again.token().as_deref(), Some("A"));
    assert_eq!(world.provider.taken(), 1, "it is answered before anything is submitted");
    let order = other.reads(again.key());
    assert_eq!(
        order.dead_letter().map(|dead| dead.cause),
        Some(DeadLetterCause::StoreForgot),
        "a person is to see it"
    );
}

#[test]
fn a_callback_that_an_earlier_process_kept_answers_the_order_before_it_is_submitted() {
    let world = world_with_callbacks();
    let first = node(&world);
    first.asks(turnstile("a"));
    let forgotten = world.provider.last_submit("a").callback().to_owned();
    first.kill();
    drop(first);
    flush(&world);
    let spill = Arc::new(MemorySpill::default());
    let second = world.node_with(Arc::clone(&spill) as _, shared);
    assert_eq!(second.hears(&forgotten, answered("A")).expect("safe"), CallbackOutcome::Spilled);
    second.kill();
    drop(second);
    // It has not read its spill yet when the order comes.
    let third = world.node_with(spill, shared);
    let again = third.asks(turnstile("a"));
    world.after(4);
    assert_eq!(again.token().as_deref(), Some("A"));
    assert_eq!(world.provider.taken(), 1);
}

#[test]
fn a_node_that_knows_less_does_not_undo_what_another_has_put_back_nor_buys_it_again() {
    let world = world_with_callbacks();
    let (first, other) = (node(&world), node(&world));
    // Both have it in hand: the one that placed it does not know that the other one submitted it.
    let caller = first.asks(turnstile("a"));
    world.after(5);
    let key = caller.key();
    let engine = Arc::clone(&other.engine);
    other.does(async move { engine.note(&key, "seen".into()).await }).expect("the store is there");
    flush(&world);
    assert_eq!(puts_back(&other), [key]);
    assert_eq!(puts_back(&first), [key]);
    flush(&world);
    assert_eq!(puts_back(&first), [key], "the store may forget again");
    assert_eq!(puts_back(&other), []);
    let order = first.reads(key);
    assert!(matches!(order.phase, Phase::Solving { .. }), "{:?}", order.phase);
    assert!(
        order.timeline.entries.iter().any(|entry| entry.to_string().contains("seen")),
        "the later one stands"
    );
    world.after(20);
    assert_eq!(world.provider.taken(), 1);
}

#[test]
fn nothing_is_new_while_nodes_put_back_what_the_store_forgot_and_a_repeat_joins_it() {
    let world = world_with_callbacks();
    let (first, other) = (node(&world), node(&world));
    first.asks(turnstile("a"));
    let forgotten = world.provider.last_submit("a").callback().to_owned();
    world.after(5);
    flush(&world);
    other.engine.recover_for(Duration::from_secs(4));
    let again = other.begins(turnstile("a"));
    world.after(1);
    assert_eq!(world.orders().len(), 0, "nothing is new yet");
    let key = puts_back(&first);
    world.after(4);
    assert_eq!(key, [again.key()]);
    assert_eq!(world.provider.taken(), 1, "it joined the order that was put back");
    assert_eq!(other.hears(&forgotten, answered("A")).expect("safe"), CallbackOutcome::Applied);
    world.after(1);
    assert_eq!(again.token().as_deref(), Some("A"));
}

#[test]
fn an_order_that_was_bought_again_is_listed_with_both_lives() {
    let world = world_with_callbacks();
    let (first, other) = (node(&world), node(&world));
    first.asks(turnstile("a"));
    world.after(5);
    flush(&world);
    let again = other.asks(turnstile("a"));
    world.after(1);
    assert_eq!(world.provider.taken(), 2, "the other node could not know");
    let engine = Arc::clone(&first.engine);
    let result = first.does(async move { engine.put_back().await });
    assert_eq!(result.recalled, [again.key()]);
    let dead = other.reads(again.key()).dead_letter().expect("a person is to see it");
    assert_eq!(dead.cause, DeadLetterCause::StoreForgot);
    assert!(dead.why.contains("both may have been paid for"), "{}", dead.why);
}

#[test]
fn an_order_that_is_not_bought_yet_waits_for_the_attempt_of_the_forgotten_one() {
    let world = world_with_callbacks();
    let (first, other) = (node(&world), node(&world));
    first.asks(turnstile("a"));
    let forgotten = world.provider.last_submit("a").callback().to_owned();
    world.after(5);
    flush(&world);
    world.provider.on_submit("a", &[SubmitScript::Refuses(FaultClass::Busy, "ERROR_NO_SLOT_AVAILABLE")]);
    let again = other.asks(turnstile("a"));
    world.after(1);
    let engine = Arc::clone(&first.engine);
    first.does(async move { engine.put_back().await });
    world.after(8);
    let order = other.reads(again.key());
    assert!(matches!(order.phase, Phase::Solving { .. } | Phase::InDoubt { .. }), "{:?}", order.phase);
    assert_eq!(world.provider.taken(), 1, "it is not submitted while the old attempt is open");
    assert_eq!(other.hears(&forgotten, answered("A")).expect("safe"), CallbackOutcome::Applied);
    world.after(1);
    assert_eq!(again.token().as_deref(), Some("A"));
}

/// A node stops while its store is away, and saves what it has in hand. The next process puts it back if the store
/// has forgotten it. If the store has the same state or a later one, the store is right.
#[test]
fn what_a_node_kept_when_it_stopped_without_its_store_is_put_back_and_not_bought_again() {
    let world = world_with_callbacks();
    let first = node(&world);
    let callers = ["a", "b"].map(|site| first.asks(turnstile(site)));
    world.after(5);
    let kept: Vec<_> = first.engine.orders_in_hand().into_iter().map(Arc::unwrap_or_clone).collect();
    assert_eq!(kept.len(), 2);
    first.kill();
    drop(first);

    // The store still has both, and one has come further meanwhile.
    let other = world.node();
    let address = world.provider.last_submit("b").callback().to_owned();
    assert_eq!(other.hears(&address, answered("B")).expect("safe"), CallbackOutcome::Applied);
    let second = node(&world);
    assert_eq!(second.engine.take_in_hand(kept.clone(), true), 2);
    assert_eq!(puts_back(&second), [], "the store has them");
    assert!(matches!(second.reads(callers[1].key()).phase, Phase::Solved { .. } | Phase::Claimed { .. }));
    other.kill();
    second.kill();
    drop((other, second));

    flush(&world);
    let third = node(&world);
    assert_eq!(third.engine.take_in_hand(kept, false), 2);
    // A repeat comes before they are put back.
    let again = third.asks(turnstile("a"));
    let mut keys = callers.each_ref().map(StoryCaller::key).to_vec();
    keys.sort_unstable();
    puts_back(&third);
    let mut listed: Vec<Key> =
        world.orders().iter().filter(|order| order.put_back.is_some()).map(|order| order.key).collect();
    listed.sort_unstable();
    assert_eq!(listed, keys, "a person is to see them");
    let address = world.provider.last_submit("a").callback().to_owned();
    assert_eq!(third.hears(&address, answered("A")).expect("safe"), CallbackOutcome::Applied);
    world.after(2);
    assert_eq!(again.token().as_deref(), Some("A"));
    assert_eq!(world.provider.taken(), 2, "nothing is paid for again");
}

#[test]
fn an_answer_that_the_store_forgot_is_put_back_silently_and_repeats_pay_nothing() {
    let world = world_with_callbacks();
    let (first, other) = (node(&world), node(&world));
    let with_key = || {
        let mut request_spec = turnstile("a");
        request_spec.draft.idempotency_key = Some("job 1".into());
        request_spec
    };
    let caller = first.asks(with_key());
    let submit = world.provider.last_submit("a");
    assert_eq!(first.hears(submit.callback(), answered("A")).expect("safe"), CallbackOutcome::Applied);
    world.after(1);
    assert_eq!(caller.token().as_deref(), Some("A"));
    flush(&world);
    let engine = Arc::clone(&first.engine);
    let result = first.does(async move { engine.put_back().await });
    assert_eq!((result.answered, result.put_back.len()), (1, 0));
    assert!(first.reads(caller.key()).dead_letter().is_none(), "nothing of it is open");
    let again = other.asks(with_key());
    world.after(1);
    assert_eq!(again.token().as_deref(), Some("A"));
    assert_eq!(world.provider.taken(), 1);
}

/// The results of each time that a node suspected its store.
fn puts_back_what_it_misses(node: &StoryNode) -> Arc<Mutex<Vec<PutBack>>> {
    let found = Arc::<Mutex<Vec<PutBack>>>::default();
    let (engine, results) = (Arc::clone(&node.engine), Arc::clone(&found));
    node.keeps_doing(async move {
        loop {
            engine.suspects().await;
            let result = engine.put_back().await;
            results.lock().expect("no test panics while it reads them").push(result);
        }
    });
    found
}

/// Trap: a store loses single records (an eviction, a `DEL`) and keeps its identity.
#[test]
fn an_answer_that_the_store_lost_alone_is_missed_and_put_back_before_it_is_bought_again() {
    let world = world_with_callbacks();
    let (first, other) = (node(&world), node(&world));
    let found = puts_back_what_it_misses(&first);
    let caller = first.asks(turnstile("a").keyed("job 1"));
    let submit = world.provider.last_submit("a");
    assert_eq!(first.hears(submit.callback(), answered("A")).expect("safe"), CallbackOutcome::Applied);
    world.after(20);
    assert_eq!(*found.lock().unwrap(), [], "nothing is missed while it is there");
    flush(&world);
    world.after(8);
    let found = found.lock().unwrap().clone();
    assert_eq!(found.iter().map(|result| result.answered).collect::<Vec<_>>(), [1], "{found:?}");
    let again = other.asks(turnstile("a").keyed("job 1"));
    world.after(1);
    assert_eq!((caller.token().as_deref(), again.token().as_deref()), (Some("A"), Some("A")));
    assert_eq!(world.provider.taken(), 1);
}

#[test]
fn an_answer_that_the_store_lost_alone_and_that_was_bought_again_is_listed_with_both_lives() {
    let world = world_with_callbacks();
    let (first, other) = (node(&world), node(&world));
    let found = puts_back_what_it_misses(&first);
    let caller = first.asks(turnstile("a").keyed("job 1"));
    let submit = world.provider.last_submit("a");
    assert_eq!(first.hears(submit.callback(), answered("A")).expect("safe"), CallbackOutcome::Applied);
    world.after(2);
    flush(&world);
    let again = other.asks(turnstile("a").keyed("job 1"));
    world.after(1);
    assert_eq!(world.provider.taken(), 2, "the other node could not know");
    let second = world.provider.last_submit("a").callback().to_owned();
    assert_eq!(other.hears(&second, answered("B")).expect("safe"), CallbackOutcome::Applied);
    world.after(10);
    let found = found.lock().unwrap().clone();
    assert_eq!(found.iter().flat_map(|result| result.recalled.clone()).collect::<Vec<_>>(), [caller.key()]);
    let order = other.reads(again.key());
    let dead = order.dead_letter().expect("a person is to see it");
    assert_eq!(dead.cause, DeadLetterCause::StoreForgot);
    assert!(dead.why.contains("both may have been paid for"), "{}", dead.why);
    assert_eq!((again.token().as_deref(), order.possible_doubles), (Some("B"), 1));
}

#[test]
fn a_callback_for_an_attempt_that_was_lost_with_the_last_steps_revives_the_order() {
    let world = world_with_callbacks();
    let node = world.node();
    let caller = node.asks(turnstile("a"));
    let key = caller.key();
    let submit = world.provider.last_submit("a").callback().to_owned();
    world.after(1);
    node.kill();
    drop(node);
    // The store has gone back to the moment of the placement.
    let mut stale = (*world.orders()[0]).clone();
    (stale.attempts, stale.last_attempt) = (Vec::new(), 0);
    stale.phase = Phase::Queued { until: stale.placed, held: false };
    assert!(world.store.truth().lose(&key));
    let node = world.node();
    let truth = world.store.truth().clone();
    let committed = node.does(async move {
        truth.commit(Version::ABSENT, &Arc::new(stale), &Counters::default(), Timestamp::ZERO).await
    });
    assert!(matches!(committed, Ok(Commit::Done(_))), "{committed:?}");
    let engine = Arc::clone(&node.engine);
    node.does(async move { engine.lose(&key).await }).expect("the store is there");
    assert_eq!(node.hears(&submit, answered("A")).expect("safe"), CallbackOutcome::Applied);
    world.after(1);
    let order = node.reads(key);
    assert!(matches!(order.phase, Phase::Solved { .. } | Phase::Claimed { .. }), "{:?}", order.phase);
    assert_eq!(
        order.dead_letter().map(|dead| dead.cause),
        Some(DeadLetterCause::StoreForgot),
        "a person is to see it"
    );
    assert_eq!((world.provider.taken(), order.possible_doubles), (1, 0));
}

/// Trap: an order with lost steps was listed for an operator, and left the list when its callback came.
#[test]
fn an_order_with_lost_steps_that_is_answered_stays_on_the_list_until_a_person_drops_it() {
    let world = world_with_callbacks();
    let node = world.node();
    let caller = node.asks(turnstile("a"));
    let key = caller.key();
    let submit = world.provider.last_submit("a").callback().to_owned();
    world.after(1);
    let engine = Arc::clone(&node.engine);
    node.does(async move { engine.lose(&key).await }).expect("the store is there");
    assert_eq!(node.hears(&submit, answered("A")).expect("safe"), CallbackOutcome::Applied);
    world.after(1);
    assert_eq!(caller.token().as_deref(), Some("A"));
    let listed = |order: &Order| order.dead_letter().map(|dead| dead.cause);
    assert_eq!(listed(&node.reads(key)), Some(DeadLetterCause::StoreForgot));
    let engine = Arc::clone(&node.engine);
    node.does(async move { engine.drop_dead(&key).await }).expect("the store is there");
    let order = node.reads(key);
    assert_eq!(listed(&order), None);
    assert!(matches!(order.phase, Phase::Solved { .. } | Phase::Claimed { .. }), "it keeps its answer");
}

#[test]
fn a_callback_that_is_kept_for_a_lost_record_answers_the_order_when_it_is_placed_again() {
    let world = world_with_callbacks();
    let node = node(&world);
    let caller = node.asks(turnstile("a"));
    let key = caller.key();
    let submit = world.provider.last_submit("a").callback().to_owned();
    node.kill();
    drop(node);
    world.after(1);
    world.store.breaks_record(key);
    let other = self::node(&world);
    assert_eq!(other.hears(&submit, answered("A")).expect("safe"), CallbackOutcome::Spilled);
    world.after(2);
    let again = other.asks(turnstile("a"));
    world.after(2);
    assert_eq!(again.token().as_deref(), Some("A"), "what was kept is matched");
    assert_eq!(world.provider.taken(), 1, "nothing is paid for again");
}
