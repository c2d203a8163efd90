//! Finds hosts in a text that has been decoded.

use crate::{Hosts, canonical};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use url::Host;

/// Names that some resolvers know, and that the list of top-level domains lacks.
const LOCAL: [&str; 9] =
    ["corp", "example", "hotel", "internal", "lan", "local", "localhost", "onion", "test"];

/// Schemes that fetch something. After any other scheme (`myapp://callback`), only a full host name counts as a host.
const FETCHED: [&str; 6] = ["ftp", "ftps", "sftp", "ws", "wss", "gopher"];

/// Characters that end an authority for every reader. Other characters that no host has end it for some readers only.
fn ends_authority(c: char) -> bool {
    c.is_whitespace() || matches!(c, '/' | '?' | '#' | '"' | '\'' | '<' | '>')
}

const fn is_slash(c: char) -> bool {
    matches!(c, '/' | '\\')
}

fn is_name_char(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '.' | '-' | '_')
}

/// Whether a character is no part of a host, of base64 or of an escape: a curly quote, or the sign for an invalid byte.
fn is_foreign(c: char) -> bool {
    !c.is_ascii() && !is_name_char(c)
}

fn trimmed(token: &str) -> &str {
    token.trim_matches(['.', '-', '_'])
}

/// The host that a token is by itself: a name of several parts under an existing top-level domain, or four numbers.
fn bare_host(token: &str) -> Option<String> {
    let token = trimmed(token);
    let (_, last) = token.rsplit_once('.')?;
    if last.starts_with(|c: char| c.is_ascii_digit()) {
        let is_whole = token.split('.').count() == 4;
        return in_numbers(token).filter(|_| is_whole).map(|address| address.to_string());
    }
    let host = canonical(token);
    let is_name = host.len() <= 253 && host.split('.').all(|label| (1..=63).contains(&label.len()));
    let last = host.rsplit('.').next().unwrap_or_default();
    (is_name && (LOCAL.contains(&last) || tld::exist(last))).then_some(host)
}

/// The address that readers see in `93.184.216.34`, `0x5db8d822`, `1572395042` or `0135.0270.0330.042`.
fn in_numbers(token: &str) -> Option<Ipv4Addr> {
    let is_number = |part: &str| part.starts_with(|c: char| c.is_ascii_digit());
    if !token.split('.').all(is_number) {
        return None;
    }
    match Host::parse(token) {
        Ok(Host::Ipv4(address)) => Some(address),
        _ => None,
    }
}

/// The host of a token in the place of an address: a bare host, `localhost`, or one number. Small numbers do not
/// count: 1.0.0.0 is the first assigned address.
fn written_host(token: &str) -> Option<String> {
    let is_local = token.eq_ignore_ascii_case("localhost");
    let number = || in_numbers(trimmed(token)).filter(|address| address.octets()[0] > 0);
    let values = bare_host(token).or_else(|| number().map(|address| address.to_string()));
    values.or_else(|| is_local.then(|| "localhost".to_owned()))
}

fn ipv6(token: &str) -> Option<String> {
    let address: Ipv6Addr = token.parse().ok()?;
    // `a::b` is rather a name in a program.
    let is_meant = token.starts_with("::")
        || token.find(':').is_some_and(|at| at >= 3)
        || token.bytes().filter(|byte| *byte == b':').count() >= 3;
    is_meant.then(|| IpAddr::from(address).to_string())
}

/// Finds bare names and addresses in numbers, anywhere in the text.
pub(crate) fn names(text: &str, hosts: &mut Hosts) {
    let mut before: [Option<char>; 2] = [None; 2];
    for part in text.split_inclusive(|c| !is_name_char(c)) {
        let token = part.trim_end_matches(|c| !is_name_char(c));
        // `Chrome/126.0.0.0` is a version.
        let is_version = token.ends_with(".0.0.0")
            && before[1] == Some('/')
            && before[0].is_some_and(char::is_alphanumeric);
        hosts.extend(bare_host(token).filter(|_| !is_version));
        for c in part.chars() {
            before = [before[1], Some(c)];
        }
    }
    let tokens = text.split(|c: char| !(c.is_ascii_hexdigit() || matches!(c, ':' | '.')));
    // Two colons alone are an address in brackets only.
    let is_meant = |token: &&str| *token != "::" || text.contains("[::]");
    hosts.extend(tokens.filter(is_meant).filter_map(ipv6));
    names_without_dot(text, hosts);
}

