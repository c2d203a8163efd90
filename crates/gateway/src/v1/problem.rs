//! Errors of the native API in one form (RFC 9457), with stable codes. The table is the only list of codes: the responses, the
//! pages that explain them and the OpenAPI document are made from it.

use axum::response::{IntoResponse, Response};
use hyper::header::{
    CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, LOCATION, RETRY_AFTER, WWW_AUTHENTICATE,
};
use hyper::{StatusCode, header};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::time::Duration;
use utoipa::ToSchema;
use utoipa::openapi::header::HeaderBuilder;
use utoipa::openapi::schema::{ObjectBuilder, Type};
use utoipa::openapi::{ContentBuilder, Ref, RefOr, ResponseBuilder};

macro_rules! codes {
    ($($variant:ident $name:literal $status:literal $title:literal, $hint:literal;)*) => {
        /// A stable error code of the native API.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Code { $($variant),* }

        impl Code {
            pub const ALL: &'static [Self] = &[$(Self::$variant),*];

            pub const fn name(self) -> &'static str {
                match self { $(Self::$variant => $name),* }
            }

            pub const fn status(self) -> u16 {
                match self { $(Self::$variant => $status),* }
            }

            pub const fn title(self) -> &'static str {
                match self { $(Self::$variant => $title),* }
            }

            pub const fn hint(self) -> &'static str {
                match self { $(Self::$variant => $hint),* }
            }
        }
    };
}

/// The meaning of an error code of `/v1`: its HTTP status, its title and what to do.
#[must_use]
pub fn native_code(name: &str) -> Option<(u16, &'static str, &'static str)> {
    let code = Code::ALL.iter().find(|code| code.name() == name)?;
    Some((code.status(), code.title(), code.hint()))
}

