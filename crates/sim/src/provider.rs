//! The simulated provider, and the network to it. It remembers every task that it took, even if the reply is lost,
//! and records every payment in the truth.

use crate::executor::{Executor, Group, ReplySlot, WORLD, locked};
use crate::fleet::Fleet;
use crate::rng::Rng;
use crate::truth::{Arrival, Fate, RefusedSubmit, SimFault, Task, Truth};
use crate::weather::{FaultRates, PROVIDERS_MAX, Weather};
use async_trait::async_trait;
use futures_util::future::{Either, select};
use quittance_lifecycle::{
    CallbackResult, Evidence, Fault, FaultClass, Money, Payload, PollOutcome, ProviderAnswer, SubmitOutcome,
    Terms, Value,
};
use quittance_ports::{Callback, CallbackMessage, Guard, Params, Provider, Submission};
use quittance_protocol::json::{JsonCodes, ResultReply, read_result};
use std::pin::pin;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// The names of the providers of a life with several. The only provider of a life has no name.
pub(crate) const PROVIDER_NAMES: [&str; PROVIDERS_MAX] = ["first", "second"];
/// The price of one answer, in millionths.
pub(crate) const PRICE: u64 = 2_990;
/// The longest time until the provider calls after a solve.
const LAG: u64 = 5_000;
/// The longest that a call takes to arrive. A server waits 10 s for its head and 10 s for its body.
const SLOW_CALL: u64 = 19_000;
/// The name under which an answer contains the end of its task, in seconds by the provider's clock.
pub(crate) const TASK_ENDED: &str = "endTime";
/// The provider's pauses before it repeats a callback.
const REPEATS: [u64; 5] = [5_000, 15_000, 40_000, 60_000, 0];
/// How long connecting may take, as in production. A request is not sent on a connection that took longer.
const CONNECT_WAIT: u64 = 10_000;
/// How long our side of a connection waits for a reply.
const WIRE_WAIT: u64 = 20_000;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SimAccount {
    Open,
    NoFunds,
    Closed,
}

/// A provider itself: the same for all nodes.
pub(crate) struct Service {
    /// Its place among the providers of the life.
    pub number: usize,
    pub executor: Executor,
    pub weather: Arc<Weather>,
    pub truth: Arc<Mutex<Truth>>,
    pub account: Mutex<SimAccount>,
    pub fleet: Mutex<Option<Arc<Fleet>>>,
    pub rng: Mutex<Rng>,
    /// By how many milliseconds the provider's clock is ahead; `None` if its answers contain no times.
    pub clock_off_by: Option<i64>,
    pub codes: JsonCodes,
}

/// One node's connection to the provider.
pub(crate) struct ProviderLink {
    pub service: Arc<Service>,
    pub node: Group,
}

fn text(terms: &Terms, name: &str) -> String {
    match terms.params.get(name) {
        Some(Value::Text(text)) => text.clone(),
        Some(Value::Bytes(bytes)) => String::from_utf8_lossy(bytes).trim_end_matches('.').to_owned(),
        None => String::new(),
    }
}

/// What the provider must solve, in the words of the request.
fn identity(terms: &Terms) -> String {
    let site = ["googlekey", "sitekey", "body"].iter().map(|name| text(terms, name)).collect::<String>();
    let (page, action) = (text(terms, "pageurl"), text(terms, "action"));
    format!("{}|{}|{site}|{page}|{action}", terms.tenant, terms.kind)
}

