//! One webhook call before it is sent: its method, address and text.

use super::format::WebhookFormat;
use bytes::Bytes;
use hyper::{Method, Uri};
use quittance_protocol::Dialect;
use std::time::Duration;

pub(super) struct Message {
    pub(super) method: Method,
    pub(super) uri: Uri,
    pub(super) content_type: Option<&'static str>,
    pub(super) body: Bytes,
    /// How long the answer still lives, if there is one and it expires.
    pub(super) remaining_life: Option<Duration>,
}

impl Message {
    /// A message, or `None` if the address cannot be parsed.
    pub(super) fn new(
        format: WebhookFormat,
        url: &str,
        text: String,
        remaining_life: Option<Duration>,
    ) -> Option<Self> {
        let (method, url, content_type, body) = match format {
            WebhookFormat::Classic(Dialect::CaptchaAi) => {
                (Method::GET, &*with_query(url, &text), None, Bytes::new())
            }
            WebhookFormat::Classic(_) => {
                (Method::POST, url, Some("application/x-www-form-urlencoded"), text.into())
            }
            WebhookFormat::Json(_) | WebhookFormat::V1 => {
                (Method::POST, url, Some("application/json"), text.into())
            }
        };
        Some(Self { method, uri: url.parse().ok()?, content_type, body, remaining_life })
    }

    /// The signed bytes: the body, or the query (without the question mark) of a message without a body.
    pub(super) fn payload(&self) -> &[u8] {
        if self.method == Method::GET { self.uri.query().unwrap_or_default().as_bytes() } else { &self.body }
    }
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
