//! The judge's door.

use crate::wire::{AccountView, HttpReply, TURNSTILE, open, quick, request};
use quittance_mock_provider::{
    DEMO_KEY, FaultAction, Faults, Ledger, MockClassicDialect, MockKey, MockProvider, MockState, Rule,
    RulePlace, Settings,
};
use serde_json::{Value, json};

async fn put(desk: &AccountView, path: &str, body: &Value) -> HttpReply {
    let raw = request("PUT", path, Some("application/json"), body.to_string().as_bytes());
    desk.raw(&raw).await.expect("an answer")
}

async fn read<T: serde::de::DeserializeOwned>(desk: &AccountView, path: &str) -> T {
    let reply = desk.get(path).await.expect("an answer");
    assert_eq!(reply.header("content-type"), Some("application/json"));
    serde_json::from_slice(&reply.body).unwrap_or_else(|why| panic!("{why}: {}", reply.text()))
}

#[tokio::test]
async fn the_ledger_over_http_is_the_ledger_and_holds_no_key() {
    let desk = quick(MockClassicDialect::TwoCaptcha).await;
    let id = desk.finished(&format!("{TURNSTILE}&soft_id=1&json=0")).await;
    desk.tells(&format!("action=get&id={id}")).await;
    let reply = desk.get("/mock/ledger").await.expect("an answer");
    assert!(!reply.text().contains(DEMO_KEY));
    let ledger: Ledger = serde_json::from_slice(&reply.body).expect("a ledger");
    assert_eq!(ledger.tasks, desk.sim.ledger().tasks);
    let value: Value = serde_json::from_slice(&reply.body).expect("JSON");
    let task = &value["tasks"][0];
    assert_eq!(task["params"], json!({"sitekey": "0x4AAA", "pageurl": "https://shop.example.com/"}));
    assert_eq!(
        (&task["account"], &task["state"], &task["delivered"]),
        (&json!("demo"), &json!("solved"), &json!(true))
    );
    assert_eq!(value["totals"]["requests"]["in.php"], 1);
    let summary: Ledger = read(&desk, "/mock/ledger?summary=1").await;
    assert!(summary.tasks.is_empty() && summary.totals.accepted == 1);
    let later: Ledger =
        read(&desk, &format!("/mock/ledger?since={}", ledger.tasks[0].accepted_at_ms + 1)).await;
    assert!(later.tasks.is_empty());
    assert_eq!(desk.get("/mock/ledger?since=soon").await.expect("an answer").status, 400);
    assert!(!format!("{:?}", desk.sim).contains(DEMO_KEY));
}

