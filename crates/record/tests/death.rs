//! A process that keeps events and dies. This is a separate test binary, because a new child process still holds the
//! locks of its parent, and other tests open and close spills.

use quittance_lifecycle::{Event, Key, Timestamp};
use quittance_ports::{IncomingEvent, Spill};
use quittance_record::SpillFile;
use std::process::Command;

const CHILD: &str = "QUITTANCE_TEST_SPILL";
const BYTES_MAX: u64 = 1 << 20;

#[test]
fn what_is_kept_survives_the_death_of_the_process() {
    let arrival = |attempt| IncomingEvent {
        key: Key([7; 32]),
        born: Timestamp::ZERO,
        target: None,
        event: Event::Stocked { attempt },
    };
    if let Some(path) = std::env::var_os(CHILD) {
        let spill = SpillFile::open(path, BYTES_MAX).unwrap();
        (0..3).for_each(|attempt| spill.keep(&arrival(attempt)).unwrap());
        std::process::abort();
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("spill");
    let this = std::env::current_exe().unwrap();
    let child = Command::new(this).env(CHILD, &path).output().unwrap();
    assert!(!child.status.success(), "the child should have died");
    let waiting = SpillFile::open(&path, BYTES_MAX).unwrap().waiting().unwrap();
    assert_eq!(waiting, [0, 1, 2].map(arrival));
}
