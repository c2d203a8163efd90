//! Tests of slots, money and bans.

use crate::wire::{TURNSTILE, open};
use quittance_mock_provider::{
    AccountChange, BanLimits, DEMO_KEY, MillisRange, MockClassicDialect, Settings,
};

/// Settings with which no task is solved during the test.
fn slow(dialect: MockClassicDialect) -> Settings {
    Settings { solve_ms: MillisRange { from: 3_600_000, to: 3_600_001 }, ..Settings::quick(dialect) }
}

fn change() -> AccountChange {
    AccountChange { name: "demo".to_owned(), ..AccountChange::default() }
}

#[tokio::test]
async fn without_money_2captcha_takes_nothing_until_the_account_is_paid() {
    let client = open(slow(MockClassicDialect::TwoCaptcha)).await;
    assert!(client.mock.change_account(&AccountChange { balance_micros: Some(2_989), ..change() }));
    assert_eq!(client.says(TURNSTILE).await, "ERROR_ZERO_BALANCE");
    assert!(client.mock.change_account(&AccountChange { balance_micros: Some(2_990), ..change() }));
    client.task(TURNSTILE).await;
    assert_eq!(client.tells("action=getbalance").await, "0.00");
    assert_eq!(client.says(TURNSTILE).await, "ERROR_ZERO_BALANCE");
}

#[tokio::test]
async fn when_the_own_queue_is_full_there_is_no_slot() {
    let client = open(Settings { queue_max: 2, ..slow(MockClassicDialect::TwoCaptcha) }).await;
    for _ in 0..2 {
        client.task(TURNSTILE).await;
    }
    assert_eq!(client.says(TURNSTILE).await, "ERROR_NO_SLOT_AVAILABLE");
    assert_eq!(client.mock.totals().accepted, 2);
}

#[tokio::test]
async fn at_captchaai_zero_balance_means_that_no_thread_is_free() {
    let client = open(slow(MockClassicDialect::CaptchaAi)).await;
    assert!(client.mock.change_account(&AccountChange {
        threads: Some(1),
        balance_micros: Some(0),
        ..change()
    }));
    client.task(TURNSTILE).await;
    assert_eq!(client.says(TURNSTILE).await, "ERROR_ZERO_BALANCE");
    assert_eq!(client.tells("action=threadsinfo").await, r#"{"status":1,"threads":1,"working_threads":1}"#);
    assert!(client.mock.change_account(&AccountChange {
        threads: Some(5),
        plan_ended: Some(true),
        ..change()
    }));
    assert_eq!(
        client.says(TURNSTILE).await,
        "ERROR_ZERO_BALANCE",
        "the plan has ended, and threads look free"
    );
    assert_eq!(client.tells("action=threadsinfo").await, r#"{"status":1,"threads":5,"working_threads":1}"#);
    assert!(client.mock.change_account(&AccountChange { threads: Some(0), ..change() }));
    assert_eq!(client.says(TURNSTILE).await, "ERROR_KEY_DOES_NOT_EXIST");
}

#[tokio::test]
async fn captchaai_can_be_set_to_return_no_slot_instead() {
    let code = "ERROR_NO_SLOT_AVAILABLE";
    let client =
        open(Settings { busy_code: Some(code.to_owned()), ..slow(MockClassicDialect::CaptchaAi) }).await;
    assert!(client.mock.change_account(&AccountChange { threads: Some(1), ..change() }));
    client.task(TURNSTILE).await;
    assert_eq!(client.says(TURNSTILE).await, code);
}

#[tokio::test]
async fn a_client_that_submits_too_fast_is_banned_for_a_while() {
    let pace = BanLimits { submits_window_ms: 60_000, turn_ban_ms: 1_000, ..BanLimits::default() };
    let client = open(Settings { pace, ..Settings::quick(MockClassicDialect::TwoCaptcha) }).await;
    let mut json_reply = String::new();
    for _ in 0..61 {
        json_reply = client.says(TURNSTILE).await;
    }
    assert_eq!(json_reply, "MAX_USER_TURN");
    assert_eq!(client.mock.totals().accepted, 60);
    assert_eq!(client.tells("action=getbalance").await, "9.8206", "polls go on");
    assert_eq!(client.mock.totals().bans["MAX_USER_TURN"], 1);
    let is_over = |client: &crate::wire::MockClient| client.mock.state().accounts[0].bans.is_empty();
    assert!(client.mock.until(crate::wire::LIMIT, |_| is_over(&client)).await);
    client.task(TURNSTILE).await;
}

#[tokio::test]
async fn five_unknown_keys_ban_the_address_and_with_it_the_right_key() {
    for (dialect, code) in
        [(MockClassicDialect::TwoCaptcha, "ERROR: 1004"), (MockClassicDialect::CaptchaAi, "IP_BANNED")]
    {
        let pace = BanLimits::default();
        let client = open(Settings { pace, ..Settings::quick(dialect) }).await;
        for _ in 0..5 {
            let json_reply = client.get(&format!("/in.php?key={}", "f".repeat(32))).await.expect("an answer");
            assert_eq!(json_reply.text(), "ERROR_KEY_DOES_NOT_EXIST");
        }
        assert_eq!(client.says(TURNSTILE).await, code);
        assert_eq!(client.tells("action=getbalance").await, code);
        assert_eq!(client.mock.state().banned_addresses, 1);
        client.mock.reset();
        client.task(TURNSTILE).await;
    }
}

#[tokio::test]
async fn a_client_over_the_poll_quota_is_banned_from_polling() {
    let pace = BanLimits { polls_free: 3, polls_per_task: 2, ..BanLimits::default() };
    let client = open(Settings { pace, ..Settings::quick(MockClassicDialect::TwoCaptcha) }).await;
    let id = client.finished(TURNSTILE).await;
    for _ in 0..5 {
        assert!(client.tells(&format!("action=get&id={id}")).await.starts_with("OK|"));
    }
    assert_eq!(client.tells(&format!("action=get&id={id}")).await, "ERROR: 1005");
    assert_eq!(client.tells("action=getbalance&json=1").await, r#"{"status":0,"request":"ERROR: 1005"}"#);
    client.task(TURNSTILE).await;
}

#[tokio::test]
async fn a_client_that_repeats_a_refused_submit_is_banned() {
    let limits = BanLimits { refusals_max: 4, ..BanLimits::default() };
    for (settings, request, refusal, ban) in [
        (
            Settings { queue_max: 0, ..slow(MockClassicDialect::TwoCaptcha) },
            TURNSTILE,
            "ERROR_NO_SLOT_AVAILABLE",
            "ERROR: 1001",
        ),
        (
            Settings { price_micros: u64::MAX, ..slow(MockClassicDialect::TwoCaptcha) },
            TURNSTILE,
            "ERROR_ZERO_BALANCE",
            "ERROR: 1002",
        ),
        (slow(MockClassicDialect::TwoCaptcha), "method=turnstile", "ERROR_BAD_PARAMETERS", "ERROR: 1003"),
    ] {
        let client = open(Settings { pace: limits.clone(), ..settings }).await;
        for _ in 0..4 {
            assert_eq!(client.says(request).await, refusal);
        }
        assert_eq!(client.says(request).await, ban);
        assert_eq!(client.mock.totals().bans[ban], 1);
        assert_eq!(
            client
                .get(&format!("/res.php?key={DEMO_KEY}&action=getbalance"))
                .await
                .expect("an answer")
                .text(),
            "10.00"
        );
    }
}
