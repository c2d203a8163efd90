//! Scripted webhooks: each accepts its call, refuses it, or hangs.

use crate::stories::world::since_start;
use async_trait::async_trait;
use quittance_lifecycle::{DeliveryOutcome, Order, Webhook};
use quittance_ports::WebhookSender;
use quittance_sim::executor::Executor;
use std::collections::{BTreeMap, VecDeque};
use std::future::pending;
use std::sync::{Arc, Mutex, MutexGuard};

#[derive(Clone, Copy, Debug)]
pub(crate) enum WebhookScript {
    Refuses,
    Hangs,
    Panics,
}

#[derive(Default)]
struct WebhookNotes {
    takings: BTreeMap<String, VecDeque<WebhookScript>>,
    calls: Vec<(u64, String, &'static str)>,
}

/// The webhooks of a test. Clones of a handle share them.
#[derive(Clone)]
pub(crate) struct StoryWebhooks {
    executor: Executor,
    notes: Arc<Mutex<WebhookNotes>>,
}

impl StoryWebhooks {
    pub(crate) fn new(executor: &Executor) -> Self {
        Self { executor: executor.clone(), notes: Arc::default() }
    }

    fn notes(&self) -> MutexGuard<'_, WebhookNotes> {
        self.notes.lock().expect("nothing panics while it holds the notes")
    }

    /// Sets the outcomes of the next calls to this address. After those, it accepts calls.
    pub(crate) fn on_call(&self, url: &str, takings: &[WebhookScript]) {
        self.notes().takings.entry(url.into()).or_default().extend(takings);
    }

    /// From now on this address accepts every call.
    pub(crate) fn accepts_again(&self, url: &str) {
        self.notes().takings.remove(url);
    }

    /// Every call: when, to which address, and in which phase the order was.
    pub(crate) fn calls(&self) -> Vec<(u64, String, &'static str)> {
        self.notes().calls.clone()
    }

    pub(crate) fn calls_to(&self, url: &str) -> Vec<u64> {
        self.calls().into_iter().filter(|(_, to, _)| to == url).map(|(at, ..)| at).collect()
    }
}

#[async_trait]
impl WebhookSender for StoryWebhooks {
    async fn tell(&self, order: &Order, webhook: &Webhook) -> DeliveryOutcome {
        let taking = {
            let mut notes = self.notes();
            let at = since_start(self.executor.now());
            notes.calls.push((at, webhook.url.clone(), order.phase.name()));
            notes.takings.get_mut(&webhook.url).and_then(VecDeque::pop_front)
        };
        match taking {
            None => DeliveryOutcome::Delivered,
            Some(WebhookScript::Refuses) => DeliveryOutcome::NotDelivered { why: "HTTP 500".into() },
            Some(WebhookScript::Hangs) => pending().await,
            Some(WebhookScript::Panics) => panic!("this call panics, as the story says"),
        }
    }
}
