//! Budgets of pools: every submit that may be charged is counted before it is made, at a currently valid price, and
//! corrected to its real cost.

use crate::stories::pools::{document, places, pool, set};
use crate::stories::provider::{PRICE, PollScript, SubmitScript};
use crate::stories::world::{StoryNode, StoryWorld, turnstile, world, world_with};
use quittance_engine::{PoolView, Settings};
use quittance_lifecycle::{FaultClass, Money, Policy, PriceSum, Unsolvable};
use quittance_ports::Goal;
use quittance_ports::{DocumentWritten, Membership as _, MemorySpill, PoolSpec, StoreError};
use std::sync::Arc;

fn node(world: &StoryWorld, adjust: impl FnOnce(&mut Settings)) -> StoryNode {
    world.node_with(Arc::new(MemorySpill::default()), adjust)
}

/// A node whose price list has this price for an answer.
fn priced(world: &StoryWorld, micros: u64) -> StoryNode {
    node(world, |settings| _ = settings.providers[0].prices.insert("turnstile".into(), Money(micros)))
}

fn with_budget(micros: u64) -> PoolSpec {
    PoolSpec { budget: Some(Money(micros)), ..pool(Goal::Fixed { size: 9 }) }
}

fn pool_view(node: &StoryNode) -> PoolView {
    let engine = Arc::clone(&node.engine);
    let pools = node.does(async move { engine.pools().await }).expect("the store is there");
    pools.into_iter().next().expect("there is one")
}

fn why(node: &StoryNode) -> String {
    document(node).level.expect("it has been sized").why
}

/// Checks that the pool and the usage agree on what the pool spent.
fn agrees_with_usage(world: &StoryWorld, node: &StoryNode) -> PriceSum {
    let spent = pool_view(node).document.spent.sum();
    assert_eq!(spent, world.usage().spent(), "the pool and usage");
    spent
}

fn forget_documents(world: &StoryWorld, node: &StoryNode) {
    let membership = world.membership.clone();
    let forget = async move {
        for stored in membership.documents().await? {
            let written = membership.write_document(&stored.name, stored.version, None).await?;
            assert!(matches!(written, DocumentWritten::Done(_)), "{written:?}");
        }
        Ok::<_, StoreError>(())
    };
    node.does(forget).expect("the store is there");
}

#[test]
fn a_price_that_was_learned_for_another_kind_does_not_buy() {
    let world = world();
    let node = priced(&world, PRICE);
    world.provider.solves("site", 5);
    set(&node, with_budget(50_000));
    world.after(60);
    let taken = world.provider.taken();
    assert_eq!((taken, pool_view(&node).price), (9, Some(Money(PRICE))));
    set(&node, PoolSpec { kind: "hcaptcha".into(), ..with_budget(50_000) });
    assert_eq!(pool_view(&node).price, None, "the price of this kind is not known");
    world.after(120);
    assert_eq!(world.provider.taken(), taken, "nothing is bought at a price that is not known");
    assert!(why(&node).contains("the price of `hcaptcha` is not known"), "{:?}", document(&node));
}

/// An answer that was ordered before and comes after does not set the price: its price came from the old list.
#[test]
fn a_price_that_is_taken_from_the_configuration_does_not_buy_on() {
    let world = world();
    let before = priced(&world, PRICE);
    world.provider.solves("site", 5);
    set(&before, with_budget(10 * PRICE));
    world.after(14);
    before.kill();
    let after = node(&world, |_| {});
    assert_eq!(pool_view(&after).price, None);
    let taken = world.provider.taken();
    drop(after.asks(turnstile("site").exclusive()));
    world.after(120);
    assert!(world.provider.taken() <= taken + 1, "only what a caller ordered");
    assert!(why(&after).contains("the price of `turnstile` is not known"), "{}", why(&after));
}

#[test]
fn a_new_price_in_the_configuration_holds_at_once() {
    let world = world();
    let before = priced(&world, PRICE);
    world.provider.solves("site", 5);
    set(&before, with_budget(3 * PRICE));
    world.after(60);
    assert_eq!(pool_view(&before).price, Some(Money(PRICE)));
    before.kill();
    let after = priced(&world, 7_000);
    assert_eq!(pool_view(&after).price, Some(Money(7_000)));
}

