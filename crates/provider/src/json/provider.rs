//! The provider for the engine: it turns replies into outcomes. The rules about what a status or a missing reply
//! means for a submit are in [`Frame::judge`] and [`Frame::judge_silence`].

use crate::Settings;
use crate::json::account::CachedAccount;
use crate::json::poll_counts::PollCounts;
use crate::provider_call::{Frame, SubmitBody};
use async_trait::async_trait;
use quittance_lifecycle::{
    CallbackResult, Fault, FaultClass, PollOutcome, PollRules, ProviderAnswer, ReportOutcome, SubmitOutcome,
};
use quittance_ports::{
    Account, Callback, CallbackMessage, Guard, Params, Penalty, Provider, Submission, TaskField,
};
use quittance_protocol::json::{
    CreateReply, JsonCodes, JsonDialect, Leaf, ResultReply, id, leaves, read_callback, read_create,
    read_result, spell,
};
use quittance_wire::{BadSettings, Reply, WireError};
use serde_json::{Map, Value};
use std::fmt;
use std::time::Duration;

/// How much of the text beside an unlisted code is logged.
const LOGGED_CHARS_MAX: usize = 300;

/// The part of a reply with an unlisted code that is logged. The rest is not logged, because it may hold an answer.
fn text_to_log(body: &[u8]) -> String {
    let body: Value = serde_json::from_slice(body).unwrap_or_default();
    body["errorDescription"].as_str().unwrap_or_default().chars().take(LOGGED_CHARS_MAX).collect()
}

pub struct JsonProvider {
    pub(crate) frame: Frame,
    pub(crate) dialect: JsonDialect,
    pub(crate) codes: JsonCodes,
    submit_interval: Duration,
    poll_counts: PollCounts,
    pub(crate) cached_account: CachedAccount,
}

impl fmt::Debug for JsonProvider {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.frame.show(f, "JsonProvider", self.dialect.name())
    }
}

impl JsonProvider {
    pub fn new(dialect: JsonDialect, mut settings: Settings) -> Result<Self, BadSettings> {
        let limits = dialect.facts().limits;
        let per_task_max = settings.poll_quota.map(|quota| quota.per_task).or(limits.queries_per_task_max);
        let corrections = std::mem::take(&mut settings.codes).into_iter();
        Ok(Self {
            dialect,
            codes: corrections.fold(JsonCodes::of(dialect), |codes, (code, class)| codes.with(code, class)),
            submit_interval: settings.submit_interval.unwrap_or_default(),
            poll_counts: PollCounts::new(per_task_max),
            cached_account: CachedAccount::new(limits.balance_interval),
            frame: Frame::new(settings, text_to_log)?,
        })
    }

    #[must_use]
    pub fn name(&self) -> &str {
        &self.frame.name
    }

    /// The table of codes for this provider, with the operator's corrections.
    #[must_use]
    pub const fn codes(&self) -> &JsonCodes {
        &self.codes
    }

    /// Posts the body with the key, and returns the reply without the key.
    pub(crate) async fn post(
        &self,
        method: &str,
        mut body: Map<String, Value>,
        timeout: Duration,
    ) -> Result<Reply, WireError> {
        body.insert("clientKey".to_owned(), Value::from(self.frame.key.reveal()));
        self.frame.post(method, "application/json", Value::Object(body).to_string(), timeout).await
    }

    /// The body of `createTask`, without our key. Fails if the task cannot be written in this dialect, or if the
    /// guard refuses it.
    fn task_body(
        &self,
        kind: &str,
        params: &Params,
        guard: &Guard<'_>,
    ) -> Result<Map<String, Value>, String> {
        let mut task = spell(self.dialect, kind, params).map_err(|why| why.to_string())?;
        let mut body = Map::new();
        // It is about the task, and stands beside it.
        if let Some(pool) = task.remove("languagePool") {
            body.insert("languagePool".to_owned(), pool);
        }
        let mut leaves = leaves(self.dialect, kind, params, &task);
        body.insert("task".to_owned(), Value::Object(task));
        if let Some(pool) = body.get("languagePool") {
            let value = pool.as_str().map_or_else(|| pool.to_string(), str::to_owned);
            let name = "languagePool".to_owned();
            leaves.push(Leaf { param: Some(name.clone()), name, value });
        }
        let fields: Vec<TaskField<'_>> = leaves
            .iter()
            .map(|Leaf { name, param, value }| TaskField {
                name,
                param: param.as_deref(),
                value: value.as_bytes(),
            })
            .collect();
        guard(&fields)?;
        Ok(body)
    }

