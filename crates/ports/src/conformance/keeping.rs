//! What is listed, and what may be removed: never an open order, never a dead letter.

use super::samples::{self, POLICY, START, SampleOrder, after, draft, riddle};
use super::{AVAILABLE, commit, create, list, write};
use crate::store::{Commit, Store, Version, Versioned, Which};
use quittance_lifecycle::{Event, Key, Order, Policy, Timestamp};
use std::sync::Arc;
use std::time::Duration;

/// Seconds after the start: an hour after the [`samples::failed`] orders of the first seconds have failed.
const LATER: u64 = 3600;

async fn listed(store: &dyn Store, which: Which<'_>) -> Vec<Key> {
    let all = list(store, which, None, 1000).await;
    all.iter().map(|record| record.order.key).collect()
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

/// A list, page after page.
async fn pages(store: &dyn Store, which: Which<'_>, page: usize) -> Vec<Versioned> {
    let mut read: Vec<Versioned> = Vec::new();
    loop {
        let after = read.last().map(|record| record.order.key);
        let more = list(store, which, after.as_ref(), page).await;
        assert!(more.len() <= page);
        assert!(read.len() <= 10_000, "a list comes to an end");
        if more.is_empty() {
            return read;
        }
        read.extend(more);
    }
}

/// Lists of every sort, page after page, are sorted by key.
pub async fn a_list_pages_through_everything_once(store: Arc<dyn Store>) {
    let mut all = Vec::new();
    let more = (0..10).map(|n| samples::dead(&format!("dead {n}"), START));
    let open = (0..10).map(|n| samples::solving(&format!("open {n}"), START));
    for SampleOrder { order, .. } in samples::every_phase().into_iter().chain(more).chain(open) {
        let version = create(&*store, &order).await;
        all.push(Versioned { version, order });
    }
    all.sort_by_key(|record| record.order.key);
    for which in [Which::ALL, Which::OPEN, Which::DEAD] {
        let wanted: Vec<_> = all.iter().filter(|record| which.includes(&record.order)).cloned().collect();
        for page in [1, 3, wanted.len(), 1000] {
            assert_eq!(pages(&*store, which, page).await, wanted, "{which:?}, {page} at a time");
        }
        assert_eq!(list(&*store, which, None, 0).await, []);
    }
    // The key after which to go on need not be one of an order that is there.
    let from = Key([0x80; 32]);
    let rest: Vec<_> = all.iter().filter(|record| record.order.key > from).cloned().collect();
    assert_eq!(list(&*store, Which::ALL, Some(&from), 1000).await, rest);
}

/// The list of a tenant has its orders of every class, page after page, and no orders of other tenants between them.
pub async fn a_tenants_list_holds_its_own_orders_and_no_others(store: Arc<dyn Store>) {
    const TENANTS: [&str; 4] = ["alice", "alic", "alice\u{0}", "O'Hara & S\u{f8}n:open"];
    let mut all = Vec::new();
    for (n, tenant) in (0..8).flat_map(|n| TENANTS.map(|tenant| (n, tenant))) {
        let (now, name) = (after(n), format!("{tenant} {n}"));
        let made = [samples::solving, samples::dead, samples::failed].map(|make| make(&name, now).order);
        for (sort, order) in made.iter().enumerate() {
            let key = Key::chosen(tenant, &format!("{n} {sort}"));
            let order = samples::of_tenant(&Order { key, ..(**order).clone() }, tenant);
            let version = create(&*store, &order).await;
            all.push(Versioned { version, order });
        }
    }
    all.sort_by_key(|record| record.order.key);
    for which in [Which::ALL, Which::OPEN, Which::DEAD] {
        for which in TENANTS.map(|tenant| which.of(tenant)) {
            let wanted: Vec<_> = all.iter().filter(|record| which.includes(&record.order)).cloned().collect();
            assert!(wanted.len() >= 8, "{which:?}");
            for page in [1, 5, 1000] {
                assert_eq!(pages(&*store, which, page).await, wanted, "{which:?}, {page} at a time");
            }
        }
        assert_eq!(list(&*store, which.of("ali"), None, 1000).await, []);
        assert_eq!(list(&*store, which.of("alice").of("unknown"), None, 1000).await, []);
    }
}

/// The list of a tenant follows each write and each purge, as the list of all does.
pub async fn a_tenants_list_follows_each_write(store: Arc<dyn Store>) {
    let of = |sample: SampleOrder, tenant| samples::of_tenant(&sample.order, tenant);
    let lists = async || {
        let mut lists = Vec::new();
        for tenant in ["alice", "bob"] {
            for which in [Which::ALL, Which::OPEN, Which::DEAD] {
                lists.push(listed(&*store, which.of(tenant)).await.len());
            }
        }
        lists
    };
    let version = create(&*store, &of(samples::solving("order", START), "alice")).await;
    assert_eq!(lists().await, [1, 1, 0, 0, 0, 0]);
    let version = write(&*store, version, &of(samples::dead("order", START), "alice")).await;
    assert_eq!(lists().await, [1, 0, 1, 0, 0, 0]);
    let version = write(&*store, version, &of(samples::queued("order", START), "alice")).await;
    assert_eq!(lists().await, [1, 1, 0, 0, 0, 0]);
    let lost = commit(&*store, Version::ABSENT, &of(samples::queued("order", START), "bob")).await;
    assert!(matches!(lost, Commit::Conflict(Some(_))), "{lost:?}");
    assert_eq!(lists().await, [1, 1, 0, 0, 0, 0], "a loser is listed nowhere");
    // The engine never gives an order to another tenant, but a store knows no rule.
    let version = write(&*store, version, &of(samples::queued("order", START), "bob")).await;
    assert_eq!(lists().await, [0, 0, 0, 1, 1, 0]);
    write(&*store, version, &of(samples::failed("order", START), "bob")).await;
    assert_eq!(lists().await, [0, 0, 0, 1, 0, 0]);
    assert_eq!(store.purge(after(LATER), 10).await.expect(AVAILABLE), 1);
    assert_eq!(lists().await, [0; 6]);
}

/// The age of a record does not matter.
pub async fn purge_removes_only_what_may_be_forgotten(store: Arc<dyn Store>) {
    let mut survivors = Vec::new();
    let mut forgotten = Vec::new();
    for SampleOrder { order, .. } in samples::every_phase() {
        create(&*store, &order).await;
        if order.forget_at().is_some() { forgotten.push(order.key) } else { survivors.push(order.key) }
    }
    assert!(forgotten.len() > 3 && survivors.len() > 3, "there is some of either");
    assert_eq!(store.purge(START, 1000).await.expect(AVAILABLE), 0, "it is too soon for all of them");
    let removed = store.purge(after(1_000_000), 1000).await.expect(AVAILABLE);
    assert_eq!(removed, forgotten.len());
    survivors.sort_unstable();
    assert_eq!(listed(&*store, Which::ALL).await, survivors);
    for key in &forgotten {
        assert_eq!(store.load(key).await.expect(AVAILABLE), None);
    }
    assert_eq!(store.purge(after(1_000_000), 1000).await.expect(AVAILABLE), 0, "nothing is purged twice");
}

/// A purge must not delay other calls for long, so it has a limit. It removes the oldest first.
pub async fn purge_stops_at_its_limit_and_begins_with_the_oldest(store: Arc<dyn Store>) {
    let keys = fail_at(&*store, &[30, 10, 50, 20, 40]).await;
    let purge = async |seconds, limit| store.purge(after(seconds), limit).await.expect(AVAILABLE);
    assert_eq!(purge(LATER + 9, 10).await, 0);
    assert_eq!(purge(LATER + 100, 0).await, 0);
    assert_eq!(purge(LATER + 100, 2).await, 2);
    let mut left = vec![keys[0], keys[4], keys[2]];
    left.sort_unstable();
    assert_eq!(listed(&*store, Which::ALL).await, left);
    assert_eq!(purge(LATER + 30, 10).await, 1, "at its moment, and not those after it");
    assert_eq!(purge(LATER + 100, 10).await, 2);
    assert_eq!(listed(&*store, Which::ALL).await, []);
}

/// An order that could be removed before, and was placed again since, is in use.
pub async fn what_lives_again_is_not_purged(store: Arc<dyn Store>) {
    let ended = samples::failed("again", START).order;
    let version = create(&*store, &ended).await;
    let version = write(&*store, version, &samples::queued("again", after(60)).order).await;
    assert_eq!(store.purge(after(1_000_000), 10).await.expect(AVAILABLE), 0);
    write(&*store, version, &samples::failed("again", after(7200)).order).await;
    assert_eq!(store.purge(after(7200 + LATER - 1), 10).await.expect(AVAILABLE), 0, "its time begins again");
    assert_eq!(store.purge(after(7200 + LATER), 10).await.expect(AVAILABLE), 1);
}

/// An operator discards records that cannot be read. A readable record is an order, whatever its phase, and is left
/// as it is.
pub async fn only_unreadable_records_are_discarded(store: Arc<dyn Store>) {
    let mut all = Vec::new();
    for SampleOrder { order, .. } in samples::every_phase() {
        let version = create(&*store, &order).await;
        all.push(Versioned { version, order });
    }
    all.sort_by_key(|record| record.order.key);
    let order_counts = store.order_counts().await.expect(AVAILABLE);
    for Versioned { order, .. } in &all {
        assert!(!store.discard(&order.key).await.expect(AVAILABLE), "{}", order.phase.name());
    }
    assert!(!store.discard(&Key([7; 32])).await.expect(AVAILABLE), "nothing was ever there");
    assert_eq!(list(&*store, Which::ALL, None, 1000).await, all);
    assert_eq!(store.order_counts().await.expect(AVAILABLE), order_counts);
    let due = store.claim_due(after(1_000_000), after(1_000_060), 1000).await.expect(AVAILABLE);
    let waiting = all.iter().filter(|record| record.order.due().is_some()).count();
    assert_eq!(due.orders.len(), waiting, "each still has its timer");
}

/// The latest possible moment is after all others, however a store writes its numbers.
pub async fn what_is_kept_until_the_end_of_time_is_kept(store: Arc<dyn Store>) {
    let policy = Policy { keep: Duration::from_millis(u64::MAX), ..POLICY };
    let order =
        SampleOrder::placed_under(policy, "eternal", draft("https://example.com/wall"), &riddle(), START)
            .then(Event::Cancelled)
            .order;
    assert_eq!(order.forget_at(), Some(Timestamp::MAX));
    let version = create(&*store, &order).await;
    assert_eq!(store.purge(after(1_000_000), 10).await.expect(AVAILABLE), 0);
    assert_eq!(store.load(&order.key).await.expect(AVAILABLE), Some(Versioned { version, order }));
}
