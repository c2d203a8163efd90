//! Nodes are restarted one after the other under load, as for a new version, and callers do not notice.

use super::{on_both_stores, tell};
use crate::nodes::fleet::NodeFleet;
use crate::nodes::judge::judge;
use crate::nodes::load::{Load, NodesMeanwhile};
use crate::nodes::server::{ServerKind, StoreServer};
use crate::provider::Sim;
use crate::wait::until;

fn a_rolling_restart_is_not_noticed_by_any_caller(which: ServerKind) {
    let sim = Sim::start_with("2captcha", &["--queue", "1000"]);
    let mut fleet = NodeFleet::start(StoreServer::start(which), &sim, &["timing.share_window=10m"]);
    // A caller that finds no listener, or whose connection ends before a byte because its call stood in the queue of
    // a socket that was closed, goes to the next node, as any balancer does; all else would be an error.
    let load = Load::start("rolling", fleet.urls(), NodesMeanwhile::Members);
    for n in 0..fleet.nodes.len() {
        let before = load.answered();
        until("a good many answers", || (load.answered() >= before + 50).then_some(()));
        fleet.nodes[n].end();
        fleet.nodes[n].start();
    }
    let verdict = judge(load, &fleet, &sim);
    tell!("rolling on {which:?}: {}", verdict.summary());
    assert!(verdict.record.ends.is_empty(), "{:?}", verdict.record.ends);
    assert_eq!(
        (verdict.taken, verdict.ended.book("in_doubt")),
        (verdict.bought, 0),
        "an orderly end leaves no doubt"
    );
    fleet.rest_in_peace();
}

on_both_stores!(a_rolling_restart_is_not_noticed_by_any_caller);
