//! What every API gets and returns: a request that was read whole, and a response. An API never sees a socket, a limit or a
//! certificate.

use crate::orders::Accepted;
use bytes::Bytes;
use futures_util::FutureExt;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{Either, Full};
use hyper::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use hyper::http::request::Parts;
use hyper::{Response, StatusCode};
use std::convert::Infallible;
use std::time::Duration;

/// Whole, for nearly everything; a stream, for live events.
pub(crate) type Body = Either<Full<Bytes>, UnsyncBoxBody<Bytes, Infallible>>;

/// An extension of a request that came over TLS.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OverTls;

/// A request that has arrived whole.
#[derive(Debug)]
pub(crate) struct ApiRequest {
    pub(crate) head: Parts,
    /// The path without the dialect that may stand before it, as in `/capsolver/createTask`.
    pub(crate) path: String,
    /// That dialect, in small letters; one of [`DIALECTS`].
    pub(crate) dialect: Option<&'static str>,
    /// As the head has it; what is kept of a request has no other part of the head's lines.
    pub(crate) content_type: Option<HeaderValue>,
    pub(crate) body: Bytes,
}

/// Where the answer of a placement comes from: `api`, `joined`, `cached`, `replayed` or `stock`.
const QUITTANCE_ORIGIN: HeaderName = HeaderName::from_static("quittance-origin");
/// How many seconds the answer still lives, rounded down. Absent if it lives for ever.
pub(crate) const REMAINING_LIFE: HeaderName = HeaderName::from_static("quittance-remaining-life");
pub(crate) const IDEMPOTENT_REPLAYED: HeaderName = HeaderName::from_static("idempotent-replayed");

/// What may stand before a path to say whose manners are expected.
pub(crate) const DIALECTS: [&str; 5] = ["captchaai", "2captcha", "anticaptcha", "capsolver", "capmonster"];

impl ApiRequest {
    pub(crate) fn query(&self) -> &str {
        self.head.uri.query().unwrap_or_default()
    }

    /// What the caller calls that of which this is a part, or nothing.
    pub(crate) fn trace(&self) -> String {
        trace_of(&self.head.headers)
    }

    pub(crate) fn content_type(&self) -> Option<&str> {
        self.content_type.as_ref().and_then(|value| value.to_str().ok())
    }
}

/// The `traceparent` of W3C, as it was sent; whoever reads it judges it.
pub(crate) fn trace_of(headers: &HeaderMap) -> String {
    headers.get("traceparent").and_then(|value| value.to_str().ok()).unwrap_or_default().to_owned()
}

pub(crate) fn answer(
    status: StatusCode,
    content_type: &'static str,
    body: impl Into<Bytes>,
) -> Response<Body> {
    let mut response = Response::new(Either::Left(Full::new(body.into())));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    response
}

/// Tells a caller of another service's protocol what `/v1` says in the body: where this placement's answer comes from, and
/// whether its idempotency key was used before. Clients of these protocols compare whole bodies, so it goes into headers.
pub(crate) fn with_origin(mut response: Response<Body>, accepted: &Accepted) -> Response<Body> {
    let origin = HeaderValue::from_static(accepted.placed.origin.name());
    response.headers_mut().insert(QUITTANCE_ORIGIN, origin);
    if accepted.is_replayed() {
        response.headers_mut().insert(IDEMPOTENT_REPLAYED, HeaderValue::from_static("true"));
    }
    response
}

/// Tells a caller of another service's protocol how long the answer in this response still lives, which `/v1` says in the body.
pub(crate) fn with_remaining_life(mut response: Response<Body>, life: Option<Duration>) -> Response<Body> {
    if let Some(life) = life {
        response.headers_mut().insert(REMAINING_LIFE, HeaderValue::from(life.as_secs()));
    }
    response
}

/// Runs a future to its end, also if the caller disconnects or the timeout passes. `None` if the timeout passed, or if it panicked.
pub async fn carry_out<T: Send + 'static>(
    work: impl Future<Output = T> + Send + 'static,
    timeout: Duration,
) -> Option<T> {
    let mut work = Box::pin(work);
    // A future that needs no waiting is done at the first poll, without a task and a timer. There is no await between that poll and
    // the task, so it cannot be dropped in between.
    if let Some(done) = (&mut work).now_or_never() {
        return Some(done);
    }
    tokio::time::timeout(timeout, tokio::spawn(work)).await.ok()?.ok()
}
