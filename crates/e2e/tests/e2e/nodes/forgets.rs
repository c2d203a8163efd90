//! The store forgets everything while orders are in flight: Redis is flushed, or PostgreSQL's schema is dropped. This
//! is reported in the log and by an alert. Every order in flight is listed for an operator, and each is answered and
//! paid for once. No genuine callback counts as forged, even after a node has started again in an empty folder.

use super::on_both_stores;
use crate::nodes::caller::{CallerOutcome, NodeCaller, native};
use crate::nodes::fleet::{NODES, NodeFleet};
use crate::nodes::server::{ServerKind, StoreServer};
use crate::provider::Sim;
use crate::sandbox::line;
use crate::wait::{pass, until};
use serde_json::json;
use std::time::Duration;

const ORDERS: u64 = 18;
/// Long enough for a pool, which checks every second, to buy too much.
const A_WHILE: Duration = Duration::from_secs(6);

pub(super) fn forget(server: &StoreServer) {
    match server {
        StoreServer::Redis(redis) => assert_eq!(redis.command(&["flushall"]), "OK"),
        StoreServer::Postgres(postgres) => drop(postgres.sql("DROP SCHEMA quittance CASCADE")),
    }
}

pub(super) fn forged(callers: &mut [NodeCaller]) -> u64 {
    let of = |caller: &mut NodeCaller| {
        let reply = caller.get("/metrics").expect("a node answers");
        let line =
            reply.body.lines().find(|line| line.starts_with("quittance_forged_callbacks")).unwrap_or("0");
        line.rsplit(' ').next().and_then(|count| count.parse::<u64>().ok()).expect("a number")
    };
    callers.iter_mut().map(of).sum()
}

pub(super) fn alert(caller: &mut NodeCaller) {
    until("an alert", || {
        let alerts = caller.get("/v1/admin/alerts").expect("a node answers").json();
        let alerts = alerts["alerts"].as_array().cloned().unwrap_or_default();
        alerts.iter().any(|alert| alert["rule"] == "store_forgot").then_some(())
    });
}

/// Checks that this many orders are listed for an operator.
pub(super) fn listed(caller: &mut NodeCaller, count: usize) {
    until("the list", || {
        let reply = caller.get("/v1/admin/dead?cause=store_forgot&limit=100").expect("a node answers");
        let listed = reply.json()["orders"].as_array().map_or(0, Vec::len);
        (listed == count).then_some(())
    });
}

fn what_is_in_flight_when_the_store_forgets_is_reported_listed_and_answered_once(which: ServerKind) {
    let sim = Sim::start();
    sim.script(&json!([{ "on": "in.php", "do": { "solve_ms": 15_000 } }]));
    // There are no polls: answers come by callback only.
    let settings = [
        "timing.first_poll=50s",
        "timing.callback_wait=50s",
        "timing.deadline=100s",
        "kinds.recaptcha_v2.p50=20s",
        "kinds.recaptcha_v2.p95=40s",
        "kinds.recaptcha_v2.p99=50s",
    ];
    let mut fleet = NodeFleet::start(StoreServer::start(which), &sim, &settings);
    let mut callers: Vec<NodeCaller> = fleet.urls().iter().map(|url| NodeCaller::of(url)).collect();
    let mut ids = Vec::new();
    for n in 0..ORDERS {
        let order = line(n, &format!("forgotten-{n}"));
        let order = json!({ "kind": order["kind"], "params": order["params"] });
        let place = usize::try_from(n).expect("it is small") % NODES;
        let reply = callers[place].post("/v1/orders", "", &order).expect("a node answers");
        let CallerOutcome::Accepted(id) = native(&reply) else { panic!("{reply:?}") };
        ids.push(id);
    }
    for id in &ids {
        until("every task is known", || {
            let reply = callers[0].get(&format!("/v1/orders/{id}")).expect("a node answers");
            (reply.json()["phase"] == "solving").then_some(())
        });
    }
    forget(&fleet.server);

    callers.iter_mut().for_each(alert);
    listed(&mut callers[1], ids.len());
    // One of them has lost its memory, too.
    fleet.nodes[2].kill();
    let home = fleet.nodes[2].sandbox.path("an empty folder").display().to_string();
    fleet.nodes[2].sandbox.override_setting("store.home", &home);
    fleet.nodes[2].start();
    callers[2] = NodeCaller::of(&fleet.nodes[2].url);

    for (n, id) in ids.iter().enumerate() {
        until("the answer", || {
            let target = format!("/v1/orders/{id}");
            let reply =
                callers[n % NODES].ask("GET", &target, "Prefer: wait=10\r\n", "").expect("a node answers");
            match native(&reply) {
                CallerOutcome::Answer(text) => Some(text),
                CallerOutcome::Accepted(_) | CallerOutcome::Again => None,
                _ => panic!("{reply:?}"),
            }
        });
    }
    let ledger = sim.ledger();
    assert_eq!((ledger.accepted(), ledger.polls()), (ORDERS, 0), "each is paid for once, without a poll");
    assert_eq!(forged(&mut callers), 0, "no true callback is called forged");
    fleet.nodes[0].end();
    let log = fleet.nodes[0].log_after_exit();
    assert!(log.contains("WARN") && log.contains("the store was flushed, restored or replaced"), "{log}");
}

