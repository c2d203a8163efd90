//! The one check of what an order names. It is asked when an order is placed, when a dead letter is replayed, and, with the very
//! task that leaves, at the last step before the wire.

mod names;
#[cfg(test)]
mod tests;

use crate::targets::{HostPattern, NotAllowed, Targets};
use quittance_hosts::{
    Hosts, Unclear, address, addresses, anything, document, html, is_media_type, is_proxy, is_text, opaque,
    page, token, word,
};
use quittance_lifecycle::terms::page_host;
use quittance_lifecycle::{Field, Kind, Role, Shape, Value};
use quittance_ports::TaskField;
use std::collections::BTreeMap;

/// Drawings and pages name document types, namespaces, licences and the program that made them by addresses at these hosts, and
/// nothing is fetched from there.
const DOCUMENT_TYPES: [&str; 7] = [
    "creativecommons.org",
    "ns.adobe.com",
    "purl.org",
    "sodipodi.sourceforge.net",
    "web.resource.org",
    "www.inkscape.org",
    "www.w3.org",
];

/// When the check is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    Place,
    Replay,
    Send,
}

/// What is checked, and against what.
#[derive(Clone, Copy, Debug)]
pub struct Inspection<'a> {
    pub step: Step,
    pub kind: &'a Kind,
    pub fields: &'a [TaskField<'a>],
    pub operator: &'a Targets,
    /// What the order's tenant may automate, where that is less.
    pub tenant: Option<&'a Targets>,
}

/// An order's parameters as fields that are called what they are.
pub(crate) fn fields_of(params: &BTreeMap<String, Value>) -> Vec<TaskField<'_>> {
    params
        .iter()
        .map(|(name, value)| TaskField { name, param: Some(name), value: value.as_bytes() })
        .collect()
}

/// Whether all that is named may be automated.
pub fn inspect(inspection: &Inspection<'_>) -> Result<(), NotAllowed> {
    let Inspection { kind, fields, operator, .. } = *inspection;
    if !kind.hosts.is_described && operator.undescribed == Some(false) {
        return Err(NotAllowed::Undescribed { kind: kind.name.to_string() });
    }
    names::check(inspection)?;
    let mut named = 0;
    for field in fields {
        named += check_field(inspection, field)?;
    }
    // A kind that needs its page says so itself, and better.
    let is_page = |field: &Field| field.shape == Shape::PageAddress;
    let needs_page = kind.fields.iter().any(|field| is_page(field) && field.required);
    let takes_images = operator.images && inspection.tenant.is_none_or(|tenant| tenant.images);
    if named > 0 || needs_page || takes_images {
        return Ok(());
    }
    Err(NotAllowed::Images { kind: kind.name.to_string() })
}

/// How many hosts the field names, all of them allowed.
fn check_field(inspection: &Inspection<'_>, field: &TaskField<'_>) -> Result<usize, NotAllowed> {
    let kind = inspection.kind;
    let role = field.param.map_or(Role::Unknown, |param| kind.role(param));
    let Ok(text) = std::str::from_utf8(field.value) else { return check_bytes(inspection, role, field) };
    // That is how clients say what they do not set.
    if text.trim().is_empty() && role != Role::Page {
        return Ok(0);
    }
    let name = || field.name.to_owned();
    let hosts = match role {
        // Whoever places it is told so by the check of the parameters; nothing of the kind leaves.
        Role::Page if inspection.step == Step::Place && page_host(text).is_err() => return Ok(1),
        Role::Page => page(text),
        Role::Vendor => address(text),
        Role::Proxy if is_proxy(text) => return Ok(0),
        Role::Proxy => return Err(NotAllowed::NoProxy { field: name() }),
        Role::Choice(words) if words.iter().any(|word| word.eq_ignore_ascii_case(text)) => return Ok(0),
        Role::Choice(words) => return Err(NotAllowed::NoChoice { field: name(), words }),
        Role::File => in_file(text),
        Role::Plain => addresses(text),
        Role::Key => opaque(text),
        Role::Word => word(text),
        Role::Token => token(text),
        Role::Html => html(text).map(without_types),
        // A known field has a known name; any other name is as much the caller's as what it says.
        Role::Unknown => anything(text).and_then(|hosts| Ok(&hosts | &anything(field.name)?)),
    };
    let hosts = hosts.map_err(|why| match (why, role) {
        (Unclear::TooDeep, _) => NotAllowed::Unreadable { field: name() },
        (Unclear::NotAnAddress, Role::Vendor) => NotAllowed::NoVendorAddress { field: name() },
        (Unclear::NotAnAddress, _) => NotAllowed::NoPage { field: name() },
    })?;
    check_hosts(inspection, role, field.name, &hosts)?;
    Ok(if role == Role::Page || role == Role::Unknown { hosts.len() } else { 0 })
}

