//! The provider itself, without a socket or a clock: it takes a request and the time, and returns the reply. Its
//! whole state is one value behind one lock, so that the ledger never shows half of a step.

mod account;
mod poll;
mod submit;
mod task;
#[cfg(test)]
mod tests;
mod usage;

pub use account::AccountChange;
pub(crate) use task::{JsonTaskDetails, MockTask, TaskOutcome};
pub(crate) use usage::LedgerQuery;

use crate::faults::Faults;
use crate::in_php;
use crate::json::{self, MockDialect};
use crate::ledger::{LedgerValue, Totals, count};
use crate::pingback::Calls;
use crate::response_text::{Classic, MockReply, ReplyFormat};
use crate::rng::MockRng;
use crate::script::{BadScript, FaultAction, RulePlace, RuleScript};
use crate::settings::{MockClassicDialect, Settings};
use account::{AccountRecord, Strangers};
use quittance_protocol::classic::Form;
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::Arc;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Endpoint {
    In,
    Res,
    Solve,
}

impl Endpoint {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::In => "in.php",
            Self::Res => "res.php",
            Self::Solve => "solve.php",
        }
    }
}

/// The endpoint at which a request arrives.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Entrance {
    Classic(Endpoint),
    Json(json::JsonEndpoint),
}

/// A parsed request.
#[derive(Debug)]
pub(crate) struct ReadRequest {
    pub endpoint: Endpoint,
    pub is_get: bool,
    pub peer: IpAddr,
    pub form: Form,
    /// What the JSON protocol holds beside the parameters; `None` for the classic protocol.
    pub ask: Option<json::JsonTaskOptions>,
}

impl ReadRequest {
    /// The name under which the ledger counts the request.
    fn name(&self) -> &'static str {
        self.ask.as_ref().map_or(self.endpoint.name(), |ask| ask.endpoint.name)
    }

    fn dialect(&self) -> Option<MockDialect> {
        self.ask.as_ref().map(|ask| ask.endpoint.dialect)
    }

    /// The error that the JSON protocol found in the request. Classic requests are checked later.
    fn check(&self) -> Result<(), String> {
        match self.ask.as_ref().and_then(|ask| ask.flaw) {
            Some(code) => Err(code.to_owned()),
            None => Ok(()),
        }
    }
}

/// What the client knows once the reply has been written. Before that, none of this counts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct DeliveryMark {
    /// The client knows the id of this task.
    pub submitted: Option<u64>,
    /// The client has these answers.
    pub answered_ids: Vec<u64>,
}

/// The outcome of a request.
#[derive(Debug)]
pub(crate) struct RequestStep {
    pub action: Option<FaultAction>,
    pub rng: MockRng,
    /// How long the reply waits, whatever it is.
    pub delay_ms: u64,
    pub reply: MockReply,
    pub mark: DeliveryMark,
    /// The pingbacks of a task that was taken.
    pub calls: Option<Calls>,
    /// solve.php: the task whose answer is the reply, and when it is solved.
    pub awaited: Option<(u64, u64)>,
    pub format: ReplyFormat,
}

/// Which of the services of one process this is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ServicePlace {
    /// 0 for the only service, and from 1 for each of several. It keeps their ids and random numbers apart.
    pub number: u64,
    /// The name in the ledger, if there are several services.
    pub name: Option<String>,
}

#[derive(Debug)]
pub(crate) struct MockWorld {
    settings: Arc<Settings>,
    place: ServicePlace,
    /// The seed of the random numbers of this service.
    seed: u64,
    started_at: u64,
    /// Counts resets, so that a pingback from before a reset finds no task.
    pub(crate) generation: u64,
    accounts: Vec<AccountRecord>,
    tasks: BTreeMap<u64, MockTask>,
    /// The open tasks, sorted by the moment at which they end.
    open: BTreeSet<(u64, u64)>,
    sequence: u64,
    /// How often each request came. Each repetition draws its own random numbers.
    occurrences: BTreeMap<u64, u64>,
    /// GeeTest challenges that were used. Each is good for one task.
    challenges: BTreeSet<u64>,
    strangers: Strangers,
    script: RuleScript,
    /// The faults of the service, for accounts without faults of their own.
    faults: Faults,
    pub(crate) totals: Totals,
}

/// The faults and random numbers that one request gets.
struct RequestPlan {
    action: Option<FaultAction>,
    shaping: Vec<FaultAction>,
    luck: u64,
    rng: MockRng,
    delay_ms: u64,
}

