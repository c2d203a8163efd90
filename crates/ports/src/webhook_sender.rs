//! Calls the webhooks of callers. The sender gets the present order, and returns whether the webhook accepted the
//! call. It does not decide when to try again.

use async_trait::async_trait;
use quittance_lifecycle::{DeliveryOutcome, Order, Webhook};
use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

#[async_trait]
pub trait WebhookSender: Send + Sync {
    /// Calls a webhook. A call may be made twice, each time with the same message id.
    async fn tell(&self, order: &Order, webhook: &Webhook) -> DeliveryOutcome;
}

/// Accepts every call and remembers its webhook, for tests. Only the last ones are kept.
#[derive(Debug, Default)]
pub struct MemoryWebhooks(Mutex<VecDeque<Webhook>>);

/// How many calls are remembered.
const DELIVERED_MAX: usize = 1024;

impl MemoryWebhooks {
    /// The webhooks that were called, in order.
    #[must_use]
    pub fn delivered(&self) -> Vec<Webhook> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).iter().cloned().collect()
    }
}

#[async_trait]
impl WebhookSender for MemoryWebhooks {
    async fn tell(&self, _order: &Order, webhook: &Webhook) -> DeliveryOutcome {
        let mut delivered = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if delivered.len() >= DELIVERED_MAX {
            delivered.pop_front();
        }
        delivered.push_back(webhook.clone());
        DeliveryOutcome::Delivered
    }
}
