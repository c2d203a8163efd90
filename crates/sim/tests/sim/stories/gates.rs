//! What one gate decides inside one node: how many tasks are at the provider at once, how fast submits go out, and
//! what goes out while the provider is away. Each story is run with the real rules, and must fail with the planted bug
//! that it is for.

use crate::stories::slots::{Away, Reply, SlotProvider, SlotRules};
use crate::stories::world::{StoryCaller, StoryNode, StoryWorld, turnstile, world_with};
use quittance_engine::{GateRules, ProviderState, Settings, TenantRule};
use quittance_lifecycle::Policy;
use quittance_ports::{Member, Members, MemorySpill, NodeStatus, Threads};
use quittance_sim::GATE_PLANTS;
use std::sync::Arc;
use std::time::Duration;

/// Changes the rules of every gate of a story: nothing, or a planted bug.
type Sow = fn(&mut GateRules);

/// The real rules.
const REAL: Sow = |_| {};

/// What a story found.
type Verdict = Result<(), String>;

macro_rules! check {
    ($condition:expr, $($text:tt)+) => {
        if !$condition {
            return Err(format!($($text)+));
        }
    };
}

/// A world in which the provider calls back. The seed also decides how fast it replies.
fn with_slots(seed: u64, mut rules: SlotRules) -> (StoryWorld, SlotProvider) {
    if !rules.is_silent {
        rules.reply_ms += seed * 37 % 400;
    }
    let world = world_with(Policy { callbacks: true, ..Policy::DEFAULT }, seed);
    let provider = SlotProvider::new(&world.executor, rules);
    (world, provider)
}

fn node_of(world: &StoryWorld, provider: &SlotProvider, sow: Sow) -> StoryNode {
    node_with(world, provider, sow, |_| {})
}

fn node_with(
    world: &StoryWorld,
    provider: &SlotProvider,
    sow: Sow,
    adjust: impl FnOnce(&mut Settings),
) -> StoryNode {
    let node =
        world.node_at(Arc::new(MemorySpill::default()), vec![Arc::new(provider.clone())], |settings| {
            settings.rules.plant_gate(sow);
            adjust(settings);
        });
    provider.calls(&node.engine);
    node
}

fn place(node: &StoryNode, count: usize) -> Vec<StoryCaller> {
    (0..count).map(|n| node.begins(turnstile(&format!("site-{n}")))).collect()
}

fn answered(callers: &[StoryCaller]) -> usize {
    callers.iter().filter(|caller| caller.token().is_some()).count()
}

fn last_answer(callers: &[StoryCaller]) -> u64 {
    callers.iter().filter_map(StoryCaller::answered_at).max().unwrap_or_default()
}

/// Whether orders that wait for the gate cost no commits. An order is placed, intended, taken, solved and collected; a
/// submit that fails adds an intent and a reply, and the end of a doubt.
fn orders_wait_in_memory(world: &StoryWorld, orders: usize, failed_submits: usize) -> Verdict {
    let commits = world.store.calls_of("commit");
    let most = orders * 5 + failed_submits * 4;
    check!(commits <= most, "{commits} commits for {orders} orders, not {most}: they wait in the store");
    Ok(())
}

/// Trap: an order that met "no slot" waits out a pause that grows, although a slot became free long ago.
fn six_slots_are_kept_full(seed: u64, sow: Sow) -> Verdict {
    let (world, provider) = with_slots(seed, SlotRules { slots: 6, ..SlotRules::default() });
    let node = node_of(&world, &provider, sow);
    let callers = place(&node, 40);
    world.after(120);
    let (count, last) = (answered(&callers), last_answer(&callers));
    check!(count == 40, "{count} of 40 answered");
    let ideal = 40_u64.div_ceil(6) * 10_000;
    check!(last <= ideal * 110 / 100, "the last answer came after {last} ms, ideally after {ideal}");
    let rejected = provider.submits(Reply::Busy).len();
    check!(rejected <= 8, "{rejected} submits were rejected");
    orders_wait_in_memory(&world, 40, rejected)
}

#[test]
fn with_six_slots_forty_orders_are_answered_in_hardly_more_than_the_ideal_time() {
    for seed in 0..200 {
        six_slots_are_kept_full(seed, REAL).unwrap_or_else(|why| panic!("seed {seed}: {why}"));
    }
}