impl MockWorld {
    pub(crate) fn new(settings: Arc<Settings>, place: ServicePlace, now: u64) -> Result<Self, BadScript> {
        let seed = match place.number {
            0 => settings.seed,
            number => MockRng::of(settings.seed, "service", number).draw(),
        };
        Ok(Self {
            place,
            seed,
            started_at: now,
            generation: 0,
            accounts: account::records(&settings),
            tasks: BTreeMap::new(),
            open: BTreeSet::new(),
            sequence: 0,
            occurrences: BTreeMap::new(),
            challenges: BTreeSet::new(),
            strangers: Strangers::default(),
            script: RuleScript::new(settings.script.clone())?,
            faults: settings.faults.clone(),
            totals: Totals::default(),
            settings,
        })
    }

    pub(crate) fn take(&mut self, now: u64, arrival: &ReadRequest) -> RequestStep {
        self.settle(now);
        count(&mut self.totals.requests, arrival.name());
        if arrival.endpoint == Endpoint::Res {
            count(&mut self.totals.actions, arrival.form.text("action").unwrap_or("none"));
        }
        let format = self.format(arrival);
        let account = self.account_of(arrival);
        if let Some(account) = account {
            self.accounts[account].count_request(arrival.endpoint);
        }
        let plan = self.plan(now, account, arrival);
        if let Some(action) = &plan.action {
            self.count_action(action);
        }
        let mut step = RequestStep {
            action: plan.action.clone(),
            rng: plan.rng.clone(),
            delay_ms: plan.delay_ms,
            // Of what was not taken only a broken part can be seen.
            reply: format.code("ERROR_SERVER_ERROR"),
            mark: DeliveryMark::default(),
            calls: None,
            awaited: None,
            format,
        };
        match &plan.action {
            Some(FaultAction::Code(code)) => step.reply = step.format.code(code),
            Some(action) if !action.is_taken() => {}
            _ => {
                let reply_text = match arrival.endpoint {
                    Endpoint::In | Endpoint::Solve => self.submit(now, arrival, &plan, &mut step),
                    Endpoint::Res => self.poll(now, arrival, &plan, &mut step),
                };
                if let Err(code) = reply_text {
                    let spelled = step.format.spelled(&code);
                    count(&mut self.totals.codes, spelled);
                    if let Some(account) = account {
                        count(&mut self.accounts[account].totals.codes, spelled);
                    }
                    step.reply = step.format.code(&code);
                }
            }
        }
        step
    }

    /// The reply to a request that cannot be parsed. No fault is applied to it.
    pub(crate) fn refuse_unreadable(&mut self, entrance: Entrance) -> MockReply {
        const CODE: &str = "ERROR_BAD_PARAMETERS";
        let (name, format) = match entrance {
            Entrance::Classic(endpoint) => {
                let format = Classic::of(&Form::default(), self.settings.dialect);
                (endpoint.name(), ReplyFormat::Classic(format))
            }
            Entrance::Json(endpoint) => (
                endpoint.name,
                ReplyFormat::Json(json::JsonFormat { dialect: endpoint.dialect, polled_task: None }),
            ),
        };
        count(&mut self.totals.requests, name);
        count(&mut self.totals.codes, format.spelled(CODE));
        format.code(CODE)
    }

    fn count_action(&mut self, action: &FaultAction) {
        let name =
            if matches!(action, FaultAction::Status { status: 429, .. }) { "429" } else { action.name() };
        count(&mut self.totals.faults, name);
    }

    /// The format of the reply. If the method of a polled task defaults to JSON, so does the poll.
    fn format(&self, arrival: &ReadRequest) -> ReplyFormat {
        let task_of = self.task_of(&arrival.form);
        if let Some(dialect) = arrival.dialect() {
            return ReplyFormat::Json(json::JsonFormat {
                dialect,
                polled_task: task_of.map(|(id, task)| (id, task.polls)),
            });
        }
        let mut format = Classic::of(&arrival.form, self.settings.dialect);
        if arrival.endpoint == Endpoint::Res && !arrival.form.0.contains_key("json") {
            format.is_json = task_of.is_some_and(|(_, task)| task.is_json_by_default);
        }
        ReplyFormat::Classic(format)
    }

    fn task_of(&self, form: &Form) -> Option<(u64, &MockTask)> {
        let id = form.text("id")?.parse().ok()?;
        Some((id, self.tasks.get(&id)?))
    }

