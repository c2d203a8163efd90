//! What is not known is not zero: an answer without a price has no cost, and a sum that only lacks prices is not known, wherever
//! money is shown.

use crate::eventually::eventually;
use crate::talk::Ask;
use crate::world::{ADMIN, ANNA, Room, exclusive, path_of};
use serde_json::{Value, json};
use std::time::Duration;

async fn operator(room: &Room, path: &str) -> Value {
    room.ask(Ask::get(path).key(ADMIN)).await.order(200)
}

/// Asks until the response is as it should be, and lets a little time pass between.
async fn until(room: &Room, path: &str, is_so: impl Fn(&Value) -> bool) -> Value {
    eventually(path, async || {
        room.pass(Duration::from_millis(50));
        Some(operator(room, path).await).filter(&is_so)
    })
    .await
}

/// Buys an answer that comes by callback, which says no price.
async fn buy_unpriced(room: &Room, sitekey: &str) -> String {
    let placed = room.ask(Ask::post("/v1/orders", &exclusive(sitekey)).key(ANNA)).await.order(202);
    room.call_back(sitekey, "unpriced-token").await;
    path_of(&placed)
}

/// Lets its answer expire before its caller comes.
async fn waste(room: &Room, paths: &[&str]) {
    room.pass(Duration::from_secs(3600));
    for path in paths {
        assert_ne!(room.get(path).await.order(200)["status"], "solved");
    }
}

fn metric<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    text.lines()
        .find(|line| line.starts_with(&format!("{name}{{")))
        .and_then(|line| line.split(' ').next_back())
}

#[tokio::test]
async fn wasted_answers_without_a_price_have_no_known_cost_in_the_stock() {
    let room = Room::new().await;
    let paths = [buy_unpriced(&room, "hold-1").await, buy_unpriced(&room, "hold-2").await];
    waste(&room, &[&paths[0], &paths[1]]).await;
    let stock = until(&room, "/v1/stock", |stock| stock["all"]["wasted"] == 2).await;
    for counts in [&stock["all"], &stock["lines"][0]] {
        assert_eq!(
            (&counts["wasted_cost"], &counts["wasted_micros"]),
            (&Value::Null, &Value::Null),
            "{counts}"
        );
        assert_eq!(counts["wasted_unpriced"], 2, "{counts}");
    }
    assert_eq!(stock["currency"], "USD");
    let usage = operator(&room, "/v1/admin/report").await;
    assert!(usage["all"]["wasted_micros"].is_null() && usage["all"]["wasted_cost"].is_null(), "{usage}");
}

#[tokio::test]
async fn an_answer_that_is_wasted_on_another_day_than_it_was_bought_has_no_known_cost_either() {
    let room = Room::new().await;
    let path = buy_unpriced(&room, "hold-1").await;
    room.pass(Duration::from_secs(24 * 3600));
    waste(&room, &[&path]).await;
    let usage = until(&room, "/v1/admin/report", |usage| usage["all"]["wasted"] == 1).await;
    assert_eq!((&usage["all"]["unpriced"], &usage["all"]["cost_micros"]), (&json!(0), &json!(0)), "{usage}");
    assert!(usage["all"]["wasted_micros"].is_null(), "{usage}");
}

#[tokio::test]
async fn a_sum_of_some_known_prices_is_told_with_how_many_are_missing() {
    let room = Room::new().await;
    let unpriced = buy_unpriced(&room, "hold-1").await;
    let placed = room.ask(Ask::post("/v1/orders", &exclusive("solve-1")).key(ANNA)).await;
    let priced = path_of(&placed.json());
    room.run_out(&priced).await;
    waste(&room, &[&unpriced]).await;
    let stock = until(&room, "/v1/stock", |stock| stock["all"]["wasted"] == 1).await;
    assert!(stock["all"]["wasted_micros"].is_null(), "{stock}");
    let now = until(&room, "/v1/admin/now", |now| now["today"]["wasted"] == 1).await;
    let today = &now["today"];
    assert_eq!((&today["cost_micros"], &today["unpriced"]), (&json!(2990), &json!(1)), "{today}");
    assert!(today["wasted_micros"].is_null() && today["wasted_unpriced"] == 1, "{today}");
    let text = room.ask(Ask::get("/metrics").key(ADMIN)).await.text;
    assert_eq!(
        (metric(&text, "quittance_cost_micros_total"), metric(&text, "quittance_unpriced_total")),
        (Some("2990"), Some("1"))
    );
    assert_eq!(metric(&text, "quittance_wasted_micros_total"), None, "{text}");
}

