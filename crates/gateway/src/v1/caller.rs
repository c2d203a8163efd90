//! Who is asking, by the key that he shows, and what his other headers say: whether he waits, and whether he repeats
//! himself.

use super::AppState;
use super::problem::{Code, Refused};
use crate::wrong_keys::Visit;
use crate::{Caller, OrderId, order_options};
use axum::extract::rejection::PathRejection;
use axum::extract::{FromRequestParts, Path};
use axum::http::request::Parts;
use hyper::header::{AUTHORIZATION, HeaderMap};
use quittance_lifecycle::Key;
use std::time::Duration;

/// The longest that one request may wait.
pub(super) const WAIT_MAX_S: u64 = 300;

/// The key that was shown, if any.
pub(crate) fn shown(headers: &HeaderMap) -> Option<&str> {
    let bearer = headers.get(AUTHORIZATION).and_then(|value| value.to_str().ok()).and_then(|value| {
        let (scheme, key) = value.split_once(' ')?;
        scheme.eq_ignore_ascii_case("bearer").then_some(key.trim())
    });
    bearer.or_else(|| headers.get("x-api-key")?.to_str().ok())
}

/// A tenant.
pub(super) struct Tenanted(pub(super) Caller);

impl FromRequestParts<AppState> for Tenanted {
    type Rejection = Refused;

    async fn from_request_parts(parts: &mut Parts, state: &AppState) -> Result<Self, Refused> {
        let tenants = state.orders.tenants();
        let key = shown(&parts.headers);
        let caller = key.and_then(|key| tenants.caller(key).ok()).or_else(|| tenants.local());
        if let Some(caller) = caller {
            Visit::note_tenant(&parts.extensions, caller.tenant.name());
            return Ok(Self(caller));
        }
        match key {
            Some(key) if tenants.is_admin(key) => {
                Visit::note_operator(&parts.extensions);
                Err(Code::Forbidden.because("This is the operator's key. It places and reads no orders."))
            }
            Some(key) => {
                Visit::note_wrong(&parts.extensions, key, state.orders.wrong_keys());
                Err(Code::Unauthorized.because("Nobody has this key."))
            }
            None => Err(Code::Unauthorized.because("No key was sent.")),
        }
    }
}

/// The operator.
pub(super) struct Operator;

impl FromRequestParts<AppState> for Operator {
    type Rejection = Refused;

    async fn from_request_parts(parts: &mut Parts, state: &AppState) -> Result<Self, Refused> {
        let tenants = state.orders.tenants();
        let key = shown(&parts.headers);
        if tenants.is_admin(key.unwrap_or_default()) {
            Visit::note_operator(&parts.extensions);
            return Ok(Self);
        }
        match key.map(|key| (key, tenants.caller(key))) {
            Some((_, Ok(caller))) => {
                Visit::note_tenant(&parts.extensions, caller.tenant.name());
                Err(Code::Forbidden.because("This is a tenant's key, and the operator's is needed."))
            }
            Some((key, Err(_))) => {
                Visit::note_wrong(&parts.extensions, key, state.orders.wrong_keys());
                Err(Code::Unauthorized.because("Nobody has this key."))
            }
            None => Err(Code::Unauthorized.because("No key was sent.")),
        }
    }
}

/// Whose orders somebody may watch: his own, or everybody's.
pub(super) struct Watcher(pub(super) Option<Caller>);

impl FromRequestParts<AppState> for Watcher {
    type Rejection = Refused;

    async fn from_request_parts(parts: &mut Parts, state: &AppState) -> Result<Self, Refused> {
        if state.orders.tenants().is_admin(shown(&parts.headers).unwrap_or_default()) {
            Visit::note_operator(&parts.extensions);
            return Ok(Self(None));
        }
        Tenanted::from_request_parts(parts, state).await.map(|Tenanted(caller)| Self(Some(caller)))
    }
}

/// The order that the path names. What is no id names no order.
pub(super) struct Id(pub(super) OrderId);

impl FromRequestParts<AppState> for Id {
    type Rejection = Refused;

    async fn from_request_parts(parts: &mut Parts, state: &AppState) -> Result<Self, Refused> {
        let path: Result<Path<String>, PathRejection> = Path::from_request_parts(parts, state).await;
        let id = path.ok().and_then(|Path(text)| text.parse().ok());
        id.map(Self).ok_or_else(|| Code::UnknownOrder.because("An id is a whole number from 1 to 2^53."))
    }
}

