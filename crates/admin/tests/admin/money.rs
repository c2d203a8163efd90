//! Unknown is not zero: an answer without a price has no cost. A sum of which only unknown prices are missing is not
//! known either, wherever money is shown.

use super::fixture::{ADMIN, ANNA, Fixture, exclusive, path_of};
use super::talk::Ask;
use crate::eventually::eventually;
use quittance_gateway::{KeyDigest, TenantSettings};
use quittance_lifecycle::Money;
use serde_json::{Value, json};
use std::time::Duration;

async fn operator(fixture: &Fixture, path: &str) -> Value {
    fixture.ask(Ask::get(path).key(ADMIN)).await.order(200)
}

/// Repeats a request, while time passes, until the response is as expected.
async fn until(fixture: &Fixture, path: &str, is_so: impl Fn(&Value) -> bool) -> Value {
    eventually(path, async || {
        fixture.pass(Duration::from_millis(50));
        Some(operator(fixture, path).await).filter(&is_so)
    })
    .await
}

/// Buys an answer that comes by callback, which contains no price.
async fn buy_unpriced(fixture: &Fixture, sitekey: &str) -> String {
    let placed = fixture.ask(Ask::post("/v1/orders", &exclusive(sitekey)).key(ANNA)).await.order(202);
    fixture.call_back(sitekey, "unpriced-token").await;
    path_of(&placed)
}

/// Lets an answer expire before its caller fetches it.
async fn waste(fixture: &Fixture, paths: &[&str]) {
    fixture.pass(Duration::from_secs(3600));
    for path in paths {
        assert_ne!(fixture.get(path).await.order(200)["status"], "solved");
    }
}

fn metric<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    text.lines()
        .find(|line| line.starts_with(&format!("{name}{{")))
        .and_then(|line| line.split(' ').next_back())
}

#[tokio::test]
async fn wasted_answers_without_a_price_have_no_known_cost_in_the_stock() {
    let fixture = Fixture::new().await;
    let paths = [buy_unpriced(&fixture, "hold-1").await, buy_unpriced(&fixture, "hold-2").await];
    waste(&fixture, &[&paths[0], &paths[1]]).await;
    let stock = until(&fixture, "/v1/stock", |stock| stock["all"]["wasted"] == 2).await;
    for counts in [&stock["all"], &stock["rows"][0]] {
        assert_eq!(
            (&counts["wasted_cost"], &counts["wasted_micros"]),
            (&Value::Null, &Value::Null),
            "{counts}"
        );
        assert_eq!(counts["wasted_unpriced"], 2, "{counts}");
    }
    assert_eq!(stock["currency"], "USD");
    let usage = operator(&fixture, "/v1/admin/usage").await;
    assert!(usage["all"]["wasted_micros"].is_null() && usage["all"]["wasted_cost"].is_null(), "{usage}");
}

#[tokio::test]
async fn an_answer_that_is_wasted_on_another_day_than_it_was_bought_has_no_known_cost_either() {
    let fixture = Fixture::new().await;
    let path = buy_unpriced(&fixture, "hold-1").await;
    fixture.pass(Duration::from_secs(24 * 3600));
    waste(&fixture, &[&path]).await;
    let usage = until(&fixture, "/v1/admin/usage", |usage| usage["all"]["wasted"] == 1).await;
    assert_eq!((&usage["all"]["unpriced"], &usage["all"]["cost_micros"]), (&json!(0), &json!(0)), "{usage}");
    assert!(usage["all"]["wasted_micros"].is_null(), "{usage}");
}

#[tokio::test]
async fn a_sum_of_some_known_prices_is_shown_with_how_many_are_missing() {
    let fixture = Fixture::new().await;
    let unpriced = buy_unpriced(&fixture, "hold-1").await;
    let placed = fixture.ask(Ask::post("/v1/orders", &exclusive("solve-1")).key(ANNA)).await;
    let priced = path_of(&placed.json());
    fixture.run_out(&priced).await;
    waste(&fixture, &[&unpriced]).await;
    let stock = until(&fixture, "/v1/stock", |stock| stock["all"]["wasted"] == 1).await;
    assert!(stock["all"]["wasted_micros"].is_null(), "{stock}");
    let now = until(&fixture, "/v1/admin/now", |now| now["today"]["wasted"] == 1).await;
    let today = &now["today"];
    assert_eq!((&today["cost_micros"], &today["unpriced"]), (&json!(2990), &json!(1)), "{today}");
    assert!(today["wasted_micros"].is_null() && today["wasted_unpriced"] == 1, "{today}");
    let text = fixture.ask(Ask::get("/metrics").key(ADMIN)).await.text;
    assert_eq!(
        (metric(&text, "quittance_cost_micros_total"), metric(&text, "quittance_unpriced_total")),
        (Some("2990"), Some("1"))
    );
    assert_eq!(metric(&text, "quittance_wasted_micros_total"), None, "{text}");
}

