//! What really happened, for tests and judges: which tasks were taken and paid for, and which answers were really
//! given out. It holds no key, and of a file or a picture only the digest.

use crate::settings::MockClassicDialect;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;

/// `GET /mock/ledger`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Ledger {
    /// Milliseconds since 1970, as all moments here.
    pub now_ms: u64,
    pub profile: MockClassicDialect,
    pub seed: u64,
    pub totals: Totals,
    /// All tasks, in the order in which they were taken.
    pub tasks: Vec<LedgerTask>,
}

impl Ledger {
    #[must_use]
    pub fn task(&self, id: &str) -> Option<&LedgerTask> {
        self.tasks.iter().find(|task| task.id == id)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TaskState {
    /// Being worked on.
    Open,
    Solved,
    /// It ended with a code: see `code`.
    Failed,
    /// It was solved, and the result is no longer kept.
    Vanished,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum MockReport {
    Good,
    Bad,
}

/// A parameter as the ledger shows it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum LedgerValue {
    Text(String),
    Bytes { sha256: String, bytes: usize },
}

/// One task that was taken.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LedgerTask {
    /// As the client knows it: decimal, or CapSolver's UUID.
    pub id: String,
    /// `classic`, or the provider whose dialect of the JSON protocol was used.
    #[serde(default = "classic")]
    pub protocol: String,
    /// The JSON protocol's `type`, as it was sent.
    #[serde(default)]
    pub task_type: Option<String>,
    /// The account's name.
    pub account: String,
    /// As it was sent; `textcaptcha` and `post` where none was. A JSON task has the classic method of its type, and the
    /// classic names for its parameters.
    pub method: String,
    /// `GET` or `POST`.
    pub verb: String,
    /// All parameters but the control ones (key, method, json, soft_id, pingback, header_acao, debug_dump).
    pub params: BTreeMap<String, LedgerValue>,
    pub accepted_at_ms: u64,
    pub price_micros: u64,
    /// False once the price was given back.
    pub charged: bool,
    pub state: TaskState,
    pub solved_at_ms: Option<u64>,
    /// Once it is solved: text, or the JSON that `request` holds.
    pub answer: Option<Value>,
    /// Once it has failed.
    pub code: Option<String>,
    /// Whether the id was really written to the client.
    pub reply_delivered: bool,
    /// How often it was polled.
    pub polls: u64,
    /// How often the answer was really written in reply.
    pub reads: u64,
    pub first_read_at_ms: Option<u64>,
    pub pingback_wanted: bool,
    /// Why no pingback will be sent.
    pub pingback_refused: Option<String>,
    pub pingbacks_sent: u64,
    /// Answered with 200.
    pub pingbacks_acked: u64,
    /// The answer was really given out: written in reply to a poll, or in a pingback that was answered with 200.
    pub delivered: bool,
    pub reported: Option<MockReport>,
    /// How often a client tried to report it, refused or not.
    #[serde(default)]
    pub reports: u64,
}

fn classic() -> String {
    "classic".to_owned()
}

/// Sums over all tasks, also those that are no longer listed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Totals {
    pub accepted: u64,
    /// All that was charged; what was given back is not taken off.
    pub paid_micros: u64,
    pub refunded_micros: u64,
    pub solved: u64,
    pub failed: u64,
    pub open: u64,
    pub delivered: u64,
    /// How many of the tasks in the list have vanished.
    pub vanished: u64,
    /// Tasks that are no longer listed.
    pub forgotten: u64,
    pub reported_good: u64,
    pub reported_bad: u64,
    /// By `in.php`, `res.php`, `solve.php`, the method's name in the JSON protocol, `sim`, `other`.
    pub requests: BTreeMap<String, u64>,
    /// The requests to res.php, by action, whichever protocol they came by: getTaskResult is a `get`, getBalance a
    /// `getbalance`, the reports are `reportgood` and `reportbad`.
    #[serde(default)]
    pub actions: BTreeMap<String, u64>,
    pub connections: u64,
    /// Codes that were answered, pending among them.
    pub codes: BTreeMap<String, u64>,
    /// By the name that the script uses, `429`, `refused` and `outage`.
    pub faults: BTreeMap<String, u64>,
    /// The number of bans, by code.
    pub bans: BTreeMap<String, u64>,
    pub pingbacks_sent: u64,
    pub pingbacks_acked: u64,
    pub pingbacks_refused: u64,
    pub pingbacks_forged: u64,
}

/// `GET /mock/state`: what holds at the moment.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MockState {
    pub now_ms: u64,
    pub started_at_ms: u64,
    pub profile: MockClassicDialect,
    pub seed: u64,
    pub speed: f64,
    pub accounts: Vec<AccountSummary>,
    /// Addresses that are banned for wrong keys.
    pub banned_addresses: usize,
    /// When the outage ends.
    pub outage_until_ms: Option<u64>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AccountSummary {
    pub name: String,
    pub balance_micros: u64,
    pub threads: u32,
    pub plan_ended: bool,
    pub open: usize,
    /// Calls of res.php since the start, or since the last ban for too many.
    pub polls: u64,
    /// Bans in force, and when they end.
    pub bans: BTreeMap<String, u64>,
}

pub(crate) fn count(counts: &mut BTreeMap<String, u64>, name: &str) {
    /// More different names than these are counted as one: a client may send any.
    const NAMES_MAX: usize = 200;
    let name = if counts.len() < NAMES_MAX || counts.contains_key(name) { name } else { "(others)" };
    *counts.entry(name.to_owned()).or_default() += 1;
}
