//! Idempotency keys: one key is one order, as long as its record exists.

use crate::stories::provider::SubmitScript;
use crate::stories::world::{turnstile, world};
use quittance_lifecycle::{FaultClass, Origin, Refusal};

/// Promise: a placement with a known key joins the order, also from another node, and pays once.
#[test]
fn the_same_key_joins_the_same_order() {
    let world = world();
    let (one, two) = (world.node(), world.node());
    world.provider.solves("site", 5);
    let first = one.asks(turnstile("site").keyed("job-1").exclusive());
    let second = two.asks(turnstile("site").keyed("job-1").exclusive());
    assert_eq!((first.placed().origin, second.placed().origin), (Origin::Api, Origin::Joined));
    assert_eq!(first.key(), second.key());
    world.after(20);
    assert_eq!(first.token().as_deref(), Some("token-1"));
    assert_eq!(second.token().as_deref(), Some("token-1"), "one order, two outcomes");
    assert_eq!(world.provider.taken(), 1);
}

/// Promise: another key is another order, even if all else is equal.
#[test]
fn another_key_is_another_order() {
    let world = world();
    let node = world.node();
    world.provider.solves("site", 5);
    let callers = ["job-1", "job-2"].map(|key| node.asks(turnstile("site").keyed(key)));
    world.after(20);
    let tokens = callers.each_ref().map(crate::stories::world::StoryCaller::token);
    assert_eq!(tokens, [Some("token-1".into()), Some("token-2".into())]);
}

/// Promise: a known key with other parameters is an error in every phase of the order, never a silent mix-up.
#[test]
fn the_same_key_with_other_parameters_is_refused() {
    let world = world();
    let node = world.node();
    world.provider.solves("site", 5);
    node.asks(turnstile("site").keyed("job-1"));
    let mixed_up = || node.asks(turnstile("elsewhere").keyed("job-1")).refusal();
    assert_eq!(mixed_up(), Some(Refusal::OtherParameters));
    world.after(20);
    assert_eq!(mixed_up(), Some(Refusal::OtherParameters));
    world.after(3600);
    assert_eq!(mixed_up(), Some(Refusal::OtherParameters));
    assert!(world.provider.submits("elsewhere").is_empty());
    assert_eq!(world.usage().refused, 3);
}

/// Promise: a retry with the key gets the answer again while it is good, also after the window for other callers.
/// After its expiry the retry gets a clear error, and buys nothing.
#[test]
fn a_key_gets_its_answer_again_while_it_is_good_and_then_a_clear_error() {
    let world = world();
    let node = world.node();
    world.provider.solves("site", 3);
    node.asks(turnstile("site").keyed("job-1"));
    world.after(200);
    let again = node.asks(turnstile("site").keyed("job-1"));
    assert_eq!((again.placed().origin, again.token().as_deref()), (Origin::Replayed, Some("token-1")));
    world.after(99);
    let last = node.asks(turnstile("site").keyed("job-1"));
    assert_eq!(last.token().as_deref(), Some("token-1"), "it is the job's own, as long as it lives");
    world.after(1);
    let late = node.asks(turnstile("site").keyed("job-1"));
    assert_eq!(late.refusal(), Some(Refusal::Expired));
    assert_eq!(world.provider.taken(), 1);
}

/// Promise: a failure is not cached, also not for a key: after the hold, a placement with the key starts a new life.
#[test]
fn a_key_whose_order_was_refused_may_try_again_after_the_hold() {
    let world = world();
    let node = world.node();
    world.provider.on_submit("site", &[SubmitScript::Refuses(FaultClass::Caller, "ERROR_PAGEURL")]);
    world.provider.solves("site", 5);
    node.asks(turnstile("site").keyed("job-1"));
    let held = node.asks(turnstile("site").keyed("job-1"));
    assert!(matches!(held.refusal(), Some(Refusal::HeldBack { .. })));
    world.after(30);
    let again = node.asks(turnstile("site").keyed("job-1"));
    world.after(20);
    assert_eq!(again.token().as_deref(), Some("token-2"));
}
