//! Callbacks in. Whoever knows an address of ours may call it, by GET or POST; what is said there is safe before
//! he is told "200", and anything else than a genuine word changes nothing.
//!
//! The answer is 200 for genuine, repeated, late, forged and senseless calls alike, so nobody learns from it which of
//! his guesses came close; only what could not be made safe is a 503, because then the caller should try again.

use crate::api::{ApiRequest, Body};
use crate::server::{Limits, RequestError, RequestHandler, Server};
use crate::wrong_keys::Shown;
use bytes::Bytes;
use http_body_util::{Either, Full};
use hyper::{Method, Response, StatusCode};
use quittance_engine::Engine;
use quittance_ports::{Callback, CallbackMessage};
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tokio::net::TcpListener;

/// What comes before the last segment of every callback address.
pub const CALLBACK_PATH: &str = "/callback";

/// The door itself, and a server for where it is the only one; clones share both.
#[derive(Clone)]
pub struct CallbackApi {
    engine: Arc<Engine>,
    limits: Limits,
    senseless: Arc<AtomicU64>,
    server: Server,
}

impl fmt::Debug for CallbackApi {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CallbackApi").field("limits", &self.limits).finish_non_exhaustive()
    }
}

impl CallbackApi {
    #[must_use]
    pub fn new(engine: Arc<Engine>, limits: Limits) -> Self {
        Self { engine, limits, senseless: Arc::default(), server: Server::new(limits) }
    }

    /// How many calls came to an address of ours and said nothing that the provider could have meant.
    #[must_use]
    pub fn senseless(&self) -> u64 {
        self.senseless.load(Ordering::Relaxed)
    }

    /// Lets nobody new in, and returns when whoever is inside has been answered, or when his time is up.
    pub async fn close(&self) {
        self.server.drain(self.limits.read_wait).await;
    }

    /// Listens until it is dropped or closed.
    pub async fn serve(self, listener: TcpListener) {
        self.engine.listens_for_callbacks();
        self.server.clone().serve(self, listener, None).await;
    }

    /// Whether a path leads here.
    pub(crate) fn is_for(path: &str) -> bool {
        segment(path).is_some()
    }

    pub(crate) async fn answer(&self, asked: ApiRequest) -> Response<Body> {
        empty(match self.read_callback(&asked).await {
            Ok(()) => StatusCode::OK,
            Err(status) => status,
        })
    }

    /// A callback that is refused here should come again, so what it brings then may be old.
    pub(crate) fn refuse(&self, asked: &ApiRequest, why: RequestError) -> Response<Body> {
        if let Some(segment) = segment(&asked.path) {
            self.engine.callback_not_answered(segment);
        }
        empty(match why {
            RequestError::TooLarge => StatusCode::PAYLOAD_TOO_LARGE,
            RequestError::TooSlow => StatusCode::REQUEST_TIMEOUT,
            RequestError::Broken => StatusCode::BAD_REQUEST,
            RequestError::Overloaded | RequestError::Panicked => StatusCode::SERVICE_UNAVAILABLE,
        })
    }

    async fn read_callback(&self, asked: &ApiRequest) -> Result<(), StatusCode> {
        let segment = segment(&asked.path).ok_or(StatusCode::NOT_FOUND)?;
        if asked.head.method != Method::GET && asked.head.method != Method::POST {
            return Err(StatusCode::METHOD_NOT_ALLOWED);
        }
        // Only what came to an address that we made is read at all.
        if !self.engine.is_callback_address(segment).await {
            return Ok(());
        }
        let (query, content_type) = (asked.query(), asked.content_type());
        let callback = Callback { query, content_type, body: &asked.body };
        let Some(CallbackMessage { task, word }) = self.engine.provider().read_callback(&callback) else {
            self.senseless.fetch_add(1, Ordering::Relaxed);
            return Ok(());
        };
        match self.engine.called_back(segment, task, word).await {
            Ok(_) => Ok(()),
            Err(_) => Err(StatusCode::SERVICE_UNAVAILABLE),
        }
    }
}

impl RequestHandler for CallbackApi {
    fn has_own_seat(&self, _: &ApiRequest) -> bool {
        true
    }

    fn shown_early(&self, _: &ApiRequest, _: &[u8]) -> Shown {
        Shown::Nothing
    }

    fn has_one_tenant(&self) -> bool {
        true
    }

    fn needs_no_key(&self) -> bool {
        false
    }

    async fn answer(&self, asked: ApiRequest) -> Response<Body> {
        Self::answer(self, asked).await
    }

    fn turn_away(&self, asked: &ApiRequest, why: RequestError) -> Response<Body> {
        if Self::is_for(&asked.path) { self.refuse(asked, why) } else { empty(StatusCode::NOT_FOUND) }
    }

    fn route(&self, asked: &ApiRequest) -> &'static str {
        if Self::is_for(&asked.path) { CALLBACK_PATH } else { "other" }
    }
}

fn segment(path: &str) -> Option<&str> {
    path.strip_prefix(CALLBACK_PATH)?.strip_prefix('/')
}

fn empty(status: StatusCode) -> Response<Body> {
    let mut response = Response::new(Either::Left(Full::new(Bytes::new())));
    *response.status_mut() = status;
    response
}
