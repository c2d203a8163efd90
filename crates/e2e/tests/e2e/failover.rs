//! Two providers, each a mock provider of its own: what callers get and what an operator sees while one of them is
//! away, paused or drained.

use crate::http::{call, free_port};
use crate::provider::Sim;
use crate::sandbox::{KEY_VARIABLE, Sandbox};
use crate::serve::Serve;
use crate::wait::until;
use serde_json::{Value, json};

/// A daemon with the providers `a` and `b` at these addresses, in this order.
fn serve(a: &str, b: &str) -> Serve {
    let port = free_port();
    let provider = |name: &str, url: &str| {
        format!(
            "[[provider]]\nname = \"{name}\"\ndialect = \"2captcha\"\nurl = \"{url}\"\nkey_env = \"{KEY_VARIABLE}\"\n"
        )
    };
    Serve::start(Sandbox::with_config(&format!(
        "listen = \"127.0.0.1:{port}\"\npublic_url = \"http://127.0.0.1:{port}\"\n{}{}[store]\nurl = \"embedded:store\"\n\
         [routing]\nbusy_wait = \"0s\"\n[provider_rules]\ntrip_at = 2\n",
        provider("a", a),
        provider("b", b)
    )))
}

fn quick() -> Sim {
    let sim = Sim::start();
    sim.script(&json!([{ "on": "in.php", "do": { "solve_ms": 50 } }]));
    sim
}

/// Solves a captcha of its own, and returns the key of its order.
fn solve(serve: &Serve, mark: &str) -> String {
    let key = format!("sitekey=0x4A{mark}");
    let args = ["solve", "turnstile", "--json", "-p", &key, "-p", "pageurl=https://example.com/login"];
    let solved = serve.sandbox.run(&args).must_succeed().json();
    solved["order"].as_str().expect("it has a key").to_owned()
}

fn providers(serve: &Serve) -> Value {
    serve.sandbox.run(&["provider", "list", "--json"]).must_succeed().json()["providers"].clone()
}

/// The timeline of an order, as `dead show` prints it.
fn timeline(serve: &Serve, key: &str) -> String {
    let (status, body) = call("GET", &format!("{}/v1/admin/orders/{key}", serve.http), "");
    assert_eq!(status, 200, "{body}");
    body
}

#[test]
fn orders_go_to_the_other_provider_while_one_refuses_connections() {
    let b = quick();
    // Nothing listens there.
    let away = free_port();
    let serve = serve(&format!("http://127.0.0.1:{away}"), &b.url);
    let keys: Vec<String> = (0..5).map(|n| solve(&serve, &format!("away{n}"))).collect();
    assert_eq!(b.ledger().accepted(), 5, "each was paid for once, and at b");
    let listed = until("a has tripped", || {
        let listed = providers(&serve);
        (listed[0]["state"] == "tripped").then_some(listed)
    });
    assert_eq!((&listed[0]["name"], &listed[0]["balance"]), (&json!("a"), &Value::Null), "{listed}");
    assert_eq!((&listed[1]["state"], &listed[1]["open_tasks"]), (&json!("ok"), &json!(0)), "{listed}");
    assert!(listed[1]["balance_micros"].is_u64() && listed[1]["dialect"] == "2captcha", "{listed}");
    let text = serve.sandbox.run(&["provider", "list"]);
    assert!(text.must_succeed().out.contains("does not answer"), "{text:?}");
    let timelines: Vec<String> = keys.iter().map(|key| timeline(&serve, key)).collect();
    let says_why = |text: &&String| text.contains("goes to b, because a does not answer");
    assert!(timelines.iter().any(|text| says_why(&text)), "{timelines:?}");

    // Its usage is that of b.
    let usage = serve.sandbox.run(&["usage", "--by", "provider", "--json"]).must_succeed().json();
    let rows = usage["rows"].as_array().expect("an array");
    let of_b = rows.iter().find(|row| row["provider"] == "b").expect("b has a row");
    assert_eq!(
        (&of_b["paid"], &of_b["comparison"]["success_permille"]),
        (&json!(5), &json!(1000)),
        "{usage}"
    );
    assert!(of_b["comparison"]["price_per_answer_micros"].as_u64() > Some(0), "{usage}");

    // It comes back, and gets orders again.
    let a = Sim::start_with("2captcha", &["--listen", &format!("127.0.0.1:{away}")]);
    a.script(&json!([{ "on": "in.php", "do": { "solve_ms": 50 } }]));
    serve.sandbox.run(&["provider", "resume", "a"]).must_succeed();
    assert_eq!(providers(&serve)[0]["state"], "ok");
    solve(&serve, "back");
    assert_eq!((a.ledger().accepted(), b.ledger().accepted()), (1, 5));
    serve.end_in_peace();
}

