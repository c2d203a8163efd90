//! One server for all APIs. It accepts connections, with or without TLS, reads each request whole and within limits,
//! and passes it to a handler. The limits bound the cost of a caller. Only the handler knows the protocol of a
//! response.
#![forbid(unsafe_code)]

mod accept_queue;
mod connections;
mod cross_site;
mod exchange;
mod limits;
mod timed_io;
mod tls;
mod wrong_keys;

pub use cross_site::{CrossSite, RequestReach, is_from_elsewhere};
pub use exchange::RequestError;
pub use limits::{Counts, Limits};
pub use tls::Tls;
pub use wrong_keys::{SenderSlot, Shown, WrongKeys};

use accept_queue::AcceptQueue;
use bytes::Bytes;
use connections::{ConnectionEntry, Connections};
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{Either, Full};
use hyper::Response;
use hyper::http::request::Parts;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use std::convert::Infallible;
use std::fmt;
use std::net::IpAddr;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use timed_io::{Stage, TimedIo};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio::time::timeout;

/// How many requests on reserved routes are worked on at once.
const OWN_REQUESTS_MAX: usize = 512;
/// The pause after the system has no more connections for us.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);
/// How long a new connection can still send its request when the server begins to drain. Closing an accepted
/// connection would look like a crash.
const YOUNG_WAIT: Duration = Duration::from_millis(250);
/// How many connections in the system's queue are accepted when the server begins to drain.
const LAST_MAX: usize = 1024;
/// How long closed connections can take to end.
const CUT_WAIT: Duration = Duration::from_secs(1);

/// The largest body that stays in memory without a permit while its request is answered.
pub const SMALL_BODY_BYTES: usize = 16 * 1024;

/// The body of a response: whole in most cases, or a stream of live events.
pub type Body = Either<Full<Bytes>, UnsyncBoxBody<Bytes, Infallible>>;

/// An extension of a request that came over TLS.
#[derive(Clone, Copy, Debug)]
pub struct OverTls;

/// An extension of a request: when it began to arrive.
#[derive(Clone, Copy, Debug)]
pub struct RequestBegun(pub tokio::time::Instant);

/// Answers the requests that the server reads.
pub trait RequestHandler: Send + Sync + 'static {
    /// Called when the head of a request has arrived.
    fn begin(&self, head: Parts) -> Box<dyn PendingRequest>;

    /// Whether there is at most one tenant, so that no tenant can take anything from another.
    fn has_one_tenant(&self) -> bool;

    /// Whether callers need no key, so that every caller is known.
    fn needs_no_key(&self) -> bool;

    /// Called when a new connection may have waited for `waited` before it is accepted, because no seat was free.
    /// While this lasts it is called again and again, and a last time when it is over.
    fn accepts_late(&self, waited: Duration, is_over: bool);
}

/// A request whose head has arrived, with its route.
pub trait PendingRequest: Send + Sync {
    /// The route for the log: a fixed name, without text of the caller.
    fn route_name(&self) -> &'static str;

    /// Whether the request must work even if many requests of callers are open.
    fn is_reserved(&self) -> bool;

    /// The sender of a request that has not arrived whole: by the key in its head (with an empty `beginning`), or in
    /// the beginning of its body. A wrong key here can be cut off, so it does not count as a wrong key.
    fn shown_early(&self, beginning: &[u8]) -> Shown;

    /// Called when the body has arrived whole.
    fn set_body(&mut self, body: Bytes);

    /// Answers the request, which has arrived whole.
    fn answer(&mut self) -> BoxFuture<'_, Response<Body>>;

    /// The response to a request that could not be read or answered, in the format that its body asks for, if that
    /// has arrived.
    fn refuse(&self, why: RequestError) -> Response<Body>;
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Open,
    /// No connection is accepted; open requests are still answered.
    Closing,
    /// Open connections are cut off.
    Closed,
}

/// The HTTP server. Clones share its state.
#[derive(Clone)]
pub struct HttpServer {
    limits: Limits,
    shared: Arc<Shared>,
}

struct Shared {
    seats: Arc<Semaphore>,
    /// How many KiB of bodies may be in memory.
    bodies: Arc<Semaphore>,
    requests: Semaphore,
    /// Requests on reserved routes.
    own_requests: Semaphore,
    connections: Arc<Connections>,
    state: watch::Sender<State>,
    counters: Counters,
}

#[derive(Default)]
struct Counters {
    connections: AtomicU64,
    requests: AtomicU64,
    turned_away: AtomicU64,
    failed_handshakes: AtomicU64,
    panics: AtomicU64,
}

