//! The JSON door: `createTask`, `getTaskResult` and what belongs to them, in the manners of four providers. It translates;
//! what a caller may do and see is decided by the order service.
//!
//! Every answer of the protocol, an error as well, goes out with status 200. One provider sends its errors with 400 and
//! 401; its clients read the same JSON at any status, while many a client of the others reads none beside a 200.

mod manners;
mod said;
#[cfg(test)]
mod tests;
mod wrong;

pub(crate) use wrong::spelled;

use crate::api::{self, ApiRequest, Body};
use crate::id::OrderId;
use crate::orders::{Accepted, NotSeen, OrderRequest, OrderService, OrderView, Reported};
use crate::tenant::Caller;
use crate::wrong_keys::Visit;
use hyper::{Method, Response, StatusCode};
use quittance_engine::Outcome;
use quittance_lifecycle::{Answer, Order, Origin, Terms};
use quittance_ports::StoreError;
use quittance_protocol::json::{FinishedTask, JsonDialect, Statistic, TaskId};
use said::JsonBody;
use serde_json::{Map, Value};
use std::time::Duration;
use wrong::Wrong;

/// How long a client is kept waiting for a store that is slow.
#[derive(Clone, Copy, Debug)]
struct Timeout {
    place: Duration,
    look: Duration,
    /// How long `createTask` waits where its dialect answers with the solution.
    solve: Duration,
}

impl Timeout {
    /// Some clients hang up after five seconds, and take their task for lost.
    const DEFAULT: Self =
        Self { place: Duration::from_secs(4), look: Duration::from_secs(3), solve: Duration::from_secs(30) };
}

/// Whoever placed it is not on record; a field that clients want is there all the same.
const NO_ADDRESS: &str = "0.0.0.0";

/// What can be asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verb {
    Create,
    Result,
    Balance,
    Report {
        is_good: bool,
    },
    /// The body says whether it was good.
    Feedback,
    Statistic(Statistic),
    /// A method that nobody knows here.
    Other,
    /// Says what was said.
    Test,
}

impl Verb {
    fn of(path: &str) -> Option<Self> {
        let name = path.strip_prefix('/')?;
        match name.strip_suffix('/').unwrap_or(name) {
            "createTask" => Some(Self::Create),
            "getTaskResult" => Some(Self::Result),
            "getBalance" => Some(Self::Balance),
            "feedbackTask" => Some(Self::Feedback),
            "test" => Some(Self::Test),
            name => match (quittance_protocol::json::reply::report_named(name), Statistic::named(name)) {
                (Some(is_good), _) => Some(Self::Report { is_good }),
                (None, Some(which)) => Some(Self::Statistic(which)),
                (None, None) => is_method_name(name).then_some(Self::Other),
            },
        }
    }
}

/// Written as the protocol's methods are (`getAppStats`), and as nothing else here is: whoever asks for it reads JSON.
fn is_method_name(name: &str) -> bool {
    name.starts_with(|first: char| first.is_ascii_lowercase())
        && name.contains(|letter: char| letter.is_ascii_uppercase())
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric())
}

/// Clones share the order service.
#[derive(Clone, Debug)]
pub(crate) struct JsonApi {
    orders: OrderService,
    /// The manners of whoever has chosen none, if the operator has.
    dialect: Option<JsonDialect>,
    timeout: Timeout,
}

impl JsonApi {
    pub(crate) fn new(orders: OrderService, dialect: Option<String>) -> Self {
        let dialect = dialect.and_then(|name| JsonDialect::parse(&name));
        Self { orders, dialect, timeout: Timeout::DEFAULT }
    }

    /// Whether a path, without the dialect before it, leads here.
    pub(crate) fn is_for(path: &str) -> bool {
        Verb::of(path).is_some()
    }

    pub(crate) async fn answer(&self, asked: ApiRequest) -> Response<Body> {
        let (said, broken) = match JsonBody::read(&asked.body) {
            Ok(said) => (said, None),
            Err(wrong) => (JsonBody::default(), Some(wrong)),
        };
        let caller = said.key().and_then(|key| self.caller(key));
        match (&caller, said.key()) {
            (Some(caller), _) => Visit::note_tenant(&asked.head.extensions, caller.tenant.name()),
            // Where any key will do, there is none to guess.
            (None, _) if self.orders.tenants().is_open() => {}
            (None, Some(key)) => Visit::note_wrong(&asked.head.extensions, key, self.orders.wrong_keys()),
            (None, None) => {}
        }
        let dialect = self.manners(&asked, &said, caller.as_ref());
        let answer = match (Verb::of(&asked.path), broken, caller) {
            (None | Some(Verb::Other), ..) => Err(Wrong::NoSuchMethod),
            (Some(_), ..) if asked.head.method != Method::POST => Err(Wrong::NotPost),
            (Some(_), Some(broken), _) => Err(broken),
            (Some(Verb::Test), None, _) => Ok(in_json(said.echo())),
            // Nobody sends a key with this question.
            (Some(Verb::Statistic(which @ Statistic::Queue)), None, _) if dialect.facts().has_statistics => {
                Ok(in_json(quittance_protocol::json::statistic(which)))
            }
            (Some(_), None, None) => Err(Wrong::Key),
            (Some(verb), None, Some(caller)) => self.serve(verb, dialect, caller, said, &asked).await,
        };
        answer.unwrap_or_else(|wrong| in_json(wrong.told(dialect)))
    }

