//! Budgets on the API: what each allows, and what is spent of it.

use super::fixture::{ADMIN, ANNA, Fixture};
use super::talk::Ask;
use quittance_admin::budgets::BudgetList;
use quittance_engine::{AtLimit, BudgetPeriod, BudgetRule, BudgetScope};
use quittance_lifecycle::Money;
use serde_json::{Value, json};

fn rule(name: &str, period: BudgetPeriod, scope: BudgetScope) -> BudgetRule {
    let (limit, currency) = (Money(25_500_000), "USD".to_owned());
    BudgetRule { name: name.into(), scope, period, limit, currency, at_limit: AtLimit::Wait }
}

#[tokio::test]
async fn each_budget_is_shown_with_its_scope_its_period_and_its_amounts() {
    let tenant =
        BudgetScope { tenant: Some("anna".into()), kind: Some("turnstile".into()), ..Default::default() };
    let fixture = Fixture::budgeted(vec![
        rule("all", BudgetPeriod::Month, BudgetScope::default()),
        rule("anna", BudgetPeriod::Hour, tenant),
    ])
    .await;
    let shown = fixture.ask(Ask::get("/v1/admin/budgets").key(ADMIN)).await.order(200);
    // The clock of the fixture stands at the beginning of the year 2100.
    let all = json!({
        "name": "all", "tenant": null, "target": null, "kind": null, "provider": null, "pool": null, "hedges": false,
        "period": "month", "at_limit": "wait", "currency": "USD", "limit": "25.5", "limit_micros": 25_500_000,
        "spent": "0", "spent_micros": 0, "reserved": "0", "reserved_micros": 0, "left": "25.5",
        "left_micros": 25_500_000, "unpriced": 0, "begins": "2100-01-01T00:00:00.000Z",
        "ends": "2100-02-01T00:00:00.000Z", "ends_ms": 4_105_123_200_000_u64, "stopped": null, "runs_out": null,
        "runs_out_ms": null,
    });
    assert_eq!(shown["budgets"][0], all);
    let anna = &shown["budgets"][1];
    assert_eq!(
        (&anna["name"], &anna["tenant"], &anna["kind"]),
        (&json!("anna"), &json!("anna"), &json!("turnstile"))
    );
    assert_eq!(anna["ends"], "2100-01-01T01:00:00.000Z");
    let read: BudgetList = serde_json::from_value(shown.clone()).unwrap();
    assert_eq!(serde_json::to_value(&read).unwrap(), shown, "its type reads it without loss");
}

#[tokio::test]
async fn without_budgets_the_list_is_empty_and_only_the_operator_reads_it() {
    let fixture = Fixture::new().await;
    let shown = fixture.ask(Ask::get("/v1/admin/budgets").key(ADMIN)).await.order(200);
    assert_eq!(shown, json!({ "budgets": [] }));
    fixture.ask(Ask::get("/v1/admin/budgets")).await.must_be(401, "unauthorized");
    fixture.ask(Ask::get("/v1/admin/budgets").key(ANNA)).await.must_be(403, "forbidden");
    fixture
        .ask(Ask::post("/v1/admin/budgets", &Value::Null).key(ADMIN))
        .await
        .must_be(405, "method_not_allowed");
}

#[tokio::test]
async fn the_metrics_have_the_amounts_of_each_budget() {
    let fixture = Fixture::budgeted(vec![rule("all", BudgetPeriod::Day, BudgetScope::default())]).await;
    let text = fixture.ask(Ask::get("/metrics").key(ADMIN)).await.text;
    for line in [
        "quittance_budget_limit_micros{budget=\"all\",currency=\"USD\"} 25500000",
        "quittance_budget_spent_micros{budget=\"all\",currency=\"USD\"} 0",
        "quittance_budget_stopped{budget=\"all\"} 0",
    ] {
        assert!(text.lines().any(|found| found == line), "{line}: {text}");
    }
}
