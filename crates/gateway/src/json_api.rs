//! The JSON API: `createTask`, `getTaskResult` and related methods, in the dialects of four providers. It only
//! translates; the order service decides what a caller may do and see.
//!
//! Every reply of the protocol has status 200, errors too. One provider sends errors with 400 and 401; its clients
//! read JSON at any status. Many clients of the others read only a 200.

mod body;
mod dialect_guess;
mod json_error;
mod unread_json;

pub(crate) use json_error::spelled;

use crate::api::{self, ApiRequest, Body};
use crate::codes;
use crate::order_id::OrderId;
use crate::orders::{Accepted, Declined, NotSeen, OrderRequest, OrderService, OrderView, Reported};
use crate::route::JsonMethod;
use crate::tenant::Caller;
use body::TaskRequest;
use hyper::{Method, Response, StatusCode};
use json_error::JsonError;
use quittance_engine::Outcome;
use quittance_http_server::SenderSlot;
use quittance_lifecycle::{Answer, Order, Origin, Terms};
use quittance_ports::StoreError;
use quittance_protocol::Dialect;
use quittance_protocol::json::{self, FinishedTask, Statistic, TaskId};
use std::time::Duration;

/// How long a placement can take: some clients hang up after five seconds, and assume that their task is lost.
const PLACE_WAIT: Duration = Duration::from_secs(4);
const LOOK_WAIT: Duration = Duration::from_secs(3);
/// How long `createTask` waits in dialects in which it returns the solution.
const SOLVE_WAIT: Duration = Duration::from_secs(30);

/// A placeholder for the caller's address, which is not on record. Clients need the field.
const NO_ADDRESS: &str = "0.0.0.0";

pub(crate) struct JsonApi {
    orders: OrderService,
    /// The dialect of callers that select none, if the operator has set one.
    dialect: Option<Dialect>,
}

impl JsonApi {
    pub(crate) fn new(orders: OrderService, dialect: Option<Dialect>) -> Self {
        Self { orders, dialect: speaks_json(dialect) }
    }

    pub(crate) async fn answer(&self, method: JsonMethod, request: &mut ApiRequest) -> Response<Body> {
        let (body, broken) = match TaskRequest::read(&request.body) {
            Ok(body) => (body, None),
            Err(wrong) => (TaskRequest::default(), Some(wrong)),
        };
        request.drop_large_body();
        let caller = body.key().and_then(|key| self.caller(key));
        match (&caller, body.key()) {
            (Some(caller), _) => SenderSlot::note_tenant(&request.head.extensions, caller.tenant.name()),
            // If any key is accepted, there is none to guess.
            (None, _) if self.orders.tenants().is_open() => {}
            (None, Some(key)) => {
                SenderSlot::note_wrong(&request.head.extensions, key, self.orders.wrong_keys());
            }
            (None, None) => {}
        }
        let dialect = self.dialect(request, &body, caller.as_ref());
        let response = match (method, broken, caller) {
            (JsonMethod::Other, ..) => Err(JsonError::NoSuchMethod),
            _ if request.head.method != Method::POST => Err(JsonError::NotPost),
            (_, Some(broken), _) => Err(broken),
            (JsonMethod::Test, None, _) => Ok(in_json(body.echo())),
            // Clients send no key with this question.
            (JsonMethod::Statistic(which @ Statistic::Queue), None, _)
                if dialect.json_reply().facts().has_statistics =>
            {
                Ok(in_json(json::statistic(which)))
            }
            (_, None, None) => Err(JsonError::Key),
            (method, None, Some(caller)) => self.serve(method, dialect, caller, body, request).await,
        };
        response.unwrap_or_else(|wrong| in_json(wrong.response_text(dialect)))
    }