/// Trap: a provider that replies to each submit after 20 s, or never, but calls back, is taken for broken.
fn a_slow_provider_that_calls_back_is_not_broken(seed: u64, sow: Sow) -> Verdict {
    for solve_ms in [8_000, 25_000] {
        let rules = SlotRules { solve_ms, reply_ms: 20_000, is_silent: true, ..SlotRules::default() };
        let (world, provider) = with_slots(seed, rules);
        let node = node_of(&world, &provider, sow);
        let mut callers = Vec::new();
        for n in 0..30 {
            callers.push(node.begins(turnstile(&format!("site-{n}")).within(120)));
            world.after_ms(1_500);
        }
        world.after(120);
        let count = answered(&callers);
        check!(count == 30, "solved after {solve_ms} ms: {count} of 30 answered");
        let submits = provider.all_submits().len();
        check!(submits == 30, "solved after {solve_ms} ms: {submits} submits for 30 orders");
        let waits = callers.iter().filter_map(|caller| Some(caller.answered_at()? - caller.placed_at()?));
        let waits = waits.max().unwrap_or_default();
        check!(waits <= solve_ms + 10_000, "solved after {solve_ms} ms: answered after {waits}");
    }
    Ok(())
}

#[test]
fn a_provider_that_takes_twenty_seconds_for_everything_answers_all_by_callback() {
    for seed in 0..20 {
        a_slow_provider_that_calls_back_is_not_broken(seed, REAL)
            .unwrap_or_else(|why| panic!("seed {seed}: {why}"));
    }
}

/// How many submits came in the busiest second from this moment on.
fn peak(times: &[u64], from: u64) -> usize {
    let times: Vec<_> = times.iter().copied().filter(|at| *at >= from).collect();
    times
        .iter()
        .map(|begun| times.iter().filter(|at| (*begun..begun + 1_000).contains(at)).count())
        .max()
        .unwrap_or(0)
}

/// 5,000 orders, an outage of 60 s, and then 100 submits a second. The orders whose submits hung are in doubt, and
/// wait for a callback as long as one may come; the others do not wait for them.
fn an_outage_of_a_minute(seed: u64, away: Away, sow: Sow) -> Verdict {
    const ORDERS: usize = 5_000;
    const END: u64 = 60_000;
    let rules = SlotRules { away: Some((0, END, away)), ..SlotRules::default() };
    let (world, provider) = with_slots(seed, rules);
    let pace = Duration::from_millis(10);
    let node = node_with(&world, &provider, sow, |settings| {
        settings.providers[0].throttle.submit_interval = pace;
    });
    let callers = place(&node, ORDERS);
    world.after(200);
    let (calls, mut taken) = (provider.all_submits(), provider.submits(Reply::Taken));
    let in_doubt = if away == Away::Hangs { provider.submits(Reply::Away).len() } else { 0 };
    check!(calls.len() * 10 <= ORDERS * 11, "{} submits for {ORDERS} orders", calls.len());
    let distinct = answered(&callers);
    check!(distinct == ORDERS, "{distinct} of {ORDERS} answered");
    taken.sort_unstable();
    let drained = taken[ORDERS - in_doubt - 1].saturating_sub(END);
    check!(drained <= 55_000, "drained {drained} ms after the outage, ideally 50,000");
    let peak = peak(&calls, END);
    check!(peak <= 110, "{peak} submits in one second");
    orders_wait_in_memory(&world, ORDERS, calls.len() - ORDERS)
}

#[test]
fn after_an_outage_of_a_minute_five_thousand_orders_drain_at_the_providers_pace() {
    for away in [Away::Refuses, Away::Hangs] {
        for seed in 0..3 {
            an_outage_of_a_minute(seed, away, |_| {})
                .unwrap_or_else(|why| panic!("{away:?}, seed {seed}: {why}"));
        }
    }
}

/// An account with six threads: no submit is rejected, not even the first.
fn threads_bound_the_tasks(seed: u64, sow: Sow) -> Verdict {
    let (world, provider) = with_slots(seed, SlotRules { slots: 6, ..SlotRules::default() });
    let node = node_of(&world, &provider, sow);
    node.engine.note_threads("", Some(Threads { total: 6, working: 0 }));
    let callers = place(&node, 40);
    world.after(120);
    let (count, last) = (answered(&callers), last_answer(&callers));
    check!(count == 40 && last <= 77_000, "{count} of 40 answered, the last after {last} ms");
    let rejected = provider.submits(Reply::Busy).len();
    check!(rejected == 0, "{rejected} submits were rejected");
    Ok(())
}

