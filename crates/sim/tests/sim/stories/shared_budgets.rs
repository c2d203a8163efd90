//! Budgets that all nodes share: what is paid for never exceeds the limit, whatever dies or is lost, and what happens
//! when a budget is spent.

use crate::stories::market::{Deal, HOUR_MS, Market, PRICE, rule};
use crate::stories::world::{StoryCaller, turnstile};
use quittance_engine::{AtLimit, BudgetPeriod, BudgetRule, BudgetScope, Outcome, Rules};
use quittance_lifecycle::{DeadCause, Money, Phase, Refusal};
use quittance_ports::{Goal, PoolSpec};
use quittance_sim::BUDGET_PLANTS;
use quittance_sim::rng::Rng;

fn check(holds: bool, what: impl FnOnce() -> String) -> Result<(), String> {
    if holds { Ok(()) } else { Err(what()) }
}

fn answered(callers: &[StoryCaller]) -> usize {
    callers.iter().filter(|caller| caller.token().is_some()).count()
}

fn dead_of_budget(caller: &StoryCaller) -> bool {
    matches!(caller.last_outcome(), Some(Outcome::Dead(DeadCause::NoBudget(_))))
}

/// Promise: nothing is paid beyond the limit, with three nodes that are killed at random, a store that is far away and
/// loses replies, and attempts of all outcomes.
fn nothing_is_overspent(seed: u64, sow: fn(&mut Rules)) -> Result<u64, String> {
    let limit = 20;
    let at_limit = [AtLimit::Refuse, AtLimit::Wait][usize::from(seed % 2 == 1)];
    let day_limit = 45;
    let of_the_day = BudgetRule {
        name: "of the day".into(),
        scope: BudgetScope { target: Some("*.example.com".into()), ..BudgetScope::default() },
        period: BudgetPeriod::Day,
        ..rule(day_limit, AtLimit::Refuse)
    };
    let market = Market::new(seed, vec![rule(limit, at_limit), of_the_day], sow);
    market.a.rolls(seed);
    market.world.way.is_far_away(seed, 30, 20);
    let mut rng = Rng::new(seed, "story");
    let mut nodes = [market.node(), market.node(), market.node()];
    let mut callers = Vec::new();
    // Two hours, from the beginning of an hour.
    for round in 0..120 {
        for _ in 0..rng.in_range(0..4) {
            let order = turnstile(&format!("{seed}-{}", callers.len())).within(900);
            callers.push(nodes[rng.index(3)].begins(order));
        }
        if rng.chance(150) {
            let at = rng.index(3);
            nodes[at].kill();
            nodes[at] = market.node();
        }
        market.world.after_ms(rng.in_range(1_000..119_000));
        if round % 10 == 0 {
            let view = market.view(&nodes[0]);
            check(view.spent.0 + view.reserved.0 <= view.rule.limit.0, || {
                format!("seed {seed}: the view shows {view:?}")
            })?;
        }
    }
    market.world.after(1_000);
    let hours = market.paid_by_hour();
    let most = hours.values().copied().max().unwrap_or(0);
    check(most <= limit * PRICE, || format!("seed {seed}: {hours:?}, and the limit is {}", limit * PRICE))?;
    let sum = hours.values().sum();
    check(sum <= day_limit * PRICE, || {
        format!("seed {seed}: {sum}, and the limit is {}", day_limit * PRICE)
    })?;
    Ok(sum)
}

#[test]
fn three_nodes_spend_no_more_than_the_budget_whatever_dies_and_is_lost() {
    let mut paid = 0;
    // In the last one, a node writes its share while a lease of its own is on the way.
    for seed in (0..60).chain([118]) {
        paid += nothing_is_overspent(seed, |_| {}).unwrap_or_else(|breach| panic!("{breach}"));
    }
    // It must come near the limit, or the story proves nothing.
    assert!(paid > 60 * 30 * PRICE, "{paid}");
}

/// Promise: all of the budget can be used, by whichever node needs it, and not a cent more.
fn all_of_it_is_used(sow: fn(&mut Rules)) -> Result<(), String> {
    let market = Market::new(1, vec![rule(10, AtLimit::Refuse)], sow);
    let nodes = [market.node(), market.node(), market.node()];
    let mut callers = Vec::new();
    for n in 0..10 {
        callers.extend(market.places(&nodes[n % 3], n as u64..n as u64 + 1));
        market.world.after(20);
    }
    let done = answered(&callers);
    check(done == 10, || format!("{done} of 10 are answered"))?;
    let view = market.view(&nodes[0]);
    check(view.spent == Money(10 * PRICE) && view.reserved == Money(0), || format!("{view:?}"))?;
    check(view.stopped.is_some(), || format!("it says that it is spent: {view:?}"))?;
    for node in &nodes {
        let refused = node.asks(turnstile("one too many"));
        let refusal = refused.refusal();
        let ends = market.world.moment(HOUR_MS);
        check(refusal == Some(Refusal::NoBudget { ends }), || format!("{refusal:?}"))?;
    }
    market.world.after(3_600);
    let next = market.places(&nodes[0], 100..110);
    market.world.after(60);
    let done = answered(&next);
    check(done == 10, || format!("{done} of 10 are answered in the next hour"))?;
    check(market.a.charged() == 20 * PRICE, || format!("{} was charged", market.a.charged()))
}

