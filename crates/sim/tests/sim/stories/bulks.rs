//! Bulk actions on dead letters: each is done once, also if a node is killed in the middle, and an operator can stop
//! it.

use crate::stories::provider::SubmitScript;
use crate::stories::world::{StoryNode, StoryWorld, turnstile, world};
use quittance_engine::{AdoptOutcome, BULKS_MAX, BulkError};
use quittance_lifecycle::{
    DeadLetterFilter, FaultClass, Key, Money, Order, Phase, Progress, Terms, TimelineEvent,
};
use quittance_ports::{BulkAction, BulkDocument, MemorySpill};
use std::sync::Arc;

const UNSOLVABLE: SubmitScript = SubmitScript::Refuses(FaultClass::Unsolvable, "ERROR_CAPTCHA_UNSOLVABLE");
/// Replies that make an order a dead letter: its task is unsolvable three times in one life.
const DIES: [SubmitScript; 3] = [UNSOLVABLE; 3];

fn site(n: usize) -> String {
    format!("site-{n}")
}

/// A node without a limit on retries.
fn node_of(world: &StoryWorld) -> StoryNode {
    world.node_with(Arc::new(MemorySpill::default()), |settings| {
        settings.providers[0].throttle.retry_burst = 10_000;
    })
}

/// Makes this many dead letters, whose replay would be answered.
fn graveyard(world: &StoryWorld, node: &StoryNode, size: usize) -> Vec<Key> {
    let keys = (0..size).map(|n| {
        world.provider.on_submit(&site(n), &DIES);
        world.provider.solves(&site(n), 5);
        node.asks(turnstile(&site(n))).key()
    });
    let keys: Vec<Key> = keys.collect();
    world.after(30);
    assert!(world.orders().iter().all(|order| is_dead(order)), "each of them is a dead letter");
    keys
}

fn is_dead(order: &Order) -> bool {
    matches!(order.phase, Phase::Dead { .. })
}

fn begin(node: &StoryNode, action: BulkAction, filter: DeadLetterFilter, per_second: u32) -> BulkDocument {
    let engine = Arc::clone(&node.engine);
    node.does(async move { engine.begin_bulk(action, filter, per_second).await }).expect("it can be begun")
}

fn documents(node: &StoryNode) -> Vec<BulkDocument> {
    let engine = Arc::clone(&node.engine);
    node.does(async move { engine.bulks().await }).expect("the store is there")
}

fn document(node: &StoryNode) -> BulkDocument {
    documents(node).pop().expect("there is one")
}

fn replays(order: &Order) -> usize {
    order.timeline.entries.iter().filter(|entry| entry.event == TimelineEvent::Replayed).count()
}

#[test]
fn each_dead_letter_is_replayed_once_and_no_faster_than_requested() {
    let world = world();
    let node = node_of(&world);
    graveyard(&world, &node, 100);
    let begun = begin(&node, BulkAction::Replay, DeadLetterFilter::default(), 10);
    world.after(5);
    let under_way = document(&node);
    assert!((30..=60).contains(&under_way.done), "ten a second: {under_way:?}");
    assert_eq!(under_way.ended, None);
    world.after(60);
    let ended = document(&node);
    assert_eq!((ended.number, ended.done, ended.passed_over), (begun.number, 100, 0));
    assert!(ended.ended.is_some() && !ended.was_stopped, "{ended:?}");
    for order in world.orders() {
        assert_eq!((order.phase.name(), replays(&order)), ("solved", 1), "{order:?}");
    }
    for n in 0..100 {
        assert_eq!(world.provider.submits(&site(n)).len(), 4, "three that came to nothing, and one replay");
    }
}

