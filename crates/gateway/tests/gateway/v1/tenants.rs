//! Tests of which callers are accepted, what each may do, and that no tenant sees another's orders.

use super::fixture::{ADMIN, ANNA, BERT, Fixture, order, path_of};
use super::talk::Ask;
use quittance_engine::Targets;
use quittance_engine::targets::HostPattern;
use quittance_gateway::{KeyDigest, Rate, TenantSettings};
use serde_json::json;
use std::time::Duration;

#[tokio::test]
async fn no_caller_is_let_in_without_its_key() {
    let fixture = Fixture::new().await;
    for path in
        ["/v1/orders", "/v1/orders/7", "/v1/me", "/v1/events", "/v1/orders/7/events", "/v1/admin/dead"]
    {
        let refused = fixture.ask(Ask::get(path)).await;
        refused.must_be(401, "unauthorized");
        assert!(refused.header("www-authenticate").unwrap().starts_with("Bearer"));
        fixture
            .ask(Ask::get(path).key("another567890another567890another"))
            .await
            .must_be(401, "unauthorized");
        fixture.ask(Ask::get(path).header("Authorization", "Basic YTpi")).await.must_be(401, "unauthorized");
    }
    let nonsense = Ask::new("POST", "/v1/orders").body("nonsense");
    fixture.ask(nonsense).await.must_be(401, "unauthorized");
    assert_eq!(fixture.ask(Ask::get("/v1/me").header("X-Api-Key", BERT)).await.order(200)["tenant"], "bert");
    assert_eq!(
        fixture.ask(Ask::get("/v1/me").header("authorization", &format!("bearer {ANNA}"))).await.status,
        200
    );
    fixture.ask(Ask::get("/v1/orders").key(ADMIN)).await.must_be(403, "forbidden");
}

#[tokio::test]
async fn where_no_tenant_is_configured_no_key_is_needed() {
    let fixture = Fixture::with(Vec::new()).await;
    let ask = Ask::post("/v1/orders", &order("solve-1")).header("Prefer", "wait=60");
    assert_eq!(fixture.ask(ask).await.order(200)["status"], "solved");
    assert_eq!(fixture.ask(Ask::get("/v1/me")).await.order(200)["tenant"], "default");
    assert_eq!(fixture.ask(Ask::get("/v1/admin/state")).await.status, 200);
}

#[tokio::test]
async fn another_tenants_order_is_no_order_at_all() {
    let fixture = Fixture::new().await;
    let order_of_anna = fixture.place("hold-1").await.order(202);
    let path = path_of(&order_of_anna);
    let asks = [
        Ask::get(&path),
        Ask::new("DELETE", &path),
        Ask::get(format!("{path}/events")),
        Ask::post(format!("{path}/report"), &json!({ "good": true })),
    ];
    for ask in asks {
        fixture.ask(ask.key(BERT)).await.must_be(404, "unknown_order");
    }
    let listed = fixture.ask(Ask::get("/v1/orders?status=all").key(BERT)).await.order(200);
    assert_eq!(listed, json!({ "orders": [] }));
    let of_bert = fixture.ask(Ask::post("/v1/orders", &order("hold-1")).key(BERT)).await.order(202);
    assert_eq!(of_bert["origin"], "api", "not even the same question is shared");
    assert_ne!(of_bert["id"], order_of_anna["id"]);
    assert_eq!(fixture.get(&path).await.order(200)["status"], "pending");
}

