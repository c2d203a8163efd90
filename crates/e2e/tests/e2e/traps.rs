//! Traps: mistakes that others made, as far as they can be seen from outside. Each is a test with a sentence as its
//! name. The provider's ledger shows what really happened.

mod callbacks;
mod callers;
mod freshness;
mod money;
mod polls;
mod retries;
mod reuse;

use crate::engine::EngineProcess;
use crate::provider::Sim;
use crate::sandbox::page;
use crate::wait::until;
use serde_json::Value;

/// Waits until this holds for the ledger.
fn until_ledger(sim: &Sim, what: &str, holds: impl Fn(&crate::provider::SimLedger) -> bool) {
    until(what, || holds(&sim.ledger()).then_some(()));
}

/// Checks that the answer was sold for this captcha.
#[track_caller]
fn was_sold(sim: &Sim, mark: &str, answer: &Value) {
    let ledger = sim.ledger();
    let page = page(mark);
    let sold = ledger.by_page().remove(page.as_str()).unwrap_or_default();
    assert!(
        sold.iter().any(|task| &task["answer"] == answer),
        "{answer} was never sold for {mark}: {}",
        ledger.0
    );
}

/// Places one order and waits for its answer.
fn answer(engine: &mut EngineProcess, sim: &Sim, mark: &str) -> Value {
    engine.say(&crate::sandbox::line(1, mark));
    let event = engine.hear("answered");
    was_sold(sim, mark, &event["answer"]);
    event
}
