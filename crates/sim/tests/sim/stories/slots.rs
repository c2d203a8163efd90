//! A provider with a number of slots: it takes as many tasks at once, rejects the rest as busy, and calls back when a
//! task is solved. It may be away for a while, and its replies may be slow. It records every submit.

use crate::stories::provider::token;
use crate::stories::world::since_start;
use async_trait::async_trait;
use quittance_engine::Engine;
use quittance_lifecycle::{
    CallbackResult, Evidence, Fault, FaultClass, PollOutcome, ReportOutcome, SubmitOutcome,
};
use quittance_ports::{Account, Callback, CallbackMessage, Guard, Params, Penalty, Provider, Submission};
use quittance_sim::executor::{Executor, WORLD};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

/// How the provider behaves. All times are in milliseconds since the test began.
#[derive(Clone, Debug)]
pub(crate) struct SlotRules {
    pub(crate) slots: usize,
    pub(crate) solve_ms: u64,
    /// How long a submit takes from its arrival to its reply.
    pub(crate) reply_ms: u64,
    /// Whether the reply is lost, after `reply_ms`, although the provider takes the task.
    pub(crate) is_silent: bool,
    /// The provider is away from the first of these moments to the second.
    pub(crate) away: Option<(u64, u64, Away)>,
    /// How many slots other users of the account have: how many from which moment on.
    pub(crate) others: &'static [(u64, usize)],
    /// Every second connection is refused until then.
    pub(crate) flaky_until: u64,
    /// How many of the first tasks are never answered, although their slots become free.
    pub(crate) lost_answers: usize,
    /// The provider rejects all orders of this tenant as busy.
    pub(crate) busy_for: Option<&'static str>,
}

impl Default for SlotRules {
    fn default() -> Self {
        Self {
            slots: usize::MAX,
            solve_ms: 10_000,
            reply_ms: 100,
            is_silent: false,
            away: None,
            others: &[],
            flaky_until: 0,
            lost_answers: 0,
            busy_for: None,
        }
    }
}

/// What becomes of a submit while the provider is away.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Away {
    /// The connection is refused.
    Refuses,
    /// The connection stays open without a reply, and nothing is taken. Our side gives up after 20 s.
    Hangs,
}

/// How long our side waits for a reply.
const WIRE_WAIT: u64 = 20_000;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reply {
    Taken,
    Busy,
    Away,
}

#[derive(Default)]
struct SlotNotes {
    submits: Vec<(u64, Reply)>,
    /// When each task is solved.
    tasks: Vec<u64>,
    /// The nodes that callbacks go to, in turn.
    callees: Vec<Arc<Engine>>,
}

/// The provider with slots. Clones of a handle share it.
#[derive(Clone)]
pub(crate) struct SlotProvider {
    executor: Executor,
    rules: SlotRules,
    notes: Arc<Mutex<SlotNotes>>,
}

impl SlotProvider {
    pub(crate) fn new(executor: &Executor, rules: SlotRules) -> Self {
        Self { executor: executor.clone(), rules, notes: Arc::default() }
    }

