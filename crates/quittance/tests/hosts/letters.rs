//! Dead letters as somebody might write them by hand: an export can be edited.

use crate::cases::bytes_in;
use crate::hide::{base64, unbase64};
use quittance::lifecycle::{DeadCause, Draft, Key, KeySettings, Phase, Placement, Policy, Timestamp, Value};
use serde_json::{Map, Value as Json, json};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The key, and the line of an export.
pub(crate) fn letter(kind: &str, params: &Map<String, Json>, number: u64) -> (Key, String) {
    let described = quittance_catalog::kind("turnstile").unwrap();
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
