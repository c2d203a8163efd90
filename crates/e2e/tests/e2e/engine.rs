//! An engine as a process of its own, `quittance solve --lines --settle`: orders go in as lines, events come out as
//! lines, and it can be killed like any other process.

use crate::binary::{Running, drain};
use crate::wait::LONG;
use serde_json::Value;
use std::io::{BufRead, BufReader, Write};
use std::process::{ChildStdin, ChildStdout, Command, Stdio};
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver};
use std::thread::{self, JoinHandle};
use std::time::Duration;
use tempfile::TempDir;

pub(crate) struct Engine {
    child: Running,
    lines: Option<ChildStdin>,
    events: Receiver<Value>,
    err: Option<JoinHandle<String>>,
    /// Its folder is there for as long as it is.
    _dir: Arc<TempDir>,
}

/// What is left of an engine that has ended by itself.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) code: Option<i32>,
    /// All events that nobody had heard yet; the last one is `done`.
    pub(crate) events: Vec<Value>,
}

impl Ended {
    pub(crate) fn done(&self) -> &Value {
        self.events.last().expect("it was seen to be done")
    }

    pub(crate) fn book(&self, name: &str) -> u64 {
        self.done()["usage"][name].as_u64().unwrap_or_else(|| panic!("the usage has no `{name}`: {self:?}"))
    }

    pub(crate) fn count(&self, event: &str) -> usize {
        self.events.iter().filter(|found| found["event"] == event).count()
    }
}

impl Engine {
    pub(crate) fn start(mut command: Command, dir: Arc<TempDir>) -> Self {
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = Running::start(&mut command);
        let lines = child.0.stdin.take();
        let events = events(child.0.stdout.take().expect("it is piped"));
        let err = Some(drain(child.0.stderr.take().expect("it is piped")));
        Self { child, lines, events, err, _dir: dir }
    }

    /// Places an order. An engine that is gone hears nothing, which is what some tests are about.
    pub(crate) fn say(&mut self, line: &Value) {
        let lines = self.lines.as_mut().expect("nobody speaks after the end");
        _ = lines.write_all(format!("{line}\n").as_bytes());
    }

    /// The next event, if one comes in this time.
    pub(crate) fn next(&mut self, limit: Duration) -> Option<Value> {
        self.events.recv_timeout(limit).ok()
    }

    /// Waits for an event of this name; what comes before it is dropped.
    pub(crate) fn hear(&mut self, name: &str) -> Value {
        loop {
            let event = self.next(LONG).unwrap_or_else(|| self.give_up(name));
            if event["event"] == name {
                return event;
            }
        }
    }

    fn give_up(&mut self, name: &str) -> ! {
        self.child.kill();
        let err = self.err.take().and_then(|err| err.join().ok()).unwrap_or_default();
        panic!("the engine never said `{name}`; on standard error: {err}");
    }

    /// SIGKILL; what it said before it died was said.
    pub(crate) fn kill(mut self) -> Vec<Value> {
        self.child.kill();
        self.events.iter().collect()
    }

    /// Nobody speaks any more: it ends when everything has settled.
    pub(crate) fn finish(mut self) -> Ended {
        self.lines = None;
        let mut heard = Vec::new();
        while let Some(event) = self.next(LONG * 2) {
            heard.push(event);
        }
        let code = self.child.end();
        let err = self.err.take().and_then(|err| err.join().ok()).unwrap_or_default();
        let ended = Ended { code, events: heard };
        let is_done = ended.events.last().is_some_and(|event| event["event"] == "done");
        assert!(is_done && !err.contains("panicked"), "{ended:?}; on standard error: {err}");
        ended
    }
}

fn events(out: ChildStdout) -> Receiver<Value> {
    let (heard, events) = mpsc::channel();
    thread::spawn(move || {
        let mut out = BufReader::new(out);
        let mut line = String::new();
        while out.read_line(&mut line).is_ok_and(|bytes| bytes > 0) {
            // A line that has no end was cut off by a kill: it was not said.
            if line.ends_with('\n') {
                let event =
                    serde_json::from_str(&line).unwrap_or_else(|why| panic!("not an event: {why}: {line}"));
                if heard.send(event).is_err() {
                    return;
                }
            }
            line.clear();
        }
    });
    events
}
