//! The files of the embedded store are deleted under a running daemon, or its log is damaged after a kill. This is
//! reported in the log and by an alert, and every lost order is on a list.

use crate::nodes::caller::{CallerOutcome, NodeCaller, native};
use crate::nodes::fleet::FleetNode;
use crate::nodes::forgets::alert;
use crate::provider::Sim;
use crate::sandbox::{Sandbox, line};
use crate::wait::{pass, until};
use serde_json::{Value, json};
use std::fs;
use std::time::Duration;

const ORDERS: u64 = 10;

fn place(caller: &mut NodeCaller) -> Vec<String> {
    let ids = (0..ORDERS).map(|n| {
        let order = line(n, &format!("file-{n}"));
        let order = json!({ "kind": order["kind"], "params": order["params"] });
        let reply = caller.post("/v1/orders", "", &order).expect("a node answers");
        let CallerOutcome::Accepted(id) = native(&reply) else { panic!("{reply:?}") };
        id
    });
    ids.collect()
}

#[test]
fn files_that_are_deleted_under_the_daemon_are_reported_at_once_and_nothing_more_is_accepted() {
    let sim = Sim::start();
    sim.script(&json!([{ "on": "in.php", "do": { "solve_ms": 60_000 } }]));
    let mut node = FleetNode::new(Sandbox::of(&sim)).started();
    let mut caller = NodeCaller::of(&node.url);
    place(&mut caller);
    for file in ["orders.db", "orders.db-wal", "orders.db-shm", "orders.trail"] {
        fs::remove_file(node.sandbox.path("store").join(file)).expect("it is there");
    }
    let order = line(99, "after");
    let reply = caller.post("/v1/orders", "", &json!({ "kind": order["kind"], "params": order["params"] }));
    assert_eq!(reply.expect("a node answers").status, 503, "nothing is accepted that would be lost");
    alert(&mut caller);
    let ready = caller.get("/readyz").expect("a node answers");
    assert_eq!((ready.status, &ready.json()["store"]), (503, &json!(false)));
    assert!(ready.body.contains("deleted, moved or replaced"), "{}", ready.body);
    node.kill();
    let node_log = node.log_after_exit();
    assert!(node_log.contains("WARN") && node_log.contains("was deleted, moved or replaced"), "{node_log}");
    node.start();
    let mut caller = NodeCaller::of(&node.url);
    alert(&mut caller);
    let listed = caller.get("/v1/admin/dead?limit=100").expect("a node answers").json();
    // The order that was refused may have reached the trail before: it is listed, too.
    let count = listed["orders"].as_array().map_or(0, Vec::len);
    assert!((10..=11).contains(&count), "{count}: {listed}");
}

#[test]
fn a_log_that_was_damaged_after_a_kill_is_reported_and_every_lost_order_is_listed_and_not_bought_again() {
    let sim = Sim::start();
    sim.script(&json!([{ "on": "in.php", "do": { "solve_ms": 60_000 } }]));
    let mut node = FleetNode::new(Sandbox::of(&sim)).started();
    let mut caller = NodeCaller::of(&node.url);
    let ids = place(&mut caller);
    node.kill();
    let log = node.sandbox.path("store").join("orders.db-wal");
    let mut bytes = fs::read(&log).expect("the log is there after a kill");
    bytes[40] ^= 1;
    fs::write(&log, bytes).expect("it can be written");
    node.start();
    let mut caller = NodeCaller::of(&node.url);
    alert(&mut caller);
    let paid = sim.ledger().accepted();
    for id in &ids {
        let read = caller.get(&format!("/v1/orders/{id}")).expect("a node answers");
        assert_ne!(read.status, 404, "a damaged record is not an unknown one: {}", read.body);
    }
    let listed = caller.get("/v1/admin/dead?limit=100").expect("a node answers").json();
    assert!(listed["orders"].as_array().is_some_and(|orders| !orders.is_empty()), "{listed}");
    assert_eq!(sim.ledger().accepted(), paid, "nothing is bought again by itself");
    node.kill();
    let node_log = node.log_after_exit();
    assert!(node_log.contains("WARN") && node_log.contains("lost the end of its log"), "{node_log}");
}

