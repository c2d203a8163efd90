//! The replies of a server of each dialect, exact to the byte. They have exactly the fields that the dialect's
//! clients read, in the order in which the providers send them.

use crate::json::code::{description, error_id};
use crate::json::dialect::JsonDialect;
use crate::json::id::{TaskId, uuid_of};
use crate::json::json_price;
use quittance_lifecycle::{FaultClass, Money};
use serde_json::{Map, Value};
use std::fmt::{self, Write};

/// A task that has its answer.
#[derive(Clone, Copy)]
pub struct FinishedTask<'a> {
    pub id: TaskId,
    pub solution: &'a Map<String, Value>,
    /// Left out of the reply if it is not known.
    pub cost: Option<Money>,
    pub created_ms: u64,
    pub ended_ms: u64,
    /// The address of the caller that placed it.
    pub ip: &'a str,
}

impl fmt::Debug for FinishedTask<'_> {
    /// Hides the solution, which is worth money, from logs.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Finished({}, {} fields)", self.id, self.solution.len())
    }
}

/// A JSON object that is being written.
struct JsonObject(String);

impl JsonObject {
    fn new(error_id: u32) -> Self {
        Self(format!("{{\"errorId\":{error_id}"))
    }

    fn text(self, name: &str, text: &str) -> Self {
        self.raw(name, &Value::from(text).to_string())
    }

    fn raw(mut self, name: &str, json: &str) -> Self {
        // Writing to a text cannot fail.
        let _ = write!(self.0, ",\"{name}\":{json}");
        self
    }

    fn task(self, dialect: JsonDialect, TaskId(id): TaskId) -> Self {
        if dialect.facts().ids_are_uuids {
            self.text("taskId", &uuid_of(id))
        } else {
            self.raw("taskId", &id.to_string())
        }
    }

    fn end(mut self) -> String {
        self.0.push('}');
        self.0
    }
}

/// The reply to `createTask`.
#[must_use]
pub fn created(dialect: JsonDialect, id: TaskId) -> String {
    let facts = dialect.facts();
    let body = JsonObject::new(0);
    let body = if facts.status_in_create {
        body.text("errorCode", "").text("errorDescription", "").text("status", facts.status_new)
    } else {
        body
    };
    body.task(dialect, id).end()
}

/// The reply to `getTaskResult` while there is no answer.
#[must_use]
pub fn processing(dialect: JsonDialect, id: TaskId) -> String {
    let facts = dialect.facts();
    let body = JsonObject::new(0).text("status", facts.status_pending);
    if facts.echoes_task { body.task(dialect, id).end() } else { body.end() }
}

/// The reply to `getTaskResult` with an answer, which is also the body of a webhook call.
#[must_use]
pub fn ready(dialect: JsonDialect, finished: &FinishedTask<'_>) -> String {
    finish(dialect, finished).end()
}

/// A finished task as a callback, which holds the task id in every dialect.
#[must_use]
pub fn callback_ready(dialect: JsonDialect, finished: &FinishedTask<'_>) -> String {
    let body = finish(dialect, finished);
    if dialect.facts().echoes_task { body.end() } else { body.task(dialect, finished.id).end() }
}

fn finish(dialect: JsonDialect, finished: &FinishedTask<'_>) -> JsonObject {
    let facts = dialect.facts();
    let solution = serde_json::to_string(finished.solution).unwrap_or_else(|_| "{}".to_owned());
    let mut body = JsonObject::new(0).text("status", facts.status_ready).raw("solution", &solution);
    // A price that is not known is left out: 0 would be a lie.
    if let Some(cost) = finished.cost.filter(|_| facts.extras.cost) {
        let cost = json_price::write(cost, 5);
        body = if facts.cost_is_string { body.text("cost", &cost) } else { body.raw("cost", &cost) };
    }
    if facts.extras.ip {
        body = body.text("ip", finished.ip);
    }
    if facts.extras.times {
        let seconds = |ms: u64| (ms / 1000).to_string();
        body =
            body.raw("createTime", &seconds(finished.created_ms)).raw("endTime", &seconds(finished.ended_ms));
    }
    if facts.extras.solve_count {
        body = body.raw("solveCount", "1");
    }
    if facts.echoes_task { body.task(dialect, finished.id) } else { body }
}

