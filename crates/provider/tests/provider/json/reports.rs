//! Tests of reports about an answer: the endpoint of each dialect, and the outcomes.

use crate::json::server::{JsonServer, http, ok};
use crate::json::{hasty, provider};
use quittance_lifecycle::ReportOutcome;
use quittance_ports::Provider;
use quittance_protocol::json::JsonDialect;
use serde_json::json;

const TAKEN: &str = r#"{"errorId":0,"status":"success"}"#;
const NO_SUCH: &str = r#"{"errorId":16,"errorCode":"ERROR_NO_SUCH_CAPCHA_ID","errorDescription":"gone"}"#;

fn refused(code: &str) -> ReportOutcome {
    ReportOutcome::Refused { code: code.to_owned() }
}

#[tokio::test]
async fn each_dialect_hears_it_where_it_listens() {
    let cases = [
        (JsonDialect::TwoCaptcha, true, "/reportCorrect"),
        (JsonDialect::TwoCaptcha, false, "/reportIncorrect"),
        (JsonDialect::AntiCaptcha, true, "/reportCorrectRecaptcha"),
        (JsonDialect::AntiCaptcha, false, "/reportIncorrectRecaptcha"),
        (JsonDialect::CapMonster, false, "/reportIncorrectTokenCaptcha"),
        (JsonDialect::CapSolver, true, "/feedbackTask"),
    ];
    for (dialect, is_good, path) in cases {
        let server = JsonServer::replying(ok(TAKEN));
        assert_eq!(provider(dialect, &server.url()).report("17", is_good).await, ReportOutcome::Accepted);
        let request = server.received();
        assert_eq!(
            (request.len(), request[0].path.as_str(), &request[0].body["taskId"]),
            (1, path, &json!(17))
        );
    }
}

#[tokio::test]
async fn a_log_line_without_a_listener_is_not_made() {
    let server = JsonServer::replying(ok(TAKEN));
    let outcome = provider(JsonDialect::CapMonster, &server.url()).report("17", true).await;
    assert_eq!((outcome, server.received().len()), (refused("not offered"), 0));
}

#[tokio::test]
async fn the_next_endpoint_is_tried_where_the_first_does_not_know_the_task() {
    let server = JsonServer::answering(|request| match request.path.as_str() {
        "/reportIncorrectImageCaptcha" => ok(TAKEN),
        _ => ok(NO_SUCH),
    });
    let provider = provider(JsonDialect::AntiCaptcha, &server.url());
    assert_eq!(provider.report("17", false).await, ReportOutcome::Accepted);
    assert_eq!(server.received().len(), 2);
    assert_eq!(provider.report("17", true).await, refused("ERROR_NO_SUCH_CAPCHA_ID"));
}

#[tokio::test]
async fn an_earlier_result_counts_and_a_transport_error_settles_nothing() {
    let outcome_of = async |answer: String| {
        let server = JsonServer::replying(answer);
        provider(JsonDialect::TwoCaptcha, &server.url()).report("17", true).await
    };
    let code = |code: &str| json!({"errorId": 1, "errorCode": code}).to_string();
    assert_eq!(outcome_of(ok(&code("ERROR_DUPLICATE_REPORT"))).await, ReportOutcome::Accepted);
    assert_eq!(outcome_of(ok(&code("ERROR_KEY_DOES_NOT_EXIST"))).await, refused("ERROR_KEY_DOES_NOT_EXIST"));
    assert_eq!(outcome_of(http("404 Not Found", "<html>")).await, refused("HTTP 404"));
    for body in ["", "<html>", "{\"errorI", &code("ERROR_NO_SLOT_AVAILABLE")] {
        assert_eq!(outcome_of(ok(body)).await, ReportOutcome::NoReply, "{body}");
    }
    assert_eq!(outcome_of(http("502 Bad Gateway", TAKEN)).await, ReportOutcome::NoReply);
    assert_eq!(hasty("http://127.0.0.1:1").report("17", true).await, ReportOutcome::NoReply);
}