#[test]
fn after_a_kill_in_the_middle_the_next_run_repeats_nothing() {
    let world = world();
    let node = node_of(&world);
    graveyard(&world, &node, 200);
    // Every commit takes a while, so that the node can be killed between a replay and the note that it was done.
    world.store.is_far_away(40);
    begin(&node, BulkAction::Replay, DeadLetterFilter::default(), 100);
    world.after_ms(1210);
    node.kill();
    let replayed = world.orders().iter().filter(|order| replays(order) > 0).count();
    assert!((1..200).contains(&replayed), "the node was killed in the middle: {replayed}");
    world.store.is_far_away(0);
    let other = node_of(&world);
    world.after(60);
    assert!(document(&other).ended.is_some());
    for order in world.orders() {
        assert_eq!((order.phase.name(), replays(&order)), ("solved", 1), "{order:?}");
    }
    assert_eq!(world.provider.taken(), 200);
}

#[test]
fn two_nodes_do_not_do_it_twice() {
    let world = world();
    let (one, two) = (node_of(&world), node_of(&world));
    graveyard(&world, &one, 100);
    // No node has signed in, so each of them takes itself for the one that is to do it.
    world.store.is_far_away(20);
    begin(&one, BulkAction::Replay, DeadLetterFilter::default(), 50);
    world.after(60);
    assert!(document(&two).ended.is_some());
    for order in world.orders() {
        assert_eq!((order.phase.name(), replays(&order)), ("solved", 1), "{order:?}");
    }
    assert_eq!(world.provider.taken(), 100);
}

#[test]
fn what_dies_again_is_left_for_a_person() {
    let world = world();
    let node = node_of(&world);
    graveyard(&world, &node, 20);
    for n in 0..20 {
        world.provider.on_submit(&site(n), &DIES);
    }
    // So slow that the first have died again long before the last are replayed, and killed once for good measure.
    begin(&node, BulkAction::Replay, DeadLetterFilter::default(), 1);
    world.after(10);
    node.kill();
    let other = node_of(&world);
    world.after(60);
    let ended = document(&other);
    assert!(ended.ended.is_some(), "{ended:?}");
    for order in world.orders() {
        assert_eq!((order.phase.name(), replays(&order)), ("dead", 1), "{order:?}");
    }
}

#[test]
fn a_person_can_stop_it_and_what_was_done_stays_done() {
    let world = world();
    let node = node_of(&world);
    graveyard(&world, &node, 50);
    let begun = begin(&node, BulkAction::Drop, DeadLetterFilter::default(), 5);
    world.after(4);
    let engine = Arc::clone(&node.engine);
    let stopped = node.does(async move { engine.stop_bulk(begun.number).await });
    let stopped = stopped.expect("the store is there").expect("there is one");
    assert!(stopped.was_stopped && stopped.ended.is_some());
    let dead = || world.orders().iter().filter(|order| is_dead(order)).count();
    let left = dead();
    assert!((10..50).contains(&left), "{left}");
    world.after(30);
    assert_eq!((dead(), document(&node)), (left, stopped), "nothing more was dropped");
    let engine = Arc::clone(&node.engine);
    let none = node.does(async move { engine.stop_bulk(999).await }).expect("the store is there");
    assert_eq!(none, None);
}

#[test]
fn only_what_is_meant_is_touched() {
    let world = world();
    let node = node_of(&world);
    let keys = graveyard(&world, &node, 10);
    world.store.breaks_record(keys[3]);
    let no_match = DeadLetterFilter { tenant: Some("grace".into()), ..DeadLetterFilter::default() };
    begin(&node, BulkAction::Drop, no_match, 100);
    world.after(10);
    let ended = document(&node);
    assert!(ended.ended.is_some() && (ended.done, ended.passed_over) == (0, 0), "{ended:?}");
    begin(
        &node,
        BulkAction::Drop,
        DeadLetterFilter { kind: Some("turnstile".into()), ..DeadLetterFilter::default() },
        100,
    );
    world.after(10);
    let ended = document(&node);
    let counted = (ended.number, ended.done, ended.passed_over);
    assert_eq!(counted, (2, 9, 1), "what cannot be read is counted, and left alone: {ended:?}");
}