#[test]
fn all_of_a_budget_is_used_and_then_new_orders_are_refused_until_the_next_hour() {
    all_of_it_is_used(|_| {}).unwrap_or_else(|breach| panic!("{breach}"));
}

/// Promise: orders that were accepted when the budget had something left become dead letters when it is spent, and
/// nothing is paid for them.
fn accepted_orders_end(sow: fn(&mut Rules)) -> Result<(), String> {
    let market = Market::new(2, vec![rule(3, AtLimit::Refuse)], sow);
    let node = market.node();
    let callers: Vec<_> = (0..8).map(|n| node.begins(turnstile(&format!("{n}")).within(600))).collect();
    market.world.after(60);
    let (done, dead) = (answered(&callers), callers.iter().filter(|caller| dead_of_budget(caller)).count());
    check((done, dead) == (3, 5), || format!("{done} answered, {dead} dead letters"))?;
    check(market.a.submits() == 3, || format!("{} submits", market.a.submits()))
}

#[test]
fn accepted_orders_become_dead_letters_when_the_budget_is_spent() {
    accepted_orders_end(|_| {}).unwrap_or_else(|breach| panic!("{breach}"));
}

/// Promise: with `wait`, orders wait for the next hour, and those with an earlier deadline become dead letters then.
fn orders_wait(sow: fn(&mut Rules)) -> Result<(), String> {
    let market = Market::new(3, vec![rule(2, AtLimit::Wait)], sow);
    let node = market.node();
    market.world.after(3_000);
    let early: Vec<_> = (0..2).map(|n| node.asks(turnstile(&format!("{n}")))).collect();
    market.world.after(20);
    let waiting: Vec<_> = (10..12).map(|n| node.asks(turnstile(&format!("{n}")).within(1_200))).collect();
    let hurried = node.asks(turnstile("hurried").within(100));
    market.world.after(200);
    check(answered(&early) == 2 && answered(&waiting) == 0, || "only the first two are answered".into())?;
    let phase = node.reads(hurried.key()).phase.clone();
    let is_late = matches!(phase, Phase::Dead { cause: DeadCause::NotTaken(None), .. });
    check(is_late, || format!("{phase:?}"))?;
    market.world.after(500);
    let done = answered(&waiting);
    let at: Vec<_> = waiting.iter().filter_map(StoryCaller::answered_at).collect();
    check(done == 2 && at.iter().all(|at| (HOUR_MS..HOUR_MS + 60_000).contains(at)), || {
        format!("{done} of 2 are answered, at {at:?}")
    })
}

#[test]
fn orders_wait_for_the_next_hour_until_their_deadline() {
    orders_wait(|_| {}).unwrap_or_else(|breach| panic!("{breach}"));
}

/// Promise: with `cheaper_provider`, the rest of a budget is spent at the provider that it still allows.
fn the_rest_goes_to_the_cheaper(sow: fn(&mut Rules)) -> Result<(), String> {
    let limit = Money(2 * PRICE + 2 * (PRICE / 3));
    let budget = BudgetRule { limit, ..rule(2, AtLimit::CheaperProvider) };
    let mut market = Market::new(4, vec![budget], sow);
    market.has_b = true;
    let node = market.node();
    let mut callers = Vec::new();
    for n in 0..6 {
        callers.extend(market.places(&node, n..n + 1));
        market.world.after(30);
    }
    let (a, b) = (market.a.submits(), market.b.submits());
    check((a, b) == (2, 2), || format!("{a} went to a, {b} to b"))?;
    let says_why = market.world.orders().iter().any(|order| {
        order
            .timeline
            .entries
            .iter()
            .any(|entry| entry.to_string().contains("because a has spent its budget"))
    });
    check(says_why, || "no timeline says why".into())?;
    let refused = callers.iter().filter(|caller| caller.refusal().is_some()).count();
    check(refused == 2, || format!("{refused} refused"))
}

#[test]
fn the_rest_of_a_budget_goes_to_the_cheaper_provider() {
    the_rest_goes_to_the_cheaper(|_| {}).unwrap_or_else(|breach| panic!("{breach}"));
}

