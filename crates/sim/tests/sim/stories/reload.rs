//! Settings that change while the node works: no order is lost, and what the node knows stays.

use crate::stories::gates::status;
use crate::stories::two_providers::{Mood, Scene, Service};
use crate::stories::world::{StoryNode, turnstile};
use quittance_engine::{
    ProviderRules, ProviderState, ReloadError, ReloadedProvider, Rules, Settings, TenantRule,
};
use quittance_lifecycle::Policy;
use quittance_ports::{Member, Members};
use quittance_sim::RELOAD_PLANTS;
use std::sync::Arc;

fn provider(name: &str, service: Option<&Service>) -> ReloadedProvider {
    ReloadedProvider {
        rules: ProviderRules { name: name.into(), ..ProviderRules::default() },
        adapter: service.map(|service| Arc::new(service.clone()) as Arc<_>),
    }
}

fn reload(
    node: &StoryNode,
    change: impl FnOnce(&mut Settings),
    providers: impl IntoIterator<Item = ReloadedProvider>,
) -> Result<(), ReloadError> {
    let mut settings = node.engine.current_settings();
    change(&mut settings);
    node.engine.reload(settings, providers)
}

/// Whether nothing is lost and nothing is paid twice when one provider is removed and another one is added.
fn loses_nothing(seed: u64, sow: fn(&mut Rules)) -> bool {
    let scene = Scene::with(Policy::DEFAULT, seed);
    let node = scene.node_with(sow);
    let c = Service::new("c", &scene.world.executor);
    let mut removed_at = u64::MAX;
    let callers: Vec<_> = (0..600)
        .map(|number| {
            if number == 300 {
                removed_at = scene.world.now();
                let next = [provider("b", None), provider("c", Some(&c))];
                reload(&node, |_| {}, next).expect("these settings can be used");
            }
            if number > 300 && number % 50 == 0 {
                let next = [provider("c", None), provider("b", None)];
                reload(&node, |_| {}, next).expect("these settings can be used");
            }
            scene.world.after_ms(20);
            node.begins(turnstile(&format!("site-{seed}-{number}")))
        })
        .collect();
    scene.world.after(60);
    let paid = scene.a.accepted() + scene.b.accepted() + c.accepted();
    callers.iter().all(|caller| caller.token().is_some())
        && paid == 600
        && scene.a.submits_since(removed_at + 1) == 0
        && scene.a.accepted() >= 200
        && c.accepted() >= 200
}

/// Promise: a reload under load loses no order. The tasks at a provider that is removed are polled to their end.
#[test]
fn a_provider_is_removed_and_another_added_under_load_and_nothing_is_lost_or_paid_twice() {
    for seed in 0..8 {
        assert!(loses_nothing(seed, |_| {}), "seed {seed}");
    }
}

/// Whether a provider that is paused, and one that does not answer, stay so when settings are reloaded.
fn keeps_pauses(sow: fn(&mut Rules)) -> bool {
    let scene = Scene::new();
    let node = scene.node_with(sow);
    scene.a.is(Mood::Blocked);
    scene.b.is(Mood::Gone);
    let first = node.asks(turnstile("first"));
    scene.world.after(30);
    let (before, submits) = (scene.world.now(), scene.b.submits_since(0));
    for number in 0..20 {
        reload(&node, |_| {}, [provider("a", None), provider("b", None)]).expect("nothing changes");
        node.asks(turnstile(&format!("later-{number}")));
        scene.world.after_ms(100);
    }
    let is_paused = matches!(node.engine.provider_states()[0].1, ProviderState::Paused { fault: Some(_) });
    drop(first);
    is_paused && scene.a.submits_since(before) == 0 && scene.b.submits_since(0) <= submits + 4
}

/// Promise: what a node has learned about a provider outlives a reload.
#[test]
fn a_paused_provider_stays_paused_and_a_tripped_one_is_not_tried_more_often() {
    assert!(keeps_pauses(|_| {}));
}

