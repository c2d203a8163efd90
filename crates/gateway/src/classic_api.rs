//! The classic API: `in.php`, `res.php` and `solve.php`, exact to the byte, because real clients compare whole
//! bodies. It only translates; the order service decides what a caller may do and see.
//!
//! Every response of the protocol has status 200. For an order that may be paid, the worst response to a poll is "not
//! ready".

mod actions;
mod response_format;
mod unread_classic;

use crate::api::{self, ApiRequest, Body};
use crate::codes;
use crate::gateway::PLAIN;
use crate::order_options::{self, BadOption, OptionFields};
use crate::orders::{Accepted, NotSeen, OrderRequest, OrderService, OrderView};
use crate::route::ClassicPage;
use crate::tenant::Caller;
use hyper::header::{ALLOW, AUTHORIZATION, HeaderValue};
use hyper::{Method, Response, StatusCode};
use quittance_engine::Outcome;
use quittance_http_server::SenderSlot;
use quittance_lifecycle::{Draft, Value};
use quittance_ports::StoreError;
use quittance_protocol::Dialect;
use quittance_protocol::classic::code::CodePlace;
use quittance_protocol::classic::{BadForm, Form, Part, method};
use quittance_webhooks::WebhookFormat;
use response_format::ResponseFormat;
use std::fmt;
use std::time::Duration;
pub(crate) use unread_classic::{forbid, refuse_unread};

/// How long a placement can take. Some clients hang up after five seconds; an order that is on record by then is not
/// lost.
const PLACE_WAIT: Duration = Duration::from_secs(4);
/// How long `solve.php` waits for its answer. Most clients and proxies hang up after a minute.
const SOLVE_WAIT: Duration = Duration::from_secs(55);

type ClassicReply = Result<Response<Body>, ClassicRefusal>;

/// Why a request gets no answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ClassicRefusal {
    /// The code of the protocol: the whole reply in plain text.
    code: String,
    /// The true reason in our own words, for clients that read JSON (`error_text`).
    reason: Option<String>,
}

impl<T: AsRef<str>> From<T> for ClassicRefusal {
    fn from(code: T) -> Self {
        Self { code: codes::in_classic(code.as_ref()).to_owned(), reason: None }
    }
}

impl ClassicRefusal {
    fn because(code: impl AsRef<str>, reason: impl fmt::Display) -> Self {
        Self { reason: Some(reason.to_string()), ..Self::from(code) }
    }

    /// The refusal for an order without an answer for its caller.
    fn of_outcome(outcome: &Outcome) -> Self {
        Self { reason: codes::reason_of_outcome(outcome), ..Self::from(codes::code_of_outcome(outcome)) }
    }
}

/// The reply of `load.php`: never busy, because the load of the provider is not known.
const LOAD: &str = "<waiting>0</waiting><load>0</load><minbid>0</minbid>\
    <averageRecognitionTime>0</averageRecognitionTime>";

pub(crate) struct ClassicApi {
    orders: OrderService,
    /// The dialect of callers that select none, if the operator has set one.
    dialect: Option<Dialect>,
}

impl ClassicApi {
    pub(crate) fn new(orders: OrderService, dialect: Option<Dialect>) -> Self {
        Self { orders, dialect }
    }

    pub(crate) async fn answer(&self, page: ClassicPage, request: &mut ApiRequest) -> Response<Body> {
        if request.head.method != Method::GET && request.head.method != Method::POST {
            let mut response = api::answer(StatusCode::METHOD_NOT_ALLOWED, PLAIN, codes::BAD_PARAMETERS);
            response.headers_mut().insert(ALLOW, HeaderValue::from_static("GET, POST"));
            return response;
        }
        let (form, mut doubled) =
            match Form::read_with_doubles(request.query(), request.content_type(), &request.body) {
                Ok(read) => read,
                Err(bad @ (BadForm::Document(_) | BadForm::Shape { .. } | BadForm::KeyNumber { .. })) => {
                    return unread_classic::refuse(
                        request,
                        &ClassicRefusal::because(codes::BAD_PARAMETERS, bad),
                    );
                }
                Err(BadForm::Malformed { .. }) if page == ClassicPage::Res => {
                    return unread_classic::refuse(request, &codes::BAD_PARAMETERS.into());
                }
                Err(BadForm::Malformed { .. }) => {
                    return unread_classic::refuse(request, &"ERROR_UPLOAD".into());
                }
            };
        doubled.retain(|name| decides(name));
        request.drop_large_body();
        let format = ResponseFormat::of(&form);
        let response = match page {
            ClassicPage::In if form.text("method") == Some("get_server_errors") => {
                Ok(format.bare(&server_errors()))
            }
            ClassicPage::In | ClassicPage::Solve if !doubled.is_empty() => {
                Err(bad_option(BadOption::SentTwice { field: doubled.pop_first().unwrap_or_default() }))
            }
            ClassicPage::In => self.submit(request, form, &format).await,
            ClassicPage::Solve => self.solve(request, form, &format).await,
            ClassicPage::Res => self.act(request, &form, &format).await,
            ClassicPage::Load => Ok(format.xml(LOAD)),
        };
        response.unwrap_or_else(|why| format.refuse(&why))
    }

