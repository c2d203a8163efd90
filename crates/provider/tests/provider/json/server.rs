//! A small server that runs a script for each request and keeps every request that it read in full.

use serde_json::Value;
use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Longer than any step here takes, so that a broken test fails and does not hang.
const TIMEOUT: Duration = Duration::from_secs(20);

#[derive(Clone)]
pub(crate) struct JsonRequest {
    /// The path of the request.
    pub(crate) path: String,
    pub(crate) head: String,
    pub(crate) body: Value,
}

/// What the server does after it has read a request in full.
pub(crate) enum ServerAction {
    /// Sends this reply on a connection that stays open.
    Answer(String),
    /// Sends these bytes and closes the connection.
    Break(String),
    /// Sends nothing until the other side closes.
    Silence,
}

pub(crate) struct JsonServer {
    port: u16,
    received: Arc<Mutex<Vec<JsonRequest>>>,
}

impl JsonServer {
    pub(crate) fn start(act: impl Fn(&JsonRequest) -> ServerAction + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let received = Arc::new(Mutex::new(Vec::new()));
        let (act, book) = (Arc::new(act), received.clone());
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (act, book) = (act.clone(), book.clone());
                std::thread::spawn(move || serve(stream, &*act, &book));
            }
        });
        Self { port, received }
    }

    pub(crate) fn answering(answer: impl Fn(&JsonRequest) -> String + Send + Sync + 'static) -> Self {
        Self::start(move |received| ServerAction::Answer(answer(received)))
    }

    pub(crate) fn replying(answer: String) -> Self {
        Self::answering(move |_| answer.clone())
    }

    pub(crate) fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    pub(crate) fn received(&self) -> Vec<JsonRequest> {
        self.received.lock().unwrap().clone()
    }
}

pub(crate) fn http(status: &str, body: &str) -> String {
    format!("HTTP/1.1 {status}\r\nContent-Length: {}\r\nContent-Type: text/html\r\n\r\n{body}", body.len())
}

pub(crate) fn ok(body: &str) -> String {
    http("200 OK", body)
}

fn serve(mut stream: TcpStream, act: &dyn Fn(&JsonRequest) -> ServerAction, book: &Mutex<Vec<JsonRequest>>) {
    stream.set_read_timeout(Some(TIMEOUT)).unwrap();
    let mut unread = Vec::new();
    while let Some(received) = read_request(&mut stream, &mut unread) {
        let action = act(&received);
        book.lock().unwrap().push(received);
        // The other side may be gone, and that is its right.
        match action {
            ServerAction::Answer(text) => _ = stream.write_all(text.as_bytes()),
            ServerAction::Break(text) => {
                _ = stream.write_all(text.as_bytes());
                _ = stream.shutdown(Shutdown::Both);
                return;
            }
            ServerAction::Silence => {
                while stream.read(&mut [0; 4096]).is_ok_and(|count| count > 0) {}
                return;
            }
        }
    }
}

fn read_request(stream: &mut TcpStream, unread: &mut Vec<u8>) -> Option<JsonRequest> {
    loop {
        if let Some(at) = unread.windows(4).position(|window| window == b"\r\n\r\n") {
            let head = String::from_utf8(unread[..at].to_vec()).unwrap();
            let length =
                head.lines().filter_map(|line| line.split_once(": ")).find_map(|(name, outcome_of)| {
                    name.eq_ignore_ascii_case("content-length").then(|| outcome_of.parse::<usize>().unwrap())
                });
            let (from, to) = (at + 4, at + 4 + length.unwrap());
            if unread.len() >= to {
                let body = serde_json::from_slice(&unread[from..to]).unwrap();
                let path = head.split(' ').nth(1).unwrap_or_default().to_owned();
                unread.drain(..to);
                return Some(JsonRequest { path, head, body });
            }
        }
        let mut chunk = [0; 8192];
        match stream.read(&mut chunk) {
            Ok(count) if count > 0 => unread.extend_from_slice(&chunk[..count]),
            _ => return None,
        }
    }
}
