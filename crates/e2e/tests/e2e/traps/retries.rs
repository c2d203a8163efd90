//! Retries: within their limit even across restarts, never after a permanent fault, and never before other orders.

use super::{answer, until_ledger};
use crate::provider::Sim;
use crate::sandbox::{Sandbox, line};
use crate::wait::until;
use serde_json::json;

#[test]
fn a_permanent_code_is_never_retried() {
    let sim = Sim::start();
    let sandbox = Sandbox::of(&sim);
    for (nth, code) in
        ["ERROR_WRONG_GOOGLEKEY", "ERROR_PAGEURL", "ERROR_BAD_PARAMETERS"].into_iter().enumerate()
    {
        sim.script(&json!([{ "on": "in.php", "do": { "code": code } }]));
        sandbox.solve(&format!("permanent-{nth}"), &[]).must_fail(1, &[code, "quittance errors"]);
        assert_eq!(sim.ledger().requests("in.php"), nth as u64 + 1, "{code}");
    }
    assert_eq!(sim.ledger().accepted(), 0);
}

#[test]
fn a_refusal_holds_back_a_herd_and_is_not_remembered_for_ever() {
    let sim = Sim::start();
    sim.script(&json!([{ "on": "in.php", "nth": 1, "do": { "code": "ERROR_WRONG_GOOGLEKEY" } }]));
    let sandbox = Sandbox::of(&sim);
    sandbox.solve("refused", &[]).must_fail(1, &["ERROR_WRONG_GOOGLEKEY"]);
    sandbox.solve("refused", &[]).must_fail(1, &["a moment ago", "ERROR_WRONG_GOOGLEKEY"]);
    assert_eq!(sim.ledger().requests("in.php"), 1, "the second was held back");
    let later = sandbox.set("timing.refusal_hold=0s");
    later.solve("refused", &[]).must_succeed();
    assert_eq!(sim.ledger().accepted(), 1);
}

#[test]
fn an_unsolvable_task_is_submitted_again_within_its_limit_and_not_polled_again() {
    let sim = Sim::start();
    sim.script(&json!([{ "on": "in.php", "do": { "unsolvable": {} } }]));
    let sandbox = Sandbox::polling(&sim);
    sandbox.solve("unsolvable", &[]).must_fail(1, &["ERROR_CAPTCHA_UNSOLVABLE", "dead letter"]);
    let ledger = sim.ledger();
    assert_eq!((ledger.accepted(), ledger.requests("in.php")), (3, 3), "the first, and two more");
    let code_count = &ledger.0["totals"]["codes"]["ERROR_CAPTCHA_UNSOLVABLE"];
    assert_eq!(code_count, &json!(3), "each was polled until its end, and never after");
    assert_eq!(sandbox.dead_letters().len(), 1);
    sim.script(&json!([{ "on": "in.php", "nth": 1, "do": { "unsolvable": {} } }]));
    let mut engine = sandbox.engine();
    assert_eq!(answer(&mut engine, &sim, "solvable-at-last")["attempt"], 2);
}

#[test]
fn the_count_of_retries_survives_restarts() {
    let sim = Sim::start();
    sim.script(&json!([{ "on": "in.php", "do": { "code": "ERROR_NO_SLOT_AVAILABLE" } }]));
    let sandbox = ["retry.limits.busy=4", "retry.base=400ms", "retry.cap=400ms", "retry.limits.in_doubt=2"];
    let sandbox = sandbox.into_iter().fold(Sandbox::of(&sim), Sandbox::set);
    let mut engine = sandbox.engine();
    engine.say(&line(1, "restarts"));
    engine.hear("accepted");
    for submits in 1..=4 {
        // A kill between the call and its reply makes a doubt, which has a limit of its own.
        until("the next submit, or the end", || {
            let is_over =
                engine.next(std::time::Duration::ZERO).is_some_and(|event| event["event"] == "failed");
            (is_over || sim.ledger().requests("in.php") >= submits).then_some(())
        });
        engine.kill();
        engine = sandbox.engine();
    }
    engine.finish();
    let entries = sandbox.dead_letters();
    assert_eq!(entries.len(), 1);
    let submits = sim.ledger().requests("in.php");
    assert!(
        (5..=7).contains(&submits),
        "{submits} submits with a limit of 4 retries and 2 doubts: {entries:?}"
    );
    assert_eq!(sim.ledger().accepted(), 0);
}

