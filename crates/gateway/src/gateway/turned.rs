//! What a request is told that did not reach the JSON door, in the words of that door. It is never an HTTP error: clients
//! would give up a task that may be paid for.

use crate::codes;
use crate::door::{self, Asked, Body};
use crate::server::Turned;
use hyper::{Response, StatusCode};
use quittance_json::{Flavour, TaskId};
use serde_json::Value;

fn flavour(asked: &Asked, usual: Option<&str>) -> Flavour {
    let flavour = asked.flavour.and_then(Flavour::parse).or_else(|| Flavour::parse(usual?));
    flavour.unwrap_or(Flavour::TwoCaptcha)
}

pub(super) fn json_code(asked: &Asked, usual: Option<&str>, code: &str, why: &str) -> Response<Body> {
    let body = quittance_json::error_because(flavour(asked, usual), code, why);
    door::answer(StatusCode::OK, "application/json", body)
}

pub(super) fn json(asked: &Asked, usual: Option<&str>, why: Turned) -> Response<Body> {
    let flavour = flavour(asked, usual);
    let body = match why {
        Turned::TooLarge => quittance_json::error(flavour, codes::TOO_BIG).1,
        Turned::TooSlow | Turned::Broken => quittance_json::error(flavour, "ERROR_BAD_REQUEST").1,
        Turned::Overloaded | Turned::Panicked if asked.path.starts_with("/getTaskResult") => {
            quittance_json::processing(flavour, task_of(&asked.body))
        }
        Turned::Overloaded | Turned::Panicked => quittance_json::error(flavour, codes::NO_SLOT).1,
    };
    door::answer(StatusCode::OK, "application/json", body)
}

/// The task that was asked for, where a flavour names it again.
fn task_of(body: &[u8]) -> TaskId {
    let asked: Option<Value> = serde_json::from_slice(body).ok();
    let named = asked.and_then(|asked| quittance_json::read_task_id(asked.get("taskId")?));
    TaskId(named.unwrap_or_default())
}
