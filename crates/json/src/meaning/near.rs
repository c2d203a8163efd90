//! Names that are nearly known: a slip of the fingers, or a known name in another dress. To buy what such a name might
//! mean helps nobody, so the caller is told.

use crate::task;
use quittance_catalog::{CONTROL, UNDESCRIBED};
use quittance_classic::method;
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

/// The known kind that a name is most like, if it is not one that the services have and we have not described.
pub(super) fn kind(name: &str) -> Option<String> {
    let typed = squeezed(name);
    if UNDESCRIBED.iter().any(|known| squeezed(known) == typed) {
        return None;
    }
    let kinds = quittance_catalog::kinds().map(|kind| kind.name.into_owned());
    let methods = method::methods().map(str::to_owned);
    let types = task::types().map(str::to_owned);
    let is_meant = |known: &str| is_near(&typed, known) || is_near_and_short(&typed, known);
    let near = kinds.chain(methods).chain(types).filter(|known| is_meant(&squeezed(known)));
    near.min_by_key(|known| strsim::osa_distance(&typed, &squeezed(known)))
}

/// Refuses parameters of a described kind that are nearly known ones.
pub(super) fn check_names(kind: &Kind, params: &BTreeMap<String, Param>) -> Result<(), BadRequest> {
    for name in params.keys() {
        let is_common = matches!(name.as_str(), "pageurl" | "proxy" | "proxytype");
        // A client that sends the parameters of all kinds with each order has not misspelt any of them.
        let is_known = quittance_catalog::kinds().any(|kind| kind.role(name) != Role::Unknown);
        if is_common || is_known || CONTROL.contains(&name.as_str()) || kind.role(name) != Role::Unknown {
            continue;
        }
        let typed = squeezed(name);
        let fields = kind.fields.iter().map(|field| field.name);
        let ours = fields.chain(kind.hosts.roles.iter().map(|(name, _)| *name));
        let all = ours.chain(task::wire_names(&kind.name)).chain(CONTROL.iter().copied());
        let near = all.filter(|known| is_near(&typed, &squeezed(known)));
        if let Some(meant) = near.min_by_key(|known| strsim::osa_distance(&typed, &squeezed(known))) {
            return Err(BadRequest::MisspeltParam {
                kind: kind.name.to_string(),
                name: name.clone(),
                meant: meant.to_owned(),
            });
        }
    }
    Ok(())
}
