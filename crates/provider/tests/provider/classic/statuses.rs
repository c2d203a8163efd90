//! Tests of complete HTTP replies that are not of the protocol, and of which may come after the task was taken.

use crate::classic::provider;
use crate::classic::server::{ClassicServer, http};
use crate::fixture::{in_doubt, refused, submit};
use quittance_lifecycle::FaultClass::{self, AccountBlocked, Busy, Caller, UnlistedCode};
use quittance_protocol::classic::ClassicDialect;

async fn means(status: &'static str, body: &'static str, class: FaultClass, word: &str) {
    let server = ClassicServer::answering(move |_| http(status, body));
    let fault = refused(submit(&provider(ClassicDialect::TwoCaptcha, &server.url())).await);
    assert_eq!(fault.class, class, "{status}: {fault}");
    assert!(fault.code.contains(word), "{status}: {fault}");
    assert_eq!(server.received().len(), 1, "{status}: nothing is sent twice and no redirect is followed");
}

async fn leaves_in_doubt(status: &'static str, body: &'static str, word: &str) {
    let server = ClassicServer::answering(move |_| http(status, body));
    let evidence = in_doubt(submit(&provider(ClassicDialect::TwoCaptcha, &server.url())).await).summary;
    assert!(evidence.contains(word), "{status}: {evidence}");
    assert_eq!(server.received().len(), 1, "{status}: nothing is sent twice and no redirect is followed");
}

#[tokio::test]
async fn a_redirect_is_not_followed_and_nothing_was_taken() {
    for status in
        ["301 Moved", "302 Found", "303 See Other", "307 Temporary Redirect", "308 Permanent Redirect"]
    {
        let server = ClassicServer::answering(move |_| {
            format!("HTTP/1.1 {status}\r\nLocation: /elsewhere\r\nContent-Length: 0\r\n\r\n")
        });
        let fault = refused(submit(&provider(ClassicDialect::TwoCaptcha, &server.url())).await);
        assert_eq!(fault.class, UnlistedCode);
        assert_eq!(fault.code, format!("HTTP {}: check provider.url", &status[..3]));
        assert_eq!((server.received().len(), server.connections()), (1, 1));
    }
}

#[tokio::test]
async fn a_refusal_of_http_says_where_to_look() {
    for status in
        ["400 Bad Request", "401 Unauthorized", "403 Forbidden", "404 Not Found", "405 No", "410 Gone"]
    {
        means(status, "<html>no</html>", UnlistedCode, "check provider.url").await;
    }
    means("413 Too Large", "", Caller, "HTTP 413").await;
    means("429 Too Many", "", Busy, "HTTP 429").await;
    means("429 Too Many", "ERROR_WRONG_USER_KEY", Busy, "HTTP 429").await;
}

#[tokio::test]
async fn a_code_is_clearer_than_the_status_that_it_comes_with() {
    means("401 Unauthorized", "ERROR_KEY_DOES_NOT_EXIST", AccountBlocked, "ERROR_KEY_DOES_NOT_EXIST").await;
    let body = r#"{"status":0,"request":"ERROR_PAGEURL","error_text":"try again"}"#;
    means("400 Bad Request", body, Caller, "ERROR_PAGEURL").await;
}

#[tokio::test]
async fn a_status_that_says_no_with_a_task_in_it_is_in_doubt() {
    for status in ["302 Found", "404 Not Found", "413 Too Large", "429 Too Many"] {
        leaves_in_doubt(status, "OK|123", "with a task in it").await;
    }
}

#[tokio::test]
async fn an_error_from_a_proxy_may_come_after_the_task_was_taken() {
    for status in ["500 Oops", "502 Bad Gateway", "503 Busy", "504 Late", "521 Down"] {
        let expected = format!("HTTP {}", &status[..3]);
        leaves_in_doubt(status, "<html>sorry</html>", &expected).await;
        leaves_in_doubt(status, "", &expected).await;
        leaves_in_doubt(status, "ERROR_NO_SLOT_AVAILABLE", &expected).await;
    }
}

#[tokio::test]
async fn a_good_status_with_something_else_in_it_is_in_doubt_and_says_what_was_seen() {
    leaves_in_doubt("200 OK", "<!DOCTYPE html><h1>Welcome</h1>", "answered HTML, not the protocol").await;
    leaves_in_doubt("200 OK", "<!DOCTYPE html><h1>Welcome</h1>", "check provider.url").await;
    leaves_in_doubt("200 OK", "", "answered nothing").await;
    leaves_in_doubt("200 OK", "500 Internal Server Error", "not the protocol").await;
    leaves_in_doubt("200 OK", "{\"status\":1,\"request\":\"12", "JSON that ends early").await;
}

#[tokio::test]
async fn no_content_is_in_doubt() {
    let server = ClassicServer::answering(|_| "HTTP/1.1 204 No Content\r\n\r\n".to_owned());
    let evidence = in_doubt(submit(&provider(ClassicDialect::TwoCaptcha, &server.url())).await).summary;
    assert_eq!(evidence, "answered nothing (HTTP 204): check provider.url");
}

#[tokio::test]
async fn a_permanent_code_behind_a_human_error_text_is_seen() {
    let body =
        r#"{"status":0,"request":"ERROR_WRONG_USER_KEY","error_text":"Oops! Please try again in a minute"}"#;
    means("200 OK", body, AccountBlocked, "ERROR_WRONG_USER_KEY").await;
}

#[tokio::test]
async fn codes_have_the_class_of_the_table_and_the_operator_has_the_last_word() {
    means("200 OK", "ERROR_ZERO_BALANCE", FaultClass::NoFunds, "ERROR_ZERO_BALANCE").await;
    means("200 OK", "ERROR_NO_SLOT_AVAILABLE", Busy, "").await;
    means("200 OK", "ERROR_NEVER_SEEN", UnlistedCode, "ERROR_NEVER_SEEN").await;
    means("200 OK", "https://example.com/an-article", Caller, "https://").await;
    let server = ClassicServer::answering(|_| http("200 OK", "ERROR_NEVER_SEEN"));
    let mut settings = crate::fixture::settings(&server.url());
    settings.codes.insert("ERROR_NEVER_SEEN".to_owned(), FaultClass::Unsolvable);
    let provider =
        quittance_provider::classic::ClassicProvider::new(ClassicDialect::TwoCaptcha, settings).unwrap();
    assert_eq!(refused(submit(&provider).await).class, FaultClass::Unsolvable);
}
