//! Reads a provider's replies. A reply that is neither an answer nor a code is "puzzling"; its meaning is never
//! guessed. A proxy between us and the provider may have sent it after the task was taken.

use crate::json::code::JsonCodes;
use crate::json::id::foreign_task;
use crate::json::json_price;
use crate::json::solution::read_solution;
use quittance_lifecycle::{Fault, FaultClass, Money, Payload};
use serde_json::{Map, Value};
use std::fmt;
use std::time::Duration;

/// The longest reply that is read. Tokens have a few kB, lists of boxes and cookies some more.
pub const REPLY_BYTES_MAX: usize = 512 * 1024;

/// Codes of a task that is not solved yet.
const PENDING_CODES: [&str; 2] = ["CAPCHA_NOT_READY", "CAPTCHA_NOT_READY"];
const PENDING: &[&str] = &["processing", "idle", "pending", "queued"];

/// What a reply looks like that is not of the protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JsonSight {
    Nothing,
    Html,
    TooLong,
    BrokenJson,
    Junk,
}

impl fmt::Display for JsonSight {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Nothing => "answered nothing",
            Self::Html => "answered HTML, not the protocol",
            Self::TooLong => "answered more than any answer has",
            Self::BrokenJson => "answered JSON that ends early or is not of the protocol",
            Self::Junk => "answered something that is not the protocol",
        })
    }
}

/// A reply of `createTask`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CreateReply {
    Taken {
        task: String,
    },
    /// The task was taken and is already solved.
    Answered {
        task: Option<String>,
        payload: Payload,
        cost: Option<Money>,
    },
    Fault(Fault),
    Puzzling(JsonSight),
}

/// A reply of `getTaskResult`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ResultReply {
    Pending,
    /// `took_at_least` is the time between creation and end of the task, by the provider's clock.
    Answered {
        payload: Payload,
        cost: Option<Money>,
        took_at_least: Option<Duration>,
    },
    Fault(Fault),
    Puzzling(JsonSight),
}

/// A reply of `getBalance`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum JsonAccountReply {
    Is(Money),
    Fault(Fault),
    Puzzling(JsonSight),
}

/// A reply of an endpoint for reports.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReportReply {
    Taken,
    Fault(Fault),
    Puzzling(JsonSight),
}

/// Reads a reply of `createTask`. `kind` is the kind of the order, for an answer that comes at once.
#[must_use]
pub fn read_create(body: &[u8], kind: &str, codes: &JsonCodes) -> CreateReply {
    let fields = match JsonReply::read(body, codes) {
        JsonReply::Yes(fields) => fields,
        // Nothing can be pending that was not taken, so this is no refusal.
        JsonReply::No(fault) if is_pending_code(&fault.code) => {
            return CreateReply::Puzzling(JsonSight::Junk);
        }
        JsonReply::No(fault) => return CreateReply::Fault(fault),
        JsonReply::Puzzling(sight) => return CreateReply::Puzzling(sight),
    };
    let task = fields.get("taskId").and_then(foreign_task);
    let payload = match status(&fields) {
        Some("ready") => fields.get("solution").and_then(|solution| payload(kind, solution)),
        Some("failed") => return CreateReply::Fault(failed()),
        _ => None,
    };
    match (payload, task) {
        (Some(payload), task) => CreateReply::Answered { task, payload, cost: cost(&fields) },
        (None, Some(task)) => CreateReply::Taken { task },
        (None, None) => CreateReply::Puzzling(JsonSight::BrokenJson),
    }
}

#[must_use]
pub fn read_result(body: &[u8], codes: &JsonCodes) -> ResultReply {
    match JsonReply::read(body, codes) {
        JsonReply::Yes(fields) => match result(&fields) {
            // A proxy's error page in place of the answer is a mistake on the way, and not what was bought.
            ResultReply::Answered { payload, .. } if payload.is_a_page() => {
                ResultReply::Puzzling(JsonSight::Html)
            }
            result => result,
        },
        JsonReply::No(fault) if is_pending_code(&fault.code) => ResultReply::Pending,
        JsonReply::No(fault) => ResultReply::Fault(fault),
        JsonReply::Puzzling(sight) => ResultReply::Puzzling(sight),
    }
}

/// Reads a callback: the task that it names, and its result. `None` if it holds nothing final.
#[must_use]
pub fn read_callback(body: &[u8], codes: &JsonCodes) -> Option<(Option<String>, ResultReply)> {
    let reply = read_result(body, codes);
    if matches!(reply, ResultReply::Pending | ResultReply::Puzzling(_)) {
        return None;
    }
    let task = members(body).ok()?.get("taskId").and_then(foreign_task);
    Some((task, reply))
}

#[must_use]
pub fn read_balance(body: &[u8], codes: &JsonCodes) -> JsonAccountReply {
    match JsonReply::read(body, codes) {
        JsonReply::Yes(fields) => match fields.get("balance").and_then(json_price::read) {
            Some(money) => JsonAccountReply::Is(money),
            None => JsonAccountReply::Puzzling(JsonSight::BrokenJson),
        },
        JsonReply::No(fault) => JsonAccountReply::Fault(fault),
        JsonReply::Puzzling(sight) => JsonAccountReply::Puzzling(sight),
    }
}

