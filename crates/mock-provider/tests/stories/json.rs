//! Tests of the JSON protocol in the dialects of four providers, and of the one ledger behind both protocols.

use crate::wire::{HttpReply, MockClient, PingbackListener, TURNSTILE, png, quick, request};
use base64::Engine;
use quittance_mock_provider::{
    AccountChange, DEMO_KEY, FaultAction, LedgerValue, MockClassicDialect, MockReport, RulePlace, ScriptRule,
};
use serde_json::{Value, json};
use std::io;

pub(crate) const DIALECTS: [&str; 4] = ["2captcha", "anticaptcha", "capmonster", "capsolver"];
const SITE: &str = "6LeIxAcTAAAAAJcZVRqyHh71UMIEGNQ_MXjiZKhI";

pub(crate) async fn post(client: &MockClient, path: &str, body: &Value) -> io::Result<HttpReply> {
    client.raw(&request("POST", path, Some("application/json"), body.to_string().as_bytes())).await
}

/// Posts the body with the demo key.
pub(crate) async fn ask(client: &MockClient, path: &str, mut body: Value) -> Value {
    body["clientKey"] = json!(DEMO_KEY);
    let reply = post(client, path, &body).await.expect("an answer");
    assert_eq!(reply.header("content-type"), Some("application/json; charset=UTF-8"), "{path}");
    serde_json::from_slice(&reply.body).unwrap_or_else(|why| panic!("{why}: {}", reply.text()))
}

pub(crate) fn turnstile(dialect: &str) -> Value {
    let name = if dialect == "capsolver" { "AntiTurnstileTaskProxyLess" } else { "TurnstileTaskProxyless" };
    json!({"type": name, "websiteURL": "https://shop.example.com/", "websiteKey": "0x4AAA"})
}

fn v2(dialect: &str) -> Value {
    let name = if dialect == "capsolver" { "ReCaptchaV2TaskProxyLess" } else { "RecaptchaV2TaskProxyless" };
    json!({"type": name, "websiteURL": "https://shop.example.com/", "websiteKey": SITE})
}

fn picture(number: u8) -> Value {
    json!({"type": "ImageToTextTask", "body": base64::engine::general_purpose::STANDARD.encode(png(number))})
}

async fn create(client: &MockClient, dialect: &str, task: Value) -> Value {
    let json_reply = ask(client, &format!("/{dialect}/createTask"), json!({ "task": task })).await;
    assert_eq!(json_reply["errorId"], 0, "{json_reply}");
    json_reply["taskId"].clone()
}

pub(crate) async fn result(client: &MockClient, dialect: &str, id: &Value) -> Value {
    ask(client, &format!("/{dialect}/getTaskResult"), json!({ "taskId": id })).await
}

/// The id as the ledger writes it.
pub(crate) fn spelled(id: &Value) -> String {
    id.as_str().map_or_else(|| id.to_string(), str::to_owned)
}

pub(crate) async fn finished(client: &MockClient, dialect: &str, task: Value) -> Value {
    let id = create(client, dialect, task).await;
    let name = spelled(&id);
    client.until(|task| task.id == name && (task.answer.is_some() || task.code.is_some())).await;
    id
}

pub(crate) fn script(client: &MockClient, place: RulePlace, action: FaultAction) {
    client.mock.script(vec![ScriptRule::always(place, action)]).expect("a good script");
}

#[tokio::test]
async fn a_task_is_taken_waited_for_and_read_in_every_dialect() {
    for dialect in DIALECTS {
        let client = quick(MockClassicDialect::TwoCaptcha).await;
        client
            .mock
            .script(vec![ScriptRule::nth(RulePlace::Submit, 1, FaultAction::SolveMs(3_600_000))])
            .expect("a good script");
        let open = create(&client, dialect, v2(dialect)).await;
        assert_eq!(open.is_u64(), dialect != "capsolver", "{open}");
        let first = result(&client, dialect, &open).await;
        let second = result(&client, dialect, &open).await;
        let idle = if dialect == "capsolver" { "idle" } else { "processing" };
        assert_eq!((&first["status"], &second["status"]), (&json!(idle), &json!("processing")));
        let done = finished(&client, dialect, v2(dialect)).await;
        let ready = result(&client, dialect, &done).await;
        let entry = client.entry(&spelled(&done));
        let answer = entry.answer.expect("it is solved");
        assert_eq!((&ready["status"], &ready["solution"]["gRecaptchaResponse"]), (&json!("ready"), &answer));
        assert_eq!(ready.get("taskId").is_some(), dialect == "capsolver", "{ready}");
        assert_eq!(ready.get("cost").is_some(), matches!(dialect, "2captcha" | "anticaptcha"), "{ready}");
        assert_eq!((entry.reads, entry.polls, entry.delivered, entry.reply_delivered), (1, 1, true, true));
        assert_eq!((entry.method.as_str(), entry.protocol.as_str()), ("userrecaptcha", dialect));
        assert_eq!(entry.task_type.as_deref(), v2(dialect)["type"].as_str());
        assert_eq!(entry.params["googlekey"], LedgerValue::Text(SITE.to_owned()));
        assert_eq!(entry.params["pageurl"], LedgerValue::Text("https://shop.example.com/".to_owned()));
    }
}

