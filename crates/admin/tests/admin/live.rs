//! Snapshots, the stream of snapshots, and how streams end.

use super::fixture::{ADMIN, ANNA, Fixture, order, path_of};
use super::talk::Ask;
use crate::eventually::eventually;
use quittance_admin::AdminSettings;
use quittance_admin::settings::ShownSetting;
use serde_json::{Value, json};
use std::sync::atomic::Ordering;
use std::time::Duration;

async fn now(fixture: &Fixture) -> Value {
    fixture.ask(Ask::get("/v1/admin/now").key(ADMIN)).await.order(200)
}

/// Reads snapshots until one is as expected.
async fn until(fixture: &Fixture, is_so: impl Fn(&Value) -> bool) -> Value {
    eventually("the picture is as it should be", async || {
        let picture = now(fixture).await;
        // What changed no order is written down a moment later.
        fixture.pass(Duration::from_millis(50));
        is_so(&picture).then_some(picture)
    })
    .await
}

#[tokio::test]
async fn the_picture_shows_orders_by_phase_the_usage_the_provider_and_who_is_there() {
    let fixture =
        Fixture::operated(AdminSettings { store: Some("memory"), ..AdminSettings::default() }).await;
    fixture.heartbeat(1, "here").await;
    fixture.heartbeat(2, "there").await;
    let path = path_of(&fixture.place("hold-1").await.order(202));
    fixture.until(&path, "solving").await;
    fixture.run_out(&path_of(&fixture.place("die-1").await.order(202))).await;
    fixture.end_of(&path_of(&fixture.place("solve-1").await.order(202))).await;
    fixture.place("solve-1").await.order(200);
    let picture =
        until(&fixture, |picture| picture["today"]["cached"] == 1 && picture["orders"]["dead"] == 1).await;
    let phases = json!({ "queued": 0, "held": 0, "submitting": 0, "solving": 1, "in_doubt": 0 });
    assert_eq!(picture["orders"], json!({ "open": 1, "dead": 1, "phases": phases, "is_sampled": false }));
    let today = &picture["today"];
    assert_eq!((&today["asked"], &today["solved"], &today["dead"]), (&json!(4), &json!(1), &json!(1)));
    // One more is being worked on: it has no price yet, and does not make an answer cheaper.
    assert_eq!((&today["cost_micros"], &today["saved_micros"]), (&json!(2990), &json!(2990)), "{today}");
    assert_eq!(picture["latency_ms"]["count"], 1);
    assert_eq!(picture["providers"][0]["state"], "ok");
    assert_eq!(picture["store"], json!({ "is_up": true, "kind": "memory" }));
    assert_eq!((&picture["node"]["name"], &picture["alerts"]), (&json!("here"), &json!([])));
    let nodes: Vec<_> = picture["nodes"].as_array().unwrap().iter().map(|node| &node["is_here"]).collect();
    assert_eq!(nodes, [&json!(true), &json!(false)]);
    let snapshot = until(&fixture, |picture| !picture["providers"][0]["balance_micros"].is_null()).await;
    let provider = &snapshot["providers"][0];
    assert_eq!(
        (&provider["balance_micros"], &provider["currency"], &provider["threads"]),
        (&json!(12_500_000), &json!("USD"), &json!({ "total": 5, "working": 2 }))
    );
}

#[tokio::test]
async fn rates_are_shown_by_the_second() {
    let fixture = Fixture::new().await;
    let first = now(&fixture).await;
    assert!(first["rates"]["asked"].is_null(), "one look has no rate: {first}");
    for n in 0..20 {
        fixture.place(&format!("solve-{n}")).await;
    }
    fixture.pass(Duration::from_secs(2));
    let picture = until(&fixture, |picture| picture["today"]["asked"] == 20).await;
    let asked = picture["rates"]["asked"].as_f64().unwrap();
    assert!((2.0..=10.0).contains(&asked), "20 in 2 seconds, or in a few more: {asked}");
}

#[tokio::test]
async fn many_who_watch_cost_no_more_than_one_who_does() {
    let fixture = Fixture::new().await;
    fixture.place("hold-1").await.order(202);
    fixture.rest().await;
    let mut all = Vec::new();
    for _ in 0..3 {
        let mut live = Ask::get("/v1/admin/live").key(ADMIN).live(fixture.address).await;
        assert_eq!(live.greeting().await, "retry: 2000");
        all.push(live);
    }
    for live in &mut all {
        let (name, first) = live.next().await.unwrap();
        assert_eq!((name.as_str(), &first["orders"]["open"]), ("now", &json!(1)), "it is sent at once");
    }
    for _ in 0..3 {
        for live in &mut all {
            assert_eq!(live.next().await.unwrap().0, "now");
        }
    }
    let calls = fixture.store_calls();
    let usage = calls.iter().filter(|call| **call == "usage").count();
    assert!((2..=5).contains(&usage), "one look a second for all of them: {calls:?}");
    drop(all);
    // The streams are found to be gone when the next picture is to be sent.
    let quiet = async {
        loop {
            tokio::time::sleep(Duration::from_millis(2500)).await;
            if fixture.store_calls().is_empty() {
                return;
            }
        }
    };
    tokio::time::timeout(Duration::from_secs(20), quiet).await.expect("without watchers no snapshot is made");
}