    async fn serve(
        &self,
        method: JsonMethod,
        dialect: Dialect,
        caller: Caller,
        request_body: TaskRequest,
        asked: &ApiRequest,
    ) -> Result<Response<Body>, JsonError> {
        let body = match method {
            JsonMethod::Create => {
                let is_held = request_body
                    .type_name()
                    .is_some_and(|name| dialect.json_reply().is_answered_in_create(name));
                let request = request_body.request(dialect, &asked.head.headers)?;
                return self.create(dialect, caller, request, is_held).await;
            }
            JsonMethod::Result => return self.result(dialect, &caller, &request_body).await,
            JsonMethod::Balance => self.balance(dialect, &caller).await,
            JsonMethod::Report { is_good } => {
                self.report(dialect, caller, request_body.task_id()?, is_good).await
            }
            JsonMethod::Feedback => {
                self.report(dialect, caller, request_body.task_id()?, request_body.is_good()?).await
            }
            JsonMethod::Statistic(which) if dialect.json_reply().facts().has_statistics => {
                Ok(json::statistic(which))
            }
            JsonMethod::Statistic(_) | JsonMethod::Other => Err(JsonError::NoSuchMethod),
            JsonMethod::Test => Ok(request_body.echo()),
        };
        body.map(in_json)
    }

    /// The caller by its key. A gateway without tenants accepts any key, because clients must send one.
    fn caller(&self, key: &str) -> Option<Caller> {
        let tenants = self.orders.tenants();
        match tenants.local() {
            Some(local) => body::local_caller(local, key),
            None => tenants.caller(key).ok(),
        }
    }

    /// The first dialect that is set in the path, by the tenant, or by the gateway; else the one that the request
    /// looks like.
    fn dialect(&self, request: &ApiRequest, body: &TaskRequest, caller: Option<&Caller>) -> Dialect {
        speaks_json(request.dialect)
            .or_else(|| speaks_json(caller?.tenant.settings.dialect))
            .or(self.dialect)
            .unwrap_or_else(|| dialect_guess::guess(&request.head.headers, body))
    }

    // ---- placing -------------------------------------------------------------------------------------------

    /// Places an order. `is_held` means that clients of this dialect expect the solution in this reply and do not
    /// poll.
    async fn create(
        &self,
        dialect: Dialect,
        caller: Caller,
        request: OrderRequest,
        is_held: bool,
    ) -> Result<Response<Body>, JsonError> {
        let accepted = self.orders.place(caller, request, PLACE_WAIT).await.map_err(|why| match why {
            Declined::TimedOut => JsonError::Away,
            why => JsonError::Declined(why),
        })?;
        let response = self.created(dialect, &accepted, is_held).await?;
        Ok(api::with_origin(response, &accepted))
    }

    async fn created(
        &self,
        dialect: Dialect,
        accepted: &Accepted,
        is_held: bool,
    ) -> Result<Response<Body>, JsonError> {
        let id = accepted.id;
        // What is there already is not worth another question, where the protocol has a word for it.
        let is_there = dialect.json_reply().facts().status_in_create && accepted.placed.origin != Origin::Api;
        let timeout = match (is_held, is_there) {
            (true, _) => Some(SOLVE_WAIT),
            (false, true) => Some(Duration::ZERO),
            (false, false) => None,
        };
        if let Some(timeout) = timeout {
            let there = self.orders.wait_for_accepted(accepted, timeout);
            match tokio::time::timeout(timeout.max(LOOK_WAIT), there).await {
                Ok(Ok(OrderView { order, outcome: Outcome::Answered(answer) })) => {
                    return Ok(self.finished(dialect, id, &order, &answer));
                }
                Ok(Ok(OrderView { outcome, .. })) if is_held && !matches!(outcome, Outcome::NotYet) => {
                    return Err(JsonError::Outcome(outcome));
                }
                _ => {}
            }
        }
        Ok(in_json(json::created(dialect.json_reply(), TaskId(id.number()))))
    }

    // ---- reading -------------------------------------------------------------------------------------------

