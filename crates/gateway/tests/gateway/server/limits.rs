//! Tests of the limits for callers: too large, too slow, too many.

use super::with;
use crate::classic::fixture::{FORM, Fixture, KEY};
use quittance_gateway::Limits;
use std::time::Duration;

const BLINK: Duration = Duration::from_millis(50);

#[tokio::test]
async fn a_body_that_is_announced_too_large_is_answered_before_it_is_sent() {
    let fixture = Fixture::with(Vec::new(), with(Limits { body_bytes_max: 1000, ..Limits::default() })).await;
    for (path, expected) in [
        ("/in.php", "ERROR_TOO_BIG_CAPTCHA_FILESIZE"),
        ("/in.php?json=1", r#"{"status":0,"request":"ERROR_TOO_BIG_CAPTCHA_FILESIZE"}"#),
        ("/res.php", "ERROR_BAD_PARAMETERS"),
    ] {
        let mut connection = fixture.connect().await;
        let head = format!("POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5000\r\n\r\n");
        connection.send(head.as_bytes()).await;
        let reply = connection.reply().await.unwrap();
        assert_eq!((reply.status, reply.body.as_str()), (200, expected), "{path}");
        assert_eq!(reply.headers["connection"], "close");
    }
    let mut connection = fixture.connect().await;
    connection.send(b"POST /createTask HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5000\r\n\r\n").await;
    let reply = connection.reply().await.unwrap();
    assert_eq!(reply.status, 200);
    assert!(reply.body.contains("ERROR_TOO_BIG_CAPTCHA_FILESIZE"), "{}", reply.body);
    let mut connection = fixture.connect().await;
    connection.send(b"POST /v1/orders HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5000\r\n\r\n").await;
    assert_eq!(connection.reply().await.unwrap().status, 413);
}

#[tokio::test]
async fn a_body_that_turns_out_too_large_is_answered_and_its_sender_hears_it() {
    let fixture = Fixture::with(Vec::new(), with(Limits { body_bytes_max: 1000, ..Limits::default() })).await;
    // The client sends until it is done, as most clients do, and reads only then.
    let mut connection = fixture.connect().await;
    connection.send(b"POST /in.php HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n").await;
    let chunk = format!("10000\r\n{}\r\n", "x".repeat(0x10000));
    for _ in 0..64 {
        connection.send(chunk.as_bytes()).await;
    }
    connection.send(b"0\r\n\r\n").await;
    assert_eq!(connection.reply().await.unwrap().body, "ERROR_TOO_BIG_CAPTCHA_FILESIZE");
}

#[tokio::test]
async fn a_head_that_is_too_large_is_refused_and_a_large_one_is_not() {
    let fixture = Fixture::open().await;
    let long = "t".repeat(60_000);
    assert_eq!(fixture.get(&format!("/in.php?key={long}")).await.body, "ERROR_WRONG_USER_KEY");
    let mut connection = fixture.connect().await;
    connection.send(format!("GET /in.php?key={} HTTP/1.1\r\n\r\n", "t".repeat(300_000)).as_bytes()).await;
    assert!(matches!(connection.status().await, 0 | 400..500));
}

#[tokio::test]
async fn a_connection_that_takes_too_long_over_its_head_is_closed() {
    let limits = Limits { connections_max: 1, read_wait: BLINK, ..Limits::default() };
    let fixture = Fixture::with(Vec::new(), with(limits)).await;
    for begun in ["", "GET /in", "GET /in.php HTTP/1.1\r\nHost: localhost\r\nA: "] {
        let mut slow = fixture.connect().await;
        slow.send(begun.as_bytes()).await;
        assert_eq!(slow.reply().await, None, "{begun}");
    }
    let mut loris = fixture.connect().await;
    loris.send(b"GET /in.php HTTP/1.1\r\n").await;
    let talking = async {
        for _ in 0..1000 {
            loris.send(b"A: a\r\n").await;
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    // There is one seat only: the next connection gets it while the first one still talks.
    tokio::select! {
        () = talking => panic!("it was read"),
        reply = fixture.get("/healthz") => assert_eq!(reply.status, 200),
    }
}

#[tokio::test]
async fn a_body_that_takes_too_long_is_refused_in_the_protocol() {
    let fixture = Fixture::with(Vec::new(), with(Limits { read_wait: BLINK, ..Limits::default() })).await;
    for (path, status, body) in
        [("/in.php", 200, "ERROR_UPLOAD"), ("/res.php", 200, "CAPCHA_NOT_READY"), ("/callback/x", 408, "")]
    {
        let mut slow = fixture.connect().await;
        let head = format!("POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\nhalf");
        slow.send(head.as_bytes()).await;
        let reply = slow.reply().await.unwrap();
        assert_eq!((reply.status, reply.body.as_str()), (status, body), "{path}");
    }
}

#[tokio::test]
async fn a_connection_is_kept_between_requests_for_longer_than_a_head_may_take_and_not_for_ever() {
    let limits = Limits { read_wait: BLINK * 5, idle_wait: BLINK * 40, ..Limits::default() };
    let fixture = Fixture::with(Vec::new(), with(limits)).await;
    let mut connection = fixture.connect().await;
    for _ in 0..3 {
        assert_eq!(connection.ask("GET", "/healthz", &[], b"").await.status, 200);
        tokio::time::sleep(BLINK * 10).await;
    }
    assert_eq!(connection.reply().await, None, "in the end it is closed");
}

#[tokio::test]
async fn a_live_stream_is_not_idle_however_little_there_is_to_tell() {
    let fixture = Fixture::with(Vec::new(), with(Limits { idle_wait: BLINK, ..Limits::default() })).await;
    let mut watcher = fixture.connect().await;
    watcher.send(b"GET /v1/events HTTP/1.1\r\nHost: localhost\r\n\r\n").await;
    assert_eq!(watcher.status().await, 200);
    tokio::time::sleep(BLINK * 6).await;
    fixture.token("k").await;
    loop {
        let line = watcher.line().await;
        assert!(!line.is_empty(), "it was closed");
        if line.starts_with("data:") {
            return;
        }
    }
}

#[tokio::test]
async fn beyond_the_requests_that_are_worked_on_each_api_refuses_at_once_in_its_own_words() {
    let fixture = Fixture::with(Vec::new(), with(Limits { requests_max: 0, ..Limits::default() })).await;
    let form = format!("key={KEY}&action=get&id=5");
    for (path, body, text) in [
        ("/in.php", "json=1", r#"{"status":0,"request":"ERROR_NO_SLOT_AVAILABLE"}"#),
        ("/in.php", "", "ERROR_NO_SLOT_AVAILABLE"),
        ("/res.php", form.as_str(), "CAPCHA_NOT_READY"),
        ("/res.php", "action=getbalance", "ERROR_NO_SLOT_AVAILABLE"),
    ] {
        let reply = fixture.post(path, FORM, body).await;
        assert_eq!((reply.status, reply.body.as_str()), (200, text), "{path} {body}");
    }
    let created = fixture.post("/createTask", "application/json", "{}").await;
    assert_eq!(created.status, 200);
    assert!(created.body.contains("ERROR_NO_SLOT_AVAILABLE"), "{}", created.body);
    let polled = fixture.post("/getTaskResult", "application/json", r#"{"taskId":5}"#).await;
    assert!(polled.body.contains(r#""status":"processing""#), "{}", polled.body);
    let native = fixture.get("/v1/orders").await;
    assert_eq!((native.status, native.headers["retry-after"].as_str()), (429, "1"));
    assert_eq!(native.headers["content-type"], "application/problem+json");
    assert!(native.body.contains(r#""code":"overloaded""#), "{}", native.body);
    for own in ["/callback/x", "/healthz", "/readyz", "/metrics", "/v1/admin/state"] {
        let status = fixture.get(own).await.status;
        assert!(![429, 503].contains(&status) || own == "/readyz", "{own} has a seat of its own: {status}");
    }
    assert_eq!(fixture.gateway.counts().turned_away, 7);
}

#[tokio::test]
async fn all_bodies_together_have_a_bound_too() {
    let limits = Limits { bodies_bytes_max: 64 * 1024, ..Limits::default() };
    let fixture = Fixture::with(Vec::new(), with(limits)).await;
    assert_eq!(
        fixture.place(&format!("method=base64&body={}", "A".repeat(200_000))).await,
        "ERROR_NO_SLOT_AVAILABLE"
    );
    for _ in 0..5 {
        let response = fixture.place(&format!("method=base64&body={}", "A".repeat(40_000))).await;
        assert!(response.starts_with("OK|"), "the place is given back: {response}");
    }
}

#[tokio::test]
async fn ten_thousand_requests_on_one_hundred_connections_leave_nothing_behind() {
    let fixture = Fixture::open().await;
    let mut callers = Vec::new();
    for _ in 0..100 {
        let mut connection = fixture.connect().await;
        callers.push(tokio::spawn(async move {
            for _ in 0..100 {
                let path = format!("/res.php?key={KEY}&action=get&id=5");
                assert_eq!(connection.ask("GET", &path, &[], b"").await.body, "ERROR_WRONG_CAPTCHA_ID");
            }
        }));
    }
    for caller in callers {
        caller.await.unwrap();
    }
    let counts = fixture.gateway.counts();
    assert_eq!((counts.requests, counts.requests_open, counts.panics), (10_000, 0, 0));
    while fixture.gateway.counts().connections_open > 0 {
        tokio::task::yield_now().await;
    }
}
