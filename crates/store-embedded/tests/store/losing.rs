//! Tests of a log that lost its end, and of lost files: the loss is noticed, reported, and listed by key. Nothing
//! that was acknowledged is lost silently, and nothing is bought again automatically.

use super::{commit, create, now, write};
use quittance_lifecycle::{Event, Order};
use quittance_ports::conformance::samples::{self, START};
use quittance_ports::{Membership, Store, StoreError, Verdict, Version, Which};
use quittance_store_embedded::{DATABASE, EmbeddedStore, RESCUED, TRAIL, trail_note};
use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

const ORDERS: usize = 60;

/// A copy of the files, as a killed process leaves them.
fn killed(dir: &Path) -> tempfile::TempDir {
    let copy = tempfile::tempdir().unwrap();
    for file in fs::read_dir(dir).unwrap() {
        let file = file.unwrap();
        fs::copy(file.path(), copy.path().join(file.file_name())).unwrap();
    }
    copy
}

pub(crate) fn order(n: usize) -> Arc<Order> {
    samples::queued(&format!("order {n}"), START).order
}

/// A store with some orders, each acknowledged by itself, and its files after a kill.
fn crashed() -> (Vec<Arc<Order>>, tempfile::TempDir) {
    let dir = tempfile::tempdir().unwrap();
    let store = EmbeddedStore::open(dir.path()).unwrap();
    let orders: Vec<_> = (0..ORDERS).map(order).collect();
    for order in &orders {
        create(&store, order);
    }
    let copy = killed(dir.path());
    drop(store);
    (orders, copy)
}

/// Checks that every order exists or is reported as lost. Returns how many are lost.
fn check(orders: &[Arc<Order>], dir: &Path) -> usize {
    let store = EmbeddedStore::open(dir).unwrap();
    let mut lost = 0;
    for order in orders {
        match now(store.load(&order.key)) {
            Ok(Some(record)) => assert_eq!(record.order, *order),
            Err(StoreError::Corrupt { detail, .. }) => {
                assert!(detail.contains("lost with the end of the log: it was queued"), "{detail}");
                let again = commit(&store, Version::ABSENT, order);
                assert!(
                    matches!(again, Err(StoreError::Corrupt { .. })),
                    "it is not bought again: {again:?}"
                );
                lost += 1;
            }
            other => panic!("an acknowledged order is gone without a word: {other:?}"),
        }
    }
    let listed = now(store.list(Which::DEAD, None, 1000)).unwrap();
    assert_eq!(listed.len(), lost, "all that is lost is on the list");
    assert_eq!(store.damage().is_some(), lost > 0);
    let findings = now(store.checkup()).unwrap();
    assert_eq!(
        findings.iter().filter(|finding| finding.verdict == Verdict::Bad).count(),
        usize::from(lost > 0)
    );
    lost
}

#[test]
fn a_kill_alone_loses_nothing_and_raises_no_timer() {
    let (orders, dir) = crashed();
    assert_eq!(check(&orders, dir.path()), 0);
    assert_eq!(check(&orders, dir.path()), 0, "nor does opening it again");
}

#[test]
fn a_flipped_bit_in_the_log_is_reported_with_every_key_that_is_lost() {
    let (orders, dir) = crashed();
    let wal = format!("{DATABASE}-wal");
    let bytes = fs::read(dir.path().join(&wal)).unwrap();
    let mut worst = 0;
    for at in [1, 3, 5, 7, 9] {
        let copy = killed(dir.path());
        let mut damaged = bytes.clone();
        let place = damaged.len() / 10 * at;
        damaged[place] ^= 4;
        fs::write(copy.path().join(&wal), damaged).unwrap();
        worst = worst.max(check(&orders, copy.path()));
        // It stays so until a person has dropped them.
        let still = EmbeddedStore::open(copy.path()).unwrap();
        let lost = still.unreadable();
        assert!(!lost.is_empty());
        for unreadable in &lost {
            assert!(now(still.discard(&unreadable.key)).unwrap());
        }
        drop(still);
        let clean = EmbeddedStore::open(copy.path()).unwrap();
        assert_eq!((clean.unreadable(), clean.damage()), (vec![], None));
        let dropped = orders.iter().find(|order| order.key == lost[0].key).unwrap();
        create(&clean, dropped);
    }
    assert!(worst > ORDERS / 2, "some of these lose most of the log: {worst}");
}

#[test]
fn a_log_that_was_cut_or_deleted_is_reported_too() {
    let (orders, dir) = crashed();
    let wal = format!("{DATABASE}-wal");
    let bytes = fs::read(dir.path().join(&wal)).unwrap();
    for part in [0, 2, 5, 9] {
        let copy = killed(dir.path());
        fs::write(copy.path().join(&wal), &bytes[..bytes.len() / 10 * part]).unwrap();
        assert!(check(&orders, copy.path()) > 0);
    }
    let copy = killed(dir.path());
    fs::remove_file(copy.path().join(&wal)).unwrap();
    fs::remove_file(copy.path().join(format!("{DATABASE}-shm"))).unwrap();
    assert!(check(&orders, copy.path()) > 0);
    let copy = killed(dir.path());
    for file in ["", "-wal", "-shm"] {
        fs::remove_file(copy.path().join(format!("{DATABASE}{file}"))).unwrap();
    }
    assert_eq!(check(&orders, copy.path()), ORDERS, "a new database in an old folder is noticed");
}

