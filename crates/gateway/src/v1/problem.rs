//! What is told when something is not done, in one form (RFC 9457) and with codes that stay. The table is the only list of
//! them: the answers, the pages behind them and the OpenAPI document are made from it.

use axum::response::{IntoResponse, Response};
use hyper::header::{
    CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, LOCATION, RETRY_AFTER, WWW_AUTHENTICATE,
};
use hyper::{StatusCode, header};
use serde::Serialize;
use std::collections::BTreeMap;
use std::time::Duration;
use utoipa::ToSchema;
use utoipa::openapi::header::HeaderBuilder;
use utoipa::openapi::schema::{ObjectBuilder, Type};
use utoipa::openapi::{ContentBuilder, Ref, RefOr, ResponseBuilder};

macro_rules! codes {
    ($($variant:ident $name:literal $status:literal $title:literal, $hint:literal;)*) => {
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(super) enum Code { $($variant),* }

        impl Code {
            pub(super) const ALL: &'static [Self] = &[$(Self::$variant),*];

            pub(super) const fn name(self) -> &'static str {
                match self { $(Self::$variant => $name),* }
            }

            pub(super) const fn status(self) -> u16 {
                match self { $(Self::$variant => $status),* }
            }

            pub(super) const fn title(self) -> &'static str {
                match self { $(Self::$variant => $title),* }
            }

            pub(super) const fn hint(self) -> &'static str {
                match self { $(Self::$variant => $hint),* }
            }
        }
    };
}

codes! {
    BadJson "bad_json" 400 "The body is not JSON",
        "Send one JSON document in UTF-8.";
    Unauthorized "unauthorized" 401 "No valid key",
        "Send your key as `Authorization: Bearer KEY` or as `X-Api-Key: KEY`.";
    Forbidden "forbidden" 403 "This key may not do that",
        "The operator's endpoints take the operator's key, all others a tenant's.";
    TargetNotAllowed "target_not_allowed" 403 "This site may not be automated",
        "If you may automate it, ask the operator to allow its host.";
    KindNotAllowed "kind_not_allowed" 403 "This kind is not for this key",
        "Ask the operator to allow it for your key.";
    NotFound "not_found" 404 "There is nothing here",
        "GET /v1 says what there is.";
    UnknownOrder "unknown_order" 404 "There is no such order",
        "It may have been forgotten long after its end, or it is somebody else's.";
    UnknownPool "unknown_pool" 404 "There is no such pool",
        "GET /v1/pools lists those that there are.";
    UnknownBulk "unknown_bulk" 404 "There is no such bulk work",
        "GET /v1/admin/dead/bulk lists what is under way, and what ended within a day.";
    UnknownAlert "unknown_alert" 404 "There is no such alert",
        "GET /v1/admin/alerts lists those that stand, and those of the last day.";
    MethodNotAllowed "method_not_allowed" 405 "Not with this method",
        "The Allow header says which there are.";
    InFlight "in_flight" 409 "The same order is still in flight",
        "Read it under the address in Location, or leave out `Prefer: handling=strict` to join it.";
    NeedsAPerson "needs_a_person" 409 "Nobody knows whether this order was paid for",
        "It is among the dead letters: the operator replays or drops it; one that cannot be read is only dropped.";
    Unreadable "unreadable" 409 "The record of this order cannot be read",
        "It cannot be replayed. POST /v1/admin/dead/{key}/drop removes it and frees its key, unless a later version wrote it.";
    CannotDrop "cannot_drop" 409 "This record cannot be removed here",
        "`detail` says why. What a later version wrote is left for it: use that version, or a later one.";
    AlreadyOver "already_over" 409 "The order has come to its end",
        "Read it; there is nothing left to cancel.";
    Contradicted "contradicted" 409 "The opposite was reported before",
        "The first report counts.";
    NothingToReport "nothing_to_report" 409 "There is no answer to report on",
        "Report when the order is solved.";
    NotDead "not_dead" 409 "The order is no dead letter",
        "GET /v1/admin/dead lists those that are.";
    PoolBusy "pool_busy" 409 "Somebody else is changing the same pool",
        "Look at it, and send it again.";
    SameTarget "same_target" 409 "Another pool keeps the same target",
        "Change that one, or remove it first.";
    TooManyPools "too_many_pools" 409 "There is no room for another pool",
        "Remove one first.";
    TooManyBulks "too_many_bulks" 409 "There is no room for more bulk work",
        "Wait until some of it has ended, or stop some.";
    AnswerExpired "answer_expired" 410 "The answer under this key has expired",
        "It is not bought again in silence: use another Idempotency-Key to buy a new one.";
    WrongContentType "wrong_content_type" 415 "The body is not said to be JSON",
        "Send `Content-Type: application/json`.";
    BadParams "bad_params" 422 "Something that was asked makes no sense",
        "`detail` says what, and `field` where; GET /v1/kinds says what each kind takes.";
    BadCallback "bad_callback" 422 "This address is not called",
        "Give a public http or https address, or ask the operator to allow it.";
    IdempotencyMismatch "idempotency_mismatch" 422 "This key belongs to another order",
        "Use another Idempotency-Key for another order.";
    Refused "refused" 422 "The provider refused the same order a moment ago",
        "Mend what `provider_code` names, or wait before asking again.";
    RateLimited "rate_limited" 429 "Too many orders in too short a time",
        "Wait as long as Retry-After says.";
    TooManyOpen "too_many_open" 429 "Too many open orders",
        "Wait until one of them is done, or ask the operator for more.";
    TooManyListeners "too_many_listeners" 429 "Too many callers wait to be called about this order",
        "The order goes on: read it instead of being called.";
    TooManyStreams "too_many_streams" 429 "Too many live streams",
        "Close one, or read the order with `Prefer: wait=N`.";
    BrokenBody "broken_body" 400 "The body broke off",
        "Send it again, whole.";
    TooSlow "too_slow" 408 "The body did not come in time",
        "Send it again.";
    TooLarge "too_large" 413 "The body is too large",
        "Send a smaller file.";
    Overloaded "overloaded" 429 "Too many requests are being worked on",
        "Wait as long as Retry-After says.";
    Internal "internal" 500 "This should not have happened",
        "Ask again: with the same Idempotency-Key nothing is paid for twice. And tell us.";
    StoreUnavailable "store_unavailable" 503 "The store is away for the moment",
        "Ask again: with the same Idempotency-Key nothing is paid for twice.";
}

