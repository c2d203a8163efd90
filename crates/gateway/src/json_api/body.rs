//! The body of a request: one JSON object with any Content-Type. A field of the wrong type and a missing field have
//! different errors only if clients know the difference.

use super::json_error::JsonError;
use crate::order_id::OrderId;
use crate::order_options::{self, BadOption, OptionFields};
use crate::orders::OrderRequest;
use crate::tenant::{Caller, without_suffix};
use hyper::HeaderMap;
use quittance_lifecycle::Draft;
use quittance_protocol::Dialect;
use quittance_protocol::classic::json_document::{self, BadDocument};
use quittance_protocol::json::OrderParams;
use quittance_protocol::kinds::CONTROL;
use quittance_webhooks::WebhookFormat;
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// The mark that some clients write before any text.
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

#[derive(Default)]
pub(super) struct TaskRequest(Map<String, Value>);

impl TaskRequest {
    /// Reads the body. The parser allows at most 128 levels, so no value is too deep for later steps.
    pub(super) fn read(body: &[u8]) -> Result<Self, JsonError> {
        let body = body.strip_prefix(BYTE_ORDER_MARK).unwrap_or(body);
        match json_document::read(body) {
            Ok(Value::Object(fields)) => {
                check_spellings(&fields)?;
                Ok(Self(fields))
            }
            Ok(_) => Err(JsonError::NotAnObject),
            Err(BadDocument::NotJson { line, column }) => Err(JsonError::NotJson { line, column }),
            Err(BadDocument::SentTwice { name }) => Err(BadOption::SentTwice { field: name }.into()),
            Err(bad @ BadDocument::InexactNumber { .. }) => Err(JsonError::InexactNumber(bad)),
        }
    }

    pub(super) fn echo(self) -> String {
        Value::Object(self.0).to_string()
    }

    /// A field of the envelope. Case does not count, because some clients write `clientkey`; the exact spelling wins.
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

    /// Whether the request has fields that only CapSolver's clients write: an `appId` beside the task, or a `module`
    /// in it.
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

    /// The id of the order. A value that cannot be one of our ids is an unknown order.
    pub(super) fn task_id(&self) -> Result<OrderId, JsonError> {
        let id = self.field("taskId").and_then(quittance_protocol::json::read_task_id);
        id.and_then(OrderId::from_number).ok_or(JsonError::TaskUnknown)
    }

    /// Whether a report (feedback) says that the answer was good.
    pub(super) fn is_good(&self) -> Result<bool, JsonError> {
        let invalid = self.field("result").and_then(|result| result.get("invalid")).and_then(truth);
        invalid.map(|is_invalid| !is_invalid).ok_or(JsonError::NoVerdict)
    }

    pub(super) fn request(
        mut self,
        dialect: Dialect,
        headers: &HeaderMap,
    ) -> Result<OrderRequest, JsonError> {
        let webhook = self.callback()?.map(|url| (url, WebhookFormat::Json(dialect)));
        let Some(Value::Object(mut task)) = self.take_field("task") else {
            return Err(JsonError::TaskAbsent);
        };
        if task.is_empty() {
            return Err(JsonError::TaskAbsent);
        }
        self.check_beside(&task)?;
        // Who is to solve it stands beside the task, and belongs to it all the same.
        if let Some(pool) = self.take_field("languagePool").filter(|pool| pool != "en") {
            task.entry("languagePool").or_insert(pool);
        }
        let draft = self.take_options(&mut task)?.draft(headers)?;
        let OrderParams { kind, params } = quittance_protocol::json::understand(&task)?;
        Ok(OrderRequest { kind, draft: Draft { params, ..draft }, webhook, is_strict: false })
    }

    /// Refuses fields beside the task that belong into it, unless the task has the same value. Fields beside the task
    /// are not sent to a provider, so the caller would get another order than intended.
    fn check_beside(&self, task: &Map<String, Value>) -> Result<(), BadOption> {
        if let Some((name, _)) =
            self.0.iter().find(|(name, value)| is_nearly_callback(name) && !is_unset(value))
        {
            return Err(BadOption::Misspelt { field: name.clone(), meant: "callbackUrl" });
        }
        let is_control = |name: &str| CONTROL.iter().any(|known| known.eq_ignore_ascii_case(name));
        let beside = self.0.iter().filter(|(name, value)| !is_control(name) && !is_unset(value));
        for (name, value) in beside {
            let inside = task.iter().filter(|(found, _)| found.eq_ignore_ascii_case(name));
            let mut inside = inside.filter(|(_, inside)| !is_unset(inside)).peekable();
            let field = || name.to_owned();
            if inside.peek().is_none() && OF_THE_TASK.iter().any(|known| known.eq_ignore_ascii_case(name)) {
                return Err(BadOption::OutsideTask { field: field() });
            }
            if inside.any(|(_, inside)| plain(inside) != plain(value)) {
                return Err(BadOption::BesideTask { field: field() });
            }
        }
        Ok(())
    }

