//! Pools: one of the nodes carries out each pool, once, and a pool without demand costs nothing.

use crate::stories::provider::SubmitScript;
use crate::stories::world::{StoryNode, StoryWorld, turnstile, world, world_with_callbacks};
use quittance_lifecycle::{
    CallbackResult, FaultClass, Money, Order, Origin, Payload, Phase, ProviderAnswer, Timestamp,
};
use quittance_ports::{Goal, Hours};
use quittance_ports::{PoolDocument, PoolSpec};
use std::collections::BTreeSet;
use std::sync::Arc;

pub(crate) fn pool(goal: Goal) -> PoolSpec {
    PoolSpec {
        name: "login".into(),
        tenant: "ada".into(),
        kind: "turnstile".into(),
        params: turnstile("site").draft.params,
        goal,
        budget: None,
        hours: Vec::new(),
        min_life: None,
        is_on: true,
    }
}

pub(crate) fn set(node: &StoryNode, spec: PoolSpec) {
    let engine = Arc::clone(&node.engine);
    node.does(async move { engine.set_pool(spec).await }).expect("it can be set");
}

pub(crate) fn document(node: &StoryNode) -> PoolDocument {
    let engine = Arc::clone(&node.engine);
    let pools = node.does(async move { engine.pools().await }).expect("the store is there");
    pools.into_iter().next().expect("there is one").document
}

fn on_stock(world: &StoryWorld) -> usize {
    world.orders().iter().filter(|order| order.list_stock().is_some()).count()
}

fn open(world: &StoryWorld) -> usize {
    world.orders().iter().filter(|order| order.phase.is_open()).count()
}

pub(crate) fn places(world: &StoryWorld) -> Vec<(u32, u64)> {
    let slot = |order: &Arc<Order>| order.terms.slot.as_ref().map(|slot| (slot.number, slot.generation));
    world.orders().iter().filter_map(slot).collect()
}

#[test]
fn a_pool_is_filled_served_from_and_refilled() {
    let world = world();
    let node = world.node();
    world.provider.solves("site", 5);
    set(&node, pool(Goal::Fixed { size: 3 }));
    world.after(30);
    assert_eq!((world.provider.taken(), on_stock(&world)), (3, 3));
    let callers: Vec<_> = (0..3).map(|_| node.asks(turnstile("site").exclusive())).collect();
    let tokens: BTreeSet<_> = callers.iter().filter_map(crate::stories::world::StoryCaller::token).collect();
    assert_eq!(tokens.len(), 3, "the last is handed out like any other");
    assert!(callers.iter().all(|caller| caller.placed().origin == Origin::Stock));
    world.after(30);
    assert_eq!((world.provider.taken(), on_stock(&world)), (6, 3));
    let usage = world.usage();
    assert_eq!(
        (usage.asked, usage.from_stock, usage.stocked),
        (3, 3, 6),
        "a refill is no caller's placement"
    );
    let level = document(&node).level.expect("it has been sized");
    assert_eq!((level.size, level.fresh, level.on_their_way), (3, 3, 0));
}

/// Trap: a pool buys twice its size because two nodes refill it. Here three nodes do not know of each other.
#[test]
fn three_refillers_buy_what_one_would() {
    for seed in 0..10 {
        let world = crate::stories::world::world_with(quittance_lifecycle::Policy::DEFAULT, seed);
        let nodes = [world.node(), world.node(), world.node()];
        world.provider.solves("site", 5);
        set(&nodes[0], pool(Goal::Fixed { size: 4 }));
        world.store.is_far_away(seed * 7);
        for _ in 0..60 {
            world.after(1);
            assert!(on_stock(&world) + open(&world) <= 4, "seed {seed}");
        }
        assert_eq!((world.provider.taken(), on_stock(&world)), (4, 4), "seed {seed}");
        let all = places(&world);
        assert_eq!(all.iter().collect::<BTreeSet<_>>().len(), all.len(), "seed {seed}: {all:?}");
    }
}

/// Trap: a pool that never refills after one reset. A node that announced a refill and died leaves no place blocked.
#[test]
fn a_refiller_that_dies_between_announcing_and_placing_leaves_no_place_stuck() {
    for delay in (0..2000).step_by(100) {
        let world = world();
        let one = world.node();
        world.provider.solves("site", 5);
        set(&one, pool(Goal::Fixed { size: 2 }));
        world.store.is_far_away(150);
        world.after_ms(10_000 + delay);
        one.kill();
        world.store.is_far_away(0);
        let _two = world.node();
        world.after(60);
        assert_eq!(on_stock(&world), 2, "killed after {delay} ms");
        assert_eq!(world.provider.taken(), 2, "killed after {delay} ms");
    }
}

