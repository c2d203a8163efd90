//! The one check of the hosts that an order names. It runs when an order is placed, when a dead letter is replayed,
//! and last on the exact task that is about to be sent.

mod field_names;
#[cfg(test)]
mod tests;

use crate::targets::{HostPattern, NotAllowed, Targets};
use quittance_hosts::{
    Hosts, Unclear, addresses, anything, file, html, is_picture, is_proxy, is_text, opaque, page, picture,
    token, vendor_address, without_pictures, word,
};
use quittance_lifecycle::terms::page_host;
use quittance_lifecycle::{Field, Kind, Role, Shape, Value};
use quittance_ports::TaskField;
use std::collections::BTreeMap;

/// When the check runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    Place,
    Replay,
    Send,
}

/// What is checked, and the rules that it is checked against.
#[derive(Clone, Copy, Debug)]
pub struct Inspection<'a> {
    pub step: Step,
    pub kind: &'a Kind,
    pub fields: &'a [TaskField<'a>],
    pub operator: &'a Targets,
    /// What the order's tenant may automate; `None` if the tenant has no limits of its own.
    pub tenant: Option<&'a Targets>,
}

/// An order's parameters as task fields of the same names.
pub(crate) fn fields_of(params: &BTreeMap<String, Value>) -> Vec<TaskField<'_>> {
    params
        .iter()
        .map(|(name, value)| TaskField { name, param: Some(name), value: value.as_bytes() })
        .collect()
}

