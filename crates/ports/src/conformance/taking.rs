//! An answer leaves a stock once: for one taker, soonest expiry first, and as if the order itself had been claimed.

use super::samples::{self, START, after};
use super::stock::{HERE, THERE, list_stock, stock};
use super::{AVAILABLE, create, write};
use crate::store::{Commit, Day, Store, UsageRow, Versioned};
use futures_util::future::join_all;
use quittance_lifecycle::{Counters, Event, Key, Order, Phase, Timestamp};
use std::collections::BTreeSet;
use std::sync::Arc;

fn one() -> Counters {
    Counters { asked: 1, from_stock: 1, ..Counters::default() }
}

fn taker(n: u8) -> Key {
    Key([n; 32])
}

async fn take(store: &dyn Store, page: &str, good_until: Timestamp, by: u8) -> Option<Versioned> {
    store.take(&samples::target(page), good_until, &taker(by), START, &one()).await.expect(AVAILABLE)
}

async fn key_taken(store: &dyn Store, page: &str, good_until: Timestamp, by: u8) -> Option<Key> {
    take(store, page, good_until, by).await.map(|record| record.order.key)
}

/// Each answer leaves by its own expiry. One that expires too soon for this taker stays for a taker that needs less
/// life.
pub async fn the_soonest_to_expire_is_taken_first_and_the_last_like_any_other(store: Arc<dyn Store>) {
    let store = &*store;
    let [c, a, b] = stock(store, HERE, [130, 110, 120]).await;
    let there = stock(store, THERE, [100]).await;
    assert_eq!(key_taken(store, HERE, after(131), 1).await, None);
    assert_eq!(
        key_taken(store, HERE, after(120), 1).await,
        Some(b),
        "it is good until the moment it expires"
    );
    assert_eq!(key_taken(store, HERE, after(0), 2).await, Some(a));
    let [d] = stock(store, "https://example.com/elsewhere", [140]).await;
    assert_eq!(key_taken(store, HERE, after(0), 3).await, Some(c), "the last is handed out like any other");
    assert_eq!(key_taken(store, HERE, after(0), 4).await, None);
    assert_eq!(key_taken(store, THERE, after(0), 4).await, Some(there[0]));
    assert_eq!(list_stock(store, "https://example.com/elsewhere", START, 9).await, [d]);
    assert_eq!(list_stock(store, HERE, START, 9).await, []);
}

pub async fn what_is_taken_stands_as_if_it_had_been_claimed(store: Arc<dyn Store>) {
    let store = &*store;
    let stocked = samples::stocked("taken", HERE, after(120));
    let before = create(store, &stocked.order).await;
    let expected = (*stocked.order).clone().taken(taker(1), START);
    let record = take(store, HERE, after(60), 1).await.expect("it stands there");
    assert_eq!(*record.order, expected);
    assert!(record.version > before);
    assert_eq!(store.load(&expected.key).await.expect(AVAILABLE), Some(record.clone()));
    assert_eq!(super::list(store, crate::store::Which::ALL, None, 9).await, core::slice::from_ref(&record));
    let day = Day::of(START);
    let usage = store.usage(day, day).await.expect(AVAILABLE);
    assert_eq!(usage, [(UsageRow::of(&expected, START), one())], "and it is in the usage");
    // Until its caller has come for it, it is due when it expires: then it is waste. After that it is forgotten in
    // its time.
    let due = store.claim_due(after(119), after(300), 9).await.expect(AVAILABLE);
    assert_eq!((due.orders, due.next), (Vec::new(), Some(after(120))));
    let due = store.claim_due(after(120), after(121), 9).await.expect(AVAILABLE);
    assert_eq!(due.orders, core::slice::from_ref(&record));
    let expected = Order { uncollected: false, ..expected };
    let collected = Arc::new(expected.clone());
    let written =
        store.commit(record.version, &collected, &Counters::default(), START).await.expect(AVAILABLE);
    assert!(matches!(written, Commit::Done(_)), "{written:?}");
    let due = store.claim_due(after(200), after(300), 9).await.expect(AVAILABLE);
    assert_eq!((due.orders, due.next), (Vec::new(), None));
    let forget_at = expected.forget_at().expect("nothing is owed");
    let just_before = Timestamp::from_millis(forget_at.as_millis() - 1);
    assert_eq!(store.purge(just_before, 9).await.expect(AVAILABLE), 0);
    assert_eq!(store.purge(forget_at, 9).await.expect(AVAILABLE), 1);
    assert_eq!(store.load(&expected.key).await.expect(AVAILABLE), None);
}