#[tokio::test]
async fn the_picture_and_the_metrics_have_no_cost_where_no_price_is_known() {
    let fixture = Fixture::new().await;
    buy_unpriced(&fixture, "hold-1").await;
    let now = until(&fixture, "/v1/admin/now", |now| now["today"]["unpriced"] == 1).await;
    assert_eq!(now["today"]["cost_micros"], Value::Null, "{now}");
    assert_eq!(now["today"]["wasted_micros"], 0, "nothing was wasted");
    let text = fixture.ask(Ask::get("/metrics").key(ADMIN)).await.text;
    assert_eq!(metric(&text, "quittance_unpriced_total"), Some("1"));
    assert_eq!(metric(&text, "quittance_cost_micros_total"), None, "{text}");
    let help = text.lines().find(|line| line.starts_with("# HELP quittance_cost_micros_total")).unwrap();
    assert!(help.contains("known price") && help.contains("USD"), "{help}");
}

#[tokio::test]
async fn a_pool_whose_refills_have_no_price_does_not_say_that_it_spent_nothing() {
    let fixture = Fixture::new().await;
    let pool = json!({ "tenant": "anna", "kind": "turnstile", "size": 2,
        "params": { "sitekey": "hold-1", "pageurl": "https://shop.example.com/" } });
    fixture.ask(Ask::put("/v1/pools/warm", &pool).key(ADMIN)).await.order(200);
    let shown = until(&fixture, "/v1/pools/warm", |pool| pool["spent"]["refills"] == 2).await;
    let spent = json!({ "money": null, "money_micros": null, "refills": 2, "unpriced": 2 });
    assert_eq!(shown["spent"], spent, "{shown}");
    let text = fixture.ask(Ask::get("/metrics").key(ADMIN)).await.text;
    assert_eq!(
        (metric(&text, "quittance_pool_unpriced"), metric(&text, "quittance_pool_spent_micros")),
        (Some("2"), None)
    );
}

#[tokio::test]
async fn what_has_joined_an_answer_without_a_price_saved_an_amount_that_is_not_known() {
    let fixture = Fixture::new().await;
    fixture.place("hold-1").await.order(202);
    fixture.place("hold-1").await.order(202);
    // The price is not known before the answer comes, and not known when it came.
    let now = until(&fixture, "/v1/admin/now", |now| now["today"]["joined"] == 1).await;
    assert_eq!(now["today"]["saved_micros"], Value::Null, "{now}");
    let usage = operator(&fixture, "/v1/admin/usage").await;
    assert!(usage["all"]["saved_micros"].is_null() && usage["all"]["saved"].is_null(), "{usage}");
}

/// The task may have been charged, so 0 would be a guess everywhere.
#[tokio::test]
async fn what_was_taken_and_never_answered_has_a_cost_that_is_not_known() {
    let fixture = Fixture::new().await;
    fixture.place("hold-1").await.order(202);
    until(&fixture, "/v1/admin/usage", |usage| usage["all"]["paid"] == 1).await;
    fixture.pass(Duration::from_secs(400));
    let usage = until(&fixture, "/v1/admin/usage", |usage| usage["all"]["dead"] == 1).await;
    assert!(usage["all"]["cost_micros"].is_null() && usage["all"]["spent"].is_null(), "{usage}");
    assert_eq!(usage["all"]["unpriced"], 1, "{usage}");
    let dead = operator(&fixture, "/v1/admin/dead").await;
    let letter = &dead["orders"][0];
    assert!(letter["spent_micros"].is_null() && letter["unpriced"] == 1, "{letter}");
    assert_eq!(letter["currency"], "USD", "{letter}");
    let audit = operator(&fixture, "/v1/admin/audit").await;
    let entry = &audit["entries"][0];
    assert!(entry["cost_micros"].is_null() && entry["unpriced"] == true, "{entry}");
    let history = operator(&fixture, "/v1/admin/history").await;
    assert_eq!(history["currency"], "USD", "{history}");
}

/// The cost of an order without an answer, in its own view: in millionths, with the number of missing prices.
async fn cost_of(fixture: &Fixture, path: &str, status: &str) -> (Value, Value) {
    let order = fixture.get(path).await.order(200);
    assert_eq!((&order["status"], &order["currency"]), (&json!(status), &json!("USD")), "{order}");
    let decimal = order["cost_micros"].as_u64().map(|micros| Money(micros).to_string());
    assert_eq!(order["cost"].as_str(), decimal.as_deref(), "{order}");
    (order["cost_micros"].clone(), order["unpriced"].clone())
}

