//! What a spill promises while its disk works.

use super::any::Any;
use super::cases::{arrival, called_back};
use crate::disk::beside;
use crate::{SpillFile, encode_incoming};
use quittance_lifecycle::Event;
use quittance_ports::{IncomingEvent, Spill, SpillError};
use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};

pub(super) const BYTES_MAX: u64 = 1 << 20;

pub(super) struct SpillFolder {
    _folder: tempfile::TempDir,
    pub(super) path: PathBuf,
}

pub(super) fn home() -> SpillFolder {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("spill");
    SpillFolder { _folder: folder, path }
}

impl SpillFolder {
    pub(super) fn open(&self) -> SpillFile {
        SpillFile::open(&self.path, BYTES_MAX).unwrap()
    }

    /// The content of the file after these events were kept.
    fn file_of(&self, arrivals: &[IncomingEvent]) -> Vec<u8> {
        drop(fs::remove_file(&self.path));
        let spill = self.open();
        arrivals.iter().for_each(|arrival| spill.keep(arrival).unwrap());
        fs::read(&self.path).unwrap()
    }

    pub(super) fn unreadable(&self) -> Vec<u8> {
        fs::read(beside(&self.path, ".unreadable")).unwrap_or_default()
    }
}

pub(super) fn stocked(attempts: impl IntoIterator<Item = u32>) -> Vec<IncomingEvent> {
    attempts.into_iter().map(|attempt| arrival(Event::Stocked { attempt })).collect()
}

#[test]
fn what_is_kept_waits_in_order_and_is_there_when_it_is_opened_again() {
    let home = home();
    let arrivals: Vec<_> = (0..200).map(|seed| Any(seed).arrival()).collect();
    for half in arrivals.chunks(100) {
        let spill = home.open();
        half.iter().for_each(|arrival| spill.keep(arrival).unwrap());
    }
    assert_eq!(home.open().waiting().unwrap(), arrivals);
    assert_eq!(home.open().unreadable_bytes().unwrap(), 0);
}

#[test]
fn a_tail_torn_at_any_length_loses_nothing_before_it_and_nothing_after_it() {
    let home = home();
    let incoming = vec![called_back(1), called_back(2)];
    let before = home.file_of(&incoming).len();
    let whole = home.file_of(&[called_back(1), called_back(2), called_back(3)]);
    for length in before..whole.len() {
        fs::write(&home.path, &whole[..length]).unwrap();
        let spill = home.open();
        assert_eq!(spill.waiting().unwrap(), incoming, "torn at {length}");
        spill.keep(&called_back(4)).unwrap();
        let expected = [&incoming[..], &[called_back(4)]].concat();
        assert_eq!(spill.waiting().unwrap(), expected, "torn at {length}");
        drop(spill);
        assert_eq!(home.open().waiting().unwrap(), expected, "torn at {length}");
    }
}

#[test]
fn a_tail_of_zeros_as_power_loss_leaves_it_is_no_obstacle() {
    let home = home();
    let mut file = home.file_of(&[called_back(1)]);
    file.extend([0; 5000]);
    fs::write(&home.path, file).unwrap();
    let spill = home.open();
    spill.keep(&called_back(2)).unwrap();
    assert_eq!(spill.waiting().unwrap(), [called_back(1), called_back(2)]);
}

#[test]
fn an_entry_damaged_at_any_byte_is_set_aside_and_stops_nothing_else() {
    let home = home();
    let first = home.file_of(&[called_back(1)]).len();
    let second = home.file_of(&[called_back(1), called_back(2)]).len();
    let whole = home.file_of(&[called_back(1), called_back(2), called_back(3)]);
    for at in first..second {
        for damage in [0x20, whole[at] ^ 0x1e, whole[at] ^ b'\n'] {
            if damage == 0 {
                continue;
            }
            let mut file = whole.clone();
            file[at] ^= damage;
            fs::write(&home.path, &file).unwrap();
            drop(fs::remove_file(beside(&home.path, ".unreadable")));
            let spill = home.open();
            assert_eq!(spill.waiting().unwrap(), [called_back(1), called_back(3)], "damaged at {at}");
            assert_eq!(home.unreadable(), file[first..second], "damaged at {at}");
            spill.forget(1).unwrap();
            assert_eq!(spill.waiting().unwrap(), [called_back(3)], "damaged at {at}");
        }
    }
}

