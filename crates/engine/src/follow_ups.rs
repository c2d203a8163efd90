//! Follow-ups of an order that has ended: reports to the provider, and webhooks. They have their own queue, so a
//! webhook that hangs delays no answer.

use crate::node_stats::NodeCounters;
use crate::providers::ProviderAccount;
use crate::webhook_endpoints::{MayCall, WebhookEndpoint};
use crate::{ApplyOutcome, Engine};
use futures_util::future::{Either, FutureExt, select};
use quittance_lifecycle::follow_up::FOLLOW_UP_WAIT;
use quittance_lifecycle::{DeliveryOutcome, Effect, Event, Key, Order, ReportOutcome, Webhook};
use quittance_ports::{StoreError, Versioned};
use std::panic::AssertUnwindSafe;
use std::pin::pin;

impl Engine {
    /// Records a caller's report whether an answer was good. When this returns, the report is on record and will be
    /// sent to the provider.
    pub async fn report(&self, key: &Key, is_good: bool) -> Result<ApplyOutcome, StoreError> {
        let applied = self.apply_and_run(key, &Event::Reported { is_good }).await?;
        if let ApplyOutcome::Advanced { now, .. } = &applied {
            self.learn_trust(&now.order, is_good).await;
        }
        Ok(applied)
    }

    /// Adds a webhook. It is called in this dialect when the order has ended.
    pub async fn listen_for(
        &self,
        key: &Key,
        url: impl Into<String>,
        dialect: impl Into<String>,
    ) -> Result<ApplyOutcome, StoreError> {
        let event = Event::WebhookAdded { url: url.into(), dialect: dialect.into() };
        self.apply_and_run(key, &event).await
    }

    async fn apply_and_run(&self, key: &Key, event: &Event) -> Result<ApplyOutcome, StoreError> {
        let applied = self.apply(key, None, event).await.inspect_err(|error| self.note_error(error))?;
        if let ApplyOutcome::Advanced { now, effect: Some(effect) } = &applied {
            self.perform_later(now.clone(), effect.clone());
        }
        Ok(applied)
    }

    pub(crate) async fn run_follow_up(&self, now: Versioned, effect: Effect) {
        let key = now.order.key;
        let done = match effect {
            Effect::Report { attempt, task, is_good } => {
                let outcome = match self.provider_to_ask(&now.order, Some(attempt)) {
                    Some(provider) => self.pass_on(&provider, &task, is_good).await,
                    None => ReportOutcome::NoReply,
                };
                self.apply(&key, None, &Event::ReportPassed { attempt, outcome }).await
            }
            Effect::DeliverWebhook { webhook } => {
                let outcome = self.tell(&now.order, webhook).await;
                self.apply(&key, None, &Event::WebhookTried { webhook, outcome }).await
            }
            _ => return,
        };
        // What could not be written is tried again when its timer rings.
        if let Err(error) = done {
            self.note_error(&error);
        }
    }

    async fn pass_on(&self, provider: &ProviderAccount, task: &str, is_good: bool) -> ReportOutcome {
        let until = self.now() + FOLLOW_UP_WAIT;
        let call = pin!(AssertUnwindSafe(provider.adapter.report(task, is_good)).catch_unwind());
        match select(call, pin!(self.world.clock.sleep_until(until))).await {
            Either::Left((Ok(outcome), _)) => outcome,
            Either::Left((Err(_), _)) => {
                NodeCounters::add(&self.node_counters.panics, 1);
                ReportOutcome::NoReply
            }
            Either::Right(_) => ReportOutcome::NoReply,
        }
    }

    async fn tell(&self, order: &Order, number: u32) -> DeliveryOutcome {
        let Some(webhook) = order.webhooks.iter().find(|webhook| webhook.number == number) else {
            return DeliveryOutcome::Delivered;
        };
        let endpoint = WebhookEndpoint::of(&order.terms.tenant, &webhook.url);
        let is_probe = match self.call_endpoint(&endpoint).await {
            MayCall::Yes => false,
            MayCall::Probe => true,
            MayCall::No(why) => return DeliveryOutcome::SwitchedOff { why },
        };
        let outcome = self.call_webhook(order, webhook).await;
        match (self.note_delivery(&endpoint, &outcome), is_probe) {
            (Some(why), true) => DeliveryOutcome::SwitchedOff { why },
            _ => outcome,
        }
    }

    async fn call_webhook(&self, order: &Order, webhook: &Webhook) -> DeliveryOutcome {
        let until = self.now() + FOLLOW_UP_WAIT;
        let call = pin!(AssertUnwindSafe(self.world.webhook_sender.tell(order, webhook)).catch_unwind());
        match select(call, pin!(self.world.clock.sleep_until(until))).await {
            Either::Left((Ok(outcome), _)) => outcome,
            Either::Left((Err(_), _)) => {
                NodeCounters::add(&self.node_counters.panics, 1);
                DeliveryOutcome::NotDelivered { why: "a bug of ours: see the log".into() }
            }
            Either::Right(_) => DeliveryOutcome::NotDelivered { why: "no answer in time".into() },
        }
    }
}