    fn notes(&self) -> MutexGuard<'_, SlotNotes> {
        self.notes.lock().expect("nothing panics while it holds the notes")
    }

    pub(crate) fn calls(&self, engine: &Arc<Engine>) {
        self.notes().callees.push(Arc::clone(engine));
    }

    /// When each submit with this reply came.
    pub(crate) fn submits(&self, reply: Reply) -> Vec<u64> {
        self.notes().submits.iter().filter(|(_, got)| *got == reply).map(|(at, _)| *at).collect()
    }

    /// When each submit came, whatever the reply.
    pub(crate) fn all_submits(&self) -> Vec<u64> {
        self.notes().submits.iter().map(|(at, _)| *at).collect()
    }

    fn now(&self) -> u64 {
        since_start(self.executor.now())
    }

    fn away(&self) -> Option<Away> {
        let now = self.now();
        let is_refused = now < self.rules.flaky_until && self.notes().submits.len() % 2 == 1;
        let away = self.rules.away.and_then(|(from, to, how)| (from..to).contains(&now).then_some(how));
        away.or(is_refused.then_some(Away::Refuses))
    }

    /// Takes the task if there is a slot. Returns its number.
    fn take(&self, tenant: &str) -> Option<usize> {
        let (now, rules) = (self.now(), &self.rules);
        let mut notes = self.notes();
        let in_use = notes.tasks.iter().filter(|solved_at| now < **solved_at).count();
        let others = rules.others.iter().rev().find(|(from, _)| *from <= now).map_or(0, |(_, slots)| *slots);
        let is_taken = in_use.saturating_add(others) < rules.slots && rules.busy_for != Some(tenant);
        notes.submits.push((now, if is_taken { Reply::Taken } else { Reply::Busy }));
        is_taken.then(|| {
            notes.tasks.push(now + rules.solve_ms);
            notes.tasks.len() - 1
        })
    }

    async fn call_back(self, task: usize, address: String) {
        self.executor.sleep(self.rules.solve_ms).await;
        let callees = self.notes().callees.clone();
        if task < self.rules.lost_answers || callees.is_empty() {
            return;
        }
        let segment = address.rsplit('/').next().unwrap_or_default().to_owned();
        let result = CallbackResult::Answered(token(&format!("token-{task}")));
        let engine = &callees[task % callees.len()];
        engine.called_back(&segment, None, result, Duration::ZERO).await.expect("the callback is safe");
    }
}

#[async_trait]
impl Provider for SlotProvider {
    async fn submit(&self, submission: Submission<'_>) -> SubmitOutcome {
        match self.away() {
            Some(away) => {
                let now = self.now();
                self.notes().submits.push((now, Reply::Away));
                if away == Away::Refuses {
                    return SubmitOutcome::Rejected(Fault::new(
                        FaultClass::Unreachable,
                        "connection refused",
                    ));
                }
                self.executor.sleep(WIRE_WAIT).await;
                SubmitOutcome::InDoubt(Evidence::new("no reply"))
            }
            None => {
                let task = self.take(&submission.terms.tenant);
                if let (Some(task), Some(address)) = (task, submission.callback) {
                    let (provider, address) = (self.clone(), address.to_owned());
                    self.executor.spawn(WORLD, async move { provider.call_back(task, address).await });
                }
                self.executor.sleep(self.rules.reply_ms).await;
                match task {
                    Some(_) if self.rules.is_silent => SubmitOutcome::InDoubt(Evidence::new("no reply")),
                    Some(task) => SubmitOutcome::Accepted { task: task.to_string() },
                    None => SubmitOutcome::Rejected(Fault::new(FaultClass::Busy, "ERROR_NO_SLOT_AVAILABLE")),
                }
            }
        }
    }

    async fn poll(&self, tasks: &[String]) -> Vec<(String, PollOutcome)> {
        let now = self.now();
        let notes = self.notes();
        let state = |task: &String| match task.parse::<usize>() {
            Ok(task) if task >= self.rules.lost_answers && notes.tasks[task] <= now => {
                PollOutcome::Answered(token(&format!("token-{task}")))
            }
            _ => PollOutcome::Pending,
        };
        tasks.iter().map(|task| (task.clone(), state(task))).collect()
    }

    async fn report(&self, _task: &str, _is_good: bool) -> ReportOutcome {
        ReportOutcome::Accepted
    }

    async fn account(&self) -> Option<Account> {
        None
    }

    fn penalty(&self, _fault: &Fault) -> Option<Penalty> {
        None
    }

    fn submit_interval(&self) -> Duration {
        Duration::ZERO
    }

    fn read_callback(&self, _callback: &Callback<'_>) -> Option<CallbackMessage> {
        // In this world providers call the engine with words it understands.
        None
    }

    fn preview(&self, _: &str, _: &Params, _: &Guard<'_>) -> Result<(), String> {
        Ok(())
    }

    fn poll_batch_max(&self) -> usize {
        8
    }
}
