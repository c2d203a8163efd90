//! Webhooks: the schedule is a setting, and an endpoint that fails for long is switched off and on again. Each rule has a
//! planted bug that its story catches.

use crate::stories::post::WebhookScript;
use crate::stories::world::{StoryNode, StoryWorld, turnstile, world};
use quittance_engine::Settings;
use quittance_lifecycle::{DeliveryState, Key, WebhookPauses};
use quittance_ports::MemorySpill;
use quittance_sim::plants::story_rules::{an_endpoint_is_never_off, the_webhook_schedule_is_fixed};
use std::sync::Arc;
use std::time::Duration;

const HOOK: &str = "https://caller.example.com/hook";
const OTHER: &str = "https://other.example.com/hook";
const HOUR: u64 = 3600;

/// A node that switches an endpoint off after six hours.
fn node_of(world: &StoryWorld, set: impl FnOnce(&mut Settings)) -> StoryNode {
    world.node_with(Arc::new(MemorySpill::default()), |settings| {
        settings.webhook_off_after = Duration::from_secs(6 * HOUR);
        set(settings);
    })
}

/// Places an order that this webhook waits for.
fn place(world: &StoryWorld, node: &StoryNode, site: &str, url: &str) -> Key {
    world.provider.solves(site, 1);
    let key = node.asks(turnstile(site).exclusive()).key();
    let (engine, url) = (Arc::clone(&node.engine), url.to_owned());
    node.does(async move { engine.listen_for(&key, url, "v1").await }).expect("the store is there");
    key
}

/// Lets an endpoint fail until it is switched off.
fn fail_for_hours(world: &StoryWorld, node: &StoryNode) {
    world.post.on_call(HOOK, &[WebhookScript::Refuses; 10_000]);
    for hour in 0..7 {
        place(world, node, &format!("site-{hour}"), HOOK);
        world.after(HOUR);
    }
}

fn why_dead(node: &StoryNode, key: Key) -> Option<String> {
    node.reads(key).webhooks.iter().find_map(|webhook| match &webhook.state {
        DeliveryState::Dead { why, .. } => Some(why.clone()),
        DeliveryState::Owed { .. } => None,
    })
}

fn failing(node: &StoryNode) -> Vec<(String, bool)> {
    let engine = Arc::clone(&node.engine);
    let notes = node.does(async move { engine.failing_endpoints().await }).expect("the store is there");
    notes.into_iter().map(|note| (note.host, note.off_at.is_some())).collect()
}

#[test]
fn the_schedule_of_webhooks_is_the_operators() {
    let pauses = |plant: bool| {
        let world = world();
        let node = node_of(&world, |settings| {
            let list = [Duration::from_secs(5), Duration::from_secs(50)];
            settings.policy.webhook_pauses = WebhookPauses::new(&list).expect("it is short");
            if plant {
                settings.rules.plant_transition(the_webhook_schedule_is_fixed);
            }
        });
        world.post.on_call(HOOK, &[WebhookScript::Refuses; 50]);
        place(&world, &node, "site", HOOK);
        world.after(600);
        world.post.calls_to(HOOK).windows(2).map(|pair| (pair[1] - pair[0]) / 1000).collect::<Vec<_>>()
    };
    assert_eq!(pauses(false), [5, 50]);
    assert_ne!(pauses(true), [5, 50], "the story finds the planted bug");
}

#[test]
fn an_endpoint_that_fails_for_hours_is_switched_off_on_all_nodes_and_others_are_not() {
    let world = world();
    let (one, two) = (node_of(&world, |_| {}), node_of(&world, |_| {}));
    fail_for_hours(&world, &one);
    assert_eq!(failing(&two), [("caller.example.com".to_owned(), true)]);
    // The probe of this hour is used up, so that the next delivery is not tried.
    world.after(60);
    place(&world, &two, "probe", HOOK);
    world.after(60);
    let calls = world.post.calls_to(HOOK).len();
    let key = place(&world, &two, "after", HOOK);
    world.after(60);
    let why = why_dead(&two, key).expect("it is a dead letter at once");
    assert!(why.contains("caller.example.com is switched off") && why.contains("HTTP 500"), "{why}");
    assert_eq!(world.post.calls_to(HOOK).len(), calls, "it is not called");
    place(&world, &two, "else", OTHER);
    world.after(60);
    assert_eq!(world.post.calls_to(OTHER).len(), 1);
}

