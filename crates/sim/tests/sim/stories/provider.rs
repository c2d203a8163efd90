//! A scripted provider that records every request.

use crate::stories::world::since_start;
use async_trait::async_trait;
use quittance_lifecycle::{
    Evidence, Fault, FaultClass, Money, Payload, PollOutcome, PollRules, ProviderAnswer, ReportOutcome,
    SubmitOutcome, Terms, Value,
};
use quittance_ports::{Callback, CallbackMessage, Guard, Params, Provider, Submission};
use quittance_sim::executor::Executor;
use std::collections::{BTreeMap, VecDeque};
use std::future::pending;
use std::sync::{Arc, Mutex, MutexGuard};

/// The price of one answer, in millionths.
pub(crate) const PRICE: u64 = 2_990;

/// The outcome of one submit.
#[derive(Clone, Copy, Debug)]
pub(crate) enum SubmitScript {
    /// The provider takes the task, and the reply comes after this many milliseconds.
    Takes(u64),
    /// The provider takes the task and does not reply. Our side gives up after this many milliseconds.
    FallsSilent(u64),
    /// The provider does not take the task, and a gateway before it replies with a page of its own (HTTP 502), so the
    /// attempt is in doubt.
    BadGateway,
    /// The provider takes the task, and the connection stays open without a reply.
    Hangs,
    Answers(&'static str),
    Refuses(FaultClass, &'static str),
    Panics,
}

/// The outcome for one task in one poll.
#[derive(Clone, Copy, Debug)]
pub(crate) enum PollScript {
    Hangs,
    Panics,
    /// The reply has no part for this task.
    LeftOut,
    /// The reply has parts that were not polled, and none for this task.
    Garbled,
    /// The reply was lost.
    Lost,
    Faults(FaultClass, &'static str),
}

/// One submit, as the provider received it.
#[derive(Clone, Debug)]
pub(crate) struct Submit {
    /// Milliseconds since the test began.
    pub(crate) at: u64,
    pub(crate) site: String,
    pub(crate) attempt: u32,
    pub(crate) callback: Option<String>,
    /// The id of the task; `None` if the provider did not take it.
    pub(crate) task: Option<String>,
}

impl Submit {
    pub(crate) fn callback(&self) -> &str {
        self.callback.as_deref().expect("a world with callbacks gives every submit an address")
    }
}

#[derive(Default)]
struct ProviderNotes {
    replies: BTreeMap<String, VecDeque<SubmitScript>>,
    words: BTreeMap<String, VecDeque<PollScript>>,
    solve_ms: BTreeMap<String, u64>,
    submits: Vec<Submit>,
    polls: Vec<(u64, Vec<String>)>,
    reports: Vec<(String, bool)>,
    report_replies: VecDeque<ReportOutcome>,
    batch_max: usize,
    /// How long a poll takes.
    poll_ms: u64,
    poll_rules: Option<PollRules>,
}

/// The scripted provider. Clones of a handle share it.
#[derive(Clone)]
pub(crate) struct StoryScript {
    executor: Executor,
    notes: Arc<Mutex<ProviderNotes>>,
}

/// An answer with this text, from a provider that does not report when it was solved.
pub(crate) fn token(text: &str) -> ProviderAnswer {
    ProviderAnswer { payload: Payload::text(text), took_at_least: None, cost: Some(Money(PRICE)) }
}

fn site(terms: &Terms) -> String {
    let named = terms.params.get("googlekey").or_else(|| terms.params.get("sitekey"));
    match named {
        Some(Value::Text(text)) => text.clone(),
        _ => String::new(),
    }
}

impl StoryScript {
    pub(crate) fn new(executor: &Executor) -> Self {
        let notes = ProviderNotes { batch_max: 1, ..ProviderNotes::default() };
        Self { executor: executor.clone(), notes: Arc::new(Mutex::new(notes)) }
    }

    fn notes(&self) -> MutexGuard<'_, ProviderNotes> {
        self.notes.lock().expect("nothing panics while it holds the notes")
    }

    /// Sets the outcomes of the next submits for a site. After those, the provider takes every submit at once.
    pub(crate) fn on_submit(&self, site: &str, replies: &[SubmitScript]) {
        self.notes().replies.entry(site.into()).or_default().extend(replies);
    }

    /// From now on the provider takes every submit for this site.
    pub(crate) fn takes_again(&self, site: &str) {
        self.notes().replies.remove(site);
    }

    /// Sets the outcomes of the next polls for a site's tasks. After those, polls get the true state.
    pub(crate) fn on_poll(&self, site: &str, words: &[PollScript]) {
        self.notes().words.entry(site.into()).or_default().extend(words);
    }

    /// Sets how long after their submit the tasks for this site are solved. Without this they are never solved.
    pub(crate) fn solves(&self, site: &str, seconds: u64) {
        self.notes().solve_ms.insert(site.into(), seconds * 1000);
    }

    /// Sets how many milliseconds after their submit the tasks for this site are solved.
    pub(crate) fn solves_after_ms(&self, site: &str, ms: u64) {
        self.notes().solve_ms.insert(site.into(), ms);
    }

    /// Sets the service's rules for polls.
    pub(crate) fn asks_for_pauses(&self, poll_rules: PollRules) {
        self.notes().poll_rules = Some(poll_rules);
    }

    /// Sets how long every poll takes.
    pub(crate) fn takes_its_time(&self, poll_ms: u64) {
        self.notes().poll_ms = poll_ms;
    }

    pub(crate) fn asks_for_many_at_once(&self, batch_max: usize) {
        self.notes().batch_max = batch_max;
    }

    /// Every submit for a site, oldest first.
    pub(crate) fn submits(&self, site: &str) -> Vec<Submit> {
        self.notes().submits.iter().filter(|submit| submit.site == site).cloned().collect()
    }

    pub(crate) fn last_submit(&self, site: &str) -> Submit {
        self.submits(site).pop().expect("there was a submit for this site")
    }

    /// When each submit for a site came, in milliseconds since the story began.
    pub(crate) fn submitted_at(&self, site: &str) -> Vec<u64> {
        self.submits(site).iter().map(|submit| submit.at).collect()
    }

    /// Every submit that was taken, and so paid for.
    pub(crate) fn taken(&self) -> usize {
        self.notes().submits.iter().filter(|submit| submit.task.is_some()).count()
    }

    /// When this task was polled, in milliseconds since the story began.
    pub(crate) fn polled_at(&self, task: &str) -> Vec<u64> {
        let notes = self.notes();
        notes.polls.iter().filter(|(_, tasks)| tasks.iter().any(|t| t == task)).map(|(at, _)| *at).collect()
    }

    /// Every poll: when, and for which tasks.
    pub(crate) fn polls(&self) -> Vec<(u64, Vec<String>)> {
        self.notes().polls.clone()
    }

    /// Sets the outcomes of the next reports. After those, the provider accepts reports.
    pub(crate) fn on_report(&self, replies: &[ReportOutcome]) {
        self.notes().report_replies.extend(replies.iter().cloned());
    }

    /// Ends the script for reports.
    pub(crate) fn forget_reports(&self) {
        self.notes().report_replies.clear();
    }

    /// Every report: for which task, and whether its answer was good.
    pub(crate) fn reports(&self) -> Vec<(String, bool)> {
        self.notes().reports.clone()
    }

    fn note_submit(&self, submission: &Submission<'_>) -> (SubmitScript, String) {
        let site = site(submission.terms);
        let mut notes = self.notes();
        let reply =
            notes.replies.get_mut(&site).and_then(VecDeque::pop_front).unwrap_or(SubmitScript::Takes(0));
        let is_taken = !matches!(reply, SubmitScript::Refuses(..) | SubmitScript::BadGateway);
        let task = format!("task-{}", 1 + notes.submits.len());
        notes.submits.push(Submit {
            at: since_start(self.executor.now()),
            site,
            attempt: submission.attempt,
            callback: submission.callback.map(str::to_owned),
            task: is_taken.then(|| task.clone()),
        });
        (reply, task)
    }

    /// The state of a task: the scripted one, or else the true one.
    fn state(&self, task: &str) -> Result<PollOutcome, PollScript> {
        let now = since_start(self.executor.now());
        let mut notes = self.notes();
        let Some(submit) = notes.submits.iter().find(|submit| submit.task.as_deref() == Some(task)).cloned()
        else {
            return Ok(PollOutcome::Faulted(Fault::new(FaultClass::Caller, "ERROR_WRONG_CAPTCHA_ID")));
        };
        if let Some(word) = notes.words.get_mut(&submit.site).and_then(VecDeque::pop_front) {
            return Err(word);
        }
        let is_solved = notes.solve_ms.get(&submit.site).is_some_and(|span| now >= submit.at + span);
        Ok(if is_solved { PollOutcome::Answered(token(&token_of(task))) } else { PollOutcome::Pending })
    }
}

/// A code after which this provider wants no submit and no poll for 200 s.
pub(crate) const BLOCK: &str = "ERROR: 1001";

/// The answer to a task.
pub(crate) fn token_of(task: &str) -> String {
    task.replace("task", "token")
}

#[async_trait]
impl Provider for StoryScript {
    async fn report(&self, task: &str, is_good: bool) -> ReportOutcome {
        let mut notes = self.notes();
        notes.reports.push((task.to_owned(), is_good));
        notes.report_replies.pop_front().unwrap_or(ReportOutcome::Accepted)
    }

    async fn account(&self) -> Option<quittance_ports::Account> {
        None
    }

    fn penalty(&self, fault: &Fault) -> Option<quittance_ports::Penalty> {
        let pause = std::time::Duration::from_secs(200);
        (fault.code == BLOCK).then_some(quittance_ports::Penalty { pause, holds_polls: true })
    }

    fn submit_interval(&self) -> std::time::Duration {
        std::time::Duration::ZERO
    }

    fn read_callback(&self, _callback: &Callback<'_>) -> Option<CallbackMessage> {
        // In this world providers call the engine with words it understands.
        None
    }

    async fn submit(&self, submission: Submission<'_>) -> SubmitOutcome {
        let (reply, task) = self.note_submit(&submission);
        match reply {
            SubmitScript::Takes(after) => {
                self.executor.sleep(after).await;
                SubmitOutcome::Accepted { task }
            }
            SubmitScript::FallsSilent(after) => {
                self.executor.sleep(after).await;
                SubmitOutcome::InDoubt(Evidence::default())
            }
            SubmitScript::BadGateway => SubmitOutcome::InDoubt(Evidence::new("HTTP 502")),
            SubmitScript::Hangs => pending().await,
            SubmitScript::Answers(text) => SubmitOutcome::Answered(token(text)),
            SubmitScript::Refuses(class, code) => SubmitOutcome::Rejected(Fault::new(class, code)),
            SubmitScript::Panics => panic!("this submit panics, as the story says"),
        }
    }

    fn preview(&self, _: &str, _: &Params, _: &Guard<'_>) -> Result<(), String> {
        Ok(())
    }

    async fn poll(&self, tasks: &[String]) -> Vec<(String, PollOutcome)> {
        self.notes().polls.push((since_start(self.executor.now()), tasks.to_vec()));
        let mut replies = Vec::new();
        for task in tasks {
            match self.state(task) {
                Ok(outcome) => replies.push((task.clone(), outcome)),
                Err(PollScript::Hangs) => pending().await,
                Err(PollScript::Panics) => panic!("this poll panics, as the story says"),
                Err(PollScript::LeftOut) => {}
                Err(PollScript::Garbled) => {
                    let stray = ("unknown-task".to_owned(), PollOutcome::Answered(token("stray")));
                    replies.extend([stray.clone(), stray]);
                }
                Err(PollScript::Lost) => replies.push((task.clone(), PollOutcome::NoReply)),
                Err(PollScript::Faults(class, code)) => {
                    replies.push((task.clone(), PollOutcome::Faulted(Fault::new(class, code))));
                }
            }
        }
        let poll_ms = self.notes().poll_ms;
        self.executor.sleep(poll_ms).await;
        replies
    }

    fn poll_batch_max(&self) -> usize {
        self.notes().batch_max
    }

    fn poll_rules(&self, _kind: &str) -> Option<PollRules> {
        self.notes().poll_rules
    }
}
