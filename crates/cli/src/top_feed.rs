//! The source of the snapshots: a daemon, which is searched for repeatedly, or a shared store.

use crate::exit::{CliError, Exit};
use crate::store;
use http_body_util::BodyExt;
use quittance_admin::live::Snapshot;
use quittance_config::{ADMIN_KEY, Config, Scheme, StoreUrl};
use quittance_daemon::{ApiClient, api_client::Stream};
use quittance_top::{Missing, SnapshotSource, TakenSnapshot};
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::time::timeout;

const LIVE: &str = "/v1/admin/live";
/// The most bytes of an event: more than the snapshot of thousands of pools.
const EVENT_BYTES_MAX: usize = 32 * 1024 * 1024;
/// The pause before the next search for a daemon.
const AGAIN: Duration = Duration::from_secs(1);
/// How long a daemon may take to begin its response.
const OPEN_WAIT: Duration = Duration::from_secs(5);

pub(crate) struct Feed {
    config: Config,
    /// A client of a shared store; `None` with an embedded store. Only a daemon opens that, because a command that did
    /// so would keep a daemon from starting.
    shared: Option<Box<ApiClient>>,
    snapshots: Option<Snapshots>,
}

impl Feed {
    pub(crate) async fn of(config: &Config) -> Result<Self, CliError> {
        let shared = if matches!(config.store.url, StoreUrl::Embedded(_)) {
            None
        } else {
            store::must_exist(&config.store)?;
            Some(Box::new(ApiClient::find(config).await?))
        };
        Ok(Self { config: config.clone(), shared, snapshots: None })
    }

    /// Begins to watch. `Err(None)` means that no daemon runs.
    pub(crate) async fn open(&mut self) -> Result<(), Option<CliError>> {
        let found;
        let (client, outside) = match &self.shared {
            Some(client) => (&**client, Some(self.config.store.url.scheme())),
            None => {
                found = ApiClient::of_daemon(&self.config.store, &self.config, ADMIN_KEY)
                    .map_err(CliError::from)?
                    .ok_or(None)?;
                (&found, None)
            }
        };
        let Ok(opened) = timeout(OPEN_WAIT, client.open(LIVE)).await else {
            let what = format!(
                "a daemon has the store, and does not answer within {} s: look at its log",
                OPEN_WAIT.as_secs()
            );
            return Err(Some(CliError::new(Exit::Store, what)));
        };
        let stream = opened.map_err(CliError::from)?;
        self.snapshots = Some(Snapshots { stream, rest: Vec::new(), outside });
        Ok(())
    }

    /// The next snapshot. A daemon that is started later, or restarted, is found.
    async fn next(&mut self) -> Result<TakenSnapshot, Missing> {
        loop {
            if let Some(snapshots) = &mut self.snapshots
                && let Some(snapshot) = snapshots.next().await
            {
                return Ok(snapshot);
            }
            self.snapshots = None;
            tokio::time::sleep(AGAIN).await;
            if let Err(missing) = self.open().await {
                return Err(missing.map_or(Missing::NoDaemon, |error| Missing::Error(error.what)));
            }
        }
    }

    /// Sends snapshots until the receiver is dropped.
    pub(crate) async fn send(mut self, snapshots: mpsc::Sender<Result<TakenSnapshot, Missing>>) {
        while snapshots.send(self.next().await).await.is_ok() {}
    }
}

/// The snapshots of a stream, one after the other.
struct Snapshots {
    stream: Stream,
    /// The part of the next event that has arrived.
    rest: Vec<u8>,
    /// The scheme of the store that this process reads; `None` if a daemon sends the snapshots.
    outside: Option<Scheme>,
}

impl Snapshots {
    /// Waits for the next snapshot; `None` when the stream has ended.
    async fn next(&mut self) -> Option<TakenSnapshot> {
        loop {
            if let Some(end) = self.rest.windows(2).position(|two| two == b"\n\n") {
                let event: Vec<u8> = self.rest.drain(..end + 2).collect();
                match read(&event, self.outside) {
                    Some(snapshot) => return Some(snapshot),
                    None => continue,
                }
            }
            let frame = self.stream.frame().await?.ok()?;
            if let Some(bytes) = frame.data_ref() {
                self.rest.extend_from_slice(bytes);
            }
            if self.rest.len() > EVENT_BYTES_MAX {
                return None;
            }
        }
    }
}

/// The snapshot in an event, if the event contains one.
fn read(event: &[u8], outside: Option<Scheme>) -> Option<TakenSnapshot> {
    let text = std::str::from_utf8(event).ok()?;
    let snapshot = text.lines().find_map(|line| line.strip_prefix("data: "))?;
    Some(from_outside(serde_json::from_str(snapshot).ok()?, outside))
}

/// A snapshot of a node, or of the store that this process has read.
pub(crate) fn from_outside(mut snapshot: Snapshot, outside: Option<Scheme>) -> TakenSnapshot {
    let source = match outside {
        None => SnapshotSource::Node,
        Some(Scheme::Embedded) => SnapshotSource::EmbeddedStore,
        Some(_) => SnapshotSource::SharedStore,
    };
    if let Some(scheme) = outside {
        snapshot.store.kind = Some(scheme.word().into());
    }
    TakenSnapshot::new(snapshot, source)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_config::config_with;

    #[tokio::test]
    async fn top_neither_opens_nor_makes_an_embedded_store() {
        let folder = tempfile::tempdir().unwrap();
        let dir = folder.path().join("store");
        let config = config_with(&[&format!("store.url=embedded:{}", dir.display())]);
        let mut feed = Feed::of(&config).await.unwrap();
        let missing = feed.open().await.unwrap_err();
        assert!(missing.is_none(), "{missing:?}");
        assert!(!dir.exists());
        let store = quittance_store_embedded::EmbeddedStore::open(&dir).unwrap();
        assert!(matches!(feed.open().await, Err(None)), "another command has it");
        drop(store);
    }

    #[tokio::test]
    async fn a_store_in_memory_cannot_be_watched() {
        let config = config_with(&["store.url=memory:"]);
        assert!(Feed::of(&config).await.is_err());
    }
}
