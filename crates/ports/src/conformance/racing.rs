//! Only one method writes, and only over the version that the writer has read. A lost race is a result: it returns
//! the winner, and changes nothing.

use super::samples::{self, START, after};
use super::{AVAILABLE, commit, create, list, write};
use crate::store::{Commit, Day, Store, UsageRow, Version, Versioned, Which};
use futures_util::future::join_all;
use quittance_lifecycle::{Counters, Key, Order};
use std::sync::Arc;

const RACERS: u64 = 10;

/// Commits all racers at once over `expected`. Exactly one must win, and all others must learn which.
async fn race(store: &dyn Store, expected: Version, racers: &[Arc<Order>]) {
    let outcomes = join_all(racers.iter().map(|order| commit(store, expected, order))).await;
    let won: Vec<Versioned> = outcomes
        .iter()
        .zip(racers)
        .filter_map(|(outcome, order)| match outcome {
            Commit::Done(version) => Some(Versioned { version: *version, order: order.clone() }),
            Commit::Conflict(_) => None,
        })
        .collect();
    let [winner] = &won[..] else { panic!("{} of {} racers won", won.len(), racers.len()) };
    for outcome in outcomes {
        if let Commit::Conflict(record) = outcome {
            assert_eq!(record.as_deref(), Some(winner), "a loser gets the winner's record");
        }
    }
    assert_eq!(store.load(&winner.order.key).await.expect(AVAILABLE).as_ref(), Some(winner));
}

/// Ten processes place one order: one of them creates it, and the others learn which.
pub async fn one_creator_wins(store: Arc<dyn Store>) {
    let racers: Vec<_> = (0..RACERS).map(|n| samples::queued("herd", after(n)).order).collect();
    race(&*store, Version::ABSENT, &racers).await;
}

/// Ten processes advance one order from one version.
pub async fn one_writer_wins(store: Arc<dyn Store>) {
    let version_read = create(&*store, &samples::queued("herd", START).order).await;
    let racers: Vec<_> = (0..RACERS).map(|n| samples::submitting("herd", after(n)).order).collect();
    race(&*store, version_read, &racers).await;
}

pub async fn a_commit_with_an_old_version_loses_and_gets_the_winner(store: Arc<dyn Store>) {
    let queued = samples::queued("contested", START).order;
    let first = create(&*store, &queued).await;
    let order = samples::submitting("contested", START).order;
    let version = write(&*store, first, &order).await;
    let stands = Commit::Conflict(Some(Box::new(Versioned { version, order })));
    let never_returned = Version(version.0 + 1_000_000);
    for wrong in [first, Version::ABSENT, never_returned] {
        assert_eq!(commit(&*store, wrong, &samples::failed("contested", START).order).await, stands);
    }
}

/// A node that expects a record that is gone must not create it again.
pub async fn a_commit_to_a_record_that_is_gone_loses_without_a_winner(store: Arc<dyn Store>) {
    let order = samples::failed("gone", START).order;
    let version = create(&*store, &order).await;
    assert_eq!(store.purge(after(7200), 1).await.expect(AVAILABLE), 1);
    for expected in [version, Version(version.0 + 1)] {
        assert_eq!(commit(&*store, expected, &order).await, Commit::Conflict(None));
    }
    assert_eq!(store.load(&order.key).await.expect(AVAILABLE), None);
}

/// A lost race changes nothing: record, usage, stock, timers, claims and removal time stay.
pub async fn a_lost_race_changes_nothing(store: Arc<dyn Store>) {
    let page = "https://example.com/contested";
    let on_stock = samples::stocked("on the stock", page, after(120));
    let claimed = samples::queued("claimed", START);
    let waiting = samples::queued("waiting", after(500));
    let ended = samples::failed("ended", START);
    let day = Day::of(START);
    let mut stale = Vec::new();
    for sample in [&on_stock, &claimed, &waiting, &ended] {
        let first = create(&*store, &sample.order).await;
        write(&*store, first, &sample.order).await;
        stale.push((first, sample.order.key));
    }
    let count = Counters { asked: 1, ..Counters::default() };
    store.count(&UsageRow::of(&claimed.order, START), &count).await.expect(AVAILABLE);
    let hidden = store.claim_due(after(1), after(100), 10).await.expect(AVAILABLE);
    assert_eq!(hidden.orders.len(), 1, "only one of them is due yet");

    let before = everything(&*store, page, day).await;
    for (version, key) in stale {
        for next in [&on_stock, &claimed, &waiting, &ended] {
            let loser = Arc::new(Order { key, ..(*next.order).clone() });
            let outcome = store.commit(version, &loser, &count, START).await.expect(AVAILABLE);
            assert!(matches!(outcome, Commit::Conflict(Some(_))), "{outcome:?}");
        }
    }
    assert_eq!(everything(&*store, page, day).await, before);
    let due = store.claim_due(after(50), after(100), 10).await.expect(AVAILABLE);
    assert_eq!(due.orders, [], "what was claimed is still claimed, and nothing else became due");
    assert_eq!(
        store.purge(after(2 * 3600), 10).await.expect(AVAILABLE),
        1,
        "one could be forgotten, and can"
    );
}

/// The whole content of a store that can be read without changing it.
async fn everything(store: &dyn Store, page: &str, day: Day) -> impl PartialEq + std::fmt::Debug + use<> {
    let records = list(store, Which::ALL, None, 100).await;
    let stock: Vec<Key> = store.list_stock(&samples::target(page), START, 100).await.expect(AVAILABLE);
    // A claim of no orders returns the next timer and hides nothing.
    let timer = store.claim_due(START, START, 0).await.expect(AVAILABLE).next;
    (records, stock, timer, store.usage(day, day).await.expect(AVAILABLE))
}
