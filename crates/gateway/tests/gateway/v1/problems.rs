//! Tests of refused requests and their texts.

use super::fixture::{ANNA, Fixture, order};
use super::talk::Ask;
use serde_json::{Value, json};
use std::sync::atomic::Ordering;

#[tokio::test]
async fn whatever_is_wrong_with_an_order_is_named() {
    let fixture = Fixture::new().await;
    let page = "https://shop.example.com/";
    let cases: Vec<(Value, &str, &str)> = vec![
        (json!({}), "bad_params", "kind"),
        (json!({ "kind": 7 }), "bad_params", "kind"),
        (json!({ "kind": "" }), "bad_params", "kind"),
        (json!({ "kind": "a b" }), "bad_params", "kind"),
        (json!({ "kind": "unheard_of" }), "bad_params", "kind"),
        (json!({ "kind": "turnstile", "params": [] }), "bad_params", "params"),
        (json!({ "kind": "turnstile", "params": { "pageurl": page } }), "bad_params", "params.sitekey"),
        (json!({ "kind": "turnstile", "params": { "sitekey": null } }), "bad_params", "params.sitekey"),
        (json!({ "kind": "turnstile", "params": { "sitekey": ["k"] } }), "bad_params", "params.sitekey"),
        (
            json!({ "kind": "turnstile", "params": { "sitekey": "k", "pageurl": "nowhere" } }),
            "bad_params",
            "params.pageurl",
        ),
        (json!({ "kind": "image", "files": { "body": "not base64!" } }), "bad_params", "files.body"),
        (json!({ "kind": "image", "files": { "body": "AAAA" } }), "bad_params", "params.body"),
        (
            json!({ "kind": "image", "params": { "body": { "base64": "AAAA", "more": 1 } } }),
            "bad_params",
            "params.body",
        ),
        (
            json!({ "kind": "image", "params": { "body": "x" }, "files": { "body": "AAAA" } }),
            "bad_params",
            "files.body",
        ),
        (json!({ "kind": "turnstile", "reuse": "sometimes" }), "bad_params", "reuse"),
        (json!({ "kind": "turnstile", "deadline_s": 0 }), "bad_params", "deadline_s"),
        (json!({ "kind": "turnstile", "deadline_s": "60" }), "bad_params", "deadline_s"),
        (json!({ "kind": "turnstile", "deadline_s": 86_401 }), "bad_params", "deadline_s"),
        (json!({ "kind": "turnstile", "min_life_s": -1 }), "bad_params", "min_life_s"),
        (
            json!({ "kind": "turnstile", "callback_url": "ftp://example.com/" }),
            "bad_callback",
            "callback_url",
        ),
        (
            json!({ "kind": "turnstile", "callback_url": " https://example.com/" }),
            "bad_callback",
            "callback_url",
        ),
        (json!({ "kind": "turnstile", "callback_url": "http://127.0.0.1/" }), "bad_callback", "callback_url"),
        (json!({ "kind": "turnstile", "surprise": 1 }), "bad_params", "surprise"),
    ];
    for (body, code, field) in cases {
        let refused = fixture.ask(Ask::post("/v1/orders", &body).key(ANNA)).await;
        assert_eq!(refused.must_be(422, code)["field"], field, "{body}");
    }
    let mut long = order("solve-1");
    long["min_life_s"] = json!(299);
    let refused = fixture.ask(Ask::post("/v1/orders", &long).key(ANNA)).await;
    assert_eq!(refused.must_be(422, "bad_params")["field"], "min_life_s");
    let elsewhere =
        json!({ "kind": "turnstile", "params": { "sitekey": "k", "pageurl": "https://shop.example.org/" } });
    fixture.ask(Ask::post("/v1/orders", &elsewhere).key(ANNA)).await.must_be(403, "target_not_allowed");
}

#[tokio::test]
async fn no_problem_repeats_what_may_be_a_secret() {
    let fixture = Fixture::new().await;
    for body in [
        json!({ "kind": "turnstile", "params": { "sitekey": "k", "pageurl": "hunter2" } }),
        json!({ "kind": "turnstile", "callback_url": "ftp://hunter2" }),
        json!({ "kind": "image", "files": { "body": "hunter2 !" } }),
        json!({ "kind": "turnstile", "deadline_s": "hunter2" }),
    ] {
        let refused = fixture.ask(Ask::post("/v1/orders", &body).key(ANNA)).await;
        assert!(refused.status == 422 && !refused.text.contains("hunter2"), "{refused:?}");
    }
}

