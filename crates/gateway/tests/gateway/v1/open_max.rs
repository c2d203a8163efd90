//! Tests of `open_max`: a tenant has never more open orders than that, whatever arrives at the same moment on any
//! API.

use super::fixture::{ANNA, BERT, Fixture, order, path_of};
use super::talk::{Answered, Ask};
use futures_util::future::{join, join_all};
use quittance_gateway::{KeyDigest, TenantSettings};
use quittance_ports::Which;
use serde_json::{Value, json};
use std::net::SocketAddr;
use std::sync::atomic::Ordering;

const OPEN_MAX: usize = 5;
const AT_ONCE: usize = 60;

fn tenants(open_max: usize) -> Vec<TenantSettings> {
    let mut anna = TenantSettings::new("anna", KeyDigest::of(ANNA));
    anna.open_max = Some(open_max);
    vec![anna, TenantSettings::new("bert", KeyDigest::of(BERT))]
}

async fn limited(open_max: usize) -> Fixture {
    Fixture::with(tenants(open_max)).await
}

/// The `n`th placement, with the APIs in turn.
fn placement(n: usize, sitekey: &str, more: &str) -> Ask {
    let task = json!({ "type": "TurnstileTaskProxyless", "websiteKey": sitekey, "websiteURL": "https://shop.example.com/" });
    match n % 3 {
        0 => Ask::new("POST", "/in.php").header("Content-Type", "application/x-www-form-urlencoded").body(
            &format!("key={ANNA}&method=turnstile&sitekey={sitekey}&pageurl=https://shop.example.com/{more}"),
        ),
        1 => Ask::post(
            format!("/2captcha/createTask?{}", more.trim_start_matches('&')),
            &json!({ "clientKey": ANNA, "task": task }),
        ),
        _ => {
            let mut order = order(sitekey);
            order["reuse"] = if more.is_empty() { json!("exclusive") } else { json!("shared") };
            Ask::post("/v1/orders", &order).key(ANNA)
        }
    }
}

async fn ask(ask: Ask, address: SocketAddr) -> Answered {
    ask.of(address).await
}

/// Whether a placement was accepted. If not, it must be refused because too many orders are open.
fn is_accepted(answered: &Answered) -> bool {
    let body: Value = serde_json::from_str(&answered.text).unwrap_or_default();
    let is_accepted = answered.text.starts_with("OK|") || body["errorId"] == 0 || answered.status == 202;
    let is_refused = answered.text.contains("ERROR_NO_SLOT_AVAILABLE") || body["code"] == "too_many_open";
    assert_ne!(is_accepted, is_refused, "{answered:?}");
    is_accepted
}

/// Trap: of 60 placements at once, 7 orders were open where 5 are allowed.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn of_many_placements_at_once_on_all_apis_exactly_as_many_are_accepted_as_may_be_open() {
    for round in 0..20 {
        let fixture = limited(OPEN_MAX).await;
        let asks = (0..AT_ONCE).map(|n| fixture.ask(placement(n, &format!("hold-{n}"), "")));
        let answers = join_all(asks).await;
        let accepted = answers.iter().filter(|answered| is_accepted(answered)).count();
        assert_eq!(accepted, OPEN_MAX, "round {round}");
        let me = fixture.get("/v1/me").await.order(200);
        assert_eq!(me["open_orders"], OPEN_MAX, "round {round}");
        let listed = fixture.get("/v1/orders?status=open").await.order(200);
        assert_eq!(listed["orders"].as_array().unwrap().len(), OPEN_MAX, "round {round}");
        fixture.ask(Ask::post("/v1/orders", &order("hold-b")).key(BERT)).await.order(202);
    }
}

/// A placement that only joins needs no place, even if it arrives together with the first one.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn equal_placements_at_once_take_one_place_together() {
    for round in 0..20 {
        let fixture = limited(1).await;
        let asks =
            (0..AT_ONCE).filter(|n| n % 3 != 1).map(|n| fixture.ask(placement(n, "hold-1", "&reuse=shared")));
        for answered in join_all(asks).await {
            assert!(is_accepted(&answered), "round {round}: {answered:?}");
        }
        assert_eq!(fixture.get("/v1/me").await.order(200)["open_orders"], 1, "round {round}");
    }
}

