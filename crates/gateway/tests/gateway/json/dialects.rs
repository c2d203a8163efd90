//! Tests of a whole task in each dialect, exact to the byte.

use super::scripted::{Fixture, KEY};
use crate::still_clock::NOW;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use quittance_lifecycle::Payload;
use quittance_protocol::json::{id_of_uuid, uuid_of};
use serde_json::{Value, json};

/// A task for a token. Equal tasks are one job.
pub(super) fn turnstile(key: &str) -> Value {
    json!({"clientKey": key, "reuse": "shared", "task": {
        "type": "TurnstileTaskProxyless", "websiteURL": "https://example.com/", "websiteKey": "k"}})
}

fn picture(key: &str) -> Value {
    let body = STANDARD.encode([b'p'; 200]);
    json!({"clientKey": key, "task": {"type": "ImageToTextTask", "body": body}})
}

fn result(id: &Value) -> Value {
    json!({"clientKey": KEY, "taskId": id})
}

#[tokio::test]
async fn a_token_in_the_dialects_of_2captcha_and_anticaptcha() {
    for prefix in ["", "/2captcha", "/anticaptcha"] {
        let fixture = Fixture::open();
        let created = fixture.post(&format!("{prefix}/createTask"), turnstile(KEY).to_string()).await;
        let id = serde_json::from_str::<Value>(&created).unwrap()["taskId"].as_u64().unwrap();
        assert_eq!(created, format!("{{\"errorId\":0,\"taskId\":{id}}}"));
        let poll = result(&json!(id)).to_string();
        let path = format!("{prefix}/getTaskResult");
        assert_eq!(fixture.post(&path, poll.clone()).await, "{\"errorId\":0,\"status\":\"processing\"}");
        fixture.solve(Payload::text("the-token")).await;
        let now = NOW.as_millis() / 1000;
        let ready = format!(
            "{{\"errorId\":0,\"status\":\"ready\",\"solution\":{{\"token\":\"the-token\",\"userAgent\":\"\"}},\"cost\":\"0.00299\",\
             \"ip\":\"0.0.0.0\",\"createTime\":{now},\"endTime\":{now},\"solveCount\":1}}"
        );
        for _ in 0..30 {
            assert_eq!(fixture.post(&path, poll.clone()).await, ready, "it can be read again and again");
        }
        let quoted = result(&json!(id.to_string())).to_string();
        assert_eq!(fixture.post(&path, quoted).await, ready, "some clients write the id as a text");
        assert_eq!(fixture.provider.polls.load(std::sync::atomic::Ordering::Relaxed), 0);
    }
}

#[tokio::test]
async fn a_token_in_the_dialect_of_capmonster() {
    let fixture = Fixture::open();
    let created = fixture.post("/capmonster/createTask", turnstile(KEY).to_string()).await;
    let id = serde_json::from_str::<Value>(&created).unwrap()["taskId"].as_u64().unwrap();
    assert_eq!(created, format!("{{\"errorId\":0,\"taskId\":{id}}}"));
    let poll = result(&json!(id)).to_string();
    let processing = fixture.post("/capmonster/getTaskResult", poll.clone()).await;
    assert_eq!(processing, "{\"errorId\":0,\"status\":\"processing\"}");
    fixture.solve(Payload::text("the-token")).await;
    let ready = fixture.post("/capmonster/getTaskResult", poll).await;
    assert_eq!(ready, "{\"errorId\":0,\"status\":\"ready\",\"solution\":{\"token\":\"the-token\"}}");
}

#[tokio::test]
async fn a_token_in_the_dialect_of_capsolver() {
    let fixture = Fixture::open();
    let created = fixture.ask("/capsolver/createTask", &turnstile(KEY)).await;
    let uuid = created["taskId"].as_str().unwrap().to_owned();
    assert!(id_of_uuid(&uuid).is_some());
    assert_eq!((&created["errorId"], &created["status"]), (&json!(0), &json!("idle")));
    let poll = result(&json!(uuid));
    let processing = fixture.post("/capsolver/getTaskResult", poll.to_string()).await;
    assert_eq!(processing, format!("{{\"errorId\":0,\"status\":\"processing\",\"taskId\":\"{uuid}\"}}"));
    fixture.solve(Payload::text("the-token")).await;
    let ready = fixture.post("/capsolver/getTaskResult", poll.to_string()).await;
    let expected = format!(
        "{{\"errorId\":0,\"status\":\"ready\",\"solution\":{{\"token\":\"the-token\",\"userAgent\":\"\"}},\"taskId\":\"{uuid}\"}}"
    );
    assert_eq!(ready, expected);
    // What is there already is in the answer to createTask, and nothing is bought.
    assert_eq!(fixture.post("/capsolver/createTask", turnstile(KEY).to_string()).await, expected);
    assert_eq!(fixture.provider.submits(), 1);
}

