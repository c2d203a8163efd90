//! Waiting callers are woken, in every process, and nobody sleeps and looks. A test here simply waits: that nothing
//! comes is for whoever runs it to notice, who knows how long word takes with this store.

use super::samples::{self, START, after};
use super::{AVAILABLE, commit, create, write};
use crate::store::{Commit, Store, Version};
use crate::watch::Watch;
use futures_util::FutureExt;
use futures_util::future::{join, join_all};
use quittance_lifecycle::{Key, Order};
use std::sync::Arc;

async fn watch(store: &dyn Store, key: &Key) -> Watch {
    store.watch(key).await.expect(AVAILABLE)
}

/// Looks once: it has no time to be wrong in, so a store that is slow to wake the wrong one is not caught here,
/// but none is blamed for nothing.
fn is_rung(watch: &mut Watch) -> bool {
    watch.changed().now_or_never().is_some()
}

fn orders() -> [Order; 2] {
    ["watched", "unwatched"].map(|name| samples::queued(name, START).order)
}

/// Nobody needs to be waiting at the moment of the commit.
pub async fn a_watch_misses_no_commit_made_after_it_returns(store: Arc<dyn Store>) {
    let [order, _] = orders();
    let mut version = create(&*store, &order).await;
    let mut watch = watch(&*store, &order.key).await;
    assert!(!is_rung(&mut watch), "what was written before is not news");
    for _ in 0..3 {
        version = write(&*store, version, &order).await;
        watch.changed().await;
    }
}

/// The same with the caller already asleep.
pub async fn a_watch_wakes_whoever_waits_already(store: Arc<dyn Store>) {
    let [order, _] = orders();
    let mut version = create(&*store, &order).await;
    let mut watch = watch(&*store, &order.key).await;
    for _ in 0..3 {
        ((), version) = join(watch.changed(), write(&*store, version, &order)).await;
    }
}

pub async fn a_watch_wakes_everybody_who_waits_for_the_order_and_nobody_else(store: Arc<dyn Store>) {
    let [order, other] = orders();
    let version = create(&*store, &order).await;
    create(&*store, &other).await;
    let mut crowd = join_all((0..20).map(|_| watch(&*store, &order.key))).await;
    let mut bystander = watch(&*store, &other.key).await;
    let everybody = join_all(crowd.iter_mut().map(Watch::changed));
    join(everybody, write(&*store, version, &order)).await;
    assert!(!is_rung(&mut bystander), "another order was written");
    assert!(!crowd.iter_mut().any(is_rung), "one write wakes once");
}

/// Whoever loses the race to place it waits for the winner.
pub async fn a_watch_may_begin_before_the_order(store: Arc<dyn Store>) {
    let [order, other] = orders();
    let mut watch = watch(&*store, &order.key).await;
    create(&*store, &other).await;
    assert!(!is_rung(&mut watch));
    create(&*store, &order).await;
    watch.changed().await;
}

/// A caller who hangs up takes nobody with him, and leaves nothing for the next.
pub async fn a_dropped_watch_disturbs_nobody(store: Arc<dyn Store>) {
    let [order, _] = orders();
    let mut version = create(&*store, &order).await;
    let mut patient = watch(&*store, &order.key).await;
    for _ in 0..3 {
        let mut hasty = watch(&*store, &order.key).await;
        let mut another = watch(&*store, &order.key).await;
        assert!(!is_rung(&mut hasty));
        drop(hasty);
        version = write(&*store, version, &order).await;
        patient.changed().await;
        another.changed().await;
    }
    assert!(!is_rung(&mut watch(&*store, &order.key).await));
}

/// The wake-up never overtakes the write.
pub async fn whoever_is_woken_reads_what_was_written(store: Arc<dyn Store>) {
    let [order, _] = orders();
    let mut version = create(&*store, &order).await;
    let mut watch = watch(&*store, &order.key).await;
    for n in 1..=5 {
        let next = samples::submitting("watched", after(n)).order;
        let read = async {
            watch.changed().await;
            store.load(&order.key).await.expect(AVAILABLE).expect("it was created")
        };
        let (read, written) = join(read, write(&*store, version, &next)).await;
        assert_eq!((read.version, read.order), (written, next));
        version = written;
    }
}

pub async fn a_lost_race_wakes_nobody(store: Arc<dyn Store>) {
    let [order, _] = orders();
    create(&*store, &order).await;
    let mut watch = watch(&*store, &order.key).await;
    for wrong in [Version::ABSENT, Version(u64::from(u32::MAX))] {
        assert!(matches!(commit(&*store, wrong, &order).await, Commit::Conflict(_)));
    }
    assert!(!is_rung(&mut watch));
}
