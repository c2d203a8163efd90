//! The keys of orders are hashed with a secret of their store. The secret is equal on every node, after a restart,
//! and in a store to which the orders move. So a repeat is recognised everywhere, and nothing is bought twice.

use crate::binary::{quittance, run};
use crate::nodes::caller::{KEY, NodeCaller};
use crate::nodes::fleet::FleetNode;
use crate::nodes::server::{ServerKind, StoreServer};
use crate::provider::Sim;
use crate::sandbox::Sandbox;
use serde_json::{Value, json};

/// The answer of the one order, on the API of a node.
fn answer_at(node: &FleetNode) -> (String, String) {
    let params = json!({ "sitekey": "0x4AAAAAAADnPIDROrmt1Wwj", "pageurl": "https://shop.example.com/" });
    let headers = format!("Authorization: Bearer {KEY}\r\nIdempotency-Key: job-1\r\nPrefer: wait=60\r\n");
    let body = json!({ "kind": "turnstile", "params": params });
    let reply = NodeCaller::of(&node.url).post("/v1/orders", &headers, &body).expect("a node answers").json();
    assert_eq!(reply["status"], "solved", "{reply}");
    let text = |name: &str| reply[name].as_str().unwrap_or_default().to_owned();
    (text("id"), reply["answer"].to_string())
}

fn copy(from: &str, to: &str) {
    let ran = run(quittance(["store", "copy", from, to, "--json"]));
    ran.must_succeed();
    let reply: Value = serde_json::from_str(&ran.out).expect("JSON");
    assert_eq!((&reply["complete"], &reply["other_secret"]), (&json!(true), &json!(false)), "{reply}");
}

#[test]
fn an_idempotency_key_names_the_same_order_on_every_node_after_a_restart_and_in_every_next_store() {
    let sim = Sim::start();
    let servers = [ServerKind::Redis, ServerKind::Postgres].map(StoreServer::start);
    let [redis, postgres] = servers.each_ref().map(StoreServer::url);
    let mut nodes: Vec<FleetNode> = (0..2).map(|_| FleetNode::new(Sandbox::of(&sim))).collect();
    let folder = |name: &str| format!("embedded:{}", nodes[0].sandbox.path(name).display());
    let (first, last) = (folder("store"), folder("back"));
    nodes[0].start();
    let answer = answer_at(&nodes[0]);
    nodes[0].kill();
    nodes[0].start();
    assert_eq!(answer_at(&nodes[0]), answer, "after a restart");
    nodes[0].end();
    let mut from = first;
    for to in [&redis, &postgres] {
        // A process that opens a store draws a secret there, which must not stand in the way of the one that comes
        // with the orders. One without tables only gets that message.
        drop(run(quittance(["dead", "list", "--set", &format!("store.url={to}")])));
        copy(&from, to);
        for node in &mut nodes {
            node.sandbox.override_setting("store.url", to);
            node.start();
            assert_eq!(answer_at(node), answer, "on a node of {to}");
        }
        nodes[1].kill();
        nodes[1].start();
        assert_eq!(answer_at(&nodes[1]), answer, "after a restart on {to}");
        nodes.iter_mut().for_each(FleetNode::end);
        from.clone_from(to);
    }
    copy(&from, &last);
    nodes[0].sandbox.leave_out("store.home");
    nodes[0].sandbox.override_setting("store.url", &last);
    nodes[0].start();
    assert_eq!(answer_at(&nodes[0]), answer, "back on one machine");
    assert_eq!(sim.ledger().accepted(), 1, "it was bought once");
    nodes.into_iter().for_each(FleetNode::rest_in_peace);
}
