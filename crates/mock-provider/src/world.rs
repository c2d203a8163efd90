//! The provider itself, without a socket or a clock: a request and the time come in, and what to say comes out. The whole
//! world is one value behind one lock, so that the ledger never shows half of a step.

mod account;
mod poll;
mod submit;
#[cfg(test)]
mod tests;
mod usage;

pub use account::AccountChange;

use crate::answer::Answer;
use crate::faults::Faults;
use crate::json::{self, Flavour, Kind};
use crate::ledger::{Report, Shown, Totals, count};
use crate::pingback::Calls;
use crate::reply::{Classic, Given, Reply, Tongue};
use crate::request;
use crate::rng::Rng;
use crate::script::{BadScript, Deed, Place, Script};
use crate::settings::{Profile, Settings};
use account::{AccountState, Strangers};
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

/// Where a request comes in.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Entrance {
    Classic(Endpoint),
    Json(json::Door),
}

/// A request, read.
#[derive(Debug)]
pub(crate) struct ReadRequest {
    pub endpoint: Endpoint,
    pub is_get: bool,
    pub peer: IpAddr,
    pub form: Form,
    /// What the JSON protocol said beside the parameters; none if it was not spoken.
    pub ask: Option<json::Ask>,
}

impl ReadRequest {
    /// As the ledger counts it.
    fn name(&self) -> &'static str {
        self.ask.as_ref().map_or(self.endpoint.name(), |ask| ask.door.name)
    }

    fn flavour(&self) -> Option<Flavour> {
        self.ask.as_ref().map(|ask| ask.door.flavour)
    }

    /// What the JSON protocol finds wrong with it; the classic one finds out by itself.
    fn check(&self) -> Result<(), String> {
        match self.ask.as_ref().and_then(|ask| ask.flaw) {
            Some(code) => Err(code.to_owned()),
            None => Ok(()),
        }
    }
}

/// What is true once the reply has been written, and not before.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Mark {
    /// The client knows the id of this task.
    pub submitted: Option<u64>,
    /// The client has these answers.
    pub given: Vec<u64>,
}

/// What becomes of a request.
#[derive(Debug)]
pub(crate) struct Step {
    pub action: Option<Deed>,
    pub rng: Rng,
    pub reply: Reply,
    pub mark: Mark,
    /// The pingback of the task that was taken.
    pub calls: Option<Calls>,
    /// solve.php: the answer to this task is the reply, when it is there.
    pub awaited: Option<(u64, u64)>,
    pub tongue: Tongue,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Outcome {
    Answer(Answer),
    Code(String),
}

/// How a task of the JSON protocol was asked for.
#[derive(Debug)]
pub(crate) struct Spoken {
    pub flavour: Flavour,
    pub task_type: String,
    pub kind: &'static Kind,
}

#[derive(Debug)]
pub(crate) struct Task {
    pub desk: usize,
    pub spoken: Option<Spoken>,
    pub method: String,
    pub is_get: bool,
    pub is_json_by_default: bool,
    pub params: BTreeMap<String, Shown>,
    pub luck: u64,
    pub accepted_at: u64,
    pub price_micros: u64,
    pub solves_at: u64,
    pub outcome: Outcome,
    pub is_over: bool,
    /// When its result is no longer kept.
    pub gone_at: u64,
    pub vanishes: bool,
    pub is_refunded: bool,
    pub reply_delivered: bool,
    pub polls: u64,
    pub reads: u64,
    pub first_read_at: Option<u64>,
    pub pingback: Option<String>,
    pub pingback_refused: Option<&'static str>,
    pub pingbacks_sent: u64,
    pub pingbacks_acked: u64,
    pub is_delivered: bool,
    pub reported: Option<Report>,
    pub reports: u64,
}

impl Task {
    fn flavour(&self) -> Option<Flavour> {
        self.spoken.as_ref().map(|spoken| spoken.flavour)
    }

    fn given<'a>(&self, id: u64, answer: &'a Answer, with_price: bool) -> Given<'a> {
        Given {
            id,
            answer,
            kind: self.spoken.as_ref().map_or_else(|| Kind::of_method(&self.method), |spoken| spoken.kind),
            price_micros: self.price_micros,
            with_price,
            taken_at_ms: self.accepted_at,
            solved_at_ms: self.solves_at,
        }
    }
}

