//! A provider whose behaviour the site key selects. `solve...` is answered at once, `fresh...` at once with a new
//! token each time, and `hold...` when the test calls back. `refuse...` is a bad request, `die...` cannot be solved,
//! and `once...` is solved only the first time. `doubt...` gets no reply, `broke...` finds no money, `busy...` no
//! slot, and `away...` no provider. `blocked...` has a blocked account, and `strange...` gets a code that is in no
//! table.

use async_trait::async_trait;
use quittance_lifecycle::{
    CallbackResult, Evidence, Fault, FaultClass, Money, Payload, PollOutcome, ProviderAnswer, ReportOutcome,
    SubmitOutcome, Value,
};
use quittance_ports::{Account, Callback, CallbackMessage, Guard, Params, Provider, Submission, Threads};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

pub(crate) const COST: Money = Money(2990);

#[derive(Default)]
pub(crate) struct Scripted {
    /// How often each site key was submitted.
    submits: Mutex<BTreeMap<String, u32>>,
    /// The callback address of each site key.
    callbacks: Mutex<BTreeMap<String, String>>,
    /// The reports about answers.
    reports: Mutex<Vec<bool>>,
    calls: AtomicUsize,
    /// Every field of every order that was submitted.
    fields: Mutex<BTreeSet<String>>,
}

fn delivery(text: &str) -> ProviderAnswer {
    ProviderAnswer { payload: Payload::text(text), took_at_least: None, cost: Some(COST) }
}

impl Scripted {
    pub(crate) fn submits(&self, sitekey: &str) -> u32 {
        self.submits.lock().unwrap().get(sitekey).copied().unwrap_or_default()
    }

    /// Reports so far.
    pub(crate) fn reports(&self) -> Vec<bool> {
        self.reports.lock().unwrap().clone()
    }

    /// How often the provider was called since the last look.
    pub(crate) fn calls(&self) -> usize {
        self.calls.swap(0, Ordering::Relaxed)
    }

    pub(crate) fn fields(&self) -> BTreeSet<String> {
        self.fields.lock().unwrap().clone()
    }

    pub(crate) fn callback(&self, sitekey: &str) -> Option<String> {
        self.callbacks.lock().unwrap().get(sitekey).cloned()
    }
}

#[async_trait]
impl Provider for Scripted {
    async fn submit(&self, submission: Submission<'_>) -> SubmitOutcome {
        self.calls.fetch_add(1, Ordering::Relaxed);
        self.fields.lock().unwrap().extend(submission.terms.params.keys().cloned());
        let Some(Value::Text(sitekey)) = submission.terms.params.get("sitekey") else {
            return SubmitOutcome::Answered(delivery("picture"));
        };
        *self.submits.lock().unwrap().entry(sitekey.clone()).or_default() += 1;
        let callback = submission.callback.unwrap_or_default().to_owned();
        self.callbacks.lock().unwrap().insert(sitekey.clone(), callback);
        let faulted = |class, code: &str| SubmitOutcome::Rejected(Fault::new(class, code));
        match sitekey {
            key if key.starts_with("solve") => SubmitOutcome::Answered(delivery(&format!("token of {key}"))),
            key if key.starts_with("fresh") => {
                SubmitOutcome::Answered(delivery(&format!("token {} of {key}", self.submits(key))))
            }
            key if key.starts_with("once") && self.submits(key) == 1 => {
                SubmitOutcome::Answered(delivery("token"))
            }
            key if key.starts_with("once") => faulted(FaultClass::Unsolvable, "ERROR_CAPTCHA_UNSOLVABLE"),
            key if key.starts_with("refuse") => faulted(FaultClass::Caller, "ERROR_WRONG_SITEKEY"),
            key if key.starts_with("die") => faulted(FaultClass::Unsolvable, "ERROR_CAPTCHA_UNSOLVABLE"),
            key if key.starts_with("busy") => faulted(FaultClass::Busy, "ERROR_NO_SLOT_AVAILABLE"),
            key if key.starts_with("away") => faulted(FaultClass::Unreachable, "connection refused"),
            key if key.starts_with("blocked") => {
                faulted(FaultClass::AccountBlocked, "ERROR_KEY_DOES_NOT_EXIST")
            }
            key if key.starts_with("strange") => faulted(FaultClass::UnlistedCode, "ERROR_MOON_PHASE"),
            key if key.starts_with("broke") => faulted(FaultClass::NoFunds, "ERROR_ZERO_BALANCE"),
            key if key.starts_with("doubt") => SubmitOutcome::InDoubt(Evidence::default()),
            _ => SubmitOutcome::Accepted { task: "7".into() },
        }
    }

    fn preview(&self, _: &str, _: &Params, _: &Guard<'_>) -> Result<(), String> {
        Ok(())
    }

    async fn poll(&self, _tasks: &[String]) -> Vec<(String, PollOutcome)> {
        self.calls.fetch_add(1, Ordering::Relaxed);
        Vec::new()
    }

    fn poll_batch_max(&self) -> usize {
        1
    }

    fn penalty(&self, _fault: &quittance_lifecycle::Fault) -> Option<quittance_ports::Penalty> {
        None
    }

    fn submit_interval(&self) -> Duration {
        Duration::ZERO
    }

    fn read_callback(&self, callback: &Callback<'_>) -> Option<CallbackMessage> {
        let code = callback.query.split_once("code=")?.1;
        // A token that begins so comes as most providers call: without a price.
        let cost = (!code.starts_with("unpriced")).then_some(COST);
        let delivery = ProviderAnswer { cost, ..delivery(code) };
        Some(CallbackMessage { task: Some("7".into()), word: CallbackResult::Answered(delivery) })
    }

    async fn report(&self, _task: &str, is_good: bool) -> ReportOutcome {
        self.calls.fetch_add(1, Ordering::Relaxed);
        self.reports.lock().unwrap().push(is_good);
        ReportOutcome::Accepted
    }

    async fn account(&self) -> Option<Account> {
        self.calls.fetch_add(1, Ordering::Relaxed);
        let threads = Some(Threads { total: 5, working: 2 });
        Some(Account { balance: Some(Money(12_500_000)), threads })
    }
}
