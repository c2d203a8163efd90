//! A client that sees every byte, and a listener for pingbacks.

use quittance_mock_provider::{DEMO_KEY, LedgerTask, MockClassicDialect, MockProvider, Settings};
use std::io;
use std::net::SocketAddr;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;

pub(crate) const LIMIT: Duration = Duration::from_secs(10);

#[derive(Debug)]
pub(crate) struct HttpReply {
    pub status: u16,
    pub head: String,
    pub body: Vec<u8>,
}

impl HttpReply {
    pub(crate) fn text(&self) -> &str {
        std::str::from_utf8(&self.body).expect("text")
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.head.lines().find_map(|line| {
            let (found, value) = line.split_once(':')?;
            found.eq_ignore_ascii_case(name).then_some(value.trim())
        })
    }
}

/// Sends raw bytes and reads to the end. An incomplete reply is an error.
pub(crate) async fn talk(address: SocketAddr, raw: &[u8]) -> io::Result<HttpReply> {
    let mut stream = TcpStream::connect(address).await?;
    stream.write_all(raw).await?;
    let mut bytes = Vec::new();
    stream.read_to_end(&mut bytes).await?;
    let broken = |what: &'static str| io::Error::new(io::ErrorKind::UnexpectedEof, what);
    let end = bytes.windows(4).position(|four| four == b"\r\n\r\n").ok_or(broken("no head"))?;
    let head = String::from_utf8_lossy(&bytes[..end]).into_owned();
    let status = head.get(9..12).and_then(|status| status.parse().ok()).ok_or(broken("no status"))?;
    let reply = HttpReply { status, head, body: bytes[end + 4..].to_vec() };
    match reply.header("content-length").and_then(|length| length.parse::<usize>().ok()) {
        Some(length) if length == reply.body.len() => Ok(reply),
        _ => Err(broken("half an answer")),
    }
}

pub(crate) fn request(verb: &str, target: &str, content_type: Option<&str>, body: &[u8]) -> Vec<u8> {
    let mut head = format!("{verb} {target} HTTP/1.1\r\nhost: sim.test\r\nconnection: close\r\n");
    if let Some(content_type) = content_type {
        head.push_str(&format!("content-type: {content_type}\r\n"));
    }
    if verb != "GET" {
        head.push_str(&format!("content-length: {}\r\n", body.len()));
    }
    head.push_str("\r\n");
    [head.as_bytes(), body].concat()
}

pub(crate) struct MockClient {
    pub mock: MockProvider,
}

pub(crate) async fn open(settings: Settings) -> MockClient {
    MockClient { mock: MockProvider::start(settings).await.expect("a free port") }
}

pub(crate) async fn quick(dialect: MockClassicDialect) -> MockClient {
    open(Settings::quick(dialect)).await
}

impl MockClient {
    pub(crate) async fn raw(&self, raw: &[u8]) -> io::Result<HttpReply> {
        tokio::time::timeout(LIMIT, talk(self.mock.address(), raw)).await.expect("an answer in time")
    }

    pub(crate) async fn get(&self, target: &str) -> io::Result<HttpReply> {
        self.raw(&request("GET", target, None, b"")).await
    }

    pub(crate) async fn post(&self, target: &str, body: &str) -> io::Result<HttpReply> {
        self.raw(&request("POST", target, Some("application/x-www-form-urlencoded"), body.as_bytes())).await
    }

    /// Posts to in.php with the demo key.
    pub(crate) async fn submit(&self, params: &str) -> io::Result<HttpReply> {
        self.post("/in.php", &format!("key={DEMO_KEY}&{params}")).await
    }

    /// Sends a GET to res.php with the demo key.
    pub(crate) async fn poll(&self, params: &str) -> io::Result<HttpReply> {
        self.get(&format!("/res.php?key={DEMO_KEY}&{params}")).await
    }

    pub(crate) async fn says(&self, params: &str) -> String {
        self.submit(params).await.expect("an answer").text().to_owned()
    }

    pub(crate) async fn tells(&self, params: &str) -> String {
        self.poll(params).await.expect("an answer").text().to_owned()
    }

