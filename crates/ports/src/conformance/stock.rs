//! The stock: every answer is in the stock of its target with an expiry of its own, and the oldest is taken first.

use super::samples::{self, START, SampleOrder, after};
use super::{AVAILABLE, create, write};
use crate::store::Store;
use quittance_lifecycle::{Event, Key, Timestamp};
use std::sync::Arc;

pub(super) const HERE: &str = "https://example.com/here";
pub(super) const THERE: &str = "https://example.com/there";

pub(super) async fn list_stock(store: &dyn Store, page: &str, now: Timestamp, limit: usize) -> Vec<Key> {
    store.list_stock(&samples::target(page), now, limit).await.expect(AVAILABLE)
}

/// Stocks an answer for each of these expiries, in seconds after the start.
pub(super) async fn stock<const N: usize>(store: &dyn Store, page: &str, expires: [u64; N]) -> [Key; N] {
    let samples: [SampleOrder; N] =
        std::array::from_fn(|n| samples::stocked(&format!("{page} answer {n}"), page, after(expires[n])));
    for (sample, expires) in samples.iter().zip(expires) {
        assert_eq!(sample.order.list_stock(), Some((samples::target(page), after(expires))));
        create(store, &sample.order).await;
    }
    samples.map(|sample| sample.order.key)
}

/// Answers with one expiry are sorted by key.
pub async fn the_stock_lists_the_soonest_to_expire_first(store: Arc<dyn Store>) {
    let [c, a, b, same, d] = stock(&*store, HERE, [130, 110, 120, 120, 140]).await;
    let (b, same) = (b.min(same), b.max(same));
    assert_eq!(list_stock(&*store, HERE, START, 100).await, [a, b, same, c, d]);
    assert_eq!(list_stock(&*store, HERE, START, 3).await, [a, b, same]);
    assert_eq!(list_stock(&*store, HERE, START, 0).await, []);
}

/// Each answer leaves by its own expiry, whatever else is in the stock.
pub async fn the_stock_leaves_out_what_has_expired(store: Arc<dyn Store>) {
    let [a, b, c] = stock(&*store, HERE, [110, 120, 130]).await;
    let just_before = Timestamp::from_millis(after(120).as_millis() - 1);
    assert_eq!(list_stock(&*store, HERE, after(109), 100).await, [a, b, c]);
    assert_eq!(list_stock(&*store, HERE, just_before, 100).await, [b, c]);
    assert_eq!(list_stock(&*store, HERE, after(120), 100).await, [c], "what expires now has expired");
    assert_eq!(list_stock(&*store, HERE, after(130), 100).await, []);
}

pub async fn the_stock_of_a_target_holds_nothing_of_another(store: Arc<dyn Store>) {
    let here = stock(&*store, HERE, [110, 130]).await;
    let there = stock(&*store, THERE, [100, 120, 140]).await;
    assert_eq!(list_stock(&*store, HERE, START, 100).await, here);
    assert_eq!(list_stock(&*store, THERE, START, 100).await, there);
    assert_eq!(list_stock(&*store, "https://example.com/nowhere", START, 100).await, []);
}

/// An answer that its own caller still wants is not in the stock, neither before nor after it was free to be taken.
pub async fn what_was_taken_is_off_the_stock(store: Arc<dyn Store>) {
    let [first, second, third] =
        ["first", "second", "third"].map(|name| samples::stocked(name, HERE, after(120)));
    let mut versions = Vec::new();
    for sample in [&first, &second, &third] {
        versions.push(create(&*store, &sample.order).await);
    }
    create(&*store, &samples::solved("wanted", START).order).await;
    let mut left = vec![first.order.key, second.order.key, third.order.key];
    left.sort_unstable();
    assert_eq!(list_stock(&*store, HERE, START, 100).await, left);

    let (gone, spoilt) = (first.order.key, second.order.key);
    write(&*store, versions[0], &samples::taken(first).order).await;
    left.retain(|key| *key != gone);
    assert_eq!(list_stock(&*store, HERE, START, 100).await, left, "it was taken");
    write(&*store, versions[1], &second.at(after(120)).then(samples::woken()).order).await;
    left.retain(|key| *key != spoilt);
    assert_eq!(list_stock(&*store, HERE, START, 100).await, left, "it was found expired");

    // And one that comes back to the stock is there again.
    let placed = samples::stocked("fourth", HERE, after(120));
    let before = SampleOrder::placed("fourth", samples::draft(HERE), &samples::riddle(), START)
        .then(samples::woken())
        .then(Event::Cancelled);
    let version = create(&*store, &before.order).await;
    assert_eq!(list_stock(&*store, HERE, START, 100).await, left);
    write(&*store, version, &placed.order).await;
    assert_eq!(list_stock(&*store, HERE, START, 100).await.len(), 2);
}
