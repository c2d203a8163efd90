//! Translates a proxy between three forms: five fields, CapSolver's one text, and our `login:pass@host:port` with a
//! type in capitals, as in the classic protocol. One proxy must not make two orders.

use super::field::text;
use super::leaves::Leaf;
use quittance_lifecycle::Value as Param;
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::net::Ipv6Addr;

/// The fields of a proxy, in the order in which they are written.
const FIELDS: [&str; 5] = ["proxyType", "proxyAddress", "proxyPort", "proxyLogin", "proxyPassword"];

pub(crate) fn is_field(name: &str) -> bool {
    name.eq_ignore_ascii_case("proxy") || FIELDS.iter().any(|field| field.eq_ignore_ascii_case(name))
}

/// Reads the proxy of a task into our form.
pub(crate) fn understand(task: &Map<String, Value>, params: &mut BTreeMap<String, Param>) {
    let field_text = |wanted: &str| {
        let (_, value) = task.iter().find(|(name, _)| name.eq_ignore_ascii_case(wanted))?;
        let text = match value {
            Value::String(text) => text.trim().to_owned(),
            Value::Number(number) => number.to_string(),
            _ => return None,
        };
        (!text.is_empty()).then_some(text)
    };
    let (proxy, kind) = match (field_text("proxyAddress"), field_text("proxy")) {
        (Some(host), _) => {
            let host = bracketed(host);
            let place = field_text("proxyPort").map_or(host.clone(), |port| format!("{host}:{port}"));
            let proxy = match (field_text("proxyLogin"), field_text("proxyPassword")) {
                (Some(login), password) => format!("{login}:{}@{place}", password.unwrap_or_default()),
                (None, _) => place,
            };
            (proxy, field_text("proxyType"))
        }
        (None, Some(text)) => {
            let (proxy, kind) = one_text(&text);
            (proxy, kind.or_else(|| field_text("proxyType")).or_else(|| field_text("proxytype")))
        }
        (None, None) => return,
    };
    params.insert("proxy".to_owned(), Param::Text(proxy));
    if let Some(kind) = kind {
        params.insert("proxytype".to_owned(), Param::Text(kind.to_ascii_uppercase()));
    }
}

/// The host, with brackets if it is an IPv6 address, because a port follows.
fn bracketed(host: String) -> String {
    if host.parse::<Ipv6Addr>().is_ok() { format!("[{host}]") } else { host }
}

/// The proxy type for a URL scheme. The protocols have no name for a proxy that resolves names itself (`socks5h`).
fn type_of(scheme: &str) -> Option<&'static str> {
    const SCHEMES: [(&str, &str); 6] = [
        ("http", "http"),
        ("https", "https"),
        ("socks4", "socks4"),
        ("socks4a", "socks4"),
        ("socks5", "socks5"),
        ("socks5h", "socks5"),
    ];
    SCHEMES.iter().find(|(known, _)| known.eq_ignore_ascii_case(scheme)).map(|(_, kind)| *kind)
}

/// Reads a proxy in one text: `http:host:port:login:pass`, `host:port:login:pass`, a URL, or our form.
pub(crate) fn one_text(text: &str) -> (String, Option<String>) {
    let text = text.trim();
    if let Some((kind, rest)) = text.split_once("://")
        && let Some(kind) = type_of(kind)
    {
        return (rest.strip_suffix('/').unwrap_or(rest).to_owned(), Some(kind.to_owned()));
    }
    if text.contains('@') {
        return (text.to_owned(), None);
    }
    let (kind, rest) = match text.split_once(':') {
        Some((kind, rest)) if type_of(kind).is_some() => (type_of(kind).map(str::to_owned), rest),
        _ => (None, text),
    };
    let proxy = match rest.split(':').collect::<Vec<_>>()[..] {
        [host, port, login, password] => format!("{login}:{password}@{host}:{port}"),
        _ => rest.to_owned(),
    };
    (proxy, kind)
}

/// The parts of the five fields that the check of outgoing fields must see. Login and password are left out.
pub(super) fn leaves(task: &Map<String, Value>) -> Vec<Leaf> {
    let field_text = |name: &str| task.get(name).and_then(text).unwrap_or_default();
    let leaf = |name: &str, param: Option<&str>, value: String| {
        (task.contains_key(name)).then(|| Leaf {
            name: name.to_owned(),
            param: param.map(str::to_owned),
            value,
        })
    };
    let host = bracketed(field_text(FIELDS[1]));
    // With a login in it, it is not the host that the proxy was taken apart into.
    let param = (!host.contains('@')).then_some("proxy");
    let place = leaf(FIELDS[1], param, format!("{host}:{}", field_text(FIELDS[2])));
    [leaf(FIELDS[0], Some("proxytype"), field_text(FIELDS[0])), place].into_iter().flatten().collect()
}

/// The five fields, or `None` if the proxy cannot be split.
pub(super) fn spell(proxy: &str, kind: Option<&str>) -> Option<Map<String, Value>> {
    let (proxy, field_text) = one_text(proxy);
    let kind = kind.or(field_text.as_deref()).unwrap_or("http");
    let (account, place) = match proxy.rsplit_once('@') {
        Some((account, place)) => (Some(account), place),
        None => (None, proxy.as_str()),
    };
    let (host, port) = place.rsplit_once(':')?;
    let port: u16 = port.parse().ok()?;
    if host.is_empty() {
        return None;
    }
    let mut fields = Map::new();
    let mut put = |at: usize, value: Value| fields.insert(FIELDS[at].to_owned(), value);
    put(0, kind.to_ascii_lowercase().into());
    put(1, host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host).into());
    put(2, port.into());
    if let Some(account) = account {
        let (login, password) = account.split_once(':').unwrap_or((account, ""));
        put(3, login.into());
        put(4, password.into());
    }
    Some(fields)
}
