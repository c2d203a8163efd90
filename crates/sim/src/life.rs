//! One life of the whole system: a world is drawn from the seed, a storm passes over it, the weather calms, and
//! whatever is then unfinished has an hour of virtual time to finish. Then the judge looks.

use crate::callers::Crowd;
use crate::dice::Dice;
use crate::executor::{Executor, WORLD, locked};
use crate::fleet::{Fleet, Parts};
use crate::judge::{self, Breach, Evidence};
use crate::plants::Plant;
use crate::provider::{Account, Service};
use crate::truth::{Truth, Wish};
use crate::weather::{Troubles, Weather};
use futures_util::FutureExt;
use quittance_engine::{Applied, CallbackAddress, Rules, Settings};
use quittance_lifecycle::{Order, Pace, Phase, Policy, Preset, Reuse, Tally, WithoutWord, Word};
use quittance_ports::{Day, MemoryStore, Store, Which};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// A moment in 2027; any would do.
const START: u64 = 1_800_000_000_000;
/// How long after the storm everything must have come to an end.
const CALM: u64 = 3_600_000;

/// When the last thing that people do to a calm system is done.
const SETTLED: u64 = 60_000;

/// How large a life is, and how bad its weather.
#[derive(Clone, Debug)]
pub struct Script {
    pub nodes: usize,
    pub callers: usize,
    pub visits: usize,
    pub wishes: usize,
    pub pause_ms: u64,
    pub storm_ms: u64,
    pub policy: Policy,
    pub troubles: Troubles,
    /// The mean time between kills, freezes, clock jumps, outages of either side, and account troubles; 0 for never.
    pub kills_ms: u64,
    pub freezes_ms: u64,
    pub jumps_ms: u64,
    pub store_outages_ms: u64,
    pub provider_outages_ms: u64,
    pub account_ms: u64,
    pub forgeries_ms: u64,
    pub cancels_per_mille: u64,
    /// How many in a thousand wishes are for something that cannot be had, for an answer of one's own, or keyed.
    pub hopeless_per_mille: u64,
    pub exclusive_per_mille: u64,
    pub keyed_per_mille: u64,
    /// Whether a few things are wanted by many.
    pub skewed: bool,
}

impl Script {
    /// A small life with troubles drawn from its seed: for thousands of lives.
    #[must_use]
    pub fn draw(seed: u64) -> Self {
        let mut dice = Dice::new(seed, "script");
        let mut some = |least: u64, most: u64| if dice.chance(500) { dice.in_range(least..most) } else { 0 };
        let (kills_ms, freezes_ms, jumps_ms) =
            (some(5_000, 60_000), some(10_000, 90_000), some(10_000, 60_000));
        let (store_outages_ms, provider_outages_ms) = (some(20_000, 120_000), some(20_000, 120_000));
        let (account_ms, forgeries_ms) = (some(60_000, 200_000), some(2_000, 20_000));
        let cancels_per_mille = some(20, 200);
        let presets = [Preset::Default, Preset::Default, Preset::Conservative, Preset::Aggressive];
        let policy = Policy {
            callbacks: dice.chance(700),
            without_word: if dice.chance(700) { WithoutWord::Resubmit } else { WithoutWord::Bury },
            ..Policy::DEFAULT.with_preset(presets[dice.index(4)])
        };
        Self {
            nodes: 1 + dice.index(3),
            callers: 3 + dice.index(6),
            visits: 1 + dice.index(3),
            wishes: 2 + dice.index(5),
            pause_ms: dice.in_range(100..60_000),
            storm_ms: dice.in_range(60_000..400_000),
            policy,
            troubles: Troubles::draw(&mut dice),
            kills_ms,
            freezes_ms,
            jumps_ms,
            store_outages_ms,
            provider_outages_ms,
            account_ms,
            forgeries_ms,
            cancels_per_mille,
            hopeless_per_mille: 170,
            exclusive_per_mille: 300,
            keyed_per_mille: 250,
            skewed: false,
        }
    }

