//! The hostile tenant: webhooks that hang, requests that wait, streams that are not read, more orders than the
//! provider takes, and orders that it rejects with an unlisted code.

use super::node::{BenchNode, HOSTILE, ODD};
use crate::apis::{get, post};
use crate::client::ClientConnection;
use crate::scene::WORKS;
use crate::server::OwnThread;
use serde_json::Value;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::io::AsyncWriteExt;
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::time::{sleep, timeout};

/// How many orders have a webhook that hangs.
const HUNG: u64 = 600;
/// How many hosts these webhooks are on.
const HOSTS: u8 = 20;
/// For each this many of these orders, there is one that is rejected with an unlisted code.
const ODD_EVERY: u64 = 3;
/// Orders that only wait in the queue.
const CROWD: u64 = 2000;
const ORDERS: u64 = HUNG + HUNG / ODD_EVERY + CROWD;
const WAITS: u64 = 130;
const STREAMS: u64 = 1100;
/// How many connections place orders.
const PLACERS: u64 = 8;
/// How long a stream is held before another one is opened in its place.
const STREAM_SPAN: Duration = Duration::from_secs(20);
/// How long a request may take that should be answered at once.
const ASK_WAIT: Duration = Duration::from_secs(30);
/// The pause after a request that was refused.
const REFUSED_PAUSE: Duration = Duration::from_millis(500);

#[derive(Clone, Copy, Debug)]
pub(super) struct HostileCounts {
    pub(super) placed: u64,
    pub(super) hung: u64,
    pub(super) waiting: u64,
    pub(super) streams: u64,
}

#[derive(Default)]
struct HostileCounters {
    placed: AtomicU64,
    hung: AtomicU64,
    waiting: AtomicU64,
    streams: AtomicU64,
}

pub(super) struct Hostile {
    counters: Arc<HostileCounters>,
    _thread: OwnThread,
}

impl Hostile {
    pub(super) fn start(node: &BenchNode) -> Self {
        let (to, counters) = (node.address, Arc::<HostileCounters>::default());
        let shared = Arc::clone(&counters);
        let (thread, ()) = OwnThread::start("hostile", move || async move { begin(to, &shared).await });
        Self { counters, _thread: thread }
    }

    /// Waits until all orders are placed, requests wait, and the first webhooks hang.
    pub(super) fn wait_until_settled(&self) {
        let is_settled =
            |counts: HostileCounts| counts.placed >= ORDERS && counts.hung >= 32 && counts.waiting >= 32;
        while !is_settled(self.counts()) {
            std::thread::park_timeout(Duration::from_millis(100));
        }
    }

    pub(super) fn counts(&self) -> HostileCounts {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let HostileCounters { placed, hung, waiting, streams } = &*self.counters;
        HostileCounts {
            placed: read(placed),
            hung: read(hung),
            waiting: read(waiting),
            streams: read(streams),
        }
    }
}

async fn begin(to: SocketAddr, counters: &Arc<HostileCounters>) {
    let mut hosts = Vec::new();
    for host in 0..HOSTS {
        let listener = TcpListener::bind((Ipv4Addr::new(127, 0, 1, host + 1), 0)).await.expect(WORKS);
        hosts.push(listener.local_addr().expect(WORKS));
        tokio::spawn(hang(listener, Arc::clone(counters)));
    }
    let forms: Arc<Vec<String>> = Arc::new(forms(&hosts));
    for first in 0..PLACERS {
        tokio::spawn(place_all(to, Arc::clone(&forms), first, Arc::clone(counters)));
    }
    for n in 0..WAITS {
        tokio::spawn(wait(to, n, Arc::clone(counters)));
    }
    for n in 0..STREAMS {
        tokio::spawn(hold_streams(to, n, Arc::clone(counters)));
    }
}

/// Accepts connections, and never answers.
async fn hang(listener: TcpListener, counters: Arc<HostileCounters>) {
    while let Ok((stream, _)) = listener.accept().await {
        counters.hung.fetch_add(1, Ordering::Relaxed);
        tokio::spawn(async move {
            // Until the other side gives up.
            let mut read = [0; 1024];
            while matches!(read_some(&stream, &mut read).await, Ok(1..)) {}
        });
    }
}

async fn read_some(stream: &TcpStream, read: &mut [u8]) -> std::io::Result<usize> {
    loop {
        stream.readable().await?;
        match stream.try_read(read) {
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {}
            other => return other,
        }
    }
}

