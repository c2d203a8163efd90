//! The files of the embedded store are deleted under a running daemon, or its log is damaged after a kill: reported
//! in the log and by an alert, and every order that is lost is on a list.

use crate::nodes::caller::{CallerOutcome, NodeCaller, native};
use crate::nodes::fleet::FleetNode;
use crate::nodes::forgets::alert;
use crate::provider::Sim;
use crate::sandbox::{Sandbox, line};
use serde_json::json;
use std::fs;

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
