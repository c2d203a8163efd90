//! A fault of one order does not affect other orders.

use crate::stories::provider::{PollScript, SubmitScript};
use crate::stories::world::{StoryNode, StoryWorld, turnstile, world};
use quittance_lifecycle::{Origin, Phase};
use quittance_ports::MemorySpill;
use std::sync::Arc;

/// Five orders in addition to the one with a fault.
fn bystanders(world: &StoryWorld, node: &StoryNode) -> Vec<crate::stories::world::StoryCaller> {
    (0..5)
        .map(|n| {
            let site = format!("fine-{n}");
            world.provider.solves(&site, 8);
            node.asks(turnstile(&site))
        })
        .collect()
}

/// Trap: one hanging poll stops the poller for all orders.
#[test]
fn a_hanging_poll_holds_up_only_its_own_order() {
    let world = world();
    let node = world.node();
    world.provider.on_poll("stuck", &[PollScript::Hangs]);
    world.provider.solves("stuck", 8);
    let unlucky = node.asks(turnstile("stuck"));
    let others = bystanders(&world, &node);
    world.after(11);
    assert!(others.iter().all(|caller| caller.answered_at().is_some_and(|at| at <= 10_100)));
    world.after(60);
    assert_eq!(unlucky.token().as_deref(), Some("token-1"), "its own order only waits");
    assert_eq!(world.usage().paid, 6);
}

/// Promise: no poll storms. A poll that hangs is given up after `poll_wait`, and until then its task is not polled
/// again. Otherwise a slow provider would be polled more and more often, and hanging calls would use up all slots.
#[test]
fn a_task_is_not_polled_again_while_a_poll_is_still_open() {
    let world = world();
    let (_one, _two) = (world.node(), world.node());
    let node = world.node();
    world.provider.on_poll("stuck", &[PollScript::Hangs; 20]);
    node.asks(turnstile("stuck"));
    const POLL_WAIT_MS: u64 = 8_000;
    world.after(60);
    let polls_made = world.provider.polled_at("task-1");
    assert!(polls_made.len() > 2, "and it is polled again after that: {polls_made:?}");
    let close: Vec<_> = polls_made.windows(2).filter(|pair| pair[1] - pair[0] < POLL_WAIT_MS).collect();
    assert!(close.is_empty(), "polled at {polls_made:?}, although each poll was open for {POLL_WAIT_MS} ms");
}

/// Trap: one exception stops the poller for all orders.
#[test]
fn a_panicking_poll_is_counted_and_harms_no_other_order() {
    let world = world();
    let node = world.node();
    world.provider.on_poll("broken", &[PollScript::Panics]);
    world.provider.solves("broken", 8);
    let unlucky = node.asks(turnstile("broken"));
    let others = bystanders(&world, &node);
    world.after(11);
    assert!(others.iter().all(|caller| caller.answered_at().is_some_and(|at| at <= 10_100)));
    assert_eq!(node.engine.panics(), 1);
    world.after(30);
    assert_eq!(unlucky.token().as_deref(), Some("token-1"));
    assert_eq!(world.provider.submits("broken").len(), 1, "the task was there all along");
}

/// Trap: one exception in a submit. It is not known how far the submit came, so the attempt is in doubt and not
/// rejected.
#[test]
fn a_panicking_submit_is_a_doubt_of_its_own_order_only() {
    let world = world();
    let node = world.node();
    world.provider.on_submit("broken", &[SubmitScript::Panics]);
    world.provider.solves("broken", 8);
    let unlucky = node.asks(turnstile("broken"));
    assert!(matches!(node.reads(unlucky.key()).phase, Phase::InDoubt { .. }));
    let others = bystanders(&world, &node);
    world.after(11);
    assert!(others.iter().all(|caller| caller.answered_at().is_some_and(|at| at <= 10_100)));
    assert_eq!(node.engine.panics(), 1);
    world.after(60);
    assert!(unlucky.token().is_some());
    let usage = world.usage();
    assert_eq!((usage.in_doubt, usage.possible_doubles), (1, 1));
}

/// Trap: one malformed reply. Its parts have ids that were not polled, or one id twice.
#[test]
fn a_garbled_reply_to_a_poll_settles_nothing_and_the_task_is_polled_again() {
    let world = world();
    let node = world.node();
    world.provider.on_poll("garbled", &[PollScript::Garbled, PollScript::Lost]);
    world.provider.solves("garbled", 8);
    let caller = node.asks(turnstile("garbled"));
    world.after(8);
    assert_eq!(caller.last_outcome(), None);
    world.after(60);
    assert_eq!(caller.token().as_deref(), Some("token-1"));
    assert_eq!(world.provider.polled_at("task-1").len(), 3);
    assert_eq!(world.orders().len(), 1, "nothing was stored of what was not polled");
    assert_eq!(world.usage().paid, 1);
}