fn count(counter: &AtomicU64) {
    counter.fetch_add(1, Ordering::Relaxed);
}

/// What is known about the sender of the requests of one connection.
#[derive(Clone)]
struct Peer {
    address: IpAddr,
    stage: Stage,
    entry: Arc<ConnectionEntry>,
    is_over_tls: bool,
}

/// Counts a connection as open until this is dropped.
struct OpenConnection(Arc<Shared>);

impl OpenConnection {
    fn new(shared: &Arc<Shared>) -> Self {
        count(&shared.counters.connections);
        Self(Arc::clone(shared))
    }
}

impl Drop for OpenConnection {
    fn drop(&mut self) {
        self.0.counters.connections.fetch_sub(1, Ordering::Relaxed);
    }
}

impl fmt::Debug for HttpServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpServer").field("limits", &self.limits).finish_non_exhaustive()
    }
}

impl HttpServer {
    #[must_use]
    pub fn new(mut limits: Limits) -> Self {
        // A limit beyond what can be counted is none, and must not be a panic.
        for count in [&mut limits.connections_max, &mut limits.requests_max, &mut limits.bodies_bytes_max] {
            *count = (*count).min(u32::MAX as usize).min(Semaphore::MAX_PERMITS);
        }
        let shared = Shared {
            seats: Arc::new(Semaphore::new(limits.connections_max)),
            bodies: Arc::new(Semaphore::new(limits.bodies_bytes_max / exchange::KIB)),
            requests: Semaphore::new(limits.requests_max),
            own_requests: Semaphore::new(OWN_REQUESTS_MAX),
            connections: Connections::new(limits.connections_max),
            state: watch::Sender::new(State::Open),
            counters: Counters::default(),
        };
        Self { limits, shared: Arc::new(shared) }
    }

    #[must_use]
    pub fn counts(&self) -> Counts {
        let Shared { counters, requests, own_requests, .. } = &*self.shared;
        let own = OWN_REQUESTS_MAX.saturating_sub(own_requests.available_permits());
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        Counts {
            connections_open: read(&counters.connections),
            requests: read(&counters.requests),
            requests_open: (self.limits.requests_max.saturating_sub(requests.available_permits()) + own)
                as u64,
            turned_away: read(&counters.turned_away),
            failed_handshakes: read(&counters.failed_handshakes),
            panics: read(&counters.panics),
        }
    }

    /// Accepts connections until the future is dropped or the server drains. Several listeners can run at once,
    /// within the same limits.
    pub async fn serve(self, handler: Arc<dyn RequestHandler>, listener: TcpListener, tls: Option<Tls>) {
        let mut state = self.shared.state.subscribe();
        let mut queue = AcceptQueue::new(Arc::clone(&handler));
        loop {
            let accepted = tokio::select! {
                accepted = queue.accept(&listener) => accepted,
                () = reached(&mut state, State::Closing) => break,
            };
            match accepted {
                Ok((stream, peer)) => {
                    let Some(seat) = self.seat(&mut queue, &mut state).await else { break };
                    self.let_in(&handler, (stream, peer.ip()), tls.clone(), seat);
                }
                // Out of file handles, or the caller left at once: neither is a reason to stop listening.
                Err(_) => tokio::time::sleep(ACCEPT_PAUSE).await,
            }
        }
        // Connections in the system's queue would be reset when the listener closes.
        for _ in 0..LAST_MAX {
            let Ok(seat) = Arc::clone(&self.shared.seats).try_acquire_owned() else { return };
            let Some(Ok((stream, peer))) = listener.accept().now_or_never() else { return };
            self.let_in(&handler, (stream, peer.ip()), tls.clone(), seat);
        }
    }

    /// A seat for the connection that was just accepted. Further ones wait in the system's queue, where they cost us
    /// nothing. `None` if the server drains before there is a seat.
    async fn seat(
        &self,
        queue: &mut AcceptQueue,
        state: &mut watch::Receiver<State>,
    ) -> Option<OwnedSemaphorePermit> {
        loop {
            let seats = Arc::clone(&self.shared.seats);
            if let Ok(seat) = Arc::clone(&seats).try_acquire_owned() {
                return Some(seat);
            }
            self.shared.connections.make_room();
            let seat = tokio::select! {
                Ok(seat) = seats.acquire_owned() => Some(seat),
                () = tokio::time::sleep(ACCEPT_PAUSE) => None,
                () = reached(state, State::Closing) => return None,
            };
            // Before the connection is served: its request may be a callback.
            queue.check();
            if seat.is_some() {
                return seat;
            }
        }
    }

