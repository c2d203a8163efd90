//! The daemon that uses an embedded store, which only one process can open. Its address is in a file in the store's
//! folder, so a command always finds the daemon of its own store.

use crate::exit::{CliError, Exit};
use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::client::conn::http1;
use hyper::header::{AUTHORIZATION, HOST, HeaderValue};
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use quittance::embedded;
use quittance_config::{ADMIN_KEY, Config, Environment, TENANT_KEY};
use quittance_daemon::AddressFile;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::Path;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;

/// The address at which this machine reaches a listener.
pub(crate) fn near(listen: SocketAddr) -> SocketAddr {
    let ip = match listen.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(ip) if ip.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
        ip => ip,
    };
    SocketAddr::new(ip, listen.port())
}

pub(crate) struct Daemon {
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

/// Sends a request on a connection of its own.
pub(crate) async fn exchange(
    stream: impl AsyncRead + AsyncWrite + Send + Unpin + 'static,
    request: Request<Bytes>,
) -> hyper::Result<Response<Incoming>> {
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
    // Its errors are also those of the response.
    tokio::spawn(connection);
    sender.send_request(request.map(Full::new)).await
}

impl Daemon {
    /// The daemon that uses the store; `error` reports that some process uses it.
    pub(crate) fn that_uses_store(
        error: &embedded::EmbeddedOpenError,
        config: &Config,
        environment: &Environment,
    ) -> Result<Option<Self>, CliError> {
        let embedded::EmbeddedOpenError::InUse { dir, pid: Some(pid) } = error else { return Ok(None) };
        AddressFile::of(dir).read(*pid).map(|at| Self::at(at, config, environment)).transpose()
    }

    /// The daemon that runs on the store in this folder. The store is not opened to find it.
    pub(crate) fn that_runs_in(
        dir: &Path,
        config: &Config,
        environment: &Environment,
    ) -> Result<Option<Self>, CliError> {
        AddressFile::of(dir).read_if_held().map(|at| Self::at(at, config, environment)).transpose()
    }

    fn at(at: SocketAddr, config: &Config, environment: &Environment) -> Result<Self, CliError> {
        let is_keyless = config.admin.is_none();
        Self { at: near(at), key: None, variable: ADMIN_KEY, is_keyless }.with_key_in(ADMIN_KEY, environment)
    }

    /// Sends the key in this variable from now on, or none if it is empty.
    pub(crate) fn with_key_in(
        self,
        variable: &'static str,
        environment: &Environment,
    ) -> Result<Self, CliError> {
        let typed = environment.get(variable).map(str::trim).filter(|key| !key.is_empty());
        let key = typed.map(|key| {
            bearer(key).ok_or_else(|| {
                CliError::new(Exit::Config, format!("{variable} has a character that no key has"))
            })
        });
        Ok(Self { key: key.transpose()?, variable, ..self })
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

    pub(crate) fn silent(&self, why: &str) -> CliError {
        let what = format!(
            "a daemon uses the store, and does not answer at http://{} ({why}): run the command again, or see the daemon's log",
            self.at
        );
        CliError::new(Exit::Store, what)
    }

    pub(crate) fn not_understood(&self, why: &str) -> CliError {
        let what = format!(
            "the response of the daemon at http://{} cannot be understood ({why}): is it another version than this command?",
            self.at
        );
        CliError::new(Exit::Store, what)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_for_all_is_reached_on_this_machine() {
        for (listen, expected) in [
            ("0.0.0.0:8780", "127.0.0.1:8780"),
            ("[::]:8780", "[::1]:8780"),
            ("192.0.2.7:80", "192.0.2.7:80"),
            ("127.0.0.1:1", "127.0.0.1:1"),
        ] {
            assert_eq!(near(listen.parse().unwrap()), expected.parse().unwrap());
        }
    }
}
