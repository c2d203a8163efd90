//! What the control API shows and changes: the ledger, the state, the faults and the script.

use super::{MockTask, MockWorld, TaskOutcome, is_gone};
use crate::faults::Faults;
use crate::json::MockDialect;
use crate::ledger::{Ledger, LedgerTask, MockState, TaskState, Totals};
use crate::script::{BadScript, RuleScript, ScriptRule};
use crate::world::AccountChange;
use std::collections::BTreeMap;

impl MockWorld {
    /// The ledger, with the tasks taken at `since` or later, or without tasks if only the totals are wanted.
    pub(crate) fn ledger(&mut self, now: u64, since: u64, with_tasks: bool) -> Ledger {
        self.settle(now);
        let tasks = self.tasks.iter().filter(|(_, task)| with_tasks && task.accepted_at >= since);
        Ledger {
            now_ms: now,
            dialect: self.settings.dialect,
            seed: self.settings.seed,
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

    pub(crate) fn standing(&mut self, now: u64, outage_until_ms: Option<u64>) -> MockState {
        self.settle(now);
        MockState {
            now_ms: now,
            started_at_ms: self.started_at,
            dialect: self.settings.dialect,
            seed: self.settings.seed,
            speed: self.settings.speed,
            accounts: self.accounts.iter().map(|account| account.standing(now)).collect(),
            banned_addresses: self.strangers.banned(now),
            outage_until_ms,
        }
    }

    pub(crate) fn faults(&self) -> Faults {
        self.faults.clone()
    }

    pub(crate) fn refused_rate(&self) -> f64 {
        self.faults.refused
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

    /// Returns to the state after the start, but keeps the faults and the script. Ids continue, so that no id is used
    /// twice.
    pub(crate) fn reset(&mut self, now: u64) {
        let rules = self.script.rules();
        self.started_at = now;
        self.generation += 1;
        self.accounts = self.settings.accounts.iter().map(super::AccountRecord::new).collect();
        self.tasks = BTreeMap::new();
        self.open.clear();
        self.occurrences.clear();
        self.challenges.clear();
        self.strangers = super::Strangers::default();
        self.totals = Totals::default();
        self.script = RuleScript::new(rules).unwrap_or_default();
    }
}
