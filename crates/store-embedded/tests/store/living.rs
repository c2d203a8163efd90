//! Tests of daily use: many callers at once, one handle or many, large pictures, odd characters, and two processes.

use super::{NO_CACHE, commit, create, now, write};
use futures_util::future::join_all;
use quittance_lifecycle::{Counters, Event, Key, Order, Timestamp};
use quittance_ports::conformance::samples::{self, SampleOrder};
use quittance_ports::{Commit, Day, Store, StoreError, Version, Versioned, Which};
use quittance_store_embedded::{DATABASE, EmbeddedOpenError, EmbeddedStore, LOCK, Settings};
use std::fs;
use std::sync::Arc;

#[test]
fn commits_that_come_together_share_a_transaction() {
    let dir = tempfile::tempdir().unwrap();
    let store = EmbeddedStore::open(dir.path()).unwrap();
    let orders: Vec<_> =
        (0..500).map(|n| samples::queued(&format!("order {n}"), samples::START).order).collect();
    let counters = Counters::default();
    let commits = orders.iter().map(|order| store.commit(Version::ABSENT, order, &counters, samples::START));
    for commit in now(join_all(commits)) {
        assert!(matches!(commit, Ok(Commit::Done(_))));
    }
    assert!(store.transactions() <= 250, "500 commits took {} transactions", store.transactions());
    assert_eq!(now(store.list(Which::ALL, None, 1000)).unwrap().len(), 500);
}

#[test]
fn a_lost_race_costs_no_transaction() {
    let dir = tempfile::tempdir().unwrap();
    let store = EmbeddedStore::open(dir.path()).unwrap();
    let order = samples::queued("contested", samples::START).order;
    let version = create(&store, &order);
    for _ in 0..100 {
        assert!(matches!(commit(&store, Version::ABSENT, &order), Ok(Commit::Conflict(Some(_)))));
        assert!(matches!(commit(&store, Version(version.0 + 1), &order), Ok(Commit::Conflict(Some(_)))));
    }
    now(store.count(&quittance_ports::UsageRow::of(&order, samples::START), &Counters::default())).unwrap();
    assert_eq!(store.transactions(), 1);
}

#[test]
fn a_call_at_a_full_queue_is_unavailable() {
    let dir = tempfile::tempdir().unwrap();
    let settings = Settings { waiting_max: 1, ..Settings::default() };
    let store = EmbeddedStore::open_with(dir.path(), &settings).unwrap();
    let orders: Vec<_> =
        (0..200).map(|n| samples::queued(&format!("order {n}"), samples::START).order).collect();
    let counters = Counters::default();
    let commits = orders.iter().map(|order| store.commit(Version::ABSENT, order, &counters, samples::START));
    let outcomes = now(join_all(commits));
    let turned_away = outcomes.iter().filter(|o| matches!(o, Err(StoreError::Unavailable { .. }))).count();
    let done = outcomes.iter().filter(|o| matches!(o, Ok(Commit::Done(_)))).count();
    assert!(turned_away > 0 && done > 0 && turned_away + done == 200, "{turned_away} and {done}");
    assert_eq!(now(store.list(Which::ALL, None, 1000)).unwrap().len(), done, "they wrote nothing");
    create(&store, &samples::queued("later", samples::START).order);
}

#[test]
fn of_many_threads_one_creates_and_the_usage_say_so() {
    let dir = tempfile::tempdir().unwrap();
    let store = EmbeddedStore::open(dir.path()).unwrap();
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
    assert_eq!(usage.iter().map(|(_, counters)| *counters).collect::<Vec<_>>(), [sample.counters]);
}

