//! Hedging: an urgent order whose task takes long is also bought at another provider, within a budget. Each rule has a
//! planted bug that its story catches.

use crate::stories::two_providers::{Mood, SOLVE_MS, Scene, accounts};
use crate::stories::world::{StoryNode, StoryOrder, turnstile};
use quittance_engine::{HedgeAfter, Hedging, ProviderRules, Rules};
use quittance_lifecycle::{Money, Policy, Priority, Progress};
use quittance_ports::{MemorySpill, Provider};
use quittance_sim::HEDGE_PLANTS;
use std::sync::Arc;

const PRICE: Money = Money(2_990);
/// The 95th percentile of the kind in the catalogue, in seconds.
const P95: u64 = 45;

type Verdict = Result<(), String>;

fn check(is_true: bool, what: impl Into<String>) -> Verdict {
    if is_true { Ok(()) } else { Err(what.into()) }
}

fn node(scene: &Scene, budget: Money, sow: fn(&mut Rules)) -> StoryNode {
    let services = [&scene.a, &scene.b].map(|service| Arc::new(service.clone()) as Arc<dyn Provider>);
    scene.world.node_at(Arc::new(MemorySpill::default()), services.to_vec(), |settings| {
        settings.providers = ["a", "b"]
            .map(|name| {
                let mut rules = ProviderRules { name: name.into(), ..ProviderRules::default() };
                rules.prices.insert("turnstile".into(), PRICE);
                rules
            })
            .to_vec();
        settings.hedging = Hedging { after: Some(HedgeAfter::P95), budget: Some(budget) };
        sow(&mut settings.rules);
    })
}

fn urgent(site: &str) -> StoryOrder {
    let mut order = turnstile(site);
    order.draft.priority = Some(Priority::Interactive);
    order
}

/// Five urgent orders and five others are at a provider that has become slow.
fn urgent_orders_are_hedged(callbacks: bool, sow: fn(&mut Rules)) -> Verdict {
    let scene = Scene::with(Policy { callbacks, ..Policy::DEFAULT }, 1);
    let node = node(&scene, Money(1_000_000), sow);
    scene.a.is(Mood::Slow);
    let hasty: Vec<_> = (0..5).map(|n| node.begins(urgent(&format!("urgent-{n}")))).collect();
    let others: Vec<_> = (0..5).map(|n| node.begins(turnstile(&format!("usual-{n}")))).collect();
    scene.world.after(P95 - 5);
    check(scene.b.accepted() == 0, "b is asked before the task of a is slow")?;
    // These providers do not call back: with callbacks, the answer of b is polled when its callback is overdue.
    scene.world.after(if callbacks { 75 } else { 25 });
    let answered = hasty.iter().filter(|caller| caller.token().is_some()).count();
    check(answered == 5, format!("{answered} of 5 urgent orders answered soon after {P95} s"))?;
    check(scene.b.accepted() == 5, format!("{} orders bought at b", scene.b.accepted()))?;
    check(others.iter().all(|caller| caller.token().is_none()), "the others wait")?;
    scene.world.after(200);
    check(others.iter().all(|caller| caller.token().is_some()), "the others are answered by a")?;
    let orders = scene.world.orders();
    let hedged = orders.iter().filter(|order| order.attempts.len() == 2).collect::<Vec<_>>();
    check(hedged.len() == 5, format!("{} orders have two attempts", hedged.len()))?;
    for order in hedged {
        check(accounts(order) == ["a USD", "b USD"], format!("{:?}", accounts(order)))?;
        let late = &order.attempts[0].progress;
        check(*late == Progress::Answered, format!("the answer of a is fetched, too: {late:?}"))?;
        check(order.possible_doubles == 0, "the second payment is meant")?;
    }
    let usage = scene.world.usage();
    check((usage.hedged, usage.retried) == (5, 0), format!("{usage:?}"))?;
    check(usage.stocked == 5, format!("{} answers of a went to the stock", usage.stocked))
}

#[test]
fn an_urgent_order_is_bought_at_the_other_provider_when_its_task_takes_long_and_both_answers_are_used() {
    for callbacks in [false, true] {
        urgent_orders_are_hedged(callbacks, |_| {}).unwrap_or_else(|why| panic!("{callbacks}: {why}"));
    }
}

/// A budget for two second purchases a day.
fn hedging_keeps_its_budget(sow: fn(&mut Rules)) -> Verdict {
    let scene = Scene::new();
    let node = node(&scene, Money(PRICE.0 * 2 + 1), sow);
    scene.a.is(Mood::Slow);
    let callers: Vec<_> = (0..6).map(|n| node.begins(urgent(&format!("urgent-{n}")))).collect();
    scene.world.after(P95 + 25);
    check(scene.b.accepted() == 2, format!("{} second purchases of 2", scene.b.accepted()))?;
    scene.world.after(220);
    let answered = callers.iter().filter(|caller| caller.token().is_some()).count();
    check(answered == 6, format!("{answered} of 6 answered: the others wait for a"))?;
    check(scene.b.accepted() == 2, "nothing more is bought at b")
}

#[test]
fn second_purchases_stay_within_their_budget() {
    hedging_keeps_its_budget(|_| {}).unwrap();
}

/// Without a budget, without a second provider or without the setting, nothing is bought twice.
#[test]
fn without_a_budget_nothing_is_hedged() {
    let scene = Scene::new();
    let node = scene.node();
    scene.a.is(Mood::Slow);
    let caller = node.begins(urgent("urgent"));
    scene.world.after(P95 + SOLVE_MS / 1000 + 20);
    assert_eq!((scene.b.accepted(), caller.token()), (0, None));
}

#[test]
fn every_planted_bug_of_hedging_is_caught() {
    for plant in HEDGE_PLANTS {
        let verdicts = [urgent_orders_are_hedged(false, plant.sow), hedging_keeps_its_budget(plant.sow)];
        let caught = verdicts.into_iter().find_map(Result::err);
        println!("{}: {}", plant.name, caught.expect(plant.name));
    }
}
