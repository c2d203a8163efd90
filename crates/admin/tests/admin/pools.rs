//! Pools: how the operator sets, reads and removes them, and that no tenant sees what a pool buys before it has taken
//! it.

use super::apis::{Api, Placing};
use super::fixture::{ADMIN, ANNA, BERT, Fixture, exclusive, order, path_of};
use super::talk::{Answered, Ask};
use crate::eventually::eventually;
use quittance_engine::Targets;
use quittance_engine::targets::HostPattern;
use quittance_gateway::{KeyDigest, TenantSettings};
use quittance_lifecycle::Key;
use serde_json::{Value, json};
use std::time::Duration;

fn warm(sitekey: &str) -> Value {
    json!({
        "tenant": "anna", "kind": "turnstile", "size": 2,
        "params": { "sitekey": sitekey, "pageurl": "https://shop.example.com/" },
    })
}

async fn put(fixture: &Fixture, name: &str, pool: &Value) -> Answered {
    fixture.ask(Ask::put(format!("/v1/pools/{name}"), pool).key(ADMIN)).await
}

/// Waits, while time passes, until the pool shows this many answers in stock.
async fn until_fresh(fixture: &Fixture, name: &str, fresh: u64) -> Value {
    for _ in 0..2_000 {
        let pool = fixture.ask(Ask::get(format!("/v1/pools/{name}")).key(ADMIN)).await.order(200);
        if pool["level"]["fresh"] == fresh {
            return pool;
        }
        fixture.pass(Duration::from_millis(200));
        tokio::task::yield_now().await;
    }
    panic!("{}", fixture.ask(Ask::get(format!("/v1/pools/{name}")).key(ADMIN)).await.text)
}

async fn patch(fixture: &Fixture, name: &str, change: &Value) -> Answered {
    fixture
        .ask(
            Ask::new("PATCH", format!("/v1/pools/{name}"))
                .header("Content-Type", "application/json")
                .body(&change.to_string())
                .key(ADMIN),
        )
        .await
}

#[tokio::test]
async fn a_change_keeps_what_it_does_not_name_also_what_the_api_does_not_show() {
    let fixture = Fixture::new().await;
    patch(&fixture, "shop", &json!({ "size": 3 })).await.must_be(404, "unknown_pool");
    let mut pool = warm("hold-1");
    pool["params"]["proxy"] = json!("me:secret@1.2.3.4:80");
    pool["budget_per_hour"] = json!("0.5");
    put(&fixture, "shop", &pool).await.order(200);
    let proxy = async || {
        let pools = fixture.engine.pools().await.unwrap();
        pools[0].document.spec.params.get("proxy").cloned()
    };
    let changed =
        patch(&fixture, "shop", &json!({ "service_level": 0.9, "params": { "n": 7 } })).await.order(200);
    assert_eq!((&changed["service_level"], changed.get("size")), (&json!(0.9), None));
    assert_eq!((&changed["params"]["n"], &changed["params"]["sitekey"]), (&json!("7"), &json!("hold-1")));
    assert_eq!((&changed["budget_per_hour"], &changed["tenant"]), (&json!("0.5"), &json!("anna")));
    assert_eq!(proxy().await, Some(quittance_lifecycle::Value::from("me:secret@1.2.3.4:80")));
    let reset = json!({ "budget_per_hour": null, "params": { "proxy": null } });
    let reset = patch(&fixture, "shop", &reset).await.order(200);
    assert!(reset.get("budget_per_hour").is_none() && reset["params"].get("proxy").is_none(), "{reset}");
    let other = patch(&fixture, "shop", &json!({ "kind": "hcaptcha" })).await;
    assert!(
        other.must_be(422, "bad_params")["detail"].as_str().unwrap().contains("missing"),
        "{}",
        other.text
    );
    patch(&fixture, "shop", &json!({ "colour": 1 })).await.must_be(422, "bad_params");
    assert_eq!(patch(&fixture, "shop", &json!({})).await.order(200)["params"], reset["params"]);
}

