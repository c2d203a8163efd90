//! Room, money and bans.

use crate::wire::{TURNSTILE, open};
use quittance_mock_provider::{AccountChange, DEMO_KEY, Pace, Profile, Settings, Span};

/// Nothing is solved while the test looks.
fn slow(profile: Profile) -> Settings {
    Settings { solve_ms: Span { from: 3_600_000, to: 3_600_001 }, ..Settings::quick(profile) }
}

fn change() -> AccountChange {
    AccountChange { name: "demo".to_owned(), ..AccountChange::default() }
}

#[tokio::test]
async fn without_money_2captcha_takes_nothing_until_somebody_pays() {
    let desk = open(slow(Profile::TwoCaptcha)).await;
    assert!(desk.sim.change_account(&AccountChange { balance_micros: Some(2_989), ..change() }));
    assert_eq!(desk.says(TURNSTILE).await, "ERROR_ZERO_BALANCE");
    assert!(desk.sim.change_account(&AccountChange { balance_micros: Some(2_990), ..change() }));
    desk.task(TURNSTILE).await;
    assert_eq!(desk.tells("action=getbalance").await, "0.00");
    assert_eq!(desk.says(TURNSTILE).await, "ERROR_ZERO_BALANCE");
}

#[tokio::test]
async fn when_the_own_queue_is_full_there_is_no_slot() {
    let desk = open(Settings { queue_max: 2, ..slow(Profile::TwoCaptcha) }).await;
    for _ in 0..2 {
        desk.task(TURNSTILE).await;
    }
    assert_eq!(desk.says(TURNSTILE).await, "ERROR_NO_SLOT_AVAILABLE");
    assert_eq!(desk.sim.totals().accepted, 2);
}

#[tokio::test]
async fn at_captchaai_zero_balance_means_that_no_thread_is_free() {
    let desk = open(slow(Profile::CaptchaAi)).await;
    assert!(desk.sim.change_account(&AccountChange {
        threads: Some(1),
        balance_micros: Some(0),
        ..change()
    }));
    desk.task(TURNSTILE).await;
    assert_eq!(desk.says(TURNSTILE).await, "ERROR_ZERO_BALANCE");
    assert_eq!(desk.tells("action=threadsinfo").await, r#"{"status":1,"threads":1,"working_threads":1}"#);
    assert!(desk.sim.change_account(&AccountChange { threads: Some(5), plan_ended: Some(true), ..change() }));
    assert_eq!(desk.says(TURNSTILE).await, "ERROR_ZERO_BALANCE", "the plan has ended, and threads look free");
    assert_eq!(desk.tells("action=threadsinfo").await, r#"{"status":1,"threads":5,"working_threads":1}"#);
    assert!(desk.sim.change_account(&AccountChange { threads: Some(0), ..change() }));
    assert_eq!(desk.says(TURNSTILE).await, "ERROR_KEY_DOES_NOT_EXIST");
}

#[tokio::test]
async fn captchaai_can_be_told_to_say_no_slot_instead() {
    let code = "ERROR_NO_SLOT_AVAILABLE";
    let desk = open(Settings { busy_code: Some(code.to_owned()), ..slow(Profile::CaptchaAi) }).await;
    assert!(desk.sim.change_account(&AccountChange { threads: Some(1), ..change() }));
    desk.task(TURNSTILE).await;
    assert_eq!(desk.says(TURNSTILE).await, code);
}

#[tokio::test]
async fn who_submits_too_fast_is_banned_for_a_while() {
    let pace = Pace { submits_window_ms: 60_000, turn_ban_ms: 1_000, ..Pace::default() };
    let desk = open(Settings { pace, ..Settings::quick(Profile::TwoCaptcha) }).await;
    let mut said = String::new();
    for _ in 0..61 {
        said = desk.says(TURNSTILE).await;
    }
    assert_eq!(said, "MAX_USER_TURN");
    assert_eq!(desk.sim.totals().accepted, 60);
    assert_eq!(desk.tells("action=getbalance").await, "9.8206", "polls go on");
    assert_eq!(desk.sim.totals().bans["MAX_USER_TURN"], 1);
    let is_over = |desk: &crate::wire::AccountState| desk.sim.state().accounts[0].bans.is_empty();
    assert!(desk.sim.until(crate::wire::LIMIT, |_| is_over(&desk)).await);
    desk.task(TURNSTILE).await;
}

#[tokio::test]
async fn five_unknown_keys_ban_the_address_and_with_it_the_right_key() {
    for (profile, code) in [(Profile::TwoCaptcha, "ERROR: 1004"), (Profile::CaptchaAi, "IP_BANNED")] {
        let pace = Pace::default();
        let desk = open(Settings { pace, ..Settings::quick(profile) }).await;
        for _ in 0..5 {
            let said = desk.get(&format!("/in.php?key={}", "f".repeat(32))).await.expect("an answer");
            assert_eq!(said.text(), "ERROR_KEY_DOES_NOT_EXIST");
        }
        assert_eq!(desk.says(TURNSTILE).await, code);
        assert_eq!(desk.tells("action=getbalance").await, code);
        assert_eq!(desk.sim.state().banned_addresses, 1);
        desk.sim.reset();
        desk.task(TURNSTILE).await;
    }
}

#[tokio::test]
async fn who_polls_more_than_the_quota_is_banned_from_polling() {
    let pace = Pace { polls_free: 3, polls_per_task: 2, ..Pace::default() };
    let desk = open(Settings { pace, ..Settings::quick(Profile::TwoCaptcha) }).await;
    let id = desk.finished(TURNSTILE).await;
    for _ in 0..5 {
        assert!(desk.tells(&format!("action=get&id={id}")).await.starts_with("OK|"));
    }
    assert_eq!(desk.tells(&format!("action=get&id={id}")).await, "ERROR: 1005");
    assert_eq!(desk.tells("action=getbalance&json=1").await, r#"{"status":0,"request":"ERROR: 1005"}"#);
    desk.task(TURNSTILE).await;
}

#[tokio::test]
async fn who_does_not_take_no_for_an_answer_is_banned() {
    let limits = Pace { refusals_max: 4, ..Pace::default() };
    for (settings, wish, refusal, ban) in [
        (
            Settings { queue_max: 0, ..slow(Profile::TwoCaptcha) },
            TURNSTILE,
            "ERROR_NO_SLOT_AVAILABLE",
            "ERROR: 1001",
        ),
        (
            Settings { price_micros: u64::MAX, ..slow(Profile::TwoCaptcha) },
            TURNSTILE,
            "ERROR_ZERO_BALANCE",
            "ERROR: 1002",
        ),
        (slow(Profile::TwoCaptcha), "method=turnstile", "ERROR_BAD_PARAMETERS", "ERROR: 1003"),
    ] {
        let desk = open(Settings { pace: limits.clone(), ..settings }).await;
        for _ in 0..4 {
            assert_eq!(desk.says(wish).await, refusal);
        }
        assert_eq!(desk.says(wish).await, ban);
        assert_eq!(desk.sim.totals().bans[ban], 1);
        assert_eq!(
            desk.get(&format!("/res.php?key={DEMO_KEY}&action=getbalance")).await.expect("an answer").text(),
            "10.00"
        );
    }
}