#[tokio::test]
async fn a_body_that_is_no_json_object_is_refused_as_what_it_is() {
    let fixture = Fixture::new().await;
    let post = |content_type: &str, body: &str| {
        fixture.ask(Ask::new("POST", "/v1/orders").key(ANNA).header("Content-Type", content_type).body(body))
    };
    for broken in ["", "{", "nonsense", "{\"kind\":}", &"[".repeat(500)] {
        post("application/json", broken).await.must_be(400, "bad_json");
    }
    for other in ["[]", "7", "null", "\"kind\""] {
        post("application/json; charset=utf-8", other).await.must_be(422, "bad_params");
    }
    post("text/plain", "{}").await.must_be(415, "wrong_content_type");
    fixture.ask(Ask::new("POST", "/v1/orders").key(ANNA).body("{}")).await.must_be(415, "wrong_content_type");
}

#[tokio::test]
async fn what_is_not_there_and_what_cannot_be_done_are_problems_as_well() {
    let fixture = Fixture::new().await;
    for path in ["/v1/nothing", "/v1/orders/", "/v1/orders/1/2/3"] {
        fixture.get(path).await.must_be(404, "not_found");
    }
    for id in ["1", "0", "-1", "01", "x", "9007199254740993", "%ff", "%00", "1%2F2"] {
        fixture.get(&format!("/v1/orders/{id}")).await.must_be(404, "unknown_order");
        fixture
            .ask(Ask::new("DELETE", format!("/v1/orders/{id}")).key(ANNA))
            .await
            .must_be(404, "unknown_order");
    }
    for (method, path, allow) in [
        ("PUT", "/v1/orders", ["GET", "POST"]),
        ("PATCH", "/v1/orders/7", ["GET", "DELETE"]),
        ("POST", "/healthz", ["GET", "HEAD"]),
    ] {
        let refused = fixture.ask(Ask::new(method, path).key(ANNA)).await;
        refused.must_be(405, "method_not_allowed");
        let allowed = refused.header("allow").unwrap();
        assert!(allow.iter().all(|method| allowed.contains(method)), "{allowed}");
    }
    for query in
        ["limit=0", "limit=201", "limit=x", "limit=", "limit=1&limit=2", "status=odd", "after=7", "more=1"]
    {
        fixture.get(&format!("/v1/orders?{query}")).await.must_be(422, "bad_params");
    }
}

#[tokio::test]
async fn a_store_that_is_away_is_answered_with_a_time_to_come_back() {
    let fixture = Fixture::new().await;
    let path = format!("/v1/orders/{}", fixture.place("hold-1").await.order(202)["id"].as_str().unwrap());
    fixture.store_is_away.store(true, Ordering::Relaxed);
    let asks = [
        Ask::post("/v1/orders", &order("solve-2")),
        Ask::get(&path),
        Ask::get("/v1/orders"),
        Ask::new("DELETE", &path),
        Ask::post(format!("{path}/report"), &json!({ "good": true })),
    ];
    for ask in asks {
        let refused = fixture.ask(ask.key(ANNA)).await;
        refused.must_be(503, "store_unavailable");
        assert!(refused.header("retry-after").unwrap().parse::<u64>().is_ok());
    }
    fixture.store_is_away.store(false, Ordering::Relaxed);
    fixture.get(&path).await.order(200);
}

#[tokio::test]
async fn every_code_has_its_page() {
    let fixture = Fixture::new().await;
    let errors = fixture.ask(Ask::get("/v1/errors")).await.order(200);
    let errors = errors["errors"].as_array().unwrap();
    assert!(errors.len() > 20);
    for error in errors {
        let page = fixture.ask(Ask::get(error["type"].as_str().unwrap())).await.order(200);
        assert_eq!(&page, error);
    }
    fixture.ask(Ask::get("/v1/errors/no_such_code")).await.must_be(404, "not_found");
}