/// Finds names without a dot at the beginning of a value: `localhost`, and a name between two slashes and a path or
/// port. Base64 can begin with two slashes too, but mixes capitals and small letters.
pub(crate) fn names_without_dot(text: &str, hosts: &mut Hosts) {
    for value in text.split(|c: char| c.is_whitespace() || "\"'`,;=&|()[]{}<>".contains(c)) {
        let rest = value.trim_start_matches(is_slash);
        let length = rest.find(|c: char| !(c.is_ascii_alphanumeric() || c == '-')).unwrap_or(rest.len());
        let (name, after) = rest.split_at(length);
        let is_host = after.starts_with(['/', '\\', ':']);
        let small = name.to_ascii_lowercase();
        let is_one_case =
            name[name.len().min(1)..] == small[name.len().min(1)..] || name == name.to_ascii_uppercase();
        let is_name = (1..=63).contains(&name.len()) && name.starts_with(|c: char| c.is_ascii_alphabetic());
        let has_slashes = value.len() - rest.len() >= 2;
        let is_local = small == "localhost" && (is_host || after.is_empty() || after.starts_with(['?', '#']));
        if is_local || (has_slashes && is_host && is_name && is_one_case) {
            hosts.insert(small);
        }
    }
}

/// Finds hosts between the separators of a URL, or between blanks. A plus sign or a tilde is no separator: in base64
/// these are letters.
pub(crate) fn pieces(text: &str, hosts: &mut Hosts) {
    const SIGNS: &str = "/\\=@?:#&|,;\"'[]{}()<>";
    for piece in text.split(|c: char| c.is_whitespace() || is_foreign(c) || SIGNS.contains(c)) {
        if piece.chars().all(is_name_char) {
            hosts.extend(bare_host(piece));
        }
    }
    words(text, hosts);
}

/// Finds hosts at the beginning of a part of a value: `a.b`, `a.b:443`, `login@a.b/path?query`. The dots in a path
/// after the first slash make no hosts.
pub(crate) fn beginnings(text: &str, hosts: &mut Hosts) {
    let is_end = |c: char| c.is_whitespace() || is_foreign(c) || "=&|,;+\"'()<>[]{}*".contains(c);
    for part in text.split(is_end) {
        let authority = part.split(['/', '\\', '?', '#']).next().unwrap_or_default();
        let tokens = authority.split(['@', ':']).filter(|token| token.chars().all(is_name_char));
        hosts.extend(tokens.filter_map(bare_host));
    }
}

/// The top-level domains of more than two letters that existed before any word could be one.
const OLD_DOMAINS: [&str; 16] = [
    "aero", "arpa", "biz", "cat", "com", "coop", "edu", "gov", "info", "int", "jobs", "mil", "mobi", "net",
    "org", "travel",
];

/// Whether a text is one word with dots that is probably not a host: its last part is a word (`user.new`), or all its
/// parts are numbers (`1.2.3.4`).
pub(crate) fn is_dotted_word(text: &str) -> bool {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_');
    let last = text.rsplit('.').next().unwrap_or_default().to_ascii_lowercase();
    let is_number = |part: &str| !part.is_empty() && part.bytes().all(|digit| digit.is_ascii_digit());
    let is_word = last.len() > 2
        && last.bytes().all(|letter| letter.is_ascii_lowercase())
        && !OLD_DOMAINS.contains(&last.as_str())
        && !LOCAL.contains(&last.as_str());
    text.chars().all(is_plain) && text.contains('.') && (is_word || text.split('.').all(is_number))
}

