//! Providers that do not exist, are away, or do not know our key. The order is kept, and when the fault is fixed, the
//! answer comes and is paid for once.

use crate::http::{Website, free_port};
use crate::provider::Sim;
use crate::sandbox::Sandbox;
use crate::wait::now;
use serde_json::json;
use std::time::Duration;

#[test]
fn a_website_instead_of_a_provider_is_recognised_and_the_order_kept() {
    let site = Website::start();
    let sandbox = Sandbox::at(&site.url, "2captcha").set("retry.limits.in_doubt=1");
    sandbox.solve("html", &[]).must_fail(1, &["HTML", "provider.url", "quittance dead"]);
    assert_eq!(sandbox.dead_letters().len(), 1);
    assert!(site.calls() >= 2, "it was tried again, within its limit");
    let doctor = sandbox.run(&["doctor"]);
    assert_eq!(doctor.code, Some(1), "{doctor:?}");
    assert!(doctor.out.contains("HTML") && doctor.out.contains("provider.url"), "{doctor:?}");
}

/// The advice was to report a bug of ours.
#[test]
fn doctor_names_a_dialect_that_the_service_does_not_know() {
    let sim = Sim::start();
    let ran = Sandbox::at(&sim.url, "captchaai").run(&["doctor"]);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(
        ran.out.contains("check that provider.dialect is its dialect") && !ran.out.contains("bug"),
        "{ran:?}"
    );
}

#[test]
fn a_provider_that_answers_html_for_a_while_costs_nothing_and_a_replay_gets_the_answer() {
    let sim = Sim::start();
    sim.script(&json!([{ "on": "in.php", "every": 1, "do": { "html": { "taken": false } } }]));
    let sandbox = Sandbox::of(&sim).set("retry.limits.in_doubt=1");
    sandbox.solve("html", &[]).must_fail(1, &["HTML", "quittance dead show"]);
    assert_eq!(sim.ledger().accepted(), 0);
    let entries = sandbox.dead_letters();
    assert_eq!((entries.len(), &entries[0]["attempts"]), (1, &json!(2)));
    sim.calm();
    sandbox.run(&["dead", "replay", "--all", "--yes"]).must_succeed();
    assert!(sandbox.dead_letters().is_empty());
    assert_eq!(sim.ledger().accepted(), 1);
}

#[test]
fn a_wrong_key_ends_at_once_and_the_same_command_gets_the_answer_when_it_is_right() {
    for (reuse, paid_for_a_repeat) in [("shared", 1), ("by_kind", 2)] {
        a_wrong_key_costs_nothing(reuse, paid_for_a_repeat);
    }
}

/// A shared order is kept and continues. Without sharing, no caller could come back for the order, so it must not be
/// bought in addition to the next one.
fn a_wrong_key_costs_nothing(reuse: &str, paid_for_a_repeat: u64) {
    let sim = Sim::start();
    let sandbox =
        Sandbox::of(&sim).set(&format!("reuse.default={reuse}")).with_key("00000000000000000000000000000000");
    let began = now();
    sandbox
        .solve("key", &[])
        .must_fail(6, &["ERROR_KEY_DOES_NOT_EXIST", "Nothing was paid", "run the same command again"]);
    assert!(now() - began < Duration::from_secs(30), "no call waits for a deadline here");
    let ledger = sim.ledger();
    assert_eq!(
        (ledger.accepted(), ledger.requests("in.php")),
        (0, 1),
        "what is permanent is not tried again"
    );
    assert!(sandbox.dead_letters().is_empty(), "it waits, it is not dead");
    let fixed = sandbox.with_key(crate::provider::KEY);
    let answer = fixed.solve("key", &[]);
    answer.must_succeed();
    let ledger = sim.ledger();
    assert_eq!(ledger.accepted(), 1);
    assert_eq!(json!(answer.out.trim_end()), ledger.tasks()[0]["answer"]);
    let is_the_same = fixed.solve("key", &[]).must_succeed().out == answer.out;
    assert_eq!((is_the_same, sim.ledger().accepted()), (paid_for_a_repeat == 1, paid_for_a_repeat));
}

#[test]
fn a_provider_that_is_not_there_makes_a_dead_letter_and_a_replay_gets_the_answer_when_it_is() {
    let address = format!("127.0.0.1:{}", free_port());
    let sandbox = Sandbox::at(&format!("http://{address}"), "2captcha").set("retry.preset=standard");
    sandbox.solve("gone", &[]).must_fail(1, &["Connection refused", "quittance dead show"]);
    let entries = sandbox.dead_letters();
    assert_eq!(
        (entries.len(), &entries[0]["attempts"], &entries[0]["possible_doubles"]),
        (1, &json!(4), &json!(0))
    );
    let order = entries[0]["key"].as_str().expect("it has a name").to_owned();
    sandbox.run(&["dead", "replay", &order[..12]]).must_fail(1, &[]);
    let sim = Sim::start_with("2captcha", &["--listen", &address]);
    let replayed = sandbox.run(&["dead", "replay", &order[..12]]);
    replayed.must_succeed();
    let ledger = sim.ledger();
    assert!(replayed.out.contains(ledger.tasks()[0]["answer"].as_str().expect("a token")), "{replayed:?}");
    assert_eq!(ledger.accepted(), 1);
    assert!(sandbox.dead_letters().is_empty());
}

#[test]
fn no_money_holds_the_order_until_there_is_some() {
    let sim = Sim::start();
    sim.put("account", &json!({ "name": "main", "balance_micros": 0 }));
    let sandbox = Sandbox::of(&sim);
    sandbox.solve("broke", &[]).must_fail(6, &["ERROR_ZERO_BALANCE", "Nothing was paid"]);
    assert_eq!(sim.ledger().requests("in.php"), 1);
    sim.put("account", &json!({ "name": "main", "balance_micros": 1_000_000 }));
    sandbox.solve("broke", &[]).must_succeed();
    assert_eq!(sim.ledger().accepted(), 1);
}
