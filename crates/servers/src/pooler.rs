//! PgBouncer in transaction mode in front of a PostgreSQL: two statements outside a transaction can use different
//! sessions.

use crate::guardian::{Guardian, ServerHome, started};
use crate::postgres::Postgres;
use crate::program::{User, program};
use std::fs;
use std::net::{Ipv4Addr, TcpStream};

const NAME: &str = "quittance";

#[derive(Debug)]
pub struct Pooler {
    guardian: Guardian,
    port: u16,
}

impl Pooler {
    /// Starts PgBouncer in front of this server. It is ready when this returns.
    ///
    /// # Panics
    /// With the log, if PgBouncer does not start.
    #[must_use]
    pub fn start(postgres: &Postgres) -> Self {
        let prepare = |port| {
            let home = ServerHome::new(User::not_root());
            let file = home.dir.join("pgbouncer.ini");
            fs::write(&file, config(port, postgres.port())).expect("a new directory can be written");
            home.guarded("KILL", [program("pgbouncer").into_os_string(), file.into_os_string()])
        };
        let (guardian, port) = started("PgBouncer", prepare, |_, port| listens(port));
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

    /// The process id of PgBouncer.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.guardian.pid()
    }

    /// Kills PgBouncer with SIGKILL. It is gone when this returns.
    pub fn kill(&mut self) {
        self.guardian.kill();
    }

    /// Starts PgBouncer again on the same port. It is ready when this returns.
    ///
    /// # Panics
    /// With the log, if PgBouncer does not start.
    pub fn start_again(&mut self) {
        self.guardian.start();
        if let Err(log) = self.guardian.ready(|_| listens(self.port)) {
            panic!("PgBouncer does not start again: {log}");
        }
    }

    /// Stops PgBouncer with SIGSTOP: clients stay connected and get no reply.
    pub fn pause(&self) {
        self.guardian.pause();
    }

    pub fn resume(&self) {
        self.guardian.resume();
    }
}

fn listens(port: u16) -> bool {
    TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_ok()
}

fn config(port: u16, postgres: u16) -> String {
    format!(
        "[databases]\n* = host=127.0.0.1 port={postgres} user={NAME}\n\
         [pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = {port}\nunix_socket_dir =\nauth_type = any\n\
         pool_mode = transaction\ndefault_pool_size = 10\nmax_client_conn = 500\n"
    )
}