#[tokio::test]
async fn a_pool_is_set_shown_changed_and_taken_away() {
    let fixture = Fixture::new().await;
    let get = |path: &str| fixture.ask(Ask::get(path).key(ADMIN));
    assert_eq!(get("/v1/pools").await.order(200), json!({ "pools": [] }));
    let wanted = json!({
        "tenant": "anna", "kind": "turnstile", "service_level": 0.95, "budget_per_hour": "0.5",
        "hours": ["08:00-20:30", "22:00-6:00"], "min_life_s": 100, "enabled": false,
        "params": {
            "sitekey": "0x4AAA", "pageurl": "https://shop.example.com/", "proxy": "me:secret@1.2.3.4:80", "n": 7,
        },
    });
    let set = put(&fixture, "shop.login-1", &wanted).await.order(200);
    for (field, value) in [
        ("name", json!("shop.login-1")),
        ("tenant", json!("anna")),
        ("kind", json!("turnstile")),
        ("service_level", json!(0.95)),
        ("budget_per_hour", json!("0.5")),
        ("budget_per_hour_micros", json!(500_000)),
        ("hours", json!(["08:00-20:30", "22:00-06:00"])),
        ("min_life_s", json!(100.0)),
        ("enabled", json!(false)),
        ("valid", json!(true)),
        ("usable_ms", json!(200_000)),
        ("demand", json!({ "served": 0, "missed": 0 })),
        ("spent", json!({ "money": "0", "money_micros": 0, "refills": 0, "unpriced": 0 })),
    ] {
        assert_eq!(set[field], value, "{field}: {set}");
    }
    assert_eq!(set["params"]["sitekey"], "0x4AAA");
    assert_eq!(set["params"]["proxy"], "***@1.2.3.4:80", "a password is never shown");
    assert!(set.get("size").is_none());
    assert_eq!(get("/v1/pools/shop.login-1").await.order(200)["hours"], set["hours"]);

    let changed = put(&fixture, "shop.login-1", &warm("hold-1")).await.order(200);
    assert_eq!((&changed["size"], &changed["enabled"]), (&json!(2), &json!(true)));
    assert!(changed.get("service_level").is_none() && changed.get("budget_per_hour").is_none(), "{changed}");
    put(&fixture, "another", &warm("hold-2")).await.order(200);
    let listed = get("/v1/pools").await.order(200);
    let names: Vec<_> = listed["pools"].as_array().unwrap().iter().map(|pool| &pool["name"]).collect();
    assert_eq!(names, ["another", "shop.login-1"]);

    let remove = || fixture.ask(Ask::new("DELETE", "/v1/pools/another").key(ADMIN));
    let gone = remove().await;
    assert_eq!((gone.status, gone.text.as_str()), (204, ""));
    remove().await.must_be(404, "unknown_pool");
    for odd in ["another", "%ff", "a%2Fb", "%0a", "none"] {
        get(&format!("/v1/pools/{odd}")).await.must_be(404, "unknown_pool");
    }
}