impl Code {
    pub(super) fn page(self) -> String {
        format!("/v1/errors/{}", self.name())
    }

    /// Whether its answers may say when to come back.
    const fn may_say_when(self) -> bool {
        matches!(self.status(), 429 | 503) || matches!(self, Self::Refused | Self::InFlight)
    }
}

/// Why something was not done (RFC 9457).
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Problem {
    /// Where the code is explained.
    #[serde(rename = "type")]
    #[schema(pattern = "^/v1/errors/[a-z_]+$")]
    about: String,
    title: &'static str,
    #[schema(minimum = 400, maximum = 599)]
    status: u16,
    /// It stays what it is, whatever the words beside it become.
    #[schema(pattern = "^[a-z_]+$")]
    code: &'static str,
    detail: String,
    hint: &'static str,
    /// Which field of what was sent is meant.
    #[serde(skip_serializing_if = "Option::is_none")]
    field: Option<String>,
    /// The provider's own word for it.
    #[serde(skip_serializing_if = "Option::is_none")]
    provider_code: Option<String>,
}

/// A problem on its way to the caller.
#[derive(Debug)]
pub(super) struct Refused {
    code: Code,
    detail: Option<String>,
    field: Option<String>,
    provider_code: Option<String>,
    again_in: Option<Duration>,
    location: Option<String>,
}

impl Code {
    pub(super) const fn plain(self) -> Refused {
        Refused { code: self, detail: None, field: None, provider_code: None, again_in: None, location: None }
    }

    pub(super) fn because(self, detail: impl Into<String>) -> Refused {
        Refused { detail: Some(detail.into()), ..self.plain() }
    }
}

impl Refused {
    pub(super) fn bad(field: &str, detail: impl Into<String>) -> Self {
        Code::BadParams.because(detail).at(field)
    }

    /// Names the field. What came from outside may be long.
    pub(super) fn at(mut self, field: &str) -> Self {
        self.field = Some(field.chars().take(128).collect());
        self
    }

    pub(super) fn said(mut self, provider_code: String) -> Self {
        self.provider_code = Some(provider_code);
        self
    }

    pub(super) fn again_in(mut self, span: Duration) -> Self {
        self.again_in = Some(span);
        self
    }

    pub(super) fn see(mut self, location: String) -> Self {
        self.location = Some(location);
        self
    }
}

/// Whole seconds, rounded up: whoever comes back then is not too early.
pub(super) fn retry_after(span: Duration) -> HeaderValue {
    HeaderValue::from(span.as_millis().div_ceil(1000).clamp(1, 86_400) as u64)
}

impl Refused {
    pub(super) fn parts(self) -> (StatusCode, HeaderMap, String) {
        let Self { code, detail, field, provider_code, again_in, location } = self;
        let problem = Problem {
            about: code.page(),
            title: code.title(),
            status: code.status(),
            code: code.name(),
            detail: detail.unwrap_or_else(|| format!("{}.", code.title())),
            hint: code.hint(),
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

/// What the document says of these codes: one response for each status.
pub(super) fn responses(codes: &[Code]) -> BTreeMap<String, RefOr<utoipa::openapi::Response>> {
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
        declare(&RETRY_AFTER, Type::Integer, "How many seconds to wait before asking again.");
    }
    if codes.contains(&Code::InFlight) {
        declare(&LOCATION, Type::String, "Where the order is that is in flight.");
    }
    if codes.contains(&Code::Unauthorized) {
        declare(&header::WWW_AUTHENTICATE, Type::String, "How to show a key.");
    }
    response.build()
}

/// Says which codes an operation can answer with, beside those that any can.
macro_rules! problems {
    ($name:ident $(: $($code:ident),* $(,)?)?) => {
        pub(super) struct $name;

        impl utoipa::IntoResponses for $name {
            fn responses() -> std::collections::BTreeMap<
                String,
                utoipa::openapi::RefOr<utoipa::openapi::Response>,
            > {
                use crate::v1::problem::Code;
                crate::v1::problem::responses(&[$($(Code::$code,)*)? Code::Overloaded, Code::Internal])
            }
        }
    };
}
pub(super) use problems;

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