/// Every reader sees versions grow, from memory and from disk.
#[test]
fn reads_are_never_older_than_writes_that_ended() {
    for settings in [NO_CACHE, Settings { cache_orders_max: 64, ..Settings::default() }] {
        let dir = tempfile::tempdir().unwrap();
        let store = EmbeddedStore::open_with(dir.path(), &settings).unwrap();
        let orders: Vec<_> =
            (0..8).map(|n| samples::queued(&format!("order {n}"), samples::START).order).collect();
        let first: Vec<_> = orders.iter().map(|order| create(&store, order)).collect();
        std::thread::scope(|scope| {
            for (order, version) in orders.iter().zip(first) {
                let store = &store;
                scope.spawn(move || {
                    let mut version = version;
                    for _ in 0..60 {
                        version = write(store, version, order);
                        let last_frame = now(store.load(&order.key)).unwrap().unwrap().version;
                        assert_eq!(last_frame, version, "a writer reads its own write");
                    }
                });
                scope.spawn(move || {
                    let mut last = version;
                    for _ in 0..200 {
                        let last_frame = now(store.load(&order.key)).unwrap().unwrap().version;
                        assert!(last_frame >= last, "{last_frame:?} was read after {last:?}");
                        last = last_frame;
                    }
                });
            }
        });
    }
}

/// Two keys can have the same prefix, and the indices store only the prefix.
#[test]
fn keys_that_begin_alike_are_different_orders() {
    for settings in [NO_CACHE, Settings::default()] {
        let dir = tempfile::tempdir().unwrap();
        let mut store = EmbeddedStore::open_with(dir.path(), &settings).unwrap();
        let like = |template: &SampleOrder, last: u8| {
            let mut key = [7; 32];
            key[31] = last;
            Arc::new(Order { key: Key(key), ..(*template.order).clone() })
        };
        let failed = samples::failed("any", samples::START);
        // Written out of order, so that the order of the rows is not that of the keys.
        let all: Vec<_> = [5, 1, 4, 2, 3].into_iter().map(|last| like(&failed, last)).collect();
        let versions: Vec<_> = all.iter().map(|order| create(&store, order)).collect();
        for reopened in [false, true] {
            if reopened {
                drop(store);
                store = EmbeddedStore::open_with(dir.path(), &settings).unwrap();
            }
            for (order, version) in all.iter().zip(&versions) {
                let whole = Versioned { version: *version, order: Arc::clone(order) };
                assert_eq!(now(store.load(&order.key)).unwrap(), Some(whole));
                assert!(matches!(commit(&store, Version::ABSENT, order), Ok(Commit::Conflict(Some(_)))));
            }
            assert_eq!(now(store.load(&like(&failed, 9).key)).unwrap(), None);
            let listed = |after: Option<Key>, limit| -> Vec<u8> {
                let record = now(store.list(Which::ALL, after.as_ref(), limit)).unwrap();
                record.into_iter().map(|record| record.unwrap().order.key.0[31]).collect()
            };
            assert_eq!(listed(None, 3), [1, 2, 3]);
            assert_eq!(listed(Some(like(&failed, 3).key), 1), [4]);
            assert_eq!(listed(Some(like(&failed, 2).key), 9), [3, 4, 5]);
        }
        assert_eq!(now(store.purge(samples::after(100_000), 2)).unwrap(), 2);
        let left = now(store.list(Which::ALL, None, 9)).unwrap();
        let left: Vec<_> = left.into_iter().map(|record| record.unwrap().order.key.0[31]).collect();
        assert_eq!(left, [3, 4, 5], "those that come first went first");
    }
}

#[test]
fn a_large_picture_is_kept_whole_and_not_written_again_at_every_step() {
    let dir = tempfile::tempdir().unwrap();
    let store = EmbeddedStore::open_with(dir.path(), &NO_CACHE).unwrap();
    let picture: Vec<u8> =
        (0..1_500_000_u32).map(|n| n.wrapping_mul(2_654_435_761).to_le_bytes()[3]).collect();
    let draft = samples::draft("https://example.com/wall").with("picture", picture);
    let sample = SampleOrder::placed("large", draft, &samples::riddle(), samples::START);
    let mut version = create(&store, &sample.order);
    let log = dir.path().join(format!("{DATABASE}-wal"));
    let size = || fs::metadata(&log).map_or(0, |record| record.len());
    let before = size();
    for _ in 0..5 {
        version = write(&store, version, &sample.order);
    }
    assert!(size() < before + 1_000_000, "{before} became {}", size());
    let order = sample.then(samples::woken()).order;
    version = write(&store, version, &order);
    drop(store);
    let store = EmbeddedStore::open(dir.path()).unwrap();
    assert_eq!(now(store.load(&order.key)).unwrap(), Some(Versioned { version, order }));
}