#[tokio::test]
async fn what_makes_no_sense_as_a_pool_is_refused_and_named() {
    let fixture = Fixture::new().await;
    let with = |field: &str, value: Value| {
        let mut pool = warm("hold-1");
        pool[field] = value;
        pool
    };
    let without = |field: &str| with(field, Value::Null);
    let mut both = warm("hold-1");
    both["service_level"] = json!(0.9);
    for (pool, field) in [
        (json!({}), "tenant"),
        (without("tenant"), "tenant"),
        (with("tenant", json!("carol")), "tenant"),
        (with("tenant", json!(7)), "tenant"),
        (without("kind"), "kind"),
        (with("kind", json!("no_such_kind")), "kind"),
        (with("kind", json!("a b")), "kind"),
        (without("size"), "service_level"),
        (both, "size"),
        (with("size", json!(0)), "size"),
        (with("size", json!(1.5)), "size"),
        (with("size", json!(1001)), "size"),
        (with("size", json!("2")), "size"),
        (with("params", json!({})), "params.sitekey"),
        (with("params", json!([])), "params"),
        (with("params", json!({ "sitekey": { "base64": "AAAA" } })), "params.sitekey"),
        (with("params", json!({ "sitekey": "x".repeat(20_000) })), "params"),
        (with("params", json!({ "sitekey": "k", "pageurl": "shop" })), "params.pageurl"),
        (with("budget_per_hour", json!("much")), "budget_per_hour"),
        (with("budget_per_hour", json!(-1)), "budget_per_hour"),
        (with("budget_per_hour", json!(1e300)), "budget_per_hour"),
        (with("hours", json!("08:00-20:00")), "hours"),
        (with("hours", json!(["morning"])), "hours"),
        (with("hours", json!(["08:00-25:00"])), "hours"),
        (with("hours", json!(vec!["08:00-20:00"; 17])), "hours"),
        (with("min_life_s", json!(-1)), "min_life_s"),
        (with("min_life_s", json!(301)), "min_life_s"),
        (with("enabled", json!("yes")), "enabled"),
        (with("level", json!(3)), "level"),
    ] {
        let problem = put(&fixture, "warm", &pool).await.must_be(422, "bad_params");
        assert_eq!(problem["field"], field, "{pool}");
    }
    for name in ["a%20b", "%C3%BC", &"n".repeat(65), "a%2Fb"] {
        let problem = put(&fixture, name, &warm("hold-1")).await.must_be(422, "bad_params");
        assert_eq!(problem["field"], "name", "{name}");
    }
    let picture = json!({ "tenant": "anna", "kind": "image", "size": 2, "params": {} });
    assert_eq!(put(&fixture, "warm", &picture).await.status, 422, "there is nothing to keep of a picture");
    let text = fixture.ask(Ask::new("PUT", "/v1/pools/warm").key(ADMIN).body("{}")).await;
    text.must_be(415, "wrong_content_type");
    let broken = Ask::new("PUT", "/v1/pools/warm").header("Content-Type", "application/json").body("{");
    fixture.ask(broken.key(ADMIN)).await.must_be(400, "bad_json");
    assert_eq!(fixture.ask(Ask::get("/v1/pools").key(ADMIN)).await.order(200), json!({ "pools": [] }));
}

#[tokio::test]
async fn a_pool_is_only_for_what_its_tenant_may_order_and_the_operator_allows() {
    let mut anna = TenantSettings::new("anna", KeyDigest::of(ANNA));
    anna.kinds = Some(vec!["turnstile".into()]);
    anna.targets = Some(Targets {
        allow: vec![HostPattern::parse("*.example.net").unwrap()],
        images: false,
        ..Targets::default()
    });
    let fixture = Fixture::with(vec![anna, TenantSettings::new("bert", KeyDigest::of(BERT))]).await;
    let mut pool = warm("hold-1");
    pool["params"]["pageurl"] = json!("https://a.example.org/");
    put(&fixture, "warm", &pool).await.must_be(403, "target_not_allowed");
    pool["kind"] = json!("hcaptcha");
    put(&fixture, "warm", &pool).await.must_be(403, "kind_not_allowed");
    pool["tenant"] = json!("bert");
    let refused = put(&fixture, "warm", &pool).await.must_be(403, "target_not_allowed");
    assert_eq!(refused["field"], "params.pageurl");
    pool["params"]["pageurl"] = json!("https://a.example.com/");
    put(&fixture, "warm", &pool).await.order(200);
}

#[tokio::test]
async fn where_no_tenant_is_configured_a_pool_needs_none() {
    let fixture = Fixture::with(Vec::new()).await;
    let mut pool = warm("hold-1");
    pool.as_object_mut().unwrap().remove("tenant");
    let set = fixture.ask(Ask::put("/v1/pools/warm", &pool)).await.order(200);
    assert_eq!(set["tenant"], "default");
    assert_eq!(fixture.ask(Ask::get("/metrics")).await.status, 200);
}

