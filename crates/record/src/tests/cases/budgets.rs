//! Cases of budgets: attempts that have drawn, orders that a budget stops, and what nodes hold.

use super::{arrival, at, attempt, order};
use crate::tests::AnyRecord;
use quittance_lifecycle::{
    AtLimit, Attempt, BudgetDraw, DeadCause, Event, Money, Offer, Order, Phase, Progress, Shortage,
    SubmitRoute, Timeline, TimelineEntry, TimelineEvent, Timestamp, WhyShort,
};
use quittance_ports::{BudgetDocument, BudgetShare, SharedDocument};
use std::collections::BTreeMap;

fn draw() -> BudgetDraw {
    BudgetDraw { price: Money(2990), budgets: vec!["hour/all".into(), "day/team-a".into()], until: at(60) }
}

fn shortage(why: WhyShort, at_limit: AtLimit) -> Shortage {
    Shortage { budget: "team-a".into(), why, at_limit, is_of_provider: true, ends: at(60), until: at(3) }
}

pub(super) fn orders() -> Vec<(&'static str, AnyRecord)> {
    let drawn = Order {
        attempts: vec![Attempt { drawn: Some(draw()), ..attempt(1, Progress::Answered) }],
        last_attempt: 1,
        ..order(Phase::Queued { until: at(20), held: false })
    };
    let cause = DeadCause::NoBudget(shortage(WhyShort::Spent, AtLimit::Refuse));
    let event = TimelineEvent::MovedToDeadLetters { cause: cause.clone() };
    let stopped = Order {
        timeline: Timeline { entries: vec![TimelineEntry { at: at(5), event }], left_out: 0 },
        ..order(Phase::Dead { cause, at: at(5) })
    };
    super::orders([("order-that-has-drawn", drawn), ("order-dead-no-budget", stopped)])
}

pub(super) fn documents() -> Vec<(&'static str, AnyRecord)> {
    let share = BudgetShare { step: 4, leased: 5_980, charged: 2_990, unpriced: 1 };
    let budget = BudgetDocument {
        budget: "hour/team-a".into(),
        currency: "EUR".into(),
        begins: at(0),
        no_leases_until: at(5),
        nodes: BTreeMap::from([(7, share), (u64::MAX, BudgetShare { leased: -5, ..share })]),
        gone: BudgetShare { unpriced: -1, charged: -7, ..share },
    };
    let bare = BudgetDocument {
        no_leases_until: Timestamp::ZERO,
        nodes: BTreeMap::new(),
        gone: BudgetShare::default(),
        ..budget.clone()
    };
    [("document-budget", budget), ("document-budget-new", bare)]
        .map(|(name, budget)| (name, AnyRecord::SharedDocument(Box::new(SharedDocument::Budget(budget)))))
        .into()
}

pub(super) fn arrivals() -> Vec<(&'static str, AnyRecord)> {
    let offer = Offer { drawn: Some(draw()), ..Offer::OF_TERMS };
    let shortages = [
        ("arrival-no-budget-held", shortage(WhyShort::Held, AtLimit::Wait)),
        ("arrival-no-budget-spent", shortage(WhyShort::Spent, AtLimit::Refuse)),
        ("arrival-no-budget-price", shortage(WhyShort::PriceNotKnown, AtLimit::CheaperProvider)),
        (
            "arrival-no-budget-currency",
            Shortage { is_of_provider: false, ..shortage(WhyShort::OtherCurrency, AtLimit::Refuse) },
        ),
    ];
    let shortages = shortages.map(|(name, shortage)| (name, SubmitRoute::NoBudget(shortage)));
    let routes = shortages.into_iter().chain([("arrival-woken-with-a-draw", SubmitRoute::To(offer))]);
    let record = |route| AnyRecord::IncomingEvent(arrival(Event::Woken { stamp: 3, route }));
    routes.map(|(name, route)| (name, record(route))).collect()
}
