//! Retries: within their limit also across restarts, never for what is permanent, and never in anybody's way.

use super::{answer, seen};
use crate::provider::Sim;
use crate::room::{Room, line};
use crate::wait::until;
use serde_json::json;

#[test]
fn a_permanent_code_is_never_retried() {
    let sim = Sim::start();
    let room = Room::of(&sim);
    for (nth, code) in
        ["ERROR_WRONG_GOOGLEKEY", "ERROR_PAGEURL", "ERROR_BAD_PARAMETERS"].into_iter().enumerate()
    {
        sim.script(&json!([{ "on": "in.php", "do": { "code": code } }]));
        room.solve(&format!("permanent-{nth}"), &[]).must_fail(1, &[code, "quittance errors"]);
        assert_eq!(sim.ledger().requests("in.php"), nth as u64 + 1, "{code}");
    }
    assert_eq!(sim.ledger().accepted(), 0);
}

#[test]
fn a_refusal_holds_back_a_herd_and_is_not_remembered_for_ever() {
    let sim = Sim::start();
    sim.script(&json!([{ "on": "in.php", "nth": 1, "do": { "code": "ERROR_WRONG_GOOGLEKEY" } }]));
    let room = Room::of(&sim);
    room.solve("refused", &[]).must_fail(1, &["ERROR_WRONG_GOOGLEKEY"]);
    room.solve("refused", &[]).must_fail(1, &["a moment ago", "ERROR_WRONG_GOOGLEKEY"]);
    assert_eq!(sim.ledger().requests("in.php"), 1, "the second was held back");
    let later = room.set("timing.refusal_hold=0s");
    later.solve("refused", &[]).must_succeed();
    assert_eq!(sim.ledger().accepted(), 1);
}

#[test]
fn an_unsolvable_task_is_submitted_again_within_its_limit_and_not_polled_again() {
    let sim = Sim::start();
    sim.script(&json!([{ "on": "in.php", "do": { "unsolvable": {} } }]));
    let room = Room::polling(&sim);
    room.solve("unsolvable", &[]).must_fail(1, &["ERROR_CAPTCHA_UNSOLVABLE", "dead letter"]);
    let ledger = sim.ledger();
    assert_eq!((ledger.accepted(), ledger.requests("in.php")), (3, 3), "the first, and two more");
    let told = &ledger.0["totals"]["codes"]["ERROR_CAPTCHA_UNSOLVABLE"];
    assert_eq!(told, &json!(3), "each was asked for until it said so, and never after");
    assert_eq!(room.dead_letters().len(), 1);
    sim.script(&json!([{ "on": "in.php", "nth": 1, "do": { "unsolvable": {} } }]));
    let mut engine = room.engine();
    assert_eq!(answer(&mut engine, &sim, "solvable-at-last")["attempt"], 2);
}

#[test]
fn the_count_of_retries_survives_restarts() {
    let sim = Sim::start();
    sim.script(&json!([{ "on": "in.php", "do": { "code": "ERROR_NO_SLOT_AVAILABLE" } }]));
    let room = ["retry.limits.busy=4", "retry.base=400ms", "retry.cap=400ms", "retry.limits.in_doubt=2"];
    let room = room.into_iter().fold(Room::of(&sim), Room::set);
    let mut engine = room.engine();
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
        engine = room.engine();
    }
    engine.finish();
    let letters = room.dead_letters();
    assert_eq!(letters.len(), 1);
    let submits = sim.ledger().requests("in.php");
    assert!(
        (5..=7).contains(&submits),
        "{submits} submits with a limit of 4 retries and 2 doubts: {letters:?}"
    );
    assert_eq!(sim.ledger().accepted(), 0);
}

#[test]
fn a_retry_sleeps_in_nobodys_way() {
    let sim = Sim::start();
    let bad = json!({ "pageurl": "https://bad-*" });
    sim.script(&json!([{ "on": "in.php", "match": bad, "do": { "status": 500 } }]));
    let room = Room::polling(&sim).set("retry.base=30s").set("retry.cap=60s");
    let mut engine = room.engine();
    (0..20).for_each(|id| engine.say(&line(id, &format!("bad-{id}"))));
    seen(&sim, "the failures", |ledger| ledger.requests("in.php") == 20);
    (20..40).for_each(|id| engine.say(&line(id, &format!("good-{id}"))));
    for _ in 0..20 {
        let event = engine.hear("answered");
        assert!(event["id"].as_u64() >= Some(20), "{event}");
    }
}

#[test]
fn a_busy_provider_is_tried_again_until_it_has_room() {
    // One slot, or one thread, for ten orders; captchaai says ERROR_ZERO_BALANCE for that.
    for (profile, limit) in [("2captcha", ["--queue", "1"]), ("captchaai", ["--threads", "1"])] {
        let sim = Sim::start_with(profile, &limit);
        let room = Room::of(&sim).set("retry.limits.busy=100");
        let mut engine = room.engine();
        (0..10).for_each(|id| engine.say(&line(id, &format!("busy-{id}"))));
        let ended = engine.finish();
        assert_eq!((ended.count("answered"), sim.ledger().accepted()), (10, 10), "{profile}: {ended:?}");
    }
}

#[test]
fn a_code_that_nobody_has_seen_is_tried_again_twice_and_shown_as_it_came() {
    let sim = Sim::start();
    sim.script(&json!([{ "on": "in.php", "do": { "code": "ERROR_OF_THE_MOON" } }]));
    let room = Room::of(&sim);
    room.solve("unseen", &[]).must_fail(1, &["ERROR_OF_THE_MOON", "unlisted_code"]);
    assert_eq!(sim.ledger().requests("in.php"), 3);
    // What the operator knows better holds from then on.
    let config = std::fs::read_to_string(room.path("quittance.toml")).expect("it is there");
    let taught =
        config.replace("\n[timing]", "\n[provider.faults]\nERROR_OF_THE_MOON = \"caller\"\n\n[timing]");
    std::fs::write(room.path("quittance.toml"), taught).expect("it can be written");
    room.solve("taught", &[]).must_fail(1, &["ERROR_OF_THE_MOON", "refuses"]);
    assert_eq!(sim.ledger().requests("in.php"), 4);
}