/// Whether everything that the fields name may be automated.
pub fn inspect(inspection: &Inspection<'_>) -> Result<(), NotAllowed> {
    let Inspection { kind, fields, operator, .. } = *inspection;
    if !kind.hosts.is_described && operator.undescribed == Some(false) {
        return Err(NotAllowed::Undescribed { kind: kind.name.to_string() });
    }
    field_names::check(inspection)?;
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

/// Checks the hosts that a field names. Returns how many there are if all are allowed.
fn check_field(inspection: &Inspection<'_>, field: &TaskField<'_>) -> Result<usize, NotAllowed> {
    let role = role_of(inspection, field);
    let Ok(text) = std::str::from_utf8(field.value) else { return check_bytes(inspection, role, field) };
    // That is how clients say what they do not set.
    if text.trim().is_empty() && role != Role::Page {
        return Ok(0);
    }
    let name = || field.name.to_owned();
    let hosts = match role {
        // The check of the parameters refuses it with this reason; nothing of the kind leaves.
        Role::Page if inspection.step == Step::Place && page_host(text).is_err() => return Ok(1),
        Role::Page => page(text),
        Role::Vendor => vendor_address(text).map(|hosts| without_shared(inspection.kind, text, hosts)),
        Role::Proxy if is_proxy(text) => return Ok(0),
        Role::Proxy => return Err(NotAllowed::NoProxy { field: name() }),
        Role::Choice(words) if words.iter().any(|word| word.eq_ignore_ascii_case(text)) => return Ok(0),
        Role::Choice(words) => return Err(NotAllowed::NoChoice { field: name(), words }),
        Role::File => file(field.value),
        Role::Plain => addresses(text),
        Role::Script => addresses(text).map(without_namespaces),
        Role::Key => opaque(text),
        Role::Word => word(text),
        Role::Token => token(text),
        Role::Html => html(text).map(without_namespaces),
        // A known field has a known name; any other name is as much the caller's as what it says.
        Role::Unknown => unknown(inspection, text).and_then(|hosts| Ok(&hosts | &anything(field.name)?)),
    };
    let hosts = hosts.map_err(|why| unclear(why, role, field))?;
    check_hosts(inspection, role, field.name, &hosts)?;
    let is_named = |host: &&String| role == Role::Page || !may_be_vendors(inspection, role, host);
    Ok(if matches!(role, Role::Page | Role::Unknown) { hosts.iter().filter(is_named).count() } else { 0 })
}

/// The hosts in a text that nothing is known about. In an undescribed kind it may hold pictures in base64.
fn unknown(inspection: &Inspection<'_>, text: &str) -> Result<Hosts, Unclear> {
    if inspection.kind.hosts.is_described {
        return anything(text);
    }
    let (rest, pictures) = without_pictures(text);
    pictures.iter().try_fold(anything(&rest)?, |hosts, bytes| Ok(&hosts | &picture(bytes)?))
}

/// The role of the field in an order of this kind. A page of HTML counts as a part of the page beside it. Without a
/// page beside it, its role is unknown.
fn role_of(inspection: &Inspection<'_>, field: &TaskField<'_>) -> Role {
    let role = |field: &TaskField<'_>| field.param.map_or(Role::Unknown, |param| inspection.kind.role(param));
    let is_page = |field: &TaskField<'_>| role(field) == Role::Page && !field.value.trim_ascii().is_empty();
    match role(field) {
        Role::Html if !inspection.fields.iter().any(is_page) => Role::Unknown,
        role => role,
    }
}

fn unclear(why: Unclear, role: Role, field: &TaskField<'_>) -> NotAllowed {
    let field = field.name.to_owned();
    match (why, role) {
        (Unclear::TooDeep, _) => NotAllowed::Unreadable { field },
        (Unclear::Packed, _) => NotAllowed::Packed { field },
        (Unclear::NotAnAddress, Role::Vendor) => NotAllowed::NoVendorAddress { field },
        (Unclear::NotAnAddress, _) => NotAllowed::NoPage { field },
    }
}

/// Checks bytes that are not text: a picture or a sound, in which no provider looks for an address. A described kind
/// lists which of its parameters are files. In an undescribed kind, any parameter may be a file unless a reader could
/// take it for text.
fn check_bytes(inspection: &Inspection<'_>, role: Role, field: &TaskField<'_>) -> Result<usize, NotAllowed> {
    let is_picture = is_picture(field.value);
    let may_be_text = is_text(field.value) && !is_picture;
    let may_be_file = !inspection.kind.hosts.is_described && role == Role::Unknown && !may_be_text;
    if role != Role::File && !may_be_file {
        return Err(NotAllowed::NotText { field: field.name.to_owned() });
    }
    let mut hosts = file(field.value).map_err(|why| unclear(why, role, field))?;
    if role != Role::File {
        let record = match is_picture {
            true => picture(field.value),
            false => addresses(&String::from_utf8_lossy(field.value)),
        };
        hosts.extend(record.map_err(|why| unclear(why, role, field))?);
    }
    check_hosts(inspection, role, field.name, &hosts).map(|()| 0)
}

/// The hosts without the one that scripts use only to name the namespaces of documents.
fn without_namespaces(mut hosts: Hosts) -> Hosts {
    hosts.remove("www.w3.org");
    hosts
}

/// The hosts without a host that many vendors share, if the text names a vendor's script there: then the path names
/// the vendor.
fn without_shared(kind: &Kind, text: &str, mut hosts: Hosts) -> Hosts {
    let text = text.trim();
    // Signs by which a path leads elsewhere, or by which such hosts join several scripts.
    let is_odd = |c: char| !(c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | '/' | '@' | ':'));
    let shared = kind.hosts.scripts.iter().find(|start| text.starts_with(*start));
    if let Some(start) = shared
        && !text.contains(is_odd)
        && !text.contains("..")
    {
        let host = start.trim_start_matches("https://").split('/').next().unwrap_or_default();
        hosts.remove(host);
    }
    hosts
}

fn check_hosts(
    inspection: &Inspection<'_>,
    role: Role,
    field: &str,
    hosts: &Hosts,
) -> Result<(), NotAllowed> {
    let Inspection { kind, operator, tenant, .. } = *inspection;
    for host in hosts {
        if may_be_vendors(inspection, role, host) {
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

/// Whether the host belongs to the vendor, in a field that may name vendors. The fields of an undescribed kind are
/// not known, so the operator's list of vendors applies to all of them except the page.
fn may_be_vendors(inspection: &Inspection<'_>, role: Role, host: &str) -> bool {
    let Inspection { kind, operator, .. } = *inspection;
    let covers = |pattern: &HostPattern| pattern.covers(host);
    let added = || operator.vendors.get(&*kind.name).into_iter().flatten().any(covers);
    match role {
        Role::Page | Role::File => false,
        Role::Unknown => !kind.hosts.is_described && added(),
        _ => {
            let listed = kind.hosts.vendors.iter().filter_map(|pattern| HostPattern::parse(pattern).ok());
            listed.into_iter().any(|pattern| covers(&pattern)) || added()
        }
    }
}
