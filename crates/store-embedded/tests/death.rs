//! Tests with child processes that are killed, refused, or out of disk space. It is a separate test binary whose
//! tests run in turn, because a child that is just starting still holds the locks of its parent.
#![cfg(unix)]
#![expect(clippy::unwrap_used, reason = "a test that cannot go on should stop")]
#![expect(clippy::print_stdout, reason = "a child tells its parent what it did")]

use quittance_lifecycle::{Counters, Key, Order};
use quittance_ports::conformance::drive;
use quittance_ports::conformance::samples::{self, START, SampleOrder};
use quittance_ports::{Commit, Day, Store, StoreError, Version, Which};
use quittance_store_embedded::{DATABASE, EmbeddedOpenError, EmbeddedStore, LOCK};
use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// The variable that names the store to a child.
const DIR: &str = "QUITTANCE_TEST_STORE";
const ROUND: &str = "QUITTANCE_TEST_ROUND";

fn turn() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::new(());
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}

fn now<T>(future: impl Future<Output = T>) -> T {
    drive(Duration::from_secs(60), future)
}

/// Runs this test in a child process.
fn child(command: &mut Command, test: &str, dir: &Path) {
    command.args(["--exact", test, "--nocapture", "--test-threads=1"]).env(DIR, dir);
}

fn this() -> PathBuf {
    std::env::current_exe().unwrap()
}

/// The store of the child, or `None` in the parent.
fn store_of_child() -> Option<PathBuf> {
    std::env::var_os(DIR).map(PathBuf::from)
}

/// Four steps of the life of an order.
fn steps(name: &str) -> [Arc<Order>; 4] {
    let queued = samples::queued(name, START);
    let make = [samples::submitting, samples::solving, samples::solved];
    let [submitting, solving, solved] = make.map(|make| {
        Arc::new(Order { terms: Arc::clone(&queued.order.terms), ..(*make(name, START).order).clone() })
    });
    [queued.order, submitting, solving, solved]
}

const CALLERS: usize = 8;

/// Writes until the process is killed, and prints each acknowledgement.
fn write_for_ever(dir: &Path, round: &str) -> ! {
    let store = EmbeddedStore::open(dir).unwrap();
    let counters = Counters { asked: 1, ..Counters::default() };
    std::thread::scope(|scope| {
        for caller in 0..CALLERS {
            let (store, counters) = (&store, &counters);
            scope.spawn(move || {
                for n in 0.. {
                    let name = format!("{round}-{caller}-{n}");
                    let mut version = Version::ABSENT;
                    for (step, order) in steps(&name).iter().enumerate() {
                        match now(store.commit(version, order, counters, START)).unwrap() {
                            Commit::Done(next) => version = next,
                            Commit::Conflict(record) => panic!("only this test writes {name}: {record:?}"),
                        }
                        println!("\nack {name} {step} {}", version.0);
                    }
                }
            });
        }
    });
    unreachable!("the parent kills it")
}

struct Ack {
    name: String,
    step: usize,
    version: Version,
}

impl Ack {
    /// Reads a line, of which the last one may be cut off.
    fn read(line: &str) -> Option<Self> {
        let mut words = line.strip_prefix("ack ")?.split(' ');
        let (name, step, version) = (words.next()?, words.next()?, words.next()?);
        Some(Self { name: name.into(), step: step.parse().ok()?, version: Version(version.parse().ok()?) })
    }
}

/// Lets a child write, kills it after `lines` lines, and returns all that it acknowledged.
fn kill_after(lines: usize, dir: &Path, round: usize, test: &str) -> Vec<Ack> {
    let mut command = Command::new(this());
    child(&mut command, test, dir);
    let mut writer = command.env(ROUND, format!("r{round}")).stdout(Stdio::piped()).spawn().unwrap();
    let mut acks = Vec::new();
    let mut output = BufReader::new(writer.stdout.take().unwrap()).split(b'\n');
    let mut read = |acks: &mut Vec<Ack>| {
        let line = output.next().map(Result::unwrap);
        line.map(|line| acks.extend(Ack::read(&String::from_utf8_lossy(&line)))).is_some()
    };
    while acks.len() < lines && read(&mut acks) {}
    // SIGKILL: it has no time for anything.
    writer.kill().unwrap();
    while read(&mut acks) {}
    assert!(!writer.wait().unwrap().success());
    acks
}

