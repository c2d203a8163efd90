//! Responses of the JSON API to requests that did not reach it. They are never HTTP errors: clients would give up a task that may be
//! paid for.

use super::{JsonApi, in_json};
use crate::api::{ApiRequest, Body};
use crate::codes;
use crate::route::JsonMethod;
use crate::server::RequestError;
use hyper::Response;
use quittance_protocol::Dialect;
use quittance_protocol::json::{self, Flavour, TaskId};
use serde_json::Value;

impl JsonApi {
    /// The response to a request that is not allowed at all.
    pub(crate) fn forbid(&self, request: &ApiRequest, code: &str, why: &str) -> Response<Body> {
        in_json(json::error_because(self.dialect_unread(request), code, why))
    }

    /// The response to a request that could not be read or answered.
    pub(crate) fn refuse_unread(
        &self,
        method: JsonMethod,
        request: &ApiRequest,
        why: RequestError,
    ) -> Response<Body> {
        let dialect = self.dialect_unread(request);
        in_json(match why {
            RequestError::TooLarge => json::error(dialect, codes::TOO_BIG).1,
            RequestError::TooSlow | RequestError::Broken => json::error(dialect, "ERROR_BAD_REQUEST").1,
            RequestError::Overloaded | RequestError::Panicked if method == JsonMethod::Result => {
                json::processing(dialect, task_of(&request.body))
            }
            RequestError::Overloaded | RequestError::Panicked => json::error(dialect, codes::NO_SLOT).1,
        })
    }

    /// The dialect of a request whose body was not read.
    fn dialect_unread(&self, request: &ApiRequest) -> Flavour {
        request.dialect.and_then(Dialect::flavour).or(self.flavour).unwrap_or(Flavour::TwoCaptcha)
    }
}

/// The task id in the body: some dialects repeat it.
fn task_of(body: &[u8]) -> TaskId {
    let request: Option<Value> = serde_json::from_slice(body).ok();
    let named = request.and_then(|request| json::read_task_id(request.get("taskId")?));
    TaskId(named.unwrap_or_default())
}
