//! The task type and the fields of each kind, in both directions: [`spell`] writes an order for a provider,
//! [`understand`] reads a client's task. The result has the names of the catalogue, which are those of the classic
//! protocol. So an order that is placed through one API is joined through the other.

mod field;
mod leaves;
mod proxy;
mod task_row;
mod task_rows;
#[cfg(test)]
mod tests;

use crate::json::dialect::JsonDialect;
use crate::kinds::{CONTROL, JSON_TEXTS};
use quittance_lifecycle::Value as Param;
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use task_row::{COMMON, FieldName, FieldShape, PLAIN, TaskRow};
use task_rows::TABLE;

pub(crate) use proxy::{is_field as is_proxy_field, one_text as one_proxy, understand as read_proxy};

pub use leaves::{Leaf, leaves};
pub(crate) use leaves::{alias, kinds_of_types, sorts, stems, telling_values, tells, types, wire_names};

pub use crate::kinds::OrderParams;

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadTask {
    #[error("the task has no `type`")]
    NoType,
    #[error("`{field}` is not a file in base64")]
    NotBase64 { field: String },
    #[error(
        "`{one}` and `{other}` are two names of one parameter, and their values differ: send one of them"
    )]
    ContradictoryNames { one: String, other: String },
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CannotSpellTask {
    #[error("the JSON protocol has no task type for `{kind}`")]
    NoType { kind: String },
    #[error("the proxy is not written as host:port or login:pass@host:port")]
    Proxy,
    #[error(
        "`cookies` is a list, and this provider takes them as text only: write them as name=value; name=value"
    )]
    ListOfCookies,
    #[error("the JSON protocol uses the name `{name}` for another parameter: rename yours, or leave it out")]
    Overwritten { name: String },
}

impl TaskRow {
    fn is_marked_by(&self, stem: &str, task: &Map<String, Value>) -> bool {
        let (with, without) = self.types;
        let (ours, theirs) = self.at_cap_solver.unwrap_or(self.types);
        let is_named = [with, without, ours, theirs].iter().any(|name| stem_of(name) == stem)
            || self.also.contains(&stem);
        let tells = |path: &str, expected: Option<&str>| match (field::at(task, path), expected) {
            (Some(value), Some(expected)) => field::says(value, expected),
            (Some(value), None) => field::text(value).is_some_and(|text| !text.is_empty()),
            (None, _) => false,
        };
        is_named
            && (self.marked_by.is_empty()
                || self.marked_by.iter().any(|(path, expected)| tells(path, *expected)))
    }

    /// The row for a field of theirs. Names of one dialect are accepted in all dialects.
    fn name_of(&self, theirs: &str) -> Option<FieldName> {
        let usual = self.names.iter().chain(COMMON).find(|name| name.theirs.eq_ignore_ascii_case(theirs));
        let own = || {
            let (_, ours, theirs) =
                self.elsewhere.iter().find(|(_, _, own)| own.eq_ignore_ascii_case(theirs))?;
            self.names.iter().find(|name| name.ours == *ours).map(|usual| FieldName { theirs, ..*usual })
        };
        usual.copied().or_else(own)
    }

    fn name_for(&self, dialect: JsonDialect, ours: &str) -> Option<FieldName> {
        let usual = *self.names.iter().chain(COMMON).find(|name| name.ours == ours)?;
        let own = self.elsewhere.iter().find(|(at, name, _)| *at == dialect && *name == ours);
        Some(own.map_or(usual, |(_, _, theirs)| FieldName { theirs, ..usual }))
    }

    fn is_mark(&self, theirs: &str, value: &Value) -> bool {
        self.marks.iter().any(|(mark, expected, _)| *mark == theirs && field::says(value, expected))
    }

    fn fits(&self, dialect: JsonDialect, kind: &str, params: &BTreeMap<String, Param>) -> bool {
        let is_theirs = self.only.is_empty() || self.only.contains(&dialect);
        let says = |(name, expected): &(&str, &str)| {
            params.get(*name).is_some_and(|value| value.as_bytes() == expected.as_bytes())
        };
        self.kind == kind && is_theirs && self.implied.iter().all(says)
    }
}