/// Promise: the budget of a provider stops that provider, and no other one.
fn a_provider_has_a_budget_of_its_own(sow: fn(&mut Rules)) -> Result<(), String> {
    let scope = BudgetScope { provider: Some("a".into()), ..BudgetScope::default() };
    let mut market = Market::new(5, vec![BudgetRule { scope, ..rule(1, AtLimit::Refuse) }], sow);
    market.has_b = true;
    let node = market.node();
    let mut callers = Vec::new();
    for n in 0..3 {
        callers.extend(market.places(&node, n..n + 1));
        market.world.after(30);
    }
    let (a, b, done) = (market.a.submits(), market.b.submits(), answered(&callers));
    check((a, b, done) == (1, 2, 3), || format!("{a} went to a, {b} to b, {done} are answered"))
}

#[test]
fn the_budget_of_a_provider_stops_no_other_provider() {
    a_provider_has_a_budget_of_its_own(|_| {}).unwrap_or_else(|breach| panic!("{breach}"));
}

/// Promise: a price that is not known stops an order, and the budget says why. It never counts as 0.
fn an_unknown_price_stops(sow: fn(&mut Rules)) -> Result<(), String> {
    let market = Market::new(6, vec![rule(10, AtLimit::Refuse)], sow);
    let node = market.node_with(|settings| settings.providers[0].prices.clear());
    let caller = node.asks(turnstile("site"));
    market.world.after(30);
    let refusal = caller.refusal();
    check(market.a.submits() == 0, || format!("{} submits", market.a.submits()))?;
    check(matches!(refusal, Some(Refusal::NoBudget { .. })), || format!("{refusal:?}"))?;
    let stopped = market.view(&node).stopped.unwrap_or_default();
    check(stopped.contains("the price of the order is not known"), || stopped)?;
    node.kill();
    let node = market.node_with(|settings| settings.providers[0].currency = "EUR".into());
    let caller = node.asks(turnstile("site"));
    market.world.after(30);
    let stopped = market.view(&node).stopped.unwrap_or_default();
    check(caller.refusal().is_some() && stopped.contains("in another currency"), || stopped)
}

#[test]
fn a_price_that_is_not_known_stops_the_order_and_never_counts_as_0() {
    an_unknown_price_stops(|_| {}).unwrap_or_else(|breach| panic!("{breach}"));
}

/// Promise: a store that forgets does not begin a budget again.
fn a_store_forgets(sow: fn(&mut Rules)) -> Result<(), String> {
    let market = Market::new(7, vec![rule(6, AtLimit::Refuse)], sow);
    let nodes = [market.node(), market.node(), market.node()];
    for (n, node) in nodes.iter().enumerate() {
        let _answered = market.places(node, n as u64 * 2..n as u64 * 2 + 2);
        market.world.after(20);
    }
    // One of them is gone. What it has spent is known to the others.
    nodes[0].kill();
    market.forget_documents(&nodes[1]);
    for n in 0..20 {
        let _refused = nodes[1 + n % 2].begins(turnstile(&format!("later-{n}")));
        market.world.after(1);
    }
    check(market.a.charged() == 6 * PRICE, || format!("{} was charged", market.a.charged()))?;
    let view = market.view(&nodes[2]);
    check(view.spent == Money(6 * PRICE), || format!("{view:?}"))
}

#[test]
fn a_store_that_forgets_does_not_begin_a_budget_again() {
    a_store_forgets(|_| {}).unwrap_or_else(|breach| panic!("{breach}"));
}

/// Promise: an attempt that was not charged gives its money back.
fn what_costs_nothing_comes_back(sow: fn(&mut Rules)) -> Result<(), String> {
    let market = Market::new(8, vec![rule(2, AtLimit::Refuse)], sow);
    let nodes = [market.node(), market.node()];
    for deal in [Deal::Rejects, Deal::GivesUp] {
        market.a.does(deal);
        let _dead = nodes[0].asks(turnstile("hopeless").keyed(&format!("{deal:?}")));
        market.world.after(120);
    }
    let tried = market.a.submits();
    check(tried > 2 && market.a.charged() == 0, || format!("{tried} submits"))?;
    market.a.does(Deal::Solves(5));
    let callers = market.places(&nodes[1], 0..2);
    market.world.after(60);
    check(answered(&callers) == 2, || format!("{} of 2 are answered", answered(&callers)))
}

#[test]
fn an_attempt_that_was_not_charged_gives_its_money_back() {
    what_costs_nothing_comes_back(|_| {}).unwrap_or_else(|breach| panic!("{breach}"));
}

