//! What a request is told that did not reach the JSON door, in the words of that door. It is never an HTTP error: clients
//! would give up a task that may be paid for.

use crate::api::{self, ApiRequest, Body};
use crate::codes;
use crate::server::RequestError;
use hyper::{Response, StatusCode};
use quittance_protocol::json::{Flavour, TaskId};
use serde_json::Value;

fn flavour(asked: &ApiRequest, usual: Option<&str>) -> Flavour {
    let flavour = asked.flavour.and_then(Flavour::parse).or_else(|| Flavour::parse(usual?));
    flavour.unwrap_or(Flavour::TwoCaptcha)
}

pub(super) fn json_code(asked: &ApiRequest, usual: Option<&str>, code: &str, why: &str) -> Response<Body> {
    let body = quittance_protocol::json::error_because(flavour(asked, usual), code, why);
    api::answer(StatusCode::OK, "application/json", body)
}

pub(super) fn json(asked: &ApiRequest, usual: Option<&str>, why: RequestError) -> Response<Body> {
    let flavour = flavour(asked, usual);
    let body = match why {
        RequestError::TooLarge => quittance_protocol::json::error(flavour, codes::TOO_BIG).1,
        RequestError::TooSlow | RequestError::Broken => {
            quittance_protocol::json::error(flavour, "ERROR_BAD_REQUEST").1
        }
        RequestError::Overloaded | RequestError::Panicked if asked.path.starts_with("/getTaskResult") => {
            quittance_protocol::json::processing(flavour, task_of(&asked.body))
        }
        RequestError::Overloaded | RequestError::Panicked => {
            quittance_protocol::json::error(flavour, codes::NO_SLOT).1
        }
    };
    api::answer(StatusCode::OK, "application/json", body)
}

/// The task that was asked for, where a flavour names it again.
fn task_of(body: &[u8]) -> TaskId {
    let asked: Option<Value> = serde_json::from_slice(body).ok();
    let named = asked.and_then(|asked| quittance_protocol::json::read_task_id(asked.get("taskId")?));
    TaskId(named.unwrap_or_default())
}