#[test]
fn damage_is_also_noticed_while_the_spill_is_open() {
    let home = home();
    let spill = home.open();
    stocked(0..3).iter().for_each(|arrival| spill.keep(arrival).unwrap());
    let mut file = fs::read(&home.path).unwrap();
    file[40] ^= 1;
    fs::write(&home.path, file).unwrap();
    assert_eq!(spill.waiting().unwrap(), stocked(1..3));
    assert!(spill.unreadable_bytes().unwrap() > 0);
    spill.keep(&called_back(9)).unwrap();
    spill.forget(2).unwrap();
    assert_eq!(spill.waiting().unwrap(), [called_back(9)]);
}

#[test]
fn an_entry_of_a_later_version_is_set_aside_whole_and_can_be_put_back() {
    let home = home();
    let later = String::from_utf8(encode_incoming(&called_back(2))).unwrap().replace("{\"v\":1", "{\"v\":2");
    let later = crate::frame::frame(later.as_bytes()).unwrap();
    let mut file = home.file_of(&[called_back(1)]);
    file.extend(&later);
    fs::write(&home.path, &file).unwrap();
    assert_eq!(home.open().waiting().unwrap(), [called_back(1)]);
    assert_eq!(home.unreadable(), later);
    // A person who runs the later version appends it to the spill; here it is still not understood, and not lost.
    let put_back = [fs::read(&home.path).unwrap(), home.unreadable()].concat();
    fs::write(&home.path, put_back).unwrap();
    assert_eq!(home.open().waiting().unwrap(), [called_back(1)]);
    assert_eq!(home.unreadable(), [&later[..], &later[..]].concat());
}

#[test]
fn an_answer_that_looks_like_an_entry_is_not_taken_for_one() {
    let home = home();
    let inner = crate::frame::frame(&encode_incoming(&called_back(1))).unwrap();
    let task = String::from_utf8(inner).unwrap();
    let forged = arrival(Event::Submitted {
        attempt: 1,
        outcome: quittance_lifecycle::SubmitOutcome::Accepted { task },
    });
    let mut file = home.file_of(std::slice::from_ref(&forged));
    assert_eq!(home.open().waiting().unwrap(), [forged]);
    file[30] ^= 1;
    fs::write(&home.path, &file).unwrap();
    assert_eq!(home.open().waiting().unwrap(), []);
    assert_eq!(home.unreadable(), file);
}

#[test]
fn forgetting_removes_the_oldest_and_only_them() {
    for count in 0..=6 {
        let home = home();
        let spill = home.open();
        stocked(0..5).iter().for_each(|arrival| spill.keep(arrival).unwrap());
        spill.forget(count).unwrap();
        let rest = stocked(u32::try_from(count).unwrap().min(5)..5);
        assert_eq!(spill.waiting().unwrap(), rest);
        spill.keep(&called_back(9)).unwrap();
        drop(spill);
        assert_eq!(home.open().waiting().unwrap(), [rest, vec![called_back(9)]].concat());
    }
}

#[test]
fn entries_that_were_read_can_be_forgotten_one_by_one() {
    let home = home();
    let spill = home.open();
    let arrivals: Vec<_> = (0..8).map(|seed| Any(seed).arrival()).collect();
    arrivals.iter().for_each(|arrival| spill.keep(arrival).unwrap());
    (0..5).for_each(|_| spill.forget(1).unwrap());
    assert_eq!(spill.waiting().unwrap(), arrivals[5..]);
}

#[test]
fn what_is_kept_between_showing_and_forgetting_stays() {
    let home = home();
    let spill = home.open();
    stocked(0..3).iter().for_each(|arrival| spill.keep(arrival).unwrap());
    let entries = spill.waiting().unwrap();
    stocked(3..5).iter().for_each(|arrival| spill.keep(arrival).unwrap());
    spill.forget(entries.len()).unwrap();
    assert_eq!(spill.waiting().unwrap(), stocked(3..5));
}

