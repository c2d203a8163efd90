//! What a spent budget must not stop, and what happens when its limit is raised.

use crate::stories::market::{Market, PRICE, rule};
use crate::stories::world::{StoryNode, turnstile};
use quittance_engine::{BudgetRule, HedgeAfter, Hedging, ReloadedProvider};
use quittance_lifecycle::{AtLimit, Money, Refusal};
use std::sync::Arc;

/// Replaces the budget of a running node.
fn set(node: &StoryNode, budget: BudgetRule) {
    let mut settings = node.engine.current_settings();
    settings.budgets = vec![budget];
    let providers = settings.providers.iter().cloned().map(|rules| ReloadedProvider { rules, adapter: None });
    node.engine.reload(settings.clone(), providers.collect::<Vec<_>>()).expect("only the budget differs");
}

/// Trap: a client that has lost a reply repeats its request, and is refused for want of money.
#[test]
fn repeats_and_joins_buy_nothing_so_a_spent_budget_does_not_refuse_them() {
    let market = Market::new(1, vec![rule(1, AtLimit::Refuse)], |_| {});
    let node = market.node();
    let first = node.asks(turnstile("site").keyed("job"));
    market.world.after(60);
    assert!(first.token().is_some());
    // A new order is refused once the node has noticed that the budget is spent.
    let _noticed = node.asks(turnstile("another"));
    market.world.after(10);
    assert!(matches!(node.asks(turnstile("third")).refusal(), Some(Refusal::NoBudget { .. })));
    let repeated = node.asks(turnstile("site").keyed("job"));
    market.world.after(5);
    assert_eq!(repeated.token(), first.token());
    assert_eq!(market.a.submits(), 1);
}

/// Trap: a node remembers that it was short of money, refuses all orders for it, and so never looks again.
#[test]
fn a_raised_limit_counts_at_once_on_every_node() {
    let market = Market::new(1, vec![rule(2, AtLimit::Refuse)], |_| {});
    let nodes = [market.node(), market.node()];
    let spent: Vec<_> =
        (0..6).map(|n| nodes[n % 2].asks(turnstile(&format!("site-{n}")).within(20))).collect();
    market.world.after(40);
    for node in &nodes {
        assert!(node.asks(turnstile("refused").within(20)).refusal().is_some(), "the budget is spent");
        set(node, rule(20, AtLimit::Refuse));
    }
    market.world.after(10);
    let later: Vec<_> = (0..4).map(|n| nodes[n % 2].asks(turnstile(&format!("later-{n}")))).collect();
    market.world.after(60);
    assert!(later.iter().all(|caller| caller.token().is_some()), "{:?}", later[1].refusal());
    assert!(market.a.charged() <= 20 * PRICE);
    drop(spent);
}

/// Trap: an order that waits for a paid task dies because there is no money for a second one.
#[test]
fn an_order_that_is_to_be_hedged_without_money_waits_for_the_task_that_it_has() {
    let mut market = Market::new(1, vec![rule(1, AtLimit::Refuse)], |_| {});
    market.has_b = true;
    let node = market.node_with(|settings| {
        settings.hedging = Hedging { after: Some(HedgeAfter::P50), budget: Some(Money(100 * PRICE)) };
        let kinds = Arc::clone(&settings.kinds);
        settings.kinds = Arc::new(move |name| {
            kinds(name).map(|mut kind| {
                kind.pace.p50 = std::time::Duration::from_secs(2);
                kind
            })
        });
    });
    let mut order = turnstile("site");
    order.draft.priority = Some(quittance_lifecycle::Priority::Interactive);
    let caller = node.asks(order);
    for _ in 0..60 {
        market.world.after(1);
        let orders = market.world.orders();
        assert!(!orders[0].phase.is_dead(), "{:?}", orders[0].timeline);
    }
    assert!(caller.token().is_some());
    assert_eq!(market.a.submits() + market.b.submits(), 1);
}
