//! Tests of every way in which a submit can end without an answer. If no byte was sent, the task never arrived; else
//! it is in doubt. The server checks how much arrived, and that it arrived once.

use crate::classic::server::{ClassicClient, ClassicServer, http};
use crate::classic::{accepted, hasty, provider};
use crate::fixture::{in_doubt, order, refused, submit, submit_order};
use quittance_lifecycle::FaultClass::Unreachable;
use quittance_lifecycle::{SubmitOutcome, Value};
use quittance_protocol::classic::ClassicDialect;
use std::net::TcpListener;
use std::time::Duration;

/// Checks that a submit to a server that runs `play` is in doubt. `word` must be in the evidence, and `in_full`
/// requests must arrive in full.
async fn ends(play: impl Fn(ClassicClient) + Send + Sync + 'static, word: &str, in_full: usize) {
    let server = ClassicServer::start(move |_, guest| play(guest));
    let evidence = in_doubt(submit(&provider(ClassicDialect::TwoCaptcha, &server.url())).await).summary;
    assert!(evidence.contains(word), "{word:?} is not in {evidence:?}");
    assert_eq!(server.received().len(), in_full, "{evidence}");
    assert_eq!(server.connections(), 1, "it was tried again: {evidence}");
}

/// The server reads the whole request, sends this text and closes. The submit must be in doubt, with `word` in the
/// evidence.
async fn ends_after(outcome_of: &'static str, word: &str) {
    let play = move |mut guest: ClassicClient| {
        guest.read_request();
        guest.write(outcome_of);
    };
    ends(play, word, 1).await;
}

#[tokio::test]
async fn a_closed_port_is_unreachable() {
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let fault = refused(submit(&hasty(&format!("http://127.0.0.1:{port}"))).await);
    assert_eq!(fault.class, Unreachable);
    assert!(fault.code.contains("refused"), "{fault}");
}

#[tokio::test]
async fn a_host_name_that_does_not_resolve_is_unreachable() {
    let fault = refused(submit(&hasty("http://nothing.invalid")).await);
    assert_eq!(fault.class, Unreachable);
    assert!(fault.code.contains("cannot find the host"), "{fault}");
}

#[tokio::test]
async fn a_host_that_does_not_pick_up_is_unreachable() {
    let socket = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None).unwrap();
    socket.bind(&std::net::SocketAddr::from(([127, 0, 0, 1], 0)).into()).unwrap();
    socket.listen(0).unwrap();
    let address = socket.local_addr().unwrap().as_socket().unwrap();
    // The queue of connections to accept is filled, so that the kernel answers no other client.
    let callers: Vec<_> =
        (0..8).map(|_| std::net::TcpStream::connect_timeout(&address, Duration::from_millis(50))).collect();
    assert!(callers.iter().any(Result::is_err), "the queue is not full");
    let fault = refused(submit(&hasty(&format!("http://{address}"))).await);
    assert_eq!(fault.class, Unreachable);
    assert!(fault.code.contains("no answer in time"), "{fault}");
}

#[tokio::test]
async fn a_connection_closed_with_the_request_unread_is_in_doubt() {
    ends(|guest| guest.wait_for_bytes(), "", 0).await;
}

/// Whether a byte left before the close is a race that the test cannot decide. The outcome must be one of the two
/// true ones, and the request never leaves twice.
#[tokio::test]
async fn a_connection_closed_on_accept_is_unreachable_or_in_doubt() {
    for _ in 0..50 {
        let server = ClassicServer::start(|_, guest| drop(guest));
        match submit(&hasty(&server.url())).await {
            SubmitOutcome::Rejected(fault) => {
                assert_eq!(fault.class, Unreachable);
                assert!(fault.code.ends_with("before anything was sent"), "{fault}");
            }
            outcome => _ = in_doubt(outcome),
        }
        assert_eq!((server.received().len(), server.connections()), (0, 1));
    }
}

#[tokio::test]
async fn a_reset_with_the_request_unread_is_in_doubt() {
    let play = |guest: ClassicClient| {
        guest.wait_for_bytes();
        guest.reset();
    };
    ends(play, "the connection", 0).await;
}

#[tokio::test]
async fn a_reset_after_half_of_the_request_is_in_doubt() {
    let play = |mut guest: ClassicClient| {
        guest.read_some(60);
        guest.reset();
    };
    ends(play, "the connection", 0).await;
}

#[tokio::test]
async fn a_reset_after_the_whole_request_is_in_doubt() {
    let play = |mut guest: ClassicClient| {
        guest.read_request();
        guest.reset();
    };
    ends(play, "the connection", 1).await;
}

#[tokio::test]
async fn a_close_after_the_whole_request_is_in_doubt() {
    ends_after("", "closed before the answer was complete").await;
}

