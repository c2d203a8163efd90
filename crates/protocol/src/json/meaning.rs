//! Finds out what an order asks for. Every API hands over a kind and parameters. The kind can be a method or a task
//! type, parameters can have the names of either protocol, and some turn the order into another kind. The result uses
//! the names of the catalogue, and says each thing once.

mod near;
mod objects;
mod other_kinds;
#[cfg(test)]
mod tests;

use crate::classic::method;
use crate::classic::{Form, Part};
use crate::json::task::{self, OrderParams, read_as};
use crate::kinds::CONTROL;
use quittance_hosts::roots;
use quittance_lifecycle::terms::{KIND_BYTES_MAX, PARAM_NAME_BYTES_MAX};
use quittance_lifecycle::{BadRequest, Kind, Role, Value as Param};
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// How often one order can turn into another kind.
const TURNS_MAX: usize = 3;

type MeantParams = BTreeMap<String, Param>;

/// The order in the names of the catalogue, or `None` if the request already uses them. `kinds` knows all kinds,
/// including those that the operator has added.
pub fn meaning(
    kind: &str,
    params: &MeantParams,
    kinds: &dyn Fn(&str) -> Option<Kind>,
) -> Result<Option<OrderParams>, BadRequest> {
    // Before any name is compared with known ones: the cost of that grows with its length.
    check_lengths(kind, params)?;
    let described = |name: &str| kinds(name).filter(|kind| kind.hosts.is_described);
    let mut meant = OrderParams { kind: kind.to_owned(), params: params.clone() };
    // An operator may describe a type that is several kinds, and it is still the one that its parameters say.
    let is_added = crate::kinds::kind(kind).is_none() && is_of_a_protocol(kind.trim());
    if described(kind).is_none() || is_added {
        let other = of_another_protocol(kind, params)?;
        if described(kind).is_none() || other.kind != kind {
            meant = other;
        }
    }
    for _ in 0..TURNS_MAX {
        let Some(known) = described(&meant.kind) else {
            rename(&mut meant, None)?;
            other_kinds::check(&crate::kinds::open_kind(meant.kind.as_str()), &meant.params)?;
            break;
        };
        rename(&mut meant, Some(&known))?;
        let Some(other) = turned_into(&known, &mut meant.params)? else { break };
        meant.kind = other.to_owned();
    }
    near::check_names(described(&meant.kind).as_ref(), &meant.params)?;
    near::check_values(&meant.kind, &meant.params)?;
    Ok((meant.kind != kind || meant.params != *params).then_some(meant))
}

/// Whether the names are short enough for an order.
fn check_lengths(kind: &str, params: &MeantParams) -> Result<(), BadRequest> {
    if kind.len() > KIND_BYTES_MAX {
        return Err(BadRequest::BadKindName { name: kind.to_owned() });
    }
    match params.keys().find(|name| name.len() > PARAM_NAME_BYTES_MAX) {
        Some(name) => Err(BadRequest::BadParamName { name: name.clone() }),
        None => Ok(()),
    }
}

fn is_of_a_protocol(name: &str) -> bool {
    method::methods().any(|known| known == name) || task::stems(name)
}

/// Translates a method or a task type into its kind. Any other name is an open kind, unless it is a misspelt known
/// name.
fn of_another_protocol(kind: &str, params: &MeantParams) -> Result<OrderParams, BadRequest> {
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
            Ok(wanted) => Ok(OrderParams { kind: wanted.kind, params: keep_control(wanted.params, params) }),
            Err(method::BadMethod::ContradictoryNames { one, other }) => {
                Err(BadRequest::ContradictoryNames { one, other })
            }
            Err(method::BadMethod::NotBase64 { field }) => Err(BadRequest::NotAFile { field }),
            Err(method::BadMethod::NoMethod) => Err(BadRequest::BadKindName { name: name.to_owned() }),
        };
    }
    if task::stems(name) {
        let field = |(name, value): (&String, &Param)| Some((name.clone(), task::written(value)?));
        let mut fields: Map<String, Value> = params.iter().filter_map(field).collect();
        fields.insert("type".to_owned(), Value::from(name));
        return match task::understand(&fields) {
            Ok(wanted) if wanted.kind == name && near::is_class_of_another(&wanted.params) => {
                Err(BadRequest::OtherKind { kind: name.to_owned(), name: "class".to_owned() })
            }
            Ok(wanted) => Ok(OrderParams { params: keep_control(wanted.params, params), ..wanted }),
            Err(task::BadTask::ContradictoryNames { one, other }) => {
                Err(BadRequest::ContradictoryNames { one, other })
            }
            Err(task::BadTask::NotBase64 { field }) => Err(BadRequest::NotAFile { field }),
            Err(task::BadTask::NoType) => Err(BadRequest::BadKindName { name: name.to_owned() }),
        };
    }
    match near::kind(name) {
        Some(meant) => Err(BadRequest::MisspeltKind { name: name.to_owned(), meant }),
        None => Ok(OrderParams { kind: kind.to_owned(), params: params.clone() }),
    }
}

