//! One signed call: a webhook to an address that the operator allows, or an alert to the operator's own webhook.

use super::Webhooks;
use super::message::Message;
use super::sign::{SignedHeaders, sign};
use super::webhook_reach::{Allowed, may_call};
use futures_util::TryFutureExt;
use http_body_util::Full;
use hyper::header::{CONTENT_TYPE, HeaderName};
use hyper::{Method, StatusCode, Uri};
use quittance_telemetry::AlertWebhook;
use quittance_wire::call::{CallError, HttpCaller, request_to};
use std::time::Duration;

/// How many seconds the answer still lives, rounded down. Absent if it lives for ever.
pub const REMAINING_LIFE: HeaderName = HeaderName::from_static("quittance-remaining-life");

pub(super) async fn call(
    caller: &HttpCaller,
    message: &Message,
    signed: &SignedHeaders,
    allowed: &[Allowed],
) -> Result<StatusCode, CallError> {
    let mut request = request_to(&message.method, &message.uri)
        .header("webhook-id", &signed.id)
        .header("webhook-timestamp", &signed.timestamp)
        .header("webhook-signature", &signed.signature);
    if let Some(content_type) = message.content_type {
        request = request.header(CONTENT_TYPE, content_type);
    }
    if let Some(life) = message.remaining_life {
        request = request.header(REMAINING_LIFE, life.as_secs());
    }
    let request = request.body(Full::new(message.body.clone())).map_err(|_| CallError::NoAnswer)?;
    caller.send(&message.uri, request, |host, address| may_call(allowed, host, address)).await
}

impl Webhooks {
    /// Posts to the operator's own webhook. It may be inside the operator's network, because the operator has
    /// configured it. An error names no address, because the address can be a secret.
    pub(super) async fn post(&self, webhook: &AlertWebhook, id: &str, body: &str) -> Result<(), String> {
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
        let signed = sign(&webhook.secret, id.to_owned(), self.clock.now(), message.payload());
        let call = call(&self.caller, &message, &signed, &allowed).map_err(|error| error.to_string());
        accepted_within(self.settings().wait, call).await
    }
}

/// Waits for a call. Fails with the reason if it was not accepted.
pub(super) async fn accepted_within(
    wait: Duration,
    call: impl Future<Output = Result<StatusCode, String>>,
) -> Result<(), String> {
    match tokio::time::timeout(wait, call).await {
        Ok(Ok(status)) if status.is_success() => Ok(()),
        Ok(Ok(status)) => Err(format!("HTTP {}", status.as_u16())),
        Ok(Err(why)) => Err(why),
        Err(_) => Err("no answer in time".into()),
    }
}