#[tokio::test]
async fn the_picture_and_the_metrics_have_no_cost_where_no_price_is_known() {
    let room = Room::new().await;
    buy_unpriced(&room, "hold-1").await;
    let now = until(&room, "/v1/admin/now", |now| now["today"]["unpriced"] == 1).await;
    assert_eq!(now["today"]["cost_micros"], Value::Null, "{now}");
    assert_eq!(now["today"]["wasted_micros"], 0, "nothing was wasted");
    let text = room.ask(Ask::get("/metrics").key(ADMIN)).await.text;
    assert_eq!(metric(&text, "quittance_unpriced_total"), Some("1"));
    assert_eq!(metric(&text, "quittance_cost_micros_total"), None, "{text}");
    let help = text.lines().find(|line| line.starts_with("# HELP quittance_cost_micros_total")).unwrap();
    assert!(help.contains("whose price is known") && help.contains("USD"), "{help}");
}

#[tokio::test]
async fn a_pool_whose_refills_have_no_price_does_not_say_that_it_spent_nothing() {
    let room = Room::new().await;
    let pool = json!({ "tenant": "anna", "kind": "turnstile", "size": 2,
        "params": { "sitekey": "hold-1", "pageurl": "https://shop.example.com/" } });
    room.ask(Ask::put("/v1/pools/warm", &pool).key(ADMIN)).await.order(200);
    let shown = until(&room, "/v1/pools/warm", |pool| pool["spent"]["refills"] == 2).await;
    let spent = json!({ "money": null, "money_micros": null, "refills": 2, "unpriced": 2 });
    assert_eq!(shown["spent"], spent, "{shown}");
    let text = room.ask(Ask::get("/metrics").key(ADMIN)).await.text;
    assert_eq!(
        (metric(&text, "quittance_pool_unpriced"), metric(&text, "quittance_pool_spent_micros")),
        (Some("2"), None)
    );
}

#[tokio::test]
async fn what_has_joined_an_answer_without_a_price_saved_an_amount_that_is_not_known() {
    let room = Room::new().await;
    room.place("hold-1").await.order(202);
    room.place("hold-1").await.order(202);
    // The price is not known before the answer comes, and not known when it came.
    let now = until(&room, "/v1/admin/now", |now| now["today"]["joined"] == 1).await;
    assert_eq!(now["today"]["saved_micros"], Value::Null, "{now}");
    let usage = operator(&room, "/v1/admin/report").await;
    assert!(usage["all"]["saved_micros"].is_null() && usage["all"]["saved"].is_null(), "{usage}");
}

/// It may have been charged: 0 would be a guess, in every place.
#[tokio::test]
async fn what_was_taken_and_never_answered_has_a_cost_that_is_not_known() {
    let room = Room::new().await;
    room.place("hold-1").await.order(202);
    until(&room, "/v1/admin/report", |usage| usage["all"]["paid"] == 1).await;
    room.pass(Duration::from_secs(400));
    let usage = until(&room, "/v1/admin/report", |usage| usage["all"]["dead"] == 1).await;
    assert!(usage["all"]["cost_micros"].is_null() && usage["all"]["spent"].is_null(), "{usage}");
    assert_eq!(usage["all"]["unpriced"], 1, "{usage}");
    let dead = operator(&room, "/v1/admin/dead").await;
    let letter = &dead["orders"][0];
    assert!(letter["spent_micros"].is_null() && letter["unpriced"] == 1, "{letter}");
    assert_eq!(letter["currency"], "USD", "{letter}");
    let audit = operator(&room, "/v1/admin/audit").await;
    let entry = &audit["entries"][0];
    assert!(entry["cost_micros"].is_null() && entry["unpriced"] == true, "{entry}");
    let history = operator(&room, "/v1/admin/history").await;
    assert_eq!(history["currency"], "USD", "{history}");
}
