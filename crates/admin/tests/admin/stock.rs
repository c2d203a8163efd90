//! The stock as callers see it: where an answer came from, how to refuse one from stock, what happened to it, and
//! what the usage shows.

use super::apis::{Api, Placing};
use super::fixture::{ADMIN, ANNA, BERT, Fixture, exclusive, keyed, order, path_of};
use super::talk::Ask;
use crate::eventually::eventually;
use quittance_ports::Which;
use serde_json::{Value, json};
use std::sync::atomic::Ordering;
use std::time::Duration;

const PAGE: &str = "pageurl=https://shop.example.com/";

fn task(key: &str, nocache: bool) -> Value {
    json!({ "clientKey": key, "task": {
        "type": "TurnstileTaskProxyless", "websiteKey": "hold-1", "websiteURL": "https://shop.example.com/",
        "nocache": nocache,
    } })
}

/// The rows of the usage, after the worker has written its counters.
async fn usage_until(fixture: &Fixture, is_there: impl Fn(&Value) -> bool) -> Value {
    for _ in 0..2_000 {
        let report = fixture.ask(Ask::get("/v1/stock").key(ADMIN)).await.order(200);
        if is_there(&report) {
            return report;
        }
        fixture.pass(Duration::from_millis(20));
        tokio::task::yield_now().await;
    }
    panic!("{}", fixture.ask(Ask::get("/v1/stock").key(ADMIN)).await.text)
}

#[tokio::test]
async fn a_caller_that_wants_nothing_from_the_stock_gets_a_bought_answer() {
    let fixture = Fixture::new().await;
    fixture.stock("hold-1", "kept").await;
    let mut submits = fixture.provider.submits("hold-1");
    let mut bought = async |ask: Ask| {
        let answered = fixture.ask(ask).await;
        assert!(matches!(answered.status, 200 | 202), "{answered:?}");
        submits += 1;
        while fixture.provider.submits("hold-1") < submits {
            tokio::task::yield_now().await;
        }
        answered
    };
    let mut plain = exclusive("hold-1");
    plain["no_stock"] = json!(true);
    let placed = bought(Ask::post("/v1/orders", &plain).key(ANNA)).await.order(202);
    assert_eq!(placed["origin"], "api");
    bought(Ask::post("/v1/orders", &exclusive("hold-1")).key(&format!("{ANNA}__nocache"))).await;
    let form = |rest: &str| format!("/in.php?method=turnstile&sitekey=hold-1&{PAGE}&{rest}");
    bought(Ask::get(form(&format!("key={ANNA}__nocache")))).await;
    bought(Ask::get(form(&format!("key={ANNA}&nocache=1")))).await;
    bought(Ask::get(form(&format!("key={ANNA}&no_stock=1")))).await;
    bought(Ask::post("/createTask", &task(ANNA, true))).await;
    bought(Ask::post("/createTask", &task(&format!("{ANNA}__nocache"), false))).await;
    let taken = fixture.ask(Ask::post("/v1/orders", &exclusive("hold-1")).key(ANNA)).await.order(200);
    assert_eq!((&taken["origin"], &taken["answer"]["text"]), (&json!("stock"), &json!("kept")));
}

#[tokio::test]
async fn a_switch_that_is_written_out_and_off_makes_no_other_order() {
    let fixture = Fixture::new().await;
    let form =
        |rest: &str| format!("/in.php?key={ANNA}&method=turnstile&sitekey=hold-1&reuse=shared&{PAGE}{rest}");
    let first = fixture.ask(Ask::get(form(""))).await.text;
    for off in ["&no_stock=0", "&nocache=0", "&nocache=false&no_stock="] {
        assert_eq!(fixture.ask(Ask::get(form(off))).await.text, first, "{off}");
    }
    let odd = json!({ "kind": "turnstile", "no_stock": "yes", "params": {} });
    let refused = fixture.ask(Ask::post("/v1/orders", &odd).key(ANNA)).await;
    assert_eq!(refused.must_be(422, "bad_params")["field"], "no_stock");
}

