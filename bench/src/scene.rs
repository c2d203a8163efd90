//! The common set-up: one usual order with its kind, and an engine on a store.

use crate::provider::{Free, TaskBehaviour, delivery};
use futures_util::future::join_all;
use quittance::SystemClock;
use quittance_engine::{Engine, Settings, World};
use quittance_lifecycle::{
    Decision, Draft, Event, KeySettings, Kind, Offer, Order, Pace, Placement, Policy, Reuse, SubmitOutcome,
    SubmitRoute, Terms, Timestamp, place, transition,
};
use quittance_ports::{Clock, Commit, MemorySpill, Provider, Store, Version};
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

pub(crate) const KIND: &str = "recaptcha_v2";
pub(crate) const WORKS: &str = "what is measured works";
const DAY: Duration = Duration::from_secs(24 * 3600);

/// The catalogue's kind with a life of a day, so that nothing expires during the measurement, and solve times of zero.
pub(crate) fn kind(name: &str) -> Option<Kind> {
    let pace = Pace { p50: Duration::ZERO, p95: Duration::ZERO, p99: Duration::ZERO };
    quittance_protocol::kinds::kind(name).map(|kind| Kind { life: Some(DAY), pace, ..kind })
}

pub(crate) fn policy() -> Policy {
    Policy { share_window: Some(DAY), timeout: DAY, ..Policy::DEFAULT }
}

/// The `n`th of many different orders. Equal ones are shared: joins and repeats are measured, too.
pub(crate) fn draft(n: u64) -> Draft {
    Draft { reuse: Some(Reuse::Shared), ..Draft::new("team-a") }
        .with("googlekey", "6Le-wvkSAAAAAPBMRTvw0Q4Muexq9bi0DJwx_mJ-")
        .with("pageurl", format!("https://shop.example.com/account/login?visit={n}").as_str())
}

pub(crate) fn now() -> Timestamp {
    SystemClock.now()
}

pub(crate) fn checked(n: u64, at: Timestamp) -> (quittance_lifecycle::Key, Arc<Terms>) {
    let kind = kind(KIND).expect("the catalogue has it");
    let checked = draft(n).check(&kind, KeySettings::default(), &policy(), at, n.into());
    let (key, terms) = checked.expect("the usual order is in order");
    (key, Arc::new(terms))
}

/// The `n`th order after it was accepted.
pub(crate) fn in_flight(n: u64, at: Timestamp) -> Arc<Order> {
    let (key, terms) = checked(n, at);
    match place(None, None, key, &terms, at, &policy()) {
        Placement::Commit { advance, .. } => Arc::new(advance.next),
        other => unreachable!("there is nothing to join: {other:?}"),
    }
}

/// The `n`th order after it was solved.
pub(crate) fn at_rest(n: u64, at: Timestamp) -> Arc<Order> {
    let step = |order: &Order, event| match transition(order, event, at, &policy()) {
        Decision::Advance(advance) => advance.next,
        other => unreachable!("it goes forward: {other:?}"),
    };
    let submitting =
        step(&in_flight(n, at), Event::Woken { stamp: n, route: SubmitRoute::To(Offer::OF_TERMS) });
    let outcome = SubmitOutcome::Answered(delivery());
    Arc::new(step(&submitting, Event::Submitted { attempt: 1, outcome }))
}

/// An engine without a worker, unless the caller runs one.
pub(crate) fn engine(store: Arc<dyn Store>, response_format: TaskBehaviour) -> Arc<Engine> {
    engine_with(store, Arc::new(Free(response_format)), |_| {})
}

/// An engine with a provider and settings of the caller's choice.
pub(crate) fn engine_with(
    store: Arc<dyn Store>,
    provider: Arc<dyn Provider>,
    change: impl FnOnce(&mut Settings),
) -> Arc<Engine> {
    let mut settings = Settings::new(1, kind);
    settings.policy = policy();
    settings.policy.first_poll = Some(Duration::ZERO);
    change(&mut settings);
    let world = World {
        store,
        providers: vec![provider],
        clock: Arc::new(SystemClock),
        spill: Arc::new(MemorySpill::default()),
        webhook_sender: Arc::new(quittance_ports::MemoryWebhooks::default()),
        membership: Arc::new(quittance_ports::MemoryMembership::default()),
    };
    Arc::new(Engine::new(world, settings))
}

/// Writes orders without changes, as many at once as share a transaction.
pub(crate) async fn write(store: &dyn Store, orders: impl Iterator<Item = Arc<Order>>) {
    let mut orders = orders.peekable();
    while orders.peek().is_some() {
        let some: Vec<_> = orders.by_ref().take(2048).collect();
        let counters = quittance_lifecycle::Counters::default();
        let commits = some.iter().map(|order| store.commit(Version::ABSENT, order, &counters, order.placed));
        for commit in join_all(commits).await {
            assert!(matches!(commit.expect(WORKS), Commit::Done(_)), "only this bench writes here");
        }
    }
}

/// The result of a future that never waits, with as little executor as possible.
pub(crate) fn at_once<T>(future: impl Future<Output = T>) -> T {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(done) => done,
        Poll::Pending => unreachable!("what memory can answer is answered at once"),
    }
}

/// A runtime with one thread, so that one core is measured.
pub(crate) fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_time().build().expect("a runtime")
}
