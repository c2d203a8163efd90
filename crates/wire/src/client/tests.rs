//! Tests of what the meter decides, on fake connections that take some bytes and then fail.

use super::{Client, Settings, WireError, WireRequest};
use crate::Base;
use crate::connect::{ByteStream, OpenConnection};
use crate::meter::{Meter, MeteredLayer, MeteredSocket, Probe};
use crate::pool::HttpConnection;
use bytes::Bytes;
use std::future::Future;
use std::io::{self, ErrorKind};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};

/// A connection that takes `takes` bytes and then fails.
struct Fake {
    takes: usize,
    then: Option<ErrorKind>,
    is_at_end: bool,
}

impl AsyncRead for Fake {
    fn poll_read(self: Pin<&mut Self>, _: &mut Context<'_>, _: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        if self.is_at_end { Poll::Ready(Ok(())) } else { Poll::Pending }
    }
}

impl AsyncWrite for Fake {
    fn poll_write(mut self: Pin<&mut Self>, _: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        match (self.takes, self.then) {
            (0, Some(kind)) => Poll::Ready(Err(kind.into())),
            (0, None) => Poll::Pending,
            (takes, _) => {
                let taken = takes.min(bytes.len());
                self.takes -= taken;
                Poll::Ready(Ok(taken))
            }
        }
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

fn client(port: u16) -> Client {
    let base = Base::read(&format!("http://127.0.0.1:{port}")).unwrap();
    let settings = Settings {
        connect_timeout: Duration::from_secs(5),
        response_bytes_max: 1000,
        extra_ca: Vec::new(),
        idle_max: Duration::from_secs(60),
        idle_connections_max: 8,
    };
    Client::new(base, &settings).unwrap()
}

/// A probe of a quiet connection, and the other end, which keeps it open.
async fn quiet() -> (Probe, TcpStream) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let ours = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
    let theirs = listener.accept().await.unwrap().0;
    (MeteredSocket::new(ours).1, theirs)
}

async fn line(fake: Fake, probe: Probe) -> HttpConnection {
    let (stream, written) = MeteredLayer::new(fake);
    let stream: Box<dyn ByteStream> = Box::new(stream);
    HttpConnection::open(OpenConnection { stream, meter: Meter::new(written), probe }).await.unwrap()
}

async fn call(takes: usize, then: Option<ErrorKind>, is_at_end: bool) -> WireError {
    let (probe, _theirs) = quiet().await;
    let line = line(Fake { takes, then, is_at_end }, probe).await;
    let time_limit = Duration::from_millis(100);
    let outgoing =
        WireRequest { headers: &[], content_type: "text/plain", body: Bytes::from_static(b"key=1") };
    client(1).call(line, "in.php", &outgoing, time_limit).await.unwrap_err()
}

#[tokio::test]
async fn a_connection_that_took_no_byte_has_sent_nothing() {
    for (then, is_at_end) in
        [(Some(ErrorKind::BrokenPipe), false), (None, false), (Some(ErrorKind::BrokenPipe), true)]
    {
        let failure = call(0, then, is_at_end).await;
        assert!(matches!(failure, WireError::NeverSent(_)), "{failure:?}");
    }
}

#[tokio::test]
async fn one_byte_is_enough_for_a_doubt() {
    for (takes, then) in [(1, Some(ErrorKind::ConnectionReset)), (1, None), (100_000, None)] {
        let failure = call(takes, then, false).await;
        assert!(matches!(failure, WireError::WhoKnows(_)), "{failure:?}");
    }
}

#[tokio::test]
async fn a_used_connection_that_took_no_byte_is_replaced_and_one_that_took_any_is_not() {
    for (takes, answers) in [(0, true), (1, false)] {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let client = client(listener.local_addr().unwrap().port());
        let (probe, _theirs) = quiet().await;
        let used = line(Fake { takes, then: Some(ErrorKind::BrokenPipe), is_at_end: false }, probe).await;
        client.pool.rest_as_it_is(used);
        let serve = async {
            let (mut stream, _) = listener.accept().await.unwrap();
            tokio::io::AsyncReadExt::read(&mut stream, &mut [0; 1000]).await.unwrap();
            let answer = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";
            tokio::io::AsyncWriteExt::write_all(&mut stream, answer).await.unwrap();
            std::future::pending::<()>().await;
        };
        let done = tokio::select! {
            done = client.post("in.php", &[], "text/plain", Bytes::new(), Duration::from_secs(5)) => done,
            () = serve => unreachable!(),
        };
        assert_eq!(done.is_ok(), answers, "{done:?}");
        assert!(answers || matches!(done, Err(WireError::WhoKnows(_))));
    }
}

#[tokio::test(start_paused = true)]
async fn a_node_that_was_frozen_while_it_connected_sends_nothing() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let client = client(listener.local_addr().unwrap().port());
    let mut post =
        std::pin::pin!(client.post("in.php", &[], "text/plain", Bytes::new(), Duration::from_secs(5)));
    // The call is not polled while the time goes on, as in a frozen process.
    let first = std::future::poll_fn(|context| Poll::Ready(post.as_mut().poll(context).is_pending())).await;
    assert!(first, "it is still connecting");
    let mut stream = listener.accept().await.unwrap().0;
    tokio::time::advance(Duration::from_secs(60)).await;
    let outcome = post.await;
    assert!(matches!(outcome, Err(WireError::NeverSent(_))), "{outcome:?}");
    let sent = tokio::io::AsyncReadExt::read(&mut stream, &mut [0; 1000]).await.unwrap();
    assert_eq!(sent, 0, "the connection is closed without a byte");
}

#[test]
fn under_tls_a_request_has_left_only_if_both_counts_moved() {
    let counts = [Arc::new(AtomicU64::new(500)), Arc::new(AtomicU64::new(0))];
    let meter = Meter::new(counts[0].clone()).and(counts[1].clone());
    let before = meter.read();
    assert!(!meter.has_sent_since(&before));
    counts[1].store(10, Ordering::Release);
    assert!(!meter.has_sent_since(&before), "it waits in a buffer");
    counts[0].store(501, Ordering::Release);
    assert!(meter.has_sent_since(&before));
    let before = meter.read();
    counts[0].store(540, Ordering::Release);
    assert!(!meter.has_sent_since(&before), "a farewell is no request");
}
