//! Nodes that share a store and a provider. Each has a folder, a port and a public address of its own, and keeps them when
//! it is killed and started again.

use crate::binary::{Running, drain};
use crate::nodes::balancer;
use crate::nodes::caller::Caller;
use crate::nodes::server::Server;
use crate::provider::Sim;
use crate::room::Room;
use crate::wait::{LONG, until};
use quittance_servers::Tap;
use rustix::process::{Pid, Signal, kill_process};
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread::{self, JoinHandle};

pub(crate) const NODES: usize = 3;

pub(crate) struct Node {
    pub(crate) room: Room,
    /// Variables that it runs under, besides its own.
    variables: Vec<(&'static str, String)>,
    child: Option<Running>,
    pub(crate) url: String,
    /// What each of its lives said on standard error.
    said: Vec<JoinHandle<String>>,
}

impl Node {
    pub(crate) fn new(room: Room) -> Self {
        let callbacks = room.callbacks.as_deref().expect("a node can be called back");
        let url = callbacks.strip_suffix("/callback").expect("that is its path").to_owned();
        Self { room, variables: Vec::new(), child: None, url, said: Vec::new() }
    }

    pub(crate) fn under(mut self, variables: Vec<(&'static str, String)>) -> Self {
        self.variables = variables;
        self
    }

    pub(crate) fn started(mut self) -> Self {
        self.start();
        self
    }

    /// Ready when this returns.
    pub(crate) fn start(&mut self) {
        let mut command = self.room.command(&["serve"]);
        command.envs(self.variables.iter().map(|(name, value)| (name, value)));
        let (child, err) = ready(&mut command);
        self.child = Some(child);
        self.said.push(err);
    }

    fn running(&mut self) -> &mut Running {
        self.child.as_mut().expect("it runs")
    }

    fn signal(&mut self, signal: Signal) {
        let pid = Pid::from_child(&self.running().0);
        kill_process(pid, signal).expect("our own child can be signalled");
    }

    /// SIGKILL, and gone when this returns.
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

    /// As a supervisor ends it; it has to end by itself, and well.
    pub(crate) fn end(&mut self) {
        self.signal(Signal::TERM);
        assert_eq!(self.running().end(), Some(0), "it was asked to end");
        self.child = None;
    }

    /// What its last life, which has ended, said on standard error.
    pub(crate) fn said_last(&mut self) -> String {
        self.said.pop().expect("it has lived").join().expect("reading does not panic")
    }

    /// No life of it broke while nobody looked.
    pub(crate) fn rest_in_peace(mut self) {
        if let Some(mut child) = self.child.take() {
            assert!(
                child.0.try_wait().expect("a child of ours can be asked").is_none(),
                "it has ended by itself"
            );
            child.kill();
        }
        for said in self.said {
            let said = said.join().expect("reading does not panic");
            assert!(!said.contains("panicked"), "{said}");
        }
    }
}

fn ready(command: &mut Command) -> (Running, JoinHandle<String>) {
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = Running::start(command);
    let err = drain(child.0.stderr.take().expect("it is piped"));
    let out = BufReader::new(child.0.stdout.take().expect("it is piped"));
    let (heard, is_ready) = mpsc::channel();
    thread::spawn(move || {
        for line in out.lines().map_while(Result::ok) {
            // Whoever listened may have what he wanted.
            _ = (line == "ready").then(|| heard.send(()));
        }
    });
    match is_ready.recv_timeout(LONG) {
        Ok(()) => (child, err),
        Err(why) => {
            child.kill();
            let said = err.join().unwrap_or_default();
            let what = if why == RecvTimeoutError::Timeout { "never got ready" } else { "ended" };
            panic!("a node {what}: {said}");
        }
    }
}

pub(crate) struct Fleet {
    pub(crate) server: Server,
    /// Between the nodes and the store.
    pub(crate) tap: Tap,
    pub(crate) nodes: Vec<Node>,
    overrides: Vec<String>,
}

impl Fleet {
    /// Three nodes with these settings.
    pub(crate) fn start(server: Server, sim: &Sim, overrides: &[&str]) -> Self {
        let tap = Tap::in_front_of(server.port());
        let mut overrides: Vec<String> = overrides.iter().map(|setting| (*setting).to_owned()).collect();
        overrides.push(format!("store.url={}", server.url_at(tap.port())));
        let mut fleet = Self { server, tap, nodes: Vec::new(), overrides };
        fleet.nodes = (0..NODES).map(|_| Node::new(fleet.room(sim))).collect();
        let authorities = fleet.nodes.iter().map(|node| node.url.replace("http://", "")).collect();
        // They share their public address, as they would in life.
        let public = balancer::in_front_of(authorities);
        fleet.overrides.push(format!("public_url={public}"));
        for node in &mut fleet.nodes {
            node.room.overrule("public_url", &public);
            node.start();
        }
        // The first node on an empty store waits for others that may know an older secret.
        for node in &fleet.nodes {
            let mut caller = Caller::of(&node.url);
            until("a node is ready", || caller.get("/readyz").ok().filter(|ready| ready.status == 200));
        }
        fleet
    }

    /// The folder and the settings of one more node.
    pub(crate) fn room(&self, sim: &Sim) -> Room {
        self.overrides.iter().fold(Room::of(sim), |room, setting| room.set(setting))
    }

    pub(crate) fn urls(&self) -> Vec<String> {
        self.nodes.iter().map(|node| node.url.clone()).collect()
    }

    pub(crate) fn rest_in_peace(self) {
        self.nodes.into_iter().for_each(Node::rest_in_peace);
    }
}
