//! A daemon that has the store to itself, and is asked over HTTP by whoever finds it closed. Where it listens stands in the
//! store's own folder, so it is never another one that is asked, whatever the configuration says.

mod note;

use crate::exit::{CliError, Exit};
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::{Bytes, Incoming};
use hyper::client::conn::http1;
use hyper::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HOST, HeaderValue, USER_AGENT};
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use quittance::embedded;
use quittance_config::{ADMIN_KEY, Config, Environment};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::Path;
use std::time::Duration;
use tokio::net::TcpStream;

pub(crate) use note::Note;

/// For one question and all of its answer. The daemon itself gives up on its store before that.
const ANSWER_WAIT: Duration = Duration::from_secs(20);
/// More than all pools and a thousand lines of the usage.
pub(crate) const ANSWER_BYTES_MAX: usize = 32 * 1024 * 1024;
const AGENT: &str = concat!("quittance/", env!("CARGO_PKG_VERSION"));

/// Where a listener is reached from the machine that it is on.
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
    /// What to do if its operator has no key at all.
    is_keyless: bool,
}

/// What it says when it does not do something (RFC 9457).
#[derive(Debug, Deserialize)]
pub(crate) struct Problem {
    pub(crate) code: String,
    pub(crate) detail: String,
}

/// Why there is nothing to read.
pub(crate) enum NoAnswer {
    /// There is no such thing there.
    Nothing,
    CliError(CliError),
}

impl From<CliError> for NoAnswer {
    fn from(trouble: CliError) -> Self {
        Self::CliError(trouble)
    }
}

/// A question as any caller puts it.
pub(crate) fn asking(method: Method, path: &str, body: Option<&Value>) -> Result<Request<Bytes>, String> {
    let mut request = Request::builder()
        .method(method)
        .uri(path)
        .header(USER_AGENT, AGENT)
        .header(ACCEPT, "application/json");
    if body.is_some() {
        request = request.header(CONTENT_TYPE, "application/json");
    }
    let body = body.map(Value::to_string).unwrap_or_default();
    request.body(Bytes::from(body)).map_err(|error| error.to_string())
}

impl Daemon {
    /// The one that has the store, if it is a daemon; `error` says that somebody has.
    pub(crate) fn that_has_it(
        error: &embedded::EmbeddedOpenError,
        config: &Config,
        environment: &Environment,
    ) -> Result<Option<Self>, CliError> {
        let embedded::EmbeddedOpenError::InUse { dir, pid: Some(pid) } = error else { return Ok(None) };
        Note::of(dir).read(*pid).map(|at| Self::at(at, config, environment)).transpose()
    }

    /// The one that runs on the store in this folder, for whoever must not open it himself.
    pub(crate) fn that_runs_in(
        dir: &Path,
        config: &Config,
        environment: &Environment,
    ) -> Result<Option<Self>, CliError> {
        Note::of(dir).read_if_held().map(|at| Self::at(at, config, environment)).transpose()
    }

    fn at(at: SocketAddr, config: &Config, environment: &Environment) -> Result<Self, CliError> {
        let is_keyless = config.admin.is_none();
        Self { at: near(at), key: None, is_keyless }.with_key_in(ADMIN_KEY, environment)
    }

    /// Shows the key in this variable from now on, or none if it is empty.
    pub(crate) fn with_key_in(self, variable: &str, environment: &Environment) -> Result<Self, CliError> {
        let typed = environment.get(variable).map(str::trim).filter(|key| !key.is_empty());
        let key = typed.map(|key| {
            let mut shown = HeaderValue::try_from(format!("Bearer {key}")).map_err(|_| {
                let what = format!("{variable} has a character that no key has");
                CliError::new(Exit::Config, what)
            })?;
            shown.set_sensitive(true);
            Ok::<_, CliError>(shown)
        });
        Ok(Self { key: key.transpose()?, ..self })
    }

    /// What people call it.
    pub(crate) fn named(&self) -> String {
        format!("the daemon at http://{}", self.at)
    }