    fn let_in(
        &self,
        handler: &Arc<dyn RequestHandler>,
        (stream, address): (TcpStream, IpAddr),
        tls: Option<Tls>,
        seat: OwnedSemaphorePermit,
    ) {
        let (server, handler) = (self.clone(), Arc::clone(handler));
        let present = OpenConnection::new(&self.shared);
        let stage = Stage::default();
        let free_seats = self.shared.seats.available_permits();
        let entry = Arc::new(self.shared.connections.enter(address, &stage, free_seats));
        if handler.needs_no_key() {
            entry.is_let_in();
        }
        tokio::spawn(async move {
            let is_over_tls = tls.is_some();
            let peer = Peer { address, stage, entry: Arc::clone(&entry), is_over_tls };
            tokio::select! {
                () = server.admit(handler, stream, tls, peer) => {}
                () = entry.evicted() => {}
            }
            drop((present, seat, entry));
        });
    }

    /// Accepts no more connections, answers the requests in progress, and returns when all connections have ended. If
    /// they take longer than `time_limit`, it cuts them off and returns `false`.
    pub async fn drain(&self, time_limit: Duration) -> bool {
        let Shared { state, seats, .. } = &*self.shared;
        state.send_if_modified(|state| std::mem::replace(state, State::Closing) == State::Open);
        let all_seats = u32::try_from(self.limits.connections_max).unwrap_or(u32::MAX);
        if timeout(time_limit, seats.acquire_many(all_seats)).await.is_ok() {
            return true;
        }
        let left = self.counts().connections_open;
        tracing::warn!(
            "{left} connections were still open {} s after the end began, and are cut off now; orders that were \
             acknowledged are on record",
            time_limit.as_secs()
        );
        state.send_replace(State::Closed);
        _ = timeout(CUT_WAIT, seats.acquire_many(all_seats)).await;
        false
    }

    async fn admit(&self, handler: Arc<dyn RequestHandler>, stream: TcpStream, tls: Option<Tls>, peer: Peer) {
        // Answers are short and whole: nothing is gained by waiting for more of them.
        _ = stream.set_nodelay(true);
        let Some(tls) = tls else { return self.converse(handler, stream, peer).await };
        let mut state = self.shared.state.subscribe();
        let handshake = timeout(self.limits.read_wait, tls.acceptor().accept(stream));
        let shaken = tokio::select! {
            shaken = handshake => shaken,
            () = reached(&mut state, State::Closed) => return,
        };
        match shaken {
            Ok(Ok(stream)) => Box::pin(self.converse(handler, stream, peer)).await,
            Ok(Err(_)) | Err(_) => count(&self.shared.counters.failed_handshakes),
        }
    }

    async fn converse<S: AsyncRead + AsyncWrite + Unpin>(
        &self,
        handler: Arc<dyn RequestHandler>,
        stream: S,
        peer: Peer,
    ) {
        let mut state = self.shared.state.subscribe();
        let stage = peer.stage.clone();
        let stream = TimedIo::new(stream, stage.clone(), &self.limits);
        let service = service_fn(|request| {
            let (server, handler, peer) = (self.clone(), Arc::clone(&handler), peer.clone());
            Box::pin(async move {
                let answering = peer.stage.begin_answer();
                let answer = server.handle(&*handler, request, &peer).await;
                let answer = answer.map(|body| server.until_closing(body, answering));
                Ok::<_, Infallible>(answer)
            })
        });
        let connection = http1::Builder::new()
            // The stream itself watches the time, because it can tell an idle caller from a slow one.
            .header_read_timeout(None)
            .max_buf_size(self.limits.head_bytes_max)
            .half_close(false)
            .serve_connection(TokioIo::new(stream), service);
        let mut connection = pin!(connection);
        // A connection that ends with an error loses nothing: an order is on record before its request is answered.
        tokio::select! {
            _ = &mut connection => return,
            () = reached(&mut state, State::Closing) => {}
        }
        if stage.is_new() {
            tokio::select! {
                _ = &mut connection => return,
                () = tokio::time::sleep(YOUNG_WAIT) => {}
                () = reached(&mut state, State::Closed) => return,
            }
        }
        connection.as_mut().graceful_shutdown();
        tokio::select! {
            _ = connection => {}
            () = reached(&mut state, State::Closed) => {}
        }
    }
}

/// Waits until the server has reached this state. A dropped server counts as closed.
async fn reached(state: &mut watch::Receiver<State>, wanted: State) {
    _ = state.wait_for(|now| *now as u8 >= wanted as u8).await.map(drop);
}