#[tokio::test]
async fn a_picture_answers_with_text_in_every_dialect_and_is_bought_once() {
    let fixture = Fixture::open();
    let mut ids = Vec::new();
    for dialect in ["2captcha", "anticaptcha", "capmonster", "capsolver"] {
        let created = fixture.ask(&format!("/{dialect}/createTask"), &picture(KEY)).await;
        ids.push((dialect, created["taskId"].clone()));
    }
    fixture.solve(Payload::text("w9h5k")).await;
    for (dialect, id) in ids {
        let ready = fixture.ask(&format!("/{dialect}/getTaskResult"), &result(&id)).await;
        assert_eq!((&ready["status"], &ready["solution"]["text"]), (&json!("ready"), &json!("w9h5k")));
    }
    assert_eq!(fixture.provider.submits(), 1);
}

#[tokio::test]
async fn an_id_of_one_dialect_can_be_read_in_any_other() {
    let fixture = Fixture::open();
    let id = fixture.ask("/createTask", &turnstile(KEY)).await["taskId"].as_u64().unwrap();
    fixture.solve(Payload::text("t")).await;
    for id in [json!(id), json!(id.to_string()), json!(uuid_of(id))] {
        for dialect in ["2captcha", "anticaptcha", "capmonster", "capsolver"] {
            let ready = fixture.ask(&format!("/{dialect}/getTaskResult"), &result(&id)).await;
            assert_eq!(ready["status"], "ready", "{dialect} {id}");
        }
    }
}

#[tokio::test]
async fn a_client_that_names_no_dialect_is_known_by_what_only_its_dialect_sends() {
    let fixture = Fixture::open();
    let page = json!({"websiteURL": "https://example.com/", "websiteKey": "k"});
    let is_cap_solver = |created: &Value| created["status"] == "idle" && created["taskId"].is_string();
    for name in ["AntiTurnstileTaskProxyLess", "ReCaptchaV2TaskProxyLess", "ReCaptchaV3Task"] {
        let mut task = page.clone();
        task["type"] = json!(name);
        let created = fixture.ask("/createTask", &json!({"clientKey": KEY, "task": task})).await;
        assert!(is_cap_solver(&created), "{name}: {created}");
    }
    assert!(is_cap_solver(&fixture.ask("/createTask", &turnstile("CAP-123")).await), "by the key");
    let of_agent = async |agent: &'static str| {
        let (_, _, body) =
            fixture.exchange("POST", "/createTask", Some(agent), picture(KEY).to_string()).await;
        serde_json::from_str::<Value>(&body).unwrap()
    };
    assert!(
        is_cap_solver(&of_agent("capsolver PythonBindings").await),
        "by what its own client says of itself"
    );
    assert!(of_agent("python-requests/2.34").await["taskId"].is_u64());
    let balance = json!({"clientKey": "no", "taskId": "61138bb6-19fb-11ec-a9c8-0242ac110006"});
    assert_eq!(
        fixture.ask("/getTaskResult", &balance).await["errorCode"],
        "ERROR_TASKID_INVALID",
        "by the id"
    );
    let agent = Some("Zennolab.CapMonsterCloud.Client.JS/2.6.1");
    let (_, _, body) = fixture.exchange("POST", "/getTaskResult", agent, balance.to_string()).await;
    assert!(body.contains("TASKID_INVALID"), "what is certain comes before what is likely: {body}");
    let unknown = json!({"clientKey": KEY, "taskId": 7}).to_string();
    let (_, _, body) = fixture.exchange("POST", "/getTaskResult", agent, unknown).await;
    assert!(body.starts_with("{\"errorId\":1,\"errorCode\":\"ERROR_NO_SUCH_CAPCHA_ID\""), "{body}");
}

#[tokio::test]
async fn a_balance_is_read_seldom_and_written_as_each_dialect_writes_it() {
    let fixture = Fixture::open();
    let asked = json!({"clientKey": KEY}).to_string();
    for dialect in ["2captcha", "anticaptcha", "capmonster"] {
        let response = fixture.post(&format!("/{dialect}/getBalance"), asked.clone()).await;
        assert_eq!(response, "{\"errorId\":0,\"balance\":3.5}", "{dialect}");
    }
    let response = fixture.post("/capsolver/getBalance", asked).await;
    assert_eq!(response, "{\"errorId\":0,\"balance\":3.5,\"packages\":[]}");
    assert_eq!(fixture.provider.accounts.load(std::sync::atomic::Ordering::Relaxed), 1);
}