impl Service {
    /// The answer of a task, as a node reads it. Its times are by the provider's clock, in whole seconds.
    fn answer(&self, task: &Task, price: Option<u64>) -> ProviderAnswer {
        let mut payload = Payload::text(task.token());
        let took_at_least = self.clock_off_by.and_then(|off_by| {
            let seconds = |moment: u64| moment.saturating_add_signed(off_by) / 1_000;
            let (created, ended) = (seconds(task.accepted_at), seconds(task.solves_at));
            payload.extras.insert(TASK_ENDED.into(), ended.to_string());
            let body = format!(
                r#"{{"errorId":0,"status":"ready","solution":{{"token":"{}"}},"createTime":{created},"endTime":{ended}}}"#,
                task.token()
            );
            match read_result(body.as_bytes(), &self.codes) {
                ResultReply::Answered { took_at_least, .. } => took_at_least,
                other => unreachable!("it is an answer: {other:?}"),
            }
        });
        ProviderAnswer { payload, took_at_least, cost: price.map(Money) }
    }

    /// The name of this provider in the settings of every node.
    pub(crate) const fn name(&self) -> &'static str {
        PROVIDER_NAMES[self.number]
    }

    fn is_down(&self) -> bool {
        self.weather.is_provider_down(self.number, self.executor.now())
    }

    fn strikes(&self, fault_rate: fn(&FaultRates) -> u64) -> bool {
        self.weather.strikes(&mut locked(&self.rng), fault_rate)
    }

    fn between(&self, least: u64, most: u64) -> u64 {
        locked(&self.rng).in_range(least..most)
    }

    /// Handles a submit that has arrived.
    fn take(self: &Arc<Self>, order: &SubmitInTransit) -> (SubmitOutcome, Option<u64>) {
        let now = self.executor.now();
        let arrival = Arrival {
            sent_at: order.sent_at,
            who: order.who.clone(),
            node: order.node,
            provider: self.number,
        };
        locked(&self.truth).arrivals.push(arrival);
        let class = match *locked(&self.account) {
            SimAccount::NoFunds => Some((FaultClass::NoFunds, "ERROR_ZERO_BALANCE")),
            SimAccount::Closed => Some((FaultClass::AccountBlocked, "ERROR_KEY_DOES_NOT_EXIST")),
            SimAccount::Open if order.identity.contains("bad-site") => {
                Some((FaultClass::Caller, "ERROR_WRONG_GOOGLEKEY"))
            }
            SimAccount::Open if self.strikes(|t| t.submit_busy) => {
                Some((FaultClass::Busy, "ERROR_NO_SLOT_AVAILABLE"))
            }
            SimAccount::Open if self.strikes(|t| t.submit_odd) => {
                Some((FaultClass::UnlistedCode, "ERROR_BLUE_MOON"))
            }
            SimAccount::Open => None,
        };
        if let Some((class, code)) = class {
            let refused = RefusedSubmit {
                who: order.who.clone(),
                node: order.node,
                provider: self.number,
                sent_at: order.sent_at,
                class,
                reached: None,
            };
            locked(&self.truth).refused.push(refused);
            return (SubmitOutcome::Rejected(Fault::new(class, code)), None);
        }
        let solves_at = now + self.solve_time(order);
        let unsolvable = order.identity.contains("hopeless") || self.strikes(|t| t.unsolvable);
        let vanishes = self.strikes(|t| t.result_vanishes);
        let mut truth = locked(&self.truth);
        let id = 1000 + truth.tasks.len() as u64;
        let task = Task {
            id,
            who: order.who.clone(),
            identity: order.identity.clone(),
            key: order.key,
            attempt: order.attempt,
            node: order.node,
            provider: self.number,
            sent_at: order.sent_at,
            accepted_at: now,
            solves_at,
            fate: if unsolvable { Fate::Unsolvable } else { Fate::Answer },
            vanishes_at: if vanishes { solves_at + 1 } else { u64::MAX },
            reply_reached: None,
            answer_returned: None,
            fault_reply: None,
            callback_acked: None,
            callback_begun: None,
            acked_by: None,
            callback_received: None,
        };
        self.executor
            .note(|| format!("provider takes task {id} for {} attempt {}", order.who, order.attempt));
        let at_once =
            (task.fate == Fate::Answer && solves_at == now).then(|| self.answer(&task, Some(PRICE)));
        truth.tasks.push(task);
        drop(truth);
        if let Some(answer) = at_once {
            return (SubmitOutcome::Answered(answer), Some(id));
        }
        if let Some(address) = order.callback.clone() {
            let service = Arc::clone(self);
            self.executor.spawn(WORLD, async move { service.call_back(id, &address).await });
        }
        (SubmitOutcome::Accepted { task: id.to_string() }, Some(id))
    }

    fn solve_time(&self, order: &SubmitInTransit) -> u64 {
        if self.strikes(|t| t.submit_answers_at_once) {
            return 0;
        }
        if self.strikes(|t| t.solved_at_once) {
            return 1;
        }
        let most = if order.identity.contains("|image|") { 8_000 } else { 60_000 };
        // Two throws: most answers come in the middle, a few are very slow.
        let usual = self.between(1_000, most / 2) + self.between(0, most / 2);
        if self.between(0, 100) < 3 { usual * 3 } else { usual }
    }

    /// The reply to a poll for this task now.
    fn state(&self, id: u64) -> PollOutcome {
        let now = self.executor.now();
        if *locked(&self.account) == SimAccount::Closed {
            return PollOutcome::Faulted(Fault::new(FaultClass::AccountBlocked, "ERROR_KEY_DOES_NOT_EXIST"));
        }
        let truth = locked(&self.truth);
        let Some(task) = truth.tasks.iter().find(|task| task.id == id && task.provider == self.number) else {
            return PollOutcome::NoSuchTask(Fault::new(FaultClass::Caller, "ERROR_WRONG_CAPTCHA_ID"));
        };
        match task.fate {
            _ if now >= task.vanishes_at => {
                PollOutcome::NoSuchTask(Fault::new(FaultClass::Caller, "ERROR_WRONG_CAPTCHA_ID"))
            }
            _ if now < task.solves_at => PollOutcome::Pending,
            Fate::Answer => PollOutcome::Answered(self.answer(task, Some(PRICE))),
            Fate::Unsolvable => {
                PollOutcome::Faulted(Fault::new(FaultClass::Unsolvable, "ERROR_CAPTCHA_UNSOLVABLE"))
            }
        }
    }

    async fn call_back(self: Arc<Self>, id: u64, address: &str) {
        let (solves_at, fate, answer) = {
            let truth = locked(&self.truth);
            let Some(task) = truth.tasks.iter().find(|task| task.id == id) else { return };
            // A callback says no price.
            (task.solves_at, task.fate, self.answer(task, None))
        };
        self.executor.sleep_until(solves_at).await;
        let delayed = self.strikes(|t| t.callback_delayed);
        self.executor.sleep(if delayed { self.between(0, LAG) } else { self.between(1, 300) }).await;
        let copies = 1 + u64::from(self.strikes(|t| t.callback_doubled));
        let word = match fate {
            Fate::Answer => CallbackResult::Answered(answer),
            Fate::Unsolvable => {
                CallbackResult::Faulted(Fault::new(FaultClass::Unsolvable, "ERROR_CAPTCHA_UNSOLVABLE"))
            }
        };
        for _ in 0..copies {
            if self.strikes(|t| t.callback_lost) {
                continue;
            }
            // Repeated a few times, like a provider that is better than most.
            for pause in REPEATS {
                if self.deliver(id, address, &word).await {
                    break;
                }
                self.executor.sleep(pause).await;
            }
        }
    }

    async fn deliver(&self, id: u64, address: &str, word: &CallbackResult) -> bool {
        let Some(fleet) = locked(&self.fleet).clone() else { return false };
        let segment = address.rsplit('/').next().unwrap_or_default();
        let begun_at = self.executor.now();
        if self.strikes(|t| t.callback_slow) {
            self.executor.sleep(self.between(0, SLOW_CALL)).await;
            // A call that breaks off with its node leaves nothing behind by which a repeat could be dated
            // (docs/guarantees.md, "What is not noticed"). Here the provider does not repeat it.
            let is_killed = |fault: &SimFault| matches!(fault, SimFault::Killed | SimFault::Gone);
            let faults = &locked(&self.truth).faults;
            if faults.iter().any(|(_, fault, at)| is_killed(fault) && *at >= begun_at) {
                return true;
            }
        }
        let open_for = Duration::from_millis(self.executor.now() - begun_at);
        let Some((ack, node)) = fleet.call_back(segment, Some(id.to_string()), word.clone(), open_for) else {
            return false;
        };
        let received_at = self.executor.now();
        if let Some(task) = locked(&self.truth).tasks.iter_mut().find(|task| task.id == id) {
            task.callback_received.get_or_insert(received_at);
        }
        let late = self.executor.sleep(WIRE_WAIT);
        let Either::Left((true, _)) = select(pin!(ack.filled()), late).await else { return false };
        let now = self.executor.now();
        self.executor.note(|| format!("callback for task {id} acknowledged"));
        let mut truth = locked(&self.truth);
        if let Some(task) = truth.tasks.iter_mut().find(|task| task.id == id) {
            task.callback_acked.get_or_insert(now);
            task.callback_begun.get_or_insert(begun_at);
            task.acked_by.get_or_insert(node);
            match word {
                CallbackResult::Answered(_) => task.answer_returned.get_or_insert(now),
                CallbackResult::Faulted(_) => task.fault_reply.get_or_insert(now),
            };
        }
        true
    }
}