#[tokio::test]
async fn an_order_of_ones_own_that_the_stock_has_served_says_so_and_its_repeats_say_what_they_are() {
    let fixture = Fixture::new().await;
    fixture.stock("hold-1", "kept-1").await;
    fixture.stock("hold-1", "kept-2").await;
    let submits = fixture.provider.submits("hold-1");
    let served = fixture.ask(keyed(&order("hold-1"), "k-1")).await.order(200);
    assert_eq!((&served["origin"], &served["answer"]["text"]), (&json!("stock"), &json!("kept-1")));
    assert_eq!(fixture.get(&path_of(&served)).await.order(200)["origin"], "stock");
    assert_eq!(fixture.ask(keyed(&order("hold-1"), "k-1")).await.order(200)["origin"], "replayed");
    let shared = Ask::post("/v1/orders", &order("hold-1")).key(ANNA).header("Prefer", "wait=60");
    let served = fixture.ask(shared.clone()).await.order(200);
    assert_eq!((&served["origin"], &served["answer"]["text"]), (&json!("stock"), &json!("kept-2")));
    assert_eq!(fixture.ask(shared).await.order(200)["origin"], "cached");
    assert_eq!(fixture.provider.submits("hold-1"), submits, "nothing was bought");
}

#[tokio::test]
async fn an_answer_from_the_stock_is_reported_on_through_every_api() {
    let fixture = Fixture::new().await;
    for token in ["kept-1", "kept-2", "kept-3"] {
        fixture.stock("hold-1", token).await;
    }
    let take = async || fixture.ask(Ask::post("/v1/orders", &exclusive("hold-1")).key(ANNA)).await.order(200);
    let (first, second, third) = (take().await, take().await, take().await);

    let report =
        |good: bool| Ask::post(format!("{}/report", path_of(&first)), &json!({ "good": good })).key(ANNA);
    assert_eq!(fixture.ask(report(false)).await.order(200), json!({ "recorded": true }));
    fixture.ask(report(true)).await.must_be(409, "contradicted");
    let id = second["id"].as_str().unwrap();
    let reply = fixture.ask(Ask::get(format!("/res.php?key={ANNA}&action=reportbad&id={id}"))).await.text;
    assert_eq!(reply, "OK_REPORT_RECORDED");
    let id: u64 = third["id"].as_str().unwrap().parse().unwrap();
    let asked = json!({ "clientKey": ANNA, "taskId": id });
    let reply = fixture.ask(Ask::post("/reportIncorrect", &asked)).await.json();
    assert_eq!(reply["errorId"], 0, "{reply}");

    let usage = usage_until(&fixture, |report| report["all"]["reported_bad"] == 3).await;
    assert_eq!(usage["rows"][0]["site"], "shop.example.com");
    while fixture.provider.reports() != [false; 3] {
        tokio::task::yield_now().await;
    }
    let others = Ask::post(format!("{}/report", path_of(&first)), &json!({ "good": false })).key(BERT);
    fixture.ask(others).await.must_be(404, "unknown_order");
}

#[tokio::test]
async fn refusals_late_in_life_shorten_how_long_a_site_is_trusted_and_it_shows() {
    let fixture = Fixture::new().await;
    for n in 0..3 {
        fixture.stock("hold-1", &format!("kept-{n}")).await;
    }
    fixture.pass(Duration::from_secs(200));
    for _ in 0..3 {
        let taken = fixture.ask(Ask::post("/v1/orders", &exclusive("hold-1")).key(ANNA)).await.order(200);
        let report = Ask::post(format!("{}/report", path_of(&taken)), &json!({ "good": false }));
        fixture.ask(report.key(ANNA)).await.order(200);
    }
    let usage = usage_until(&fixture, |report| report["rows"][0]["trust"]["refusals"] == 3).await;
    let trust = &usage["rows"][0]["trust"];
    assert_eq!(trust["life_s"], 300);
    assert!((150..300).contains(&trust["trusted_s"].as_u64().unwrap()), "{trust}");
    assert!(trust["why"].as_str().unwrap().contains("rejected answers late in their life"), "{trust}");
}

