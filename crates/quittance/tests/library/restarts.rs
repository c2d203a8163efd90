//! What the next process finds, and what operators do: fix an account, replay a dead letter, start twice.

use crate::fixture::Fixture;
use quittance::{ClassicDialect, Day, RecaptchaV2, StartError, StoreOpenError, Turnstile, Which, embedded};
use quittance_mock_provider::{AccountChange, ScriptRule};
use serde_json::json;

const PAGE: &str = "https://shop.example.com/login";
const SITE_KEY: &str = "6Le-wvkSAAAAAPBMRTvw0Q4Muexq9bi0DJwx_mJ-";

/// The node is dropped without a stop, which is as near to a crash as one process gets. The end-to-end tests kill
/// real processes.
#[tokio::test]
async fn an_order_goes_on_where_it_was_in_the_next_process() {
    let fixture = Fixture::new(ClassicDialect::TwoCaptcha).await;
    let slow = json!({ "on": "in.php", "nth": 1, "do": { "solve_ms": 300 } });
    fixture.mock.script(vec![serde_json::from_value::<ScriptRule>(slow).unwrap()]).unwrap();
    let key = {
        let node = fixture.called_back().await;
        let ticket = node.place(RecaptchaV2::new(SITE_KEY, PAGE).idempotency_key("one")).await.unwrap();
        while node.read(&ticket.order()).await.unwrap().unwrap().phase.name() != "solving" {
            tokio::task::yield_now().await;
        }
        ticket.order()
    };
    let node = loop {
        // The last handle on the store goes when its tasks have gone.
        match fixture.builder().start().await {
            Err(StartError::Open(StoreOpenError::Embedded(embedded::EmbeddedOpenError::InUse {
                ..
            }))) => {
                tokio::task::yield_now().await;
            }
            started => break started.unwrap(),
        }
    };
    let ticket = node.ticket(&key).await.unwrap().expect("it is on record");
    let solved = ticket.wait().await.unwrap();
    let again = node.solve(RecaptchaV2::new(SITE_KEY, PAGE).idempotency_key("one")).await.unwrap();
    assert_eq!(again.text(), solved.text());
    let ledger = fixture.ledger();
    assert_eq!((ledger.totals.accepted, ledger.tasks[0].answer.clone()), (1, Some(json!(solved.text()))));
    node.stop().await;
}

#[tokio::test]
async fn an_account_without_money_holds_orders_until_the_next_start_after_it_was_fixed() {
    let fixture = Fixture::new(ClassicDialect::TwoCaptcha).await;
    let account = |balance| AccountChange {
        name: "demo".into(),
        balance_micros: Some(balance),
        ..AccountChange::default()
    };
    assert!(fixture.mock.change_account(&account(0)));
    let node = fixture.polling().await;
    let ticket = node.place(Turnstile::new("0x4AAAAAAADnPIDROrmt1Wwj", PAGE)).await.unwrap();
    let fault = loop {
        match node.paused() {
            Some(fault) => break fault,
            None => tokio::task::yield_now().await,
        }
    };
    assert_eq!(fault.code, "ERROR_ZERO_BALANCE");
    while !node.read(&ticket.order()).await.unwrap().unwrap().phase.is_held() {
        tokio::task::yield_now().await;
    }
    assert_eq!(fixture.ledger().totals.requests["in.php"], 1, "nothing more is sent");
    assert!(fixture.mock.change_account(&account(1_000_000)));
    // None, if the submit itself has noticed and let the order go before.
    assert!(node.resume_all().await.unwrap() <= 1);
    ticket.wait().await.unwrap();
    assert_eq!(fixture.ledger().totals.accepted, 1);
    node.stop().await;
}

#[tokio::test]
async fn a_dead_letter_can_be_read_replayed_and_dropped_and_usage_counts_it() {
    let fixture = Fixture::new(ClassicDialect::TwoCaptcha).await;
    let odd = json!({ "on": "in.php", "every": 1, "do": { "code": "ERROR_NEVER_SEEN_BEFORE" } });
    fixture.mock.script(vec![serde_json::from_value::<ScriptRule>(odd).unwrap()]).unwrap();
    let node = fixture.polling().await;
    let ticket = node.place(RecaptchaV2::new(SITE_KEY, PAGE)).await.unwrap();
    let error = ticket.wait().await.unwrap_err();
    assert!(error.to_string().contains("ERROR_NEVER_SEEN_BEFORE"), "{error}");
    assert_eq!(fixture.ledger().totals.requests["in.php"], 3, "an unlisted code is tried twice more");
    let dead = node.list(Which::DEAD, None, 10).await.unwrap();
    assert_eq!(dead.len(), 1);
    fixture.mock.script(Vec::new()).unwrap();
    assert!(node.replay(&ticket.order()).await.unwrap());
    node.ticket(&ticket.order()).await.unwrap().unwrap().wait().await.unwrap();
    assert!(!node.drop_dead(&ticket.order()).await.unwrap(), "it is alive");
    node.stop().await;
    let mut usage = quittance::lifecycle::Counters::default();
    node.usage(Day(0), Day(u64::MAX)).await.unwrap().into_iter().for_each(|(_, counters)| usage += counters);
    assert_eq!((usage.paid, usage.dead, usage.revived, usage.solved), (1, 1, 1, 1));
}

#[tokio::test]
async fn two_nodes_cannot_use_one_store_and_the_second_learns_why() {
    let fixture = Fixture::new(ClassicDialect::TwoCaptcha).await;
    let first = fixture.polling().await;
    let second = fixture.builder().start().await.unwrap_err();
    assert!(
        matches!(
            &second,
            StartError::Open(StoreOpenError::Embedded(embedded::EmbeddedOpenError::InUse { .. }))
        ),
        "{second}"
    );
    assert!(second.to_string().contains("in use by"), "{second}");
    first.stop().await;
    let gone = quittance::Quittance::builder().start().await.unwrap_err();
    assert!(matches!(gone, StartError::NoProvider), "{gone}");
}

#[tokio::test]
async fn a_node_is_a_member_with_its_settings_until_it_ends() {
    let fixture = Fixture::new(ClassicDialect::TwoCaptcha).await;
    let node = fixture.polling().await;
    assert_eq!(node.members().await.unwrap().nodes.len(), 1);
    node.stop().await;
    assert_eq!(node.members().await.unwrap().nodes, [], "a node that ends in order signs out");
}