/// Finds hosts that are a whole word of the text, with or without a port.
pub(crate) fn words(text: &str, hosts: &mut Hosts) {
    let is_wrapping =
        |c: char| matches!(c, '"' | '\'' | '[' | ']' | '{' | '}' | '(' | ')' | '<' | '>') || is_foreign(c);
    for word in text.split(|c: char| c.is_whitespace() || matches!(c, ',' | ';')) {
        let word = word.trim_matches(is_wrapping);
        let is_port = |port: &str| !port.is_empty() && port.bytes().all(|digit| digit.is_ascii_digit());
        let name = match word.rsplit_once(':') {
            Some((name, port)) if is_port(port) && !name.contains(':') => name,
            _ => word,
        };
        if name.chars().all(is_name_char) {
            hosts.extend(bare_host(name));
        } else {
            hosts.extend(ipv6(word));
        }
    }
}

/// Finds the hosts of URLs anywhere in the text.
pub(crate) fn addresses(text: &str, hosts: &mut Hosts) {
    for (at, _) in text.match_indices(':') {
        let (before, after) = (&text[..at], &text[at + 1..]);
        let scheme_at = before
            .rfind(|c: char| !(c.is_ascii_alphanumeric() || matches!(c, '+' | '-')))
            .map_or(0, |at| at + before[at..].chars().next().map_or(1, char::len_utf8));
        let scheme = before[scheme_at..].to_ascii_lowercase();
        let is_web = scheme.ends_with("http") || scheme.ends_with("https");
        let is_fetched = FETCHED.contains(&scheme.as_str());
        let trimmed = after.trim_start_matches(' ');
        let rest = trimmed.trim_start_matches(is_slash);
        let slashes = trimmed.len() - rest.len();
        if slashes >= 2 || is_web {
            let is_certain = if is_web { slashes >= 1 } else { is_fetched };
            authority(rest.trim_start(), is_certain, hosts);
        }
    }
    // Without a scheme, as a page writes what is to be fetched by its own.
    let mut last = None;
    let mut characters = text.char_indices().peekable();
    while let Some((at, c)) = characters.next() {
        let is_start = !matches!(last, Some(before) if is_slash(before) || before == ':' || char::is_alphanumeric(before));
        if is_slash(c) && is_start && characters.peek().is_some_and(|(_, next)| is_slash(*next)) {
            authority(text[at..].trim_start_matches(is_slash), false, hosts);
        }
        last = Some(c);
    }
}

/// Finds the host between the slashes and the path. Readers disagree about which character ends the host and on which
/// side of an at sign it stands, so each token that could be the host counts. `is_certain` says that there is a host,
/// even without a dot.
fn authority(rest: &str, is_certain: bool, hosts: &mut Hosts) {
    let whole = &rest[..rest.find(ends_authority).unwrap_or(rest.len())];
    if let Some((address, _)) =
        whole.rsplit('@').next().and_then(|place| place.strip_prefix('[')?.split_once(']'))
    {
        hosts
            .insert(address.parse::<Ipv6Addr>().map_or_else(|_| address.to_lowercase(), |it| it.to_string()));
    }
    let has_letters = |token: &&str| token.chars().any(char::is_alphanumeric);
    let tokens = |text: &'_ str| {
        text.split(|c| !is_name_char(c)).filter(has_letters).map(str::to_owned).collect::<Vec<_>>()
    };
    hosts.extend(tokens(whole).iter().filter_map(|token| written_host(token)));
    // Where only a slash ends the authority, what stands behind this sign is the host.
    let is_end = |c: char| c != '?' && c != '#' && ends_authority(c);
    let to_slash = &rest[..rest.find(is_end).unwrap_or(rest.len())];
    if let Some((_, host)) = to_slash[whole.len()..].rsplit_once('@') {
        hosts.extend(tokens(host).iter().filter_map(|token| written_host(token)));
    }
    if !is_certain {
        return;
    }
    let after_login = whole.rsplit('@').next().unwrap_or(whole);
    let before_backslash = whole.split('\\').next().filter(|_| whole.contains('\\'));
    for place in
        [Some(after_login), before_backslash].into_iter().flatten().filter(|place| !place.starts_with('['))
    {
        let host = tokens(place).into_iter().next();
        hosts.extend(host.map(|host| canonical(host.trim_start_matches(['.', '-', '_']))));
    }
}