    pub(crate) async fn read<T: DeserializeOwned>(&self, path: &str) -> Result<T, CliError> {
        match self.ask(Method::GET, path, None).await {
            Ok(body) => serde_json::from_slice(&body).map_err(|error| self.strange(&error.to_string())),
            Err(NoAnswer::Nothing) => Err(self.strange("it knows nothing of it")),
            Err(NoAnswer::CliError(trouble)) => Err(trouble),
        }
    }

    pub(crate) async fn ask(
        &self,
        method: Method,
        path: &str,
        body: Option<&Value>,
    ) -> Result<Bytes, NoAnswer> {
        let (status, answer) = match tokio::time::timeout(ANSWER_WAIT, self.call(method, path, body)).await {
            Ok(Ok(answered)) => answered,
            Ok(Err(why)) => return Err(self.silent(&why).into()),
            Err(_) => {
                return Err(self.silent(&format!("no answer within {} s", ANSWER_WAIT.as_secs())).into());
            }
        };
        if status.is_success() {
            return Ok(answer);
        }
        let Ok(problem) = serde_json::from_slice::<Problem>(&answer) else {
            return Err(self.strange(&format!("it answers with {status}")).into());
        };
        match problem.code.as_str() {
            "unknown_pool" => Err(NoAnswer::Nothing),
            _ => Err(self.refused(status, &problem).into()),
        }
    }

    async fn call(
        &self,
        method: Method,
        path: &str,
        body: Option<&Value>,
    ) -> Result<(StatusCode, Bytes), String> {
        let answer = self.send(asking(method, path, body)?).await?;
        let status = answer.status();
        let body = Limited::new(answer.into_body(), ANSWER_BYTES_MAX).collect().await;
        Ok((status, body.map_err(|error| error.to_string())?.to_bytes()))
    }

    /// The answer's head; its body may go on for ever.
    pub(crate) async fn send(&self, mut request: Request<Bytes>) -> Result<Response<Incoming>, String> {
        let stream = TcpStream::connect(self.at).await.map_err(|error| error.to_string())?;
        let (mut sender, connection) =
            http1::handshake(TokioIo::new(stream)).await.map_err(|error| error.to_string())?;
        let host = HeaderValue::try_from(self.at.to_string()).map_err(|error| error.to_string())?;
        request.headers_mut().insert(HOST, host);
        if let Some(key) = &self.key {
            request.headers_mut().insert(AUTHORIZATION, key.clone());
        }
        // It does the work, and has nothing to say that the answer does not say better.
        tokio::spawn(connection);
        sender.send_request(request.map(Full::new)).await.map_err(|error| error.to_string())
    }

    pub(crate) fn silent(&self, why: &str) -> CliError {
        let what = format!(
            "a daemon has the store to itself, and does not answer at http://{} ({why}): ask again, or look at its log",
            self.at
        );
        CliError::new(Exit::Store, what)
    }

    pub(crate) fn strange(&self, why: &str) -> CliError {
        let what = format!(
            "what answers at http://{} cannot be understood ({why}): is it another version of this command?",
            self.at
        );
        CliError::new(Exit::Store, what)
    }

    fn refused(&self, status: StatusCode, Problem { code, detail }: &Problem) -> CliError {
        match code.as_str() {
            "unauthorized" | "forbidden" => CliError::new(Exit::Config, self.locked_out()),
            "pool_busy" | "same_target" | "too_many_pools" => CliError::new(Exit::Bad, detail),
            _ if matches!(status.as_u16(), 400 | 403 | 413 | 415 | 422) => CliError::new(Exit::Usage, detail),
            _ => CliError::new(Exit::Store, format!("the daemon at http://{} says: {detail}", self.at)),
        }
    }

    pub(crate) fn locked_out(&self) -> String {
        let at = self.at;
        match &self.key {
            Some(_) => format!(
                "the daemon at http://{at} does not take what {ADMIN_KEY} holds: it must be the operator's key"
            ),
            None if self.is_keyless => format!(
                "the daemon at http://{at} has tenants and no operator's key, so nobody may ask it: `quittance tenant new \
                 --admin` makes one; set it, start the daemon again, and put the key into {ADMIN_KEY}"
            ),
            None => format!("the daemon at http://{at} wants the operator's key: put it into {ADMIN_KEY}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_webhook_for_everybody_is_reached_on_this_machine() {
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