#[tokio::test]
async fn storms_come_and_go_while_it_runs() {
    let desk = quick(MockClassicDialect::TwoCaptcha).await;
    assert_eq!(put(&desk, "/mock/faults", &json!("storm")).await.text(), r#"{"ok":true}"#);
    let storm: Faults = read(&desk, "/mock/faults").await;
    assert_eq!(storm, Faults::storm());
    assert_eq!(put(&desk, "/mock/faults", &json!({"submit": {"status_before": 1.0}})).await.status, 200);
    assert!(desk.submit(TURNSTILE).await.expect("an answer").status >= 500);
    assert_eq!(put(&desk, "/mock/faults", &json!("calm")).await.status, 200);
    desk.task(TURNSTILE).await;
    assert_eq!(put(&desk, "/mock/faults", &json!({"sumbit": {}})).await.status, 400);
}

#[tokio::test]
async fn a_script_is_set_and_read_back() {
    let desk = quick(MockClassicDialect::TwoCaptcha).await;
    let rules = json!([{"on": "in.php", "nth": 2, "do": {"code": "ERROR_X"}}]);
    assert_eq!(put(&desk, "/mock/script", &rules).await.status, 200);
    assert_eq!(read::<Value>(&desk, "/mock/script").await, rules);
    desk.task(TURNSTILE).await;
    assert_eq!(desk.says(TURNSTILE).await, "ERROR_X");
    let wrong = put(&desk, "/mock/script", &json!([{"on": "pingback", "do": {"html": {}}}])).await;
    assert_eq!(wrong.status, 400);
    assert!(wrong.text().contains("cannot be done"), "{}", wrong.text());
    let script = vec![Rule::always(RulePlace::Submit, FaultAction::Lost)];
    let refused = MockProvider::start(Settings { script, ..Settings::default() }).await;
    assert_eq!(refused.expect_err("a script that cannot be done").kind(), std::io::ErrorKind::InvalidInput);
}

#[tokio::test]
async fn accounts_change_and_a_reset_forgets() {
    let desk = quick(MockClassicDialect::TwoCaptcha).await;
    desk.task(TURNSTILE).await;
    assert_eq!(put(&desk, "/mock/account", &json!({"name": "demo", "balance_micros": 5})).await.status, 200);
    assert_eq!(put(&desk, "/mock/account", &json!({"name": "unknown"})).await.status, 404);
    let standing: MockState = read(&desk, "/mock/state").await;
    assert_eq!(standing.accounts[0].balance_micros, 5);
    let first = desk.sim.ledger().tasks[0].id.clone();
    assert_eq!(desk.raw(&request("POST", "/mock/reset", None, b"")).await.expect("an answer").status, 200);
    let ledger = desk.sim.ledger();
    assert!(ledger.tasks.is_empty() && ledger.totals.accepted == 0);
    assert_ne!(desk.task(TURNSTILE).await, first, "no id is used twice");
    assert_eq!(desk.tells("action=getbalance").await, "9.99701");
}

#[tokio::test]
async fn an_outage_is_called_over_http() {
    let desk = quick(MockClassicDialect::TwoCaptcha).await;
    assert_eq!(put(&desk, "/mock/outage", &json!({"ms": 100})).await.status, 200);
    assert!(desk.submit(TURNSTILE).await.is_err());
    assert!(desk.sim.until(crate::wire::LIMIT, |_| desk.sim.state().outage_until_ms.is_none()).await);
    desk.task(TURNSTILE).await;
    assert_eq!(put(&desk, "/mock/outage", &json!({"minutes": 1})).await.status, 400);
    assert_eq!(desk.get("/mock/nothing").await.expect("an answer").status, 404);
}

#[tokio::test]
async fn settings_are_read_from_json_and_a_misspelt_one_is_an_error() {
    let text = r#"{"profile":"captchaai","seed":7,"speed":20.0,"accounts":[{"name":"a","key":"k"}],
        "solve_ms":{"from":1,"to":2},"faults":{"unsolvable":0.5},"script":[{"on":"in.php","do":{"html":{}}}]}"#;
    let settings: Settings = serde_json::from_str(text).expect("settings");
    assert_eq!((settings.profile, settings.script.len()), (MockClassicDialect::CaptchaAi, 1));
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
    let desk = open(Settings { connections_max: 2, ..Settings::quick(MockClassicDialect::TwoCaptcha) }).await;
    for noise in [
        &b"\0\xff\x16\x03\x01 hello\r\n\r\n"[..],
        b"GET /in.php\r\n\r\n",
        b"POST /in.php HTTP/1.1\r\ncontent-length: x\r\n\r\n",
    ] {
        let reply = desk.raw(noise).await;
        assert!(reply.is_err() || reply.is_ok_and(|reply| reply.status == 400));
    }
    let mut held = Vec::new();
    while desk.submit(TURNSTILE).await.is_ok() {
        held.push(tokio::net::TcpStream::connect(desk.sim.address()).await.expect("it listens"));
        assert!(held.len() < 50, "there is no limit");
    }
    let accepted = desk.sim.totals().accepted;
    drop(held);
    while desk.submit(TURNSTILE).await.is_err() {
        tokio::task::yield_now().await;
    }
    assert_eq!(desk.sim.totals().accepted, accepted + 1);
}

#[tokio::test]
async fn a_stopped_server_answers_nothing_and_frees_its_port() {
    let desk = open(Settings::quick(MockClassicDialect::TwoCaptcha)).await;
    let address = desk.sim.address();
    desk.task(TURNSTILE).await;
    desk.sim.stop().await;
    assert!(tokio::net::TcpStream::connect(address).await.is_err());
    let again = MockProvider::start(Settings { listen: address, ..Settings::default() }).await;
    assert_eq!(again.expect("the port is free").address(), address);
}
