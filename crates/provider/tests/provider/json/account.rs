//! Tests of reading the account, and of the error when it cannot be read.

use crate::fixture::KEY;
use crate::json::server::{JsonServer, http, ok};
use crate::json::{hasty, provider};
use quittance_lifecycle::{FaultClass, Money};
use quittance_ports::{Account, Provider};
use quittance_protocol::json::JsonDialect;
use quittance_provider::AskError;

#[tokio::test]
async fn the_balance_is_read_whichever_type_it_has() {
    for balance in ["3.5", "\"3.50\""] {
        let server = JsonServer::replying(ok(&format!("{{\"errorId\":0,\"balance\":{balance}}}")));
        let account = provider(JsonDialect::TwoCaptcha, &server.url()).account().await;
        assert_eq!(account, Some(Account { balance: Some(Money(3_500_000)), threads: None }));
        assert_eq!(
            (server.received()[0].path.as_str(), &server.received()[0].body["clientKey"]),
            ("/getBalance", &KEY.into())
        );
    }
}

#[tokio::test]
async fn a_provider_with_a_low_poll_limit_is_polled_rarely() {
    for (dialect, calls) in [(JsonDialect::AntiCaptcha, 1), (JsonDialect::TwoCaptcha, 3)] {
        let server = JsonServer::replying(ok(r#"{"errorId":0,"balance":1}"#));
        let provider = provider(dialect, &server.url());
        for _ in 0..3 {
            assert!(provider.account().await.is_some());
        }
        assert_eq!(server.received().len(), calls);
    }
}

#[tokio::test]
async fn the_reason_for_a_poll_without_result_is_clear() {
    let why = async |answer: String| {
        let server = JsonServer::replying(answer);
        provider(JsonDialect::CapSolver, &server.url()).look_at_account().await.unwrap_err()
    };
    let refused =
        why(http("401 Unauthorized", r#"{"errorId":1,"errorCode":"ERROR_KEY_DENIED_ACCESS"}"#)).await;
    assert!(matches!(refused, AskError::Rejected { fault, .. } if fault.class == FaultClass::AccountBlocked));
    assert!(matches!(why(ok("<html>")).await, AskError::NotTheProtocol { .. }));
    assert!(matches!(why(http("502 Bad", "<html>")).await, AskError::Status { status: 502 }));
    let unreachable = hasty("http://127.0.0.1:1");
    assert!(matches!(unreachable.look_at_account().await, Err(AskError::Unreachable { .. })));
    assert_eq!(unreachable.account().await, None);
}