#[tokio::test]
async fn two_captcha_literally_with_and_without_its_name_in_the_path() {
    let client = quick(MockClassicDialect::TwoCaptcha).await;
    let json_reply =
        ask(&client, "/createTask", json!({ "task": turnstile(""), "softId": 7, "languagePool": "en" }))
            .await;
    let id = client.mock.ledger().tasks[0].id.parse::<u64>().expect("decimal");
    assert!(id > 1 << 32);
    assert_eq!(json_reply, json!({"errorId": 0, "taskId": id}));
    client.until(|task| task.answer.is_some()).await;
    let json_reply = ask(&client, "/2captcha/getTaskResult", json!({ "taskId": id })).await;
    let entry = client.entry(&id.to_string());
    assert_eq!(json_reply["cost"], "0.00299");
    assert_eq!(json_reply["solution"]["token"], entry.answer.expect("it is solved"));
    assert!(json_reply["solution"]["userAgent"].is_string() && json_reply["ip"].is_string());
    assert_eq!(json_reply["createTime"], entry.accepted_at_ms / 1_000);
    assert_eq!(ask(&client, "/getBalance", json!({})).await, json!({"errorId": 0, "balance": 9.99701}));
    let refused =
        post(&client, "/getBalance", &json!({"clientKey": "x".repeat(32)})).await.expect("an answer");
    assert_eq!(refused.status, 200);
    let refused: Value = serde_json::from_slice(&refused.body).expect("JSON");
    assert_eq!((&refused["errorId"], &refused["errorCode"]), (&json!(1), &json!("ERROR_KEY_DOES_NOT_EXIST")));
    assert!(refused["errorDescription"].is_string());
}

#[tokio::test]
async fn both_protocols_are_one_world() {
    let client = quick(MockClassicDialect::TwoCaptcha).await;
    let classic = client.finished(TURNSTILE).await;
    let modern = finished(&client, "2captcha", turnstile("2captcha")).await;
    let json_reply = result(&client, "2captcha", &json!(classic.parse::<u64>().expect("decimal"))).await;
    assert_eq!(json_reply["solution"]["token"], client.entry(&classic).answer.expect("it is solved"));
    let answer = client.entry(&modern.to_string()).answer.expect("it is solved");
    assert_eq!(
        client.tells(&format!("action=get&id={modern}")).await,
        format!("OK|{}", answer.as_str().expect("a token"))
    );
    assert_eq!(client.tells("action=getbalance").await, "9.99402");
    let (one, other) = (client.entry(&classic), client.entry(&modern.to_string()));
    assert_eq!((one.method, one.params, one.price_micros), (other.method, other.params, other.price_micros));
    assert_eq!((one.protocol.as_str(), other.protocol.as_str()), ("classic", "2captcha"));
    ask(&client, "/getBalance", json!({})).await;
    let totals = client.mock.totals();
    assert_eq!((totals.accepted, totals.delivered, totals.paid_micros), (2, 2, 5_980));
    assert_eq!((totals.actions["get"], totals.actions["getbalance"]), (2, 2));
    assert_eq!((totals.requests["createTask"], totals.requests["getTaskResult"]), (1, 1));
    assert_eq!((totals.requests["in.php"], totals.requests["res.php"]), (1, 2));
}

