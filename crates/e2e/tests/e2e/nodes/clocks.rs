//! Nodes with wrong clocks: within the promised limit (one a second and a half ahead, one as much behind), and so
//! wrong that the node follows the clocks of the others.

use super::{on_both_stores, tell};
use crate::nodes::caller::NodeCaller;
use crate::nodes::fleet::{FleetNode, NodeFleet};
use crate::nodes::judge::judge;
use crate::nodes::load::{Load, NodesMeanwhile};
use crate::nodes::server::{ServerKind, StoreServer};
use crate::provider::Sim;
use crate::sandbox::{Sandbox, line};
use crate::wait::{now, until};
use serde_json::json;
use std::process::Command;
use std::time::Duration;

/// The life of a token of the kind used here.
const LIFE: Duration = Duration::from_secs(120);
/// The most that two readings may differ: the distance of the two clocks, and the time of the requests.
const APART_MAX: Duration = Duration::from_millis(3_100);
/// How much earlier an answer on a shared store is dated, because two clocks may differ by this.
const KEPT_BACK: Duration = Duration::from_secs(4);
const SEEN_WITHIN_MS: i64 = 400;

/// The variables that make a process's clock wrong by this much.
fn clock_off_by(span: &str) -> Vec<(&'static str, String)> {
    // Only faketime knows where its library is.
    let probe = Command::new("faketime").args(["-m", "-f", "+0s", "printenv", "LD_PRELOAD"]).output();
    let library = probe.expect("scripts/servers installs faketime").stdout;
    let library = String::from_utf8(library).expect("a path").trim().to_owned();
    assert!(library.contains("faketime"), "{library}");
    vec![
        ("LD_PRELOAD", library),
        ("FAKETIME", span.to_owned()),
        // Spans are as long as ever; only the time of day is wrong.
        ("FAKETIME_DONT_FAKE_MONOTONIC", "1".to_owned()),
    ]
}

/// Checks that `quittance nodes` shows how wrong each clock is.
fn wrong_clocks_are_noticed(fleet: &NodeFleet, sim: &Sim) {
    let sandbox = fleet.sandbox(sim);
    for (n, wanted) in [(0, 1_500), (1, -1_500), (2, 0)] {
        // They are called after their ports.
        let port = fleet.nodes[n].url.rsplit_once(':').expect("it has a port").1.to_owned();
        until("a node that knows its skew", || {
            let reply_body = sandbox.run(&["nodes", "--json"]).json();
            let nodes = reply_body["nodes"].as_array().expect("it lists nodes").clone();
            let own =
                nodes.iter().find(|node| node["name"].as_str().is_some_and(|name| name.ends_with(&port)));
            let skew = own.and_then(|node| node["skew_ms"].as_i64());
            // What a call to the store takes on a busy machine cannot be separated from skew.
            skew.filter(|skew| (skew - wanted).abs() < SEEN_WITHIN_MS)
        });
    }
}

/// Checks that the life left of an answer differs between nodes by no more than their clocks.
fn no_promised_life_exceeds_the_real_one(fleet: &NodeFleet) {
    let order = line(0, "clocks-life");
    let order = json!({ "kind": order["kind"], "params": order["params"] });
    let begin = now();
    for url in fleet.urls() {
        let reply =
            NodeCaller::of(&url).post("/v1/orders", "Prefer: wait=60\r\n", &order).expect("a node answers");
        let reply_body = reply.json();
        assert_eq!(reply_body["status"], "solved", "{reply_body}");
        let left = Duration::from_millis(reply_body["expires_in_ms"].as_u64().expect("it lives for a while"));
        assert!(left <= LIFE + APART_MAX, "{url} promises {left:?}");
        assert!(
            left + begin.elapsed() + APART_MAX + KEPT_BACK >= LIFE,
            "{url} takes away too much: {left:?}"
        );
    }
}

