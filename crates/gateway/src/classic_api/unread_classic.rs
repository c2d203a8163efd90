//! Responses of the classic API to requests that did not reach it or cannot be read. Their parameters are not parsed, so a search for
//! a few words in the query and the body decides whether they want JSON.

use super::ClassicRefusal;
use super::response_format::ResponseFormat;
use crate::api::{ApiRequest, Body};
use crate::codes;
use crate::route::ClassicPage;
use hyper::Response;
use quittance_http_server::{RequestError, SMALL_BODY_BYTES};

const JSON_WANTED: [&str; 5] =
    ["json=1", "\"json\":1", "\"json\": 1", "\"json\":\"1\"", "name=\"json\"\r\n\r\n1"];
const OPEN_WANTED: [&str; 3] = ["header_acao=1", "\"header_acao\":1", "\"header_acao\": 1"];
/// Words of requests for which `CAPCHA_NOT_READY` is no valid reply.
const NOT_POLLS: [&str; 4] = ["getbalance", "report", "pingback", "threadsinfo"];

/// The response to a request that could not be read or answered.
pub(crate) fn refuse_unread(page: ClassicPage, request: &ApiRequest, why: RequestError) -> Response<Body> {
    let is_poll = page == ClassicPage::Res && !NOT_POLLS.iter().any(|word| says(request, word));
    let code = match why {
        // The order may be paid for, and the caller only has to poll again.
        RequestError::Overloaded | RequestError::Panicked | RequestError::TooSlow | RequestError::Broken
            if is_poll =>
        {
            codes::NOT_READY
        }
        RequestError::Overloaded | RequestError::Panicked => codes::NO_SLOT,
        RequestError::TooLarge if is_poll => codes::BAD_PARAMETERS,
        RequestError::TooLarge => codes::TOO_BIG,
        RequestError::TooSlow | RequestError::Broken => "ERROR_UPLOAD",
    };
    refuse(request, &code.into())
}

/// The response to a request that is not allowed at all.
pub(crate) fn forbid(request: &ApiRequest, code: &str, why: &str) -> Response<Body> {
    refuse(request, &ClassicRefusal::because(code, why))
}

pub(super) fn refuse(request: &ApiRequest, code: &ClassicRefusal) -> Response<Body> {
    let sends_json = request.content_type().is_some_and(|kind| kind.contains("json"));
    let is_json = JSON_WANTED.iter().any(|word| says(request, word)) || sends_json;
    let is_open = OPEN_WANTED.iter().any(|word| says(request, word));
    ResponseFormat { is_json, is_open }.refuse(code)
}

/// Whether the query or the beginning of the body contains this word.
fn says(request: &ApiRequest, word: &str) -> bool {
    let body = request.body.get(..request.body.len().min(SMALL_BODY_BYTES)).unwrap_or_default();
    request.query().contains(word) || body.windows(word.len()).any(|window| window == word.as_bytes())
}
