//! Hostile text: text from a caller or a provider never moves the cursor of the reader's terminal.

use crate::binary::Ran;
use crate::provider::Sim;
use crate::sandbox::{Sandbox, line};
use serde_json::json;

/// A text that clears the screen, changes the window's title, rings the bell, and changes the writing direction.
const HOSTILE: &str = "\u{1b}[2J\u{1b}]0;owned\u{7}\u{9b}31m\u{202e}\r\nquittance: all is well";

#[track_caller]
fn is_harmless(ran: &Ran) {
    let is_odd = |c: char| (c.is_control() && c != '\n') || c == '\u{202e}';
    assert!(!ran.out.contains(is_odd) && !ran.err.contains(is_odd), "{ran:?}");
    let forged = |text: &str| text.lines().any(|line| line == "quittance: all is well");
    assert!(!forged(&ran.out) && !forged(&ran.err), "a line was forged: {ran:?}");
}

#[test]
fn a_code_of_the_provider_that_is_hostile_is_shown_harmless() {
    let sim = Sim::start();
    sim.script(&json!([{ "on": "in.php", "do": { "code": format!("ERROR_{HOSTILE}") } }]));
    let sandbox = Sandbox::of(&sim).set("retry.limits.unlisted_code=0").set("retry.limits.in_doubt=0");
    let ran = sandbox.solve("code", &[]);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    is_harmless(&ran);
    is_harmless(&sandbox.solve("code-json", &["--json"]));
    is_harmless(sandbox.run(&["dead", "list"]).must_succeed());
    for entry in sandbox.dead_letters() {
        let order = entry["key"].as_str().expect("it has a name");
        is_harmless(sandbox.run(&["dead", "show", order]).must_succeed());
        is_harmless(sandbox.run(&["dead", "show", order, "--json"]).must_succeed());
    }
    assert_eq!(sandbox.dead_letters().len(), 2);
}

#[test]
fn a_parameter_that_is_hostile_is_shown_harmless() {
    let sim = Sim::start();
    sim.script(&json!([{ "on": "in.php", "do": { "code": "ERROR_NO_SLOT_AVAILABLE" } }]));
    let sandbox = Sandbox::of(&sim).set("retry.limits.busy=0");
    let more = format!("data-s={HOSTILE}");
    is_harmless(&sandbox.solve("param", &["-p", &more]));
    let mut order = line(1, "page");
    order["params"]["pageurl"] = json!(format!("https://page.example.com/{HOSTILE}"));
    let ran = sandbox.run_lines(&[order.to_string()]);
    is_harmless(&ran);
    is_harmless(sandbox.run(&["dead", "list"]).must_succeed());
    for entry in sandbox.dead_letters() {
        is_harmless(sandbox.run(&["dead", "show", entry["key"].as_str().expect("a name")]).must_succeed());
    }
    for args in [["solve", HOSTILE], ["kinds", HOSTILE], ["errors", HOSTILE]] {
        is_harmless(&sandbox.run(&args));
    }
    is_harmless(&sandbox.run(&["dead", "show", HOSTILE]));
}

#[test]
fn a_hostile_answer_reaches_scripts_as_it_is_and_terminals_made_harmless() {
    let sim = Sim::start();
    sim.script(&json!([{ "on": "in.php", "do": { "code": "ERROR_NO_SLOT_AVAILABLE" } }]));
    let sandbox = Sandbox::of(&sim).set("retry.limits.busy=0");
    sandbox.solve("answer", &[]).must_fail(1, &[]);
    sim.script(&json!([{ "on": "in.php", "do": { "answer": HOSTILE } }]));
    is_harmless(sandbox.run(&["dead", "replay", "--all", "--yes"]).must_succeed());
    let object = sandbox.solve("answer", &["--json"]).must_succeed().json();
    assert_eq!(object["answer"], json!(HOSTILE));
}
