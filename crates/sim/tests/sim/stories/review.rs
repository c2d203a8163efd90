//! Regressions: mistakes that a review found in our code.

use crate::stories::provider::{SubmitScript, token};
use crate::stories::world::{StoryNode, turnstile, world, world_with, world_with_callbacks};
use quittance_engine::CallbackOutcome;
use quittance_lifecycle::{CallbackResult, Key, Origin, Phase, Policy, ProviderAnswer};
use quittance_ports::{MemorySpill, Spill};
use quittance_record::SpillFile;
use std::sync::Arc;

fn cancel(node: &StoryNode, key: Key) {
    let engine = Arc::clone(&node.engine);
    node.does(async move { engine.cancel(&key).await }).expect("the store is there");
}

/// If the solve time were learned from the poll and not from the solve, polls would come later and later.
#[test]
fn polls_do_not_drift_because_one_was_late() {
    let world = world();
    let node = world.node();
    world.provider.takes_its_time(400);
    let answered_after = |n: u32| {
        let site = format!("site-{n}");
        world.provider.solves(&site, 3);
        let begun = world.now();
        let caller = node.asks(turnstile(&site));
        world.after(60);
        caller.answered_at().expect("it has an outcome within a minute") - begun
    };
    let first = answered_after(0);
    let last = (1..300).map(answered_after).last().expect("there are some");
    assert!(first < 4_000, "{first}");
    // The solve, one interval of polls, and the poll.
    assert!(last <= 3_000 + 3_000 + 400, "answered after {first} ms at first, and {last} ms in the end");
}

/// Trap: a poll delay that learns from itself and grows. Here callbacks come, and one in ten is lost.
#[test]
fn the_fallback_poll_does_not_come_later_and_later() {
    let world = world_with_callbacks();
    let node = world.node();
    let mut answered_after = Vec::new();
    for n in 0..400 {
        let site = format!("site-{n}");
        world.provider.solves(&site, 3);
        let begun = world.now();
        let caller = node.asks(turnstile(&site));
        world.after(3);
        if n % 10 == 9 {
            world.after(130);
            answered_after.push(caller.answered_at().expect("the fallback poll found it") - begun);
        } else {
            let address = world.provider.last_submit(&site).callback().to_owned();
            node.hears(&address, CallbackResult::Answered(token("gold"))).expect("safe");
            world.after(1);
        }
    }
    assert!(answered_after.last() <= answered_after.first(), "{answered_after:?}");
}

/// Trap: one broken record that stops all others, here with no space left to set it aside.
#[test]
fn a_full_spill_with_an_unreadable_record_at_its_head_is_replayed_all_the_same() {
    let folder = tempfile::tempdir().expect("a folder");
    let world = world_with_callbacks();
    let spill = Arc::new(SpillFile::open(folder.path().join("spill"), 1200).expect("a new spill"));
    let node = world.node_on(Arc::<SpillFile>::clone(&spill));
    let orders: Vec<_> = (0..8)
        .map(|n| {
            let site = format!("site-{n}");
            (node.asks(turnstile(&site)).key(), world.provider.last_submit(&site))
        })
        .collect();
    world.store.goes_away();
    let word = || CallbackResult::Answered(token("gold-gold-gold"));
    let remaining: Vec<Key> = orders
        .iter()
        .filter(|(_, submit)| node.hears(submit.callback(), word()).is_ok())
        .map(|(key, _)| *key)
        .collect();
    assert!((2..8).contains(&remaining.len()), "some fit and some do not: {}", remaining.len());
    world.store.breaks_record(remaining[0]);
    world.store.comes_back();
    world.after(10);
    for key in &remaining[1..] {
        assert!(matches!(node.reads(*key).phase, Phase::Solved { .. }));
    }
    world.store.repairs_record(remaining[0]);
    world.after(40);
    assert!(matches!(node.reads(remaining[0]).phase, Phase::Solved { .. }));
    assert!(spill.waiting().expect("readable").is_empty());
}

