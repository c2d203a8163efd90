//! Responses of the JSON API to requests that did not reach it. They are never HTTP errors: clients would give up a task that may be
//! paid for.

use crate::api::{self, ApiRequest, Body};
use crate::codes;
use crate::server::RequestError;
use hyper::{Response, StatusCode};
use quittance_protocol::json::{Flavour, TaskId};
use serde_json::Value;

fn flavour(request: &ApiRequest, usual: Option<&str>) -> Flavour {
    let flavour = request.flavour.and_then(Flavour::parse).or_else(|| Flavour::parse(usual?));
    flavour.unwrap_or(Flavour::TwoCaptcha)
}

pub(super) fn json_code(request: &ApiRequest, usual: Option<&str>, code: &str, why: &str) -> Response<Body> {
    let body = quittance_protocol::json::error_because(flavour(request, usual), code, why);
    api::answer(StatusCode::OK, "application/json", body)
}

pub(super) fn json(request: &ApiRequest, usual: Option<&str>, why: RequestError) -> Response<Body> {
    let flavour = flavour(request, usual);
    let body = match why {
        RequestError::TooLarge => quittance_protocol::json::error(flavour, codes::TOO_BIG).1,
        RequestError::TooSlow | RequestError::Broken => {
            quittance_protocol::json::error(flavour, "ERROR_BAD_REQUEST").1
        }
        RequestError::Overloaded | RequestError::Panicked if request.path.starts_with("/getTaskResult") => {
            quittance_protocol::json::processing(flavour, task_of(&request.body))
        }
        RequestError::Overloaded | RequestError::Panicked => {
            quittance_protocol::json::error(flavour, codes::NO_SLOT).1
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