    async fn serve(
        &self,
        verb: Verb,
        dialect: JsonDialect,
        caller: Caller,
        said: JsonBody,
        asked: &ApiRequest,
    ) -> Result<Response<Body>, Wrong> {
        let body = match verb {
            Verb::Create => {
                let is_held = said.type_name().is_some_and(|name| dialect.is_answered_in_create(name));
                let request = said.request(dialect, &asked.head.headers)?;
                return self
                    .create(dialect, caller, OrderRequest { trace: asked.trace(), ..request }, is_held)
                    .await;
            }
            Verb::Result => return self.result(dialect, &caller, &said).await,
            Verb::Balance => self.balance(dialect, &caller).await,
            Verb::Report { is_good } => self.report(dialect, caller, said.task_id()?, is_good).await,
            Verb::Feedback => self.report(dialect, caller, said.task_id()?, said.is_good()?).await,
            Verb::Statistic(which) if dialect.facts().has_statistics => {
                Ok(quittance_protocol::json::statistic(which))
            }
            Verb::Statistic(_) | Verb::Other => Err(Wrong::NoSuchMethod),
            Verb::Test => Ok(said.echo()),
        };
        body.map(in_json)
    }

    /// Where nobody needs a key of ours, any will do: clients cannot do without one.
    fn caller(&self, key: &str) -> Option<Caller> {
        let tenants = self.orders.tenants();
        match tenants.local() {
            Some(local) => said::local_caller(local, key),
            None => tenants.caller(key).ok(),
        }
    }

    fn manners(&self, asked: &ApiRequest, said: &JsonBody, caller: Option<&Caller>) -> JsonDialect {
        let of_path = asked.dialect.and_then(JsonDialect::parse);
        let of_tenant =
            || caller.and_then(|caller| JsonDialect::parse(caller.tenant.settings.dialect.as_deref()?));
        of_path
            .or_else(of_tenant)
            .or(self.dialect)
            .unwrap_or_else(|| manners::guess(&asked.head.headers, said))
    }

    // ---- placing -------------------------------------------------------------------------------------------

    /// `is_held`: clients of this dialect take the solution of such a task from here, and ask no more.
    async fn create(
        &self,
        dialect: JsonDialect,
        caller: Caller,
        request: OrderRequest,
        is_held: bool,
    ) -> Result<Response<Body>, Wrong> {
        let accepted = self.place(caller, request).await?;
        let response = self.created(dialect, &accepted, is_held).await?;
        Ok(api::with_origin(response, &accepted))
    }

    async fn created(
        &self,
        dialect: JsonDialect,
        accepted: &Accepted,
        is_held: bool,
    ) -> Result<Response<Body>, Wrong> {
        let id = accepted.id;
        // What is there already is not worth another question, where the protocol has a word for it.
        let is_there = dialect.facts().status_in_create && accepted.placed.origin != Origin::Api;
        let timeout = match (is_held, is_there) {
            (true, _) => Some(self.timeout.solve),
            (false, true) => Some(Duration::ZERO),
            (false, false) => None,
        };
        if let Some(timeout) = timeout {
            let there = self.orders.wait_for_accepted(accepted, timeout);
            match tokio::time::timeout(timeout.max(self.timeout.look), there).await {
                Ok(Ok(OrderView { order, outcome: Outcome::Answered(answer) })) => {
                    return Ok(self.finished(dialect, id, &order, &answer));
                }
                Ok(Ok(OrderView { outcome, .. })) if is_held && !matches!(outcome, Outcome::NotYet) => {
                    return Err(Wrong::Outcome(outcome));
                }
                _ => {}
            }
        }
        Ok(in_json(quittance_protocol::json::created(dialect, TaskId(id.number()))))
    }

