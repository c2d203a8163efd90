//! A Redis Cluster of three masters, which share all 16384 slots.

use crate::program::program;
use crate::redis::Redis;
use crate::until::until;
use std::process::{Command, Stdio};

const MASTERS: usize = 3;

#[derive(Debug)]
pub struct RedisCluster {
    nodes: Vec<Redis>,
}

impl RedisCluster {
    /// Starts a cluster. It is ready when this returns.
    ///
    /// # Panics
    /// With the tool's output, if the cluster does not start.
    #[must_use]
    pub fn start() -> Self {
        // Each talks to the others on a second port, the first and ten thousand.
        let args = ["--cluster-enabled", "yes", "--cluster-node-timeout", "2000", "--appendonly", "yes"];
        let nodes: Vec<Redis> = (0..MASTERS).map(|_| Redis::start(&args)).collect();
        let cluster = Self { nodes };
        cluster.join();
        cluster
    }

    fn join(&self) {
        let mut create = Command::new(program("redis-cli"));
        create.args(["--cluster", "create", "--cluster-yes"]).stdin(Stdio::null());
        create.args(self.nodes.iter().map(|node| format!("127.0.0.1:{}", node.port())));
        let ran = create.output().expect("redis-cli can be started");
        let text = String::from_utf8_lossy(&ran.stdout).into_owned();
        assert!(ran.status.success(), "no cluster: {text}");
        self.ready();
    }

    /// Waits until all nodes know that all slots are served.
    fn ready(&self) {
        let is_ready = |node: &Redis| node.command(&["cluster", "info"]).contains("cluster_state:ok");
        let ready = until(|| self.nodes.iter().all(is_ready).then_some(()));
        assert!(ready.is_some(), "no cluster: {}", self.nodes[0].command(&["cluster", "nodes"]));
    }

    #[must_use]
    pub fn urls(&self) -> Vec<String> {
        self.nodes.iter().map(Redis::url).collect()
    }

    /// The node with this number.
    ///
    /// # Panics
    /// If there is no such node.
    #[must_use]
    pub fn node(&self, n: usize) -> &Redis {
        &self.nodes[n]
    }

    /// Kills all nodes with SIGKILL.
    pub fn kill(&mut self) {
        self.nodes.iter_mut().for_each(Redis::kill);
    }

    /// Starts all nodes again. They are ready when this returns.
    ///
    /// # Panics
    /// With the tool's output, if the cluster does not start.
    pub fn start_again(&mut self) {
        self.nodes.iter_mut().for_each(Redis::start_again);
        self.ready();
    }

    pub fn pause(&self) {
        self.nodes.iter().for_each(Redis::pause);
    }

    pub fn resume(&self) {
        self.nodes.iter().for_each(Redis::resume);
    }
}