#[test]
fn an_order_whose_last_steps_are_lost_is_named_and_still_readable() {
    let dir = tempfile::tempdir().unwrap();
    let store = EmbeddedStore::open(dir.path()).unwrap();
    let first = order(1);
    let version = create(&store, &first);
    let before = killed(dir.path());
    let noted = samples::next(&first, Event::Noted { text: "later".into() }, START);
    write(&store, version, &Arc::new(noted));
    let after = killed(dir.path());
    drop(store);
    // The log of before, and the notes of after.
    for file in [DATABASE.to_owned(), format!("{DATABASE}-wal")] {
        fs::copy(before.path().join(&file), after.path().join(&file)).unwrap();
    }
    fs::remove_file(after.path().join(format!("{DATABASE}-shm"))).unwrap();
    let store = EmbeddedStore::open(after.path()).unwrap();
    assert_eq!(store.stale(), [first.key]);
    assert!(store.damage().is_some());
    let record = now(store.load(&first.key)).unwrap().unwrap();
    let next = write(&store, record.version, &first);
    assert!(next > Version(2), "no version comes back: {next:?}");
    drop(store);
    assert_eq!(EmbeddedStore::open(after.path()).unwrap().stale(), []);
}

#[test]
fn what_was_purged_in_good_order_is_not_missed() {
    let dir = tempfile::tempdir().unwrap();
    let store = EmbeddedStore::open(dir.path()).unwrap();
    let done = samples::failed("done", START).order;
    create(&store, &done);
    assert_eq!(now(store.purge(quittance_lifecycle::Timestamp::MAX, 10)).unwrap(), 1);
    let copy = killed(dir.path());
    let store = EmbeddedStore::open(copy.path()).unwrap();
    assert_eq!((store.damage(), store.unreadable()), (None, vec![]));
}

#[test]
fn files_that_are_deleted_or_replaced_under_it_are_an_error_at_once_and_a_copy_is_saved() {
    for replace in [false, true] {
        let dir = tempfile::tempdir().unwrap();
        let store = EmbeddedStore::open(dir.path()).unwrap();
        create(&store, &order(1));
        let database = dir.path().join(DATABASE);
        for file in fs::read_dir(dir.path()).unwrap() {
            fs::remove_file(file.unwrap().path()).unwrap();
        }
        if replace {
            fs::write(&database, b"").unwrap();
        }
        let refused = commit(&store, Version::ABSENT, &order(2));
        assert!(
            matches!(refused, Err(StoreError::Unavailable { .. })),
            "nothing more is acknowledged: {refused:?}"
        );
        assert!(now(store.load(&order(1).key)).is_err());
        assert!(store.damage().unwrap().contains("deleted, moved or replaced"));
        let rescued = dir.path().join(RESCUED);
        drop(store);
        // A person puts the copy back.
        fs::rename(rescued, &database).unwrap();
        let store = EmbeddedStore::open(dir.path()).unwrap();
        assert!(now(store.load(&order(1).key)).unwrap().is_some());
        assert_eq!(store.damage(), None);
    }
}

/// Loses the files or the folder of an idle store with one order. When this returns, the store is closed and has
/// saved its copy.
#[expect(clippy::disallowed_methods, reason = "the store looks at its files in real time")]
fn lose_while_idle(dir: &Path, lose: impl FnOnce(&Path)) {
    let store = EmbeddedStore::open(dir).unwrap();
    create(&store, &order(1));
    lose(dir);
    let began = Instant::now();
    while store.damage().is_none() || !dir.join("orders.trail").exists() {
        assert!(began.elapsed() < Duration::from_secs(20), "it is noticed");
        std::thread::yield_now();
    }
}

fn delete_files(dir: &Path) {
    for file in fs::read_dir(dir).unwrap() {
        fs::remove_file(file.unwrap().path()).unwrap();
    }
}

#[test]
fn the_next_process_continues_with_the_copy_until_its_orders_are_listed() {
    let parent = tempfile::tempdir().unwrap();
    let dir = parent.path().join("store");
    let moved = parent.path().join("moved");
    let ways: [&dyn Fn(&Path); 4] = [
        &delete_files,
        &|dir| fs::remove_file(dir.join(DATABASE)).unwrap(),
        &|dir| fs::rename(dir, &moved).unwrap(),
        &|dir| fs::remove_dir_all(dir).unwrap(),
    ];
    for lose in ways {
        lose_while_idle(&dir, lose);
        // A look comes first, and changes nothing for the node that is started next.
        for _ in 0..2 {
            let store = EmbeddedStore::open(&dir).unwrap();
            assert!(store.is_restored() && store.unreadable().is_empty());
            assert!(store.damage().unwrap().contains("continues with orders.rescued.db"));
            assert!(now(store.load(&order(1).key)).unwrap().is_some());
        }
        EmbeddedStore::open(&dir).unwrap().forget_restored();
        let store = EmbeddedStore::open(&dir).unwrap();
        assert!(!store.is_restored());
        assert_eq!(store.damage(), None);
        drop(store);
        fs::remove_dir_all(&dir).unwrap();
    }
}

