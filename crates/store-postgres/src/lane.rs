//! A connection that repairs itself. A separate task keeps it up. Calls share it, are answered in turn, and each ends
//! in time: a call that waits too long declares the connection dead, and it is made again.

use crate::failure::PostgresError;
use crate::settings::Settings;
use crate::tls::{self, BadCa};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::{Instant, sleep, timeout, timeout_at};
use tokio_postgres::tls::MakeTlsConnect;
use tokio_postgres::types::{ToSql, Type};
use tokio_postgres::{Client, Config, Connection, Row, Socket};
use tokio_postgres_rustls::MakeRustlsConnect;

const BACKOFF_MIN: Duration = Duration::from_millis(50);
const BACKOFF_MAX: Duration = Duration::from_secs(1);
/// The timeout for opening a store, on which no caller waits.
const OPEN_WAIT: Duration = Duration::from_secs(10);

pub(crate) type SqlParams<'a> = &'a [(&'a (dyn ToSql + Sync), Type)];
pub(crate) type LaneClient = Connection<Socket, <MakeRustlsConnect as MakeTlsConnect<Socket>>::Stream>;

/// The address and TLS settings of one server.
#[derive(Clone)]
pub(crate) struct Dial {
    config: Config,
    tls: MakeRustlsConnect,
    wait: Duration,
}

impl Dial {
    pub(crate) fn main(settings: &Settings) -> Result<Self, BadCa> {
        let tls = tls::connector(&settings.server, settings.ca.as_deref())?;
        Ok(Self { config: settings.server.config.clone(), tls, wait: settings.call_wait })
    }

    pub(crate) fn listening(settings: &Settings) -> Result<Self, BadCa> {
        let server = settings.listen_server();
        let tls = tls::connector(server, settings.ca.as_deref())?;
        Ok(Self { config: server.config.clone(), tls, wait: settings.call_wait })
    }

    /// A copy with a longer timeout, for opening a store.
    pub(crate) fn patient(&self) -> Self {
        Self { wait: self.wait.max(OPEN_WAIT), ..self.clone() }
    }

    pub(crate) async fn connect(&self) -> Result<(Client, LaneClient), LaneRefusal> {
        match timeout(self.wait, self.config.connect(self.tls.clone())).await {
            Ok(connected) => connected.map_err(LaneRefusal::Replied),
            Err(_) => Err(LaneRefusal::Silent(self.wait)),
        }
    }
}

/// Why there is no connection.
#[derive(Debug)]
pub(crate) enum LaneRefusal {
    Replied(tokio_postgres::Error),
    Silent(Duration),
}

impl LaneRefusal {
    pub(crate) fn failure(&self) -> PostgresError {
        match self {
            Self::Replied(error) => PostgresError::of(error),
            Self::Silent(wait) => PostgresError::Slow(*wait),
        }
    }
}

/// The pause before the next attempt, which doubles each time.
#[derive(Debug, Default)]
pub(crate) struct LaneBackoff(Option<Duration>);

impl LaneBackoff {
    pub(crate) async fn pause(&mut self) {
        let span = self.0.map_or(BACKOFF_MIN, |last| (last * 2).min(BACKOFF_MAX));
        self.0 = Some(span);
        sleep(span).await;
    }

    pub(crate) fn end(&mut self) {
        self.0 = None;
    }
}

#[derive(Clone)]
enum LaneState {
    /// The connection is being made, and calls wait for it.
    Connecting,
    Up {
        client: Arc<Client>,
        number: u64,
    },
    /// The last attempt has failed. Calls do not wait for the next one: they fail at once.
    Down(PostgresError),
}

/// The side of the connection that calls use.
pub(crate) struct Lane {
    state: watch::Receiver<LaneState>,
    /// The number of the last connection that a call has declared dead.
    condemned: watch::Sender<u64>,
    dial: Dial,
    in_flight: AtomicUsize,
}

impl Lane {
    /// A lane, and the task that keeps its connection up.
    pub(crate) fn new(dial: Dial) -> (Self, impl Future<Output = ()> + Send + 'static) {
        let (tell, state) = watch::channel(LaneState::Connecting);
        let (condemned, doom) = watch::channel(0);
        let keeping = keep(dial.clone(), tell, doom);
        (Self { state, condemned, dial, in_flight: AtomicUsize::new(0) }, keeping)
    }

    /// Sends one statement and reads its whole reply, within the timeout of a call.
    pub(crate) async fn ask(
        &self,
        statement: &str,
        params: SqlParams<'_>,
    ) -> Result<Vec<Row>, PostgresError> {
        self.use_up(async |client| client.query_typed(statement, params).await).await
    }

    /// Sends several statements in one message, which the server runs as one transaction.
    pub(crate) async fn run(&self, statements: &str) -> Result<(), PostgresError> {
        self.use_up(async |client| client.batch_execute(statements).await).await
    }

    async fn use_up<T>(
        &self,
        call: impl AsyncFnOnce(&Client) -> Result<T, tokio_postgres::Error>,
    ) -> Result<T, PostgresError> {
        let _counted = InFlight::new(&self.in_flight);
        let deadline = Instant::now() + self.dial.wait;
        let (client, number) = self.connected(deadline).await?;
        let answer = match timeout_at(deadline, call(&client)).await {
            Ok(answer) => answer.map_err(|error| PostgresError::of(&error)),
            Err(_) => {
                self.call_off(&client);
                Err(PostgresError::Slow(self.dial.wait))
            }
        };
        if answer.as_ref().is_err_and(PostgresError::ends_the_connection) {
            self.condemned.send_if_modified(|last| {
                let is_news = *last < number;
                *last = number.max(*last);
                is_news
            });
        }
        answer
    }

    /// Waits for a connection that is being made, up to `deadline`.
    async fn connected(&self, deadline: Instant) -> Result<(Arc<Client>, u64), PostgresError> {
        let mut watched = self.state.clone();
        // One that is found to be dead is as good as gone, even if the keeper has not heard of it yet.
        let settled = watched.wait_for(|state| match state {
            LaneState::Connecting => false,
            LaneState::Up { number, .. } => *number > *self.condemned.borrow(),
            LaneState::Down(_) => true,
        });
        let state = match timeout_at(deadline, settled).await {
            Ok(Ok(state)) => state.clone(),
            Ok(Err(_)) => return Err(PostgresError::Cut),
            Err(_) => return Err(PostgresError::Slow(self.dial.wait)),
        };
        match state {
            LaneState::Up { client, number } => Ok((client, number)),
            LaneState::Down(failure) => Err(failure),
            LaneState::Connecting => Err(PostgresError::Cut),
        }
    }

    /// Waits until the connection is up or down, within the timeout of a call.
    pub(crate) async fn settle(&self) {
        // The caller wants to count what there is, and one that is down counts as none.
        drop(self.connected(Instant::now() + self.dial.wait).await);
    }

    pub(crate) fn is_up(&self) -> bool {
        matches!(&*self.state.borrow(), LaneState::Up { client, number } if !client.is_closed() && *number > *self.condemned.borrow())
    }

    /// The number of waiting calls, and a very large number if the connection is down. The lane with the smallest
    /// burden answers first.
    pub(crate) fn burden(&self) -> usize {
        self.in_flight.load(Ordering::Relaxed) + if self.is_up() { 0 } else { usize::MAX / 2 }
    }

    /// Cancels a statement without a waiting caller, so that it releases its locks. If the server does not react,
    /// nothing more can be done.
    fn call_off(&self, client: &Client) {
        let (token, tls, wait) = (client.cancel_token(), self.dial.tls.clone(), self.dial.wait);
        drop(tokio::spawn(async move { timeout(wait, token.cancel_query(tls)).await }));
    }
}

/// Counts a call while it lives.
struct InFlight<'a>(&'a AtomicUsize);

impl<'a> InFlight<'a> {
    fn new(count: &'a AtomicUsize) -> Self {
        count.fetch_add(1, Ordering::Relaxed);
        Self(count)
    }
}

impl Drop for InFlight<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

async fn keep(dial: Dial, state: watch::Sender<LaneState>, mut condemned: watch::Receiver<u64>) {
    let mut backoff = LaneBackoff::default();
    let mut number = 0;
    loop {
        let (client, wire) = match dial.connect().await {
            Ok(connected) => connected,
            Err(refused) => {
                let failure = refused.failure();
                if !matches!(&*state.borrow(), LaneState::Down(_)) {
                    tracing::warn!(%failure, "PostgreSQL is away");
                }
                drop(state.send_replace(LaneState::Down(failure)));
                backoff.pause().await;
                continue;
            }
        };
        number += 1;
        let since = Instant::now();
        drop(state.send_replace(LaneState::Up { client: Arc::new(client), number }));
        tokio::select! {
            // How it ended does not matter: the calls with a statement in it learn it there.
            _ended = wire => {}
            _doomed = condemned.wait_for(|last| *last >= number) => {}
        }
        drop(state.send_replace(LaneState::Connecting));
        // A server that takes connections and drops them again must not be called in a tight loop.
        if since.elapsed() > BACKOFF_MAX {
            backoff.end();
        }
        backoff.pause().await;
    }
}
