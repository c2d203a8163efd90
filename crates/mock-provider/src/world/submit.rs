//! in.php: whether a task is taken, what it costs, when it is solved, and its answer. All of that is fixed when the
//! task is taken, so that no later request can change it.

use super::{
    Endpoint, JsonTaskDetails, MockTask, MockWorld, ReadRequest, RequestPlan, RequestStep, TaskOutcome,
};
use crate::answer::MockAnswer;
use crate::in_php::{self, ProviderRequest};
use crate::json::{JsonKind, MockDialect};
use crate::ledger::count;
use crate::pingback::{Calls, PingbackAddress, first_parameter_only};
use crate::rng::{MockRng, digest};
use crate::script::{FaultAction, RulePlace};
use crate::settings::MockClassicDialect;

/// The longest time to solve a task. A script cannot exceed it.
const SOLVE_MS_MAX: u64 = 7 * 24 * 3_600_000;

/// What `method=get_server_errors` lists.
const SERVER_ERRORS: &[&str] = &[
    "ERROR_WRONG_USER_KEY",
    "ERROR_KEY_DOES_NOT_EXIST",
    "ERROR_ZERO_BALANCE",
    "ERROR_PAGEURL",
    "ERROR_NO_SLOT_AVAILABLE",
    "ERROR_ZERO_CAPTCHA_FILESIZE",
    "ERROR_TOO_BIG_CAPTCHA_FILESIZE",
    "ERROR_IMAGE_TYPE_NOT_SUPPORTED",
    "ERROR_UPLOAD",
    "MAX_USER_TURN",
    "ERROR_GOOGLEKEY",
    "ERROR_WRONG_GOOGLEKEY",
    "ERROR_BAD_PARAMETERS",
    "ERROR_PROXY_FORMAT",
    "ERROR: 1001",
    "ERROR: 1002",
    "ERROR: 1003",
    "ERROR: 1004",
    "ERROR: 1005",
];

/// The planned outcome of a task, and its time.
struct TaskFate {
    outcome: TaskOutcome,
    solve_ms: u64,
    vanishes: bool,
}

impl MockWorld {
    pub(super) fn submit(
        &mut self,
        now: u64,
        arrival: &ReadRequest,
        plan: &RequestPlan,
        step: &mut RequestStep,
    ) -> Result<(), String> {
        if arrival.form.text("method") == Some("get_server_errors") {
            step.reply = step.format.classic()?.bare(&SERVER_ERRORS.join("|"));
            return Ok(());
        }
        let account = self.admit(now, arrival)?;
        let outcome = self.consider(account, arrival);
        self.note_answer(now, account, outcome.as_ref().err().map(String::as_str));
        let (wanted, price_micros) = outcome?;
        let (id, calls) = self.accept(now, account, arrival, plan, &wanted, price_micros);
        step.calls = calls;
        if is_answered_at_once(arrival, &wanted) {
            step.awaited = self.tasks.get(&id).map(|task| (id, task.solves_at));
        } else {
            step.reply = step.format.accepted(id, &wanted.method);
            step.mark.submitted = Some(id);
        }
        Ok(())
    }

    fn consider(&mut self, account: usize, arrival: &ReadRequest) -> Result<(ProviderRequest, u64), String> {
        arrival.check()?;
        let settings = self.settings.clone();
        let wanted = ProviderRequest::read(&arrival.form, &settings)?;
        if arrival.endpoint == Endpoint::Solve && wanted.picture_digest.is_none() {
            return Err("ERROR_UPLOAD".to_owned());
        }
        self.check_offered(account, arrival, &wanted)?;
        let price_micros = settings.price_micros(&self.accounts[account].rules, &wanted.method);
        self.make_room();
        self.check_slots(account, price_micros)?;
        Ok((wanted, price_micros))
    }

    /// Checks that the kind of the task is not rejected. The code is the one for a method that is not supported.
    fn check_offered(
        &mut self,
        account: usize,
        arrival: &ReadRequest,
        wanted: &ProviderRequest,
    ) -> Result<(), String> {
        let task_type = arrival.ask.as_ref().map_or("", |ask| ask.task_type.as_str());
        // The classic protocol of Anti-Captcha takes pictures only.
        let only_pictures = self.settings.json_service.only() == Some(MockDialect::AntiCaptcha);
        let is_lacking = only_pictures && arrival.ask.is_none() && wanted.picture_digest.is_none();
        let version = arrival.form.text("version");
        let is_rejected = self.faults_of(Some(account)).rejects(&wanted.method, version, task_type);
        if is_rejected {
            count(&mut self.totals.faults, "rejects");
        }
        match (is_rejected || is_lacking, &arrival.ask) {
            (false, _) => Ok(()),
            (true, Some(_)) => Err("ERROR_TASK_NOT_SUPPORTED".to_owned()),
            (true, None) => Err("ERROR_METHOD_CALL".to_owned()),
        }
    }

