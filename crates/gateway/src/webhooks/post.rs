//! A word to the operator, where he said that he wants to hear it: signed as every other, and let inside his own network, because
//! it is he who names the address and no caller.

use super::message::Message;
use super::{Allowed, Webhooks, sign};
use crate::monitor::Webhook;
use hyper::{Method, Uri};

impl Webhooks {
    /// Why it was not taken, without the address, which may be a secret.
    pub(crate) async fn post(&self, webhook: &Webhook, id: &str, body: &str) -> Result<(), String> {
        let uri: Uri = webhook.url.parse().map_err(|_| "its address makes no sense".to_owned())?;
        let host = uri.host().map(|host| host.trim_matches(['[', ']'])).unwrap_or_default();
        let allowed: Vec<Allowed> = Allowed::parse(host).into_iter().collect();
        let message = Message {
            method: Method::POST,
            uri,
            content_type: Some("application/json"),
            body: body.to_owned().into(),
            remaining_life: None,
        };
        let signed = sign::sign(&webhook.secret, id.to_owned(), self.clock.now(), message.payload());
        let call = self.caller.call(&message, &signed, &allowed);
        match tokio::time::timeout(self.settings().wait, call).await {
            Ok(Ok(status)) if status.is_success() => Ok(()),
            Ok(Ok(status)) => Err(format!("HTTP {}", status.as_u16())),
            Ok(Err(trouble)) => Err(trouble.to_string()),
            Err(_) => Err("no answer in time".into()),
        }
    }
}
