//! The provider as the engine knows it: replies on the wire, turned into outcomes. Every rule about what a status or
//! a silence means for a submit is in [`JsonProvider::judge`] and `submit`.

use crate::json::account::CachedAccount;
use crate::json::manners::{PollCounts, UnlistedCodesSeen};
use crate::json::settings::Settings;
use async_trait::async_trait;
use bytes::Bytes;
use quittance_lifecycle::{
    CallbackResult, Evidence, Fault, FaultClass, Money, Payload, PollOutcome, ProviderAnswer, ReportOutcome,
    SubmitOutcome, Timestamp,
};
use quittance_ports::{
    Account, Callback, CallbackMessage, Guard, Params, Penalty, Provider, Submission, TaskField,
};
use quittance_protocol::json::{
    CreateReply, JsonCodes, JsonDialect, Leaf, ResultReply, id, leaves, read_callback, read_create,
    read_result, spell,
};
use quittance_wire::{ApiKey, BadSettings, CallbackBase, Client, Reply, WireError, without_secrets};
use serde_json::{Map, Value};
use std::fmt;
use std::time::Duration;

/// How much of the text beside an unlisted code is logged.
const WORDS_CHARS_MAX: usize = 300;

/// What a complete answer to a submit says, other than yes.
enum JsonRefusal {
    Rejection(Fault),
    Doubt(String),
}

pub struct JsonProvider {
    name: String,
    pub(crate) dialect: JsonDialect,
    pub(crate) codes: JsonCodes,
    client: Client,
    pub(crate) key: ApiKey,
    submit_timeout: Duration,
    pub(crate) poll_timeout: Duration,
    submit_interval: Duration,
    questions: PollCounts,
    pub(crate) cached_account: CachedAccount,
    strange: UnlistedCodesSeen,
    callbacks: CallbackBase,
}

impl fmt::Debug for JsonProvider {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, dialect, client, .. } = self;
        write!(f, "JsonProvider({name:?}, {} at {:?})", dialect.name(), client.base().authority())
    }
}

impl JsonProvider {
    pub fn new(settings: Settings) -> Result<Self, BadSettings> {
        let client = settings.client()?;
        let limits = settings.dialect.facts().limits;
        let codes = JsonCodes::of(settings.dialect);
        Ok(Self {
            name: settings.name,
            dialect: settings.dialect,
            codes: settings.codes.into_iter().fold(codes, |codes, (code, class)| codes.with(code, class)),
            client,
            key: settings.key,
            submit_timeout: settings.submit_timeout,
            poll_timeout: settings.poll_timeout,
            submit_interval: settings.pace.submit_interval.unwrap_or_default(),
            questions: PollCounts::new(settings.pace.queries_per_task_max.or(limits.queries_per_task_max)),
            cached_account: CachedAccount::new(limits.balance_interval),
            strange: UnlistedCodesSeen::default(),
            callbacks: CallbackBase::default(),
        })
    }

    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The table of codes as it stands for this provider, for people to read.
    #[must_use]
    pub const fn codes(&self) -> &JsonCodes {
        &self.codes
    }

    pub(crate) fn fault(&self, class: FaultClass, words: impl Into<String>) -> Fault {
        Fault::new(class, self.key.conceal(words.into()))
    }

    fn evidence(&self, words: impl Into<String>) -> Evidence {
        Evidence::new(self.key.conceal(words.into()))
    }

    fn fault_in(&self, reply: &Reply, fault: Fault) -> Fault {
        let fault = self.fault(fault.class, fault.code);
        match self.text_of(reply) {
            Some(body_text) => fault.with_text(&body_text),
            None => fault,
        }
    }

    /// The provider's whole text, for the person who looks at the order; unless there may be an answer in it, which
    /// is as good as money.
    fn text_of(&self, reply: &Reply) -> Option<String> {
        let body_text: Value = serde_json::from_slice(&reply.body).unwrap_or_default();
        let has_answer = body_text.get("solution").is_some_and(|solution| !solution.is_null());
        (!has_answer).then(|| without_secrets(&reply.body, &self.key, &self.callbacks))
    }

