//! What an order asks for, whatever it calls it. Every API hands over a kind and parameters; the kind may be a method or a task
//! type, parameters may have the names that either protocol has on the wire, and some of them make the order one of
//! another kind. What comes out are the words of the catalog, and nothing in it says a thing twice.

mod near;
#[cfg(test)]
mod tests;

use crate::task::{self, Wanted, read_as};
use quittance_catalog::CONTROL;
use quittance_classic::method;
use quittance_classic::{Form, Part};
use quittance_lifecycle::{BadRequest, Kind, Role, Value as Param};
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// How often one order may turn out to be of another kind.
const TURNS_MAX: usize = 3;

type Params = BTreeMap<String, Param>;

/// What is meant; nothing, if it is what was said. `kinds` knows the kinds, also those that the operator has added.
pub fn meaning(
    kind: &str,
    params: &Params,
    kinds: &dyn Fn(&str) -> Option<Kind>,
) -> Result<Option<Wanted>, BadRequest> {
    let described = |name: &str| kinds(name).filter(|kind| kind.hosts.is_described);
    let mut meant = Wanted { kind: kind.to_owned(), params: params.clone() };
    if described(kind).is_none() {
        meant = of_another_protocol(kind, params)?;
    }
    for _ in 0..TURNS_MAX {
        let Some(known) = described(&meant.kind) else {
            rename(&mut meant, None)?;
            break;
        };
        rename(&mut meant, Some(&known))?;
        let Some(other) = turned_into(&known, &mut meant.params)? else { break };
        meant.kind = other.to_owned();
    }
    if let Some(known) = described(&meant.kind) {
        near::check_names(&known, &meant.params)?;
    }
    Ok((meant.kind != kind || meant.params != *params).then_some(meant))
}

/// A method or a task type is the kind that it is. What is neither is a kind that nobody has described, unless it is a
/// known name misspelt.
fn of_another_protocol(kind: &str, params: &Params) -> Result<Wanted, BadRequest> {
    let name = kind.trim();
    if method::methods().any(|known| known == name) {
        let part = |value: &Param| match value {
            Param::Text(text) => Part::Text(text.clone()),
            Param::Bytes(bytes) => Part::File(bytes.clone()),
        };
        let mut form: BTreeMap<String, Part> =
            params.iter().map(|(name, value)| (name.clone(), part(value))).collect();
        form.insert("method".to_owned(), Part::Text(name.to_owned()));
        return match method::understand(&Form(form)) {
            Ok(wanted) => Ok(Wanted { kind: wanted.kind, params: keep_control(wanted.params, params) }),
            Err(method::BadWish::SaidTwice { one, other }) => Err(BadRequest::SaidTwice { one, other }),
            Err(method::BadWish::NotBase64 { field }) => Err(BadRequest::NotAFile { field }),
            Err(method::BadWish::NoMethod) => Err(BadRequest::BadKindName { name: name.to_owned() }),
        };
    }
    if task::stems(name) {
        let field = |(name, value): (&String, &Param)| Some((name.clone(), task::written(value)?));
        let mut fields: Map<String, Value> = params.iter().filter_map(field).collect();
        fields.insert("type".to_owned(), Value::from(name));
        return match task::understand(&fields) {
            Ok(wanted) => Ok(Wanted { params: keep_control(wanted.params, params), ..wanted }),
            Err(task::BadTask::SaidTwice { one, other }) => Err(BadRequest::SaidTwice { one, other }),
            Err(task::BadTask::NotBase64 { field }) => Err(BadRequest::NotAFile { field }),
            Err(task::BadTask::NoType) => Err(BadRequest::BadKindName { name: name.to_owned() }),
        };
    }
    match near::kind(name) {
        Some(meant) => Err(BadRequest::MisspeltKind { name: name.to_owned(), meant }),
        None => Ok(Wanted { kind: kind.to_owned(), params: params.clone() }),
    }
}

/// What is said about how to talk is nobody's parameter, and stays.
fn keep_control(mut meant: Params, said: &Params) -> Params {
    let control = said.iter().filter(|(name, _)| CONTROL.contains(&name.as_str()));
    control.for_each(|(name, value)| _ = meant.entry(name.clone()).or_insert_with(|| value.clone()));
    meant
}

/// Gives every parameter the catalog's name for it.
fn rename(meant: &mut Wanted, kind: Option<&Kind>) -> Result<(), BadRequest> {
    rename_proxy(&mut meant.params)?;
    let name = kind.map_or("", |kind| &kind.name);
    let is_known = |param: &str| {
        CONTROL.contains(&param)
            || kind.is_some_and(|kind| kind.role(param) != Role::Unknown)
            || matches!(param, "pageurl" | "proxy" | "proxytype")
    };
    let strangers: Vec<String> = meant.params.keys().filter(|param| !is_known(param)).cloned().collect();
    for stranger in strangers {
        let Some((ours, value)) = alias(name, kind, &stranger, &meant.params[&stranger])? else { continue };
        meant.params.remove(&stranger);
        match (meant.params.get(&ours), value) {
            (Some(said), Some(value)) if *said != value => {
                return Err(BadRequest::SaidTwice { one: ours, other: stranger });
            }
            (None, Some(value)) => _ = meant.params.insert(ours, value),
            (Some(_), Some(_)) | (_, None) => {}
        }
    }
    Ok(())
}