/// Promise: a lost reply is not a free attempt. What it may have cost stays spent, and counts as not known.
fn a_doubt_stays_spent(sow: fn(&mut Rules)) -> Result<(), String> {
    let market = Market::new(9, vec![rule(3, AtLimit::Refuse)], sow);
    let node = market.node();
    market.a.does(Deal::Silent);
    let _dead = node.asks(turnstile("silent").within(600));
    market.world.after(900);
    check(market.a.charged() == 3 * PRICE, || format!("{} was charged", market.a.charged()))?;
    let view = market.view(&node);
    check(view.unpriced >= 2 && view.spent.0 + view.reserved.0 == 3 * PRICE, || format!("{view:?}"))
}

#[test]
fn a_lost_reply_is_not_a_free_attempt() {
    a_doubt_stays_spent(|_| {}).unwrap_or_else(|breach| panic!("{breach}"));
}

/// A pool buys no more than its budget allows, beside the hourly budget of its own.
#[test]
fn a_pool_draws_from_budgets_too() {
    let scope = BudgetScope { pool: Some("login".into()), ..BudgetScope::default() };
    let market = Market::new(10, vec![BudgetRule { scope, ..rule(4, AtLimit::Refuse) }], |_| {});
    let node = market.node();
    let spec = PoolSpec { budget: None, ..crate::stories::pools::pool(Goal::Fixed { size: 9 }) };
    let name = spec.name.clone();
    assert_eq!(name, "login", "the budget is for this pool");
    crate::stories::pools::set(&node, spec);
    market.world.after(300);
    assert_eq!(market.a.charged(), 4 * PRICE);
    let why = crate::stories::pools::document(&node).level.expect("it has been sized").why;
    assert!(why.contains("a budget allows no purchase now"), "{why}");
    let other = node.asks(turnstile("of a caller").within(600));
    market.world.after(30);
    assert!(other.token().is_some(), "the budget counts the pool only");
}

/// The forecast: after a quarter of an hour and half of the limit, the limit is reached at half past.
#[test]
fn a_forecast_says_when_the_limit_will_be_reached() {
    let market = Market::new(11, vec![rule(10, AtLimit::Refuse)], |_| {});
    let node = market.node();
    assert_eq!(market.view(&node).runs_out, None, "nothing is spent yet");
    drop(market.places(&node, 0..2));
    market.world.after(1_800);
    assert_eq!(market.view(&node).runs_out, None, "this will do until the hour ends");
    drop(market.places(&node, 2..8));
    market.world.after(600);
    let view = market.view(&node);
    assert_eq!((view.spent, view.runs_out), (Money(8 * PRICE), Some(market.world.moment(3_000_000))));
}

/// A node that stops gives back what it holds, and one that dies takes little with it.
#[test]
fn a_node_that_stops_gives_back_what_it_has_leased() {
    let market = Market::new(12, vec![rule(100, AtLimit::Refuse)], |_| {});
    let nodes = [market.node(), market.node()];
    let callers = market.places(&nodes[0], 0..5);
    nodes[0].engine.stop();
    market.world.after(60);
    let view = market.view(&nodes[1]);
    assert_eq!((view.spent, view.reserved), (Money(5 * PRICE), Money(0)), "the other node has settled all");
    drop(callers);
    let callers = market.places(&nodes[1], 10..15);
    nodes[1].kill();
    drop(callers);
    let last = market.node();
    market.world.after(60);
    let view = market.view(&last);
    assert_eq!(view.spent, Money(10 * PRICE), "another node has settled the attempts of both");
    assert!(view.reserved <= Money(12 * PRICE), "{view:?}");
}

fn all_promises(sow: fn(&mut Rules)) -> Result<(), String> {
    all_of_it_is_used(sow)?;
    accepted_orders_end(sow)?;
    orders_wait(sow)?;
    the_rest_goes_to_the_cheaper(sow)?;
    a_provider_has_a_budget_of_its_own(sow)?;
    an_unknown_price_stops(sow)?;
    a_store_forgets(sow)?;
    what_costs_nothing_comes_back(sow)?;
    a_doubt_stays_spent(sow)?;
    for seed in [0, 1, 118] {
        nothing_is_overspent(seed, sow)?;
    }
    Ok(())
}

#[test]
fn every_planted_bug_of_budgets_is_caught() {
    all_promises(|_| {}).expect("without a bug, every promise holds");
    for plant in BUDGET_PLANTS {
        let caught = all_promises(plant.sow).expect_err(plant.name);
        println!("{}: {caught}", plant.name);
    }
}

/// Only for the check of the phase: an order that waits for money is queued, and not held.
#[test]
fn an_order_that_waits_for_money_is_queued() {
    let market = Market::new(13, vec![rule(0, AtLimit::Wait)], |_| {});
    let node = market.node();
    let caller = node.asks(turnstile("site").within(600));
    market.world.after(5);
    assert!(matches!(node.reads(caller.key()).phase, Phase::Queued { held: false, .. }));
    assert_eq!(market.a.submits(), 0);
}