    /// Forgets the oldest task if it is over and the ledger is full.
    fn make_room(&mut self) {
        if self.tasks.len() >= self.settings.tasks_max
            && self.tasks.first_key_value().is_some_and(|(_, task)| task.is_over)
        {
            self.tasks.pop_first();
            self.totals.forgotten += 1;
        }
    }

    fn accept(
        &mut self,
        now: u64,
        account: usize,
        arrival: &ReadRequest,
        plan: &RequestPlan,
        wanted: &ProviderRequest,
        price_micros: u64,
    ) -> (u64, Option<Calls>) {
        let id = self.next_id();
        let (pingback, pingback_refused) = self.pingback_of(account, arrival);
        let goes_back = pingback.is_some() && pingback_refused.is_none();
        let fate = self.fate(id, account, arrival, plan, wanted, goes_back);
        let actions = match goes_back {
            true => self.pingback_actions(now, account, arrival, plan.luck),
            false => Vec::new(),
        };
        let is_early = actions.contains(&FaultAction::Early);
        let solves_at = now + if is_early { 0 } else { fate.solve_ms.min(SOLVE_MS_MAX) };
        let calls = goes_back.then_some(Calls { id, at: solves_at, generation: self.generation, actions });
        let spoken = arrival.ask.as_ref().map(|ask| JsonTaskDetails {
            dialect: ask.endpoint.dialect,
            task_type: ask.task_type.clone(),
            kind: ask.kind.unwrap_or_else(|| JsonKind::of_method(&wanted.method)),
        });
        let task = MockTask {
            account,
            spoken,
            method: wanted.method.clone(),
            is_get: arrival.is_get,
            is_json_by_default: wanted.method.starts_with("geetest"),
            params: in_php::ledger_params(&arrival.form),
            luck: plan.luck,
            accepted_at: now,
            price_micros,
            solves_at,
            outcome: fate.outcome,
            is_over: false,
            gone_at: self.gone_at(arrival, now, solves_at),
            vanishes: fate.vanishes,
            is_refunded: false,
            reply_delivered: false,
            polls: 0,
            reads: 0,
            first_read_at: None,
            pingback,
            pingback_refused,
            pingbacks_sent: 0,
            pingbacks_acked: 0,
            is_delivered: false,
            reported: None,
            reports: 0,
        };
        self.book(id, account, task);
        (id, calls)
    }

    /// The outcome of the task. The script overrides what is drawn.
    fn fate(
        &mut self,
        id: u64,
        account: usize,
        arrival: &ReadRequest,
        plan: &RequestPlan,
        wanted: &ProviderRequest,
        goes_back: bool,
    ) -> TaskFate {
        let mut rng = MockRng::of(plan.luck, "task", 0);
        let span = self.settings.solve_span(&self.accounts[account].rules, &wanted.method);
        let json_dialect = arrival.dialect();
        let name = json_dialect.map_or_else(|| id.to_string(), |dialect| dialect.spelled_id(id));
        let classic_dialect = json_dialect.is_none().then_some(self.settings.dialect);
        let answer = MockAnswer::make(&name, plan.luck, wanted, &arrival.form, classic_dialect);
        // A machine that answers in the same breath is quicker than people.
        let hurry = if json_dialect.is_some() && is_answered_at_once(arrival, wanted) { 10 } else { 1 };
        let mut fate = TaskFate {
            outcome: TaskOutcome::Answer(answer),
            solve_ms: self.settings.at_speed(rng.between(span.from, span.to)) / hurry,
            vanishes: false,
        };
        if self.is_used_challenge(wanted, arrival) {
            fate.outcome = TaskOutcome::Code("ERROR_TOKEN_EXPIRED".to_owned());
        }
        let rates = self.faults_of(Some(account));
        let mut actions = Vec::new();
        actions.extend(rng.strikes(rates.unsolvable).then_some(FaultAction::Unsolvable));
        actions.extend(rng.strikes(rates.vanished).then_some(FaultAction::Vanish));
        actions.extend((rng.strikes(rates.pingback.code) && goes_back).then_some(FaultAction::Unsolvable));
        actions.extend_from_slice(&plan.shaping);
        for action in &actions {
            self.count_action(action);
            match action {
                FaultAction::Unsolvable => {
                    fate.outcome = TaskOutcome::Code("ERROR_CAPTCHA_UNSOLVABLE".to_owned());
                }
                FaultAction::Vanish => fate.vanishes = true,
                FaultAction::SolveMs(ms) => fate.solve_ms = *ms,
                FaultAction::Answer(text) => fate.outcome = TaskOutcome::Answer(MockAnswer::text(text)),
                _ => {}
            }
        }
        fate
    }

