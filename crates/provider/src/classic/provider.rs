//! The provider as the engine knows it: replies on the wire, turned into outcomes. Every rule about what a status or
//! a silence means for a submit is in [`ClassicProvider::judge`] and `submit`.

use crate::classic::account::ThreadsWatch;
use crate::classic::exchange::Exchange;
use crate::classic::pace::Allowance;
use crate::classic::settings::Settings;
use async_trait::async_trait;
use quittance_lifecycle::{
    CallbackResult, Evidence, Fault, FaultClass, PollOutcome, ProviderAnswer, ReportOutcome, SubmitOutcome,
};
use quittance_ports::{
    Account, Callback, CallbackMessage, Guard, Params, Penalty, Provider, Submission, TaskField,
};
use quittance_protocol::classic::answer::{PollReply, SubmitReply, read_pingback, read_poll, read_submit};
use quittance_protocol::classic::dialect::{ClassicDialect, ClassicFacts, ZeroBalance};
use quittance_protocol::classic::method::{has_companions, leaves, spell};
use quittance_protocol::classic::{ClassicCodes, Form, Part};
use quittance_wire::{BadSettings, CallbackBase, Reply, WireError, without_secrets};
use std::collections::BTreeSet;
use std::fmt;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use tokio::time::Instant;

/// How many unlisted codes are logged, and how much of the reply.
const STRANGE_MAX: usize = 100;
const RAW_BYTES_MAX: usize = 500;

/// What a complete answer to a submit says, other than yes.
enum ClassicRefusal {
    Rejection(Fault),
    Doubt(String),
}

pub struct ClassicProvider {
    name: String,
    pub(crate) dialect: ClassicDialect,
    pub(crate) codes: ClassicCodes,
    pub(crate) exchange: Exchange,
    submit_timeout: Duration,
    pub(crate) poll_timeout: Duration,
    poll_batch_max: usize,
    submit_interval: Duration,
    pub(crate) allowance: Option<Allowance>,
    pub(crate) threads: ThreadsWatch,
    strange: Mutex<BTreeSet<String>>,
    callbacks: CallbackBase,
}

impl fmt::Debug for ClassicProvider {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, dialect, exchange, .. } = self;
        write!(f, "ClassicProvider({name:?}, {} at {:?})", dialect.name(), exchange.client.base().authority())
    }
}

impl ClassicProvider {
    pub fn new(settings: Settings) -> Result<Self, BadSettings> {
        let facts = settings.dialect.facts();
        let client = settings.client()?;
        let codes = ClassicCodes::of(settings.dialect);
        Ok(Self {
            name: settings.name,
            dialect: settings.dialect,
            codes: settings.codes.into_iter().fold(codes, |codes, (code, class)| codes.with(code, class)),
            exchange: Exchange { client, key: settings.key },
            submit_timeout: settings.submit_timeout,
            poll_timeout: settings.poll_timeout,
            poll_batch_max: settings.poll_batch_max.unwrap_or(facts.poll_batch_max).max(1),
            submit_interval: settings.pace.submit_interval.unwrap_or(facts.tempo.submit_interval),
            allowance: settings.pace.poll_quota.or(facts.tempo.poll_quota).map(Allowance::new),
            threads: ThreadsWatch::default(),
            strange: Mutex::default(),
            callbacks: CallbackBase::default(),
        })
    }

    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The table of codes as it stands for this provider, for people to read.
    #[must_use]
    pub const fn codes(&self) -> &ClassicCodes {
        &self.codes
    }