#[tokio::test]
async fn a_pool_fills_its_stock_serves_from_it_and_shows_how() {
    let fixture = Fixture::new().await;
    put(&fixture, "warm", &warm("solve-1")).await.order(200);
    let filled = until_fresh(&fixture, "warm", 2).await;
    assert_eq!((&filled["level"]["size"], &filled["kept_here"]), (&json!(2), &json!(true)));
    assert_eq!(filled["level"]["why"], "the size was set");
    assert_eq!((&filled["spent"]["refills"], &filled["price"]), (&json!(2), &json!("0.00299")));
    assert_eq!(fixture.provider.submits("solve-1"), 2);

    let served = fixture.ask(Ask::post("/v1/orders", &exclusive("solve-1")).key(ANNA)).await.order(200);
    assert_eq!((&served["origin"], &served["answer"]["text"]), (&json!("stock"), &json!("token of solve-1")));
    let pool = fixture.ask(Ask::get("/v1/pools/warm").key(ADMIN)).await.order(200);
    assert_eq!(pool["demand"], json!({ "served": 1, "missed": 0, "hit_rate": 1.0 }));
    let stock = fixture.ask(Ask::get("/v1/stock").key(ANNA)).await.order(200);
    assert_eq!(
        (&stock["pools"][0]["name"], &stock["pools"][0]["level"]["size"]),
        (&json!("warm"), &json!(2))
    );
    let berts = fixture.ask(Ask::get("/v1/stock").key(BERT)).await.order(200);
    assert_eq!(berts["pools"], json!([]), "a pool is its tenant's");

    let metrics = fixture.ask(Ask::get("/metrics").key(ADMIN)).await.text;
    for line in [
        "# TYPE quittance_pool_level gauge",
        "quittance_pool_level{pool=\"warm\"} 2",
        "quittance_pool_served_total{pool=\"warm\"} 1",
        "quittance_pool_missed_total{pool=\"warm\"} 0",
    ] {
        assert!(metrics.lines().any(|found| found == line), "{line} is not in {metrics}");
    }
}

#[tokio::test]
async fn what_a_pool_has_bought_is_no_tenants_before_the_tenant_has_taken_it() {
    let mut anna = TenantSettings::new("anna", KeyDigest::of(ANNA));
    anna.open_max = Some(1);
    let fixture = Fixture::with(vec![anna]).await;
    put(&fixture, "warm", &warm("hold-pool")).await.order(200);
    while fixture.provider.submits("hold-pool") < 2 {
        fixture.pass(Duration::from_millis(200));
        // Time must not run away from those who work.
        fixture.get("/v1/me").await;
    }
    assert_eq!(fixture.get("/v1/orders?status=all").await.order(200), json!({ "orders": [] }));
    assert_eq!(
        fixture.get("/v1/me").await.order(200)["open_orders"],
        0,
        "refills are not orders of the tenant"
    );
    fixture.gateway.orders().count_open().await.unwrap();
    assert_eq!(fixture.get("/v1/me").await.order(200)["open_orders"], 0);
    fixture.call_back("hold-pool", "token").await;

    let listed = fixture.engine.list(quittance_ports::Which::ALL, None, 10).await.unwrap();
    let refills: Vec<_> = listed.into_iter().map(|found| found.unwrap().order.key).collect();
    assert_eq!(refills.len(), 2);
    for key in refills {
        for is_from_stock in [false, true] {
            let id = quittance_gateway::OrderId::new(&key, is_from_stock);
            fixture.get(&format!("/v1/orders/{id}")).await.must_be(404, "unknown_order");
        }
    }
    let taken = fixture.ask(Ask::post("/v1/orders", &exclusive("hold-pool")).key(ANNA)).await.order(200);
    assert_eq!(taken["answer"]["text"], "token");
    assert_eq!(fixture.get(&path_of(&taken)).await.order(200)["answer"]["text"], "token");
    let placed = fixture.ask(Ask::post("/v1/orders", &order("hold-1")).key(ANNA)).await;
    assert_eq!(placed.order(202)["origin"], "api", "one more order of the tenant may be open");
}

