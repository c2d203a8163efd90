//! What a budget does that allows no purchase: where the order goes, whether it waits or ends, and what an attempt
//! means for the budgets from which it has drawn.

use super::{START, agreed, delivery, placed, policy, secs};
use crate::routing::Choice;
use crate::{
    AtLimit, AttemptAccount, BudgetDraw, BudgetEffect, Candidate, DeadCause, Decision, Event, Fault,
    FaultClass, GateReadiness, Money, Offer, Order, Phase, Placement, Policy, Refusal, Reuse, Routing,
    Shortage, SubmitOutcome, SubmitRoute, WhenInDoubt, WhyPassedOver, WhyShort, choose, place, transition,
};
use alloc::vec;

fn shortage(why: WhyShort, at_limit: AtLimit) -> Shortage {
    Shortage {
        budget: "all".into(),
        why,
        at_limit,
        is_of_provider: false,
        ends: START + secs(60),
        until: START + secs(7),
    }
}

fn candidate(name: &str, shortage: Option<Shortage>) -> Candidate {
    Candidate {
        account: AttemptAccount { account: name.into(), price: None },
        readiness: GateReadiness::Ready,
        weight: 1,
        solve_time: None,
        success: None,
        quickest: None,
        shortage,
    }
}

fn order() -> Order {
    let (key, terms) = agreed(true, Reuse::Exclusive, false);
    placed(key, &terms, &policy(true, WhenInDoubt::Resubmit))
}

fn choice(first: Shortage) -> Choice {
    let candidates = [candidate("a", Some(first)), candidate("b", None)];
    choose(&order(), &candidates, Routing::DEFAULT, START)
}

#[test]
fn only_a_budget_that_allows_it_sends_an_order_to_a_cheaper_provider() {
    let cheaper = choice(shortage(WhyShort::Spent, AtLimit::CheaperProvider));
    assert_eq!((cheaper.chosen, cheaper.passed_over[0].why), (Some(1), WhyPassedOver::BudgetSpent));
    for at_limit in [AtLimit::Refuse, AtLimit::Wait] {
        let short = shortage(WhyShort::Spent, at_limit);
        let strict = choice(short.clone());
        assert_eq!((strict.chosen, strict.shortage), (None, Some(short.clone())), "{at_limit:?}");
        let of_a = Shortage { is_of_provider: true, ..short };
        assert_eq!(choice(of_a).chosen, Some(1), "a budget of one provider limits no other");
    }
}

/// The order ends only if money is the only reason, and none of it may come back.
#[test]
fn an_order_is_short_of_money_only_if_no_provider_can_take_it_for_another_reason() {
    let spent = shortage(WhyShort::Spent, AtLimit::CheaperProvider);
    let held = shortage(WhyShort::Held, AtLimit::CheaperProvider);
    let chosen = |candidates: &[Candidate]| choose(&order(), candidates, Routing::DEFAULT, START);
    let both = chosen(&[candidate("a", Some(spent.clone())), candidate("b", Some(held.clone()))]);
    assert_eq!(both.shortage, Some(held), "some of it may come back");
    let down = GateReadiness::Down(START + secs(9), WhyPassedOver::Tripped);
    let down = Candidate { readiness: down, ..candidate("b", None) };
    let either = chosen(&[candidate("a", Some(spent)), down]);
    assert_eq!((either.chosen, either.shortage), (None, None), "the other one may come back");
}

fn woken(shortage: Shortage) -> Phase {
    let event = Event::Woken { stamp: 1, route: SubmitRoute::NoBudget(shortage) };
    match transition(&order(), event, START, &policy(true, WhenInDoubt::Resubmit)) {
        Decision::Advance(advance) => {
            assert_eq!((advance.effect, advance.next.attempts.len()), (None, 0), "nothing is bought");
            advance.next.phase
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_spent_budget_ends_the_order_or_lets_it_wait_as_the_operator_wants() {
    for at_limit in [AtLimit::Refuse, AtLimit::CheaperProvider, AtLimit::Wait] {
        for why in [WhyShort::Spent, WhyShort::Held, WhyShort::PriceNotKnown, WhyShort::OtherCurrency] {
            let short = shortage(why, at_limit);
            let phase = woken(short.clone());
            if at_limit == AtLimit::Wait || why == WhyShort::Held {
                assert_eq!(phase, Phase::Queued { until: START + secs(7), held: false }, "{short:?}");
            } else {
                assert_eq!(phase, Phase::Dead { cause: DeadCause::NoBudget(short), at: START });
            }
        }
    }
}

#[test]
fn a_draw_from_a_period_that_is_over_buys_nothing() {
    let drawn = BudgetDraw { price: Money(3), budgets: vec!["hour/all".into()], until: START + secs(1) };
    let policy = policy(true, WhenInDoubt::Resubmit);
    for (at, attempts) in [(START, 1), (START + secs(1), 0)] {
        let offer = Offer { drawn: Some(drawn.clone()), ..Offer::OF_TERMS };
        let event = Event::Woken { stamp: 1, route: SubmitRoute::To(offer) };
        let Decision::Advance(advance) = transition(&order(), event, at, &policy) else { panic!("a step") };
        assert_eq!(advance.next.attempts.len(), attempts);
        assert_eq!(advance.effect.is_some(), attempts == 1);
        let kept = advance.next.attempts.first().and_then(|attempt| attempt.drawn.clone());
        assert_eq!(kept, (attempts == 1).then(|| drawn.clone()), "the attempt says what it has drawn");
    }
}

#[test]
fn a_new_life_is_refused_and_a_join_is_not_while_no_budget_allows_a_purchase() {
    let (key, terms) = agreed(true, Reuse::Exclusive, false);
    let ends = START + secs(60);
    let policy = Policy { no_budget_until: Some(ends), ..policy(true, WhenInDoubt::Resubmit) };
    let new = place(None, None, key, &terms, START, &policy);
    assert_eq!(new, Placement::Refused(Refusal::NoBudget { ends }));
    let joined = place(Some(&order()), None, key, &terms, START, &policy);
    assert!(matches!(joined, Placement::Stands { .. }), "{joined:?}");
}

#[test]
fn an_attempt_holds_what_it_has_drawn_until_its_cost_is_known() {
    let drawn = BudgetDraw { price: Money(5), budgets: vec!["hour/all".into()], until: START + secs(60) };
    let policy = policy(true, WhenInDoubt::Resubmit);
    let after = |outcome: SubmitOutcome| {
        let offer = Offer { drawn: Some(drawn.clone()), ..Offer::OF_TERMS };
        let mut order = order();
        for event in [
            Event::Woken { stamp: 1, route: SubmitRoute::To(offer) },
            Event::Submitted { attempt: 1, outcome },
        ] {
            let Decision::Advance(advance) = transition(&order, event, START, &policy) else {
                panic!("a step")
            };
            order = advance.next;
        }
        order.attempts[0].budget_effect()
    };
    let held = BudgetEffect { held: Money(5), ..BudgetEffect::default() };
    assert_eq!(after(SubmitOutcome::Accepted { task: "7".into() }), held);
    assert_eq!(after(SubmitOutcome::InDoubt(crate::Evidence::default())), held);
    let rejected = SubmitOutcome::Rejected(Fault::new(FaultClass::Busy, "ERROR_NO_SLOT_AVAILABLE"));
    assert_eq!(after(rejected), BudgetEffect::default());
    let charged = BudgetEffect { held: Money(3), charged: Money(3), is_unpriced: false };
    assert_eq!(after(SubmitOutcome::Answered(delivery("x"))), charged);
}
