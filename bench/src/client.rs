//! The client: many open connections, with requests prepared as bytes, one at a time on each. It parses a response
//! only far enough to find its end. It must cost less than the server, or it would measure itself.

use crate::scene::WORKS;
use crate::stopwatch::now;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

const LENGTH: &[u8] = b"\r\ncontent-length: ";

/// One connection.
pub(crate) struct ClientConnection {
    stream: TcpStream,
    read: Vec<u8>,
}

impl ClientConnection {
    pub(crate) async fn open(to: SocketAddr) -> Self {
        let stream = TcpStream::connect(to).await.expect("the server listens");
        stream.set_nodelay(true).expect(WORKS);
        Self { stream, read: Vec::with_capacity(4096) }
    }

    pub(crate) async fn send(&mut self, request: &[u8]) {
        self.stream.write_all(request).await.expect(WORKS);
    }

    /// Reads the whole next response.
    pub(crate) async fn receive(&mut self) -> &[u8] {
        self.read.clear();
        while !is_whole(&self.read) {
            let read = self.stream.read_buf(&mut self.read).await.expect(WORKS);
            assert!(read > 0, "it hung up after {:?}", String::from_utf8_lossy(&self.read));
        }
        &self.read
    }

    pub(crate) async fn ask(&mut self, request: &[u8]) -> &[u8] {
        self.send(request).await;
        self.receive().await
    }
}

fn position(text: &[u8], what: &[u8]) -> Option<usize> {
    text.windows(what.len()).position(|here| here == what)
}

fn is_whole(read: &[u8]) -> bool {
    let Some(head) = position(read, b"\r\n\r\n") else { return false };
    let Some(length) = position(&read[..head], LENGTH) else { return true };
    let digits = read[length + LENGTH.len()..].iter().take_while(|byte| byte.is_ascii_digit());
    let body = digits.fold(0, |sum, digit| sum * 10 + usize::from(digit - b'0'));
    read.len() >= head + 4 + body
}

/// Sends this many requests on this many connections. Returns how long that took. `starts` is the beginning of every
/// response.
pub(crate) async fn crowd(
    to: SocketAddr,
    connections: usize,
    requests: &Arc<Vec<Vec<u8>>>,
    each: usize,
    starts: &'static str,
) -> Duration {
    let mut lines = Vec::new();
    for _ in 0..connections {
        lines.push(ClientConnection::open(to).await);
    }
    // Each connection is known and warm before the watch starts.
    for line in &mut lines {
        line.ask(&requests[0]).await;
    }
    let start = now();
    let tasks: Vec<_> = lines
        .into_iter()
        .enumerate()
        .map(|(first, mut line)| {
            let requests = Arc::clone(requests);
            tokio::spawn(async move {
                for n in (first * each..).take(each) {
                    let answer = line.ask(&requests[n % requests.len()]).await;
                    assert!(
                        answer.starts_with(starts.as_bytes()),
                        "not expected: {}",
                        String::from_utf8_lossy(answer)
                    );
                }
            })
        })
        .collect();
    for task in tasks {
        task.await.expect(WORKS);
    }
    start.elapsed()
}
