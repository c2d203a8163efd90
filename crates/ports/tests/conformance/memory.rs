//! Tests that the memory store keeps every promise, and of what only this store can do.

use quittance_lifecycle::{Counters, Event, Key};
use quittance_ports::conformance::{Promise, Relay, drive, model, samples};
use quittance_ports::{Commit, Day, IncomingEvent, MemorySpill, MemoryStore, Spill, Store, Version, Which};
use std::sync::Arc;
use std::time::Duration;

fn now<T>(future: impl Future<Output = T>) -> T {
    drive(Duration::ZERO, future)
}

fn run(promise: Promise) {
    now(promise(Arc::new(MemoryStore::default())));
}

quittance_ports::conformance!(run);

mod membership {
    use super::{Arc, now};
    use quittance_ports::MemoryMembership;
    use quittance_ports::conformance::MembershipPromise;

    fn run(promise: MembershipPromise) {
        now(promise(Arc::new(MemoryMembership::default())));
    }

    quittance_ports::membership_conformance!(run);
}

mod leases {
    use super::{Arc, now};
    use async_trait::async_trait;
    use quittance_lifecycle::Timestamp;
    use quittance_ports::conformance::LeasesPromise;
    use quittance_ports::{Clock, MemoryLeases};
    use std::sync::atomic::{AtomicU64, Ordering};

    /// A clock that advances one millisecond at each reading.
    #[derive(Default)]
    struct TickingClock(AtomicU64);

    #[async_trait]
    impl Clock for TickingClock {
        fn now(&self) -> Timestamp {
            Timestamp::from_millis(self.0.fetch_add(1, Ordering::Relaxed))
        }

        async fn sleep_until(&self, _: Timestamp) {}
    }

    fn run(promise: LeasesPromise) {
        now(promise(Arc::new(MemoryLeases::new(Arc::new(TickingClock::default())))));
    }

    quittance_ports::leases_conformance!(run);
}

mod between_two_handles {
    use super::{Arc, MemoryStore, Promise, Relay, now};

    fn run(promise: Promise) {
        let store = MemoryStore::default();
        now(promise(Arc::new(Relay::new(vec![Arc::new(store.clone()), Arc::new(store)]))));
    }

    quittance_ports::conformance!(run);
}

#[test]
fn clones_of_a_store_share_its_orders() {
    let store = MemoryStore::default();
    let elsewhere = store.clone();
    let order = samples::solved("shared", samples::START).order;
    now(async {
        let mut watch = elsewhere.watch(&order.key).await.unwrap();
        let commit = store.commit(Version::ABSENT, &order, &Counters::default(), samples::START).await;
        let Commit::Done(version) = commit.unwrap() else { panic!("only this test writes here") };
        watch.changed().await;
        assert_eq!(elsewhere.load(&order.key).await.unwrap().unwrap().version, version);
    });
}

/// The suite races on one thread. This test uses real threads.
#[test]
fn of_many_threads_one_creates_and_the_usage_say_so() {
    let store = MemoryStore::default();
    let sample = samples::queued("herd", samples::START);
    let winners: usize = std::thread::scope(|scope| {
        let racers: Vec<_> = (0..16)
            .map(|_| {
                scope.spawn(|| {
                    let commit =
                        store.commit(Version::ABSENT, &sample.order, &sample.counters, samples::START);
                    usize::from(matches!(now(commit).unwrap(), Commit::Done(_)))
                })
            })
            .collect();
        racers.into_iter().map(|racer| racer.join().unwrap()).sum()
    });
    assert_eq!(winners, 1);
    let day = Day::of(samples::START);
    let usage = now(store.usage(day, day)).unwrap();
    assert_eq!(usage.len(), 1);
    assert_eq!(usage[0].1, sample.counters);
}

#[test]
fn a_dropped_watch_leaves_nothing_behind() {
    let store = MemoryStore::default();
    let mut watches: Vec<_> = (0..100_u8).map(|n| now(store.watch(&Key([n / 10; 32]))).unwrap()).collect();
    assert_eq!(store.watching(), 100);
    watches.truncate(30);
    assert_eq!(store.watching(), 30);
    drop(watches);
    assert_eq!(store.watching(), 0);
}

#[test]
fn the_same_seed_leaves_the_same_records() {
    let live = || {
        let store = MemoryStore::default();
        now(model::random_operations(Arc::new(store.clone()), 42, 2000));
        now(store.list(Which::ALL, None, 1000)).unwrap()
    };
    let once = live();
    assert!(!once.is_empty());
    assert_eq!(once, live());
}

#[test]
fn what_was_spilled_waits_in_order_until_it_is_safe() {
    let spill = MemorySpill::default();
    let arrivals = [1, 2, 3].map(|n| IncomingEvent {
        key: Key([n; 32]),
        born: samples::START,
        target: None,
        event: Event::Stocked { attempt: n.into() },
    });
    for arrival in &arrivals {
        spill.keep(arrival).unwrap();
    }
    let same = spill.clone();
    assert_eq!(same.waiting().unwrap(), arrivals);
    assert_eq!(same.waiting().unwrap(), arrivals, "looking removes nothing");
    spill.forget(2).unwrap();
    assert_eq!(same.waiting().unwrap(), arrivals[2..]);
    spill.forget(9).unwrap();
    assert_eq!(same.waiting().unwrap(), []);
}
