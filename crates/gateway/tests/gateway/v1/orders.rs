//! Tests of an order from its placement to its end.

use super::fixture::{ANNA, Fixture, exclusive, order, path_of};
use super::talk::{Ask, read_callback};
use crate::eventually::eventually;
use serde_json::{Value, json};
use std::time::Duration;

#[tokio::test]
async fn placing_and_waiting_is_one_call() {
    let fixture = Fixture::new().await;
    let ask = Ask::post("/v1/orders", &order("solve-1")).key(ANNA).header("Prefer", "wait=30");
    let answered = fixture.ask(ask).await;
    let order = answered.order(200);
    assert_eq!(answered.header("preference-applied"), Some("wait=30"));
    assert_eq!(answered.header("idempotent-replayed"), None);
    assert_eq!(
        (&order["status"], &order["origin"], &order["kind"]),
        (&json!("solved"), &json!("api"), &json!("turnstile"))
    );
    assert_eq!(order["answer"], json!({ "text": "token of solve-1", "extras": {}, "attempt": 1 }));
    assert_eq!((&order["cost"], &order["cost_micros"]), (&json!("0.00299"), &json!(2990)));
    assert_eq!(order["expires_at"], "2100-01-01T00:05:00.000Z", "a turnstile lives for five minutes");
    assert_eq!(order["expires_in_ms"], 300_000);
    assert_eq!((&order["created_at"], &order["attempts"]), (&json!("2100-01-01T00:00:00.000Z"), &json!(1)));
    assert_eq!(order["key"].as_str().unwrap().len(), 64);
    assert!(order["id"].as_str().unwrap().parse::<u64>().unwrap() <= 1 << 53);
}

/// Trap: an order that was cancelled during its task was listed as open, with the status `cancelled`, until the task
/// ended. It continues for the stock, and no longer belongs to its caller.
#[tokio::test]
async fn a_cancelled_order_is_not_listed_as_open_while_its_task_goes_on() {
    let fixture = Fixture::new().await;
    let mut paths = Vec::new();
    for n in 0..5 {
        let path = path_of(&fixture.place(&format!("hold-{n}")).await.order(202));
        fixture.until(&path, "solving").await;
        paths.push(path);
    }
    for path in &paths[..4] {
        fixture.ask(Ask::new("DELETE", path.clone()).key(ANNA)).await.order(200);
    }
    let listed = async |query: &str| {
        let page = fixture.get(&format!("/v1/orders?{query}")).await.order(200);
        page["orders"].as_array().unwrap().iter().map(path_of).collect::<Vec<_>>()
    };
    assert_eq!(listed("status=open").await, [paths[4].clone()]);
    assert_eq!(listed("status=open&limit=1").await, [paths[4].clone()], "a page is full of open orders");
    assert_eq!(listed("status=all").await.len(), 5);
}

/// Trap: a link checker requested the head of an order, and its answer counted as collected.
#[tokio::test]
async fn head_collects_no_answer_and_claims_none() {
    let fixture = Fixture::new().await;
    let path =
        path_of(&fixture.ask(Ask::post("/v1/orders", &exclusive("hold-1")).key(ANNA)).await.order(202));
    fixture.call_back("hold-1", "token").await;
    let record = async || {
        let listed = fixture.engine.list(quittance_ports::Which::ALL, None, 10).await.unwrap();
        let order = listed.into_iter().flatten().next().unwrap().order;
        (order.phase.name(), order.uncollected)
    };
    eventually("it is solved", async || (record().await.0 == "solved").then_some(())).await;
    let id = path.rsplit('/').next().unwrap();
    for path in [path.clone(), format!("{path}/events"), "/v1/orders?status=all".to_owned()] {
        let seen = fixture.ask(Ask::new("HEAD", path.clone()).key(ANNA).header("Prefer", "wait=5")).await;
        assert_eq!((seen.status, seen.text.as_str()), (200, ""), "{path}");
        assert_eq!(record().await, ("solved", true), "{path}");
    }
    for path in [
        format!("/res.php?key={ANNA}&action=get&id={id}"),
        format!("/in.php?key={ANNA}&method=turnstile&sitekey=hold-1&pageurl=https://shop.example.com/"),
        "/getTaskResult".to_owned(),
    ] {
        let seen = fixture.ask(Ask::new("HEAD", path.clone())).await;
        assert!(!seen.text.contains("token"), "{path}: {seen:?}");
        assert_eq!(record().await, ("solved", true), "{path}");
    }
    assert_eq!(fixture.provider.submits("hold-1"), 1);
    let head = fixture.ask(Ask::new("HEAD", path.clone()).key(ANNA)).await;
    let read = fixture.get(&path).await;
    assert_eq!(read.order(200)["answer"]["text"], "token");
    assert_eq!(head.header("content-length"), read.header("content-length"), "it says what GET would say");
    eventually("it is collected", async || (!record().await.1).then_some(())).await;
}

