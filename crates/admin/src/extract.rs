//! Extracts the order key from a path.

use axum::extract::rejection::PathRejection;
use axum::extract::{FromRequestParts, Path};
use axum::http::request::Parts;
use quittance_gateway::v1::problem::{Code, Refused};
use quittance_lifecycle::Key;

/// The order key in the path. An invalid key is an unknown order.
pub(crate) struct ByKey(pub(crate) Key);

impl<S: Send + Sync> FromRequestParts<S> for ByKey {
    type Rejection = Refused;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Refused> {
        let path: Result<Path<String>, PathRejection> = Path::from_request_parts(parts, state).await;
        let key = path.ok().and_then(|Path(text)| Key::parse(&text).ok());
        key.map(Self).ok_or_else(|| Code::UnknownOrder.because("A key is 64 hexadecimal digits."))
    }
}