/// Promise: never lost. Buying instead would leave a paid answer with a claimant that never comes.
#[test]
fn a_claim_on_the_stock_whose_reply_was_lost_is_completed() {
    let world = world_with_callbacks();
    let node = world.node();
    let first = node.asks(turnstile("site").exclusive());
    cancel(&node, first.key());
    world.settle();
    let address = world.provider.last_submit("site").callback().to_owned();
    node.hears(&address, CallbackResult::Answered(token("stocked"))).expect("safe");
    world.settle();
    world.store.loses_one_reply(|order| matches!(order.phase, Phase::Claimed { .. }));
    let second = node.begins(turnstile("site").exclusive());
    world.after_ms(50);
    world.store.goes_away();
    world.after_ms(300);
    world.store.comes_back();
    world.after(5);
    assert_eq!(second.placed().origin, Origin::Stock);
    assert_eq!(second.token().as_deref(), Some("stocked"));
    assert_eq!(world.provider.taken(), 1, "nothing was bought beside it");
}

/// Promise: an answer in stock is used, also behind answers with too little life left.
#[test]
fn answers_that_are_nearly_expired_do_not_hide_a_fresh_one() {
    let world = world_with(Policy { callbacks: true, ..Policy::DEFAULT }, 1);
    let node = world.node();
    let orders: Vec<_> = (0..9)
        .map(|_| {
            let caller = node.asks(turnstile("site").exclusive().within(2000));
            (caller.key(), world.provider.last_submit("site").callback().to_owned())
        })
        .collect();
    for (key, _) in &orders {
        cancel(&node, *key);
    }
    for (_, address) in &orders[..8] {
        node.hears(address, CallbackResult::Answered(token("old"))).expect("safe");
    }
    world.after(255);
    let fresh = ProviderAnswer { took_at_least: Some(std::time::Duration::from_secs(254)), ..token("fresh") };
    node.hears(&orders[8].1, CallbackResult::Answered(fresh)).expect("safe");
    world.settle();
    let caller = node.asks(turnstile("site").exclusive());
    assert_eq!(caller.placed().origin, Origin::Stock);
    assert_eq!(caller.token().as_deref(), Some("fresh"));
    assert_eq!(world.provider.taken(), 9);
}

/// Promise: in plain sight. Counters from a time when the store was away are written when it is back.
#[test]
fn joins_are_counted_although_the_store_was_away_when_they_were_to_be_written() {
    let world = world();
    let node = world.node();
    world.provider.solves("site", 5);
    node.asks(turnstile("site"));
    world.after(20);
    for _ in 0..10 {
        node.asks(turnstile("site"));
    }
    world.store.goes_away();
    world.after(5);
    world.store.comes_back();
    world.after(5);
    assert_eq!((world.usage().asked, world.usage().cached), (11, 10));
}

/// Promise: never lost. The answer of a poll is worth as much as that of a callback.
#[test]
fn an_answer_that_a_poll_brings_while_the_store_is_away_is_spilled() {
    let world = world();
    let spill = MemorySpill::default();
    let node = world.node_on(Arc::new(spill.clone()));
    world.provider.solves("site", 3);
    world.provider.takes_its_time(3000);
    let caller = node.asks(turnstile("site"));
    while world.provider.polls().is_empty() {
        world.after_ms(100);
    }
    world.store.goes_away();
    world.after(5);
    assert_eq!(spill.waiting().expect("readable").len(), 1);
    world.store.comes_back();
    world.after(5);
    assert!(caller.token().is_some());
    assert_eq!(world.provider.polls().len(), 1, "no second poll was needed");
}

/// Promise: paid once. The callback came while no node could write, and the wait in doubt ends just as writes are
/// possible again.
#[test]
fn a_doubt_that_ends_as_the_store_comes_back_waits_for_what_was_kept_meanwhile() {
    for early_ms in (0..2500).step_by(100) {
        let world = world_with_callbacks();
        let (keeper, _other) = (world.node(), world.node());
        world.provider.on_submit("site", &[SubmitScript::FallsSilent(2000)]);
        let key = keeper.asks(turnstile("site")).key();
        world.after(3);
        let Phase::InDoubt { until, .. } = keeper.reads(key).phase else { panic!("it is in doubt") };
        let left = until.as_millis() - world.moment(world.now()).as_millis();
        world.after_ms(left - 20_000);
        world.store.goes_away();
        let address = world.provider.last_submit("site").callback().to_owned();
        assert_eq!(
            keeper.hears(&address, CallbackResult::Answered(token("gold"))).expect("safe"),
            CallbackOutcome::Spilled
        );
        let away = world.moment(world.now()).as_millis();
        world.after_ms(until.as_millis() - away - early_ms);
        world.store.comes_back();
        world.after(30);
        assert_eq!(world.provider.submits("site").len(), 1, "back {early_ms} ms before the doubt ended");
    }
}