#[test]
fn one_delivery_an_hour_is_tried_and_a_success_switches_the_endpoint_on() {
    let world = world();
    let node = node_of(&world, |_| {});
    fail_for_hours(&world, &node);
    world.after(3 * HOUR);
    let before = world.post.calls_to(HOOK).len();
    for n in 0..20 {
        place(&world, &node, &format!("probe-{n}"), HOOK);
        world.after(600);
    }
    let probes = world.post.calls_to(HOOK).len() - before;
    assert!((3..=4).contains(&probes), "20 deliveries in 200 minutes: {probes} calls");
    world.after(HOUR);
    world.post.accepts_again(HOOK);
    let key = place(&world, &node, "good", HOOK);
    world.after(60);
    assert!(node.reads(key).webhooks.is_empty(), "it was delivered");
    assert_eq!(failing(&node), []);
    let key = place(&world, &node, "next", HOOK);
    world.after(60);
    assert!(node.reads(key).webhooks.is_empty());
}

#[test]
fn an_operator_switches_an_endpoint_on() {
    let world = world();
    let (one, two) = (node_of(&world, |_| {}), node_of(&world, |_| {}));
    fail_for_hours(&world, &one);
    let switch = |tenant: &'static str| {
        let engine = Arc::clone(&two.engine);
        two.does(async move { engine.switch_endpoint_on(tenant, "Caller.example.com").await }).unwrap()
    };
    assert!(!switch("grace"), "of another tenant");
    assert!(switch("ada"));
    world.post.accepts_again(HOOK);
    world.after(10);
    for (n, node) in [&one, &two].into_iter().enumerate() {
        let key = place(&world, node, &format!("again-{n}"), HOOK);
        world.after(60);
        assert!(node.reads(key).webhooks.is_empty(), "it was delivered");
    }
}

#[test]
fn the_planted_retry_of_an_endpoint_that_is_off_is_found() {
    let is_dead_at_once = |plant: bool| {
        let world = world();
        let node = node_of(&world, |settings| {
            if plant {
                settings.rules.plant_transition(an_endpoint_is_never_off);
            }
        });
        fail_for_hours(&world, &node);
        place(&world, &node, "probe", HOOK);
        world.after(60);
        let key = place(&world, &node, "after", HOOK);
        world.after(60);
        why_dead(&node, key).is_some()
    };
    assert!(is_dead_at_once(false));
    assert!(!is_dead_at_once(true));
}

#[test]
fn an_endpoint_that_sometimes_accepts_a_delivery_stays_on() {
    let world = world();
    let node = node_of(&world, |_| {});
    for hour in 0..12 {
        if hour % 4 != 3 {
            world.post.on_call(HOOK, &[WebhookScript::Refuses; 6]);
        }
        place(&world, &node, &format!("site-{hour}"), HOOK);
        world.after(HOUR);
    }
    assert!(failing(&node).iter().all(|(_, is_off)| !is_off), "{:?}", failing(&node));
}

/// With `webhooks.off_after` under ten minutes, an endpoint is off before its failures are worth a write.
#[test]
fn an_endpoint_that_is_off_after_a_minute_is_listed_and_can_be_switched_on() {
    let world = world();
    let soon = |settings: &mut Settings| settings.webhook_off_after = Duration::from_secs(60);
    let (one, two) = (node_of(&world, soon), node_of(&world, soon));
    world.post.on_call(HOOK, &[WebhookScript::Refuses; 1_000]);
    for n in 0..5 {
        place(&world, &one, &format!("site-{n}"), HOOK);
        world.after(30);
    }
    let key = place(&world, &one, "after", HOOK);
    world.after(60);
    let why = why_dead(&one, key).expect("it is a dead letter at once");
    assert!(why.contains("is switched off after 2 min of failures"), "{why}");
    for node in [&one, &two] {
        assert_eq!(failing(node), [("caller.example.com".to_owned(), true)]);
    }
    let engine = Arc::clone(&two.engine);
    let switched = two.does(async move { engine.switch_endpoint_on("ada", "caller.example.com").await });
    assert!(switched.unwrap());
    world.post.accepts_again(HOOK);
    world.after(10);
    let key = place(&world, &one, "again", HOOK);
    world.after(60);
    assert!(one.reads(key).webhooks.is_empty(), "it was delivered");
}
