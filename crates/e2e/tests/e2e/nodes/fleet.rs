//! Nodes that share a store and a provider. Each has a folder, a port and a public address of its own, and keeps them
//! through kills and restarts.

use crate::binary::{ChildProcess, drain};
use crate::nodes::balancer;
use crate::nodes::caller::NodeCaller;
use crate::nodes::server::StoreServer;
use crate::provider::Sim;
use crate::sandbox::Sandbox;
use crate::wait::{LONG, until};
use quittance_servers::Tap;
use rustix::process::{Pid, Signal, kill_process};
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread::{self, JoinHandle};

pub(crate) const NODES: usize = 3;

pub(crate) struct FleetNode {
    pub(crate) sandbox: Sandbox,
    /// Environment variables of this node, besides the usual ones.
    variables: Vec<(&'static str, String)>,
    child: Option<ChildProcess>,
    pub(crate) url: String,
    /// The standard error of each process of this node.
    streams: Vec<JoinHandle<String>>,
}

impl FleetNode {
    pub(crate) fn new(sandbox: Sandbox) -> Self {
        let callbacks = sandbox.callbacks.as_deref().expect("a node can be called back");
        let url = callbacks.strip_suffix("/callback").expect("that is its path").to_owned();
        Self { sandbox, variables: Vec::new(), child: None, url, streams: Vec::new() }
    }

    pub(crate) fn under(mut self, variables: Vec<(&'static str, String)>) -> Self {
        self.variables = variables;
        self
    }

    pub(crate) fn started(mut self) -> Self {
        self.start();
        self
    }

    /// Starts the node, and waits until it is ready.
    pub(crate) fn start(&mut self) {
        let mut command = self.sandbox.command(&["serve"]);
        command.envs(self.variables.iter().map(|(name, value)| (name, value)));
        let (child, err) = ready(&mut command);
        self.child = Some(child);
        self.streams.push(err);
    }

    fn running(&mut self) -> &mut ChildProcess {
        self.child.as_mut().expect("it runs")
    }

    fn signal(&mut self, signal: Signal) {
        let pid = Pid::from_child(&self.running().0);
        kill_process(pid, signal).expect("our own child can be signalled");
    }

    /// Sends SIGKILL, and waits until the process is gone.
    pub(crate) fn kill(&mut self) {
        self.running().kill();
        self.child = None;
    }

    pub(crate) fn freeze(&mut self) {
        self.signal(Signal::STOP);
    }

    pub(crate) fn thaw(&mut self) {
        self.signal(Signal::CONT);
    }

    /// Ends the node as a supervisor does. It must end by itself, without an error.
    pub(crate) fn end(&mut self) {
        self.signal(Signal::TERM);
        assert_eq!(self.running().end(), Some(0), "it was stopped");
        self.child = None;
    }

    /// The standard error of the last process, which has ended.
    pub(crate) fn log_after_exit(&mut self) -> String {
        self.streams.pop().expect("it has lived").join().expect("reading does not panic")
    }

    /// Checks that no process of this node had a fault.
    pub(crate) fn rest_in_peace(mut self) {
        if let Some(mut child) = self.child.take() {
            assert!(
                child.0.try_wait().expect("a child of ours can be queried").is_none(),
                "it has ended by itself"
            );
            child.kill();
        }
        for streams in self.streams {
            let streams = streams.join().expect("reading does not panic");
            assert!(!streams.contains("panicked"), "{streams}");
        }
    }
}

fn ready(command: &mut Command) -> (ChildProcess, JoinHandle<String>) {
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = ChildProcess::start(command);
    let err = drain(child.0.stderr.take().expect("it is piped"));
    let out = BufReader::new(child.0.stdout.take().expect("it is piped"));
    let (outcome, is_ready) = mpsc::channel();
    thread::spawn(move || {
        for line in out.lines().map_while(Result::ok) {
            // A reader that listened may have what it wanted.
            _ = (line == "ready").then(|| outcome.send(()));
        }
    });
    match is_ready.recv_timeout(LONG) {
        Ok(()) => (child, err),
        Err(why) => {
            child.kill();
            let streams = err.join().unwrap_or_default();
            let what = if why == RecvTimeoutError::Timeout { "never got ready" } else { "ended" };
            panic!("a node {what}: {streams}");
        }
    }
}

pub(crate) struct NodeFleet {
    pub(crate) server: StoreServer,
    /// The tap between the nodes and the store.
    pub(crate) tap: Tap,
    pub(crate) nodes: Vec<FleetNode>,
    overrides: Vec<String>,
}

impl NodeFleet {
    /// Three nodes with these settings.
    pub(crate) fn start(server: StoreServer, sim: &Sim, overrides: &[&str]) -> Self {
        let tap = Tap::in_front_of(server.port());
        let mut overrides: Vec<String> = overrides.iter().map(|setting| (*setting).to_owned()).collect();
        overrides.push(format!("store.url={}", server.url_at(tap.port())));
        let mut fleet = Self { server, tap, nodes: Vec::new(), overrides };
        fleet.nodes = (0..NODES).map(|_| FleetNode::new(fleet.sandbox(sim))).collect();
        let authorities = fleet.nodes.iter().map(|node| node.url.replace("http://", "")).collect();
        // They share their public address, as they would in life.
        let public = balancer::in_front_of(authorities);
        fleet.overrides.push(format!("public_url={public}"));
        for node in &mut fleet.nodes {
            node.sandbox.override_setting("public_url", &public);
            node.start();
        }
        // The first node on an empty store waits for others that may know an older secret.
        for node in &fleet.nodes {
            let mut caller = NodeCaller::of(&node.url);
            until("a node is ready", || caller.get("/readyz").ok().filter(|ready| ready.status == 200));
        }
        fleet
    }

    /// The folder and the settings for one more node.
    pub(crate) fn sandbox(&self, sim: &Sim) -> Sandbox {
        self.overrides.iter().fold(Sandbox::of(sim), |sandbox, setting| sandbox.set(setting))
    }

    pub(crate) fn urls(&self) -> Vec<String> {
        self.nodes.iter().map(|node| node.url.clone()).collect()
    }

    pub(crate) fn rest_in_peace(self) {
        self.nodes.into_iter().for_each(FleetNode::rest_in_peace);
    }
}
