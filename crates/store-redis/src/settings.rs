//! Where a store is and how it is reached: everything that is decided before the first connection.

use crate::url::{BadRedisUrl, Formation, PREFIX, Url};
use std::fmt;
use std::time::Duration;

/// One server has one slot for everything; a cluster shares its work among this many.
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
    /// `redis://`, `rediss://` (TLS), `valkey://` or `valkeys://` and one server, `redis+cluster://` and some of its
    /// servers, or `redis+sentinel://`, the sentinels and the name of what they guard. A user and a password may stand
    /// in front of the servers; `?prefix=` names one store among several, `?partitions=` says into how many slots a
    /// new one is divided.
    pub fn parse(url: &str) -> Result<Self, BadRedisUrl> {
        Ok(Self { url: Url::parse(url)?, ca: None, recheck: RECHECK, call_wait: CALL_WAIT, is_look: false })
    }

    /// In place of the one in the address, which is visible wherever the address is.
    #[must_use]
    pub fn with_password(mut self, password: &str) -> Self {
        self.url.password = Some(password.to_owned());
        self
    }

    /// Trusts these authorities (PEM), and no others: an operator with an own authority wants no public one.
    #[must_use]
    pub fn with_ca(self, pem: Vec<u8>) -> Self {
        Self { ca: Some(pem), ..self }
    }

    /// How often the orders with waiting callers are looked at, in case a notice was lost.
    #[must_use]
    pub fn with_recheck(self, span: Duration) -> Self {
        Self { recheck: span.max(Duration::from_millis(1)), ..self }
    }

    /// How long a request may take before its call says that the store is not available.
    #[must_use]
    pub fn with_call_wait(self, span: Duration) -> Self {
        Self { call_wait: span.max(Duration::from_millis(1)), ..self }
    }

    /// For a look: a store that is not there is not made.
    #[must_use]
    pub fn as_it_is(self) -> Self {
        Self { is_look: true, ..self }
    }

    /// The address for people. It never contains a password.
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
