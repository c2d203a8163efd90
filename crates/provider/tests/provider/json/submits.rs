//! Tests of what a submit sends, and of what each way to end means for the money.

use crate::fixture::{KEY, in_doubt, order, refused, settings, submit, submit_order, token_order};
use crate::json::server::{JsonServer, ServerAction, http, ok};
use crate::json::{hasty, provider};
use quittance_lifecycle::FaultClass::{
    self, AccountBlocked, Busy, Caller, NoFunds, UnlistedCode, Unreachable,
};
use quittance_lifecycle::{Evidence, Fault, Payload, SubmitOutcome};
use quittance_protocol::json::JsonDialect;
use quittance_provider::{ApiKey, JsonProvider, Settings};
use serde_json::json;

const TAKEN: &str = r#"{"errorId":0,"taskId":74327409378}"#;

fn accepted(task: &str) -> SubmitOutcome {
    SubmitOutcome::Accepted { task: task.to_owned() }
}

async fn means(status: &str, body: &str) -> Fault {
    let server = JsonServer::replying(http(status, body));
    refused(submit(&provider(JsonDialect::TwoCaptcha, &server.url())).await)
}

async fn doubts(status: &str, body: &str) -> Evidence {
    let server = JsonServer::replying(http(status, body));
    in_doubt(submit(&provider(JsonDialect::TwoCaptcha, &server.url())).await)
}

fn code(number: u32, code: &str) -> String {
    json!({"errorId": number, "errorCode": code, "errorDescription": "words"}).to_string()
}

#[tokio::test]
async fn an_order_goes_out_as_each_provider_wants_it() {
    for (dialect, name) in [
        (JsonDialect::TwoCaptcha, "TurnstileTaskProxyless"),
        (JsonDialect::CapSolver, "AntiTurnstileTaskProxyLess"),
    ] {
        let server = JsonServer::replying(ok(TAKEN));
        let provider = provider(dialect, &format!("{}/api/", server.url()));
        let callback = Some("http://callback.test/secret");
        assert_eq!(submit_order(&provider, &token_order(), callback).await, accepted("74327409378"));
        let request = server.received();
        assert_eq!(request[0].path, "/api/createTask");
        assert!(request[0].head.to_ascii_lowercase().contains("content-type: application/json"));
        assert!(!request[0].head.contains(KEY), "the key stands in no address and no header");
        let expected = json!({
            "clientKey": KEY,
            "callbackUrl": "http://callback.test/secret",
            "task": {"type": name, "websiteURL": "https://example.com/", "websiteKey": "s"}
        });
        assert_eq!(request[0].body, expected);
    }
}

#[tokio::test]
async fn a_language_pool_stands_beside_the_task() {
    let server = JsonServer::replying(ok(TAKEN));
    let picture = order("image", &[("body", vec![7_u8; 200].into()), ("languagePool", "rn".into())]);
    submit_order(&provider(JsonDialect::AntiCaptcha, &server.url()), &picture, None).await;
    let body = &server.received()[0].body;
    assert_eq!((&body["languagePool"], &body["task"]["languagePool"]), (&json!("rn"), &json!(null)));
}

