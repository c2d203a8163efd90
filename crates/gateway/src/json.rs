//! The JSON door: `createTask`, `getTaskResult` and what belongs to them, in the manners of four providers. It translates;
//! what a caller may do and see is decided by the order service.
//!
//! Every answer of the protocol, an error as well, goes out with status 200. One provider sends its errors with 400 and
//! 401; its clients read the same JSON at any status, while many a client of the others reads none beside a 200.

mod manners;
mod refusal;
mod said;
#[cfg(test)]
mod tests;
mod wrong;

pub(crate) use wrong::spelled;

use crate::api::{self, ApiRequest, Body};
use crate::id::OrderId;
use crate::orders::{Accepted, Declined, NotSeen, OrderRequest, OrderService, OrderView, Reported};
use crate::route::JsonMethod;
use crate::tenant::Caller;
use crate::wrong_keys::Visit;
use hyper::{Method, Response, StatusCode};
use quittance_engine::Outcome;
use quittance_lifecycle::{Answer, Order, Origin, Terms};
use quittance_ports::StoreError;
use quittance_protocol::Dialect;
use quittance_protocol::json::{Finished, Flavour, Statistic, TaskId};
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

/// Clones share the order service.
#[derive(Clone, Debug)]
pub(crate) struct JsonApi {
    orders: OrderService,
    /// The manners of whoever has chosen none, if the operator has.
    flavour: Option<Flavour>,
    timeout: Timeout,
}

impl JsonApi {
    pub(crate) fn new(orders: OrderService, flavour: Option<String>) -> Self {
        let flavour = flavour.and_then(|name| Flavour::parse(&name));
        Self { orders, flavour, timeout: Timeout::DEFAULT }
    }

    pub(crate) async fn answer(&self, method: JsonMethod, request: &mut ApiRequest) -> Response<Body> {
        let (body, broken) = match JsonBody::read(&request.body) {
            Ok(body) => (body, None),
            Err(wrong) => (JsonBody::default(), Some(wrong)),
        };
        request.drop_large_body();
        let caller = body.key().and_then(|key| self.caller(key));
        match (&caller, body.key()) {
            (Some(caller), _) => Visit::note_tenant(&request.head.extensions, caller.tenant.name()),
            // If any key is accepted, there is none to guess.
            (None, _) if self.orders.tenants().is_open() => {}
            (None, Some(key)) => Visit::note_wrong(&request.head.extensions, key, self.orders.wrong_keys()),
            (None, None) => {}
        }
        let flavour = self.manners(request, &body, caller.as_ref());
        let response = match (method, broken, caller) {
            (JsonMethod::Other, ..) => Err(Wrong::NoSuchMethod),
            _ if request.head.method != Method::POST => Err(Wrong::NotPost),
            (_, Some(broken), _) => Err(broken),
            (JsonMethod::Test, None, _) => Ok(in_json(body.echo())),
            // Clients send no key with this question.
            (JsonMethod::Statistic(which @ Statistic::Queue), None, _) if flavour.facts().has_statistics => {
                Ok(in_json(quittance_protocol::json::statistic(which)))
            }
            (_, None, None) => Err(Wrong::Key),
            (method, None, Some(caller)) => self.serve(method, flavour, caller, body, request).await,
        };
        response.unwrap_or_else(|wrong| in_json(wrong.told(flavour)))
    }

