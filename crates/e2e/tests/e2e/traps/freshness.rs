//! Never stale: no token is handed out with less life than was promised, whichever node was frozen.

use super::{until_ledger, was_sold};
use crate::provider::Sim;
use crate::sandbox::{Sandbox, line};
use crate::wait::until;
use serde_json::{Value, json};

pub(super) fn now_ms(sim: &Sim) -> u64 {
    sim.read("ledger?summary=1")["now_ms"].as_u64().expect("it knows the time")
}

fn short(sandbox: Sandbox) -> Sandbox {
    sandbox.set("kinds.recaptcha_v2.life=4s").set("kinds.recaptcha_v2.margin=2s")
}

#[test]
fn a_token_is_not_handed_out_when_its_life_is_nearly_over() {
    let sim = Sim::start();
    let sandbox = short(Sandbox::of(&sim));
    let first = sandbox.solve("fresh", &["--json"]).must_succeed().json();
    let expires = first["expires_ms"].as_u64().expect("a token expires");
    assert!(expires <= now_ms(&sim) + 4_000, "{first}");
    until("less life than is promised", || (now_ms(&sim) > expires - 2_000).then_some(()));
    let second = sandbox.solve("fresh", &["--json"]).must_succeed().json();
    assert_ne!(first["answer"], second["answer"]);
    was_sold(&sim, "fresh", &second["answer"]);
    assert_eq!((sim.ledger().accepted(), &second["origin"]), (2, &json!("api")));
}

#[test]
fn a_caller_that_needs_more_life_than_is_left_gets_a_new_token() {
    let sim = Sim::start();
    let sandbox = Sandbox::of(&sim);
    let first = sandbox.solve("long", &["--json"]).must_succeed().json();
    let second = sandbox.solve("long", &["--json", "--min-life", "119500ms"]);
    // Either it was quick enough to have that much left, or another one was bought; never less than requested.
    if second.code == Some(0) {
        let second = second.json();
        let left = second["expires_ms"].as_u64().expect("a token expires");
        assert!(
            second["answer"] != first["answer"]
                || left >= first["expires_ms"].as_u64().expect("so does this")
        );
    }
    sandbox.solve("longer", &["--min-life", "121s"]).must_fail(2, &["min_life"]);
}

#[test]
fn a_token_that_grew_old_while_the_engine_was_dead_is_bought_again_and_not_handed_out() {
    let sim = Sim::start();
    sim.script(&json!([{ "on": "pingback", "nth": 1, "do": { "lost": {} } }]));
    let sandbox = short(Sandbox::of(&sim)).set("kinds.recaptcha_v2.p95=3s").set("kinds.recaptcha_v2.p99=4s");
    let mut engine = sandbox.engine();
    engine.say(&line(1, "aged"));
    until_ledger(&sim, "the task is solved", |ledger| ledger.total("solved") == 1);
    engine.kill();
    let solved = sim.ledger().tasks()[0]["solved_at_ms"].as_u64().expect("it is solved");
    until("the token has died", || (now_ms(&sim) > solved + 4_000).then_some(()));
    let mut engine = sandbox.engine();
    engine.say(&line(1, "aged"));
    let event = engine.hear("answered");
    let ledger = sim.ledger();
    let first: &Value = &ledger.tasks()[0]["answer"];
    assert_ne!(&event["answer"], first, "it was dead on arrival");
    was_sold(&sim, "aged", &event["answer"]);
    assert!(event["expires_ms"].as_u64() >= Some(now_ms(&sim)), "{event}");
}

#[test]
fn an_answer_under_a_key_that_has_expired_is_not_bought_again_in_silence() {
    let sim = Sim::start();
    let sandbox = short(Sandbox::of(&sim));
    let key = ["--json", "--idempotency-key", "once"];
    let first = sandbox.solve("keyed", &key).must_succeed().json();
    let expires = first["expires_ms"].as_u64().expect("a token expires");
    until("the token has died", || (now_ms(&sim) > expires).then_some(()));
    let again = sandbox.solve("keyed", &key);
    again.must_fail(1, &["has expired", "another key"]);
    assert_eq!(again.json()["error"]["code"], "key_expired");
    assert_eq!(sim.ledger().accepted(), 1);
}
