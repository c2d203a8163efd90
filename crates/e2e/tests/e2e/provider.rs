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
        let mut command = quittance(args);
        let mut child = ChildProcess::start(command.stdout(Stdio::piped()).stdin(Stdio::null()));
        let mut out = BufReader::new(child.0.stdout.take().expect("it is piped"));
        let mut first = String::new();
        out.read_line(&mut first).expect("it says where it listens");
        let output: Value = serde_json::from_str(&first).unwrap_or_else(|why| panic!("{why}: {first}"));
        let url = output["url"].as_str().expect("it has a url").to_owned();
        Self { child, out, url, dialect }
    }

    fn ask(&self, verb: &str, path: &str, body: &Value) -> Value {
        let (status, output) = call(verb, &format!("{}/mock/{path}", self.url), &body.to_string());
        assert_eq!(status, 200, "{verb} {path}: {output}");
        serde_json::from_str(&output).unwrap_or_else(|why| panic!("{why}: {output}"))
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
    pub(crate) fn end(mut self, signal: Signal) -> (Option<i32>, String) {
        let pid = Pid::from_child(&self.child.0);
        kill_process(pid, signal).expect("our own child can be signalled");
        let code = self.child.end();
        let mut rest = String::new();
        self.out.read_to_string(&mut rest).expect("it speaks UTF-8");
        (code, rest)
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
