//! Callbacks: the provider calls our address by GET or POST. The content of a genuine callback is on record, or in
//! the spill, before it gets its 200. Any other call changes nothing.
//!
//! Genuine, repeated, late, forged and senseless calls all get 200, so that a sender cannot learn which guess was
//! close. If a callback could not be stored, it gets 503, so that the provider tries again.

use crate::api::{ApiRequest, Body};
use crate::route::Route;
use bytes::Bytes;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use http_body_util::{Either, Full};
use hyper::http::request::Parts;
use hyper::{Method, Response, StatusCode};
use quittance_engine::Engine;
use quittance_http_server::{HttpServer, Limits, PendingRequest, RequestError, RequestHandler, Shown};
use quittance_ports::{Callback, CallbackMessage};
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::net::TcpListener;

/// The path of every callback address, before its last segment.
pub const CALLBACK_PATH: &str = "/callback";

/// The API for callbacks, and a server for nodes that have no other API. Clones share their state.
#[derive(Clone)]
pub struct CallbackApi {
    engine: Arc<Engine>,
    limits: Limits,
    senseless: Arc<AtomicU64>,
    server: HttpServer,
}

impl fmt::Debug for CallbackApi {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CallbackApi").field("limits", &self.limits).finish_non_exhaustive()
    }
}

impl CallbackApi {
    #[must_use]
    pub fn new(engine: Arc<Engine>, limits: Limits) -> Self {
        Self { engine, limits, senseless: Arc::default(), server: HttpServer::new(limits) }
    }

    /// How many calls came to a valid callback address with a body that cannot be from the provider.
    #[must_use]
    pub fn senseless(&self) -> u64 {
        self.senseless.load(Ordering::Relaxed)
    }

    /// Stops accepting connections, and returns when all requests are answered or their time is over.
    pub async fn close(&self) {
        self.server.drain(self.limits.read_wait).await;
    }

    /// Accepts connections until the future is dropped or the API is closed.
    pub async fn serve(self, listener: TcpListener) {
        self.engine.listens_for_callbacks();
        self.server.clone().serve(Arc::new(self), listener, None).await;
    }

    /// Checks the address first (the MAC in its last segment), then reads the body and applies it.
    pub(crate) async fn answer(&self, segment: &str, request: &ApiRequest) -> Response<Body> {
        if request.head.method != Method::GET && request.head.method != Method::POST {
            return empty(StatusCode::METHOD_NOT_ALLOWED);
        }
        if !self.engine.is_callback_address(segment).await {
            return empty(StatusCode::OK);
        }
        let (query, content_type) = (request.query(), request.content_type());
        let callback = Callback { query, content_type, body: &request.body };
        let Some(CallbackMessage { task, word }) = self.engine.read_callback(segment, &callback).await else {
            self.senseless.fetch_add(1, Ordering::Relaxed);
            // If it was garbled on its way, the provider may send it again, and the answer is as old as this call.
            self.engine.callback_not_answered(segment, request.open_for());
            return empty(StatusCode::OK);
        };
        match self.engine.called_back(segment, task, word, request.open_for()).await {
            Ok(_) => empty(StatusCode::OK),
            Err(_) => empty(StatusCode::SERVICE_UNAVAILABLE),
        }
    }

    /// The response to a callback that could not be read. The provider should send it again, so its answer may then
    /// be old.
    pub(crate) fn refuse(&self, segment: &str, request: &ApiRequest, why: RequestError) -> Response<Body> {
        self.engine.callback_not_answered(segment, request.open_for());
        empty(match why {
            RequestError::TooLarge => StatusCode::PAYLOAD_TOO_LARGE,
            RequestError::TooSlow => StatusCode::REQUEST_TIMEOUT,
            RequestError::Broken => StatusCode::BAD_REQUEST,
            RequestError::Overloaded | RequestError::Panicked => StatusCode::SERVICE_UNAVAILABLE,
        })
    }
}

impl RequestHandler for CallbackApi {
    fn begin(&self, head: Parts) -> Box<dyn PendingRequest> {
        Box::new(CallbackRequest { api: self.clone(), request: ApiRequest::new(head) })
    }

    fn has_one_tenant(&self) -> bool {
        true
    }

    fn needs_no_key(&self) -> bool {
        false
    }

    fn accepts_late(&self, waited: Duration, is_over: bool) {
        self.engine.callbacks_waited(waited, is_over);
    }
}

/// A request to a node that has no other API.
struct CallbackRequest {
    api: CallbackApi,
    request: ApiRequest,
}

impl PendingRequest for CallbackRequest {
    fn route_name(&self) -> &'static str {
        self.request.route.name()
    }

    fn is_reserved(&self) -> bool {
        self.request.route.is_reserved()
    }

    fn shown_early(&self, _: &[u8]) -> Shown {
        Shown::Nothing
    }

    fn set_body(&mut self, body: Bytes) {
        self.request.body = body;
    }

    fn answer(&mut self) -> BoxFuture<'_, Response<Body>> {
        async {
            match &self.request.route {
                Route::Callback(segment) => self.api.answer(segment, &self.request).await,
                _ => empty(StatusCode::NOT_FOUND),
            }
        }
        .boxed()
    }

    fn refuse(&self, why: RequestError) -> Response<Body> {
        match &self.request.route {
            Route::Callback(segment) => self.api.refuse(segment, &self.request, why),
            _ => empty(StatusCode::NOT_FOUND),
        }
    }
}

fn empty(status: StatusCode) -> Response<Body> {
    let mut response = Response::new(Either::Left(Full::new(Bytes::new())));
    *response.status_mut() = status;
    response
}
