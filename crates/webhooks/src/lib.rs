//! Sends webhooks to callers: in the format of their protocol, signed, and not into the operator's own network unless
//! the operator allows it. The life cycle decides when to retry and when to give up.

#![forbid(unsafe_code)]

mod alerts;
mod format;
mod message;
mod other_method;
mod sign;
mod signed_call;
mod webhook_reach;

pub use format::WebhookFormat;
pub use sign::{derived_secret, secret_for_people};
pub use signed_call::REMAINING_LIFE;
pub use webhook_reach::{Allowed, BadAllowed};

use async_trait::async_trait;
use hyper::{StatusCode, Uri};
use message::Message;
use other_method::OtherMethods;
use quittance_engine::Outcome;
use quittance_lifecycle::follow_up::WEBHOOK_URL_BYTES_MAX;
use quittance_lifecycle::{DeliveryOutcome, DeliveryState, Order, Timestamp, Webhook};
use quittance_ports::{Clock, WebhookSender};
use quittance_wire::call::HttpCaller;
use signed_call::{accepted_within, call};
use std::collections::BTreeMap;
use std::fmt;
use std::net::IpAddr;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

/// The timeout of the first try of a delivery.
const FIRST_WAIT: Duration = Duration::from_secs(3);

/// The operator's settings for webhooks.
#[derive(Clone)]
pub struct WebhookSettings {
    /// Addresses inside the operator's network that can be called.
    pub allow: Vec<Allowed>,
    /// The timeout of one call, from the DNS lookup to the response.
    pub wait: Duration,
    /// The secrets that sign webhooks, by tenant.
    pub secrets: BTreeMap<String, [u8; 32]>,
    /// The secret from which the secrets of all other tenants are derived; equal on every node.
    pub root_secret: [u8; 32],
    /// The currency of the cost of an answer.
    pub currency: String,
}

impl Default for WebhookSettings {
    fn default() -> Self {
        Self {
            allow: Vec::new(),
            wait: Duration::from_secs(10),
            secrets: BTreeMap::new(),
            root_secret: [0; 32],
            currency: "USD".to_owned(),
        }
    }
}

impl fmt::Debug for WebhookSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WebhookSettings")
            .field("allow", &self.allow)
            .field("wait", &self.wait)
            .finish_non_exhaustive()
    }
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadCallback {
    #[error("it is not an http or https address of at most {WEBHOOK_URL_BYTES_MAX} bytes")]
    NotAnAddress,
    #[error("it contains a user name or a password: leave them out")]
    HasPassword,
    #[error("it leads into the operator's network: the operator can allow it in `webhooks.allow`")]
    Inside,
}

/// Writes the text of a webhook about an order, in the currency of the last argument. `None` if the order is gone.
pub type WriteText = fn(WebhookFormat, &Order, &Outcome, Timestamp, &str) -> Option<String>;

/// Sends webhooks. Clones share their state.
#[derive(Clone)]
pub struct Webhooks {
    settings: Arc<RwLock<Arc<WebhookSettings>>>,
    root_secret: Arc<RwLock<[u8; 32]>>,
    clock: Arc<dyn Clock>,
    caller: HttpCaller,
    write_text: WriteText,
    other_methods: Arc<OtherMethods>,
}

impl fmt::Debug for Webhooks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Webhooks({:?})", self.settings())
    }
}

impl Webhooks {
    #[must_use]
    pub fn new(settings: WebhookSettings, clock: Arc<dyn Clock>, write_text: WriteText) -> Self {
        Self {
            root_secret: Arc::new(RwLock::new(settings.root_secret)),
            settings: Arc::new(RwLock::new(Arc::new(settings))),
            clock,
            caller: HttpCaller::default(),
            write_text,
            other_methods: Arc::default(),
        }
    }