#[tokio::test]
async fn a_balance_that_is_not_known_is_an_error_and_never_zero() {
    let fixture = Fixture::open();
    fixture.provider.hides_balance.store(true, std::sync::atomic::Ordering::Relaxed);
    for dialect in ["2captcha", "anticaptcha", "capmonster", "capsolver"] {
        let response =
            fixture.post(&format!("/{dialect}/getBalance"), json!({"clientKey": KEY}).to_string()).await;
        let code =
            if dialect == "capsolver" { "ERROR_SERVICE_UNAVALIABLE" } else { "ERROR_NO_SLOT_AVAILABLE" };
        assert!(response.contains(code) && response.contains("not known"), "{dialect}: {response}");
        assert!(!response.contains("\"balance\""), "{response}");
    }
}

#[tokio::test]
async fn a_report_is_passed_on_once_and_answered_from_the_record() {
    let variants = [
        ("/reportCorrect", true),
        ("/2captcha/reportIncorrect", false),
        ("/anticaptcha/reportCorrectRecaptcha", true),
        ("/anticaptcha/reportIncorrectRecaptcha", false),
        ("/anticaptcha/reportIncorrectImageCaptcha", false),
        ("/anticaptcha/reportIncorrectHcaptcha", false),
        ("/capmonster/reportIncorrectTokenCaptcha", false),
    ];
    for (path, is_good) in variants {
        let fixture = Fixture::open();
        let id = fixture.ask("/createTask", &turnstile(KEY)).await["taskId"].clone();
        let early = fixture.ask(path, &result(&id)).await;
        assert_eq!(early["errorCode"], "ERROR_REPORT_NOT_RECORDED", "there is nothing to report on yet");
        fixture.solve(Payload::text("t")).await;
        for _ in 0..3 {
            let sent = fixture.post(path, result(&id).to_string()).await;
            assert_eq!(sent, "{\"errorId\":0,\"status\":\"success\"}", "{path}");
        }
        let opposite = if is_good { "/reportIncorrect" } else { "/reportCorrect" };
        assert_eq!(fixture.ask(opposite, &result(&id)).await["errorCode"], "ERROR_DUPLICATE_REPORT");
        while fixture.provider.reports.lock().unwrap().is_empty() {
            tokio::task::yield_now().await;
        }
        assert_eq!(*fixture.provider.reports.lock().unwrap(), [is_good], "{path}");
    }
}

#[tokio::test]
async fn feedback_says_in_its_body_whether_the_answer_was_good() {
    for (invalid, is_good) in [(true, false), (false, true)] {
        let fixture = Fixture::open();
        let id = fixture.ask("/capsolver/createTask", &turnstile(KEY)).await["taskId"].clone();
        fixture.solve(Payload::text("t")).await;
        let result = json!({"invalid": invalid, "code": 1001, "message": "no"});
        let feedback = json!({"clientKey": KEY, "appId": "x", "taskId": id, "result": result});
        let sent = fixture.post("/capsolver/feedbackTask", feedback.to_string()).await;
        assert_eq!(sent, "{\"errorId\":0,\"message\":\"okay\"}");
        while fixture.provider.reports.lock().unwrap().is_empty() {
            tokio::task::yield_now().await;
        }
        assert_eq!(*fixture.provider.reports.lock().unwrap(), [is_good]);
        let mute = json!({"clientKey": KEY, "taskId": id});
        assert_eq!(
            fixture.ask("/capsolver/feedbackTask", &mute).await["errorCode"],
            "ERROR_INVALID_TASK_DATA"
        );
    }
}

#[tokio::test]
async fn the_echo_returns_the_body() {
    let fixture = Fixture::open();
    let sent = json!({"clientKey": KEY, "task": {"type": "X", "deep": [1, null, "é"]}});
    assert_eq!(fixture.ask("/test", &sent).await, sent);
}

