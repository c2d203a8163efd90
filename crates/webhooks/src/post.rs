//! A call to the operator's own webhook: signed like every webhook, and allowed inside the operator's network, because the operator
//! has configured the address.

use super::message::Message;
use super::{Allowed, Webhooks, call, sign};
use hyper::{Method, Uri};
use quittance_telemetry::AlertWebhook;

impl Webhooks {
    /// An error names no address, which may be a secret.
    pub(crate) async fn post(&self, webhook: &AlertWebhook, id: &str, body: &str) -> Result<(), String> {
        let uri: Uri = webhook.url.parse().map_err(|_| "its address is invalid".to_owned())?;
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
        let call = call(&self.caller, &message, &signed, &allowed);
        match tokio::time::timeout(self.settings().wait, call).await {
            Ok(Ok(status)) if status.is_success() => Ok(()),
            Ok(Ok(status)) => Err(format!("HTTP {}", status.as_u16())),
            Ok(Err(error)) => Err(error.to_string()),
            Err(_) => Err("no answer in time".into()),
        }
    }
}
