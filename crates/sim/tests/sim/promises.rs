//! Thousands of lives, each a storm and then calm, in which every promise holds for every order. Also, every planted
//! bug is caught, which shows that these checks work.

use quittance_sim::night::{self, PLANT_LIVES_MAX};
use quittance_sim::{PLANTS, Script, live};

/// The number of lives in `cargo test`. `./test` runs twenty thousand more in a release build.
const LIVES: u64 = 1_500;

#[test]
fn every_promise_holds_on_every_order_in_every_life() {
    let night = night::run(0, LIVES, None, 5, &|_| {});
    let broken: Vec<_> = night.broken.iter().map(|(seed, breach)| format!("life {seed}: {breach}")).collect();
    assert!(broken.is_empty(), "replay one with SIM_SEED=n: {broken:#?}");
    assert_eq!(night.lives, LIVES);
    // A storm that reaches nothing proves nothing.
    let usage = night.usage;
    // No caller in the simulation has a webhook, so none can fail.
    for (line, count) in usage.lines().filter(|(line, _)| *line != "webhooks_failed") {
        assert!(count > 0, "no life of {LIVES} had anything to write under `{line}`");
    }
}

#[test]
fn every_planted_wrong_idea_is_caught() {
    for plant in PLANTS {
        let night = night::run(0, PLANT_LIVES_MAX, Some(*plant), 1, &|_| {});
        let Some((seed, breach)) = night.broken.first() else {
            panic!(
                "`{}` lived through {} lives: a promise is missing from the judge",
                plant.name, night.lives
            );
        };
        println!("{:>5} lives: {} ({breach}, seed {seed})", night.lives, plant.name);
    }
    assert!(PLANTS.len() >= 15);
}

#[test]
fn the_same_seed_gives_the_same_life_byte_for_byte() {
    for seed in [1, 2, 3, 50, 77] {
        let once = live(seed, &Script::draw(seed), None, true, &mut |_| {});
        let again = live(seed, &Script::draw(seed), None, true, &mut |_| {});
        assert!(once.trace.len() > 50, "the story of life {seed} has only {} lines", once.trace.len());
        assert_eq!(once.trace, again.trace);
        assert_eq!(once.orders, again.orders);
        assert_eq!((once.usage, once.polls), (again.usage, again.polls));
    }
}

#[test]
fn tracing_a_life_does_not_change_it() {
    let quiet = live(9, &Script::draw(9), None, false, &mut |_| {});
    let traced = live(9, &Script::draw(9), None, true, &mut |_| {});
    assert_eq!(quiet.orders, traced.orders);
    assert!(quiet.trace.is_empty());
}