    fn gone_at(&self, arrival: &ReadRequest, now: u64, solves_at: u64) -> u64 {
        let limits = &self.settings.json;
        let own = match arrival.dialect().or(self.settings.json_service.only()) {
            Some(MockDialect::AntiCaptcha) => solves_at.saturating_add(limits.anticaptcha_result_ms),
            Some(MockDialect::CapMonster) => solves_at.saturating_add(limits.capmonster_result_ms),
            Some(MockDialect::CapSolver) => now.saturating_add(limits.capsolver_task_ms),
            Some(MockDialect::TwoCaptcha) | None => u64::MAX,
        };
        own.min(solves_at.saturating_add(self.settings.result_lifetime_ms))
    }

    fn book(&mut self, id: u64, account: usize, task: MockTask) {
        let account = &mut self.accounts[account];
        account.open += 1;
        account.totals.open_max = account.totals.open_max.max(account.open as u64);
        account.totals.accepted += 1;
        account.totals.paid_micros += task.price_micros;
        // captchaai sells threads by the month: a task is worth its price, but takes nothing from a balance.
        if self.settings.dialect == MockClassicDialect::TwoCaptcha {
            account.balance_micros -= task.price_micros;
        }
        self.totals.accepted += 1;
        self.totals.paid_micros += task.price_micros;
        self.totals.pingbacks_refused += u64::from(task.pingback_refused.is_some());
        self.open.insert((task.solves_at, id));
        self.tasks.insert(id, task);
    }

    /// The next id: larger than 32 bits, as real ids are, and without a pattern that clients could rely on.
    fn next_id(&mut self) -> u64 {
        /// Between the first ids of two services: more than a seed can add. The ids of 64 services fit into the last
        /// group of a UUID.
        const SERVICE_IDS: u64 = 2_000_000_000_000;
        self.sequence += 1;
        let of_seed = 70_000_000_000 + self.settings.seed % 1_000 * 1_000_000_000;
        let base = of_seed + self.place.number * SERVICE_IDS;
        base + self.sequence * 10 + MockRng::of(self.seed, "id", self.sequence).between(0, 10)
    }

    fn is_used_challenge(&mut self, wanted: &ProviderRequest, arrival: &ReadRequest) -> bool {
        /// The most challenges that are kept. Above it the smallest is dropped.
        const CHALLENGES_MAX: usize = 100_000;
        let Some(challenge) = arrival.form.text("challenge").filter(|_| wanted.method == "geetest") else {
            return false;
        };
        if self.challenges.len() >= CHALLENGES_MAX {
            self.challenges.pop_first();
        }
        let hash = digest([challenge.as_bytes()]);
        !self
            .challenges
            .insert(u64::from_be_bytes(hash[..8].try_into().expect("a digest has more than eight bytes")))
    }

    fn pingback_of(&self, account: usize, arrival: &ReadRequest) -> (Option<String>, Option<&'static str>) {
        let Some(url) = arrival.form.text("pingback") else { return (None, None) };
        let url = if arrival.is_get { first_parameter_only(url) } else { url.to_owned() };
        let is_registered =
            || self.accounts[account].pingbacks.iter().any(|known| PingbackAddress::same_host(known, &url));
        let is_two_captcha =
            arrival.dialect().map_or(self.settings.dialect == MockClassicDialect::TwoCaptcha, |dialect| {
                dialect == MockDialect::TwoCaptcha
            });
        let is_strict = self.settings.strict_pingback && is_two_captcha;
        let refused = match PingbackAddress::read(&url) {
            Err(why) => Some(why),
            Ok(_) if is_strict && !is_registered() => Some("not registered"),
            Ok(_) => None,
        };
        (Some(url), refused)
    }

    fn pingback_actions(
        &mut self,
        now: u64,
        account: usize,
        arrival: &ReadRequest,
        luck: u64,
    ) -> Vec<FaultAction> {
        let param = |name: &str| arrival.form.text(name).map(str::to_owned);
        let mut actions = self.script.due(RulePlace::Pingback, now.saturating_sub(self.started_at), &param);
        actions.extend(self.faults_of(Some(account)).on_pingback(&mut MockRng::of(luck, "pingback", 0)));
        for action in &actions {
            count(&mut self.totals.faults, &format!("pingback_{}", action.name()));
        }
        actions
    }
}

/// Whether the reply waits for the answer: always at solve.php, and for a picture at CapSolver's createTask.
fn is_answered_at_once(arrival: &ReadRequest, wanted: &ProviderRequest) -> bool {
    let is_picture = wanted.pictures > 0;
    arrival.endpoint == Endpoint::Solve || (arrival.dialect() == Some(MockDialect::CapSolver) && is_picture)
}