/// Bytes that are no text: a picture or a sound, in which no provider looks for an address. A kind says which of its parameters are
/// files; of one that is not described, any may be, unless a reader could take it for text.
fn check_bytes(inspection: &Inspection<'_>, role: Role, field: &TaskField<'_>) -> Result<usize, NotAllowed> {
    let may_be_file = !inspection.kind.hosts.is_described && role == Role::Unknown && !is_text(field.value);
    match role {
        Role::File => Ok(0),
        _ if may_be_file => {
            let unreadable = |_| NotAllowed::Unreadable { field: field.name.to_owned() };
            let hosts = addresses(&String::from_utf8_lossy(field.value)).map_err(unreadable)?;
            check_hosts(inspection, role, field.name, &hosts).map(|()| 0)
        }
        _ => Err(NotAllowed::NotText { field: field.name.to_owned() }),
    }
}

fn without_types(mut hosts: Hosts) -> Hosts {
    hosts.retain(|host| !DOCUMENT_TYPES.contains(&host.as_str()));
    hosts
}

/// Hosts in a file that is text: a drawing, or a file in base64, in which no provider looks for an address.
fn in_file(text: &str) -> Result<Hosts, Unclear> {
    let body = text
        .strip_prefix("data:")
        .and_then(|data| data.split_once(";base64,"))
        .filter(|(head, _)| is_media_type(head))
        .map_or(text, |(_, body)| body);
    let is_base64 =
        |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'=' | b'\r' | b'\n');
    if body.bytes().all(is_base64) {
        return Ok(Hosts::new());
    }
    if text.trim_start_matches(['\u{feff}', ' ', '\t', '\r', '\n']).starts_with('<') {
        return document(text).map(without_types);
    }
    opaque(text)
}

fn check_hosts(
    inspection: &Inspection<'_>,
    role: Role,
    field: &str,
    hosts: &Hosts,
) -> Result<(), NotAllowed> {
    let Inspection { kind, operator, tenant, .. } = *inspection;
    for host in hosts {
        let may_be_vendors = !matches!(role, Role::Page | Role::File | Role::Unknown);
        if may_be_vendors && is_vendors(kind, operator, host) {
            continue;
        }
        let is_allowed = operator.allows(host) && tenant.is_none_or(|tenant| tenant.allows(host));
        if is_allowed {
            continue;
        }
        let (field, host) = (field.to_owned(), host.clone());
        return Err(match role {
            Role::Vendor | Role::Html => NotAllowed::Vendor { host, field, kind: kind.name.to_string() },
            _ => NotAllowed::Host { host, field },
        });
    }
    Ok(())
}

fn is_vendors(kind: &Kind, operator: &Targets, host: &str) -> bool {
    let covers = |pattern: &HostPattern| pattern.covers(host);
    let listed = kind.hosts.vendors.iter().filter_map(|pattern| HostPattern::parse(pattern).ok());
    let added = operator.vendors.get(&*kind.name).into_iter().flatten();
    listed.into_iter().any(|pattern| covers(&pattern)) || added.into_iter().any(covers)
}
