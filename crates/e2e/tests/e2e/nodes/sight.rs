//! Who works on a store can be seen by anybody who may open it: each node's share and health, who has gone missing, and
//! who has left in order.

use super::on_both_stores;
use crate::nodes::fleet::{Fleet, NODES};
use crate::nodes::load::{Load, Nodes};
use crate::nodes::server::{Server, Which};
use crate::provider::Sim;
use crate::room::Room;
use crate::wait::until;
use serde_json::{Value, json};

fn nodes(room: &Room) -> Vec<Value> {
    let ran = room.run(&["nodes", "--json"]);
    ran.must_succeed();
    ran.json()["nodes"].as_array().expect("it lists nodes").clone()
}

fn sum(nodes: &[Value], name: &str) -> u64 {
    nodes.iter().map(|node| node[name].as_u64().unwrap_or_else(|| panic!("no `{name}`: {node}"))).sum()
}

fn the_share_and_the_health_of_each_node_can_be_seen(which: Which) {
    let sim = Sim::start();
    let mut fleet = Fleet::start(Server::start(which), &sim, &[]);
    let room = fleet.room(&sim);
    let load = Load::start("sight", fleet.urls(), Nodes::Stay);
    until("a good many answers", || (load.answered() >= 100).then_some(()));
    let told = load.finish();
    let bought = sim.ledger().accepted();
    // They sign in every few seconds.
    let seen = until("the cards tell of all of it", || {
        let seen = nodes(&room);
        (sum(&seen, "placed") == bought && sum(&seen, "in_hand") == 0).then_some(seen)
    });
    assert_eq!(seen.len(), NODES);
    assert_eq!(sum(&seen, "submitted"), bought, "{seen:?}");
    assert!(sum(&seen, "placed") + sum(&seen, "joined") >= told.answers.len() as u64, "{seen:?}");
    for node in &seen {
        assert!(node["placed"].as_u64() > Some(0), "everybody has had a share: {node}");
        let is_well = ["silent", "paused", "store_away", "spilled"].iter().all(|name| node[name] == false);
        assert!(is_well && node["panics"] == 0, "{node}");
    }
    // One leaves in order, and one is killed.
    fleet.nodes[0].end();
    fleet.nodes[1].kill();
    let left = until("one has gone missing", || {
        let left = nodes(&room);
        left.iter().any(|node| node["silent"] == true).then_some(left)
    });
    assert_eq!(left.len(), NODES - 1, "who left in order is not missed: {left:?}");
    assert_eq!(left.iter().filter(|node| node["silent"] == true).count(), 1, "{left:?}");
    fleet.rest_in_peace();
}

/// One look has no rates, and whoever is no node knows no latency: neither is a zero.
fn whoever_watches_a_shared_store_sees_what_its_nodes_do(which: Which) {
    let sim = Sim::start();
    let fleet = Fleet::start(Server::start(which), &sim, &[]);
    let room = fleet.room(&sim);
    let load = Load::start("top", fleet.urls(), Nodes::Stay);
    let seen = until("something is asked a second", || {
        let ran = room.run(&["top", "--json"]);
        let seen = ran.must_succeed().json();
        (seen["rates"]["asked"].as_f64().expect("two looks have a rate") > 0.0).then_some(seen)
    });
    assert_eq!((&seen["node"], &seen["latency_ms"]["p50"]), (&Value::Null, &Value::Null), "{seen}");
    assert_eq!((&seen["providers"], &seen["store"]["is_up"]), (&json!([]), &json!(true)), "{seen}");
    let ran = room.run(&["top", "--once"]);
    assert!(ran.must_succeed().out.contains("took p50 -") && !ran.out.contains("asked 0.0/s"), "{}", ran.out);
    load.finish();
    fleet.rest_in_peace();
}

on_both_stores!(
    the_share_and_the_health_of_each_node_can_be_seen,
    whoever_watches_a_shared_store_sees_what_its_nodes_do,
);
