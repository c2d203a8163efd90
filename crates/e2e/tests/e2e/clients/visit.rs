//! One run of one real client for one order, through its driver in `crates/e2e/clients`. The driver prints the
//! outcome in one line, and on standard error the replies that the client got.

use crate::binary::{ChildProcess, drain};
use crate::wait::LONG;
use serde_json::Value;
use std::env;
use std::fmt;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{ChildStderr, Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{self, Receiver};
use std::thread;

/// The key of the clients. Without tenants any key will do, and most clients demand 32 characters.
pub(super) const KEY: &str = "c11e47c11e47c11e47c11e47c11e47c1";
/// How many clients run at once. Most of the time they wait.
const AT_ONCE: usize = 40;

#[derive(Clone)]
pub(super) struct ClientVisit {
    /// The script of the driver.
    pub(super) script: &'static str,
    /// `sync`, `async` or `extended`.
    pub(super) how: &'static str,
    pub(super) what: &'static str,
    /// The address of the gateway.
    pub(super) base: String,
    pub(super) ca: Option<PathBuf>,
    /// The report to send about the answer; `None` for none.
    pub(super) report: Option<&'static str>,
}

impl fmt::Debug for ClientVisit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} {} at {}", self.script, self.how, self.what, self.base)
    }
}

impl ClientVisit {
    /// The mark of the order: equal in every run of this client for this order over this protocol.
    pub(super) fn mark(&self) -> String {
        let protocol = self.base.split(':').next().unwrap_or_default();
        let script = self.script.trim_start_matches("run_").split('.').next().unwrap_or_default();
        format!("{script}-{}-{}-{protocol}", self.how, self.what).replace('_', "-")
    }

    pub(super) fn start(&self) -> ClientRun {
        let drivers = Path::new(env!("CARGO_MANIFEST_DIR")).join("clients");
        let mut command = if self.script.ends_with(".js") {
            Command::new("node")
        } else {
            Command::new(installed().join("venv/bin/python"))
        };
        command
            .arg(drivers.join(self.script))
            .args(["--key", KEY, "--base", &self.base, "--what", self.what]);
        command.args(["--how", self.how, "--mark", &self.mark()]);
        command.env_clear().envs(env::vars_os().filter(|(name, _)| name == "PATH"));
        command.env("PYTHONDONTWRITEBYTECODE", "1").env("QUITTANCE_CLIENTS", installed());
        // What some machines have, and what every driver has to override.
        command.env("REQUESTS_CA_BUNDLE", "nowhere.pem").env("HTTPS_PROXY", "http://127.0.0.1:9");
        if let Some(ca) = &self.ca {
            command.arg("--ca").arg(ca).env("NODE_EXTRA_CA_CERTS", ca);
        }
        if let Some(report) = self.report {
            command.args(["--report", report]);
        }
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = ChildProcess::start(&mut command);
        let replies = replies(child.0.stderr.take().expect("it is piped"));
        ClientRun { child, replies, visit: self.clone() }
    }

    pub(super) fn run(&self) -> VisitResult {
        self.start().end()
    }
}

/// The folder that `scripts/clients` fills.
fn installed() -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let named = env::var_os("QUITTANCE_CLIENTS").filter(|place| !place.is_empty());
    let place = root.join(named.unwrap_or_else(|| "target/clients".into()));
    assert!(place.join("stamp").exists(), "the real clients are not installed: run scripts/clients");
    place.canonicalize().expect("it exists")
}

/// A reply to a client.
#[derive(Clone, Debug)]
pub(super) struct ClientReply {
    path: String,
    status: u64,
    body: String,
}

impl ClientReply {
    /// The id, if this is the reply to an accepted submit.
    fn id(&self) -> Option<String> {
        if self.path.ends_with("/in.php") {
            let text = self.body.strip_prefix("OK|").map(str::to_owned);
            return text.or_else(|| {
                let client_output: Value = serde_json::from_str(&self.body).ok()?;
                (client_output["status"] == 1)
                    .then(|| client_output["request"].as_str().map(str::to_owned))?
            });
        }
        let client_output: Value =
            serde_json::from_str(&self.body).ok().filter(|_| self.path.ends_with("/createTask"))?;
        (!client_output["taskId"].is_null()).then(|| client_output["taskId"].to_string())
    }
}

