//! Tests of reports about an answer and of their outcomes.

use crate::classic::server::{ClassicServer, http, ok};
use crate::classic::{hasty, provider};
use quittance_lifecycle::ReportOutcome;
use quittance_ports::Provider;
use quittance_protocol::classic::ClassicDialect;

async fn outcome_of(answer: String) -> ReportOutcome {
    let server = ClassicServer::answering(move |_| answer.clone());
    provider(ClassicDialect::TwoCaptcha, &server.url()).report("17", true).await
}

fn refused(code: &str) -> ReportOutcome {
    ReportOutcome::Refused { code: code.to_owned() }
}

#[tokio::test]
async fn a_report_names_its_task_and_its_verdict() {
    let server = ClassicServer::answering(|_| ok("OK_REPORT_RECORDED"));
    let provider = provider(ClassicDialect::CaptchaAi, &server.url());
    assert_eq!(provider.report("17", true).await, ReportOutcome::Accepted);
    assert_eq!(provider.report("18", false).await, ReportOutcome::Accepted);
    let requests: Vec<_> = server
        .received()
        .iter()
        .map(|request| {
            (request.line().to_owned(), request.text("action").to_owned(), request.text("id").to_owned())
        })
        .collect();
    let line = || "POST /res.php HTTP/1.1".to_owned();
    assert_eq!(
        requests,
        [
            (line(), "reportgood".to_owned(), "17".to_owned()),
            (line(), "reportbad".to_owned(), "18".to_owned())
        ]
    );
}

#[tokio::test]
async fn a_report_that_counts_is_taken_in_every_shape() {
    for body in [
        r#"{"status":1,"request":"OK_REPORT_RECORDED"}"#,
        r#"{"status":0,"request":"OK_REPORT_RECORDED"}"#,
        r#"{"status":0,"request":"ERROR_DUPLICATE_REPORT"}"#,
        "ERROR_DUPLICATE_REPORT",
        "OK_REPORT_RECORDED",
    ] {
        assert_eq!(outcome_of(ok(body)).await, ReportOutcome::Accepted, "{body}");
    }
}

#[tokio::test]
async fn a_report_that_will_never_count_is_refused_with_its_code() {
    for code in
        ["ERROR_REPORT_NOT_RECORDED", "REPORT_NOT_RECORDED", "ERROR_WRONG_CAPTCHA_ID", "ERROR_MOON_PHASE"]
    {
        assert_eq!(outcome_of(ok(code)).await, refused(code));
    }
    assert_eq!(outcome_of(http("404 Not Found", "<html>")).await, refused("HTTP 404"));
}

#[tokio::test]
async fn what_settles_nothing_may_be_repeated() {
    let bodies =
        ["", "<html>502</html>", "{\"status\":1,\"req", "MAX_USER_TURN", "ERROR: 1005", "CAPCHA_NOT_READY"];
    for body in bodies {
        assert_eq!(outcome_of(ok(body)).await, ReportOutcome::NoReply, "{body}");
    }
    for status in ["500 Oops", "502 Bad Gateway", "429 Too Many Requests"] {
        assert_eq!(outcome_of(http(status, "OK_REPORT_RECORDED")).await, ReportOutcome::NoReply, "{status}");
    }
    assert_eq!(hasty("http://127.0.0.1:1").report("17", true).await, ReportOutcome::NoReply);
    let server = ClassicServer::start(|_, mut guest| {
        guest.read_request();
        guest.reset();
    });
    assert_eq!(hasty(&server.url()).report("17", true).await, ReportOutcome::NoReply);
}

#[tokio::test]
async fn the_account_is_read_or_unknown() {
    let server = ClassicServer::answering(|_| ok("3.50"));
    let account = Provider::account(&provider(ClassicDialect::TwoCaptcha, &server.url())).await.unwrap();
    assert_eq!(account.balance.map(|money| money.0), Some(3_500_000));
    assert_eq!(Provider::account(&hasty("http://127.0.0.1:1")).await, None);
}