#[derive(Debug)]
pub(crate) struct World {
    settings: Arc<Settings>,
    started_at: u64,
    /// Told apart so that a pingback of before a reset finds nothing.
    pub(crate) generation: u64,
    desks: Vec<AccountState>,
    tasks: BTreeMap<u64, Task>,
    /// By the moment at which they end.
    open: BTreeSet<(u64, u64)>,
    sequence: u64,
    /// How often the same thing was asked for: each time has its own luck.
    occurrences: BTreeMap<u64, u64>,
    /// GeeTest challenges are good for one load.
    challenges: BTreeSet<u64>,
    strangers: Strangers,
    script: Script,
    faults: Faults,
    pub(crate) totals: Totals,
}

/// What is in store for one request.
struct Plan {
    action: Option<Deed>,
    shaping: Vec<Deed>,
    luck: u64,
    rng: Rng,
}

impl World {
    pub(crate) fn new(settings: Arc<Settings>, now: u64) -> Result<Self, BadScript> {
        Ok(Self {
            started_at: now,
            generation: 0,
            desks: settings.accounts.iter().map(AccountState::new).collect(),
            tasks: BTreeMap::new(),
            open: BTreeSet::new(),
            sequence: 0,
            occurrences: BTreeMap::new(),
            challenges: BTreeSet::new(),
            strangers: Strangers::default(),
            script: Script::new(settings.script.clone())?,
            faults: settings.faults.clone(),
            totals: Totals::default(),
            settings,
        })
    }

    pub(crate) fn take(&mut self, now: u64, arrival: &ReadRequest) -> Step {
        self.settle(now);
        count(&mut self.totals.requests, arrival.name());
        if arrival.endpoint == Endpoint::Res {
            count(&mut self.totals.actions, arrival.form.text("action").unwrap_or("none"));
        }
        let tongue = self.tongue(arrival);
        let plan = self.plan(now, arrival);
        if let Some(action) = &plan.action {
            self.count_deed(action);
        }
        let mut step = Step {
            action: plan.action.clone(),
            rng: plan.rng.clone(),
            // Of what was not taken only a broken part can be seen.
            reply: tongue.code("ERROR_SERVER_ERROR"),
            mark: Mark::default(),
            calls: None,
            awaited: None,
            tongue,
        };
        match &plan.action {
            Some(Deed::Code(code)) => step.reply = step.tongue.code(code),
            Some(action) if !action.is_taken() => {}
            _ => {
                let said = match arrival.endpoint {
                    Endpoint::In | Endpoint::Solve => self.submit(now, arrival, &plan, &mut step),
                    Endpoint::Res => self.poll(now, arrival, &plan, &mut step),
                };
                if let Err(code) = said {
                    count(&mut self.totals.codes, step.tongue.spelled(&code));
                    step.reply = step.tongue.code(&code);
                }
            }
        }
        step
    }

    /// What was planned for the requests that cannot be read is nothing: they are refused.
    pub(crate) fn refuse_unreadable(&mut self, entrance: Entrance) -> Reply {
        const CODE: &str = "ERROR_BAD_PARAMETERS";
        let (name, tongue) = match entrance {
            Entrance::Classic(endpoint) => {
                let tongue = Classic::of(&Form::default(), self.settings.profile);
                (endpoint.name(), Tongue::Classic(tongue))
            }
            Entrance::Json(door) => {
                (door.name, Tongue::Json(json::Tongue { flavour: door.flavour, asked: None }))
            }
        };
        count(&mut self.totals.requests, name);
        count(&mut self.totals.codes, tongue.spelled(CODE));
        tongue.code(CODE)
    }

    fn count_deed(&mut self, action: &Deed) {
        let name = if matches!(action, Deed::Status { status: 429, .. }) { "429" } else { action.name() };
        count(&mut self.totals.faults, name);
    }

    /// A poll of a task whose method defaults to JSON does, too.
    fn tongue(&self, arrival: &ReadRequest) -> Tongue {
        let asked_for = self.asked_for(&arrival.form);
        if let Some(flavour) = arrival.flavour() {
            return Tongue::Json(json::Tongue {
                flavour,
                asked: asked_for.map(|(id, task)| (id, task.polls)),
            });
        }
        let mut tongue = Classic::of(&arrival.form, self.settings.profile);
        if arrival.endpoint == Endpoint::Res && !arrival.form.0.contains_key("json") {
            tongue.is_json = asked_for.is_some_and(|(_, task)| task.is_json_by_default);
        }
        Tongue::Classic(tongue)
    }

