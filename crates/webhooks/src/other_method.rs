//! Addresses that accept a webhook only by the other HTTP method. CaptchaAI calls by GET and 2captcha by POST, and
//! some callers run a server for one with a client for the other.

use super::format::WebhookFormat;
use quittance_lifecycle::Webhook;
use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The most addresses that are kept. Above it all are forgotten, which costs each of them one more 405.
const ADDRESSES_MAX: usize = 10_000;

#[derive(Debug, Default)]
pub(super) struct OtherMethods(Mutex<BTreeMap<String, WebhookFormat>>);

/// The address without its query, where callers put what differs between orders.
fn address(webhook: &Webhook) -> String {
    let path = webhook.url.split(['?', '#']).next().unwrap_or_default();
    format!("{} {path}", webhook.dialect)
}

impl OtherMethods {
    fn known(&self) -> MutexGuard<'_, BTreeMap<String, WebhookFormat>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The format for this address, or `None` if its format is not known here.
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