    fn judge(&self, reply: &Reply, kind: &str) -> SubmitOutcome {
        let body = match read_create(&reply.body, kind, &self.codes) {
            CreateReply::Taken { task } => SubmitBody::Taken { task },
            CreateReply::Answered { payload, cost, .. } => {
                SubmitBody::Answered(ProviderAnswer { payload, took_at_least: None, cost })
            }
            CreateReply::Fault(fault) => SubmitBody::Fault(fault),
            CreateReply::Puzzling(sight) => SubmitBody::Puzzling(sight.to_string()),
        };
        self.frame.judge(reply, body)
    }

    /// Polls one task. A transport error decides nothing: the task still exists.
    async fn ask(&self, task: &str) -> PollOutcome {
        if !self.poll_counts.spend(task) {
            return PollOutcome::NoReply;
        }
        let body = Map::from_iter([("taskId".to_owned(), id::spell_task(task))]);
        let Ok(reply) = self.post("getTaskResult", body, self.frame.poll_timeout).await else {
            return PollOutcome::NoReply;
        };
        let outcome = match (reply.status.as_u16(), read_result(&reply.body, &self.codes)) {
            (429, _) => PollOutcome::Faulted(Fault::new(FaultClass::Busy, "HTTP 429")),
            (200..=299, ResultReply::Pending) => PollOutcome::Pending,
            (200..=299, ResultReply::Answered { payload, cost, took_at_least }) => {
                PollOutcome::Answered(ProviderAnswer { payload, took_at_least, cost })
            }
            // Some send every code with a status that says no as well.
            (200..=299 | 400..=499, ResultReply::Fault(fault)) => self.frame.polled(&reply, fault),
            _ => PollOutcome::NoReply,
        };
        if matches!(outcome, PollOutcome::Answered(_) | PollOutcome::Faulted(_) | PollOutcome::NoSuchTask(_))
        {
            self.poll_counts.forget(task);
        }
        outcome
    }
}

#[async_trait]
impl Provider for JsonProvider {
    async fn submit(&self, submission: Submission<'_>) -> SubmitOutcome {
        let Submission { terms, callback, guard, .. } = submission;
        let mut body = match self.task_body(&terms.kind, &terms.params, guard) {
            Ok(body) => body,
            Err(why) => return SubmitOutcome::Rejected(Fault::new(FaultClass::Caller, why)),
        };
        if let Some(callback) = callback {
            body.insert("callbackUrl".to_owned(), Value::from(callback));
            self.frame.callbacks.learn(callback);
        }
        match self.post("createTask", body, self.frame.submit_timeout).await {
            Ok(reply) => self.judge(&reply, &terms.kind),
            Err(error) => self.frame.judge_silence(error),
        }
    }

    fn preview(&self, kind: &str, params: &Params, guard: &Guard<'_>) -> Result<(), String> {
        self.task_body(kind, params, guard).map(drop)
    }

    async fn poll(&self, tasks: &[String]) -> Vec<(String, PollOutcome)> {
        let mut outcomes = Vec::with_capacity(tasks.len());
        for task in tasks {
            outcomes.push((task.clone(), self.ask(task).await));
        }
        outcomes
    }

    /// Always 1: the protocol polls one task at a time.
    fn poll_batch_max(&self) -> usize {
        1
    }

    fn poll_rules(&self, kind: &str) -> Option<PollRules> {
        Some(self.dialect.facts().limits.poll_rules.of(kind))
    }

    fn submit_interval(&self) -> Duration {
        self.submit_interval
    }

    fn penalty(&self, fault: &Fault) -> Option<Penalty> {
        let (pause, holds_polls) = quittance_protocol::json::code::penalty(&fault.code)?;
        Some(Penalty { pause, holds_polls })
    }

    fn read_callback(&self, callback: &Callback<'_>) -> Option<CallbackMessage> {
        let (task, body) = read_callback(callback.body, &self.codes)?;
        let word = match body {
            ResultReply::Answered { payload, cost, took_at_least } => {
                CallbackResult::Answered(ProviderAnswer { payload, took_at_least, cost })
            }
            ResultReply::Fault(fault) => CallbackResult::Faulted(self.frame.fault(fault.class, fault.code)),
            ResultReply::Pending | ResultReply::Puzzling(_) => return None,
        };
        Some(CallbackMessage { task, word })
    }

    async fn report(&self, task: &str, is_good: bool) -> ReportOutcome {
        self.pass_report(task, is_good).await
    }

    async fn account(&self) -> Option<Account> {
        self.look_at_account().await.ok()
    }
}