    pub(crate) fn facts(&self) -> &'static ClassicFacts {
        self.dialect.facts()
    }

    fn fault(&self, class: FaultClass, words: impl Into<String>) -> Fault {
        Fault::new(class, self.exchange.key.conceal(words.into()))
    }

    fn evidence(&self, words: impl Into<String>) -> Evidence {
        Evidence::new(self.exchange.key.conceal(words.into()))
    }

    /// With the provider's whole text, for the person who looks at the order.
    fn fault_in(&self, reply: &Reply, fault: Fault) -> Fault {
        let reply_text = without_secrets(&reply.body, &self.exchange.key, &self.callbacks);
        self.fault(fault.class, fault.code).with_text(&reply_text)
    }

    /// An unlisted code is logged once, with all that came with it: an operator should put it into the table.
    fn log_unlisted_code(&self, fault: &Fault, body: &[u8]) {
        if fault.class != FaultClass::UnlistedCode {
            return;
        }
        let mut strange = self.strange.lock().unwrap_or_else(PoisonError::into_inner);
        if strange.len() < STRANGE_MAX && strange.insert(fault.code.clone()) {
            let raw = String::from_utf8_lossy(&body[..body.len().min(RAW_BYTES_MAX)]);
            let raw = self.exchange.key.conceal(raw.into_owned());
            tracing::warn!(
                provider = self.name.as_str(),
                code = %fault.code.escape_debug(),
                answer = %raw.escape_debug(),
                "a code that is not in the table; say what it means in [provider.faults]"
            );
        }
    }

    /// The form of an order, as it will be sent but for our key; an error, if the guard refuses it.
    fn order_form(&self, kind: &str, params: &Params, guard: &Guard<'_>) -> Result<Form, String> {
        let form = spell(self.dialect, kind, params).map_err(|why| why.to_string())?;
        let fields: Vec<_> = leaves(self.dialect, kind, &form)
            .into_iter()
            .map(|(name, param, part)| match part {
                Part::Text(text) => TaskField { name, param, value: text.as_bytes() },
                Part::File(bytes) => TaskField { name, param, value: bytes },
            })
            .collect();
        guard(&fields)?;
        Ok(form)
    }

    /// What a complete answer to a submit means. Only what cannot have been taken is a rejection.
    async fn judge(&self, reply: &Reply, sent: Instant) -> SubmitOutcome {
        let status = reply.status.as_u16();
        let read = read_submit(&reply.body, &self.codes);
        let summary = match (status, read) {
            (200..=299, SubmitReply::Taken { task }) => {
                if let Some(allowance) = &self.allowance {
                    allowance.earn();
                }
                self.threads.saw_work();
                return SubmitOutcome::Accepted { task };
            }
            (200..=299, SubmitReply::Fault(fault)) => {
                self.log_unlisted_code(&fault, &reply.body);
                ClassicRefusal::Rejection(self.weigh(fault, sent).await)
            }
            // A proxy between us and the provider may have replied after the task was taken.
            (200..=299, SubmitReply::Puzzling(sight)) => {
                ClassicRefusal::Doubt(format!("{sight} (HTTP {status}): check provider.url"))
            }
            // A status that says no and a body that says yes: only a doubt is honest.
            (300..=499, SubmitReply::Taken { .. }) => {
                let words = format!("HTTP {status}, but with a task in it");
                return SubmitOutcome::InDoubt(Evidence::new(words));
            }
            (429, _) => ClassicRefusal::Rejection(Fault::new(FaultClass::Busy, "HTTP 429")),
            (413, _) => ClassicRefusal::Rejection(Fault::new(
                FaultClass::Caller,
                "HTTP 413: too large for the provider",
            )),
            // A code is clearer than a status, where a server sends both.
            (300..=499, SubmitReply::Fault(fault)) => {
                ClassicRefusal::Rejection(self.weigh(fault, sent).await)
            }
            (300..=499, _) => {
                let words = format!("HTTP {status}: check provider.url");
                ClassicRefusal::Rejection(Fault::new(FaultClass::UnlistedCode, words))
            }
            _ => ClassicRefusal::Doubt(format!("HTTP {status}")),
        };
        match summary {
            ClassicRefusal::Rejection(fault) => SubmitOutcome::Rejected(self.fault_in(reply, fault)),
            ClassicRefusal::Doubt(words) => {
                let reply_text = without_secrets(&reply.body, &self.exchange.key, &self.callbacks);
                SubmitOutcome::InDoubt(self.evidence(words).with_text(&reply_text))
            }
        }
    }

    /// A provider that sells threads says the same thing when all are busy and when the plan has ended.
    async fn weigh(&self, fault: Fault, sent: Instant) -> Fault {
        let is_about_threads = self.facts().zero_balance == ZeroBalance::NoThread
            && fault.class == FaultClass::Busy
            && fault.code.starts_with("ERROR_ZERO_BALANCE");
        if is_about_threads && self.plan_has_ended(sent).await {
            return Fault::new(FaultClass::NoFunds, fault.code);
        }
        fault
    }

    pub(crate) fn question(&self, action: &str) -> Form {
        Form([("action".to_owned(), Part::Text(action.to_owned()))].into())
    }

    /// Polls one task. A transport error settles nothing: the task is still there.
    pub(crate) async fn ask(&self, task: &str) -> PollOutcome {
        if self.allowance.as_ref().is_some_and(|allowance| !allowance.spend()) {
            return PollOutcome::NoReply;
        }
        let has_price = self.facts().has_price;
        let mut form = self.question(if has_price { "get2" } else { "get" });
        form.0.insert("id".to_owned(), Part::Text(task.to_owned()));
        let reply = match self.exchange.post("res.php", form, self.poll_timeout).await {
            Ok(reply) => reply,
            Err(WireError::NeverSent(_) | WireError::WhoKnows(_)) => return PollOutcome::NoReply,
        };
        if let Some(outcome) = by_status(&reply) {
            return outcome;
        }
        match read_poll(&reply.body, has_price, &self.codes) {
            PollReply::Pending => PollOutcome::Pending,
            PollReply::Answered { payload, cost } => {
                PollOutcome::Answered(ProviderAnswer { payload, solved_at: None, cost })
            }
            PollReply::Fault(fault) => {
                self.log_unlisted_code(&fault, &reply.body);
                PollOutcome::Faulted(self.fault_in(&reply, fault))
            }
            PollReply::Puzzling(_) => PollOutcome::NoReply,
        }
    }
}