/// Our name and our value for it, if it is another name for something that orders of this kind say.
fn alias(
    name: &str,
    kind: Option<&Kind>,
    stranger: &str,
    value: &Param,
) -> Result<Option<(String, Option<Param>)>, BadRequest> {
    if let Some((ours, shape)) = task::alias(name, stranger) {
        let read = match value {
            Param::Bytes(_) => Some(Some(value.clone())),
            Param::Text(text) => read_as(shape, text),
        };
        let read = read.ok_or_else(|| BadRequest::NotAFile { field: stranger.to_owned() })?;
        return Ok(Some((ours.to_owned(), read)));
    }
    if let Some((ours, _)) = method::alias(name, stranger) {
        return Ok(Some((ours.to_owned(), Some(value.clone()))));
    }
    let fields = kind.into_iter().flat_map(|kind| {
        let named = kind.fields.iter().map(|field| field.name);
        named.chain(kind.hosts.plain.iter().copied()).chain(kind.address_fields.iter().copied())
    });
    let ours = fields.chain(["pageurl"]).find(|ours| ours.eq_ignore_ascii_case(stranger));
    Ok(ours.map(|ours| (ours.to_owned(), Some(value.clone()))))
}

/// The five fields of the JSON protocol are the one of the classic protocol.
fn rename_proxy(params: &mut Params) -> Result<(), BadRequest> {
    let is_piece = |name: &str| task::is_proxy_field(name) && !matches!(name, "proxy" | "proxytype");
    let pieces: Vec<String> = params.keys().filter(|name| is_piece(name)).cloned().collect();
    if pieces.is_empty() {
        return Ok(());
    }
    let field = |(name, value): (&String, &Param)| Some((name.clone(), task::written(value)?));
    let fields: Map<String, Value> =
        params.iter().filter(|(name, _)| is_piece(name)).filter_map(field).collect();
    let mut read = Params::new();
    task::read_proxy(&fields, &mut read);
    pieces.iter().for_each(|piece| _ = params.remove(piece));
    for (name, value) in read {
        match params.get(&name) {
            Some(said) if *said != value => {
                return Err(BadRequest::SaidTwice { one: name, other: pieces[0].clone() });
            }
            _ => _ = params.insert(name, value),
        }
    }
    Ok(())
}

/// The other kind that a parameter makes this, if one does; what it says is written as that kind writes it.
fn turned_into(kind: &Kind, params: &mut Params) -> Result<Option<&'static str>, BadRequest> {
    let other_kind =
        |name: &str| BadRequest::OtherKind { kind: kind.name.to_string(), name: name.to_owned() };
    // Whoever contradicts what the kind says itself would be read as another by one provider and not by the next.
    for (mark, said) in method::marks(&kind.name) {
        if params.get(mark).is_some_and(|value| !is_same(value, said) && !is_default(kind, mark, value)) {
            return Err(other_kind(mark));
        }
    }
    let own: Vec<&str> = method::marks(&kind.name).map(|(mark, _)| mark).collect();
    let mut found = None;
    for (tell, said, other) in method::tells(&kind.name).chain(task::tells(&kind.name)) {
        let is_own_field = kind.fields.iter().any(|field| field.name == tell) || own.contains(&tell);
        let Some(name) = params.keys().find(|name| is_same_name(name, tell)).filter(|_| !is_own_field) else {
            continue;
        };
        let tells = match (params.get(name), said) {
            (Some(value), Some(said)) => is_same(value, said),
            (Some(value), None) => !value.as_bytes().is_empty(),
            (None, _) => false,
        };
        if !tells {
            continue;
        }
        let name = name.clone();
        if found.is_some_and(|found| found != other) || name != tell {
            return Err(other_kind(&name));
        }
        // A kind that has marks of its own cannot be another one as well.
        if !own.is_empty() {
            return Err(other_kind(&name));
        }
        if let Some(said) = said {
            params.insert(name, Param::from(said));
        }
        found = Some(other);
    }
    Ok(found)
}

fn is_same_name(name: &str, tell: &str) -> bool {
    name == tell || near::squeezed(name) == near::squeezed(tell)
}

/// Whether a provider would read the value as this: a switch that is on in any way, or a version however it is written.
fn is_same(value: &Param, said: &str) -> bool {
    let Param::Text(text) = value else { return false };
    let text = text.trim().to_ascii_lowercase();
    match said {
        "1" => !matches!(text.as_str(), "" | "0" | "false" | "no" | "off"),
        said => {
            text == said
                || text.trim_start_matches('v').trim_end_matches(".0") == said.trim_start_matches('v')
        }
    }
}

fn is_default(kind: &Kind, name: &str, value: &Param) -> bool {
    let field = kind.fields.iter().find(|field| field.name == name);
    field.is_some_and(|field| field.default.is_some_and(|default| default.as_bytes() == value.as_bytes()))
}
