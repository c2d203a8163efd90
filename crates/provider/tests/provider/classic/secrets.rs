//! Tests that the key is in no URL, no log line and no record.

use crate::classic::server::{ClassicServer, http, ok};
use crate::classic::{hasty, provider};
use crate::fixture::{KEY, in_doubt, order, refused, settings, submit, submit_order};
use quittance_lifecycle::fault::TEXT_BYTES_MAX;
use quittance_lifecycle::{FaultClass, PollOutcome};
use quittance_ports::{Provider, Submission};
use quittance_protocol::classic::ClassicDialect;

#[tokio::test]
async fn the_key_is_in_no_address_and_no_head() {
    let server = ClassicServer::answering(|_| ok("OK|7"));
    let provider = provider(ClassicDialect::TwoCaptcha, &server.url());
    submit(&provider).await;
    provider.poll(&["7".to_owned()]).await;
    provider.poll(&["7".to_owned(), "8".to_owned()]).await;
    _ = provider.look_at_account().await;
    let request = server.received();
    assert!(request.len() >= 4);
    for request in request {
        assert_eq!(request.text("key"), KEY);
        assert!(!request.head.contains(KEY), "{}", request.head);
        assert!(request.line().ends_with(".php HTTP/1.1"), "{}", request.line());
    }
}

#[tokio::test]
async fn the_key_is_in_nothing_that_is_printed() {
    let settings = settings("http://127.0.0.1:9");
    let provider = hasty("http://127.0.0.1:9");
    let printed = format!(
        "{settings:?} {provider:?} {:?} {:?}",
        submit(&provider).await,
        provider.look_at_account().await
    );
    assert!(!printed.contains(KEY), "{printed}");
}

#[tokio::test]
async fn a_server_that_repeats_the_key_does_not_get_it_into_a_fault() {
    let padding = "x".repeat(180);
    let echoes = [
        format!("ERROR_KEY_DOES_NOT_EXIST: {KEY}"),
        format!("{{\"status\":0,\"request\":\"no such key {KEY}\"}}"),
        format!("{{\"status\":0,\"request\":\"{padding}{KEY}\"}}"),
    ];
    for echo in echoes {
        for status in ["200 OK", "403 Forbidden"] {
            let body = echo.clone();
            let server = ClassicServer::answering(move |_| http(status, &body));
            let provider = provider(ClassicDialect::TwoCaptcha, &server.url());
            let fault = refused(submit(&provider).await);
            assert!(!fault.code.contains(&KEY[..8]), "{fault}");
            assert!(matches!(fault.class, FaultClass::AccountBlocked | FaultClass::UnlistedCode));
            let outcome_of = provider.poll(&["7".to_owned()]).await;
            assert!(!format!("{outcome_of:?}").contains(&KEY[..8]), "{outcome_of:?}");
            if let PollOutcome::Answered(_) = outcome_of[0].1 {
                panic!("a refusal is no answer");
            }
            let why = provider.look_at_account().await.unwrap_err();
            assert!(!format!("{why} {why:?}").contains(&KEY[..8]), "{why}");
        }
    }
}

#[tokio::test]
async fn a_caller_cannot_send_its_own_provider_key_or_callback() {
    let server = ClassicServer::answering(|_| ok("OK|7"));
    let provider = provider(ClassicDialect::TwoCaptcha, &server.url());
    let smuggled = order(
        "made_up",
        &[("key", "other".into()), ("pingback", "http://elsewhere.test".into()), ("x", "1".into())],
    );
    submit_order(&provider, &smuggled, None).await;
    let request = &server.received()[0];
    assert_eq!((request.text("key"), request.text("pingback"), request.text("x")), (KEY, "", "1"));
}

/// A reply that repeats the secrets it received, with control characters.
fn babble(callback: &str) -> String {
    let escaped = callback.replace('/', "\\/");
    format!("<h1>502</h1> key={KEY} pingback={callback} and {escaped}\u{1b}[2J")
}

#[tokio::test]
async fn the_providers_own_text_is_kept_without_key_and_callback_address() {
    let callback = "https://us.example.org/callback/0a1b2c3d.e4f5";
    let server = ClassicServer::answering(move |_| http("403 Forbidden", &babble(callback)));
    let provider = provider(ClassicDialect::TwoCaptcha, &server.url());
    let (key, terms) =
        order("turnstile", &[("sitekey", "s".into()), ("pageurl", "https://example.com/".into())]);
    let submission =
        Submission { key, attempt: 1, terms: &terms, callback: Some(callback), guard: &|_| Ok(()) };
    let fault = refused(provider.submit(submission).await);
    assert_eq!(
        fault.text, "<h1>502</h1> key=(key) pingback=(callback address) and (callback address)\u{1b}[2J",
        "as it came, but for what is ours"
    );
    let long = ClassicServer::answering(|_| http("500 Oops", &"x".repeat(100_000)));
    let evidence = in_doubt(submit(&crate::classic::provider(ClassicDialect::TwoCaptcha, &long.url())).await);
    assert_eq!((evidence.text.len(), evidence.summary.as_str()), (TEXT_BYTES_MAX, "HTTP 500"));
    let short = ClassicServer::answering(|_| ok("ERROR_NO_SLOT_AVAILABLE"));
    let fault = refused(submit(&crate::classic::provider(ClassicDialect::TwoCaptcha, &short.url())).await);
    assert_eq!(
        (fault.text.as_str(), fault.code.as_str()),
        ("", "ERROR_NO_SLOT_AVAILABLE"),
        "there was nothing more"
    );
    let taken = ClassicServer::answering(|_| http("403 Forbidden", "OK|77"));
    let evidence =
        in_doubt(submit(&crate::classic::provider(ClassicDialect::TwoCaptcha, &taken.url())).await);
    assert_eq!(evidence.text, "", "a task may be paid for");
}