#[tokio::test]
async fn capsolver_recognition_is_answered_in_create_task_itself() {
    let vision = json!({"clientKey": KEY, "task": {"type": "VisionEngine", "module": "slider_1", "image": "aW1hZ2U="}});
    for (payload, body) in [("w9h5k", picture(KEY)), ("seen", vision)] {
        let fixture = Fixture::open();
        let (created, ()) =
            tokio::join!(fixture.ask("/capsolver/createTask", &body), fixture.solve(Payload::text(payload)));
        assert_eq!((&created["errorId"], &created["status"]), (&json!(0), &json!("ready")), "{created}");
        let solution = created["solution"].as_object().unwrap();
        assert!(solution.values().any(|value| value == payload), "{created}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_recognition_that_takes_too_long_is_given_an_id_and_others_are_never_held() {
    let fixture = Fixture::open();
    let created = fixture.ask("/capsolver/createTask", &picture(KEY)).await;
    assert_eq!((&created["status"], created["taskId"].is_string()), (&json!("idle"), true));
    fixture.solve(Payload::text("late")).await;
    let read = fixture.ask("/capsolver/getTaskResult", &result(&created["taskId"])).await;
    assert_eq!(read["solution"]["text"], "late");
    let others = [("/2captcha", picture(KEY)), ("/capsolver", turnstile(KEY))];
    for (prefix, body) in others {
        let created = fixture.ask(&format!("{prefix}/createTask"), &body).await;
        assert_ne!(created["taskId"], Value::Null, "{prefix}: {created}");
    }
}

#[tokio::test]
async fn a_client_that_lost_its_path_prefix_is_known_by_its_app_id_and_its_module() {
    let fixture = Fixture::open();
    let mut with_app = turnstile(KEY);
    with_app["appId"] = json!("A1");
    let with_module = json!({"clientKey": KEY, "task": {"type": "ImageToTextTask", "module": "common",
        "body": STANDARD.encode([b'm'; 200])}});
    for body in [with_app, with_module] {
        let created = fixture.ask("/createTask", &body).await;
        assert!(created["taskId"].is_string() && created["status"] == "idle", "{created}");
    }
}

#[tokio::test]
async fn names_of_the_envelope_are_read_whatever_their_case() {
    let fixture = Fixture::open();
    let task =
        json!({"type": "TurnstileTaskProxyless", "websiteURL": "https://example.com/", "websiteKey": "k"});
    let created = fixture.ask("/createTask", &json!({"clientkey": KEY, "Task": task})).await;
    assert_eq!(created["errorId"], 0, "{created}");
    fixture.solve(Payload::text("t")).await;
    let read = fixture.ask("/getTaskResult", &json!({"CLIENTKEY": KEY, "taskid": created["taskId"]})).await;
    assert_eq!(read["status"], "ready", "{read}");
}

#[tokio::test]
async fn a_turnstile_token_names_its_browser_where_clients_insist_on_it() {
    let mut with_agent = turnstile(KEY);
    with_agent["task"]["userAgent"] = json!("Mozilla/5.0 (order)");
    let response = Payload {
        extras: [("user_agent".to_owned(), "Mozilla/5.0 (solver)".to_owned())].into(),
        ..Payload::text("t")
    };
    for (body, payload, expected) in [
        (turnstile(KEY), Payload::text("t"), ""),
        (with_agent.clone(), Payload::text("t"), "Mozilla/5.0 (order)"),
        (with_agent, response, "Mozilla/5.0 (solver)"),
    ] {
        let fixture = Fixture::open();
        let id = fixture.ask("/createTask", &body).await["taskId"].clone();
        fixture.solve(payload).await;
        for prefix in ["", "/anticaptcha", "/capsolver"] {
            let read = fixture.ask(&format!("{prefix}/getTaskResult"), &result(&id)).await;
            assert_eq!(read["solution"]["userAgent"], expected, "{prefix}: {read}");
        }
    }
}

#[tokio::test]
async fn statistics_are_empty_and_well_formed_or_no_such_method() {
    let fixture = Fixture::open();
    let key = json!({"clientKey": KEY});
    for prefix in ["", "/anticaptcha"] {
        let spending = fixture.ask(&format!("{prefix}/getSpendingStats"), &key).await;
        assert_eq!((&spending["errorId"], &spending["data"]), (&json!(0), &json!([])));
        assert_eq!(fixture.ask(&format!("{prefix}/getAppStats"), &key).await["chartData"], json!([]));
        let queue = fixture.ask(&format!("{prefix}/getQueueStats"), &json!({"queueId": 1})).await;
        assert_eq!(
            (&queue["errorId"], &queue["waiting"]),
            (&json!(0), &json!(0)),
            "clients send no key: {queue}"
        );
    }
    for (path, code) in [
        ("/capsolver/getAppStats", "ERROR_BAD_REQUEST"),
        ("/capmonster/getQueueStats", "ERROR_NO_SUCH_METHOD"),
        ("/anticaptcha/pushAntiGateVariable", "ERROR_NO_SUCH_METHOD"),
    ] {
        assert_eq!(fixture.ask(path, &key).await["errorCode"], code, "{path}");
    }
}