/// Keeps the parameters that control the reply.
fn keep_control(mut meant: MeantParams, params: &MeantParams) -> MeantParams {
    let control = params.iter().filter(|(name, _)| CONTROL.contains(&name.as_str()));
    control.for_each(|(name, value)| _ = meant.entry(name.clone()).or_insert_with(|| value.clone()));
    meant
}

/// Renames every parameter to its name in the catalogue.
fn rename(meant: &mut OrderParams, kind: Option<&Kind>) -> Result<(), BadRequest> {
    rename_proxy(&mut meant.params)?;
    complete_proxy(&mut meant.params, kind);
    let name = kind.map_or("", |kind| &kind.name);
    objects::open(name, &mut meant.params);
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
            (Some(stated), Some(value)) if *stated != value => {
                return Err(BadRequest::ContradictoryNames { one: ours, other: stranger });
            }
            (None, Some(value)) => _ = meant.params.insert(ours, value),
            (Some(_), Some(_)) | (_, None) => {}
        }
    }
    trim_addresses(&mut meant.params, kind);
    Ok(())
}

/// Our name and value for a parameter, if this kind has it under another name.
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
        named.chain(kind.hosts.roles.iter().map(|(name, _)| *name))
    });
    let ours = fields.chain(["pageurl"]).find(|ours| ours.eq_ignore_ascii_case(stranger));
    Ok(ours.map(|ours| (ours.to_owned(), Some(value.clone()))))
}

/// Joins the five proxy fields of the JSON protocol into the one of the classic protocol.
fn rename_proxy(params: &mut MeantParams) -> Result<(), BadRequest> {
    let is_piece = |name: &str| task::is_proxy_field(name) && !matches!(name, "proxy" | "proxytype");
    let pieces: Vec<String> = params.keys().filter(|name| is_piece(name)).cloned().collect();
    if pieces.is_empty() {
        respell_proxy(params);
        return Ok(());
    }
    let field = |(name, value): (&String, &Param)| Some((name.clone(), task::written(value)?));
    let fields: Map<String, Value> =
        params.iter().filter(|(name, _)| is_piece(name)).filter_map(field).collect();
    let mut read = MeantParams::new();
    task::read_proxy(&fields, &mut read);
    pieces.iter().for_each(|piece| _ = params.remove(piece));
    for (name, value) in read {
        match params.get(&name) {
            Some(stated) if *stated != value => {
                return Err(BadRequest::ContradictoryNames { one: name, other: pieces[0].clone() });
            }
            _ => _ = params.insert(name, value),
        }
    }
    respell_proxy(params);
    Ok(())
}

/// Sets the type of a proxy without one to HTTP, which providers without a type field assume.
fn complete_proxy(params: &mut MeantParams, kind: Option<&Kind>) {
    let mut fields = kind.into_iter().flat_map(|kind| kind.fields);
    let is_needed = fields.any(|field| field.name == "proxytype" && field.required);
    let says = |name: &str| params.get(name).is_some_and(|value| !value.as_bytes().trim_ascii().is_empty());
    if is_needed && says("proxy") && !says("proxytype") {
        params.insert("proxytype".to_owned(), Param::from("HTTP"));
    }
}

/// Writes a proxy that is one text in one spelling.
fn respell_proxy(params: &mut MeantParams) {
    if let Some(Param::Text(text)) = params.get("proxy").filter(|proxy| !proxy.as_bytes().is_empty()) {
        let (proxy, kind) = task::one_proxy(text);
        params.insert("proxy".to_owned(), Param::Text(proxy));
        if let Some(kind) = kind {
            params.entry("proxytype".to_owned()).or_insert(Param::Text(kind));
        }
    }
    if let Some(Param::Text(kind)) = params.get_mut("proxytype") {
        *kind = kind.trim().to_ascii_uppercase();
    }
}

/// Removes white space around page and vendor addresses: a line break there is a mistake of the client. The check and
/// the provider then see the same text.
fn trim_addresses(params: &mut MeantParams, kind: Option<&Kind>) {
    for (name, value) in params.iter_mut() {
        let role = kind.map(|kind| kind.role(name));
        let is_address = matches!(role, Some(Role::Page | Role::Vendor)) || name == "pageurl";
        if let Param::Text(text) = value
            && is_address
        {
            let trimmed = text.trim_matches(|c: char| c.is_whitespace() || c.is_control());
            if trimmed.len() < text.len() {
                *text = trimmed.to_owned();
            }
        }
    }
}

/// The versions that belong to a kind itself. Another version turns the order into another kind.
const OWN_VERSIONS: [(&str, &str); 2] = [("recaptcha_v2", "v2"), ("geetest", "3")];

