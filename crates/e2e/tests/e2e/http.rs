//! A small HTTP client and server for tests: to read a ledger, to send callbacks as a stranger, and to be a server
//! that is no provider.

use crate::wait::until;
use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::process;
use std::sync::Arc;
use std::sync::atomic::{AtomicU16, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

const TIMEOUT: Duration = Duration::from_secs(10);
/// The first port. These ports are below the range of outgoing calls, so that no such call uses the port of a killed
/// engine before it returns.
const PORTS_FROM: u16 = 20_000;
const PORTS: u16 = 10_000;

/// A free port on loopback, given out once in this run.
pub(crate) fn free_port() -> u16 {
    static NEXT: AtomicU16 = AtomicU16::new(0);
    let begin = u16::try_from(process::id().wrapping_mul(131) % u32::from(PORTS)).expect("it is below PORTS");
    until("a free port", || {
        let port = PORTS_FROM + (begin + NEXT.fetch_add(1, Ordering::Relaxed) % PORTS) % PORTS;
        TcpListener::bind((Ipv4Addr::LOCALHOST, port)).ok().map(|_| port)
    })
}

/// Sends one request. Returns the status and the body; `None` if the connection ended without a response.
pub(crate) fn try_call(verb: &str, url: &str, content_type: &str, body: &str) -> Option<(u16, String)> {
    let (head, body) = exchange(verb, url, content_type, body)?;
    let status = head.split(' ').nth(1)?.parse().ok()?;
    Some((status, body))
}

/// Sends one JSON request with this key. A connection without a response is an error of the test.
pub(crate) fn call_as(key: &str, verb: &str, url: &str, body: &str) -> (u16, String) {
    let content_type = format!("application/json\r\nAuthorization: Bearer {key}");
    try_call(verb, url, &content_type, body).unwrap_or_else(|| panic!("{verb} {url}: no response"))
}

/// Sends one GET. Returns the headers, with their names in lower case, and the body.
pub(crate) fn read_with_headers(url: &str) -> (BTreeMap<String, String>, String) {
    let (head, body) = until(url, || exchange("GET", url, "text/plain", ""));
    let headers = head.lines().filter_map(|line| line.split_once(": "));
    (headers.map(|(name, value)| (name.to_ascii_lowercase(), value.to_owned())).collect(), body)
}

/// Sends one request. Returns the head and the body of the response.
fn exchange(verb: &str, url: &str, content_type: &str, body: &str) -> Option<(String, String)> {
    let rest = url.strip_prefix("http://").expect("all here is plain http");
    let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
    let mut stream = TcpStream::connect(authority).ok()?;
    stream.set_read_timeout(Some(TIMEOUT)).ok()?;
    let length = body.len();
    let request = format!(
        "{verb} /{path} HTTP/1.1\r\nHost: {authority}\r\nConnection: close\r\nContent-Type: {content_type}\r\n\
         Content-Length: {length}\r\n\r\n{body}"
    );
    stream.write_all(request.as_bytes()).ok()?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).ok()?;
    let (head, body) = answer.split_once("\r\n\r\n")?;
    Some((head.to_owned(), body.to_owned()))
}

/// Repeats a request until it is answered: a provider in a storm drops the test's requests as well.
pub(crate) fn call(verb: &str, url: &str, body: &str) -> (u16, String) {
    until(url, || try_call(verb, url, "application/json", body))
}

/// A web server that answers every request with an HTML page.
pub(crate) struct Website {
    pub(crate) url: String,
    calls: Arc<AtomicU64>,
}

impl Website {
    pub(crate) fn start() -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("loopback has free ports");
        let url = format!("http://{}", listener.local_addr().expect("it is bound"));
        let calls = Arc::new(AtomicU64::new(0));
        let counted = Arc::clone(&calls);
        // It ends with the test process.
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                counted.fetch_add(1, Ordering::Relaxed);
                thread::spawn(move || greet(stream));
            }
        });
        Self { url, calls }
    }

    pub(crate) fn calls(&self) -> u64 {
        self.calls.load(Ordering::Relaxed)
    }
}

fn greet(mut stream: TcpStream) {
    let page = "<!DOCTYPE html><html><head><title>Welcome</title></head><body>OK|not a task</body></html>";
    let mut head = [0; 8192];
    _ = stream.set_read_timeout(Some(TIMEOUT));
    _ = stream.read(&mut head);
    let length = page.len();
    let answer = format!(
        "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{page}"
    );
    _ = stream.write_all(answer.as_bytes());
}