    /// A caller who hangs up, or whose time is up, does not stop what he began half-way.
    async fn place(&self, caller: Caller, request: OrderRequest) -> Result<Accepted, Wrong> {
        let orders = self.orders.clone();
        match api::carry_out(async move { orders.place(&caller, request).await }, self.timeout.place).await {
            Some(placed) => Ok(placed?),
            None => Err(Wrong::Away),
        }
    }

    // ---- reading -------------------------------------------------------------------------------------------

    async fn result(
        &self,
        dialect: JsonDialect,
        caller: &Caller,
        said: &JsonBody,
    ) -> Result<Response<Body>, Wrong> {
        let id = said.task_id()?;
        let processing = || Ok(in_json(quittance_protocol::json::processing(dialect, TaskId(id.number()))));
        let seen = match tokio::time::timeout(self.timeout.look, self.orders.look(caller, id)).await {
            Ok(Ok(seen)) => seen,
            Ok(Err(NotSeen::Unknown)) => return Err(Wrong::TaskUnknown),
            Ok(Err(NotSeen::StoreAway(StoreError::Corrupt { .. }))) => return Err(Wrong::Damaged),
            // His task may be paid for: to tell him of our troubles would make him give it up.
            Ok(Err(NotSeen::StoreAway(_))) | Err(_) => return processing(),
        };
        match seen.outcome {
            Outcome::NotYet => processing(),
            Outcome::Answered(answer) => Ok(self.finished(dialect, id, &seen.order, &answer)),
            Outcome::Forgotten => Err(Wrong::TaskUnknown),
            outcome => Err(Wrong::Outcome(outcome)),
        }
    }

    /// A task that is done, and how long its answer still lives.
    fn finished(&self, dialect: JsonDialect, id: OrderId, order: &Order, answer: &Answer) -> Response<Body> {
        let solution = solution_of(dialect, order, answer);
        let body = quittance_protocol::json::ready(dialect, &finished_task(id, order, answer, &solution));
        api::with_remaining_life(in_json(body), answer.remaining_life(self.orders.clock().now()))
    }

    // ---- the rest ------------------------------------------------------------------------------------------

    /// A balance that is not known is not 0: a client would stop for lack of money.
    async fn balance(&self, dialect: JsonDialect, caller: &Caller) -> Result<String, Wrong> {
        let known = self.orders.balance_for(caller).await;
        known
            .map(|balance| quittance_protocol::json::balance(dialect, balance.0))
            .ok_or(Wrong::BalanceNotKnown)
    }

    async fn report(
        &self,
        dialect: JsonDialect,
        caller: Caller,
        id: OrderId,
        is_good: bool,
    ) -> Result<String, Wrong> {
        let orders = self.orders.clone();
        let reporting = tokio::spawn(async move { orders.report(&caller, id, is_good).await });
        match tokio::time::timeout(self.timeout.place, reporting).await {
            Ok(Ok(Ok(Reported::Recorded))) => Ok(quittance_protocol::json::reported(dialect)),
            Ok(Ok(Ok(Reported::Contradicted))) => Err(Wrong::Contradicted),
            Ok(Ok(Ok(Reported::NothingToReport))) => Err(Wrong::NothingToReport),
            Ok(Ok(Err(NotSeen::Unknown))) => Err(Wrong::TaskUnknown),
            Ok(Ok(Err(NotSeen::StoreAway(_))) | Err(_)) | Err(_) => Err(Wrong::NotReported),
        }
    }
}

fn in_json(body: String) -> Response<Body> {
    api::answer(StatusCode::OK, "application/json", body)
}

/// What an answer is in this dialect.
pub(crate) fn solution_of(dialect: JsonDialect, order: &Order, answer: &Answer) -> Map<String, Value> {
    let Terms { kind, params, .. } = &*order.terms;
    let mut solution = quittance_protocol::json::solution(dialect, kind, &answer.payload);
    let asked = params.get("userAgent").and_then(|agent| std::str::from_utf8(agent.as_bytes()).ok());
    quittance_protocol::json::name_the_agent(dialect, kind, asked, &mut solution);
    solution
}

/// A task that is done, for replies and callbacks alike.
pub(crate) fn finished_task<'a>(
    id: OrderId,
    order: &Order,
    answer: &Answer,
    solution: &'a Map<String, Value>,
) -> FinishedTask<'a> {
    FinishedTask {
        id: TaskId(id.number()),
        solution,
        cost: answer.cost,
        created_ms: order.placed.as_millis(),
        // The moment at which the provider had it is not known better than this, and it never moves.
        ended_ms: answer.earliest.max(order.placed).as_millis(),
        ip: NO_ADDRESS,
    }
}
