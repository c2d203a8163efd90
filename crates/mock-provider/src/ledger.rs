//! What really happened, for tests: which tasks were taken and paid for, and which answers clients got. It holds no
//! key, and only the digest of a file or a picture.

use crate::outage::OutageKind;
use crate::settings::MockClassicDialect;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;

/// The response to `GET /mock/ledger`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Ledger {
    /// Milliseconds since 1970, like every time in this file.
    pub now_ms: u64,
    pub dialect: MockClassicDialect,
    pub seed: u64,
    /// Sums over all accounts.
    pub totals: Totals,
    /// Sums of each account.
    #[serde(default)]
    pub accounts: Vec<AccountTotals>,
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
    /// The task is not finished.
    Open,
    Solved,
    /// The task ended with a code: see `code`.
    Failed,
    /// The task was solved, and its result is no longer kept.
    Vanished,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum MockReport {
    Good,
    Bad,
}

/// A parameter as the ledger shows it: text, or the digest and size of bytes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum LedgerValue {
    Text(String),
    Bytes { sha256: String, bytes: usize },
}

/// One task that was taken.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LedgerTask {
    /// The id that the client knows: decimal, or the UUID of CapSolver.
    pub id: String,
    /// `classic`, or the provider whose dialect of the JSON protocol was used.
    #[serde(default = "classic")]
    pub protocol: String,
    /// The JSON protocol's `type`, as the client sent it.
    #[serde(default)]
    pub task_type: Option<String>,
    /// The service that took the task, where one process plays several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub service: Option<String>,
    /// The account's name.
    pub account: String,
    /// The `method` that the client sent, or `textcaptcha` or `post` if it sent none. A JSON task has the classic
    /// method of its type, and the classic names of its parameters.
    pub method: String,
    /// `GET` or `POST`.
    pub verb: String,
    /// All parameters but the control ones (key, method, json, soft_id, pingback, header_acao, debug_dump).
    pub params: BTreeMap<String, LedgerValue>,
    pub accepted_at_ms: u64,
    pub price_micros: u64,
    /// False after a refund of the price.
    pub charged: bool,
    pub state: TaskState,
    pub solved_at_ms: Option<u64>,
    /// The answer of a solved task: text, or the JSON that `request` holds.
    pub answer: Option<Value>,
    /// The error code of a failed task.
    pub code: Option<String>,
    /// Whether the id was really written to the client.
    pub reply_delivered: bool,
    /// How often clients polled the task.
    pub polls: u64,
    /// How often the answer was really written in a reply.
    pub reads: u64,
    pub first_read_at_ms: Option<u64>,
    pub pingback_wanted: bool,
    /// Why no pingback will be sent.
    pub pingback_refused: Option<String>,
    pub pingbacks_sent: u64,
    /// Pingbacks that were answered with 200.
    pub pingbacks_acked: u64,
    /// Whether a client got the answer: in a reply to a poll, or in a pingback that was answered with 200.
    pub delivered: bool,
    pub reported: Option<MockReport>,
    /// How often a client tried to report the task, refused or not.
    #[serde(default)]
    pub reports: u64,
}

fn classic() -> String {
    "classic".to_owned()
}

/// Sums over all tasks, including those that are no longer listed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Totals {
    pub accepted: u64,
    /// All charges; refunds are not subtracted.
    pub paid_micros: u64,
    pub refunded_micros: u64,
    pub solved: u64,
    pub failed: u64,
    pub open: u64,
    pub delivered: u64,
    /// How many of the listed tasks have vanished.
    pub vanished: u64,
    /// Tasks that are no longer listed.
    pub forgotten: u64,
    pub reported_good: u64,
    pub reported_bad: u64,
    /// Requests by `in.php`, `res.php`, `solve.php`, the name of a JSON method, `sim` or `other`.
    pub requests: BTreeMap<String, u64>,
    /// Requests to res.php by action, in both protocols: getTaskResult counts as `get`, getBalance as `getbalance`,
    /// and reports as `reportgood` and `reportbad`.
    #[serde(default)]
    pub actions: BTreeMap<String, u64>,
    pub connections: u64,
    /// How often each code was sent, including "not ready".
    pub codes: BTreeMap<String, u64>,
    /// Faults by their name in the script, and `429`, `refused` and `outage`.
    pub faults: BTreeMap<String, u64>,
    /// Bans by code.
    pub bans: BTreeMap<String, u64>,
    pub pingbacks_sent: u64,
    pub pingbacks_acked: u64,
    pub pingbacks_refused: u64,
    pub pingbacks_forged: u64,
}

/// Sums of one account, including tasks that are no longer listed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AccountTotals {
    /// The account's name.
    pub account: String,
    pub balance_micros: u64,
    /// Requests to in.php, solve.php and createTask with this key, taken or not.
    pub submits: u64,
    /// All other requests with this key: polls, balance and reports.
    pub polls: u64,
    pub accepted: u64,
    /// All charges; refunds are not subtracted.
    pub paid_micros: u64,
    pub refunded_micros: u64,
    pub solved: u64,
    pub failed: u64,
    pub open: u64,
    /// The most tasks that were open at once.
    pub open_max: u64,
    /// How often each code was sent, including "not ready".
    pub codes: BTreeMap<String, u64>,
    /// Bans by code.
    pub bans: BTreeMap<String, u64>,
}

/// The response to `GET /mock/state`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MockState {
    pub now_ms: u64,
    pub started_at_ms: u64,
    pub dialect: MockClassicDialect,
    pub seed: u64,
    pub speed: f64,
    pub accounts: Vec<AccountSummary>,
    /// Addresses that are banned for wrong keys.
    pub banned_addresses: usize,
    /// When the outage ends. The largest number means that it lasts until it is ended.
    pub outage_until_ms: Option<u64>,
    /// How connections fail during the outage.
    #[serde(default)]
    pub outage: Option<OutageKind>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AccountSummary {
    pub name: String,
    pub balance_micros: u64,
    pub threads: u32,
    pub plan_ended: bool,
    /// How many tasks can be open at once, if the account has a limit of its own.
    #[serde(default)]
    pub slots: Option<u32>,
    #[serde(default)]
    pub key_blocked: bool,
    /// Whether the account has faults of its own.
    #[serde(default)]
    pub has_own_faults: bool,
    pub open: usize,
    /// Calls of res.php since the start, or since the last ban for too many polls.
    pub polls: u64,
    /// Bans in force, and when they end.
    pub bans: BTreeMap<String, u64>,
}

pub(crate) fn count(counts: &mut BTreeMap<String, u64>, name: &str) {
    /// The most names that are counted apart. Clients can send any number of names.
    const NAMES_MAX: usize = 200;
    let name = if counts.len() < NAMES_MAX || counts.contains_key(name) { name } else { "(others)" };
    *counts.entry(name.to_owned()).or_default() += 1;
}
