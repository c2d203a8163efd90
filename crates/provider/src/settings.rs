//! The settings of an adapter, checked before the first call. An address that cannot work, or that would send a
//! secret to the wrong place, is refused here and not at the first order.

use quittance_lifecycle::FaultClass;
use quittance_protocol::classic::dialect::PollQuota;
use quittance_wire::{ApiKey, BadSettings, Base, Client};
use std::collections::BTreeMap;
use std::time::Duration;

/// The settings of one provider, for both protocols. A limit of `None` means the known limit of the service.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// The name that the operator gives to this provider.
    pub name: String,
    /// The URL without `in.php` or `createTask`: `https://ocr.captchaai.com`.
    pub url: String,
    pub key: ApiKey,
    /// The timeout for DNS, connection and TLS together.
    pub connect_timeout: Duration,
    /// The timeout from the first byte of a submit to the last byte of its answer. Together with the wait for a turn
    /// and `connect_timeout`, it should stay below the policy's `submit_wait`.
    pub submit_timeout: Duration,
    pub poll_timeout: Duration,
    /// The least time between two submits.
    pub submit_interval: Option<Duration>,
    /// How many tasks one poll can ask for (classic protocol).
    pub poll_batch_max: Option<usize>,
    /// The polls that the provider allows: a number for each task, and a number in addition to that (the slack). The
    /// JSON protocol has no slack, because each task is counted alone.
    pub poll_quota: Option<PollQuota>,
    /// The operator's corrections of the table of codes.
    pub codes: BTreeMap<String, FaultClass>,
    pub response_bytes_max: usize,
    /// Certificates in PEM that are trusted in addition to the usual ones.
    pub extra_ca: Vec<u8>,
    /// How long an idle connection is kept for reuse. Servers close an idle connection after five seconds or more. A
    /// connection that closes just as a submit is written puts that submit in doubt.
    pub idle_max: Duration,
    /// The most idle connections.
    pub idle_connections_max: usize,
}

impl Settings {
    #[must_use]
    pub fn new(name: impl Into<String>, url: impl Into<String>, key: ApiKey) -> Self {
        Self {
            name: name.into(),
            url: url.into(),
            key,
            connect_timeout: Duration::from_secs(5),
            submit_timeout: Duration::from_secs(15),
            poll_timeout: Duration::from_secs(10),
            submit_interval: None,
            poll_batch_max: None,
            poll_quota: None,
            codes: BTreeMap::new(),
            response_bytes_max: 256 * 1024,
            extra_ca: Vec::new(),
            idle_max: Duration::from_secs(4),
            idle_connections_max: 64,
        }
    }

    /// The client for the calls. Fails if key or URL cannot be used.
    pub(crate) fn client(&self) -> Result<Client, BadSettings> {
        if !self.key.is_plausible() {
            return Err(BadSettings::Key);
        }
        let base = Base::read(&self.url)?;
        let path = base.path("");
        let last = path.trim_end_matches('/').rsplit('/').next().unwrap_or_default();
        if let Some(why) = misplaced(last) {
            return Err(BadSettings::Url { why });
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

/// Why the last part of the URL does not belong there, in either protocol; `None` if it may stand there.
fn misplaced(last: &str) -> Option<&'static str> {
    if last.ends_with(".php") {
        Some("names a script: give the address without in.php or res.php")
    } else if ["createTask", "getTaskResult", "getBalance"].contains(&last) {
        Some("names a method: give the address without createTask")
    } else {
        None
    }
}
