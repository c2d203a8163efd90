//! A node dies with an order in hand, at the default settings: another node continues the order within ten seconds.

use super::{on_both_stores, tell};
use crate::http::free_port;
use crate::nodes::caller::{CallerOutcome, NodeCaller, native};
use crate::nodes::fleet::FleetNode;
use crate::nodes::server::{ServerKind, StoreServer};
use crate::provider::Sim;
use crate::sandbox::{KEY_VARIABLE, Sandbox, page};
use crate::wait::{now, until};
use serde_json::json;
use std::time::Duration;

const TAKEOVER_MAX: Duration = Duration::from_secs(10);

/// A sandbox with defaults for everything except addresses and folders.
fn sandbox(server: &StoreServer, sim: &Sim) -> Sandbox {
    let (store, provider, port) = (server.url(), &sim.url, free_port());
    let config = format!(
        "listen = \"127.0.0.1:{port}\"\n[store]\nurl = \"{store}\"\n\
         [[provider]]\nname = \"main\"\ndialect = \"2captcha\"\nurl = \"{provider}\"\nkey_env = \"{KEY_VARIABLE}\"\n"
    );
    let mut sandbox = Sandbox::with_config(&config);
    // No callback comes there; it is how a node knows its own address.
    sandbox.callbacks = Some(format!("http://127.0.0.1:{port}/callback"));
    sandbox
}

/// The worst moment is the middle of a poll: the order has just been claimed, and no other node may read it until the
/// claim lapses. Between two polls no node holds the order, so the next poll is on time. A submit without a reply is
/// in doubt, and waits for that time on purpose.
fn an_order_whose_node_died_is_taken_over_within_ten_seconds_at_the_defaults(which: ServerKind) {
    let server = StoreServer::start(which);
    let sim = Sim::start_with("2captcha", &["--speed", "1000"]);
    // The provider has the answer at once, and the first poll is kept waiting until its node is dead.
    sim.script(&json!([{ "on": "res.php", "match": { "id": "*" }, "nth": 1, "do": { "hang_ms": 60_000 } }]));
    let mut holder = FleetNode::new(sandbox(&server, &sim)).started();
    let mut other = FleetNode::new(sandbox(&server, &sim)).started();
    // It is there all the time, but does not see the timer first.
    other.freeze();
    let order =
        json!({ "kind": "turnstile", "params": { "sitekey": "0x4AAAAAAAB", "pageurl": page("takeover") } });
    let reply = NodeCaller::of(&holder.url).post("/v1/orders", "", &order).expect("a node answers");
    let CallerOutcome::Accepted(id) = native(&reply) else { panic!("{reply:?}") };
    until("the first poll", || (sim.ledger().polls() == 1).then_some(()));
    other.thaw();
    holder.kill();
    let died = now();
    until("the second poll, by the other", || (sim.ledger().polls() == 2).then_some(()));
    let taken = died.elapsed();
    tell!("taken over on {which:?}: after {taken:?}");
    assert!(taken < TAKEOVER_MAX, "taken over after {taken:?}");
    let mut caller = NodeCaller::of(&other.url);
    until("the answer", || {
        let reply =
            caller.ask("GET", &format!("/v1/orders/{id}"), "Prefer: wait=10\r\n", "").expect("it answers");
        matches!(native(&reply), CallerOutcome::Answer(_)).then_some(())
    });
    assert_eq!(sim.ledger().accepted(), 1, "and paid for once");
    holder.rest_in_peace();
    other.rest_in_peace();
}

on_both_stores!(an_order_whose_node_died_is_taken_over_within_ten_seconds_at_the_defaults);
