//! A Redis server.

use crate::guardian::{Guardian, ServerHome, started};
use crate::program::program;
use std::ffi::OsString;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpStream};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::OnceLock;
use std::time::Duration;

const REPLY_WAIT: Duration = Duration::from_millis(500);

#[derive(Debug)]
pub struct Redis {
    guardian: Guardian,
    port: u16,
}

impl Redis {
    /// Starts a server with additional arguments: `Redis::start(&["--appendonly", "yes"])`. It takes no snapshots by
    /// itself.
    ///
    /// # Panics
    /// With the log, if the server does not start.
    #[must_use]
    pub fn start(args: &[&str]) -> Self {
        Self::launch(|port, dir| {
            let mut all = vec!["--port".into(), port.to_string().into(), "--dir".into(), dir.into()];
            all.extend(["--bind", "127.0.0.1", "--save", ""].map(OsString::from));
            all.extend(args.iter().map(OsString::from));
            all
        })
    }

    /// Starts a server with arguments that depend on its port and directory.
    pub(crate) fn launch(args: impl Fn(u16, &Path) -> Vec<OsString>) -> Self {
        let prepare = |port| {
            let home = ServerHome::new(None);
            let mut command = vec![program("redis-server").into_os_string()];
            command.extend(args(port, &home.dir));
            home.guarded("KILL", command)
        };
        let (guardian, port) = started("Redis", prepare, |_, port| answers(port));
        Self { guardian, port }
    }

    #[must_use]
    pub fn url(&self) -> String {
        format!("redis://127.0.0.1:{}", self.port)
    }

    #[must_use]
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The process id of the server.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.guardian.pid()
    }

    /// Runs a command with `redis-cli` and returns the output.
    ///
    /// # Panics
    /// If there is no `redis-cli`.
    pub fn command(&self, args: &[&str]) -> String {
        let mut cli = Command::new(program("redis-cli"));
        cli.args(["-h", "127.0.0.1", "-p", &self.port.to_string()]).args(args).stdin(Stdio::null());
        let ran = cli.output().expect("redis-cli can be started");
        let text = if ran.status.success() { ran.stdout } else { ran.stderr };
        String::from_utf8_lossy(&text).trim().to_owned()
    }

    /// Kills the server with SIGKILL. It is gone when this returns.
    pub fn kill(&mut self) {
        self.guardian.kill();
    }

    /// Starts the server again on the same port with the same files. It is ready when this returns.
    ///
    /// # Panics
    /// With the log, if the server does not start.
    pub fn start_again(&mut self) {
        self.guardian.start();
        if let Err(log) = self.guardian.ready(|_| answers(self.port)) {
            panic!("Redis does not start again: {log}");
        }
    }

    /// Stops the server with SIGSTOP: clients stay connected and get no reply.
    pub fn pause(&self) {
        self.guardian.pause();
    }

    pub fn resume(&self) {
        self.guardian.resume();
    }
}

/// Whether the server has loaded its data and accepts commands.
fn answers(port: u16) -> bool {
    let ping = || -> Option<bool> {
        let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).ok()?;
        stream.set_read_timeout(Some(REPLY_WAIT)).ok()?;
        stream.write_all(b"PING\r\n").ok()?;
        let mut reply = [0; 7];
        stream.read_exact(&mut reply).ok()?;
        Some(&reply == b"+PONG\r\n")
    };
    ping().unwrap_or(false)
}

/// A server for all tests of a process, with the most durable settings of Redis. It starts on first use and stops
/// with the process.
///
/// # Panics
/// With the log, if the server does not start.
pub fn shared_redis() -> &'static Redis {
    static SHARED: OnceLock<Redis> = OnceLock::new();
    SHARED.get_or_init(|| Redis::start(&["--appendonly", "yes", "--appendfsync", "always"]))
}