codes! {
    BadJson "bad_json" 400 "The body is not JSON",
        "Send one JSON document in UTF-8.";
    Unauthorized "unauthorized" 401 "No valid key",
        "Send your key as `Authorization: Bearer KEY` or as `X-Api-Key: KEY`.";
    Forbidden "forbidden" 403 "This key has no access",
        "Use the operator's key for operator endpoints, and a tenant's key for all others.";
    TargetNotAllowed "target_not_allowed" 403 "This site may not be automated",
        "If you have the right to automate this site, ask the operator to allow its host.";
    KindNotAllowed "kind_not_allowed" 403 "This kind is not allowed for this key",
        "Ask the operator to allow the kind for your key.";
    NotFound "not_found" 404 "Nothing exists at this path",
        "GET /v1 lists the endpoints.";
    UnknownOrder "unknown_order" 404 "Order not found",
        "The order may have been removed some time after its end, or it belongs to another tenant.";
    UnknownPool "unknown_pool" 404 "Pool not found",
        "GET /v1/pools lists the pools.";
    UnknownProvider "unknown_provider" 404 "Provider not found",
        "GET /v1/admin/providers lists the providers.";
    UnknownBulk "unknown_bulk" 404 "Bulk action not found",
        "GET /v1/admin/dead/bulk lists the bulk actions in progress and those of the last day; `quittance dead stop` without a number stops all.";
    UnknownAlert "unknown_alert" 404 "Alert not found",
        "GET /v1/admin/alerts lists active alerts and those of the last day.";
    MethodNotAllowed "method_not_allowed" 405 "Method not allowed",
        "The Allow header lists the allowed methods.";
    InFlight "in_flight" 409 "The same order is still in flight",
        "Read the order at the address in Location, or omit `Prefer: handling=strict` to join it.";
    NeedsAPerson "needs_a_person" 409 "This order is a dead letter; it may have been paid",
        "Ask the operator to replay or drop the dead letter. An unreadable one can only be dropped.";
    Unreadable "unreadable" 409 "The record of this order cannot be read",
        "The order cannot be replayed. POST /v1/admin/dead/{key}/drop removes the record and frees its key, unless a later version wrote it.";
    CannotDrop "cannot_drop" 409 "This record cannot be removed here",
        "`detail` says why. To drop a record that a later version wrote, use that version or a later one.";
    AlreadyOver "already_over" 409 "The order has already ended",
        "Read the order; it can no longer be cancelled.";
    Contradicted "contradicted" 409 "The opposite was reported before",
        "The first report counts.";
    NothingToReport "nothing_to_report" 409 "The order has no answer to report on",
        "Send the report when the order is solved.";
    NotDead "not_dead" 409 "The order is not a dead letter",
        "GET /v1/admin/dead lists the dead letters.";
    PoolBusy "pool_busy" 409 "Another request is changing the same pool",
        "Read the pool, and send the change again.";
    SameTarget "same_target" 409 "Another pool has the same target",
        "Change the other pool, or remove it first.";
    TooManyPools "too_many_pools" 409 "Too many pools",
        "Remove a pool first.";
    TooManyBulks "too_many_bulks" 409 "Too many bulk actions in progress",
        "Wait until a bulk action has ended, or stop one.";
    NoConfig "no_config" 409 "This process reads no configuration",
        "Send the request to a daemon (`quittance serve`).";
    AnswerExpired "answer_expired" 410 "The answer under this key has expired",
        "Use another Idempotency-Key to buy a new answer. The same key never buys again.";
    WrongContentType "wrong_content_type" 415 "The content type is not JSON",
        "Send `Content-Type: application/json`.";
    BadParams "bad_params" 422 "A value in the request is invalid",
        "`detail` says what is wrong, and `field` where. GET /v1/kinds lists the parameters of each kind.";
    BadCallback "bad_callback" 422 "This callback address is not allowed",
        "Use a public http or https address, or ask the operator to allow this one.";
    IdempotencyMismatch "idempotency_mismatch" 422 "This key belongs to another order",
        "Use another Idempotency-Key for another order.";
    HeldBack "held_back" 422 "The provider rejected the same order a moment ago",
        "Fix what `provider_code` names, or wait before you retry.";
    TooLate "too_late" 422 "No answer would come in time",
        "Send a longer `deadline_s`: `detail` says how long the quickest of the last answers took.";
    ConfigRefused "config_refused" 422 "The configuration cannot be used",
        "Nothing has changed. `detail` has each error with its setting and its line: fix them, and reload again.";
    RateLimited "rate_limited" 429 "Too many orders per unit of time",
        "Wait for the seconds in Retry-After, then retry.";
    TooManyOpen "too_many_open" 429 "Too many open orders",
        "Wait until an order ends, or ask the operator for a higher limit.";
    TooManyWebhooks "too_many_webhooks" 429 "Too many webhooks for this order",
        "The order continues: read it instead of waiting for a webhook.";
    TooManyStreams "too_many_streams" 429 "Too many live streams",
        "Close a stream, or read the order with `Prefer: wait=N`.";
    BrokenBody "broken_body" 400 "The body is incomplete",
        "Send the complete request again.";
    TooSlow "too_slow" 408 "The body did not arrive in time",
        "Send the request again.";
    TooLarge "too_large" 413 "The body is too large",
        "Send a smaller file.";
    Overloaded "overloaded" 429 "Too many requests in progress",
        "Wait for the seconds in Retry-After, then retry.";
    Internal "internal" 500 "Internal error",
        "Retry with the same Idempotency-Key: nothing is paid twice. Please report this bug.";
    QueueTooLong "queue_too_long" 503 "The queue to the provider is longer than the order's timeout",
        "Wait for the seconds in Retry-After, then retry, or send a longer `deadline_s`.";
    BudgetSpent "budget_spent" 429 "A budget for this order allows no purchase",
        "Wait for the seconds in Retry-After: then the next period begins. Or ask the operator to raise the limit.";
    StoreUnavailable "store_unavailable" 503 "The store is not available",
        "Retry with the same Idempotency-Key: nothing is paid twice.";
}

impl Code {
    pub fn page(self) -> String {
        format!("/v1/errors/{}", self.name())
    }

    /// Whether the response can have a `Retry-After`.
    const fn may_say_when(self) -> bool {
        matches!(self.status(), 429 | 503) || matches!(self, Self::HeldBack | Self::InFlight)
    }
}

/// Why a request was refused (RFC 9457).
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct Problem {
    /// Address of the page that explains the code.
    #[serde(rename = "type")]
    #[schema(pattern = "^/v1/errors/[a-z_]+$")]
    pub about: String,
    #[schema(value_type = String)]
    pub title: Cow<'static, str>,
    #[schema(minimum = 400, maximum = 599)]
    pub status: u16,
    /// Stable code, for programs; the texts may change.
    #[schema(pattern = "^[a-z_]+$", value_type = String)]
    pub code: Cow<'static, str>,
    pub detail: String,
    #[schema(value_type = String)]
    pub hint: Cow<'static, str>,
    /// Field of the request that is wrong.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub field: Option<String>,
    /// The provider's own error code.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub provider_code: Option<String>,
}

/// A refused request: the code, and the details of this request.
#[derive(Debug)]
pub struct Refused {
    code: Code,
    detail: Option<String>,
    field: Option<String>,
    provider_code: Option<String>,
    again_in: Option<Duration>,
    location: Option<String>,
}

impl Code {
    pub const fn plain(self) -> Refused {
        Refused { code: self, detail: None, field: None, provider_code: None, again_in: None, location: None }
    }