    fn plan(&mut self, now: u64, account: Option<usize>, arrival: &ReadRequest) -> RequestPlan {
        let form = &arrival.form;
        let place = if arrival.endpoint == Endpoint::Res { RulePlace::Poll } else { RulePlace::Submit };
        let id = self.task_of(form).map(|(id, _)| id);
        let luck = match id.and_then(|id| self.tasks.get_mut(&id)) {
            Some(task) if place == RulePlace::Poll => {
                task.polls += 1;
                MockRng::of(task.luck, "poll", task.polls).draw()
            }
            _ => self.fresh_luck(arrival.endpoint, form),
        };
        let task_of = id.and_then(|id| self.tasks.get(&id));
        let param = |name: &str| match (form.text(name), task_of) {
            (Some(text), _) => Some(text.to_owned()),
            (None, Some(task)) => match task.params.get(name)? {
                LedgerValue::Text(text) => Some(text.clone()),
                LedgerValue::Bytes { sha256, .. } => Some(sha256.clone()),
            },
            (None, None) => None,
        };
        let due = self.script.due(place, now.saturating_sub(self.started_at), &param);
        let (shaping, mut replies): (Vec<FaultAction>, Vec<FaultAction>) =
            due.into_iter().partition(FaultAction::shapes_the_task);
        let mut rng = MockRng::of(luck, "wire", 0);
        let faults = self.faults_of(account);
        let (drawn, delay_ms) = match place {
            RulePlace::Poll => (faults.on_poll(&mut rng), faults.poll.delay_ms),
            _ => (faults.on_submit(&mut rng), faults.submit.delay_ms),
        };
        let action = if replies.is_empty() { drawn } else { Some(replies.swap_remove(0)) };
        RequestPlan { action, shaping, luck, rng, delay_ms }
    }

    fn fresh_luck(&mut self, endpoint: Endpoint, form: &Form) -> u64 {
        /// How many different requests are counted. Above this limit the counter of another request is dropped.
        const OCCURRENCES_MAX: usize = 500_000;
        let hash = in_php::identity(form);
        let identity = u64::from_be_bytes(hash[..8].try_into().expect("a digest has more than eight bytes"));
        if self.occurrences.len() >= OCCURRENCES_MAX {
            self.occurrences.pop_first();
        }
        let nth = self.occurrences.entry(identity).or_default();
        *nth += 1;
        MockRng::of(self.seed ^ identity, endpoint.name(), *nth).draw()
    }

    /// Ends the tasks whose solve time has come.
    pub(crate) fn settle(&mut self, now: u64) {
        while let Some(&(at, id)) = self.open.first().filter(|(at, _)| *at <= now) {
            self.open.remove(&(at, id));
            let Some(task) = self.tasks.get_mut(&id) else { continue };
            task.is_over = true;
            let account = &mut self.accounts[task.account];
            account.open -= 1;
            match &task.outcome {
                TaskOutcome::Answer(_) => {
                    self.totals.solved += 1;
                    account.solved += 1;
                }
                TaskOutcome::Code(_) => {
                    self.totals.failed += 1;
                    account.totals.failed += 1;
                    // anti-captcha pays its workers for trying.
                    let dialect = task.dialect().or(self.settings.json_service.only());
                    let is_kept = dialect == Some(MockDialect::AntiCaptcha);
                    if self.settings.dialect == MockClassicDialect::TwoCaptcha && !is_kept {
                        refund(task, account, &mut self.totals);
                    }
                }
            }
        }
    }

    /// Notes what the client now has: its reply has been written.
    pub(crate) fn written(&mut self, now: u64, mark: &DeliveryMark) {
        if let Some(task) = mark.submitted.and_then(|id| self.tasks.get_mut(&id)) {
            task.reply_delivered = true;
        }
        for id in &mark.answered_ids {
            let Some(task) = self.tasks.get_mut(id) else { continue };
            task.reads += 1;
            task.first_read_at.get_or_insert(now);
            deliver(task, &mut self.totals);
        }
    }
}

fn is_gone(task: &MockTask, now: u64) -> bool {
    task.is_over && (task.vanishes || now >= task.gone_at)
}

fn deliver(task: &mut MockTask, totals: &mut Totals) {
    if !task.is_delivered && matches!(task.outcome, TaskOutcome::Answer(_)) {
        task.is_delivered = true;
        totals.delivered += 1;
    }
}

fn refund(task: &mut MockTask, account: &mut AccountRecord, totals: &mut Totals) {
    if !task.is_refunded {
        task.is_refunded = true;
        account.balance_micros += task.price_micros;
        account.totals.refunded_micros += task.price_micros;
        totals.refunded_micros += task.price_micros;
    }
}
