//! Callbacks: lost, early, doubled, forged, with a code in place of an answer, by GET and by POST.

use super::{answer, until_ledger, was_sold};
use crate::http::try_call;
use crate::provider::Sim;
use crate::sandbox::{Sandbox, line};
use serde_json::json;

#[test]
fn a_reply_that_is_lost_after_the_task_was_taken_is_settled_by_the_callback_and_paid_once() {
    let sim = Sim::start();
    sim.script(&json!([
        { "on": "in.php", "nth": 1, "do": { "reply_lost": {} } },
        { "on": "in.php", "do": { "solve_ms": 300 } },
    ]));
    let mut engine = Sandbox::of(&sim).engine();
    answer(&mut engine, &sim, "lost-reply");
    let ended = engine.finish();
    let ledger = sim.ledger();
    assert_eq!((ledger.accepted(), ledger.requests("in.php")), (1, 1));
    assert_eq!((ended.book("paid"), ended.book("in_doubt"), ended.book("in_doubt_settled")), (1, 1, 1));
    assert_eq!(ended.book("possible_doubles"), 0);
}

#[test]
fn a_callback_that_comes_before_the_reply_to_the_submit_is_not_thrown_away() {
    let sim = Sim::start();
    // No poll would find it: it comes by callback only.
    sim.script(&json!([
        { "on": "pingback", "do": { "early": {} } },
        { "on": "res.php", "do": { "code": "CAPCHA_NOT_READY" } },
    ]));
    let mut engine = Sandbox::of(&sim).engine();
    answer(&mut engine, &sim, "early");
    assert_eq!(engine.finish().code, Some(0));
    assert_eq!(sim.ledger().accepted(), 1);
}

#[test]
fn an_early_callback_is_enough_even_if_the_reply_never_comes() {
    let sim = Sim::start();
    sim.script(&json!([
        { "on": "pingback", "do": { "early": {} } },
        { "on": "in.php", "do": { "reply_lost": {} } },
    ]));
    let mut engine = Sandbox::of(&sim).engine();
    answer(&mut engine, &sim, "early-and-lost");
    let ended = engine.finish();
    assert_eq!((sim.ledger().accepted(), ended.book("possible_doubles")), (1, 0));
}

#[test]
fn an_error_code_in_a_callback_is_never_an_answer() {
    let sim = Sim::start();
    // An unlisted code says nothing final: the task is polled.
    sim.script(&json!([{ "on": "pingback", "do": { "code": "ERROR_OF_THE_MOON" } }]));
    let mut engine = Sandbox::of(&sim).engine();
    answer(&mut engine, &sim, "unseen-code");
    assert_eq!(sim.ledger().accepted(), 1);
    // Unsolvable is final for its task: another one is bought.
    sim.script(&json!([{ "on": "pingback", "nth": 1, "do": { "code": "ERROR_CAPTCHA_UNSOLVABLE" } }]));
    let event = answer(&mut engine, &sim, "unsolvable-code");
    assert_eq!(event["attempt"], 2);
    engine.finish();
    assert_eq!(sim.ledger().accepted(), 3);
}

#[test]
fn a_permanent_code_in_a_callback_reaches_the_caller() {
    let sim = Sim::start();
    sim.script(&json!([{ "on": "pingback", "do": { "code": "ERROR_WRONG_CAPTCHA_ID" } }]));
    let sandbox = Sandbox::of(&sim);
    sandbox.solve("permanent", &[]).must_fail(1, &["ERROR_WRONG_CAPTCHA_ID", "rejected"]);
    assert_eq!(sim.ledger().accepted(), 1);
}

