//! One proxy, three ways to write it: five fields, one text of CapSolver's, and the classic `login:pass@host:port` beside a
//! type in capitals, which is ours. The same proxy must not make two orders.

use quittance_lifecycle::Value as Param;
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// In the order in which they are written.
const FIELDS: [&str; 5] = ["proxyType", "proxyAddress", "proxyPort", "proxyLogin", "proxyPassword"];

pub(crate) fn is_field(name: &str) -> bool {
    name.eq_ignore_ascii_case("proxy") || FIELDS.iter().any(|field| field.eq_ignore_ascii_case(name))
}

/// Ours, from whatever the task says about a proxy.
pub(crate) fn understand(task: &Map<String, Value>, params: &mut BTreeMap<String, Param>) {
    let said = |wanted: &str| {
        let (_, value) = task.iter().find(|(name, _)| name.eq_ignore_ascii_case(wanted))?;
        let text = match value {
            Value::String(text) => text.trim().to_owned(),
            Value::Number(number) => number.to_string(),
            _ => return None,
        };
        (!text.is_empty()).then_some(text)
    };
    let (proxy, kind) = match (said("proxyAddress"), said("proxy")) {
        (Some(host), _) => {
            let place = said("proxyPort").map_or(host.clone(), |port| format!("{host}:{port}"));
            let proxy = match (said("proxyLogin"), said("proxyPassword")) {
                (Some(login), password) => format!("{login}:{}@{place}", password.unwrap_or_default()),
                (None, _) => place,
            };
            (proxy, said("proxyType"))
        }
        (None, Some(text)) => {
            let (proxy, kind) = one_text(&text);
            (proxy, kind.or_else(|| said("proxyType")).or_else(|| said("proxytype")))
        }
        (None, None) => return,
    };
    params.insert("proxy".to_owned(), Param::Text(proxy));
    if let Some(kind) = kind {
        params.insert("proxytype".to_owned(), Param::Text(kind.to_ascii_uppercase()));
    }
}

/// `http:host:port:login:pass`, the same without the type, an address, or already ours.
fn one_text(text: &str) -> (String, Option<String>) {
    if let Some((kind, rest)) = text.split_once("://") {
        return (rest.trim_end_matches('/').to_owned(), Some(kind.to_owned()));
    }
    if text.contains('@') {
        return (text.to_owned(), None);
    }
    let (kind, rest) = match text.split_once(':') {
        Some((kind, rest)) if matches!(kind, "http" | "https" | "socks4" | "socks5") => {
            (Some(kind.to_owned()), rest)
        }
        _ => (None, text),
    };
    let proxy = match rest.split(':').collect::<Vec<_>>()[..] {
        [host, port, login, password] => format!("{login}:{password}@{host}:{port}"),
        _ => rest.to_owned(),
    };
    (proxy, kind)
}

/// The five fields, or nothing if it is not written so that it can be taken apart.
pub(super) fn spell(proxy: &str, kind: Option<&str>) -> Option<Map<String, Value>> {
    let (kind, proxy) = match proxy.split_once("://") {
        Some((said, proxy)) => (kind.unwrap_or(said), proxy),
        None => (kind.unwrap_or("http"), proxy),
    };
    let (account, place) = match proxy.rsplit_once('@') {
        Some((account, place)) => (Some(account), place),
        None => (None, proxy),
    };
    let (host, port) = place.rsplit_once(':')?;
    let port: u16 = port.parse().ok()?;
    if host.is_empty() {
        return None;
    }
    let mut fields = Map::new();
    let mut put = |at: usize, value: Value| fields.insert(FIELDS[at].to_owned(), value);
    put(0, kind.to_ascii_lowercase().into());
    put(1, host.into());
    put(2, port.into());
    if let Some(account) = account {
        let (login, password) = account.split_once(':').unwrap_or((account, ""));
        put(3, login.into());
        put(4, password.into());
    }
    Some(fields)
}
