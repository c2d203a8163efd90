//! The quiet tenant: an order now and then in each of the ways that callers have, one after the other, each with its
//! time measured.

use super::node::{BenchNode, QUIET};
use crate::apis::{get, post};
use crate::client::ClientConnection;
use crate::scene::WORKS;
use crate::server::listen;
use crate::stopwatch::now;
use serde_json::Value;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::{sleep, timeout};

/// The pause between two rounds, so that the tenant uses about a third of what the provider takes.
const PAUSE: Duration = Duration::from_millis(400);
/// How often a classic client polls for its answer.
const LOOK_SPAN: Duration = Duration::from_millis(25);
/// An answer that has not come after this counts as this long.
const WAIT_MAX: Duration = Duration::from_secs(60);

/// How long each round of one thing took.
pub(super) struct Waits {
    pub(super) what: &'static str,
    sorted: Vec<Duration>,
}

impl Waits {
    /// A percentile of the waits, in microseconds.
    pub(super) fn at(&self, percent: usize) -> f64 {
        let index = (self.sorted.len() * percent).div_ceil(100).saturating_sub(1);
        self.sorted[index].as_secs_f64() * 1e6
    }
}

pub(super) fn measure(node: &BenchNode, rounds: usize) -> Vec<Waits> {
    let to = node.address;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect(WORKS);
    runtime.block_on(async {
        let (hooks, hook_address) = Hooks::listen().await;
        let waits = tokio::join!(
            repeat("in.php to the answer from res.php", rounds, PAUSE, |n| classic(to, n)),
            repeat("POST /v1/orders with wait, to the answer", rounds, PAUSE, |n| native(to, n)),
            repeat("POST /v1/orders to its webhook", rounds, PAUSE, |n| hooked(to, n, &hooks, hook_address)),
            repeat("GET /v1/events, to the first event", rounds, PAUSE, |_| stream(to)),
            repeat("GET /healthz, connection included", rounds, PAUSE, |_| health(to)),
        );
        let (classic, native, hooked, stream, health) = waits;
        vec![classic, native, hooked, stream, health]
    })
}

async fn repeat<F: Future<Output = ()>>(
    what: &'static str,
    rounds: usize,
    pause: Duration,
    once: impl Fn(usize) -> F,
) -> Waits {
    let mut sorted = Vec::with_capacity(rounds);
    for n in 0..rounds {
        let begun = now();
        let took = match timeout(WAIT_MAX, once(n)).await {
            Ok(()) => begun.elapsed(),
            Err(_) => WAIT_MAX,
        };
        sorted.push(took);
        sleep(pause).await;
    }
    sorted.sort_unstable();
    Waits { what, sorted }
}

fn text(answer: &[u8]) -> String {
    String::from_utf8_lossy(answer).into_owned()
}

fn body(answer: &str) -> &str {
    answer.split_once("\r\n\r\n").map_or("", |(_, body)| body)
}

/// Never ends, because the response is not the expected one. The round then counts as the longest.
async fn never(what: &str, answer: &str) {
    crate::say(&format!("tenants: {what} was answered: {}", answer.replace("\r\n", " ")));
    std::future::pending::<()>().await;
}

async fn classic(to: SocketAddr, n: usize) {
    let mut line = ClientConnection::open(to).await;
    let form = format!(
        "key={QUIET}&method=turnstile&sitekey=quiet-{n}&pageurl=https%3A%2F%2Fshop.example.com%2Fclassic"
    );
    let place = post("/in.php", "Content-Type: application/x-www-form-urlencoded\r\n", &form);
    let answer = text(line.ask(&place).await);
    let Some(id) = body(&answer).strip_prefix("OK|") else { return never("in.php", &answer).await };
    let look = get(&format!("/res.php?key={QUIET}&action=get&id={id}"), "");
    loop {
        sleep(LOOK_SPAN).await;
        let answer = text(line.ask(&look).await);
        match body(&answer) {
            "CAPCHA_NOT_READY" => {}
            answered if answered.starts_with("OK|") => return,
            _ => return never("res.php", &answer).await,
        }
    }
}

fn order(n: usize, page: &str, more: &str) -> String {
    format!(
        r#"{{"kind":"turnstile","params":{{"sitekey":"quiet-{n}","pageurl":"https://shop.example.com/{page}"}}{more}}}"#
    )
}

fn place(body: &str, prefer: &str) -> Vec<u8> {
    let head = format!("Authorization: Bearer {QUIET}\r\nContent-Type: application/json\r\n{prefer}");
    post("/v1/orders", &head, body)
}

async fn native(to: SocketAddr, n: usize) {
    let mut line = ClientConnection::open(to).await;
    let answer = text(line.ask(&place(&order(n, "native", ""), "Prefer: wait=60\r\n")).await);
    let reply: Value = serde_json::from_str(body(&answer)).unwrap_or_default();
    if reply["status"] != "solved" {
        never("POST /v1/orders", &answer).await;
    }
}

async fn hooked(to: SocketAddr, n: usize, hooks: &Hooks, hook_address: SocketAddr) {
    let mut line = ClientConnection::open(to).await;
    let number = hooks.next();
    let hook = format!(r#","callback_url":"http://{hook_address}/{number}""#);
    let answer = text(line.ask(&place(&order(n, "hooked", &hook), "")).await);
    if !answer.starts_with("HTTP/1.1 202") {
        return never("POST /v1/orders", &answer).await;
    }
    while !hooks.came(number) {
        sleep(Duration::from_millis(2)).await;
    }
}

async fn stream(to: SocketAddr) {
    let mut stream = TcpStream::connect(to).await.expect("the server listens");
    let ask = get("/v1/events", &format!("Authorization: Bearer {QUIET}\r\n"));
    stream.write_all(&ask).await.expect(WORKS);
    let mut read = Vec::new();
    while !text(&read).contains("retry:") {
        if stream.read_buf(&mut read).await.unwrap_or_default() == 0 || text(&read).contains("\"status\":429")
        {
            return never("GET /v1/events", &text(&read)).await;
        }
    }
}

async fn health(to: SocketAddr) {
    let answer = text(ClientConnection::open(to).await.ask(&get("/healthz", "")).await);
    if !answer.starts_with("HTTP/1.1 200") {
        never("GET /healthz", &answer).await;
    }
}

/// Receives webhooks.
#[derive(Clone, Default)]
struct Hooks(Arc<Mutex<(u64, BTreeMap<u64, Instant>)>>);

impl Hooks {
    async fn listen() -> (Self, SocketAddr) {
        let (listener, address) = listen().await;
        let hooks = Self::default();
        tokio::spawn(hooks.clone().receive(listener));
        (hooks, address)
    }

    fn next(&self) -> u64 {
        let mut inner = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        inner.0 += 1;
        inner.0
    }

    fn came(&self, number: u64) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).1.contains_key(&number)
    }

    async fn receive(self, listener: TcpListener) {
        while let Ok((mut stream, _)) = listener.accept().await {
            let hooks = self.clone();
            tokio::spawn(async move {
                let mut read = Vec::new();
                while stream.read_buf(&mut read).await.is_ok_and(|count| count > 0) {
                    let head = text(&read);
                    let Some(path) = head.split(' ').nth(1).filter(|_| head.contains("\r\n\r\n")) else {
                        continue;
                    };
                    if let Ok(number) = path.trim_start_matches('/').parse() {
                        hooks.0.lock().unwrap_or_else(PoisonError::into_inner).1.insert(number, now());
                    }
                    _ = stream
                        .write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
                        .await;
                    return;
                }
            });
        }
    }
}