/// Tasks that are never answered. Their slots are free after ten seconds, which no reply shows.
fn seats_do_not_leak(seed: u64, sow: Sow) -> Verdict {
    let rules = SlotRules { slots: 6, lost_answers: 6, ..SlotRules::default() };
    let (world, provider) = with_slots(seed, rules);
    let node = node_of(&world, &provider, sow);
    node.engine.note_threads("", Some(Threads { total: 6, working: 0 }));
    let callers = place(&node, 12);
    world.after(299);
    let taken = provider.submits(Reply::Taken);
    check!(
        taken.len() == 12 && answered(&callers) == 6,
        "{} tasks, {} answered",
        taken.len(),
        answered(&callers)
    );
    // The 99th percentile of the kind, a tenth of it, and a second.
    let until = quittance_protocol::kinds::kind("turnstile").ok_or("no such kind")?.pace.p99 * 11 / 10;
    let until = u64::try_from(until.as_millis()).map_err(|why| why.to_string())? + 1_000;
    check!((until..until + 1_000).contains(&taken[6]), "the first free seat was taken after {} ms", taken[6]);
    Ok(())
}

/// The provider's callbacks reach another node than the one that submitted.
fn an_answer_that_another_node_received_frees_the_seat(seed: u64, sow: Sow) -> Verdict {
    let (world, provider) = with_slots(seed, SlotRules { slots: 6, ..SlotRules::default() });
    let _receiver = node_of(&world, &provider, sow);
    let node = world.node_at(Arc::new(MemorySpill::default()), vec![Arc::new(provider)], |settings| {
        settings.rules.plant_gate(sow);
    });
    let callers = place(&node, 40);
    world.after(120);
    let (count, last) = (answered(&callers), last_answer(&callers));
    // Two nodes share the slots. The last order may have met "no slot" at both, and waits out its own pause.
    check!(count == 40 && last <= 90_000, "{count} of 40 answered, the last after {last} ms");
    Ok(())
}

/// Other users of the account have all slots for a minute, and later three of six for good.
fn other_users_are_met_with_few_submits(seed: u64, sow: Sow) -> Verdict {
    let rules = SlotRules { slots: 6, others: &[(0, 6), (60_000, 0), (85_000, 3)], ..SlotRules::default() };
    let (world, provider) = with_slots(seed, rules);
    let node = node_of(&world, &provider, sow);
    let callers = place(&node, 40);
    world.after(60);
    let rejected = provider.submits(Reply::Busy).len();
    check!(rejected <= 12, "{rejected} submits while others have all slots");
    world.after(25);
    let taken = provider.submits(Reply::Taken).len();
    check!(taken >= 6, "{taken} tasks in the 25 s after the others had left");
    world.after(150);
    let count = answered(&callers);
    check!(count == 40, "{count} of 40 answered");
    let rejected = provider.submits(Reply::Busy).iter().filter(|at| **at >= 85_000).count();
    check!(rejected <= 14, "{rejected} rejected submits while others have half of the slots");
    Ok(())
}

/// The plan of the account grows from three slots to thirty.
fn more_slots_are_found(seed: u64, sow: Sow) -> Verdict {
    let rules = SlotRules { slots: 30, others: &[(0, 27), (12_000, 0)], ..SlotRules::default() };
    let (world, provider) = with_slots(seed, rules);
    let node = node_of(&world, &provider, sow);
    let callers = place(&node, 120);
    world.after(120);
    let (count, last) = (answered(&callers), last_answer(&callers));
    check!(count == 120 && last <= 90_000, "{count} of 120 answered, the last after {last} ms");
    Ok(())
}

fn of(tenant: &str, site: &str) -> crate::stories::world::StoryOrder {
    let mut order = turnstile(site);
    order.draft.tenant = tenant.into();
    order
}

/// A tenant with many queued orders delays the single order of another by less than one slot time.
fn tenants_take_turns_at_the_seats(seed: u64, sow: Sow) -> Verdict {
    let (world, provider) = with_slots(seed, SlotRules { slots: 6, ..SlotRules::default() });
    let rules = ["alice", "bob"].map(|tenant| (tenant.to_owned(), TenantRule::default()));
    let node = node_with(&world, &provider, sow, |settings| {
        (settings.tenants, settings.is_shared) = (rules.into_iter().collect(), true);
    });
    for n in 0..5_000 {
        node.begins(of("alice", &format!("crowd-{n}")).within(200));
    }
    for n in 0..5 {
        world.after_ms(13_700 + seed * 311 % 9_000);
        let begun = world.now();
        let caller = node.asks(of("bob", &format!("bob-{n}")));
        world.after(40);
        let took = caller.answered_at().map(|at| at - begun);
        check!(
            took.is_some_and(|took| took < 20_000),
            "order {n} of bob took {took:?}: its solve takes 10 s"
        );
    }
    Ok(())
}

