//! What is listed, and what may be forgotten: never what is open, never a dead letter.

use super::samples::{self, POLICY, START, Sample, after, draft, riddle};
use super::{AVAILABLE, create, list, write};
use crate::store::{Store, Versioned, Which};
use quittance_lifecycle::{Event, Key, Policy, Timestamp};
use std::sync::Arc;
use std::time::Duration;

/// An hour after [`samples::failed`] orders of the first seconds have failed.
const LATER: u64 = 3600;

async fn listed(store: &dyn Store, which: Which) -> Vec<Key> {
    let all = list(store, which, None, 1000).await;
    all.iter().map(|found| found.order.key).collect()
}

async fn fail_at(store: &dyn Store, seconds: &[u64]) -> Vec<Key> {
    let mut keys = Vec::new();
    for second in seconds {
        let order = samples::failed(&format!("failed at {second}"), after(*second)).order;
        create(store, &order).await;
        keys.push(order.key);
    }
    keys
}

/// Page after page, in the order of the keys, of every sort.
pub async fn a_list_pages_through_everything_once(store: Arc<dyn Store>) {
    let mut all = Vec::new();
    let more = (0..10).map(|n| samples::dead(&format!("dead {n}"), START));
    let open = (0..10).map(|n| samples::solving(&format!("open {n}"), START));
    for Sample { order, .. } in samples::every_phase().into_iter().chain(more).chain(open) {
        let version = create(&*store, &order).await;
        all.push(Versioned { version, order });
    }
    all.sort_by_key(|found| found.order.key);
    for which in [Which::All, Which::Open, Which::Dead] {
        let wanted: Vec<_> = all.iter().filter(|found| which.includes(&found.order)).cloned().collect();
        for page in [1, 3, wanted.len(), 1000] {
            let mut seen: Vec<Versioned> = Vec::new();
            loop {
                let after = seen.last().map(|found| found.order.key);
                let more = list(&*store, which, after.as_ref(), page).await;
                assert!(more.len() <= page);
                assert!(seen.len() <= wanted.len(), "a list comes to an end");
                if more.is_empty() {
                    break;
                }
                seen.extend(more);
            }
            assert_eq!(seen, wanted, "{which:?}, {page} at a time");
        }
        assert_eq!(list(&*store, which, None, 0).await, []);
    }
    // The key after which to go on need not be one of an order that is there.
    let from = Key([0x80; 32]);
    let rest: Vec<_> = all.iter().filter(|found| found.order.key > from).cloned().collect();
    assert_eq!(list(&*store, Which::All, Some(&from), 1000).await, rest);
}

/// However long ago they were written.
pub async fn purge_removes_only_what_may_be_forgotten(store: Arc<dyn Store>) {
    let mut kept = Vec::new();
    let mut forgotten = Vec::new();
    for Sample { order, .. } in samples::every_phase() {
        create(&*store, &order).await;
        if order.forget_at().is_some() { forgotten.push(order.key) } else { kept.push(order.key) }
    }
    assert!(forgotten.len() > 3 && kept.len() > 3, "there is some of either");
    assert_eq!(store.purge(START, 1000).await.expect(AVAILABLE), 0, "it is too soon for all of them");
    let removed = store.purge(after(1_000_000), 1000).await.expect(AVAILABLE);
    assert_eq!(removed, forgotten.len());
    kept.sort_unstable();
    assert_eq!(listed(&*store, Which::All).await, kept);
    for key in &forgotten {
        assert_eq!(store.load(key).await.expect(AVAILABLE), None);
    }
    assert_eq!(store.purge(after(1_000_000), 1000).await.expect(AVAILABLE), 0, "nothing is purged twice");
}

/// A purge holds nobody up for long, and what is oldest has waited longest.
pub async fn purge_stops_at_its_limit_and_begins_with_the_oldest(store: Arc<dyn Store>) {
    let keys = fail_at(&*store, &[30, 10, 50, 20, 40]).await;
    let purge = async |seconds, limit| store.purge(after(seconds), limit).await.expect(AVAILABLE);
    assert_eq!(purge(LATER + 9, 10).await, 0);
    assert_eq!(purge(LATER + 100, 0).await, 0);
    assert_eq!(purge(LATER + 100, 2).await, 2);
    let mut left = vec![keys[0], keys[4], keys[2]];
    left.sort_unstable();
    assert_eq!(listed(&*store, Which::All).await, left);
    assert_eq!(purge(LATER + 30, 10).await, 1, "at its moment, and not those after it");
    assert_eq!(purge(LATER + 100, 10).await, 2);
    assert_eq!(listed(&*store, Which::All).await, []);
}

/// What could be forgotten once, and was placed again since, is somebody's order.
pub async fn what_lives_again_is_not_purged(store: Arc<dyn Store>) {
    let ended = samples::failed("again", START).order;
    let version = create(&*store, &ended).await;
    let version = write(&*store, version, &samples::queued("again", after(60)).order).await;
    assert_eq!(store.purge(after(1_000_000), 10).await.expect(AVAILABLE), 0);
    write(&*store, version, &samples::failed("again", after(7200)).order).await;
    assert_eq!(store.purge(after(7200 + LATER - 1), 10).await.expect(AVAILABLE), 0, "its time begins anew");
    assert_eq!(store.purge(after(7200 + LATER), 10).await.expect(AVAILABLE), 1);
}

/// A person discards what nobody can read. Whatever can be read is an order, whatever its phase, and is left as it is.
pub async fn only_what_nobody_can_read_is_discarded(store: Arc<dyn Store>) {
    let mut all = Vec::new();
    for Sample { order, .. } in samples::every_phase() {
        let version = create(&*store, &order).await;
        all.push(Versioned { version, order });
    }
    all.sort_by_key(|found| found.order.key);
    let census = store.census().await.expect(AVAILABLE);
    for Versioned { order, .. } in &all {
        assert!(!store.discard(&order.key).await.expect(AVAILABLE), "{}", order.phase.name());
    }
    assert!(!store.discard(&Key([7; 32])).await.expect(AVAILABLE), "nothing was ever there");
    assert_eq!(list(&*store, Which::All, None, 1000).await, all);
    assert_eq!(store.census().await.expect(AVAILABLE), census);
    let due = store.claim_due(after(1_000_000), after(1_000_060), 1000).await.expect(AVAILABLE);
    let waiting = all.iter().filter(|found| found.order.due().is_some()).count();
    assert_eq!(due.orders.len(), waiting, "each still has its alarm");
}

/// The farthest moment there is lies behind no other, however a store writes its numbers.
pub async fn what_is_kept_until_the_end_of_time_is_kept(store: Arc<dyn Store>) {
    let policy = Policy { keep: Duration::from_millis(u64::MAX), ..POLICY };
    let order = Sample::placed_under(policy, "eternal", draft("https://example.com/wall"), &riddle(), START)
        .then(Event::Cancelled)
        .order;
    assert_eq!(order.forget_at(), Some(Timestamp::MAX));
    let version = create(&*store, &order).await;
    assert_eq!(store.purge(after(1_000_000), 10).await.expect(AVAILABLE), 0);
    assert_eq!(store.load(&order.key).await.expect(AVAILABLE), Some(Versioned { version, order }));
}
