//! Tests of the cost of a request: if the stock or a recorded answer serves it, it costs one call of the store and
//! none of the provider. The worker is stopped, so every counted call comes from the API.

use super::fixture::{ANNA, BERT, Fixture, exclusive, order};
use super::talk::Ask;
use quittance_gateway::{KeyDigest, TenantSettings};
use quittance_lifecycle::Reuse;
use serde_json::{Value, json};

/// A node whose tenant anna shares no answers.
async fn unshared() -> Fixture {
    let mut anna = TenantSettings::new("anna", KeyDigest::of(ANNA));
    anna.reuse = Some(Reuse::Exclusive);
    Fixture::with(vec![anna]).await
}

fn task(sitekey: &str) -> Value {
    json!({ "clientKey": ANNA, "task": {
        "type": "TurnstileTaskProxyless", "websiteKey": sitekey, "websiteURL": "https://shop.example.com/",
    } })
}

fn in_php(sitekey: &str) -> String {
    format!("/in.php?key={ANNA}&method=turnstile&sitekey={sitekey}&pageurl=https://shop.example.com/")
}

#[tokio::test]
async fn an_order_from_the_stock_costs_one_store_call_and_no_provider_call() {
    let fixture = Fixture::new().await;
    fixture.stock("hold-1", "token-1").await;
    fixture.stock("hold-1", "token-2").await;
    fixture.rest().await;
    let ask = Ask::post("/v1/orders", &exclusive("hold-1")).key(ANNA);
    for ask in [ask.clone(), ask.header("Prefer", "wait=60")] {
        let served = fixture.ask(ask).await.order(200);
        assert_eq!((&served["origin"], &served["status"]), (&json!("stock"), &json!("solved")));
        assert!(served["answer"]["text"].as_str().unwrap().starts_with("token-"));
        assert_eq!(fixture.store_calls(), ["take"]);
    }
    assert_eq!(fixture.provider.calls(), 0);
}

#[tokio::test]
async fn a_repeat_of_what_is_solved_costs_one_store_call() {
    let fixture = Fixture::new().await;
    let waiting = Ask::post("/v1/orders", &order("solve-1")).key(ANNA).header("Prefer", "wait=60");
    fixture.ask(waiting.clone()).await.order(200);
    fixture.place_keyed("solve-2", "k-1").await.order(200);
    fixture.rest().await;
    for ask in [waiting, Ask::post("/v1/orders", &order("solve-1")).key(ANNA)] {
        assert_eq!(fixture.ask(ask).await.order(200)["origin"], "cached");
        assert_eq!(fixture.store_calls(), ["commit"]);
    }
    assert_eq!(fixture.place_keyed("solve-2", "k-1").await.order(200)["origin"], "replayed");
    assert_eq!(fixture.store_calls(), ["commit"]);
    assert_eq!(fixture.provider.calls(), 0);
}

#[tokio::test]
async fn a_new_order_and_each_look_at_it_cost_one_store_call() {
    let fixture = Fixture::new().await;
    fixture.rest().await;
    let placed = fixture.place("hold-1").await.order(202);
    assert_eq!(fixture.store_calls(), ["commit"]);
    fixture.get(&format!("/v1/orders/{}", placed["id"].as_str().unwrap())).await.order(200);
    assert_eq!(fixture.store_calls(), ["load"]);
}

#[tokio::test]
async fn the_classic_api_costs_one_store_call_for_placing_and_one_for_each_look() {
    let fixture = unshared().await;
    fixture.stock("hold-1", "token-1").await;
    fixture.rest().await;
    let placed = fixture.ask(Ask::get(in_php("hold-1"))).await.text;
    let id = placed.strip_prefix("OK|").unwrap();
    assert_eq!(fixture.store_calls(), ["take"]);
    for _ in 0..2 {
        let response = fixture.ask(Ask::get(format!("/res.php?key={ANNA}&action=get&id={id}"))).await.text;
        assert_eq!((response.as_str(), fixture.store_calls()), ("OK|token-1", vec!["load"]));
    }
    assert_eq!(fixture.provider.calls(), 0);
}

#[tokio::test]
async fn the_json_api_costs_one_store_call_for_placing_and_one_for_each_look() {
    let fixture = unshared().await;
    fixture.stock("hold-1", "token-1").await;
    fixture.stock("hold-1", "token-2").await;
    fixture.rest().await;
    let created = fixture.ask(Ask::post("/createTask", &task("hold-1"))).await.json();
    assert_eq!((&created["errorId"], fixture.store_calls()), (&json!(0), vec!["take"]));
    let look = json!({ "clientKey": ANNA, "taskId": created["taskId"] });
    for _ in 0..2 {
        let result = fixture.ask(Ask::post("/getTaskResult", &look)).await.json();
        assert_eq!((&result["status"], fixture.store_calls()), (&json!("ready"), vec!["load"]), "{result}");
    }
    let at_once = fixture.ask(Ask::post("/capsolver/createTask", &task("hold-1"))).await.json();
    assert_eq!((&at_once["status"], fixture.store_calls()), (&json!("ready"), vec!["take"]), "{at_once}");
    assert_eq!(fixture.provider.calls(), 0);
}

#[tokio::test]
async fn only_a_tenant_with_a_limit_pays_for_the_question_whether_a_request_is_a_repeat() {
    let mut bert = TenantSettings::new("bert", KeyDigest::of(BERT));
    bert.open_max = Some(5);
    let fixture = Fixture::with(vec![TenantSettings::new("anna", KeyDigest::of(ANNA)), bert]).await;
    fixture.rest().await;
    fixture.ask(Ask::post("/v1/orders", &order("hold-1")).key(BERT)).await.order(202);
    assert_eq!(fixture.store_calls(), ["load", "commit"]);
    fixture.place("hold-1").await.order(202);
    assert_eq!(fixture.store_calls(), ["commit"]);
}
