//! kill -9 at 200 random moments under load: a storm of faults at the provider, new orders all the time, and an
//! engine that never lives long. Then calm: every accepted order must have ended, and be paid for once, except for
//! the attempts in doubt in the usage.

use crate::engine::{EngineEnd, EngineProcess};
use crate::provider::{Sim, SimLedger};
use crate::sandbox::{Sandbox, line, page};
use crate::usage::usage_equals_ledger;
use crate::wait::{LONG, now, until};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::thread;
use std::time::Duration;

/// Two storms at once, each with a store of its own.
const SEEDS: [u64; 2] = [1, 2];
const KILLS: u32 = 100;
/// How many orders wait for their answer at any time.
const IN_FLIGHT: usize = 60;
/// How often one order is placed again if its event says so.
const TRIES_MAX: u32 = 5;

/// A random number generator (SplitMix64): one seed kills at one set of moments, as far as a machine repeats itself.
pub(crate) struct KillDice(pub(crate) u64);

impl KillDice {
    pub(crate) fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % limit
    }
}

/// The orders and answers of the callers.
#[derive(Default)]
struct DeathCallers {
    seed: u64,
    next_id: u64,
    /// Ids without an answer yet, and how often each was sent.
    pending: BTreeMap<u64, u32>,
    /// The order under which an id was accepted.
    accepted: BTreeMap<u64, String>,
    events: BTreeMap<u64, Value>,
}

impl DeathCallers {
    fn mark(&self, id: u64) -> String {
        // Every third asks for what the one before asks for: they share an order.
        let captcha = if id % 3 == 2 { id - 1 } else { id };
        format!("death-{}-{captcha}", self.seed)
    }

    fn ask(&self, engine: &mut EngineProcess, id: u64) {
        let mut order = line(id, &self.mark(id));
        order["idempotency_key"] = json!(self.mark(id));
        engine.say(&order);
    }

    /// Places orders until enough are in flight.
    fn top_up(&mut self, engine: &mut EngineProcess) {
        while self.pending.len() < IN_FLIGHT {
            let id = self.next_id;
            self.next_id += 1;
            self.pending.insert(id, 1);
            self.ask(engine, id);
        }
    }

    fn ask_again(&self, engine: &mut EngineProcess) {
        self.pending.keys().for_each(|id| self.ask(engine, *id));
    }

    /// Handles an event. Returns the id if its order must be sent again.
    fn hear(&mut self, event: &Value) -> Option<u64> {
        let id = event["id"].as_u64()?;
        if event["event"] == "accepted" {
            let order = event["order"].as_str().expect("an accepted order has a name").to_owned();
            assert_eq!(
                self.accepted.entry(id).or_insert_with(|| order.clone()),
                &order,
                "one key, one order"
            );
            return None;
        }
        // What every client does on such an event.
        let may_ask = matches!(event["error"]["code"].as_str(), Some("not_yet" | "store"));
        if let Some(tries) = self.pending.get_mut(&id).filter(|tries| may_ask && **tries < TRIES_MAX) {
            *tries += 1;
            return Some(id);
        }
        self.pending.remove(&id);
        self.events.insert(id, event.clone());
        None
    }
}

