//! An event is safe before the provider gets its "200": in the store, or else in the spill.

use crate::stories::provider::{Submit, SubmitScript, token};
use crate::stories::world::{StoryNode, StoryWorld, turnstile, world_with_callbacks};
use quittance_engine::CallbackOutcome;
use quittance_lifecycle::{CallbackResult, FaultClass, Key, Phase};
use quittance_ports::{IncomingEvent, MemorySpill, Spill, SpillError};
use quittance_record::SpillFile;
use std::sync::Arc;
use std::time::Duration;

fn answered(text: &str) -> CallbackResult {
    CallbackResult::Answered(token(text))
}

/// One order, taken by the provider, and the submit that the provider received.
fn solving(world: &StoryWorld, node: &StoryNode, site: &str) -> (Key, Submit) {
    let key = node.asks(turnstile(site)).key();
    assert!(matches!(node.reads(key).phase, Phase::Solving { .. }));
    (key, world.provider.last_submit(site))
}

/// Trap: the 200 is sent before the result is safe. The node is killed at the moment of the acknowledgement.
#[test]
fn the_answer_is_there_although_the_node_dies_right_at_the_acknowledgement() {
    let world = world_with_callbacks();
    let node = world.node();
    let (key, submit) = solving(&world, &node, "site");
    world.after(20);
    assert_eq!(node.hears(submit.callback(), answered("gold")).expect("safe"), CallbackOutcome::Applied);
    node.kill();
    let other = world.node();
    assert!(matches!(&other.reads(key).phase, Phase::Solved { answer, .. } if answer.payload.text == "gold"));
    let late = other.asks(turnstile("site"));
    assert_eq!(late.token().as_deref(), Some("gold"));
    assert_eq!(world.provider.taken(), 1);
}

/// A callback comes while the store is away, and the node dies. Its successor finds the answer in the spill.
fn spilled_and_replayed(open: impl Fn() -> Arc<dyn Spill>) {
    let world = world_with_callbacks();
    let node = world.node_on(open());
    let (key, submit) = solving(&world, &node, "site");
    world.after(20);
    world.store.goes_away();
    assert_eq!(node.hears(submit.callback(), answered("gold")).expect("safe"), CallbackOutcome::Spilled);
    node.kill();
    drop(node);

    let other = world.node_on(open());
    world.after(10);
    world.store.comes_back();
    world.after(3);
    assert!(matches!(&other.reads(key).phase, Phase::Solved { answer, .. } if answer.payload.text == "gold"));
    other.kill();
    drop(other);
    assert_eq!(open().waiting().expect("it can be read"), [], "what is safe in the store is forgotten here");
    assert!(world.provider.polls().is_empty());
    let usage = world.usage();
    assert_eq!((usage.paid, usage.solved, usage.attempts), (1, 1, 1));
}

/// Promise: the 200 is sent only after the result is durable, in the spill when the store is down.
#[test]
fn a_callback_while_the_store_is_away_is_spilled_and_replayed_after_a_restart() {
    let spill = MemorySpill::default();
    spilled_and_replayed(|| Arc::new(spill.clone()));
}

/// Promise: a callback that was spilled to a real file is replayed after a restart.
#[test]
fn a_callback_survives_the_death_of_its_node_in_a_real_spill_file() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("spill");
    spilled_and_replayed(|| Arc::new(SpillFile::open(&path, 1 << 20).expect("the spill can be opened")));
}

/// A node was started on the wrong store, or before all orders had been moved to it. It knows nothing of the orders
/// in its spill, and keeps the spill for the right store.
#[test]
fn what_came_in_for_an_order_that_this_store_does_not_know_is_kept_for_one_that_does() {
    let (right, wrong) = (world_with_callbacks(), world_with_callbacks());
    let spill = MemorySpill::default();
    let node = right.node_on(Arc::new(spill.clone()));
    let (key, submit) = solving(&right, &node, "site");
    right.after(20);
    right.store.goes_away();
    assert_eq!(node.hears(submit.callback(), answered("gold")).expect("safe"), CallbackOutcome::Spilled);
    node.kill();
    drop(node);

    let stray = wrong.node_on(Arc::new(spill.clone()));
    wrong.after(120);
    stray.kill();
    drop(stray);
    assert_eq!(spill.waiting().expect("it can be read").len(), 1, "it is still there");

    let _other = right.node_on(Arc::new(spill));
    right.store.comes_back();
    right.after(3);
    let reader = right.node();
    assert!(
        matches!(&reader.reads(key).phase, Phase::Solved { answer, .. } if answer.payload.text == "gold")
    );
    // And not for ever: a record may have been forgotten in good order.
    let late = MemorySpill::default();
    let lost = IncomingEvent {
        key: Key([9; 32]),
        born: wrong.moment(wrong.now()),
        target: None,
        event: quittance_lifecycle::Event::Cancelled,
    };
    late.keep(&lost).expect("there is room");
    let _stray = wrong.node_on(Arc::new(late.clone()));
    wrong.after(25 * 3600);
    assert_eq!(late.waiting().expect("it can be read"), []);
}

/// A spill on a disk that is gone.
struct BrokenSpill;

impl Spill for BrokenSpill {
    fn keep(&self, _: &IncomingEvent) -> Result<(), SpillError> {
        Err(SpillError::Full { bytes_max: 0 })
    }

