//! The provider for the engine: it turns replies into outcomes. The rules about what a status or a missing reply
//! means for a submit are in [`Frame::judge`] and [`Frame::judge_silence`].

use crate::Settings;
use crate::classic::account::ThreadsWatch;
use crate::classic::pace::Allowance;
use crate::provider_call::{Frame, SubmitBody};
use async_trait::async_trait;
use quittance_lifecycle::{
    CallbackResult, Fault, FaultClass, PollOutcome, PollRules, ProviderAnswer, ReportOutcome, SubmitOutcome,
};
use quittance_ports::{
    Account, Callback, CallbackMessage, Guard, Params, Penalty, Provider, Submission, TaskField,
};
use quittance_protocol::classic::answer::{PollReply, SubmitReply, read_pingback, read_poll, read_submit};
use quittance_protocol::classic::dialect::{ClassicDialect, ClassicFacts, ZeroBalance};
use quittance_protocol::classic::encode::{EncodedForm, encode};
use quittance_protocol::classic::method::{has_companions, leaves, spell};
use quittance_protocol::classic::{ClassicCodes, Form, Part};
use quittance_wire::{BadSettings, Reply, WireError};
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::time::Instant;

/// How much of a reply with an unlisted code is logged.
const LOGGED_BYTES_MAX: usize = 500;

/// The part of a reply with an unlisted code that is logged.
fn text_to_log(body: &[u8]) -> String {
    String::from_utf8_lossy(&body[..body.len().min(LOGGED_BYTES_MAX)]).into_owned()
}

pub struct ClassicProvider {
    pub(crate) frame: Frame,
    pub(crate) dialect: ClassicDialect,
    pub(crate) codes: ClassicCodes,
    poll_batch_max: usize,
    /// Whether one call can poll several tasks. A service that is not known to take `ids=` is tried once.
    has_batches: AtomicBool,
    submit_interval: Duration,
    pub(crate) allowance: Option<Allowance>,
    pub(crate) threads: ThreadsWatch,
}

impl fmt::Debug for ClassicProvider {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.frame.show(f, "ClassicProvider", self.dialect.name())
    }
}

impl ClassicProvider {
    pub fn new(dialect: ClassicDialect, mut settings: Settings) -> Result<Self, BadSettings> {
        let facts = dialect.facts();
        let corrections = std::mem::take(&mut settings.codes).into_iter();
        Ok(Self {
            dialect,
            codes: corrections
                .fold(ClassicCodes::of(dialect), |codes, (code, class)| codes.with(code, class)),
            poll_batch_max: settings.poll_batch_max.unwrap_or(facts.poll_batch_max).max(1),
            has_batches: AtomicBool::new(true),
            submit_interval: settings.submit_interval.unwrap_or(facts.tempo.submit_interval),
            allowance: settings.poll_quota.or(facts.tempo.poll_quota).map(Allowance::new),
            threads: ThreadsWatch::default(),
            frame: Frame::new(settings, text_to_log)?,
        })
    }

    #[must_use]
    pub fn name(&self) -> &str {
        &self.frame.name
    }

    /// The table of codes for this provider, with the operator's corrections.
    #[must_use]
    pub const fn codes(&self) -> &ClassicCodes {
        &self.codes
    }