    /// One large storm: 50 callers make 2,000 requests for 200 things, on three nodes.
    #[must_use]
    pub fn demo() -> Self {
        let pace =
            Pace { p50: Duration::from_secs(25), p95: Duration::from_secs(55), p99: Duration::from_secs(90) };
        Self {
            nodes: 3,
            callers: 50,
            visits: 40,
            wishes: 200,
            pause_ms: 20_000,
            storm_ms: 1_800_000,
            policy: Policy { callbacks: true, pace, ..Policy::DEFAULT },
            troubles: Troubles {
                store_reply_lost: 10,
                store_request_lost: 10,
                claims_ignored: 100,
                submit_unreachable: 50,
                submit_lost: 20,
                submit_reply_lost: 60,
                submit_busy: 60,
                submit_odd: 5,
                poll_lost: 50,
                poll_part_missing: 50,
                unsolvable: 40,
                callback_lost: 200,
                callback_doubled: 100,
                callback_delayed: 50,
                solved_at_once: 20,
                ..Troubles::default()
            },
            kills_ms: 60_000,
            freezes_ms: 120_000,
            jumps_ms: 60_000,
            store_outages_ms: 200_000,
            provider_outages_ms: 200_000,
            account_ms: 0,
            forgeries_ms: 10_000,
            cancels_per_mille: 10,
            hopeless_per_mille: 40,
            exclusive_per_mille: 100,
            keyed_per_mille: 50,
            skewed: true,
        }
    }
}

/// How a life went.
#[derive(Debug)]
pub struct Life {
    pub seed: u64,
    pub breaches: Vec<Breach>,
    pub books: Tally,
    pub truth: Truth,
    pub orders: Vec<Order>,
    pub trace: Vec<String>,
    /// How many callbacks that were not ours came in and changed nothing.
    pub forged: u64,
    pub polls: u64,
}

/// Lives one life. `progress` is told, now and then, how many of the callers' visits are over.
pub fn live(
    seed: u64,
    script: &Script,
    plant: Option<Plant>,
    traced: bool,
    progress: &mut dyn FnMut(usize),
) -> Life {
    let executor = Executor::new(seed, START, traced);
    let weather = Arc::new(Weather::new(script.troubles.clone()));
    let truth = Arc::new(Mutex::new(Truth::default()));
    let store = MemoryStore::default();
    let service = Arc::new(Service {
        executor: executor.clone(),
        weather: Arc::clone(&weather),
        truth: Arc::clone(&truth),
        account: Mutex::new(Account::Open),
        fleet: Mutex::new(None),
        dice: Mutex::new(Dice::new(seed, "provider")),
    });
    let mut parts = parts(script);
    if let Some(plant) = plant {
        (plant.sow)(&mut parts);
    }
    let fleet = Fleet::new(&service, store.clone(), parts, script.nodes, Dice::new(seed, "fleet"));
    let crowd = Arc::new(Crowd {
        executor: executor.clone(),
        fleet: Arc::clone(&fleet),
        truth: Arc::clone(&truth),
        weather: Arc::clone(&weather),
        dice: Mutex::new(Dice::new(seed, "crowd")),
        wishes: wishes(&mut Dice::new(seed, "wishes"), script),
        skewed: script.skewed,
        cancels_per_mille: script.cancels_per_mille,
        busy: Mutex::new(0),
        visits_done: Mutex::new(0),
    });
    fleet.start_nodes();
    for _ in 0..script.callers {
        crowd.send(script.visits, script.pause_ms);
    }
    brew(seed, script, &executor, &fleet, &service);
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
    clear_up(&executor, &weather, &service, &fleet);
    executor.note(|| "the storm is over".into());
    // Late visitors come in the calm, so that what the storm left behind is asked for again.
    for _ in 0..script.callers.min(8) {
        crowd.send(2, 60_000);
    }
    replay_dead_letters(&executor, &store, &service, &fleet);
    let (settled, horizon) = (executor.now() + SETTLED, executor.now() + CALM);
    executor.run(horizon, || {
        tick() && *locked(&crowd.busy) == 0 && executor.now() > settled && has_ended(&store)
    });
    progress(*locked(&crowd.visits_done));
    let life = finish(seed, script, &executor, &store, &fleet, &truth);
    // The provider knows the nodes and the nodes know the provider: let go, or every life stays in memory.
    executor.end();
    *locked(&service.fleet) = None;
    life
}

