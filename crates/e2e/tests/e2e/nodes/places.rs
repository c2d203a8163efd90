//! `open_max` over three nodes. Even if all placements come at one moment, exactly the allowed number of orders is
//! open. Every place is free again when its order ends, and the places that a killed node has leased are free after a
//! known time.

use super::{on_both_stores, tell};
use crate::nodes::caller::{KEY, NodeCaller};
use crate::nodes::fleet::NodeFleet;
use crate::nodes::server::{ServerKind, StoreServer};
use crate::provider::Sim;
use crate::sandbox::line;
use crate::wait::{now, until_within};
use serde_json::json;
use std::collections::BTreeSet;
use std::sync::Barrier;
use std::thread;
use std::time::Duration;

const KEY_SHA256: &str = "3eb1bd439947eb762998e566ccc2e099c791118b2f40579cc4f7da2b5061b7f9";
/// After this time the places that a killed node has leased are free again, even on a busy machine.
const LEASE_ENDS: Duration = Duration::from_secs(30 + 15);

fn fleet(which: ServerKind, sim: &Sim, open_max: usize) -> NodeFleet {
    // No order ends by itself.
    sim.script(&json!([{ "on": "in.php", "do": { "solve_ms": 3_000_000 } }]));
    let (key, open_max) =
        (format!("tenant.team.key_sha256={KEY_SHA256}"), format!("tenant.team.open_max={open_max}"));
    let settings = [
        &key,
        &open_max,
        "timing.deadline=50m",
        "timing.task_life=50m",
        "timing.callback_wait=40m",
        "kinds.recaptcha_v2.p95=40m",
        "kinds.recaptcha_v2.p99=45m",
    ];
    NodeFleet::start(StoreServer::start(which), sim, &settings)
}

fn sim() -> Sim {
    Sim::start_with("2captcha", &["--queue", "10000"])
}

fn headers() -> String {
    format!("Authorization: Bearer {KEY}\r\n")
}

/// The id of the order if it was accepted. If not, the error must be that too many are open.
fn place(caller: &mut NodeCaller, mark: &str) -> Option<String> {
    let order = line(0, mark);
    let order = json!({ "kind": order["kind"], "params": order["params"], "reuse": "exclusive" });
    let reply = caller.post("/v1/orders", &headers(), &order).expect("a node answers");
    let body = reply.json();
    match reply.status {
        202 => Some(body["id"].as_str().expect("an order has an id").to_owned()),
        _ => {
            assert_eq!((reply.status, body["code"].as_str()), (429, Some("too_many_open")), "{reply:?}");
            None
        }
    }
}

/// Places this many orders at one moment, on the nodes in turn. Returns the ids of the accepted ones.
fn at_once(urls: &[String], count: usize, mark: &str) -> Vec<String> {
    let begin = Barrier::new(count);
    thread::scope(|scope| {
        let begin = &begin;
        let place = |n: usize| {
            let url = &urls[n % urls.len()];
            scope.spawn(move || {
                let mut caller = NodeCaller::of(url);
                begin.wait();
                place(&mut caller, &format!("{mark}-{n}"))
            })
        };
        let placements: Vec<_> = (0..count).map(place).collect();
        placements.into_iter().filter_map(|placed| placed.join().expect("it gets a reply")).collect()
    })
}

/// Cancels each order on the next node.
fn cancel(urls: &[String], ids: &[String]) {
    let mut callers: Vec<NodeCaller> = urls.iter().map(|url| NodeCaller::of(url)).collect();
    let nodes = callers.len();
    for (n, id) in ids.iter().enumerate() {
        let gone = callers[n % nodes].ask("DELETE", &format!("/v1/orders/{id}"), &headers(), "");
        assert_eq!(gone.expect("a node answers").status, 200);
    }
}

fn rounds(which: ServerKind, open_max: usize, count: usize, rounds: usize) {
    let sim = sim();
    let fleet = fleet(which, &sim, open_max);
    let urls = fleet.urls();
    for round in 0..rounds {
        let begin = now();
        let ids = at_once(&urls, count, &format!("round-{round}"));
        tell!("{which:?}: {} of {count} at once in {:?}, open_max {open_max}", ids.len(), begin.elapsed());
        assert_eq!(ids.len(), open_max, "round {round}");
        assert_eq!(ids.iter().collect::<BTreeSet<_>>().len(), open_max, "round {round}");
        // A few end, and as many are accepted again, and no more.
        let (gone, rest) = ids.split_at(open_max / 3);
        cancel(&urls, gone);
        let again = at_once(&urls, count / 2, &format!("again-{round}"));
        assert_eq!(again.len(), gone.len(), "round {round}");
        cancel(&urls, rest);
        cancel(&urls, &again);
    }
    fleet.rest_in_peace();
}

fn of_60_placements_at_once_on_3_nodes_exactly_5_are_accepted_where_5_may_be_open(which: ServerKind) {
    rounds(which, 5, 60, 8);
}

fn of_660_placements_at_once_on_3_nodes_exactly_300_are_accepted_where_300_may_be_open(which: ServerKind) {
    rounds(which, 300, 660, 3);
}

fn the_places_that_a_killed_node_has_leased_are_free_again_after_half_a_minute(which: ServerKind) {
    const OPEN_MAX: usize = 400;
    let sim = sim();
    let mut fleet = fleet(which, &sim, OPEN_MAX);
    let urls = fleet.urls();
    // It has accepted a lot in a short time, so it has leased more than it has used.
    let mut open = at_once(&urls[..1], OPEN_MAX / 4, "first").len();
    fleet.nodes[0].kill();
    let (begin, mut round) = (now(), 0);
    until_within(LEASE_ENDS, "all places are used", || {
        round += 1;
        open += at_once(&urls[1..], 40, &format!("other-{round}")).len();
        if round == 12 {
            tell!("{which:?}: {open} of {OPEN_MAX} are open {:?} after the kill", begin.elapsed());
        }
        (open >= OPEN_MAX).then_some(())
    });
    tell!("{which:?}: all places are used {:?} after the kill", begin.elapsed());
    assert_eq!(open, OPEN_MAX);
    assert_eq!(at_once(&urls[1..], 40, "last").len(), 0);
    fleet.rest_in_peace();
}

on_both_stores!(
    of_60_placements_at_once_on_3_nodes_exactly_5_are_accepted_where_5_may_be_open,
    of_660_placements_at_once_on_3_nodes_exactly_300_are_accepted_where_300_may_be_open,
    the_places_that_a_killed_node_has_leased_are_free_again_after_half_a_minute,
);