    /// Sends the body with the key in it, and returns the reply without.
    pub(crate) async fn post(
        &self,
        method: &str,
        mut body_text: Map<String, Value>,
        timeout: Duration,
    ) -> Result<Reply, WireError> {
        body_text.insert("clientKey".to_owned(), Value::from(self.key.reveal()));
        let body = Bytes::from(Value::Object(body_text).to_string());
        let reply = self.client.post(method, &[], "application/json", body, timeout).await?;
        Ok(Reply { body: self.key.taken_out_of(reply.body), ..reply })
    }

    /// The task as it will be sent, with what stands beside it; an error, if it cannot be spelled or the guard
    /// refuses it.
    fn task_body(
        &self,
        kind: &str,
        params: &Params,
        guard: &Guard<'_>,
    ) -> Result<Map<String, Value>, String> {
        let mut task = spell(self.dialect, kind, params).map_err(|why| why.to_string())?;
        let mut body_text = Map::new();
        // It is about the task, and stands beside it.
        if let Some(pool) = task.remove("languagePool") {
            body_text.insert("languagePool".to_owned(), pool);
        }
        let mut leaves = leaves(self.dialect, kind, params, &task);
        body_text.insert("task".to_owned(), Value::Object(task));
        if let Some(pool) = body_text.get("languagePool") {
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
        Ok(body_text)
    }

    /// An unlisted code is logged once, with the text beside it: an operator should put it into the table. The rest
    /// of the reply is not logged, because it may hold an answer.
    fn log_unlisted_code(&self, fault: &Fault, body: &[u8]) {
        if fault.class != FaultClass::UnlistedCode || !self.strange.is_news(&fault.code) {
            return;
        }
        let body_text: Value = serde_json::from_slice(body).unwrap_or_default();
        let words = body_text["errorDescription"].as_str().unwrap_or_default();
        let words = self.key.conceal(words.chars().take(WORDS_CHARS_MAX).collect());
        tracing::warn!(
            provider = self.name.as_str(),
            code = %self.key.conceal(fault.code.clone()).escape_debug(),
            words = %words.escape_debug(),
            "a code that is not in the table; say what it means in [provider.faults]"
        );
    }

    /// What a complete answer to a submit means. Only what cannot have been taken is a rejection.
    fn judge(&self, reply: &Reply, kind: &str) -> SubmitOutcome {
        let status = reply.status.as_u16();
        let summary = match (status, read_create(&reply.body, kind, &self.codes)) {
            (200..=299, CreateReply::Taken { task }) => return SubmitOutcome::Accepted { task },
            (200..=299, CreateReply::Answered { payload, cost, .. }) => {
                return SubmitOutcome::Answered(delivery(payload, cost, None));
            }
            (200..=299, CreateReply::Fault(fault)) => {
                self.log_unlisted_code(&fault, &reply.body);
                JsonRefusal::Rejection(fault)
            }
            // A proxy between us and the provider may have replied after the task was taken.
            (200..=299, CreateReply::Puzzling(sight)) => {
                JsonRefusal::Doubt(format!("{sight} (HTTP {status}): check provider.url"))
            }
            // A status that says no and a body that says yes: only a doubt is honest.
            (300..=499, CreateReply::Taken { .. } | CreateReply::Answered { .. }) => {
                let words = format!("HTTP {status}, but with a task in it");
                return SubmitOutcome::InDoubt(Evidence::new(words));
            }
            (429, _) => JsonRefusal::Rejection(Fault::new(FaultClass::Busy, "HTTP 429")),
            (413, _) => {
                JsonRefusal::Rejection(Fault::new(FaultClass::Caller, "HTTP 413: too large for the provider"))
            }
            // A code is clearer than a status, where a server sends both; some send every code so.
            (300..=499, CreateReply::Fault(fault)) => {
                self.log_unlisted_code(&fault, &reply.body);
                JsonRefusal::Rejection(fault)
            }
            (300..=499, _) => {
                let words = format!("HTTP {status}: check provider.url");
                JsonRefusal::Rejection(Fault::new(FaultClass::UnlistedCode, words))
            }
            _ => JsonRefusal::Doubt(format!("HTTP {status}")),
        };
        match summary {
            JsonRefusal::Rejection(fault) => SubmitOutcome::Rejected(self.fault_in(reply, fault)),
            JsonRefusal::Doubt(words) => {
                let body_text = self.text_of(reply).unwrap_or_default();
                SubmitOutcome::InDoubt(self.evidence(words).with_text(&body_text))
            }
        }
    }

    /// Polls one task. A transport error settles nothing: the task is still there.
    async fn ask(&self, task: &str) -> PollOutcome {
        if !self.questions.spend(task) {
            return PollOutcome::NoReply;
        }
        let body_text = Map::from_iter([("taskId".to_owned(), id::spell_task(task))]);
        let reply = match self.post("getTaskResult", body_text, self.poll_timeout).await {
            Ok(reply) => reply,
            Err(WireError::NeverSent(_) | WireError::WhoKnows(_)) => return PollOutcome::NoReply,
        };
        let outcome = match (reply.status.as_u16(), read_result(&reply.body, &self.codes)) {
            (429, _) => PollOutcome::Faulted(Fault::new(FaultClass::Busy, "HTTP 429")),
            (200..=299, ResultReply::Pending) => PollOutcome::Pending,
            (200..=299, ResultReply::Answered { payload, cost, solved_s }) => {
                PollOutcome::Answered(delivery(payload, cost, solved_s))
            }
            // Some send every code with a status that says no as well.
            (200..=299 | 400..=499, ResultReply::Fault(fault)) => {
                self.log_unlisted_code(&fault, &reply.body);
                PollOutcome::Faulted(self.fault_in(&reply, fault))
            }
            _ => PollOutcome::NoReply,
        };
        if matches!(outcome, PollOutcome::Answered(_) | PollOutcome::Faulted(_)) {
            self.questions.forget(task);
        }
        outcome
    }
}

fn delivery(payload: Payload, cost: Option<Money>, solved_s: Option<u64>) -> ProviderAnswer {
    let solved_at = solved_s.and_then(|seconds| seconds.checked_mul(1000)).map(Timestamp::from_millis);
    ProviderAnswer { payload, solved_at, cost }
}

#[async_trait]
impl Provider for JsonProvider {
    async fn submit(&self, submission: Submission<'_>) -> SubmitOutcome {
        let Submission { terms, callback, guard, .. } = submission;
        let mut body_text = match self.task_body(&terms.kind, &terms.params, guard) {
            Ok(body_text) => body_text,
            Err(why) => return SubmitOutcome::Rejected(Fault::new(FaultClass::Caller, why)),
        };
        if let Some(callback) = callback {
            body_text.insert("callbackUrl".to_owned(), Value::from(callback));
            self.callbacks.learn(callback);
        }
        match self.post("createTask", body_text, self.submit_timeout).await {
            Ok(reply) => self.judge(&reply, &terms.kind),
            Err(WireError::NeverSent(why)) => {
                SubmitOutcome::Rejected(self.fault(FaultClass::Unreachable, why))
            }
            Err(WireError::WhoKnows(why)) => SubmitOutcome::InDoubt(self.evidence(why)),
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

    /// The protocol asks for one task at a time.
    fn poll_batch_max(&self) -> usize {
        1
    }

    fn submit_interval(&self) -> Duration {
        self.submit_interval
    }

    fn penalty(&self, fault: &Fault) -> Option<Penalty> {
        let (pause, holds_polls) = quittance_protocol::json::code::penalty(&fault.code)?;
        Some(Penalty { pause, holds_polls })
    }

    fn read_callback(&self, callback: &Callback<'_>) -> Option<CallbackMessage> {
        let (task, body_text) = read_callback(callback.body, &self.codes)?;
        let word = match body_text {
            ResultReply::Answered { payload, cost, solved_s } => {
                CallbackResult::Answered(delivery(payload, cost, solved_s))
            }
            ResultReply::Fault(fault) => CallbackResult::Faulted(self.fault(fault.class, fault.code)),
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