fn parts(script: &Script) -> Parts {
    let mut settings = Settings::new(0, quittance_catalog::kind);
    settings.policy = script.policy;
    settings.callback =
        script.policy.callbacks.then(|| CallbackAddress::new("http://127.0.0.1/callback", [42; 32]));
    settings.rules = Rules::REAL;
    Parts {
        settings,
        wrap_store: |store, _, _| store,
        wrap_provider: |provider| provider,
        wrap_spill: |spill| spill,
        acks_early: false,
    }
}

fn wishes(dice: &mut Dice, script: &Script) -> Vec<Wish> {
    (0..script.wishes)
        .map(|n| {
            let kind = ["recaptcha_v2", "recaptcha_v3", "turnstile", "image"][dice.index(4)];
            let site = match (dice.chance(script.hopeless_per_mille), dice.chance(500)) {
                (true, true) => "bad-site".to_owned(),
                (true, false) => "hopeless-site".to_owned(),
                // Few sites for many wishes, so that wishes differ in one thing only.
                (false, _) => format!("site-{}", n / 3),
            };
            let page = if kind == "image" { String::new() } else { format!("https://example.com/{}", n % 2) };
            let action = if kind == "recaptcha_v3" {
                ["login", "buy"][dice.index(2)].to_owned()
            } else {
                String::new()
            };
            Wish {
                tenant: ["ada", "bob"][usize::from(dice.chance(200))].into(),
                kind,
                site,
                page,
                action,
                reuse: if dice.chance(script.exclusive_per_mille) && kind != "image" {
                    Reuse::Exclusive
                } else {
                    Reuse::Shared
                },
                idempotency_key: dice.chance(script.keyed_per_mille).then(|| format!("key-{n}")),
                min_life: dice.chance(100).then_some(Duration::from_secs(60)).filter(|_| kind != "image"),
            }
        })
        .collect()
}

