//! The two servers that are compared: a whole gateway, and hyper alone with a prepared response. Each has a thread of
//! its own, so that its cost can be separated from the client's.

use crate::scene::WORKS;
use crate::stopwatch::WorkThread;
use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::header::{HeaderName, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use quittance::SystemClock;
use quittance_admin::{Admin, AdminSettings};
use quittance_engine::Engine;
use quittance_gateway::{
    CommitFeed, Gateway, GatewaySettings, KeyDigest, OrderService, TenantSettings, Tenants, WebhookSettings,
    Webhooks, webhook_text,
};
use quittance_ports::Clock;
use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::mpsc;
use std::thread::JoinHandle;
use tokio::net::TcpListener;
use tokio::sync::oneshot;

/// The key of the only tenant.
pub(crate) const KEY: &str = "0123456789abcdef0123456789abcdef";
/// The name of the only tenant.
pub(crate) const TENANT: &str = "team-a";
/// The operator's key.
pub(crate) const ADMIN: &str = "fedcba9876543210fedcba9876543210";

/// A gateway for an engine, with one tenant.
pub(crate) fn gateway(engine: Arc<Engine>, commit_feed: CommitFeed) -> Gateway {
    Gateway::new(orders(engine, commit_feed), GatewaySettings::default())
}

/// A gateway with one tenant and the operator's API.
pub(crate) fn gateway_with_admin(engine: Arc<Engine>, commit_feed: CommitFeed) -> (Gateway, Admin) {
    let orders = orders(engine, commit_feed);
    let admin = Admin::new(orders.clone(), AdminSettings::default());
    (Gateway::mounted(orders, GatewaySettings::default(), admin.mount()), admin)
}

fn orders(engine: Arc<Engine>, commit_feed: CommitFeed) -> OrderService {
    let clock: Arc<dyn Clock> = Arc::new(SystemClock);
    let tenants =
        Tenants::new(vec![TenantSettings::new(TENANT, KeyDigest::of(KEY))], Some(KeyDigest::of(ADMIN)));
    let webhooks = Webhooks::new(WebhookSettings::default(), clock, webhook_text);
    OrderService::new(engine, tenants, commit_feed, webhooks)
}

pub(crate) async fn listen() -> (TcpListener, SocketAddr) {
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.expect("a port on this machine");
    let address = listener.local_addr().expect("it was just bound");
    (listener, address)
}

/// A thread that serves until it is dropped.
pub(crate) struct OwnThread {
    pub(crate) hand: WorkThread,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl OwnThread {
    /// Starts the thread. `begin` starts the server, and returns what others need to know about it.
    pub(crate) fn start<T, F>(name: &str, begin: impl FnOnce() -> F + Send + 'static) -> (Self, T)
    where
        T: Send + 'static,
        F: Future<Output = T>,
    {
        let (reply, tell) = mpsc::channel();
        let (stop, stopped) = oneshot::channel();
        let serve = move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect(WORKS);
            runtime.block_on(async {
                reply.send((WorkThread::mine(), begin().await)).expect("the starter waits for it");
                _ = stopped.await;
            });
        };
        let thread = std::thread::Builder::new().name(name.to_owned()).spawn(serve).expect("a thread");
        let (hand, begun) = tell.recv().expect(WORKS);
        (Self { hand, stop: Some(stop), thread: Some(thread) }, begun)
    }
}

impl Drop for OwnThread {
    fn drop(&mut self) {
        _ = self.stop.take().map(|stop| stop.send(()));
        if let Some(thread) = self.thread.take() {
            drop(thread.join());
        }
    }
}

/// A response of the gateway, without the headers that hyper adds.
#[derive(Clone, Debug)]
pub(crate) struct Ready(Response<Full<Bytes>>);

impl Ready {
    /// Makes a response from its bytes.
    pub(crate) fn like(answer: &[u8]) -> Self {
        let head = answer.windows(4).position(|four| four == b"\r\n\r\n").expect("a head");
        let body = Bytes::copy_from_slice(&answer[head + 4..]);
        let mut lines = std::str::from_utf8(&answer[..head]).expect("a head is text").split("\r\n");
        let status = lines.next().and_then(|line| line.split(' ').nth(1)).expect("a status");
        let mut ready = Response::new(Full::new(body));
        *ready.status_mut() = status.parse().expect("a status");
        for (name, value) in lines.filter_map(|line| line.split_once(": ")) {
            if !["date", "content-length"].contains(&name.to_ascii_lowercase().as_str()) {
                let name = HeaderName::from_bytes(name.as_bytes()).expect("hyper wrote it");
                ready.headers_mut().append(name, HeaderValue::from_str(value).expect("hyper wrote it"));
            }
        }
        Self(ready)
    }
}

/// Reads each request completely, as every server must, and parses nothing.
pub(crate) async fn bare(listener: TcpListener, ready: Ready) {
    while let Ok((stream, _)) = listener.accept().await {
        _ = stream.set_nodelay(true);
        let ready = ready.clone();
        let service = service_fn(move |request: Request<Incoming>| {
            let ready = ready.clone();
            async move {
                _ = request.into_body().collect().await;
                Ok::<_, Infallible>(ready.0)
            }
        });
        // A client that hangs up is done.
        tokio::spawn(
            async move { http1::Builder::new().serve_connection(TokioIo::new(stream), service).await },
        );
    }
}
