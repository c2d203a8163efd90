//! Dead letters of an outage are replayed when it is over: only those, each once, slowly, and within a budget. Each rule
//! has a planted bug that its story catches.

use crate::stories::provider::{PRICE, SubmitScript};
use crate::stories::world::{StoryNode, StoryWorld, turnstile, world};
use quittance_engine::{OutageReplays, Settings};
use quittance_lifecycle::{FaultClass, Key, Money, TimelineEvent};
use quittance_ports::MemorySpill;
use quittance_sim::plants::story_rules::{every_dead_letter_is_replayed, replays_are_forgotten};
use std::sync::Arc;
use std::time::Duration;

const OFF: SubmitScript = SubmitScript::Refuses(FaultClass::Unreachable, "connection refused");
const HOUR: Duration = Duration::from_secs(3600);

/// A node that replays what died of an outage.
fn node_of(world: &StoryWorld, set: impl FnOnce(&mut Settings)) -> StoryNode {
    world.node_with(Arc::new(MemorySpill::default()), |settings| {
        settings.outage_replays = OutageReplays { is_on: true, ..OutageReplays::DEFAULT };
        settings.providers[0].throttle.retry_burst = 10_000;
        settings.providers[0].prices.insert("turnstile".into(), Money(PRICE));
        set(settings);
    })
}

fn site(n: usize) -> String {
    format!("site-{n}")
}

/// Lets this many orders die because the provider is not there.
fn die(world: &StoryWorld, node: &StoryNode, count: usize) -> Vec<Key> {
    let keys: Vec<Key> = (0..count)
        .map(|n| {
            world.provider.on_submit(&site(n), &[OFF; 500]);
            node.asks(turnstile(&site(n)).within(60)).key()
        })
        .collect();
    world.after(90);
    assert!(
        keys.iter().all(|key| node.reads(*key).phase.is_dead()),
        "the outage lasts longer than they may take"
    );
    keys
}

/// Ends the outage. A new order finds out that the provider is there again.
fn comes_back(world: &StoryWorld, node: &StoryNode, count: usize) {
    for n in 0..count {
        world.provider.takes_again(&site(n));
        world.provider.solves(&site(n), 5);
    }
    world.provider.solves("new", 1);
    node.asks(turnstile("new"));
}

/// When the orders were replayed because of the outage, in milliseconds, oldest first.
fn replays(node: &StoryNode, keys: &[Key]) -> Vec<u64> {
    let of = |key: &Key| {
        let order = node.reads(*key);
        let is_it = |event: &TimelineEvent| matches!(event, TimelineEvent::ReplayedAfterOutage { .. });
        let entries = order.timeline.entries.iter().filter(|entry| is_it(&entry.event));
        entries.map(|entry| entry.at.as_millis()).collect::<Vec<u64>>()
    };
    let mut at: Vec<u64> = keys.iter().flat_map(of).collect();
    at.sort_unstable();
    at
}

fn is_solved(node: &StoryNode, key: Key) -> bool {
    node.reads(key).phase.name() == "solved"
}

#[test]
fn what_died_of_an_outage_is_replayed_once_and_slowly_when_it_is_over() {
    let world = world();
    let node = node_of(&world, |_| {});
    let keys = die(&world, &node, 20);
    world.after(60);
    assert_eq!(replays(&node, &keys), [] as [u64; 0], "it is not over yet");
    comes_back(&world, &node, 20);
    world.after(180);
    let at = replays(&node, &keys);
    assert_eq!(at.len(), 20);
    assert!(at.windows(4).all(|some| some[3] - some[0] >= 900), "two a second: {at:?}");
    assert!(keys.iter().all(|key| is_solved(&node, *key)), "each has its answer");
    assert_eq!(world.provider.taken(), 21);
    let seen = node.reads(keys[0]).timeline.entries.iter().map(ToString::to_string).collect::<Vec<_>>();
    assert!(seen.iter().any(|words| words.starts_with("replayed because the outage of")), "{seen:?}");
}

#[test]
fn nothing_is_replayed_unless_the_operator_wants_it() {
    let world = world();
    let node = node_of(&world, |settings| settings.outage_replays.is_on = false);
    let keys = die(&world, &node, 5);
    comes_back(&world, &node, 5);
    world.after(600);
    assert_eq!(replays(&node, &keys), [] as [u64; 0]);
    assert!(keys.iter().all(|key| node.reads(*key).phase.is_dead()));
}

