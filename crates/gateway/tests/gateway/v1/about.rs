//! Tests of what the API says about itself.

use super::fixture::Fixture;
use super::talk::Ask;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::sync::atomic::Ordering;

#[tokio::test]
async fn it_lives_from_the_start_and_is_ready_when_it_says_so() {
    let fixture = Fixture::new().await;
    let alive = fixture.ask(Ask::get("/healthz")).await;
    assert_eq!((alive.status, alive.text.as_str()), (200, "ok"));
    let ready = || fixture.ask(Ask::get("/readyz"));
    assert_eq!(ready().await.order(503), json!({ "ready": false, "serving": false, "store": true }));
    fixture.gateway.set_ready(true);
    assert_eq!(ready().await.order(200), json!({ "ready": true, "serving": true, "store": true }));
    fixture.store_is_away.store(true, Ordering::Relaxed);
    assert_eq!(ready().await.order(503), json!({ "ready": false, "serving": true, "store": false }));
    assert_eq!(
        fixture.ask(Ask::get("/healthz")).await.status,
        200,
        "a store that is away is no reason to be killed"
    );
}

#[tokio::test]
async fn the_document_is_served_as_it_is_made_and_needs_no_key() {
    let fixture = Fixture::new().await;
    let served = fixture.ask(Ask::get("/openapi.json")).await;
    assert_eq!((served.status, served.text.as_str()), (200, quittance_admin::openapi().as_str()));
    let document = served.json();
    assert_eq!(document["openapi"], "3.1.0");
    let index = fixture.ask(Ask::get("/v1")).await.order(200);
    for (name, path) in index.as_object().unwrap() {
        if let Some(path) = path.as_str().filter(|path| path.starts_with('/')) {
            assert!(document["paths"].get(path).is_some(), "{name}: {path} is not in the document");
        }
    }
}

/// Collects every `$ref` in a JSON value.
fn references(value: &Value, found: &mut BTreeSet<String>) {
    match value {
        Value::Object(fields) => {
            found.extend(fields.get("$ref").and_then(Value::as_str).map(str::to_owned));
            fields.values().for_each(|value| references(value, found));
        }
        Value::Array(values) => values.iter().for_each(|value| references(value, found)),
        _ => {}
    }
}

#[test]
fn the_document_leads_nowhere_that_is_not_there_and_names_every_code() {
    let text = quittance_admin::openapi();
    let document: Value = serde_json::from_str(&text).unwrap();
    let mut found = BTreeSet::new();
    references(&document, &mut found);
    assert!(found.len() > 5);
    for reference in found {
        assert!(document.pointer(reference.trim_start_matches('#')).is_some(), "{reference}");
    }
    let mut ids = BTreeSet::new();
    for (path, methods) in document["paths"].as_object().unwrap() {
        for (method, operation) in methods.as_object().unwrap() {
            assert!(ids.insert(operation["operationId"].as_str().unwrap().to_owned()), "{method} {path}");
            assert!(operation["summary"].is_string(), "{method} {path}");
            let needs_key = operation.get("security").is_some();
            let refuses = operation["responses"].get("401").is_some();
            assert_eq!(needs_key, refuses, "{method} {path}");
        }
    }
    for code in [
        "idempotency_mismatch",
        "in_flight",
        "answer_expired",
        "needs_a_person",
        "held_back",
        "bad_json",
        "target_not_allowed",
        "kind_not_allowed",
        "rate_limited",
        "too_many_open",
        "store_unavailable",
        "unauthorized",
    ] {
        assert!(text.contains(&format!("`{code}`")), "{code}");
    }
}

#[tokio::test]
async fn head_and_options_are_answered_as_they_should_be() {
    let fixture = Fixture::new().await;
    let head = fixture.ask(Ask::new("HEAD", "/v1/kinds")).await;
    assert_eq!((head.status, head.text.as_str()), (200, ""));
    assert!(head.header("content-length").unwrap().parse::<usize>().unwrap() > 1000);
    let options = fixture.ask(Ask::new("OPTIONS", "/v1/orders")).await;
    assert_eq!((options.status, options.text.as_str()), (204, ""));
    let allowed: BTreeSet<&str> = options.header("allow").unwrap().split(',').map(str::trim).collect();
    assert_eq!(allowed, BTreeSet::from(["GET", "HEAD", "OPTIONS", "POST"]));
    fixture.ask(Ask::new("OPTIONS", "/v1/nothing")).await.must_be(404, "not_found");
}

#[tokio::test]
async fn the_kinds_are_listed_with_what_they_take() {
    let fixture = Fixture::new().await;
    let kinds = fixture.ask(Ask::get("/v1/kinds")).await.order(200);
    let kinds = kinds["kinds"].as_array().unwrap();
    assert_eq!(kinds.len(), quittance_protocol::kinds::kinds().count());
    let turnstile = kinds.iter().find(|kind| kind["name"] == "turnstile").unwrap();
    assert_eq!((&turnstile["life_s"], &turnstile["single_use"]), (&json!(300), &json!(true)));
    let page = json!({ "name": "pageurl", "shape": "page_address", "required": true, "identifies": true });
    assert!(turnstile["fields"].as_array().unwrap().contains(&page), "{turnstile}");
}