    fn asked_for(&self, form: &Form) -> Option<(u64, &Task)> {
        let id = form.text("id")?.parse().ok()?;
        Some((id, self.tasks.get(&id)?))
    }

    fn plan(&mut self, now: u64, arrival: &ReadRequest) -> Plan {
        let form = &arrival.form;
        let place = if arrival.endpoint == Endpoint::Res { Place::Poll } else { Place::Submit };
        let id = self.asked_for(form).map(|(id, _)| id);
        let luck = match id.and_then(|id| self.tasks.get_mut(&id)) {
            Some(task) if place == Place::Poll => {
                task.polls += 1;
                Rng::of(task.luck, "poll", task.polls).draw()
            }
            _ => self.fresh_luck(arrival.endpoint, form),
        };
        let asked_for = id.and_then(|id| self.tasks.get(&id));
        let param = |name: &str| match (form.text(name), asked_for) {
            (Some(text), _) => Some(text.to_owned()),
            (None, Some(task)) => match task.params.get(name)? {
                Shown::Text(text) => Some(text.clone()),
                Shown::Bytes { sha256, .. } => Some(sha256.clone()),
            },
            (None, None) => None,
        };
        let due = self.script.due(place, now.saturating_sub(self.started_at), &param);
        let (shaping, mut replies): (Vec<Deed>, Vec<Deed>) = due.into_iter().partition(Deed::shapes_the_task);
        let mut rng = Rng::of(luck, "wire", 0);
        let drawn = match place {
            Place::Poll => self.faults.on_poll(&mut rng),
            _ => self.faults.on_submit(&mut rng),
        };
        let action = if replies.is_empty() { drawn } else { Some(replies.swap_remove(0)) };
        Plan { action, shaping, luck, rng }
    }

    fn fresh_luck(&mut self, endpoint: Endpoint, form: &Form) -> u64 {
        /// How many different requests are told apart before the oldest numbering starts again.
        const OCCURRENCES_MAX: usize = 500_000;
        let hash = request::identity(form);
        let identity = u64::from_be_bytes(hash[..8].try_into().expect("a digest has more than eight bytes"));
        if self.occurrences.len() >= OCCURRENCES_MAX {
            self.occurrences.pop_first();
        }
        let nth = self.occurrences.entry(identity).or_default();
        *nth += 1;
        Rng::of(self.settings.seed ^ identity, endpoint.name(), *nth).draw()
    }

    /// Ends the tasks whose time has come.
    pub(crate) fn settle(&mut self, now: u64) {
        while let Some(&(at, id)) = self.open.first().filter(|(at, _)| *at <= now) {
            self.open.remove(&(at, id));
            let Some(task) = self.tasks.get_mut(&id) else { continue };
            task.is_over = true;
            let desk = &mut self.desks[task.desk];
            desk.open -= 1;
            match &task.outcome {
                Outcome::Answer(_) => {
                    self.totals.solved += 1;
                    desk.solved += 1;
                }
                Outcome::Code(_) => {
                    self.totals.failed += 1;
                    // anti-captcha pays its workers for trying.
                    let is_kept = task.flavour() == Some(Flavour::AntiCaptcha);
                    if self.settings.profile == Profile::TwoCaptcha && !is_kept {
                        refund(task, desk, &mut self.totals);
                    }
                }
            }
        }
    }

    /// The reply is on its way, and cannot be called back.
    pub(crate) fn written(&mut self, now: u64, mark: &Mark) {
        if let Some(task) = mark.submitted.and_then(|id| self.tasks.get_mut(&id)) {
            task.reply_delivered = true;
        }
        for id in &mark.given {
            let Some(task) = self.tasks.get_mut(id) else { continue };
            task.reads += 1;
            task.first_read_at.get_or_insert(now);
            deliver(task, &mut self.totals);
        }
    }
}

fn is_gone(task: &Task, now: u64) -> bool {
    task.is_over && (task.vanishes || now >= task.gone_at)
}

fn deliver(task: &mut Task, totals: &mut Totals) {
    if !task.is_delivered && matches!(task.outcome, Outcome::Answer(_)) {
        task.is_delivered = true;
        totals.delivered += 1;
    }
}

fn refund(task: &mut Task, desk: &mut AccountState, totals: &mut Totals) {
    if !task.is_refunded {
        task.is_refunded = true;
        desk.balance_micros += task.price_micros;
        totals.refunded_micros += task.price_micros;
    }
}
