//! Faults from outside, each at its own times from its own random numbers, and the simulated operators and programs
//! that repair what they can.

use crate::executor::{Executor, WORLD, locked};
use crate::fleet::Fleet;
use crate::provider::{Service, SimAccount};
use crate::rng::Rng;
use crate::script::Script;
use crate::weather::Weather;
use quittance_lifecycle::{CallbackResult, Payload, ProviderAnswer};
use std::sync::Arc;
use std::time::Duration;

/// Starts every fault of the script.
pub(crate) fn brew(
    seed: u64,
    script: &Script,
    executor: &Executor,
    fleet: &Arc<Fleet>,
    services: &[Arc<Service>],
) {
    let service = &services[0];
    let every = |mean_ms: u64, name: &'static str, mut strike: Box<dyn FnMut(&mut Rng) + Send>| {
        if mean_ms == 0 {
            return;
        }
        let (executor, weather) = (executor.clone(), Arc::clone(&service.weather));
        let mut rng = Rng::new(seed, name);
        executor.clone().spawn(WORLD, async move {
            loop {
                executor.sleep(rng.in_range(0..2 * mean_ms)).await;
                if weather.is_calm() {
                    return;
                }
                strike(&mut rng);
            }
        });
    };
    let f = Arc::clone(fleet);
    every(script.kills_ms, "kills", Box::new(move |rng| f.doom_one(rng.in_range(1..40))));
    let (f, e, w) = (Arc::clone(fleet), executor.clone(), Arc::clone(&service.weather));
    every(
        script.freezes_ms,
        "freezes",
        Box::new(move |rng| {
            let Some(group) = f.freeze_one() else { return };
            let (f, e2, w) = (Arc::clone(&f), e.clone(), Arc::clone(&w));
            let until = e.now() + rng.in_range(500..90_000);
            e.spawn(WORLD, async move {
                while e2.now() < until && !w.is_calm() {
                    e2.sleep(500).await;
                }
                f.thaw(group);
            });
        }),
    );
    let f = Arc::clone(fleet);
    every(script.jumps_ms, "jumps", Box::new(move |_| f.jump_one()));
    let (e, w) = (executor.clone(), Arc::clone(&service.weather));
    every(
        script.store_outages_ms,
        "store outages",
        Box::new(move |rng| w.take_store_down(e.now() + rng.in_range(1_000..40_000))),
    );
    let (e, w, providers) = (executor.clone(), Arc::clone(&service.weather), services.len());
    every(
        script.provider_outages_ms,
        "provider outages",
        Box::new(move |rng| {
            let until = e.now() + rng.in_range(1_000..60_000);
            w.take_provider_down(one_of(rng, providers), until);
        }),
    );
    let all = services.to_vec();
    every(
        script.account_ms,
        "account",
        Box::new(move |rng| {
            let s = &all[one_of(rng, all.len())];
            let mut account = locked(&s.account);
            if *account != SimAccount::Open {
                return;
            }
            *account = if rng.chance(500) { SimAccount::NoFunds } else { SimAccount::Closed };
            drop(account);
            let (s, fixed_after) = (Arc::clone(s), rng.in_range(5_000..120_000));
            s.executor.clone().spawn(WORLD, async move {
                s.executor.sleep(fixed_after).await;
                fix_account(&s);
            });
        }),
    );
    let (f, s) = (Arc::clone(fleet), Arc::clone(service));
    every(
        script.forgeries_ms,
        "forgeries",
        Box::new(move |rng| {
            // The right order and attempt, with a proof that is made up.
            let key = locked(&s.truth).tasks.last().map(|task| (task.key, task.attempt));
            let Some((key, attempt)) = key else { return };
            let born = s.executor.now();
            let segment = format!("{key}-{born}-{attempt}-{:032x}", rng.roll());
            let word = CallbackResult::Answered(ProviderAnswer {
                payload: Payload::text("forged"),
                took_at_least: None,
                cost: None,
            });
            if f.call_back(&segment, None, word, Duration::ZERO).is_some() {
                locked(&s.truth).forged += 1;
            }
        }),
    );
}

/// The number of a provider, by chance.
fn one_of(rng: &mut Rng, providers: usize) -> usize {
    // Lives with one provider draw no number here.
    if providers > 1 { rng.index(providers) } else { 0 }
}

/// Fixes the account, as an operator does, and releases it on every node.
fn fix_account(service: &Arc<Service>) {
    *locked(&service.account) = SimAccount::Open;
    let Some(fleet) = locked(&service.fleet).clone() else { return };
    for (engine, group) in fleet.up() {
        let service = Arc::clone(service);
        service.executor.clone().spawn(group, async move {
            let begun = service.executor.now();
            let at = {
                let mut truth = locked(&service.truth);
                truth.released.push((group, begun, u64::MAX));
                truth.released.len() - 1
            };
            while engine.release().await.is_err() {
                service.executor.sleep(1_000).await;
            }
            locked(&service.truth).released[at].2 = service.executor.now();
        });
    }
}

/// Starts killed nodes again, as a service manager does.
pub(crate) fn supervise(executor: &Executor, fleet: &Arc<Fleet>) {
    let (executor, fleet) = (executor.clone(), Arc::clone(fleet));
    executor.clone().spawn(WORLD, async move {
        loop {
            executor.sleep(250).await;
            fleet.start_nodes();
        }
    });
}

/// Ends the storm: everything that was down comes back.
pub(crate) fn clear_up(
    executor: &Executor,
    weather: &Weather,
    services: &[Arc<Service>],
    fleet: &Arc<Fleet>,
) {
    weather.calm_down();
    locked(&services[0].truth).calm_at = executor.now();
    fleet.revive_all();
    fleet.start_nodes();
    services.iter().for_each(fix_account);
}
