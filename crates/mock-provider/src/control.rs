//! The control API of the mock provider, `/mock/`. It shows the ledger and changes the faults at run time. Only this
//! machine may call it.

use crate::faults::Faults;
use crate::mock_server::{MockOutage, MockShared};
use crate::script::ScriptRule;
use crate::service::{ReplyBytes, page};
use crate::world::{AccountChange, MockWorld};
use hyper::header::{CONTENT_TYPE, HeaderValue};
use hyper::{Method, Response, StatusCode, Uri};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::collections::BTreeMap;
use std::net::SocketAddr;

/// The longest outage. A typing error must not take the rest of the day.
pub(crate) const OUTAGE_MS_MAX: u64 = 3_600_000;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct OutageRequest {
    ms: u64,
    #[serde(default)]
    refuse: bool,
}

/// The body of `PUT /mock/faults`: `{}` means no faults, `"storm"` names a preset, and anything else gives rates.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum FaultsRequest {
    Named(FaultPreset),
    Rates(Box<Faults>),
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
enum FaultPreset {
    Calm,
    Storm,
}

/// An answer, or the status and the reason for the refusal.
type ControlResult = Result<String, (StatusCode, String)>;

pub(crate) fn answer(
    shared: &MockShared,
    peer: SocketAddr,
    method: &Method,
    uri: &Uri,
    body: &[u8],
) -> Response<ReplyBytes> {
    if !MockWorld::may_control(peer.ip()) {
        return page(StatusCode::FORBIDDEN);
    }
    let (is_reading, is_writing) = (*method == Method::GET, matches!(*method, Method::PUT | Method::POST));
    let ruled = match (uri.path(), is_writing) {
        _ if !is_reading && !is_writing => {
            Err((StatusCode::METHOD_NOT_ALLOWED, "GET, PUT or POST".to_owned()))
        }
        ("/mock/ledger", false) => ledger(shared, uri),
        ("/mock/state", false) => state(shared),
        ("/mock/faults", false) => to_json(&shared.world().faults()),
        ("/mock/faults", true) => set_faults(shared, body),
        ("/mock/script", false) => to_json(&shared.world().rules()),
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
    let (status, text) = match ruled {
        Ok(text) => (StatusCode::OK, text),
        Err((status, why)) => (status, json!({ "error": why }).to_string()),
    };
    if is_writing {
        shared.changed();
    }
    let mut answer = Response::new(ReplyBytes::just(text));
    *answer.status_mut() = status;
    answer.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    answer
}

fn to_json(thing: &impl Serialize) -> ControlResult {
    serde_json::to_string(thing).map_err(|why| (StatusCode::INTERNAL_SERVER_ERROR, why.to_string()))
}

fn done() -> ControlResult {
    Ok(json!({ "ok": true }).to_string())
}

fn read<T: DeserializeOwned>(body: &[u8]) -> Result<T, (StatusCode, String)> {
    serde_json::from_slice(body).map_err(|why| (StatusCode::BAD_REQUEST, why.to_string()))
}

fn ledger(shared: &MockShared, uri: &Uri) -> ControlResult {
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
    to_json(&ledger)
}

fn state(shared: &MockShared) -> ControlResult {
    let until = shared.outage().map(|outage| outage.until_ms);
    let standing = shared.world().standing(shared.clock.now_ms(), until);
    to_json(&standing)
}

fn set_faults(shared: &MockShared, body: &[u8]) -> ControlResult {
    let faults = match read(body)? {
        FaultsRequest::Named(FaultPreset::Calm) => Faults::default(),
        FaultsRequest::Named(FaultPreset::Storm) => Faults::storm(),
        FaultsRequest::Rates(faults) => *faults,
    };
    shared.world().set_faults(faults);
    done()
}

fn set_script(shared: &MockShared, body: &[u8]) -> ControlResult {
    let rules: Vec<ScriptRule> = read(body)?;
    shared.world().set_script(rules).map_err(|why| (StatusCode::BAD_REQUEST, why.to_string()))?;
    done()
}

fn change_account(shared: &MockShared, body: &[u8]) -> ControlResult {
    let change: AccountChange = read(body)?;
    if shared.world().change_account(&change) {
        done()
    } else {
        Err((StatusCode::NOT_FOUND, format!("no account is called {:?}", change.name)))
    }
}

fn outage(shared: &MockShared, body: &[u8]) -> ControlResult {
    let request: OutageRequest = read(body)?;
    begin_outage(shared, request.ms, request.refuse);
    done()
}

pub(crate) fn begin_outage(shared: &MockShared, ms: u64, refuses: bool) {
    let until_ms = shared.clock.now_ms() + ms.min(OUTAGE_MS_MAX);
    shared.outage.send_replace(MockOutage { until_ms, refuses });
}
