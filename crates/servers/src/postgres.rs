//! A PostgreSQL server with a database and a superuser, both called `quittance`. It needs no password on loopback.

use crate::guardian::{Guardian, ServerHome, started};
use crate::program::{User, beside, program};
use std::ffi::OsString;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;

const NAME: &str = "quittance";
/// The data directory within the server's directory.
const BASE: &str = "base";
/// Settings for a quick and small server. Its durability is the default, because tests need it.
const SETTINGS: [&str; 9] = [
    "listen_addresses=127.0.0.1",
    "unix_socket_directories=",
    // What it kept elsewhere would stay behind when it is killed.
    "dynamic_shared_memory_type=mmap",
    "shared_buffers=64MB",
    "max_connections=200",
    "wal_level=minimal",
    "max_wal_senders=0",
    "fsync=on",
    "log_line_prefix=%m [%p] ",
];

/// How often a statement that lost a deadlock is sent again.
const DEADLOCKS_MAX: u32 = 10;

#[derive(Debug)]
pub struct Postgres {
    guardian: Guardian,
    port: u16,
}

impl Postgres {
    /// Starts a server with additional settings: `Postgres::start(&["max_connections=20"])`.
    ///
    /// # Panics
    /// With the log, if the server does not start.
    #[must_use]
    pub fn start(settings: &[&str]) -> Self {
        let prepare = |port| {
            let home = ServerHome::new(User::not_root());
            let base = home.dir.join(BASE);
            let copied = home.command(Path::new("cp")).arg("-a").arg(template()).arg(&base).status();
            assert!(copied.is_ok_and(|status| status.success()), "there is room for a copy");
            home.guarded("QUIT", command(&base, port, settings))
        };
        let (guardian, port) = started("PostgreSQL", prepare, |guardian, _| is_ready(guardian));
        Self { guardian, port }
    }

    #[must_use]
    pub fn url(&self) -> String {
        format!("postgres://{NAME}@127.0.0.1:{}/{NAME}", self.port)
    }

    #[must_use]
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The process id of the postmaster.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.guardian.pid()
    }

    /// Runs statements with `psql -AtX`, each in its own transaction, and returns the output.
    ///
    /// # Panics
    /// With the output, if a statement fails.
    pub fn sql(&self, statements: &str) -> String {
        for _ in 0..DEADLOCKS_MAX {
            match self.psql(statements) {
                // A single statement that lost a deadlock against a node has changed nothing, so it is sent again.
                Err(error) if error.contains("deadlock detected") && is_single(statements) => {}
                outcome => return outcome.unwrap_or_else(|error| panic!("{statements}: {error}")),
            }
        }
        panic!("{statements}: {DEADLOCKS_MAX} deadlocks in a row");
    }

    fn psql(&self, statements: &str) -> Result<String, String> {
        let mut psql = Command::new(program("psql"));
        psql.args(["-AtXq", "-v", "ON_ERROR_STOP=1", "-f", "-"]).arg(self.url());
        psql.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = psql.spawn().expect("psql can be started");
        let mut input = child.stdin.take().expect("it is piped");
        // If it does not listen, it says why.
        _ = input.write_all(statements.as_bytes());
        drop(input);
        let ran = child.wait_with_output().expect("psql ends");
        if !ran.status.success() {
            return Err(String::from_utf8_lossy(&ran.stderr).into_owned());
        }
        Ok(String::from_utf8_lossy(&ran.stdout).trim().to_owned())
    }

    /// Kills the server and all its processes with SIGKILL. They are gone when this returns.
    pub fn kill(&mut self) {
        self.guardian.kill();
    }

    /// Starts the server again on the same port with the same files. It is ready when this returns.
    ///
    /// # Panics
    /// With the log, if the server does not start.
    pub fn start_again(&mut self) {
        self.guardian.start();
        if let Err(log) = self.guardian.ready(is_ready) {
            panic!("PostgreSQL does not start again: {log}");
        }
    }

    /// Stops the server and all its processes with SIGSTOP: clients stay connected and get no reply.
    pub fn pause(&self) {
        self.guardian.pause();
    }

    pub fn resume(&self) {
        self.guardian.resume();
    }
}

fn is_single(statements: &str) -> bool {
    !statements.trim_end().trim_end_matches(';').contains(';')
}

fn command(base: &Path, port: u16, settings: &[&str]) -> Vec<OsString> {
    let mut command = vec![beside(&program("initdb"), "postgres").into(), "-D".into(), base.into()];
    let port = format!("port={port}");
    for setting in SETTINGS.iter().copied().chain([port.as_str()]).chain(settings.iter().copied()) {
        command.extend(["-c".into(), setting.into()]);
    }
    command
}

/// Whether the server's file says that it is ready. The file of an earlier, killed server does not count.
fn is_ready(guardian: &Guardian) -> bool {
    let file = fs::read_to_string(guardian.dir().join(BASE).join("postmaster.pid")).unwrap_or_default();
    let is_its = file.lines().next().and_then(|pid| pid.trim().parse().ok()) == Some(guardian.pid());
    is_its && file.lines().nth(7).is_some_and(|state| state.trim() == "ready")
}

/// The files of a new server. Making them takes seconds, copying them does not.
fn template() -> PathBuf {
    static TEMPLATE: OnceLock<Guardian> = OnceLock::new();
    let guardian = TEMPLATE.get_or_init(|| {
        let home = ServerHome::new(User::not_root());
        let base = home.dir.join(BASE);
        let (initdb, postgres) = (program("initdb"), beside(&program("initdb"), "postgres"));
        let mut make = home.command(&initdb);
        make.arg("-D").arg(&base).args(["-U", NAME, "--auth=trust", "-E", "UTF8", "--locale=C", "--no-sync"]);
        let made = make.output().expect("initdb can be started");
        assert!(made.status.success(), "initdb: {}", String::from_utf8_lossy(&made.stderr));
        let mut single = home.command(&postgres);
        single.args(["--single", "-F", "-D"]).arg(&base).arg("postgres");
        single.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        let mut single = single.spawn().expect("postgres can be started");
        let mut input = single.stdin.take().expect("it is piped");
        input.write_all(format!("CREATE DATABASE {NAME}\n").as_bytes()).expect("postgres listens");
        drop(input);
        assert!(single.wait().is_ok_and(|status| status.success()), "the database can be made");
        home.guarded("KILL", [])
    });
    guardian.dir().join(BASE)
}

/// A server for all tests of a process. It starts on first use and stops with the process.
///
/// # Panics
/// With the log, if the server does not start.
pub fn shared_postgres() -> &'static Postgres {
    static SHARED: OnceLock<Postgres> = OnceLock::new();
    SHARED.get_or_init(|| Postgres::start(&[]))
}