/// The moment at which the engine is killed.
enum Moment {
    After(Duration),
    /// After this many events of this name, or when this engine has lived for long.
    CallerOutcome(&'static str, u64),
}

impl Moment {
    fn drawn(dice: &mut KillDice) -> Self {
        match dice.below(4) {
            0 => Self::CallerOutcome("accepted", 1 + dice.below(20)),
            1 => Self::CallerOutcome("answered", 1 + dice.below(5)),
            // In the middle of starting, too.
            2 => Self::After(Duration::from_millis(dice.below(60))),
            _ => Self::After(Duration::from_millis(dice.below(1_000))),
        }
    }
}

/// Lets the engine work until its moment.
fn live(engine: &mut EngineProcess, callers: &mut DeathCallers, moment: &Moment) {
    let (limit, name, mut left) = match moment {
        Moment::After(span) => (*span, "", 1),
        Moment::CallerOutcome(name, count) => (Duration::from_millis(1_500), *name, *count),
    };
    let end = now() + limit;
    while left > 0 && now() < end {
        let Some(event) = engine.next(end.saturating_duration_since(now())) else { continue };
        left -= u64::from(event["event"] == name);
        if let Some(id) = callers.hear(&event) {
            callers.ask(engine, id);
        }
        if left > 0 {
            callers.top_up(engine);
        }
    }
}

fn storm(sim: &Sim) {
    sim.put("faults", &json!("storm"));
    let mut rates = sim.read("faults");
    // As quick as the spans of the configuration.
    rates["hang_ms"] = json!(1_200);
    rates["slow_ms"] = json!({ "from": 20, "to": 300 });
    sim.put("faults", &rates);
}

/// Kills the engine repeatedly, and lets the last one finish in calm.
fn ordeal(seed: u64, sim: &Sim, sandbox: &Sandbox) -> (DeathCallers, EngineEnd) {
    let mut dice = KillDice(seed);
    let mut callers = DeathCallers { seed, ..DeathCallers::default() };
    storm(sim);
    let mut engine = sandbox.engine();
    for _ in 0..KILLS {
        callers.top_up(&mut engine);
        live(&mut engine, &mut callers, &Moment::drawn(&mut dice));
        for event in engine.kill() {
            callers.hear(&event);
        }
        engine = sandbox.engine();
        callers.ask_again(&mut engine);
    }
    sim.calm();
    let end = now() + LONG * 2;
    while !callers.pending.is_empty() {
        assert!(now() < end, "seed {seed}: never answered: {:?}", callers.pending);
        if let Some(event) = engine.next(LONG)
            && let Some(id) = callers.hear(&event)
        {
            callers.ask(&mut engine, id);
        }
    }
    (callers, engine.finish())
}

/// Checks that every accepted order was answered, has failed for good, or is a dead letter.
fn nothing_is_lost(callers: &DeathCallers, dead: &[Value], ledger: &SimLedger) {
    let dead: BTreeSet<&str> = dead.iter().filter_map(|dead_letter| dead_letter["key"].as_str()).collect();
    let sold = ledger.by_page();
    let mut answered = 0;
    for (id, order) in &callers.accepted {
        let event = callers.events.get(id).unwrap_or_else(|| panic!("{id} was accepted and got no event"));
        let page = page(&callers.mark(*id));
        let tasks = sold.get(page.as_str()).map_or(&[][..], Vec::as_slice);
        match (event["event"].as_str(), event["error"]["code"].as_str()) {
            (Some("answered"), _) => {
                answered += 1;
                let is_sold = tasks.iter().any(|task| task["answer"] == event["answer"]);
                assert!(is_sold, "this was never sold for {page}: {event}");
            }
            (_, Some("dead" | "needs_a_person")) => {
                let is_late = tasks.iter().any(|task| task["delivered"] == true);
                // A dead letter that an answer revived after all is no dead letter any more.
                assert!(dead.contains(order.as_str()) || is_late, "{order} is lost: {event}");
            }
            // A result that has vanished at the provider: the caller got that reason.
            (_, Some("rejected" | "held_back")) => {
                assert!(
                    tasks.iter().any(|task| task["state"] == "vanished"),
                    "refused without a reason: {event}"
                );
            }
            _ => panic!("{id} ended strangely: {event}"),
        }
    }
    assert!(
        answered * 10 >= callers.accepted.len() * 9,
        "only {answered} of {} answered",
        callers.accepted.len()
    );
}

/// Checks that every second payment has a reason in the usage.
pub(crate) fn paid_once(ended: &EngineEnd, ledger: &SimLedger) {
    let (taken, paid) = (ledger.accepted(), ended.book("paid"));
    let bought = ledger.by_page().len() as u64;
    // A task that gave nothing may be bought again; so may one without a reply, and that is counted as a double.
    let for_nothing = ledger.total("failed") + ledger.total("vanished") + ended.book("wasted");
    let doubles = ended.book("possible_doubles");
    assert!(
        taken - bought <= for_nothing + doubles,
        "{taken} taken for {bought} captchas; {for_nothing} gave nothing, {doubles} possible doubles"
    );
    let doubts = ended.book("in_doubt") - ended.book("in_doubt_settled");
    assert!(paid <= taken && taken <= paid + doubts, "{taken} taken, {paid} paid, {doubts} doubts left");
    assert!(taken <= ended.book("attempts"), "no task without an intent on record");
}

#[test]
fn two_hundred_kills_at_random_moments_lose_nothing_and_pay_nothing_twice() {
    let storms = SEEDS.map(|seed| {
        thread::spawn(move || {
            let sim = Sim::start_with(
                "2captcha",
                &["--speed", "100", "--seed", &seed.to_string(), "--queue", "80"],
            );
            let sandbox = [
                "retry.limits.busy=100",
                "retry.limits.unreachable=50",
                "retry.limits.in_doubt=10",
                "retry.limits.unsolvable=8",
                "retry.limits.unlisted_code=20",
                "timing.deadline=100s",
            ];
            let sandbox = sandbox.into_iter().fold(Sandbox::of(&sim), Sandbox::set);
            let (callers, ended) = ordeal(seed, &sim, &sandbox);
            assert_eq!(ended.done()["unreadable_records"], 0);
            // Late pingbacks may still be on their way; the tasks themselves have ended.
            let ledger = until("the last task's end", || {
                Some(sim.ledger()).filter(|ledger| ledger.total("open") == 0)
            });
            nothing_is_lost(&callers, &sandbox.dead_letters(), &ledger);
            paid_once(&ended, &ledger);
            usage_equals_ledger(&sandbox, &sim);
            assert!(ledger.accepted() > u64::from(KILLS), "a storm in which little happened proves little");
        })
    });
    for storm in storms {
        storm.join().unwrap_or_else(|why| std::panic::resume_unwind(why));
    }
}