#[test]
fn an_order_asks_for_fewer_retries_and_never_gets_more_than_the_operator_allows() {
    let sim = Sim::start();
    sim.script(&json!([{ "on": "in.php", "do": { "code": "ERROR_NO_SLOT_AVAILABLE" } }]));
    let sandbox = Sandbox::of(&sim).set("retry.max_retries=2").set("retry.base=100ms").set("retry.cap=100ms");
    let mut submits = 0;
    for (mark, more, attempts) in [
        ("none", &["--max-retries", "0"][..], 1),
        ("one", &["--max-retries", "1"], 2),
        ("many", &["--max-retries", "50"], 3),
        ("usual", &[], 3),
    ] {
        sandbox.solve(mark, more).must_fail(1, &["ERROR_NO_SLOT_AVAILABLE", "dead letter"]);
        submits += attempts;
        assert_eq!(sim.ledger().requests("in.php"), submits, "{mark}");
    }
    sandbox.solve("odd", &["--max-retries", "51"]).must_fail(2, &["--max-retries", "0..=50"]);
}

#[test]
fn a_retry_holds_up_no_other_order() {
    let sim = Sim::start();
    let bad = json!({ "pageurl": "https://bad-*" });
    sim.script(&json!([{ "on": "in.php", "match": bad, "do": { "status": 500 } }]));
    let sandbox = Sandbox::polling(&sim).set("retry.base=30s").set("retry.cap=60s");
    let mut engine = sandbox.engine();
    (0..20).for_each(|id| engine.say(&line(id, &format!("bad-{id}"))));
    until_ledger(&sim, "the failures", |ledger| ledger.requests("in.php") == 20);
    (20..40).for_each(|id| engine.say(&line(id, &format!("good-{id}"))));
    for _ in 0..20 {
        let event = engine.hear("answered");
        assert!(event["id"].as_u64() >= Some(20), "{event}");
    }
}

#[test]
fn a_busy_provider_is_tried_again_until_it_takes_the_task() {
    // One slot, or one thread, for ten orders; captchaai says ERROR_ZERO_BALANCE for that.
    for (dialect, limit) in [("2captcha", ["--queue", "1"]), ("captchaai", ["--threads", "1"])] {
        let sim = Sim::start_with(dialect, &limit);
        let sandbox = Sandbox::of(&sim).set("retry.limits.busy=100");
        let mut engine = sandbox.engine();
        (0..10).for_each(|id| engine.say(&line(id, &format!("busy-{id}"))));
        let ended = engine.finish();
        assert_eq!((ended.count("answered"), sim.ledger().accepted()), (10, 10), "{dialect}: {ended:?}");
    }
}

#[test]
fn an_unlisted_code_is_tried_again_twice_and_shown_as_it_came() {
    let sim = Sim::start();
    sim.script(&json!([{ "on": "in.php", "do": { "code": "ERROR_OF_THE_MOON" } }]));
    let sandbox = Sandbox::of(&sim);
    sandbox.solve("unseen", &[]).must_fail(1, &["ERROR_OF_THE_MOON", "unlisted_code"]);
    assert_eq!(sim.ledger().requests("in.php"), 3);
    // What the operator knows better holds from then on.
    let config = std::fs::read_to_string(sandbox.path("quittance.toml")).expect("it is there");
    let taught =
        config.replace("\n[timing]", "\n[provider.faults]\nERROR_OF_THE_MOON = \"caller\"\n\n[timing]");
    std::fs::write(sandbox.path("quittance.toml"), taught).expect("it can be written");
    sandbox.solve("taught", &[]).must_fail(1, &["ERROR_OF_THE_MOON", "rejected"]);
    assert_eq!(sim.ledger().requests("in.php"), 4);
}
