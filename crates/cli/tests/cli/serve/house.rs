//! A folder with a configuration, a mock provider, and the daemon in it. Every started process ends with its owner.

use rustix::process::{Pid, Signal, kill_process};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use tempfile::TempDir;

pub(crate) const BINARY: &str = env!("CARGO_BIN_EXE_quittance");
pub(crate) const PROVIDER_KEY: &str = "d41d8cd98f00b204e9800998ecf8427e";
/// A timeout for everything here, also on a busy machine.
const LONG: Duration = Duration::from_secs(60);

#[expect(
    clippy::disallowed_methods,
    reason = "these tests watch real processes, so their limits are in real time"
)]
fn now() -> Instant {
    Instant::now()
}

/// Checks repeatedly until `look` returns a value.
pub(crate) fn until<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let end = now() + LONG;
    loop {
        if let Some(seen) = look() {
            return seen;
        }
        assert!(now() < end, "{what}: not within {LONG:?}");
        std::thread::park_timeout(Duration::from_millis(10));
    }
}

/// How a process ended, and everything that it printed.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) code: Option<i32>,
    pub(crate) out: String,
    pub(crate) err: String,
    pub(crate) http: String,
}

pub(crate) fn run(args: &[&str]) -> Ended {
    let folder = tempfile::tempdir().unwrap();
    finish(Command::new(BINARY).args(args).env_clear().current_dir(folder.path()))
}

fn finish(command: &mut Command) -> Ended {
    let output = command.stdin(Stdio::null()).output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    Ended {
        code: output.status.code(),
        out: text(output.stdout),
        err: text(output.stderr),
        http: String::new(),
    }
}

pub(crate) struct House {
    folder: TempDir,
    mock: Child,
}

impl Drop for House {
    fn drop(&mut self) {
        _ = self.mock.kill();
        _ = self.mock.wait();
    }
}

impl House {
    pub(crate) fn new() -> Self {
        let mut mock = Command::new(BINARY)
            .args([
                "mock",
                "--listen",
                "127.0.0.1:0",
                "--json",
                "--no-bans",
                "--speed",
                "100",
                "--key",
                PROVIDER_KEY,
            ])
            .env_clear()
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(mock.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let started: serde_json::Value = serde_json::from_str(&line).unwrap();
        let folder = tempfile::tempdir().unwrap();
        let config = format!(
            "listen = \"127.0.0.1:0\"\n[timing]\nfirst_poll = \"50ms\"\npoll_interval = \"50ms\"\n[[provider]]\nname = \
             \"main\"\ndialect = \"2captcha\"\nurl = {}\nkey_env = \"PROVIDER_KEY\"\n",
            started["url"]
        );
        std::fs::write(folder.path().join("quittance.toml"), config).unwrap();
        Self { folder, mock }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(BINARY);
        command.arg("serve").args(args);
        self.settle(&mut command);
        command
    }

    /// Applies the settings that every process in this folder gets.
    pub(crate) fn settle(&self, command: &mut Command) {
        command
            .env_clear()
            .env("PROVIDER_KEY", PROVIDER_KEY)
            .env("SHORT_KEY", "s3cr3t")
            .current_dir(self.folder.path());
    }

    /// Runs another command beside the daemon.
    pub(crate) fn run(&self, args: &[&str]) -> Ended {
        self.run_with(args, &[])
    }

    pub(crate) fn run_with(&self, args: &[&str], variables: &[(&str, &str)]) -> Ended {
        let mut command = Command::new(BINARY);
        command.args(args);
        self.settle(&mut command);
        finish(command.envs(variables.iter().copied()))
    }

    /// Starts a daemon that must fail.
    pub(crate) fn fails(&self, args: &[&str]) -> Ended {
        finish(&mut self.command(args))
    }

    pub(crate) fn serve(&self, args: &[&str]) -> Daemon {
        Daemon::start(self.command(args).stdin(Stdio::null()))
    }

    pub(crate) fn serve_with(&self, args: &[&str], variables: &[(&str, &str)]) -> Daemon {
        Daemon::start(self.command(args).envs(variables.iter().copied()).stdin(Stdio::null()))
    }
}

/// A daemon that is ready.
pub(crate) struct Daemon {
    child: Child,
    /// Everything that it printed up to `ready`.
    pub(crate) printed: String,
    /// The address for http: host and port.
    pub(crate) http: String,
    err: Option<JoinHandle<()>>,
    /// What it has written to standard error so far.
    log: Arc<Mutex<String>>,
}

impl Drop for Daemon {
    fn drop(&mut self) {
        _ = self.child.kill();
        _ = self.child.wait();
    }
}

impl Daemon {
    pub(crate) fn start(command: &mut Command) -> Self {
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let stderr = BufReader::new(child.stderr.take().unwrap());
        let log = Arc::new(Mutex::new(String::new()));
        let written = Arc::clone(&log);
        let err = std::thread::spawn(move || {
            for line in stderr.lines() {
                let mut log = written.lock().unwrap();
                log.push_str(&line.unwrap());
                log.push('\n');
            }
        });
        let (mut printed, mut out) = (String::new(), BufReader::new(child.stdout.take().unwrap()));
        while !printed.ends_with("ready\n") {
            if out.read_line(&mut printed).unwrap() == 0 {
                err.join().unwrap();
                panic!("it never got ready: {printed}{}", log.lock().unwrap());
            }
        }
        let http = printed
            .lines()
            .find_map(|line| line.strip_prefix("listening on http://"))
            .unwrap_or_default()
            .to_owned();
        Self { child, printed, http, err: Some(err), log }
    }

    /// Waits until its log has these words.
    pub(crate) fn logs(&self, words: &str) {
        until(words, || self.log.lock().unwrap().contains(words).then_some(()));
    }

    /// The rest of a printed line after these words.
    pub(crate) fn line_after(&self, words: &str) -> String {
        self.printed
            .lines()
            .find_map(|line| line.strip_prefix(words))
            .unwrap_or_else(|| panic!("{}", self.printed))
            .to_owned()
    }

    pub(crate) fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    pub(crate) fn end(self, signal: Signal) -> Ended {
        self.signal(signal);
        self.ended()
    }

    pub(crate) fn ended(mut self) -> Ended {
        let status = until("the daemon ends", || self.child.try_wait().unwrap());
        self.err.take().unwrap().join().unwrap();
        let err = self.log.lock().unwrap().clone();
        Ended { code: status.code(), out: self.printed.clone(), err, http: self.http.clone() }
    }
}

#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) body: String,
}

pub(crate) fn get(at: &str, path: &str) -> Answer {
    let mut stream = TcpStream::connect(at).unwrap();
    ask(&mut stream, path)
}

pub(crate) fn ask(stream: &mut (impl Read + Write), path: &str) -> Answer {
    write!(stream, "GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n").unwrap();
    let text = read(stream);
    let (head, body) = text.split_once("\r\n\r\n").unwrap_or((&text, ""));
    let status =
        head.split(' ').nth(1).and_then(|code| code.parse().ok()).unwrap_or_else(|| panic!("{text}"));
    Answer { status, body: body.to_owned() }
}

/// Reads until the other side has closed the connection, for whatever reason.
pub(crate) fn read(mut stream: impl Read) -> String {
    let mut bytes = Vec::new();
    _ = stream.read_to_end(&mut bytes);
    String::from_utf8_lossy(&bytes).into_owned()
}
