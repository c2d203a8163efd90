//! `quittance dead`: list, show, replay and drop, by a whole key or its beginning.

use crate::provider::Sim;
use crate::sandbox::Sandbox;
use crate::serve::Serve;
use serde_json::json;

/// Makes three dead letters. Returns their keys.
fn graveyard(sim: &Sim) -> (Sandbox, Vec<String>) {
    sim.script(&json!([{ "on": "in.php", "do": { "code": "ERROR_NO_SLOT_AVAILABLE" } }]));
    let sandbox = Sandbox::of(sim).set("retry.limits.busy=1");
    for mark in ["one", "two", "three"] {
        sandbox
            .solve(mark, &[])
            .must_fail(1, &["ERROR_NO_SLOT_AVAILABLE", "dead letter", "quittance dead show"]);
    }
    let entries = sandbox.dead_letters();
    let order = |entry: &serde_json::Value| entry["key"].as_str().expect("it has a name").to_owned();
    let orders: Vec<String> = entries.iter().map(order).collect();
    assert_eq!(orders.len(), 3);
    sim.calm();
    (sandbox, orders)
}

#[test]
fn a_dead_letter_is_listed_shown_replayed_and_dropped() {
    let sim = Sim::start();
    let (sandbox, orders) = graveyard(&sim);
    let list = sandbox.run(&["dead", "list"]);
    assert!(list.must_succeed().out.starts_with("ORDER") && list.out.lines().count() == 4, "{}", list.out);
    assert_eq!(
        sandbox.run(&["dead", "list", "--limit", "2", "--json"]).json().as_array().map(Vec::len),
        Some(2)
    );
    let view = sandbox.run(&["dead", "show", &orders[0]]);
    for word in
        [&*orders[0], "recaptcha_v2", "ERROR_NO_SLOT_AVAILABLE", "replay", "pageurl", "googlekey", "timeline"]
    {
        assert!(view.must_succeed().out.contains(word), "{word}: {}", view.out);
    }
    let object = sandbox.run(&["dead", "show", &orders[0][..8], "--json"]).must_succeed().json();
    assert_eq!((&object["key"], object["attempts"].as_array().map(Vec::len)), (&json!(orders[0]), Some(2)));
    assert!(object["timeline"].as_array().is_some_and(|timeline| timeline.len() >= 4), "{object}");
    let dropped = sandbox.run(&["dead", "drop", &orders[0][..12]]);
    assert!(dropped.must_succeed().out.contains("dropped"), "{dropped:?}");
    let replayed = sandbox.run(&["dead", "replay", &orders[1], "--json"]).must_succeed().json();
    assert_eq!((&replayed["order"], replayed["answer"].is_string()), (&json!(orders[1]), true));
    assert_eq!(sandbox.dead_letters().len(), 1);
    sandbox.run(&["dead", "replay", "--all", "--yes"]).must_succeed();
    assert!(sandbox.run(&["dead", "list"]).must_succeed().out.contains("no dead letters"));
    assert_eq!(sim.ledger().accepted(), 2, "what was dropped is not bought");
}

/// A script reads the same keys, whichever process executes the replay.
#[test]
fn a_replay_has_the_same_json_with_and_without_a_daemon() {
    let sim = Sim::start();
    let (sandbox, orders) = graveyard(&sim);
    let alone = sandbox.run(&["dead", "replay", &orders[0], "--json"]).must_succeed().json();
    sim.script(&json!([{ "on": "in.php", "do": { "code": "ERROR_NO_SLOT_AVAILABLE" } }]));
    let failed = sandbox.run(&["dead", "replay", &orders[1], "--json"]);
    failed.must_fail(1, &[]);
    let failed = failed.json();
    sim.calm();
    let serve = Serve::start(sandbox);
    let beside = serve.sandbox.run(&["dead", "replay", &orders[2], "--json"]).must_succeed().json();
    for replayed in [&alone, &failed, &beside] {
        let keys: Vec<&String> = replayed.as_object().expect("an object").keys().collect();
        assert_eq!(keys, ["answer", "error", "extras", "order", "status"], "{replayed}");
    }
    assert!(alone["answer"].is_string() && beside["answer"].is_null(), "{alone} {beside}");
    assert_eq!((&alone["status"], &beside["status"]), (&json!("solved"), &json!("solved")));
    assert_eq!((&failed["status"], failed["error"]["code"].is_string()), (&json!("dead"), true));
    serve.end_in_peace();
}

#[test]
fn a_replay_without_success_leaves_the_dead_letter_where_it_was() {
    let sim = Sim::start();
    let (sandbox, orders) = graveyard(&sim);
    sim.script(&json!([{ "on": "in.php", "do": { "code": "ERROR_NO_SLOT_AVAILABLE" } }]));
    let ran = sandbox.run(&["dead", "replay", &orders[0], &orders[1]]);
    assert_eq!((ran.code, ran.out.matches("no answer").count()), (Some(1), 2), "{ran:?}");
    assert_eq!(sandbox.dead_letters().len(), 3);
}

#[test]
fn a_prefix_of_no_dead_letter_or_of_several_is_reported() {
    let sim = Sim::start();
    let (sandbox, _) = graveyard(&sim);
    for command in ["show", "replay", "drop"] {
        sandbox
            .run(&["dead", command, "ffffffffffff"])
            .must_fail(1, &["ffffffffffff", "quittance dead list"]);
        sandbox.run(&["dead", command, "xyz"]).must_fail(2, &["xyz", "hexadecimal"]);
        // Too short for the beginning of a key, and no number, which would be the id that clients quote.
        sandbox.run(&["dead", command, "a1b"]).must_fail(2, &["hexadecimal"]);
        sandbox.run(&["dead", command]).must_fail(2, &["ORDER"]);
    }
    assert_eq!(sandbox.dead_letters().len(), 3, "nothing was touched");
    assert_eq!(sim.ledger().accepted(), 0);
}

#[test]
fn placing_a_dead_order_again_gives_it_a_new_life() {
    let sim = Sim::start();
    let (sandbox, _) = graveyard(&sim);
    sandbox.solve("one", &[]).must_succeed();
    assert_eq!((sandbox.dead_letters().len(), sim.ledger().accepted()), (2, 1));
}
