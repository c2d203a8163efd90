//! `res.php`: the outcome of an order, the account, and reports. No request here polls the provider for an order:
//! clients poll without a pause, and providers ban a gateway that passes that on.

use super::response_format::{ResponseFormat, plain};
use super::{ClassicApi, ClassicRefusal, ClassicReply, PLACE_WAIT, code_of_not_seen};
use crate::api::{self, ApiRequest, Body};
use crate::codes;
use crate::order_id::OrderId;
use crate::orders::{NotSeen, OrderView, Reported};
use crate::tenant::Caller;
use hyper::Response;
use quittance_engine::Outcome;
use quittance_ports::Threads;
use quittance_protocol::classic::Form;
use std::time::Duration;
use tokio::time::{Instant, timeout_at};

/// The timeout of the store for one request.
const LOOK_WAIT: Duration = Duration::from_secs(3);
/// How many orders one call can ask for.
const IDS_MAX: usize = 1000;
/// The threads for clients that cannot start without this number, if the provider sells no threads.
const ENOUGH_THREADS: Threads = Threads { total: 1000, working: 0 };

impl ClassicApi {
    pub(super) async fn act(
        &self,
        asked: &ApiRequest,
        form: &Form,
        response_format: &ResponseFormat,
    ) -> ClassicReply {
        let caller = self.caller(asked, form)?;
        match form.text("action").map_or("", str::trim) {
            "get" if form.0.contains_key("ids") => self.read_many(&caller, form, response_format).await,
            "get" => self.answer_with(&self.read(&caller, form).await?, response_format, false),
            "get2" => self.answer_with(&self.read(&caller, form).await?, response_format, true),
            "getbalance" => self.balance(&caller, response_format).await,
            "reportgood" => self.report(caller, form, response_format, true).await,
            "reportbad" => self.report(caller, form, response_format, false).await,
            "threadsinfo" => Ok(self.threads(&caller, response_format).await),
            // A pingback address needs no registration here, and there is no list. Clients that register one go on.
            "add_pingback" | "del_pingback" if form.text("addr").is_some() => Ok(response_format.bare("OK")),
            "add_pingback" | "del_pingback" => Err(codes::BAD_PARAMETERS.into()),
            "get_pingback" => Ok(response_format.ok("")),
            "stats" | "getstats" if response_format.is_json => {
                Ok(response_format.json(r#"{"status":1,"request":[]}"#.to_owned()))
            }
            "stats" | "getstats" => Ok(response_format.xml("")),
            "load" => Ok(response_format.xml(super::LOAD)),
            _ => Err("ERROR_EMPTY_ACTION".into()),
        }
    }

    async fn read(&self, caller: &Caller, form: &Form) -> Result<OrderView, ClassicRefusal> {
        let id = order_id(form.text("id").unwrap_or_default())?;
        self.look(caller, id, Instant::now() + LOOK_WAIT).await
    }

    async fn look(&self, caller: &Caller, id: OrderId, until: Instant) -> Result<OrderView, ClassicRefusal> {
        match timeout_at(until, self.orders.look(caller, id)).await {
            Ok(Ok(seen)) => Ok(seen),
            Ok(Err(not_seen)) => Err(code_of_not_seen(&not_seen)),
            Err(_) => Err(codes::NOT_READY.into()),
        }
    }

    /// Reads several orders. Each id gets exactly one part, because clients count the parts.
    async fn read_many(
        &self,
        caller: &Caller,
        form: &Form,
        response_format: &ResponseFormat,
    ) -> ClassicReply {
        let ids: Vec<&str> = form.text("ids").unwrap_or_default().split(',').collect();
        if ids.len() > IDS_MAX {
            return Err(codes::BAD_PARAMETERS.into());
        }
        let until = Instant::now() + LOOK_WAIT;
        let now = self.orders.clock().now();
        let mut parts: Vec<String> = Vec::with_capacity(ids.len());
        let mut shortest_life: Option<Duration> = None;
        for id in &ids {
            let seen = match order_id(id) {
                Ok(id) => self.look(caller, id, until).await,
                Err(code) => Err(code),
            };
            let life = seen.as_ref().ok().and_then(|seen| seen.outcome.remaining_life(now));
            shortest_life = shortest_life.into_iter().chain(life).min();
            parts.push(match seen.map(|seen| seen.outcome) {
                // It would be taken for several, and every part after it for another order's. It can be had alone.
                Ok(Outcome::Answered(answer)) if ids.len() > 1 && plain(&answer.payload).contains('|') => {
                    codes::BAD_PARAMETERS.to_owned()
                }
                Ok(Outcome::Answered(answer)) => plain(&answer.payload).to_owned(),
                Ok(outcome) => ClassicRefusal::of_outcome(&outcome).code,
                Err(why) => why.code,
            });
        }
        Ok(api::with_remaining_life(response_format.bare(&parts.join("|")), shortest_life))
    }

    /// The balance. If it is not known, the reply is a code that means "ask again": with 0.00 a client would stop.
    async fn balance(&self, caller: &Caller, response_format: &ResponseFormat) -> ClassicReply {
        let known = self.orders.balance_for(caller).await;
        known.map(|balance| response_format.balance(balance)).ok_or_else(|| codes::NO_SLOT.into())
    }

    async fn threads(&self, caller: &Caller, response_format: &ResponseFormat) -> Response<Body> {
        let threads = self.orders.threads_for(caller).await;
        let Threads { total, working } = threads.unwrap_or(ENOUGH_THREADS);
        response_format.json(format!(r#"{{"status":1,"threads":{total},"working_threads":{working}}}"#))
    }

    async fn report(
        &self,
        caller: Caller,
        form: &Form,
        response_format: &ResponseFormat,
        is_good: bool,
    ) -> ClassicReply {
        let id = order_id(form.text("id").unwrap_or_default())?;
        let code = match self.orders.report_within(caller, id, is_good, PLACE_WAIT).await {
            Some(Ok(Reported::Recorded)) => return Ok(response_format.bare("OK_REPORT_RECORDED")),
            Some(Ok(Reported::Contradicted)) => "ERROR_DUPLICATE_REPORT",
            Some(Err(NotSeen::Unknown)) => codes::UNKNOWN_ID,
            Some(Ok(Reported::NothingToReport) | Err(NotSeen::StoreAway(_))) | None => {
                "ERROR_REPORT_NOT_RECORDED"
            }
        };
        Err(code.into())
    }
}

fn order_id(text: &str) -> Result<OrderId, ClassicRefusal> {
    text.trim().parse().map_err(|_| codes::NO_ID.into())
}
