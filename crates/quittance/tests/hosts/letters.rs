//! Dead letters as somebody might write them by hand: an export can be edited.

use quittance::lifecycle::{DeadCause, Draft, Key, KeySettings, Phase, Placement, Policy, Timestamp, Value};
use serde_json::{Map, Value as Json, json};
use std::collections::BTreeMap;
use std::sync::Arc;

const BASE64: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

fn base64(bytes: &[u8]) -> String {
    let mut out = String::new();
    for three in bytes.chunks(3) {
        let sum =
            three.iter().fold(0_u32, |sum, byte| sum << 8 | u32::from(*byte)) << (8 * (3 - three.len()));
        for place in 0..4 {
            let letter = BASE64[(sum >> (18 - 6 * place) & 63) as usize];
            out.push(if place > three.len() { '=' } else { char::from(letter) });
        }
    }
    out
}

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
        .map(|(name, value)| (name.clone(), Value::Text(text(value))))
        .collect::<BTreeMap<_, _>>();
    let terms = Arc::new(terms);
    let Placement::Commit { advance, .. } =
        quittance::lifecycle::place(None, key, &terms, now, &Policy::DEFAULT)
    else {
        panic!("nothing stands in its way")
    };
    let mut order = advance.next;
    order.phase = Phase::Dead { cause: DeadCause::Deadline, at: now };
    let record = base64(&quittance_record::encode_order(&order));
    let terms = base64(&quittance_record::encode_terms(&terms));
    (key, json!({ "key": key.to_string(), "record": record, "terms": terms }).to_string())
}
