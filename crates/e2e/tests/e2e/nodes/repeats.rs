//! The store forgets everything while orders are in flight, and callers place them again at once, each on another
//! node. The order is put back first, so the repeat joins it and nothing is paid for again. The number of payments
//! for each order is measured.

use super::{on_both_stores, tell};
use crate::nodes::caller::{CallerOutcome, NodeCaller, native};
use crate::nodes::fleet::{FleetNode, NODES, NodeFleet};
use crate::nodes::forgets::{alert, forged, forget, listed};
use crate::nodes::server::{ServerKind, StoreServer};
use crate::provider::Sim;
use crate::sandbox::line;
use crate::wait::until;
use serde_json::{Value, json};
use std::thread;

const ORDERS: u64 = 18;

/// The settings: there are no polls, so answers come only by callback.
const SETTINGS: [&str; 5] = [
    "timing.callback_wait=50s",
    "timing.deadline=100s",
    "kinds.recaptcha_v2.p50=20s",
    "kinds.recaptcha_v2.p95=40s",
    "kinds.recaptcha_v2.p99=50s",
];

fn order(n: u64) -> Value {
    let order = line(n, &format!("repeated-{n}"));
    json!({ "kind": order["kind"], "params": order["params"] })
}

/// Places an order under its key, and repeats that while the reply says to come again.
fn place(caller: &mut NodeCaller, n: u64) -> String {
    let key = format!("Idempotency-Key: job-{n}\r\n");
    until("it is accepted", || {
        let reply = caller.post("/v1/orders", &key, &order(n)).expect("a node answers");
        match native(&reply) {
            CallerOutcome::Accepted(id) => Some(id),
            CallerOutcome::Again => None,
            _ => panic!("{reply:?}"),
        }
    })
}

/// Places an order under its key until it is answered.
fn answered(caller: &mut NodeCaller, n: u64) {
    until("the job is answered", || {
        let headers = format!("Idempotency-Key: job-{n}\r\nPrefer: wait=10\r\n");
        let reply = caller.post("/v1/orders", &headers, &order(n)).expect("a node answers");
        matches!(native(&reply), CallerOutcome::Answer(_)).then_some(())
    });
}

fn answer(caller: &mut NodeCaller, id: &str) -> String {
    until("the answer", || {
        let target = format!("/v1/orders/{id}");
        let reply = caller.ask("GET", &target, "Prefer: wait=10\r\n", "").expect("a node answers");
        match native(&reply) {
            CallerOutcome::Answer(text) => Some(text),
            CallerOutcome::Accepted(_) | CallerOutcome::Again => None,
            _ => panic!("{reply:?}"),
        }
    })
}

fn node_of(n: u64) -> usize {
    usize::try_from(n).expect("it is small") % NODES
}

fn wait_until_solving(callers: &mut [NodeCaller], ids: &[String]) {
    for id in ids {
        until("every task is known", || {
            let reply = callers[0].get(&format!("/v1/orders/{id}")).expect("a node answers");
            (reply.json()["phase"] == "solving").then_some(())
        });
    }
}

/// Repeats each order on the node after the one that has it in hand, on all nodes at once.
fn repeat_all(urls: &[String]) {
    let callers = urls.iter().enumerate().map(|(node, url)| {
        let mut caller = NodeCaller::of(url);
        thread::spawn(move || {
            for n in (0..ORDERS).filter(|n| node_of(n + 1) == node) {
                place(&mut caller, n);
            }
        })
    });
    for caller in callers.collect::<Vec<_>>() {
        caller.join().expect("a caller is served");
    }
}

fn repeats_after(which: ServerKind, forget: impl FnOnce(&StoreServer)) {
    let sim = Sim::start();
    sim.script(&json!([{ "on": "in.php", "do": { "solve_ms": 20_000 } }]));
    let fleet = NodeFleet::start(StoreServer::start(which), &sim, &SETTINGS);
    let urls = fleet.urls();
    let mut callers: Vec<NodeCaller> = urls.iter().map(|url| NodeCaller::of(url)).collect();
    let ids: Vec<String> = (0..ORDERS).map(|n| place(&mut callers[node_of(n)], n)).collect();
    wait_until_solving(&mut callers, &ids);
    forget(&fleet.server);
    let repeating = thread::spawn(move || repeat_all(&urls));
    until("it says that it is not ready, and why", || {
        let ready = callers[0].get("/readyz").expect("a node answers");
        (ready.status == 503 && ready.body.contains("flushed, restored or replaced")).then_some(())
    });
    repeating.join().expect("all are served");
    for caller in &mut callers {
        alert(caller);
        until("it is ready again", || {
            (caller.get("/readyz").expect("a node answers").status == 200).then_some(())
        });
    }
    listed(&mut callers[1], ids.len());
    for (n, id) in (0..).zip(&ids) {
        answer(&mut callers[node_of(n)], id);
    }
    let paid = sim.ledger().accepted();
    tell!("{which:?}: {ORDERS} jobs repeated at other nodes after the store forgot them, {paid} paid for");
    assert_eq!(paid, ORDERS, "each job is paid for once");
    assert_eq!(forged(&mut callers), 0, "no true callback is called forged");
    fleet.rest_in_peace();
}