#[tokio::test]
async fn a_task_may_be_called_anything_and_an_answer_may_come_at_once() {
    let server = JsonServer::replying(ok(r#"{"errorId":0,"status":"idle","taskId":"61138bb6-19fb-11ec"}"#));
    assert_eq!(
        submit(&provider(JsonDialect::CapSolver, &server.url())).await,
        accepted("61138bb6-19fb-11ec")
    );
    let body = r#"{"errorId":0,"status":"ready","taskId":"a","solution":{"text":"44795sds"}}"#;
    let server = JsonServer::replying(ok(body));
    let picture = order("image", &[("body", vec![7_u8; 200].into())]);
    match submit_order(&provider(JsonDialect::CapSolver, &server.url()), &picture, None).await {
        SubmitOutcome::Answered(delivery) => assert_eq!(delivery.payload, Payload::text("44795sds")),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_code_is_a_refusal_of_its_class_whatever_the_status() {
    let cases: [(FaultClass, &str); 5] = [
        (NoFunds, "ERROR_ZERO_BALANCE"),
        (Busy, "ERROR_NO_SLOT_AVAILABLE"),
        (AccountBlocked, "ERROR_KEY_DOES_NOT_EXIST"),
        (Caller, "ERROR_INVALID_TASK_DATA"),
        (UnlistedCode, "ERROR_MOON_PHASE"),
    ];
    for (class, name) in cases {
        for status in ["200 OK", "400 Bad Request", "401 Unauthorized"] {
            let body = code(1, name);
            assert_eq!(means(status, &body).await, Fault::new(class, name).with_text(&body), "{status}");
        }
    }
    assert_eq!(means("429 Too Many Requests", "").await.class, Busy);
    assert_eq!(means("413 Too Large", "").await.class, Caller);
    assert_eq!(means("404 Not Found", "<html>").await.class, UnlistedCode);
}

#[tokio::test]
async fn what_may_have_been_taken_is_a_doubt() {
    let pages = ["", "<html>502</html>", "Bad Gateway", "{}", r#"{"errorId":0}"#, r#"{"errorId":0,"taskI"#];
    for body in pages {
        doubts("200 OK", body).await;
    }
    for status in ["500 Oops", "502 Bad Gateway", "503 Busy", "521 Down"] {
        for body in ["<html>", TAKEN, &code(2, "ERROR_NO_SLOT_AVAILABLE")] {
            doubts(status, body).await;
        }
    }
    doubts("400 Bad Request", TAKEN).await;
}

#[tokio::test]
async fn a_lost_or_a_cut_reply_is_a_doubt_and_is_never_sent_again() {
    let whole = ok(TAKEN);
    for cut in [0, 10, whole.len() - 5] {
        let text = whole[..cut].to_owned();
        let server = JsonServer::start(move |_| ServerAction::Break(text.clone()));
        in_doubt(submit(&hasty(&server.url())).await);
        assert_eq!(server.received().len(), 1);
    }
    let server = JsonServer::start(|_| ServerAction::Silence);
    in_doubt(submit(&hasty(&server.url())).await);
    assert_eq!(server.received().len(), 1);
    let server = JsonServer::replying(ok(&format!("{{\"a\":\"{}\"}}", "x".repeat(600_000))));
    in_doubt(submit(&hasty(&server.url())).await);
}

#[tokio::test]
async fn what_was_never_sent_is_only_unreachable() {
    assert_eq!(refused(submit(&hasty("http://127.0.0.1:1")).await).class, Unreachable);
}

#[tokio::test]
async fn what_the_protocol_cannot_express_is_refused_before_it_is_sent() {
    let server = JsonServer::replying(ok(TAKEN));
    let tiles = order("bls", &[("instructions", "i".into()), ("image_base64_1", "x".into())]);
    let fault = refused(submit_order(&provider(JsonDialect::TwoCaptcha, &server.url()), &tiles, None).await);
    assert!(fault.class == Caller && fault.code.contains("bls"), "{fault}");
    assert!(server.received().is_empty());
}

#[tokio::test]
async fn a_key_that_is_repeated_goes_no_further_and_a_bad_one_is_refused() {
    let fault = means("200 OK", &code(1, &format!("no such key: {KEY}"))).await;
    assert!(!fault.code.contains(KEY) && fault.code.contains("(key)"), "{fault}");
    let provider = provider(JsonDialect::TwoCaptcha, "http://127.0.0.1:1");
    assert!(!format!("{provider:?} {:?}", settings("http://x.test")).contains(KEY));
    let refused = |url: &str, key: &str| {
        let settings = Settings { key: ApiKey::new(key), ..settings(url) };
        JsonProvider::new(JsonDialect::CapMonster, settings).unwrap_err().to_string()
    };
    assert!(refused("http://x.test", "").contains("provider.key"));
    assert!(refused("http://x.test/createTask", "k").contains("without createTask"));
    assert!(refused("http://ada:pass@x.test", "k").contains("provider.url"));
}

#[tokio::test]
async fn the_operator_has_the_last_word_about_codes() {
    let server = JsonServer::replying(ok(&code(1, "ERROR_MOON_PHASE")));
    let mut settings = settings(&server.url());
    settings.codes.insert("ERROR_MOON_PHASE".to_owned(), Busy);
    let provider = JsonProvider::new(JsonDialect::CapMonster, settings).unwrap();
    assert_eq!(refused(submit(&provider).await).class, Busy);
}

#[tokio::test]
async fn the_providers_own_text_is_kept_without_secrets_and_without_an_answer() {
    let callback = "https://us.example.org/callback/0a1b2c3d.e4f5";
    let outcome_of =
        json!({"errorId": 1, "errorCode": "ERROR_X", "errorDescription": format!("{KEY} at {callback} <b>")});
    let server = JsonServer::replying(ok(&outcome_of.to_string()));
    let outcome =
        submit_order(&provider(JsonDialect::TwoCaptcha, &server.url()), &token_order(), Some(callback)).await;
    let fault = refused(outcome);
    assert_eq!(fault.code, "ERROR_X");
    assert!(fault.text.contains("(key) at (callback address) <b>"), "{}", fault.text);
    let answered = json!({"errorId": 1, "errorCode": "ERROR_X", "solution": {"token": "as good as money"}});
    assert_eq!(means("200 OK", &answered.to_string()).await.text, "");
    assert_eq!(doubts("403 Forbidden", TAKEN).await.text, "");
}
