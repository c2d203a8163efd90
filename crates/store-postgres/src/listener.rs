//! Notices about writes of other nodes. They come on a separate connection and can be lost: the connection breaks, or
//! a pooler drops them. So the connection is tested again and again. A slow re-check of all orders with waiting
//! callers backs it up; it is faster while no notices arrive.

use crate::failure::PostgresError;
use crate::lane::{Dial, LaneBackoff};
use crate::notices::{self, Notice};
use crate::shared::{DEAF_RECHECK, PostgresShared};
use quittance_lifecycle::Key;
use std::future::poll_fn;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::{sleep, timeout};
use tokio_postgres::types::Type;
use tokio_postgres::{AsyncMessage, Client};

/// How long a test notice can take to come back to its sender.
const ECHO_WAIT: Duration = Duration::from_secs(1);
/// How many test notices can be lost before the connection counts as deaf.
const ECHOES_LOST_MAX: u32 = 2;
/// How many orders are read at once.
const KEYS_AT_ONCE: usize = 1000;

pub(crate) struct PostgresListener {
    pub(crate) shared: Arc<PostgresShared>,
    pub(crate) dial: Dial,
    /// Set once it is known for the first time whether notices arrive.
    pub(crate) tried: watch::Sender<bool>,
}

impl PostgresListener {
    pub(crate) async fn run(self) {
        let mut backoff = LaneBackoff::default();
        let mut has_warned = false;
        loop {
            let why = match self.listen(&mut has_warned, &mut backoff).await {
                Ok(()) => "the connection has ended".to_owned(),
                Err(failure) => failure.to_string(),
            };
            self.shared.hears.store(false, Ordering::Relaxed);
            self.tried.send_replace(true);
            if !std::mem::replace(&mut has_warned, true) {
                tracing::warn!(
                    why,
                    "no notices of other nodes arrive from PostgreSQL: waiting callers are checked every second instead"
                );
            }
            backoff.pause().await;
        }
    }

    /// Listens until the connection ends, or no notices arrive on it.
    async fn listen(&self, has_warned: &mut bool, backoff: &mut LaneBackoff) -> Result<(), PostgresError> {
        let (client, mut wire) = self.dial.connect().await.map_err(|refused| refused.failure())?;
        let hear = async {
            loop {
                match poll_fn(|context| wire.poll_message(context)).await {
                    Some(Ok(AsyncMessage::Notification(notice))) => self.hear(notice.payload()),
                    Some(Ok(_)) => {}
                    Some(Err(error)) => return Err(PostgresError::of(&error)),
                    None => return Ok(()),
                }
            }
        };
        tokio::select! {
            ended = hear => ended,
            failed = self.tend(&client, has_warned, backoff) => failed,
        }
    }

    fn hear(&self, payload: &str) {
        let shared = &self.shared;
        match Notice::read(payload) {
            Some(Notice::News { node, batch, keys }) if node == shared.node => {
                shared.announced.tell(batch, &keys, &shared.watchers);
            }
            Some(Notice::News { keys, .. }) => keys.iter().for_each(|key| shared.watchers.wake(key)),
            Some(Notice::Probe { node, number }) if node == shared.node => {
                shared.probe.send_replace(number);
            }
            Some(Notice::Probe { .. }) | None => {}
        }
    }

    /// Begins to listen, and tests again and again whether notices arrive.
    async fn tend(
        &self,
        client: &Client,
        has_warned: &mut bool,
        backoff: &mut LaneBackoff,
    ) -> Result<(), PostgresError> {
        let shared = &self.shared;
        let listen = format!("LISTEN {}", shared.statements.channel);
        timeout(shared.settings.call_wait, client.batch_execute(&listen))
            .await
            .map_err(|_| PostgresError::Slow(shared.settings.call_wait))??;
        let mut lost = 0;
        loop {
            match self.echo().await {
                Ok(true) => {
                    lost = 0;
                    backoff.end();
                    if std::mem::take(has_warned) {
                        tracing::info!("notices of other nodes arrive from PostgreSQL again");
                    }
                    if !shared.hears.swap(true, Ordering::Relaxed) {
                        // It is not known what was sent while the connection was down.
                        shared.watchers.wake_all();
                    }
                    self.tried.send_replace(true);
                }
                Ok(false) => lost += 1,
                // The server cannot be reached; that says nothing about this connection.
                Err(_) => {}
            }
            if lost >= ECHOES_LOST_MAX {
                return Err(PostgresError::Garbled(
                    "a notice did not come back; behind a pooler, set `store.listen_url`".into(),
                ));
            }
            if lost == 0 {
                sleep(shared.recheck_span()).await;
            }
        }
    }

    /// Whether a notice that we send comes back to us.
    async fn echo(&self) -> Result<bool, PostgresError> {
        let shared = &self.shared;
        let number = *shared.probe.borrow() + 1;
        let mut probes = shared.probe.subscribe();
        let db_error = notices::probe(shared.node, number);
        let say = "SELECT pg_notify($1, $2)";
        shared.ask(say, &[(&shared.statements.channel, Type::TEXT), (&db_error, Type::TEXT)]).await?;
        let wait = ECHO_WAIT.min(shared.settings.call_wait);
        Ok(timeout(wait, probes.wait_for(|last| *last >= number)).await.is_ok())
    }
}

/// Checks all orders with waiting callers, in case a notice was lost.
pub(crate) async fn recheck(shared: Arc<PostgresShared>, mut tried: watch::Receiver<bool>) {
    // Without a task that probes, no notice will arrive.
    drop(tried.wait_for(|tried| *tried).await);
    let mut waited = Duration::ZERO;
    loop {
        // In small steps: it may be found only now that nothing is heard.
        let step = shared.settings.recheck.min(DEAF_RECHECK);
        sleep(step).await;
        waited += step;
        if waited < shared.recheck_span() {
            continue;
        }
        waited = Duration::ZERO;
        // If the server is away, there is nothing to report; it is tried again.
        if let Err(failure) = recheck_once(&shared).await {
            tracing::debug!(%failure, "the regular check of watched orders failed");
        }
    }
}

async fn recheck_once(shared: &PostgresShared) -> Result<(), PostgresError> {
    let mut after: Option<Key> = None;
    loop {
        let keys = shared.watchers.keys(after.as_ref(), KEYS_AT_ONCE);
        let Some(last) = keys.last().copied() else { return Ok(()) };
        let awaited_keys: Vec<&[u8]> = keys.iter().map(|key| &key.0[..]).collect();
        let rows = shared.ask(&shared.statements.recheck, &[(&awaited_keys, Type::BYTEA_ARRAY)]).await?;
        for row in &rows {
            shared.watchers.wake(&crate::row::key(crate::row::column(row, 0)?)?);
        }
        after = Some(last);
    }
}
