//! The account as the provider tells it, and why it does not.

use crate::json::server::{Server, http, ok};
use crate::json::{KEY, hasty, provider};
use quittance_lifecycle::{FaultClass, Money};
use quittance_ports::{Account, Provider};
use quittance_protocol::json::Flavour;
use quittance_provider::AskError;

#[tokio::test]
async fn the_balance_is_told_whichever_type_it_has() {
    for balance in ["3.5", "\"3.50\""] {
        let server = Server::saying(ok(&format!("{{\"errorId\":0,\"balance\":{balance}}}")));
        let account = provider(Flavour::TwoCaptcha, &server.url()).account().await;
        assert_eq!(account, Some(Account { balance: Some(Money(3_500_000)), threads: None }));
        assert_eq!(
            (server.seen()[0].path.as_str(), &server.seen()[0].body["clientKey"]),
            ("/getBalance", &KEY.into())
        );
    }
}

#[tokio::test]
async fn whoever_may_be_asked_seldom_is_asked_seldom() {
    for (flavour, calls) in [(Flavour::AntiCaptcha, 1), (Flavour::TwoCaptcha, 3)] {
        let server = Server::saying(ok(r#"{"errorId":0,"balance":1}"#));
        let provider = provider(flavour, &server.url());
        for _ in 0..3 {
            assert!(provider.account().await.is_some());
        }
        assert_eq!(server.seen().len(), calls);
    }
}

#[tokio::test]
async fn why_there_is_no_word_of_it_is_said_clearly() {
    let why = async |answer: String| {
        let server = Server::saying(answer);
        provider(Flavour::CapSolver, &server.url()).look_at_account().await.unwrap_err()
    };
    let refused =
        why(http("401 Unauthorized", r#"{"errorId":1,"errorCode":"ERROR_KEY_DENIED_ACCESS"}"#)).await;
    assert!(matches!(refused, AskError::Refused { fault, .. } if fault.class == FaultClass::AccountBlocked));
    assert!(matches!(why(ok("<html>")).await, AskError::NotTheProtocol { .. }));
    assert!(matches!(why(http("502 Bad", "<html>")).await, AskError::Status { status: 502 }));
    let nobody = hasty("http://127.0.0.1:1");
    assert!(matches!(nobody.look_at_account().await, Err(AskError::Unreachable { .. })));
    assert_eq!(nobody.account().await, None);
}