/// Trap: a batched poll whose reply has fewer parts than ids.
#[test]
fn a_batched_reply_with_too_few_parts_gives_each_task_its_own_part_or_none() {
    let world = world();
    world.provider.asks_for_many_at_once(10);
    let node = world.node();
    world.provider.on_poll("fine-1", &[PollScript::LeftOut]);
    world.provider.on_poll("fine-3", &[PollScript::LeftOut]);
    let callers = bystanders(&world, &node);
    (0..5).for_each(|n| world.provider.solves(&format!("fine-{n}"), 3));
    world.after(4);
    let (at, tasks) = world.provider.polls().remove(0);
    assert_eq!((at, tasks.len()), (3_236, 5), "one call asks for all");
    let tokens: Vec<_> = callers.iter().map(|caller| caller.token()).collect();
    let token = |n: usize| Some(format!("token-{n}"));
    assert_eq!(tokens, [token(1), None, token(3), None, token(5)]);
    world.after(10);
    let tokens: Vec<_> = callers.iter().map(|caller| caller.token()).collect();
    assert_eq!(tokens, [token(1), token(2), token(3), token(4), token(5)]);
    assert_eq!(world.provider.taken(), 5);
}

/// Trap: a lock held while submitting, so that one slow submit blocks all.
#[test]
fn one_slow_submit_blocks_neither_other_orders_nor_callers_that_join_its_own() {
    let world = world();
    let (one, two) = (world.node(), world.node());
    world.provider.on_submit("slow", &[SubmitScript::Takes(25_000)]);
    world.provider.solves("slow", 26);
    let first = one.asks(turnstile("slow"));
    world.after(1);
    let joiners: Vec<_> = (0..10).map(|_| two.asks(turnstile("slow"))).collect();
    let others = bystanders(&world, &one);
    for joiner in &joiners {
        assert_eq!(joiner.placed_at(), Some(1000));
        assert_eq!(joiner.placed().origin, Origin::Joined);
    }
    world.after(11);
    assert!(others.iter().all(|caller| caller.answered_at().is_some_and(|at| at <= 11_100)));
    world.after(30);
    assert!(joiners.iter().chain([&first]).all(|caller| caller.token().as_deref() == Some("token-1")));
    assert_eq!(world.provider.submits("slow").len(), 1);
}

/// Promise: in doubt does not mean rejected. A submit that never returns is given up after `submit_wait`, and does
/// not affect other submits.
#[test]
fn a_submit_that_hangs_for_ever_becomes_a_doubt_after_thirty_seconds() {
    let world = world();
    let node = world.node();
    world.provider.on_submit("stuck", &[SubmitScript::Hangs]);
    let caller = node.asks(turnstile("stuck"));
    let others = bystanders(&world, &node);
    world.after(29);
    assert!(matches!(node.reads(caller.key()).phase, Phase::Submitting { .. }));
    assert!(others.iter().all(|caller| caller.answered_at().is_some_and(|at| at <= 10_100)));
    world.after(2);
    assert!(matches!(node.reads(caller.key()).phase, Phase::InDoubt { .. }));
    assert_eq!(world.provider.submits("stuck").len(), 1);
    assert_eq!(world.usage().in_doubt, 1);
}

/// Promise: everything has a limit, and the worker does not spin at it. With one submit at a time and space for two
/// orders in memory, the rest wait in the store, and the worker waits, too.
#[test]
fn more_orders_than_fit_in_memory_wait_in_the_store_and_the_worker_does_not_spin() {
    let world = world();
    let node = world.node_with(Arc::new(MemorySpill::default()), |settings| {
        (settings.submits_max, settings.backlog_max) = (1, 2);
    });
    let sites: Vec<_> = (0..8).map(|n| format!("slow-{n}")).collect();
    for site in &sites {
        world.provider.on_submit(site, &[SubmitScript::Takes(1_000)]);
        node.asks(turnstile(site));
    }
    world.after(60);
    assert_eq!(world.provider.taken(), 8);
    assert!(sites.iter().all(|site| world.provider.submits(site).len() == 1));
}

/// Trap: one hanging poll stops the poller for all orders. With one poll at a time, it is given up after `poll_wait`,
/// and other polls get their turn.
#[test]
fn a_hanging_poll_gives_its_place_up_to_the_others() {
    let world = world();
    let node = world.node_with(Arc::new(MemorySpill::default()), |settings| settings.polls_max = 1);
    world.provider.on_poll("stuck", &[PollScript::Hangs]);
    world.provider.solves("stuck", 8);
    let unlucky = node.asks(turnstile("stuck"));
    world.after(1);
    let others = bystanders(&world, &node);
    world.after(30);
    assert!(others.iter().all(|caller| caller.answered_at().is_some_and(|at| at <= 30_100)));
    world.after(60);
    assert_eq!(unlucky.token().as_deref(), Some("token-1"));
}
