//! Word of what other nodes have written. It comes on a connection of its own, and can be lost: the connection breaks, or a
//! pooler stands in between and nothing ever arrives. So it is tried out again and again, and behind it is a slow
//! re-check of everything that somebody waits for, which is less slow while nothing is heard.

use crate::lane::{Backoff, Dial};
use crate::notices::{self, Notice};
use crate::shared::{DEAF_RECHECK, Shared};
use crate::trouble::PostgresError;
use quittance_lifecycle::Key;
use std::future::poll_fn;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::{sleep, timeout};
use tokio_postgres::types::Type;
use tokio_postgres::{AsyncMessage, Client};

/// How long a notice may take to come back to whoever sent it, and how many may be lost before it is believed.
const ECHO_WAIT: Duration = Duration::from_secs(1);
const ECHOES_LOST_MAX: u32 = 2;
/// How many orders are asked about at once.
const KEYS_AT_ONCE: usize = 1000;

pub(crate) struct Listener {
    pub(crate) shared: Arc<Shared>,
    pub(crate) dial: Dial,
    /// Set once it is known for the first time whether anything is heard.
    pub(crate) tried: watch::Sender<bool>,
}

impl Listener {
    pub(crate) async fn run(self) {
        let mut backoff = Backoff::default();
        let mut has_warned = false;
        loop {
            let why = match self.listen(&mut has_warned, &mut backoff).await {
                Ok(()) => "the connection has ended".to_owned(),
                Err(trouble) => trouble.to_string(),
            };
            self.shared.hears.store(false, Ordering::Relaxed);
            self.tried.send_replace(true);
            if !std::mem::replace(&mut has_warned, true) {
                tracing::warn!(
                    why,
                    "no word of other nodes arrives from PostgreSQL; whoever waits is looked after every second"
                );
            }
            backoff.pause().await;
        }
    }

    /// Until the connection ends, or nothing is heard on it.
    async fn listen(&self, has_warned: &mut bool, backoff: &mut Backoff) -> Result<(), PostgresError> {
        let (client, mut wire) = self.dial.connect().await.map_err(|refused| refused.trouble())?;
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
                shared.told.tell(batch, &keys, &shared.watchers);
            }
            Some(Notice::News { keys, .. }) => keys.iter().for_each(|key| shared.watchers.wake(key)),
            Some(Notice::Probe { node, number }) if node == shared.node => {
                shared.probe.send_replace(number);
            }
            Some(Notice::Probe { .. }) | None => {}
        }
    }

    /// Begins to listen, and tries again and again whether anything arrives.
    async fn tend(
        &self,
        client: &Client,
        has_warned: &mut bool,
        backoff: &mut Backoff,
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
                        tracing::info!("word of other nodes arrives from PostgreSQL again");
                    }
                    if !shared.hears.swap(true, Ordering::Relaxed) {
                        // Nobody knows what was said while nobody listened.
                        shared.watchers.wake_all();
                    }
                    self.tried.send_replace(true);
                }
                Ok(false) => lost += 1,
                // The server cannot be asked; that says nothing about this connection.
                Err(_) => {}
            }
            if lost >= ECHOES_LOST_MAX {
                return Err(PostgresError::Garbled(
                    "a notice did not come back; behind a pooler, set an address of its own to listen at"
                        .into(),
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
        let mut heard = shared.probe.subscribe();
        let said = notices::probe(shared.node, number);
        let say = "SELECT pg_notify($1, $2)";
        shared.ask(say, &[(&shared.statements.channel, Type::TEXT), (&said, Type::TEXT)]).await?;
        let wait = ECHO_WAIT.min(shared.settings.call_wait);
        Ok(timeout(wait, heard.wait_for(|last| *last >= number)).await.is_ok())
    }
}

/// Looks after whoever waits, in case word was lost.
pub(crate) async fn recheck(shared: Arc<Shared>, mut tried: watch::Receiver<bool>) {
    // If nobody is left who tries, nothing will be heard.
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
        // If the server is away, there is nothing to be told; it is asked again.
        if let Err(trouble) = recheck_once(&shared).await {
            tracing::debug!(%trouble, "a re-check of what is waited for has failed");
        }
    }
}

async fn recheck_once(shared: &Shared) -> Result<(), PostgresError> {
    let mut after: Option<Key> = None;
    loop {
        let keys = shared.watchers.keys(after.as_ref(), KEYS_AT_ONCE);
        let Some(last) = keys.last().copied() else { return Ok(()) };
        let asked: Vec<&[u8]> = keys.iter().map(|key| &key.0[..]).collect();
        let rows = shared.ask(&shared.statements.recheck, &[(&asked, Type::BYTEA_ARRAY)]).await?;
        for row in &rows {
            shared.watchers.wake(&crate::row::key(crate::row::column(row, 0)?)?);
        }
        after = Some(last);
    }
}