#[test]
fn every_acknowledged_write_survives_a_kill_at_any_moment_and_nothing_is_half_written() {
    const TEST: &str = "every_acknowledged_write_survives_a_kill_at_any_moment_and_nothing_is_half_written";
    if let Some(dir) = store_of_child() {
        write_for_ever(&dir, &std::env::var(ROUND).unwrap());
    }
    let _turn = turn();
    let dir = tempfile::tempdir().unwrap();
    let mut acknowledged: BTreeMap<String, Ack> = BTreeMap::new();
    let mut dice = 1_u64;
    for round in 0..30 {
        dice = dice.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        // Now and then while it is still being opened.
        let lines = usize::try_from(dice >> 33).unwrap() % if round % 5 == 0 { 2 } else { 700 };
        for ack in kill_after(lines, dir.path(), round, TEST) {
            let name = ack.name.clone();
            let last = acknowledged.get(&name).map_or(Version::ABSENT, |ack| ack.version);
            if ack.version > last {
                acknowledged.insert(name, ack);
            }
        }
        let store = EmbeddedStore::open(dir.path()).expect("what a crash left behind opens");
        check(&store, &acknowledged);
    }
    assert!(acknowledged.len() > 500, "only {} orders were acknowledged", acknowledged.len());
}

fn check(store: &EmbeddedStore, acknowledged: &BTreeMap<String, Ack>) {
    assert_eq!(store.unreadable(), []);
    for Ack { name, step, version } in acknowledged.values() {
        let steps = steps(name);
        let record = now(store.load(&steps[0].key)).unwrap();
        let record = record.unwrap_or_else(|| panic!("{name} was acknowledged, and is gone"));
        assert!(record.version >= *version, "{name} fell back to {:?} from {version:?}", record.version);
        if record.version == *version {
            assert_eq!(record.order, steps[*step], "{name}");
        } else {
            assert!(steps[*step..].contains(&record.order), "{name} is in no state that it was ever in");
        }
    }
    // Whatever else is there was written whole, with its usage.
    let all = now(store.list(Which::ALL, None, usize::MAX)).unwrap();
    let commits: u64 = all
        .iter()
        .map(|record| match record.as_ref().unwrap().order.phase.name() {
            "queued" => 1,
            "submitting" => 2,
            "solving" => 3,
            "solved" => 4,
            other => panic!("no test wrote {other}"),
        })
        .sum();
    let usage = now(store.usage(Day(0), Day(u64::MAX))).unwrap();
    assert_eq!(usage.iter().map(|(_, counters)| counters.asked).sum::<u64>(), commits);
}

#[test]
fn a_second_process_learns_which_process_has_the_store_and_what_to_do() {
    if let Some(dir) = store_of_child() {
        match EmbeddedStore::open(&dir) {
            Err(error @ EmbeddedOpenError::InUse { .. }) => println!("\nrefused: {error}"),
            other => println!("\nopened: {other:?}"),
        }
        return;
    }
    let _turn = turn();
    let dir = tempfile::tempdir().unwrap();
    let run = || {
        let mut command = Command::new(this());
        child(&mut command, "a_second_process_learns_which_process_has_the_store_and_what_to_do", dir.path());
        String::from_utf8(command.output().unwrap().stdout).unwrap()
    };
    let store = EmbeddedStore::open(dir.path()).unwrap();
    let acks = run();
    let path = dir.path().canonicalize().unwrap();
    let pid = format!("process {}", std::process::id());
    for part in ["refused: ", path.to_str().unwrap(), &pid, "Wait until it ends, or stop it"] {
        assert!(acks.contains(part), "{part} is missing in: {acks}");
    }
    drop(store);
    assert!(run().contains("opened: Ok"), "it is free again");
}

