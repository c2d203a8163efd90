//! Nodes are killed with -9 and frozen past their claims, a hundred times each, at random, while callers continue.
//! Other nodes continue the orders, a resumed node does no harm, and the promises hold.

use super::{on_both_stores, tell};
use crate::death::KillDice;
use crate::nodes::fleet::{FleetNode, NodeFleet};
use crate::nodes::judge::judge;
use crate::nodes::load::{Load, NodesMeanwhile};
use crate::nodes::server::{ServerKind, StoreServer};
use crate::provider::Sim;
use crate::wait::pass;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

const TIMES: u64 = 100;
const SEED: u64 = 5;

/// Short durations, so that a freeze lasts longer than a claim, a poll or a submit.
pub(crate) const QUICK: [&str; 9] = [
    "provider.main.connect_wait=200ms",
    "provider.main.reply_wait=400ms",
    "provider.main.poll_reply_wait=300ms",
    "timing.submit_wait=800ms",
    "engine.poll_wait=400ms",
    "engine.claim_duration=600ms",
    "retry.limits.in_doubt=10",
    "timing.share_window=10m",
    "timing.deadline=100s",
];

/// Runs `fate` on each node at the same time, until everything has happened often enough. Now and then it happens to
/// all of them at once.
fn ordeal(name: &str, which: ServerKind, fate: impl Fn(&mut FleetNode, &mut KillDice) + Sync) {
    let sim = Sim::start_with("2captcha", &["--queue", "1000"]);
    let mut fleet = NodeFleet::start(StoreServer::start(which), &sim, &QUICK);
    tell!("{name} on {which:?}: seed {SEED}");
    let load = Load::start(name, fleet.urls(), NodesMeanwhile::Die);
    let happened = AtomicU64::new(0);
    thread::scope(|scope| {
        let (happened, fate) = (&happened, &fate);
        for (seed, node) in (SEED..).zip(&mut fleet.nodes) {
            scope.spawn(move || {
                let mut dice = KillDice(seed);
                while happened.fetch_add(1, Ordering::Relaxed) < TIMES {
                    pass(Duration::from_millis(dice.below(400)));
                    fate(node, &mut dice);
                }
            });
        }
    });
    let verdict = judge(load, &fleet, &sim);
    tell!("{name} on {which:?}: {}", verdict.summary());
    assert!(verdict.taken > TIMES, "an ordeal in which little happened proves little");
    fleet.rest_in_peace();
}

fn nodes_killed_with_9_a_hundred_times_lose_nothing_and_pay_nothing_twice(which: ServerKind) {
    ordeal("killed", which, |node, dice| {
        node.kill();
        pass(Duration::from_millis(dice.below(200)));
        node.start();
    });
}

fn nodes_frozen_a_hundred_times_lose_nothing_and_pay_nothing_twice(which: ServerKind) {
    ordeal("frozen", which, |node, dice| {
        node.freeze();
        pass(Duration::from_millis(650 + dice.below(600)));
        node.thaw();
    });
}

on_both_stores!(
    nodes_killed_with_9_a_hundred_times_lose_nothing_and_pay_nothing_twice,
    nodes_frozen_a_hundred_times_lose_nothing_and_pay_nothing_twice,
);