/// Three nodes on one store together accept what one node would.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn of_many_placements_at_once_on_three_nodes_exactly_as_many_are_accepted_as_may_be_open() {
    for round in 0..10 {
        let fixture = limited(OPEN_MAX).await;
        let mut nodes = Vec::new();
        for _ in 0..3 {
            nodes.push(fixture.twin(tenants(OPEN_MAX)).await);
        }
        let at_once = async |mark: &str| {
            let asks =
                (0..AT_ONCE).map(|n| ask(placement(n, &format!("hold-{mark}-{n}"), ""), nodes[n / 3 % 3].1));
            join_all(asks).await.iter().filter(|answered| is_accepted(answered)).count()
        };
        assert_eq!(at_once("first").await, OPEN_MAX, "round {round}");
        let listed = fixture.get("/v1/orders?status=open").await.order(200);
        let listed = listed["orders"].as_array().unwrap();
        assert_eq!(listed.len(), OPEN_MAX, "round {round}");
        for order in &listed[..3] {
            let path = format!("/v1/orders/{}", order["id"].as_str().unwrap());
            fixture.ask(Ask::new("DELETE", path).key(ANNA)).await.order(200);
        }
        assert_eq!(at_once("again").await, 3, "round {round}");
    }
}

/// A placement that only joins needs no place, on any node.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn equal_placements_at_once_on_three_nodes_take_one_place_together() {
    for round in 0..10 {
        let fixture = limited(1).await;
        let mut nodes = Vec::new();
        for _ in 0..3 {
            nodes.push(fixture.twin(tenants(1)).await);
        }
        let asks = (0..AT_ONCE)
            .filter(|n| n % 3 != 1)
            .map(|n| ask(placement(n, "hold-1", "&reuse=shared"), nodes[n / 3 % 3].1));
        for answered in join_all(asks).await {
            assert!(is_accepted(&answered), "round {round}: {answered:?}");
        }
    }
}

/// If the store is down, all waiting placements fail at once, and their places are free again soon.
#[tokio::test]
async fn all_that_wait_for_a_place_learn_that_the_store_is_away() {
    let fixture = limited(OPEN_MAX).await;
    let (_twin, address) = fixture.twin(tenants(OPEN_MAX)).await;
    fixture.store_is_away.store(true, Ordering::Relaxed);
    let asks = (0..AT_ONCE).map(|n| ask(placement(2, &format!("hold-{n}"), ""), address));
    for answered in join_all(asks).await {
        assert_eq!(answered.status, 503, "{answered:?}");
    }
    fixture.store_is_away.store(false, Ordering::Relaxed);
    let asks = (0..AT_ONCE).map(|n| ask(placement(2, &format!("hold-{n}"), ""), address));
    let accepted = join_all(asks).await.iter().filter(|answered| is_accepted(answered)).count();
    assert_eq!(accepted, OPEN_MAX);
}

/// Each of two nodes on one store counts what the other has accepted, at every placement.
#[tokio::test]
async fn a_node_counts_what_other_nodes_on_the_same_store_have_accepted() {
    let fixture = limited(OPEN_MAX).await;
    let (_twin, address) = fixture.twin(tenants(OPEN_MAX)).await;
    let mut accepted = Vec::new();
    for n in 0..12 {
        let ask = placement(n, &format!("hold-{n}"), "");
        // The first node has no neighbours as far as it knows, and is asked first: the twin must count what it did.
        let answered = if n < 3 { fixture.ask(ask).await } else { ask.of(address).await };
        accepted.push(is_accepted(&answered));
    }
    assert_eq!(accepted.iter().filter(|accepted| **accepted).count(), OPEN_MAX, "{accepted:?}");
    let listed = fixture.get("/v1/orders?status=open").await.order(200);
    assert_eq!(listed["orders"].as_array().unwrap().len(), OPEN_MAX);
    // An order that has ended on another node makes a place free here.
    let path = format!("/v1/orders/{}", listed["orders"][0]["id"].as_str().unwrap());
    fixture.ask(Ask::new("DELETE", path).key(ANNA)).await.order(200);
    assert!(is_accepted(&placement(2, "hold-again", "").of(address).await));
    assert!(!is_accepted(&placement(2, "hold-once-more", "").of(address).await));
}

/// A placement under an idempotency key, without waiting.
fn keyed(sitekey: &str) -> Ask {
    Ask::post("/v1/orders", &order(sitekey)).key(ANNA).header("Idempotency-Key", sitekey)
}

async fn open_and_wanted(fixture: &Fixture) -> usize {
    let listed = fixture.engine.list(Which::OPEN, None, 256).await.unwrap();
    listed.into_iter().flatten().filter(|found| found.order.is_awaited()).count()
}