#[must_use]
pub fn read_report(body: &[u8], codes: &JsonCodes) -> ReportReply {
    match JsonReply::read(body, codes) {
        JsonReply::Yes(_) => ReportReply::Taken,
        JsonReply::No(fault) => ReportReply::Fault(fault),
        JsonReply::Puzzling(sight) => ReportReply::Puzzling(sight),
    }
}

/// A reply, split into yes or no.
enum JsonReply {
    Yes(Map<String, Value>),
    No(Fault),
    Puzzling(JsonSight),
}

impl JsonReply {
    fn read(body: &[u8], codes: &JsonCodes) -> Self {
        let members = match members(body) {
            Ok(members) => members,
            Err(sight) => return Self::Puzzling(sight),
        };
        let text = |name: &str| {
            let text = members.get(name)?.as_str()?.trim();
            (!text.is_empty()).then(|| text.to_owned())
        };
        let number = match members.get("errorId") {
            Some(Value::Number(number)) => number.as_u64(),
            Some(Value::String(text)) => text.trim().parse().ok(),
            Some(Value::Bool(is_error)) => Some(u64::from(*is_error)),
            _ => None,
        };
        let code = text("errorCode");
        match (number, code) {
            (Some(0), _) => Self::Yes(members),
            (Some(number), None) => {
                let words = text("errorDescription").unwrap_or_else(|| format!("errorId {number}"));
                Self::No(codes.classify(&words))
            }
            (_, Some(code)) => Self::No(codes.classify(&code)),
            // Without a number it may still be a provider's reply, if it has the fields of one.
            (None, None) if ["taskId", "solution"].iter().any(|name| members.contains_key(*name)) => {
                Self::Yes(members)
            }
            (None, None) => Self::Puzzling(JsonSight::BrokenJson),
        }
    }
}

fn members(body: &[u8]) -> Result<Map<String, Value>, JsonSight> {
    if body.len() > REPLY_BYTES_MAX {
        return Err(JsonSight::TooLong);
    }
    let text = std::str::from_utf8(body).map_err(|_| JsonSight::Junk)?;
    match text.trim_start_matches('\u{feff}').trim() {
        "" => Err(JsonSight::Nothing),
        text if text.starts_with('<') => Err(JsonSight::Html),
        text if text.starts_with('{') => serde_json::from_str(text).map_err(|_| JsonSight::BrokenJson),
        _ => Err(JsonSight::Junk),
    }
}

fn result(fields: &Map<String, Value>) -> ResultReply {
    match (status(fields), fields.get("solution").and_then(|solution| payload("", solution))) {
        (Some("ready") | None, Some(payload)) => {
            ResultReply::Answered { payload, cost: cost(fields), took_at_least: took_at_least(fields) }
        }
        // The reply is clear and useless: an operator should see it, or it would be polled for ever.
        (Some("ready"), None) => ResultReply::Fault(hollow()),
        (Some("failed"), _) => ResultReply::Fault(failed()),
        (Some(status), _) if PENDING.contains(&status) => ResultReply::Pending,
        _ => ResultReply::Puzzling(JsonSight::BrokenJson),
    }
}

/// The answer in a `solution`; `None` if there is none. `solution` should be an object, but some providers
/// send the bare answer.
fn payload(kind: &str, solution: &Value) -> Option<Payload> {
    match solution {
        Value::Object(solution) => read_solution(kind, solution),
        Value::String(text) if !text.is_empty() => Some(Payload::text(text.as_str())),
        Value::Array(parts) if !parts.is_empty() => {
            Some(Payload { is_json: true, ..Payload::text(solution.to_string()) })
        }
        _ => None,
    }
}

fn hollow() -> Fault {
    Fault::new(FaultClass::UnlistedCode, "solved, but without an answer")
}

fn failed() -> Fault {
    Fault::new(FaultClass::Unsolvable, "failed, without a code")
}

fn status(fields: &Map<String, Value>) -> Option<&str> {
    fields.get("status").and_then(Value::as_str)
}

fn cost(fields: &Map<String, Value>) -> Option<Money> {
    fields.get("cost").and_then(json_price::read_price)
}

/// The least time that the task took. The end time alone is useless, because the provider's clock may be wrong. Both
/// times are cut to whole seconds, so 1 s is subtracted from their difference.
fn took_at_least(fields: &Map<String, Value>) -> Option<Duration> {
    let (created, ended) = (seconds(fields.get("createTime"))?, seconds(fields.get("endTime"))?);
    Some(Duration::from_secs(ended.checked_sub(created)?.saturating_sub(1)))
}

fn seconds(value: Option<&Value>) -> Option<u64> {
    match value? {
        Value::Number(number) => number.as_u64(),
        Value::String(text) => text.trim().parse().ok(),
        _ => None,
    }
    .filter(|seconds| *seconds > 0)
}

fn is_pending_code(code: &str) -> bool {
    PENDING_CODES.contains(&code)
}

#[cfg(test)]
mod tests;
