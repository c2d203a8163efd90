//! Which hosts a text names, for the most forgiving of its readers. Providers trim, decode and repair what they are given, each
//! in its own way; an address that one reader does not see and another one does is how an order for one site becomes a task
//! for another. So everything is collected that any of them might see, and what is collected must be allowed.
//!
//! Two questions can be asked of a text: [`addresses`], where it is prose (a hint, a browser's name), finds what is written as an
//! address; [`anything`], where it is a key or nothing is known about it, finds bare names of hosts as well, also below
//! base64.
#![forbid(unsafe_code)]

mod decode;
mod scan;
#[cfg(test)]
mod tests;

use decode::Texts;
use std::collections::BTreeSet;

/// Why a text cannot be vouched for: it is wrapped in more layers of encoding than are looked through.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooDeep;

/// The hosts, each as [`canonical`] writes it.
pub type Hosts = BTreeSet<String>;

/// A host as all of its spellings are compared: in ASCII (`xn--` where it was not), small letters, without a dot at its end.
/// What is no name at all is kept as it is, in small letters, so that no pattern covers it by accident.
#[must_use]
pub fn canonical(host: &str) -> String {
    let host = host.trim_end_matches(['.', '\u{3002}', '\u{ff0e}', '\u{ff61}']);
    if host.is_ascii() && !host.contains("xn--") && !host.contains("XN--") {
        return host.to_ascii_lowercase();
    }
    idna::domain_to_ascii(host)
        .map_or_else(|_| host.to_lowercase(), |host| host.trim_end_matches('.').to_owned())
}

/// Every host of what is written as an address, anywhere in the text: with a scheme, or with `//` in front of a name.
pub fn addresses(text: &str) -> Result<Hosts, TooDeep> {
    collect(text, false)
}

/// Every host that the text names in any form: as an address, as a bare name, in JSON, in base64.
pub fn anything(text: &str) -> Result<Hosts, TooDeep> {
    collect(text, true)
}

/// The hosts of a value that is an address, or a host with or without a path: `https://a.b/c`, `//a.b/c`, `a.b/c`, `a.b`.
pub fn address(text: &str) -> Result<Hosts, TooDeep> {
    let text = text.trim();
    let is_odd = |c: char| {
        c.is_whitespace()
            || c.is_control()
            || matches!(c, '{' | '}' | '[' | ']' | '"' | '\'' | '<' | '>' | '\\')
    };
    let begins =
        |scheme: &str| text.get(..scheme.len()).is_some_and(|start| start.eq_ignore_ascii_case(scheme));
    if text.contains(is_odd) {
        return anything(text);
    }
    if ["http://", "https://", "//"].into_iter().any(begins) {
        return addresses(text);
    }
    let mut hosts = addresses(&format!("any://{text}"))?;
    if text.contains(':') || text.contains('%') {
        hosts.extend(anything(text)?);
    }
    Ok(hosts)
}

fn collect(text: &str, is_anything: bool) -> Result<Hosts, TooDeep> {
    let mut hosts = Hosts::new();
    if !decode::may_name_a_host(text, is_anything) {
        return Ok(hosts);
    }
    let mut texts = Texts::new(text);
    while let Some(text) = texts.next()? {
        scan::addresses(&text, &mut hosts);
        if is_anything {
            scan::names(&text, &mut hosts);
            texts.unwrap_base64(&text);
        }
        texts.decode(&text);
    }
    Ok(hosts)
}
