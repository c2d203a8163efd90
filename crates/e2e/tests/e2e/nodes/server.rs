//! The shared store, as a server that a test can break.

use quittance_servers::{Postgres, Redis};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ServerKind {
    Redis,
    Postgres,
}

#[derive(Debug)]
pub(crate) enum StoreServer {
    Redis(Redis),
    Postgres(Postgres),
}

impl StoreServer {
    /// Starts the server with the settings under which it keeps acknowledged writes.
    pub(crate) fn start(which: ServerKind) -> Self {
        match which {
            ServerKind::Redis => {
                Self::Redis(Redis::start(&["--appendonly", "yes", "--appendfsync", "always"]))
            }
            ServerKind::Postgres => Self::Postgres(Postgres::start(&[])),
        }
    }

    /// The address of the store at this port: its own port, or that of a tap before it.
    pub(crate) fn url_at(&self, port: u16) -> String {
        match self {
            Self::Redis(_) => format!("redis://127.0.0.1:{port}"),
            Self::Postgres(_) => format!("postgres://quittance@127.0.0.1:{port}/quittance"),
        }
    }

    pub(crate) fn port(&self) -> u16 {
        match self {
            Self::Redis(redis) => redis.port(),
            Self::Postgres(postgres) => postgres.port(),
        }
    }

    pub(crate) fn url(&self) -> String {
        self.url_at(self.port())
    }

    pub(crate) fn kill(&mut self) {
        match self {
            Self::Redis(redis) => redis.kill(),
            Self::Postgres(postgres) => postgres.kill(),
        }
    }

    pub(crate) fn start_again(&mut self) {
        match self {
            Self::Redis(redis) => redis.start_again(),
            Self::Postgres(postgres) => postgres.start_again(),
        }
    }

    pub(crate) fn pause(&self) {
        match self {
            Self::Redis(redis) => redis.pause(),
            Self::Postgres(postgres) => postgres.pause(),
        }
    }

    pub(crate) fn resume(&self) {
        match self {
            Self::Redis(redis) => redis.resume(),
            Self::Postgres(postgres) => postgres.resume(),
        }
    }

    /// Makes the server refuse writes, or accept them again.
    pub(crate) fn read_only(&self, is_so: bool) {
        match self {
            Self::Redis(redis) => {
                let replicas = if is_so { "3" } else { "0" };
                assert_eq!(redis.command(&["config", "set", "min-replicas-to-write", replicas]), "OK");
            }
            Self::Postgres(postgres) => {
                let value = if is_so { "on" } else { "off" };
                postgres.sql(&format!(
                    "ALTER SYSTEM SET default_transaction_read_only = {value}; SELECT pg_reload_conf()"
                ));
            }
        }
    }

    /// How many commands or transactions the server has run since it was started.
    pub(crate) fn work(&self) -> u64 {
        let output = match self {
            Self::Redis(redis) => {
                let stats = redis.command(&["info", "stats"]);
                let line = stats.lines().find_map(|line| line.strip_prefix("total_commands_processed:"));
                line.expect("Redis counts").trim().to_owned()
            }
            Self::Postgres(postgres) => postgres.sql(
                "SELECT sum(xact_commit + xact_rollback) FROM pg_stat_database WHERE datname = 'quittance'",
            ),
        };
        output.parse().unwrap_or_else(|_| panic!("no number: {output}"))
    }
}
