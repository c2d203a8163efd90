//! Tests that what is checked is what is sent. Tasks have hosts hidden in every known way. They come through every
//! API, as pools, and as dead letters that are imported and replayed. A tap before the mock provider reads everything
//! with a reader of its own: no unlisted host may arrive.
//!
//! `HOST_TASKS=100000 cargo test --release -p quittance --test library hosts -- --nocapture` makes as many tasks as it says.

mod cases;
mod dead_letters;
mod hide;
mod holes;
mod judge;
mod ordinary;
mod real;
mod tap;
mod world;

use cases::{HostsCase, HostsDice};
use holes::Hole;
use quittance_mock_provider::MockDialect;
use std::collections::BTreeMap;
use world::{HostsProvider, HostsWorld};

/// Enough to try everything a few times within seconds.
const TASKS: u64 = 2500;
const AT_ONCE: u64 = 16;

const PROVIDERS: [HostsProvider; 6] = [
    HostsProvider::Classic(quittance::ClassicDialect::TwoCaptcha),
    HostsProvider::Classic(quittance::ClassicDialect::CaptchaAi),
    HostsProvider::Json(MockDialect::TwoCaptcha),
    HostsProvider::Json(MockDialect::AntiCaptcha),
    HostsProvider::Json(MockDialect::CapSolver),
    HostsProvider::Json(MockDialect::CapMonster),
];

/// The outcome of all tasks.
#[derive(Debug, Default)]
struct HostsOutcome {
    sent: u64,
    accepted: u64,
    honest: u64,
    honest_refused: Vec<String>,
    arrived: u64,
    leaks: Vec<String>,
    by_api: BTreeMap<&'static str, u64>,
}

async fn fuzz(world: &HostsWorld, seed: u64, tasks: u64) -> HostsOutcome {
    let mut outcome = HostsOutcome::default();
    let each = tasks.div_ceil(AT_ONCE);
    let workers = (0..AT_ONCE).map(|worker| {
        let (gateway, seed) = (world.gateway, seed.wrapping_mul(1_000_003) + worker);
        tokio::spawn(async move {
            let mut caller = world::HostsCaller::new(gateway);
            let mut dice = HostsDice::new(seed);
            let mut view = Vec::new();
            for n in 0..each {
                let case = HostsCase::make(&mut dice, seed << 32 | n);
                let (api, accepted, words) = caller.send(&case, &mut dice).await;
                view.push((api, case.is_honest(), accepted, words));
            }
            view
        })
    });
    for worker in workers.collect::<Vec<_>>() {
        for (api, is_honest, accepted, words) in worker.await.unwrap() {
            outcome.sent += 1;
            outcome.accepted += u64::from(accepted);
            outcome.honest += u64::from(is_honest);
            *outcome.by_api.entry(api).or_default() += 1;
            if is_honest && !accepted {
                outcome.honest_refused.push(words);
            }
        }
    }
    world.settle().await;
    outcome.arrived = world.tap.arrived();
    outcome.leaks = world.tap.leaks();
    outcome
}

fn tasks() -> u64 {
    std::env::var("HOST_TASKS").ok().and_then(|text| text.parse().ok()).unwrap_or(TASKS)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_host_that_is_not_listed_reaches_the_provider() {
    let (mut sent, mut arrived) = (0, 0);
    for (seed, provider) in PROVIDERS.into_iter().enumerate() {
        let world = HostsWorld::start(provider, Hole::None).await;
        let outcome = fuzz(&world, seed as u64 + 1, tasks().div_ceil(PROVIDERS.len() as u64)).await;
        println!(
            "{provider:?}: {} tasks {:?}, {} accepted, {} arrived, {} unlisted hosts",
            outcome.sent,
            outcome.by_api,
            outcome.accepted,
            outcome.arrived,
            outcome.leaks.len()
        );
        assert_eq!(outcome.leaks, Vec::<String>::new(), "{provider:?}");
        assert_eq!(outcome.honest_refused, Vec::<String>::new(), "what hides nothing is taken: {provider:?}");
        assert!(outcome.arrived * 4 > outcome.honest, "the fuzz must not be about nothing: {outcome:?}");
        sent += outcome.sent;
        arrived += outcome.arrived;
        world.stop().await;
    }
    println!("in all: {sent} tasks, {arrived} arrived, 0 unlisted hosts");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_hole_that_there_was_is_found_when_it_is_put_back() {
    // At once: most of the time is spent in waiting for pools to buy.
    let holes = Hole::ALL.map(|hole| tokio::spawn(leaks_through(hole)));
    for (hole, leaks) in Hole::ALL.into_iter().zip(holes) {
        let leaks = leaks.await.unwrap();
        println!("{hole:?}: {} unlisted hosts, such as {:?}", leaks.len(), leaks.first());
        assert!(!leaks.is_empty(), "{hole:?} was not noticed");
    }
}

async fn leaks_through(hole: Hole) -> Vec<String> {
    let world = HostsWorld::start(HostsProvider::Json(MockDialect::TwoCaptcha), hole).await;
    let mut leaks = Vec::new();
    for seed in 1..=8 {
        leaks = fuzz(&world, seed, 1500).await.leaks;
        if !leaks.is_empty() {
            break;
        }
    }
    world.stop().await;
    leaks
}
