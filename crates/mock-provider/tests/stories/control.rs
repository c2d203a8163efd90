//! Tests of the control API.

use crate::wire::{HttpReply, MockClient, TURNSTILE, open, quick, request};
use quittance_mock_provider::{
    DEMO_KEY, FaultAction, Faults, Ledger, MockClassicDialect, MockKey, MockProvider, MockState, RulePlace,
    ScriptRule, Settings,
};
use serde_json::{Value, json};

async fn put(client: &MockClient, path: &str, body: &Value) -> HttpReply {
    let raw = request("PUT", path, Some("application/json"), body.to_string().as_bytes());
    client.raw(&raw).await.expect("an answer")
}

async fn read<T: serde::de::DeserializeOwned>(client: &MockClient, path: &str) -> T {
    let reply = client.get(path).await.expect("an answer");
    assert_eq!(reply.header("content-type"), Some("application/json"));
    serde_json::from_slice(&reply.body).unwrap_or_else(|why| panic!("{why}: {}", reply.text()))
}

#[tokio::test]
async fn the_ledger_over_http_is_the_ledger_and_holds_no_key() {
    let client = quick(MockClassicDialect::TwoCaptcha).await;
    let id = client.finished(&format!("{TURNSTILE}&soft_id=1&json=0")).await;
    client.tells(&format!("action=get&id={id}")).await;
    let reply = client.get("/mock/ledger").await.expect("an answer");
    assert!(!reply.text().contains(DEMO_KEY));
    let ledger: Ledger = serde_json::from_slice(&reply.body).expect("a ledger");
    assert_eq!(ledger.tasks, client.mock.ledger().tasks);
    let value: Value = serde_json::from_slice(&reply.body).expect("JSON");
    let task = &value["tasks"][0];
    assert_eq!(task["params"], json!({"sitekey": "0x4AAA", "pageurl": "https://shop.example.com/"}));
    assert_eq!(
        (&task["account"], &task["state"], &task["delivered"]),
        (&json!("demo"), &json!("solved"), &json!(true))
    );
    assert_eq!(value["totals"]["requests"]["in.php"], 1);
    let summary: Ledger = read(&client, "/mock/ledger?summary=1").await;
    assert!(summary.tasks.is_empty() && summary.totals.accepted == 1);
    let later: Ledger =
        read(&client, &format!("/mock/ledger?since={}", ledger.tasks[0].accepted_at_ms + 1)).await;
    assert!(later.tasks.is_empty());
    assert_eq!(client.get("/mock/ledger?since=soon").await.expect("an answer").status, 400);
    assert!(!format!("{:?}", client.mock).contains(DEMO_KEY));
}

