//! The control API of the mock provider, `/mock/`. It shows the ledger and changes the faults at run time. Only this
//! machine may call it.

use crate::faults::{self, Faults};
use crate::mock_server::MockShared;
use crate::outage::OutageRequest;
use crate::script::ScriptRule;
use crate::service::{ReplyBytes, page};
use crate::world::{AccountChange, LedgerQuery, MockWorld};
use hyper::header::{CONTENT_TYPE, HeaderValue};
use hyper::http::request::Parts;
use hyper::{Method, Response, StatusCode};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::json;
use std::collections::BTreeMap;
use std::net::SocketAddr;

/// A request to the control API.
#[derive(Clone, Debug)]
pub(crate) struct ControlRequest<'a> {
    peer: SocketAddr,
    method: &'a Method,
    /// The path, such as `/mock/ledger`.
    pub path: &'a str,
    query: BTreeMap<String, String>,
    body: &'a [u8],
    /// Whether the request came over a socket that an outage of the service does not touch.
    is_from_outside: bool,
}

impl<'a> ControlRequest<'a> {
    pub(crate) fn read(peer: SocketAddr, head: &'a Parts, body: &'a [u8]) -> Self {
        let query = form_urlencoded::parse(head.uri.query().unwrap_or_default().as_bytes());
        Self {
            peer,
            method: &head.method,
            path: head.uri.path(),
            query: query.into_owned().collect(),
            body,
            is_from_outside: false,
        }
    }

    /// Turns a request to the control address into one to a service, at this path.
    pub(crate) fn for_service(&self, path: &'a str) -> Self {
        Self { path, is_from_outside: true, ..self.clone() }
    }

    pub(crate) fn is_reading(&self) -> bool {
        *self.method == Method::GET
    }

    pub(crate) fn is_writing(&self) -> bool {
        matches!(*self.method, Method::PUT | Method::POST | Method::PATCH | Method::DELETE)
    }

    /// Whether the request comes from this machine.
    pub(crate) fn is_allowed(&self) -> bool {
        MockWorld::may_control(self.peer.ip())
    }

    fn account(&self) -> Option<&str> {
        self.query.get("account").map(String::as_str)
    }

    /// The part of the ledger that the query names.
    pub(crate) fn ledger_query(&self) -> Result<LedgerQuery, ControlError> {
        let since = match self.query.get("since").map(|since| since.parse()) {
            Some(Ok(since)) => since,
            Some(Err(_)) => {
                return Err((StatusCode::BAD_REQUEST, "since is a number of milliseconds".to_owned()));
            }
            None => 0,
        };
        let is_summary = self.query.get("summary").is_some_and(|summary| summary != "0");
        Ok(LedgerQuery { since, is_summary, account: self.account().map(str::to_owned) })
    }
}

/// The status and the reason of a refusal.
pub(crate) type ControlError = (StatusCode, String);
/// An answer, or the status and the reason for the refusal.
pub(crate) type ControlResult = Result<String, ControlError>;

/// Answers a request to one service.
pub(crate) fn answer(shared: &MockShared, request: &ControlRequest<'_>) -> Response<ReplyBytes> {
    if !request.is_allowed() {
        return page(StatusCode::FORBIDDEN);
    }
    let ruled = match (request.path, request.is_writing()) {
        _ if !request.is_reading() && !request.is_writing() => Err(wrong_verb()),
        ("/mock/ledger", false) => ledger(shared, request),
        ("/mock/state", false) => to_json(&state(shared)),
        ("/mock/faults", false) => show_faults(shared, request),
        ("/mock/faults", true) => set_faults(shared, request),
        ("/mock/script", false) => to_json(&shared.world().rules()),
        ("/mock/script", true) => set_script(shared, request),
        ("/mock/account", true) => change_account(shared, request.body),
        ("/mock/outage", true) => outage(shared, request),
        ("/mock/reset", true) => {
            shared.world().reset(shared.clock.now_ms());
            done()
        }
        _ => Err((
            StatusCode::NOT_FOUND,
            "there is no such thing under /mock/, or not with this verb".to_owned(),
        )),
    };
    if request.is_writing() {
        shared.changed();
    }
    response(ruled)
}

pub(crate) fn wrong_verb() -> ControlError {
    (StatusCode::METHOD_NOT_ALLOWED, "GET, PUT, PATCH, POST or DELETE".to_owned())
}

