//! Every order that waits has a timer. A claim hides an order from other nodes for a while and ends by itself. So a
//! crash makes an order late, but never loses it.

use super::samples::{self, START, SampleOrder, after};
use super::{AVAILABLE, create, write};
use crate::store::{Due, Store};
use futures_util::future::join_all;
use quittance_lifecycle::{Event, Key, Order, SubmitRoute, Timestamp};
use std::sync::Arc;
use std::time::Duration;

const MOMENT: Duration = Duration::from_millis(1);

async fn claim(store: &dyn Store, now: Timestamp, until: Timestamp, limit: usize) -> Due {
    store.claim_due(now, until, limit).await.expect(AVAILABLE)
}

async fn claimed(store: &dyn Store, now: Timestamp, until: Timestamp) -> Vec<Key> {
    keys(&claim(store, now, until, 100).await)
}

fn keys(due: &Due) -> Vec<Key> {
    due.orders.iter().map(|record| record.order.key).collect()
}

/// Creates one order for each of these moments, in seconds after the start, and returns their keys.
async fn create_due_at<const N: usize>(store: &dyn Store, seconds: [u64; N]) -> [Key; N] {
    let orders: [Arc<Order>; N] =
        std::array::from_fn(|n| samples::queued(&format!("order {n}"), after(seconds[n])).order);
    for order in &orders {
        assert!(order.due().is_some());
        create(store, order).await;
    }
    orders.map(|order| order.key)
}

/// An order is due at its moment and not before.
pub async fn an_order_is_not_due_before_its_moment(store: Arc<dyn Store>) {
    let [key] = create_due_at(&*store, [10]).await;
    assert_eq!(claimed(&*store, START, after(60)).await, []);
    let just_before = Timestamp::from_millis(after(10).as_millis() - 1);
    assert_eq!(claimed(&*store, just_before, after(60)).await, []);
    assert_eq!(claimed(&*store, after(10), after(60)).await, [key]);
}

/// Orders due at one moment come by key, so that a seed gives the same run with any store.
pub async fn due_orders_come_soonest_first_up_to_the_limit(store: Arc<dyn Store>) {
    let [c, a, e, b, d, same] = create_due_at(&*store, [30, 10, 50, 20, 40, 20]).await;
    let (b, same) = (b.min(same), b.max(same));
    assert_eq!(keys(&claim(&*store, after(40), after(100), 0).await), []);
    assert_eq!(keys(&claim(&*store, after(40), after(100), 2).await), [a, b]);
    assert_eq!(keys(&claim(&*store, after(40), after(100), 2).await), [same, c]);
    assert_eq!(keys(&claim(&*store, after(60), after(100), 100).await), [d, e]);
}

/// A node that claims an order and dies makes it late, not lost.
pub async fn a_due_order_is_claimed_once_until_the_claim_lapses(store: Arc<dyn Store>) {
    let order = samples::queued("claimed", START).order;
    let version = create(&*store, &order).await;
    let first = claim(&*store, START, after(30), 10).await;
    assert_eq!(first.orders.len(), 1);
    assert_eq!((&first.orders[0].order, first.orders[0].version), (&order, version), "as it stands");
    let just_before = Timestamp::from_millis(after(30).as_millis() - 1);
    for now in [START, after(1), after(29), just_before] {
        assert_eq!(claimed(&*store, now, after(90)).await, [], "hidden at {now:?}");
    }
    let again = claim(&*store, after(30), after(60), 10).await;
    assert_eq!(again.orders, first.orders, "the claim has lapsed, and a claim is no write");
    assert_eq!(claimed(&*store, after(59), after(90)).await, []);
    assert_eq!(claimed(&*store, after(60), after(90)).await, [order.key]);
    // A claim for no time at all hides nothing.
    assert_eq!(claimed(&*store, after(90), after(90)).await, [order.key]);
    assert_eq!(claimed(&*store, after(90), after(91)).await, [order.key]);
}

