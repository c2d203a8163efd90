//! Tests of reused connections. If the server closed one earlier, nothing is lost. If the server closes one just as a
//! request comes, the submit is in doubt, and it is never paid for twice.

use crate::classic::server::{ClassicClient, ClassicServer, ok};
use crate::classic::{accepted, hasty, provider};
use crate::fixture::{in_doubt, settings, submit};
use quittance_protocol::classic::ClassicDialect;
use quittance_provider::classic::ClassicProvider;
use std::time::Duration;

fn serve(guest: &mut ClassicClient) {
    while guest.read_request().is_some() {
        guest.write(&ok("OK|123"));
    }
}

#[tokio::test]
async fn one_connection_serves_many_requests() {
    let server = ClassicServer::answering(|_| ok("OK|123"));
    let provider = provider(ClassicDialect::TwoCaptcha, &server.url());
    for _ in 0..20 {
        assert_eq!(submit(&provider).await, accepted("123"));
    }
    assert_eq!((server.received().len(), server.connections()), (20, 1));
}

#[tokio::test]
async fn a_connection_closed_between_two_requests_makes_no_doubt() {
    for farewell in ["", "HTTP/1.1 408 Request Timeout\r\nContent-Length: 0\r\n\r\n"] {
        let server = ClassicServer::start(move |number, mut guest| {
            if number == 0 {
                guest.read_request();
                guest.write(&ok("OK|123"));
                guest.wait_until_ended();
                guest.write(farewell);
            } else {
                serve(&mut guest);
            }
        });
        let provider = provider(ClassicDialect::TwoCaptcha, &server.url());
        assert_eq!(submit(&provider).await, accepted("123"));
        server.tell_and_wait_until_closed(1);
        assert_eq!(submit(&provider).await, accepted("123"));
        assert_eq!((server.received().len(), server.connections()), (2, 2));
    }
}

#[tokio::test]
async fn a_connection_closed_while_the_second_request_is_sent_is_in_doubt_and_is_not_tried_again() {
    let play: [fn(ClassicClient); 3] = [
        |guest| {
            guest.wait_for_bytes();
            guest.reset();
        },
        |mut guest| {
            guest.read_some(1);
            guest.reset();
        },
        |guest| {
            guest.wait_for_bytes();
            drop(guest);
        },
    ];
    for end in play {
        let server = ClassicServer::start(move |_, mut guest| {
            guest.read_request();
            guest.write(&ok("OK|123"));
            end(guest);
        });
        let provider = provider(ClassicDialect::TwoCaptcha, &server.url());
        assert_eq!(submit(&provider).await, accepted("123"));
        in_doubt(submit(&provider).await);
        assert_eq!((server.received().len(), server.connections()), (1, 1));
    }
}

#[tokio::test]
async fn a_connection_that_has_rested_too_long_is_not_used_again() {
    let server = ClassicServer::answering(|_| ok("OK|123"));
    let mut settings = settings(&server.url());
    settings.idle_max = Duration::ZERO;
    let provider = ClassicProvider::new(ClassicDialect::TwoCaptcha, settings).unwrap();
    for _ in 0..3 {
        assert_eq!(submit(&provider).await, accepted("123"));
    }
    assert_eq!((server.received().len(), server.connections()), (3, 3));
}

#[tokio::test]
async fn a_connection_that_the_server_says_it_will_close_is_not_used_again() {
    let server = ClassicServer::start(|_, mut guest| {
        guest.read_request();
        guest.write("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 6\r\n\r\nOK|123");
        guest.hold();
    });
    let provider = provider(ClassicDialect::TwoCaptcha, &server.url());
    for _ in 0..3 {
        assert_eq!(submit(&provider).await, accepted("123"));
    }
    assert_eq!((server.received().len(), server.connections()), (3, 3));
}

/// The late reply to an abandoned call must not answer the next call.
#[tokio::test]
async fn an_answer_that_comes_too_late_goes_to_no_other_request() {
    let server = ClassicServer::start(|number, mut guest| {
        guest.read_request();
        if number == 0 {
            guest.pause(Duration::from_millis(1500));
            guest.write(&ok("OK|of-the-first"));
            guest.hold();
        } else {
            guest.write(&ok("OK|of-the-second"));
        }
    });
    let provider = hasty(&server.url());
    in_doubt(submit(&provider).await);
    assert_eq!(submit(&provider).await, accepted("of-the-second"));
}
