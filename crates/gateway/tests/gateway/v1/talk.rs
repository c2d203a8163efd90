//! HTTP by hand: sends a request, parses its response, and reads a live stream event by event.

use serde_json::Value;
use std::net::SocketAddr;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;

#[derive(Clone, Debug)]
pub(crate) struct Answered {
    pub(crate) status: u16,
    head: String,
    pub(crate) text: String,
}

impl Answered {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.head.lines().find_map(|line| {
            let (found, value) = line.split_once(':')?;
            found.eq_ignore_ascii_case(name).then_some(value.trim())
        })
    }

    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or_else(|why| panic!("{why}: {self:?}"))
    }

    /// The order in the response, which must have this HTTP status.
    #[track_caller]
    pub(crate) fn order(&self, status: u16) -> Value {
        assert_eq!(self.status, status, "{self:?}");
        assert_eq!(self.header("content-type"), Some("application/json"), "{self:?}");
        assert_eq!(self.header("cache-control"), Some("no-store"), "an answer is in no cache");
        self.json()
    }

    /// Checks that the response is a complete problem with this status and code.
    #[track_caller]
    pub(crate) fn must_be(&self, status: u16, code: &str) -> Value {
        assert_eq!((self.status, self.json()["code"].as_str()), (status, Some(code)), "{self:?}");
        assert_eq!(self.header("content-type"), Some("application/problem+json"));
        let problem = self.json();
        assert_eq!(problem["type"], format!("/v1/errors/{code}"));
        assert_eq!(problem["status"], status);
        for part in ["title", "detail", "hint"] {
            assert!(problem[part].as_str().is_some_and(|text| text.len() > 5), "{part}: {problem}");
        }
        problem
    }
}

/// A request to send.
#[derive(Clone, Debug)]
pub(crate) struct Ask {
    method: &'static str,
    path: String,
    headers: Vec<(String, String)>,
    body: Option<String>,
}

impl Ask {
    pub(crate) fn new(method: &'static str, path: impl Into<String>) -> Self {
        Self { method, path: path.into(), headers: Vec::new(), body: None }
    }

    pub(crate) fn get(path: impl Into<String>) -> Self {
        Self::new("GET", path)
    }

    pub(crate) fn post(path: impl Into<String>, body: &Value) -> Self {
        Self::new("POST", path).header("Content-Type", "application/json").body(&body.to_string())
    }

    pub(crate) fn put(path: impl Into<String>, body: &Value) -> Self {
        Self::new("PUT", path).header("Content-Type", "application/json").body(&body.to_string())
    }

    pub(crate) fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.into(), value.into()));
        self
    }

    pub(crate) fn key(self, key: &str) -> Self {
        self.header("Authorization", &format!("Bearer {key}"))
    }

    pub(crate) fn body(mut self, body: &str) -> Self {
        self.body = Some(body.into());
        self
    }

    fn text(&self, version: &str) -> String {
        let Self { method, path, headers, body } = self;
        let mut text = format!("{method} {path} HTTP/{version}\r\nHost: localhost\r\nConnection: close\r\n");
        for (name, value) in headers {
            text += &format!("{name}: {value}\r\n");
        }
        if let Some(body) = body {
            text += &format!("Content-Length: {}\r\n", body.len());
        }
        text + "\r\n" + body.as_deref().unwrap_or_default()
    }

    pub(crate) async fn send(&self, to: SocketAddr) -> TcpStream {
        let mut stream = TcpStream::connect(to).await.unwrap();
        stream.write_all(self.text("1.1").as_bytes()).await.unwrap();
        stream
    }

    pub(crate) async fn of(&self, to: SocketAddr) -> Answered {
        read_callback(self.send(to).await).await
    }

    /// Sends the request as HTTP/1.0. Such a response has no chunks, so a stream can be read directly.
    pub(crate) async fn to_its_end(&self, to: SocketAddr) -> Answered {
        let mut stream = TcpStream::connect(to).await.unwrap();
        stream.write_all(self.text("1.0").as_bytes()).await.unwrap();
        read_callback(stream).await
    }

    /// Opens a live stream as HTTP/1.0. Such a response has no chunks, so its lines can be read directly.
    pub(crate) async fn live(&self, to: SocketAddr) -> Live {
        let mut stream = TcpStream::connect(to).await.unwrap();
        stream.write_all(self.text("1.0").as_bytes()).await.unwrap();
        let mut lines = BufReader::new(stream).lines();
        let status = lines.next_line().await.unwrap().unwrap();
        assert!(status.contains(" 200 "), "{status}");
        let mut is_stream = false;
        while let Some(line) = lines.next_line().await.unwrap().filter(|line| !line.is_empty()) {
            is_stream |= line.eq_ignore_ascii_case("content-type: text/event-stream");
        }
        assert!(is_stream);
        Live { lines }
    }
}

pub(crate) async fn read_callback(mut stream: TcpStream) -> Answered {
    let mut bytes = Vec::new();
    stream.read_to_end(&mut bytes).await.unwrap();
    let text = String::from_utf8(bytes).unwrap();
    let (head, body) = text.split_once("\r\n\r\n").unwrap_or_else(|| panic!("no answer: {text}"));
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    Answered { status, head: head.to_owned(), text: body.to_owned() }
}

pub(crate) struct Live {
    lines: tokio::io::Lines<BufReader<TcpStream>>,
}

impl Live {
    /// The next event and its data, or `None` at the end of the stream.
    pub(crate) async fn next(&mut self) -> Option<(String, Value)> {
        let mut name = String::new();
        while let Some(line) = self.lines.next_line().await.unwrap() {
            if let Some(found) = line.strip_prefix("event: ") {
                name = found.to_owned();
            }
            if let Some(data) = line.strip_prefix("data: ") {
                return Some((name, serde_json::from_str(data).unwrap()));
            }
        }
        None
    }

    /// The first line of the stream.
    pub(crate) async fn greeting(&mut self) -> String {
        self.lines.next_line().await.unwrap().unwrap()
    }
}
