//! One call: the request and its reply, or whether the request can have arrived. A call is retried only if it used an
//! old connection and no byte of the request was written.

use crate::connect::Connector;
use crate::pool::{ConnectionPool, HttpConnection, Reply};
use crate::{BadSettings, Base};
use bytes::Bytes;
use http_body_util::Full;
use hyper::Request;
use hyper::header::{ACCEPT, CONTENT_TYPE, HOST, USER_AGENT};
use std::fmt;
use std::time::Duration;
use tokio::time::timeout;

const AGENT: &str = concat!("quittance/", env!("CARGO_PKG_VERSION"));

/// Why there is no reply, with a reason for people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WireError {
    /// No byte of the request was handed to the kernel.
    NeverSent(String),
    WhoKnows(String),
}

#[derive(Clone, Debug)]
pub struct Settings {
    /// The time limit for name resolution, connection and TLS together.
    pub connect_timeout: Duration,
    pub response_bytes_max: usize,
    /// Certificates in PEM that are trusted in addition to the usual ones.
    pub extra_ca: Vec<u8>,
    /// How long a connection may be idle and still be used again. Servers close idle connections after five
    /// seconds or more. If a connection closes just when a request is written on it, the outcome of the
    /// request is in doubt.
    pub idle_max: Duration,
    /// How many idle connections are kept.
    pub idle_connections_max: usize,
}

pub struct Client {
    base: Base,
    pub(crate) pool: ConnectionPool,
    response_bytes_max: usize,
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Client({:?})", self.base.authority)
    }
}

/// The headers, content type and body of a request, without the address.
struct WireRequest<'a> {
    headers: &'a [(&'a str, &'a str)],
    content_type: &'a str,
    body: Bytes,
}

impl Client {
    pub fn new(base: Base, settings: &Settings) -> Result<Self, BadSettings> {
        let connector = Connector::new(base.clone(), &settings.extra_ca, settings.connect_timeout)?;
        Ok(Self {
            base,
            pool: ConnectionPool::new(connector, settings.idle_max, settings.idle_connections_max),
            response_bytes_max: settings.response_bytes_max,
        })
    }

    #[must_use]
    pub fn base(&self) -> &Base {
        &self.base
    }

    /// Sends a POST request and reads the whole reply. `time_limit` covers the request and the reply, and not
    /// the time that a new connection takes before.
    pub async fn post(
        &self,
        script: &str,
        headers: &[(&str, &str)],
        content_type: &str,
        body: Bytes,
        time_limit: Duration,
    ) -> Result<Reply, WireError> {
        let outgoing = WireRequest { headers, content_type, body };
        if let Some(line) = self.pool.rested() {
            match self.call(line, script, &outgoing, time_limit).await {
                Err(WireError::NeverSent(_)) => {}
                done => return done,
            }
        }
        let line = self.pool.fresh().await.map_err(WireError::NeverSent)?;
        self.call(line, script, &outgoing, time_limit).await
    }

    async fn call(
        &self,
        mut line: HttpConnection,
        script: &str,
        outgoing: &WireRequest<'_>,
        time_limit: Duration,
    ) -> Result<Reply, WireError> {
        let mut request = Request::post(self.base.path(script))
            .header(HOST, &self.base.authority)
            .header(USER_AGENT, AGENT)
            .header(ACCEPT, "*/*")
            .header(CONTENT_TYPE, outgoing.content_type);
        for (name, message) in outgoing.headers {
            request = request.header(*name, *message);
        }
        let request = request
            .body(Full::new(outgoing.body.clone()))
            .map_err(|_| WireError::NeverSent("provider.url makes no request that can be sent".to_owned()))?;
        let before = line.meter.read();
        let why = match timeout(time_limit, line.call(request, self.response_bytes_max)).await {
            Ok(Ok(reply)) => {
                self.pool.give_back(line).await;
                return Ok(reply);
            }
            Ok(Err(why)) => why.describe_error(),
            Err(_) => format!("no answer within {time_limit:?}"),
        };
        let meter = line.meter.clone();
        // First the connection, then the count: after this nothing can leave any more.
        drop(line);
        if meter.has_sent_since(&before) {
            Err(WireError::WhoKnows(why))
        } else {
            Err(WireError::NeverSent(format!("{why}, before anything was sent")))
        }
    }
}

#[cfg(test)]
mod tests;
