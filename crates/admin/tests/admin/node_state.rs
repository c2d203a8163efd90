//! Requests that need the operator's key.

use super::fixture::{ADMIN, ANNA, Fixture, order, path_of};
use super::talk::Ask;
use serde_json::json;

const UNKNOWN_KEY: &str = "00000000000000000000000000000000000000000000000000000000000000ff";

fn asks() -> Vec<Ask> {
    vec![
        Ask::get("/v1/admin/find?q=anna"),
        Ask::get(format!("/v1/admin/orders/{UNKNOWN_KEY}")),
        Ask::post(format!("/v1/admin/orders/{UNKNOWN_KEY}/note"), &json!({ "text": "mine" })),
        Ask::get("/v1/admin/dead"),
        Ask::get("/v1/admin/dead/export"),
        Ask::new("POST", "/v1/admin/dead/import").body("{}"),
        Ask::post("/v1/admin/dead/bulk", &json!({ "action": "replay" })),
        Ask::get("/v1/admin/dead/bulk"),
        Ask::get("/v1/admin/dead/bulk/1"),
        Ask::new("DELETE", "/v1/admin/dead/bulk/1"),
        Ask::new("POST", format!("/v1/admin/dead/{UNKNOWN_KEY}/replay")),
        Ask::new("POST", format!("/v1/admin/dead/{UNKNOWN_KEY}/drop")),
        Ask::new("POST", "/v1/admin/resume"),
        Ask::get("/v1/admin/providers"),
        Ask::get("/v1/admin/providers/main"),
        Ask::new("POST", "/v1/admin/providers/main/pause"),
        Ask::new("POST", "/v1/admin/providers/main/resume"),
        Ask::new("POST", "/v1/admin/providers/main/drain"),
        Ask::get("/v1/admin/state"),
        Ask::get("/v1/admin/now"),
        Ask::get("/v1/admin/live"),
        Ask::get("/v1/admin/history"),
        Ask::get("/v1/admin/alerts"),
        Ask::post("/v1/admin/alerts/seen", &json!({ "rule": "store_away", "subject": "" })),
        Ask::get("/v1/admin/settings"),
        Ask::get("/v1/account"),
        Ask::get("/v1/pools"),
        Ask::get("/v1/pools/warm"),
        Ask::put("/v1/pools/warm", &json!({})),
        Ask::new("DELETE", "/v1/pools/warm"),
        Ask::get("/metrics"),
    ]
}

#[tokio::test]
async fn a_tenants_key_opens_nothing_of_the_operators() {
    let fixture = Fixture::new().await;
    for ask in asks() {
        fixture.ask(ask.clone()).await.must_be(401, "unauthorized");
        fixture.ask(ask.clone().key(ANNA)).await.must_be(403, "forbidden");
        fixture.ask(ask.key("unknown")).await.must_be(401, "unauthorized");
    }
}

#[tokio::test]
async fn dead_letters_of_all_tenants_are_listed_replayed_and_dropped() {
    let fixture = Fixture::new().await;
    let dead = fixture.run_out(&path_of(&fixture.place("die-1").await.order(202))).await;
    assert_eq!((&dead["status"], &dead["error"]["code"]), (&json!("dead"), &json!("retries_spent")));
    let key = dead["key"].as_str().unwrap();
    let listed = fixture.ask(Ask::get("/v1/admin/dead").key(ADMIN)).await.order(200);
    let letter = &listed["orders"][0];
    assert_eq!(
        (&letter["tenant"], &letter["key"], &letter["status"]),
        (&json!("anna"), &dead["key"], &json!("dead"))
    );
    assert_eq!(fixture.get("/v1/orders?status=dead").await.order(200)["orders"][0]["id"], dead["id"]);

    let tell = |what: &str| fixture.ask(Ask::new("POST", format!("/v1/admin/dead/{key}/{what}")).key(ADMIN));
    let before = fixture.provider.submits("die-1");
    assert_eq!(tell("replay").await.order(200)["status"], "pending");
    assert_eq!(fixture.run_out(&path_of(&dead)).await["status"], "dead", "it dies again");
    assert!(fixture.provider.submits("die-1") > before);
    assert_eq!(tell("drop").await.order(200)["status"], "cancelled");
    tell("drop").await.must_be(409, "not_dead");
    let refused = tell("replay").await.must_be(409, "not_dead");
    let why = format!("Order {key} is failed, and no dead letter.");
    assert!(refused["detail"].as_str().unwrap().starts_with(&why), "{refused}");
    assert_eq!(fixture.ask(Ask::get("/v1/admin/dead").key(ADMIN)).await.order(200), json!({ "orders": [] }));
    for odd in [UNKNOWN_KEY, "short", "%ff"] {
        let ask = Ask::new("POST", format!("/v1/admin/dead/{odd}/replay")).key(ADMIN);
        fixture.ask(ask).await.must_be(404, "unknown_order");
    }
}

#[tokio::test]
async fn an_account_without_money_holds_everything_until_it_is_resumed() {
    let fixture = Fixture::new().await;
    let path = path_of(&fixture.place("broke-1").await.order(202));
    let state = || fixture.ask(Ask::get("/v1/admin/state").key(ADMIN));
    while state().await.order(200).get("paused").is_none() {
        tokio::task::yield_now().await;
    }
    let shown = state().await.order(200);
    assert_eq!(shown["paused"], json!({ "class": "no_funds", "code": "ERROR_ZERO_BALANCE" }));
    assert_eq!((&shown["forged"], &shown["panics"], &shown["unreadable"]), (&json!(0), &json!(0), &json!(0)));
    assert!(shown["ignored"]["wrong_phase"].is_u64());
    fixture.until(&path, "queued").await;
    let resumed = fixture.ask(Ask::new("POST", "/v1/admin/resume").key(ADMIN)).await.order(200);
    assert_eq!(resumed, json!({ "continued": 1 }));
}

#[tokio::test]
async fn the_account_is_shown_to_the_operator() {
    let fixture = Fixture::new().await;
    let account = fixture.ask(Ask::get("/v1/account").key(ADMIN)).await.order(200);
    let threads = json!({ "total": 5, "working": 2 });
    let expected =
        json!({ "balance": "12.5", "balance_micros": 12_500_000, "currency": "USD", "threads": threads });
    assert_eq!(account, expected);
}

#[tokio::test]
async fn forged_callbacks_are_counted() {
    let fixture = Fixture::new().await;
    fixture.ask(Ask::post("/v1/orders", &order("hold-1")).key(ANNA)).await.order(202);
    fixture.ask(Ask::get("/callback/nonsense?code=stolen")).await;
    assert_eq!(fixture.ask(Ask::get("/v1/admin/state").key(ADMIN)).await.order(200)["forged"], 1);
    assert_eq!(fixture.engine.forged(), 1);
}
