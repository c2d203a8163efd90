//! Paid once: herds, keys that must differ and keys that must not, crashes, and attempts in doubt without a callback.

use super::{answer, until_ledger, was_sold};
use crate::provider::Sim;
use crate::sandbox::{Sandbox, line};
use serde_json::{Value, json};
use std::collections::BTreeSet;

#[test]
fn a_herd_of_fifty_pays_once() {
    let sim = Sim::start();
    sim.script(&json!([{ "on": "in.php", "do": { "solve_ms": 300 } }]));
    let mut engine = Sandbox::of(&sim).engine();
    (0..50).for_each(|id| engine.say(&line(id, "herd")));
    let ended = engine.finish();
    let answers: BTreeSet<String> = ended
        .events
        .iter()
        .filter(|event| event["event"] == "answered")
        .map(|event| event["answer"].to_string())
        .collect();
    assert_eq!((ended.count("answered"), answers.len()), (50, 1), "{ended:?}");
    assert_eq!(sim.ledger().accepted(), 1);
    let shared = ended.book("joined") + ended.book("cached");
    assert_eq!((ended.book("asked"), ended.book("paid"), shared), (50, 1, 49));
}

#[test]
fn a_caller_that_wants_its_own_answer_gets_one() {
    let sim = Sim::start();
    let mut engine = Sandbox::of(&sim).engine();
    for id in 0..5 {
        let mut order = line(id, "exclusive");
        order["reuse"] = json!("exclusive");
        engine.say(&order);
    }
    let ended = engine.finish();
    let answers: BTreeSet<String> = ended
        .events
        .iter()
        .filter(|event| event["event"] == "answered")
        .map(|event| event["answer"].to_string())
        .collect();
    assert_eq!((answers.len(), sim.ledger().accepted()), (5, 5), "{ended:?}");
}

#[test]
fn a_crash_resumes_the_task_that_was_paid_for() {
    let sim = Sim::start();
    sim.script(&json!([{ "on": "in.php", "do": { "solve_ms": 1_500 } }]));
    for sandbox in [Sandbox::of(&sim), Sandbox::polling(&sim)] {
        let before = sim.ledger().accepted();
        let mark = format!("crash-{before}");
        let mut engine = sandbox.engine();
        engine.say(&line(1, &mark));
        engine.hear("accepted");
        until_ledger(&sim, "the id is with the engine", |ledger| {
            ledger.accepted() == before + 1
                && ledger.tasks().iter().all(|task| task["reply_delivered"] == true)
        });
        // The answer to the id is known once it is polled, or called back.
        until_ledger(&sim, "the task is known", |ledger| {
            let last = ledger.tasks().last().expect("there is one");
            last["polls"].as_u64() > Some(0) || last["pingbacks_acked"].as_u64() > Some(0)
        });
        engine.kill();
        let mut engine = sandbox.engine();
        engine.say(&line(1, &mark));
        let event = engine.hear("answered");
        was_sold(&sim, &mark, &event["answer"]);
        let ended = engine.finish();
        assert_eq!(sim.ledger().accepted(), before + 1, "paid again after a crash");
        assert_eq!(ended.book("possible_doubles"), 0);
    }
}

#[test]
fn what_a_crash_left_behind_is_resumed_without_a_new_request() {
    let sim = Sim::start();
    sim.script(&json!([{ "on": "in.php", "do": { "solve_ms": 500 } }]));
    let sandbox = Sandbox::of(&sim);
    let mut engine = sandbox.engine();
    (0..10).for_each(|id| engine.say(&line(id, &format!("left-{id}"))));
    (0..10).for_each(|_| _ = engine.hear("accepted"));
    engine.kill();
    let ended = sandbox.engine().finish();
    assert_eq!(ended.book("solved"), 10, "{ended:?}");
    let (paid, taken) = (ended.book("paid"), sim.ledger().accepted());
    let doubts = ended.book("in_doubt") - ended.book("in_doubt_settled");
    assert!(paid <= taken && taken <= paid + doubts, "{taken} taken: {ended:?}");
}