    /// Takes the fields for Quittance itself out of the envelope and of the task: many clients can only add to the
    /// task.
    fn take_options(&mut self, task: &mut Map<String, Value>) -> Result<OptionFields, BadOption> {
        let mut fields = OptionFields::default();
        for object in [&mut self.0, task] {
            let names: Vec<String> =
                object.keys().filter(|name| order_options::field_named(name).is_some()).cloned().collect();
            for name in names {
                if let Some(text) = object.remove(&name).and_then(|value| option(&name, &value).transpose()) {
                    fields.add(&name, || text)?;
                }
            }
            object.keys().try_for_each(|name| order_options::check_not_misspelt(name))?;
        }
        Ok(fields)
    }

    /// The callback URL, if there is one. Many clients write an empty one.
    fn callback(&self) -> Result<Option<String>, JsonError> {
        match self.field("callbackUrl") {
            None | Some(Value::Null) => Ok(None),
            Some(Value::String(url)) if url.is_empty() => Ok(None),
            Some(Value::String(url)) => Ok(Some(url.clone())),
            Some(_) => Err(JsonError::CallbackType),
        }
    }
}

/// Fields that select what is ordered, under the names of both protocols.
const OF_THE_TASK: [&str; 10] = [
    "captchaId",
    "googlekey",
    "method",
    "pageurl",
    "proxy",
    "proxyAddress",
    "sitekey",
    "type",
    "websiteKey",
    "websiteURL",
];

/// Whether a name is probably a misspelt `callbackUrl`. If it were ignored, the caller would wait for a webhook in
/// vain.
fn is_nearly_callback(name: &str) -> bool {
    let letters: String =
        name.chars().filter(char::is_ascii_alphabetic).map(|letter| letter.to_ascii_lowercase()).collect();
    letters != "callbackurl"
        && (letters.starts_with("callback") || letters.starts_with("pingb") || letters.starts_with("webhook"))
}

/// Whether a value is one that clients write for what they do not set.
fn is_unset(value: &Value) -> bool {
    value.is_null() || value.as_str().is_some_and(|text| text.trim().is_empty())
}

/// A value for comparison: `1` and `"1"` are equal.
fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), |text| text.trim().to_owned())
}

/// The value of one of our fields as text, or `None` if it is null.
fn option(field: &str, value: &Value) -> Result<Option<String>, BadOption> {
    match value {
        Value::Null => Ok(None),
        Value::String(text) => Ok(Some(text.clone())),
        Value::Bool(is_set) if matches!(order_options::field_named(field), Some("no_stock" | "nocache")) => {
            Ok(Some(u8::from(*is_set).to_string()))
        }
        // `1.0` and `1.00` would be one key.
        Value::Number(number)
            if number.is_f64() && order_options::field_named(field) == Some(order_options::KEY) =>
        {
            Err(BadOption::KeyNumber { field: field.to_owned() })
        }
        Value::Number(number) => Ok(Some(number.to_string())),
        Value::Bool(_) | Value::Array(_) | Value::Object(_) => {
            Err(BadOption::Shape { field: field.to_owned() })
        }
    }
}

/// Refuses an envelope that has one field in two spellings with different values.
fn check_spellings(fields: &Map<String, Value>) -> Result<(), BadOption> {
    let mut known: BTreeMap<String, (&String, &Value)> = BTreeMap::new();
    for (name, value) in fields {
        match known.insert(name.to_ascii_lowercase(), (name, value)) {
            Some((one, known_value)) if known_value != value => {
                return Err(BadOption::TwoSpellings { one: one.clone(), other: name.clone() });
            }
            _ => {}
        }
    }
    Ok(())
}

/// A boolean, in every form that clients write.
fn truth(value: &Value) -> Option<bool> {
    match value {
        Value::Bool(truth) => Some(*truth),
        Value::Number(number) => number.as_u64().map(|number| number != 0),
        Value::String(text) if text == "1" || text.eq_ignore_ascii_case("true") => Some(true),
        Value::String(text) if text == "0" || text.eq_ignore_ascii_case("false") => Some(false),
        _ => None,
    }
}

pub(super) fn local_caller(local: Caller, key: &str) -> Option<Caller> {
    let (key, is_fresh_wanted) = without_suffix(key);
    (!key.trim().is_empty()).then_some(Caller { is_fresh_wanted, ..local })
}
