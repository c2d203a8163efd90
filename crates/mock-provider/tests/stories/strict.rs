//! Tests of what the provider refuses, and with which code.

use crate::wire::{TURNSTILE, open, png, quick, v2};
use base64::Engine;
use quittance_mock_provider::{
    FaultAction, MockAccount, MockClassicDialect, MockKey, RulePlace, ScriptRule, Settings, TaskState,
};

fn image(bytes: &[u8]) -> String {
    let encoded = base64::engine::general_purpose::STANDARD.encode(bytes);
    let escaped: String = form_urlencoded::byte_serialize(encoded.as_bytes()).collect();
    format!("method=base64&body={escaped}")
}

#[tokio::test]
async fn bad_requests_are_refused_with_the_code_that_says_why() {
    let client = quick(MockClassicDialect::TwoCaptcha).await;
    let long = format!("textcaptcha={}", "x".repeat(141));
    let cases = [
        ("method=userrecaptcha&pageurl=https://a.test/", "ERROR_WRONG_GOOGLEKEY"),
        ("method=userrecaptcha&googlekey=&pageurl=https://a.test/", "ERROR_GOOGLEKEY"),
        ("method=userrecaptcha&googlekey=no%20key&pageurl=https://a.test/", "ERROR_GOOGLEKEY"),
        ("method=userrecaptcha&googlekey=6LeIxAcTAAAA", "ERROR_PAGEURL"),
        ("method=userrecaptcha&googlekey=6LeIxAcTAAAA&pageurl=a.test", "ERROR_PAGEURL"),
        ("method=userrecaptcha&googlekey=6LeIxAcTAAAA&pageurl=https://", "ERROR_PAGEURL"),
        ("method=turnstile&pageurl=https://a.test/", "ERROR_BAD_PARAMETERS"),
        ("method=hcaptcha&pageurl=https://a.test/", "ERROR_BAD_PARAMETERS"),
        ("method=geetest&json=0&gt=g&pageurl=https://a.test/", "ERROR_BAD_PARAMETERS"),
        ("method=mt_captcha&sitekey=x", "ERROR_PAGEURL"),
        ("pageurl=https://a.test/", "ERROR_BAD_PARAMETERS"),
        (&long, "ERROR_BAD_PARAMETERS"),
        ("method=datadome&captcha_url=x&userAgent=y&pageurl=https://a.test/", "ERROR_BAD_PARAMETERS"),
        (
            "method=datadome&captcha_url=x&userAgent=y&pageurl=https://a.test/&proxy=1.2.3.4:80",
            "ERROR_PROXY_FORMAT",
        ),
        ("method=post", "ERROR_UPLOAD"),
        ("method=base64&body=***", "ERROR_UPLOAD"),
    ];
    for (params, code) in cases {
        assert_eq!(client.says(params).await, code, "{params}");
    }
    for proxy in ["1.2.3.4", "1.2.3.4:port", "user@1.2.3.4:80", ":80", "http://1.2.3.4:80"] {
        assert_eq!(
            client.says(&format!("{TURNSTILE}&proxytype=http&proxy={proxy}")).await,
            "ERROR_PROXY_FORMAT",
            "{proxy}"
        );
    }
    assert_eq!(
        client.says(&format!("{TURNSTILE}&proxy=1.2.3.4:80&proxytype=SMOKE")).await,
        "ERROR_PROXY_FORMAT"
    );
    assert_eq!(client.says(&image(&png(1)[..99])).await, "ERROR_ZERO_CAPTCHA_FILESIZE");
    assert_eq!(client.says(&image(&[b'<'; 200])).await, "ERROR_IMAGE_TYPE_NOT_SUPPORTED");
    let huge = [png(1), vec![0; 600_000]].concat();
    assert_eq!(client.says(&image(&huge)).await, "ERROR_TOO_BIG_CAPTCHA_FILESIZE");
    assert_eq!(client.mock.totals().accepted, 0);
    assert_eq!(client.mock.totals().paid_micros, 0);
}

#[tokio::test]
async fn a_login_of_a_proxy_is_taken_and_not_written_down() {
    let client = quick(MockClassicDialect::TwoCaptcha).await;
    client.task(&format!("{TURNSTILE}&proxytype=socks5&proxy=login:hunter2@1.2.3.4:80")).await;
    let ledger = serde_json::to_string(&client.mock.ledger()).expect("JSON");
    assert!(ledger.contains("@1.2.3.4:80") && !ledger.contains("hunter2"));
}

