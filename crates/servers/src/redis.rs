//! One Redis server.

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
    /// With these arguments besides its own: `Redis::start(&["--appendonly", "yes"])`. It takes no snapshots by itself.
    ///
    /// # Panics
    /// With its log, if it does not start.
    #[must_use]
    pub fn start(args: &[&str]) -> Self {
        Self::launch(|port, dir| {
            let mut all = vec!["--port".into(), port.to_string().into(), "--dir".into(), dir.into()];
            all.extend(["--bind", "127.0.0.1", "--save", ""].map(OsString::from));
            all.extend(args.iter().map(OsString::from));
            all
        })
    }

    /// With arguments that follow from its port and its directory.
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

    /// The server's own.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.guardian.pid()
    }

    /// What `redis-cli` says to this command.
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

    /// SIGKILL, and gone when this returns.
    pub fn kill(&mut self) {
        self.guardian.kill();
    }

    /// On the same port, with what it left in its directory; ready when this returns.
    ///
    /// # Panics
    /// With its log, if it does not start.
    pub fn start_again(&mut self) {
        self.guardian.start();
        if let Err(log) = self.guardian.ready(|_| answers(self.port)) {
            panic!("Redis does not start again: {log}");
        }
    }

    /// SIGSTOP: a client is connected, and gets no reply.
    pub fn pause(&self) {
        self.guardian.pause();
    }

    pub fn resume(&self) {
        self.guardian.resume();
    }
}

/// It has read what it holds and takes commands.
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

/// One for all tests of a process, as durable as Redis can be; started on first use, gone with the process.
///
/// # Panics
/// With its log, if it does not start.
pub fn shared_redis() -> &'static Redis {
    static SHARED: OnceLock<Redis> = OnceLock::new();
    SHARED.get_or_init(|| Redis::start(&["--appendonly", "yes", "--appendfsync", "always"]))
}
