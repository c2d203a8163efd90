//! One server for all doors: it accepts connections, with or without TLS, reads each request whole and within limits, and
//! hands it to the house. Whatever a caller does, he costs no more than the limits say, and he gets an answer in the
//! protocol that he came with.

mod limits;
mod patient;
mod request;

pub use limits::{Counts, Limits};
pub(crate) use request::Turned;

use crate::door::{Asked, Body};
use crate::tls::Tls;
use futures_util::FutureExt;
use hyper::Response;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use patient::{Patient, Stage};
use std::convert::Infallible;
use std::fmt;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio::time::timeout;

/// How long to leave the system in peace when it has no more connections for us.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);
/// Whoever has just come when the doors close may say what he came for within this time: he was let in, and to hang up on
/// him would look like a crash.
const YOUNG_WAIT: Duration = Duration::from_millis(250);
/// How many of those who stand at the door are let in when it closes.
const LAST_MAX: usize = 1024;
/// How long whoever is cut off may take to be gone.
const CUT_WAIT: Duration = Duration::from_secs(1);

/// What is behind the server: whoever answers, and what is said where nobody can.
pub(crate) trait House: Clone + Send + Sync + 'static {
    fn answer(&self, asked: Asked) -> impl Future<Output = Response<Body>> + Send;

    /// What a request is told that got no further. Of one whose body was not read, the body is empty here.
    fn turn_away(&self, asked: &Asked, why: Turned) -> Response<Body>;

    /// Where it went, for the log: one of a few words, and nothing that the caller wrote.
    fn route(&self, asked: &Asked) -> &'static str;
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    Open,
    /// Nobody new comes in; whoever is inside is answered.
    Closing,
    /// Whoever is still inside has had his time.
    Closed,
}

/// Clones share it.
#[derive(Clone)]
pub(crate) struct Server {
    limits: Limits,
    shared: Arc<Shared>,
}

struct Shared {
    seats: Arc<Semaphore>,
    /// How many KiB of bodies may be in memory.
    bodies: Arc<Semaphore>,
    requests: Semaphore,
    state: watch::Sender<State>,
    tally: Tally,
}

#[derive(Default)]
struct Tally {
    connections: AtomicU64,
    requests: AtomicU64,
    turned_away: AtomicU64,
    failed_handshakes: AtomicU64,
    panics: AtomicU64,
}

fn count(counter: &AtomicU64) {
    counter.fetch_add(1, Ordering::Relaxed);
}

/// A connection is counted as open for as long as this lives, however it ends.
struct Present(Arc<Shared>);

impl Present {
    fn new(shared: &Arc<Shared>) -> Self {
        count(&shared.tally.connections);
        Self(Arc::clone(shared))
    }
}

impl Drop for Present {
    fn drop(&mut self) {
        self.0.tally.connections.fetch_sub(1, Ordering::Relaxed);
    }
}

impl fmt::Debug for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Server").field("limits", &self.limits).finish_non_exhaustive()
    }
}

impl Server {
    pub(crate) fn new(mut limits: Limits) -> Self {
        // A limit beyond what can be counted is none, and must not be a panic.
        for count in [&mut limits.connections_max, &mut limits.requests_max, &mut limits.bodies_bytes_max] {
            *count = (*count).min(u32::MAX as usize).min(Semaphore::MAX_PERMITS);
        }
        let shared = Shared {
            seats: Arc::new(Semaphore::new(limits.connections_max)),
            bodies: Arc::new(Semaphore::new(limits.bodies_bytes_max / request::KIB)),
            requests: Semaphore::new(limits.requests_max),
            state: watch::Sender::new(State::Open),
            tally: Tally::default(),
        };
        Self { limits, shared: Arc::new(shared) }
    }

    pub(crate) fn counts(&self) -> Counts {
        let Shared { tally, requests, .. } = &*self.shared;
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        Counts {
            connections_open: read(&tally.connections),
            requests: read(&tally.requests),
            requests_open: self.limits.requests_max.saturating_sub(requests.available_permits()) as u64,
            turned_away: read(&tally.turned_away),
            failed_handshakes: read(&tally.failed_handshakes),
            panics: read(&tally.panics),
            senseless_callbacks: 0,
        }
    }