/// The task type in lower case, without `Proxyless`.
fn stem_of(name: &str) -> String {
    let name = name.to_ascii_lowercase();
    name.strip_suffix("proxyless").map_or(name.clone(), str::to_owned)
}

/// The order in a client's `task`, in the spelling of any provider. An undescribed type is an open kind with its own
/// name, and its fields pass through. Only the page and the proxy have fixed names, because every order is checked
/// for what may be automated.
pub fn understand(task: &Map<String, Value>) -> Result<OrderParams, BadTask> {
    let named = match task.get("type") {
        Some(Value::String(name)) if !name.trim().is_empty() => name.trim(),
        _ => return Err(BadTask::NoType),
    };
    let stem = stem_of(named);
    let row = TABLE.iter().find(|row| row.is_marked_by(&stem, task)).unwrap_or(&PLAIN);
    let kind = if row.kind.is_empty() { named } else { row.kind };
    let is_proxyless = !row.kind.is_empty() && named.to_ascii_lowercase().ends_with("proxyless");
    let mut params: BTreeMap<String, Param> = BTreeMap::new();
    let mut names: BTreeMap<String, String> = BTreeMap::new();
    let mut texts = Vec::new();
    for (theirs, value) in field::flatten(task, row) {
        let is_about_talk = theirs == "type" || CONTROL.contains(&theirs.as_str());
        if is_about_talk
            || proxy::is_field(&theirs)
            || row.is_mark(&theirs, &value)
            || says_nothing(&theirs, &value)
        {
            continue;
        }
        let name = row.name_of(&theirs);
        let ours = name.map_or(theirs.as_str(), |name| name.ours);
        let shape = name.map_or(FieldShape::Text, |name| name.shape);
        let read = field::read(shape, &value).ok_or(BadTask::NotBase64 { field: theirs.clone() })?;
        if name.is_none() && field::looks_otherwise(&value) {
            texts.push(theirs.clone());
        }
        let Some(param) = read else { continue };
        match params.get(ours) {
            Some(expected) if *expected != param => {
                let one = names.remove(ours).unwrap_or_else(|| ours.to_owned());
                return Err(BadTask::ContradictoryNames { one, other: theirs });
            }
            _ => {
                params.insert(ours.to_owned(), param);
                names.insert(ours.to_owned(), theirs);
            }
        }
    }
    if !texts.is_empty() {
        params.insert(JSON_TEXTS.to_owned(), Param::Text(texts.join("\n")));
    }
    for (name, expected) in row.implied {
        params.insert((*name).to_owned(), Param::from(*expected));
    }
    // A provider would not look at it, so it must not make another order.
    if !is_proxyless {
        proxy::understand(task, &mut params);
    }
    Ok(OrderParams { kind: kind.to_owned(), params })
}

/// Reads a text of a field as [`understand`] does.
pub(crate) fn read_as(shape: FieldShape, text: &str) -> Option<Option<Param>> {
    field::read(shape, &Value::from(text))
}

/// The value of a field as text, or `None` for `null`.
pub(crate) fn text_of(value: &Value) -> Option<String> {
    field::text(value)
}

/// A parameter as JSON, with the type that its text looks like.
pub(crate) fn written(param: &Param) -> Option<Value> {
    field::write(None, param)
}

/// Whether a field only writes out the default, such as CapMonster's `nocache: false`.
fn says_nothing(theirs: &str, value: &Value) -> bool {
    theirs == "nocache" && *value == Value::Bool(false)
}