    fn waiting(&self) -> Result<Vec<IncomingEvent>, SpillError> {
        Ok(Vec::new())
    }

    fn forget(&self, _: usize) -> Result<(), SpillError> {
        Ok(())
    }
}

/// Promise: a "200" can be relied on. With neither a store nor a spill there is no "200", and the provider's next try
/// finds everything unchanged.
#[test]
fn with_neither_store_nor_spill_the_callback_is_not_acknowledged() {
    let world = world_with_callbacks();
    let node = world.node_on(Arc::new(BrokenSpill));
    let (key, submit) = solving(&world, &node, "site");
    world.store.goes_away();
    assert!(node.hears(submit.callback(), answered("gold")).is_err());
    world.store.comes_back();
    assert!(matches!(node.reads(key).phase, Phase::Solving { .. }));
    assert_eq!(node.hears(submit.callback(), answered("gold")).expect("safe"), CallbackOutcome::Applied);
    assert!(matches!(node.reads(key).phase, Phase::Solved { .. }));
}

/// Trap: one broken file that stops the replay of all others.
#[test]
fn one_record_that_cannot_be_read_does_not_stop_the_replay_of_the_others() {
    let world = world_with_callbacks();
    let spill = MemorySpill::default();
    let node = world.node_on(Arc::new(spill.clone()));
    let sites = ["one", "two", "three", "four"];
    let orders: Vec<_> = sites.iter().map(|site| solving(&world, &node, site)).collect();
    world.store.goes_away();
    for (_, submit) in &orders {
        let word = answered(&format!("gold for {}", submit.site));
        assert_eq!(node.hears(submit.callback(), word).expect("safe"), CallbackOutcome::Spilled);
    }
    let broken = orders[0].0;
    world.store.breaks_record(broken);
    world.store.comes_back();
    world.after(3);
    for (key, _) in &orders[1..] {
        assert!(matches!(node.reads(*key).phase, Phase::Solved { .. }));
    }
    assert!(node.engine.unreadable() > 0, "it is reported");
    assert_eq!(
        spill.waiting().expect("readable").len(),
        1,
        "what is paid for stays safe until it is repaired"
    );
    world.store.repairs_record(broken);
    world.after(31);
    assert!(matches!(node.reads(broken).phase, Phase::Solved { .. }));
    assert!(spill.waiting().expect("readable").is_empty());
}

/// Promise: the 200 is sent only after the result is durable, also if the store can be read but not written: a full
/// disk, or a replica that is not promoted yet.
#[test]
fn a_callback_while_the_store_takes_no_writes_is_spilled_within_seconds() {
    let world = world_with_callbacks();
    let spill = MemorySpill::default();
    let node = world.node_on(Arc::new(spill.clone()));
    let (key, submit) = solving(&world, &node, "site");
    world.store.takes_no_writes();
    let segment = submit.callback().rsplit('/').next().unwrap_or_default().to_owned();
    let engine = Arc::clone(&node.engine);
    let outcome = node
        .tries(async move { engine.called_back(&segment, None, answered("gold"), Duration::ZERO).await }, 30);
    let outcome = outcome.expect("the provider hears within 30 s, or it gives up");
    assert_eq!(outcome.expect("safe"), CallbackOutcome::Spilled);
    assert_eq!(spill.waiting().expect("readable").len(), 1);
    world.store.comes_back();
    world.after(3);
    assert!(matches!(node.reads(key).phase, Phase::Solved { .. }));
}

/// Promise: never lost. The provider took the task, and its reply came while the store was away. The task's id is
/// spilled, and after the restart the same task is polled, and paid for once.
#[test]
fn the_reply_to_a_submit_is_spilled_too_while_the_store_is_away() {
    let world = world_with_callbacks();
    let spill = MemorySpill::default();
    let node = world.node_on(Arc::new(spill.clone()));
    world.provider.on_submit("site", &[SubmitScript::Takes(1_000)]);
    world.provider.solves("site", 10);
    let key = node.asks(turnstile("site")).key();
    world.store.goes_away();
    world.after(2);
    assert_eq!(spill.waiting().expect("readable").len(), 1);
    node.kill();
    let other = world.node_on(Arc::new(spill));
    world.store.comes_back();
    world.after(3);
    assert!(matches!(other.reads(key).phase, Phase::Solving { .. }));
    world.after(60);
    assert!(
        matches!(&other.reads(key).phase, Phase::Solved { answer, .. } if answer.payload.text == "token-1")
    );
    assert_eq!(world.provider.taken(), 1);
    assert_eq!(world.usage().in_doubt, 0);
}

/// Promise: a rejection that came while the store was away still counts, and is not polled again.
#[test]
fn a_rejection_that_came_while_the_store_was_away_is_applied_when_it_is_back() {
    let world = world_with_callbacks();
    let node = world.node();
    let (key, submit) = solving(&world, &node, "typo");
    world.store.goes_away();
    let word =
        CallbackResult::Faulted(quittance_lifecycle::Fault::new(FaultClass::Caller, "ERROR_BAD_TOKEN"));
    assert_eq!(node.hears(submit.callback(), word).expect("safe"), CallbackOutcome::Spilled);
    world.after(5);
    world.store.comes_back();
    world.after(60);
    assert!(matches!(node.reads(key).phase, Phase::Failed { .. }));
    assert_eq!(world.provider.submits("typo").len(), 1);
}
