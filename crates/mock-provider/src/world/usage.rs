//! What the control API shows and changes: the ledger, the state, the faults and the script.

use super::account::{self, AccountRecord};
use super::{MockTask, MockWorld, TaskOutcome, is_gone};
use crate::faults::Faults;
use crate::json::MockDialect;
use crate::ledger::{Ledger, LedgerTask, MockState, TaskState, Totals};
use crate::outage::MockOutage;
use crate::rng::MockRng;
use crate::script::{BadScript, RuleScript, ScriptRule};
use crate::world::AccountChange;
use std::collections::BTreeMap;

/// Which part of the ledger is wanted. By default all of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct LedgerQuery {
    /// Only tasks taken then or later.
    pub since: u64,
    /// No tasks.
    pub is_summary: bool,
    /// Only this account and its tasks.
    pub account: Option<String>,
}

impl MockWorld {
    /// The part of the ledger that was asked for.
    pub(crate) fn ledger(&mut self, now: u64, wanted: &LedgerQuery) -> Ledger {
        self.settle(now);
        let is_wanted =
            |account: &AccountRecord| wanted.account.as_ref().is_none_or(|name| account.name == *name);
        let tasks = self.tasks.iter().filter(|(_, task)| {
            !wanted.is_summary && task.accepted_at >= wanted.since && is_wanted(&self.accounts[task.account])
        });
        let accounts = self.accounts.iter().filter(|account| is_wanted(account));
        Ledger {
            now_ms: now,
            dialect: self.settings.dialect,
            seed: self.settings.seed,
            accounts: accounts.map(AccountRecord::totals).collect(),
            tasks: tasks.map(|(id, task)| self.entry(now, *id, task)).collect(),
            totals: self.sums(now),
        }
    }

    fn sums(&self, now: u64) -> Totals {
        let is_vanished =
            |task: &&MockTask| matches!(task.outcome, TaskOutcome::Answer(_)) && is_gone(task, now);
        Totals {
            open: self.open.len() as u64,
            vanished: self.tasks.values().filter(is_vanished).count() as u64,
            ..self.totals.clone()
        }
    }

    fn entry(&self, now: u64, id: u64, task: &MockTask) -> LedgerTask {
        let (answer, code) = match &task.outcome {
            _ if !task.is_over => (None, None),
            TaskOutcome::Answer(answer) => (Some(answer.value.clone()), None),
            TaskOutcome::Code(code) => (None, Some(code.clone())),
        };
        let state = match &task.outcome {
            _ if !task.is_over => TaskState::Open,
            TaskOutcome::Code(_) => TaskState::Failed,
            TaskOutcome::Answer(_) if is_gone(task, now) => TaskState::Vanished,
            TaskOutcome::Answer(_) => TaskState::Solved,
        };
        LedgerTask {
            id: task.dialect().map_or_else(|| id.to_string(), |dialect| dialect.spelled_id(id)),
            protocol: task.dialect().map_or("classic", MockDialect::name).to_owned(),
            task_type: task.spoken.as_ref().map(|spoken| spoken.task_type.clone()),
            service: self.place.name.clone(),
            account: self.accounts[task.account].name.clone(),
            method: task.method.clone(),
            verb: if task.is_get { "GET" } else { "POST" }.to_owned(),
            params: task.params.clone(),
            accepted_at_ms: task.accepted_at,
            price_micros: task.price_micros,
            charged: !task.is_refunded,
            state,
            solved_at_ms: answer.is_some().then_some(task.solves_at),
            answer,
            code,
            reply_delivered: task.reply_delivered,
            polls: task.polls,
            reads: task.reads,
            first_read_at_ms: task.first_read_at,
            pingback_wanted: task.pingback.is_some(),
            pingback_refused: task.pingback_refused.map(str::to_owned),
            pingbacks_sent: task.pingbacks_sent,
            pingbacks_acked: task.pingbacks_acked,
            delivered: task.is_delivered,
            reported: task.reported,
            reports: task.reports,
        }
    }

    pub(crate) fn standing(&mut self, now: u64, outage: Option<MockOutage>) -> MockState {
        self.settle(now);
        MockState {
            now_ms: now,
            started_at_ms: self.started_at,
            dialect: self.settings.dialect,
            seed: self.settings.seed,
            speed: self.settings.speed,
            accounts: self.accounts.iter().map(|account| account.standing(now)).collect(),
            banned_addresses: self.strangers.banned(now),
            outage_until_ms: outage.map(|outage| outage.until_ms),
            outage: outage.map(|outage| outage.kind),
        }
    }

    pub(crate) fn faults(&self) -> Faults {
        self.faults.clone()
    }

    pub(crate) fn has_account(&self, name: &str) -> bool {
        self.accounts.iter().any(|account| account.name == name)
    }

    pub(crate) fn account_names(&self) -> Vec<String> {
        self.accounts.iter().map(|account| account.name.clone()).collect()
    }

    /// The faults that strike requests with the key of this account.
    pub(crate) fn faults_of(&self, account: Option<usize>) -> &Faults {
        account.and_then(|account| self.accounts[account].rules.faults.as_ref()).unwrap_or(&self.faults)
    }

    /// The faults of an account, its own or those of the service. `None` if there is no such account.
    pub(crate) fn account_faults(&self, name: &str) -> Option<Faults> {
        let account = self.accounts.iter().position(|account| account.name == name)?;
        Some(self.faults_of(Some(account)).clone())
    }

    /// Gives an account faults of its own, or with `None` those of the service again. Returns false if there is no
    /// account of that name.
    pub(crate) fn set_account_faults(&mut self, name: &str, faults: Option<Faults>) -> bool {
        let account = self.accounts.iter_mut().find(|account| account.name == name);
        account.map(|account| account.rules.faults = faults).is_some()
    }

    /// Whether the connection of this number is closed as soon as it is accepted.
    pub(crate) fn refuses_connection(&self, number: u64) -> bool {
        MockRng::of(self.seed, "accept", number).strikes(self.faults.refused)
    }

    pub(crate) fn set_faults(&mut self, faults: Faults) {
        self.faults = faults;
    }

    pub(crate) fn rules(&self) -> Vec<ScriptRule> {
        self.script.rules()
    }

    pub(crate) fn set_script(&mut self, rules: Vec<ScriptRule>) -> Result<(), BadScript> {
        self.script = RuleScript::new(rules)?;
        Ok(())
    }

    /// Changes an account. Returns false if there is no account of that name.
    pub(crate) fn change_account(&mut self, change: &AccountChange) -> bool {
        let account = self.accounts.iter_mut().find(|account| account.name == change.name);
        account.map(|account| account.change(change)).is_some()
    }

    /// Returns to the state after the start, but keeps the script, and the faults of the service and its accounts. Ids continue, so that no id is used
    /// twice.
    pub(crate) fn reset(&mut self, now: u64) {
        let rules = self.script.rules();
        self.started_at = now;
        self.generation += 1;
        let mut accounts = account::records(&self.settings);
        for (fresh, before) in accounts.iter_mut().zip(&mut self.accounts) {
            fresh.rules.faults = before.rules.faults.take();
        }
        self.accounts = accounts;
        self.tasks = BTreeMap::new();
        self.open.clear();
        self.occurrences.clear();
        self.challenges.clear();
        self.strangers = super::Strangers::default();
        self.totals = Totals::default();
        self.script = RuleScript::new(rules).unwrap_or_default();
    }
}
