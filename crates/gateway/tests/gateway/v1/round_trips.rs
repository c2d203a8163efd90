//! What a request costs: whoever is served from the stock, or with what is there already, costs the store one call and the
//! provider none. The worker rests meanwhile, so every call that is counted is the door's.

use super::talk::Ask;
use super::world::{ANNA, BERT, Room, exclusive, order};
use quittance_gateway::{KeyDigest, TenantSettings};
use quittance_lifecycle::Reuse;
use serde_json::{Value, json};

/// Anna shares with nobody, whatever door she comes to.
async fn unshared() -> Room {
    let mut anna = TenantSettings::new("anna", KeyDigest::of(ANNA));
    anna.reuse = Some(Reuse::Exclusive);
    Room::with(vec![anna]).await
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
    let room = Room::new().await;
    room.stock("hold-1", "token-1").await;
    room.stock("hold-1", "token-2").await;
    room.rest().await;
    let ask = Ask::post("/v1/orders", &exclusive("hold-1")).key(ANNA);
    for ask in [ask.clone(), ask.header("Prefer", "wait=60")] {
        let served = room.ask(ask).await.order(200);
        assert_eq!((&served["origin"], &served["status"]), (&json!("stock"), &json!("solved")));
        assert!(served["answer"]["text"].as_str().unwrap().starts_with("token-"));
        assert_eq!(room.store_calls(), ["take"]);
    }
    assert_eq!(room.provider.calls(), 0);
}

#[tokio::test]
async fn a_repeat_of_what_is_solved_costs_one_store_call() {
    let room = Room::new().await;
    let waiting = Ask::post("/v1/orders", &order("solve-1")).key(ANNA).header("Prefer", "wait=60");
    room.ask(waiting.clone()).await.order(200);
    room.place_keyed("solve-2", "k-1").await.order(200);
    room.rest().await;
    for ask in [waiting, Ask::post("/v1/orders", &order("solve-1")).key(ANNA)] {
        assert_eq!(room.ask(ask).await.order(200)["origin"], "cached");
        assert_eq!(room.store_calls(), ["commit"]);
    }
    assert_eq!(room.place_keyed("solve-2", "k-1").await.order(200)["origin"], "replayed");
    assert_eq!(room.store_calls(), ["commit"]);
    assert_eq!(room.provider.calls(), 0);
}

#[tokio::test]
async fn a_new_order_and_each_look_at_it_cost_one_store_call() {
    let room = Room::new().await;
    room.rest().await;
    let placed = room.place("hold-1").await.order(202);
    assert_eq!(room.store_calls(), ["commit"]);
    room.get(&format!("/v1/orders/{}", placed["id"].as_str().unwrap())).await.order(200);
    assert_eq!(room.store_calls(), ["load"]);
}

#[tokio::test]
async fn the_classic_door_costs_one_store_call_for_placing_and_one_for_each_look() {
    let room = unshared().await;
    room.stock("hold-1", "token-1").await;
    room.rest().await;
    let placed = room.ask(Ask::get(in_php("hold-1"))).await.text;
    let id = placed.strip_prefix("OK|").unwrap();
    assert_eq!(room.store_calls(), ["take"]);
    for _ in 0..2 {
        let told = room.ask(Ask::get(format!("/res.php?key={ANNA}&action=get&id={id}"))).await.text;
        assert_eq!((told.as_str(), room.store_calls()), ("OK|token-1", vec!["load"]));
    }
    assert_eq!(room.provider.calls(), 0);
}

#[tokio::test]
async fn the_json_door_costs_one_store_call_for_placing_and_one_for_each_look() {
    let room = unshared().await;
    room.stock("hold-1", "token-1").await;
    room.stock("hold-1", "token-2").await;
    room.rest().await;
    let created = room.ask(Ask::post("/createTask", &task("hold-1"))).await.json();
    assert_eq!((&created["errorId"], room.store_calls()), (&json!(0), vec!["take"]));
    let look = json!({ "clientKey": ANNA, "taskId": created["taskId"] });
    for _ in 0..2 {
        let result = room.ask(Ask::post("/getTaskResult", &look)).await.json();
        assert_eq!((&result["status"], room.store_calls()), (&json!("ready"), vec!["load"]), "{result}");
    }
    let at_once = room.ask(Ask::post("/capsolver/createTask", &task("hold-1"))).await.json();
    assert_eq!((&at_once["status"], room.store_calls()), (&json!("ready"), vec!["take"]), "{at_once}");
    assert_eq!(room.provider.calls(), 0);
}

#[tokio::test]
async fn only_whoever_has_a_limit_pays_for_the_question_whether_he_repeats_himself() {
    let mut bert = TenantSettings::new("bert", KeyDigest::of(BERT));
    bert.open_max = Some(5);
    let room = Room::with(vec![TenantSettings::new("anna", KeyDigest::of(ANNA)), bert]).await;
    room.rest().await;
    room.ask(Ask::post("/v1/orders", &order("hold-1")).key(BERT)).await.order(202);
    assert_eq!(room.store_calls(), ["load", "commit"]);
    room.place("hold-1").await.order(202);
    assert_eq!(room.store_calls(), ["commit"]);
}