#[tokio::test]
async fn a_store_that_is_away_is_reported_and_hides_nothing_that_was_known() {
    let fixture = Fixture::new().await;
    fixture.place("hold-1").await.order(202);
    until(&fixture, |picture| picture["orders"]["open"] == 1).await;
    fixture.store_is_away.store(true, Ordering::Relaxed);
    let picture = until(&fixture, |picture| picture["store"]["is_up"] == false).await;
    assert_eq!(picture["orders"]["open"], 1, "as it was known before");
    fixture.store_is_away.store(false, Ordering::Relaxed);
    until(&fixture, |picture| picture["store"]["is_up"] == true).await;
}

/// The store of a full disk can be read and not written. The snapshot must agree with `/readyz`.
#[tokio::test]
async fn a_store_that_took_no_order_a_moment_ago_is_not_up() {
    let fixture = Fixture::new().await;
    until(&fixture, |picture| picture["store"]["is_up"] == true).await;
    fixture.store_is_away.store(true, Ordering::Relaxed);
    fixture.place("hold-1").await.must_be(503, "store_unavailable");
    fixture.store_is_away.store(false, Ordering::Relaxed);
    // Long enough for several looks at a store that can be read.
    for _ in 0..40 {
        assert_eq!(
            until(&fixture, |picture| picture["store"]["is_up"] == false).await["store"]["is_up"],
            false
        );
    }
    assert_eq!(fixture.ask(Ask::get("/readyz")).await.json()["store"], false);
    fixture.pass(Duration::from_secs(11));
    until(&fixture, |picture| picture["store"]["is_up"] == true).await;
}

#[tokio::test]
async fn streams_end_when_the_node_does() {
    let fixture = Fixture::new().await;
    let mut live = Ask::get("/v1/admin/live").key(ADMIN).live(fixture.address).await;
    live.greeting().await;
    live.next().await.unwrap();
    assert!(fixture.gateway.drain(Duration::from_secs(5)).await, "no request was cut off");
    while live.next().await.is_some() {}
}

/// An order is on record, so no connection must be held for it: the next process has the answer.
#[tokio::test]
async fn callers_that_wait_are_asked_to_come_again_when_the_node_ends() {
    let fixture = Fixture::new().await;
    let ask = Ask::post("/v1/orders", &order("hold-1")).key(ANNA).header("Prefer", "wait=300");
    let (address, gateway) = (fixture.address, fixture.gateway.clone());
    let waiting = tokio::spawn(async move { ask.of(address).await });
    until(&fixture, |picture| picture["orders"]["open"] == 1).await;
    assert!(gateway.drain(Duration::from_secs(60)).await, "no request was cut off");
    let answered = waiting.await.unwrap();
    let placed = answered.order(202);
    assert_eq!(answered.header("location"), Some(path_of(&placed).as_str()));
}

/// A caller may also wait by reading its order. A caller that does not wait gets the state of its order as usual.
#[tokio::test]
async fn callers_that_wait_by_reading_are_asked_to_come_again_when_the_node_ends() {
    let fixture = Fixture::new().await;
    let path = path_of(&fixture.place("hold-1").await.order(202));
    fixture.until(&path, "solving").await;
    let ask = Ask::get(path.clone()).key(ANNA).header("Prefer", "wait=300");
    let gateway = fixture.gateway.clone();
    let begun = gateway.counts().requests;
    let waiting = ask.send(fixture.address).await;
    eventually("it has been read", async || (gateway.counts().requests > begun).then_some(())).await;
    assert!(gateway.drain(Duration::from_secs(60)).await, "no request was cut off");
    let answered = super::talk::read_callback(waiting).await;
    assert_eq!(answered.order(202)["status"], "pending");
    assert_eq!(answered.header("location"), Some(path.as_str()));
    assert!(answered.header("retry-after").is_some());
}

#[tokio::test]
async fn the_last_hour_is_shown_in_steps() {
    let fixture = Fixture::new().await;
    now(&fixture).await;
    for n in 0..7 {
        fixture.place(&format!("solve-{n}")).await;
    }
    until(&fixture, |picture| picture["today"]["asked"] == 7).await;
    fixture.pass(Duration::from_secs(5));
    let history = eventually("a second sample", async || {
        now(&fixture).await;
        let history = fixture.ask(Ask::get("/v1/admin/history").key(ADMIN)).await.order(200);
        (history["samples"].as_array().unwrap().len() > 1).then_some(history)
    })
    .await;
    assert_eq!(history["step_ms"], 5000);
    let samples = history["samples"].as_array().unwrap();
    let asked: u64 = samples.iter().map(|sample| sample["asked"].as_u64().unwrap()).sum();
    assert_eq!((samples.len(), asked), (2, 7), "{history}");
    assert!(samples[1]["p50_ms"].is_u64() && samples[1]["spent_micros"] == 7 * 2990);
    assert_eq!(now(&fixture).await["sample"], samples[1], "the sample of a snapshot continues the history");
}

#[tokio::test]
async fn the_settings_in_force_are_shown_as_they_were_given() {
    let shown = vec![ShownSetting {
        name: "provider.main.key".into(),
        value: "set".into(),
        origin: "env <b>KEY</b>".into(),
    }];
    let fixture = Fixture::operated(AdminSettings { shown, ..AdminSettings::default() }).await;
    let settings = fixture.ask(Ask::get("/v1/admin/settings").key(ADMIN)).await.order(200);
    let setting = json!({ "name": "provider.main.key", "value": "set", "origin": "env <b>KEY</b>" });
    assert_eq!(settings, json!({ "settings": [setting] }));
}
