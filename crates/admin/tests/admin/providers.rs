//! Providers on the API: their state, and what an operator does with one.

use super::fixture::{ADMIN, Fixture, path_of};
use super::talk::{Answered, Ask};
use crate::eventually::eventually;
use bytes::Bytes;
use http_body_util::BodyExt;
use hyper::Request;
use quittance_admin::AdminSettings;
use quittance_admin::providers::ProviderDialect;
use serde_json::{Value, json};

async fn two() -> Fixture {
    let dialect = ProviderDialect { protocol: "classic".into(), dialect: "2captcha".into() };
    let dialects = [("main".to_owned(), dialect)].into();
    Fixture::of_two_providers(AdminSettings { dialects, ..AdminSettings::default() }).await
}

async fn get(fixture: &Fixture, path: &str) -> Value {
    fixture.ask(Ask::get(format!("/v1/admin/providers{path}")).key(ADMIN)).await.order(200)
}

async fn post(fixture: &Fixture, path: &str) -> Answered {
    fixture.ask(Ask::new("POST", format!("/v1/admin/providers/{path}")).key(ADMIN)).await
}

/// The provider of the last attempt of an order, by its timeline.
async fn went_to(fixture: &Fixture, order: &Value) -> Value {
    let path = format!("/v1/admin/orders/{}", order["key"].as_str().unwrap());
    let timeline = fixture.ask(Ask::get(path).key(ADMIN)).await.order(200);
    timeline["attempts"]
        .as_array()
        .and_then(|all| all.last())
        .map_or(Value::Null, |it| it["provider"].clone())
}

#[tokio::test]
async fn each_provider_is_shown_with_its_account_and_what_is_not_known_is_null() {
    let fixture = two().await;
    let shown = get(&fixture, "").await;
    let routing = json!({ "rule": "ordered", "busy_wait_ms": 5000, "kinds": {}, "tenants": {} });
    assert_eq!(shown["routing"], routing);
    let expected = |name: &str, protocol: Value, dialect: Value| {
        json!({
            "name": name, "mode": "active", "state": "ok", "until_ms": null, "spacing_ms": null, "fault": null,
            "since_ms": null, "since": null, "currency": "USD", "balance": "12.5", "balance_micros": 12_500_000,
            "threads": { "total": 5, "working": 2 }, "spent_last_day": "0", "spent_last_day_micros": 0,
            "balance_ends": null, "protocol": protocol, "dialect": dialect, "open_tasks": 0,
            "kinds": null, "tenants": null, "weight": 1, "measured": [],
        })
    };
    let main = expected("main", json!("classic"), json!("2captcha"));
    assert_eq!(shown["providers"], json!([main, expected("spare", Value::Null, Value::Null)]));
    assert_eq!(get(&fixture, "/main").await, main);
}

#[tokio::test]
async fn a_paused_provider_gets_nothing_until_it_is_resumed_and_the_other_one_gets_it() {
    let fixture = two().await;
    let paused = post(&fixture, "main/pause").await.order(200);
    assert_eq!(
        (&paused["provider"]["mode"], &paused["provider"]["state"]),
        (&json!("paused"), &json!("paused"))
    );
    assert_eq!((&paused["provider"]["fault"], &paused["continued"]), (&Value::Null, &json!(0)));
    assert_eq!(get(&fixture, "/main").await["state"], "paused");
    let solved = fixture.end_of(&path_of(&fixture.place("solve-1").await.order(202))).await;
    assert_eq!(went_to(&fixture, &solved).await, "spare");

    assert_eq!(post(&fixture, "main/pause").await.order(200), paused, "once is enough");
    assert_eq!(post(&fixture, "main/resume").await.order(200)["provider"]["state"], "ok");
    let solved = fixture.end_of(&path_of(&fixture.place("solve-2").await.order(202))).await;
    assert_eq!(went_to(&fixture, &solved).await, "main");
    let measured = &get(&fixture, "/main").await["measured"][0];
    assert_eq!(
        (&measured["kind"], &measured["solves"], &measured["p50_ms"], &measured["success_permille"]),
        (&json!("turnstile"), &json!(1), &Value::Null, &json!(1000)),
        "one solve is too few for a quantile"
    );
}