/// Trap: a pool that buys 25 tokens an hour without demand.
#[test]
fn a_self_sizing_pool_is_empty_without_demand_and_fills_with_it() {
    let world = world();
    let node = world.node();
    world.provider.solves("site", 5);
    set(&node, pool(Goal::Served { permille: 950 }));
    world.after(3600);
    assert_eq!(world.provider.taken(), 0);
    let mut callers = Vec::new();
    for _ in 0..300 {
        callers.push(node.asks(turnstile("site").exclusive()));
        world.after(2);
    }
    let served = callers[150..].iter().filter(|caller| caller.placed().origin == Origin::Stock).count();
    assert!(served >= 135, "{served} of 150 from the stock: {:?}", document(&node).level);
    let taken = world.provider.taken();
    world.after(1200);
    let after = world.provider.taken();
    assert!(after - taken <= 20, "{} bought without demand", after - taken);
    world.after(7200);
    assert_eq!(world.provider.taken(), after, "an idle pool costs nothing");
    assert_eq!(document(&node).level.expect("it has been sized").size, 0);
}

/// Trap: a pool that buys 25 tokens an hour without demand.
#[test]
fn a_pool_of_a_fixed_size_rests_until_an_order_comes_or_it_is_set_again() {
    let rested = |node: &StoryNode| {
        let level = document(node).level.expect("it has been sized");
        assert!(level.why.contains("no order has come for 10 usable lives"), "{}", level.why);
        assert_eq!(level.size, 0);
    };
    let world = world();
    let node = world.node();
    world.provider.solves("site", 5);
    set(&node, pool(Goal::Fixed { size: 2 }));
    world.after(3 * 3600);
    let taken = world.provider.taken();
    rested(&node);
    world.after(3600);
    assert_eq!((world.provider.taken(), on_stock(&world)), (taken, 0));
    set(&node, pool(Goal::Fixed { size: 2 }));
    world.after(30);
    assert_eq!((world.provider.taken(), on_stock(&world)), (taken + 2, 2), "set again as it was");
    world.after(3 * 3600);
    rested(&node);
    drop(node.asks(turnstile("site").exclusive()));
    world.after(30);
    assert_eq!(on_stock(&world), 2, "an order has come");
}

/// Trap: a permanent error that is retried until the budget is used up.
#[test]
fn a_pool_whose_refills_come_to_nothing_rests() {
    let world = world();
    let node = world.node();
    let refused = SubmitScript::Refuses(FaultClass::Caller, "ERROR_WRONG_GOOGLEKEY");
    world.provider.on_submit("site", &[refused; 200]);
    set(&node, pool(Goal::Fixed { size: 3 }));
    world.after(30);
    let why = document(&node).level.expect("it has been sized").why;
    assert!(why.contains("rests"), "{why}");
    world.after(3600);
    let submits = world.provider.submits("site").len();
    assert!((3..=30).contains(&submits), "{submits} submits in an hour");
    assert!(
        !world.orders().iter().any(|order| matches!(order.phase, Phase::Dead { .. })),
        "no operator has to look"
    );
}

/// A node whose price list has a price for what the pools here buy.
fn priced_node(world: &StoryWorld) -> StoryNode {
    let spill = Arc::new(quittance_ports::MemorySpill::default());
    world.node_with(spill, |settings| {
        _ = settings.providers[0].prices.insert("turnstile".into(), Money(2_990));
    })
}

/// Calls back for every submitted task without an answer, as providers do: without a price.
fn call_back(world: &StoryWorld, node: &StoryNode, called_back: &mut usize) {
    let submits = world.provider.submits("site");
    for submit in &submits[*called_back..] {
        let answer = ProviderAnswer {
            payload: Payload::text(format!("token {called_back}")),
            took_at_least: None,
            cost: None,
        };
        node.hears(submit.callback(), CallbackResult::Answered(answer)).expect("it is safe");
        *called_back += 1;
    }
}

/// Promise: a budget holds if answers come by callback, which contains no price. Then the price list counts.
#[test]
fn a_budget_for_two_answers_buys_two_where_callbacks_say_no_price() {
    let world = world_with_callbacks();
    let node = priced_node(&world);
    let budget = Some(Money(2 * 2_990));
    set(&node, PoolSpec { budget, ..pool(Goal::Fixed { size: 9 }) });
    let mut called_back = 0;
    for _ in 0..40 {
        world.after(60);
        call_back(&world, &node, &mut called_back);
        // What stands on the stock is taken, so that the pool wants more.
        drop(node.asks(turnstile("site").exclusive()));
    }
    let refills = places(&world).len();
    assert_eq!(refills, 2, "a budget for two answers");
    let pool_view = document(&node);
    assert_eq!((pool_view.spent.money, pool_view.spent.unpriced), (Money(2 * 2_990), 0));
    assert!(
        pool_view.level.expect("it has been sized").why.contains("the pool's budget for this hour is spent")
    );
    assert_eq!(world.usage().unpriced, 0, "every answer has the price of the list");
}

