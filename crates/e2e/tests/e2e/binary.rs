//! The program under test. It is built once per run, with the profile and in the folder of this test, and runs
//! without the test's own environment.

use crate::wait::{LONG, until, until_within};
use std::env;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// The variable with a binary to test in place of a new build, such as a downloaded release.
const GIVEN: &str = "QUITTANCE_BIN";

pub(crate) fn binary() -> &'static Path {
    static BINARY: OnceLock<PathBuf> = OnceLock::new();
    BINARY.get_or_init(|| env::var_os(GIVEN).map_or_else(build, PathBuf::from))
}

fn build() -> PathBuf {
    let test = env::current_exe().expect("a running test has a path");
    // TARGET/PROFILE/deps/e2e-HASH
    let profile = test.ancestors().nth(2).expect("cargo puts tests into PROFILE/deps");
    let target = profile.parent().expect("a profile has a folder of its own in the target folder");
    let name = profile.file_name().and_then(|name| name.to_str()).expect("profiles have plain names");
    let cargo = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    command.args(["build", "--locked", "--quiet", "-p", "quittance-cli", "--bin", "quittance"]);
    command.args(["--profile", if name == "debug" { "dev" } else { name }]);
    command.arg("--target-dir").arg(target).current_dir(env!("CARGO_MANIFEST_DIR"));
    let built = command.status().expect("cargo can be started");
    assert!(built.success(), "the program under test does not build");
    profile.join(format!("quittance{}", env::consts::EXE_SUFFIX))
}

/// The program with these arguments and an empty environment.
pub(crate) fn quittance<'a>(args: impl IntoIterator<Item = &'a str>) -> Command {
    let mut command = Command::new(binary());
    command.args(args).env_clear();
    command
}

/// The output and exit code of a command that has ended.
#[derive(Debug)]
pub(crate) struct Ran {
    pub(crate) code: Option<i32>,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Ran {
    /// The one JSON document on standard output. There must be no other output.
    pub(crate) fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.out).unwrap_or_else(|why| panic!("not one JSON document: {why}: {self:?}"))
    }

    /// Checks that the command ended with this code, and wrote all these words to standard error.
    #[track_caller]
    pub(crate) fn must_fail(&self, code: i32, words: &[&str]) -> &Self {
        assert_eq!(self.code, Some(code), "{self:?}");
        for word in words {
            assert!(self.err.contains(word), "`{word}` is missing: {self:?}");
        }
        self
    }

    #[track_caller]
    pub(crate) fn must_succeed(&self) -> &Self {
        assert_eq!(self.code, Some(0), "{self:?}");
        self
    }
}

/// Runs a command to its end, with nothing on standard input.
pub(crate) fn run(command: Command) -> Ran {
    run_with(command, b"")
}

/// Runs a command to its end, with this input.
pub(crate) fn run_with(command: Command, input: &[u8]) -> Ran {
    run_within(LONG, command, input)
}

/// Runs a command to its end, with a limit on its time.
pub(crate) fn run_within(limit: Duration, mut command: Command, input: &[u8]) -> Ran {
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = ChildProcess::start(&mut command);
    let mut stdin = child.0.stdin.take().expect("it is piped");
    let input = input.to_vec();
    // A command may have reasons not to read all of it.
    let fed = thread::spawn(move || _ = stdin.write_all(&input));
    let out = drain(child.0.stdout.take().expect("it is piped"));
    let err = drain(child.0.stderr.take().expect("it is piped"));
    let ended = || child.0.try_wait().expect("a child of ours can be queried");
    let code = until_within(limit, "the end of a command", ended).code();
    fed.join().expect("writing does not panic");
    let output = |stream: JoinHandle<String>| stream.join().expect("reading does not panic");
    Ran { code, out: output(out), err: output(err) }
}

/// A process that ends with its test, whatever the outcome of the test.
pub(crate) struct ChildProcess(pub(crate) Child);

impl ChildProcess {
    pub(crate) fn start(command: &mut Command) -> Self {
        Self(command.spawn().expect("the binary was built and can be started"))
    }

    /// Waits until the process has ended by itself. Returns its exit code.
    pub(crate) fn end(&mut self) -> Option<i32> {
        until("the end of a command", || self.0.try_wait().expect("a child of ours can be queried")).code()
    }

    /// Sends SIGKILL, and waits until the process is gone.
    pub(crate) fn kill(&mut self) {
        // It may have ended by itself already.
        _ = self.0.kill();
        _ = self.0.wait();
    }
}

impl Drop for ChildProcess {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Collects all output as text while the process runs, so that the process never blocks.
pub(crate) fn drain(mut from: impl Read + Send + 'static) -> JoinHandle<String> {
    thread::spawn(move || {
        let mut bytes = Vec::new();
        _ = from.read_to_end(&mut bytes);
        String::from_utf8(bytes).unwrap_or_else(|why| panic!("it does not speak UTF-8: {why}"))
    })
}
