//! Responses of the JSON API to requests that did not reach it. They are never HTTP errors: clients would give up a task that may be
//! paid for.

use crate::api::{self, ApiRequest, Body};
use crate::codes;
use crate::server::RequestError;
use hyper::{Response, StatusCode};
use quittance_protocol::json::{JsonDialect, TaskId};
use serde_json::Value;

fn dialect(request: &ApiRequest, usual: Option<&str>) -> JsonDialect {
    let dialect = request.dialect.and_then(JsonDialect::parse).or_else(|| JsonDialect::parse(usual?));
    dialect.unwrap_or(JsonDialect::TwoCaptcha)
}

pub(super) fn json_code(request: &ApiRequest, usual: Option<&str>, code: &str, why: &str) -> Response<Body> {
    let body = quittance_protocol::json::error_because(dialect(request, usual), code, why);
    api::answer(StatusCode::OK, "application/json", body)
}

pub(super) fn json(request: &ApiRequest, usual: Option<&str>, why: RequestError) -> Response<Body> {
    let dialect = dialect(request, usual);
    let body = match why {
        RequestError::TooLarge => quittance_protocol::json::error(dialect, codes::TOO_BIG).1,
        RequestError::TooSlow | RequestError::Broken => {
            quittance_protocol::json::error(dialect, "ERROR_BAD_REQUEST").1
        }
        RequestError::Overloaded | RequestError::Panicked if request.path.starts_with("/getTaskResult") => {
            quittance_protocol::json::processing(dialect, task_of(&request.body))
        }
        RequestError::Overloaded | RequestError::Panicked => {
            quittance_protocol::json::error(dialect, codes::NO_SLOT).1
        }
    };
    api::answer(StatusCode::OK, "application/json", body)
}

/// The task id in the body: some dialects repeat it.
fn task_of(body: &[u8]) -> TaskId {
    let request: Option<Value> = serde_json::from_slice(body).ok();
    let named = request.and_then(|request| quittance_protocol::json::read_task_id(request.get("taskId")?));
    TaskId(named.unwrap_or_default())
}