/// Promise: unknown is not zero. A pool with a budget and an unknown price buys nothing, and reports why.
#[test]
fn a_budget_that_meets_an_unknown_price_buys_nothing_and_says_why() {
    let world = world_with_callbacks();
    let node = world.node();
    set(&node, PoolSpec { budget: Some(Money(2 * 2_990)), ..pool(Goal::Fixed { size: 9 }) });
    let mut called_back = 0;
    for _ in 0..10 {
        world.after(30);
        call_back(&world, &node, &mut called_back);
    }
    assert_eq!(places(&world).len(), 0);
    let why = document(&node).level.expect("it has been sized").why;
    assert!(why.contains("the price of `turnstile` is not known"), "{why}");
    assert!(why.contains("`prices.turnstile`"), "it says what to do: {why}");

    // Without a budget it buys, and what it spent is not known, rather than nothing.
    set(&node, pool(Goal::Fixed { size: 3 }));
    for _ in 0..10 {
        world.after(30);
        call_back(&world, &node, &mut called_back);
    }
    let spent = document(&node).spent;
    assert!(spent.refills >= 3 && spent.unpriced == spent.refills, "{spent:?}");
    assert_eq!((world.usage().cost_micros, world.usage().unpriced), (0, spent.refills));

    // A price that is known afterwards says nothing about them, so a budget that is set now stops until the next hour.
    let priced = priced_node(&world);
    node.kill();
    set(&priced, PoolSpec { budget: Some(Money(100 * 2_990)), ..pool(Goal::Fixed { size: 9 }) });
    world.after(300);
    assert_eq!(document(&priced).spent.refills, spent.refills, "it buys nothing");
    let why = document(&priced).level.expect("it has been sized").why;
    let words = format!("the price of {} refills of the pool in this hour is not known", spent.refills);
    assert!(why.contains(&words) && why.contains("the pool buys nothing until"), "{why}");
    world.after(3_600);
    set(&priced, PoolSpec { budget: Some(Money(100 * 2_990)), ..pool(Goal::Fixed { size: 9 }) });
    world.after(60);
    assert!(document(&priced).spent.refills > 0, "another hour has a budget of its own");
}

/// Promise: a free answer costs 0, which is not an unknown price.
#[test]
fn a_free_answer_costs_nothing_and_a_budget_does_not_stop_for_it() {
    let world = world();
    let spill = Arc::new(quittance_ports::MemorySpill::default());
    let node = world
        .node_with(spill, |settings| _ = settings.providers[0].prices.insert("turnstile".into(), Money(0)));
    set(&node, PoolSpec { budget: Some(Money(1)), ..pool(Goal::Fixed { size: 3 }) });
    world.after(30);
    assert_eq!(places(&world).len(), 3);
}

#[test]
fn a_pool_keeps_to_its_budget_and_its_hours_and_can_be_switched_off() {
    let world = world();
    let node = priced_node(&world);
    world.provider.solves("site", 5);
    // Three answers and a half.
    let budget = Some(Money(2_990 * 7 / 2));
    set(&node, PoolSpec { budget, ..pool(Goal::Fixed { size: 9 }) });
    world.after(120);
    assert_eq!(world.provider.taken(), 3);
    let pool_view = document(&node);
    assert!(pool_view.level.expect("it has been sized").why.contains("budget"));
    assert_eq!(pool_view.spent.money, Money(2_990 * 3));
    for hour in [1, 2] {
        for _ in 0..12 {
            // There is demand now and then, or it would hold nothing.
            drop(node.asks(turnstile("site").exclusive()));
            world.after(300);
        }
        let refills = places(&world).len();
        assert!(refills <= 3 * (hour + 1) && refills > 3 * hour, "{refills} refills by hour {hour}");
    }
    let taken = world.provider.taken();

    let minute = u16::try_from(world.moment(world.now()).as_millis() / 60_000 % 1440).expect("of a day");
    let later = Hours { from: (minute + 60) % 1440, to: (minute + 120) % 1440 };
    set(&node, PoolSpec { hours: vec![later], ..pool(Goal::Fixed { size: 2 }) });
    world.after(1800);
    assert_eq!(world.provider.taken(), taken, "it is not its time");
    drop(node.asks(turnstile("site").exclusive()));
    world.after(2400);
    assert!(world.provider.taken() > taken + 1);
    set(&node, PoolSpec { is_on: false, ..pool(Goal::Fixed { size: 2 }) });
    world.after(60);
    let taken = world.provider.taken();
    drop(node.asks(turnstile("site").exclusive()));
    world.after(1200);
    assert!(world.provider.taken() <= taken + 1);
}

