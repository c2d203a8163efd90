//! Trap: one token is given to five workers by default, but a site accepts it once. With default settings, each
//! placement for a token is an order of its own, and a key makes placements equal.

use crate::http::call;
use crate::provider::Sim;
use crate::sandbox::{Sandbox, page};
use crate::serve::Serve;
use crate::wait::until;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::thread;

const KEY: &str = "0123456789abcdef0123456789abcdef";
const SITE_KEY: &str = "6Le-workers-0123456789abcdefghijklmnop";

/// The APIs that other services' clients use, and our own.
#[derive(Clone, Copy, Debug)]
enum TrapApi {
    Classic,
    Json,
    V1,
}

impl TrapApi {
    /// Places an order for a token of this page, and fetches the token as a client does.
    fn token(self, base: &str, mark: &str, idempotency_key: Option<&str>) -> String {
        let mut order = match self {
            Self::Classic => json!({ "key": KEY, "json": 1, "method": "userrecaptcha", "googlekey": SITE_KEY,
                "pageurl": page(mark) }),
            Self::Json => json!({ "clientKey": KEY, "task": { "type": "RecaptchaV2TaskProxyless",
                "websiteKey": SITE_KEY, "websiteURL": page(mark) } }),
            Self::V1 => json!({ "kind": "recaptcha_v2",
                "params": { "googlekey": SITE_KEY, "pageurl": page(mark) } }),
        };
        if let Some(key) = idempotency_key {
            order["idempotency_key"] = json!(key);
        }
        let ask = |verb: &str, path: &str, body: &Value| -> Value {
            let (_, body) = call(verb, &format!("{base}{path}"), &body.to_string());
            serde_json::from_str(&body).unwrap_or_else(|_| panic!("{self:?}: {body}"))
        };
        let id = match self {
            Self::Classic => ask("POST", "/in.php", &order)["request"].clone(),
            Self::Json => ask("POST", "/createTask", &order)["taskId"].clone(),
            Self::V1 => ask("POST", "/v1/orders", &order)["id"].clone(),
        };
        let plain = id.as_str().map_or_else(|| id.to_string(), str::to_owned);
        let value = until("a token", || match self {
            Self::Classic => {
                let path = format!("/res.php?key={KEY}&json=1&action=get&id={plain}");
                let reply = ask("GET", &path, &Value::Null);
                (reply["status"] == 1).then(|| reply["request"].clone())
            }
            Self::Json => {
                let reply = ask("POST", "/getTaskResult", &json!({ "clientKey": KEY, "taskId": id }));
                (reply["status"] == "ready").then(|| reply["solution"]["gRecaptchaResponse"].clone())
            }
            Self::V1 => {
                let reply = ask("GET", &format!("/v1/orders/{plain}"), &Value::Null);
                (reply["status"] == "solved").then(|| reply["answer"]["text"].clone())
            }
        });
        value.as_str().unwrap_or_else(|| panic!("{self:?}: {value}")).to_owned()
    }
}

/// The different tokens that ten workers get at one time.
fn ten_workers(api: TrapApi, base: &str, mark: &str, idempotency_key: Option<&str>) -> BTreeSet<String> {
    thread::scope(|scope| {
        let workers: Vec<_> =
            (0..10).map(|_| scope.spawn(|| api.token(base, mark, idempotency_key))).collect();
        workers.into_iter().map(|worker| worker.join().expect("a worker gets its token")).collect()
    })
}

#[test]
fn ten_workers_on_one_page_get_ten_tokens_and_with_one_key_one_on_every_api() {
    let sim = Sim::start();
    sim.script(&json!([{ "on": "in.php", "do": { "solve_ms": 200 } }]));
    let gateway = Serve::start(Sandbox::of(&sim).set("reuse.default=by_kind"));
    let mut paid = 0;
    for api in [TrapApi::Classic, TrapApi::Json, TrapApi::V1] {
        let mark = format!("ten-{api:?}").to_lowercase();
        assert_eq!(ten_workers(api, &gateway.http, &mark, None).len(), 10, "{api:?}");
        let mark = format!("one-{api:?}").to_lowercase();
        assert_eq!(ten_workers(api, &gateway.http, &mark, Some(&mark)).len(), 1, "{api:?}");
        paid += 11;
        assert_eq!(sim.ledger().accepted(), paid, "{api:?}");
    }
    gateway.end_in_peace();
}

#[test]
fn the_log_says_once_which_setting_gives_one_token_to_several_placements() {
    let sim = Sim::start();
    let sandbox =
        Sandbox::of(&sim).set("reuse.default=by_kind").set("reuse.targets.\"loud.example.com\"=shared");
    let gateway = Serve::start(sandbox);
    for mark in ["loud", "quiet"] {
        for _ in 0..3 {
            TrapApi::Classic.token(&gateway.http, mark, None);
        }
        for _ in 0..2 {
            TrapApi::Classic.token(&gateway.http, mark, Some(mark));
        }
    }
    let log = gateway.log();
    let warnings: Vec<_> = log.lines().filter(|line| line.contains("single-use answer")).collect();
    let [warnings] = warnings[..] else { panic!("one line for one target: {log}") };
    for word in ["WARN", "reuse.targets", "loud.example.com", "recaptcha_v2", "docs/reuse.md"] {
        assert!(warnings.contains(word), "{word}: {warnings}");
    }
    // Shared: one. Each of the three quiet ones, and one for each key.
    assert_eq!(sim.ledger().accepted(), 1 + 3 + 2);
}

#[test]
fn the_same_command_with_the_same_key_resumes_its_order_and_without_one_it_is_another_job() {
    let sim = Sim::start();
    let sandbox = Sandbox::of(&sim).set("reuse.default=by_kind");
    let solve = |more: &[&str]| sandbox.solve("again", more).must_succeed().out.clone();
    assert_eq!(solve(&["--idempotency-key", "a"]), solve(&["--idempotency-key", "a"]));
    assert_eq!(sim.ledger().accepted(), 1);
    assert_ne!(solve(&[]), solve(&[]));
    assert_eq!(sim.ledger().accepted(), 3);
    assert_eq!(solve(&["--shared"]), solve(&["--shared"]));
    assert_eq!(sim.ledger().accepted(), 4);
}
