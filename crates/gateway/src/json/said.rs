//! What a client said: one JSON object, whatever its Content-Type is. Each thing that we look for in it is read here, and
//! what is of the wrong type is told apart from what is missing only where clients can tell as well.

use super::wrong::Wrong;
use crate::desk::Wish;
use crate::id::OrderId;
use crate::order_options::{BadOption, OrderOptions};
use crate::tenant::{Caller, without_suffix};
use hyper::HeaderMap;
use quittance_json::{Flavour, Wanted};
use serde_json::{Map, Value};

/// Written by some before any text.
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

#[derive(Default)]
pub(super) struct Said(Map<String, Value>);

impl Said {
    /// The parser itself goes no deeper than 128 levels, so nothing that it yields is too deep for us.
    pub(super) fn read(body: &[u8]) -> Result<Self, Wrong> {
        let body = body.strip_prefix(BYTE_ORDER_MARK).unwrap_or(body);
        match serde_json::from_slice(body) {
            Ok(Value::Object(fields)) => Ok(Self(fields)),
            Ok(_) => Err(Wrong::NotAnObject),
            Err(error) => Err(Wrong::NotJson { line: error.line(), column: error.column() }),
        }
    }

    pub(super) fn echo(self) -> String {
        Value::Object(self.0).to_string()
    }

    /// A field of the envelope. Some clients write `clientkey`, so case does not count; the exact spelling wins.
    fn field(&self, name: &str) -> Option<&Value> {
        self.0.get(name).or_else(|| {
            let mut fields = self.0.iter();
            fields.find(|(found, _)| found.eq_ignore_ascii_case(name)).map(|(_, value)| value)
        })
    }

    fn take_field(&mut self, name: &str) -> Option<Value> {
        let spelled = match self.0.contains_key(name) {
            true => name.to_owned(),
            false => self.0.keys().find(|found| found.eq_ignore_ascii_case(name))?.clone(),
        };
        self.0.remove(&spelled)
    }

    pub(super) fn key(&self) -> Option<&str> {
        self.field("clientKey")?.as_str()
    }

    /// Whether it is written as only CapSolver's clients write: an `appId` beside the task, or a `module` in it.
    pub(super) fn has_cap_solver_fields(&self) -> bool {
        self.field("appId").is_some() || self.task().is_some_and(|task| task.contains_key("module"))
    }

    fn task(&self) -> Option<&Map<String, Value>> {
        self.field("task")?.as_object().filter(|task| !task.is_empty())
    }

    pub(super) fn type_name(&self) -> Option<&str> {
        self.task()?.get("type")?.as_str()
    }

    pub(super) fn task_id_text(&self) -> Option<&str> {
        self.field("taskId")?.as_str()
    }

    /// The order that he means. What cannot be an id of ours is one that we do not know.
    pub(super) fn task_id(&self) -> Result<OrderId, Wrong> {
        let id = self.field("taskId").and_then(quittance_json::read_task_id);
        id.and_then(OrderId::from_number).ok_or(Wrong::TaskUnknown)
    }

    /// In feedback, whether the answer was good.
    pub(super) fn is_good(&self) -> Result<bool, Wrong> {
        let invalid = self.field("result").and_then(|result| result.get("invalid")).and_then(truth);
        invalid.map(|is_invalid| !is_invalid).ok_or(Wrong::NoVerdict)
    }

    pub(super) fn wish(mut self, flavour: Flavour, headers: &HeaderMap) -> Result<Wish, Wrong> {
        let callback = self.callback()?.map(|url| (url, dialect(flavour)));
        let Some(Value::Object(mut task)) = self.take_field("task") else { return Err(Wrong::TaskAbsent) };
        if task.is_empty() {
            return Err(Wrong::TaskAbsent);
        }
        // Who is to solve it stands beside the task, and belongs to it all the same.
        if let Some(pool) = self.take_field("languagePool").filter(|pool| pool != "en") {
            task.entry("languagePool").or_insert(pool);
        }
        let options = OrderOptions::read(headers, |name| option(self.field(name), task.get(name), name))?;
        let Wanted { kind, params } = quittance_json::understand(&task)?;
        Ok(Wish { kind, params, collected_in: crate::desk::COLLECTED_IN, callback, ..options.wish() })
    }

    /// Many write out that there is none.
    fn callback(&self) -> Result<Option<String>, Wrong> {
        match self.field("callbackUrl") {
            None | Some(Value::Null) => Ok(None),
            Some(Value::String(url)) if url.is_empty() => Ok(None),
            Some(Value::String(url)) => Ok(Some(url.clone())),
            Some(_) => Err(Wrong::CallbackType),
        }
    }
}

/// A field that is about the order, beside the task or inside it: many clients can only add to the task.
fn option(
    beside: Option<&Value>,
    inside: Option<&Value>,
    field: &'static str,
) -> Result<Option<String>, BadOption> {
    let read = |value: Option<&Value>| match value {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text.clone())),
        Some(Value::Bool(is_set)) => Ok(Some(u8::from(*is_set).to_string())),
        Some(Value::Number(number)) => Ok(Some(number.to_string())),
        Some(Value::Array(_) | Value::Object(_)) => Err(BadOption::Shape { field }),
    };
    match (read(beside)?, read(inside)?) {
        (Some(beside), Some(inside)) if beside != inside => Err(BadOption::SaidTwice { field }),
        (beside, inside) => Ok(beside.or(inside)),
    }
}

/// Yes or no, in every way that clients write it.
fn truth(value: &Value) -> Option<bool> {
    match value {
        Value::Bool(truth) => Some(*truth),
        Value::Number(number) => number.as_u64().map(|number| number != 0),
        Value::String(text) if text == "1" || text.eq_ignore_ascii_case("true") => Some(true),
        Value::String(text) if text == "0" || text.eq_ignore_ascii_case("false") => Some(false),
        _ => None,
    }
}

/// What the order's record says about how to call back.
const fn dialect(flavour: Flavour) -> &'static str {
    match flavour {
        Flavour::TwoCaptcha => "json:2captcha",
        Flavour::AntiCaptcha => "json:anticaptcha",
        Flavour::CapSolver => "json:capsolver",
        Flavour::CapMonster => "json:capmonster",
    }
}

pub(super) fn local_caller(local: Caller, key: &str) -> Option<Caller> {
    let (key, is_fresh_wanted) = without_suffix(key);
    (!key.trim().is_empty()).then_some(Caller { is_fresh_wanted, ..local })
}
