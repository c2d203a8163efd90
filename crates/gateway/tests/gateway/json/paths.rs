//! Tests that several APIs at one address see the same orders.

use super::fixture::JsonServer;
use serde_json::{Value, json};

/// A task for a token. Equal tasks are one job.
fn turnstile(key: &str) -> Value {
    json!({"clientKey": "any", "reuse": "shared", "task": {
        "type": "TurnstileTaskProxyless", "websiteURL": "https://example.com/", "websiteKey": key}})
}

#[tokio::test]
async fn each_dialect_has_a_prefix_and_all_share_one_connection() {
    let handler = JsonServer::open().await;
    let mut line = handler.connect().await;
    for prefix in ["", "/2captcha", "/anticaptcha", "/capmonster", "/capsolver"] {
        let created = line.ask(&format!("{prefix}/createTask"), &turnstile(&format!("k{prefix}"))).await;
        assert_eq!(created["errorId"], 0, "{prefix}");
        assert_eq!(created["taskId"].is_string(), prefix == "/capsolver");
        let ready = line.result(prefix, &created["taskId"]).await;
        assert_eq!((&ready["status"], &ready["solution"]["token"]), (&json!("ready"), &json!("solved")));
        assert_eq!(ready.get("taskId").is_some(), prefix == "/capsolver", "no other dialect has it: {ready}");
    }
}

#[tokio::test]
async fn an_order_placed_by_one_api_is_read_by_the_other_under_the_same_id() {
    let handler = JsonServer::open().await;
    let mut line = handler.connect().await;
    let key = "0123456789abcdef0123456789abcdef";
    let placed =
        format!("/in.php?key={key}&method=turnstile&sitekey=both&pageurl=https://example.com/&reuse=shared");
    let (_, placed) = line.exchange("GET", &placed, "").await;
    let id: u64 = placed.strip_prefix("OK|").unwrap().parse().unwrap();
    let created = line.ask("/createTask", &turnstile("both")).await;
    assert_eq!(created["taskId"], id);
    let ready = line.result("", &json!(id)).await;
    assert_eq!(ready["solution"]["token"], "solved");
    let other = line.ask("/createTask", &turnstile("json first")).await["taskId"].as_u64().unwrap();
    line.result("", &json!(other)).await;
    let (_, read) = line.exchange("GET", &format!("/res.php?key={key}&action=get&id={other}"), "").await;
    assert_eq!(read, "OK|solved");
}

#[tokio::test]
async fn a_wrong_method_and_a_broken_body_are_errors_of_the_protocol_and_not_of_http() {
    let handler = JsonServer::open().await;
    let mut line = handler.connect().await;
    for (method, body, code) in [
        ("GET", "", "ERROR_NO_SUCH_METHOD"),
        ("PUT", "{}", "ERROR_NO_SUCH_METHOD"),
        ("POST", "", "ERROR_BAD_REQUEST"),
        ("POST", "{\"clientKey\":", "ERROR_BAD_REQUEST"),
        ("POST", "{}", "ERROR_KEY_DOES_NOT_EXIST"),
    ] {
        for path in
            ["/createTask", "/capsolver/createTask", "/getTaskResult", "/getBalance", "/reportCorrect"]
        {
            let (head, response) = line.exchange(method, path, body).await;
            assert!(head.starts_with("http/1.1 200 ok\r\n"), "{head}");
            let response: Value = serde_json::from_str(&response).unwrap();
            let code = match code {
                "ERROR_NO_SUCH_METHOD" if path.starts_with("/capsolver") => "ERROR_BAD_REQUEST",
                code => code,
            };
            assert_eq!(response["errorCode"], code, "{method} {path} {body}");
        }
    }
}

#[tokio::test]
async fn a_blank_behind_a_path_does_not_count() {
    let handler = JsonServer::open().await;
    let mut line = handler.connect().await;
    for path in ["/anticaptcha/createTask%20", "/createTask%20%0A", "//createTask/%20"] {
        let created = line.ask(path, &turnstile(path)).await;
        assert_eq!(created["errorId"], 0, "{path}: {created}");
    }
}

#[tokio::test]
async fn a_host_that_is_not_ours_is_named_in_the_refusal_on_every_api() {
    let handler = JsonServer::open().await;
    let mut line = handler.connect_as("api.capsolver.com").await;
    let words = ["`api.capsolver.com`", "`listener.hosts`"];
    let response = line.ask("/createTask", &turnstile("k")).await;
    assert_eq!(response["errorCode"], "ERROR_IP_NOT_ALLOWED");
    let (_, classic) = line.exchange("GET", "/res.php?action=getbalance&json=1", "").await;
    let (_, native) = line.exchange("GET", "/v1/orders", "").await;
    for text in [response.to_string(), classic, native] {
        assert!(words.iter().all(|word| text.contains(word)), "{text}");
    }
}
