//! The commands that show a state: errors, kinds, config show, doctor.

use crate::binary::{quittance, run};
use crate::http::free_port;
use crate::provider::{KEY, Sim};
use crate::sandbox::{KEY_VARIABLE, Sandbox};
use serde_json::{Value, json};
use std::fs;

#[test]
fn the_fault_table_says_what_each_code_means_at_whom() {
    let table = run(quittance(["errors"]));
    for word in ["busy", "unreachable", "unsolvable", "ERROR_CAPTCHA_UNSOLVABLE", "ERROR_KEY_DOES_NOT_EXIST"]
    {
        assert!(table.must_succeed().out.contains(word), "{word}: {}", table.out);
    }
    let class = |dialect: &str| {
        let ran = run(quittance(["errors", "ERROR_ZERO_BALANCE", "--dialect", dialect, "--json"]));
        ran.must_succeed().json()["class"].clone()
    };
    assert_eq!((class("2captcha"), class("captchaai")), (json!("no_funds"), json!("busy")));
    run(quittance(["errors", "--dialect", "unknown"])).must_fail(2, &["2captcha", "captchaai"]);
}

#[test]
fn the_kinds_say_what_they_need_and_how_long_their_answers_live() {
    let table = run(quittance(["kinds"]));
    for kind in ["image", "recaptcha_v2", "recaptcha_v3", "hcaptcha", "turnstile"] {
        assert!(table.must_succeed().out.lines().any(|line| line.starts_with(kind)), "{kind}: {}", table.out);
    }
    let page = run(quittance(["kinds", "recaptcha_v2"]));
    for word in ["googlekey", "pageurl", "120s"] {
        assert!(page.must_succeed().out.contains(word), "{word}: {}", page.out);
    }
    let turnstile = run(quittance(["kinds", "turnstile", "--json"])).json();
    assert_eq!((&turnstile["life_ms"], &turnstile["margin_ms"]), (&json!(300_000), &json!(50_000)));
    run(quittance(["kinds", "turnstyle"])).must_fail(2, &["turnstyle", "`turnstile`"]);
}

#[test]
fn the_settings_in_force_are_shown_with_where_they_came_from_and_never_a_secret() {
    let sim = Sim::start();
    let sandbox = Sandbox::of(&sim).set("timing.deadline=77s");
    let mut command = sandbox.command(&["config", "show"]);
    command.env("QUITTANCE_TIMING_FIRST_POLL", "123ms");
    let view = run(command);
    let line = |name: &str| {
        let entry = view.out.lines().find(|line| line.starts_with(name));
        entry.unwrap_or_else(|| panic!("{name}: {}", view.out))
    };
    assert!(line("deadline").contains("77s") && line("deadline").contains("--set"), "{}", view.out);
    assert!(
        line("first_poll").contains("123ms") && line("first_poll").contains("QUITTANCE_TIMING_FIRST_POLL")
    );
    assert!(line("submit_wait").contains("quittance.toml:"), "{}", view.out);
    assert!(!view.out.contains(KEY) && view.out.contains(KEY_VARIABLE), "{}", view.out);
    // Its own output means the same.
    let again = Sandbox::with_config(&view.out);
    let values = |sandbox: &Sandbox, more: &str| -> Value {
        let mut command = sandbox.command(&["config", "show", "--json"]);
        command.envs((!more.is_empty()).then_some(("QUITTANCE_TIMING_FIRST_POLL", more)));
        let document = run(command).must_succeed().json();
        let settings = document["settings"].as_object().expect("by name").iter();
        settings
            .filter(|(name, _)| *name != "store.url")
            .map(|(name, held)| (name.clone(), held["value"].clone()))
            .collect()
    };
    assert_eq!(values(&again, ""), values(&sandbox, "123ms"));
}

/// The findings of the doctor, by subject.
fn findings(sandbox: &Sandbox, code: i32) -> Vec<(String, String, String)> {
    let ran = sandbox.run(&["doctor", "--json"]);
    assert_eq!(ran.code, Some(code), "{ran:?}");
    let text = |finding: &Value, name: &str| finding[name].as_str().expect("it is text").to_owned();
    let all = ran.json().as_array().expect("an array").clone();
    all.iter().map(|entry| (text(entry, "about"), text(entry, "state"), text(entry, "what"))).collect()
}

#[test]
fn the_doctor_finds_a_good_house_good_and_pays_nothing() {
    for dialect in ["2captcha", "captchaai"] {
        let sim = Sim::start_with(dialect, &[]);
        let sandbox = Sandbox::of(&sim);
        sandbox.run_lines(&[]).must_succeed();
        let all = findings(&sandbox, 0);
        for about in ["config", "store", "provider", "callbacks"] {
            assert!(
                all.iter().any(|(entry, state, _)| entry == about && state == "good"),
                "{about}: {all:?}"
            );
        }
        let ledger = sim.ledger();
        assert_eq!((ledger.accepted(), ledger.requests("in.php")), (0, 0));
    }
}

#[test]
fn the_doctor_names_each_thing_that_is_wrong_and_what_to_do() {
    let sim = Sim::start();
    let bad = |sandbox: Sandbox, about: &str, words: &[&str]| {
        let all = findings(&sandbox, 1);
        let entry = all.iter().find(|(entry, state, _)| entry == about && state == "bad");
        let (_, _, what) = entry.unwrap_or_else(|| panic!("{about} is bad: {all:?}"));
        for word in words {
            assert!(what.contains(word), "`{word}` is missing: {what}");
        }
    };
    bad(
        Sandbox::of(&sim).with_key("00000000000000000000000000000000"),
        "provider",
        &["ERROR_KEY_DOES_NOT_EXIST"],
    );
    bad(Sandbox::of(&sim).with_key(""), "provider", &[KEY_VARIABLE, "empty"]);
    let nowhere = format!("provider.main.url=http://127.0.0.1:{}", free_port());
    bad(Sandbox::of(&sim).set(&nowhere), "provider", &["Connection refused", "provider.url"]);
    let elsewhere = format!("public_url=http://127.0.0.1:{}", free_port());
    bad(Sandbox::of(&sim).set(&elsewhere), "callbacks", &["public_url"]);
    let sandbox = Sandbox::of(&sim);
    fs::write(sandbox.path("store"), "not a folder").expect("the sandbox can be written");
    bad(sandbox, "store", &["store"]);
    assert_eq!(sim.ledger().requests("in.php"), 0);
}
