//! Orders that are not valid, or that may not be placed.

use crate::provider::Sim;
use crate::sandbox::{Sandbox, line};
use serde_json::{Value, json};
use std::fs;

/// Checks that nothing was paid for, and that no files are left.
fn nothing_happened(sim: &Sim, sandbox: &Sandbox) {
    assert_eq!(sim.ledger().requests("in.php"), 0, "the provider was called");
    assert!(sandbox.dead_letters().is_empty());
}

#[test]
fn a_host_that_is_not_allowed_is_refused_before_anything_is_paid_for() {
    let sim = Sim::start();
    let sandbox = Sandbox::of(&sim);
    let args = ["solve", "recaptcha_v2", "-p", "googlekey=6Le-0123456789abcdefghijklmnopqrstuv", "-p"];
    for host in ["shop.elsewhere.org", "example.com.elsewhere.org", "notexample.com", "localhost"] {
        let page = format!("pageurl=https://{host}/login");
        let ran = sandbox.run(&[&args[..], &[&page]].concat());
        ran.must_fail(2, &[host, "targets.allow"]);
        assert_eq!(ran.out, "");
        let mut with_json = [&args[..], &[&page]].concat();
        with_json.push("--json");
        assert_eq!(sandbox.run(&with_json).json()["error"]["code"], "not_allowed");
    }
    nothing_happened(&sim, &sandbox);
    // What the operator lists is taken, and that alone.
    let listed = sandbox.set("targets.allow=*.elsewhere.org");
    listed.run(&[&args[..], &["pageurl=https://shop.elsewhere.org/login"]].concat()).must_succeed();
    listed
        .run(&[&args[..], &["pageurl=https://shop.anywhere.org/login"]].concat())
        .must_fail(2, &["targets.allow"]);
    assert_eq!(sim.ledger().accepted(), 1);
}

#[test]
fn pictures_can_be_switched_off() {
    let sim = Sim::start();
    let sandbox = Sandbox::of(&sim).set("targets.images=false");
    let picture = sandbox.path("captcha.gif");
    fs::write(&picture, [&b"GIF89a\x40\x00\x20\x00"[..], &[7; 300]].concat())
        .expect("the sandbox can be written");
    let file = format!("body={}", picture.display());
    sandbox.run(&["solve", "image", "-f", &file]).must_fail(2, &["targets.images"]);
    nothing_happened(&sim, &sandbox);
}

#[test]
fn an_order_that_makes_no_sense_is_refused_with_what_is_missing() {
    let sim = Sim::start();
    let sandbox = Sandbox::of(&sim);
    let page = "pageurl=https://a.example.com/";
    sandbox.run(&["solve", "recaptcha_v2", "-p", page]).must_fail(2, &["googlekey", "recaptcha_v2"]);
    sandbox
        .run(&["solve", "recaptcha_v2", "-p", "googlekey=x", "-p", "pageurl=not a page"])
        .must_fail(2, &["pageurl"]);
    sandbox
        .run(&["solve", "recaptcha_v22", "-p", page])
        .must_fail(2, &["recaptcha_v22", "did you mean `recaptcha_v2`"]);
    sandbox.run(&["solve", "image"]).must_fail(2, &["body"]);
    sandbox.run(&["solve", "image", "-f", "body=no-such-picture.png"]).must_fail(2, &["no-such-picture.png"]);
    sandbox.run(&["solve"]).must_fail(2, &["--help"]);
    sandbox.run(&["solve", "recaptcha_v2", "-p", "pageurl"]).must_fail(2, &["NAME=VALUE"]);
    sandbox.run(&["solve", "image", "--deadline", "soon"]).must_fail(2, &["--deadline"]);
    sandbox.run(&["solve", "image", "--lines"]).must_fail(2, &["--lines"]);
    sandbox.run(&["sovle"]).must_fail(2, &["solve"]);
    nothing_happened(&sim, &sandbox);
}

#[test]
fn a_key_that_belongs_to_another_order_is_never_a_silent_mix_up() {
    let sim = Sim::start();
    let sandbox = Sandbox::of(&sim);
    let key = ["--idempotency-key", "login-4711"];
    let first = sandbox.solve("one", &key);
    first.must_succeed();
    sandbox.solve("two", &key).must_fail(2, &["idempotency key"]);
    assert_eq!(sandbox.solve("one", &key).out, first.out, "the same order again is a repeat");
    assert_eq!(sim.ledger().accepted(), 1);
}

#[test]
fn a_broken_line_is_refused_by_itself_and_the_others_go_on() {
    let sim = Sim::start();
    let sandbox = Sandbox::of(&sim).set("targets.undescribed=false");
    let mut odd = line(5, "odd");
    odd["reuse"] = json!("sometimes");
    let mut file = line(6, "file");
    file["files"] = json!({ "body": "not base64!" });
    let lines = [
        line(1, "first").to_string(),
        "broken".to_owned(),
        String::new(),
        r#"{"id":2,"kind":"no_such_kind"}"#.to_owned(),
        r#"{"id":3,"kind":"recaptcha_v2","parms":{}}"#.to_owned(),
        r#"{"id":4,"kind":"recaptcha_v2","params":{"pageurl":["a"]}}"#.to_owned(),
        odd.to_string(),
        file.to_string(),
        "\u{0}\u{1b}[2J".to_owned(),
        line(7, "last").to_string(),
    ];
    let ran = sandbox.run_lines(&lines);
    assert_eq!(ran.code, Some(1), "not all were answered: {ran:?}");
    let events: Vec<Value> =
        ran.out.lines().map(|line| serde_json::from_str(line).expect("every line is JSON")).collect();
    let ids_of = |name: &str| -> Vec<Option<u64>> {
        let mut ids: Vec<_> =
            events.iter().filter(|event| event["event"] == name).map(|event| event["id"].as_u64()).collect();
        ids.sort_unstable();
        ids
    };
    assert_eq!(ids_of("answered"), [Some(1), Some(7)], "{}", ran.out);
    assert_eq!(ids_of("refused"), [None, None, Some(2), Some(3), Some(4), Some(5), Some(6)], "{}", ran.out);
    for refused in events.iter().filter(|event| event["event"] == "refused") {
        assert!(refused["error"]["message"].as_str().is_some_and(|message| message.len() > 10), "{refused}");
    }
    assert_eq!(sim.ledger().accepted(), 2);
}