/// Lets every trouble of the script loose.
fn brew(seed: u64, script: &Script, executor: &Executor, fleet: &Arc<Fleet>, service: &Arc<Service>) {
    let every = |mean_ms: u64, name: &'static str, mut strike: Box<dyn FnMut(&mut Dice) + Send>| {
        if mean_ms == 0 {
            return;
        }
        let (executor, weather) = (executor.clone(), Arc::clone(&service.weather));
        let mut dice = Dice::new(seed, name);
        executor.clone().spawn(WORLD, async move {
            loop {
                executor.sleep(dice.in_range(0..2 * mean_ms)).await;
                if weather.is_calm() {
                    return;
                }
                strike(&mut dice);
            }
        });
    };
    let f = Arc::clone(fleet);
    every(script.kills_ms, "kills", Box::new(move |dice| f.doom_one(dice.in_range(1..40))));
    let (f, e, w) = (Arc::clone(fleet), executor.clone(), Arc::clone(&service.weather));
    every(
        script.freezes_ms,
        "freezes",
        Box::new(move |dice| {
            let Some(group) = f.freeze_one() else { return };
            let (f, e2, w) = (Arc::clone(&f), e.clone(), Arc::clone(&w));
            let until = e.now() + dice.in_range(500..90_000);
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
        Box::new(move |dice| w.take_store_down(e.now() + dice.in_range(1_000..40_000))),
    );
    let (e, w) = (executor.clone(), Arc::clone(&service.weather));
    every(
        script.provider_outages_ms,
        "provider outages",
        Box::new(move |dice| w.take_provider_down(e.now() + dice.in_range(1_000..60_000))),
    );
    let s = Arc::clone(service);
    every(
        script.account_ms,
        "account",
        Box::new(move |dice| {
            let mut account = locked(&s.account);
            if *account != Account::Open {
                return;
            }
            *account = if dice.chance(500) { Account::Broke } else { Account::Closed };
            drop(account);
            let (s, mended) = (Arc::clone(&s), dice.in_range(5_000..120_000));
            s.executor.clone().spawn(WORLD, async move {
                s.executor.sleep(mended).await;
                mend_account(&s);
            });
        }),
    );
    let (f, s) = (Arc::clone(fleet), Arc::clone(service));
    every(
        script.forgeries_ms,
        "forgeries",
        Box::new(move |dice| {
            let key = locked(&s.truth).tasks.last().map(|task| (task.key, task.attempt));
            let Some((key, attempt)) = key else { return };
            let segment = format!("{key}-{START}-{attempt}-{:032x}", dice.roll());
            let word = Word::Answered(quittance_lifecycle::Delivery {
                goods: quittance_lifecycle::Goods::text("forged"),
                solved_at: None,
                cost: quittance_lifecycle::Money(0),
            });
            if f.call_back(&segment, None, word).is_some() {
                locked(&s.truth).forged += 1;
            }
        }),
    );
}

/// A person tops up the account, and tells every node.
fn mend_account(service: &Arc<Service>) {
    *locked(&service.account) = Account::Open;
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

/// Whatever was killed is started again, as a service manager would.
fn supervise(executor: &Executor, fleet: &Arc<Fleet>) {
    let (executor, fleet) = (executor.clone(), Arc::clone(fleet));
    executor.clone().spawn(WORLD, async move {
        loop {
            executor.sleep(250).await;
            fleet.start_nodes();
        }
    });
}

fn clear_up(executor: &Executor, weather: &Weather, service: &Arc<Service>, fleet: &Arc<Fleet>) {
    weather.calm_down();
    locked(&service.truth).calm_at = executor.now();
    fleet.revive_all();
    fleet.start_nodes();
    mend_account(service);
}

/// A person sends every dead letter on its way once more.
fn replay_dead_letters(executor: &Executor, store: &MemoryStore, service: &Arc<Service>, fleet: &Arc<Fleet>) {
    let (store, service, fleet) = (store.clone(), Arc::clone(service), Arc::clone(fleet));
    executor.spawn(WORLD, async move {
        service.executor.sleep(40_000).await;
        let Some((engine, _)) = fleet.pick() else { return };
        for order in all_orders(&store).iter().filter(|order| matches!(order.phase, Phase::Dead { .. })) {
            if let Ok(Applied::Advanced { now, .. }) = engine.replay(&order.key).await {
                let name = now.order.terms.params.get("soft_id").map(|who| who.as_bytes().to_vec());
                locked(&service.truth)
                    .replayed
                    .push(String::from_utf8_lossy(&name.unwrap_or_default()).into());
            }
        }
    });
}

fn all_orders(store: &MemoryStore) -> Vec<Order> {
    // The memory store never waits, so there is nothing to wait for.
    let listed = store.list(Which::All, None, usize::MAX).now_or_never();
    listed.and_then(Result::ok).unwrap_or_default().into_iter().map(|found| found.order).collect()
}

fn has_ended(store: &MemoryStore) -> bool {
    all_orders(store).iter().all(|order| order.due().is_none())
}

fn finish(
    seed: u64,
    _script: &Script,
    executor: &Executor,
    store: &MemoryStore,
    fleet: &Arc<Fleet>,
    truth: &Arc<Mutex<Truth>>,
) -> Life {
    // What was counted without a commit is written down within a second or two.
    let horizon = executor.now() + 5_000;
    executor.run(horizon, || false);
    let mut books = Tally::default();
    if let Some(Ok(lines)) = store.books(Day(0), Day(u64::MAX)).now_or_never() {
        lines.into_iter().for_each(|(_, tally)| books += tally);
    }
    locked(truth).panics += fleet.panics();
    let truth = locked(truth).clone();
    let orders = all_orders(store);
    let evidence = Evidence { truth: &truth, orders: &orders, books: &books, spilled: fleet.spilled() };
    let breaches = judge::judge(&evidence);
    Life {
        seed,
        breaches,
        books,
        trace: executor.take_trace(),
        forged: truth.turned_away + fleet.forged(),
        polls: executor.polls(),
        truth,
        orders,
    }
}
