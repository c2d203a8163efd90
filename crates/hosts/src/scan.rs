//! Finding hosts in a text that has been decoded.

use crate::{Hosts, canonical};

/// Ends an authority for every reader; a backslash does for some.
fn ends_authority(c: char) -> bool {
    c.is_whitespace() || matches!(c, '/' | '?' | '#' | '"' | '\'' | '<' | '>' | '`' | '{' | '}' | '|' | '^')
}

const fn is_slash(c: char) -> bool {
    matches!(c, '/' | '\\')
}

fn is_name_char(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '.' | '-' | '_')
}

/// Whether a token is a name of more than one part that could stand in the domain name system, or an address in numbers.
fn looks_like_a_host(token: &str) -> bool {
    let Some((before, last)) = token.rsplit_once('.') else { return false };
    // The longest name at the top of the domain name system has 24 letters.
    let is_top = (2..=24).contains(&last.chars().count()) && last.chars().all(char::is_alphabetic);
    let is_punycode = last.len() > 4 && last.get(..4).is_some_and(|start| start.eq_ignore_ascii_case("xn--"));
    if before.chars().any(char::is_alphanumeric) && (is_top || is_punycode) {
        return true;
    }
    is_in_numbers(token)
}

fn is_in_numbers(token: &str) -> bool {
    let is_octet = |part: &str| part.parse::<u16>().is_ok_and(|number| number <= 255);
    token.split('.').count() == 4 && token.split('.').all(is_octet)
}

fn trimmed(token: &str) -> &str {
    token.trim_matches(['.', '-', '_'])
}

/// Bare names anywhere in the text.
pub(crate) fn names(text: &str, hosts: &mut Hosts) {
    let mut before: [Option<char>; 2] = [None; 2];
    for part in text.split_inclusive(|c| !is_name_char(c)) {
        let token = trimmed(part.trim_end_matches(|c| !is_name_char(c)));
        // `Chrome/126.0.0.0` is a version.
        let is_version =
            is_in_numbers(token) && before[1] == Some('/') && before[0].is_some_and(char::is_alphanumeric);
        if looks_like_a_host(token) && !is_version {
            hosts.insert(canonical(token));
        }
        for c in part.chars() {
            before = [before[1], Some(c)];
        }
    }
}

/// The hosts of addresses anywhere in the text.
pub(crate) fn addresses(text: &str, hosts: &mut Hosts) {
    for (at, _) in text.match_indices(':') {
        let (before, after) = (&text[..at], &text[at + 1..]);
        let scheme_at = before
            .rfind(|c: char| !(c.is_ascii_alphanumeric() || matches!(c, '+' | '-')))
            .map_or(0, |at| at + before[at..].chars().next().map_or(1, char::len_utf8));
        let scheme = &before[scheme_at..];
        let is_web = scheme.len() >= 4
            && (scheme.to_ascii_lowercase().ends_with("http")
                || scheme.to_ascii_lowercase().ends_with("https"));
        let trimmed = after.trim_start_matches(' ');
        let rest = trimmed.trim_start_matches(is_slash);
        let slashes = trimmed.len() - rest.len();
        let rest = rest.trim_start();
        if slashes >= 2 || (is_web && slashes == 1) {
            authority(rest, true, hosts);
        } else if is_web {
            authority(rest, false, hosts);
        }
    }
    // Without a scheme, as a page writes what is to be fetched by its own.
    let mut last = None;
    let mut characters = text.char_indices().peekable();
    while let Some((at, c)) = characters.next() {
        let is_start = !matches!(last, Some(before) if is_slash(before) || before == ':' || char::is_alphanumeric(before));
        if is_slash(c) && is_start && characters.peek().is_some_and(|(_, next)| is_slash(*next)) {
            let rest = text[at..].trim_start_matches(is_slash);
            authority(rest, false, hosts);
        }
        last = Some(c);
    }
}

/// What stands between the slashes and the path. `is_certain` says that any name counts, also one without a dot.
fn authority(rest: &str, is_certain: bool, hosts: &mut Hosts) {
    let end = rest.find(ends_authority).unwrap_or(rest.len());
    one_authority(&rest[..end], is_certain, hosts);
    if let Some((before, _)) = rest[..end].split_once('\\') {
        one_authority(before, is_certain, hosts);
    }
}

fn one_authority(authority: &str, is_certain: bool, hosts: &mut Hosts) {
    let mut parts = authority.split('@').rev();
    let Some(last) = parts.next() else { return };
    if let Some(inner) = last.strip_prefix('[') {
        hosts.insert(inner.split(']').next().unwrap_or_default().to_ascii_lowercase());
    } else {
        let host = last.split([':', '\\', ',', ';', '&', '=', '(', ')', ' ']).next().unwrap_or_default();
        let is_local = host.eq_ignore_ascii_case("localhost");
        let name = trimmed(host);
        if (is_certain && host.chars().any(char::is_alphanumeric)) || is_local || looks_like_a_host(name) {
            hosts.insert(canonical(host));
        }
    }
    // Readers disagree about which side of an at sign is the host, so both are.
    for part in parts {
        for token in part.split(|c| !is_name_char(c)).map(trimmed).filter(|token| looks_like_a_host(token)) {
            hosts.insert(canonical(token));
        }
    }
}
