//! Dead letters that an operator might write by hand: an export can be edited.

use crate::hosts::cases::bytes_in;
use crate::hosts::hide::{base64, unbase64};
use crate::hosts::holes::Hole;
use crate::hosts::world::{HostsCaller, HostsProvider, HostsWorld};
use quittance::lifecycle::{DeadCause, Draft, Key, KeySettings, Phase, Placement, Policy, Timestamp, Value};
use serde_json::{Map, Value as Json, json};
use std::collections::BTreeMap;
use std::sync::Arc;

/// A key, and its line in an export.
pub(crate) fn dead_letter(kind: &str, params: &Map<String, Json>, number: u64) -> (Key, String) {
    let described = quittance_protocol::kinds::kind("turnstile").unwrap();
    let now = Timestamp::from_millis(1_700_000_000_000);
    let draft = Draft::new("default")
        .with("sitekey", format!("{number}").as_str())
        .with("pageurl", "https://shop.example.org/");
    let draft = Draft { idempotency_key: Some(format!("letter-{number}")), ..draft };
    let (key, mut terms) = draft.check(&described, KeySettings::default(), &Policy::DEFAULT, now, 0).unwrap();
    terms.kind = kind.to_owned();
    let text = |value: &Json| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    terms.params = params
        .iter()
        .map(|(name, value)| {
            let bytes = bytes_in(value).and_then(unbase64).map(Value::Bytes);
            (name.clone(), bytes.unwrap_or_else(|| Value::Text(text(value))))
        })
        .collect::<BTreeMap<_, _>>();
    let terms = Arc::new(terms);
    let Placement::Commit { advance, .. } =
        quittance::lifecycle::place(None, None, key, &terms, now, &Policy::DEFAULT)
    else {
        panic!("nothing stands in its way")
    };
    let mut order = advance.next;
    order.phase = Phase::Dead { cause: DeadCause::Deadline, at: now };
    let record = base64(&quittance_record::encode_order(&order));
    let terms = base64(&quittance_record::encode_terms(&terms));
    (key, json!({ "key": key.to_string(), "record": record, "terms": terms }).to_string())
}

/// A dead letter that was never placed here may be incomplete, or have no tenant.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_dead_letter_without_a_tenant_or_a_page_is_not_replayed() {
    let whole = json!({ "sitekey": "0x4", "pageurl": "https://shop.example.org/" });
    let without_page = json!({ "sitekey": "0x4" });
    let provider = HostsProvider::Json(quittance_mock_provider::MockDialect::TwoCaptcha);
    for (tenants, params, refused) in [
        (&["default"][..], &whole, None),
        (&[], &whole, None),
        (&["default"], &without_page, Some("pageurl")),
        (&["shop"], &whole, Some("default")),
    ] {
        let world = HostsWorld::start_for(provider, Hole::None, tenants).await;
        let mut caller = HostsCaller::new(world.gateway);
        let (key, line) = dead_letter("turnstile", params.as_object().unwrap(), 1);
        caller.call("POST", "/v1/admin/dead/import", "application/x-ndjson", line.as_bytes()).await;
        let path = format!("/v1/admin/dead/{key}/replay");
        let (status, output) = caller.call("POST", &path, "application/json", b"{}").await;
        match refused {
            None => assert!(status < 300 && world.tap.arrives(0).await, "{tenants:?}: {output}"),
            Some(reason) => {
                assert!(status >= 400 && output.contains(reason), "{tenants:?}: {status} {output}");
            }
        }
        assert_eq!(world.tap.arrived(), u64::from(refused.is_none()));
        world.stop().await;
    }
}

/// A pool accepts the names that an order accepts.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_pool_takes_the_words_of_any_protocol_and_kinds_that_are_not_described() {
    let world =
        HostsWorld::start(HostsProvider::Classic(quittance::ClassicDialect::TwoCaptcha), Hole::None).await;
    let mut caller = HostsCaller::new(world.gateway);
    let page = "https://shop.example.org/";
    for (kind, params, kept_as) in [
        ("TurnstileTaskProxyless", json!({ "websiteURL": page, "websiteKey": "0x4" }), Ok("turnstile")),
        ("yandex", json!({ "pageurl": page, "key1": "a" }), Ok("yandex")),
        ("yandx", json!({ "pageurl": page, "key1": "b" }), Err("yandex")),
        ("turnstile", json!({ "pageurl": page, "sitekey": "0x5", "key[0]": "x" }), Err("key[0]")),
    ] {
        let body = json!({ "tenant": "default", "kind": kind, "params": params, "size": 1 }).to_string();
        let path = format!("/v1/pools/{}", kind.to_lowercase());
        let (status, output) = caller.call("PUT", &path, "application/json", body.as_bytes()).await;
        match kept_as {
            Ok(kept_as) => {
                let view: Json = serde_json::from_str(&output).unwrap();
                assert!(status < 300 && view["kind"] == kept_as, "{kind}: {status} {output}");
            }
            Err(reason) => assert!(status >= 400 && output.contains(reason), "{kind}: {status} {output}"),
        }
    }
    world.stop().await;
}
