//! What a webhook sends: what a poll would have returned, in the form that the caller's protocol promises.

use super::format::WebhookFormat;
use crate::codes::{code_of_outcome, in_classic};
use crate::id::OrderId;
use crate::json::webhook_body;
use bytes::Bytes;
use hyper::{Method, Uri};
use quittance_engine::Outcome;
use quittance_lifecycle::{Order, Timestamp, Webhook};
use quittance_protocol::Dialect;
use std::time::Duration;

pub(super) struct Message {
    pub(super) method: Method,
    pub(super) uri: Uri,
    pub(super) content_type: Option<&'static str>,
    pub(super) body: Bytes,
    /// How long the answer still lives, if there is one and it does not live for ever.
    pub(super) remaining_life: Option<Duration>,
}

impl Message {
    /// `None` if there is nothing to send, or the address cannot be read.
    pub(super) fn compose(
        order: &Order,
        outcome: &Outcome,
        webhook: &Webhook,
        format: WebhookFormat,
        now: Timestamp,
        currency: &str,
    ) -> Option<Self> {
        // Whoever took an answer from the stock knows it by another id than whoever had placed the order.
        let is_from_stock =
            matches!(&order.phase, quittance_lifecycle::Phase::Claimed { by, .. } if *by != order.key);
        let id = OrderId::new(&order.key, is_from_stock);
        let remaining_life = match outcome {
            Outcome::Answered(answer) => answer.remaining_life(now),
            _ => None,
        };
        let post = |content_type, body: String| {
            let (method, uri) = (Method::POST, webhook.url.parse().ok()?);
            Some(Self { method, uri, content_type: Some(content_type), body: body.into(), remaining_life })
        };
        match format {
            WebhookFormat::Classic(Dialect::CaptchaAi) => {
                let uri = with_query(&webhook.url, &pairs(id, outcome)).parse().ok()?;
                let (method, body) = (Method::GET, Bytes::new());
                Some(Self { method, uri, content_type: None, body, remaining_life })
            }
            WebhookFormat::Classic(_) => post("application/x-www-form-urlencoded", pairs(id, outcome)),
            WebhookFormat::Json(dialect) => {
                post("application/json", webhook_body(dialect, order, id, outcome))
            }
            WebhookFormat::V1 => {
                post("application/json", crate::v1::webhook_body(order, id, outcome, now, currency)?)
            }
        }
    }
}

impl Message {
    /// What is signed: the body, or the query of a message that has none, without the question mark.
    pub(super) fn payload(&self) -> &[u8] {
        if self.method == Method::GET { self.uri.query().unwrap_or_default().as_bytes() } else { &self.body }
    }
}

fn pairs(id: OrderId, outcome: &Outcome) -> String {
    let code = match outcome {
        Outcome::Answered(answer) => answer.payload.text.as_str().into(),
        other => code_of_outcome(other),
    };
    let code = match outcome {
        Outcome::Answered(_) => &*code,
        _ => in_classic(&code),
    };
    let mut form = form_urlencoded::Serializer::new(String::new());
    form.append_pair("id", &id.to_string()).append_pair("code", code).finish()
}

fn with_query(url: &str, pairs: &str) -> String {
    let url = url.split_once('#').map_or(url, |(url, _)| url);
    let between = if !url.contains('?') {
        "?"
    } else if url.ends_with(['?', '&']) {
        ""
    } else {
        "&"
    };
    format!("{url}{between}{pairs}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_added_to_an_address_leaves_the_rest_of_it_alone() {
        for (url, whole) in [
            ("http://a.test/p", "http://a.test/p?id=1"),
            ("http://a.test/p?x=1", "http://a.test/p?x=1&id=1"),
            ("http://a.test/p?", "http://a.test/p?id=1"),
            ("http://a.test/p?x=1&", "http://a.test/p?x=1&id=1"),
            ("http://a.test/p#part", "http://a.test/p?id=1"),
        ] {
            assert_eq!(with_query(url, "id=1"), whole);
        }
    }
}