/// Runs the child as a user without rights, because root can write everywhere.
fn as_another_user(dir: &Path, test: &str) -> String {
    let place = tempfile::tempdir().unwrap();
    fs::set_permissions(place.path(), PermissionsExt::from_mode(0o755)).unwrap();
    let binary = place.path().join("test");
    fs::copy(this(), &binary).unwrap();
    let mut command = Command::new(&binary);
    child(&mut command, test, dir);
    if rustix::process::geteuid().is_root() {
        command.uid(65534).gid(65534);
    }
    let output = command.current_dir(place.path()).output().unwrap();
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn a_directory_that_cannot_be_written_is_refused_with_its_name_and_nothing_is_lost() {
    const TEST: &str = "a_directory_that_cannot_be_written_is_refused_with_its_name_and_nothing_is_lost";
    if let Some(dir) = store_of_child() {
        for dir in [dir.join("store"), dir.join("new")] {
            match EmbeddedStore::open(&dir) {
                Err(error @ EmbeddedOpenError::NotWritable { .. }) => println!("\nrefused: {error}"),
                other => println!("\nopened: {other:?}"),
            }
        }
        return;
    }
    let _turn = turn();
    let parent = tempfile::tempdir().unwrap();
    let dir = parent.path().join("store");
    let order = samples::queued("kept", START).order;
    let store = EmbeddedStore::open(&dir).unwrap();
    let done = now(store.commit(Version::ABSENT, &order, &Counters::default(), START)).unwrap();
    assert!(matches!(done, Commit::Done(_)));
    drop(store);
    let chmod = |path: &Path, mode| fs::set_permissions(path, PermissionsExt::from_mode(mode)).unwrap();
    for name in [DATABASE, LOCK] {
        chmod(&dir.join(name), 0o444);
    }
    chmod(&dir, 0o555);
    chmod(parent.path(), 0o555);
    let acks = as_another_user(parent.path(), TEST);
    let refused: Vec<_> = acks.lines().filter(|line| line.starts_with("refused: ")).collect();
    assert_eq!(refused.len(), 2, "{acks}");
    assert!(
        refused[0].contains(dir.to_str().unwrap()) && refused[0].contains("let this user write"),
        "{acks}"
    );
    assert!(refused[1].contains("/new"), "{acks}");
    chmod(parent.path(), 0o755);
    chmod(&dir, 0o700);
    for name in [DATABASE, LOCK] {
        chmod(&dir.join(name), 0o600);
    }
    let store = EmbeddedStore::open(&dir).unwrap();
    assert_eq!(now(store.load(&order.key)).unwrap().unwrap().order, order);
}

/// A large order: a few of them fill the disk of the child.
fn bulky(n: usize) -> Arc<Order> {
    let draft = samples::draft("https://example.com/wall").with("picture", vec![7; 30_000]);
    SampleOrder::placed(&format!("bulky {n}"), draft, &samples::riddle(), START).order
}

fn place(store: &EmbeddedStore, order: &Arc<Order>) -> Result<Commit, StoreError> {
    now(store.commit(Version::ABSENT, order, &Counters { asked: 1, ..Counters::default() }, START))
}

/// Limits the file size, as a full disk does, and later raises the limit again.
fn live_on_a_small_disk(dir: &Path) {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let mut expected: BTreeMap<Key, Arc<Order>> = BTreeMap::new();
    let check = |store: &EmbeddedStore, expected: &BTreeMap<Key, Arc<Order>>| {
        for (key, order) in expected {
            assert_eq!(&now(store.load(key)).unwrap().expect("it was acknowledged").order, order);
        }
    };
    let store = EmbeddedStore::open(dir).unwrap();
    let mut refused = 0;
    for n in 0.. {
        let order = bulky(n);
        match place(&store, &order) {
            Ok(Commit::Done(_)) => drop(expected.insert(order.key, order)),
            Ok(Commit::Conflict(record)) => panic!("only this test writes here: {record:?}"),
            Err(StoreError::Unavailable { .. }) => refused += 1,
            Err(error @ StoreError::Corrupt { .. }) => panic!("{error}"),
        }
        if refused > 20 {
            break;
        }
        assert!(n < 1000, "this disk has no end");
    }
    assert!(expected.len() > 10, "only {} were written", expected.len());
    check(&store, &expected);

    let Rlimit { maximum, .. } = getrlimit(Resource::Fsize);
    setrlimit(Resource::Fsize, Rlimit { current: maximum, maximum }).unwrap();
    for n in 2000..2020 {
        let order = bulky(n);
        assert!(matches!(place(&store, &order), Ok(Commit::Done(_))), "there is room again");
        expected.insert(order.key, order);
    }
    check(&store, &expected);
    drop(store);
    let store = EmbeddedStore::open(dir).unwrap();
    check(&store, &expected);
    assert_eq!(store.unreadable(), []);
    let all = now(store.list(Which::ALL, None, usize::MAX)).unwrap().len() as u64;
    let usage = now(store.usage(Day(0), Day(u64::MAX))).unwrap();
    assert_eq!(usage.iter().map(|(_, counters)| counters.asked).sum::<u64>(), all, "usage and orders agree");
    println!("\nsurvived with {} orders", expected.len());
}

#[test]
fn a_full_disk_loses_nothing_and_the_store_works_again_when_there_is_space() {
    const TEST: &str = "a_full_disk_loses_nothing_and_the_store_works_again_when_there_is_space";
    if let Some(dir) = store_of_child() {
        return live_on_a_small_disk(&dir);
    }
    let _turn = turn();
    let dir = tempfile::tempdir().unwrap();
    // A process that ignores the signal gets an error from the write itself.
    let mut command = Command::new("sh");
    command.args(["-c", "trap '' XFSZ; ulimit -S -f 3000; exec \"$0\" \"$@\""]).arg(this());
    child(&mut command, TEST, dir.path());
    let output = command.output().unwrap();
    let (acks, cried) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(acks.contains("survived"), "{acks}\n{cried}");
}
