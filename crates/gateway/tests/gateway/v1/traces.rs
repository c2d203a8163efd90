//! Tests of traces at a collector: one trace from the caller's request through the provider calls to the hand-out,
//! below the caller's own span. A collector that is down disturbs no request.

use super::fixture::{ANNA, Fixture, order, path_of};
use super::talk::Ask;
use crate::eventually::eventually;
use http_body_util::{BodyExt, Full};
use hyper::body::{Bytes, Incoming};
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use serde_json::Value;
use std::collections::BTreeMap;
use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use tokio::net::TcpListener;

const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";
const CALLER: &str = "00f067aa0ba902b7";

type CallbackOutcome = Arc<Mutex<Vec<Value>>>;

/// A collector that keeps all posted spans.
async fn collector() -> (SocketAddr, CallbackOutcome) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let heard = CallbackOutcome::default();
    let kept = Arc::clone(&heard);
    tokio::spawn(async move {
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            let kept = Arc::clone(&kept);
            let answer = move |request: Request<Incoming>| {
                let kept = Arc::clone(&kept);
                async move {
                    assert_eq!(request.uri().path(), "/v1/traces");
                    assert_eq!(request.headers()["content-type"], "application/json");
                    let body = request.into_body().collect().await.unwrap().to_bytes();
                    let written: Value = serde_json::from_slice(&body).unwrap();
                    let spans = &written["resourceSpans"][0]["scopeSpans"][0]["spans"];
                    kept.lock().unwrap().extend(spans.as_array().unwrap().iter().cloned());
                    Ok::<_, Infallible>(Response::new(Full::new(Bytes::from_static(b"{}"))))
                }
            };
            let serving = hyper::server::conn::http1::Builder::new();
            tokio::spawn(
                async move { serving.serve_connection(TokioIo::new(stream), service_fn(answer)).await },
            );
        }
    });
    (address, heard)
}

/// The spans by name, as soon as one has this name.
async fn heard_until(heard: &CallbackOutcome, name: &str) -> BTreeMap<String, Value> {
    eventually(name, async || {
        let spans = heard.lock().unwrap().clone();
        let named: BTreeMap<String, Value> =
            spans.into_iter().map(|span| (span["name"].as_str().unwrap().to_owned(), span)).collect();
        named.contains_key(name).then_some(named)
    })
    .await
}

#[tokio::test]
async fn a_trace_leads_from_the_callers_request_through_the_provider_to_the_hand_out() {
    let (address, heard) = collector().await;
    let fixture = Fixture::traced(address).await;
    let ask = Ask::post("/v1/orders", &order("hold-t")).key(ANNA);
    let placed = fixture.ask(ask.header("traceparent", &format!("00-{TRACE}-{CALLER}-01"))).await.order(202);
    let path = path_of(&placed);
    fixture.until(&path, "solving").await;
    fixture.call_back("hold-t", "token").await;
    fixture.end_of(&path).await;
    let spans = heard_until(&heard, "hand out").await;
    let [place, whole, attempt, submit, hand_out] =
        ["place turnstile", "order turnstile", "attempt 1", "submit", "hand out"].map(|name| &spans[name]);
    for span in [place, whole, attempt, submit, hand_out] {
        assert_eq!(span["traceId"], TRACE, "{span}");
        assert_eq!(span["status"], serde_json::json!({}), "{span}");
    }
    assert_eq!(place["parentSpanId"], CALLER);
    assert_eq!(whole["parentSpanId"], place["spanId"]);
    assert_eq!(attempt["parentSpanId"], whole["spanId"]);
    assert_eq!((&submit["parentSpanId"], &submit["kind"]), (&attempt["spanId"], &3.into()));
    assert_eq!(hand_out["parentSpanId"], whole["spanId"]);
    let response: Vec<_> =
        whole["events"].as_array().unwrap().iter().map(|event| event["name"].clone()).collect();
    assert_eq!(response.last().unwrap(), "attempt 1: solved, by callback");
}