/// A client that is running.
pub(super) struct ClientRun {
    child: ChildProcess,
    replies: Receiver<Result<ClientReply, String>>,
    visit: ClientVisit,
}

impl ClientRun {
    /// Waits until the client has an id, and kills it.
    pub(super) fn kill_after_submit(mut self) -> String {
        loop {
            match self.replies.recv_timeout(LONG) {
                Ok(Ok(reply)) => {
                    if let Some(id) = reply.id() {
                        self.child.kill();
                        return id;
                    }
                }
                other => panic!("{:?} never got an id: {other:?}", self.visit),
            }
        }
    }

    pub(super) fn end(mut self) -> VisitResult {
        let out = drain(self.child.0.stdout.take().expect("it is piped"));
        let code = self.child.end();
        let out = out.join().expect("reading does not panic");
        let (mut replies, mut complaints) = (Vec::new(), String::new());
        for line in self.replies.iter() {
            match line {
                Ok(reply) => replies.push(reply),
                Err(line) => complaints.push_str(&line),
            }
        }
        let visit = self.visit;
        let is_one_line = out.trim_end().lines().count() == 1;
        assert!(code == Some(0) && is_one_line, "{visit:?} ended with {code:?}: {out}{complaints}");
        let client_output =
            serde_json::from_str(&out).unwrap_or_else(|why| panic!("{visit:?}: {why}: {out}"));
        VisitResult { visit, client_output, replies }
    }
}

fn replies(err: ChildStderr) -> Receiver<Result<ClientReply, String>> {
    let (sender, replies) = mpsc::channel();
    thread::spawn(move || {
        for line in BufReader::new(err).lines().map_while(Result::ok) {
            let reply = match serde_json::from_str::<Value>(&line) {
                Ok(client_output) if client_output["status"].is_u64() => Ok(ClientReply {
                    path: client_output["path"].as_str().unwrap_or_default().to_owned(),
                    status: client_output["status"].as_u64().unwrap_or_default(),
                    body: client_output["body"].as_str().unwrap_or_default().to_owned(),
                }),
                _ => Err(format!("{line}\n")),
            };
            if sender.send(reply).is_err() {
                return;
            }
        }
    });
    replies
}

/// The outcome of a visit.
#[derive(Debug)]
pub(super) struct VisitResult {
    pub(super) visit: ClientVisit,
    client_output: Value,
    replies: Vec<ClientReply>,
}

impl VisitResult {
    /// The answer that the client returned to its user.
    #[track_caller]
    pub(super) fn answer(&self) -> &str {
        assert_eq!(
            self.client_output["ok"], true,
            "{:?}: {}; {:?}",
            self.visit, self.client_output, self.replies
        );
        self.client_output["answer"].as_str().expect("an answer is text")
    }

    /// The reply to the client's submit.
    pub(super) fn id(&self) -> String {
        let entry = self.replies.iter().find_map(ClientReply::id);
        entry.unwrap_or_else(|| panic!("{:?} never got an id: {:?}", self.visit, self.replies))
    }

    /// Checks that the client called the gateway, and never got a server error.
    #[track_caller]
    pub(super) fn saw_no_error(&self) {
        assert!(!self.replies.is_empty(), "{:?} got no reply: {}", self.visit, self.client_output);
        let is_server_error = |reply: &&ClientReply| reply.status >= 500 || reply.status == 429;
        let failure = self.replies.iter().find(is_server_error);
        assert!(failure.is_none(), "{:?} got {failure:?}", self.visit);
    }
}

/// Runs all visits at once.
pub(super) fn all(visits: &[ClientVisit]) -> Vec<VisitResult> {
    let next = AtomicUsize::new(0);
    let work = || {
        let mut done = Vec::new();
        while let Some(visit) = visits.get(next.fetch_add(1, Ordering::Relaxed)) {
            done.push(visit.run());
        }
        done
    };
    thread::scope(|scope| {
        let workers: Vec<_> = (0..visits.len().min(AT_ONCE)).map(|_| scope.spawn(work)).collect();
        workers.into_iter().flat_map(|worker| worker.join().expect("no visit fails like this")).collect()
    })
}