/// Ten nodes claim at once.
pub async fn a_due_order_goes_to_one_of_many_claimers(store: Arc<dyn Store>) {
    let mut all = create_due_at(&*store, [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12]).await.to_vec();
    let claims = join_all((0..10).map(|_| claim(&*store, after(20), after(60), 3))).await;
    let mut gone: Vec<Key> = claims.iter().flat_map(keys).collect();
    assert!(claims.iter().all(|due| due.orders.len() <= 3));
    // Claimers that get in each other's way may leave some for later, but there is a later.
    gone.extend(claimed(&*store, after(20), after(60)).await);
    gone.sort_unstable();
    all.sort_unstable();
    assert_eq!(gone, all, "each went to one of them");
}

/// The decision is on record, and the order has a timer of its own.
pub async fn a_claim_ends_when_the_order_is_written(store: Arc<dyn Store>) {
    let queued = samples::queued("written", START);
    let version = create(&*store, &queued.order).await;
    assert_eq!(claimed(&*store, START, after(1000)).await, [queued.order.key]);
    let solving = samples::solving("written", START);
    let poll_at = solving.order.due().expect("an order that waits has a timer");
    write(&*store, version, &solving.order).await;
    assert_eq!(claimed(&*store, START, after(1000)).await, [], "its new timer is later");
    assert_eq!(claimed(&*store, poll_at, after(1000)).await, [queued.order.key], "and long before the claim");
}

/// An order that no node can finish is claimed again and again. Other orders must not wait behind it.
pub async fn a_lapsed_claim_stands_behind_what_was_due_sooner(store: Arc<dyn Store>) {
    let [poison, patient, late] = create_due_at(&*store, [1, 20, 40]).await;
    assert_eq!(claimed(&*store, after(10), after(30)).await, [poison]);
    assert_eq!(claimed(&*store, after(50), after(90)).await, [patient, poison, late]);
}

/// The next timer of all orders that were not returned: due later, beyond the limit, or claimed by another node.
pub async fn the_next_timer_is_returned(store: Arc<dyn Store>) {
    assert_eq!(claim(&*store, after(99), after(100), 10).await, Due::default(), "nothing waits");
    create(&*store, &samples::dead("no timer", START).order).await;
    assert_eq!(claim(&*store, after(99), after(100), 10).await.next, None, "nothing waits yet");

    let [first, second, third] = create_due_at(&*store, [10, 20, 30]).await;
    assert_eq!(claim(&*store, START, after(60), 10).await.next, Some(after(10)));
    assert_eq!(claim(&*store, after(25), after(60), 0).await.next, Some(after(10)), "none was returned");
    let due = claim(&*store, after(25), after(60), 1).await;
    assert_eq!((keys(&due), due.next), (vec![first], Some(after(20))), "beyond the limit, and already past");
    let due = claim(&*store, after(25), after(70), 10).await;
    assert_eq!((keys(&due), due.next), (vec![second], Some(after(30))));
    let due = claim(&*store, after(30), after(80), 10).await;
    assert_eq!((keys(&due), due.next), (vec![third], Some(after(60))), "the first claim to lapse");
    let due = claim(&*store, after(60), after(90), 10).await;
    assert_eq!((keys(&due), due.next), (vec![first], Some(after(70))));
}

/// The timer becomes earlier, later, none, and comes back.
pub async fn the_due_index_follows_each_write(store: Arc<dyn Store>) {
    let until = |sample: SampleOrder, until| {
        sample.then(Event::Woken { stamp: 1, route: SubmitRoute::ShutUntil(until) }).order
    };
    let queued = samples::queued("moved", START);
    let key = queued.order.key;
    let mut version = create(&*store, &until(queued.clone(), after(100))).await;
    for seconds in [50, 200, 20] {
        version = write(&*store, version, &until(queued.clone(), after(seconds))).await;
        let due =
            claim(&*store, Timestamp::from_millis(after(seconds).as_millis() - 1), after(999), 10).await;
        assert_eq!((keys(&due), due.next), (vec![], Some(after(seconds))));
        assert_eq!(claimed(&*store, after(seconds) + MOMENT, after(999)).await, [key]);
    }
    version = write(&*store, version, &samples::failed("moved", START).order).await;
    assert_eq!(claim(&*store, after(9999), after(99_999), 10).await, Due::default(), "it waits for nothing");
    write(&*store, version, &samples::queued("moved", after(300)).order).await;
    assert_eq!(claimed(&*store, after(300), after(999)).await, [key]);
}