pub(crate) fn response(ruled: ControlResult) -> Response<ReplyBytes> {
    let (status, text) = match ruled {
        Ok(text) => (StatusCode::OK, text),
        Err((status, why)) => (status, json!({ "error": why }).to_string()),
    };
    let mut answer = Response::new(ReplyBytes::just(text));
    *answer.status_mut() = status;
    answer.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    answer
}

pub(crate) fn to_json(thing: &impl Serialize) -> ControlResult {
    serde_json::to_string(thing).map_err(|why| (StatusCode::INTERNAL_SERVER_ERROR, why.to_string()))
}

pub(crate) fn done() -> ControlResult {
    Ok(json!({ "ok": true }).to_string())
}

fn bad(why: &(impl ToString + ?Sized)) -> ControlError {
    (StatusCode::BAD_REQUEST, why.to_string())
}

fn read<T: DeserializeOwned>(body: &[u8]) -> Result<T, ControlError> {
    serde_json::from_slice(body).map_err(|why| bad(&why))
}

/// Checks that the account exists. The refusal names those that do.
fn known_account(shared: &MockShared, name: &str) -> Result<(), ControlError> {
    let world = shared.world();
    if world.has_account(name) {
        return Ok(());
    }
    let names = world.account_names().join(", ");
    Err((StatusCode::NOT_FOUND, format!("no account is called {name:?}; the accounts are: {names}")))
}

fn ledger(shared: &MockShared, request: &ControlRequest<'_>) -> ControlResult {
    let wanted = request.ledger_query()?;
    if let Some(name) = &wanted.account {
        known_account(shared, name)?;
    }
    let ledger = shared.world().ledger(shared.clock.now_ms(), &wanted);
    to_json(&ledger)
}

pub(crate) fn state(shared: &MockShared) -> crate::ledger::MockState {
    let outage = shared.outage();
    shared.world().standing(shared.clock.now_ms(), outage)
}

fn show_faults(shared: &MockShared, request: &ControlRequest<'_>) -> ControlResult {
    let Some(name) = request.account() else { return to_json(&shared.world().faults()) };
    known_account(shared, name)?;
    let faults = shared.world().account_faults(name);
    to_json(&faults)
}

/// Replaces the faults of the service or of one account. PATCH keeps what the body leaves out. DELETE gives the account
/// the faults of the service again, and the service none.
fn set_faults(shared: &MockShared, request: &ControlRequest<'_>) -> ControlResult {
    let account = request.account();
    if let Some(name) = account {
        known_account(shared, name)?;
    }
    if *request.method == Method::DELETE {
        match account {
            Some(name) => _ = shared.world().set_account_faults(name, None),
            None => shared.world().set_faults(Faults::default()),
        }
        return done();
    }
    let mut world = shared.world();
    let in_force = || account.map_or_else(|| Some(world.faults()), |name| world.account_faults(name));
    let base = if *request.method == Method::PATCH { in_force() } else { None };
    let base = base.unwrap_or_default();
    let body = read(request.body)?;
    match account {
        Some(name) => {
            let faults = faults::read_for_account(&body, &base).map_err(|why| bad(&why))?;
            world.set_account_faults(name, Some(faults));
        }
        None => world.set_faults(faults::read(&body, &base).map_err(|why| bad(&why))?),
    }
    done()
}

/// Replaces the rules. DELETE removes them.
fn set_script(shared: &MockShared, request: &ControlRequest<'_>) -> ControlResult {
    let rules: Vec<ScriptRule> =
        if *request.method == Method::DELETE { Vec::new() } else { read(request.body)? };
    shared.world().set_script(rules).map_err(|why| bad(&why))?;
    done()
}

fn change_account(shared: &MockShared, body: &[u8]) -> ControlResult {
    let change: AccountChange = read(body)?;
    known_account(shared, &change.name)?;
    shared.world().change_account(&change);
    done()
}

fn outage(shared: &MockShared, request: &ControlRequest<'_>) -> ControlResult {
    let outage: OutageRequest = read(request.body)?;
    let is_reachable = request.is_from_outside || outage.kind().lets_connect();
    if outage.is_endless() && !is_reachable {
        return Err(bad(
            "no request could end this outage, because this socket would not answer: add \"ms\", \
                        the length in milliseconds, or send the request to the control address of \
                        `quittance mock --service`",
        ));
    }
    outage.begin(shared);
    done()
}
