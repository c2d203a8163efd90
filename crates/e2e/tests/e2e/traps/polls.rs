//! Polls that get fewer parts, malformed replies, or none: this neither stops other polls nor mixes up answers.

use super::was_sold;
use crate::engine::EngineProcess;
use crate::provider::Sim;
use crate::sandbox::{Sandbox, line};
use serde_json::{Value, json};

/// Places these orders and waits for all answers. Each must be one that was sold for its own captcha.
fn all_answered(engine: &mut EngineProcess, sim: &Sim, marks: &[String]) {
    for (id, mark) in (0..).zip(marks) {
        engine.say(&line(id, mark));
    }
    for _ in marks {
        let event = engine.hear("answered");
        let id = event["id"].as_u64().and_then(|id| usize::try_from(id).ok()).expect("it is one of ours");
        was_sold(sim, &marks[id], &event["answer"]);
    }
}

fn marks(name: &str, count: usize) -> Vec<String> {
    (0..count).map(|nth| format!("{name}-{nth}")).collect()
}

#[test]
fn a_batched_poll_with_fewer_parts_than_ids_mixes_nothing_up() {
    let sim = Sim::start();
    sim.script(&json!([
        { "on": "res.php", "do": { "fewer_parts": {} } },
        { "on": "in.php", "do": { "solve_ms": 700 } },
    ]));
    let mut engine = Sandbox::polling(&sim).engine();
    all_answered(&mut engine, &sim, &marks("batch", 12));
    let ended = engine.finish();
    let ledger = sim.ledger();
    assert_eq!((ledger.accepted(), ended.book("possible_doubles")), (12, 0));
    assert!(ledger.0["totals"]["faults"]["fewer_parts"].as_u64() >= Some(1), "{}", ledger.0["totals"]);
}

#[test]
fn answers_with_the_mark_that_divides_a_batch_are_not_cut() {
    let sim = Sim::start();
    let rule = |nth: u64| json!({ "on": "in.php", "nth": nth, "do": { "answer": format!("a|{nth}|CAPCHA_NOT_READY") } });
    let mut rules: Vec<Value> = (1..=8).map(rule).collect();
    rules.push(json!({ "on": "in.php", "do": { "solve_ms": 500 } }));
    sim.script(&json!(rules));
    let mut engine = Sandbox::polling(&sim).engine();
    all_answered(&mut engine, &sim, &marks("divided", 8));
    assert_eq!(sim.ledger().accepted(), 8);
}

#[test]
fn one_malformed_or_hanging_poll_does_not_stop_the_others() {
    for fault in [
        json!({ "garbage": {} }),
        json!({ "hang_ms": 5_000 }),
        json!({ "html": {} }),
        json!({ "status": 500 }),
    ] {
        let sim = Sim::start();
        let bad = json!({ "pageurl": "https://bad.*" });
        sim.script(&json!([
            { "on": "res.php", "match": bad, "do": fault },
            { "on": "in.php", "do": { "solve_ms": 50 } },
        ]));
        let mut engine = Sandbox::polling(&sim).engine();
        engine.say(&line(99, "bad"));
        engine.hear("accepted");
        super::until_ledger(&sim, "the bad poll", |ledger| ledger.polls() >= 1);
        all_answered(&mut engine, &sim, &marks("good", 10));
        sim.script(&json!([]));
        let event = engine.hear("answered");
        assert_eq!(event["id"], 99, "the bad one is late, not lost");
        was_sold(&sim, "bad", &event["answer"]);
        engine.finish();
        assert_eq!(sim.ledger().accepted(), 11);
    }
}

#[test]
fn a_result_that_has_vanished_is_reported_and_not_polled_for_ever() {
    let sim = Sim::start();
    sim.script(&json!([{ "on": "in.php", "do": { "vanish": {} } }]));
    let sandbox = Sandbox::polling(&sim);
    sandbox.solve("vanished", &[]).must_fail(1, &["ERROR_WRONG_CAPTCHA_ID"]);
    assert_eq!(sim.ledger().accepted(), 1);
    let code_count = &sim.ledger().0["totals"]["codes"]["ERROR_WRONG_CAPTCHA_ID"];
    assert_eq!(code_count, &json!(1), "to ask for it again leads to a ban");
}
