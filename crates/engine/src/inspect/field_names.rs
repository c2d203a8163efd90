//! Checks the names of fields. No name may be read by a provider as the name of another field, or of a field that we
//! add ourselves: one would replace the other. In PHP, `key[0]=x` turns our own `key` into a list.

use super::{Inspection, Step};
use crate::targets::NotAllowed;
use quittance_hosts::roots;
use quittance_lifecycle::{Kind, Role};
use quittance_ports::TaskField;
use std::collections::{BTreeMap, BTreeSet};

/// The JSON field that names the kind. The classic field for it is among the control fields.
const TYPE: &str = "type";

pub(super) fn check(inspection: &Inspection<'_>) -> Result<(), NotAllowed> {
    let Inspection { kind, fields, step, .. } = *inspection;
    let is_control = |name: &str| kind.hosts.control.contains(&name);
    // What we say about how to talk is left out before it leaves, and what says the kind is our own.
    let is_left_out = |field: &TaskField<'_>| step != Step::Send && is_control(field.name);
    let is_own = |field: &TaskField<'_>| field.param.is_none() && matches!(field.name, TYPE | "method");
    let checked: Vec<(&TaskField<'_>, BTreeSet<String>)> = fields
        .iter()
        .filter(|field| !is_left_out(field) && !is_own(field))
        .map(|field| (field, roots(field.name)))
        .collect();
    for (field, roots) in checked.iter().filter(|(field, _)| !is_known(kind, field)) {
        if let Some(other) = meaning_of(kind, roots) {
            return Err(NotAllowed::Name { field: field.name.to_owned(), other: other.to_owned() });
        }
    }
    check_pairs(kind, &checked)
}

fn is_known(kind: &Kind, field: &TaskField<'_>) -> bool {
    field.param.is_some_and(|param| kind.role(param) != Role::Unknown)
}

/// The known field that a reader may confuse with one of these names.
fn meaning_of(kind: &Kind, roots: &BTreeSet<String>) -> Option<&'static str> {
    let control = kind.hosts.control.iter().copied().chain([TYPE]);
    let fields = kind.fields.iter().map(|field| field.name);
    let mut known = control.chain(fields).chain(kind.hosts.roles.iter().map(|(name, _)| *name));
    known.find(|known| roots.contains(&known.to_lowercase()))
}

/// Whether a name leads into a structure: `a[b]`, `a.b`.
fn has_tail(name: &str) -> bool {
    name.contains(['[', '.', '%'])
}

/// Checks pairs of names with one root: they must be pieces of one structure, because otherwise one replaces the
/// other.
fn check_pairs(kind: &Kind, checked: &[(&TaskField<'_>, BTreeSet<String>)]) -> Result<(), NotAllowed> {
    let mut by_root: BTreeMap<&str, Vec<&TaskField<'_>>> = BTreeMap::new();
    for (field, roots) in checked {
        for root in roots {
            by_root.entry(root).or_default().push(field);
        }
    }
    for fields in by_root.values().filter(|fields| fields.len() > 1) {
        for (at, one) in fields.iter().enumerate() {
            let mut others = fields[at + 1..].iter().filter(|other| other.name != one.name);
            let Some(other) = others.find(|other| !are_pieces(one, other)) else { continue };
            let (field, other) = if is_known(kind, one) { (other, one) } else { (one, other) };
            return Err(NotAllowed::Name { field: field.name.to_owned(), other: other.name.to_owned() });
        }
    }
    Ok(())
}

/// Whether both fields are pieces of one list or object, or one is a JSON object and the other a further piece of it.
fn are_pieces(one: &TaskField<'_>, other: &TaskField<'_>) -> bool {
    let is_rest = |rest: &TaskField<'_>, piece: &TaskField<'_>| {
        let is_object = rest.value.trim_ascii_start().starts_with(b"{");
        is_object && piece.name.strip_prefix(rest.name).is_some_and(|tail| tail.starts_with('.'))
    };
    (has_tail(one.name) && has_tail(other.name)) || is_rest(one, other) || is_rest(other, one)
}
