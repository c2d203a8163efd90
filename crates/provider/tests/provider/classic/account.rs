//! Tests of balance and threads, of the error when they cannot be read, and of what they decide about a rejected
//! submit.

use crate::classic::server::{ClassicServer, http, ok};
use crate::classic::{hasty, provider};
use crate::fixture::{refused, submit};
use quittance_lifecycle::{FaultClass, Money};
use quittance_ports::Threads;
use quittance_protocol::classic::ClassicDialect;
use quittance_provider::{Account, AskError};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

#[tokio::test]
async fn the_account_is_read() {
    let server = ClassicServer::answering(|request| match request.text("action") {
        "threadsinfo" => ok(r#"{"threads":"5","working_threads":2}"#),
        "getbalance" => ok(r#"{"status":1,"request":"3.50"}"#),
        _ => ok("ERROR_EMPTY_ACTION"),
    });
    let balance = Some(Money(3_500_000));
    let threads = Some(Threads { total: 5, working: 2 });
    assert_eq!(
        provider(ClassicDialect::CaptchaAi, &server.url()).look_at_account().await,
        Ok(Account { balance, threads })
    );
    assert_eq!(
        provider(ClassicDialect::TwoCaptcha, &server.url()).look_at_account().await,
        Ok(Account { balance, threads: None })
    );
}

#[tokio::test]
async fn a_provider_that_sells_threads_may_have_no_balance() {
    let server = ClassicServer::answering(|request| match request.text("action") {
        "threadsinfo" => ok(r#"{"threads":5,"working_threads":2}"#),
        _ => ok("ERROR_EMPTY_ACTION"),
    });
    let account = provider(ClassicDialect::CaptchaAi, &server.url()).look_at_account().await.unwrap();
    assert_eq!(account, Account { balance: None, threads: Some(Threads { total: 5, working: 2 }) });
}

#[tokio::test]
async fn an_error_says_what_to_do() {
    let say = async |answer: String| {
        let server = ClassicServer::answering(move |_| answer.clone());
        provider(ClassicDialect::TwoCaptcha, &server.url()).look_at_account().await.unwrap_err()
    };
    let why = say(ok("ERROR_WRONG_USER_KEY")).await;
    assert!(matches!(&why, AskError::Rejected { fault, .. } if fault.class == FaultClass::AccountBlocked));
    assert!(why.to_string().contains("check the key"), "{why}");
    let why = say(ok("<html>")).await;
    assert!(
        matches!(why, AskError::NotTheProtocol { .. }) && why.to_string().contains("provider.url"),
        "{why}"
    );
    assert_eq!(say(http("404 Not Found", "<html>")).await, AskError::Status { status: 404 });
    assert!(matches!(say("SSH-2.0\r\n\r\n".to_owned()).await, AskError::NoAnswer { .. }));
    let why = hasty("http://127.0.0.1:1").look_at_account().await.unwrap_err();
    assert!(matches!(&why, AskError::Unreachable { .. }) && why.to_string().contains("firewall"), "{why}");
}

/// The fault classes of a series of submits that find no thread, and how often the threads were read.
async fn refusals(threads: &'static str, submits: usize) -> (Vec<FaultClass>, usize) {
    let reads = Arc::new(AtomicUsize::new(0));
    let count = reads.clone();
    let server = ClassicServer::answering(move |request| match request.text("action") {
        "threadsinfo" => {
            count.fetch_add(1, Ordering::SeqCst);
            ok(threads)
        }
        _ => ok(r#"{"status":0,"request":"ERROR_ZERO_BALANCE"}"#),
    });
    let provider = provider(ClassicDialect::CaptchaAi, &server.url());
    let mut classes = Vec::new();
    for _ in 0..submits {
        classes.push(refused(submit(&provider).await).class);
    }
    (classes, reads.load(Ordering::SeqCst))
}

#[tokio::test]
async fn no_free_thread_is_busy_and_no_thread_at_all_is_broke() {
    use FaultClass::{Busy, NoFunds};
    assert_eq!(refusals(r#"{"threads":5,"working_threads":5}"#, 3).await, (vec![Busy; 3], 1));
    assert_eq!(
        refusals(r#"{"threads":5,"working_threads":4}"#, 1).await,
        (vec![Busy], 1),
        "one has just ended"
    );
    assert_eq!(refusals(r#"{"threads":0,"working_threads":0}"#, 1).await, (vec![NoFunds], 1));
    assert_eq!(refusals("<html>", 2).await, (vec![Busy; 2], 1), "not known");
}

#[tokio::test]
async fn idle_threads_that_take_nothing_twice_are_a_plan_that_has_ended() {
    let server = ClassicServer::answering(|request| match request.text("action") {
        "threadsinfo" => ok(r#"{"threads":5,"working_threads":0}"#),
        _ => ok("ERROR_ZERO_BALANCE"),
    });
    let provider = provider(ClassicDialect::CaptchaAi, &server.url());
    assert_eq!(refused(submit(&provider).await).class, FaultClass::Busy, "it may have been a race");
    tokio::time::pause();
    tokio::time::advance(std::time::Duration::from_secs(3)).await;
    tokio::time::resume();
    assert_eq!(refused(submit(&provider).await).class, FaultClass::NoFunds);
}