fn forms(hosts: &[SocketAddr]) -> Vec<String> {
    let form = |method: &str, parameter: &str, site: &str, more: &str| {
        format!(
            "key={HOSTILE}&method={method}&{parameter}={site}&pageurl=https%3A%2F%2Fcrowd.example.com%2F{more}"
        )
    };
    let mut forms = Vec::new();
    for (n, host) in (0..HUNG).zip(hosts.iter().cycle()) {
        let pingback = format!("&pingback=http%3A%2F%2F{}%3A{}%2F{n}", host.ip(), host.port());
        forms.push(form("turnstile", "sitekey", &format!("hung-{n}"), &pingback));
        if n % ODD_EVERY == 0 {
            let (method, parameter) =
                if n % 2 == 0 { ("turnstile", "sitekey") } else { ("userrecaptcha", "googlekey") };
            forms.push(form(method, parameter, &format!("{ODD}-{n}"), ""));
        }
    }
    forms.extend((0..CROWD).map(|n| form("turnstile", "sitekey", &format!("crowd-{n}"), "")));
    forms
}

async fn ask(to: SocketAddr, request: &[u8]) -> Option<String> {
    let asking = async {
        let mut line = ClientConnection::open(to).await;
        String::from_utf8_lossy(line.ask(request).await).into_owned()
    };
    timeout(ASK_WAIT, asking).await.ok()
}

async fn place_all(to: SocketAddr, forms: Arc<Vec<String>>, first: u64, counters: Arc<HostileCounters>) {
    let step = usize::try_from(PLACERS).expect("a small number");
    for form in forms.iter().skip(usize::try_from(first).expect("a small number")).step_by(step) {
        let request = post("/in.php", "Content-Type: application/x-www-form-urlencoded\r\n", form);
        while !ask(to, &request).await.is_some_and(|answer| answer.contains("OK|")) {
            sleep(REFUSED_PAUSE).await;
        }
        counters.placed.fetch_add(1, Ordering::Relaxed);
    }
}

/// Waits repeatedly for an order at the end of the queue.
async fn wait(to: SocketAddr, n: u64, counters: Arc<HostileCounters>) {
    while counters.placed.load(Ordering::Relaxed) < ORDERS {
        sleep(REFUSED_PAUSE).await;
    }
    let head = format!(
        "Authorization: Bearer {HOSTILE}\r\nContent-Type: application/json\r\nIdempotency-Key: wait-{n}\r\nPrefer: wait=300\r\n"
    );
    let order = format!(
        r#"{{"kind":"turnstile","params":{{"sitekey":"wait-{n}","pageurl":"https://crowd.example.com/"}}}}"#
    );
    let mut request = post("/v1/orders", &head, &order);
    loop {
        let waiting = async {
            let mut line = ClientConnection::open(to).await;
            line.send(&request).await;
            counters.waiting.fetch_add(1, Ordering::Relaxed);
            String::from_utf8_lossy(line.receive().await).into_owned()
        };
        let answer = waiting.await;
        counters.waiting.fetch_sub(1, Ordering::Relaxed);
        let body = answer.split_once("\r\n\r\n").map_or("", |(_, body)| body);
        let reply: Value = serde_json::from_str(body).unwrap_or_default();
        if let Some(id) = reply["id"].as_str() {
            request = get(&format!("/v1/orders/{id}"), &head);
        }
        sleep(REFUSED_PAUSE).await;
    }
}

/// Opens a live stream with a small buffer and reads nothing. After a while, opens another one.
async fn hold_streams(to: SocketAddr, n: u64, counters: Arc<HostileCounters>) {
    let request = get("/v1/events", &format!("Authorization: Bearer {HOSTILE}\r\n"));
    sleep(
        STREAM_SPAN * u32::try_from(n).expect("a small number")
            / u32::try_from(STREAMS).expect("a small number"),
    )
    .await;
    loop {
        let socket = TcpSocket::new_v4().expect(WORKS);
        _ = socket.set_recv_buffer_size(4096);
        if let Ok(mut stream) = socket.connect(to).await
            && stream.write_all(&request).await.is_ok()
        {
            counters.streams.fetch_add(1, Ordering::Relaxed);
            sleep(STREAM_SPAN).await;
            counters.streams.fetch_sub(1, Ordering::Relaxed);
        } else {
            sleep(REFUSED_PAUSE).await;
        }
    }
}
