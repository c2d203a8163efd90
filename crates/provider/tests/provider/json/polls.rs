//! Tests of polls, of what the replies mean, and of callbacks.

use crate::fixture::settings;
use crate::json::server::{JsonServer, http, ok};
use crate::json::{hasty, provider};
use quittance_lifecycle::{CallbackResult, Fault, FaultClass, Money, Payload, PollOutcome, ProviderAnswer};
use quittance_ports::{Callback, Provider};
use quittance_protocol::classic::dialect::PollQuota;
use quittance_protocol::json::JsonDialect;
use quittance_provider::json::JsonProvider;
use serde_json::json;
use std::time::Duration;

const READY: &str = r#"{"errorId":0,"status":"ready","solution":{"token":"0.x","userAgent":"U"},"cost":"0.00145",
    "ip":"192.0.2.1","createTime":1692863536,"endTime":1692863556,"solveCount":1}"#;

fn delivery() -> ProviderAnswer {
    let mut payload = Payload::text("0.x");
    payload.extras.insert("user_agent".to_owned(), "U".to_owned());
    ProviderAnswer { payload, took_at_least: Some(Duration::from_secs(19)), cost: Some(Money(1450)) }
}

async fn outcome_of(status: &str, body: &str) -> PollOutcome {
    let server = JsonServer::replying(http(status, body));
    let outcomes = provider(JsonDialect::CapSolver, &server.url()).poll(&["7".to_owned()]).await;
    assert_eq!(outcomes.len(), 1);
    outcomes.into_iter().next().unwrap().1
}

#[tokio::test]
async fn tasks_are_polled_one_by_one_each_by_its_id() {
    let server = JsonServer::answering(|_| ok(r#"{"errorId":0,"status":"processing"}"#));
    let provider = provider(JsonDialect::TwoCaptcha, &server.url());
    assert_eq!(provider.poll_batch_max(), 1);
    let tasks = ["74327409378".to_owned(), "61138bb6-19fb".to_owned()];
    let outcomes = provider.poll(&tasks).await;
    assert_eq!(outcomes, tasks.map(|task| (task, PollOutcome::Pending)));
    let request = server.received();
    assert!(request.iter().all(|request| request.path == "/getTaskResult"));
    assert_eq!(request[0].body["taskId"], json!(74_327_409_378_u64));
    assert_eq!(request[1].body["taskId"], json!("61138bb6-19fb"));
}

#[tokio::test]
async fn an_answer_has_its_cost_its_moment_and_all_that_came_along() {
    assert_eq!(outcome_of("200 OK", READY).await, PollOutcome::Answered(delivery()));
    let bare = r#"{"errorId":0,"status":"ready","solution":{"text":"x"}}"#;
    let expected = ProviderAnswer { payload: Payload::text("x"), took_at_least: None, cost: None };
    assert_eq!(outcome_of("200 OK", bare).await, PollOutcome::Answered(expected));
}

#[tokio::test]
async fn a_fault_counts_at_any_status_and_a_transport_error_settles_nothing() {
    let gone = r#"{"errorId":1,"errorCode":"ERROR_CAPTCHA_UNSOLVABLE","errorDescription":"no"}"#;
    for status in ["200 OK", "400 Bad Request"] {
        let expected = Fault::new(FaultClass::Unsolvable, "ERROR_CAPTCHA_UNSOLVABLE").with_text(gone);
        assert_eq!(outcome_of(status, gone).await, PollOutcome::Faulted(expected));
    }
    for (status, body) in [
        ("500 Oops", gone),
        ("502 Bad Gateway", "<html>"),
        ("200 OK", "<html>"),
        ("200 OK", ""),
        ("200 OK", r#"{"errorId":0,"status":"ready","solu"#),
        ("404 Not Found", "<html>"),
        ("400 Bad Request", READY),
    ] {
        assert_eq!(outcome_of(status, body).await, PollOutcome::NoReply, "{status} {body}");
    }
    assert!(
        matches!(outcome_of("429 Slow", "").await, PollOutcome::Faulted(fault) if fault.class == FaultClass::Busy)
    );
    let outcomes = hasty("http://127.0.0.1:1").poll(&["7".to_owned()]).await;
    assert_eq!(outcomes, [("7".to_owned(), PollOutcome::NoReply)]);
}

#[tokio::test]
async fn a_json_task_is_polled_no_more_often_than_the_provider_allows() {
    let server = JsonServer::replying(ok(r#"{"errorId":0,"status":"processing"}"#));
    let mut settings = settings(&server.url());
    settings.poll_quota = Some(PollQuota { per_task: 3, slack: 0 });
    let provider = JsonProvider::new(JsonDialect::CapMonster, settings).unwrap();
    for _ in 0..10 {
        provider.poll(&["7".to_owned()]).await;
    }
    assert_eq!(server.received().len(), 3);
}

#[tokio::test]
async fn a_callback_is_read_and_nonsense_is_not() {
    let provider = provider(JsonDialect::AntiCaptcha, "http://127.0.0.1:1");
    let read_callback = |body: &str| {
        provider.read_callback(&Callback {
            query: "",
            content_type: Some("application/json"),
            body: body.as_bytes(),
        })
    };
    for (spelled, task) in [("7", "7"), ("\"7\"", "7"), ("\"61138bb6\"", "61138bb6")] {
        let saying = read_callback(&READY.replacen('{', &format!("{{\"taskId\":{spelled},"), 1)).unwrap();
        assert_eq!((saying.task.as_deref(), saying.word), (Some(task), CallbackResult::Answered(delivery())));
    }
    let saying =
        read_callback(r#"{"errorId":12,"errorCode":"ERROR_CAPTCHA_UNSOLVABLE","taskId":7}"#).unwrap();
    assert!(matches!(saying.word, CallbackResult::Faulted(fault) if fault.class == FaultClass::Unsolvable));
    for body in ["", "<html>", "id=7&code=x", r#"{"errorId":0,"status":"processing","taskId":7}"#, "{\"err"] {
        assert!(read_callback(body).is_none(), "{body}");
    }
}
