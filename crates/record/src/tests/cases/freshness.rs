//! Cases of answers that are dated by evidence: when a callback came, when none could come, for which callers the
//! margin counts, and whether an answer has reached a caller.

use super::{answer, arrival, at, attempt, called_back, order, shared, token_terms};
use crate::tests::AnyRecord;
use quittance_lifecycle::{Attempt, Event, Key, Money, Order, Outage, Phase, Progress, Receipt, Terms};
use quittance_ports::{
    IncomingEvent, NodeStatus, PoolDocument, PriceBasis, Reach, Reservation, SharedDocument, Spent,
};
use std::sync::Arc;
use std::time::Duration;

fn outages() -> Vec<Outage> {
    vec![Outage { from: at(3), to: at(5) }, Outage { from: at(0), to: at(9) }]
}

pub(super) fn terms() -> Vec<(&'static str, AnyRecord)> {
    let bought = Terms { min_life: Duration::ZERO, price: Some(Money(0)), ..token_terms() };
    let demanding = Terms { min_life: Duration::from_secs(60), margin: Duration::ZERO, ..token_terms() };
    [("terms-with-a-margin", bought), ("terms-with-a-least-life", demanding)]
        .map(|(name, terms)| (name, AnyRecord::Terms(Arc::new(terms))))
        .into()
}

pub(super) fn orders() -> Vec<(&'static str, AnyRecord)> {
    let uncollected = Order { uncollected: true, ..order(Phase::Solved { answer: answer(), at: at(21) }) };
    let mut unpriced = order(Phase::Expired { at: at(30) });
    for attempt in &mut unpriced.attempts {
        attempt.unpriced_since = Some(at(20));
    }
    let mut called = order(Phase::Solving { attempt: 2, poll_at: at(67), misses: 0 });
    let solving = Progress::Solving { task: "task-2".into() };
    called.attempts = vec![Attempt { callback_address: Some(0xdead_beef), ..attempt(2, solving) }];
    super::orders([
        ("order-uncollected", uncollected),
        ("order-unpriced", unpriced),
        ("order-with-a-callback-address", called),
    ])
}

pub(super) fn arrivals() -> Vec<(&'static str, AnyRecord)> {
    let with = |receipt: Receipt| match called_back(1) {
        IncomingEvent { event: Event::CalledBack { attempt, task, word, .. }, .. } => {
            arrival(Event::CalledBack { attempt, task, word, receipt: Some(receipt) })
        }
        other => other,
    };
    [
        ("arrival-called-back-received", with(Receipt { at: at(67), outages: Vec::new() })),
        ("arrival-called-back-after-outages", with(Receipt { at: at(67), outages: outages() })),
    ]
    .map(|(name, arrival)| (name, AnyRecord::IncomingEvent(arrival)))
    .into()
}

pub(super) fn node_statuses() -> Vec<(&'static str, AnyRecord)> {
    let address = "https://q.example.com/callback";
    let reach = |outages| Reach { address: address.into(), until: at(6), outages, ..Reach::default() };
    let reachable = |reach| NodeStatus { reach: Some(reach), ..shared::fresh_node_status() };
    let unanswered = [(Key([0xab; 32]), Outage { from: at(3), to: at(5) })].into();
    [
        ("node-status-reachable", reachable(reach(Vec::new()))),
        ("node-status-after-outages", reachable(reach(outages()))),
        ("node-status-after-an-unanswered-callback", reachable(Reach { unanswered, ..reach(Vec::new()) })),
    ]
    .map(|(name, node_status)| (name, AnyRecord::NodeStatus(Box::new(node_status))))
    .into()
}

/// Cases of unknown prices.
pub(super) fn documents() -> Vec<(&'static str, AnyRecord)> {
    let spent = Spent {
        hour: 472_222,
        money: Money(2990),
        refills: 3,
        unpriced: 2,
        expected: Money(1450),
        without_price: 1,
        is_incomplete: false,
    };
    let document = SharedDocument::Pool(PoolDocument { spent, ..shared::pool() });
    let reserved = [(0, None), (7, Some(Money(2990)))];
    let reserving = SharedDocument::Pool(PoolDocument {
        first_generation: 1_700_000_000_000,
        reserved: reserved.map(|(place, price)| (place, Reservation { hour: 472_222, price })).into(),
        basis: PriceBasis { digest: u64::MAX, since: at(4) },
        currency: "EUR".into(),
        ..shared::pool()
    });
    let forgotten = Spent { is_incomplete: true, ..spent };
    let forgotten = SharedDocument::Pool(PoolDocument { spent: forgotten, ..shared::pool() });
    [
        ("document-pool-unpriced", document),
        ("document-pool-reserving", reserving),
        ("document-pool-forgotten", forgotten),
    ]
    .map(|(name, document)| (name, AnyRecord::SharedDocument(Box::new(document))))
    .into()
}
