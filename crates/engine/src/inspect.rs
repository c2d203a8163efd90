//! The one check of what an order names. It is asked when an order is placed, when a dead letter is replayed, and, with the very
//! task that leaves, at the last step before the wire.

use crate::targets::{HostPattern, NotAllowed, Targets};
use quittance_hosts::{Hosts, TooDeep, address, addresses, anything};
use quittance_lifecycle::terms::page_host;
use quittance_lifecycle::{Field, Kind, Role, Shape, Value};
use quittance_ports::TaskField;
use std::collections::BTreeMap;

/// Every drawing in SVG names it, and nothing is fetched from there.
const NAMESPACES: &str = "www.w3.org";

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
    let too_deep = |TooDeep| NotAllowed::Unreadable { field: field.name.to_owned() };
    let Ok(text) = std::str::from_utf8(field.value) else {
        // A picture or a sound: nothing that a provider could take for an address.
        return Ok(0);
    };
    let hosts = match role {
        Role::Page => match page_host(text) {
            Ok(_) => addresses(text).map_err(too_deep)?,
            // Whoever places it is told so by the check of the parameters; nothing of the kind leaves.
            Err(_) if inspection.step == Step::Place => return Ok(1),
            Err(_) => return Err(NotAllowed::NoPage { field: field.name.to_owned() }),
        },
        Role::Vendor => address(text).map_err(too_deep)?,
        Role::Proxy => return check_proxy(field.name, text),
        Role::File if looks_like_base64(text) => return Ok(0),
        Role::File => {
            addresses(text).map_err(too_deep)?.into_iter().filter(|host| host != NAMESPACES).collect()
        }
        Role::Plain => addresses(text).map_err(too_deep)?,
        Role::Key => anything(text).map_err(too_deep)?,
        Role::Unknown => {
            let mut hosts = anything(text).map_err(too_deep)?;
            // A known field has a known name; any other name is as much the caller's as what it says.
            if field.param.is_none_or(|_| role == Role::Unknown) {
                hosts.extend(anything(field.name).map_err(too_deep)?);
            }
            hosts
        }
    };
    check_hosts(inspection, role, field.name, &hosts)?;
    Ok(if role == Role::Page || role == Role::Unknown { hosts.len() } else { 0 })
}

fn looks_like_base64(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'='))
}

fn check_hosts(
    inspection: &Inspection<'_>,
    role: Role,
    field: &str,
    hosts: &Hosts,
) -> Result<(), NotAllowed> {
    let Inspection { kind, operator, tenant, .. } = *inspection;
    for host in hosts {
        if role == Role::Vendor && is_vendors(kind, operator, host) {
            continue;
        }
        let is_allowed = operator.allows(host) && tenant.is_none_or(|tenant| tenant.allows(host));
        if is_allowed {
            continue;
        }
        let (field, host) = (field.to_owned(), host.clone());
        return Err(match role {
            Role::Vendor => NotAllowed::Vendor { host, field, kind: kind.name.to_string() },
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

/// A proxy is a host that is not visited but passed through. So that nothing else can stand in its place, it must be written
/// as one: `login:password@host:port`, with or without the login and a scheme.
fn check_proxy(field: &str, text: &str) -> Result<usize, NotAllowed> {
    let text = text.trim();
    let rest =
        text.split_once("://").map_or(text, |(scheme, rest)| match scheme.to_ascii_lowercase().as_str() {
            "http" | "https" | "socks4" | "socks5" | "socks5h" => rest.strip_suffix('/').unwrap_or(rest),
            _ => text,
        });
    let place = rest.rsplit_once('@').map_or(rest, |(_, place)| place);
    let is_odd = |c: char| c.is_control() || c.is_whitespace();
    let is_bad = text.contains(is_odd)
        || rest.contains("//")
        || rest.contains('\\')
        || place.contains(['/', '?', '#']);
    if is_bad { Err(NotAllowed::NoProxy { field: field.to_owned() }) } else { Ok(0) }
}
