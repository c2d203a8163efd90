//! What both adapters share: the call with the key, texts without secrets, and the rules about what a status or a
//! missing reply means. Each adapter adds how its protocol is written and read.

use crate::Settings;
use bytes::Bytes;
use quittance_lifecycle::{
    Evidence, Fault, FaultClass, PollOutcome, ProviderAnswer, ReportOutcome, SubmitOutcome,
};
use quittance_ports::AskError;
use quittance_protocol::is_no_such_task;
use quittance_wire::{ApiKey, BadSettings, CallbackBase, Client, Reply, WireError, without_secrets};
use std::collections::BTreeSet;
use std::fmt;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// The most unlisted codes that are logged.
const LOGGED_CODES_MAX: usize = 100;

/// Replies to a repeated report. Both mean that the report counts.
const COUNTED: [&str; 2] = ["OK_REPORT_RECORDED", "ERROR_DUPLICATE_REPORT"];

pub(crate) struct Frame {
    pub(crate) name: String,
    pub(crate) key: ApiKey,
    client: Client,
    pub(crate) submit_timeout: Duration,
    pub(crate) poll_timeout: Duration,
    pub(crate) callbacks: CallbackBase,
    text_to_log: fn(&[u8]) -> String,
    logged_codes: Mutex<BTreeSet<String>>,
}

/// What the body of a reply to a submit says, independent of the status.
pub(crate) enum SubmitBody {
    Taken {
        task: String,
    },
    #[cfg_attr(not(feature = "json"), expect(dead_code, reason = "the classic protocol has no answer here"))]
    Answered(ProviderAnswer),
    Fault(Fault),
    /// A body that is not of the protocol, with a description of what it looks like.
    Puzzling(String),
}

impl Frame {
    /// `text_to_log` finds the part of a reply with an unlisted code that is logged.
    pub(crate) fn new(settings: Settings, text_to_log: fn(&[u8]) -> String) -> Result<Self, BadSettings> {
        Ok(Self {
            client: settings.client()?,
            name: settings.name,
            key: settings.key,
            submit_timeout: settings.submit_timeout,
            poll_timeout: settings.poll_timeout,
            callbacks: CallbackBase::default(),
            text_to_log,
            logged_codes: Mutex::default(),
        })
    }

    pub(crate) fn show(&self, f: &mut fmt::Formatter<'_>, adapter: &str, dialect: &str) -> fmt::Result {
        write!(f, "{adapter}({:?}, {dialect} at {:?})", self.name, self.client.base().authority())
    }

    /// Posts a body with the key, and returns the reply without the key. No URL holds the key.
    pub(crate) async fn post(
        &self,
        path: &str,
        content_type: &str,
        body: impl Into<Bytes>,
        timeout: Duration,
    ) -> Result<Reply, WireError> {
        let reply = self.client.post(path, &[], content_type, body.into(), timeout).await?;
        Ok(Reply { body: self.key.taken_out_of(reply.body), ..reply })
    }

    pub(crate) fn fault(&self, class: FaultClass, words: impl Into<String>) -> Fault {
        Fault::new(class, self.key.conceal(words.into()))
    }

    /// The fault that a reply names, with the provider's whole text for the operator who looks at the order.
    pub(crate) fn fault_in(&self, reply: &Reply, fault: Fault) -> Fault {
        self.log_unlisted_code(&fault, &reply.body);
        self.with_text_of(reply, fault)
    }

    /// The outcome of a poll whose reply names this fault.
    pub(crate) fn polled(&self, reply: &Reply, fault: Fault) -> PollOutcome {
        let fault = self.fault_in(reply, fault);
        if is_no_such_task(&fault) { PollOutcome::NoSuchTask(fault) } else { PollOutcome::Faulted(fault) }
    }

    fn with_text_of(&self, reply: &Reply, fault: Fault) -> Fault {
        let fault = self.fault(fault.class, fault.code);
        match self.text_of(reply) {
            Some(text) => fault.with_text(&text),
            None => fault,
        }
    }

    /// The provider's whole text, or `None` if it may hold an answer, which is worth money.
    fn text_of(&self, reply: &Reply) -> Option<String> {
        let body: serde_json::Value = serde_json::from_slice(&reply.body).unwrap_or_default();
        let has_answer = body.get("solution").is_some_and(|solution| !solution.is_null());
        (!has_answer).then(|| without_secrets(&reply.body, &self.key, &self.callbacks))
    }

    /// Logs an unlisted code once, with text of the reply, so that an operator can add it to the table.
    fn log_unlisted_code(&self, fault: &Fault, body: &[u8]) {
        if fault.class != FaultClass::UnlistedCode || !self.is_news(&fault.code) {
            return;
        }
        let text = self.key.conceal((self.text_to_log)(body));
        tracing::warn!(
            provider = self.name.as_str(),
            code = %self.key.conceal(fault.code.clone()).escape_debug(),
            text = %text.escape_debug(),
            "a code that is not in the table; say what it means in [provider.faults]"
        );
    }