    /// The caller by its key: in the form, or in the header that other services use.
    fn caller(&self, asked: &ApiRequest, form: &Form) -> Result<Caller, ClassicRefusal> {
        let in_head = || {
            let header = asked.head.headers.get(AUTHORIZATION)?.to_str().ok()?;
            let (scheme, key) = header.split_once(' ')?;
            scheme.eq_ignore_ascii_case("bearer").then_some(key)
        };
        let key = form.text("key").or_else(in_head).map_or("", str::trim);
        let extensions = &asked.head.extensions;
        let caller = self.orders.tenants().caller(key);
        match &caller {
            Ok(caller) => SenderSlot::note_tenant(extensions, caller.tenant.name()),
            // Where any key will do, there is none to guess.
            Err(_) if self.orders.tenants().is_open() => {}
            Err(_) => SenderSlot::note_wrong(extensions, key, self.orders.wrong_keys()),
        }
        caller.map_err(|why| codes::code_of_not_known(why).into())
    }

    async fn submit(&self, request: &ApiRequest, form: Form, format: &ResponseFormat) -> ClassicReply {
        let caller = self.caller(request, &form)?;
        let order = self.order_request(request, &caller, form)?;
        let accepted = self.place(caller, order).await?;
        Ok(api::with_origin(format.ok(&accepted.id.to_string()), &accepted))
    }

    fn order_request(
        &self,
        asked: &ApiRequest,
        caller: &Caller,
        mut form: Form,
    ) -> Result<OrderRequest, ClassicRefusal> {
        let fields = take_options(&mut form).map_err(bad_option)?;
        let wanted = method::understand(&form)
            .map_err(|bad| ClassicRefusal::because(codes::code_of_bad_method(&bad), &bad))?;
        let draft = fields.draft(&asked.head.headers).map_err(bad_option)?;
        let dialect = asked.dialect.or(caller.tenant.settings.dialect).or(self.dialect);
        let format = WebhookFormat::Classic(dialect.unwrap_or(Dialect::TwoCaptcha));
        let webhook = form.text("pingback").map(|url| (url.trim().to_owned(), format));
        Ok(OrderRequest {
            kind: wanted.kind,
            draft: Draft { params: wanted.params, ..draft },
            webhook,
            is_strict: false,
        })
    }

    async fn place(&self, caller: Caller, request: OrderRequest) -> Result<Accepted, ClassicRefusal> {
        let placed = self.orders.place(caller, request, PLACE_WAIT).await;
        placed.map_err(|declined| ClassicRefusal::because(codes::code_of_declined(&declined), &declined))
    }

    /// The reply with the outcome of an order, and the remaining life of its answer.
    fn answer_with(
        &self,
        seen: &OrderView,
        response_format: &ResponseFormat,
        with_price: bool,
    ) -> Result<Response<Body>, ClassicRefusal> {
        let response = response_format.answer(seen, with_price)?;
        Ok(api::with_remaining_life(response, seen.outcome.remaining_life(self.orders.clock().now())))
    }

    /// Places an order for a picture and waits for its answer.
    async fn solve(
        &self,
        asked: &ApiRequest,
        form: Form,
        response_format: &ResponseFormat,
    ) -> Result<Response<Body>, ClassicRefusal> {
        let caller = self.caller(asked, &form)?;
        let request = self.order_request(asked, &caller, form)?;
        if !request.draft.params.values().any(|value| matches!(value, Value::Bytes(_))) {
            return Err("ERROR_UPLOAD".into());
        }
        let accepted = self.place(caller, request).await?;
        match self.orders.wait_for_accepted(&accepted, SOLVE_WAIT).await {
            Ok(seen) => self
                .answer_with(&seen, response_format, false)
                .map(|answer| api::with_origin(answer, &accepted)),
            Err(not_seen) => Err(code_of_not_seen(&not_seen)),
        }
    }
}

/// Whether a parameter changes what is ordered. Of the other parameters, the last value counts.
fn decides(name: &str) -> bool {
    name == "method" || order_options::field_named(name).is_some() || !method::CONTROL.contains(&name)
}

/// Takes the fields for Quittance itself out of the form.
fn take_options(form: &mut Form) -> Result<OptionFields, BadOption> {
    let mut fields = OptionFields::default();
    let names: Vec<String> =
        form.0.keys().filter(|name| order_options::field_named(name).is_some()).cloned().collect();
    for name in names {
        if let Some(part) = form.0.remove(&name) {
            fields.add(&name, || Ok(as_text(&part)))?;
        }
    }
    form.0.keys().try_for_each(|name| order_options::check_not_misspelt(name))?;
    Ok(fields)
}

fn bad_option(bad: BadOption) -> ClassicRefusal {
    ClassicRefusal::because(codes::BAD_PARAMETERS, bad)
}

/// The text of a part. Some clients upload every parameter as a file.
fn as_text(part: &Part) -> String {
    match part {
        Part::Text(text) => text.clone(),
        Part::File(bytes) => String::from_utf8_lossy(bytes).into_owned(),
    }
}

/// The code for an order that could not be read. If the store is down, the order may exist and be paid.
fn code_of_not_seen(not_seen: &NotSeen) -> ClassicRefusal {
    match not_seen {
        NotSeen::Unknown => codes::UNKNOWN_ID.into(),
        NotSeen::StoreAway(StoreError::Corrupt { .. }) => {
            ClassicRefusal::because(codes::DAMAGED, codes::DAMAGED_REASON)
        }
        NotSeen::StoreAway(StoreError::Unavailable { .. }) => codes::NOT_READY.into(),
    }
}

/// The codes that `in.php` can return.
fn server_errors() -> String {
    let codes = quittance_protocol::classic::ClassicCodes::of(Dialect::TwoCaptcha.classic_reply());
    let listed = codes.rows().filter(|row| row.place != CodePlace::Poll && !row.is_prefix);
    listed.map(|row| row.code).collect::<Vec<_>>().join("|")
}
