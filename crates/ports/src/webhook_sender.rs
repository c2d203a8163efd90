//! Whoever calls those who asked to be called. He is given the order as it stands and says whether his word was taken;
//! when to try again is decided elsewhere.

use async_trait::async_trait;
use quittance_lifecycle::{DeliveryOutcome, Order, Webhook};
use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

#[async_trait]
pub trait WebhookSender: Send + Sync {
    /// It may be told twice: whoever listens is given a name for the message, and the same one each time.
    async fn tell(&self, order: &Order, webhook: &Webhook) -> DeliveryOutcome;
}

/// Takes every word and remembers to whom it went, for tests and trials. Bounded: the last ones are kept.
#[derive(Debug, Default)]
pub struct MemoryWebhooks(Mutex<VecDeque<Webhook>>);

/// How many words are remembered.
const TOLD_MAX: usize = 1024;

impl MemoryWebhooks {
    /// Who was told, in order.
    #[must_use]
    pub fn told(&self) -> Vec<Webhook> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).iter().cloned().collect()
    }
}

#[async_trait]
impl WebhookSender for MemoryWebhooks {
    async fn tell(&self, _order: &Order, webhook: &Webhook) -> DeliveryOutcome {
        let mut told = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if told.len() >= TOLD_MAX {
            told.pop_front();
        }
        told.push_back(webhook.clone());
        DeliveryOutcome::Delivered
    }
}