/// Rows of the database are damaged while the daemon is stopped. At the start they are set aside and reported, and
/// they are listed until an operator drops them.
#[test]
fn records_that_cannot_be_read_are_reported_until_they_are_dropped() {
    let sim = Sim::start();
    sim.script(&json!([{ "on": "in.php", "do": { "solve_ms": 60_000 } }]));
    let sandbox = Sandbox::of(&sim).set("timing.deadline=200s").set("alerts.clear_after=1s");
    let mut node = FleetNode::new(sandbox).started();
    let mut caller = NodeCaller::of(&node.url);
    place(&mut caller);
    node.end();
    let database = node.sandbox.path("store").join("orders.db");
    let mut bytes = fs::read(&database).expect("it is there");
    let (old, rotten) = (b"file-3", b"file-X");
    let found: Vec<usize> = (0..bytes.len()).filter(|at| bytes[*at..].starts_with(old)).collect();
    assert!(!found.is_empty(), "the parameters are in the database");
    for at in found {
        bytes[at..at + old.len()].copy_from_slice(rotten);
    }
    fs::write(&database, bytes).expect("it can be written");
    node.start();
    let mut caller = NodeCaller::of(&node.url);
    let words = until("the alert", || {
        let alert = standing(&mut caller)?;
        Some(alert["words"].as_str().expect("words").to_owned())
    });
    assert!(words.contains("1 records") && words.contains("--cause unreadable"), "{words}");
    let listed = caller.get("/v1/admin/dead?cause=unreadable").expect("a node answers").json();
    let key = listed["orders"][0]["key"].as_str().expect("it is listed").to_owned();
    node.sandbox.run(&["dead", "drop", &key]).must_succeed();
    until("the alert is cleared", || standing(&mut caller).is_none().then_some(()));
    node.kill();
    let node_log = node.log_after_exit();
    let is_reported =
        |line: &&str| line.contains(" WARN ") && line.contains("records of the store cannot be read");
    assert_eq!(node_log.lines().filter(is_reported).count(), 1, "{node_log}");
}

fn standing(caller: &mut NodeCaller) -> Option<Value> {
    let alerts = caller.get("/v1/admin/alerts").expect("a node answers").json();
    let alerts = alerts["alerts"].as_array().cloned().unwrap_or_default();
    alerts.into_iter().find(|alert| alert["rule"] == "records_unreadable" && alert["cleared_at"].is_null())
}

#[test]
fn a_database_that_is_deleted_with_its_trail_while_the_daemon_is_stopped_is_reported() {
    let sim = Sim::start();
    let mut node = FleetNode::new(Sandbox::of(&sim)).started();
    place(&mut NodeCaller::of(&node.url));
    node.kill();
    for file in ["orders.db", "orders.db-wal", "orders.db-shm", "orders.trail"] {
        _ = fs::remove_file(node.sandbox.path("store").join(file));
    }
    node.sandbox.run(&["dead", "list"]).must_fail(5, &["orders.db is gone", "where a node has worked"]);
    node.start();
    alert(&mut NodeCaller::of(&node.url));
    node.kill();
    let node_log = node.log_after_exit();
    assert!(node_log.contains("WARN") && node_log.contains("orders.db was gone at the start"), "{node_log}");
}

/// Regression: a budget for two answers bought 4, because the new database began the hour again.
#[test]
fn a_budget_does_not_begin_again_with_a_database_that_was_deleted_while_the_daemon_was_stopped() {
    let sim = Sim::start();
    sim.script(&json!([{ "on": "in.php", "do": { "solve_ms": 200 } }]));
    let hour = || sim.ledger().0["now_ms"].as_u64().expect("the ledger has a clock") / 3_600_000;
    let mut node = FleetNode::new(Sandbox::of(&sim)).started();
    let before = hour();
    let set = ["pool", "set", "warm", "--kind", "turnstile", "--size", "9", "--budget-per-hour", "0.006"];
    let set = [&set[..], &["-p", "sitekey=0x4A", "-p", "pageurl=https://pool.example.com/"]].concat();
    node.sandbox.run(&set).must_succeed();
    until("its budget is spent", || (sim.ledger().accepted() == 2).then_some(()));
    node.end();
    for file in ["orders.db", "orders.db-wal", "orders.db-shm"] {
        // After a proper stop there is no log.
        _ = fs::remove_file(node.sandbox.path("store").join(file));
    }
    node.start();
    node.sandbox.run(&set).must_succeed();
    pass(Duration::from_secs(6));
    let (bought, hours) = (sim.ledger().accepted(), hour() - before + 1);
    assert!(bought <= 2 * hours, "{bought} bought in {hours} hours with a budget for 2 an hour");
    if hours == 1 {
        let text = node.sandbox.run(&["pool", "show", "warm"]).out;
        assert!(text.contains("the store forgot what the pool has spent in this hour"), "{text}");
    }
    node.rest_in_peace();
}
