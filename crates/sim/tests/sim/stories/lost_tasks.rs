//! Two providers: what becomes of orders whose task, kind or provider is gone.

use crate::stories::two_providers::{Mood, Scene, accounts, check_doubts, says_why};
use crate::stories::world::turnstile;
use quittance_engine::{OutageReplays, ProviderRules};
use quittance_lifecycle::{Phase, Policy};
use quittance_ports::{MemorySpill, Provider};
use std::sync::Arc;

/// Trap: a task id of one provider is sent to another one, which fails the order, or gives the answer of a foreign task.
#[test]
fn a_task_of_a_provider_that_is_not_configured_any_more_is_asked_nowhere_and_its_order_goes_to_the_other_one()
{
    let scene = Scene::with(Policy::DEFAULT, 1);
    let node = scene.node();
    let callers: Vec<_> = (0..8).map(|n| node.begins(turnstile(&format!("site-{n}")))).collect();
    scene.world.after(3);
    assert_eq!(scene.a.accepted(), 8);
    node.kill();
    let only_b: Vec<Arc<dyn Provider>> = vec![Arc::new(scene.b.clone())];
    let _later = scene.world.node_at(Arc::new(MemorySpill::default()), only_b, |settings| {
        settings.providers = vec![ProviderRules { name: "b".into(), ..ProviderRules::default() }];
    });
    scene.world.after(250);
    assert_eq!(scene.b.notes().foreign_polls, 0, "b is not asked for tasks of a");
    for order in scene.world.orders() {
        assert!(matches!(order.phase, Phase::Solved { .. } | Phase::Claimed { .. }), "{:?}", order.timeline);
        assert_eq!(accounts(&order), ["a USD", "b USD"]);
        assert_eq!(order.possible_doubles, 1, "a may have been paid, too");
    }
    drop(callers);
}

/// Trap: a provider that has lost its tasks says that the caller's parameters are wrong.
#[test]
fn orders_whose_tasks_a_provider_has_lost_go_to_the_other_one_at_once() {
    let scene = Scene::new();
    let node = scene.node();
    let callers: Vec<_> = (0..8).map(|n| node.begins(turnstile(&format!("site-{n}")))).collect();
    scene.world.after(3);
    assert_eq!(scene.a.accepted(), 8);
    scene.a.notes().tasks.clear();
    scene.a.is(Mood::Forgetful);
    scene.world.after(40);
    assert!(callers.iter().all(|caller| caller.token().is_some()));
    for order in scene.world.orders() {
        assert_eq!(accounts(&order), ["a USD", "b USD"], "{:?}", order.timeline);
        assert_eq!(order.possible_doubles, 1, "a may have been paid, too");
        check_doubts(&order);
    }
}

/// With one provider only a person may decide to pay again.
#[test]
fn an_order_whose_task_the_only_provider_has_lost_fails() {
    let scene = Scene::new();
    let only_a: Vec<Arc<dyn Provider>> = vec![Arc::new(scene.a.clone())];
    let node = scene.world.node_at(Arc::new(MemorySpill::default()), only_a, |settings| {
        settings.providers = vec![ProviderRules { name: "a".into(), ..ProviderRules::default() }];
    });
    let caller = node.begins(turnstile("site"));
    scene.world.after(3);
    scene.a.notes().tasks.clear();
    scene.world.after(60);
    assert!(matches!(scene.world.orders()[0].phase, Phase::Failed { .. }));
    assert_eq!(scene.a.submits_since(0), 1);
    drop(caller);
}

/// Trap: orders of a kind that no provider sells wait until their deadline, because each provider has rejected it before.
#[test]
fn a_kind_that_no_provider_sells_fails_at_once_also_the_second_time() {
    let scene = Scene::new();
    scene.a.is(Mood::SellsNo("turnstile"));
    scene.b.is(Mood::SellsNo("turnstile"));
    let node = scene.node();
    for round in 0..3 {
        let begun = scene.world.now();
        let caller = node.begins(turnstile(&format!("site-{round}")));
        scene.world.after(3);
        let orders = scene.world.orders();
        let failed = orders.iter().filter(|order| matches!(order.phase, Phase::Failed { .. })).count();
        assert_eq!(failed, round + 1, "{:?}", orders.last().map(|order| &order.timeline));
        assert!(scene.a.submits_since(begun) + scene.b.submits_since(begun) <= 2);
        drop(caller);
    }
}

#[test]
fn a_resume_forgets_which_kinds_a_provider_does_not_sell() {
    let scene = Scene::new();
    scene.a.is(Mood::SellsNo("turnstile"));
    let node = scene.node();
    let first = node.asks(turnstile("first"));
    scene.world.after(20);
    assert!(first.token().is_some() && says_why(&scene.world.orders()[0], "a does not sell this kind"));
    scene.a.is(Mood::Well);
    let engine = Arc::clone(&node.engine);
    node.does(async move { engine.release().await.expect("the store is there") });
    let second = node.asks(turnstile("second"));
    scene.world.after(20);
    assert!(second.token().is_some());
    assert_eq!(scene.a.accepted(), 1, "a is asked again");
}

/// Trap: no node finds out that an outage is over, because no order is sent to a provider that has tripped.
#[test]
fn what_died_of_an_outage_is_replayed_also_if_no_new_order_comes() {
    let scene = Scene::new();
    let only_a: Vec<Arc<dyn Provider>> = vec![Arc::new(scene.a.clone())];
    let node = scene.world.node_at(Arc::new(MemorySpill::default()), only_a, |settings| {
        settings.providers = vec![ProviderRules { name: "a".into(), ..ProviderRules::default() }];
        settings.outage_replays = OutageReplays { is_on: true, ..OutageReplays::DEFAULT };
        settings.providers[0].throttle.retry_burst = 10_000;
    });
    scene.a.is(Mood::Gone);
    let callers: Vec<_> = (0..20).map(|n| node.begins(turnstile(&format!("site-{n}")).within(10))).collect();
    scene.world.after(20);
    assert!(scene.world.orders().iter().all(|order| order.phase.is_dead()));
    scene.world.after(60);
    assert!(scene.world.orders().iter().all(|order| order.phase.is_dead()), "it is not over yet");
    scene.a.is(Mood::Well);
    scene.world.after(120);
    let orders = scene.world.orders();
    let solved = orders.iter().filter(|order| order.phase.name() == "solved").count();
    assert_eq!(solved, 20, "{:?}", orders[0].timeline);
    drop(callers);
}
