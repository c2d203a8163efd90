//! Limits of retries: of the operator, a kind, a tenant and a provider, and of an order that asks for less. Each rule
//! has a planted bug that its story catches.

use crate::stories::provider::SubmitScript;
use crate::stories::world::{StoryOrder, turnstile, world};
use quittance_engine::Settings;
use quittance_lifecycle::{FaultClass, Phase, RetryLimits};
use quittance_ports::MemorySpill;
use quittance_sim::plants::story_rules::{
    TransitionRule, a_caller_asks_for_more, a_providers_limit_is_ignored, the_callers_limit_is_ignored,
};
use std::sync::Arc;
use std::time::Duration;

const OFF: SubmitScript = SubmitScript::Refuses(FaultClass::Unreachable, "connection refused");

fn most(retries: u8) -> RetryLimits {
    RetryLimits { max_retries: Some(retries), ..RetryLimits::NONE }
}

fn asking(retries: u8) -> StoryOrder {
    let mut order = turnstile("down");
    order.draft.retry = most(retries);
    order
}

/// How many submits an order makes at a provider that cannot be reached. The node dies after the second.
fn submits(order: StoryOrder, set: impl Fn(&mut Settings), plant: Option<TransitionRule>) -> usize {
    let world = world();
    let start = || {
        world.node_with(Arc::new(MemorySpill::default()), |settings| {
            set(settings);
            if let Some(rule) = plant {
                settings.rules.plant_transition(rule);
            }
        })
    };
    world.provider.on_submit("down", &[OFF; 50]);
    let node = start();
    let key = node.asks(order).key();
    world.after_ms(2_500);
    node.kill();
    let node = start();
    world.after(600);
    assert!(matches!(node.reads(key).phase, Phase::Dead { .. }));
    world.provider.submits("down").len()
}

#[test]
fn an_order_without_retries_makes_one_attempt() {
    assert_eq!(submits(asking(0), |_| {}, None), 1);
    assert!(submits(asking(0), |_| {}, Some(the_callers_limit_is_ignored)) > 1);
}

#[test]
fn an_order_gets_no_more_retries_than_the_operator_allows() {
    let allows_two = |settings: &mut Settings| settings.policy.max_retries = Some(2);
    assert_eq!(submits(turnstile("down"), allows_two, None), 3);
    assert_eq!(submits(asking(9), allows_two, None), 3);
    assert!(submits(asking(9), allows_two, Some(a_caller_asks_for_more)) > 3);
}

#[test]
fn the_limit_of_a_tenant_comes_before_that_of_the_kind_and_that_before_that_of_all() {
    let kind = |settings: &mut Settings| {
        settings.policy.max_retries = Some(5);
        settings.retries.kinds.insert("turnstile".into(), most(1));
    };
    assert_eq!(submits(turnstile("down"), kind, None), 2);
    let tenant = |settings: &mut Settings| {
        kind(settings);
        settings.retries.tenants.insert("ada".into(), most(3));
        settings.retries.tenants.insert("grace".into(), most(0));
    };
    assert_eq!(submits(turnstile("down"), tenant, None), 4);
}

#[test]
fn a_provider_has_a_limit_of_its_own() {
    let set = |settings: &mut Settings| settings.providers[0].retry = most(1);
    assert_eq!(submits(turnstile("down"), set, None), 2);
    assert!(submits(turnstile("down"), set, Some(a_providers_limit_is_ignored)) > 2);
}

#[test]
fn the_pauses_of_a_kind_are_used_and_an_order_can_make_them_longer() {
    let at = |order: StoryOrder| {
        let world = world();
        let node = world.node_with(Arc::new(MemorySpill::default()), |settings| {
            let (base, cap) = (Some(Duration::from_secs(5)), Some(Duration::from_secs(5)));
            settings.retries.kinds.insert("turnstile".into(), RetryLimits { base, cap, max_retries: None });
        });
        world.provider.on_submit("down", &[OFF; 3]);
        node.asks(order);
        world.after(100);
        let at = world.provider.submitted_at("down");
        at.windows(2).map(|pair| (pair[1] - pair[0]) / 1000).collect::<Vec<u64>>()
    };
    assert!(at(turnstile("down")).iter().all(|pause| (5..=6).contains(pause)), "{:?}", at(turnstile("down")));
    let mut slow = turnstile("down");
    slow.draft.retry.base = Some(Duration::from_secs(20));
    assert!(at(slow.clone()).iter().all(|pause| (20..=21).contains(pause)), "{:?}", at(slow));
    let mut quick = turnstile("down");
    quick.draft.retry.cap = Some(Duration::from_secs(1));
    assert!(at(quick.clone()).iter().all(|pause| (5..=6).contains(pause)), "{:?}", at(quick));
}
