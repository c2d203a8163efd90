//! Callbacks in. Whoever knows an address of ours may call it, by GET or POST; what is said there is safe before
//! he is told "200", and anything else than a genuine word changes nothing.
//!
//! The answer is 200 for genuine, repeated, late, forged and senseless calls alike, so nobody learns from it which of
//! his guesses came close; only what could not be made safe is a 503, because then the caller should try again.

use bytes::Bytes;
use http_body_util::{BodyExt, Empty, LengthLimitError, Limited};
use hyper::body::{Body, Incoming};
use hyper::header::{CONTENT_LENGTH, CONTENT_TYPE};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use quittance_engine::Engine;
use quittance_ports::{Callback, Provider, Saying};
use std::convert::Infallible;
use std::fmt;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, watch};

/// What comes before the last segment of every callback address.
pub const CALLBACK_PATH: &str = "/callback";

/// How long to leave the system in peace when it has no more connections for us.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    pub connections_max: usize,
    pub body_bytes_max: usize,
    /// Of one request, the line with its query included: some providers put the answer into the query.
    pub head_bytes_max: usize,
    /// How long a head or a body may take to arrive.
    pub read_wait: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connections_max: 1024,
            body_bytes_max: 1024 * 1024,
            head_bytes_max: 128 * 1024,
            read_wait: Duration::from_secs(10),
        }
    }
}

/// The door itself; clones share it.
#[derive(Clone)]
pub struct CallbackDoor {
    engine: Arc<Engine>,
    provider: Arc<dyn Provider>,
    limits: Limits,
    senseless: Arc<AtomicU64>,
    /// How many connections there may be, and whether the door is closing.
    room: Arc<Semaphore>,
    closing: Arc<watch::Sender<bool>>,
}

impl fmt::Debug for CallbackDoor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CallbackDoor").field("limits", &self.limits).finish_non_exhaustive()
    }
}

impl CallbackDoor {
    #[must_use]
    pub fn new(engine: Arc<Engine>, provider: Arc<dyn Provider>, limits: Limits) -> Self {
        let room = Arc::new(Semaphore::new(limits.connections_max));
        Self {
            engine,
            provider,
            limits,
            senseless: Arc::default(),
            room,
            closing: Arc::new(watch::Sender::new(false)),
        }
    }

    /// How many calls came to an address of ours and said nothing that the provider could have meant.
    #[must_use]
    pub fn senseless(&self) -> u64 {
        self.senseless.load(Ordering::Relaxed)
    }

    /// Lets nobody new in, and returns when whoever is inside has been answered, or when his time is up.
    pub async fn close(&self) {
        self.closing.send_replace(true);
        let everybody = u32::try_from(self.limits.connections_max).unwrap_or(u32::MAX);
        _ = tokio::time::timeout(self.limits.read_wait, self.room.acquire_many(everybody)).await;
    }

    /// Listens until it is dropped or closed.
    pub async fn serve(self, listener: TcpListener) {
        let mut closing = self.closing.subscribe();
        loop {
            let Ok(seat) = Arc::clone(&self.room).acquire_owned().await else { return };
            let accepted = tokio::select! {
                accepted = listener.accept() => accepted,
                () = until_true(&mut closing) => return,
            };
            match accepted {
                Ok((stream, _)) => {
                    let door = self.clone();
                    tokio::spawn(async move {
                        door.attend(stream).await;
                        drop(seat);
                    });
                }
                // Out of file handles, or the caller left at once: neither is a reason to stop listening.
                Err(_) => tokio::time::sleep(ACCEPT_PAUSE).await,
            }
        }
    }

    async fn attend(self, stream: TcpStream) {
        let limits = self.limits;
        let mut closing = self.closing.subscribe();
        let service = service_fn(move |request| {
            let door = self.clone();
            async move { Ok::<_, Infallible>(door.answer(request).await) }
        });
        let connection = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(limits.read_wait)
            .max_buf_size(limits.head_bytes_max)
            .serve_connection(TokioIo::new(stream), service);
        let mut connection = pin!(connection);
        // A connection that ends badly is its caller's affair: what he said was safe before he was answered.
        tokio::select! {
            _ = &mut connection => {}
            () = until_true(&mut closing) => {
                connection.as_mut().graceful_shutdown();
                _ = connection.await;
            }
        }
    }

    async fn answer(&self, request: Request<Incoming>) -> Response<Empty<Bytes>> {
        let status = match self.hear(request).await {
            Ok(()) => StatusCode::OK,
            Err(status) => status,
        };
        let mut response = Response::new(Empty::new());
        *response.status_mut() = status;
        response
    }

    async fn hear(&self, request: Request<Incoming>) -> Result<(), StatusCode> {
        let path = request.uri().path().strip_prefix(CALLBACK_PATH).and_then(|rest| rest.strip_prefix('/'));
        let segment = path.ok_or(StatusCode::NOT_FOUND)?.to_owned();
        if request.method() != Method::GET && request.method() != Method::POST {
            return Err(StatusCode::METHOD_NOT_ALLOWED);
        }
        let query = request.uri().query().unwrap_or_default().to_owned();
        let header = request.headers().get(CONTENT_TYPE);
        let content_type = header.and_then(|value| value.to_str().ok()).map(str::to_owned);
        let body = self.body(request).await?;
        let callback = Callback { query: &query, content_type: content_type.as_deref(), body: &body };
        let Some(Saying { task, word }) = self.provider.hear(&callback) else {
            self.senseless.fetch_add(1, Ordering::Relaxed);
            return Ok(());
        };
        match self.engine.called_back(&segment, task, word).await {
            Ok(_) => Ok(()),
            Err(_) => Err(StatusCode::SERVICE_UNAVAILABLE),
        }
    }

    async fn body(&self, request: Request<Incoming>) -> Result<Bytes, StatusCode> {
        let limits = self.limits;
        let announced =
            request.headers().get(CONTENT_LENGTH).and_then(|value| value.to_str().ok()?.parse().ok());
        if announced.is_some_and(|bytes: usize| bytes > limits.body_bytes_max) {
            return Err(StatusCode::PAYLOAD_TOO_LARGE);
        }
        if request.body().is_end_stream() {
            return Ok(Bytes::new());
        }
        let whole = Limited::new(request.into_body(), limits.body_bytes_max).collect();
        match tokio::time::timeout(limits.read_wait, whole).await {
            Ok(Ok(body)) => Ok(body.to_bytes()),
            Ok(Err(error)) if error.is::<LengthLimitError>() => Err(StatusCode::PAYLOAD_TOO_LARGE),
            Ok(Err(_)) => Err(StatusCode::BAD_REQUEST),
            Err(_) => Err(StatusCode::REQUEST_TIMEOUT),
        }
    }
}

/// A door that is gone is closed, too.
async fn until_true(closing: &mut watch::Receiver<bool>) {
    _ = closing.wait_for(|is_closing| *is_closing).await.map(drop);
}
