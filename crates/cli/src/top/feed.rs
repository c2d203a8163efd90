//! Where the pictures come from: a daemon that is looked for again and again, or a store that is shared.

use super::from_outside;
use super::snapshot::Snapshot;
use crate::client::{ApiClient, Stream};
use crate::daemon::Daemon;
use crate::exit::{CliError, Exit};
use crate::{output, store};
use http_body_util::BodyExt;
use quittance_config::{Config, Environment, Scheme, StoreUrl};
use std::path::PathBuf;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::time::timeout;

const LIVE: &str = "/v1/admin/live";
/// More than any picture of thousands of pools.
const EVENT_BYTES_MAX: usize = 32 * 1024 * 1024;
/// How long is waited before a daemon is looked for again.
pub(super) const AGAIN: Duration = Duration::from_secs(1);
/// How long it may take to begin to answer.
const OPEN_WAIT: Duration = Duration::from_secs(5);

/// Why there is nothing new to show.
#[derive(Debug)]
pub(super) enum Missing {
    NoDaemon,
    CliError(CliError),
}

impl From<CliError> for Missing {
    fn from(error: CliError) -> Self {
        Self::CliError(error)
    }
}

impl Missing {
    pub(super) fn words(&self) -> String {
        match self {
            Self::NoDaemon => {
                "no daemon runs on this store: start `quittance serve`; it is shown here as soon as it is \
                               there"
                    .into()
            }
            Self::CliError(error) => output::harmless(&error.what),
        }
    }
}

enum Whom {
    /// Only the daemon opens it: a command that opened it would keep the daemon from starting.
    DaemonIn(PathBuf),
    Store(Box<ApiClient>, Scheme),
}

pub(super) struct Feed {
    config: Config,
    environment: Environment,
    whom: Whom,
    pictures: Option<Pictures>,
}

impl Feed {
    pub(super) async fn of(config: &Config, environment: &Environment) -> Result<Self, CliError> {
        let whom = match &config.store.url {
            StoreUrl::Embedded(folder) => Whom::DaemonIn(folder.clone()),
            url => {
                store::must_exist(&config.store)?;
                Whom::Store(Box::new(ApiClient::find(config, environment).await?), url.scheme())
            }
        };
        Ok(Self { config: config.clone(), environment: environment.clone(), whom, pictures: None })
    }

    /// Begins to watch.
    pub(super) async fn open(&mut self) -> Result<(), Missing> {
        let found;
        let (client, outside) = match &self.whom {
            Whom::Store(client, scheme) => (&**client, Some(*scheme)),
            Whom::DaemonIn(folder) => {
                let daemon = Daemon::that_runs_in(folder, &self.config, &self.environment)?;
                found = ApiClient::Daemon(daemon.ok_or(Missing::NoDaemon)?);
                (&found, None)
            }
        };
        let Ok(opened) = timeout(OPEN_WAIT, client.open(LIVE)).await else {
            let what = format!(
                "a daemon has the store, and does not answer within {} s: look at its log",
                OPEN_WAIT.as_secs()
            );
            return Err(CliError::new(Exit::Store, what).into());
        };
        let stream = opened.map_err(CliError::from)?;
        self.pictures = Some(Pictures { stream, rest: Vec::new(), outside });
        Ok(())
    }

    /// The next snapshot. A daemon that is started later, or again, is found.
    async fn next(&mut self) -> Result<Snapshot, Missing> {
        loop {
            if let Some(pictures) = &mut self.pictures
                && let Some(picture) = pictures.next().await
            {
                return Ok(picture);
            }
            self.pictures = None;
            tokio::time::sleep(AGAIN).await;
            self.open().await?;
        }
    }

    /// Sends snapshots until the receiver is dropped.
    pub(super) async fn tell(mut self, seen: mpsc::Sender<Result<Snapshot, Missing>>) {
        while seen.send(self.next().await).await.is_ok() {}
    }
}

/// The pictures of a stream, one after the other.
struct Pictures {
    stream: Stream,
    /// What has come of the next event.
    rest: Vec<u8>,
    /// The store that this process looks at, if it is no daemon that tells.
    outside: Option<Scheme>,
}

impl Pictures {
    /// Nothing, when the stream has ended.
    async fn next(&mut self) -> Option<Snapshot> {
        loop {
            if let Some(end) = self.rest.windows(2).position(|two| two == b"\n\n") {
                let event: Vec<u8> = self.rest.drain(..end + 2).collect();
                match read(&event, self.outside) {
                    Some(picture) => return Some(picture),
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

/// The picture in an event, if there is one in it.
fn read(event: &[u8], outside: Option<Scheme>) -> Option<Snapshot> {
    let text = std::str::from_utf8(event).ok()?;
    let snapshot = text.lines().find_map(|line| line.strip_prefix("data: "))?;
    let mut snapshot = serde_json::from_str(snapshot).ok()?;
    if let Some(scheme) = outside {
        from_outside(&mut snapshot, scheme);
    }
    serde_json::from_value(snapshot).ok()
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
        let mut feed = Feed::of(&config, &Environment::default()).await.unwrap();
        let missing = feed.open().await.unwrap_err();
        assert!(missing.words().contains("start `quittance serve`"), "{missing:?}");
        assert!(!dir.exists());
        let store = quittance_store_embedded::EmbeddedStore::open(&dir).unwrap();
        assert!(matches!(feed.open().await, Err(Missing::NoDaemon)), "another command has it");
        drop(store);
    }

    #[tokio::test]
    async fn a_store_in_memory_cannot_be_watched() {
        let config = config_with(&["store.url=memory:"]);
        assert!(Feed::of(&config, &Environment::default()).await.is_err());
    }
}
