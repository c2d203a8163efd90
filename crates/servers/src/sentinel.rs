//! A Redis master with one replica and a sentinel. If the master is gone, the sentinel promotes the replica within a
//! second or two. The master's name is `main`.

use crate::redis::Redis;
use crate::until::until;
use std::fs;

const QUICK: [&str; 8] = [
    "--repl-diskless-sync",
    "yes",
    "--repl-diskless-sync-delay",
    "0",
    "--repl-ping-replica-period",
    "1",
    "--appendonly",
    "yes",
];

#[derive(Debug)]
pub struct Sentinel {
    sentinel: Redis,
    master: Redis,
    replica: Redis,
}

impl Sentinel {
    /// Starts the servers. When this returns, the sentinel knows both, and the replica has the data of the master.
    ///
    /// # Panics
    /// With the log, if a server does not start.
    #[must_use]
    pub fn start() -> Self {
        let master = Redis::start(&QUICK);
        let port = master.port().to_string();
        let mut args = QUICK.to_vec();
        args.extend(["--replicaof", "127.0.0.1", &port]);
        let replica = Redis::start(&args);
        let synced = || replica.command(&["info", "replication"]).contains("master_link_status:up");
        assert!(until(|| synced().then_some(())).is_some(), "the replica never had it all");
        let sentinel = Redis::launch(|own, dir| {
            let file = dir.join("sentinel.conf");
            let config = format!(
                "port {own}\nbind 127.0.0.1\ndir {}\nsentinel monitor main 127.0.0.1 {port} 1\n\
                 sentinel down-after-milliseconds main 500\nsentinel failover-timeout main 2000\n",
                dir.display()
            );
            fs::write(&file, config).expect("a new directory can be written");
            vec![file.into(), "--sentinel".into()]
        });
        let knows = || sentinel.command(&["info", "sentinel"]).contains("status=ok");
        let replicas = || sentinel.command(&["info", "sentinel"]).contains("slaves=1");
        let ready = until(|| (knows() && replicas()).then_some(()));
        assert!(ready.is_some(), "the sentinel sees nothing: {}", sentinel.command(&["info", "sentinel"]));
        Self { sentinel, master, replica }
    }

    /// The address of the sentinel.
    #[must_use]
    pub fn url(&self) -> String {
        self.sentinel.url()
    }

    /// The first master.
    #[must_use]
    pub fn master(&self) -> &Redis {
        &self.master
    }

    /// The first replica.
    #[must_use]
    pub fn replica(&self) -> &Redis {
        &self.replica
    }

    /// Kills the first master with SIGKILL. Sentinel and replica keep running.
    pub fn kill(&mut self) {
        self.master.kill();
    }

    /// Starts the first master again. It becomes a replica.
    ///
    /// # Panics
    /// With the log, if it does not start.
    pub fn start_again(&mut self) {
        self.master.start_again();
    }

    /// Stops the first master with SIGSTOP.
    pub fn pause(&self) {
        self.master.pause();
    }

    pub fn resume(&self) {
        self.master.resume();
    }
}