#[test]
fn without_a_callback_address_a_doubt_is_submitted_again_and_stands_in_the_usage() {
    let sim = Sim::start();
    sim.script(&json!([{ "on": "in.php", "nth": 1, "do": { "reply_lost": {} } }]));
    let mut engine = Sandbox::polling(&sim).engine();
    answer(&mut engine, &sim, "doubt");
    let ended = engine.finish();
    assert_eq!(sim.ledger().accepted(), 2);
    assert_eq!((ended.book("paid"), ended.book("possible_doubles")), (1, 1));
}

#[test]
fn an_operator_may_choose_a_dead_letter_instead_of_paying_twice() {
    let sim = Sim::start();
    sim.script(&json!([{ "on": "in.php", "nth": 1, "do": { "reply_lost": {} } }]));
    let sandbox = Sandbox::polling(&sim).set("retry.when_in_doubt=dead_letter");
    sandbox.solve("dead", &[]).must_fail(1, &["dead letter"]);
    assert_eq!((sim.ledger().accepted(), sandbox.dead_letters().len()), (1, 1));
    sandbox.solve("dead", &[]).must_fail(1, &["replay or drop"]);
    assert_eq!(sim.ledger().requests("in.php"), 1, "only a person may decide to pay again");
}

/// How many tasks these orders cost together.
fn cost(orders: &[Value]) -> u64 {
    let sim = Sim::start();
    let mut engine = Sandbox::of(&sim).engine();
    orders.iter().for_each(|order| engine.say(order));
    let ended = engine.finish();
    assert_eq!(ended.count("answered"), orders.len(), "{ended:?}");
    sim.ledger().accepted()
}

/// An image in base64. Its first bytes, more than a hundred, are equal for every mark.
fn picture(mark: u8) -> String {
    let mut bytes = b"GIF89a\x40\x00\x20\x00\x80\x00\x00\x00\x00\x00\xff\xff\xff\x2c\x00\x00\x00\x00\x40\x00\x20\x00\x00\x02".to_vec();
    bytes.resize(300, 7);
    bytes.extend([mark, 0x3b, 0x3b]);
    // Whole groups of three, so that there is nothing to pad.
    bytes.resize(bytes.len().next_multiple_of(3), 0x3b);
    let alphabet = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let sextets = |group: &[u8]| {
        let bits = u32::from(group[0]) << 16 | u32::from(group[1]) << 8 | u32::from(group[2]);
        [18, 12, 6, 0].map(|shift| char::from(alphabet[(bits >> shift & 63) as usize]))
    };
    bytes.chunks(3).flat_map(sextets).collect()
}

#[test]
fn pictures_that_differ_only_at_their_end_are_two_orders_and_equal_ones_are_one() {
    let order = |id: u64, mark: u8| json!({ "id": id, "kind": "image", "files": { "body": picture(mark) } });
    assert_eq!(cost(&[order(1, 1), order(2, 2), order(3, 1)]), 2);
}

#[test]
fn the_action_the_page_and_the_kind_tell_orders_apart() {
    let order = |id: u64, kind: &str, page: &str, action: &str| {
        let key = "6Le-0123456789abcdefghijklmnopqrstuv";
        let page = format!("https://{page}.example.com/");
        let mut params = json!({ "pageurl": page, "googlekey": key });
        if kind == "recaptcha_v3" {
            params["action"] = json!(action);
        }
        json!({ "id": id, "kind": kind, "params": params })
    };
    let orders = [
        order(1, "recaptcha_v3", "a", "login"),
        order(2, "recaptcha_v3", "a", "search"),
        order(3, "recaptcha_v3", "b", "login"),
        order(4, "recaptcha_v2", "a", ""),
        order(5, "recaptcha_v3", "a", "login"),
    ];
    assert_eq!(cost(&orders), 4);
}