#[test]
fn a_person_pauses_drains_and_resumes_a_provider() {
    let (a, b) = (quick(), quick());
    let serve = serve(&a.url, &b.url);
    let provider = |args: &[&str]| serve.sandbox.run(&[&["provider"], args].concat());
    let paused = provider(&["pause", "a"]);
    assert!(paused.must_succeed().out.starts_with("a is paused: "), "{paused:?}");
    solve(&serve, "paused");
    assert_eq!((a.ledger().accepted(), b.ledger().accepted()), (0, 1));
    let drained = provider(&["drain", "b", "--json"]).must_succeed().json();
    assert_eq!(
        (&drained["provider"]["state"], &drained["provider"]["open_tasks"]),
        (&json!("drained"), &json!(0))
    );
    let shown = provider(&["show", "a"]);
    assert!(shown.must_succeed().out.contains("a person has paused it"), "{shown:?}");
    assert_eq!(
        provider(&["resume"]).must_succeed().out,
        "all providers are resumed: no order was held for its account, and orders that wait for their next try go on then\n"
    );
    solve(&serve, "resumed");
    assert_eq!(a.ledger().accepted(), 1);
    provider(&["pause", "c"]).must_fail(1, &["no provider is called `c`"]);
    provider(&["show", "bb"]).must_fail(1, &["did you mean `b`?"]);

    // What a person wants outlives the daemon, and needs none to be changed.
    provider(&["pause", "a"]).must_succeed();
    let sandbox = serve.killed();
    let listed = sandbox.run(&["provider", "list", "--json"]).must_succeed().json();
    let (first, second) = (&listed["providers"][0], &listed["providers"][1]);
    assert_eq!((&first["state"], &second["state"]), (&json!("paused"), &Value::Null), "{listed}");
    assert!(second["balance_micros"].is_u64(), "the command asks the provider itself: {listed}");
    sandbox.run(&["provider", "resume", "a"]).must_succeed();
    let serve = Serve::start(sandbox);
    solve(&serve, "restarted");
    assert_eq!(a.ledger().accepted(), 2);
    serve.end_in_peace();
}

#[test]
fn the_doctor_asks_every_provider_and_errors_shows_the_table_of_the_one_that_is_named() {
    let (a, away) = (quick(), free_port());
    let sandbox = serve(&a.url, &format!("http://127.0.0.1:{away}")).killed();
    let found = sandbox.run(&["doctor", "--json"]).json();
    let about = |name: &str| {
        let found = found.as_array().expect("an array").iter();
        let mut found = found.filter(|finding| finding["about"] == "provider");
        found.find(|finding| finding["what"].as_str().is_some_and(|what| what.starts_with(name))).cloned()
    };
    assert_eq!(about("a answers").expect("a is asked")["state"], "good");
    assert_eq!(about("b: ").expect("b is asked")["state"], "bad");
    sandbox.run(&["errors", "--provider", "b", "ERROR_ZERO_BALANCE"]).must_succeed();
    sandbox
        .run(&["errors", "--provider", "x", "ERROR_ZERO_BALANCE"])
        .must_fail(1, &["no provider is called `x`"]);
}
