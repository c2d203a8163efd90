//! One play in one browser, through `crates/e2e/page/play.mjs`. Play and test take turns: the play reports how far it
//! has come, and waits until the test lets it continue.

use super::KEY;
use crate::binary::{ChildProcess, drain};
use crate::serve::Serve;
use serde_json::Value;
use std::env;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{ChildStdin, ChildStdout, Command, Stdio};
use std::thread::JoinHandle;

pub(super) struct Play {
    child: ChildProcess,
    name: &'static str,
    lines: ChildStdin,
    output: BufReader<ChildStdout>,
    err: Option<JoinHandle<String>>,
}

impl Play {
    pub(super) fn start(name: &'static str, serve: &Serve) -> Self {
        let place = installed();
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("page/play.mjs");
        let mut command = Command::new("node");
        command.arg(script).args([name, &serve.http, KEY]);
        let passed_on = |name: &std::ffi::OsString| name == "PATH" || name == "QUITTANCE_SHOTS";
        command.env_clear().envs(env::vars_os().filter(|(name, _)| passed_on(name)));
        // A browser wants to keep things at home; this one has none.
        command.env("HOME", env::temp_dir()).env("QUITTANCE_BROWSER", place);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = ChildProcess::start(&mut command);
        let lines = child.0.stdin.take().expect("it is piped");
        let output = BufReader::new(child.0.stdout.take().expect("it is piped"));
        let err = Some(drain(child.0.stderr.take().expect("it is piped")));
        Self { child, name, lines, output, err }
    }

    /// Runs a play to its end, if nothing has to happen in between.
    pub(super) fn run(name: &'static str, serve: &Serve) {
        Self::start(name, serve).ends();
    }

    /// Waits until the play reports these words. It has time limits of its own, so it reports something or ends.
    pub(super) fn reaches(&mut self, words: &str) {
        let output = self.hear();
        assert_eq!(output["at"], words, "the play {} is elsewhere: {output}", self.name);
    }

    pub(super) fn goes_on(&mut self) {
        // A play that has failed hears nothing; what it says next tells why.
        _ = self.lines.write_all(b"go\n");
    }

    pub(super) fn ends(mut self) {
        let output = self.hear();
        assert_eq!(output["done"], true, "the play {} wants something: {output}", self.name);
        assert_eq!(self.child.end(), Some(0), "the play {}", self.name);
    }

    fn hear(&mut self) -> Value {
        let mut line = String::new();
        let has_line = self.output.read_line(&mut line).is_ok_and(|bytes| bytes > 0);
        if !has_line {
            self.child.kill();
            let err = self.err.take().and_then(|err| err.join().ok()).unwrap_or_default();
            panic!("the play {} failed: {err}", self.name);
        }
        serde_json::from_str(&line).unwrap_or_else(|why| panic!("{}: {why}: {line}", self.name))
    }
}

/// The folder that `scripts/browser` fills.
fn installed() -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let named = env::var_os("QUITTANCE_BROWSER").filter(|place| !place.is_empty());
    let place = root.join(named.unwrap_or_else(|| "target/browser".into()));
    assert!(place.join("stamp").exists(), "there is no browser for the tests: run scripts/browser");
    place.canonicalize().expect("it exists")
}
