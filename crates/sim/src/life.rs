//! One life of the whole system. The seed determines the set-up and the faults. After the storm of faults comes calm:
//! an hour of virtual time in which all work must finish. Then the judge checks everything.

use crate::callers::{Crowd, draft};
use crate::executor::{Executor, WORLD, locked};
use crate::fleet::{Fleet, Parts};
use crate::judge::{self, Breach, LifeEvidence};
use crate::plants::Plant;
use crate::provider::{PRICE, Service, SimAccount};
use crate::rng::Rng;
use crate::script::{KINDS, Script, sim_orders};
use crate::storm::{brew, clear_up, supervise};
use crate::truth::{SimOrder, Truth};
use crate::weather::{PROVIDERS_MAX, Weather};
use futures_util::FutureExt;
use quittance_engine::{ApplyOutcome, CallbackAddress, HedgeAfter, Hedging, ProviderRules, Settings};
use quittance_lifecycle::{Counters, FaultTable, Money, Order, Phase, Reuse, Unsolvable};
use quittance_ports::Goal;
use quittance_ports::{Day, MemoryStore, PoolSpec, Store, Which};
use quittance_protocol::json::{JsonCodes, JsonDialect};
use std::sync::{Arc, Mutex};

/// A moment in 2027. Any moment would do.
const START: u64 = 1_800_000_000_000;
/// How long after the storm all work must be finished.
const CALM: u64 = 3_600_000;

/// The last operator action of a calm life happens before this moment, in milliseconds.
const SETTLED: u64 = 60_000;

/// The result of a life.
#[derive(Debug)]
pub struct Life {
    pub seed: u64,
    pub breaches: Vec<Breach>,
    pub usage: Counters,
    pub truth: Truth,
    pub orders: Vec<Arc<Order>>,
    pub trace: Vec<String>,
    /// How many forged callbacks came in and changed nothing.
    pub forged: u64,
    pub polls: u64,
}

/// Runs one life. `progress` is called now and then with the number of finished visits.
pub fn live(
    seed: u64,
    script: &Script,
    plant: Option<Plant>,
    traced: bool,
    progress: &mut dyn FnMut(usize),
) -> Life {
    let executor = Executor::new(seed, START, traced);
    let weather = Arc::new(Weather::new(script.fault_rates.clone()));
    let truth = Arc::new(Mutex::new(Truth::default()));
    let store = MemoryStore::default();
    let service = |number: usize| {
        Arc::new(Service {
            number,
            executor: executor.clone(),
            weather: Arc::clone(&weather),
            truth: Arc::clone(&truth),
            account: Mutex::new(SimAccount::Open),
            fleet: Mutex::new(None),
            rng: Mutex::new(Rng::new(seed, ["provider", "the other provider"][number])),
            clock_off_by: script.provider_clock_off_by,
            codes: JsonCodes::of(JsonDialect::TwoCaptcha),
        })
    };
    let services: Vec<_> = (0..script.providers.min(PROVIDERS_MAX)).map(service).collect();
    let mut parts = parts(script, &services);
    if let Some(plant) = plant {
        (plant.sow)(&mut parts);
    }
    let fleet = Fleet::new(&services, store.clone(), parts, script.nodes, Rng::new(seed, "fleet"));
    let crowd = Arc::new(Crowd {
        executor: executor.clone(),
        fleet: Arc::clone(&fleet),
        truth: Arc::clone(&truth),
        weather: Arc::clone(&weather),
        rng: Mutex::new(Rng::new(seed, "crowd")),
        sim_orders: sim_orders(&mut Rng::new(seed, "wishes"), script),
        skewed: script.skewed,
        cancels_per_mille: script.cancels_per_mille,
        busy: Mutex::new(0),
        visits_done: Mutex::new(0),
    });
    fleet.start_nodes();
    let pools = stock_up(script, &crowd.sim_orders);
    keep_pools(&executor, &fleet, pools, script.storm_ms);
    for _ in 0..script.callers {
        crowd.send(script.visits, script.pause_ms);
    }
    brew(seed, script, &executor, &fleet, &services);
    supervise(&executor, &fleet);

    let mut polls = 0u64;
    // Says whether it is time for a look that costs something.
    let mut tick = || {
        polls += 1;
        if polls.is_multiple_of(4096) {
            progress(*locked(&crowd.visits_done));
        }
        polls.is_multiple_of(64)
    };
    executor.run(START + script.storm_ms, || {
        tick();
        false
    });
    clear_up(&executor, &weather, &services, &fleet);
    executor.note(|| "the storm is over".into());
    // Late visitors come in the calm, so that what the storm left behind is wanted again.
    for _ in 0..script.callers.min(8) {
        crowd.send(2, 60_000);
    }
    replay_dead_letters(&executor, &store, &truth, &fleet);
    let (settled, horizon) = (executor.now() + SETTLED, executor.now() + CALM);
    executor.run(horizon, || {
        tick() && *locked(&crowd.busy) == 0 && executor.now() > settled && has_ended(&store)
    });
    progress(*locked(&crowd.visits_done));
    let life = finish(seed, script, &executor, &store, &fleet, &truth);
    // The provider knows the nodes and the nodes know the provider: let go, or every life stays in memory.
    executor.end();
    services.iter().for_each(|service| *locked(&service.fleet) = None);
    life
}

/// The pools for exclusive orders.
fn stock_up(script: &Script, sim_orders: &[SimOrder]) -> Vec<PoolSpec> {
    let wanted =
        sim_orders.iter().filter(|request_spec| request_spec.reuse == Reuse::Exclusive).take(script.pools);
    let pool = |(n, request_spec): (usize, &SimOrder)| PoolSpec {
        name: format!("pool-{n}"),
        tenant: request_spec.tenant.clone(),
        kind: request_spec.kind.to_owned(),
        params: draft(request_spec, "pool").params,
        goal: Goal::Fixed { size: script.pool_size },
        budget: None,
        hours: Vec::new(),
        min_life: None,
        is_on: true,
    };
    wanted.enumerate().map(pool).collect()
}