#[test]
fn amounts_in_another_currency_are_not_relabelled() {
    let world = world();
    let before = priced(&world, PRICE);
    world.provider.solves("site", 5);
    set(&before, with_budget(3 * PRICE));
    world.after(60);
    assert_eq!(pool_view(&before).document.spent.money, Money(3 * PRICE));
    before.kill();
    let after = node(&world, |settings| settings.providers[0].currency = "RUB".into());
    let PoolView { document, price, currency, .. } = pool_view(&after);
    assert_eq!((price, currency.as_str()), (None, "RUB"));
    assert_eq!((document.spent.sum().known(), document.spent.unpriced), (None, 3), "dollars are no rubles");
    let taken = world.provider.taken();
    drop(after.asks(turnstile("site").exclusive()));
    world.after(120);
    assert!(world.provider.taken() <= taken + 1, "only what a caller ordered");
    after.kill();
    // A price in the new currency says nothing about what was bought for the old one.
    let priced = node(&world, |settings| {
        settings.providers[0].currency = "RUB".into();
        settings.providers[0].prices.insert("turnstile".into(), Money(PRICE));
    });
    set(&priced, with_budget(100 * PRICE));
    let taken = world.provider.taken();
    world.after(120);
    assert_eq!(world.provider.taken(), taken, "it buys nothing more in this hour");
    let stopped = pool_view(&priced).stopped(priced.engine.now()).expect("it is stopped");
    assert!(stopped.contains("the price of 3 refills of the pool in this hour is not known"), "{stopped}");
}

/// What was counted before the account changed keeps its currency. A price that comes later is in the new currency,
/// so it says nothing about an order that was placed before.
#[test]
fn usage_keeps_the_currency_in_which_it_was_counted() {
    let world = world();
    let before = node(&world, |_| {});
    for (site, seconds) in [("site", 5), ("slow", 90)] {
        world.provider.solves(site, seconds);
        drop(before.asks(turnstile(site).exclusive()));
    }
    world.after(30);
    before.kill();
    let after = node(&world, |settings| settings.providers[0].currency = "RUB".into());
    drop(after.asks(turnstile("site").exclusive()));
    world.after(200);
    let usage = world.usage_by_account();
    let spent = |account: &str| usage.get(account).map(quittance_lifecycle::Counters::spent);
    assert_eq!(spent(" USD"), Some(PriceSum { sum: Money(PRICE), unpriced: 1 }), "{usage:?}");
    assert_eq!(spent(" RUB"), Some(PriceSum { sum: Money(PRICE), unpriced: 0 }), "{usage:?}");
    let slow =
        world.orders().into_iter().find(|order| order.spent().unpriced > 0).expect("its price is not known");
    assert_eq!((slow.currency("RUB"), slow.phase.name()), ("USD", "solved"));
}

/// The list may be outdated: the provider's price corrects what was counted.
#[test]
fn a_refill_that_costs_more_than_the_list_says_is_counted_at_what_it_cost() {
    let world = world();
    let node = priced(&world, 2_000);
    world.provider.solves("site", 5);
    set(&node, with_budget(6_000));
    world.after(300);
    assert_eq!(world.provider.taken(), 2, "{}", why(&node));
    assert_eq!(agrees_with_usage(&world, &node), PriceSum { sum: Money(2 * PRICE), unpriced: 0 });
    assert_eq!(pool_view(&node).price, Some(Money(PRICE)));
}

#[test]
fn a_submit_whose_reply_is_lost_is_counted_and_so_is_the_next() {
    let world = world();
    let node = priced(&world, PRICE);
    world.provider.on_submit("site", &[SubmitScript::FallsSilent(1_000); 4]);
    world.provider.solves("site", 5);
    set(&node, with_budget(6_000));
    world.after(1_700);
    assert!(world.provider.taken() <= 2, "a budget for two paid for {}", world.provider.taken());
    assert_eq!(agrees_with_usage(&world, &node), PriceSum { sum: Money(0), unpriced: 2 });
}

#[test]
fn what_cannot_be_solved_is_counted_where_it_is_charged() {
    let world = world_with(Policy { unsolvable: Unsolvable::Charged, ..Policy::DEFAULT }, 1);
    let node = priced(&world, PRICE);
    world
        .provider
        .on_poll("site", &[PollScript::Faults(FaultClass::Unsolvable, "ERROR_CAPTCHA_UNSOLVABLE"); 30]);
    world.provider.solves("site", 5);
    set(&node, with_budget(2 * PRICE));
    world.after(1_700);
    assert_eq!(world.provider.taken(), 2, "a budget for two");
    assert_eq!(agrees_with_usage(&world, &node), PriceSum { sum: Money(2 * PRICE), unpriced: 0 });
}