#[tokio::test]
async fn silence_is_in_doubt() {
    let server = ClassicServer::start(|_, mut guest| {
        guest.read_request();
        guest.hold();
    });
    let evidence = in_doubt(submit(&hasty(&server.url())).await).summary;
    assert_eq!(evidence, "no answer within 1s");
    server.wait_for_requests(1);
    assert_eq!(server.connections(), 1);
}

/// The server does not read, so the kernel takes only a part of the request.
#[tokio::test]
async fn a_request_that_cannot_be_sent_to_its_end_is_in_doubt() {
    let server = ClassicServer::start(|_, guest| guest.neglect());
    let files = ["one", "two", "three"].map(|name| (name, Value::Bytes(vec![7; 2 * 1024 * 1024])));
    let picture = order("made_up", &files);
    let evidence = in_doubt(submit_order(&hasty(&server.url()), &picture, None).await).summary;
    assert_eq!(evidence, "no answer within 1s");
    assert_eq!((server.received().len(), server.connections()), (0, 1));
}

#[tokio::test]
async fn a_head_that_breaks_off_is_in_doubt() {
    ends_after("HTTP/1.1 200 OK\r\nContent-Le", "closed before the answer was complete").await;
    ends_after("HTTP/1.1 200 OK\r\nContent-Length: 13\r\n\r\n", "").await;
}

#[tokio::test]
async fn a_body_that_breaks_off_is_in_doubt() {
    ends_after("HTTP/1.1 200 OK\r\nContent-Length: 13\r\n\r\nOK|12", "").await;
    ends_after("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nOK|12\r\n", "").await;
    ends_after("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\nOK|12\r\n", "").await;
}

#[tokio::test]
async fn a_wrong_content_length_is_in_doubt() {
    ends_after("HTTP/1.1 200 OK\r\nContent-Length: many\r\n\r\nOK|12", "not HTTP").await;
    ends_after("HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nOK|123", "not HTTP").await;
    // Too short: what is left of the id is a wrong id, but no client can tell. JSON, which we ask for, breaks.
    let short = "HTTP/1.1 200 OK\r\nContent-Length: 20\r\n\r\n{\"status\":1,\"request\":\"123\"}";
    ends_after(short, "JSON that ends early").await;
}

#[tokio::test]
async fn something_that_is_not_http_is_in_doubt() {
    ends_after("SSH-2.0-OpenSSH_9.9\r\n\r\n", "not HTTP: check provider.url").await;
    ends_after("OK|123", "").await;
    ends_after("\0\0\0\0\0\0\0\0", "not HTTP").await;
}

#[tokio::test]
async fn a_promise_to_go_on_and_then_a_close_is_in_doubt() {
    ends_after("HTTP/1.1 100 Continue\r\n\r\n", "closed before the answer was complete").await;
}

#[tokio::test]
async fn an_endless_head_or_body_is_in_doubt_and_is_not_kept() {
    let head = |mut guest: ClassicClient| {
        guest.read_request();
        guest.write("HTTP/1.1 200 OK\r\n");
        for n in 0..20_000 {
            guest.write(&format!("X-{n}: {n}\r\n"));
        }
    };
    ends(head, "", 1).await;
    let body = |mut guest: ClassicClient| {
        guest.read_request();
        guest.write("HTTP/1.1 200 OK\r\n\r\n");
        for _ in 0..2_000 {
            guest.write(&"OK|".repeat(1000));
        }
    };
    ends(body, "more than 262144 bytes", 1).await;
}

#[tokio::test]
async fn an_answer_that_trickles_past_its_time_is_in_doubt() {
    let server = ClassicServer::start(|_, mut guest| {
        guest.read_request();
        for c in http("200 OK", "OK|123").chars() {
            guest.write(&c.to_string());
            guest.pause(Duration::from_millis(50));
        }
    });
    let evidence = in_doubt(submit(&hasty(&server.url())).await).summary;
    assert_eq!(evidence, "no answer within 1s");
    assert_eq!((server.received().len(), server.connections()), (1, 1));
}

#[tokio::test]
async fn old_and_odd_but_whole_answers_are_answers() {
    let whole = [
        "HTTP/1.0 200 OK\r\n\r\nOK|123",
        "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n{\"status\":1,\"request\":123}",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nOK|\r\n3\r\n123\r\n0\r\n\r\n",
        "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nOK|123",
        "HTTP/1.1 201 Created\r\nContent-Length: 8\r\n\r\nOK|123\r\n",
    ];
    for outcome_of in whole {
        let server = ClassicServer::start(move |_, mut guest| {
            guest.read_request();
            guest.write(outcome_of);
        });
        assert_eq!(
            submit(&provider(ClassicDialect::TwoCaptcha, &server.url())).await,
            accepted("123"),
            "{outcome_of}"
        );
        assert_eq!((server.received().len(), server.connections()), (1, 1));
    }
}
