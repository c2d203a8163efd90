//! The settings of a store: everything that is needed before the first connection.

use crate::url::{BadRedisUrl, Formation, PREFIX, Url};
use std::fmt;
use std::time::Duration;

/// The number of partitions of a new store on a cluster. A single server has one partition.
const CLUSTER_PARTITIONS: u16 = 16;
const RECHECK: Duration = Duration::from_secs(5);
const CALL_WAIT: Duration = Duration::from_secs(2);

#[derive(Clone)]
pub struct Settings {
    pub(crate) url: Url,
    pub(crate) ca: Option<Vec<u8>>,
    pub(crate) recheck: Duration,
    pub(crate) call_wait: Duration,
    pub(crate) is_look: bool,
}

impl Settings {
    /// Parses the address of a store. `redis://`, `rediss://` (TLS), `valkey://` and `valkeys://` name one server.
    /// `redis+cluster://` names some servers of a cluster. `redis+sentinel://` names the sentinels and the master. A
    /// user and a password can stand before the servers. `?prefix=` selects one of several stores, and `?partitions=`
    /// sets the number of partitions of a new store.
    pub fn parse(url: &str) -> Result<Self, BadRedisUrl> {
        Ok(Self { url: Url::parse(url)?, ca: None, recheck: RECHECK, call_wait: CALL_WAIT, is_look: false })
    }

    /// Sets the password, in place of the one in the address, which more people may see.
    #[must_use]
    pub fn with_password(mut self, password: &str) -> Self {
        self.url.password = Some(password.to_owned());
        self
    }

    /// Trusts only these certificate authorities (PEM), and no public ones.
    #[must_use]
    pub fn with_ca(self, pem: Vec<u8>) -> Self {
        Self { ca: Some(pem), ..self }
    }

    /// How often the orders with waiting callers are re-checked, in case a notice was lost.
    #[must_use]
    pub fn with_recheck(self, span: Duration) -> Self {
        Self { recheck: span.max(Duration::from_millis(1)), ..self }
    }

    /// The timeout of a request, after which its call fails as unavailable.
    #[must_use]
    pub fn with_call_wait(self, span: Duration) -> Self {
        Self { call_wait: span.max(Duration::from_millis(1)), ..self }
    }

    /// For read-only use: a store that does not exist is not created.
    #[must_use]
    pub fn as_it_is(self) -> Self {
        Self { is_look: true, ..self }
    }

    /// The address for messages, without the password.
    #[must_use]
    pub fn address(&self) -> String {
        self.url.shown()
    }

    pub(crate) fn prefix(&self) -> &str {
        self.url.prefix.as_deref().unwrap_or(PREFIX)
    }

    pub(crate) fn partitions(&self) -> u16 {
        self.url.partitions.unwrap_or(match self.url.formation {
            Formation::Cluster => CLUSTER_PARTITIONS,
            Formation::One | Formation::Sentinel { .. } => 1,
        })
    }
}

impl fmt::Debug for Settings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Settings({})", self.address())
    }
}