#[tokio::test]
async fn an_error_is_reported_by_name_and_number() {
    let client = quick(MockClassicDialect::TwoCaptcha).await;
    let no_key = json!({"type": "TurnstileTaskProxyless", "websiteURL": "https://a.test/"});
    let no_proxy = json!({"type": "TurnstileTask", "websiteURL": "https://a.test/", "websiteKey": "k"});
    let create = |task: Value| json!({ "task": task });
    for (path, body, number, code) in [
        ("/createTask", json!({}), 22, "ERROR_TASK_ABSENT"),
        ("/createTask", create(json!({"type": "TeaLeavesTask"})), 23, "ERROR_TASK_NOT_SUPPORTED"),
        ("/createTask", create(v2("capsolver")), 23, "ERROR_TASK_NOT_SUPPORTED"),
        ("/createTask", create(no_key.clone()), 110, "ERROR_BAD_PARAMETERS"),
        ("/createTask", create(no_proxy.clone()), 110, "ERROR_BAD_PARAMETERS"),
        ("/createTask", create(json!({"type": "ImageToTextTask"})), 3, "ERROR_ZERO_CAPTCHA_FILESIZE"),
        ("/getTaskResult", json!({"taskId": 77}), 16, "ERROR_NO_SUCH_CAPCHA_ID"),
        ("/getTaskResult", json!({"taskId": "77"}), 16, "ERROR_NO_SUCH_CAPCHA_ID"),
        ("/getTaskResult", json!({}), 16, "ERROR_NO_SUCH_CAPCHA_ID"),
        ("/2captcha/dance", json!({}), 14, "ERROR_NO_SUCH_METHOD"),
        ("/anticaptcha/createTask", create(no_key.clone()), 24, "ERROR_INCORRECT_SESSION_DATA"),
        ("/capmonster/getTaskResult", json!({"taskId": 77}), 1, "ERROR_NO_SUCH_CAPCHA_ID"),
        ("/capsolver/getTaskResult", json!({"taskId": 77}), 1, "ERROR_TASKID_INVALID"),
        ("/capsolver/createTask", create(v2("2captcha")), 1, "ERROR_TASK_NOT_SUPPORTED"),
        ("/capsolver/feedbackTask", json!({"taskId": "x"}), 1, "ERROR_INVALID_TASK_DATA"),
    ] {
        let json_reply = ask(&client, path, body.clone()).await;
        assert_eq!(
            (&json_reply["errorId"], &json_reply["errorCode"]),
            (&json!(number), &json!(code)),
            "{path} {body}"
        );
    }
    assert_eq!(
        ask(&client, "/capmonster/createTask", create(no_proxy)).await["errorId"],
        0,
        "one name for both"
    );
    let broken = client.post("/createTask", "clientKey=x").await.expect("an answer");
    assert!(broken.text().contains("ERROR_BAD_PARAMETERS"));
    assert_eq!(client.get("/createTask").await.expect("an answer").status, 405);
    assert_eq!(client.get("/dance").await.expect("an answer").status, 404);
    assert_eq!(client.mock.totals().accepted, 1);
    client.mock.change_account(&AccountChange {
        name: "demo".to_owned(),
        balance_micros: Some(0),
        ..AccountChange::default()
    });
    let json_reply = ask(&client, "/createTask", create(turnstile(""))).await;
    assert_eq!(
        (&json_reply["errorId"], &json_reply["errorCode"]),
        (&json!(10), &json!("ERROR_ZERO_BALANCE"))
    );
}

#[tokio::test]
async fn only_capsolver_puts_errors_into_the_status() {
    let client = quick(MockClassicDialect::TwoCaptcha).await;
    for dialect in DIALECTS {
        let path = format!("/{dialect}/createTask");
        let status = async |body: Value| post(&client, &path, &body).await.expect("an answer").status;
        let is_capsolver = dialect == "capsolver";
        let stranger = status(json!({"clientKey": "?", "task": turnstile(dialect)})).await;
        assert_eq!(stranger, if is_capsolver { 401 } else { 200 }, "{dialect}");
        let absent = status(json!({ "clientKey": DEMO_KEY })).await;
        assert_eq!(absent, if is_capsolver { 400 } else { 200 }, "{dialect}");
        assert_eq!(status(json!({"clientKey": DEMO_KEY, "task": turnstile(dialect)})).await, 200);
    }
}

#[tokio::test]
async fn capsolver_reads_a_picture_in_the_same_breath_and_the_others_do_not() {
    let client = quick(MockClassicDialect::TwoCaptcha).await;
    let json_reply = ask(&client, "/capsolver/createTask", json!({ "task": picture(1) })).await;
    let entry = client.mock.ledger().tasks[0].clone();
    assert_eq!(json_reply["solution"]["text"], entry.answer.clone().expect("it is solved"));
    assert_eq!((&json_reply["status"], &json_reply["taskId"]), (&json!("ready"), &json!(entry.id)));
    assert!(entry.delivered && entry.reply_delivered && entry.reads == 1);
    for dialect in ["2captcha", "anticaptcha", "capmonster"] {
        let id = finished(&client, dialect, picture(1)).await;
        let ready = result(&client, dialect, &id).await;
        assert_eq!(
            Some(&ready["solution"]["text"]),
            entry.answer.as_ref(),
            "the same picture, the same answer"
        );
    }
    script(&client, RulePlace::Submit, FaultAction::Unsolvable);
    let json_reply = ask(&client, "/capsolver/createTask", json!({ "task": picture(2) })).await;
    assert_eq!(
        (&json_reply["status"], &json_reply["errorCode"]),
        (&json!("failed"), &json!("ERROR_CAPTCHA_UNSOLVABLE"))
    );
}