#[tokio::test]
async fn a_caller_that_does_not_wait_gets_where_and_when_to_look() {
    let fixture = Fixture::new().await;
    let answered = fixture.place("hold-1").await;
    let order = answered.order(202);
    let path = path_of(&order);
    assert_eq!((&order["status"], &order["origin"]), (&json!("pending"), &json!("api")));
    assert_eq!(answered.header("location"), Some(path.as_str()));
    assert!(answered.header("retry-after").unwrap().parse::<u64>().unwrap() >= 1);
    assert!(order.get("answer").is_none() && order["cost"].is_null() && order.get("error").is_none());
    fixture.until(&path, "solving").await;
    fixture.call_back("hold-1", "token").await;
    assert_eq!(fixture.end_of(&path).await["answer"]["text"], "token");
}

#[tokio::test]
async fn a_caller_that_waits_gets_the_answer_when_it_comes_and_a_response_no_later_than_it_wants() {
    let fixture = Fixture::new().await;
    let ask = |wait| Ask::post("/v1/orders", &order("hold-1")).key(ANNA).header("Prefer", wait);
    assert_eq!(fixture.ask(ask("wait=1")).await.order(202)["status"], "pending", "the second is over");
    let (waiting, ()) = tokio::join!(fixture.ask(ask("wait=300")), fixture.call_back("hold-1", "token"));
    let order = waiting.order(200);
    assert_eq!((&order["answer"]["text"], fixture.provider.submits("hold-1")), (&json!("token"), 1));
    let capped = fixture.ask(ask("wait=86400")).await;
    assert_eq!(capped.header("preference-applied"), Some("wait=300"));
}

#[tokio::test]
async fn a_caller_that_hangs_up_loses_nothing() {
    let fixture = Fixture::new().await;
    let ask = Ask::post("/v1/orders", &order("hold-1")).key(ANNA).header("Prefer", "wait=300");
    let waiting = ask.send(fixture.address).await;
    while fixture.provider.submits("hold-1") == 0 {
        tokio::task::yield_now().await;
    }
    drop(waiting);
    fixture.call_back("hold-1", "token").await;
    let again = fixture.place("hold-1").await.order(200);
    assert_eq!((&again["answer"]["text"], fixture.provider.submits("hold-1")), (&json!("token"), 1));
}

#[tokio::test]
async fn an_order_is_cancelled_once_and_not_after_its_end() {
    let fixture = Fixture::new().await;
    let path = path_of(&fixture.place("hold-1").await.order(202));
    let cancel = || fixture.ask(Ask::new("DELETE", path.clone()).key(ANNA));
    let cancelled = cancel().await.order(200);
    assert_eq!(
        (&cancelled["status"], &cancelled["error"]["code"]),
        (&json!("cancelled"), &json!("cancelled"))
    );
    cancel().await.must_be(409, "already_over");
    assert_eq!(fixture.get(&path).await.order(200)["status"], "cancelled");
    let solved = fixture.place("solve-1").await.order(202);
    fixture.end_of(&path_of(&solved)).await;
    fixture.ask(Ask::new("DELETE", path_of(&solved)).key(ANNA)).await.must_be(409, "already_over");
}

#[tokio::test]
async fn a_report_is_recorded_once_and_the_opposite_is_not() {
    let fixture = Fixture::new().await;
    let path = path_of(&fixture.place("hold-1").await.order(202));
    let report = |is_good: bool| {
        fixture.ask(Ask::post(format!("{path}/report"), &json!({ "good": is_good })).key(ANNA))
    };
    report(true).await.must_be(409, "nothing_to_report");
    fixture.until(&path, "solving").await;
    fixture.call_back("hold-1", "token").await;
    for _ in 0..2 {
        let answered = report(false).await;
        assert_eq!((answered.status, answered.json()), (200, json!({ "recorded": true })));
    }
    report(true).await.must_be(409, "contradicted");
}