#[tokio::test]
async fn a_key_is_looked_at_before_anything_else() {
    let client = quick(MockClassicDialect::TwoCaptcha).await;
    for (key, code) in [("", "ERROR_WRONG_USER_KEY"), ("short", "ERROR_WRONG_USER_KEY")] {
        let json_reply = client.get(&format!("/in.php?key={key}")).await.expect("an answer");
        assert_eq!(json_reply.text(), code);
    }
    let stranger = "f".repeat(32);
    let json_reply =
        client.get(&format!("/res.php?key={stranger}&action=get&id=1")).await.expect("an answer");
    assert_eq!(json_reply.text(), "ERROR_KEY_DOES_NOT_EXIST");
}

#[tokio::test]
async fn ids_and_actions_must_be_right() {
    let client = quick(MockClassicDialect::TwoCaptcha).await;
    for (params, code) in [
        ("action=get", "ERROR_WRONG_ID_FORMAT"),
        ("action=get&id=abc", "ERROR_WRONG_ID_FORMAT"),
        ("action=get&id=-1", "ERROR_WRONG_ID_FORMAT"),
        ("action=get&id=99999999999999999999", "ERROR_WRONG_ID_FORMAT"),
        ("action=get&id=70000000001", "ERROR_WRONG_CAPTCHA_ID"),
        ("action=dance", "ERROR_EMPTY_ACTION"),
        ("id=1", "ERROR_EMPTY_ACTION"),
        ("action=add_pingback", "ERROR_BAD_PARAMETERS"),
    ] {
        assert_eq!(client.tells(params).await, code, "{params}");
    }
}

#[tokio::test]
async fn a_task_of_another_account_cannot_be_read() {
    let mut settings = Settings::quick(MockClassicDialect::TwoCaptcha);
    let key = "e".repeat(32);
    settings.accounts.push(MockAccount {
        name: "other".to_owned(),
        key: MockKey::new(key.clone()),
        balance_micros: 1_000_000,
        threads: 1,
        plan_ended: false,
    });
    let client = open(settings).await;
    let id = client.finished(TURNSTILE).await;
    for action in ["get", "get2", "reportbad"] {
        let json_reply =
            client.get(&format!("/res.php?key={key}&action={action}&id={id}")).await.expect("an answer");
        assert_eq!(json_reply.text(), "ERROR_WRONG_CAPTCHA_ID");
    }
    assert!(!client.entry(&id).delivered);
}

#[tokio::test]
async fn a_geetest_challenge_is_good_for_one_task() {
    let client = quick(MockClassicDialect::TwoCaptcha).await;
    let params =
        |challenge: &str| format!("method=geetest&json=0&gt=g&challenge={challenge}&pageurl=https://a.test/");
    let (first, second) = (client.finished(&params("one")).await, client.finished(&params("one")).await);
    let other = client.finished(&params("two")).await;
    assert_eq!(client.entry(&first).state, TaskState::Solved);
    assert_eq!(client.entry(&second).code.as_deref(), Some("ERROR_TOKEN_EXPIRED"));
    assert_eq!(client.entry(&other).state, TaskState::Solved);
}

#[tokio::test]
async fn a_result_is_kept_for_so_long_and_then_its_id_is_unknown() {
    let settings = Settings { result_lifetime_ms: 0, ..Settings::quick(MockClassicDialect::TwoCaptcha) };
    let client = open(settings).await;
    let id = client.finished(TURNSTILE).await;
    assert_eq!(client.tells(&format!("action=get&id={id}")).await, "ERROR_WRONG_CAPTCHA_ID");
    let entry = client.entry(&id);
    assert_eq!((entry.state, entry.delivered, entry.charged), (TaskState::Vanished, false, true));
    assert_eq!(client.mock.totals().vanished, 1);
}

#[tokio::test]
async fn a_result_can_vanish_between_two_polls() {
    let client = quick(MockClassicDialect::TwoCaptcha).await;
    let id = client.finished(&v2("v")).await;
    client
        .mock
        .script(vec![ScriptRule::nth(RulePlace::Poll, 2, FaultAction::Vanish)])
        .expect("a good script");
    assert!(client.tells(&format!("action=get&id={id}")).await.starts_with("OK|03Asim-"));
    assert_eq!(client.tells(&format!("action=get&id={id}")).await, "ERROR_WRONG_CAPTCHA_ID");
    assert_eq!(client.fault("vanish"), 1);
}

#[tokio::test]
async fn old_tasks_leave_the_ledger_and_stay_in_the_sums() {
    let settings = Settings { tasks_max: 3, ..Settings::quick(MockClassicDialect::TwoCaptcha) };
    let client = open(settings).await;
    let first = client.finished(TURNSTILE).await;
    for _ in 0..4 {
        client.finished(TURNSTILE).await;
    }
    let ledger = client.mock.ledger();
    assert_eq!((ledger.tasks.len(), ledger.totals.accepted, ledger.totals.forgotten), (3, 5, 2));
    assert_eq!(client.tells(&format!("action=get&id={first}")).await, "ERROR_WRONG_CAPTCHA_ID");
}