#[tokio::test]
async fn a_caller_that_wants_no_trace_has_none_and_one_that_says_nothing_has_its_own() {
    let (address, heard) = collector().await;
    let fixture = Fixture::traced(address).await;
    let unwanted = format!("00-{TRACE}-{CALLER}-00");
    for (sitekey, trace) in [("hold-a", unwanted.as_str()), ("hold-b", "nonsense")] {
        let ask = Ask::post("/v1/orders", &order(sitekey)).key(ANNA).header("traceparent", trace);
        let path = path_of(&fixture.ask(ask).await.order(202));
        fixture.until(&path, "solving").await;
        fixture.call_back(sitekey, "token").await;
        fixture.end_of(&path).await;
    }
    let spans = heard_until(&heard, "hand out").await;
    assert_ne!(spans["place turnstile"]["traceId"], TRACE);
    assert_eq!(spans["place turnstile"].get("parentSpanId"), None, "it is the first of its own");
    assert_eq!(spans["order turnstile"]["parentSpanId"], spans["place turnstile"]["spanId"]);
    assert!(heard.lock().unwrap().iter().all(|span| span["traceId"] != TRACE));
}

#[tokio::test]
async fn a_collector_that_is_away_holds_up_no_order() {
    let closed = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    let fixture = Fixture::traced(closed).await;
    let path = path_of(&fixture.place("hold-c").await.order(202));
    fixture.until(&path, "solving").await;
    fixture.call_back("hold-c", "token").await;
    assert_eq!(fixture.end_of(&path).await["answer"]["text"], "token");
    let traces = fixture.gateway.orders().commit_feed().traces().unwrap().clone();
    eventually("a trace is left out", async || (traces.dropped() > 0).then_some(())).await;
    assert_eq!(traces.sent(), 0);
}

#[tokio::test]
async fn a_caller_that_is_given_what_another_ordered_finds_it_from_its_own_trace() {
    let (address, heard) = collector().await;
    let fixture = Fixture::traced(address).await;
    let path = path_of(&fixture.place("hold-d").await.order(202));
    fixture.until(&path, "solving").await;
    fixture.call_back("hold-d", "token").await;
    fixture.end_of(&path).await;
    let ask = Ask::post("/v1/orders", &order("hold-d")).key(ANNA);
    fixture.ask(ask.header("traceparent", &format!("00-{TRACE}-{CALLER}-01"))).await.order(200);
    fixture.gateway.orders().commit_feed().traces().unwrap().finish().await;
    let spans = heard.lock().unwrap().clone();
    let whole = spans.iter().find(|span| span["name"] == "order turnstile").unwrap();
    assert_ne!(whole["traceId"], TRACE);
    let link = serde_json::json!([{ "traceId": whole["traceId"], "spanId": whole["spanId"] }]);
    let own_spans: Vec<&Value> = spans.iter().filter(|span| span["traceId"] == TRACE).collect();
    let [place, given] = &own_spans[..] else { panic!("{own_spans:?}") };
    assert_eq!((&place["name"], &place["links"]), (&"place turnstile".into(), &link));
    let origin = serde_json::json!({ "key": "quittance.origin", "value": { "stringValue": "cached" } });
    assert!(place["attributes"].as_array().unwrap().contains(&origin), "{place}");
    assert_eq!((&given["name"], &given["links"]), (&"hand out".into(), &link));
    assert_eq!(given["parentSpanId"], place["spanId"]);
}

#[tokio::test]
async fn what_a_caller_calls_its_kind_names_no_span() {
    let (address, heard) = collector().await;
    let fixture = Fixture::traced(address).await;
    let odd = "M".repeat(5000);
    let asked = Ask::get(format!("/in.php?key={ANNA}&method={odd}&pageurl=https://shop.example.com/"));
    assert!(fixture.ask(asked).await.text.starts_with("ERROR_"));
    fixture.gateway.orders().commit_feed().traces().unwrap().finish().await;
    let spans = heard.lock().unwrap().clone();
    assert_eq!(spans.len(), 1, "{spans:?}");
    assert_eq!(spans[0]["name"], "place other");
    assert!(!spans[0].to_string().contains(&odd), "{}", spans[0]);
}