/// During an outage in which submits hang, one of them at a time tries the provider, whichever tenants wait.
fn one_probe_at_a_time(seed: u64, sow: Sow) -> Verdict {
    let rules = SlotRules { away: Some((0, 60_000, Away::Hangs)), ..SlotRules::default() };
    let (world, provider) = with_slots(seed, rules);
    let tenants: Vec<_> = (0..10).map(|n| format!("tenant-{n}")).collect();
    let node = node_with(&world, &provider, sow, |settings| {
        settings.tenants = tenants.iter().map(|tenant| (tenant.clone(), TenantRule::default())).collect();
        settings.is_shared = true;
    });
    for n in 0..500 {
        node.begins(of(&tenants[n % 10], &format!("site-{n}")));
    }
    world.after(40);
    check!(
        matches!(node.engine.provider_states()[0].1, ProviderState::Tripped { .. }),
        "{:?}",
        node.engine.provider_states()[0].1
    );
    world.after(20);
    let mut probes = provider.submits(Reply::Away);
    probes.retain(|at| *at > 21_000);
    check!(probes.len() <= 14, "{} submits in 39 s of an outage", probes.len());
    let gap = probes.windows(2).map(|pair| pair[1] - pair[0]).min().unwrap_or_default();
    check!(gap >= 1_000, "a probe went out {gap} ms after another");
    world.after(20);
    let begun = provider.submits(Reply::Taken).len();
    check!(begun >= 300, "{begun} tasks in the 20 s after the outage");
    Ok(())
}

/// Three nodes work on one account, and the provider is away for a minute. One node at a time tries it, and when it is
/// back, all of them use it.
fn one_node_at_a_time_probes(seed: u64, sow: Sow) -> Verdict {
    for how in [Away::Refuses, Away::Hangs] {
        let rules = SlotRules { away: Some((0, 60_000, how)), ..SlotRules::default() };
        let (world, provider) = with_slots(seed, rules);
        let node = || node_with(&world, &provider, sow, |settings| settings.in_hand_max = 10_000);
        let nodes = [node(), node(), node()];
        let callers: Vec<_> =
            (0..300).map(|n| nodes[n % 3].begins(turnstile(&format!("site-{n}")))).collect();
        world.after(60);
        let probes = provider.submits(Reply::Away).iter().filter(|at| **at > 24_000).count();
        check!(probes <= 16, "{how:?}: {probes} submits in 36 s of an outage");
        world.after(8);
        for node in &nodes {
            let state = &node.engine.provider_states()[0].1;
            check!(!matches!(state, ProviderState::Tripped { .. }), "{how:?}: {state:?} after the outage");
        }
        // Submits that hung are in doubt for up to 180 s.
        world.after(200);
        check!(answered(&callers) == 300, "{how:?}: {} of 300 answered", answered(&callers));
    }
    Ok(())
}

/// Every second connection is refused for a minute. Retries stay a share of what is new.
fn retries_have_a_budget(seed: u64, sow: Sow) -> Verdict {
    let rules = SlotRules { flaky_until: 60_000, ..SlotRules::default() };
    let (world, provider) = with_slots(seed, rules);
    let node = node_of(&world, &provider, sow);
    let mut callers = Vec::new();
    for n in 0..600 {
        callers.push(node.begins(turnstile(&format!("site-{n}"))));
        world.after_ms(100);
    }
    // A fifth of 600, the burst of 20, and one a second.
    let retries = provider.all_submits().len() - 600;
    check!(retries <= 120 + 20 + 60, "{retries} retries of 600 orders");
    world.after(120);
    check!(answered(&callers) == 600, "{} of 600 answered", answered(&callers));
    Ok(())
}

