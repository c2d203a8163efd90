//! The judge's door, `/mock/`: reads the ledger, and calms or storms the provider while it runs. Only from this machine.

use crate::faults::Faults;
use crate::script::Rule;
use crate::server::{Outage, Shared};
use crate::service::{ReplyBytes, page};
use crate::world::{AccountChange, World};
use hyper::header::{CONTENT_TYPE, HeaderValue};
use hyper::{Method, Response, StatusCode, Uri};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::collections::BTreeMap;
use std::net::SocketAddr;

/// No outage is longer: a typing error must not take the rest of the day.
pub(crate) const OUTAGE_MS_MAX: u64 = 3_600_000;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct OutageWish {
    ms: u64,
    #[serde(default)]
    refuse: bool,
}

/// `{}` is calm, `"storm"` the preset, and anything else names its rates.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum FaultsWish {
    Named(Weather),
    Rates(Box<Faults>),
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Weather {
    Calm,
    Storm,
}

/// An answer, or the status and the reason instead of it.
type Ruled = Result<String, (StatusCode, String)>;

pub(crate) fn answer(
    shared: &Shared,
    peer: SocketAddr,
    method: &Method,
    uri: &Uri,
    body: &[u8],
) -> Response<ReplyBytes> {
    if !World::may_control(peer.ip()) {
        return page(StatusCode::FORBIDDEN);
    }
    let (is_reading, is_writing) = (*method == Method::GET, matches!(*method, Method::PUT | Method::POST));
    let ruled = match (uri.path(), is_writing) {
        _ if !is_reading && !is_writing => {
            Err((StatusCode::METHOD_NOT_ALLOWED, "GET, PUT or POST".to_owned()))
        }
        ("/mock/ledger", false) => ledger(shared, uri),
        ("/mock/state", false) => state(shared),
        ("/mock/faults", false) => shown(&shared.world().faults()),
        ("/mock/faults", true) => set_faults(shared, body),
        ("/mock/script", false) => shown(&shared.world().rules()),
        ("/mock/script", true) => set_script(shared, body),
        ("/mock/account", true) => change_account(shared, body),
        ("/mock/outage", true) => outage(shared, body),
        ("/mock/reset", true) => {
            shared.world().reset(shared.clock.now_ms());
            done()
        }
        _ => Err((
            StatusCode::NOT_FOUND,
            "there is no such thing under /mock/, or not with this verb".to_owned(),
        )),
    };
    let (status, said) = match ruled {
        Ok(said) => (StatusCode::OK, said),
        Err((status, why)) => (status, json!({ "error": why }).to_string()),
    };
    if is_writing {
        shared.changed();
    }
    let mut answer = Response::new(ReplyBytes::just(said));
    *answer.status_mut() = status;
    answer.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    answer
}

fn shown(thing: &impl Serialize) -> Ruled {
    serde_json::to_string(thing).map_err(|why| (StatusCode::INTERNAL_SERVER_ERROR, why.to_string()))
}

fn done() -> Ruled {
    Ok(json!({ "ok": true }).to_string())
}

fn read<T: DeserializeOwned>(body: &[u8]) -> Result<T, (StatusCode, String)> {
    serde_json::from_slice(body).map_err(|why| (StatusCode::BAD_REQUEST, why.to_string()))
}

fn ledger(shared: &Shared, uri: &Uri) -> Ruled {
    let query: BTreeMap<_, _> = form_urlencoded::parse(uri.query().unwrap_or_default().as_bytes()).collect();
    let since = match query.get("since").map(|since| since.parse()) {
        Some(Ok(since)) => since,
        Some(Err(_)) => {
            return Err((StatusCode::BAD_REQUEST, "since is a number of milliseconds".to_owned()));
        }
        None => 0,
    };
    let with_tasks = query.get("summary").is_none_or(|summary| summary == "0");
    let ledger = shared.world().ledger(shared.clock.now_ms(), since, with_tasks);
    shown(&ledger)
}

fn state(shared: &Shared) -> Ruled {
    let until = shared.outage().map(|outage| outage.until_ms);
    let standing = shared.world().standing(shared.clock.now_ms(), until);
    shown(&standing)
}

fn set_faults(shared: &Shared, body: &[u8]) -> Ruled {
    let faults = match read(body)? {
        FaultsWish::Named(Weather::Calm) => Faults::default(),
        FaultsWish::Named(Weather::Storm) => Faults::storm(),
        FaultsWish::Rates(faults) => *faults,
    };
    shared.world().set_faults(faults);
    done()
}

fn set_script(shared: &Shared, body: &[u8]) -> Ruled {
    let rules: Vec<Rule> = read(body)?;
    shared.world().set_script(rules).map_err(|why| (StatusCode::BAD_REQUEST, why.to_string()))?;
    done()
}

fn change_account(shared: &Shared, body: &[u8]) -> Ruled {
    let change: AccountChange = read(body)?;
    if shared.world().change_account(&change) {
        done()
    } else {
        Err((StatusCode::NOT_FOUND, format!("no account is called {:?}", change.name)))
    }
}

fn outage(shared: &Shared, body: &[u8]) -> Ruled {
    let wish: OutageWish = read(body)?;
    begin_outage(shared, wish.ms, wish.refuse);
    done()
}

pub(crate) fn begin_outage(shared: &Shared, ms: u64, refuses: bool) {
    let until_ms = shared.clock.now_ms() + ms.min(OUTAGE_MS_MAX);
    shared.outage.send_replace(Outage { until_ms, refuses });
}
