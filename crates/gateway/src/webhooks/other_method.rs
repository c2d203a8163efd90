//! Addresses that take a webhook only by the method that their dialect does not use: tutorials for CaptchaAI, which calls
//! by GET, end up behind clients of 2captcha, which calls by POST, and the other way round.

use super::message::{CAPTCHAAI, TWO_CAPTCHA};
use quittance_lifecycle::Webhook;
use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// How many addresses are remembered. When there are more, all are forgotten, which costs each one more 405.
const ADDRESSES_MAX: usize = 10_000;

#[derive(Debug, Default)]
pub(super) struct OtherMethods(Mutex<BTreeMap<String, &'static str>>);

/// The dialect that says the same by the other method, if there is one.
pub(super) fn other(dialect: &str) -> Option<&'static str> {
    match dialect {
        TWO_CAPTCHA => Some(CAPTCHAAI),
        CAPTCHAAI => Some(TWO_CAPTCHA),
        _ => None,
    }
}

/// Callers put what differs from order to order into the query.
fn address(webhook: &Webhook) -> String {
    let path = webhook.url.split(['?', '#']).next().unwrap_or_default();
    format!("{} {path}", webhook.dialect)
}

impl OtherMethods {
    fn known(&self) -> MutexGuard<'_, BTreeMap<String, &'static str>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How this address is called.
    pub(super) fn dialect_for<'a>(&self, webhook: &'a Webhook) -> &'a str {
        self.known().get(&address(webhook)).copied().unwrap_or(&webhook.dialect)
    }

    pub(super) fn remember(&self, webhook: &Webhook, dialect: &'static str) {
        let mut known = self.known();
        if known.len() >= ADDRESSES_MAX {
            known.clear();
        }
        if dialect == webhook.dialect {
            known.remove(&address(webhook));
        } else {
            known.insert(address(webhook), dialect);
        }
    }
}