#[tokio::test]
async fn a_drained_provider_keeps_its_open_tasks_and_gets_no_more() {
    let fixture = two().await;
    let path = path_of(&fixture.place("hold-1").await.order(202));
    fixture.until(&path, "solving").await;
    let drained = post(&fixture, "main/drain").await.order(200);
    let provider = &drained["provider"];
    assert_eq!(
        (&provider["mode"], &provider["state"], &provider["open_tasks"]),
        (&json!("drained"), &json!("drained"), &json!(1))
    );
    let next = path_of(&fixture.place("hold-2").await.order(202));
    fixture.until(&next, "solving").await;
    assert_eq!(get(&fixture, "/spare").await["open_tasks"], 1);
    fixture.call_back("hold-1", "token").await;
    assert_eq!(fixture.end_of(&path).await["status"], "solved", "its answers are used");
    assert_eq!(get(&fixture, "/main").await["open_tasks"], 0);
}

#[tokio::test]
async fn an_account_without_money_is_shown_with_its_code_and_resumed_with_its_orders() {
    let fixture = two().await;
    assert_eq!(post(&fixture, "spare/pause").await.order(200)["provider"]["state"], "paused");
    let path = path_of(&fixture.place("broke-1").await.order(202));
    let main = eventually("main is paused", async || {
        Some(get(&fixture, "/main").await).filter(|main| main["state"] == "paused")
    })
    .await;
    assert_eq!(main["fault"], json!({ "class": "no_funds", "code": "ERROR_ZERO_BALANCE" }));
    assert_eq!(main["mode"], "active", "no person has paused it");
    fixture.until(&path, "queued").await;
    let resumed = post(&fixture, "main/resume").await.order(200);
    assert!(resumed["continued"].is_u64(), "{resumed}");
    assert_eq!(get(&fixture, "/spare").await["state"], "paused", "the other one stays as it is");
    fixture.ask(Ask::new("POST", "/v1/admin/resume").key(ADMIN)).await.order(200);
    assert_eq!(get(&fixture, "/spare").await["mode"], "active");
}

#[tokio::test]
async fn a_name_that_no_provider_has_is_refused() {
    let fixture = two().await;
    for name in ["other", "MAIN", "%ff", "a%2Fb"] {
        for ask in [
            Ask::get(format!("/v1/admin/providers/{name}")),
            Ask::new("POST", format!("/v1/admin/providers/{name}/pause")),
            Ask::new("POST", format!("/v1/admin/providers/{name}/resume")),
            Ask::new("POST", format!("/v1/admin/providers/{name}/drain")),
        ] {
            fixture.ask(ask.key(ADMIN)).await.must_be(404, "unknown_provider");
        }
    }
    let put = Ask::put("/v1/admin/providers/main", &json!({ "mode": "paused" })).key(ADMIN);
    fixture.ask(put).await.must_be(405, "method_not_allowed");
}

#[tokio::test]
async fn a_process_that_submits_nothing_does_not_claim_to_know_the_state() {
    let fixture = two().await;
    let (gateway, _) = fixture.neighbour(2, AdminSettings { is_idle: true, ..AdminSettings::default() });
    let request = Request::get("/v1/admin/providers").body(Bytes::new()).unwrap();
    let body = gateway.ask(request).await.into_body().collect().await.unwrap().to_bytes();
    let shown: Value = serde_json::from_slice(&body).unwrap();
    assert_eq!(
        (&shown["providers"][0]["mode"], &shown["providers"][0]["state"]),
        (&json!("active"), &Value::Null)
    );
}