/// Orders of other tenants change neither the content nor the cost of a list.
#[tokio::test]
async fn a_list_reads_the_orders_of_its_tenant_and_of_no_other() {
    let fixture = Fixture::new().await;
    for n in 0..300 {
        fixture.place(&format!("hold-{n}")).await.order(202);
    }
    for n in 0..3 {
        fixture.ask(Ask::post("/v1/orders", &order(&format!("hold-{n}"))).key(BERT)).await.order(202);
    }
    let list = async |query: &str| {
        drop(fixture.store_calls());
        let page = fixture.ask(Ask::get(format!("/v1/orders?{query}")).key(BERT)).await.order(200);
        (page, fixture.store_calls())
    };
    let (all, calls) = list("status=all").await;
    assert_eq!((all["orders"].as_array().unwrap().len(), &all["next"]), (3, &json!(null)));
    assert_eq!(calls, ["list"]);
    let (first, calls) = list("status=open&limit=2").await;
    assert_eq!((first["orders"].as_array().unwrap().len(), calls), (2, vec!["list"]));
    let (rest, calls) = list(&format!("status=open&after={}", first["next"].as_str().unwrap())).await;
    assert_eq!((rest["orders"].as_array().unwrap().len(), calls), (1, vec!["list"]));
    assert_eq!(rest["next"], json!(null));
    assert_eq!(list("status=dead").await, (json!({ "orders": [] }), vec!["list"]));
}

#[tokio::test]
async fn limits_are_kept_and_shown() {
    let mut anna = TenantSettings::new("anna", KeyDigest::of(ANNA));
    anna.rate = Some(Rate { every: Duration::from_secs(10), burst: 2 });
    let mut bert = TenantSettings::new("bert", KeyDigest::of(BERT));
    bert.open_max = Some(1);
    let fixture = Fixture::with(vec![anna, bert]).await;
    for n in 0..2 {
        fixture.place(&format!("hold-{n}")).await.order(202);
    }
    let refused = fixture.place("hold-2").await;
    refused.must_be(429, "rate_limited");
    assert_eq!(refused.header("retry-after"), Some("10"));
    fixture.pass(Duration::from_secs(10));
    fixture.place("hold-2").await.order(202);

    let ask = |sitekey: &str| fixture.ask(Ask::post("/v1/orders", &order(sitekey)).key(BERT));
    ask("hold-b").await.order(202);
    ask("hold-c").await.must_be(429, "too_many_open");
    let again = ask("hold-b").await.order(202);
    assert_eq!(again["origin"], "joined", "a repeat is not limited");
    let mut me = fixture.ask(Ask::get("/v1/me").key(BERT)).await.order(200);
    let secret = me.as_object_mut().and_then(|me| me.remove("webhook_secret"));
    assert!(secret.is_some_and(|secret| secret.as_str().is_some_and(|secret| secret.starts_with("whsec_"))));
    assert_eq!(me, json!({ "tenant": "bert", "limits": { "open_max": 1 }, "open_orders": 1 }));
    let me = fixture.get("/v1/me").await.order(200);
    assert_eq!(me["limits"]["rate"], json!({ "every_ms": 10_000, "burst": 2 }));
}

#[tokio::test]
async fn a_tenant_gets_only_its_kinds_and_hosts() {
    let mut anna = TenantSettings::new("anna", KeyDigest::of(ANNA));
    anna.kinds = Some(vec!["turnstile".into()]);
    anna.targets = Some(Targets {
        allow: vec![HostPattern::parse("*.example.net").unwrap()],
        images: false,
        ..Targets::default()
    });
    let fixture = Fixture::with(vec![anna]).await;
    let other =
        json!({ "kind": "hcaptcha", "params": { "sitekey": "k", "pageurl": "https://a.example.com/" } });
    let refused = fixture.ask(Ask::post("/v1/orders", &other).key(ANNA)).await;
    assert_eq!(refused.must_be(403, "kind_not_allowed")["field"], "kind");
    let elsewhere =
        json!({ "kind": "turnstile", "params": { "sitekey": "k", "pageurl": "https://a.example.org/" } });
    let refused = fixture.ask(Ask::post("/v1/orders", &elsewhere).key(ANNA)).await;
    assert_eq!(refused.must_be(403, "target_not_allowed")["field"], "params.pageurl");
    let me = fixture.get("/v1/me").await.order(200);
    assert_eq!(me["limits"], json!({ "kinds": ["turnstile"], "targets": ["*.example.net"] }));
}