#[tokio::test]
async fn a_picture_in_a_wrapping_is_taken_by_one_of_them_only() {
    let client = quick(MockClassicDialect::TwoCaptcha).await;
    let mut task = picture(1);
    task["body"] = json!(format!("data:image/png;base64,{}", task["body"].as_str().expect("text")));
    for (dialect, number) in [("2captcha", 0), ("anticaptcha", 15), ("capmonster", 1), ("capsolver", 1)] {
        let json_reply = ask(&client, &format!("/{dialect}/createTask"), json!({ "task": task })).await;
        assert_eq!(json_reply["errorId"], number, "{dialect}: {json_reply}");
    }
}

#[tokio::test]
async fn solutions_have_the_names_of_their_kind() {
    let client = quick(MockClassicDialect::CaptchaAi).await;
    let page = "https://a.example.com/";
    let image = |name: &str| {
        let mut task = picture(3);
        task["type"] = json!(name);
        task["comment"] = json!("cars");
        task
    };
    for (task, name) in [
        (image("GridTask"), "/click/0"),
        (image("CoordinatesTask"), "/coordinates/0/x"),
        (image("DrawAroundTask"), "/canvas/0/0/y"),
        (image("RotateTask"), "/rotate"),
        (image("BoundingBoxTask"), "/bounding_boxes/0/xMin"),
        (json!({"type": "TextCaptchaTask", "comment": "two and two"}), "/text"),
        (
            json!({"type": "HCaptchaTaskProxyless", "websiteURL": page, "websiteKey": "h"}),
            "/gRecaptchaResponse",
        ),
        (
            json!({"type": "RecaptchaV3TaskProxyless", "websiteURL": page, "websiteKey": SITE, "minScore": 0.3}),
            "/gRecaptchaResponse",
        ),
        (
            json!({"type": "GeeTestTaskProxyless", "websiteURL": page, "gt": "g", "challenge": "c"}),
            "/validate",
        ),
        (
            json!({"type": "GeeTestTaskProxyless", "websiteURL": page, "version": 4,
                "initParameters": {"captcha_id": "i"}}),
            "/pass_token",
        ),
        (json!({"type": "FunCaptchaTaskProxyless", "websiteURL": page, "websitePublicKey": "p"}), "/token"),
    ] {
        let id = finished(&client, "2captcha", task.clone()).await;
        let ready = result(&client, "2captcha", &id).await;
        assert!(ready["solution"].pointer(name).is_some_and(|value| !value.is_null()), "{task}: {ready}");
    }
}

#[tokio::test]
async fn the_password_of_a_proxy_stays_out_of_the_ledger() {
    let client = quick(MockClassicDialect::TwoCaptcha).await;
    let task = json!({"type": "TurnstileTask", "websiteURL": "https://a.test/", "websiteKey": "k",
        "proxyType": "http", "proxyAddress": "1.2.3.4", "proxyPort": 8080, "proxyLogin": "user",
        "proxyPassword": "secret"});
    create(&client, "anticaptcha", task).await;
    let LedgerValue::Text(proxy) = client.mock.ledger().tasks[0].params["proxy"].clone() else {
        panic!("no text")
    };
    assert!(proxy.ends_with("@1.2.3.4:8080") && !proxy.contains("secret"), "{proxy}");
}