/// What the status alone says about a poll; nothing, if the body is to be read.
pub(crate) fn by_status(reply: &Reply) -> Option<PollOutcome> {
    match reply.status.as_u16() {
        200..=299 => None,
        429 => Some(PollOutcome::Faulted(Fault::new(FaultClass::Busy, "HTTP 429"))),
        _ => Some(PollOutcome::NoReply),
    }
}

#[async_trait]
impl Provider for ClassicProvider {
    async fn submit(&self, submission: Submission<'_>) -> SubmitOutcome {
        let Submission { terms, callback, guard, .. } = submission;
        let mut form = match self.order_form(&terms.kind, &terms.params, guard) {
            Ok(form) => form,
            Err(why) => return SubmitOutcome::Rejected(Fault::new(FaultClass::Caller, why)),
        };
        if let Some(callback) = callback {
            self.callbacks.learn(callback);
            // A pingback brings the answer alone, which is no use where it comes with something else.
            if !has_companions(self.dialect, &terms.kind, &terms.params) {
                form.0.insert("pingback".to_owned(), Part::Text(callback.to_owned()));
            }
        }
        let sent = Instant::now();
        match self.exchange.post("in.php", form, self.submit_timeout).await {
            Ok(reply) => self.judge(&reply, sent).await,
            Err(WireError::NeverSent(why)) => {
                SubmitOutcome::Rejected(self.fault(FaultClass::Unreachable, why))
            }
            Err(WireError::WhoKnows(why)) => SubmitOutcome::InDoubt(self.evidence(why)),
        }
    }

    fn preview(&self, kind: &str, params: &Params, guard: &Guard<'_>) -> Result<(), String> {
        self.order_form(kind, params, guard).map(drop)
    }

    async fn poll(&self, tasks: &[String]) -> Vec<(String, PollOutcome)> {
        let mut outcomes = Vec::with_capacity(tasks.len());
        for batch in tasks.chunks(self.poll_batch_max) {
            let reply_text = self.ask_for(batch).await;
            outcomes.extend(batch.iter().cloned().zip(reply_text));
        }
        outcomes
    }

    fn poll_batch_max(&self) -> usize {
        self.poll_batch_max
    }

    fn submit_interval(&self) -> Duration {
        self.submit_interval
    }

    fn penalty(&self, fault: &Fault) -> Option<Penalty> {
        let row = self.codes.row(&fault.code)?;
        Some(Penalty { pause: row.pause?, holds_polls: row.is_block })
    }

    fn read_callback(&self, callback: &Callback<'_>) -> Option<CallbackMessage> {
        let form = Form::read(callback.query, callback.content_type, callback.body).ok()?;
        let (task, reply_text) = read_pingback(&form, &self.codes)?;
        let word = match reply_text {
            Ok(payload) => CallbackResult::Answered(ProviderAnswer { payload, solved_at: None, cost: None }),
            Err(fault) => CallbackResult::Faulted(self.fault(fault.class, fault.code)),
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
