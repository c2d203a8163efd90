//! Lists the fields of a finished task and their parameters, for the check of outgoing fields. Also lists the names
//! of the protocol, for orders that came another way.

use super::task_row::{COMMON, FieldShape, PLAIN, TaskRow};
use super::task_rows::TABLE;
use super::{field, proxy, stem_of};
use crate::json::dialect::JsonDialect;
use quittance_lifecycle::Value as Param;
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// One field of a task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Leaf {
    /// The name on the wire; a point leads into an object.
    pub name: String,
    /// The parameter of the field, or `None` if nothing is known about it.
    pub param: Option<String>,
    /// The value as text. For an unknown field this is JSON with all names in it.
    pub value: String,
}

fn rows(kind: &str) -> impl Iterator<Item = &'static TaskRow> {
    TABLE.iter().filter(move |row| row.kind == kind)
}

/// Every field of a task that [`super::spell`] has made. Fields that our own table adds are left out.
#[must_use]
pub fn leaves(
    dialect: JsonDialect,
    kind: &str,
    params: &BTreeMap<String, Param>,
    task: &Map<String, Value>,
) -> Vec<Leaf> {
    let row = TABLE.iter().find(|row| row.fits(dialect, kind, params)).unwrap_or(&PLAIN);
    let mut leaves = Vec::with_capacity(task.len());
    for (name, value) in field::flatten(task, row) {
        // The type of a kind without a description is the caller's own word.
        if row.is_mark(&name, &value) || (name == "type" && !row.kind.is_empty()) {
            continue;
        }
        if proxy::is_field(&name) {
            continue;
        }
        let param = match row.name_of(&name) {
            Some(known) => Some(known.ours.to_owned()),
            // Ours, which the classic protocol does not have.
            None if matches!(name.as_str(), "minScore") => Some("min_score".to_owned()),
            // What has no other name on the wire has its own.
            None => params.contains_key(&name).then(|| name.clone()),
        };
        let value = field::text(&value).unwrap_or_default();
        leaves.push(Leaf { name, param, value });
    }
    leaves.extend(proxy::leaves(task));
    leaves
}

/// Our name of a field that the wire calls `name`, and what it holds.
pub(crate) fn alias(kind: &str, name: &str) -> Option<(&'static str, FieldShape)> {
    let known = rows(kind).find_map(|row| row.name_of(name)).or_else(|| PLAIN.name_of(name))?;
    Some((known.ours, known.shape))
}

/// Every name on the wire of the parameters of this kind.
pub(crate) fn wire_names(kind: &str) -> impl Iterator<Item = &'static str> {
    rows(kind).flat_map(|row| row.names).chain(COMMON).map(|name| name.theirs)
}

/// Every task type in the table, in the spelling of the services.
pub(crate) fn types() -> impl Iterator<Item = &'static str> {
    TABLE.iter().flat_map(|row| {
        let (with, without) = row.types;
        let (ours, theirs) = row.at_cap_solver.unwrap_or(row.types);
        [with, without, ours, theirs].into_iter().chain(row.also.iter().copied())
    })
}

/// Every task type in the table with its kind. If several kinds have one type, this is the kind without further
/// fields.
pub(crate) fn kinds_of_types() -> impl Iterator<Item = (&'static str, &'static str)> {
    let plain = TABLE.iter().filter(|row| row.marked_by.is_empty());
    plain.flat_map(|row| {
        let (with, without) = row.types;
        let (ours, theirs) = row.at_cap_solver.unwrap_or(row.types);
        [with, without, ours, theirs].into_iter().chain(row.also.iter().copied()).map(|name| (name, row.kind))
    })
}

/// Whether a name is a task type, in any case, with or without `Proxyless`.
pub(crate) fn stems(name: &str) -> bool {
    let stem = stem_of(name);
    types().any(|known| stem_of(known) == stem)
}

/// Fields that select a variant of a kind, with their values. Any other value would make it another kind.
pub(crate) fn sorts(kind: &str) -> impl Iterator<Item = (&'static str, &'static str)> {
    let known = |row: &'static TaskRow| {
        row.marked_by.iter().filter(|(path, _)| row.name_of(path).is_some_and(|name| name.ours == *path))
    };
    rows(kind).flat_map(known).filter_map(|(path, reply)| Some((*path, (*reply)?)))
}

/// The values of a field that choose the kind of a task.
pub(crate) fn telling_values(field: &str) -> impl Iterator<Item = &'static str> {
    let marks = TABLE.iter().flat_map(|row| row.marked_by);
    marks.filter(move |(path, _)| *path == field).filter_map(|(_, value)| *value)
}

/// Fields that turn a task with the type of `kind` into another kind.
pub(crate) fn tells(kind: &str) -> impl Iterator<Item = (&'static str, Option<&'static str>, &'static str)> {
    let stems_of = |row: &TaskRow| {
        let (with, without) = row.types;
        let (ours, theirs) = row.at_cap_solver.unwrap_or(row.types);
        [with, without, ours, theirs].map(stem_of)
    };
    let own: Vec<String> = rows(kind).flat_map(stems_of).collect();
    let kind = kind.to_owned();
    let others = TABLE
        .iter()
        .filter(move |row| row.kind != kind && stems_of(row).iter().any(|stem| own.contains(stem)));
    others.flat_map(|row| row.marked_by.iter().map(|(path, reply)| (*path, *reply, row.kind)))
}