#[tokio::test]
async fn reports_are_counted_for_each_provider() {
    let client = quick(MockClassicDialect::TwoCaptcha).await;
    let report = async |path: &str, id: &Value| ask(&client, path, json!({ "taskId": id })).await;
    let success = json!({"errorId": 0, "status": "success"});
    let (good, bad) =
        (finished(&client, "2captcha", v2("")).await, finished(&client, "2captcha", turnstile("")).await);
    assert_eq!(report("/reportCorrect", &good).await, success);
    assert_eq!(report("/reportIncorrect", &bad).await, success);
    assert_eq!(report("/reportIncorrect", &bad).await["errorCode"], "ERROR_DUPLICATE_REPORT");
    let (good, bad) = (client.entry(&good.to_string()), client.entry(&bad.to_string()));
    assert_eq!((good.reported, good.reports), (Some(MockReport::Good), 1));
    assert_eq!((bad.reported, bad.reports, bad.charged), (Some(MockReport::Bad), 2, false));

    let token = finished(&client, "anticaptcha", v2("")).await;
    let json_reply = report("/anticaptcha/reportIncorrectImageCaptcha", &token).await;
    assert_eq!(json_reply["errorCode"], "ERROR_NO_SUCH_CAPCHA_ID", "it is no picture");
    assert_eq!(report("/anticaptcha/reportIncorrectHcaptcha", &token).await["errorId"], 16);
    assert_eq!(report("/anticaptcha/reportCorrectRecaptcha", &token).await, success);
    let token = finished(&client, "capmonster", turnstile("")).await;
    assert_eq!(report("/capmonster/reportIncorrectTokenCaptcha", &token).await, success);
    let token = finished(&client, "capsolver", turnstile("capsolver")).await;
    let feedback = json!({"taskId": token, "result": {"invalid": true}});
    assert_eq!(ask(&client, "/capsolver/feedbackTask", feedback).await["errorId"], 0);
    assert_eq!(client.entry(&spelled(&token)).reported, Some(MockReport::Bad));
    let totals = client.mock.totals();
    assert_eq!((totals.reported_good, totals.reported_bad), (2, 3));
    assert_eq!((totals.actions["reportgood"], totals.actions["reportbad"]), (2, 6));
}

#[tokio::test]
async fn a_callback_brings_what_getting_the_result_would() {
    for dialect in DIALECTS {
        let (client, mut listener) =
            (quick(MockClassicDialect::CaptchaAi).await, PingbackListener::open(200).await);
        let url = format!("{}/cb?a=1&b=2", listener.url);
        let task_request = json!({"task": turnstile(dialect), "callbackUrl": url});
        let id =
            ask(&client, &format!("/{dialect}/createTask"), task_request.clone()).await["taskId"].clone();
        let received = listener.next().await;
        assert_eq!((received.verb.as_str(), received.target.as_str()), ("POST", "/cb?a=1&b=2"));
        let callback: Value = serde_json::from_str(&received.body).expect("JSON");
        client.until(|task| task.pingbacks_acked == 1 && task.delivered).await;
        let mut expected = result(&client, dialect, &id).await;
        expected["taskId"] = id.clone();
        assert_eq!(callback, expected);

        script(&client, RulePlace::Submit, FaultAction::Unsolvable);
        ask(&client, &format!("/{dialect}/createTask"), task_request).await;
        let callback: Value = serde_json::from_str(&listener.next().await.body).expect("JSON");
        assert_eq!(callback["errorCode"], "ERROR_CAPTCHA_UNSOLVABLE");
        assert!(callback["errorId"] != 0 && callback["taskId"] != id && !callback["taskId"].is_null());
    }
}

#[tokio::test]
async fn strangers_forge_callbacks_too() {
    let (client, mut listener) =
        (quick(MockClassicDialect::TwoCaptcha).await, PingbackListener::open(200).await);
    script(&client, RulePlace::Pingback, FaultAction::Forged);
    let task_request = json!({"task": turnstile(""), "callbackUrl": format!("{}/cb/aaaa", listener.url)});
    let id = ask(&client, "/createTask", task_request).await["taskId"].clone();
    let mut forged = 0;
    for _ in 0..3 {
        let received = listener.next().await;
        let callback: Value = serde_json::from_str(&received.body).expect("JSON");
        let is_forged = callback["solution"]["token"].as_str().expect("a token").starts_with("sim-forged");
        assert_eq!(is_forged, received.target != "/cb/aaaa");
        assert!(is_forged || callback["taskId"] == id);
        forged += u8::from(is_forged);
    }
    assert_eq!(forged, 2);
}

#[tokio::test]
async fn a_key_that_wants_no_cached_token_is_understood_by_capmonster_alone() {
    let client = quick(MockClassicDialect::TwoCaptcha).await;
    for (dialect, is_known) in DIALECTS.into_iter().zip([false, false, true, false]) {
        let body = json!({"clientKey": format!("{DEMO_KEY}__nocache")});
        let reply = post(&client, &format!("/{dialect}/getBalance"), &body).await.expect("an answer");
        assert_eq!(reply.text().contains("balance"), is_known, "{dialect}: {}", reply.text());
    }
}