fn callers_that_repeat_their_orders_at_once_after_the_store_forgot_them_pay_once(which: ServerKind) {
    repeats_after(which, forget);
}

on_both_stores!(
    callers_that_repeat_their_orders_at_once_after_the_store_forgot_them_pay_once,
    a_node_that_is_stopped_right_after_a_flush_puts_back_what_it_had_in_hand,
    a_callback_kept_after_every_node_forgot_its_order_answers_the_repeat_before_it_is_bought,
    orders_in_flight_are_put_back_when_every_node_was_stopped_before_the_store_forgot,
);

#[test]
fn callers_that_repeat_their_orders_at_once_after_the_tables_were_truncated_pay_once() {
    repeats_after(ServerKind::Postgres, |server| {
        let StoreServer::Postgres(postgres) = server else { panic!("this test uses PostgreSQL") };
        drop(postgres.sql("TRUNCATE quittance.orders"));
    });
}

fn a_node_that_is_stopped_right_after_a_flush_puts_back_what_it_had_in_hand(which: ServerKind) {
    let sim = Sim::start();
    sim.script(&json!([{ "on": "in.php", "do": { "solve_ms": 20_000 } }]));
    let mut fleet = NodeFleet::start(StoreServer::start(which), &sim, &SETTINGS);
    // It is alone: no other node has anything in hand.
    fleet.nodes[1].end();
    fleet.nodes[2].end();
    let mut callers = [NodeCaller::of(&fleet.nodes[0].url)];
    let ids: Vec<String> = (0..ORDERS).map(|n| place(&mut callers[0], n)).collect();
    wait_until_solving(&mut callers, &ids);
    forget(&fleet.server);
    fleet.nodes[0].end();
    let log = fleet.nodes[0].log_after_exit();
    assert!(log.contains("WARN") && log.contains("was flushed, restored or replaced"), "{log}");
    fleet.nodes[1].start();
    let mut caller = NodeCaller::of(&fleet.nodes[1].url);
    listed(&mut caller, ids.len());
    for n in 0..ORDERS {
        answered(&mut caller, n);
    }
    assert_eq!(sim.ledger().accepted(), ORDERS, "each job is paid for once");
    assert_eq!(forged(&mut [caller]), 0, "no true callback is called forged");
}

/// All nodes are stopped properly, the store is emptied, and the nodes start again. Orders in flight are listed, and
/// are not paid for again.
fn orders_in_flight_are_put_back_when_every_node_was_stopped_before_the_store_forgot(which: ServerKind) {
    let sim = Sim::start();
    sim.script(&json!([{ "on": "in.php", "do": { "solve_ms": 20_000 } }]));
    let mut fleet = NodeFleet::start(StoreServer::start(which), &sim, &SETTINGS);
    let mut callers: Vec<NodeCaller> = fleet.urls().iter().map(|url| NodeCaller::of(url)).collect();
    let ids: Vec<String> = (0..ORDERS).map(|n| place(&mut callers[node_of(n)], n)).collect();
    wait_until_solving(&mut callers, &ids);
    fleet.nodes.iter_mut().for_each(FleetNode::end);
    forget(&fleet.server);
    fleet.nodes.iter_mut().for_each(FleetNode::start);
    let mut callers: Vec<NodeCaller> = fleet.urls().iter().map(|url| NodeCaller::of(url)).collect();
    callers.iter_mut().for_each(alert);
    listed(&mut callers[1], ids.len());
    for n in 0..ORDERS {
        answered(&mut callers[node_of(n)], n);
    }
    assert_eq!(sim.ledger().accepted(), ORDERS, "each job is paid for once");
    assert_eq!(forged(&mut callers), 0, "no true callback is called forged");

    // A store that still has them needs no file.
    let is_kept = |node: &FleetNode| node.sandbox.path("home").join("orders-in-hand").exists();
    assert!(!fleet.nodes.iter().any(is_kept), "what was used is removed");
    fleet.rest_in_peace();
}

fn a_callback_kept_after_every_node_forgot_its_order_answers_the_repeat_before_it_is_bought(
    which: ServerKind,
) {
    let sim = Sim::start();
    sim.script(&json!([{ "on": "in.php", "do": { "solve_ms": 12_000 } }]));
    let mut fleet = NodeFleet::start(StoreServer::start(which), &sim, &SETTINGS);
    fleet.nodes[1].end();
    fleet.nodes[2].end();
    let mut callers = [NodeCaller::of(&fleet.nodes[0].url)];
    let ids: Vec<String> = (0..ORDERS).map(|n| place(&mut callers[0], n)).collect();
    wait_until_solving(&mut callers, &ids);
    fleet.nodes[0].kill();
    forget(&fleet.server);
    fleet.nodes[0].start();
    until("every callback is kept", || (sim.ledger().total("pingbacks_acked") == ORDERS).then_some(()));
    let mut caller = NodeCaller::of(&fleet.nodes[0].url);
    alert(&mut caller);
    for n in 0..ORDERS {
        answered(&mut caller, n);
    }
    let paid = sim.ledger().accepted();
    tell!(
        "{which:?}: {ORDERS} jobs whose nodes were all killed before the store forgot them, {paid} paid for"
    );
    assert_eq!(paid, ORDERS, "each job is paid for once");
    assert_eq!(forged(&mut [caller]), 0, "no true callback is called forged");
}
