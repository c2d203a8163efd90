//! Dead letters on the page: one is replayed and solved, some are dropped and all others replayed. Nothing is paid
//! for without a confirmation.

use super::graveyard;
use super::play::Play;
use crate::provider::Sim;
use crate::wait::until;
use serde_json::json;

#[test]
fn a_dead_letter_is_replayed_and_seen_solved() {
    let sim = Sim::start();
    let serve = graveyard(&sim, 1);
    Play::run("replay", &serve);
    assert_eq!(sim.ledger().accepted(), 1, "the replay that was thought better of bought nothing");
    serve.end_in_peace();
}

#[test]
fn some_are_dropped_and_all_others_replayed_once() {
    let sim = Sim::start();
    let serve = graveyard(&sim, 12);
    Play::run("bulk", &serve);
    until("all that were replayed are bought", || (sim.ledger().accepted() >= 10).then_some(()));
    assert_eq!(sim.ledger().accepted(), 10, "what was dropped is not bought");
    serve.end_in_peace();
}

#[test]
fn a_replay_of_all_that_solves_nothing_is_not_shown_as_done() {
    let sim = Sim::start();
    let serve = graveyard(&sim, 3);
    sim.script(&json!([{ "on": "in.php", "do": { "code": "ERROR_NO_SLOT_AVAILABLE" } }]));
    Play::run("futile", &serve);
    assert_eq!(sim.ledger().accepted(), 0);
    serve.end_in_peace();
}