/// Three nodes work on one account that allows ten submits a second.
fn three_nodes_keep_one_pace(seed: u64, sow: Sow) -> Verdict {
    let (world, provider) = with_slots(seed, SlotRules::default());
    let nodes: Vec<_> = (0..3)
        .map(|_| {
            node_with(&world, &provider, sow, |settings| {
                settings.providers[0].throttle.submit_interval = Duration::from_millis(100);
            })
        })
        .collect();
    let now = nodes[0].engine.now();
    let member = |node: &StoryNode| Member { node_status: status(node), seen: now };
    let members = Members { now, nodes: nodes.iter().map(member).collect() };
    nodes.iter().for_each(|node| node.engine.heed_members(&members));
    let callers: Vec<_> = (0..300).map(|n| nodes[n % 3].begins(turnstile(&format!("site-{n}")))).collect();
    world.after(60);
    let calls = provider.all_submits();
    let peak = peak(&calls, 0);
    check!(peak <= 12, "{peak} submits in one second");
    let drained = calls.iter().max().copied().unwrap_or_default();
    check!(calls.len() == 300 && answered(&callers) == 300, "{} submits for 300 orders", calls.len());
    check!(drained <= 33_000, "drained after {drained} ms, ideally after 30,000");
    Ok(())
}

pub(super) fn status(node: &StoryNode) -> NodeStatus {
    let now = node.engine.now();
    NodeStatus {
        node: node.engine.node(),
        name: String::new(),
        version: String::new(),
        format: 1,
        started: now,
        at: now,
        skew_ms: None,
        node_stats: node.engine.node_stats(),
        reach: node.engine.reach(),
        demand: node.engine.demand(),
    }
}

/// Runs a story with the real rules and many seeds.
fn holds(seeds: u64, story: fn(u64, Sow) -> Verdict) {
    for seed in 0..seeds {
        story(seed, REAL).unwrap_or_else(|why| panic!("seed {seed}: {why}"));
    }
}

#[test]
fn the_threads_of_an_account_are_an_upper_bound_so_no_submit_is_rejected() {
    holds(50, threads_bound_the_tasks);
}

#[test]
fn a_task_without_an_answer_gives_its_seat_back_in_time() {
    holds(20, seats_do_not_leak);
}

#[test]
fn a_seat_is_free_as_soon_as_a_waiter_sees_the_answer_that_another_node_received() {
    holds(20, an_answer_that_another_node_received_frees_the_seat);
}

#[test]
fn other_users_of_the_account_are_met_with_few_submits() {
    holds(50, other_users_are_met_with_few_submits);
}

#[test]
fn slots_that_are_added_are_found() {
    holds(50, more_slots_are_found);
}

#[test]
fn a_tenant_with_five_thousand_orders_delays_another_by_less_than_one_slot_time() {
    holds(3, tenants_take_turns_at_the_seats);
}

#[test]
fn during_an_outage_one_submit_at_a_time_tries_the_provider() {
    holds(20, one_probe_at_a_time);
}

#[test]
fn during_an_outage_one_node_at_a_time_tries_the_provider() {
    holds(20, one_node_at_a_time_probes);
}

#[test]
fn retries_of_a_flaky_provider_stay_within_their_budget() {
    holds(10, retries_have_a_budget);
}

#[test]
fn three_nodes_on_one_account_keep_its_pace_together() {
    holds(20, three_nodes_keep_one_pace);
}

/// Each planted bug is caught by the story that is for its rule.
#[test]
fn every_planted_bug_of_the_gate_is_caught() {
    for plant in GATE_PLANTS {
        let story: fn(u64, Sow) -> Verdict = match plant.name {
            "a crowd is submitted at once"
            | "a full provider is tried for more all the time"
            | "an answer frees no seat" => six_slots_are_kept_full,
            "busy replies below the limit leave it as it is" => other_users_are_met_with_few_submits,
            "a full provider is never tried for more" => more_slots_are_found,
            "the threads of the account are ignored" => threads_bound_the_tasks,
            "a task without an answer keeps its seat" => seats_do_not_leak,
            "a slow provider is a broken one" => a_slow_provider_that_calls_back_is_not_broken,
            "each order probes a provider that is away" => one_probe_at_a_time,
            "each node probes a provider that is away" => one_node_at_a_time_probes,
            "the pauses of an outage grow and grow" => {
                |seed, sow| an_outage_of_a_minute(seed, Away::Refuses, sow)
            }
            "retries need no budget" => retries_have_a_budget,
            "each node keeps the pace for itself" => three_nodes_keep_one_pace,
            other => panic!("no story is for the planted bug `{other}`"),
        };
        let caught = story(1, plant.sow).expect_err(plant.name);
        println!("{}: {caught}", plant.name);
    }
}