/// Sets the pools, each until it succeeds, and removes them after the storm. Otherwise they would be filled for ever,
/// and the life would not end.
fn keep_pools(executor: &Executor, fleet: &Arc<Fleet>, pools: Vec<PoolSpec>, storm_ms: u64) {
    for spec in pools {
        let (executor, fleet) = (executor.clone(), Arc::clone(fleet));
        executor.clone().spawn(WORLD, async move {
            change_pool(&executor, &fleet, &spec, true).await;
            executor.sleep_until(START + storm_ms).await;
            change_pool(&executor, &fleet, &spec, false).await;
        });
    }
}

async fn change_pool(executor: &Executor, fleet: &Arc<Fleet>, spec: &PoolSpec, is_set: bool) {
    loop {
        if let Some((engine, _)) = fleet.pick() {
            let is_done = match is_set {
                true => engine.set_pool(spec.clone()).await.is_ok(),
                false => engine.remove_pool(&spec.name).await.is_ok(),
            };
            if is_done {
                executor
                    .note(|| format!("{} {}", spec.name, if is_set { "is set" } else { "is taken away" }));
                return;
            }
        }
        executor.sleep(1_000).await;
    }
}

fn parts(script: &Script, services: &[Arc<Service>]) -> Parts {
    let mut settings = Settings::new(0, quittance_protocol::kinds::kind);
    settings.policy = script.policy;
    // Nodes that share a store know what the others know, and keep what the store may forget.
    settings.in_hand_max = if script.nodes > 1 { 10_000 } else { 0 };
    if services.len() > 1 {
        let prices = |kind: &str| (kind.to_owned(), Money(PRICE));
        let rules = |name: &str| ProviderRules {
            name: name.to_owned(),
            prices: KINDS.map(prices).into_iter().filter(|_| script.hedging).collect(),
            ..ProviderRules::default()
        };
        settings.providers = services.iter().map(|service| rules(service.name())).collect();
        settings.routing.routing.rule = script.routing;
        if script.hedging {
            settings.hedging = Hedging { after: Some(HedgeAfter::P50), budget: Some(Money(20 * PRICE)) };
        }
    }
    settings.callback =
        script.policy.callbacks.then(|| CallbackAddress::new("http://127.0.0.1/callback", [42; 32]));
    Parts {
        settings,
        wrap_store: |store, _, _| store,
        wrap_provider: |provider| provider,
        wrap_spill: |spill| spill,
        acks_early: false,
        callbacks_count_from_their_end: false,
    }
}

/// Replays every dead letter once, like an operator.
fn replay_dead_letters(
    executor: &Executor,
    store: &MemoryStore,
    truth: &Arc<Mutex<Truth>>,
    fleet: &Arc<Fleet>,
) {
    let (store, truth, fleet) = (store.clone(), Arc::clone(truth), Arc::clone(fleet));
    let waiting = executor.clone();
    executor.spawn(WORLD, async move {
        waiting.sleep(40_000).await;
        let Some((engine, _)) = fleet.pick() else { return };
        for order in all_orders(&store).iter().filter(|order| matches!(order.phase, Phase::Dead { .. })) {
            if let Ok(ApplyOutcome::Advanced { now, .. }) = engine.replay(&order.key).await {
                let name = now.order.terms.params.get("soft_id").map(|who| who.as_bytes().to_vec());
                locked(&truth).replayed.push(String::from_utf8_lossy(&name.unwrap_or_default()).into());
            }
        }
    });
}

fn all_orders(store: &MemoryStore) -> Vec<Arc<Order>> {
    // The memory store never waits, so there is nothing to wait for.
    let listed = store.list(Which::ALL, None, usize::MAX).now_or_never();
    listed.and_then(Result::ok).unwrap_or_default().into_iter().flatten().map(|found| found.order).collect()
}

fn has_ended(store: &MemoryStore) -> bool {
    all_orders(store).iter().all(|order| order.due().is_none())
}

fn finish(
    seed: u64,
    script: &Script,
    executor: &Executor,
    store: &MemoryStore,
    fleet: &Arc<Fleet>,
    truth: &Arc<Mutex<Truth>>,
) -> Life {
    // What was counted without a commit is written down within a second or two.
    let horizon = executor.now() + 5_000;
    executor.run(horizon, || false);
    let mut usage = Counters::default();
    if let Some(Ok(lines)) = store.usage(Day(0), Day(u64::MAX)).now_or_never() {
        lines.into_iter().for_each(|(_, counters)| usage += counters);
    }
    locked(truth).panics += fleet.panics();
    let truth = locked(truth).clone();
    let orders = all_orders(store);
    let evidence = LifeEvidence {
        truth: &truth,
        orders: &orders,
        usage: &usage,
        spilled: fleet.spilled(),
        has_several_providers: script.providers > 1,
        is_patient: script.policy.faults == FaultTable::PATIENT,
        // Where our side does not know it, it may be either.
        unsolvable_is_charged: match script.policy.unsolvable {
            Unsolvable::Charged => true,
            Unsolvable::Free => false,
            Unsolvable::NotKnown => script.visits.is_multiple_of(2),
        },
    };
    let breaches = judge::judge(&evidence);
    Life {
        seed,
        breaches,
        usage,
        trace: executor.take_trace(),
        forged: truth.turned_away + fleet.forged(),
        polls: executor.polls(),
        truth,
        orders,
    }
}