/// A submit on its way to the provider.
struct SubmitInTransit {
    who: String,
    identity: String,
    key: quittance_lifecycle::Key,
    attempt: u32,
    node: Group,
    sent_at: u64,
    callback: Option<String>,
}

/// The name that a placement gave its order (`soft_id`), or the key of an order that fills a place in a pool.
fn who(submission: &Submission<'_>) -> String {
    match submission.terms.slot {
        Some(_) => format!("pool {:?}", submission.key),
        None => text(submission.terms, "soft_id"),
    }
}

#[async_trait]
impl Provider for ProviderLink {
    async fn report(&self, _task: &str, _is_good: bool) -> quittance_lifecycle::ReportOutcome {
        quittance_lifecycle::ReportOutcome::Accepted
    }

    async fn account(&self) -> Option<quittance_ports::Account> {
        None
    }

    fn penalty(&self, _fault: &quittance_lifecycle::Fault) -> Option<quittance_ports::Penalty> {
        None
    }

    fn submit_interval(&self) -> std::time::Duration {
        std::time::Duration::ZERO
    }

    fn read_callback(&self, _callback: &Callback<'_>) -> Option<CallbackMessage> {
        // In this world providers call the engine with words it understands.
        None
    }

    async fn submit(&self, submission: Submission<'_>) -> SubmitOutcome {
        let service = &self.service;
        let executor = service.executor.clone();
        let begun_at = executor.now();
        executor.sleep(service.between(1, 50)).await;
        if executor.now() > begun_at + CONNECT_WAIT {
            return SubmitOutcome::Rejected(Fault::new(FaultClass::Unreachable, "connecting took too long"));
        }
        if service.strikes(|t| t.submit_unreachable) || service.is_down() {
            return SubmitOutcome::Rejected(Fault::new(FaultClass::Unreachable, "connection refused"));
        }
        let order = SubmitInTransit {
            who: who(&submission),
            identity: identity(submission.terms),
            key: submission.key,
            attempt: submission.attempt,
            node: self.node,
            sent_at: executor.now(),
            callback: submission.callback.map(str::to_owned),
        };
        let slot: ReplySlot<(SubmitOutcome, Option<u64>)> = ReplySlot::default();
        let (reply, service) = (slot.clone(), Arc::clone(service));
        let slow = if service.strikes(|t| t.submit_slow) { service.between(1_000, 25_000) } else { 0 };
        let there = service.between(1, 100) + slow;
        let back = service.between(1, 100) + if service.strikes(|t| t.submit_slow) { 5_000 } else { 0 };
        executor.spawn(WORLD, {
            let executor = executor.clone();
            async move {
                executor.sleep(there).await;
                if service.strikes(|t| t.submit_lost) {
                    return;
                }
                let outcome = service.take(&order);
                executor.sleep(back).await;
                if !service.strikes(|t| t.submit_reply_lost) {
                    reply.fill(outcome);
                }
            }
        });
        match select(pin!(slot.filled()), executor.sleep(WIRE_WAIT)).await {
            Either::Left(((outcome, id), _)) => {
                self.reached(&outcome, id, &who(&submission));
                outcome
            }
            Either::Right(_) => SubmitOutcome::InDoubt(Evidence::default()),
        }
    }

