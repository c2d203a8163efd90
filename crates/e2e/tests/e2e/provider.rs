//! The mock provider as a process, `quittance mock`, and its ledger, which all these tests trust.

use crate::binary::{ChildProcess, quittance};
use crate::http::call;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read};
use std::process::{ChildStdout, Stdio};

/// The key of its only account.
pub(crate) const KEY: &str = "e2ee2ee2ee2ee2ee2ee2ee2ee2ee2ee2";

pub(crate) struct Sim {
    child: ChildProcess,
    out: BufReader<ChildStdout>,
    pub(crate) url: String,
    pub(crate) dialect: &'static str,
}

impl Sim {
    /// Starts a calm provider on a port of its own. Solves are very short, and no client is banned.
    pub(crate) fn start() -> Self {
        Self::start_with("2captcha", &[])
    }

    pub(crate) fn start_with(dialect: &'static str, more: &[&str]) -> Self {
        let usual =
            ["mock", "--json", "--no-bans", "--key", KEY, "--balance", "1000000000000", "--dialect", dialect];
        let mut args = usual.to_vec();
        for (flag, value) in [("--listen", "127.0.0.1:0"), ("--speed", "400")] {
            if !more.contains(&flag) {
                args.extend([flag, value]);
            }
        }
        args.extend(more);
        let (child, out, output) = start(&args);
        let url = output["url"].as_str().expect("it has a url").to_owned();
        Self { child, out, url, dialect }
    }

    fn ask(&self, verb: &str, path: &str, body: &Value) -> Value {
        ask(verb, &format!("{}/mock/{path}", self.url), body)
    }

    pub(crate) fn read(&self, path: &str) -> Value {
        self.ask("GET", path, &Value::Null)
    }

    pub(crate) fn put(&self, path: &str, body: &Value) {
        assert_eq!(self.ask("PUT", path, body), json!({ "ok": true }));
    }

    /// Replaces the rules for faults.
    pub(crate) fn script(&self, rules: &Value) {
        self.put("script", rules);
    }

    pub(crate) fn calm(&self) {
        self.put("faults", &json!("calm"));
        self.script(&json!([]));
    }

    pub(crate) fn ledger(&self) -> SimLedger {
        SimLedger(self.read("ledger"))
    }

    /// Ends the provider as a user or a supervisor does. Returns its exit code and the rest of its output.
    pub(crate) fn end(self, signal: Signal) -> (Option<i32>, String) {
        end(self.child, self.out, signal)
    }
}

/// Starts `quittance mock --json`. Returns its process, its output, and the line that it has printed.
fn start(args: &[&str]) -> (ChildProcess, BufReader<ChildStdout>, Value) {
    let mut command = quittance(args.iter().copied());
    let mut child = ChildProcess::start(command.stdout(Stdio::piped()).stdin(Stdio::null()));
    let mut out = BufReader::new(child.0.stdout.take().expect("it is piped"));
    let mut first = String::new();
    out.read_line(&mut first).expect("it says where it listens");
    let output: Value = serde_json::from_str(&first).unwrap_or_else(|why| panic!("{why}: {first}"));
    (child, out, output)
}

fn ask(verb: &str, url: &str, body: &Value) -> Value {
    let (status, output) = call(verb, url, &body.to_string());
    assert_eq!(status, 200, "{verb} {url}: {output}");
    serde_json::from_str(&output).unwrap_or_else(|why| panic!("{why}: {output}"))
}

fn end(mut child: ChildProcess, mut out: BufReader<ChildStdout>, signal: Signal) -> (Option<i32>, String) {
    kill_process(Pid::from_child(&child.0), signal).expect("our own child can be signalled");
    let code = child.end();
    let mut rest = String::new();
    out.read_to_string(&mut rest).expect("it speaks UTF-8");
    (code, rest)
}

/// Several services that one process plays, `quittance mock --service`.
pub(crate) struct SimServices {
    child: ChildProcess,
    out: BufReader<ChildStdout>,
    /// The line that it printed: its control address and its services.
    pub(crate) printed: Value,
}

impl SimServices {
    /// Starts these services, each given as `NAME=DIALECT`. Solves are very short, and no client is banned.
    pub(crate) fn start(services: &[&str]) -> Self {
        let options: Vec<&str> = services.iter().flat_map(|service| ["--service", service]).collect();
        let usual =
            ["mock", "--json", "--no-bans", "--key", KEY, "--speed", "400", "--listen", "127.0.0.1:0"];
        let (child, out, printed) = start(&[&usual[..], &options].concat());
        Self { child, out, printed }
    }

    fn field(&self, name: &str, field: &str) -> &str {
        let services = self.printed["services"].as_array().expect("it lists services");
        let service = services.iter().find(|service| service["service"] == name);
        service.and_then(|service| service[field].as_str()).unwrap_or_else(|| panic!("{name} has no {field}"))
    }

    /// The address of a service.
    pub(crate) fn url(&self, name: &str) -> &str {
        self.field(name, "url")
    }

    /// Changes one service: its faults, its outage or an account.
    pub(crate) fn change(&self, verb: &str, name: &str, path: &str, body: &Value) {
        let done = ask(verb, &format!("{}/{path}", self.field(name, "control")), body);
        assert_eq!(done, json!({ "ok": true }));
    }

    pub(crate) fn ledger(&self, name: &str) -> SimLedger {
        SimLedger(ask("GET", &format!("{}/ledger", self.field(name, "control")), &Value::Null))
    }

    /// The ledger of all services.
    pub(crate) fn joined_ledger(&self) -> Value {
        let url = self.printed["url"].as_str().expect("it has a url");
        ask("GET", &format!("{url}/mock/ledger"), &Value::Null)
    }

    pub(crate) fn end(self, signal: Signal) -> (Option<i32>, String) {
        end(self.child, self.out, signal)
    }
}

/// The ledger: what the provider really took, and for which orders.
pub(crate) struct SimLedger(pub(crate) Value);

impl SimLedger {
    pub(crate) fn total(&self, name: &str) -> u64 {
        self.0["totals"][name].as_u64().unwrap_or_else(|| panic!("the ledger has no total `{name}`"))
    }

    /// How many tasks were taken; each is paid for.
    pub(crate) fn accepted(&self) -> u64 {
        self.total("accepted")
    }

    /// How often an API script of the provider, such as `in.php`, was called.
    pub(crate) fn requests(&self, script: &str) -> u64 {
        self.0["totals"]["requests"][script].as_u64().unwrap_or(0)
    }

    /// How often tasks were polled, without other requests to `res.php`: a daemon reads its account now and then.
    pub(crate) fn polls(&self) -> u64 {
        let actions = &self.0["totals"]["actions"];
        ["get", "get2"].iter().filter_map(|action| actions[action].as_u64()).sum()
    }

    pub(crate) fn tasks(&self) -> &[Value] {
        self.0["tasks"].as_array().expect("it lists tasks")
    }

    /// The tasks, by the page for which they were bought.
    pub(crate) fn by_page(&self) -> BTreeMap<&str, Vec<&Value>> {
        let mut pages: BTreeMap<&str, Vec<&Value>> = BTreeMap::new();
        for task in self.tasks() {
            pages.entry(task["params"]["pageurl"].as_str().unwrap_or_default()).or_default().push(task);
        }
        pages
    }
}
