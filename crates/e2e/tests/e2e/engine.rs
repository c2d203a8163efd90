//! An engine as a process, `quittance solve --lines --settle`: orders go in as lines, events come out as lines, and
//! it can be killed.

use crate::binary::{ChildProcess, drain};
use crate::wait::LONG;
use serde_json::Value;
use std::io::{BufRead, BufReader, Write};
use std::process::{ChildStdin, ChildStdout, Command, Stdio};
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver};
use std::thread::{self, JoinHandle};
use std::time::Duration;
use tempfile::TempDir;

pub(crate) struct EngineProcess {
    child: ChildProcess,
    lines: Option<ChildStdin>,
    events: Receiver<Value>,
    err: Option<JoinHandle<String>>,
    /// The engine's folder, kept as long as the engine.
    _dir: Arc<TempDir>,
}

/// The results of an engine that has ended by itself.
#[derive(Debug)]
pub(crate) struct EngineEnd {
    pub(crate) code: Option<i32>,
    /// All events that were not read before; the last one is `done`.
    pub(crate) events: Vec<Value>,
}

impl EngineEnd {
    pub(crate) fn done(&self) -> &Value {
        self.events.last().expect("it was seen to be done")
    }

    pub(crate) fn book(&self, name: &str) -> u64 {
        self.done()["usage"][name].as_u64().unwrap_or_else(|| panic!("the usage has no `{name}`: {self:?}"))
    }

    pub(crate) fn count(&self, event: &str) -> usize {
        self.events.iter().filter(|entry| entry["event"] == event).count()
    }
}

impl EngineProcess {
    pub(crate) fn start(mut command: Command, dir: Arc<TempDir>) -> Self {
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = ChildProcess::start(&mut command);
        let lines = child.0.stdin.take();
        let events = events(child.0.stdout.take().expect("it is piped"));
        let err = Some(drain(child.0.stderr.take().expect("it is piped")));
        Self { child, lines, events, err, _dir: dir }
    }

    /// Sends an order. An engine that is gone does not get it, as some tests intend.
    pub(crate) fn say(&mut self, line: &Value) {
        let lines = self.lines.as_mut().expect("no input after the end");
        _ = lines.write_all(format!("{line}\n").as_bytes());
    }

    /// The next event; `None` if none comes within this time.
    pub(crate) fn next(&mut self, limit: Duration) -> Option<Value> {
        self.events.recv_timeout(limit).ok()
    }

    /// Waits for an event of this name, and drops earlier ones.
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
        panic!("the engine never wrote `{name}`; on standard error: {err}");
    }

    /// Sends SIGKILL. Returns the events that were written before.
    pub(crate) fn kill(mut self) -> Vec<Value> {
        self.child.kill();
        self.events.iter().collect()
    }

    /// Closes the input: the engine ends when no order is open.
    pub(crate) fn finish(mut self) -> EngineEnd {
        self.lines = None;
        let mut output_lines = Vec::new();
        while let Some(event) = self.next(LONG * 2) {
            output_lines.push(event);
        }
        let code = self.child.end();
        let err = self.err.take().and_then(|err| err.join().ok()).unwrap_or_default();
        let ended = EngineEnd { code, events: output_lines };
        let is_done = ended.events.last().is_some_and(|event| event["event"] == "done");
        assert!(is_done && !err.contains("panicked"), "{ended:?}; on standard error: {err}");
        ended
    }
}

fn events(out: ChildStdout) -> Receiver<Value> {
    let (output_lines, events) = mpsc::channel();
    thread::spawn(move || {
        let mut out = BufReader::new(out);
        let mut line = String::new();
        while out.read_line(&mut line).is_ok_and(|bytes| bytes > 0) {
            // A line that has no end was cut off by a kill: it does not count.
            if line.ends_with('\n') {
                let event =
                    serde_json::from_str(&line).unwrap_or_else(|why| panic!("not an event: {why}: {line}"));
                if output_lines.send(event).is_err() {
                    return;
                }
            }
            line.clear();
        }
    });
    events
}