#[test]
fn there_is_a_bound_on_how_many_are_under_way_and_old_ones_are_forgotten() {
    let world = world();
    let node = node_of(&world);
    graveyard(&world, &node, 30);
    let tries = |per_second: u32| {
        let engine = Arc::clone(&node.engine);
        node.does(async move {
            engine.begin_bulk(BulkAction::Replay, DeadLetterFilter::default(), per_second).await
        })
    };
    assert!(matches!(tries(0), Err(BulkError::BadRate)));
    assert!(matches!(tries(1001), Err(BulkError::BadRate)));
    for _ in 0..BULKS_MAX {
        tries(1).expect("there is room");
    }
    assert!(matches!(tries(1), Err(BulkError::TooMany)));
    world.after(120);
    assert!(documents(&node).iter().all(|document| document.ended.is_some()));
    for _ in 0..3 {
        for _ in 0..BULKS_MAX {
            tries(100).expect("there is room");
        }
        world.after(10);
    }
    assert!(documents(&node).len() <= 32, "{}", documents(&node).len());
    world.after(25 * 3600);
    assert_eq!(documents(&node), []);
}

/// An export can be edited, and the other store may have had another price list.
#[test]
fn the_site_and_the_price_of_a_dead_letter_from_another_store_are_found_out_here() {
    let (here, there) = (world(), world());
    let node = here.node_with(Arc::new(MemorySpill::default()), |settings| {
        _ = settings.providers[0].prices.insert("turnstile".into(), Money(2_990));
    });
    let other = node_of(&there);
    let key = graveyard(&there, &other, 1)[0];
    let dead_letter = other.reads(key);
    let mut edited = (*dead_letter).clone();
    edited.terms =
        Arc::new(Terms { site: "elsewhere.test".into(), price: Some(Money(1)), ..(*edited.terms).clone() });
    // An answer to this attempt may still come, and nothing of its cost is in the usage of this store.
    edited.attempts[0].progress = Progress::GivenUp { counted: true };
    (edited.attempts[0].accepted, edited.attempts[0].cost) = (true, Some(Money(2_000)));
    let cost_before = edited.attempts[1].cost;
    let engine = Arc::clone(&node.engine);
    let adopted = node.does(async move { engine.adopt_dead_letter(edited).await });
    assert_eq!(adopted.expect("the store is there"), AdoptOutcome::New);
    let order = node.reads(key);
    assert_eq!((&order.terms.site, order.terms.price), (&dead_letter.terms.site, Some(Money(2_990))));
    assert_eq!((order.attempts[0].cost, order.attempts[1].cost), (None, cost_before));
}

#[test]
fn a_dead_letter_from_another_store_is_adopted_once_and_only_if_it_is_one() {
    let (here, there) = (world(), world());
    let (node, other) = (node_of(&here), node_of(&there));
    let keys = graveyard(&there, &other, 1);
    let dead_letter = other.reads(keys[0]);
    let adopt = |order: &Order| {
        let (engine, order) = (Arc::clone(&node.engine), order.clone());
        node.does(async move { engine.adopt_dead_letter(order).await }).expect("the store is there")
    };
    assert_eq!((adopt(&dead_letter), adopt(&dead_letter)), (AdoptOutcome::New, AdoptOutcome::ThereAlready));
    assert_eq!(*node.reads(keys[0]), *dead_letter);
    // Exported, dropped and imported again, it is back.
    let engine = Arc::clone(&node.engine);
    let key = keys[0];
    node.does(async move { engine.drop_dead_letter(&key).await }).expect("the store is there");
    assert_eq!(node.reads(keys[0]).phase.name(), "failed");
    assert_eq!((adopt(&dead_letter), adopt(&dead_letter)), (AdoptOutcome::New, AdoptOutcome::ThereAlready));
    assert_eq!(node.reads(keys[0]).phase, dead_letter.phase);
    let other_key = other.asks(turnstile("fresh")).key();
    assert_eq!(adopt(&other.reads(other_key)), AdoptOutcome::NoDeadLetter);
    here.provider.solves(&site(0), 5);
    here.after(40);
    begin(&node, BulkAction::Replay, DeadLetterFilter::default(), 10);
    here.after(40);
    assert_eq!(node.reads(keys[0]).phase.name(), "solved");
}
