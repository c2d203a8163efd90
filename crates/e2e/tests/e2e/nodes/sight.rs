//! Every process that may open a store can see its nodes: each node's share and health, which node is missing, and
//! which node has left properly.

use super::on_both_stores;
use crate::nodes::fleet::{NODES, NodeFleet};
use crate::nodes::load::{Load, NodesMeanwhile};
use crate::nodes::server::{ServerKind, StoreServer};
use crate::provider::Sim;
use crate::sandbox::Sandbox;
use crate::wait::until;
use serde_json::{Value, json};

fn nodes(sandbox: &Sandbox) -> Vec<Value> {
    let ran = sandbox.run(&["nodes", "--json"]);
    ran.must_succeed();
    ran.json()["nodes"].as_array().expect("it lists nodes").clone()
}

fn sum(nodes: &[Value], name: &str) -> u64 {
    nodes.iter().map(|node| node[name].as_u64().unwrap_or_else(|| panic!("no `{name}`: {node}"))).sum()
}

fn the_share_and_the_health_of_each_node_are_shown(which: ServerKind) {
    let sim = Sim::start();
    let mut fleet = NodeFleet::start(StoreServer::start(which), &sim, &[]);
    let sandbox = fleet.sandbox(&sim);
    let load = Load::start("sight", fleet.urls(), NodesMeanwhile::Stay);
    until("a good many answers", || (load.answered() >= 100).then_some(()));
    let record = load.finish();
    let bought = sim.ledger().accepted();
    // They sign in every few seconds.
    let view = until("the cards tell of all of it", || {
        let view = nodes(&sandbox);
        (sum(&view, "placed") == bought && sum(&view, "in_hand") == 0).then_some(view)
    });
    assert_eq!(view.len(), NODES);
    assert_eq!(sum(&view, "submitted"), bought, "{view:?}");
    assert!(sum(&view, "placed") + sum(&view, "joined") >= record.answers.len() as u64, "{view:?}");
    for node in &view {
        assert!(node["placed"].as_u64() > Some(0), "every node has had a share: {node}");
        let is_well =
            ["silent", "paused", "store_was_away", "has_spilled"].iter().all(|name| node[name] == false);
        assert!(is_well && node["panics"] == 0, "{node}");
    }
    // One leaves in order, and one is killed.
    fleet.nodes[0].end();
    fleet.nodes[1].kill();
    let left = until("one has gone missing", || {
        let left = nodes(&sandbox);
        left.iter().any(|node| node["silent"] == true).then_some(left)
    });
    assert_eq!(left.len(), NODES - 1, "who left in order is not missed: {left:?}");
    assert_eq!(left.iter().filter(|node| node["silent"] == true).count(), 1, "{left:?}");
    fleet.rest_in_peace();
}

/// One reading has no rates, and a process that is no node has no latency: neither may be shown as zero.
fn top_on_a_shared_store_shows_what_its_nodes_do(which: ServerKind) {
    let sim = Sim::start();
    let fleet = NodeFleet::start(StoreServer::start(which), &sim, &[]);
    let sandbox = fleet.sandbox(&sim);
    let load = Load::start("top", fleet.urls(), NodesMeanwhile::Stay);
    let view = until("orders come in", || {
        let ran = sandbox.run(&["top", "--json"]);
        let view = ran.must_succeed().json();
        (view["rates"]["asked"].as_f64().expect("two looks have a rate") > 0.0).then_some(view)
    });
    assert_eq!((&view["node"], &view["latency_ms"]["p50"]), (&Value::Null, &Value::Null), "{view}");
    assert_eq!((&view["providers"], &view["store"]["is_up"]), (&json!([]), &json!(true)), "{view}");
    let ran = sandbox.run(&["top", "--once"]);
    assert!(ran.must_succeed().out.contains("took p50 -") && !ran.out.contains("asked 0.0/s"), "{}", ran.out);
    load.finish();
    fleet.rest_in_peace();
}

on_both_stores!(
    the_share_and_the_health_of_each_node_are_shown,
    top_on_a_shared_store_shows_what_its_nodes_do,
);
