//! Replies of the JSON API to requests that did not reach it. They are never HTTP errors: clients would give up a
//! task that may be paid.

use super::{JsonApi, in_json, speaks_json};
use crate::api::{ApiRequest, Body};
use crate::codes;
use crate::route::JsonMethod;
use hyper::Response;
use quittance_http_server::RequestError;
use quittance_protocol::Dialect;
use quittance_protocol::json::{self, TaskId};
use serde_json::Value;

impl JsonApi {
    /// The response to a request that is not allowed at all.
    pub(crate) fn forbid(&self, request: &ApiRequest, code: &str, why: &str) -> Response<Body> {
        in_json(json::error_because(self.dialect_unread(request).json_reply(), code, why))
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
            RequestError::TooLarge => json::error(dialect.json_reply(), codes::TOO_BIG).1,
            RequestError::TooSlow | RequestError::Broken => {
                json::error(dialect.json_reply(), "ERROR_BAD_REQUEST").1
            }
            RequestError::Overloaded | RequestError::Panicked if method == JsonMethod::Result => {
                json::processing(dialect.json_reply(), task_of(&request.body))
            }
            RequestError::Overloaded | RequestError::Panicked => {
                json::error(dialect.json_reply(), codes::NO_SLOT).1
            }
        })
    }

    /// The dialect of a request whose body was not read.
    fn dialect_unread(&self, request: &ApiRequest) -> Dialect {
        speaks_json(request.dialect).or(self.dialect).unwrap_or(Dialect::TwoCaptcha)
    }
}

/// The task id in the body: some dialects repeat it.
fn task_of(body: &[u8]) -> TaskId {
    let request: Option<Value> = serde_json::from_slice(body).ok();
    let named = request.and_then(|request| json::read_task_id(request.get("taskId")?));
    TaskId(named.unwrap_or_default())
}
