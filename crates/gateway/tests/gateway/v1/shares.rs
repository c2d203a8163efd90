//! Tests of permits that tenants share: a tenant that takes as many as it can leaves some for the others and the
//! operator.

use super::fixture::{ADMIN, ANNA, BERT, Fixture, order, path_of};
use super::talk::Ask;
use super::unknown_senders::all_others_get_in;
use quittance_gateway::{GatewaySettings, KeyDigest, Limits, TenantSettings};
use std::time::Duration;
use tokio::io::AsyncReadExt;
use tokio::net::TcpStream;
use tokio::task::JoinSet;

const REQUESTS_MAX: usize = 40;
/// Three quarters of all requests can wait, and one tenant can have half of those.
const WAITS_OF_ONE: usize = REQUESTS_MAX * 3 / 4 / 2;
/// The live streams that one tenant can have.
const STREAMS_OF_ONE: usize = 512;
/// The connections of a node that has few of them.
const CONNECTIONS_MAX: usize = 40;

async fn fixture() -> Fixture {
    limited(Limits { requests_max: REQUESTS_MAX, ..Limits::default() }).await
}

async fn limited(limits: Limits) -> Fixture {
    let tenant = |(name, key): (&str, &str)| TenantSettings::new(name, KeyDigest::of(key));
    let settings = GatewaySettings { limits, ..GatewaySettings::default() };
    Fixture::limited([("anna", ANNA), ("bert", BERT)].map(tenant).into(), settings).await
}

/// Trap: 130 calls with `Prefer: wait=300` on a server for 120 requests, and all other requests got 429, even health
/// checks.
#[tokio::test]
async fn requests_of_one_tenant_that_wait_keep_no_other_tenant_out() {
    let fixture = fixture().await;
    let mut waits = JoinSet::new();
    for n in 0..3 * REQUESTS_MAX {
        let ask =
            Ask::post("/v1/orders", &order(&format!("hold-{n}"))).key(ANNA).header("Prefer", "wait=300");
        let address = fixture.address;
        waits.spawn(async move { ask.of(address).await });
        tokio::task::yield_now().await;
    }
    // All but its share are answered at once: each order is on its way, or there was no place for a moment.
    while waits.len() > WAITS_OF_ONE {
        let answered = waits.join_next().await.unwrap().unwrap();
        assert!([202, 429].contains(&answered.status), "{answered:?}");
    }
    assert_eq!(fixture.gateway.counts().requests_open, WAITS_OF_ONE as u64);
    let solved = Ask::post("/v1/orders", &order("solve-1")).key(BERT).header("Prefer", "wait=60");
    assert_eq!(fixture.ask(solved).await.order(200)["status"], "solved");
    for (path, key) in
        [("/healthz", ""), ("/callback/x", ""), ("/metrics", ADMIN), ("/v1/admin/state", ADMIN)]
    {
        assert_eq!(fixture.ask(Ask::get(path).key(key)).await.status, 200, "{path}");
    }
    fixture.place("solve-2").await.order(202);
}

/// Trap: one tenant left 1,024 streams unread, and then neither other tenants nor the operator could watch anything.
#[tokio::test]
async fn live_streams_of_one_tenant_keep_no_other_tenant_out() {
    let fixture = fixture().await;
    let open = async |key: &str, path: &str| -> (u16, TcpStream) {
        let mut stream = Ask::get(path).key(key).send(fixture.address).await;
        let mut head = [0; 12];
        stream.read_exact(&mut head).await.unwrap();
        (String::from_utf8_lossy(&head[9..]).parse().unwrap(), stream)
    };
    let mut held = Vec::new();
    for n in 0..STREAMS_OF_ONE + 50 {
        let (status, stream) = open(ANNA, "/v1/events").await;
        assert_eq!(status, if n < STREAMS_OF_ONE { 200 } else { 429 }, "the {n}th");
        held.push(stream);
    }
    for (key, path) in [(BERT, "/v1/events"), (ADMIN, "/v1/events"), (ADMIN, "/v1/admin/live")] {
        let (status, stream) = open(key, path).await;
        assert_eq!(status, 200, "{path}");
        held.push(stream);
    }
}

/// Trap: 600 requests with `Prefer: wait=300` on a node for 400 connections. They were shares of 16,384 requests, so
/// all of them waited, and health checks, callbacks and other tenants found no free connection.
#[tokio::test]
async fn requests_of_one_tenant_that_wait_leave_connections_for_all_others() {
    let fixture = limited(Limits { connections_max: CONNECTIONS_MAX, ..Limits::default() }).await;
    let placed = fixture.place("hold-1").await.order(202);
    let wait = || Ask::get(path_of(&placed)).key(ANNA).header("Prefer", "wait=300");
    let mut held = Vec::new();
    for _ in 0..2 * CONNECTIONS_MAX {
        held.push(wait().send(fixture.address).await);
    }
    all_others_get_in(&fixture).await;
    drop(held);
}

#[tokio::test]
async fn live_streams_of_one_tenant_leave_connections_for_all_others() {
    let fixture = limited(Limits { connections_max: CONNECTIONS_MAX, ..Limits::default() }).await;
    let mut held = Vec::new();
    for _ in 0..2 * CONNECTIONS_MAX {
        held.push(Ask::get("/v1/events").key(ANNA).send(fixture.address).await);
    }
    all_others_get_in(&fixture).await;
    drop(held);
}

/// Trap: a callback waited 20 s for a free connection, and its answer counted as 20 s younger than it was. An expired
/// answer was handed out.
#[tokio::test]
async fn a_time_without_a_free_connection_is_an_outage_for_callbacks() {
    const HELD: Duration = Duration::from_millis(2500);
    let fixture = limited(Limits { connections_max: 2, ..Limits::default() }).await;
    let outages = || fixture.engine.reach().expect("it listens for callbacks").outages;
    let before = outages();
    let mut held = Vec::new();
    for _ in 0..2 {
        let mut stream = Ask::get("/v1/events").key(ADMIN).send(fixture.address).await;
        stream.read_u8().await.unwrap();
        held.push(stream);
    }
    let mut callback = Ask::get("/callback/x").send(fixture.address).await;
    tokio::time::sleep(HELD).await;
    assert_eq!(outages().len(), before.len() + 1, "other nodes read of it while it lasts");
    drop(held);
    callback.read_u8().await.unwrap();
    let outages = outages();
    let new: Vec<_> = outages.iter().filter(|outage| !before.contains(outage)).collect();
    assert!(matches!(new[..], [outage] if outage.to.since(outage.from) >= HELD), "{new:?}");
    drop(callback);
    fixture.ask(Ask::get("/healthz")).await;
    assert_eq!(fixture.engine.reach().unwrap().outages, outages, "no more after it is over");
}