#[tokio::test]
async fn what_the_provider_refuses_is_answered_and_then_held_back() {
    let fixture = Fixture::new().await;
    let failed = fixture.end_of(&path_of(&fixture.place("refuse-1").await.order(202))).await;
    assert_eq!(failed["status"], "failed");
    assert_eq!(failed["error"]["code"], "rejected");
    assert_eq!(failed["error"]["provider_code"], "ERROR_WRONG_SITEKEY");
    let again = fixture.place("refuse-1").await;
    assert_eq!(again.must_be(422, "held_back")["provider_code"], "ERROR_WRONG_SITEKEY");
    assert_eq!(again.header("retry-after"), Some("30"));
    fixture.pass(Duration::from_secs(31));
    fixture.place("refuse-1").await.order(202);
}

#[tokio::test]
async fn orders_are_listed_page_by_page_without_their_answers() {
    let fixture = Fixture::new().await;
    let mut placed: Vec<Value> = Vec::new();
    for n in 0..5 {
        placed.push(fixture.place(&format!("hold-{n}")).await.order(202)["key"].clone());
    }
    fixture.end_of(&path_of(&fixture.place("solve-1").await.order(202))).await;
    placed.sort_by(|a, b| a.as_str().cmp(&b.as_str()));
    let mut listed = Vec::new();
    let mut path = "/v1/orders?limit=2".to_owned();
    loop {
        let page = fixture.get(&path).await.order(200);
        assert!(page["orders"].as_array().unwrap().len() <= 2);
        listed.extend(page["orders"].as_array().unwrap().iter().map(|order| order["key"].clone()));
        let Some(next) = page["next"].as_str() else { break };
        path = format!("/v1/orders?limit=2&after={next}");
    }
    assert_eq!(listed, placed, "the open ones, each once, in the order of their keys");
    let all = fixture.get("/v1/orders?status=all").await;
    assert_eq!(all.order(200)["orders"].as_array().unwrap().len(), 6);
    assert!(!all.text.contains("token of"), "no list holds an answer: {all:?}");
    assert_eq!(fixture.get("/v1/orders?status=dead").await.order(200), json!({ "orders": [] }));
}

#[tokio::test]
async fn a_file_may_stand_among_the_files_or_among_the_params() {
    let fixture = Fixture::new().await;
    let picture = "A".repeat(400);
    let files = json!({ "kind": "image", "files": { "body": picture } });
    let params = json!({ "kind": "image", "params": { "body": { "base64": picture } } });
    let ask = |body: &Value| fixture.ask(Ask::post("/v1/orders", body).key(ANNA).header("Prefer", "wait=60"));
    let first = ask(&files).await.order(200);
    let second = ask(&params).await.order(200);
    assert_eq!((&first["id"], &second["origin"]), (&second["id"], &json!("cached")), "it is the same order");
    assert!(first.get("expires_at").is_none(), "what is read from a picture lives for ever");
}

#[tokio::test]
async fn numbers_and_flags_are_written_as_providers_want_them() {
    let fixture = Fixture::new().await;
    let page = "https://shop.example.com/";
    let place = |params: Value| {
        let body = json!({ "kind": "recaptcha_v3", "reuse": "shared", "params": params });
        fixture.ask(Ask::post("/v1/orders", &body).key(ANNA))
    };
    let first =
        place(json!({ "googlekey": "k", "pageurl": page, "enterprise": true, "min_score": 0.7 })).await;
    let second =
        place(json!({ "googlekey": "k", "pageurl": page, "enterprise": "1", "min_score": "0.7" })).await;
    assert_eq!(first.json()["id"], second.json()["id"]);
}

#[tokio::test]
async fn two_who_ask_for_the_same_are_given_the_same_and_one_is_paid_for() {
    let fixture = Fixture::new().await;
    let ask = Ask::post("/v1/orders", &order("hold-1")).key(ANNA).header("Prefer", "wait=300");
    let (first, second) = (ask.send(fixture.address).await, ask.send(fixture.address).await);
    fixture.call_back("hold-1", "token").await;
    let (first, second) = (read_callback(first).await.order(200), read_callback(second).await.order(200));
    assert_eq!((&first["id"], &first["answer"]), (&second["id"], &second["answer"]));
    assert_eq!(fixture.provider.submits("hold-1"), 1);
}
