//! Every format that was ever written stays readable. The files under `golden` were written by past versions.

use super::names::{every_use, uses_in};
use super::{AnyRecord, cases};
use crate::VERSION;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, OpenOptions};
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::sync::Once;

fn golden() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("golden")
}

/// Writes the missing golden files, if an environment variable is set. An existing file is never written again.
fn write_missing() {
    static ONCE: Once = Once::new();
    ONCE.call_once(write_missing_now);
}

fn write_missing_now() {
    if std::env::var("QUITTANCE_WRITE_GOLDEN").as_deref() != Ok("1") {
        return;
    }
    let folder = golden().join(format!("v{VERSION}"));
    fs::create_dir_all(&folder).unwrap();
    for (name, value) in cases::all() {
        match OpenOptions::new().write(true).create_new(true).open(folder.join(format!("{name}.json"))) {
            Ok(mut file) => file.write_all(&value.encode()).unwrap(),
            Err(error) => assert_eq!(error.kind(), ErrorKind::AlreadyExists),
        }
    }
}

/// The files of one format, by the names of their cases.
fn files(version: u64) -> BTreeMap<String, Vec<u8>> {
    let folder = golden().join(format!("v{version}"));
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    entries
        .map(|path| (path.file_stem().unwrap().to_str().unwrap().to_owned(), fs::read(&path).unwrap()))
        .collect()
}

#[test]
fn every_golden_file_is_read_as_what_was_written() {
    write_missing();
    let cases: BTreeMap<&str, AnyRecord> = cases::all().into_iter().collect();
    for version in 1..=VERSION {
        for (name, bytes) in files(version) {
            let value = cases.get(name.as_str()).unwrap_or_else(|| panic!("no case for v{version}/{name}"));
            assert_eq!(value.decode(&bytes).as_ref(), Ok(value), "v{version}/{name}");
        }
    }
}

/// Records with a field that is not written any more: the moment of the solve by the provider's clock (`solved_at`),
/// which was no evidence. These records can only be read.
const READ_ONLY: [&str; 2] = ["arrival-submitted-answered", "arrival-polled-answered"];

#[test]
fn the_current_version_still_writes_every_golden_file_byte_for_byte() {
    write_missing();
    let files = files(VERSION);
    let cases = cases::all();
    assert_eq!(files.len(), cases.len(), "a case without a file: run once with QUITTANCE_WRITE_GOLDEN=1");
    for (name, value) in cases.into_iter().filter(|(name, _)| !READ_ONLY.contains(name)) {
        let written = String::from_utf8(value.encode()).unwrap();
        let golden = String::from_utf8(files[name].clone()).unwrap();
        assert_eq!(written, golden, "{name}");
    }
}

#[test]
fn the_golden_files_use_every_name_wherever_it_can_stand() {
    let used: BTreeSet<String> =
        cases::all().iter().flat_map(|(_, value)| uses_in(&value.encode())).collect();
    let missing: Vec<_> = every_use().difference(&used).cloned().collect();
    assert!(missing.is_empty(), "in no golden file: {missing:?}");
}

#[test]
fn a_record_is_one_line_of_plain_json() {
    for (name, value) in cases::all() {
        let bytes = value.encode();
        assert!(bytes.iter().all(|byte| *byte >= b' '), "{name} contains a control character");
        let json: serde_json::Value = serde_json::from_slice(&bytes).unwrap();
        assert_eq!(json["v"], VERSION, "{name}");
    }
}