    async fn result(
        &self,
        dialect: Dialect,
        caller: &Caller,
        request_body: &TaskRequest,
    ) -> Result<Response<Body>, JsonError> {
        let id = request_body.task_id()?;
        let processing = || Ok(in_json(json::processing(dialect.json_reply(), TaskId(id.number()))));
        let seen = match tokio::time::timeout(LOOK_WAIT, self.orders.look(caller, id)).await {
            Ok(Ok(seen)) => seen,
            Ok(Err(NotSeen::Unknown)) => return Err(JsonError::TaskUnknown),
            Ok(Err(NotSeen::StoreAway(StoreError::Corrupt { .. }))) => return Err(JsonError::Damaged),
            // The task may be paid for, and an error would make the client give it up.
            Ok(Err(NotSeen::StoreAway(_))) | Err(_) => return processing(),
        };
        match seen.outcome {
            Outcome::NotYet => processing(),
            Outcome::Answered(answer) => Ok(self.finished(dialect, id, &seen.order, &answer)),
            Outcome::Forgotten => Err(JsonError::TaskUnknown),
            outcome => Err(JsonError::Outcome(outcome)),
        }
    }

    /// The reply with a finished task, and the remaining life of its answer.
    fn finished(&self, dialect: Dialect, id: OrderId, order: &Order, answer: &Answer) -> Response<Body> {
        let body = finished_task(dialect, id, order, answer, SentAs::Response);
        api::with_remaining_life(in_json(body), answer.remaining_life(self.orders.clock().now()))
    }

    // ---- the rest ------------------------------------------------------------------------------------------

    /// The balance. If it is not known, the reply is an error: with 0 a client would stop.
    async fn balance(&self, dialect: Dialect, caller: &Caller) -> Result<String, JsonError> {
        let known = self.orders.balance_for(caller).await;
        known.map(|balance| json::balance(dialect.json_reply(), balance.0)).ok_or(JsonError::BalanceNotKnown)
    }

    async fn report(
        &self,
        dialect: Dialect,
        caller: Caller,
        id: OrderId,
        is_good: bool,
    ) -> Result<String, JsonError> {
        match self.orders.report_within(caller, id, is_good, PLACE_WAIT).await {
            Some(Ok(Reported::Recorded)) => Ok(json::reported(dialect.json_reply())),
            Some(Ok(Reported::Contradicted)) => Err(JsonError::Contradicted),
            Some(Ok(Reported::NothingToReport)) => Err(JsonError::NothingToReport),
            Some(Err(NotSeen::Unknown)) => Err(JsonError::TaskUnknown),
            Some(Err(NotSeen::StoreAway(_))) | None => Err(JsonError::NotReported),
        }
    }
}

fn in_json(body: String) -> Response<Body> {
    api::answer(StatusCode::OK, "application/json", body)
}

/// The dialect, if its service uses the JSON protocol.
fn speaks_json(dialect: Option<Dialect>) -> Option<Dialect> {
    dialect.filter(|dialect| dialect.json().is_some())
}

/// How the body of a finished task is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SentAs {
    Response,
    Webhook,
}

/// The body of a finished task.
fn finished_task(dialect: Dialect, id: OrderId, order: &Order, answer: &Answer, sent_as: SentAs) -> String {
    let Terms { kind, params, .. } = &*order.terms;
    let mut solution = json::solution(dialect.json_reply(), kind, &answer.payload);
    let agent = params.get("userAgent").and_then(|agent| std::str::from_utf8(agent.as_bytes()).ok());
    json::name_the_agent(dialect.json_reply(), kind, agent, &mut solution);
    let finished = FinishedTask {
        id: TaskId(id.number()),
        solution: &solution,
        cost: answer.cost,
        created_ms: order.placed.as_millis(),
        // The provider may have had the answer earlier. This moment is the best that is known, and it never moves.
        ended_ms: answer.earliest.max(order.placed).as_millis(),
        ip: NO_ADDRESS,
    };
    match sent_as {
        SentAs::Response => json::ready(dialect.json_reply(), &finished),
        SentAs::Webhook => json::reply::callback_ready(dialect.json_reply(), &finished),
    }
}

/// The body of a webhook for a task that has ended.
pub(crate) fn webhook_body(dialect: Dialect, order: &Order, id: OrderId, outcome: &Outcome) -> String {
    if let Outcome::Answered(answer) = outcome {
        return finished_task(dialect, id, order, answer, SentAs::Webhook);
    }
    let code = codes::code_of_outcome(outcome);
    let why = codes::reason_of_outcome(outcome).unwrap_or_default();
    json::reply::callback_error(dialect.json_reply(), spelled(dialect, &code), &why, TaskId(id.number()))
}
