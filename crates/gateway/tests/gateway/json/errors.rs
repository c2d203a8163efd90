//! Tests that each error has the right code and number, and a helpful text.

use super::dialects::turnstile;
use super::scripted::{Fixture, KEY};
use serde_json::{Value, json};

async fn response(fixture: &Fixture, path: &str, asked: &Value) -> (u64, String, String) {
    let response = Box::pin(fixture.ask(path, asked)).await;
    let names: Vec<_> = response.as_object().unwrap().keys().map(String::as_str).collect();
    assert_eq!(names, ["errorCode", "errorDescription", "errorId"], "{response}");
    let text = |name: &str| response[name].as_str().unwrap().to_owned();
    (response["errorId"].as_u64().unwrap(), text("errorCode"), text("errorDescription"))
}

fn with_task(task: &Value) -> Value {
    json!({"clientKey": KEY, "task": task})
}

#[tokio::test]
async fn a_task_that_is_wrong_is_refused_with_the_number_of_its_fault() {
    let fixture = Fixture::open();
    let page = "https://example.com/";
    let cases = [
        (json!({"clientKey": KEY}), 22, "ERROR_TASK_ABSENT", "ERROR_INVALID_TASK_DATA"),
        (with_task(&json!(null)), 22, "ERROR_TASK_ABSENT", "ERROR_INVALID_TASK_DATA"),
        (with_task(&json!("task")), 22, "ERROR_TASK_ABSENT", "ERROR_INVALID_TASK_DATA"),
        (with_task(&json!({})), 22, "ERROR_TASK_ABSENT", "ERROR_INVALID_TASK_DATA"),
        (with_task(&json!({"a": 1})), 23, "ERROR_TASK_NOT_SUPPORTED", "ERROR_TASK_NOT_SUPPORTED"),
        (with_task(&json!({"type": 7})), 23, "ERROR_TASK_NOT_SUPPORTED", "ERROR_TASK_NOT_SUPPORTED"),
        (
            with_task(&json!({"type": "TurnstileTaskProxyless", "websiteKey": "k"})),
            5,
            "ERROR_PAGEURL",
            "ERROR_INVALID_TASK_DATA",
        ),
        (
            with_task(&json!({"type": "RecaptchaV2TaskProxyless", "websiteURL": page})),
            31,
            "ERROR_RECAPTCHA_INVALID_SITEKEY",
            "ERROR_INVALID_TASK_DATA",
        ),
        (
            with_task(&json!({"type": "ImageToTextTask", "body": ""})),
            3,
            "ERROR_ZERO_CAPTCHA_FILESIZE",
            "ERROR_ZERO_CAPTCHA_FILESIZE",
        ),
        (
            with_task(&json!({"type": "ImageToTextTask", "body": "YQ=="})),
            3,
            "ERROR_ZERO_CAPTCHA_FILESIZE",
            "ERROR_ZERO_CAPTCHA_FILESIZE",
        ),
    ];
    for (asked, number, code, at_cap_solver) in cases {
        for (dialect, number) in [("2captcha", number), ("anticaptcha", number), ("capmonster", 1)] {
            let (id, sent, words) = response(&fixture, &format!("/{dialect}/createTask"), &asked).await;
            assert_eq!((id, sent.as_str()), (number, code), "{asked}");
            assert!(words.len() > 10, "{words}");
        }
        let (id, sent, _) = response(&fixture, "/capsolver/createTask", &asked).await;
        assert_eq!((id, sent.as_str()), (1, at_cap_solver), "{asked}");
    }
    assert_eq!(fixture.provider.submits(), 0);
}

#[tokio::test]
async fn a_body_that_is_not_a_json_object_is_refused_as_such() {
    let fixture = Fixture::open();
    let deep = format!("{{\"clientKey\":\"{KEY}\",\"task\":{}1{}}}", "[".repeat(50_000), "]".repeat(50_000));
    let bodies = [
        "",
        "{",
        "null",
        "[]",
        "\"x\"",
        "1",
        "clientKey=x&task=y",
        "{\"clientKey\":\"\u{fffd}",
        deep.as_str(),
    ];
    for path in ["/createTask", "/getTaskResult", "/getBalance", "/reportCorrect", "/feedbackTask", "/test"] {
        for body in bodies {
            let sent = fixture.post(path, body.to_owned()).await;
            let sent: Value = serde_json::from_str(&sent).unwrap();
            assert_eq!(sent["errorCode"], "ERROR_BAD_REQUEST");
            assert_eq!(sent["errorId"], 110);
        }
        let sent = fixture.post(path, &b"{\"clientKey\":\"\xff\xfe\"}"[..]).await;
        assert!(sent.contains("ERROR_BAD_REQUEST"), "{sent}");
    }
    let marked = format!("\u{feff}{}", turnstile(KEY));
    assert!(
        fixture.post("/createTask", marked).await.contains("\"errorId\":0"),
        "a mark before it does no harm"
    );
}