/// A new life of an order can add a picture, and the next can drop it.
#[test]
fn terms_may_grow_and_shrink_from_life_to_life() {
    let dir = tempfile::tempdir().unwrap();
    let store = EmbeddedStore::open_with(dir.path(), &NO_CACHE).unwrap();
    let placed = |bytes: usize| {
        let draft = samples::draft("https://example.com/wall").with("picture", vec![7; bytes]);
        SampleOrder::placed("changing", draft, &samples::riddle(), samples::START).order
    };
    let mut version = Version::ABSENT;
    for bytes in [10, 100_000, 20, 30, 200_000, 100_000, 5] {
        let order = placed(bytes);
        version = write(&store, version, &order);
        assert_eq!(now(store.load(&order.key)).unwrap(), Some(Versioned { version, order }));
    }
    let version = write(&store, version, &placed(50_000));
    let failed = samples::failed("changing", samples::START).order;
    write(&store, version, &failed);
    assert_eq!(now(store.purge(samples::after(100_000), 9)).unwrap(), 1);
    drop(store);
    let conn = rusqlite::Connection::open(dir.path().join(DATABASE)).unwrap();
    let left: i64 = conn.query_row("SELECT count(*) FROM large_terms", [], |row| row.get(0)).unwrap();
    assert_eq!(left, 0, "nothing is left of it");
}

#[test]
fn nul_characters_and_quotes_are_characters_like_any_other() {
    let dir = tempfile::tempdir().unwrap();
    let odd = "a\0b'; DROP TABLE order_records; --\u{1F600}\"\\ \u{7f}";
    let mut draft = samples::draft(odd).with("picture", vec![0_u8, 1, 0, 255]);
    draft.tenant = "O'Hara".into();
    let order = SampleOrder::placed(odd, draft, &samples::riddle(), samples::START).order;
    let odd_tenant = Arc::new(Order {
        key: Key([1; 32]),
        terms: Arc::new(quittance_lifecycle::Terms { tenant: odd.into(), ..(*order.terms).clone() }),
        ..(*order).clone()
    });
    let counters = Counters { asked: 3, ..Counters::default() };
    let store = EmbeddedStore::open(dir.path()).unwrap();
    for order in [&order, &odd_tenant] {
        let done = now(store.commit(Version::ABSENT, order, &counters, samples::START)).unwrap();
        assert!(matches!(done, Commit::Done(_)));
    }
    drop(store);
    let store = EmbeddedStore::open(dir.path()).unwrap();
    for order in [&order, &odd_tenant] {
        assert_eq!(&now(store.load(&order.key)).unwrap().unwrap().order, order);
    }
    let usage = now(store.usage(Day(0), Day(u64::MAX))).unwrap();
    assert_eq!(usage.iter().map(|(line, _)| &*line.tenant).collect::<Vec<_>>(), ["O'Hara", odd]);
    assert!(usage.iter().all(|(_, record)| *record == counters));
}

