//! Connections, and those that are idle between two requests. An idle connection is checked in the kernel before it
//! is used again: a request on a connection that the server has already closed would be in doubt without need.
//!
//! One case remains: a server that closes at the moment at which the request is sent. A short idle time (`idle_max`,
//! less than the five seconds that the strictest servers allow) makes that rare. Nothing can exclude it.

use crate::connect::{ByteStream, Connector, OpenConnection};
use crate::meter::{Meter, Probe};
use bytes::{Bytes, BytesMut};
use http_body_util::{BodyExt, Full};
use hyper::client::conn::http1;
use hyper::{Request, StatusCode};
use hyper_util::rt::TokioIo;
use std::fmt;
use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::Poll;
use std::time::Duration;
use tokio::time::Instant;

/// The most bytes of the head of a reply. No provider sends as many.
const HEAD_BYTES_MAX: usize = 64 * 1024;

type Driver = Pin<Box<http1::Connection<TokioIo<Box<dyn ByteStream>>, Full<Bytes>>>>;

/// A complete reply, with any status.
#[derive(Clone)]
pub struct Reply {
    pub status: StatusCode,
    pub body: Bytes,
}

impl fmt::Debug for Reply {
    /// Hides the body, which can hold an answer that is worth money.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Reply({}, {} bytes)", self.status, self.body.len())
    }
}

/// Why a call has no reply.
pub(crate) enum Break {
    NotHttp,
    TooLong { bytes_max: usize },
    Ended(String),
}

impl Break {
    /// The reason why the connection broke, for people.
    pub(crate) fn describe_error(self) -> String {
        match self {
            Self::NotHttp => "the reply is not HTTP: check provider.url".to_owned(),
            Self::TooLong { bytes_max } => {
                format!("the reply has more than {bytes_max} bytes: check provider.url")
            }
            Self::Ended(why) => why,
        }
    }
}

/// One connection. No background task drives it: it moves only while a request waits for it. So when the request is
/// dropped, nothing more is sent, and the meter's count is final.
pub(crate) struct HttpConnection {
    sender: http1::SendRequest<Full<Bytes>>,
    driver: Option<Driver>,
    pub(crate) meter: Meter,
    probe: Probe,
    rests_since: Instant,
}

impl HttpConnection {
    pub(crate) async fn open(connection: OpenConnection) -> Result<Self, String> {
        let OpenConnection { stream, meter, probe } = connection;
        let handshake = http1::Builder::new().max_buf_size(HEAD_BYTES_MAX).handshake(TokioIo::new(stream));
        let (sender, driver) = handshake.await.map_err(|why| words(&why))?;
        Ok(Self { sender, driver: Some(Box::pin(driver)), meter, probe, rests_since: Instant::now() })
    }

    /// Sends one request and reads the whole reply, or returns why there is none.
    pub(crate) async fn call(
        &mut self,
        request: Request<Full<Bytes>>,
        bytes_max: usize,
    ) -> Result<Reply, Break> {
        let Self { sender, driver, .. } = self;
        let exchange = async {
            sender.ready().await.map_err(|why| describe(&why))?;
            let response = sender.send_request(request).await.map_err(|why| describe(&why))?;
            let (head, mut incoming) = response.into_parts();
            let mut body = BytesMut::new();
            while let Some(frame) = incoming.frame().await {
                let frame = frame.map_err(|why| describe(&why))?;
                body.extend_from_slice(frame.data_ref().unwrap_or(&Bytes::new()));
                if body.len() > bytes_max {
                    return Err(Break::TooLong { bytes_max });
                }
            }
            Ok(Reply { status: head.status, body: body.freeze() })
        };
        let mut exchange = pin!(exchange);
        poll_fn(|cx| {
            if let Poll::Ready(done) = exchange.as_mut().poll(cx) {
                return Poll::Ready(done);
            }
            let has_ended = driver.as_mut().is_some_and(|driver| driver.as_mut().poll(cx).is_ready());
            if !has_ended {
                return Poll::Pending;
            }
            // A request that still waits for it must learn that it is gone.
            *driver = None;
            exchange.as_mut().poll(cx)
        })
        .await
    }

    /// Lets the connection notice the end of the reply. Returns whether it can be used again.
    async fn settle(&mut self) -> bool {
        let Some(driver) = self.driver.as_mut() else { return false };
        let is_open = poll_fn(|cx| Poll::Ready(driver.as_mut().poll(cx).is_pending())).await;
        is_open && self.sender.is_ready()
    }
}

pub(crate) struct ConnectionPool {
    connector: Connector,
    resting: Mutex<Vec<HttpConnection>>,
    idle_max: Duration,
    idle_connections_max: usize,
}

impl ConnectionPool {
    pub(crate) fn new(connector: Connector, idle_max: Duration, idle_connections_max: usize) -> Self {
        Self { connector, resting: Mutex::new(Vec::new()), idle_max, idle_connections_max }
    }

    /// An idle connection that the kernel still reports as open and that is younger than `idle_max`.
    pub(crate) fn rested(&self) -> Option<HttpConnection> {
        let now = Instant::now();
        let mut resting = self.lock();
        resting.retain(|line| now.duration_since(line.rests_since) < self.idle_max);
        while let Some(line) = resting.pop() {
            if line.probe.is_quiet() {
                return Some(line);
            }
        }
        None
    }

    pub(crate) async fn fresh(&self) -> Result<HttpConnection, String> {
        HttpConnection::open(self.connector.connect().await?).await
    }

    pub(crate) async fn give_back(&self, mut line: HttpConnection) {
        if !line.settle().await {
            return;
        }
        line.rests_since = Instant::now();
        let mut resting = self.lock();
        if resting.len() < self.idle_connections_max {
            resting.push(line);
        }
    }

    /// Keeps a connection unchecked, for tests of connections that break unnoticed.
    #[cfg(test)]
    pub(crate) fn rest_as_it_is(&self, line: HttpConnection) {
        self.lock().push(line);
    }

    fn lock(&self) -> MutexGuard<'_, Vec<HttpConnection>> {
        self.resting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn describe(why: &hyper::Error) -> Break {
    if why.is_parse() || why.is_parse_status() { Break::NotHttp } else { Break::Ended(words(why)) }
}

/// A short reason for people. It never holds sent or received bytes.
fn words(why: &hyper::Error) -> String {
    if why.is_incomplete_message() {
        return "the connection closed before the answer was complete".to_owned();
    }
    if why.is_canceled() || why.is_closed() {
        return "the connection closed".to_owned();
    }
    match std::error::Error::source(why) {
        Some(source) => format!("the connection broke: {source}"),
        None => format!("the connection broke: {why}"),
    }
}
