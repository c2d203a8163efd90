//! What a spill promises when its disk fails: every accepted event is there, and an event that may be missing was
//! never acknowledged.

use super::cases::called_back;
use super::flaky::{Failure, FlakyDisk};
use super::spill::{BYTES_MAX, SpillFolder, home, stocked};
use crate::SpillFile;
use quittance_ports::{IncomingEvent, Spill};
use std::collections::VecDeque;
use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

fn flaky(home: &SpillFolder, failure: Failure) -> (SpillFile, Arc<AtomicUsize>) {
    let disk = FlakyDisk::open(&home.path, failure).unwrap();
    let left = disk.left();
    (SpillFile::on(Box::new(disk), BYTES_MAX).unwrap(), left)
}

#[test]
fn when_the_disk_does_not_sync_keep_says_so_and_the_next_one_is_safe_again() {
    for failure in [Failure::Before, Failure::After] {
        let home = home();
        let (spill, left) = flaky(&home, failure);
        spill.keep(&called_back(1)).unwrap();
        left.store(2, Ordering::SeqCst);
        assert!(spill.keep(&called_back(2)).is_err());
        assert_eq!(spill.waiting().unwrap(), [called_back(1)]);
        spill.keep(&called_back(3)).unwrap();
        drop(spill);
        assert_eq!(home.open().waiting().unwrap(), [called_back(1), called_back(3)]);
        assert_eq!(home.unreadable(), b"");
    }
}

#[test]
fn nothing_is_appended_to_a_file_that_may_not_be_safe() {
    // A new file whose name may be lost, and an emptied one that may come back.
    for (forgotten, step) in [(1, 2), (2, 2)] {
        let home = home();
        let disk = FlakyDisk::open(&home.path, Failure::After).unwrap();
        let (left, replaced) = (disk.left(), disk.replaced());
        let spill = SpillFile::on(Box::new(disk), BYTES_MAX).unwrap();
        stocked(0..2).iter().for_each(|arrival| spill.keep(arrival).unwrap());
        left.store(step, Ordering::SeqCst);
        assert!(spill.forget(forgotten).is_err());
        let before = replaced.load(Ordering::SeqCst);
        spill.keep(&called_back(3)).unwrap();
        assert_eq!(replaced.load(Ordering::SeqCst), before + 1);
        spill.keep(&called_back(4)).unwrap();
        assert_eq!(replaced.load(Ordering::SeqCst), before + 1);
        let rest = stocked(u32::try_from(forgotten).unwrap()..2);
        assert_eq!(spill.waiting().unwrap(), [rest, vec![called_back(3), called_back(4)]].concat());
    }
}

#[test]
fn when_the_disk_is_full_half_an_entry_is_taken_back() {
    let home = home();
    let (spill, left) = flaky(&home, Failure::HalfWay);
    spill.keep(&called_back(1)).unwrap();
    let before = fs::read(&home.path).unwrap();
    left.store(1, Ordering::SeqCst);
    assert!(spill.keep(&called_back(2)).is_err());
    assert_eq!(fs::read(&home.path).unwrap(), before);
}

#[test]
fn a_count_from_before_the_spill_was_fixed_is_not_used() {
    let home = home();
    let (spill, left) = flaky(&home, Failure::After);
    stocked(0..4).iter().for_each(|arrival| spill.keep(arrival).unwrap());
    assert_eq!(spill.waiting().unwrap().len(), 4);
    // Reading, and then the new file: it is in its place, but that is not known.
    left.store(2, Ordering::SeqCst);
    assert!(spill.forget(1).is_err());
    spill.keep(&called_back(9)).unwrap();
    // A second try must not forget entries that were not read.
    assert!(spill.forget(1).is_err());
    let rest = [stocked(1..4), vec![called_back(9)]].concat();
    assert_eq!(spill.waiting().unwrap(), rest);
    spill.forget(1).unwrap();
    assert_eq!(spill.waiting().unwrap(), rest[1..]);
}

#[test]
fn a_panic_while_the_spill_is_held_does_not_end_it() {
    let home = home();
    let spill = home.open();
    spill.keep(&called_back(1)).unwrap();
    spill.panic_while_held();
    spill.keep(&called_back(2)).unwrap();
    assert_eq!(spill.waiting().unwrap(), [called_back(1), called_back(2)]);
}

/// What a user knows about the spill: which events it must contain, and which it may contain.
#[derive(Default)]
struct SpillModel {
    next: u32,
    /// The events in order, each with whether it must be there.
    owed: VecDeque<(IncomingEvent, bool)>,
}

impl SpillModel {
    fn keep(&mut self, spill: &SpillFile) {
        let arrival = stocked([self.next]).remove(0);
        self.next += 1;
        let safe = spill.keep(&arrival).is_ok();
        self.owed.push_back((arrival, safe));
    }

    /// Reads all events and removes half, like a replay that the store interrupts.
    fn empty_half(&mut self, spill: &SpillFile) {
        let Ok(entries) = spill.waiting() else { return };
        self.check(&entries);
        let half = &entries[..entries.len() / 2];
        let forgotten = spill.forget(half.len()).is_ok();
        self.owed.retain_mut(|(arrival, must)| {
            *must &= !half.contains(arrival);
            *must || !(forgotten && half.contains(arrival))
        });
    }

    fn check(&self, entries: &[IncomingEvent]) {
        let mut entries = entries.iter().peekable();
        for (arrival, must) in &self.owed {
            let there = entries.next_if(|next| *next == arrival).is_some();
            assert!(there || !must, "lost: {arrival:?}");
        }
        assert_eq!(entries.next(), None, "shown though it was forgotten, or in the wrong order");
    }
}

#[test]
fn whichever_step_fails_no_entry_is_lost_or_read_twice() {
    for failure in [Failure::Before, Failure::After, Failure::HalfWay] {
        for damage in [false, true] {
            let mut step = 1;
            while one_life(failure, damage, step) {
                step += 1;
            }
            assert!(step > 30, "only {step} steps were tried");
        }
    }
}

/// Uses a spill of which one step fails. Returns whether that step was reached.
fn one_life(failure: Failure, damage: bool, step: usize) -> bool {
    let home = home();
    let (spill, left) = flaky(&home, failure);
    left.store(step, Ordering::SeqCst);
    let mut ledger = SpillModel::default();
    for round in 0..4 {
        ledger.keep(&spill);
        ledger.keep(&spill);
        if damage && round == 2 {
            damage_the_oldest(&home, &mut ledger);
        }
        ledger.empty_half(&spill);
        ledger.keep(&spill);
    }
    let reached = left.load(Ordering::SeqCst) == 0;
    ledger.check(&spill.waiting().unwrap_or_else(|_| spill.waiting().unwrap()));
    drop(spill);
    let spill = home.open();
    ledger.check(&spill.waiting().unwrap());
    ledger.keep(&spill);
    ledger.check(&spill.waiting().unwrap());
    reached
}

fn damage_the_oldest(home: &SpillFolder, ledger: &mut SpillModel) {
    let mut file = fs::read(&home.path).unwrap();
    file[30] ^= 1;
    fs::write(&home.path, file).unwrap();
    if let Some((_, must)) = ledger.owed.iter_mut().find(|(_, must)| *must) {
        *must = false;
    }
}