    /// Places a task and returns its id.
    pub(crate) async fn task(&self, params: &str) -> String {
        let json_reply = self.says(params).await;
        json_reply.strip_prefix("OK|").unwrap_or_else(|| panic!("not taken: {json_reply}")).to_owned()
    }

    /// Places a task and waits until it is over.
    pub(crate) async fn finished(&self, params: &str) -> String {
        let id = self.task(params).await;
        self.until(|task| task.id == id && (task.answer.is_some() || task.code.is_some())).await;
        id
    }

    pub(crate) fn entry(&self, id: &str) -> LedgerTask {
        self.mock.ledger().task(id).cloned().unwrap_or_else(|| panic!("no task {id}"))
    }

    /// Waits until `is` accepts a task.
    #[track_caller]
    pub(crate) fn until(&self, mut is: impl FnMut(&LedgerTask) -> bool) -> impl Future<Output = ()> {
        let place = std::panic::Location::caller();
        async move {
            let history = self.mock.until(LIMIT, |ledger| ledger.tasks.iter().any(&mut is)).await;
            assert!(history, "{place}: not in time: {:#?}", self.mock.ledger());
        }
    }

    pub(crate) fn fault(&self, name: &str) -> u64 {
        self.mock.totals().faults.get(name).copied().unwrap_or(0)
    }
}

pub(crate) const TURNSTILE: &str = "method=turnstile&sitekey=0x4AAA&pageurl=https://shop.example.com/";

pub(crate) fn v2(page: &str) -> String {
    format!(
        "method=userrecaptcha&googlekey=6LeIxAcTAAAAAJcZVRqyHh71UMIEGNQ_MXjiZKhI&pageurl=https://{page}.example.com/"
    )
}

/// A picture that the provider takes. Each number gives another picture.
pub(crate) fn png(number: u8) -> Vec<u8> {
    let mut bytes = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x64\0\0\0\x28".to_vec();
    bytes.resize(200, number);
    bytes
}

/// A pingback that the listener received.
#[derive(Debug)]
pub(crate) struct ReceivedPingback {
    pub verb: String,
    pub target: String,
    pub body: String,
}

/// Listens for pingbacks, and answers each with the given status.
pub(crate) struct PingbackListener {
    pub url: String,
    received: mpsc::UnboundedReceiver<ReceivedPingback>,
    job: tokio::task::JoinHandle<()>,
}

impl Drop for PingbackListener {
    fn drop(&mut self) {
        self.job.abort();
    }
}

impl PingbackListener {
    pub(crate) async fn open(status: u16) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let url = format!("http://{}", listener.local_addr().expect("an address"));
        let (sender, received) = mpsc::unbounded_channel();
        let job = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                if let Some(received) = take(stream, status).await {
                    _ = sender.send(received);
                }
            }
        });
        Self { url, received, job }
    }

    pub(crate) async fn next(&mut self) -> ReceivedPingback {
        let next = tokio::time::timeout(LIMIT, self.received.recv()).await;
        next.expect("a pingback in time").expect("the listener lives")
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.received.is_empty()
    }
}

async fn take(mut stream: TcpStream, status: u16) -> Option<ReceivedPingback> {
    let mut bytes = Vec::new();
    let (end, length) = loop {
        if stream.read_buf(&mut bytes).await.ok()? == 0 {
            return None;
        }
        let Some(end) = bytes.windows(4).position(|four| four == b"\r\n\r\n") else { continue };
        let head = String::from_utf8_lossy(&bytes[..end]).to_lowercase();
        let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")?.parse().ok());
        let length: usize = length.unwrap_or(0);
        if bytes.len() >= end + 4 + length {
            break (end, length);
        }
    };
    let head = String::from_utf8_lossy(&bytes[..end]).into_owned();
    let mut words = head.split(' ');
    let received = ReceivedPingback {
        verb: words.next()?.to_owned(),
        target: words.next()?.to_owned(),
        body: String::from_utf8_lossy(&bytes[end + 4..end + 4 + length]).into_owned(),
    };
    let answer = format!("HTTP/1.1 {status} Status\r\ncontent-length: 0\r\nconnection: close\r\n\r\n");
    stream.write_all(answer.as_bytes()).await.ok()?;
    Some(received)
}
