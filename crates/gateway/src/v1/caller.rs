//! The caller of a request, by its key, and other headers: whether the request waits, and its idempotency key.

use super::problem::{Code, Refused};
use crate::{Caller, OrderId, OrderService, order_options};
use axum::extract::rejection::PathRejection;
use axum::extract::{FromRef, FromRequestParts, Path};
use axum::http::request::Parts;
use hyper::header::{AUTHORIZATION, HeaderMap};
use quittance_http_server::SenderSlot;
use std::time::Duration;

/// The longest that one request may wait.
pub(super) const WAIT_MAX_S: u64 = 300;

/// The key in the headers, if any.
pub(crate) fn key_in_headers(headers: &HeaderMap) -> Option<&str> {
    let bearer = headers.get(AUTHORIZATION).and_then(|value| value.to_str().ok()).and_then(|value| {
        let (scheme, key) = value.split_once(' ')?;
        scheme.eq_ignore_ascii_case("bearer").then_some(key.trim())
    });
    bearer.or_else(|| headers.get("x-api-key")?.to_str().ok())
}

/// The sender of a request, by its key.
struct Sender {
    key: Option<String>,
    /// The tenant of the key.
    caller: Option<Caller>,
    is_operator: bool,
}

impl Sender {
    fn of(parts: &Parts, orders: &OrderService) -> Self {
        let key = key_in_headers(&parts.headers);
        Self {
            key: key.map(str::to_owned),
            caller: key.and_then(|key| orders.tenants().caller(key).ok()),
            is_operator: orders.tenants().is_admin(key.unwrap_or_default()),
        }
    }

    fn unknown(&self, parts: &Parts, orders: &OrderService) -> Refused {
        let Some(key) = &self.key else { return Code::Unauthorized.because("No key was sent.") };
        SenderSlot::note_wrong(&parts.extensions, key, orders.wrong_keys());
        Code::Unauthorized.because("This key is not known.")
    }
}

/// A request of a tenant.
pub(super) struct Tenanted(pub(super) Caller);

impl<S> FromRequestParts<S> for Tenanted
where
    OrderService: FromRef<S>,
    S: Send + Sync,
{
    type Rejection = Refused;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Refused> {
        let orders = OrderService::from_ref(state);
        let mut sender = Sender::of(parts, &orders);
        if let Some(caller) = sender.caller.take().or_else(|| orders.tenants().local()) {
            SenderSlot::note_tenant(&parts.extensions, caller.tenant.name());
            return Ok(Self(caller));
        }
        if sender.is_operator {
            SenderSlot::note_operator(&parts.extensions);
            return Err(Code::Forbidden.because("This is the operator's key. It places and reads no orders."));
        }
        Err(sender.unknown(parts, &orders))
    }
}

/// A request of the operator.
#[derive(Clone, Copy, Debug)]
pub struct Operator;

impl<S> FromRequestParts<S> for Operator
where
    OrderService: FromRef<S>,
    S: Send + Sync,
{
    type Rejection = Refused;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Refused> {
        let orders = OrderService::from_ref(state);
        let sender = Sender::of(parts, &orders);
        if sender.is_operator {
            SenderSlot::note_operator(&parts.extensions);
            return Ok(Self);
        }
        if let Some(caller) = &sender.caller {
            SenderSlot::note_tenant(&parts.extensions, caller.tenant.name());
            return Err(Code::Forbidden.because("This is a tenant's key, and the operator's is needed."));
        }
        Err(sender.unknown(parts, &orders))
    }
}

/// The watcher of a stream: a tenant, which sees its own orders, or (`None`) the operator, which sees all.
#[derive(Clone, Debug)]
pub struct Watcher(pub Option<Caller>);

impl<S> FromRequestParts<S> for Watcher
where
    OrderService: FromRef<S>,
    S: Send + Sync,
{
    type Rejection = Refused;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Refused> {
        if Sender::of(parts, &OrderService::from_ref(state)).is_operator {
            SenderSlot::note_operator(&parts.extensions);
            return Ok(Self(None));
        }
        Tenanted::from_request_parts(parts, state).await.map(|Tenanted(caller)| Self(Some(caller)))
    }
}

/// The order id in the path. An invalid id is an unknown order.
pub(super) struct Id(pub(super) OrderId);

impl<S: Send + Sync> FromRequestParts<S> for Id {
    type Rejection = Refused;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Refused> {
        let path: Result<Path<String>, PathRejection> = Path::from_request_parts(parts, state).await;
        let id = path.ok().and_then(|Path(text)| text.parse().ok());
        id.map(Self).ok_or_else(|| Code::UnknownOrder.because("An id is a whole number from 1 to 2^53."))
    }
}

/// The `Prefer` header (RFC 7240). Invalid parts are ignored, as the standard requires.
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
            // Parameters follow a semicolon; these two preferences have none.
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

    /// The preferences that were applied.
    pub(super) fn applied(self) -> Option<String> {
        let wait = self.wait_s.map(|wait| format!("wait={wait}"));
        let strict = self.is_strict.then(|| "handling=strict".to_owned());
        let applied: Vec<_> = wait.into_iter().chain(strict).collect();
        (!applied.is_empty()).then(|| applied.join(", "))
    }
}

impl<S: Sync> FromRequestParts<S> for Prefer {
    type Rejection = Refused;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Refused> {
        Ok(Self::read(&parts.headers))
    }
}

/// The idempotency key in the headers.
pub(super) struct Chosen(pub(super) Option<String>);

impl<S: Sync> FromRequestParts<S> for Chosen {
    type Rejection = Refused;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Refused> {
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
