//! One webhook call, to an address that the operator allows.

use super::message::Message;
use super::reach::{Allowed, may_call};
use super::sign::SignedHeaders;
use http_body_util::Full;
use hyper::StatusCode;
use hyper::header::{CONTENT_TYPE, HeaderName};
use quittance_wire::call::{CallError, Caller, request_to};

/// How many seconds the answer still lives, rounded down. Absent if it lives for ever.
pub const REMAINING_LIFE: HeaderName = HeaderName::from_static("quittance-remaining-life");

pub(super) async fn call(
    caller: &Caller,
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