/// A refill is an order like any other: it must be allowed by the operator. A pool for a kind that needs no stock is
/// refused.
#[test]
fn what_no_order_may_be_placed_for_no_pool_can_be_kept_for() {
    let world = world();
    let node = world.node();
    let tries = [
        PoolSpec { kind: "nonsense".into(), ..pool(Goal::Fixed { size: 1 }) },
        PoolSpec {
            params: turnstile("site").draft.with("pageurl", "https://not-allowed.org/").params,
            ..pool(Goal::Fixed { size: 1 })
        },
        PoolSpec { params: std::collections::BTreeMap::new(), ..pool(Goal::Fixed { size: 1 }) },
        PoolSpec { name: "a/b".into(), ..pool(Goal::Fixed { size: 1 }) },
        pool(Goal::Fixed { size: 0 }),
        pool(Goal::Served { permille: 1000 }),
    ];
    for spec in tries {
        let engine = Arc::clone(&node.engine);
        let called_back = format!("{spec:?}");
        assert!(node.does(async move { engine.set_pool(spec).await }).is_err(), "{called_back}");
    }
    world.after(60);
    assert_eq!(world.provider.taken(), 0);
}

/// Promise: answers do not change each other's life, and none is handed out with less life than needed.
#[test]
fn what_expires_is_replaced_in_time_and_never_handed_out() {
    let world = world();
    let node = world.node();
    world.provider.solves("site", 5);
    set(&node, pool(Goal::Fixed { size: 2 }));
    let mut earlier: std::collections::BTreeMap<_, Timestamp> = std::collections::BTreeMap::new();
    for _ in 0..40 {
        world.after(30);
        for order in world.orders() {
            let Some((_, expires)) = order.list_stock() else { continue };
            let before = *earlier.entry(order.key).or_insert(expires);
            assert_eq!(before, expires, "an answer's life was changed");
        }
    }
    let caller = node.asks(turnstile("site").exclusive());
    let Some(quittance_engine::Outcome::Answered(answer)) = caller.last_outcome() else {
        panic!("{:?}", caller.last_outcome())
    };
    let left = answer.expires.expect("it expires").since(world.moment(world.now()));
    assert!(left >= std::time::Duration::from_secs(50), "{left:?}");
    assert!(world.usage().wasted > 0, "what was not taken is in the usage as waste");
}

/// Trap: demand that never was. An order that waits for a fixed account counts as one order, however often it is
/// checked.
#[test]
fn an_order_that_waits_is_missed_once() {
    let world = world();
    let nodes = [world.node(), world.node()];
    set(&nodes[0], pool(Goal::Served { permille: 950 }));
    world.after(12);
    world.provider.solves("site", 5);
    let busy = SubmitScript::Refuses(FaultClass::Busy, "ERROR_NO_SLOT_AVAILABLE");
    world.provider.on_submit("site", &[busy, busy, busy]);
    let callers: Vec<_> = (0..3).map(|n| nodes[n % 2].asks(turnstile("site").exclusive())).collect();
    world.after(200);
    assert!(callers.iter().all(|caller| caller.last_outcome().is_some()));
    let missed: u64 =
        nodes.iter().filter_map(|node| node.engine.demand().remove("login")).map(|seen| seen.missed).sum();
    assert_eq!(missed, 3);
}

/// Trap: a pool that buys without demand each time that its node starts.
#[test]
fn a_fixed_size_without_demand_is_given_up_and_stays_so_after_a_restart() {
    let world = world();
    let node = world.node();
    world.provider.solves("site", 5);
    set(&node, pool(Goal::Fixed { size: 2 }));
    world.after(3 * 3600);
    let taken = world.provider.taken();
    node.kill();
    let next = world.node();
    world.after(3600);
    assert_eq!(world.provider.taken(), taken, "there was no demand");
    assert_eq!(document(&next).level.expect("it has been sized").size, 0);
    drop(next.asks(turnstile("site").exclusive()));
    world.after(60);
    assert!(
        world.provider.taken() >= taken + 3,
        "there was demand: one for the caller, and two for the stock"
    );
}