#[tokio::test]
async fn the_usage_of_the_stock_is_shown_to_each_tenant_for_itself() {
    let fixture = Fixture::new().await;
    fixture.stock("hold-1", "kept").await;
    fixture.pass(Duration::from_secs(30));
    fixture.ask(Ask::post("/v1/orders", &exclusive("hold-1")).key(ANNA)).await.order(200);
    fixture.ask(Ask::post("/v1/orders", &order("hold-2")).key(BERT)).await.order(202);
    let is_there =
        |report: &Value| report["all"]["asked"] == 3 && report["all"]["mean_age_ms"].as_u64() > Some(0);
    let all = usage_until(&fixture, is_there).await;
    assert_eq!((&all["from"], &all["to"]), (&json!("2100-01-01"), &json!("2100-01-01")));
    assert_eq!(all["rows"].as_array().unwrap().len(), 2);
    let line = &all["rows"][0];
    assert_eq!((&line["tenant"], &line["kind"]), (&json!("anna"), &json!("turnstile")));
    assert_eq!((&line["asked"], &line["from_stock"], &line["stocked"]), (&json!(2), &json!(1), &json!(1)));
    assert_eq!((&line["hit_rate"], &line["wasted"]), (&json!(0.5), &json!(0)));
    assert!(line["mean_age_ms"].as_u64().unwrap() >= 30_000, "{line}");
    assert!(line["saved_ms"].as_u64().unwrap() > 0, "{line}");

    let annas = fixture.get("/v1/stock").await.order(200);
    assert_eq!((&annas["rows"][0], annas["rows"].as_array().unwrap().len()), (line, 1));
    let berts = fixture.ask(Ask::get("/v1/stock").key(BERT)).await.order(200);
    assert_eq!((&berts["all"]["asked"], &berts["rows"][0]["tenant"]), (&json!(1), &json!("bert")));
    fixture.ask(Ask::get("/v1/stock")).await.must_be(401, "unauthorized");
    let before = fixture.get("/v1/stock?from=2099-12-01&to=2099-12-31").await.order(200);
    assert_eq!((&before["rows"], &before["all"]["asked"]), (&json!([]), &json!(0)));
    assert_eq!(fixture.get("/v1/stock?from=2099-12-31").await.order(200)["all"], annas["all"]);
}

#[tokio::test]
async fn days_that_make_no_sense_are_refused() {
    let fixture = Fixture::new().await;
    for (query, field) in [
        ("from=yesterday", "from"),
        ("to=2099-02-30", "to"),
        ("from=2099-12-02&to=2099-12-01", "from"),
        ("from=2096-01-01&to=2099-12-31", "from"),
        ("from=2000-01-01", "from"),
        ("day=2099-12-01", "query"),
        ("from=2099-12-01&from=2099-12-02", "query"),
        ("from=%ff", "from"),
    ] {
        let refused = fixture.get(&format!("/v1/stock?{query}")).await;
        assert_eq!(refused.must_be(422, "bad_params")["field"], field, "{query}");
    }
    fixture.store_is_away.store(true, Ordering::Relaxed);
    fixture.get("/v1/stock").await.must_be(503, "store_unavailable");
}