    pub fn because(self, detail: impl Into<String>) -> Refused {
        Refused { detail: Some(detail.into()), ..self.plain() }
    }
}

impl Refused {
    pub fn bad(field: &str, detail: impl Into<String>) -> Self {
        Code::BadParams.because(detail).at(field)
    }

    /// Sets the name of the wrong field, cut to a useful length.
    pub fn at(mut self, field: &str) -> Self {
        self.field = Some(field.chars().take(128).collect());
        self
    }

    pub fn with_provider_code(mut self, provider_code: String) -> Self {
        self.provider_code = Some(provider_code);
        self
    }

    pub fn again_in(mut self, span: Duration) -> Self {
        self.again_in = Some(span);
        self
    }

    pub fn see(mut self, location: String) -> Self {
        self.location = Some(location);
        self
    }
}

/// `Retry-After` in whole seconds, rounded up, so that a retry is not too early.
pub fn retry_after(span: Duration) -> HeaderValue {
    HeaderValue::from(span.as_millis().div_ceil(1000).clamp(1, 86_400) as u64)
}

impl Refused {
    pub fn parts(self) -> (StatusCode, HeaderMap, String) {
        let Self { code, detail, field, provider_code, again_in, location } = self;
        let problem = Problem {
            about: code.page(),
            title: code.title().into(),
            status: code.status(),
            code: code.name().into(),
            detail: detail.unwrap_or_else(|| format!("{}.", code.title())),
            hint: code.hint().into(),
            field,
            provider_code,
        };
        let status = StatusCode::from_u16(code.status()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/problem+json"));
        if let Some(span) = again_in {
            headers.insert(RETRY_AFTER, retry_after(span));
        }
        if let Some(location) = location.and_then(|location| HeaderValue::try_from(location).ok()) {
            headers.insert(LOCATION, location);
        }
        if code == Code::Unauthorized {
            headers.insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer realm=\"quittance\""));
        }
        (status, headers, super::json_text(&problem))
    }
}

impl IntoResponse for Refused {
    fn into_response(self) -> Response {
        self.parts().into_response()
    }
}

/// The description of these codes in the OpenAPI document: one response for each status.
pub fn responses(codes: &[Code]) -> BTreeMap<String, RefOr<utoipa::openapi::Response>> {
    let mut by_status: BTreeMap<u16, Vec<Code>> = BTreeMap::new();
    for code in codes {
        by_status.entry(code.status()).or_default().push(*code);
    }
    by_status.into_iter().map(|(status, codes)| (status.to_string(), response(&codes).into())).collect()
}

fn response(codes: &[Code]) -> utoipa::openapi::Response {
    let names: Vec<_> = codes.iter().map(|code| format!("`{}`: {}", code.name(), code.title())).collect();
    let content = ContentBuilder::new().schema(Some(Ref::from_schema_name("Problem"))).build();
    let mut response =
        ResponseBuilder::new().description(names.join("; ")).content("application/problem+json", content);
    let mut declare = |name: &HeaderName, kind: Type, words: &str| {
        let schema = ObjectBuilder::new().schema_type(kind).build();
        let header = HeaderBuilder::new().schema(schema).description(Some(words)).build();
        response = std::mem::take(&mut response).header(name.as_str(), header);
    };
    if codes.iter().any(|code| code.may_say_when()) {
        declare(&RETRY_AFTER, Type::Integer, "Seconds to wait before a retry.");
    }
    if codes.contains(&Code::InFlight) {
        declare(&LOCATION, Type::String, "Address of the order in flight.");
    }
    if codes.contains(&Code::Unauthorized) {
        declare(&header::WWW_AUTHENTICATE, Type::String, "How to send a key.");
    }
    response.build()
}

/// Describes the codes that an operation can respond with, besides those of all operations.
#[macro_export]
macro_rules! problems {
    ($name:ident $(: $($code:ident),* $(,)?)?) => {
        pub(crate) struct $name;

        impl utoipa::IntoResponses for $name {
            fn responses() -> std::collections::BTreeMap<
                String,
                utoipa::openapi::RefOr<utoipa::openapi::Response>,
            > {
                use $crate::v1::problem::Code;
                $crate::v1::problem::responses(&[$($(Code::$code,)*)? Code::Overloaded, Code::Internal])
            }
        }
    };
}
#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_has_a_name_of_its_own_and_says_what_to_do() {
        for (n, code) in Code::ALL.iter().enumerate() {
            assert!(Code::ALL[..n].iter().all(|other| other.name() != code.name()), "{code:?}");
            assert!(code.name().bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_'), "{code:?}");
            assert!(StatusCode::from_u16(code.status()).is_ok_and(|status| status.as_u16() >= 400));
            assert!(code.hint().ends_with('.'), "{code:?}");
        }
    }
}
