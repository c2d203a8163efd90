//! The engine of the demo: a process that runs `quittance solve --lines`, and can be killed. A worker notices a kill
//! only by the delay, because requests without an answer are sent again.

use crate::DemoError;
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};
use tokio::sync::{mpsc, oneshot};

/// The variable with the key of the provider's account.
pub(crate) const KEY_VARIABLE: &str = "QUITTANCE_DEMO_KEY";
/// How many lines may wait to be written to the engine.
const LINES_WAITING_MAX: usize = 10_000;

/// A request, and the channel for its answer.
pub(crate) struct AskedOrder {
    pub(crate) id: u64,
    pub(crate) line: String,
    pub(crate) event_to: oneshot::Sender<Value>,
}

pub(crate) enum EngineCommand {
    Ask(AskedOrder),
    /// Kills the engine with SIGKILL, and starts a new one at once.
    Kill,
    /// No more requests come. The engine ends when no order is open.
    Finish,
}

/// The last event of the engine.
pub(crate) struct EngineSummary {
    pub(crate) done: Value,
    pub(crate) kills: u32,
}

/// Keeps an engine running, and restarts it when it is killed, until it has finished.
pub(crate) struct EngineKeeper {
    program: PathBuf,
    config: PathBuf,
    key: String,
    running: EngineProcess,
    pending: BTreeMap<u64, AskedOrder>,
    kills: u32,
}

struct EngineProcess {
    child: Child,
    lines_in: Option<mpsc::Sender<String>>,
    lines_out: mpsc::Receiver<String>,
}

impl EngineKeeper {
    pub(crate) fn start(program: &Path, config: &Path, key: &str) -> Result<Self, DemoError> {
        let running = EngineProcess::start(program, config, key)?;
        let (program, config, key) = (program.into(), config.into(), key.into());
        Ok(Self { program, config, key, running, pending: BTreeMap::new(), kills: 0 })
    }

    /// Serves until `Finish`, and then until the engine has ended.
    pub(crate) async fn keep(
        mut self,
        mut commands: mpsc::Receiver<EngineCommand>,
    ) -> Result<EngineSummary, DemoError> {
        let mut finishing = false;
        let mut done = None;
        loop {
            tokio::select! {
                command = commands.recv(), if !finishing => match command {
                    Some(EngineCommand::Ask(ask)) => self.ask(ask).await,
                    Some(EngineCommand::Kill) => self.kill().await?,
                    Some(EngineCommand::Finish) | None => {
                        finishing = true;
                        self.running.lines_in = None;
                    }
                },
                line = self.running.lines_out.recv() => match line {
                    Some(line) => {
                        let event: Value = serde_json::from_str(&line).unwrap_or_default();
                        if event["event"] == "done" { done = Some(event) } else { self.pass_event(event) }
                    }
                    None => break,
                },
            }
        }
        let status = self.running.child.wait().await;
        match done {
            Some(done) => Ok(EngineSummary { done, kills: self.kills }),
            None => {
                let how = status.map_or_else(|error| error.to_string(), |status| status.to_string());
                Err(DemoError::engine(format!("the engine ended by itself ({how}): its messages are above")))
            }
        }
    }

    async fn ask(&mut self, ask: AskedOrder) {
        self.running.send(&ask.line).await;
        self.pending.insert(ask.id, ask);
    }

    /// Sends an event that ends a request to the worker that waits for it.
    fn pass_event(&mut self, event: Value) {
        if event["event"] == "accepted" {
            return;
        }
        if let Some(ask) = event["id"].as_u64().and_then(|id| self.pending.remove(&id)) {
            // The worker may have gone.
            _ = ask.event_to.send(event);
        }
    }

    async fn kill(&mut self) -> Result<(), DemoError> {
        let io =
            |error: std::io::Error| DemoError::engine(format!("the engine could not be killed: {error}"));
        self.running.child.start_kill().map_err(io)?;
        self.running.child.wait().await.map_err(io)?;
        self.kills += 1;
        // Events that it wrote before it died count.
        while let Some(line) = self.running.lines_out.recv().await {
            self.pass_event(serde_json::from_str(&line).unwrap_or_default());
        }
        self.running = EngineProcess::start(&self.program, &self.config, &self.key)?;
        for ask in self.pending.values() {
            self.running.send(&ask.line).await;
        }
        Ok(())
    }
}

impl EngineProcess {
    fn start(program: &Path, config: &Path, key: &str) -> Result<Self, DemoError> {
        let not_started =
            |error: std::io::Error| DemoError::engine(format!("the engine could not be started: {error}"));
        let mut command = Command::new(program);
        command.args(["solve", "--lines", "--settle", "--config"]).arg(config);
        // Nothing but the key of the demo: the settings of the user are not those of the demo.
        command.env_clear().env(KEY_VARIABLE, key);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).kill_on_drop(true);
        let mut child = command.spawn().map_err(not_started)?;
        let (stdin, stdout) = (child.stdin.take(), child.stdout.take());
        let (Some(stdin), Some(stdout)) = (stdin, stdout) else {
            return Err(DemoError::engine("the engine has no pipes"));
        };
        let (lines_in, to_write) = mpsc::channel(LINES_WAITING_MAX);
        let (read, lines_out) = mpsc::channel(LINES_WAITING_MAX);
        tokio::spawn(write(stdin, to_write));
        tokio::spawn(self::read(stdout, read));
        Ok(Self { child, lines_in: Some(lines_in), lines_out })
    }

    async fn send(&self, line: &str) {
        if let Some(lines) = &self.lines_in {
            // An engine that is gone is asked again when it is back.
            _ = lines.send(line.to_owned()).await;
        }
    }
}

async fn write(mut stdin: ChildStdin, mut lines: mpsc::Receiver<String>) {
    while let Some(mut line) = lines.recv().await {
        line.push('\n');
        if stdin.write_all(line.as_bytes()).await.is_err() {
            return;
        }
    }
}

async fn read(stdout: ChildStdout, lines: mpsc::Sender<String>) {
    let mut stdout = BufReader::new(stdout).lines();
    while let Ok(Some(line)) = stdout.next_line().await {
        if lines.send(line).await.is_err() {
            return;
        }
    }
}
