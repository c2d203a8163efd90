//! `quittance dead`: list, show, replay and drop, by a whole key or its beginning.

use crate::provider::Sim;
use crate::room::Room;
use serde_json::json;

/// Three dead letters, and what they are called.
fn graveyard(sim: &Sim) -> (Room, Vec<String>) {
    sim.script(&json!([{ "on": "in.php", "do": { "code": "ERROR_NO_SLOT_AVAILABLE" } }]));
    let room = Room::of(sim).set("retry.limits.busy=1");
    for mark in ["one", "two", "three"] {
        room.solve(mark, &[])
            .must_fail(1, &["ERROR_NO_SLOT_AVAILABLE", "dead letter", "quittance dead show"]);
    }
    let letters = room.dead_letters();
    let order = |letter: &serde_json::Value| letter["order"].as_str().expect("it has a name").to_owned();
    let orders: Vec<String> = letters.iter().map(order).collect();
    assert_eq!(orders.len(), 3);
    sim.calm();
    (room, orders)
}

#[test]
fn a_dead_letter_is_listed_shown_replayed_and_dropped() {
    let sim = Sim::start();
    let (room, orders) = graveyard(&sim);
    let list = room.run(&["dead", "list"]);
    assert!(list.must_succeed().out.starts_with("ORDER") && list.out.lines().count() == 4, "{}", list.out);
    assert_eq!(
        room.run(&["dead", "list", "--limit", "2", "--json"]).json().as_array().map(Vec::len),
        Some(2)
    );
    let shown = room.run(&["dead", "show", &orders[0]]);
    for word in
        [&*orders[0], "recaptcha_v2", "ERROR_NO_SLOT_AVAILABLE", "replay", "pageurl", "googlekey", "timeline"]
    {
        assert!(shown.must_succeed().out.contains(word), "{word}: {}", shown.out);
    }
    let object = room.run(&["dead", "show", &orders[0][..8], "--json"]).must_succeed().json();
    assert_eq!((&object["order"], object["attempts"].as_array().map(Vec::len)), (&json!(orders[0]), Some(2)));
    assert!(object["timeline"].as_array().is_some_and(|timeline| timeline.len() >= 4), "{object}");
    let dropped = room.run(&["dead", "drop", &orders[0][..12]]);
    assert!(dropped.must_succeed().out.contains("dropped"), "{dropped:?}");
    let replayed = room.run(&["dead", "replay", &orders[1], "--json"]).must_succeed().json();
    assert_eq!((&replayed["order"], replayed["answer"].is_string()), (&json!(orders[1]), true));
    assert_eq!(room.dead_letters().len(), 1);
    room.run(&["dead", "replay", "--all", "--yes"]).must_succeed();
    assert!(room.run(&["dead", "list"]).must_succeed().out.contains("No dead letters"));
    assert_eq!(sim.ledger().accepted(), 2, "what was dropped is not bought");
}

#[test]
fn a_replay_that_comes_to_nothing_leaves_the_letter_where_it_was() {
    let sim = Sim::start();
    let (room, orders) = graveyard(&sim);
    sim.script(&json!([{ "on": "in.php", "do": { "code": "ERROR_NO_SLOT_AVAILABLE" } }]));
    let ran = room.run(&["dead", "replay", &orders[0], &orders[1]]);
    assert_eq!((ran.code, ran.out.matches("no answer").count()), (Some(1), 2), "{ran:?}");
    assert_eq!(room.dead_letters().len(), 3);
}

#[test]
fn what_names_no_letter_or_more_than_one_is_said() {
    let sim = Sim::start();
    let (room, _) = graveyard(&sim);
    for command in ["show", "replay", "drop"] {
        room.run(&["dead", command, "ffffffffffff"]).must_fail(1, &["ffffffffffff", "quittance dead list"]);
        room.run(&["dead", command, "xyz"]).must_fail(2, &["xyz", "hexadecimal"]);
        // Too short for the beginning of a key, and no number, which would be the id that clients quote.
        room.run(&["dead", command, "a1b"]).must_fail(2, &["hexadecimal"]);
        room.run(&["dead", command]).must_fail(2, &["ORDER"]);
    }
    assert_eq!(room.dead_letters().len(), 3, "nothing was touched");
    assert_eq!(sim.ledger().accepted(), 0);
}

#[test]
fn placing_a_dead_order_again_gives_it_a_new_life() {
    let sim = Sim::start();
    let (room, _) = graveyard(&sim);
    room.solve("one", &[]).must_succeed();
    assert_eq!((room.dead_letters().len(), sim.ledger().accepted()), (2, 1));
}