/// Writes the `task` for a provider of this dialect.
pub fn spell(
    dialect: JsonDialect,
    kind: &str,
    params: &BTreeMap<String, Param>,
) -> Result<Map<String, Value>, CannotSpellTask> {
    let row = match TABLE.iter().find(|row| row.fits(dialect, kind, params)) {
        Some(row) => row,
        None if crate::kinds::kind(kind).is_some() => {
            return Err(CannotSpellTask::NoType { kind: kind.to_owned() });
        }
        None => &PLAIN,
    };
    let text = |name: &str| match params.get(name) {
        Some(Param::Text(text)) if !text.is_empty() => Some(text.as_str()),
        _ => None,
    };
    let texts = text(JSON_TEXTS).unwrap_or_default();
    let mut task = Map::new();
    for (ours, param) in params {
        let is_stated = row.implied.iter().any(|(name, _)| name == ours)
            || row
                .marks
                .iter()
                .any(|(mark, expected, _)| mark == ours && param.as_bytes() == expected.as_bytes());
        if is_stated || matches!(ours.as_str(), "proxy" | "proxytype") || CONTROL.contains(&ours.as_str()) {
            continue;
        }
        let name = row.name_for(dialect, ours);
        let theirs = name.map_or(ours.as_str(), |name| name.theirs);
        let was_text = texts.split('\n').any(|text| text == theirs);
        let shape = name.map(|name| name.shape).or(was_text.then_some(FieldShape::Text));
        let takes_lists = dialect == JsonDialect::CapSolver || row.kind.is_empty();
        let value = match shape {
            Some(FieldShape::Cookies) => {
                field::write_cookies(param, takes_lists).ok_or(CannotSpellTask::ListOfCookies)?
            }
            shape => field::write(shape, param),
        };
        if let Some(value) = value {
            let is_taken =
                row.name_of(theirs).is_some_and(|name| name.ours != *ours) || is_reserved(row, theirs);
            if (name.is_none() && is_taken) || !field::put(&mut task, theirs, value) {
                return Err(CannotSpellTask::Overwritten { name: ours.clone() });
            }
        }
    }
    for (theirs, expected, shape) in row.marks {
        // A parameter that the kind knows by this name says which of its sorts it is.
        if row.name_of(theirs).is_some() && task.contains_key(*theirs) {
            continue;
        }
        if let Some(value) = field::write(Some(*shape), &Param::from(*expected))
            && !field::put(&mut task, theirs, value)
        {
            return Err(CannotSpellTask::Overwritten { name: (*theirs).to_owned() });
        }
    }
    for name in row.packed {
        if let Some(inner @ Value::Object(_)) = task.get(*name) {
            let text = inner.to_string();
            task.insert((*name).to_owned(), Value::String(text));
        }
    }
    match (dialect, kind) {
        (JsonDialect::AntiCaptcha, "recaptcha_v3") => {
            task.insert("minScore".to_owned(), Value::from(field::score(text("min_score"))));
        }
        // It needs a value, too, but takes any.
        (JsonDialect::TwoCaptcha, "recaptcha_v3") => {
            task.entry("minScore").or_insert_with(|| Value::from(field::USUAL_SCORE));
        }
        _ => {}
    }
    let named = type_of(row, dialect, kind, text("proxy").is_some());
    // A provider that ignores it need not know it.
    let is_proxyless = !row.kind.is_empty() && named.to_ascii_lowercase().ends_with("proxyless");
    if let Some(proxy) = text("proxy").filter(|_| !is_proxyless) {
        task.extend(proxy::spell(proxy, text("proxytype")).ok_or(CannotSpellTask::Proxy)?);
    }
    task.insert("type".to_owned(), Value::from(named));
    Ok(task)
}

/// Whether we write this field ourselves.
fn is_reserved(row: &TaskRow, theirs: &str) -> bool {
    let is_mark = row.marks.iter().any(|(mark, ..)| mark.eq_ignore_ascii_case(theirs));
    is_mark || theirs.eq_ignore_ascii_case("type") || proxy::is_field(theirs)
}

fn type_of<'a>(row: &TaskRow, dialect: JsonDialect, kind: &'a str, has_proxy: bool) -> &'a str {
    let (with, without) = match (dialect, row.at_cap_solver) {
        (JsonDialect::CapSolver, Some(types)) => types,
        _ => row.types,
    };
    match (row.kind.is_empty(), has_proxy) {
        (true, _) => kind,
        (false, true) => with,
        (false, false) => without,
    }
}
