//! A live set of orders moves from one store to another, and back, in a storm. Nodes and the copying process are
//! killed on the way. Every accepted order is answered, and paid for once.

use super::tell;
use crate::binary::{ChildProcess, quittance, run};
use crate::nodes::fleet::{FleetNode, NODES};
use crate::nodes::judge::judge_at;
use crate::nodes::load::{Load, NodesMeanwhile};
use crate::nodes::server::{ServerKind, StoreServer};
use crate::provider::Sim;
use crate::sandbox::Sandbox;
use crate::wait::{pass, until};
use std::process::Stdio;
use std::time::Duration;

const SETTINGS: [&str; 3] = ["retry.limits.in_doubt=10", "timing.share_window=10m", "timing.deadline=100s"];

const DEATHS_MS: [u64; 4] = [30, 50, 80, 120];

fn node(sim: &Sim) -> FleetNode {
    FleetNode::new(SETTINGS.iter().fold(Sandbox::of(sim), |sandbox, setting| sandbox.set(setting)))
}

/// Runs `store copy` to its end.
fn copy(from: &str, to: &str) {
    let ran = run(quittance(["store", "copy", from, to, "--json"]));
    ran.must_succeed();
    tell!("{}", ran.out.split_whitespace().collect::<Vec<_>>().join(" "));
}

/// Runs `store copy` and kills it repeatedly, a little later each time: before it begins, on its way, or when it is
/// done.
fn copy_and_die(from: &str, to: &str) {
    for moment in DEATHS_MS {
        let mut command = quittance(["store", "copy", from, to]);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let mut copying = ChildProcess::start(&mut command);
        pass(Duration::from_millis(moment));
        copying.kill();
    }
}

fn some_answers(load: &Load) {
    let before = load.answered();
    until("answers from where they have moved", || (load.answered() >= before + 60).then_some(()));
}

#[test]
fn orders_that_move_from_store_to_store_in_a_storm_are_all_answered_once() {
    let sim = Sim::start_with("2captcha", &["--queue", "1000"]);
    let servers = [ServerKind::Redis, ServerKind::Postgres].map(StoreServer::start);
    let [redis, postgres] = servers.each_ref().map(StoreServer::url);
    let mut nodes: Vec<FleetNode> = (0..NODES).map(|_| node(&sim)).collect();
    let folder = |name: &str| format!("embedded:{}", nodes[0].sandbox.path(name).display());
    let (first, last) = (folder("store"), folder("back"));
    let load = Load::start("moved", nodes.iter().map(|node| node.url.clone()).collect(), NodesMeanwhile::Die);
    // On one machine.
    nodes[0].start();
    some_answers(&load);
    nodes[0].kill();
    copy_and_die(&first, &redis);
    copy(&first, &redis);
    // What came in and was not yet written down is in the folder of the store that it left.
    let home = nodes[0].sandbox.path("store").display().to_string();
    nodes[0].sandbox.override_setting("store.home", &home);
    on_all(&mut nodes, &redis);
    some_answers(&load);
    // They go on working while they are robbed of their store, and some of them die of it.
    copy_and_die(&redis, &postgres);
    nodes[1].kill();
    copy(&redis, &postgres);
    nodes[0].kill();
    nodes[2].end();
    on_all(&mut nodes, &postgres);
    some_answers(&load);
    copy(&postgres, &last);
    nodes.iter_mut().for_each(FleetNode::kill);
    // What they still have in their spills belongs to the next store as well; here it is not moved there, so the
    // provider is polled for it again.
    nodes[0].sandbox.leave_out("store.home");
    nodes[0].sandbox.override_setting("store.url", &last);
    nodes[0].start();
    some_answers(&load);
    let record = load.finish();
    nodes[0].kill();
    let verdict = judge_at(&nodes[0].sandbox, record, &sim);
    tell!("moved: {}", verdict.summary());
    nodes.into_iter().for_each(FleetNode::rest_in_peace);
}

fn on_all(nodes: &mut [FleetNode], store: &str) {
    for node in nodes {
        node.sandbox.override_setting("store.url", store);
        node.start();
    }
}
