//! The usage, grouped, and every payment with its reason.

use super::fixture::{ADMIN, ANNA, BERT, Fixture, exclusive, keyed, order};
use super::talk::Ask;
use quittance_lifecycle::Counters;
use serde_json::{Value, json};
use std::sync::atomic::Ordering;
use std::time::Duration;

async fn operator(fixture: &Fixture, path: &str) -> Value {
    fixture.ask(Ask::get(path).key(ADMIN)).await.order(200)
}

/// The report, after the worker has written its counters.
async fn report_until(fixture: &Fixture, path: &str, is_there: impl Fn(&Value) -> bool) -> Value {
    for _ in 0..2_000 {
        let report = operator(fixture, path).await;
        if is_there(&report) {
            return report;
        }
        fixture.pass(Duration::from_millis(20));
        tokio::task::yield_now().await;
    }
    panic!("{}", operator(fixture, path).await)
}

/// A day on which Bert buys an answer, and Anna buys one that later orders join and get again.
async fn a_busy_day() -> Fixture {
    let fixture = Fixture::new().await;
    let bought = Ask::post("/v1/orders", &order("hold-b")).key(BERT);
    fixture.ask(bought).await.order(202);
    fixture.call_back("hold-b", "token-b").await;
    fixture.place("hold-a").await.order(202);
    fixture.place("hold-a").await.order(202);
    fixture.call_back("hold-a", "token-a").await;
    fixture.place("hold-a").await.order(200);
    fixture
}

#[tokio::test]
async fn the_report_has_every_line_of_the_usage_by_its_name_and_money_beside_it() {
    let fixture = a_busy_day().await;
    let report = report_until(&fixture, "/v1/admin/usage", |report| report["all"]["cached"] == 1).await;
    let all = report["all"].as_object().unwrap();
    for name in Counters::NAMES {
        assert!(all[*name].is_u64(), "{name}: {all:?}");
    }
    assert_eq!((&all["asked"], &all["joined"], &all["paid"]), (&json!(4), &json!(1), &json!(2)));
    for name in ["spent", "saved", "wasted_cost"] {
        assert!(all[name].is_string(), "{name}: {all:?}");
    }
    assert_eq!((&report["by"], &report["rows"], &report["left_out"]), (&json!([]), &json!([]), &json!(0)));
    assert_eq!((&report["from"], &report["to"]), (&json!("2100-01-01"), &json!("2100-01-01")));
}

#[tokio::test]
async fn rows_are_grouped_by_any_part_and_add_up_to_the_whole() {
    let fixture = a_busy_day().await;
    report_until(&fixture, "/v1/admin/usage", |report| report["all"]["cached"] == 1).await;
    for (by, first) in [
        ("tenant", json!({ "tenant": "anna" })),
        ("day,kind", json!({ "day": "2100-01-01", "kind": "turnstile" })),
        ("site,tenant", json!({ "site": "shop.example.com", "tenant": "anna" })),
        ("provider", json!({ "provider": "" })),
    ] {
        let report = operator(&fixture, &format!("/v1/admin/usage?by={by}")).await;
        assert_eq!(report["by"].as_array().unwrap().len(), by.split(',').count());
        let rows = report["rows"].as_array().unwrap();
        for (name, value) in first.as_object().unwrap() {
            assert_eq!(rows[0][name], *value, "{by}: {rows:?}");
        }
        for name in ["asked", "paid", "joined", "cost_micros", "saved_micros"] {
            let sum: u64 = rows.iter().map(|row| row[name].as_u64().unwrap()).sum();
            assert_eq!(report["all"][name], sum, "{by}: {name}");
        }
    }
}

#[tokio::test]
async fn what_makes_no_sense_to_the_usage_is_refused() {
    let fixture = Fixture::new().await;
    for (query, field) in [
        ("usage?by=colour", "by"),
        ("usage?by=day,day", "by"),
        ("usage?from=today", "from"),
        ("usage?from=2000-01-01", "from"),
        ("usage?tenant=anna", "query"),
        ("audit?after=xyz", "after"),
        ("audit?limit=0", "limit"),
        ("audit?limit=1001", "limit"),
        ("audit?to=2099-02-30", "to"),
        ("audit?by=day", "query"),
    ] {
        let refused = fixture.ask(Ask::get(format!("/v1/admin/{query}")).key(ADMIN)).await;
        assert_eq!(refused.must_be(422, "bad_params")["field"], field, "{query}");
    }
    for path in ["/v1/admin/usage", "/v1/admin/audit"] {
        fixture.ask(Ask::get(path)).await.must_be(401, "unauthorized");
        fixture.ask(Ask::get(path).key(ANNA)).await.must_be(403, "forbidden");
    }
    fixture.store_is_away.store(true, Ordering::Relaxed);
    for path in ["/v1/admin/usage", "/v1/admin/audit"] {
        fixture.ask(Ask::get(path).key(ADMIN)).await.must_be(503, "store_unavailable");
    }
}

#[tokio::test]
async fn each_paid_attempt_is_listed_with_its_reason_and_its_owner() {
    let fixture = a_busy_day().await;
    fixture.stock("hold-s", "kept").await;
    fixture.ask(Ask::post("/v1/orders", &exclusive("hold-s")).key(ANNA)).await.order(200);
    let audit = operator(&fixture, "/v1/admin/audit").await;
    let entries = audit["entries"].as_array().unwrap();
    assert_eq!((entries.len(), &audit["unreadable"], audit.get("next")), (3, &json!(0), None));
    for entry in entries {
        assert_eq!((&entry["state"], &entry["attempt"]), (&json!("answered"), &json!(1)), "{entry}");
        assert_eq!((&entry["kind"], &entry["site"]), (&json!("turnstile"), &json!("shop.example.com")));
        assert_eq!(entry["why"], "the first of the order");
        assert!(entry["task"].is_string() && entry["sent_ms"].as_u64() >= Some(4_102_444_800_000));
        assert_eq!(entry["possible_double"], false);
    }
    let bought_by = |who: &str| entries.iter().filter(|entry| entry["who"] == who).count();
    assert_eq!(
        (
            bought_by("anna, and any placements that joined"),
            bought_by("no order: no caller has the answer yet")
        ),
        (1, 1)
    );
    let taken = entries.iter().find(|entry| entry["claimed_by"].is_string()).unwrap();
    assert_eq!(taken["who"], "another order of anna, from the stock");
    let before = operator(&fixture, "/v1/admin/audit?from=2099-12-01&to=2099-12-31").await;
    assert_eq!(before["entries"], json!([]));
}

#[tokio::test]
async fn the_audit_goes_on_where_the_page_before_has_ended() {
    let fixture = Fixture::new().await;
    for n in 0..7 {
        fixture.ask(keyed(&order("solve-1"), &format!("k-{n}"))).await.order(200);
    }
    let whole = operator(&fixture, "/v1/admin/audit").await;
    assert_eq!(whole["entries"].as_array().unwrap().len(), 7, "{whole}");
    let (mut gathered, mut path) = (Vec::new(), "/v1/admin/audit?limit=2".to_owned());
    loop {
        let page = operator(&fixture, &path).await;
        let entries = page["entries"].as_array().unwrap();
        assert!(entries.len() <= 2, "{page}");
        gathered.extend(entries.iter().cloned());
        let Some(next) = page["next"].as_str() else { break };
        path = format!("/v1/admin/audit?limit=2&after={next}");
    }
    assert_eq!(Value::from(gathered), whole["entries"]);
}