/// The other kind that a parameter turns this order into, if there is one. The parameter is rewritten for that kind.
fn turned_into(kind: &Kind, params: &mut MeantParams) -> Result<Option<&'static str>, BadRequest> {
    let other_kind =
        |name: &str| BadRequest::OtherKind { kind: kind.name.to_string(), name: name.to_owned() };
    other_kinds::check_question(kind, params)?;
    // A request that contradicts its kind would be read as another kind by one provider and not by the next.
    for (mark, stated) in method::marks(&kind.name) {
        let Some(value) = params.get(mark) else { continue };
        // A field of its own that means nothing where it is left out has other values as well.
        if kind.fields.iter().any(|field| field.name == mark && field.default == Some("")) {
            continue;
        }
        if is_same(value, stated) {
            params.insert(mark.to_owned(), Param::from(stated));
        } else if !is_default(kind, mark, value) {
            return Err(other_kind(mark));
        }
    }
    for (field, _) in task::sorts(&kind.name) {
        let Some(value) = params.get(field).filter(|value| !value.as_bytes().is_empty()) else { continue };
        let mut stated =
            task::sorts(&kind.name).filter(|(other, _)| *other == field).map(|(_, stated)| stated);
        let stated = stated.find(|stated| is_same(value, stated)).ok_or_else(|| other_kind(field))?;
        params.insert(field.to_owned(), Param::from(stated));
    }
    let own: Vec<&str> = method::marks(&kind.name).map(|(mark, _)| mark).collect();
    let mut found_kind = None;
    for (tell, stated, other) in method::tells(&kind.name).chain(task::tells(&kind.name)) {
        let is_own_field = kind.fields.iter().any(|field| field.name == tell) || own.contains(&tell);
        let Some(name) = params.keys().find(|name| is_same_name(name, tell)).filter(|_| !is_own_field) else {
            continue;
        };
        let tells = match (params.get(name), stated) {
            (Some(value), Some(stated)) => is_same(value, stated),
            (Some(value), None) => !value.as_bytes().is_empty(),
            (None, _) => false,
        };
        if !tells {
            continue;
        }
        let name = name.clone();
        if found_kind.is_some_and(|found_kind| found_kind != other) || name != tell {
            return Err(other_kind(&name));
        }
        // A kind that has marks of its own cannot be another one as well.
        if !own.is_empty() {
            return Err(other_kind(&name));
        }
        if let Some(stated) = stated {
            params.insert(name, Param::from(stated));
        }
        found_kind = Some(other);
    }
    if found_kind.is_none() {
        check_version(kind, params)?;
        other_kinds::check(kind, params)?;
    }
    Ok(found_kind)
}

/// Checks the version of an order. The kind's own version is allowed and need not be set.
fn check_version(kind: &Kind, params: &mut MeantParams) -> Result<(), BadRequest> {
    let Some((_, version)) = OWN_VERSIONS.iter().find(|(name, _)| *name == kind.name) else { return Ok(()) };
    let name = "version";
    match params.get(name) {
        Some(value) if is_same(value, version) || value.as_bytes().is_empty() => {
            params.remove(name);
            Ok(())
        }
        Some(_) => {
            let tells = method::tells(&kind.name).filter(|(tell, ..)| *tell == name);
            let known = tells
                .filter_map(|(_, stated, _)| stated)
                .fold((*version).to_owned(), |known, stated| format!("{known} or {stated}"));
            Err(BadRequest::NoSuchVersion { name: name.to_owned(), known })
        }
        None => Ok(()),
    }
}

fn is_same_name(name: &str, tell: &str) -> bool {
    name == tell || near::squeezed(name) == near::squeezed(tell) || roots(name).contains(&tell.to_lowercase())
}

/// Whether the most tolerant provider would read the value as `stated`: a switch that is on in any form, a version by
/// its first number, or a word inside other characters.
fn is_same(value: &Param, stated: &str) -> bool {
    let text = String::from_utf8_lossy(value.as_bytes());
    let squeezed = near::squeezed(&text);
    match (stated, number(stated)) {
        ("1", _) => !matches!(squeezed.trim_start_matches('0'), "" | "false" | "no" | "off" | "null"),
        (_, Some(version)) => number(&text) == Some(version),
        (stated, None) => squeezed == near::squeezed(stated),
    }
}

/// The first number in a text: `4`, `v4`, `04`, `+4`, `4.00`, `["4"]`, `0x4`.
fn number(text: &str) -> Option<u64> {
    let digits = &text[text.find(|c: char| c.is_ascii_digit())?..];
    let (digits, radix) = match digits.strip_prefix("0x").or_else(|| digits.strip_prefix("0X")) {
        Some(digits) => (digits, 16),
        None => (digits, 10),
    };
    let end = digits.find(|c: char| !c.is_digit(radix)).unwrap_or(digits.len());
    u64::from_str_radix(&digits[..end], radix).ok()
}

fn is_default(kind: &Kind, name: &str, value: &Param) -> bool {
    let field = kind.fields.iter().find(|field| field.name == name);
    field.is_some_and(|field| field.default.is_some_and(|default| default.as_bytes() == value.as_bytes()))
}