#[test]
fn many_may_append_while_one_empties_and_each_entry_comes_once_and_in_order() {
    const KEEPERS: u32 = 4;
    const EACH: u32 = 40;
    let home = home();
    let spill = home.open();
    let done = AtomicBool::new(false);
    let mut received: Vec<IncomingEvent> = Vec::new();
    std::thread::scope(|scope| {
        let keepers: Vec<_> = (0..KEEPERS)
            .map(|keeper| {
                let spill = &spill;
                let mine = stocked((0..EACH).map(move |n| keeper * 1000 + n));
                scope.spawn(move || mine.iter().for_each(|arrival| spill.keep(arrival).unwrap()))
            })
            .collect();
        let (spill, received, done) = (&spill, &mut received, &done);
        scope.spawn(move || {
            loop {
                let last = done.load(Ordering::SeqCst);
                // Not all of them at once, so that the rest is moved to a new file under the keepers' hands.
                let mut entries = spill.waiting().unwrap();
                entries.truncate(entries.len().div_ceil(2));
                spill.forget(entries.len()).unwrap();
                if last && entries.is_empty() {
                    break;
                }
                received.append(&mut entries);
            }
        });
        keepers.into_iter().for_each(|keeper| keeper.join().unwrap());
        done.store(true, Ordering::SeqCst);
    });
    let mut by_keeper: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
    for arrival in received {
        let Event::Stocked { attempt } = arrival.event else { panic!() };
        by_keeper.entry(attempt / 1000).or_default().push(attempt % 1000);
    }
    assert_eq!(by_keeper, (0..KEEPERS).map(|keeper| (keeper, (0..EACH).collect())).collect());
}

#[test]
fn a_full_spill_says_so_loses_nothing_and_takes_more_when_it_is_emptied() {
    let home = home();
    let one = home.file_of(&stocked([1])).len() as u64;
    fs::remove_file(&home.path).unwrap();
    let spill = SpillFile::open(&home.path, 3 * one).unwrap();
    stocked(0..3).iter().for_each(|arrival| spill.keep(arrival).unwrap());
    let refused = spill.keep(&stocked([3])[0]);
    assert!(matches!(refused, Err(SpillError::Full { bytes_max }) if bytes_max == 3 * one));
    assert_eq!(spill.waiting().unwrap(), stocked(0..3));
    spill.forget(1).unwrap();
    spill.keep(&stocked([3])[0]).unwrap();
    assert_eq!(spill.waiting().unwrap(), stocked(1..4));
    drop(spill);
    let smaller = SpillFile::open(&home.path, one).unwrap();
    assert!(matches!(smaller.keep(&called_back(1)), Err(SpillError::Full { .. })));
    assert_eq!(smaller.waiting().unwrap(), stocked(1..4));
}

#[test]
fn only_one_has_it_open_at_a_time() {
    let home = home();
    let first = home.open();
    let second = SpillFile::open(&home.path, BYTES_MAX).unwrap_err();
    assert!(matches!(second, SpillError::Io(error) if error.kind() == std::io::ErrorKind::ResourceBusy));
    drop(first);
    home.open();
}

#[cfg(unix)]
#[test]
fn only_the_owner_may_read_any_of_its_files() {
    use std::os::unix::fs::PermissionsExt;
    let home = home();
    let file = home.file_of(&[called_back(1), called_back(2), called_back(3)]);
    fs::write(&home.path, [&file[..], b"torn"].concat()).unwrap();
    fs::set_permissions(&home.path, fs::Permissions::from_mode(0o644)).unwrap();
    home.open().forget(1).unwrap();
    for suffix in ["", ".lock", ".unreadable"] {
        let mode = fs::metadata(beside(&home.path, suffix)).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "spill{suffix}");
    }
    assert!(!beside(&home.path, ".new").exists());
}
