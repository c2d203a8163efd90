//! The listening socket and the connections. A connection can be closed or reset in the middle of a reply, and the
//! socket can be closed for a while.

use crate::outage::{MockOutage, OutageKind};
use crate::service;
use crate::settings::Settings;
use crate::world::MockWorld;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::io::AsyncWriteExt;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep};

/// The longest head of a request: enough for an answer in a URL. A request line alone can have 16 kB and more.
const HEAD_BYTES_MAX: usize = 128 << 10;
const HEAD_WAIT: Duration = Duration::from_secs(30);
/// The pause before the next attempt to bind the port after an outage.
const REBIND_PAUSE: Duration = Duration::from_millis(20);

/// The clock of the ledger. It starts at the real time and then follows the runtime's clock, which a test can stop.
#[derive(Debug)]
pub(crate) struct LedgerClock {
    start: Instant,
    start_ms: u64,
}

impl LedgerClock {
    #[expect(
        clippy::disallowed_methods,
        reason = "the ledger's moments are read beside those of other processes"
    )]
    pub(crate) fn start() -> Self {
        let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
        Self { start: Instant::now(), start_ms: u64::try_from(since.as_millis()).unwrap_or(0) }
    }

    pub(crate) fn now_ms(&self) -> u64 {
        self.start_ms + u64::try_from(self.start.elapsed().as_millis()).unwrap_or(0)
    }

    pub(crate) async fn sleep_until(&self, at_ms: u64) {
        let now_ms = self.now_ms();
        sleep(Duration::from_millis(at_ms.saturating_sub(now_ms))).await;
    }
}

#[derive(Debug)]
pub(crate) struct MockShared {
    pub settings: Arc<Settings>,
    pub clock: LedgerClock,
    pub outage: watch::Sender<MockOutage>,
    world: Mutex<MockWorld>,
    jobs: Mutex<JoinSet<()>>,
    changes: watch::Sender<u64>,
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl MockShared {
    pub(crate) fn new(settings: Arc<Settings>, clock: LedgerClock, world: MockWorld) -> Self {
        Self {
            settings,
            clock,
            outage: watch::Sender::default(),
            world: Mutex::new(world),
            jobs: Mutex::default(),
            changes: watch::Sender::default(),
        }
    }

    pub(crate) fn world(&self) -> MutexGuard<'_, MockWorld> {
        locked(&self.world)
    }

    /// Wakes the waiters for a change of the ledger.
    pub(crate) fn changed(&self) {
        self.changes.send_modify(|count| *count += 1);
    }

    pub(crate) fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    /// Runs the job until it is done or the mock provider stops.
    pub(crate) fn spawn(&self, job: impl Future<Output = ()> + Send + 'static) {
        let mut jobs = locked(&self.jobs);
        while jobs.try_join_next().is_some() {}
        jobs.spawn(job);
    }

    /// Aborts all jobs, without waiting for their end.
    pub(crate) fn abort(&self) {
        locked(&self.jobs).abort_all();
    }

    pub(crate) async fn stop(&self) {
        let mut jobs = std::mem::take(&mut *locked(&self.jobs));
        jobs.shutdown().await;
    }

    /// The outage in force, if it closes the socket.
    fn refusal(&self) -> Option<MockOutage> {
        self.outage().filter(|outage| outage.kind == OutageKind::Refuse)
    }

    /// Waits until the outage is over, or another one has replaced it.
    async fn wait_for_change(&self, outage: &MockOutage, outages: &mut watch::Receiver<MockOutage>) {
        tokio::select! {
            () = self.clock.sleep_until(outage.until_ms) => {}
            _ = outages.changed() => {}
        }
    }

    /// Waits until no outage is in force.
    pub(crate) async fn wait_for_end_of_outage(&self) {
        let mut outages = self.outage.subscribe();
        while let Some(outage) = self.outage() {
            self.wait_for_change(&outage, &mut outages).await;
        }
    }

    /// The outage that is in force, if there is one.
    pub(crate) fn outage(&self) -> Option<MockOutage> {
        Some(*self.outage.borrow()).filter(|outage| self.clock.now_ms() < outage.until_ms)
    }
}

/// Accepts connections until the future is dropped.
pub(crate) async fn listen(shared: Arc<MockShared>, mut listener: TcpListener, address: SocketAddr) {
    let slots = Arc::new(Semaphore::new(shared.settings.connections_max));
    let mut outages = shared.outage.subscribe();
    for number in 0.. {
        if shared.refusal().is_some() {
            drop(listener);
            while let Some(outage) = shared.refusal() {
                shared.wait_for_change(&outage, &mut outages).await;
            }
            listener = bind_again(address).await;
        }
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            _ = outages.changed() => continue,
        };
        let Ok((stream, peer)) = accepted else {
            // Too many open files, say: waiting is all that can be done.
            sleep(REBIND_PAUSE).await;
            continue;
        };
        if is_turned_away(&shared, number) {
            continue;
        }
        // A connection beyond the limit is closed at once: that, too, is what a busy server does.
        let Ok(permit) = slots.clone().try_acquire_owned() else { continue };
        shared.spawn(converse(shared.clone(), stream, peer, permit));
    }
}

async fn bind_again(address: SocketAddr) -> TcpListener {
    loop {
        match TcpListener::bind(address).await {
            Ok(listener) => return listener,
            Err(_) => sleep(REBIND_PAUSE).await,
        }
    }
}

fn is_turned_away(shared: &MockShared, number: u64) -> bool {
    let is_down = shared.outage().is_some_and(|outage| !outage.kind.lets_connect());
    let mut world = shared.world();
    world.totals.connections += 1;
    let is_refused = world.refuses_connection(number);
    if is_down || is_refused {
        world.count_fault(if is_down { "outage" } else { "refused" });
    }
    is_down || is_refused
}

/// How a connection ends after its service has returned an error.
#[derive(Debug, Default)]
pub(crate) struct ConnectionEnd {
    /// Raw bytes that are written before the connection ends.
    pub words: Vec<u8>,
    /// Whether the connection ends by a reset, and not by an ordinary close.
    pub resets: bool,
}

pub(crate) type LastWords = Arc<Mutex<Option<ConnectionEnd>>>;

pub(crate) fn leave(last: &LastWords, ending: ConnectionEnd) {
    *locked(last) = Some(ending);
}

async fn converse(
    shared: Arc<MockShared>,
    stream: TcpStream,
    peer: SocketAddr,
    _permit: OwnedSemaphorePermit,
) {
    _ = stream.set_nodelay(true);
    let last = LastWords::default();
    let mut outages = shared.outage.subscribe();
    let service = service_fn(|request| {
        let answer = service::answer(shared.clone(), peer, last.clone(), request);
        let answer: Pin<Box<dyn Future<Output = _> + Send>> = Box::pin(answer);
        answer
    });
    let mut connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_WAIT)
        .max_buf_size(HEAD_BYTES_MAX)
        .serve_connection(TokioIo::new(stream), service);
    loop {
        tokio::select! {
            _ = &mut connection => break,
            // No client keeps a connection to a server that is down.
            Ok(()) = outages.changed() => Pin::new(&mut connection).graceful_shutdown(),
        }
    }
    let ending = locked(&last).take();
    if let Some(ending) = ending {
        _ = end(connection.into_parts().io.into_inner(), ending).await;
    }
}

async fn end(mut stream: TcpStream, ending: ConnectionEnd) -> io::Result<()> {
    stream.write_all(&ending.words).await?;
    if ending.resets { stream.set_zero_linger() } else { stream.shutdown().await }
}
