//! The client of our own API (`/v1`). If a daemon uses the store, requests go over HTTP; otherwise to a node that the
//! command opens in this process. A command sends equal requests to both and renders the responses, which have the
//! types of `quittance-admin`.

use crate::address_file::AddressFile;
use crate::configured_node::{self, UnlessInUse};
use crate::configured_store::{missing, open_error};
use crate::reach::{is_daemon_at, near};
use crate::running_daemon::{RunningDaemon, bearer};
use crate::setup_error::{SetupError, SetupFault};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Limited};
use hyper::body::Bytes;
use hyper::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderName, HeaderValue, USER_AGENT};
use hyper::{Method, Request, StatusCode};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use quittance::{Quittance, StoreOpenError};
use quittance_config::{ADMIN_KEY, Config, StoreConfig, StoreUrl};
use quittance_gateway::KEY_BYTES;
use quittance_gateway::v1::problem::Problem;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::time::Duration;

/// How long one request and its whole response may take. The daemon gives up on its store before that.
const RESPONSE_WAIT: Duration = Duration::from_secs(20);
/// The most bytes of a response: more than all pools and a thousand rows of the usage need.
const RESPONSE_BYTES_MAX: usize = 32 * 1024 * 1024;
const AGENT: &str = concat!("quittance/", env!("CARGO_PKG_VERSION"));
const PREFER: HeaderName = HeaderName::from_static("prefer");

/// A body that is read as it arrives.
pub type Stream = UnsyncBoxBody<Bytes, hyper::Error>;

#[derive(Debug)]
pub enum ApiClient {
    InProcess(Box<LocalNode>),
    Daemon(RunningDaemon),
}

/// A node of this process, and the operator's key to its API. The key is new for each process.
#[derive(Debug)]
pub struct LocalNode {
    pub node: Quittance,
    key: HeaderValue,
}

/// Why a request has no result.
#[derive(Debug)]
pub enum ApiError {
    /// The API refused the request.
    Problem(Box<Problem>),
    Setup(SetupError),
}

impl From<SetupError> for ApiError {
    fn from(error: SetupError) -> Self {
        Self::Setup(error)
    }
}