#[test]
fn forged_and_unknown_callbacks_change_nothing() {
    let sim = Sim::start();
    sim.script(&json!([
        { "on": "pingback", "do": { "forged": {} } },
        { "on": "in.php", "do": { "solve_ms": 1_000 } },
    ]));
    let sandbox = Sandbox::of(&sim);
    let mut engine = sandbox.engine();
    engine.say(&line(1, "forged"));
    let order = engine.hear("accepted")["order"].as_str().expect("it has a name").to_owned();
    until_ledger(&sim, "the task is taken", |ledger| ledger.accepted() == 1);
    let base = sandbox.callbacks.as_deref().expect("it is called back");
    let mac = "0123456789abcdef0123456789abcdef";
    let form = "application/x-www-form-urlencoded";
    for segment in [
        format!("{order}-1700000000000-1-{mac}"),
        format!("{order}-0-1-"),
        order.clone(),
        "-".to_owned(),
        "%00%1b".to_owned(),
        format!("../../{order}"),
        "x".repeat(5_000),
    ] {
        let url = format!("{base}/{segment}");
        let posted = try_call("POST", &url, form, "id=1&code=forged-answer");
        assert_eq!(posted.map(|(status, _)| status), Some(200), "{segment}");
        let got = try_call("GET", &format!("{url}?id=1&code=forged-answer"), form, "");
        assert_eq!(got.map(|(status, _)| status), Some(200), "{segment}");
    }
    let status =
        |verb: &str, url: &str, body: &str| try_call(verb, url, form, body).map(|(status, _)| status);
    assert_eq!(status("DELETE", &format!("{base}/{order}"), ""), Some(405));
    assert_eq!(status("POST", &base.replace("/callback", "/elsewhere"), "id=1&code=x"), Some(404));
    assert!(matches!(status("POST", &format!("{base}/x"), &"x".repeat(4 << 20)), Some(413) | None));
    let event = engine.hear("answered");
    was_sold(&sim, "forged", &event["answer"]);
    let ended = engine.finish();
    assert!(ended.done()["forged_callbacks"].as_u64() >= Some(14), "{ended:?}");
    assert_eq!((sim.ledger().accepted(), ended.book("paid")), (1, 1));
}

#[test]
fn a_callback_by_post_and_one_by_get_are_both_taken() {
    for dialect in ["2captcha", "captchaai"] {
        let sim = Sim::start_with(dialect, &[]);
        // No poll would find it.
        sim.script(&json!([{ "on": "res.php", "do": { "code": "CAPCHA_NOT_READY" } }]));
        let mut engine = Sandbox::of(&sim).engine();
        answer(&mut engine, &sim, dialect);
        until_ledger(&sim, "the callback is acknowledged", |ledger| ledger.total("pingbacks_acked") == 1);
        assert_eq!(engine.finish().code, Some(0), "{dialect}");
        assert_eq!(sim.ledger().accepted(), 1, "{dialect}");
    }
}

#[test]
fn a_callback_that_comes_twice_settles_once() {
    let sim = Sim::start();
    sim.script(&json!([{ "on": "pingback", "do": { "doubled": {} } }]));
    let mut engine = Sandbox::of(&sim).engine();
    answer(&mut engine, &sim, "doubled");
    until_ledger(&sim, "both callbacks", |ledger| ledger.total("pingbacks_acked") == 2);
    let ended = engine.finish();
    assert_eq!((ended.book("solved"), ended.book("paid"), ended.book("late")), (1, 1, 0));
}

#[test]
fn callbacks_that_are_lost_are_made_up_for_by_a_poll() {
    for dialect in ["2captcha", "captchaai"] {
        let sim = Sim::start_with(dialect, &[]);
        sim.script(&json!([{ "on": "pingback", "do": { "lost": {} } }]));
        let mut engine = Sandbox::of(&sim).engine();
        answer(&mut engine, &sim, "no-callback");
        let ended = engine.finish();
        assert_eq!((sim.ledger().accepted(), ended.book("recovered_by_poll")), (1, 1), "{dialect}");
    }
}

#[test]
fn the_200_to_a_callback_is_sent_only_after_the_answer_is_durable() {
    let sim = Sim::start();
    // A node that did not write it down cannot find it again.
    sim.script(&json!([{ "on": "res.php", "do": { "code": "CAPCHA_NOT_READY" } }]));
    let sandbox = Sandbox::of(&sim);
    for round in 0..5 {
        let mark = format!("durable-{round}");
        let mut engine = sandbox.engine();
        engine.say(&line(1, &mark));
        until_ledger(&sim, "an acknowledged callback", |ledger| ledger.total("pingbacks_acked") == round + 1);
        engine.kill();
        let mut engine = sandbox.engine();
        answer(&mut engine, &sim, &mark);
        assert_eq!(engine.finish().code, Some(0));
    }
    assert_eq!(sim.ledger().accepted(), 5);
}