    pub(crate) fn facts(&self) -> &'static ClassicFacts {
        self.dialect.facts()
    }

    /// Notes that the reply to `ids=` does not fit. A service that is known to take `ids=` has lost parts of a reply;
    /// any other service does not take it, and is not asked again.
    pub(crate) fn batch_failed(&self) {
        if !self.facts().is_batch_known {
            self.has_batches.store(false, Ordering::Relaxed);
        }
    }

    /// Posts the form with the key in the body, so that no URL holds the key.
    pub(crate) async fn post(
        &self,
        script: &str,
        mut form: Form,
        timeout: Duration,
    ) -> Result<Reply, WireError> {
        form.0.insert("key".to_owned(), Part::Text(self.frame.key.reveal().to_owned()));
        form.0.insert("json".to_owned(), Part::Text("1".to_owned()));
        let EncodedForm { content_type, body } = encode(&form);
        self.frame.post(script, &content_type, body, timeout).await
    }

    /// The form of an order as it will be sent, without our key. Fails if the guard refuses the form.
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

    async fn judge(&self, reply: &Reply, sent: Instant) -> SubmitOutcome {
        let body = match read_submit(&reply.body, &self.codes) {
            SubmitReply::Taken { task } => SubmitBody::Taken { task },
            SubmitReply::Fault(fault) => SubmitBody::Fault(fault),
            SubmitReply::Puzzling(sight) => SubmitBody::Puzzling(sight.to_string()),
        };
        match self.frame.judge(reply, body) {
            SubmitOutcome::Accepted { task } => {
                if let Some(allowance) = &self.allowance {
                    allowance.earn();
                }
                self.threads.saw_work();
                SubmitOutcome::Accepted { task }
            }
            SubmitOutcome::Rejected(fault) => SubmitOutcome::Rejected(self.weigh(fault, sent).await),
            outcome => outcome,
        }
    }

    /// Finds out what "no thread" means: a provider that sells threads sends the same code when all are busy and when
    /// the plan has ended.
    async fn weigh(&self, fault: Fault, sent: Instant) -> Fault {
        let is_about_threads = self.facts().zero_balance == ZeroBalance::NoThread
            && fault.class == FaultClass::Busy
            && fault.code.starts_with("ERROR_ZERO_BALANCE");
        if is_about_threads && self.plan_has_ended(sent).await {
            return Fault { class: FaultClass::NoFunds, ..fault };
        }
        fault
    }

    pub(crate) fn question(&self, action: &str) -> Form {
        Form([("action".to_owned(), Part::Text(action.to_owned()))].into())
    }

    /// Polls one task. A transport error decides nothing: the task still exists.
    pub(crate) async fn ask(&self, task: &str) -> PollOutcome {
        if self.allowance.as_ref().is_some_and(|allowance| !allowance.spend()) {
            return PollOutcome::NoReply;
        }
        let has_price = self.facts().has_price;
        let mut form = self.question(if has_price { "get2" } else { "get" });
        form.0.insert("id".to_owned(), Part::Text(task.to_owned()));
        let Ok(reply) = self.post("res.php", form, self.frame.poll_timeout).await else {
            return PollOutcome::NoReply;
        };
        if let Some(outcome) = by_status(&reply) {
            return outcome;
        }
        match read_poll(&reply.body, has_price, &self.codes) {
            PollReply::Pending => PollOutcome::Pending,
            PollReply::Answered { payload, cost } => {
                PollOutcome::Answered(ProviderAnswer { payload, took_at_least: None, cost })
            }
            PollReply::Fault(fault) => self.frame.polled(&reply, fault),
            PollReply::Puzzling(_) => PollOutcome::NoReply,
        }
    }
}

/// The outcome that the status alone gives to a poll. `None` means: read the body.
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
            self.frame.callbacks.learn(callback);
            // A pingback brings the answer alone, which is no use where it comes with something else.
            if !has_companions(self.dialect, &terms.kind, &terms.params) {
                form.0.insert("pingback".to_owned(), Part::Text(callback.to_owned()));
            }
        }
        let sent = Instant::now();
        match self.post("in.php", form, self.frame.submit_timeout).await {
            Ok(reply) => self.judge(&reply, sent).await,
            Err(error) => self.frame.judge_silence(error),
        }
    }

    fn preview(&self, kind: &str, params: &Params, guard: &Guard<'_>) -> Result<(), String> {
        self.order_form(kind, params, guard).map(drop)
    }

    async fn poll(&self, tasks: &[String]) -> Vec<(String, PollOutcome)> {
        let mut outcomes = Vec::with_capacity(tasks.len());
        for batch in tasks.chunks(self.poll_batch_max()) {
            let reply_text = self.ask_for(batch).await;
            outcomes.extend(batch.iter().cloned().zip(reply_text));
        }
        outcomes
    }

    fn poll_batch_max(&self) -> usize {
        if self.has_batches.load(Ordering::Relaxed) { self.poll_batch_max } else { 1 }
    }

    fn poll_rules(&self, kind: &str) -> Option<PollRules> {
        Some(self.facts().poll_rules.of(kind))
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
            Ok(payload) => {
                CallbackResult::Answered(ProviderAnswer { payload, took_at_least: None, cost: None })
            }
            Err(fault) => CallbackResult::Faulted(self.frame.fault(fault.class, fault.code)),
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

#[cfg(test)]
mod tests {
    use super::*;
    use quittance_wire::ApiKey;

    fn refused(url: &str, key: &str) -> String {
        let settings = Settings::new("x", url, ApiKey::new(key));
        assert!(!format!("{settings:?}").contains(key) || key.is_empty());
        ClassicProvider::new(ClassicDialect::CaptchaAi, settings).unwrap_err().to_string()
    }

    #[test]
    fn an_address_with_a_secret_or_a_mistake_is_refused_without_repeating_it() {
        let cases = [
            ("https://ada:hunter2@example.com", "password"),
            ("https://example.com/in.php", "in.php"),
            ("https://example.com/api/res.php/", "in.php"),
            ("https://example.com/createTask", "createTask"),
            ("hunter2.example.com", "http://"),
        ];
        for (url, word) in cases {
            let body = refused(url, "some-key");
            assert!(body.starts_with("provider.url ") && body.contains(word), "{url}: {body}");
            assert!(!body.contains("hunter2"), "{body}");
        }
    }

    #[test]
    fn a_key_that_is_none_is_refused() {
        assert!(refused("http://127.0.0.1", "").contains("provider.key"));
        assert!(refused("http://127.0.0.1", "a b").contains("provider.key"));
    }
}
