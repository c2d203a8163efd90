//! Addresses that accept a webhook only by the HTTP method that their dialect does not use. CaptchaAI calls by GET and 2captcha by POST,
//! and servers written for one are used with clients of the other.

use super::format::WebhookFormat;
use quittance_lifecycle::Webhook;
use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// How many addresses are remembered. When there are more, all are forgotten, which costs each one more 405.
const ADDRESSES_MAX: usize = 10_000;

#[derive(Debug, Default)]
pub(super) struct OtherMethods(Mutex<BTreeMap<String, WebhookFormat>>);

/// Callers put what differs from order to order into the query.
fn address(webhook: &Webhook) -> String {
    let path = webhook.url.split(['?', '#']).next().unwrap_or_default();
    format!("{} {path}", webhook.dialect)
}

impl OtherMethods {
    fn known(&self) -> MutexGuard<'_, BTreeMap<String, WebhookFormat>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How this address is called; `None` if its format is not known here.
    pub(super) fn format_for(&self, webhook: &Webhook) -> Option<WebhookFormat> {
        let other = self.known().get(&address(webhook)).copied();
        other.or_else(|| WebhookFormat::parse(&webhook.dialect))
    }

    pub(super) fn remember(&self, webhook: &Webhook, format: WebhookFormat) {
        let mut known = self.known();
        if known.len() >= ADDRESSES_MAX {
            known.clear();
        }
        if format.name() == webhook.dialect {
            known.remove(&address(webhook));
        } else {
            known.insert(address(webhook), format);
        }
    }
}