/// Whether all orders are answered, and bought once, while only one of two nodes has a new provider.
fn leaves_tasks_to_the_node_that_has_the_provider(sow: fn(&mut Rules)) -> bool {
    let scene = Scene::new();
    let nodes = [scene.node_with(sow), scene.node_with(sow)];
    let now = scene.world.moment(scene.world.now());
    let member = |node: &StoryNode| Member { node_status: status(node), seen: now };
    let members = Members { now, nodes: nodes.iter().map(member).collect() };
    nodes.iter().for_each(|node| node.engine.heed_members(&members));
    let c = Service::new("c", &scene.world.executor);
    reload(&nodes[0], |_| {}, [provider("c", Some(&c))]).expect("these settings can be used");
    let callers: Vec<_> = (0..100)
        .map(|number| {
            scene.world.after_ms(50);
            nodes[0].begins(turnstile(&format!("site-{number}")))
        })
        .collect();
    scene.world.after(60);
    callers.iter().all(|caller| caller.token().is_some())
        && c.accepted() == 100
        && scene.a.accepted() + scene.b.accepted() == 0
}

/// Promise: while settings reach the nodes one after the other, no node asks a wrong provider for a task.
#[test]
fn a_node_without_the_new_provider_leaves_its_tasks_to_the_node_that_has_it() {
    assert!(leaves_tasks_to_the_node_that_has_the_provider(|_| {}));
}

/// Trap: a reload that begins with empty gates asks a blocked account again, and one that drops a provider drops what
/// was paid there.
#[test]
fn planted_bugs_of_the_reload_are_caught() {
    for plant in RELOAD_PLANTS {
        let is_well = loses_nothing(0, plant.sow)
            && keeps_pauses(plant.sow)
            && leaves_tasks_to_the_node_that_has_the_provider(plant.sow);
        assert!(!is_well, "not caught: {}", plant.name);
    }
}

/// Promise: settings that cannot work change nothing.
#[test]
fn wrong_settings_change_nothing() {
    let scene = Scene::new();
    let node = scene.node();
    let wrong = |providers: Vec<ReloadedProvider>| {
        let tenant = |settings: &mut Settings| {
            settings.tenants.insert("anna".into(), TenantRule::default());
        };
        reload(&node, tenant, providers)
    };
    assert_eq!(wrong(Vec::new()), Err(ReloadError::NoProvider));
    let twice = vec![provider("a", None), provider("a", None)];
    assert_eq!(wrong(twice), Err(ReloadError::TwoOfOneName("a".into())));
    let unknown = vec![provider("a", None), provider("c", None)];
    assert_eq!(wrong(unknown), Err(ReloadError::NoAdapter("c".into())));
    let mut other = provider("a", None);
    other.rules.currency = "RUB".into();
    let change = ReloadError::Currency { from: "USD".into(), to: "RUB".into() };
    assert_eq!(wrong(vec![other]), Err(change));
    assert_eq!(node.engine.provider_names(), ["a", "b"]);
    assert!(node.engine.current_settings().tenants.is_empty());
    let caller = node.asks(turnstile("site"));
    scene.world.after(20);
    assert!(caller.token().is_some());
}

/// Promise: rules for orders hold from the next step on.
#[test]
fn the_rules_of_a_tenant_hold_at_once() {
    let scene = Scene::new();
    let node = scene.node();
    let no_turnstile = TenantRule { kinds: Some(vec!["image".into()]), ..TenantRule::default() };
    let tenant = turnstile("site").draft.tenant;
    let limit = |settings: &mut Settings| {
        settings.tenants.insert(tenant, no_turnstile);
    };
    let before = node.asks(turnstile("before"));
    reload(&node, limit, [provider("a", None), provider("b", None)]).expect("they can be used");
    let refused = node.asks(turnstile("after"));
    scene.world.after(20);
    assert!(before.token().is_some(), "what was accepted is carried out");
    assert!(!refused.is_placed());
    reload(&node, |settings| settings.tenants.clear(), [provider("a", None)]).expect("they can be used");
    let again = node.asks(turnstile("again"));
    scene.world.after(20);
    assert!(again.token().is_some());
}
