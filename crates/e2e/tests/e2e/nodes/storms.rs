//! The store breaks under load, in every way that a server can, and comes back. Callers always get replies of their
//! protocols. Afterwards no accepted order is lost, and nothing is paid for twice, except for the attempts in doubt
//! in the usage.

use super::{on_both_stores, tell};
use crate::nodes::fleet::NodeFleet;
use crate::nodes::judge::judge;
use crate::nodes::load::{Load, NodesMeanwhile};
use crate::nodes::server::{ServerKind, StoreServer};
use crate::provider::Sim;
use crate::wait::{pass, until};
use std::time::Duration;

/// How often the store breaks in one storm.
const TIMES: usize = 2;
/// How long the store stays broken: longer than placements are retried, and than a claim lasts here.
const AWAY: Duration = Duration::from_secs(4);
/// The most time that anything takes while the store answers.
const NOTICED: Duration = Duration::from_secs(1);
/// The most time until a caller that does not wait gets a reply, whatever the store does: long before clients give
/// up.
const REPLY_MAX: Duration = Duration::from_secs(10);

/// Breaks the store for a while, repeatedly, under load.
fn storm(name: &str, which: ServerKind, mut failure: impl FnMut(&mut NodeFleet)) {
    let sim = Sim::start_with("2captcha", &["--queue", "1000"]);
    let settings = ["retry.limits.in_doubt=10", "timing.share_window=10m"];
    let mut fleet = NodeFleet::start(StoreServer::start(which), &sim, &settings);
    let load = Load::start(name, fleet.urls(), NodesMeanwhile::Stay);
    for _ in 0..TIMES {
        let before = load.answered();
        until("a good many answers", || (load.answered() >= before + 100).then_some(()));
        failure(&mut fleet);
    }
    let before = load.answered();
    until("answers again, after it all", || (load.answered() >= before + 100).then_some(()));
    let verdict = judge(load, &fleet, &sim);
    tell!("{name} on {which:?}: {}", verdict.summary());
    let is_noticed = verdict.record.again > 0 || verdict.record.slowest > NOTICED;
    assert!(is_noticed, "no caller noticed any fault");
    assert!(verdict.record.slowest < REPLY_MAX, "a caller had no reply for {:?}", verdict.record.slowest);
    fleet.rest_in_peace();
}

fn killed_with_9_and_started_again_in_a_storm_it_loses_nothing(which: ServerKind) {
    storm("killed", which, |fleet| {
        fleet.server.kill();
        pass(AWAY);
        fleet.server.start_again();
    });
}

fn paused_and_resumed_in_a_storm_it_loses_nothing(which: ServerKind) {
    storm("paused", which, |fleet| {
        fleet.server.pause();
        pass(AWAY);
        fleet.server.resume();
    });
}

fn cut_off_and_connected_again_in_a_storm_it_loses_nothing(which: ServerKind) {
    storm("cut", which, |fleet| {
        fleet.tap.cut();
        pass(AWAY);
        fleet.tap.repair();
    });
}

fn made_read_only_and_writable_again_in_a_storm_it_loses_nothing(which: ServerKind) {
    storm("read-only", which, |fleet| {
        fleet.server.read_only(true);
        pass(AWAY);
        fleet.server.read_only(false);
    });
}

on_both_stores!(
    killed_with_9_and_started_again_in_a_storm_it_loses_nothing,
    paused_and_resumed_in_a_storm_it_loses_nothing,
    cut_off_and_connected_again_in_a_storm_it_loses_nothing,
    made_read_only_and_writable_again_in_a_storm_it_loses_nothing,
);