fn place(caller: &mut NodeCaller, n: u64) -> String {
    let order = line(n, &format!("again-{n}"));
    let order = json!({ "kind": order["kind"], "params": order["params"] });
    until("it is accepted", || {
        let reply = caller.post("/v1/orders", "", &order).expect("a node answers");
        match native(&reply) {
            CallerOutcome::Accepted(id) => Some(id),
            CallerOutcome::Again => None,
            _ => panic!("{reply:?}"),
        }
    })
}

/// The text of the alert, and when it was raised, once that differs from `before`.
fn raised(caller: &mut NodeCaller, before: Option<&str>) -> (String, String) {
    until("the alert of this loss", || {
        let alerts = caller.get("/v1/admin/alerts").expect("a node answers").json();
        let alerts = alerts["alerts"].as_array().cloned().unwrap_or_default();
        let alert = alerts.into_iter().find(|alert| alert["rule"] == "store_forgot")?;
        let text = |name: &str| alert[name].as_str().unwrap_or_default().to_owned();
        let (words, at) = (text("words"), text("raised_at"));
        (Some(at.as_str()) != before).then_some((words, at))
    })
}

fn each_loss_is_reported_and_pools_that_were_set_by_hand_are_put_back(which: ServerKind) {
    let sim = Sim::start();
    sim.script(&json!([{ "on": "in.php", "do": { "solve_ms": 60_000 } }]));
    let mut fleet = NodeFleet::start(StoreServer::start(which), &sim, &["timing.deadline=200s"]);
    // It is alone, so that it has every order in hand.
    fleet.nodes[1].end();
    fleet.nodes[2].end();
    let mut caller = NodeCaller::of(&fleet.nodes[0].url);
    let set = ["pool", "set", "login", "--kind", "turnstile", "--size", "2", "-p", "sitekey=0x4AAAAAAAB"];
    let set = [&set[..], &["-p", "pageurl=https://pool.example.com/"]].concat();
    let ran = fleet.nodes[0].sandbox.run(&set);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    until("the pool buys", || (sim.ledger().accepted() == 2).then_some(()));
    place(&mut caller, 1);
    until("it is submitted", || (sim.ledger().accepted() == 3).then_some(()));

    forget(&fleet.server);
    let first = raised(&mut caller, None);
    assert!(first.0.contains(" 3 were put back"), "{first:?}");
    let view = |fleet: &NodeFleet| fleet.nodes[0].sandbox.run(&["pool", "show", "login"]);
    until("the pool is back", || (view(&fleet).code == Some(0)).then_some(()));
    place(&mut caller, 2);
    until("it is submitted", || (sim.ledger().accepted() == 4).then_some(()));

    forget(&fleet.server);
    let second = raised(&mut caller, Some(&first.1));
    assert!(second.0.contains(" 4 were put back"), "{second:?}");
    until("the pool is back", || (view(&fleet).code == Some(0)).then_some(()));
    assert_eq!(sim.ledger().accepted(), 4, "nothing is bought again");
    fleet.nodes[0].end();
    let log = fleet.nodes[0].log_after_exit();
    let alert_lines =
        log.lines().filter(|line| line.contains("the store was flushed") && line.contains("alert:"));
    assert_eq!(alert_lines.count(), 2, "{log}");
}

/// The id of the order that this node creates or finds for a job.
fn job_at(fleet: &NodeFleet, node: usize, job: &str) -> String {
    let order = line(7, job);
    let order = json!({ "kind": order["kind"], "params": order["params"] });
    let headers = format!("Idempotency-Key: {job}\r\nPrefer: wait=20\r\n");
    let mut caller = NodeCaller::of(&fleet.nodes[node].url);
    until("the job is answered", || {
        let reply = caller.post("/v1/orders", &headers, &order).expect("a node answers");
        match native(&reply) {
            CallerOutcome::Answer(_) => Some(reply.json()["id"].as_str().unwrap_or_default().to_owned()),
            CallerOutcome::Accepted(_) | CallerOutcome::Again => None,
            _ => panic!("{reply:?}"),
        }
    })
}

