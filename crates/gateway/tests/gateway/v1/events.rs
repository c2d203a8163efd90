//! Tests of live events.

use super::fixture::{ADMIN, ANNA, BERT, Fixture, order, path_of};
use super::talk::Ask;
use serde_json::{Value, json};

#[tokio::test]
async fn one_order_is_watched_from_now_to_its_end() {
    let fixture = Fixture::new().await;
    let path = path_of(&fixture.place("hold-1").await.order(202));
    let mut live = Ask::get(format!("{path}/events")).key(ANNA).live(fixture.address).await;
    assert_eq!(live.greeting().await, "retry: 2000");
    let (name, first) = live.next().await.unwrap();
    assert_eq!((name.as_str(), &first["status"]), ("order", &json!("pending")), "it is sent at once");
    fixture.call_back("hold-1", "token").await;
    let mut last = first;
    while let Some((name, order)) = live.next().await {
        assert_eq!((name.as_str(), &order["id"]), ("order", &last["id"]));
        last = order;
    }
    assert_eq!(
        (&last["status"], &last["answer"]["text"]),
        (&json!("solved"), &json!("token")),
        "and then it closes"
    );
}

#[tokio::test]
async fn an_order_that_is_over_is_sent_once() {
    let fixture = Fixture::new().await;
    let path = path_of(&fixture.place("solve-1").await.order(202));
    fixture.end_of(&path).await;
    let mut live = Ask::get(format!("{path}/events")).key(ANNA).live(fixture.address).await;
    assert_eq!(live.next().await.unwrap().1["answer"]["text"], "token of solve-1");
    assert_eq!(live.next().await, None);
}

#[tokio::test]
async fn an_order_that_is_cancelled_ends_its_stream() {
    let fixture = Fixture::new().await;
    let path = path_of(&fixture.place("hold-1").await.order(202));
    let mut live = Ask::get(format!("{path}/events")).key(ANNA).live(fixture.address).await;
    live.next().await.unwrap();
    fixture.ask(Ask::new("DELETE", &path).key(ANNA)).await.order(200);
    let mut last = Value::Null;
    while let Some((_, order)) = live.next().await {
        last = order;
    }
    assert_eq!(last["status"], "cancelled");
}

#[tokio::test]
async fn each_tenant_watches_its_own_orders_and_the_operator_all() {
    let fixture = Fixture::new().await;
    let mut of_anna = Ask::get("/v1/events").key(ANNA).live(fixture.address).await;
    let mut of_bert = Ask::get("/v1/events").key(BERT).live(fixture.address).await;
    let mut of_all = Ask::get("/v1/events").key(ADMIN).live(fixture.address).await;
    let by_anna = fixture.place("solve-a").await.order(202)["id"].clone();
    fixture.end_of(&format!("/v1/orders/{}", by_anna.as_str().unwrap())).await;
    let by_bert =
        fixture.ask(Ask::post("/v1/orders", &order("solve-b")).key(BERT)).await.order(202)["id"].clone();
    let mut seen = Vec::new();
    while seen.last() != Some(&(by_bert.clone(), json!("solved"))) {
        let (name, change) = of_all.next().await.unwrap();
        assert_eq!(name, "change");
        assert!(!change.to_string().contains("solve-") && change.get("answer").is_none(), "{change}");
        assert_eq!(
            (&change["kind"], &change["at"]),
            (&json!("turnstile"), &json!("2100-01-01T00:00:00.000Z"))
        );
        seen.push((change["id"].clone(), change["status"].clone()));
    }
    assert!(seen.contains(&(by_anna.clone(), json!("solved"))), "{seen:?}");
    for (live, id) in [(&mut of_anna, &by_anna), (&mut of_bert, &by_bert)] {
        let mut phases = Vec::new();
        while phases.last() != Some(&json!("solved")) {
            let (_, change) = live.next().await.unwrap();
            assert_eq!(&change["id"], id, "no tenant sees another's");
            phases.push(change["phase"].clone());
        }
        assert_eq!(phases, ["queued", "submitting", "solved"], "each step is sent once");
    }
}

#[tokio::test]
async fn a_stream_that_is_left_is_given_back() {
    let fixture = Fixture::new().await;
    let streams =
        || async { fixture.ask(Ask::get("/v1/admin/state").key(ADMIN)).await.order(200)["streams"].clone() };
    let live = Ask::get("/v1/events").key(ANNA).live(fixture.address).await;
    assert_eq!(streams().await, 1);
    drop(live);
    while streams().await != 0 {
        // The server learns of it when it has something to say.
        fixture.place("solve-1").await;
        tokio::task::yield_now().await;
    }
}