/// The replays of ten orders within ten minutes, and within the next hour.
fn replays_within(set: impl Fn(&mut OutageReplays), price: Option<Money>) -> [usize; 2] {
    let world = world();
    let node = node_of(&world, |settings| {
        settings.outage_replays.age_max = HOUR * 5;
        set(&mut settings.outage_replays);
        settings.providers[0].prices = price.into_iter().map(|price| ("turnstile".into(), price)).collect();
    });
    // The hours of a budget are those of the clock.
    let begun = world.moment(0).as_millis();
    world.after_ms(3_600_000 - begun % 3_600_000);
    let keys = die(&world, &node, 10);
    comes_back(&world, &node, 10);
    world.after(600);
    let first = replays(&node, &keys).len();
    world.after(3600);
    [first, replays(&node, &keys).len()]
}

#[test]
fn replays_keep_within_the_budget_of_each_hour() {
    let count = |replays: &mut OutageReplays| replays.per_hour = 3;
    assert_eq!(replays_within(count, None), [3, 6]);
    let money = |replays: &mut OutageReplays| replays.money_per_hour = Some(Money(4 * PRICE + 1));
    assert_eq!(replays_within(money, Some(Money(PRICE))), [4, 8]);
    assert_eq!(replays_within(money, None), [0, 0], "a price that is not known is over any budget");
    assert_eq!(replays_within(|_| {}, None), [10, 10], "without a budget of money the price is not needed");
}

#[test]
fn an_order_that_may_have_been_paid_for_is_left_for_a_person() {
    let replayed = |plant: bool| {
        let world = world();
        let node = node_of(&world, |settings| {
            if plant {
                settings.rules.plant_transition(every_dead_letter_is_replayed);
            }
        });
        let mut keys = die(&world, &node, 5);
        world.provider.on_submit("doubt", &[SubmitScript::BadGateway]);
        world.provider.on_submit("doubt", &[OFF; 500]);
        keys.push(node.asks(turnstile("doubt").within(60)).key());
        world.after(90);
        comes_back(&world, &node, 5);
        world.provider.takes_again("doubt");
        world.provider.solves("doubt", 5);
        world.after(300);
        (replays(&node, &keys).len(), node.reads(keys[5]).phase.is_dead())
    };
    assert_eq!(replayed(false), (5, true));
    assert!(!replayed(true).1, "the story finds the planted bug");
}

#[test]
fn an_order_is_replayed_after_one_outage_and_not_after_the_next() {
    let lives = |plant: bool| {
        let world = world();
        let node = node_of(&world, |settings| {
            if plant {
                settings.rules.plant_transition(replays_are_forgotten);
            }
        });
        let keys = die(&world, &node, 8);
        for _ in 0..3 {
            // Only the new order finds the provider.
            world.provider.solves("new", 1);
            node.asks(turnstile("new").exclusive());
            world.after(400);
        }
        keys.iter().map(|key| node.reads(*key).life).max()
    };
    assert_eq!(lives(false), Some(2));
    assert!(lives(true) > Some(2), "the story finds the planted bug");
}

#[test]
fn what_has_been_dead_for_long_is_not_replayed() {
    let world = world();
    let node = node_of(&world, |settings| settings.outage_replays.age_max = Duration::from_secs(300));
    let keys = die(&world, &node, 5);
    world.after(600);
    comes_back(&world, &node, 5);
    world.after(600);
    assert_eq!(replays(&node, &keys), [] as [u64; 0], "their callers have gone");
}

#[test]
fn two_nodes_replay_each_order_once_also_if_one_is_killed_in_the_middle() {
    let world = world();
    let set = |settings: &mut Settings| settings.outage_replays.per_hour = 15;
    let (one, two) = (node_of(&world, set), node_of(&world, set));
    let keys = die(&world, &one, 20);
    comes_back(&world, &two, 20);
    for _ in 0..3_000 {
        if replays(&two, &keys).len() >= 4 {
            break;
        }
        world.after_ms(100);
    }
    one.kill();
    world.after(300);
    let at = replays(&two, &keys);
    assert!((10..=15).contains(&at.len()), "some may be counted and not made: {at:?}");
    assert!(keys.iter().all(|key| node_lives(&two, *key) <= 2));
}

fn node_lives(node: &StoryNode, key: Key) -> u32 {
    node.reads(key).life
}