#[test]
fn the_end_of_time_and_the_largest_numbers_come_back_as_they_were() {
    let dir = tempfile::tempdir().unwrap();
    let queued = samples::queued("patient", samples::START);
    let shut = quittance_lifecycle::SubmitRoute::ShutUntil(Timestamp::MAX);
    let mut order = (*queued.then(Event::Woken { stamp: u64::MAX, route: shut }).order).clone();
    order.deadline = Timestamp::MAX;
    let order = Arc::new(order);
    assert_eq!(order.due(), Some(Timestamp::MAX));
    let line = quittance_ports::UsageRow::of(&order, samples::START);
    let counters = Counters { asked: u64::MAX - 1, ..Counters::default() };
    let store = EmbeddedStore::open(dir.path()).unwrap();
    create(&store, &order);
    now(store.count(&line, &counters)).unwrap();
    drop(store);
    let store = EmbeddedStore::open(dir.path()).unwrap();
    assert_eq!(now(store.claim_due(samples::START, samples::START, 9)).unwrap().next, Some(Timestamp::MAX));
    assert_eq!(now(store.claim_due(Timestamp::MAX, Timestamp::MAX, 9)).unwrap().orders.len(), 1);
    now(store.count(&line, &counters)).unwrap();
    let usage = now(store.usage(line.day, line.day)).unwrap();
    assert_eq!(usage, [(line, Counters { asked: u64::MAX, ..Counters::default() })], "full is full");
}

#[test]
fn a_second_open_learns_which_process_has_it_and_what_to_do_and_can_have_it_afterwards() {
    let dir = tempfile::tempdir().unwrap();
    let store = EmbeddedStore::open(dir.path()).unwrap();
    let other = store.clone();
    let error = EmbeddedStore::open(dir.path()).unwrap_err();
    let output = error.to_string();
    let EmbeddedOpenError::InUse { dir: named, pid } = error else { panic!("{output}") };
    assert_eq!(named, dir.path().canonicalize().unwrap());
    assert_eq!(pid, Some(std::process::id()));
    for part in [named.to_str().unwrap(), &std::process::id().to_string(), "quittance serve"] {
        assert!(output.contains(part), "{part} is missing in: {output}");
    }
    drop(store);
    assert!(EmbeddedStore::open(dir.path()).is_err(), "one handle is left");
    create(&other, &samples::queued("still there", samples::START).order);
    drop(other);
    for _ in 0..20 {
        drop(EmbeddedStore::open(dir.path()).unwrap());
    }
}

#[test]
fn it_makes_its_directory_but_not_the_parent_of_it() {
    let dir = tempfile::tempdir().unwrap();
    drop(EmbeddedStore::open(&dir.path().join("new")).unwrap());
    let error = EmbeddedStore::open(&dir.path().join("no/such/place")).unwrap_err();
    assert!(matches!(&error, EmbeddedOpenError::NotWritable { .. }), "{error}");
    assert!(error.to_string().contains("no/such/place"), "{error}");
    fs::write(dir.path().join("file"), "").unwrap();
    let error = EmbeddedStore::open(&dir.path().join("file")).unwrap_err();
    assert!(matches!(error, EmbeddedOpenError::NotWritable { .. }), "{error}");
}

#[cfg(unix)]
#[test]
fn only_the_owner_may_read_its_files() {
    use std::os::unix::fs::PermissionsExt;
    let parent = tempfile::tempdir().unwrap();
    let dir = parent.path().join("store");
    let mode = |path: &std::path::Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    let store = EmbeddedStore::open(&dir).unwrap();
    create(&store, &samples::queued("private", samples::START).order);
    assert_eq!(mode(&dir), 0o700);
    let mut names = Vec::new();
    for entry in fs::read_dir(&dir).unwrap() {
        let entry = entry.unwrap();
        assert_eq!(mode(&entry.path()), 0o600, "{:?}", entry.path());
        names.push(entry.file_name().into_string().unwrap());
    }
    assert!(names.contains(&DATABASE.to_owned()) && names.contains(&LOCK.to_owned()), "{names:?}");
    assert!(names.iter().any(|name| name.ends_with("-wal")), "{names:?}");
    drop(store);
    fs::set_permissions(dir.join(DATABASE), PermissionsExt::from_mode(0o644)).unwrap();
    drop(EmbeddedStore::open(&dir).unwrap());
    assert_eq!(mode(&dir.join(DATABASE)), 0o600, "the file had wider permissions before");
}
