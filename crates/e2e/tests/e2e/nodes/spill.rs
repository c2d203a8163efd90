//! Callbacks that come while the store is away wait in a node's spill and are not lost: their tasks need no poll.

use super::on_both_stores;
use crate::nodes::caller::{CallerOutcome, NodeCaller, native};
use crate::nodes::fleet::{NODES, NodeFleet};
use crate::nodes::server::{ServerKind, StoreServer};
use crate::provider::Sim;
use crate::sandbox::{line, page};
use crate::usage::usage_equals_ledger_to_the_cent;
use crate::wait::until;
use serde_json::json;

const ORDERS: u64 = 30;

fn what_is_called_back_while_it_is_away_is_answered_when_it_is_back(which: ServerKind) {
    let sim = Sim::start();
    sim.script(&json!([{ "on": "in.php", "do": { "solve_ms": 3_000 } }]));
    // There are no polls: answers come by callback only.
    let settings = [
        "timing.first_poll=50s",
        "timing.callback_wait=50s",
        "kinds.recaptcha_v2.p50=20s",
        "kinds.recaptcha_v2.p95=40s",
        "kinds.recaptcha_v2.p99=50s",
    ];
    let mut fleet = NodeFleet::start(StoreServer::start(which), &sim, &settings);
    let mut callers: Vec<NodeCaller> = fleet.urls().iter().map(|url| NodeCaller::of(url)).collect();
    let mut ids = Vec::new();
    for n in 0..ORDERS {
        let order = line(n, &format!("spill-{n}"));
        let order = json!({ "kind": order["kind"], "params": order["params"] });
        let place = usize::try_from(n).expect("it is small") % NODES;
        let reply = callers[place].post("/v1/orders", "", &order).expect("a node answers");
        let CallerOutcome::Accepted(id) = native(&reply) else { panic!("{reply:?}") };
        ids.push(id);
    }
    // In the store, and not only at the provider, which answers before the node has written that down.
    for id in &ids {
        until("every task is known", || {
            let reply = callers[0].get(&format!("/v1/orders/{id}")).expect("a node answers");
            (reply.json()["phase"] == "solving").then_some(())
        });
    }
    fleet.server.kill();
    until("every callback was taken", || (sim.ledger().total("pingbacks_acked") == ORDERS).then_some(()));
    fleet.server.start_again();
    for (n, id) in ids.iter().enumerate() {
        let answer = until("the answer", || {
            let target = format!("/v1/orders/{id}");
            let reply =
                callers[n % NODES].ask("GET", &target, "Prefer: wait=10\r\n", "").expect("a node answers");
            match native(&reply) {
                CallerOutcome::Answer(text) => Some(text),
                CallerOutcome::Accepted(_) | CallerOutcome::Again => None,
                _ => panic!("{reply:?}"),
            }
        });
        let ledger = sim.ledger();
        let tasks = &ledger.by_page()[page(&format!("spill-{n}")).as_str()];
        assert_eq!((tasks.len(), &tasks[0]["answer"]), (1, &json!(answer)));
    }
    assert_eq!(sim.ledger().polls(), 0, "no poll was needed");
    usage_equals_ledger_to_the_cent(&fleet.nodes[0].sandbox, &sim);
    fleet.rest_in_peace();
}

on_both_stores!(what_is_called_back_while_it_is_away_is_answered_when_it_is_back);
