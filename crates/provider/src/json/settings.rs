//! What a provider needs to know before the first call, checked once: an address that would not work, or would carry a
//! secret to where it does not belong, is refused here and not at the first order.

use quittance_lifecycle::FaultClass;
use quittance_protocol::json::JsonDialect;
use quittance_wire::{ApiKey, BadSettings, Base, Client};
use std::collections::BTreeMap;
use std::time::Duration;

/// Corrections to the dialect's tempo; what is `None` stays as it is there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct JsonPaceSettings {
    /// The least span between two submits.
    pub submit_interval: Option<Duration>,
    /// How often one task may be polled.
    pub queries_per_task_max: Option<u32>,
}

#[derive(Clone, Debug)]
pub struct Settings {
    /// What people call this provider.
    pub name: String,
    pub dialect: JsonDialect,
    /// The address without `createTask`: `https://api.capsolver.com`.
    pub url: String,
    pub key: ApiKey,
    /// For finding the host, the connection and TLS together.
    pub connect_timeout: Duration,
    /// From the first byte of a submit to the last of its answer. With the wait for its turn and the connection it
    /// should stay below the policy's `submit_wait`.
    pub submit_timeout: Duration,
    pub poll_timeout: Duration,
    /// What the operator knows better about codes.
    pub codes: BTreeMap<String, FaultClass>,
    pub response_bytes_max: usize,
    pub pace: JsonPaceSettings,
    /// Certificates in PEM to trust besides the usual ones.
    pub extra_ca: Vec<u8>,
    /// How long a connection may rest and still be used again. Servers close theirs after five seconds and more;
    /// a connection that closes just as a submit is written on it makes a doubt.
    pub idle_max: Duration,
    /// How many connections may rest.
    pub idle_connections_max: usize,
}

impl Settings {
    #[must_use]
    pub fn new(name: impl Into<String>, dialect: JsonDialect, url: impl Into<String>, key: ApiKey) -> Self {
        Self {
            name: name.into(),
            dialect,
            url: url.into(),
            key,
            connect_timeout: Duration::from_secs(5),
            submit_timeout: Duration::from_secs(15),
            poll_timeout: Duration::from_secs(10),
            codes: BTreeMap::new(),
            response_bytes_max: 256 * 1024,
            pace: JsonPaceSettings::default(),
            extra_ca: Vec::new(),
            idle_max: Duration::from_secs(4),
            idle_connections_max: 64,
        }
    }

    /// What makes the calls, if key and address can be used.
    pub(crate) fn client(&self) -> Result<Client, BadSettings> {
        if !self.key.is_plausible() {
            return Err(BadSettings::Key);
        }
        let base = Base::read(&self.url)?;
        let path = base.path("");
        let last = path.trim_end_matches('/').rsplit('/').next().unwrap_or_default();
        if ["createTask", "getTaskResult", "getBalance"].contains(&last) {
            return Err(BadSettings::Url { why: "names a method: give the address without createTask" });
        }
        let wire = quittance_wire::Settings {
            connect_timeout: self.connect_timeout,
            response_bytes_max: self.response_bytes_max,
            extra_ca: self.extra_ca.clone(),
            idle_max: self.idle_max,
            idle_connections_max: self.idle_connections_max,
        };
        Client::new(base, &wire)
    }
}
