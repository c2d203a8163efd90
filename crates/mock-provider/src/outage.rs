//! Outages: how a provider that is down treats connections, and for how long.

use crate::mock_server::MockShared;
use serde::{Deserialize, Serialize};

/// The longest outage with a length. A typing error must not take the rest of the day.
const OUTAGE_MS_MAX: u64 = 3_600_000;

/// How connections fail during an outage.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum OutageKind {
    /// Connections are accepted and closed at once.
    #[default]
    Close,
    /// The socket is closed, so connections are refused.
    Refuse,
    /// Connections are accepted, and reset as soon as a request has begun.
    Reset,
    /// Requests are read and get no reply until the outage ends.
    Hang,
}

/// A time during which the provider is down.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct MockOutage {
    pub until_ms: u64,
    pub kind: OutageKind,
}

/// The body of `POST /mock/outage`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct OutageRequest {
    /// The length. 0 ends the outage in force; without it, the outage lasts until it is ended.
    ms: Option<u64>,
    how: Option<OutageKind>,
    /// An older way to write `how: refuse`.
    #[serde(default)]
    refuse: bool,
}

impl OutageKind {
    /// Whether the outage strikes requests and not connections. The control API then answers on the same socket.
    pub(crate) fn lets_connect(self) -> bool {
        matches!(self, Self::Reset | Self::Hang)
    }
}

impl OutageRequest {
    pub(crate) fn kind(&self) -> OutageKind {
        let default = if self.refuse { OutageKind::Refuse } else { OutageKind::Close };
        self.how.unwrap_or(default)
    }

    /// Whether only another request can end the outage.
    pub(crate) fn is_endless(&self) -> bool {
        self.ms.is_none()
    }

    pub(crate) fn begin(&self, shared: &MockShared) {
        begin(shared, self.ms, self.kind());
    }
}

/// Starts an outage of this length, or one that lasts until it is ended.
pub(crate) fn begin(shared: &MockShared, ms: Option<u64>, kind: OutageKind) {
    let until_ms = ms.map_or(u64::MAX, |ms| shared.clock.now_ms() + ms.min(OUTAGE_MS_MAX));
    shared.outage.send_replace(MockOutage { until_ms, kind });
}