    fn is_news(&self, code: &str) -> bool {
        let mut codes = self.logged_codes.lock().unwrap_or_else(PoisonError::into_inner);
        codes.len() < LOGGED_CODES_MAX && codes.insert(code.to_owned())
    }

    /// The outcome of a complete reply to a submit. It is a rejection only if the task cannot have been taken.
    pub(crate) fn judge(&self, reply: &Reply, body: SubmitBody) -> SubmitOutcome {
        let status = reply.status.as_u16();
        let rejected =
            |class, words: &str| SubmitOutcome::Rejected(self.with_text_of(reply, Fault::new(class, words)));
        let in_doubt = |words: String| {
            let evidence = Evidence::new(self.key.conceal(words));
            SubmitOutcome::InDoubt(evidence.with_text(&self.text_of(reply).unwrap_or_default()))
        };
        match (status, body) {
            (200..=299, SubmitBody::Taken { task }) => SubmitOutcome::Accepted { task },
            (200..=299, SubmitBody::Answered(answer)) => SubmitOutcome::Answered(answer),
            // A proxy between us and the provider may have replied after the task was taken.
            (200..=299, SubmitBody::Puzzling(sight)) => {
                in_doubt(format!("{sight} (HTTP {status}): check provider.url"))
            }
            // A status that says no and a body that says yes: only a doubt is honest.
            (300..=499, SubmitBody::Taken { .. } | SubmitBody::Answered(_)) => {
                SubmitOutcome::InDoubt(Evidence::new(format!("HTTP {status}, but with a task in it")))
            }
            (429, _) => rejected(FaultClass::Busy, "HTTP 429"),
            (413, _) => rejected(FaultClass::Caller, "HTTP 413: too large for the provider"),
            // A code is clearer than a status, where a server sends both; some send every code so.
            (200..=499, SubmitBody::Fault(fault)) => SubmitOutcome::Rejected(self.fault_in(reply, fault)),
            (300..=499, SubmitBody::Puzzling(_)) => {
                rejected(FaultClass::UnlistedCode, &format!("HTTP {status}: check provider.url"))
            }
            _ => in_doubt(format!("HTTP {status}")),
        }
    }

    /// The outcome of a submit that got no complete reply.
    pub(crate) fn judge_silence(&self, error: WireError) -> SubmitOutcome {
        match error {
            WireError::NeverSent(why) => SubmitOutcome::Rejected(self.fault(FaultClass::Unreachable, why)),
            WireError::WhoKnows(why) => SubmitOutcome::InDoubt(Evidence::new(self.key.conceal(why))),
        }
    }

    /// The outcome of a report. `body` is a yes, a fault, or `Err(None)` if it is not of the protocol. A report in
    /// doubt is repeated: it is counted once.
    pub(crate) fn judge_report(&self, reply: &Reply, body: Result<(), Option<Fault>>) -> ReportOutcome {
        match (reply.status.as_u16(), body) {
            (429 | 500..=599, _) => ReportOutcome::NoReply,
            (200..=299, Ok(())) => ReportOutcome::Accepted,
            (_, Err(Some(fault))) => match fault.class {
                _ if COUNTED.contains(&fault.code.as_str()) => ReportOutcome::Accepted,
                FaultClass::Busy | FaultClass::Unreachable => ReportOutcome::NoReply,
                // An account that is not accepted now will not be within the minutes in which a report counts.
                FaultClass::AccountBlocked
                | FaultClass::NoFunds
                | FaultClass::Caller
                | FaultClass::NotSold
                | FaultClass::Unsolvable
                | FaultClass::UnlistedCode => ReportOutcome::Refused { code: self.key.conceal(fault.code) },
            },
            (200..=299, Err(None)) => ReportOutcome::NoReply,
            (status, _) => ReportOutcome::Refused { code: format!("HTTP {status}") },
        }
    }

    /// The error for an account request that the provider answered with a fault.
    pub(crate) fn account_rejected(&self, fault: Fault, advice: Option<&str>) -> AskError {
        let advice = match fault.class {
            // The request is nothing but the key and its own name.
            FaultClass::Caller => {
                "the service does not know this request: check that provider.dialect is its dialect"
            }
            _ => advice.unwrap_or("this code is not in the table: look it up at the provider"),
        };
        let advice = advice.to_owned();
        AskError::Rejected { fault: self.fault(fault.class, fault.code), advice }
    }
}

/// The error for an account request that got no reply.
pub(crate) fn account_unanswered(error: WireError) -> AskError {
    match error {
        WireError::NeverSent(why) => AskError::Unreachable { why },
        WireError::WhoKnows(why) => AskError::NoAnswer { why },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn so_many_codes_are_logged_and_each_once() {
        let settings = Settings::new("x", "http://127.0.0.1:9", ApiKey::new("some-key"));
        let frame = Frame::new(settings, |_| String::new()).unwrap();
        assert_eq!((0..1000).filter(|code| frame.is_news(&code.to_string())).count(), LOGGED_CODES_MAX);
        assert!(!frame.is_news("0"));
    }
}
