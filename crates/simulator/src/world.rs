//! The provider itself, without a socket or a clock: a request and the time come in, and what to say comes out. The whole
//! world is one value behind one lock, so that the ledger never shows half of a step.

mod account;
mod books;
mod poll;
mod submit;
#[cfg(test)]
mod tests;

pub use account::AccountChange;

use crate::answer::Answer;
use crate::dice::Dice;
use crate::faults::Faults;
use crate::ledger::{Report, Shown, Totals, count};
use crate::pingback::Calls;
use crate::reply::{Reply, Tongue};
use crate::request;
use crate::script::{BadScript, Deed, Place, Script};
use crate::settings::{Profile, Settings};
use account::{Desk, Strangers};
use quittance_classic::Form;
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

/// A request, read.
#[derive(Debug)]
pub(crate) struct Arrival {
    pub endpoint: Endpoint,
    pub is_get: bool,
    pub peer: IpAddr,
    pub form: Form,
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
    pub deed: Option<Deed>,
    pub dice: Dice,
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

#[derive(Debug)]
pub(crate) struct Task {
    pub desk: usize,
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
}

#[derive(Debug)]
pub(crate) struct World {
    settings: Arc<Settings>,
    started_at: u64,
    /// Told apart so that a pingback of before a reset finds nothing.
    pub(crate) generation: u64,
    desks: Vec<Desk>,
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
    deed: Option<Deed>,
    shaping: Vec<Deed>,
    luck: u64,
    dice: Dice,
}

impl World {
    pub(crate) fn new(settings: Arc<Settings>, now: u64) -> Result<Self, BadScript> {
        Ok(Self {
            started_at: now,
            generation: 0,
            desks: settings.accounts.iter().map(Desk::new).collect(),
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

    pub(crate) fn take(&mut self, now: u64, arrival: &Arrival) -> Step {
        self.settle(now);
        count(&mut self.totals.requests, arrival.endpoint.name());
        let tongue = self.tongue(arrival);
        let plan = self.plan(now, arrival);
        if let Some(deed) = &plan.deed {
            self.count_deed(deed);
        }
        let mut step = Step {
            deed: plan.deed.clone(),
            dice: plan.dice.clone(),
            // Of what was not taken only a broken part can be seen.
            reply: tongue.code("ERROR_SERVER_ERROR"),
            mark: Mark::default(),
            calls: None,
            awaited: None,
            tongue,
        };
        match &plan.deed {
            Some(Deed::Code(code)) => step.reply = step.tongue.code(code),
            Some(deed) if !deed.is_taken() => {}
            _ => {
                let said = match arrival.endpoint {
                    Endpoint::In | Endpoint::Solve => self.submit(now, arrival, &plan, &mut step),
                    Endpoint::Res => self.poll(now, arrival, &plan, &mut step),
                };
                if let Err(code) = said {
                    count(&mut self.totals.codes, &code);
                    step.reply = step.tongue.code(&code);
                }
            }
        }
        step
    }

    /// What was planned for the requests that cannot be read is nothing: they are refused.
    pub(crate) fn refuse_unreadable(&mut self, endpoint: Endpoint) -> Reply {
        count(&mut self.totals.requests, endpoint.name());
        count(&mut self.totals.codes, "ERROR_BAD_PARAMETERS");
        Tongue::of(&Form::default(), self.settings.profile).code("ERROR_BAD_PARAMETERS")
    }

    fn count_deed(&mut self, deed: &Deed) {
        let name = if matches!(deed, Deed::Status { status: 429, .. }) { "429" } else { deed.name() };
        count(&mut self.totals.faults, name);
    }

    /// A poll of a task whose method defaults to JSON does, too.
    fn tongue(&self, arrival: &Arrival) -> Tongue {
        let mut tongue = Tongue::of(&arrival.form, self.settings.profile);
        if arrival.endpoint == Endpoint::Res && !arrival.form.0.contains_key("json") {
            tongue.is_json = self.asked_for(&arrival.form).is_some_and(|(_, task)| task.is_json_by_default);
        }
        tongue
    }

    fn asked_for(&self, form: &Form) -> Option<(u64, &Task)> {
        let id = form.text("id")?.parse().ok()?;
        Some((id, self.tasks.get(&id)?))
    }

    fn plan(&mut self, now: u64, arrival: &Arrival) -> Plan {
        let form = &arrival.form;
        let place = if arrival.endpoint == Endpoint::Res { Place::Poll } else { Place::Submit };
        let id = self.asked_for(form).map(|(id, _)| id);
        let luck = match id.and_then(|id| self.tasks.get_mut(&id)) {
            Some(task) if place == Place::Poll => {
                task.polls += 1;
                Dice::of(task.luck, "poll", task.polls).draw()
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
        let mut dice = Dice::of(luck, "wire", 0);
        let drawn = match place {
            Place::Poll => self.faults.on_poll(&mut dice),
            _ => self.faults.on_submit(&mut dice),
        };
        let deed = if replies.is_empty() { drawn } else { Some(replies.swap_remove(0)) };
        Plan { deed, shaping, luck, dice }
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
        Dice::of(self.settings.seed ^ identity, endpoint.name(), *nth).draw()
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
                    if self.settings.profile == Profile::TwoCaptcha {
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

    fn is_gone(&self, task: &Task, now: u64) -> bool {
        task.is_over
            && (task.vanishes || now >= task.solves_at.saturating_add(self.settings.result_lifetime_ms))
    }
}

fn deliver(task: &mut Task, totals: &mut Totals) {
    if !task.is_delivered && matches!(task.outcome, Outcome::Answer(_)) {
        task.is_delivered = true;
        totals.delivered += 1;
    }
}

fn refund(task: &mut Task, desk: &mut Desk, totals: &mut Totals) {
    if !task.is_refunded {
        task.is_refunded = true;
        desk.balance_micros += task.price_micros;
        totals.refunded_micros += task.price_micros;
    }
}