/// An order that a path names by its key.
pub(super) struct ByKey(pub(super) Key);

impl FromRequestParts<AppState> for ByKey {
    type Rejection = Refused;

    async fn from_request_parts(parts: &mut Parts, state: &AppState) -> Result<Self, Refused> {
        let path: Result<Path<String>, PathRejection> = Path::from_request_parts(parts, state).await;
        let key = path.ok().and_then(|Path(text)| Key::parse(&text).ok());
        key.map(Self).ok_or_else(|| Code::UnknownOrder.because("A key is 64 hexadecimal digits."))
    }
}

/// What the `Prefer` header asks for (RFC 7240). What makes no sense in it is passed over, as the standard wants.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Prefer {
    wait_s: Option<u64>,
    pub(super) is_strict: bool,
}

impl Prefer {
    fn read(headers: &HeaderMap) -> Self {
        let mut prefer = Self::default();
        let lines = headers.get_all("prefer").iter().filter_map(|value| value.to_str().ok());
        for request in lines.flat_map(|line| line.split(',')) {
            // What follows a semicolon are parameters, and nobody has any for these two.
            let request = request.split(';').next().unwrap_or_default();
            let (name, value) = request.split_once('=').unwrap_or((request, ""));
            let value = value.trim().trim_matches('"');
            match name.trim().to_ascii_lowercase().as_str() {
                "wait" if prefer.wait_s.is_none() => {
                    prefer.wait_s = value.parse().ok().map(|wait: u64| wait.min(WAIT_MAX_S));
                }
                "handling" => prefer.is_strict |= value.eq_ignore_ascii_case("strict"),
                _ => {}
            }
        }
        prefer
    }

    pub(super) fn timeout(self) -> Duration {
        Duration::from_secs(self.wait_s.unwrap_or_default())
    }

    /// Which of his wishes were heard.
    pub(super) fn applied(self) -> Option<String> {
        let wait = self.wait_s.map(|wait| format!("wait={wait}"));
        let strict = self.is_strict.then(|| "handling=strict".to_owned());
        let applied: Vec<_> = wait.into_iter().chain(strict).collect();
        (!applied.is_empty()).then(|| applied.join(", "))
    }
}

impl FromRequestParts<AppState> for Prefer {
    type Rejection = Refused;

    async fn from_request_parts(parts: &mut Parts, _room: &AppState) -> Result<Self, Refused> {
        Ok(Self::read(&parts.headers))
    }
}

/// The key under which the caller can repeat himself.
pub(super) struct Chosen(pub(super) Option<String>);

impl FromRequestParts<AppState> for Chosen {
    type Rejection = Refused;

    async fn from_request_parts(parts: &mut Parts, _room: &AppState) -> Result<Self, Refused> {
        let key = order_options::key_in_header(&parts.headers);
        key.map(Self).map_err(|bad| Refused::bad("Idempotency-Key", bad.to_string()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hyper::header::HeaderValue;

    fn prefer(lines: &[&'static str]) -> Prefer {
        let mut headers = HeaderMap::new();
        for line in lines {
            headers.append("prefer", HeaderValue::from_static(line));
        }
        Prefer::read(&headers)
    }

    #[test]
    fn preferences_are_read_wherever_they_stand_and_nonsense_is_passed_over() {
        let both = Prefer { wait_s: Some(20), is_strict: true };
        assert_eq!(prefer(&["wait=20, handling=strict"]), both);
        assert_eq!(prefer(&["respond-async; x=1, WAIT = \"20\"", "Handling=STRICT;a"]), both);
        assert_eq!(both.applied().as_deref(), Some("wait=20, handling=strict"));
        for odd in ["", "wait", "wait=-1", "wait=x", "wait=1.5", "handling=lenient", ",,;=,", "=wait"] {
            assert_eq!(prefer(&[odd]), Prefer::default(), "{odd}");
        }
        assert_eq!(prefer(&["wait=99999"]).timeout(), Duration::from_secs(WAIT_MAX_S));
        assert_eq!(Prefer::default().applied(), None);
    }
}
