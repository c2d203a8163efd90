//! Any node serves any order, on any API. A caller that waits at one node gets at once what another node has written.

use super::on_both_stores;
use crate::nodes::caller::{self, CallerOutcome, KEY, NodeCaller};
use crate::nodes::fleet::NodeFleet;
use crate::nodes::server::{ServerKind, StoreServer};
use crate::provider::Sim;
use crate::sandbox::page;
use crate::wait::until;
use serde_json::json;

fn place(caller: &mut NodeCaller, mark: &str) -> String {
    let page = page(mark);
    let target =
        format!("/in.php?key={KEY}&method=userrecaptcha&googlekey=6Le-{mark}-0123456789&pageurl={page}");
    let reply = caller.get(&target).expect("a node answers");
    let CallerOutcome::Accepted(id) = caller::classic(&reply, false) else { panic!("{reply:?}") };
    id
}

fn an_order_that_was_placed_at_one_node_is_read_at_another_and_cancelled_at_a_third(which: ServerKind) {
    let sim = Sim::start();
    let fleet = NodeFleet::start(StoreServer::start(which), &sim, &[]);
    let mut nodes: Vec<NodeCaller> = fleet.urls().iter().map(|url| NodeCaller::of(url)).collect();
    let id = place(&mut nodes[0], "any");
    let number: u64 = id.parse().expect("an id is a number");
    let by_res = until("the answer on the classic API", || {
        let reply = nodes[1].get(&format!("/res.php?key={KEY}&action=get&id={id}")).expect("a node answers");
        match caller::classic(&reply, true) {
            CallerOutcome::Answer(text) => Some(text),
            CallerOutcome::NotReady => None,
            other => panic!("{other:?}"),
        }
    });
    let body = json!({ "clientKey": KEY, "taskId": number });
    let by_json = nodes[1].post("/getTaskResult", "", &body).expect("a node answers");
    assert_eq!(caller::json(&by_json), CallerOutcome::Answer(by_res.clone()));
    for node in &mut nodes {
        let reply = node.get(&format!("/v1/orders/{id}")).expect("a node answers");
        assert_eq!(caller::native(&reply), CallerOutcome::Answer(by_res.clone()));
    }
    let ledger = sim.ledger();
    assert_eq!((ledger.accepted(), &ledger.tasks()[0]["answer"]), (1, &json!(by_res)));
    // One that is not solved so soon, cancelled at the third; the first and the second know.
    sim.script(&json!([{ "on": "in.php", "do": { "solve_ms": 30_000 } }]));
    let id = place(&mut nodes[0], "cancelled");
    let gone = nodes[2].ask("DELETE", &format!("/v1/orders/{id}"), "", "").expect("a node answers");
    assert_eq!(gone.status, 200, "{gone:?}");
    for node in &mut nodes {
        let reply = node.get(&format!("/v1/orders/{id}")).expect("a node answers");
        assert_eq!(reply.json()["status"], "cancelled");
    }
    let reply = nodes[1].get(&format!("/res.php?key={KEY}&action=get&id={id}")).expect("a node answers");
    assert_eq!(reply.body, "ERROR_CAPTCHA_UNSOLVABLE");
    fleet.rest_in_peace();
}

/// Each node has found the account without funds by itself, and waits for an operator, who resumes it on one of
/// them.
fn resuming_the_account_on_one_node_resumes_it_on_all(which: ServerKind) {
    let sim = Sim::start();
    sim.put("account", &json!({ "name": "main", "balance_micros": 0 }));
    let fleet = NodeFleet::start(StoreServer::start(which), &sim, &["timing.deadline=10m"]);
    let mut nodes: Vec<NodeCaller> = fleet.urls().iter().map(|url| NodeCaller::of(url)).collect();
    let paused = |node: &mut NodeCaller| {
        let reply = node.get("/v1/admin/state").expect("a node answers");
        reply.json()["paused"].is_object()
    };
    let mut ids = Vec::new();
    for (n, node) in nodes.iter_mut().enumerate() {
        // A neighbour may be quicker, so it may take more than one order until a node has met the fault itself.
        until("it has met the empty account", || {
            ids.push(place(node, &format!("broke-{n}-{}", ids.len())));
            paused(node).then_some(())
        });
    }
    sim.put("account", &json!({ "name": "main", "balance_micros": 1_000_000_000 }));
    let reply = nodes[2].post("/v1/admin/resume", "", &json!({})).expect("a node answers");
    assert_eq!(reply.status, 200, "{reply:?}");
    until("all have heard of it", || (!nodes.iter_mut().any(paused)).then_some(()));
    for id in ids {
        until("the answer", || {
            let reply = nodes[0].get(&format!("/v1/orders/{id}")).expect("a node answers");
            matches!(caller::native(&reply), CallerOutcome::Answer(_)).then_some(())
        });
    }
    fleet.rest_in_peace();
}

on_both_stores!(
    an_order_that_was_placed_at_one_node_is_read_at_another_and_cancelled_at_a_third,
    resuming_the_account_on_one_node_resumes_it_on_all,
);