    async fn serve(
        &self,
        method: JsonMethod,
        flavour: Flavour,
        caller: Caller,
        said: JsonBody,
        asked: &ApiRequest,
    ) -> Result<Response<Body>, Wrong> {
        let body = match method {
            JsonMethod::Create => {
                let is_held = said.type_name().is_some_and(|name| flavour.is_answered_in_create(name));
                let request = said.request(flavour, &asked.head.headers)?;
                return self
                    .create(flavour, caller, OrderRequest { trace: asked.trace(), ..request }, is_held)
                    .await;
            }
            JsonMethod::Result => return self.result(flavour, &caller, &said).await,
            JsonMethod::Balance => self.balance(flavour, &caller).await,
            JsonMethod::Report { is_good } => self.report(flavour, caller, said.task_id()?, is_good).await,
            JsonMethod::Feedback => self.report(flavour, caller, said.task_id()?, said.is_good()?).await,
            JsonMethod::Statistic(which) if flavour.facts().has_statistics => {
                Ok(quittance_protocol::json::statistic(which))
            }
            JsonMethod::Statistic(_) | JsonMethod::Other => Err(Wrong::NoSuchMethod),
            JsonMethod::Test => Ok(said.echo()),
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

    fn manners(&self, asked: &ApiRequest, said: &JsonBody, caller: Option<&Caller>) -> Flavour {
        let of_path = asked.dialect.and_then(Dialect::flavour);
        let of_tenant =
            || caller.and_then(|caller| Flavour::parse(caller.tenant.settings.flavour.as_deref()?));
        of_path
            .or_else(of_tenant)
            .or(self.flavour)
            .unwrap_or_else(|| manners::guess(&asked.head.headers, said))
    }

    // ---- placing -------------------------------------------------------------------------------------------

    /// `is_held`: clients of this dialect take the solution of such a task from here, and ask no more.
    async fn create(
        &self,
        flavour: Flavour,
        caller: Caller,
        request: OrderRequest,
        is_held: bool,
    ) -> Result<Response<Body>, Wrong> {
        let accepted =
            self.orders.place(caller, request, self.timeout.place).await.map_err(|why| match why {
                Declined::TimedOut => Wrong::Away,
                why => Wrong::Declined(why),
            })?;
        let response = self.created(flavour, &accepted, is_held).await?;
        Ok(api::with_origin(response, &accepted))
    }

    async fn created(
        &self,
        flavour: Flavour,
        accepted: &Accepted,
        is_held: bool,
    ) -> Result<Response<Body>, Wrong> {
        let id = accepted.id;
        // What is there already is not worth another question, where the protocol has a word for it.
        let is_there = flavour.facts().status_in_create && accepted.placed.origin != Origin::Api;
        let timeout = match (is_held, is_there) {
            (true, _) => Some(self.timeout.solve),
            (false, true) => Some(Duration::ZERO),
            (false, false) => None,
        };
        if let Some(timeout) = timeout {
            let there = self.orders.wait_for_accepted(accepted, timeout);
            match tokio::time::timeout(timeout.max(self.timeout.look), there).await {
                Ok(Ok(OrderView { order, outcome: Outcome::Answered(answer) })) => {
                    return Ok(self.finished(flavour, id, &order, &answer));
                }
                Ok(Ok(OrderView { outcome, .. })) if is_held && !matches!(outcome, Outcome::NotYet) => {
                    return Err(Wrong::Outcome(outcome));
                }
                _ => {}
            }
        }
        Ok(in_json(quittance_protocol::json::created(flavour, TaskId(id.number()))))
    }

    // ---- reading -------------------------------------------------------------------------------------------

    async fn result(
        &self,
        flavour: Flavour,
        caller: &Caller,
        said: &JsonBody,
    ) -> Result<Response<Body>, Wrong> {
        let id = said.task_id()?;
        let processing = || Ok(in_json(quittance_protocol::json::processing(flavour, TaskId(id.number()))));
        let seen = match tokio::time::timeout(self.timeout.look, self.orders.look(caller, id)).await {
            Ok(Ok(seen)) => seen,
            Ok(Err(NotSeen::Unknown)) => return Err(Wrong::TaskUnknown),
            Ok(Err(NotSeen::StoreAway(StoreError::Corrupt { .. }))) => return Err(Wrong::Damaged),
            // His task may be paid for: to tell him of our troubles would make him give it up.
            Ok(Err(NotSeen::StoreAway(_))) | Err(_) => return processing(),
        };
        match seen.outcome {
            Outcome::NotYet => processing(),
            Outcome::Answered(answer) => Ok(self.finished(flavour, id, &seen.order, &answer)),
            Outcome::Forgotten => Err(Wrong::TaskUnknown),
            outcome => Err(Wrong::Outcome(outcome)),
        }
    }

    /// A task that is done, and how long its answer still lives.
    fn finished(&self, flavour: Flavour, id: OrderId, order: &Order, answer: &Answer) -> Response<Body> {
        let solution = solution_of(flavour, order, answer);
        let body = quittance_protocol::json::ready(flavour, &finished_task(id, order, answer, &solution));
        api::with_remaining_life(in_json(body), answer.remaining_life(self.orders.clock().now()))
    }

    // ---- the rest ------------------------------------------------------------------------------------------

    /// A balance that is not known is not 0: a client would stop for lack of money.
    async fn balance(&self, flavour: Flavour, caller: &Caller) -> Result<String, Wrong> {
        let known = self.orders.balance_for(caller).await;
        known
            .map(|balance| quittance_protocol::json::balance(flavour, balance.0))
            .ok_or(Wrong::BalanceNotKnown)
    }

    async fn report(
        &self,
        flavour: Flavour,
        caller: Caller,
        id: OrderId,
        is_good: bool,
    ) -> Result<String, Wrong> {
        let orders = self.orders.clone();
        let reporting = tokio::spawn(async move { orders.report(&caller, id, is_good).await });
        match tokio::time::timeout(self.timeout.place, reporting).await {
            Ok(Ok(Ok(Reported::Recorded))) => Ok(quittance_protocol::json::reported(flavour)),
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
pub(crate) fn solution_of(flavour: Flavour, order: &Order, answer: &Answer) -> Map<String, Value> {
    let Terms { kind, params, .. } = &*order.terms;
    let mut solution = quittance_protocol::json::solution(flavour, kind, &answer.payload);
    let asked = params.get("userAgent").and_then(|agent| std::str::from_utf8(agent.as_bytes()).ok());
    quittance_protocol::json::name_the_agent(flavour, kind, asked, &mut solution);
    solution
}

/// A task that is done, for replies and callbacks alike.
pub(crate) fn finished_task<'a>(
    id: OrderId,
    order: &Order,
    answer: &Answer,
    solution: &'a Map<String, Value>,
) -> Finished<'a> {
    Finished {
        id: TaskId(id.number()),
        solution,
        cost: answer.cost,
        created_ms: order.placed.as_millis(),
        // The moment at which the provider had it is not known better than this, and it never moves.
        ended_ms: answer.earliest.max(order.placed).as_millis(),
        ip: NO_ADDRESS,
    }
}
