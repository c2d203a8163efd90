//! Tests of closing the server: no new connection, a response for each open one, and nothing left behind.

use crate::classic::fixture::{Connection, FORM, Fixture, KEY};
use std::time::Duration;
use tokio::net::TcpStream;

/// The longest time that a test may take.
const LONG: Duration = Duration::from_secs(30);

async fn until_busy(fixture: &Fixture) {
    while fixture.gateway.counts().requests_open == 0 {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn open_connections_are_answered_and_no_other_gets_in() {
    let fixture = Fixture::open().await;
    let form = format!("key={KEY}&method=base64&body={}", "A".repeat(800));
    let mut idle = fixture.connect().await;
    assert_eq!(idle.ask("GET", "/healthz", &[], b"").await.status, 200);
    let mut silent = fixture.connect().await;
    let mut waiting = fixture.connect().await;
    let asking = tokio::spawn(async move {
        waiting.ask("POST", "/solve.php", &[("Content-Type", FORM)], form.as_bytes()).await
    });
    until_busy(&fixture).await;
    let gateway = fixture.gateway.clone();
    let drained = tokio::spawn(async move { gateway.drain(LONG).await });
    assert_eq!((idle.reply().await, silent.reply().await), (None, None), "who says nothing is let go");
    while TcpStream::connect(fixture.address).await.is_ok() {
        tokio::task::yield_now().await;
    }
    assert_eq!(asking.await.unwrap().body, "CAPCHA_NOT_READY", "a caller that waits gets it at once");
    assert!(drained.await.unwrap(), "all were answered");
    assert_eq!(fixture.gateway.counts().connections_open, 0);
}

#[tokio::test]
async fn a_connection_that_stays_beyond_the_timeout_is_cut_off() {
    let fixture = Fixture::open().await;
    let mut waiting = Connection::new(TcpStream::connect(fixture.address).await.unwrap());
    // The body that it announces does not come.
    waiting.send(b"POST /solve.php HTTP/1.1\r\nHost: localhost\r\nContent-Length: 800\r\n\r\n").await;
    while fixture.gateway.counts().requests == 0 {
        tokio::task::yield_now().await;
    }
    assert!(!fixture.gateway.drain(Duration::from_millis(20)).await);
    assert_eq!(waiting.reply().await, None);
    assert_eq!(fixture.gateway.counts().connections_open, 0);
    assert!(fixture.gateway.drain(Duration::ZERO).await, "and now no request is left");
}

#[tokio::test]
async fn a_live_stream_does_not_keep_the_server_from_closing() {
    let fixture = Fixture::open().await;
    let mut watcher = fixture.connect().await;
    watcher.send(b"GET /v1/events HTTP/1.1\r\nHost: localhost\r\n\r\n").await;
    assert_eq!(watcher.status().await, 200);
    assert!(fixture.gateway.drain(LONG).await);
    assert_eq!(fixture.gateway.counts().connections_open, 0);
}

/// The connection was accepted a moment before. Closing it would look like a crash.
#[tokio::test]
async fn a_connection_that_has_just_come_is_answered_although_the_server_closes() {
    let fixture = Fixture::open().await;
    let mut newcomer = fixture.connect().await;
    while fixture.gateway.counts().connections_open == 0 {
        tokio::task::yield_now().await;
    }
    let gateway = fixture.gateway.clone();
    let drained = tokio::spawn(async move { gateway.drain(LONG).await });
    while TcpStream::connect(fixture.address).await.is_ok() {
        tokio::task::yield_now().await;
    }
    assert_eq!(newcomer.ask("GET", "/healthz", &[], b"").await.status, 200);
    assert!(drained.await.unwrap());
}
