//! A guardian is a small shell process that runs one server and owns its directory. It reads from a pipe whose other
//! end only this process holds. When that end closes, because the owner was dropped or this process was killed, the
//! guardian stops the server and removes the directory.

use crate::port::free_port;
use crate::proc::{children, is_alive, signal};
use crate::program::User;
use crate::until::until;
use rustix::process::Signal;
use std::ffi::OsString;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::chown;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

const SCRIPT: &str = include_str!("guardian.sh");
/// How many bytes at the end of a log are shown.
const LOG_SHOWN: usize = 4_000;

/// A directory for a server that does not run yet, owned by the user that will run it.
#[derive(Debug)]
pub(crate) struct ServerHome {
    pub(crate) dir: PathBuf,
    pub(crate) user: Option<User>,
}

impl ServerHome {
    pub(crate) fn new(user: Option<User>) -> Self {
        let made = tempfile::Builder::new().prefix("quittance-servers-").tempdir();
        let dir = made.expect("there is room for a directory").keep();
        if let Some(user) = user {
            chown(&dir, Some(user.id), Some(user.group)).expect("root may give away what it has made");
        }
        Self { dir, user }
    }

    /// A command that runs in the directory, as its owner.
    pub(crate) fn command(&self, program: &Path) -> Command {
        let mut command = Command::new(program);
        command.current_dir(&self.dir).stdin(Stdio::null());
        if let Some(user) = self.user {
            command.uid(user.id).gid(user.group);
        }
        command
    }

    /// Hands the directory to a guardian process, which runs this command on request and stops it with this signal.
    pub(crate) fn guarded(self, last: &str, command: impl IntoIterator<Item = OsString>) -> Guardian {
        let mut guardian = self.command(Path::new("/bin/sh"));
        guardian.args(["-c", SCRIPT, "guardian"]).arg(&self.dir).arg(last).args(command);
        // A terminal's Ctrl-C is for the test; what it leaves behind is cleared away in peace.
        guardian.process_group(0).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut shell = guardian.spawn().expect("there is a shell");
        let orders = shell.stdin.take();
        let pids = BufReader::new(shell.stdout.take().expect("it is piped"));
        Guardian { shell, orders, pids, dir: self.dir, pid: 0 }
    }
}

/// How many ports are tried: another process can take a port that was found free.
const STARTS_MAX: u32 = 5;

/// Starts a server on a free port. It is ready when this returns.
pub(crate) fn started(
    name: &str,
    prepare: impl Fn(u16) -> Guardian,
    is_ready: impl Fn(&Guardian, u16) -> bool,
) -> (Guardian, u16) {
    let mut why = String::new();
    for _ in 0..STARTS_MAX {
        let port = free_port();
        let mut guardian = prepare(port);
        guardian.start();
        match guardian.ready(|guardian| is_ready(guardian, port)) {
            Ok(()) => return (guardian, port),
            Err(log) => why = log,
        }
        if !why.contains("in use") {
            break;
        }
    }
    panic!("{name} does not start: {why}");
}

#[derive(Debug)]
pub(crate) struct Guardian {
    shell: Child,
    orders: Option<ChildStdin>,
    pids: BufReader<ChildStdout>,
    dir: PathBuf,
    pid: u32,
}

impl Guardian {
    /// Starts the server. When this returns, it has a process id, but may not be ready.
    pub(crate) fn start(&mut self) {
        let orders = self.orders.as_mut().expect("it is open until the end");
        orders.write_all(b"start\n").expect("a guardian listens");
        let mut line = String::new();
        self.pids.read_line(&mut line).expect("a guardian speaks");
        self.pid = line.trim().parse().unwrap_or_else(|_| panic!("no number of a process: `{line}`"));
    }

    pub(crate) fn pid(&self) -> u32 {
        self.pid
    }

    pub(crate) fn dir(&self) -> &Path {
        &self.dir
    }

    pub(crate) fn log(&self) -> String {
        let log = fs::read(self.dir.join("log")).unwrap_or_default();
        String::from_utf8_lossy(&log[log.len().saturating_sub(LOG_SHOWN)..]).into_owned()
    }

    /// Waits until the server is ready.
    ///
    /// # Errors
    /// The server's log, if it ended or did not get ready.
    pub(crate) fn ready(&self, is_ready: impl Fn(&Self) -> bool) -> Result<(), String> {
        let outcome = until(|| match is_alive(self.pid) {
            true => is_ready(self).then_some(true),
            false => Some(false),
        });
        if outcome == Some(true) { Ok(()) } else { Err(self.log()) }
    }

    /// Kills the server and all its children with SIGKILL. They are gone when this returns.
    pub(crate) fn kill(&mut self) {
        // Stopped, it has no more children while they are counted.
        signal(self.pid, Signal::STOP);
        let mut family = children(self.pid);
        family.push(self.pid);
        family.iter().for_each(|pid| signal(*pid, Signal::KILL));
        let gone = until(|| family.iter().all(|pid| !is_alive(*pid)).then_some(()));
        assert!(gone.is_some(), "{} was killed and lives", self.pid);
    }

    pub(crate) fn pause(&self) {
        signal(self.pid, Signal::STOP);
        children(self.pid).into_iter().for_each(|pid| signal(pid, Signal::STOP));
    }

    pub(crate) fn resume(&self) {
        children(self.pid).into_iter().for_each(|pid| signal(pid, Signal::CONT));
        signal(self.pid, Signal::CONT);
    }
}

impl Drop for Guardian {
    fn drop(&mut self) {
        self.orders = None;
        _ = self.shell.wait();
    }
}