/// Trap: 5 orders were placed and cancelled several times. All were placed again, and 20 were open where 5 are
/// allowed.
#[tokio::test]
async fn cancelled_orders_that_are_wanted_again_need_places() {
    let fixture = limited(OPEN_MAX).await;
    // Some have been sent to the provider and stay open, unwanted; others end when they are cancelled.
    for n in 0..OPEN_MAX * 2 {
        let path = path_of(&fixture.ask(keyed(&format!("hold-{n}"))).await.order(202));
        if n % 2 == 0 {
            fixture.until(&path, "solving").await;
        }
        fixture.ask(Ask::new("DELETE", path).key(ANNA)).await.order(200);
    }
    let mut accepted = Vec::new();
    for n in 0..OPEN_MAX * 2 {
        accepted.push(is_accepted(&fixture.ask(keyed(&format!("hold-{n}"))).await));
    }
    assert_eq!(accepted.iter().filter(|accepted| **accepted).count(), OPEN_MAX, "{accepted:?}");
    // A placement that joins an order which is open and wanted is free.
    fixture.ask(keyed("hold-0")).await.order(202);
    assert_eq!(fixture.get("/v1/me").await.order(200)["open_orders"], OPEN_MAX);
    // And a place that is free again is taken by the next one.
    let path = path_of(&fixture.ask(keyed("hold-0")).await.order(202));
    fixture.ask(Ask::new("DELETE", path).key(ANNA)).await.order(200);
    assert!(is_accepted(&fixture.ask(keyed("hold-9")).await));
    assert!(!is_accepted(&fixture.ask(keyed("hold-0")).await));
}

/// Trap: dead letters were placed again under their keys, and all of them were open.
#[tokio::test]
async fn dead_letters_that_are_placed_again_need_places() {
    let fixture = limited(1).await;
    // The provider has taken some of them, and their new life waits for that task; for the others it has tasks that
    // failed.
    for sitekey in ["hold-0", "die-1", "hold-2"] {
        let path = path_of(&fixture.ask(keyed(sitekey)).await.order(202));
        assert_eq!(fixture.run_out(&path).await["status"], "dead", "{sitekey}");
    }
    fixture.rest().await;
    let mut accepted = Vec::new();
    for sitekey in ["hold-0", "die-1", "hold-2"] {
        accepted.push(is_accepted(&fixture.ask(keyed(sitekey)).await));
    }
    assert_eq!(accepted, [true, false, false]);
    fixture.ask(keyed("hold-0")).await.order(202);
    assert_eq!(open_and_wanted(&fixture).await, 1);
}

/// Cancelled orders are placed again at once on three nodes, while callers cancel some of them again.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn of_cancelled_orders_that_are_wanted_again_on_three_nodes_as_many_are_open_as_may_be() {
    let fixture = limited(OPEN_MAX).await;
    let mut nodes = Vec::new();
    for _ in 0..3 {
        nodes.push(fixture.twin(tenants(OPEN_MAX)).await);
    }
    let mut paths = Vec::new();
    for n in 0..AT_ONCE {
        let path = path_of(&keyed(&format!("hold-{n}")).of(nodes[0].1).await.order(202));
        ask(Ask::new("DELETE", path.clone()).key(ANNA), nodes[0].1).await.order(200);
        paths.push(path);
    }
    for round in 0..10 {
        let asks = (0..AT_ONCE).map(|n| ask(keyed(&format!("hold-{n}")), nodes[(n + round) % 3].1));
        let cancels =
            paths.iter().take(8).map(|path| ask(Ask::new("DELETE", path.clone()).key(ANNA), nodes[0].1));
        let (answers, _) = join(join_all(asks), join_all(cancels)).await;
        let accepted = answers.iter().filter(|answered| is_accepted(answered)).count();
        assert!(accepted > 0 || round > 0, "round {round}");
        let open = open_and_wanted(&fixture).await;
        assert!(open <= OPEN_MAX, "round {round}: {open} are open");
    }
    // No place has leaked: when all are cancelled, as many are accepted as may be open.
    for path in &paths {
        ask(Ask::new("DELETE", path.clone()).key(ANNA), nodes[0].1).await;
    }
    assert_eq!(open_and_wanted(&fixture).await, 0);
    let asks = (0..AT_ONCE).map(|n| ask(keyed(&format!("hold-{n}")), nodes[n % 3].1));
    let accepted = join_all(asks).await.iter().filter(|answered| is_accepted(answered)).count();
    assert_eq!(accepted, OPEN_MAX);
}