/// The error reply to any method, and its HTTP status.
#[must_use]
pub fn error(dialect: JsonDialect, code: &str) -> (u16, String) {
    (error_status(dialect, code), fail(dialect, code).end())
}

/// An error with its own reason in place of the usual description of the code.
#[must_use]
pub fn error_because(dialect: JsonDialect, code: &str, why: &str) -> String {
    fail_because(dialect, code, why).end()
}

/// An error as a callback, with the reason.
#[must_use]
pub fn callback_error(dialect: JsonDialect, code: &str, why: &str, id: TaskId) -> String {
    fail_because(dialect, code, why).task(dialect, id).end()
}

fn fail(dialect: JsonDialect, code: &str) -> JsonObject {
    fail_because(dialect, code, description(code))
}

fn fail_because(dialect: JsonDialect, code: &str, why: &str) -> JsonObject {
    JsonObject::new(error_id(dialect, code)).text("errorCode", code).text("errorDescription", why)
}

fn error_status(dialect: JsonDialect, code: &str) -> u16 {
    let facts = dialect.facts();
    let is_about_key =
        crate::json::code::row(code).is_some_and(|row| row.class == FaultClass::AccountBlocked);
    if is_about_key { facts.http_key_error } else { facts.http_error }
}

/// The reply to `getBalance`.
#[must_use]
pub fn balance(dialect: JsonDialect, micros: u64) -> String {
    let body = JsonObject::new(0).raw("balance", &json_price::write(Money(micros), 0));
    // Its clients read the packages that were bought; we sell none.
    if dialect == JsonDialect::CapSolver { body.raw("packages", "[]").end() } else { body.end() }
}

/// A statistic that a client can ask for: its spending, or how busy the service is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Statistic {
    Spending,
    App,
    Queue,
}

impl Statistic {
    #[must_use]
    pub fn named(endpoint: &str) -> Option<Self> {
        match endpoint.to_ascii_lowercase().as_str() {
            "getspendingstats" => Some(Self::Spending),
            "getappstats" => Some(Self::App),
            "getqueuestats" => Some(Self::Queue),
            _ => None,
        }
    }
}

/// A statistic without entries. Our own numbers are for the operator, and the provider's are not public.
#[must_use]
pub fn statistic(which: Statistic) -> String {
    let body = JsonObject::new(0);
    match which {
        Statistic::Spending => body.raw("data", "[]").end(),
        Statistic::App => body.raw("chartData", "[]").end(),
        Statistic::Queue => {
            let names = ["waiting", "load", "bid", "speed", "total"];
            names.into_iter().fold(body, |body, name| body.raw(name, "0")).end()
        }
    }
}

/// The reply to a report, also to a repeated one.
#[must_use]
pub fn reported(dialect: JsonDialect) -> String {
    match dialect {
        JsonDialect::CapSolver => JsonObject::new(0).text("message", "okay").end(),
        _ => JsonObject::new(0).text("status", "success").end(),
    }
}

