//! What every door is given and gives back: a request that has arrived whole, and an answer. A door never sees a socket,
//! a limit or a certificate.

use bytes::Bytes;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{Either, Full};
use hyper::header::{CONTENT_TYPE, HeaderValue};
use hyper::http::request::Parts;
use hyper::{Response, StatusCode};
use std::convert::Infallible;

/// Whole, for nearly everything; a stream, for live events.
pub(crate) type Body = Either<Full<Bytes>, UnsyncBoxBody<Bytes, Infallible>>;

/// A request that has arrived whole.
#[derive(Clone, Debug)]
pub(crate) struct Asked {
    pub(crate) head: Parts,
    /// The path without the flavour that may stand before it, as in `/capsolver/createTask`.
    pub(crate) path: String,
    /// That flavour, in small letters; one of [`FLAVOURS`].
    pub(crate) flavour: Option<&'static str>,
    pub(crate) body: Bytes,
}

/// What may stand before a path to say whose manners are expected.
pub(crate) const FLAVOURS: [&str; 5] = ["captchaai", "2captcha", "anticaptcha", "capsolver", "capmonster"];

impl Asked {
    pub(crate) fn query(&self) -> &str {
        self.head.uri.query().unwrap_or_default()
    }

    pub(crate) fn content_type(&self) -> Option<&str> {
        self.head.headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok())
    }
}

pub(crate) fn answer(
    status: StatusCode,
    content_type: &'static str,
    body: impl Into<Bytes>,
) -> Response<Body> {
    let mut response = Response::new(Either::Left(Full::new(body.into())));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    response
}