    fn preview(&self, _: &str, _: &Params, _: &Guard<'_>) -> Result<(), String> {
        Ok(())
    }

    async fn poll(&self, tasks: &[String]) -> Vec<(String, PollOutcome)> {
        let (service, executor) = (&self.service, &self.service.executor);
        let slow = if service.strikes(|t| t.poll_slow) { service.between(0, 40_000) } else { 0 };
        executor.sleep(service.between(1, 100)).await;
        let mut replies = Vec::new();
        for task in tasks {
            let id = task.parse().unwrap_or(0);
            let outcome = if service.strikes(|t| t.poll_lost) || service.is_down() {
                PollOutcome::NoReply
            } else if service.strikes(|t| t.poll_busy) {
                PollOutcome::Faulted(Fault::new(FaultClass::Busy, "ERROR_TOO_MUCH_REQUESTS"))
            } else if service.strikes(|t| t.poll_odd) {
                PollOutcome::Faulted(Fault::new(FaultClass::UnlistedCode, "<html>502 Bad Gateway</html>"))
            } else {
                service.state(id)
            };
            if !service.strikes(|t| t.poll_part_missing) {
                replies.push((task.clone(), outcome));
            }
        }
        executor.sleep(service.between(1, 100) + slow).await;
        let now = executor.now();
        let mut truth = locked(&service.truth);
        for (task, outcome) in &replies {
            let Some(task) = truth.tasks.iter_mut().find(|known| known.id.to_string() == *task) else {
                continue;
            };
            match outcome {
                PollOutcome::Answered(_) => _ = task.answer_returned.get_or_insert(now),
                PollOutcome::NoSuchTask(_) => _ = task.fault_reply.get_or_insert(now),
                PollOutcome::Faulted(fault)
                    if matches!(fault.class, FaultClass::Unsolvable | FaultClass::Caller) =>
                {
                    task.fault_reply.get_or_insert(now);
                }
                _ => {}
            }
        }
        replies
    }

    fn poll_batch_max(&self) -> usize {
        8
    }
}

impl ProviderLink {
    /// Records that a reply to a submit has reached the node.
    fn reached(&self, outcome: &SubmitOutcome, id: Option<u64>, who: &str) {
        let now = self.service.executor.now();
        let mut truth = locked(&self.service.truth);
        if let Some(id) = id
            && let Some(task) = truth.tasks.iter_mut().find(|task| task.id == id)
        {
            task.reply_reached = Some(now);
            if let SubmitOutcome::Answered(_) = outcome {
                task.answer_returned.get_or_insert(now);
            }
        } else if let SubmitOutcome::Rejected(fault) = outcome {
            let (node, provider) = (self.node, self.service.number);
            let same = |refused: &&mut RefusedSubmit| {
                refused.who == who
                    && refused.node == node
                    && refused.provider == provider
                    && refused.class == fault.class
                    && refused.reached.is_none()
            };
            if let Some(refused) = truth.refused.iter_mut().find(same) {
                refused.reached = Some(now);
            }
        }
    }
}
