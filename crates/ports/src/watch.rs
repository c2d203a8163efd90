//! Wakes waiting callers. A watch is a flag and a waker, kept by order. No caller polls.

use quittance_lifecycle::Key;
use std::collections::BTreeMap;
use std::fmt;
use std::future::poll_fn;
use std::ops::Bound;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Poll, Waker};

#[derive(Default)]
struct WatchSignal {
    rung: bool,
    waker: Option<Waker>,
}

/// All watches in this process, by order. A store has one of these, and calls [`wake`](Self::wake) on every commit
/// that gives waiters an outcome.
#[derive(Clone, Default)]
pub struct Watchers(Arc<Mutex<Registry>>);

#[derive(Default)]
struct Registry {
    next: u64,
    /// The watches, sorted by key, so that those of one order are adjacent.
    waiting: BTreeMap<(Key, u64), Arc<Mutex<WatchSignal>>>,
}

/// One caller's watch on one order. It ends when it is dropped.
pub struct Watch {
    place: (Key, u64),
    signal: Arc<Mutex<WatchSignal>>,
    watchers: Watchers,
}

/// Locks a mutex, even if it is poisoned: no panic elsewhere can leave a flag or a map half-written.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Wakes these watches. Call it without the lock of the registry: a woken caller may drop its watch at once.
fn ring(signals: Vec<Arc<Mutex<WatchSignal>>>) {
    for signal in signals {
        let waker = {
            let mut signal = lock(&signal);
            signal.rung = true;
            signal.waker.take()
        };
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}

impl Watchers {
    #[must_use]
    pub fn watch(&self, key: &Key) -> Watch {
        let signal = Arc::new(Mutex::new(WatchSignal::default()));
        let mut registry = lock(&self.0);
        let place = (*key, registry.next);
        registry.next += 1;
        registry.waiting.insert(place, Arc::clone(&signal));
        Watch { place, signal, watchers: self.clone() }
    }

    pub fn wake(&self, key: &Key) {
        let signals: Vec<_> =
            lock(&self.0).waiting.range((*key, 0)..=(*key, u64::MAX)).map(|(_, s)| Arc::clone(s)).collect();
        ring(signals);
    }

    /// Wakes every watch of every order: for a store that was cut off from notices of other processes, and does not
    /// know what it missed.
    pub fn wake_all(&self) {
        let signals: Vec<_> = lock(&self.0).waiting.values().map(Arc::clone).collect();
        ring(signals);
    }

    /// The orders with at least one watch, sorted by key, beginning after `after`: for a slow re-check in case
    /// notices were lost.
    #[must_use]
    pub fn keys(&self, after: Option<&Key>, limit: usize) -> Vec<Key> {
        let start = after.map_or(Bound::Unbounded, |key| Bound::Excluded((*key, u64::MAX)));
        let mut keys: Vec<Key> = Vec::new();
        for (key, _) in lock(&self.0).waiting.range((start, Bound::Unbounded)).map(|(place, _)| place) {
            if keys.last() == Some(key) {
                continue;
            }
            if keys.len() == limit {
                break;
            }
            keys.push(*key);
        }
        keys
    }

    /// How many watches there are: zero if no caller waits, unless there is a leak.
    #[must_use]
    pub fn len(&self) -> usize {
        lock(&self.0).waiting.len()
    }

    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl Watch {
    /// Waits until the order is written and no longer [awaited](quittance_lifecycle::Order::is_awaited), after the
    /// last time this returned. It may also return too early: check the order, and wait again.
    pub async fn changed(&mut self) {
        poll_fn(|cx| {
            let mut signal = lock(&self.signal);
            if std::mem::take(&mut signal.rung) {
                return Poll::Ready(());
            }
            signal.waker = Some(cx.waker().clone());
            Poll::Pending
        })
        .await;
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        lock(&self.watchers.0).waiting.remove(&self.place);
    }
}

impl fmt::Debug for Watch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Watch").field(&self.place.0).finish()
    }
}

impl fmt::Debug for Watchers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Watchers({})", self.len())
    }
}

#[cfg(test)]
mod tests {
    use super::{Key, Watch, Watchers};
    use crate::conformance::drive;
    use futures_util::FutureExt;
    use futures_util::future::{join, join_all};
    use std::time::Duration;

    #[test]
    fn the_orders_with_waiters_are_listed_once_each_page_by_page() {
        let watchers = Watchers::default();
        let _watches: Vec<_> = (0..20_u8).map(|n| watchers.watch(&Key([n % 7; 32]))).collect();
        let mut listed = Vec::new();
        loop {
            let page = watchers.keys(listed.last(), 3);
            assert!(page.len() <= 3);
            if page.is_empty() {
                break;
            }
            listed.extend(page);
        }
        assert_eq!(listed, (0..7_u8).map(|n| Key([n; 32])).collect::<Vec<_>>());
    }

    #[test]
    fn waking_all_wakes_each_waiter_of_each_order_once() {
        let watchers = Watchers::default();
        watchers.wake_all();
        let mut watches: Vec<_> = (0..20_u8).map(|n| watchers.watch(&Key([n / 5; 32]))).collect();
        let is_rung = |watch: &mut Watch| watch.changed().now_or_never().is_some();
        assert!(!watches.iter_mut().any(is_rung), "a later watch has missed nothing");

        let asleep = join_all(watches.iter_mut().map(Watch::changed));
        drive(Duration::ZERO, join(asleep, async { watchers.wake_all() }));
        assert!(!watches.iter_mut().any(is_rung), "once");

        watchers.wake_all();
        assert!(watches.iter_mut().all(is_rung), "no watch needs to be polled already");
        drop(watches);
        assert!(watchers.is_empty());
    }
}
