//! `quittance usage` and `quittance audit`, as whoever pays the bill runs them: beside a store, and beside a daemon that has it.

use crate::nodes::fleet::Node;
use crate::provider::Sim;
use crate::room::{Room, line};
use crate::usage::{usage_equals_ledger, usage_equals_ledger_to_the_cent};
use serde_json::json;
use std::fs;

/// Two captchas, one of them asked for twice.
fn a_calm_day(sim: &Sim) -> Room {
    let room = Room::of(sim);
    let lines: Vec<String> =
        [(1, "one"), (2, "two"), (3, "two")].map(|(id, mark)| line(id, mark).to_string()).into();
    room.run_lines(&lines).must_succeed();
    room
}

#[test]
fn the_usage_of_a_calm_day_are_the_ledger_to_the_cent_whether_prices_are_told_or_not() {
    for profile in ["2captcha", "captchaai"] {
        let sim = Sim::start_with(profile, &[]);
        let room = a_calm_day(&sim);
        usage_equals_ledger_to_the_cent(&room, &sim);
        let report = room.run(&["usage", "--json"]).json();
        let all = &report["all"];
        assert_eq!((&all["asked"], &all["paid"], &all["spent"]), (&json!(3), &json!(2), &json!("0.00598")));
        assert_eq!(all["saved"], "0.00299", "{report}");
    }
}

#[test]
fn the_report_is_a_table_bars_or_values_and_says_if_there_is_nothing() {
    let room = a_calm_day(&Sim::start());
    let table = room.run(&["usage", "7d", "--by", "site,kind"]);
    table.must_succeed();
    for words in ["SITE", "FROM DOUBT", "one.example.com", "recaptcha_v2", "in all", "0.00598"] {
        assert!(table.out.contains(words), "{words}: {}", table.out);
    }
    let csv = room.run(&["usage", "--by", "tenant", "--csv"]);
    let lines: Vec<&str> = csv.out.lines().collect();
    assert!(
        lines[0].starts_with("tenant,asked,joined,cached,") && lines[2].starts_with("total,3,"),
        "{lines:?}"
    );
    let before = room.run(&["usage", "2001-01-01..2001-01-31", "--by", "day"]);
    before.must_succeed();
    assert!(before.out.contains("Nobody has asked for anything."), "{before:?}");
    room.run(&["usage", "2001-02-30"]).must_fail(2, &["2026-11-16"]);
    room.run(&["usage", "--by", "colour"]).must_fail(2, &["tenant"]);
    room.run(&["usage", "2001-01-01..2026-01-01"]).must_fail(2, &["days"]);
}

#[test]
fn the_audit_names_each_payment_and_what_nobody_can_explain() {
    let sim = Sim::start();
    let room = a_calm_day(&sim);
    let audit = room.run(&["audit"]);
    audit.must_succeed();
    let paid: Vec<&str> = audit.out.lines().filter(|line| line.contains("the first of the order")).collect();
    assert_eq!(paid.len(), 2, "{audit:?}");
    assert!(
        paid.iter().all(|line| line.contains("0.00299") && line.contains("and placements that joined")),
        "{paid:?}"
    );
    assert!(audit.out.contains("balance    ") && audit.out.contains(": the same"), "{}", audit.out);

    let mut ledger = sim.ledger().0;
    let stranger = json!({ "id": "=cmd\u{1b}[2J", "price_micros": 2990, "charged": true });
    ledger["tasks"].as_array_mut().expect("it lists tasks").push(stranger);
    let path = room.path("their.json");
    fs::write(&path, ledger.to_string()).expect("the room can be written");
    let path = path.display().to_string();
    let found = room.run(&["audit", "--ledger", &path]);
    assert_eq!(found.code, Some(1), "{found:?}");
    assert!(found.out.contains("only they have it, and nothing explains it"), "{found:?}");
    assert!(!found.out.contains('\u{1b}'), "{found:?}");
    room.run(&["audit", "--ledger", "not-there"]).must_fail(2, &["not-there"]);
}

#[test]
fn a_payment_that_nobody_heard_of_is_explained_by_its_doubt() {
    let sim = Sim::start();
    // Taken, and neither its reply nor a callback nor anything else tells so.
    sim.script(&json!([{ "on": "in.php", "nth": 1, "do": { "reply_lost": {} } }]));
    let room = Room::polling(&sim);
    room.run_lines(&[line(1, "doubtful").to_string()]).must_succeed();
    let agreement = usage_equals_ledger(&room, &sim);
    assert_eq!(
        (agreement.paid, agreement.in_doubt, agreement.in_doubt_micros),
        (1, 1, 2990),
        "{agreement:?}"
    );
    assert_eq!(agreement.cost_micros, 2990);
    let audit = room.run(&["audit", "--csv"]);
    assert!(audit.out.contains("in_doubt") && audit.out.contains("after a doubt"), "{audit:?}");
}

#[test]
fn a_daemon_that_has_the_store_to_itself_is_asked_for_its_usage() {
    let sim = Sim::start();
    let room = a_calm_day(&sim);
    let node = Node::new(room).started();
    usage_equals_ledger_to_the_cent(&node.room, &sim);
    let audit = node.room.run(&["audit", "--json"]);
    audit.must_succeed();
    assert_eq!(audit.out.lines().count(), 3, "{audit:?}");
    node.rest_in_peace();
}
