//! The paths of the page for people. Another crate serves the files.

use super::PLAIN;
use crate::api::{self, Body};
use crate::server::RequestError;
use hyper::{Response, StatusCode};

/// Path of the page.
pub const PAGE_PATH: &str = "/page/";

/// Whether a path leads to the page. `/` is for browsers.
pub(super) fn is_for(path: &str) -> bool {
    path == "/" || path == "/page" || path.starts_with(PAGE_PATH)
}

/// The response to a request that could not be read.
pub(super) fn turn_away(why: RequestError) -> Response<Body> {
    let (status, words) = match why {
        RequestError::TooLarge => (StatusCode::PAYLOAD_TOO_LARGE, "Too large."),
        RequestError::TooSlow => (StatusCode::REQUEST_TIMEOUT, "Too slow."),
        RequestError::Broken => (StatusCode::BAD_REQUEST, "The request is incomplete."),
        RequestError::Overloaded => {
            (StatusCode::TOO_MANY_REQUESTS, "Too many requests. Try again in a moment.")
        }
        RequestError::Panicked => (StatusCode::INTERNAL_SERVER_ERROR, "Internal error."),
    };
    api::answer(status, PLAIN, words)
}