#[tokio::test]
async fn a_caller_that_took_less_life_than_the_pool_wants_gets_it_also_when_it_looks_again() {
    let fixture = Fixture::new().await;
    let mut pool = warm("solve-1");
    pool["min_life_s"] = json!(200);
    put(&fixture, "warm", &pool).await.order(200);
    until_fresh(&fixture, "warm", 2).await;
    // No life is asked for: the kind's margin of 50 s will do.
    let wanted = json!({ "kind": "turnstile", "reuse": "exclusive",
        "params": { "sitekey": "solve-1", "pageurl": "https://shop.example.com/" } });
    fixture.rest().await;
    fixture.pass(Duration::from_secs(150));
    let taken = fixture.ask(Ask::post("/v1/orders", &wanted).key(ANNA)).await.order(200);
    assert_eq!(taken["origin"], "stock");
    assert!(taken["expires_in_ms"].as_u64().unwrap() < 200_000, "{taken}");
    let again = fixture.get(&path_of(&taken)).await.order(200);
    assert_eq!((&again["status"], &again["answer"]), (&json!("solved"), &taken["answer"]));
}

/// Waits until it is written that an answer reached its caller, which happens a moment later.
async fn until_one_has_left(fixture: &Fixture) {
    for _ in 0..2_000 {
        let listed = fixture.engine.list(quittance_ports::Which::ALL, None, 10).await.unwrap();
        if listed.iter().flatten().any(|found| found.order.taker().is_some() && !found.order.uncollected) {
            return;
        }
        tokio::task::yield_now().await;
    }
    panic!("no answer has left the stock");
}

#[tokio::test]
async fn an_answer_from_the_stock_leaves_with_its_margin_and_is_then_read_as_long_as_it_lives() {
    let fixture = Fixture::new().await;
    put(&fixture, "warm", &warm("solve-1")).await.order(200);
    until_fresh(&fixture, "warm", 2).await;
    fixture.pass(Duration::from_secs(220));
    let exclusive = Placing::of("solve-1").field("reuse", "exclusive");
    let first = Api::Classic.id(&Api::Classic.place(&fixture, &exclusive).await);
    let second = Api::Classic.id(&Api::Classic.place(&fixture, &exclusive).await);
    assert_ne!(first, second);
    fixture.pass(Duration::from_secs(15));
    let look = async |id: &Value| Api::Classic.look(&fixture, ANNA, id).await;
    let token = look(&first).await;
    assert!(
        token.as_deref().is_some_and(|token| token.starts_with("token ")),
        "it came within its 15 s: {token:?}"
    );
    until_one_has_left(&fixture).await;
    // About 35 s are left.
    fixture.pass(Duration::from_secs(30));
    assert_eq!(look(&second).await.as_deref(), Some("ERROR_TOKEN_EXPIRED"), "less than the margin of 50 s");
    assert_eq!(look(&first).await, token, "the same caller again");
}

/// Trap: the audit showed that another order had the answer, and the usage that it was wasted.
#[tokio::test]
async fn a_pooled_answer_that_the_caller_of_a_keyed_order_never_reads_is_wasted_in_the_audit_and_the_usage() {
    let fixture = Fixture::new().await;
    put(&fixture, "warm", &warm("solve-1")).await.order(200);
    until_fresh(&fixture, "warm", 2).await;
    let keyed = Placing::of("solve-1").keyed("job-1");
    Api::Classic.id(&Api::Classic.place(&fixture, &keyed).await);
    let entry = async |who: &str| {
        eventually(who, async || {
            let page = fixture.ask(Ask::get("/v1/admin/audit").key(ADMIN)).await.order(200);
            let entries = page["entries"].as_array().unwrap();
            entries.iter().find(|entry| !entry["claimed_by"].is_null() && entry["who"] == who).cloned()
        })
        .await
    };
    let unread = entry("no order: no caller has the answer yet").await;
    assert_eq!(unread["why"], "to fill a place in a pool");
    let taker = unread["claimed_by"].as_str().unwrap().to_owned();
    let order = fixture.engine.read(&Key::parse(&taker).unwrap()).await.unwrap().unwrap();
    assert!(order.terms.keyed && order.is_from_stock(), "{order:?}");
    fixture.pass(Duration::from_secs(400));
    let wasted = entry("no order: the answer expired before it was collected, and is wasted").await;
    assert_eq!((&wasted["task"], &wasted["claimed_by"]), (&unread["task"], &unread["claimed_by"]));
}