#[test]
fn files_that_are_lost_without_a_copy_are_listed_by_the_next_process() {
    let dir = tempfile::tempdir().unwrap();
    lose_while_idle(dir.path(), delete_files);
    fs::remove_file(dir.path().join(RESCUED)).unwrap();
    let store = EmbeddedStore::open(dir.path()).unwrap();
    assert_eq!(store.unreadable().len(), 1, "the order that was acknowledged is on the list");
    assert!(!store.is_restored() && store.damage().is_some());
}

#[test]
fn a_trail_that_is_missing_or_empty_when_the_store_is_opened_is_reported_and_written_again() {
    let lose: [fn(&Path); 2] =
        [|trail| fs::remove_file(trail).unwrap(), |trail| fs::write(trail, "").unwrap()];
    for lose in lose {
        let dir = tempfile::tempdir().unwrap();
        let store = EmbeddedStore::open(dir.path()).unwrap();
        assert_eq!(store.trail_note(), None, "a new store has no lines yet");
        create(&store, &order(1));
        drop(store);
        assert_eq!(EmbeddedStore::open(dir.path()).unwrap().trail_note(), None);
        lose(&dir.path().join(TRAIL));
        // A look comes first, and does not hide it from the node that is started next.
        for _ in 0..2 {
            let store = EmbeddedStore::open(dir.path()).unwrap();
            let note = store.trail_note().unwrap();
            assert!(note.contains("could not be noticed"), "{note}");
            assert_eq!(trail_note(dir.path()), Some(note));
            let findings = now(store.checkup()).unwrap();
            assert_eq!(findings.iter().map(|record| record.verdict).collect::<Vec<_>>(), [Verdict::Note]);
            assert_eq!(store.damage(), None, "nothing is known to be lost");
        }
        let store = EmbeddedStore::open(dir.path()).unwrap();
        create(&store, &order(2));
        drop(store);
        // The lines that were written again are proof like the others.
        for file in ["", "-wal", "-shm"] {
            drop(fs::remove_file(dir.path().join(format!("{DATABASE}{file}"))));
        }
        assert_eq!(EmbeddedStore::open(dir.path()).unwrap().unreadable().len(), 2);
    }
}

#[test]
#[expect(clippy::disallowed_methods, reason = "the store looks at its files in real time")]
fn a_trail_that_is_deleted_or_emptied_under_it_is_reported_and_written_again() {
    let lose: [fn(&Path); 2] =
        [|trail| fs::remove_file(trail).unwrap(), |trail| fs::write(trail, "").unwrap()];
    for (lose, writes) in lose.into_iter().flat_map(|lose| [(lose, true), (lose, false)]) {
        let dir = tempfile::tempdir().unwrap();
        let store = EmbeddedStore::open(dir.path()).unwrap();
        create(&store, &order(1));
        lose(&dir.path().join(TRAIL));
        if writes {
            create(&store, &order(2));
        }
        let began = Instant::now();
        while store.trail_note().is_none() {
            assert!(began.elapsed() < Duration::from_secs(20), "it is noticed");
            std::thread::yield_now();
        }
        assert_eq!(store.damage(), None);
        let copy = killed(dir.path());
        for file in ["", "-wal", "-shm"] {
            drop(fs::remove_file(copy.path().join(format!("{DATABASE}{file}"))));
        }
        let lost = EmbeddedStore::open(copy.path()).unwrap().unreadable();
        assert_eq!(lost.len(), 1 + usize::from(writes), "every order is named again");
    }
}

#[test]
fn a_log_and_a_trail_that_are_lost_together_are_not_forgotten_without_a_word() {
    let (_, dir) = crashed();
    fs::remove_file(dir.path().join(format!("{DATABASE}-wal"))).unwrap();
    fs::remove_file(dir.path().join(TRAIL)).unwrap();
    let store = EmbeddedStore::open(dir.path()).unwrap();
    let note = store.trail_note().expect("it is reported");
    assert!(note.contains("was missing or emptied") && note.contains("could not be noticed"), "{note}");
    drop(store);
    let new = tempfile::tempdir().unwrap();
    assert_eq!(EmbeddedStore::open(new.path()).unwrap().trail_note(), None, "a new store has lost nothing");
}

#[test]
fn the_secrets_are_noted_and_the_last_is_the_one_in_use() {
    let dir = tempfile::tempdir().unwrap();
    let store = EmbeddedStore::open(dir.path()).unwrap();
    assert!(store.secrets().is_empty());
    for secret in [1, 2, 2, 1] {
        now(store.note_secret([secret; 32])).unwrap();
    }
    assert_eq!(store.secrets(), [[2; 32], [1; 32]]);
    drop(store);
    assert_eq!(EmbeddedStore::open(dir.path()).unwrap().secrets(), [[2; 32], [1; 32]]);
}