#[tokio::test]
async fn storms_come_and_go_while_it_runs() {
    let client = quick(MockClassicDialect::TwoCaptcha).await;
    assert_eq!(put(&client, "/mock/faults", &json!("storm")).await.text(), r#"{"ok":true}"#);
    let storm: Faults = read(&client, "/mock/faults").await;
    assert_eq!(storm, Faults::storm());
    assert_eq!(put(&client, "/mock/faults", &json!({"submit": {"status_before": 1.0}})).await.status, 200);
    assert!(client.submit(TURNSTILE).await.expect("an answer").status >= 500);
    assert_eq!(put(&client, "/mock/faults", &json!("calm")).await.status, 200);
    client.task(TURNSTILE).await;
    assert_eq!(put(&client, "/mock/faults", &json!({"sumbit": {}})).await.status, 400);
}

#[tokio::test]
async fn a_script_is_set_and_read_back() {
    let client = quick(MockClassicDialect::TwoCaptcha).await;
    let rules = json!([{"on": "in.php", "nth": 2, "do": {"code": "ERROR_X"}}]);
    assert_eq!(put(&client, "/mock/script", &rules).await.status, 200);
    assert_eq!(read::<Value>(&client, "/mock/script").await, rules);
    client.task(TURNSTILE).await;
    assert_eq!(client.says(TURNSTILE).await, "ERROR_X");
    let wrong = put(&client, "/mock/script", &json!([{"on": "pingback", "do": {"html": {}}}])).await;
    assert_eq!(wrong.status, 400);
    assert!(wrong.text().contains("cannot be done"), "{}", wrong.text());
    let script = vec![ScriptRule::always(RulePlace::Submit, FaultAction::Lost)];
    let refused = MockProvider::start(Settings { script, ..Settings::default() }).await;
    assert_eq!(refused.expect_err("a script that cannot be done").kind(), std::io::ErrorKind::InvalidInput);
}

#[tokio::test]
async fn accounts_change_and_a_reset_forgets() {
    let client = quick(MockClassicDialect::TwoCaptcha).await;
    client.task(TURNSTILE).await;
    assert_eq!(
        put(&client, "/mock/account", &json!({"name": "demo", "balance_micros": 5})).await.status,
        200
    );
    assert_eq!(put(&client, "/mock/account", &json!({"name": "unknown"})).await.status, 404);
    let standing: MockState = read(&client, "/mock/state").await;
    assert_eq!(standing.accounts[0].balance_micros, 5);
    let first = client.mock.ledger().tasks[0].id.clone();
    assert_eq!(client.raw(&request("POST", "/mock/reset", None, b"")).await.expect("an answer").status, 200);
    let ledger = client.mock.ledger();
    assert!(ledger.tasks.is_empty() && ledger.totals.accepted == 0);
    assert_ne!(client.task(TURNSTILE).await, first, "no id is used twice");
    assert_eq!(client.tells("action=getbalance").await, "9.99701");
}

#[tokio::test]
async fn an_outage_is_called_over_http() {
    let client = quick(MockClassicDialect::TwoCaptcha).await;
    assert_eq!(put(&client, "/mock/outage", &json!({"ms": 100})).await.status, 200);
    assert!(client.submit(TURNSTILE).await.is_err());
    assert!(client.mock.until(crate::wire::LIMIT, |_| client.mock.state().outage_until_ms.is_none()).await);
    client.task(TURNSTILE).await;
    assert_eq!(put(&client, "/mock/outage", &json!({"minutes": 1})).await.status, 400);
    assert_eq!(client.get("/mock/nothing").await.expect("an answer").status, 404);
}

#[tokio::test]
async fn settings_are_read_from_json_and_a_misspelt_one_is_an_error() {
    let text = r#"{"dialect":"captchaai","seed":7,"speed":20.0,"accounts":[{"name":"a","key":"k"}],
        "solve_ms":{"from":1,"to":2},"faults":{"unsolvable":0.5},"script":[{"on":"in.php","do":{"html":{}}}]}"#;
    let settings: Settings = serde_json::from_str(text).expect("settings");
    assert_eq!((settings.dialect, settings.script.len()), (MockClassicDialect::CaptchaAi, 1));
    assert!(!serde_json::to_string(&settings).expect("JSON").contains("\"k\""));
    assert!(serde_json::from_str::<Settings>(r#"{"sede":7}"#).is_err());
}

#[tokio::test]
async fn unusable_accounts_are_refused_at_the_start_without_naming_a_key() {
    let mut short = Settings::default();
    short.accounts[0].key = MockKey::new("tooshort");
    let mut twice = Settings::default();
    twice.accounts.push(twice.accounts[0].clone());
    for settings in [short, twice] {
        let why = MockProvider::start(settings).await.expect_err("unusable accounts");
        assert_eq!(why.kind(), std::io::ErrorKind::InvalidInput);
        assert!(why.to_string().contains("\"demo\"") && !why.to_string().contains("tooshort"), "{why}");
    }
}

#[tokio::test]
async fn noise_and_too_many_connections_do_not_hurt_the_others() {
    let client =
        open(Settings { connections_max: 2, ..Settings::quick(MockClassicDialect::TwoCaptcha) }).await;
    for noise in [
        &b"\0\xff\x16\x03\x01 hello\r\n\r\n"[..],
        b"GET /in.php\r\n\r\n",
        b"POST /in.php HTTP/1.1\r\ncontent-length: x\r\n\r\n",
    ] {
        let reply = client.raw(noise).await;
        assert!(reply.is_err() || reply.is_ok_and(|reply| reply.status == 400));
    }
    let mut held = Vec::new();
    while client.submit(TURNSTILE).await.is_ok() {
        held.push(tokio::net::TcpStream::connect(client.mock.address()).await.expect("it listens"));
        assert!(held.len() < 50, "there is no limit");
    }
    let accepted = client.mock.totals().accepted;
    drop(held);
    while client.submit(TURNSTILE).await.is_err() {
        tokio::task::yield_now().await;
    }
    assert_eq!(client.mock.totals().accepted, accepted + 1);
}

#[tokio::test]
async fn a_stopped_server_answers_nothing_and_frees_its_port() {
    let client = open(Settings::quick(MockClassicDialect::TwoCaptcha)).await;
    let address = client.mock.address();
    client.task(TURNSTILE).await;
    client.mock.stop().await;
    assert!(tokio::net::TcpStream::connect(address).await.is_err());
    let again = MockProvider::start(Settings { listen: address, ..Settings::default() }).await;
    assert_eq!(again.expect("the port is free").address(), address);
}