    /// The secret from which the secrets of tenants without their own are derived.
    #[must_use]
    pub fn root_secret(&self) -> [u8; 32] {
        *self.root_secret.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sets the root secret on which the nodes of a store have agreed.
    pub fn set_root_secret(&self, secret: [u8; 32]) {
        *self.root_secret.write().unwrap_or_else(PoisonError::into_inner) = secret;
    }

    /// The secret that signs a tenant's webhooks.
    #[must_use]
    pub fn secret_of(&self, tenant: &str) -> [u8; 32] {
        let own = self.settings().secrets.get(tenant).copied();
        own.unwrap_or_else(|| derived_secret(&self.root_secret(), tenant))
    }

    #[must_use]
    pub fn settings(&self) -> Arc<WebhookSettings> {
        Arc::clone(&self.settings.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Sets which addresses may be called, how long a call may take, and the secrets of tenants. The root secret and the
    /// currency stay.
    pub fn reload(&self, settings: WebhookSettings) {
        let mut present = self.settings.write().unwrap_or_else(PoisonError::into_inner);
        let WebhookSettings { root_secret, ref currency, .. } = **present;
        *present = Arc::new(WebhookSettings { root_secret, currency: currency.clone(), ..settings });
    }

    /// The timeout of the next try. The first try is shorter: most slow webhooks hang, and each holds a slot
    /// meanwhile.
    fn wait_for(&self, webhook: &Webhook) -> Duration {
        match webhook.state {
            DeliveryState::Owed { tries: 0 | 1, .. } => self.settings().wait.min(FIRST_WAIT),
            _ => self.settings().wait,
        }
    }

    /// Checks an address and returns it as it will be called. Its name is resolved only at the call.
    pub fn check(&self, url: &str) -> Result<String, BadCallback> {
        let url = url.trim();
        if url.len() > WEBHOOK_URL_BYTES_MAX {
            return Err(BadCallback::NotAnAddress);
        }
        let host = quittance_lifecycle::terms::page_host(url).map_err(|_| BadCallback::NotAnAddress)?;
        let uri: Uri = url.parse().map_err(|_| BadCallback::NotAnAddress)?;
        if uri.authority().is_none_or(|authority| authority.as_str().contains('@')) {
            return Err(BadCallback::HasPassword);
        }
        let host_name = host.trim_end_matches('.').to_ascii_lowercase();
        let is_this_machine = host_name == "localhost" || host_name.ends_with(".localhost");
        let number =
            host_name.parse::<IpAddr>().ok().or(is_this_machine.then_some(IpAddr::from([127, 0, 0, 1])));
        match number {
            Some(address) if !webhook_reach::may_call(&self.settings().allow, host, address) => {
                Err(BadCallback::Inside)
            }
            _ => Ok(url.to_owned()),
        }
    }
}

#[async_trait]
impl WebhookSender for Webhooks {
    async fn tell(&self, order: &Order, webhook: &Webhook) -> DeliveryOutcome {
        let call = self.call_either_way(order, webhook);
        match accepted_within(self.wait_for(webhook), call).await {
            Ok(()) => DeliveryOutcome::Delivered,
            Err(why) => DeliveryOutcome::NotDelivered { why },
        }
    }
}

impl Webhooks {
    /// Calls with the method of the caller's dialect. If the response is 405, the other method is tried at once. An
    /// address that accepts it is called so from then on.
    async fn call_either_way(&self, order: &Order, webhook: &Webhook) -> Result<StatusCode, String> {
        let format = self.other_methods.format_for(webhook);
        let format =
            format.ok_or_else(|| format!("the webhook format `{}` is not known", webhook.dialect))?;
        let status = self.call_in(format, order, webhook).await?;
        let other = format.by_other_method().filter(|_| status == StatusCode::METHOD_NOT_ALLOWED);
        let Some(other) = other else { return Ok(status) };
        let status = self.call_in(other, order, webhook).await?;
        if status != StatusCode::METHOD_NOT_ALLOWED {
            self.other_methods.remember(webhook, other);
        }
        Ok(status)
    }

    async fn call_in(
        &self,
        format: WebhookFormat,
        order: &Order,
        webhook: &Webhook,
    ) -> Result<StatusCode, String> {
        let now = self.clock.now();
        let settings = self.settings();
        let (outcome, currency) = (Outcome::for_webhooks(order, now), &settings.currency);
        let text = (self.write_text)(format, order, &outcome, now, currency);
        let message =
            text.and_then(|text| Message::new(format, &webhook.url, text, outcome.remaining_life(now)));
        let message = message.ok_or("there is nothing to send, or the address cannot be read")?;
        let id = sign::message_id(&order.key, order.born, webhook.number);
        let signed = sign::sign(&self.secret_of(&order.terms.tenant), id, now, message.payload());
        let called = call(&self.caller, &message, &signed, &self.settings().allow).await;
        called.map_err(|error| error.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct NoClock;

    #[async_trait]
    impl Clock for NoClock {
        fn now(&self) -> Timestamp {
            Timestamp::ZERO
        }

        async fn sleep_until(&self, _moment: Timestamp) {}
    }

    #[test]
    fn an_address_that_leads_inside_is_refused_before_anything_is_accepted() {
        let webhooks = Webhooks::new(WebhookSettings::default(), Arc::new(NoClock), |_, _, _, _, _| None);
        for (url, why) in [
            ("ftp://a.example.org/", BadCallback::NotAnAddress),
            ("not an address", BadCallback::NotAnAddress),
            ("http://", BadCallback::NotAnAddress),
            (&format!("http://a.example.org/{}", "x".repeat(3000)), BadCallback::NotAnAddress),
            ("http://user:secret@a.example.org/", BadCallback::HasPassword),
            ("http://127.0.0.1:8080/", BadCallback::Inside),
            ("http://LOCALHOST/", BadCallback::Inside),
            ("http://a.localhost./", BadCallback::Inside),
            ("http://[::1]/", BadCallback::Inside),
            ("http://[::ffff:10.0.0.1]/", BadCallback::Inside),
            ("http://169.254.169.254/latest/meta-data", BadCallback::Inside),
        ] {
            assert_eq!(webhooks.check(url), Err(why), "{url}");
        }
        for good in ["http://hooks.example.org/a?b=c", "https://8.8.8.8:8443/", "HTTPS://Hooks.example.org"] {
            assert_eq!(webhooks.check(good).as_deref(), Ok(good));
        }
    }
}