fn a_node_that_comes_with_an_empty_folder_after_a_loss_uses_the_secret_of_those_at_work(which: ServerKind) {
    let sim = Sim::start();
    let mut fleet = NodeFleet::start(StoreServer::start(which), &sim, &[]);
    job_at(&fleet, 0, "before");
    // Only one node has worked before: the others come after the loss, and are there first.
    fleet.nodes[1].kill();
    fleet.nodes[2].kill();
    let home = fleet.nodes[2].sandbox.path("an empty folder").display().to_string();
    fleet.nodes[2].sandbox.override_setting("store.home", &home);
    fleet.nodes[0].freeze();
    forget(&fleet.server);
    fleet.nodes[2].start();
    fleet.nodes[0].thaw();
    let first = job_at(&fleet, 2, "after");
    assert_eq!(job_at(&fleet, 0, "after"), first, "one order on both nodes");
    job_at(&fleet, 0, "before");
    job_at(&fleet, 2, "before");
    assert_eq!(sim.ledger().accepted(), 2, "each job is bought once");

    // The node at work comes so late that the other has taken orders under its own secret.
    fleet.nodes[0].freeze();
    fleet.nodes[2].kill();
    let home = fleet.nodes[2].sandbox.path("another empty folder").display().to_string();
    fleet.nodes[2].sandbox.override_setting("store.home", &home);
    forget(&fleet.server);
    fleet.nodes[2].start();
    job_at(&fleet, 2, "alone");
    fleet.nodes[0].thaw();
    until("the newcomer reports it", || {
        let alerts =
            NodeCaller::of(&fleet.nodes[2].url).get("/v1/admin/alerts").expect("a node answers").json();
        alerts["alerts"].as_array()?.iter().any(|alert| alert["rule"] == "store_forgot").then_some(())
    });
    let bought = sim.ledger().accepted();
    let last = job_at(&fleet, 2, "together");
    assert_eq!(job_at(&fleet, 0, "together"), last, "one order on both nodes");
    assert_eq!(sim.ledger().accepted(), bought + 1, "it is bought once");
    fleet.nodes[2].end();
    let log = fleet.nodes[2].log_after_exit();
    assert!(log.contains("this node used another secret"), "{log}");
}

on_both_stores!(
    a_node_that_comes_with_an_empty_folder_after_a_loss_uses_the_secret_of_those_at_work,
    what_is_in_flight_when_the_store_forgets_is_reported_listed_and_answered_once,
    each_loss_is_reported_and_pools_that_were_set_by_hand_are_put_back,
    a_budget_for_two_answers_buys_two_also_if_the_store_forgets,
);

fn hour(sim: &Sim) -> u64 {
    sim.ledger().0["now_ms"].as_u64().expect("the ledger has a clock") / 3_600_000
}

/// Regression: a budget for two answers bought 4, because a node put back the pool without knowing what was spent.
fn a_budget_for_two_answers_buys_two_also_if_the_store_forgets(which: ServerKind) {
    let sim = Sim::start();
    sim.script(&json!([{ "on": "in.php", "do": { "solve_ms": 200 } }]));
    let fleet = NodeFleet::start(StoreServer::start(which), &sim, &[]);
    let mut callers: Vec<NodeCaller> = fleet.urls().iter().map(|url| NodeCaller::of(url)).collect();
    let before = hour(&sim);
    let set = ["pool", "set", "warm", "--kind", "turnstile", "--size", "9", "--budget-per-hour", "0.006"];
    let set = [&set[..], &["-p", "sitekey=0x4AAAAAAAB", "-p", "pageurl=https://pool.example.com/"]].concat();
    fleet.nodes[0].sandbox.run(&set).must_succeed();
    let pool = |caller: &mut NodeCaller| caller.get("/v1/pools/warm").expect("a node answers").json();
    until("its budget is spent", || (pool(&mut callers[0])["spent"]["refills"] == 2).then_some(()));

    forget(&fleet.server);
    callers.iter_mut().for_each(alert);
    let view = until("the pool is back and was looked at", || {
        let view = pool(&mut callers[0]);
        let words = view["level"]["why"].as_str()?.to_owned();
        (words.contains("the pool's budget for this hour is spent") || hour(&sim) > before).then_some(view)
    });
    pass(A_WHILE);
    let (bought, hours) = (sim.ledger().accepted(), hour(&sim) - before + 1);
    assert!(bought <= 2 * hours, "{bought} bought in {hours} hours with a budget for 2 an hour: {view}");
    fleet.rest_in_peace();
}
