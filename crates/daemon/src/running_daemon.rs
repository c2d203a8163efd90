//! The daemon that uses an embedded store, which only one process can open. Its address is in a file in the store's
//! folder, so a command always finds the daemon of its own store.

use crate::address_file::AddressFile;
use crate::reach::{exchange, near};
use crate::setup_error::{SetupError, SetupFault};
use hyper::body::{Bytes, Incoming};
use hyper::header::{AUTHORIZATION, HOST, HeaderValue};
use hyper::{Request, Response};
use quittance::embedded;
use quittance_config::{ADMIN_KEY, Config, TENANT_KEY};
use std::net::SocketAddr;
use tokio::net::TcpStream;

/// A daemon of this machine, and the key that is sent to it.
#[derive(Debug)]
pub struct RunningDaemon {
    at: SocketAddr,
    key: Option<HeaderValue>,
    /// The variable with the key.
    variable: &'static str,
    /// Whether the configuration has no operator's key.
    is_keyless: bool,
}

/// The header with this key; `None` if a header cannot contain it.
pub(crate) fn bearer(key: &str) -> Option<HeaderValue> {
    let mut header = HeaderValue::try_from(format!("Bearer {key}")).ok()?;
    header.set_sensitive(true);
    Some(header)
}

impl RunningDaemon {
    /// The daemon that uses the store; `error` reports that some process uses it.
    pub(crate) fn that_uses_store(
        error: &embedded::EmbeddedOpenError,
        config: &Config,
    ) -> Result<Option<Self>, SetupError> {
        let embedded::EmbeddedOpenError::InUse { dir, pid: Some(pid) } = error else { return Ok(None) };
        AddressFile::of(dir).read(*pid).map(|at| Self::at(at, config, ADMIN_KEY)).transpose()
    }

    /// The daemon at this address, with the key in this variable.
    pub fn at(at: SocketAddr, config: &Config, variable: &'static str) -> Result<Self, SetupError> {
        let typed = config.environment.get(variable).map(str::trim).filter(|key| !key.is_empty());
        let wrong =
            || SetupError::new(SetupFault::Config, format!("{variable} has a character that no key has"));
        let key = typed.map(|key| bearer(key).ok_or_else(wrong)).transpose()?;
        Ok(Self { at: near(at), key, variable, is_keyless: config.admin.is_none() })
    }

    /// Sends a request. Returns the response after its head; the body may not end.
    pub(crate) async fn send(&self, mut request: Request<Bytes>) -> Result<Response<Incoming>, String> {
        let stream = TcpStream::connect(self.at).await.map_err(|error| error.to_string())?;
        let host = HeaderValue::try_from(self.at.to_string()).map_err(|error| error.to_string())?;
        request.headers_mut().insert(HOST, host);
        if let Some(key) = &self.key {
            request.headers_mut().insert(AUTHORIZATION, key.clone());
        }
        exchange(stream, request).await.map_err(|error| error.to_string())
    }

    pub(crate) fn silent(&self, why: &str) -> SetupError {
        let what = format!(
            "a daemon uses the store, and does not answer at http://{} ({why}): run the command again, or see the daemon's log",
            self.at
        );
        SetupError::new(SetupFault::Store, what)
    }

    pub(crate) fn not_understood(&self, why: &str) -> SetupError {
        let what = format!(
            "the response of the daemon at http://{} cannot be understood ({why}): is it another version than this command?",
            self.at
        );
        SetupError::new(SetupFault::Store, what)
    }

    /// What to do about a key that the daemon does not accept.
    pub(crate) fn locked_out(&self, detail: &str) -> String {
        let (at, variable) = (self.at, self.variable);
        if variable == TENANT_KEY {
            return format!(
                "the daemon at http://{at} has tenants: set {TENANT_KEY} to a tenant's key ({detail})"
            );
        }
        match &self.key {
            Some(_) => format!(
                "the daemon at http://{at} does not accept the key in {variable}: it must be the operator's key"
            ),
            None if self.is_keyless => format!(
                "the daemon at http://{at} has tenants and no operator's key, so it accepts no commands: `quittance tenant new --admin` \
                 makes one; add it to the configuration, restart the daemon, and set {variable} to the key"
            ),
            None => format!("the daemon at http://{at} requires the operator's key: set {variable} to it"),
        }
    }
}