/// Strict clients stop at a code that their service does not have.
#[tokio::test]
async fn a_host_that_is_not_allowed_has_a_code_of_the_dialect_and_the_true_reason() {
    let fixture = Fixture::open();
    let page = json!({"type": "TurnstileTaskProxyless", "websiteURL": "https://shop.example.org/", "websiteKey": "k"});
    let asked = json!({"clientKey": KEY, "task": page});
    for (dialect, number, code) in [
        ("2captcha", 5, "ERROR_PAGEURL"),
        ("anticaptcha", 32, "ERROR_RECAPTCHA_INVALID_DOMAIN"),
        ("capmonster", 1, "ERROR_DOMAIN_NOT_ALLOWED"),
        ("capsolver", 1, "ERROR_INVALID_TASK_DATA"),
    ] {
        let (id, sent, words) = response(&fixture, &format!("/{dialect}/createTask"), &asked).await;
        assert_eq!((id, sent.as_str()), (number, code));
        assert!(words.contains("`shop.example.org`") && words.contains("targets.allow"), "{words}");
    }
}

#[tokio::test]
async fn other_methods_and_other_names_are_refused_as_such() {
    let fixture = Fixture::open();
    for method in ["GET", "PUT", "DELETE", "HEAD", "OPTIONS", "PATCH"] {
        for path in ["/createTask", "/getTaskResult", "/getBalance", "/test"] {
            let asked = turnstile(KEY).to_string();
            let (status, kind, body) = fixture.exchange(method, path, None, asked).await;
            assert_eq!((status, kind.as_str()), (200, "application/json"));
            assert!(body.starts_with("{\"errorId\":14,\"errorCode\":\"ERROR_NO_SUCH_METHOD\""), "{body}");
        }
    }
    let other = fixture.ask("/getNoSuchThing", &json!({"clientKey": KEY})).await;
    assert_eq!((&other["errorId"], &other["errorCode"]), (&json!(14), &json!("ERROR_NO_SUCH_METHOD")));
    assert_eq!(fixture.provider.submits(), 0);
}

#[tokio::test]
async fn what_cannot_be_an_id_is_an_unknown_id() {
    let fixture = Fixture::open();
    let strange = [
        json!(null),
        json!(0),
        json!(-1),
        json!(1.5),
        json!(1e300),
        json!(9_007_199_254_740_993_u64),
        json!(u64::MAX),
        json!(""),
        json!("x"),
        json!("61138bb6-19fb-11ec-a9c8-0242ac110006"),
        json!([1]),
        json!({"a": 1}),
        json!(true),
        json!("9".repeat(5000)),
    ];
    for id in strange {
        for path in ["getTaskResult", "reportCorrect", "reportIncorrectImageCaptcha"] {
            let asked = json!({"clientKey": KEY, "taskId": id});
            let (number, code, _) = response(&fixture, &format!("/2captcha/{path}"), &asked).await;
            assert_eq!((number, code.as_str()), (16, "ERROR_NO_SUCH_CAPCHA_ID"), "{id}");
            let (number, code, _) = response(&fixture, &format!("/capsolver/{path}"), &asked).await;
            assert_eq!((number, code.as_str()), (1, "ERROR_TASKID_INVALID"), "{id}");
        }
    }
}

#[tokio::test]
async fn what_the_provider_refuses_is_answered_with_its_own_code() {
    let fixture = Fixture::open();
    let id = fixture.ask("/createTask", &turnstile(KEY)).await["taskId"].clone();
    fixture.refuse("ERROR_RECAPTCHA_INVALID_SITEKEY").await;
    let poll = json!({"clientKey": KEY, "taskId": id});
    let (number, code, _) = response(&fixture, "/anticaptcha/getTaskResult", &poll).await;
    assert_eq!((number, code.as_str()), (31, "ERROR_RECAPTCHA_INVALID_SITEKEY"));
    let (number, ..) = response(&fixture, "/capmonster/getTaskResult", &poll).await;
    assert_eq!(number, 1);
    let again = response(&fixture, "/createTask", &turnstile(KEY)).await;
    assert_eq!((again.0, again.1.as_str()), (31, "ERROR_RECAPTCHA_INVALID_SITEKEY"), "it is held back");
}

#[tokio::test]
async fn a_callback_address_that_is_none_is_refused_and_nothing_is_placed() {
    let fixture = Fixture::open();
    for address in [json!("not an address"), json!("ftp://example.com/"), json!(7), json!({"a": 1})] {
        let mut asked = turnstile(KEY);
        asked["callbackUrl"] = address;
        let (number, code, _) = response(&fixture, "/createTask", &asked).await;
        assert_eq!((number, code.as_str()), (110, "ERROR_BAD_PARAMETERS"));
    }
    assert_eq!(fixture.provider.submits(), 0);
}

#[tokio::test]
async fn a_name_as_long_as_a_book_is_not_repeated() {
    let fixture = Fixture::open();
    let asked = with_task(&json!({"type": "x".repeat(100_000), "websiteURL": "https://example.com/"}));
    let (_, _, words) = response(&fixture, "/createTask", &asked).await;
    assert!(words.len() < 1000);
}

#[tokio::test]
async fn what_is_missing_is_called_as_the_client_calls_it() {
    let fixture = Fixture::open();
    let asked = with_task(&json!({"type": "RecaptchaV2TaskProxyless", "websiteURL": "https://example.com/"}));
    let (_, _, words) = response(&fixture, "/createTask", &asked).await;
    assert!(words.contains("`websiteKey` is missing"), "{words}");
}