async fn placed(fixture: &Fixture, sitekey: &str) -> String {
    path_of(&fixture.ask(Ask::post("/v1/orders", &exclusive(sitekey)).key(ANNA)).await.json())
}

/// An answer that expired before its caller fetched it was paid for.
#[tokio::test]
async fn an_order_whose_answer_expired_shows_what_is_known_of_its_cost() {
    let fixture = Fixture::new().await;
    let unpriced = buy_unpriced(&fixture, "hold-1").await;
    let priced = placed(&fixture, "hold-2").await;
    fixture.call_back("hold-2", "token").await;
    // One is never read, and expires; the other is read once and then expires in the hands of its caller.
    let collected = placed(&fixture, "hold-3").await;
    fixture.call_back("hold-3", "token").await;
    assert_eq!(fixture.run_out(&collected).await["cost_micros"], 2990);
    waste(&fixture, &[&unpriced, &priced, &collected]).await;
    assert_eq!(cost_of(&fixture, &priced, "expired").await, (json!(2990), json!(0)));
    assert_eq!(cost_of(&fixture, &collected, "expired").await, (json!(2990), json!(0)));
    assert_eq!(cost_of(&fixture, &unpriced, "expired").await, (Value::Null, json!(1)));
}

/// A task that was rejected at the submit was not charged, and that is known. A task that was taken and never
/// answered may have been charged.
#[tokio::test]
async fn an_order_that_came_to_no_answer_shows_what_is_known_of_its_cost() {
    let fixture = Fixture::new().await;
    let rejected = placed(&fixture, "refuse-1").await;
    fixture.run_out(&rejected).await;
    assert_eq!(cost_of(&fixture, &rejected, "failed").await, (json!(0), json!(0)));
    let silent = placed(&fixture, "hold-1").await;
    fixture.until(&silent, "solving").await;
    assert_eq!(cost_of(&fixture, &silent, "pending").await, (Value::Null, json!(0)), "no cost yet");
    fixture.pass(Duration::from_secs(400));
    fixture.until(&silent, "dead").await;
    assert_eq!(cost_of(&fixture, &silent, "dead").await, (Value::Null, json!(1)));
    let key = fixture.get(&silent).await.json()["key"].as_str().unwrap().to_owned();
    let timeline = operator(&fixture, &format!("/v1/admin/orders/{key}")).await;
    assert!(timeline["spent_micros"].is_null() && timeline["unpriced"] == 1, "{timeline}");
}

/// The account is in another currency now. Older amounts keep their own currency everywhere.
#[tokio::test]
async fn what_was_counted_in_another_currency_is_never_relabelled() {
    let fixture = Fixture::new().await;
    let path = placed(&fixture, "solve-1").await;
    assert_eq!(fixture.run_out(&path).await["cost_micros"], 2990);
    until(&fixture, "/v1/admin/usage", |usage| usage["all"]["priced"] == 1).await;
    let anna = TenantSettings::new("anna", KeyDigest::of(ANNA));
    let (_twin, address) = fixture.twin_in("RUB", vec![anna]).await;
    let ask = async |ask: Ask| ask.of(address).await;
    let order = ask(Ask::get(&*path).key(ANNA)).await.order(200);
    assert_eq!((&order["cost"], &order["currency"]), (&json!("0.00299"), &json!("USD")), "{order}");
    let usage = ask(Ask::get("/v1/admin/usage?by=provider").key(ADMIN)).await.order(200);
    assert_eq!((&usage["currency"], usage["rows"].as_array().unwrap().len()), (&json!("RUB"), 1), "{usage}");
    assert!(usage["all"]["cost_micros"].is_null() && usage["all"]["unpriced"] == 1, "{usage}");
    let dollars = json!([{ "currency": "USD", "spent": "0.00299", "cost_micros": 2990, "unpriced": 0, "wasted_micros": 0 }]);
    assert_eq!(usage["other_currencies"], dollars, "{usage}");
    let audit = ask(Ask::get("/v1/admin/audit").key(ADMIN)).await.order(200);
    let entry = &audit["entries"][0];
    assert_eq!((&entry["cost"], &entry["currency"]), (&json!("0.00299"), &json!("USD")), "{audit}");
    let text = ask(Ask::get("/metrics").key(ADMIN)).await.text;
    let sums = ["quittance_cost_micros_total", "quittance_unpriced_total"].map(|name| metric(&text, name));
    assert_eq!(sums, [None, Some("1")], "{text}");
    // A protocol that names no currency tells no price in another one.
    let id = path.rsplit('/').next().unwrap();
    let polled = ask(Ask::get(format!("/res.php?key={ANNA}&action=get2&id={id}"))).await.text;
    assert_eq!(polled, "OK|token of solve-1");
}