fn nodes_whose_clocks_are_off_by_less_than_the_bound_do_no_harm(which: ServerKind) {
    let sim = Sim::start_with("2captcha", &["--queue", "1000"]);
    let mut fleet = NodeFleet::start(StoreServer::start(which), &sim, &["timing.share_window=10m"]);
    for (n, span) in [(0, "+1.5s"), (1, "-1.5s")] {
        fleet.nodes[n].end();
        fleet.nodes[n] = FleetNode::new(fleet.sandbox(&sim)).under(clock_off_by(span)).started();
    }
    wrong_clocks_are_noticed(&fleet, &sim);
    no_promised_life_exceeds_the_real_one(&fleet);
    let load = Load::start("clocks", fleet.urls(), NodesMeanwhile::Stay);
    until("a good many answers", || (load.answered() >= 500).then_some(()));
    let verdict = judge(load, &fleet, &sim);
    tell!("clocks on {which:?}: {}", verdict.summary());
    assert!(verdict.record.ends.is_empty(), "{:?}", verdict.record.ends);
    assert_eq!(verdict.taken, verdict.bought, "each was paid for once");
    // Killed, they would leave faketime's memory behind.
    fleet.nodes[..2].iter_mut().for_each(FleetNode::end);
    fleet.rest_in_peace();
}

/// Otherwise the node would treat every order as overdue, and make dead letters of paid orders of other nodes.
fn a_node_whose_clock_is_ten_minutes_ahead_goes_by_that_of_the_others(which: ServerKind) {
    let sim = Sim::start_with("2captcha", &["--queue", "1000"]);
    let mut fleet = NodeFleet::start(StoreServer::start(which), &sim, &["timing.share_window=10m"]);
    fleet.nodes[0].end();
    fleet.nodes[0] = FleetNode::new(fleet.sandbox(&sim)).under(clock_off_by("+600s")).started();
    no_promised_life_exceeds_the_real_one(&fleet);
    let load = Load::start("far", fleet.urls(), NodesMeanwhile::Stay);
    until("a good many answers", || (load.answered() >= 200).then_some(()));
    let verdict = judge(load, &fleet, &sim);
    tell!("a far clock on {which:?}: {}", verdict.summary());
    assert!(verdict.record.ends.is_empty(), "{:?}", verdict.record.ends);
    assert_eq!(verdict.taken, verdict.bought, "each was paid for once");
    fleet.nodes[0].end();
    fleet.rest_in_peace();
}

/// With the embedded store, the machine's clock is the only one.
#[test]
fn a_clock_that_is_set_back_gives_no_token_more_life() {
    const SET_BACK: &str = "-60s";
    let sim = Sim::start();
    let sandbox = Sandbox::of(&sim);
    let offset = sandbox.path("clock");
    std::fs::write(&offset, "+0s").expect("the folder is ours");
    let mut variables = clock_off_by("+0s");
    variables.retain(|(name, _)| *name != "FAKETIME");
    variables.push(("FAKETIME_TIMESTAMP_FILE", offset.display().to_string()));
    variables.push(("FAKETIME_NO_CACHE", "1".to_owned()));
    let mut node = FleetNode::new(sandbox).under(variables).started();
    let order = line(0, "set-back");
    let order = json!({ "kind": order["kind"], "params": order["params"], "idempotency_key": "once" });
    let left = |node: &FleetNode| {
        let reply = NodeCaller::of(&node.url).post("/v1/orders", "Prefer: wait=60\r\n", &order);
        let reply_body = reply.expect("the node answers").json();
        assert_eq!(reply_body["status"], "solved", "{reply_body}");
        reply_body["expires_in_ms"].as_u64().expect("it lives for a while")
    };
    let before = left(&node);
    std::fs::write(&offset, SET_BACK).expect("the folder is ours");
    let after = left(&node);
    assert!(after <= before, "{before} ms were left, and then {after} ms");
    let begin = now();
    until("the node says so", || (begin.elapsed() > Duration::from_secs(3)).then_some(()));
    node.end();
    let log = node.log_after_exit();
    assert_eq!(log.matches("this machine's clock was set back").count(), 1, "{log}");
    assert!(!log.contains("has sent no heartbeat"), "{log}");
    node.rest_in_peace();
}

on_both_stores!(
    nodes_whose_clocks_are_off_by_less_than_the_bound_do_no_harm,
    a_node_whose_clock_is_ten_minutes_ahead_goes_by_that_of_the_others,
);