/// Draws a random key: 128 bits as 32 hexadecimal digits, the form that providers use, too.
pub fn draw_key() -> Result<String, SetupError> {
    let mut bytes = [0; KEY_BYTES / 2];
    getrandom::fill(&mut bytes).map_err(|error| {
        SetupError::new(SetupFault::Machine, format!("the system gives no random numbers: {error}"))
    })?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

/// A segment of a path: a name may contain any characters.
#[must_use]
pub fn segment(name: &str) -> impl std::fmt::Display {
    utf8_percent_encode(name, NON_ALPHANUMERIC)
}

fn request(method: Method, path: &str, body: Bytes) -> Result<Request<Bytes>, String> {
    let request = Request::builder()
        .method(method)
        .uri(path)
        .header(USER_AGENT, AGENT)
        .header(ACCEPT, "application/json")
        .body(body);
    request.map_err(|error| error.to_string())
}

impl ApiClient {
    /// A client for a command that reads or changes an existing store. It creates no store, and its node processes no
    /// orders.
    pub async fn find(config: &Config) -> Result<Self, SetupError> {
        match missing(&config.store) {
            Some(missing) => Err(missing),
            None => Self::find_or_make(config).await,
        }
    }

    /// A client for a command that writes to the store. Creates the store if there is none.
    pub async fn find_or_make(config: &Config) -> Result<Self, SetupError> {
        if matches!(config.store.url, StoreUrl::Memory) {
            return Self::of_memory(config).await;
        }
        let key = draw_key()?;
        let in_use = match configured_node::open(config, &key).await? {
            UnlessInUse::Opened(node) => return Ok(Self::local(node, &key)),
            UnlessInUse::InUse(error) => error,
        };
        if let Some(daemon) = RunningDaemon::that_uses_store(&in_use, config)? {
            return Ok(Self::Daemon(daemon));
        }
        let mut error = open_error(&StoreOpenError::Embedded(in_use));
        error.what += ". It is not a `quittance serve` that is ready: wait until it ends, or until the daemon has started, and try again";
        Err(error)
    }

    /// The daemon that listens at the configured address. No other process can see a store in memory: a node of this
    /// process would change a store of its own, which ends with the command.
    async fn of_memory(config: &Config) -> Result<Self, SetupError> {
        if is_daemon_at(config.listen).await {
            return Ok(Self::Daemon(RunningDaemon::at(config.listen, config, ADMIN_KEY)?));
        }
        let what = format!(
            "the store is in the memory of a daemon (`store.url`), and no daemon answers at http://{}: start `quittance serve`, or              set `listen` to the daemon's address. Nothing was changed",
            near(config.listen)
        );
        Err(SetupError::new(SetupFault::Store, what))
    }

    /// A client for actions that a node must process: the daemon, or this process.
    pub async fn at_work(config: &Config) -> Result<Self, SetupError> {
        match Self::find(config).await? {
            Self::Daemon(daemon) => Ok(Self::Daemon(daemon)),
            Self::InProcess(node) => {
                // An embedded store can be open once.
                drop(node);
                let key = draw_key()?;
                match configured_node::start(config, Some(&key)).await? {
                    UnlessInUse::Opened(node) => Ok(Self::local(node, &key)),
                    UnlessInUse::InUse(error) => Err(open_error(&StoreOpenError::Embedded(error))),
                }
            }
        }
    }

    fn local(node: Quittance, key: &str) -> Self {
        let key = bearer(key).expect("it has only hexadecimal digits");
        Self::InProcess(Box::new(LocalNode { node, key }))
    }

    /// A client of the daemon that runs on this embedded store, with the key in `variable`; `None` if there is no
    /// daemon. The store is not opened.
    pub fn of_daemon(
        store: &StoreConfig,
        config: &Config,
        variable: &'static str,
    ) -> Result<Option<Self>, SetupError> {
        let StoreUrl::Embedded(dir) = &store.url else { return Ok(None) };
        let daemon = AddressFile::of(dir).read_if_held().map(|at| RunningDaemon::at(at, config, variable));
        Ok(daemon.transpose()?.map(Self::Daemon))
    }

    pub async fn get<T: DeserializeOwned>(&self, path: &str) -> Result<T, ApiError> {
        self.call(Method::GET, path).await
    }

    /// A request without a body.
    pub async fn call<T: DeserializeOwned>(&self, method: Method, path: &str) -> Result<T, ApiError> {
        self.whole(self.request(method, path, Bytes::new())?).await
    }

    /// A request with a JSON body.
    pub async fn send<T: DeserializeOwned>(
        &self,
        method: Method,
        path: &str,
        body: &impl Serialize,
    ) -> Result<T, ApiError> {
        let body = serde_json::to_vec(body).map_err(|error| self.not_understood(&error.to_string()))?;
        self.upload(method, path, body.into(), "application/json").await
    }

    pub async fn upload<T: DeserializeOwned>(
        &self,
        method: Method,
        path: &str,
        body: Bytes,
        content_type: &'static str,
    ) -> Result<T, ApiError> {
        let mut request = self.request(method, path, body)?;
        request.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
        self.whole(request).await
    }

    /// Reads a resource that the API may hold back for a while, as `prefer` says (RFC 7240).
    pub async fn wait<T: DeserializeOwned>(&self, path: &str, prefer: &'static str) -> Result<T, ApiError> {
        let mut request = self.request(Method::GET, path, Bytes::new())?;
        request.headers_mut().insert(PREFER, HeaderValue::from_static(prefer));
        self.whole(request).await
    }

    /// A response that is read as it arrives; it may not end.
    pub async fn open(&self, path: &str) -> Result<Stream, ApiError> {
        self.respond(self.request(Method::GET, path, Bytes::new())?).await
    }

    fn request(&self, method: Method, path: &str, body: Bytes) -> Result<Request<Bytes>, ApiError> {
        request(method, path, body).map_err(|why| self.not_understood(&why))
    }

    async fn whole<T: DeserializeOwned>(&self, request: Request<Bytes>) -> Result<T, ApiError> {
        let response = async { self.collect(self.respond(request).await?).await };
        let Ok(body) = tokio::time::timeout(RESPONSE_WAIT, response).await else {
            return Err(self.silent(&format!("no response within {} s", RESPONSE_WAIT.as_secs())));
        };
        let body = body?;
        let body: &[u8] = if body.is_empty() { b"null" } else { &body };
        serde_json::from_slice(body).map_err(|error| self.not_understood(&error.to_string()))
    }

    async fn collect(&self, stream: Stream) -> Result<Bytes, ApiError> {
        let whole = Limited::new(stream, RESPONSE_BYTES_MAX).collect().await;
        Ok(whole.map_err(|error| self.silent(&error.to_string()))?.to_bytes())
    }

    async fn respond(&self, mut request: Request<Bytes>) -> Result<Stream, ApiError> {
        let (status, stream): (StatusCode, Stream) = match self {
            Self::InProcess(local) => {
                request.headers_mut().insert(AUTHORIZATION, local.key.clone());
                let gateway = local.node.gateway().expect("it was opened with one");
                let (head, body) = gateway.ask(request).await.into_parts();
                (head.status, body.map_err(|never| match never {}).boxed_unsync())
            }
            Self::Daemon(daemon) => {
                let response = daemon.send(request).await.map_err(|why| self.silent(&why))?;
                let (head, body) = response.into_parts();
                (head.status, body.boxed_unsync())
            }
        };
        if status.is_success() {
            return Ok(stream);
        }
        let body = self.collect(stream).await?;
        let Ok(problem) = serde_json::from_slice::<Problem>(&body) else {
            return Err(self.not_understood(&format!("status {status}")));
        };
        Err(match self {
            Self::Daemon(daemon) if matches!(&*problem.code, "unauthorized" | "forbidden") => {
                SetupError::new(SetupFault::Config, daemon.locked_out(&problem.detail)).into()
            }
            _ => ApiError::Problem(Box::new(problem)),
        })
    }

    fn silent(&self, why: &str) -> ApiError {
        self.error(why, RunningDaemon::silent)
    }

    pub fn not_understood(&self, why: &str) -> ApiError {
        self.error(why, RunningDaemon::not_understood)
    }

    fn error(&self, why: &str, of_daemon: fn(&RunningDaemon, &str) -> SetupError) -> ApiError {
        ApiError::Setup(match self {
            Self::Daemon(daemon) => of_daemon(daemon, why),
            Self::InProcess(_) => {
                SetupError::new(SetupFault::Machine, format!("this is a bug, please report it: {why}"))
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_one_segment_of_a_path() {
        assert_eq!(segment("login2A").to_string(), "login2A");
        assert_eq!(segment("../x?y=é ").to_string(), "%2E%2E%2Fx%3Fy%3D%C3%A9%20");
    }
}
