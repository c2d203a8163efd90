//! Both protocols on both sides: a provider of each dialect of the JSON protocol behind both APIs, compared with the
//! ledger.

use crate::http::{call, try_call};
use crate::provider::{KEY, Sim};
use crate::sandbox::{KEY_VARIABLE, Sandbox};
use crate::serve::Serve;
use crate::wait::until;
use serde_json::{Value, json};

const OURS: &str = "0123456789abcdef0123456789abcdef";

fn sandbox(sim: &Sim, dialect: &str) -> Sandbox {
    let url = &sim.url;
    Sandbox::with_config(&format!(
        r#"
listen = "127.0.0.1:0"
[store]
url = "embedded:store"
[timing]
first_poll = "50ms"
poll_interval = "50ms"
[kinds.turnstile]
p50 = "50ms"
p95 = "100ms"
p99 = "200ms"
[kinds.recaptcha_v2]
p50 = "50ms"
p95 = "100ms"
p99 = "200ms"
[kinds.recaptcha_v3]
p50 = "50ms"
p95 = "100ms"
p99 = "200ms"
[[provider]]
name = "main"
protocol = "json"
dialect = "{dialect}"
url = "{url}/{dialect}"
key_env = "{KEY_VARIABLE}"
"#
    ))
}

pub(crate) fn classic(base: &str, params: &str) -> String {
    let (_, output) = call("GET", &format!("{base}/in.php?key={OURS}&{params}"), "");
    let id = output.strip_prefix("OK|").unwrap_or_else(|| panic!("{params}: {output}"));
    let poll = format!("{base}/res.php?key={OURS}&action=get&id={id}");
    until(&format!("the answer to {params}"), || {
        let (status, output) = try_call("GET", &poll, "text/plain", "")?;
        assert_eq!(status, 200);
        assert!(output == "CAPCHA_NOT_READY" || output.starts_with("OK|"), "{params}: {output}");
        output.strip_prefix("OK|").map(str::to_owned)
    })
}

fn in_json(base: &str, task: &Value) -> Value {
    let ask = |method: &str, body: &Value| -> Value {
        let (status, output) = call("POST", &format!("{base}/2captcha/{method}"), &body.to_string());
        assert_eq!(status, 200, "{output}");
        serde_json::from_str(&output).unwrap_or_else(|why| panic!("{why}: {output}"))
    };
    let created = ask("createTask", &json!({ "clientKey": OURS, "task": task }));
    assert_eq!(created["errorId"], 0, "{task}: {created}");
    until(&format!("the answer to {task}"), || {
        let result = ask("getTaskResult", &json!({ "clientKey": OURS, "taskId": created["taskId"] }));
        assert_eq!(result["errorId"], 0, "{task}: {result}");
        (result["status"] == "ready").then(|| result["solution"].clone())
    })
}

fn is_served(sim: &Sim, dialect: &str) {
    let serve = Serve::start(sandbox(sim, dialect));
    let page = |name: &str| format!("https://{dialect}-{name}.example.com/");
    let turnstile =
        classic(&serve.http, &format!("method=turnstile&sitekey=0x4AAAAAAAB&pageurl={}", page("classic")));
    let recaptcha = in_json(
        &serve.http,
        &json!({ "type": "RecaptchaV2TaskProxyless", "websiteURL": page("json"), "websiteKey": "6Le-0123456789abcdef" }),
    );
    let recaptcha =
        recaptcha["gRecaptchaResponse"].as_str().unwrap_or_else(|| panic!("{recaptcha}")).to_owned();
    let score = classic(
        &serve.http,
        &format!("method=userrecaptcha&version=v3&action=login&googlekey=6Le-v3&pageurl={}", page("v3")),
    );
    let ledger = sim.ledger();
    for (name, answers) in [("classic", turnstile), ("json", recaptcha), ("v3", score)] {
        let tasks = &ledger.by_page()[page(name).as_str()];
        assert_eq!(tasks.len(), 1, "{dialect} {name}: paid once");
        assert_eq!(
            (&tasks[0]["protocol"], &tasks[0]["answer"]),
            (&json!(dialect), &json!(answers)),
            "{name}"
        );
    }
    serve.end_in_peace();
}

#[test]
fn a_provider_of_any_dialect_serves_clients_of_either_protocol() {
    let sim = Sim::start();
    assert_eq!(KEY.len(), 32);
    for dialect in ["2captcha", "anticaptcha", "capsolver", "capmonster"] {
        is_served(&sim, dialect);
    }
}
