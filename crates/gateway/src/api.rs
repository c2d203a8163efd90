//! What every API gets and returns: a request that was read whole, and a response. Sockets, limits and certificates
//! are the server's part.

use crate::orders::Accepted;
use crate::route::Route;
use bytes::Bytes;
use futures_util::FutureExt;
use http_body_util::{Either, Full};
use hyper::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use hyper::http::request::Parts;
use hyper::{Request, Response, StatusCode};
pub(crate) use quittance_http_server::Body;
use quittance_http_server::{RequestBegun, SMALL_BODY_BYTES};
use quittance_protocol::Dialect;
use quittance_webhooks::REMAINING_LIFE;
use std::time::Duration;

/// A request that has arrived whole.
#[derive(Debug)]
pub(crate) struct ApiRequest {
    pub(crate) head: Parts,
    pub(crate) route: Route,
    /// The dialect in the path, as in `/capsolver/createTask`.
    pub(crate) dialect: Option<Dialect>,
    pub(crate) body: Bytes,
}

/// Where the answer of a placement comes from: `api`, `joined`, `cached`, `replayed` or `stock`.
const QUITTANCE_ORIGIN: HeaderName = HeaderName::from_static("quittance-origin");
pub(crate) const IDEMPOTENT_REPLAYED: HeaderName = HeaderName::from_static("idempotent-replayed");

impl ApiRequest {
    /// A request whose body has not arrived yet.
    pub(crate) fn new(head: Parts) -> Self {
        let (dialect, route) = Route::parse(head.uri.path());
        Self { head, route, dialect, body: Bytes::new() }
    }

    /// Frees a body that has been read. A small body stays: if the API panics, it shows the format that the caller
    /// wants.
    pub(crate) fn drop_large_body(&mut self) {
        if self.body.len() > SMALL_BODY_BYTES {
            self.body = Bytes::new();
        }
    }

    /// Takes the request out. Its route and dialect stay.
    pub(crate) fn take(&mut self) -> Request<Bytes> {
        let (empty, ()) = Request::new(()).into_parts();
        Request::from_parts(std::mem::replace(&mut self.head, empty), std::mem::take(&mut self.body))
    }

    /// How long ago the request began to arrive.
    pub(crate) fn open_for(&self) -> Duration {
        self.head.extensions.get().map_or(Duration::ZERO, |RequestBegun(begun)| begun.elapsed())
    }

    pub(crate) fn query(&self) -> &str {
        self.head.uri.query().unwrap_or_default()
    }

    pub(crate) fn content_type(&self) -> Option<&str> {
        self.head.headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok())
    }
}

/// The W3C `traceparent` header as it was sent, or an empty text. It is not checked here.
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

/// Adds the origin of a placement's answer and the use of its idempotency key as headers. `/v1` has both in the body,
/// but clients of other protocols compare whole bodies.
pub(crate) fn with_origin(mut response: Response<Body>, accepted: &Accepted) -> Response<Body> {
    let origin = HeaderValue::from_static(accepted.placed.origin.name());
    response.headers_mut().insert(QUITTANCE_ORIGIN, origin);
    if accepted.is_replayed() {
        response.headers_mut().insert(IDEMPOTENT_REPLAYED, HeaderValue::from_static("true"));
    }
    response
}

/// Adds the remaining life of the answer as a header. `/v1` has it in the body.
pub(crate) fn with_remaining_life(mut response: Response<Body>, life: Option<Duration>) -> Response<Body> {
    if let Some(life) = life {
        response.headers_mut().insert(REMAINING_LIFE, HeaderValue::from(life.as_secs()));
    }
    response
}

/// Runs a future to its end, even if the caller disconnects or the timeout passes. `None` if the timeout passed or
/// the future panicked.
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
