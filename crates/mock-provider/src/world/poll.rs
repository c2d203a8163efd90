//! res.php: answers for requests with the right key and the right id, the balance, reports, and the registered
//! pingback addresses. A repeated poll gets the same answer.

use super::account::TASK_POLLS_BAN;
use super::{
    Endpoint, Entrance, MockTask, MockWorld, ReadRequest, RequestPlan, RequestStep, TaskOutcome, deliver,
    is_gone, refund,
};
use crate::answer::MockAnswer;
use crate::json::{self, MockDialect};
use crate::ledger::{MockReport, count};
use crate::pingback::{PingbackAddress, Words};
use crate::response_text::{Classic, MockReply, NOT_READY};
use crate::script::FaultAction;
use crate::settings::{MockClassicDialect, Settings};
use std::net::IpAddr;

/// How many ids one poll can hold.
const IDS_MAX: usize = 1_000;
/// How many pingback addresses an account can register.
const PINGBACKS_MAX: usize = 100;
/// Below this many solved tasks, no client counts as reporting too often.
const REPORTS_COUNT_FROM: u64 = 10;

impl MockWorld {
    pub(super) fn poll(
        &mut self,
        now: u64,
        arrival: &ReadRequest,
        plan: &RequestPlan,
        step: &mut RequestStep,
    ) -> Result<(), String> {
        let account = self.admit(now, arrival)?;
        arrival.check()?;
        let form = &arrival.form;
        step.reply = match form.text("action").unwrap_or_default() {
            "get" if form.0.contains_key("ids") => self.read_many(now, account, arrival, plan, step)?,
            "get" => self.read_one(now, account, arrival, plan, step, false)?,
            "get2" => self.read_one(now, account, arrival, plan, step, true)?,
            "getbalance" => step.format.balance(self.accounts[account].balance_micros),
            "reportgood" => self.report(now, account, arrival, step, MockReport::Good)?,
            "reportbad" => self.report(now, account, arrival, step, MockReport::Bad)?,
            "threadsinfo" if self.settings.dialect == MockClassicDialect::CaptchaAi => {
                let (threads, working) =
                    (self.accounts[account].threads_limit(), self.accounts[account].open);
                let format = step.format.classic()?;
                format.json(format!(r#"{{"status":1,"threads":{threads},"working_threads":{working}}}"#))
            }
            "add_pingback" | "get_pingback" | "del_pingback" => {
                self.pingbacks(account, arrival, step.format.classic()?)?
            }
            _ => return Err("ERROR_EMPTY_ACTION".to_owned()),
        };
        Ok(())
    }

    /// The answer of a task, or an error code.
    fn read(&self, now: u64, account: usize, id: &str) -> Result<(u64, &MockTask, &MockAnswer), String> {
        let id = id.trim();
        if id.is_empty() || id.len() > 18 || !id.bytes().all(|byte| byte.is_ascii_digit()) {
            return Err("ERROR_WRONG_ID_FORMAT".to_owned());
        }
        let id: u64 = id.parse().map_err(|_| "ERROR_WRONG_ID_FORMAT".to_owned())?;
        let task = self.tasks.get(&id).filter(|task| task.account == account && !is_gone(task, now));
        let task = task.ok_or("ERROR_WRONG_CAPTCHA_ID")?;
        match &task.outcome {
            _ if !task.is_over => Err(NOT_READY.to_owned()),
            TaskOutcome::Answer(answer) => Ok((id, task, answer)),
            TaskOutcome::Code(code) => Err(code.clone()),
        }
    }

    fn read_one(
        &mut self,
        now: u64,
        account: usize,
        arrival: &ReadRequest,
        plan: &RequestPlan,
        step: &mut RequestStep,
        with_price: bool,
    ) -> Result<MockReply, String> {
        if plan.shaping.contains(&FaultAction::Vanish) {
            self.vanish(arrival);
        }
        self.check_task_polls(now, account, arrival)?;
        let (id, task, answer) = self.read(now, account, arrival.form.text("id").unwrap_or_default())?;
        step.mark.answered_ids.push(id);
        Ok(step.format.answer(&task.solved_task(id, answer, with_price)))
    }

    /// Checks the limit of polls for one task, which CapMonster and CapSolver have. CapMonster bans the client, too.
    fn check_task_polls(&mut self, now: u64, account: usize, arrival: &ReadRequest) -> Result<(), String> {
        let Some((_, task)) = self.task_of(&arrival.form) else { return Ok(()) };
        match task.dialect() {
            _ if task.polls <= self.settings.json.polls_max => Ok(()),
            Some(MockDialect::CapMonster) => {
                if self.settings.pace.is_on {
                    let until = now.saturating_add(self.settings.pace.task_polls_ban_ms);
                    self.ban(account, TASK_POLLS_BAN, until);
                }
                Err(TASK_POLLS_BAN.to_owned())
            }
            Some(MockDialect::CapSolver) => Err("ERROR_WRONG_CAPTCHA_ID".to_owned()),
            Some(MockDialect::TwoCaptcha | MockDialect::AntiCaptcha) | None => Ok(()),
        }
    }

    fn vanish(&mut self, arrival: &ReadRequest) {
        let id = self.task_of(&arrival.form).map(|(id, _)| id);
        if let Some(task) = id.and_then(|id| self.tasks.get_mut(&id)) {
            task.vanishes = true;
            count(&mut self.totals.faults, FaultAction::Vanish.name());
        }
    }

    fn read_many(
        &mut self,
        now: u64,
        account: usize,
        arrival: &ReadRequest,
        plan: &RequestPlan,
        step: &mut RequestStep,
    ) -> Result<MockReply, String> {
        let mut ids: Vec<&str> = arrival.form.text("ids").unwrap_or_default().split(',').collect();
        if ids.len() > IDS_MAX {
            return Err("ERROR_WRONG_ID_FORMAT".to_owned());
        }
        for id in &ids {
            let task = id.trim().parse().ok().and_then(|id: u64| self.tasks.get_mut(&id));
            task.into_iter().for_each(|task| task.polls += 1);
        }
        if plan.action == Some(FaultAction::FewerParts) {
            ids.truncate(ids.len() / 2);
        }
        let mut parts = Vec::new();
        for id in ids {
            parts.push(match self.read(now, account, id) {
                Ok((id, _, answer)) => {
                    step.mark.answered_ids.push(id);
                    answer.plain()
                }
                Err(code) => code,
            });
        }
        Ok(step.format.classic()?.bare(&parts.join("|")))
    }

    /// Fills in the reply of a request that has waited for its task.
    pub(crate) fn answer_awaited(&mut self, now: u64, id: u64, step: &mut RequestStep) {
        self.settle(now);
        let Some(task) = self.tasks.get(&id) else { return };
        step.mark.submitted = Some(id);
        step.reply = match &task.outcome {
            TaskOutcome::Answer(answer) => {
                step.mark.answered_ids.push(id);
                step.format.answer(&task.solved_task(id, answer, false))
            }
            TaskOutcome::Code(code) => step.format.code(code),
        };
    }

    fn report(
        &mut self,
        now: u64,
        account: usize,
        arrival: &ReadRequest,
        step: &RequestStep,
        report: MockReport,
    ) -> Result<MockReply, String> {
        let refused = match self.settings.dialect {
            MockClassicDialect::TwoCaptcha => "REPORT_NOT_RECORDED",
            MockClassicDialect::CaptchaAi => "ERROR_REPORT_NOT_RECORDED",
        };
        let id_text = arrival.form.text("id").unwrap_or_default();
        let task = id_text.parse().ok().and_then(|id: u64| self.tasks.get_mut(&id));
        task.into_iter().for_each(|task| task.reports += 1);
        let id = match self.read(now, account, id_text) {
            Ok((id, ..)) => id,
            Err(code) if code.starts_with("ERROR_WRONG_") => return Err(code),
            // Nothing was given that could be good or bad.
            Err(_) => return Err(refused.to_owned()),
        };
        let (window, dialect) = (self.settings.report_window_ms, self.settings.dialect);
        let account = &mut self.accounts[account];
        let task = self.tasks.get_mut(&id).ok_or("ERROR_WRONG_CAPTCHA_ID")?;
        if arrival.ask.as_ref().is_some_and(|ask| !ask.concerns.suits(&task.method)) {
            return Err("ERROR_WRONG_CAPTCHA_ID".to_owned());
        }
        if task.reported.is_some() {
            return Err("ERROR_DUPLICATE_REPORT".to_owned());
        }
        let complains_too_often =
            account.solved >= REPORTS_COUNT_FROM && (account.bad_reports + 1) * 10 > account.solved * 4;
        if now >= task.solves_at.saturating_add(window) || (report == MockReport::Bad && complains_too_often)
        {
            return Err(refused.to_owned());
        }
        task.reported = Some(report);
        match report {
            MockReport::Good => self.totals.reported_good += 1,
            MockReport::Bad => {
                self.totals.reported_bad += 1;
                account.bad_reports += 1;
                if dialect == MockClassicDialect::TwoCaptcha {
                    refund(task, account, &mut self.totals);
                }
            }
        }
        Ok(step.format.reported())
    }

    fn pingbacks(
        &mut self,
        account: usize,
        arrival: &ReadRequest,
        format: &Classic,
    ) -> Result<MockReply, String> {
        let known = &mut self.accounts[account].pingbacks;
        let address = arrival.form.text("addr");
        match (arrival.form.text("action"), address) {
            (Some("add_pingback"), Some(address)) => {
                // The real one wants the request to come from the address itself.
                PingbackAddress::read(address).map_err(|_| "ERROR_IP_ADDRES".to_owned())?;
                if known.len() < PINGBACKS_MAX {
                    known.insert(address.to_owned());
                }
                Ok(format.bare("OK"))
            }
            (Some("del_pingback"), Some("all")) => {
                known.clear();
                Ok(format.bare("OK"))
            }
            (Some("del_pingback"), Some(address)) => {
                known.remove(address);
                Ok(format.bare("OK"))
            }
            (Some("get_pingback"), _) => {
                let all: Vec<&str> = known.iter().map(String::as_str).collect();
                Ok(format.ok(&all.join("|")))
            }
            _ => Err("ERROR_BAD_PARAMETERS".to_owned()),
        }
    }

    /// The address and content of a pingback. A `lie` replaces the id and the outcome. `None` if the task is no
    /// longer known.
    pub(crate) fn pingback(
        &mut self,
        now: u64,
        generation: u64,
        id: u64,
        lie: Option<&(u64, TaskOutcome)>,
    ) -> Option<(String, Words)> {
        self.settle(now);
        let task = self.tasks.get(&id).filter(|_| generation == self.generation)?;
        let (id, outcome) = lie.map_or((id, &task.outcome), |(id, outcome)| (*id, outcome));
        let words = match (task.dialect(), outcome) {
            (Some(dialect), outcome) => {
                let format = json::JsonFormat { dialect, polled_task: None };
                Words::Json(match outcome {
                    TaskOutcome::Answer(answer) => {
                        format.callback(Ok(&task.solved_task(id, answer, false)), id)
                    }
                    TaskOutcome::Code(code) => format.callback(Err(code), id),
                })
            }
            (None, TaskOutcome::Answer(answer)) => Words::Form { id, code: answer.plain() },
            (None, TaskOutcome::Code(code)) => Words::Form { id, code: code.clone() },
        };
        Some((task.pingback.clone()?, words))
    }

    /// Counts a pingback that was sent. It delivers the answer if it was answered with 200 and is honest.
    pub(crate) fn called(&mut self, generation: u64, id: u64, is_acked: bool, is_honest: bool) {
        let Some(task) = self.tasks.get_mut(&id).filter(|_| generation == self.generation) else { return };
        task.pingbacks_sent += 1;
        self.totals.pingbacks_sent += 1;
        if is_acked {
            task.pingbacks_acked += 1;
            self.totals.pingbacks_acked += 1;
            if is_honest {
                deliver(task, &mut self.totals);
            }
        }
    }

    /// Whether a request from this address may use the control API.
    pub(crate) fn may_control(peer: IpAddr) -> bool {
        peer.to_canonical().is_loopback()
    }

    pub(crate) fn count_request(&mut self, name: &str) {
        count(&mut self.totals.requests, name);
    }

    pub(crate) fn count_fault(&mut self, name: &str) {
        count(&mut self.totals.faults, name);
    }

    /// The endpoint at a path, or `None` if this service has none there.
    pub(crate) fn entrance(path: &str, settings: &Settings) -> Option<Entrance> {
        // CapSolver is the only service that is not known to speak the classic protocol.
        let is_classic = settings.json_service.only() != Some(MockDialect::CapSolver);
        match path {
            "/in.php" if is_classic => Some(Entrance::Classic(Endpoint::In)),
            "/res.php" if is_classic => Some(Entrance::Classic(Endpoint::Res)),
            "/solve.php" if settings.dialect == MockClassicDialect::CaptchaAi => {
                Some(Entrance::Classic(Endpoint::Solve))
            }
            _ => json::JsonEndpoint::of_service(path, settings.json_service).map(Entrance::Json),
        }
    }
}