/// A task that was accepted and never answered may have been charged, so its price stays counted.
#[test]
fn what_was_never_answered_uses_up_the_budget() {
    let world = world();
    let node = priced(&world, PRICE);
    set(&node, with_budget(2 * PRICE));
    world.after(2_400);
    assert_eq!(world.provider.taken(), 2);
    assert_eq!(agrees_with_usage(&world, &node), PriceSum { sum: Money(0), unpriced: 2 });
    assert!(why(&node).contains("the pool's budget for this hour is spent"), "{}", why(&node));
}

/// Promise: an hour's budget holds, also for a pool that is removed and set again within that hour.
#[test]
fn a_pool_that_is_removed_and_set_again_has_what_is_left_of_the_hour() {
    let world = world();
    let node = priced(&world, PRICE);
    world.provider.solves("site", 5);
    let remove = || {
        let engine = Arc::clone(&node.engine);
        node.does(async move { engine.remove_pool("login").await }).expect("the store is there")
    };
    let listed = || {
        let engine = Arc::clone(&node.engine);
        node.does(async move { engine.pools().await }).expect("the store is there").len()
    };
    let documents = || {
        let membership = world.membership.clone();
        node.does(async move { membership.documents().await }).expect("the store is there").len()
    };
    set(&node, with_budget(2 * PRICE));
    world.after(60);
    assert_eq!(world.provider.taken(), 2, "a budget for two");
    for _ in 0..2 {
        assert!(remove(), "it was there");
        assert!(!remove(), "it is not there any more");
        world.after(20);
        assert_eq!((listed(), documents()), (0, 1), "no list shows it, and what it has spent is on record");
        set(&node, with_budget(2 * PRICE));
        world.after(60);
        assert_eq!(world.provider.taken(), 2, "the budget of the hour was spent");
        assert_eq!(document(&node).spent.refills, 2);
    }
    assert!(remove());
    world.after(3_600);
    assert_eq!(documents(), 0, "its hour is over");
    set(&node, with_budget(2 * PRICE));
    world.after(60);
    assert_eq!(world.provider.taken(), 4, "another hour has a budget of its own");
}

#[test]
fn a_pool_that_is_removed_and_set_again_counts_what_it_has_bought_before() {
    let world = world();
    let first = priced(&world, PRICE);
    world.provider.solves("site", 5);
    set(&first, with_budget(3 * PRICE));
    world.after(60);
    let taken = world.provider.taken();
    let engine = Arc::clone(&first.engine);
    assert!(first.does(async move { engine.remove_pool("login").await }).expect("the store is there"));
    set(&first, PoolSpec { budget: Some(Money(20 * PRICE)), ..pool(Goal::Fixed { size: 5 }) });
    world.after(60);
    let bought = world.provider.taken() - taken;
    assert_eq!(bought, 2, "three stand on the stock already");
    let spent = document(&first).spent;
    assert_eq!((spent.refills, spent.money), (5, Money(5 * PRICE)), "all of this hour");
    assert_eq!(places(&world).len(), 5, "five orders of their own");
}

/// Promise: a budget does not begin again because the store forgot. No running node knows what was spent.
#[test]
fn a_pool_that_is_set_after_the_store_forgot_buys_nothing_in_that_hour() {
    let world = world();
    let first = priced(&world, PRICE);
    world.provider.solves("site", 5);
    set(&first, with_budget(2 * PRICE));
    world.after(60);
    assert_eq!(world.provider.taken(), 2, "a budget for two");
    first.kill();
    forget_documents(&world, &first);
    let second = priced(&world, PRICE);
    let engine = Arc::clone(&second.engine);
    second.does(async move { engine.lose_spending().await }).expect("the store is there");
    set(&second, with_budget(2 * PRICE));
    world.after(120);
    assert_eq!(world.provider.taken(), 2, "what was spent in this hour is not known");
    assert!(
        why(&second).contains("the store forgot what the pool has spent in this hour"),
        "{}",
        why(&second)
    );
    let stopped = pool_view(&second).stopped(second.engine.now());
    assert!(stopped.is_some_and(|words| words.contains("UTC")), "it says until when");
    world.after(3_600);
    set(&second, with_budget(2 * PRICE));
    world.after(60);
    assert_eq!(world.provider.taken(), 4, "another hour has a budget of its own");
    assert_eq!(pool_view(&second).stopped(second.engine.now()), None);
}

#[test]
fn a_budget_below_one_price_says_so_and_not_that_it_is_spent() {
    let world = world();
    let node = priced(&world, PRICE);
    set(&node, with_budget(1_000));
    world.after(30);
    assert_eq!(world.provider.taken(), 0);
    let why = why(&node);
    assert!(why.contains("0.001 USD an hour is smaller than the price of one answer, 0.00299"), "{why}");
    assert!(!why.contains("spent"), "{why}");
}
