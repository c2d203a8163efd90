//! Whoever answers for the store at the prompt: `/v1` of the daemon that has it to itself, or `/v1` in this very process when
//! nobody has. A command asks one or the other the same thing and shows what it is told, so there is nothing that the page or
//! the API can do and the prompt cannot, and no second copy of how it is done.

use crate::daemon::{ANSWER_BYTES_MAX, Daemon, Problem, asking};
use crate::exit::{CliError, Exit};
use crate::{node, place};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Limited};
use hyper::body::Bytes;
use hyper::header::{CONTENT_TYPE, HeaderValue};
use hyper::{Method, Request, StatusCode};
use quittance::{Quittance, StoreOpenError};
use quittance_config::{Config, Environment};
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::error::Error;

/// As it comes, for answers that may not end.
pub(crate) type Stream = UnsyncBoxBody<Bytes, Box<dyn Error + Send + Sync>>;

pub(crate) enum ApiClient {
    Here(Box<Quittance>),
    There(Daemon),
}

/// Why there is nothing to show.
#[derive(Debug)]
pub(crate) enum Refusal {
    /// In the words of the API: a code that can be acted upon, and what it means.
    Said {
        status: StatusCode,
        code: String,
        detail: String,
    },
    CliError(CliError),
}

impl From<Refusal> for CliError {
    fn from(refusal: Refusal) -> Self {
        match refusal {
            Refusal::CliError(trouble) => trouble,
            Refusal::Said { status, code, detail } => {
                let exit = match (code.as_str(), status.as_u16()) {
                    ("unauthorized" | "forbidden", _) => Exit::Config,
                    (_, 403 | 404 | 409) => Exit::Bad,
                    (_, 400 | 413 | 415 | 422) => Exit::Usage,
                    _ => Exit::Store,
                };
                Self::new(exit, detail)
            }
        }
    }
}

impl ApiClient {
    /// Looks and mends; carries nothing out.
    pub(crate) async fn find(config: &Config, environment: &Environment) -> Result<Self, CliError> {
        match place::missing(&config.store) {
            Some(missing) => Err(missing),
            None => Self::find_or_make(config, environment).await,
        }
    }

    /// A client for a command that writes to the store. Makes the store if there is none.
    pub(crate) async fn find_or_make(config: &Config, environment: &Environment) -> Result<Self, CliError> {
        let held = match node::open_office(config).await? {
            Ok(node) => return Ok(Self::Here(Box::new(node))),
            Err(held) => held,
        };
        if let Some(daemon) = Daemon::that_has_it(&held, config, environment)? {
            return Ok(Self::There(daemon));
        }
        let mut trouble = place::trouble(&StoreOpenError::Embedded(held));
        trouble.what = format!(
            "{}; a `quittance serve` that is ready would be asked instead, and this is none",
            trouble.what
        );
        Err(trouble)
    }

    /// A client whose actions are carried out: by the daemon, or by this process.
    pub(crate) async fn at_work(config: &Config, environment: &Environment) -> Result<Self, CliError> {
        match Self::find(config, environment).await? {
            Self::There(daemon) => Ok(Self::There(daemon)),
            Self::Here(node) => {
                // The store is given back first: it has room for one.
                drop(node);
                Ok(Self::Here(Box::new(node::start_office(config).await?)))
            }
        }
    }

    /// Ends what is under way, if it was carried out here.
    pub(crate) async fn close(self) {
        if let Self::Here(node) = self {
            node::stop(&node).await;
        }
    }

    pub(crate) async fn read<T: DeserializeOwned>(&self, path: &str) -> Result<T, Refusal> {
        self.ask(Method::GET, path, None).await
    }

    pub(crate) async fn ask<T: DeserializeOwned>(
        &self,
        method: Method,
        path: &str,
        body: Option<&Value>,
    ) -> Result<T, Refusal> {
        self.whole(self.open(method, path, body).await?).await
    }

    /// An answer that is read as it comes; whatever is no success is a refusal.
    pub(crate) async fn open(
        &self,
        method: Method,
        path: &str,
        body: Option<&Value>,
    ) -> Result<Stream, Refusal> {
        self.send(asking(method, path, body).map_err(|why| self.strange(&why))?).await
    }

    /// Sends lines that stand in a file, as they are.
    pub(crate) async fn upload<T: DeserializeOwned>(&self, path: &str, lines: Bytes) -> Result<T, Refusal> {
        let mut request = asking(Method::POST, path, None).map_err(|why| self.strange(&why))?;
        request.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/x-ndjson"));
        *request.body_mut() = lines;
        self.whole(self.send(request).await?).await
    }

    async fn whole<T: DeserializeOwned>(&self, stream: Stream) -> Result<T, Refusal> {
        let whole = Limited::new(stream, ANSWER_BYTES_MAX).collect().await;
        let whole = whole.map_err(|error| self.strange(&error.to_string()))?.to_bytes();
        serde_json::from_slice(&whole).map_err(|error| self.strange(&error.to_string()))
    }

    async fn send(&self, request: Request<Bytes>) -> Result<Stream, Refusal> {
        let (status, stream): (StatusCode, Stream) = match self {
            Self::Here(node) => {
                let gateway = node.gateway().expect("it was opened with one");
                let (head, body) = gateway.ask(request).await.into_parts();
                (head.status, body.map_err(|never| match never {}).boxed_unsync())
            }
            Self::There(daemon) => {
                let sent =
                    daemon.send(request).await.map_err(|why| Refusal::CliError(daemon.silent(&why)))?;
                let (head, body) = sent.into_parts();
                (head.status, body.map_err(Into::into).boxed_unsync())
            }
        };
        if status.is_success() {
            return Ok(stream);
        }
        let whole = Limited::new(stream, ANSWER_BYTES_MAX).collect().await;
        let whole = whole.map_err(|error| self.strange(&error.to_string()))?.to_bytes();
        let Ok(Problem { code, detail }) = serde_json::from_slice(&whole) else {
            return Err(self.strange(&format!("it answers with {status}")));
        };
        Err(match self {
            Self::There(daemon) if matches!(code.as_str(), "unauthorized" | "forbidden") => {
                Refusal::CliError(CliError::new(Exit::Config, daemon.locked_out()))
            }
            _ => Refusal::Said { status, code, detail },
        })
    }

    fn strange(&self, why: &str) -> Refusal {
        Refusal::CliError(match self {
            Self::There(daemon) => daemon.strange(why),
            Self::Here(_) => CliError::new(Exit::Bad, format!("this is a bug, please report it: {why}")),
        })
    }
}
