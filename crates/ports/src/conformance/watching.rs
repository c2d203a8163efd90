//! Waiting callers are woken in every process, and none polls. A test here simply waits. The runner knows how long a
//! notice takes with this store, and fails if none comes.

use super::samples::{self, START, after};
use super::{AVAILABLE, commit, create, write};
use crate::store::{Commit, Store, Version};
use crate::watch::Watch;
use futures_util::FutureExt;
use futures_util::future::{join, join_all};
use quittance_lifecycle::{Event, Key, Order};
use std::sync::Arc;

async fn watch(store: &dyn Store, key: &Key) -> Watch {
    store.watch(key).await.expect(AVAILABLE)
}

/// Checks a watch once, without waiting. A store that is slow to wake the wrong watch is not caught here, but no
/// correct store fails.
fn is_rung(watch: &mut Watch) -> bool {
    watch.changed().now_or_never().is_some()
}

const WATCHED: &str = "watched";
const UNWATCHED: &str = "unwatched";

/// An order that has no outcome yet for the callers that wait for it.
fn awaited(name: &str) -> Arc<Order> {
    samples::queued(name, START).order
}

fn solved(name: &str) -> Arc<Order> {
    samples::solved(name, START).order
}

/// All outcomes that end a wait. A cancelled order may still get an answer, but not for its callers.
fn news() -> Vec<Arc<Order>> {
    let stocked = samples::stocked(WATCHED, "https://example.com/login", after(120));
    let samples = [
        samples::solved(WATCHED, START),
        stocked.clone(),
        samples::taken(stocked),
        samples::expired(WATCHED, after(120)),
        samples::failed(WATCHED, START),
        samples::dead(WATCHED, START),
        samples::queued(WATCHED, START).then(Event::Cancelled),
        samples::submitting(WATCHED, START).then(Event::Cancelled),
    ];
    samples.map(|sample| sample.order).into()
}

/// A caller need not be waiting at the moment of the commit.
pub async fn a_watch_misses_no_commit_made_after_it_returns(store: Arc<dyn Store>) {
    let order = awaited(WATCHED);
    let mut version = create(&*store, &order).await;
    let mut watch = watch(&*store, &order.key).await;
    assert!(!is_rung(&mut watch), "what was written before is not news");
    for next in news() {
        // Twice: it need not be the write that made it so.
        for _ in 0..2 {
            version = write(&*store, version, &next).await;
            watch.changed().await;
        }
    }
}

/// A watch wakes a caller that is already asleep.
pub async fn a_watch_wakes_a_caller_that_waits_already(store: Arc<dyn Store>) {
    let order = awaited(WATCHED);
    let mut version = create(&*store, &order).await;
    let mut watch = watch(&*store, &order.key).await;
    for next in news() {
        ((), version) = join(watch.changed(), write(&*store, version, &next)).await;
    }
}

pub async fn a_watch_wakes_all_waiters_of_the_order_and_no_others(store: Arc<dyn Store>) {
    let (order, other) = (awaited(WATCHED), awaited(UNWATCHED));
    let version = create(&*store, &order).await;
    create(&*store, &other).await;
    let mut crowd = join_all((0..20).map(|_| watch(&*store, &order.key))).await;
    let mut bystander = watch(&*store, &other.key).await;
    let all_waiters = join_all(crowd.iter_mut().map(Watch::changed));
    join(all_waiters, write(&*store, version, &solved(WATCHED))).await;
    assert!(!is_rung(&mut bystander), "another order was written");
    assert!(!crowd.iter_mut().any(is_rung), "one write wakes once");
}

/// A caller that loses the race to place an order waits for the winner's order.
pub async fn a_watch_may_begin_before_the_order(store: Arc<dyn Store>) {
    let (order, other) = (solved(WATCHED), solved(UNWATCHED));
    let mut watch = watch(&*store, &order.key).await;
    create(&*store, &other).await;
    assert!(!is_rung(&mut watch));
    create(&*store, &order).await;
    watch.changed().await;
}

/// A caller that disconnects affects no other caller, and leaves nothing behind.
pub async fn a_dropped_watch_disturbs_no_other_watch(store: Arc<dyn Store>) {
    let order = awaited(WATCHED);
    let mut version = create(&*store, &order).await;
    let mut patient = watch(&*store, &order.key).await;
    for _ in 0..3 {
        let mut hasty = watch(&*store, &order.key).await;
        let mut another = watch(&*store, &order.key).await;
        assert!(!is_rung(&mut hasty));
        drop(hasty);
        version = write(&*store, version, &solved(WATCHED)).await;
        patient.changed().await;
        another.changed().await;
    }
    assert!(!is_rung(&mut watch(&*store, &order.key).await));
}

/// A wake-up never comes before the write is visible.
pub async fn a_woken_caller_reads_what_was_written(store: Arc<dyn Store>) {
    let order = awaited(WATCHED);
    let mut version = create(&*store, &order).await;
    let mut watch = watch(&*store, &order.key).await;
    for n in 1..=5 {
        let next = samples::solved(WATCHED, after(n)).order;
        let read = async {
            watch.changed().await;
            store.load(&order.key).await.expect(AVAILABLE).expect("it was created")
        };
        let (read, written) = join(read, write(&*store, version, &next)).await;
        assert_eq!((read.version, read.order), (written, next));
        version = written;
    }
}

pub async fn a_lost_race_wakes_no_waiter(store: Arc<dyn Store>) {
    let order = awaited(WATCHED);
    create(&*store, &order).await;
    let mut watch = watch(&*store, &order.key).await;
    for wrong in [Version::ABSENT, Version(u64::from(u32::MAX))] {
        assert!(matches!(commit(&*store, wrong, &solved(WATCHED)).await, Commit::Conflict(_)));
    }
    assert!(!is_rung(&mut watch));
}

/// Otherwise each poll of an order that is not ready would make all its waiters read it.
pub async fn a_commit_without_news_for_waiters_wakes_none(store: Arc<dyn Store>) {
    let other = awaited(UNWATCHED);
    let mut version = create(&*store, &awaited(WATCHED)).await;
    let mut version_of_other = create(&*store, &other).await;
    let mut waiter = watch(&*store, &awaited(WATCHED).key).await;
    let mut bystander = watch(&*store, &other.key).await;
    for next in [samples::submitting, samples::solving, samples::in_doubt, samples::queued] {
        version = write(&*store, version, &next(WATCHED, START).order).await;
        // Where word takes a while, word of this should be here when word of a later commit is.
        version_of_other = write(&*store, version_of_other, &solved(UNWATCHED)).await;
        bystander.changed().await;
        assert!(!is_rung(&mut waiter), "the order has nothing yet for its waiters");
    }
    write(&*store, version, &solved(WATCHED)).await;
    waiter.changed().await;
}
