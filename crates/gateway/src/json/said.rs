//! What a client said: one JSON object, whatever its Content-Type is. Each thing that we look for in it is read here, and
//! what is of the wrong type is told apart from what is missing only where clients can tell as well.

use super::wrong::Wrong;
use crate::desk::Wish;
use crate::id::OrderId;
use crate::tenant::{Caller, without_suffix};
use quittance_json::Flavour;
use quittance_lifecycle::Reuse;
use serde_json::{Map, Value};

/// The task's own field for what the end of a key can say as well.
const NO_CACHE: &str = "nocache";
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

    pub(super) fn key(&self) -> Option<&str> {
        self.0.get("clientKey")?.as_str()
    }

    fn task(&self) -> Option<&Map<String, Value>> {
        self.0.get("task")?.as_object().filter(|task| !task.is_empty())
    }

    pub(super) fn type_name(&self) -> Option<&str> {
        self.task()?.get("type")?.as_str()
    }

    pub(super) fn task_id_text(&self) -> Option<&str> {
        self.0.get("taskId")?.as_str()
    }

    /// The order that he means. What cannot be an id of ours is one that we do not know.
    pub(super) fn task_id(&self) -> Result<OrderId, Wrong> {
        let id = self.0.get("taskId").and_then(quittance_json::read_task_id);
        id.and_then(OrderId::from_number).ok_or(Wrong::TaskUnknown)
    }

    /// In feedback, whether the answer was good.
    pub(super) fn is_good(&self) -> Result<bool, Wrong> {
        let invalid = self.0.get("result").and_then(|result| result.get("invalid")).and_then(truth);
        invalid.map(|is_invalid| !is_invalid).ok_or(Wrong::NoVerdict)
    }

    pub(super) fn wish(mut self, flavour: Flavour) -> Result<Wish, Wrong> {
        let callback = self.callback()?.map(|url| (url, dialect(flavour)));
        let Some(Value::Object(mut task)) = self.0.remove("task") else { return Err(Wrong::TaskAbsent) };
        if task.is_empty() {
            return Err(Wrong::TaskAbsent);
        }
        // Who is to solve it stands beside the task, and belongs to it all the same.
        if let Some(pool) = self.0.remove("languagePool").filter(|pool| pool != "en") {
            task.entry("languagePool").or_insert(pool);
        }
        let is_fresh_wanted = task.remove(NO_CACHE).as_ref().and_then(truth).unwrap_or(false);
        let wanted = quittance_json::understand(&task)?;
        let reuse = is_fresh_wanted.then_some(Reuse::Exclusive);
        let no_stock = is_fresh_wanted;
        let collected_in = crate::desk::COLLECTED_IN;
        let (kind, params) = (wanted.kind, wanted.params);
        Ok(Wish { kind, params, reuse, no_stock, collected_in, callback, ..Wish::default() })
    }

    /// Many write out that there is none.
    fn callback(&self) -> Result<Option<String>, Wrong> {
        match self.0.get("callbackUrl") {
            None | Some(Value::Null) => Ok(None),
            Some(Value::String(url)) if url.is_empty() => Ok(None),
            Some(Value::String(url)) => Ok(Some(url.clone())),
            Some(_) => Err(Wrong::CallbackType),
        }
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