#[tokio::test]
async fn the_stock_of_today_is_exported_to_a_monitoring_system() {
    let fixture = Fixture::new().await;
    fixture.stock("hold-1", "kept").await;
    fixture.ask(Ask::post("/v1/orders", &exclusive("hold-1")).key(ANNA)).await.order(200);
    usage_until(&fixture, |report| report["all"]["mean_age_ms"].is_u64()).await;
    let metrics = fixture.ask(Ask::get("/metrics").key(ADMIN)).await;
    assert_eq!(metrics.header("content-type"), Some("text/plain; version=0.0.4; charset=utf-8"));
    let lines: Vec<&str> = metrics.text.lines().collect();
    for line in [
        "quittance_store_up 1",
        "# TYPE quittance_from_stock_total counter",
        "quittance_from_stock_total{kind=\"turnstile\",provider=\"\"} 1",
        "quittance_asked_total{kind=\"turnstile\",provider=\"\"} 2",
        "quittance_wasted_micros_total{kind=\"turnstile\",provider=\"\"} 0",
        "# TYPE quittance_saved_seconds_total counter",
    ] {
        assert!(lines.contains(&line), "{line} is not in {}", metrics.text);
    }
    assert!(!metrics.text.contains("shop.example.com"), "sites are no labels");
    fixture.pass(Duration::from_secs(24 * 3600));
    let metrics = fixture.ask(Ask::get("/metrics").key(ADMIN)).await;
    let zero = "quittance_asked_total{kind=\"turnstile\",provider=\"\"} 0";
    assert!(metrics.text.lines().any(|line| line == zero), "a new day begins at zero, and not with nothing");
    fixture.store_is_away.store(true, Ordering::Relaxed);
    let metrics = fixture.ask(Ask::get("/metrics").key(ADMIN)).await;
    assert!(
        metrics.status == 200 && metrics.text.lines().any(|line| line == "quittance_store_up 0"),
        "{metrics:?}"
    );
}

/// The answer in the audit that an order took from the stock, as soon as the audit says this of it.
async fn audited(fixture: &Fixture, who: &str) -> Value {
    eventually(who, async || {
        let page = fixture.ask(Ask::get("/v1/admin/audit").key(ADMIN)).await.order(200);
        let entries = page["entries"].as_array().unwrap();
        entries.iter().find(|entry| !entry["claimed_by"].is_null() && entry["who"] == who).cloned()
    })
    .await
}

async fn key_of_the_taker(fixture: &Fixture) -> String {
    let listed = fixture.engine.list(Which::ALL, None, 100).await.unwrap();
    let takers: Vec<_> = listed.iter().flatten().filter(|found| found.order.is_from_stock()).collect();
    let [taker] = &takers[..] else { panic!("one order took the answer: {takers:?}") };
    taker.order.key.to_string()
}

/// Trap: the audit showed that another order had the answer, and the usage that it was wasted.
#[tokio::test]
async fn the_audit_says_what_became_of_an_answer_from_the_stock_at_the_order_that_took_it() {
    for taker in [
        Placing::of("hold-1").keyed("job-1"),
        Placing::of("hold-1").field("reuse", "shared"),
        Placing::of("hold-1").field("reuse", "exclusive").field("min_life_s", 100),
    ] {
        for is_read in [false, true] {
            let fixture = Fixture::new().await;
            fixture.stock("hold-1", "kept").await;
            let id = Api::Classic.id(&Api::Classic.place(&fixture, &taker).await);
            let unread = audited(&fixture, "no order: no caller has the answer yet").await;
            let key = key_of_the_taker(&fixture).await;
            assert_eq!(unread["claimed_by"], key, "{taker:?}");
            if is_read {
                assert_eq!(Api::Classic.token(&fixture, ANNA, &id).await, "kept");
                audited(&fixture, "another order of anna, from the stock").await;
            }
            fixture.pass(Duration::from_secs(400));
            let who = match is_read {
                true => "another order of anna, from the stock",
                false => "no order: the answer expired before it was collected, and is wasted",
            };
            if !is_read {
                let wasted = usage_until(&fixture, |report| report["all"]["wasted"] == 1).await;
                assert_eq!(wasted["all"]["from_stock"], 1, "{taker:?}: {wasted}");
            }
            assert_eq!(audited(&fixture, who).await["claimed_by"], key, "{taker:?}");
            let usage = usage_until(&fixture, |report| report["all"]["from_stock"] == 1).await;
            assert_eq!(usage["all"]["wasted"], u64::from(!is_read), "{taker:?}: {usage}");
        }
    }
}