/// Whether an endpoint reports a good answer, or `None` if it is not for reports. (The body of CapSolver's
/// `feedbackTask` says it.)
#[must_use]
pub fn report_named(endpoint: &str) -> Option<bool> {
    let name = endpoint.to_ascii_lowercase();
    let sorts = ["", "recaptcha", "imagecaptcha", "hcaptcha", "tokencaptcha"];
    let is_of = |verb: &str| name.strip_prefix(verb).is_some_and(|sort| sorts.contains(&sort));
    if is_of("reportcorrect") { Some(true) } else { is_of("reportincorrect").then_some(false) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn finished(solution: &Map<String, Value>) -> FinishedTask<'_> {
        FinishedTask {
            id: TaskId(74_327_409_378),
            solution,
            cost: Some(Money(2990)),
            created_ms: 1_692_863_536_999,
            ended_ms: 1_692_863_556_001,
            ip: "192.0.2.1",
        }
    }

    #[test]
    fn a_new_task_is_a_number_or_a_uuid_with_its_status() {
        let id = TaskId(74_327_409_378);
        for dialect in [JsonDialect::TwoCaptcha, JsonDialect::AntiCaptcha, JsonDialect::CapMonster] {
            assert_eq!(created(dialect, id), "{\"errorId\":0,\"taskId\":74327409378}");
            assert_eq!(processing(dialect, id), "{\"errorId\":0,\"status\":\"processing\"}");
        }
        let reply: Value = serde_json::from_str(&created(JsonDialect::CapSolver, id)).unwrap();
        let uuid = uuid_of(id.0);
        assert_eq!((&reply["status"], &reply["taskId"]), (&json!("idle"), &json!(uuid)));
        let reply: Value = serde_json::from_str(&processing(JsonDialect::CapSolver, id)).unwrap();
        assert_eq!((&reply["status"], &reply["taskId"]), (&json!("processing"), &json!(uuid)));
    }

    #[test]
    fn a_cost_that_is_not_known_is_left_out_and_a_free_answer_costs_nothing() {
        let solution = Map::new();
        for dialect in [
            JsonDialect::TwoCaptcha,
            JsonDialect::AntiCaptcha,
            JsonDialect::CapSolver,
            JsonDialect::CapMonster,
        ] {
            let unknown = ready(dialect, &FinishedTask { cost: None, ..finished(&solution) });
            assert!(!unknown.contains("cost"), "{unknown}");
        }
        let free =
            ready(JsonDialect::TwoCaptcha, &FinishedTask { cost: Some(Money(0)), ..finished(&solution) });
        assert!(free.contains("\"cost\":\"0.00000\""), "{free}");
    }

    #[test]
    fn an_answer_has_the_fields_of_its_dialect_and_no_others() {
        let solution = json!({"text": "a\"b"}).as_object().unwrap().clone();
        let finished = finished(&solution);
        assert_eq!(
            ready(JsonDialect::TwoCaptcha, &finished),
            "{\"errorId\":0,\"status\":\"ready\",\"solution\":{\"text\":\"a\\\"b\"},\"cost\":\"0.00299\",\
             \"ip\":\"192.0.2.1\",\"createTime\":1692863536,\"endTime\":1692863556,\"solveCount\":1}"
        );
        assert_eq!(
            ready(JsonDialect::CapMonster, &finished),
            "{\"errorId\":0,\"status\":\"ready\",\"solution\":{\"text\":\"a\\\"b\"}}"
        );
        let reply: Value = serde_json::from_str(&ready(JsonDialect::CapSolver, &finished)).unwrap();
        let mut names: Vec<_> = reply.as_object().unwrap().keys().map(String::as_str).collect();
        names.sort_unstable();
        assert_eq!(names, ["errorId", "solution", "status", "taskId"]);
        let called: Value =
            serde_json::from_str(&callback_ready(JsonDialect::CapMonster, &finished)).unwrap();
        assert_eq!(called["taskId"], json!(74_327_409_378_u64));
    }

    #[test]
    fn an_error_has_the_number_and_the_status_of_its_dialect() {
        let (status, body) = error(JsonDialect::AntiCaptcha, "ERROR_ZERO_BALANCE");
        assert_eq!(status, 200);
        assert_eq!(
            body,
            "{\"errorId\":10,\"errorCode\":\"ERROR_ZERO_BALANCE\",\"errorDescription\":\"The account has no funds\"}"
        );
        assert_eq!(error(JsonDialect::CapSolver, "ERROR_KEY_DOES_NOT_EXIST").0, 401);
        assert_eq!(error(JsonDialect::CapSolver, "ERROR_TASK_NOT_SUPPORTED").0, 400);
        assert!(error(JsonDialect::CapMonster, "ERROR_ZERO_BALANCE").1.starts_with("{\"errorId\":1,"));
        let (_, odd) = error(JsonDialect::TwoCaptcha, "\"}");
        assert!(serde_json::from_str::<Value>(&odd).is_ok());
    }

    #[test]
    fn a_balance_is_a_number_and_reports_are_known_by_name() {
        assert_eq!(balance(JsonDialect::TwoCaptcha, 3_500_000), "{\"errorId\":0,\"balance\":3.5}");
        assert_eq!(report_named("reportIncorrectTokenCaptcha"), Some(false));
        assert_eq!(report_named("reportCorrectRecaptcha"), Some(true));
        assert_eq!(report_named("reportCorrectly"), None);
        for dialect in JsonDialect::ALL {
            let facts = dialect.facts();
            let named = facts.report_good.iter().map(|name| (name, true));
            for (name, is_good) in named.chain(facts.report_bad.iter().map(|name| (name, false))) {
                assert!(*name == "feedbackTask" || report_named(name) == Some(is_good), "{name}");
            }
        }
    }
}