    /// Listens until it is dropped or drained. Several may run at once, within the same limits.
    pub(crate) async fn serve<H: House>(self, house: H, listener: TcpListener, tls: Option<Tls>) {
        let mut state = self.shared.state.subscribe();
        loop {
            let seats = Arc::clone(&self.shared.seats);
            // Whoever finds no seat waits in the system's queue, and nobody pays for him.
            let seat = tokio::select! {
                Ok(seat) = seats.acquire_owned() => seat,
                () = reached(&mut state, State::Closing) => break,
            };
            let accepted = tokio::select! {
                accepted = listener.accept() => accepted,
                () = reached(&mut state, State::Closing) => break,
            };
            match accepted {
                Ok((stream, _)) => self.let_in(&house, stream, tls.clone(), seat),
                // Out of file handles, or the caller left at once: neither is a reason to stop listening.
                Err(_) => tokio::time::sleep(ACCEPT_PAUSE).await,
            }
        }
        // Those who stand at the door already would be hung up on when it closes.
        for _ in 0..LAST_MAX {
            let Ok(seat) = Arc::clone(&self.shared.seats).try_acquire_owned() else { return };
            let Some(Ok((stream, _))) = listener.accept().now_or_never() else { return };
            self.let_in(&house, stream, tls.clone(), seat);
        }
    }

    fn let_in<H: House>(&self, house: &H, stream: TcpStream, tls: Option<Tls>, seat: OwnedSemaphorePermit) {
        let (server, house) = (self.clone(), house.clone());
        let present = Present::new(&self.shared);
        tokio::spawn(async move {
            server.admit(house, stream, tls).await;
            drop((present, seat));
        });
    }

    /// Lets nobody new in, answers whoever is inside, and returns when all are gone or their time is up: then it cuts
    /// them off and says `false`.
    pub(crate) async fn drain(&self, patience: Duration) -> bool {
        let Shared { state, seats, .. } = &*self.shared;
        state.send_if_modified(|state| std::mem::replace(state, State::Closing) == State::Open);
        let everybody = u32::try_from(self.limits.connections_max).unwrap_or(u32::MAX);
        if timeout(patience, seats.acquire_many(everybody)).await.is_ok() {
            return true;
        }
        state.send_replace(State::Closed);
        _ = timeout(CUT_WAIT, seats.acquire_many(everybody)).await;
        false
    }

    async fn admit<H: House>(&self, house: H, stream: TcpStream, tls: Option<Tls>) {
        // Answers are short and whole: nothing is gained by waiting for more of them.
        _ = stream.set_nodelay(true);
        let Some(tls) = tls else { return self.converse(house, stream).await };
        let mut state = self.shared.state.subscribe();
        let handshake = timeout(self.limits.read_wait, tls.acceptor().accept(stream));
        let shaken = tokio::select! {
            shaken = handshake => shaken,
            () = reached(&mut state, State::Closed) => return,
        };
        match shaken {
            Ok(Ok(stream)) => Box::pin(self.converse(house, stream)).await,
            Ok(Err(_)) | Err(_) => count(&self.shared.tally.failed_handshakes),
        }
    }

    async fn converse<H: House, S: AsyncRead + AsyncWrite + Unpin>(&self, house: H, stream: S) {
        let mut state = self.shared.state.subscribe();
        let stage = Stage::default();
        let stream = Patient::new(stream, stage.clone(), &self.limits);
        let service = service_fn(|request| {
            let (server, house, stage) = (self.clone(), house.clone(), stage.clone());
            Box::pin(async move {
                let answering = stage.begin_answer();
                let answer = server.attend(&house, request).await;
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
        // A connection that ends badly is its caller's affair: what he said was safe before he was answered.
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

/// Returns when the server is that far; one that is gone is closed, too.
async fn reached(state: &mut watch::Receiver<State>, wanted: State) {
    _ = state.wait_for(|now| *now as u8 >= wanted as u8).await.map(drop);
}
