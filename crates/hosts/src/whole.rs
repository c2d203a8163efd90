//! Parses a text that is an address or a proxy and nothing else. Parsing is strict: a text that two readers would cut
//! differently is refused.

use crate::decode::is_invisible;
use crate::{Hosts, Unclear, addresses, canonical, value};
use url::{Host, Url};

const SCHEMES: [&str; 2] = ["http://", "https://"];
/// The schemes that may stand before a proxy.
const PROXY_SCHEMES: [&str; 6] = ["http", "https", "socks4", "socks4a", "socks5", "socks5h"];

fn without<'a>(text: &'a str, prefix: &str) -> Option<&'a str> {
    let start = text.get(..prefix.len())?;
    start.eq_ignore_ascii_case(prefix).then(|| &text[prefix.len()..])
}

/// The hosts of a page address: its own, and those of all addresses in it.
pub fn page(text: &str) -> Result<Hosts, Unclear> {
    let rest = SCHEMES.iter().find_map(|scheme| without(text, scheme)).ok_or(Unclear::NotAnAddress)?;
    let host = host_of(rest).ok_or(Unclear::NotAnAddress)?;
    let mut hosts = addresses(text)?;
    hosts.insert(host);
    Ok(hosts)
}

/// The hosts of an address that may be only a host: `https://a.b/c`, `a.b/c`, `a.b`.
pub fn address(text: &str) -> Result<Hosts, Unclear> {
    let text = text.trim();
    if SCHEMES.iter().any(|scheme| without(text, scheme).is_some()) {
        return page(text);
    }
    page(&format!("https://{text}"))
}

/// The hosts of a vendor address: those of [`address`], and the hosts that its query and fragment name, also without
/// a scheme and in base64. There a vendor's address says which site the captcha is for.
pub fn vendor_address(text: &str) -> Result<Hosts, Unclear> {
    let mut hosts = address(text)?;
    for word in words_behind_path(text) {
        hosts.extend(value(word)?);
    }
    Ok(hosts)
}

/// The names and values in the query and fragment of an address.
pub(crate) fn words_behind_path(text: &str) -> impl Iterator<Item = &str> {
    let behind = text.find(['?', '#']).map_or("", |at| &text[at + 1..]);
    let pairs = behind.split(['&', ';', '|', ',', '#']);
    pairs.flat_map(|pair| pair.splitn(2, '=')).filter(|word| !word.is_empty())
}

/// Whether the text is exactly one address.
pub(crate) fn is_one_address(text: &str) -> bool {
    let rest = SCHEMES.iter().find_map(|scheme| without(text, scheme));
    !text.contains([',', ';', '|', '"', '\'', '<', '>', '{', '}'])
        && rest.is_some_and(|rest| host_of(rest).is_some())
}

/// The host of an address without its scheme, if all readers see the same one.
fn host_of(rest: &str) -> Option<String> {
    let is_odd = |c: char| c.is_whitespace() || c.is_control() || c == '\\' || is_invisible(c);
    let authority = rest.split(['/', '?', '#']).next()?;
    let is_known =
        |c: char| c.is_alphanumeric() || matches!(c, '-' | '.' | '_' | '~' | '%' | ':' | '@' | '[' | ']');
    if rest.contains(is_odd) || !authority.chars().all(is_known) || authority.matches('@').count() > 1 {
        return None;
    }
    // For some readers only a slash ends the authority: they take what stands in front of this sign for a login.
    let before_slash = rest.split('/').next()?;
    if before_slash[authority.len()..].contains('@') {
        return None;
    }
    let place = authority.rsplit('@').next()?;
    let (host, _) = place_of(place)?;
    let parsed = Url::parse(&format!("https://{rest}")).ok()?;
    (canonical(parsed.host_str()?) == host).then_some(host)
}

/// A host and its port, if it has one.
fn place_of(place: &str) -> Option<(String, Option<u16>)> {
    let (host, port) = match place.find(']') {
        Some(end) => place.split_at(end + 1),
        None => place.split_at(place.find(':').unwrap_or(place.len())),
    };
    let is_name = |c: char| c.is_alphanumeric() || matches!(c, '-' | '.' | '_');
    if !host.starts_with('[') && (!host.chars().all(is_name) || !host.contains(char::is_alphanumeric)) {
        return None;
    }
    Host::parse(host).ok()?;
    let port = match port.strip_prefix(':') {
        None if port.is_empty() => None,
        Some(port) if port.bytes().all(|digit| digit.is_ascii_digit()) => Some(port.parse().ok()?),
        _ => return None,
    };
    Some((canonical(host), port))
}

/// Whether a text is `host:port` or `login:password@host:port`, with or without a scheme. The password may hold any
/// characters.
#[must_use]
pub fn is_proxy(text: &str) -> bool {
    let scheme = text
        .split_once("://")
        .filter(|(scheme, _)| PROXY_SCHEMES.iter().any(|known| known.eq_ignore_ascii_case(scheme)));
    let rest = scheme.map_or(text, |(_, rest)| rest.strip_suffix('/').unwrap_or(rest));
    let (login, place) = rest.rsplit_once('@').map_or((None, rest), |(login, place)| (Some(login), place));
    // `https:a.b/@proxy:80` is an address for some readers, and a password can hold a whole one.
    let is_address = |login: &str| {
        login.contains("://")
            || login.split_once(':').is_some_and(|(scheme, _)| {
                PROXY_SCHEMES.iter().any(|known| known.eq_ignore_ascii_case(scheme.trim()))
            })
    };
    let has_port = place_of(place).is_some_and(|(_, port)| port.is_some_and(|port| port > 0));
    has_port && !text.contains(char::is_control) && !login.is_some_and(is_address)
}

/// Whether the head of a `data:` URL is only a media type: `image/png`, `image/svg+xml;charset=utf-8`.
#[must_use]
pub fn is_media_type(head: &str) -> bool {
    let is_word = |text: &str| {
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'+');
        !text.is_empty() && text.bytes().all(is_plain)
    };
    let mut parts = head.split(';');
    let media = parts.next().unwrap_or_default();
    let is_media = media.split_once('/').is_some_and(|(sort, name)| is_word(sort) && is_word(name));
    is_media
        && parts.all(|part| part.split_once('=').is_some_and(|(name, value)| is_word(name) && is_word(value)))
}

/// The document without the values of `xmlns` and `xmlns:name`.
pub(crate) fn without_namespaces(text: &str) -> String {
    let mut output = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find("xmlns") {
        let (before, after) = rest.split_at(at + "xmlns".len());
        output.push_str(before);
        rest = after;
        let name = after
            .trim_start_matches(|c: char| c.is_ascii_alphanumeric() || matches!(c, ':' | '-' | '_' | '.'));
        let Some(value) = name.trim_start().strip_prefix('=').map(str::trim_start) else { continue };
        let Some(quote) = value.chars().next().filter(|c| matches!(c, '"' | '\'')) else { continue };
        // A name has none of these; what has may be more than one attribute.
        let is_odd = |c: char| c.is_whitespace() || matches!(c, '"' | '\'' | '=' | '<' | '>');
        if let Some(end) = value[1..].find(is_odd).filter(|end| value[1 + end..].starts_with(quote)) {
            rest = &value[end + 2..];
        }
    }
    output.push_str(rest);
    output
}