pub async fn one_answer_goes_to_one_of_many_takers(store: Arc<dyn Store>) {
    let expires: [u64; 12] = std::array::from_fn(|n| 100 + n as u64 % 5);
    let keys = stock(&*store, HERE, expires).await;
    let takers = (0..40).map(|n| take(&*store, HERE, START, n));
    let taken: Vec<Versioned> = join_all(takers).await.into_iter().flatten().collect();
    assert_eq!(taken.len(), keys.len());
    let distinct: BTreeSet<Key> = taken.iter().map(|record| record.order.key).collect();
    assert_eq!(distinct, BTreeSet::from(keys));
    let owners: BTreeSet<Key> = taken.iter().filter_map(|record| record.order.taker()).collect();
    assert_eq!(owners.len(), keys.len(), "and each of them has one");
    let day = Day::of(START);
    let usage = store.usage(day, day).await.expect(AVAILABLE);
    assert_eq!(usage.iter().map(|(_, counters)| counters.from_stock).sum::<u64>(), keys.len() as u64);
}

/// A taker that lost the reply takes again: the answer is counted once, and no other taker loses one.
pub async fn a_repeated_take_gives_the_same(store: Arc<dyn Store>) {
    let store = &*store;
    let [first, second] = stock(store, HERE, [110, 120]).await;
    let record = take(store, HERE, START, 1).await.expect("it stands there");
    assert_eq!(record.order.key, first);
    for good_until in [START, after(119), after(500)] {
        assert_eq!(take(store, HERE, good_until, 1).await, Some(record.clone()));
    }
    assert_eq!(key_taken(store, HERE, START, 2).await, Some(second));
    let day = Day::of(START);
    let usage = store.usage(day, day).await.expect(AVAILABLE);
    assert_eq!(usage.iter().map(|(_, counters)| counters.from_stock).sum::<u64>(), 2);
}

pub async fn what_is_given_back_can_be_taken_by_another(store: Arc<dyn Store>) {
    let store = &*store;
    let stocked = samples::stocked("there and back", HERE, after(120));
    create(store, &stocked.order).await;
    let record = take(store, HERE, START, 1).await.expect("it stands there");
    let back = samples::next(&record.order, Event::Returned { by: taker(1) }, START);
    assert!(matches!(back.phase, Phase::Solved { .. }));
    write(store, record.version, &Arc::new(back)).await;
    assert_eq!(list_stock(store, HERE, START, 9).await, [stocked.order.key]);
    assert_eq!(key_taken(store, HERE, START, 2).await, Some(stocked.order.key));
    assert_eq!(key_taken(store, HERE, START, 1).await, None, "it no longer belongs to this claimant");
}

pub async fn a_taken_answer_can_be_moved_on_by_a_writer_with_its_version(store: Arc<dyn Store>) {
    let store = &*store;
    let stocked = samples::stocked("moved on", HERE, after(120));
    let before = create(store, &stocked.order).await;
    let record = take(store, HERE, START, 1).await.expect("it stands there");
    let expired = stocked.at(after(120)).then(samples::woken());
    match store.commit(before, &expired.order, &Counters::default(), START).await.expect(AVAILABLE) {
        Commit::Conflict(Some(winner)) => assert_eq!(*winner, record, "it was taken in time"),
        other => panic!("a writer with the version before the take loses: {other:?}"),
    }
    let reported = samples::next(&record.order, Event::Reported { is_good: false }, START);
    write(store, record.version, &Arc::new(reported.clone())).await;
    let there = store.load(&reported.key).await.expect(AVAILABLE).expect("it is there");
    assert_eq!(*there.order, reported);
    assert_eq!(take(store, HERE, START, 1).await.map(|record| record.version), Some(there.version));
}

/// Taking the answer ends neither a paid attempt that trails, nor a webhook that must still be called.
pub async fn what_else_a_taken_order_has_to_do_is_still_done(store: Arc<dyn Store>) {
    let store = &*store;
    let listened = Event::WebhookAdded { url: "http://127.0.0.1/webhook".into(), dialect: "v1".into() };
    let stocked = samples::stocked("busy", HERE, after(120)).then(listened);
    let due = stocked.order.due().expect("a webhook is to be called");
    assert!(due < after(120) && stocked.order.list_stock().is_some());
    create(store, &stocked.order).await;
    let record = take(store, HERE, START, 1).await.expect("it stands there");
    assert_eq!(record.order.due(), Some(due));
    assert_eq!(store.purge(after(1_000_000), 9).await.expect(AVAILABLE), 0, "something is owed");
    let claimed = store.claim_due(due, after(300), 9).await.expect(AVAILABLE);
    assert_eq!(claimed.orders, [record]);
}
