//! Names that are nearly known: a slip of the fingers, or a known name in another dress. To buy what such a name might
//! mean helps nobody, so the caller is told.

use crate::task;
use quittance_catalog::{CONTROL, UNDESCRIBED};
use quittance_classic::method;
use quittance_hosts::roots;
use quittance_lifecycle::{BadRequest, Kind, Role, Value as Param};
use std::collections::BTreeMap;

/// Letters and digits alone, in small letters.
pub(super) fn squeezed(name: &str) -> String {
    name.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect()
}

/// Whether one is most likely meant to be the other, if both are short.
fn is_near_and_short(typed: &str, known: &str) -> bool {
    let is_short = (3..=4).contains(&known.chars().count().min(typed.chars().count()));
    is_short && typed.chars().next() == known.chars().next() && strsim::osa_distance(typed, known) <= 1
}

/// Whether one is most likely meant to be the other.
fn is_near(typed: &str, known: &str) -> bool {
    let most = match known.chars().count().min(typed.chars().count()) {
        0..=4 => 0,
        5..=8 => 1,
        _ => 2,
    };
    typed == known || (most > 0 && strsim::osa_distance(typed, known) <= most)
}

/// What is left of a type, method or kind without `Task` and `Proxyless`, also if the last is misspelt.
fn core_of(squeezed: &str) -> &str {
    let without_proxy = (7..=10).filter_map(|length| squeezed.len().checked_sub(length)).find_map(|at| {
        let (head, tail) = (squeezed.get(..at)?, squeezed.get(at..)?);
        (tail.starts_with('p') && strsim::osa_distance(tail, "proxyless") <= 2).then_some(head)
    });
    let name = without_proxy.unwrap_or(squeezed);
    name.strip_suffix("task").filter(|core| !core.is_empty()).unwrap_or(name)
}

/// The known kind that a name is most like, if it is not one that the services have and we have not described.
pub(super) fn kind(name: &str) -> Option<String> {
    let typed = squeezed(name);
    if UNDESCRIBED.iter().any(|known| squeezed(known) == typed) {
        return None;
    }
    let kinds = quittance_catalog::kinds().map(|kind| kind.name.into_owned());
    let others = method::methods().chain(task::types()).chain(UNDESCRIBED.iter().copied());
    let is_meant = |known: &str| {
        is_near(&typed, known) || is_near_and_short(&typed, known) || is_near(core_of(&typed), core_of(known))
    };
    let near = kinds.chain(others.map(str::to_owned)).filter(|known| is_meant(&squeezed(known)));
    near.min_by_key(|known| {
        let known = squeezed(known);
        let between_cores = strsim::osa_distance(core_of(&typed), core_of(&known));
        (between_cores, strsim::osa_distance(&typed, &known))
    })
}

/// Whether the `class` of a custom task is a kind that we know by another type.
pub(super) fn is_class_of_another(params: &BTreeMap<String, Param>) -> bool {
    let Some(class) = params.get("class") else { return false };
    let class = squeezed(&String::from_utf8_lossy(class.as_bytes()));
    let core = core_of(&class);
    let kinds = quittance_catalog::kinds().map(|kind| squeezed(&kind.name));
    let others = method::methods().chain(task::types()).map(squeezed);
    kinds.chain(others).any(|known| core_of(&known) == core && !core.is_empty())
}

/// Names that every order may have.
const COMMON: [&str; 9] = [
    "type",
    "pageurl",
    "proxy",
    "proxytype",
    "proxyType",
    "proxyAddress",
    "proxyPort",
    "proxyLogin",
    "proxyPassword",
];

/// Refuses parameters that some reader takes for known ones, and those of a described kind that are nearly known ones.
pub(super) fn check_names(kind: Option<&Kind>, params: &BTreeMap<String, Param>) -> Result<(), BadRequest> {
    let open = quittance_catalog::open_kind("");
    let of = kind.unwrap_or(&open);
    let all = || {
        let ours =
            of.fields.iter().map(|field| field.name).chain(of.hosts.roles.iter().map(|(name, _)| *name));
        let tells = method::tells(&of.name).chain(task::tells(&of.name)).map(|(tell, ..)| tell);
        let marks = method::marks(&of.name).map(|(mark, _)| mark);
        ours.chain(COMMON)
            .chain(task::wire_names(&of.name))
            .chain(tells)
            .chain(marks)
            .chain(CONTROL.iter().copied())
    };
    for name in params.keys() {
        // A client that sends the parameters of all kinds with each order has not misspelt any of them.
        let is_known = quittance_catalog::kinds().any(|kind| kind.role(name) != Role::Unknown);
        let is_object =
            || all().any(|known| known.strip_prefix(name).is_some_and(|tail| tail.starts_with('.')));
        if is_known || all().any(|known| known == name) || name == "type" || is_object() {
            continue;
        }
        let typed = squeezed(name);
        let roots = roots(name);
        let is_near = |known: &&str| {
            let is_root = roots.contains(&known.to_lowercase());
            is_root || (kind.is_some() && is_near(&typed, &squeezed(known)))
        };
        let near = all().filter(is_near);
        let distance = |known: &&str| {
            (!roots.contains(&known.to_lowercase()), strsim::osa_distance(&typed, &squeezed(known)))
        };
        if let Some(meant) = near.min_by_key(distance) {
            return Err(BadRequest::MisspeltParam {
                kind: of.name.to_string(),
                name: name.clone(),
                meant: meant.to_owned(),
            });
        }
    }
    Ok(())
}
