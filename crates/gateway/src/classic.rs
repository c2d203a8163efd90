//! The classic door: `in.php`, `res.php` and `solve.php`, exact to the byte, because real clients compare whole bodies. It
//! translates; what a caller may do and see is decided by the order service.
//!
//! Every answer of the protocol goes out with status 200, and whoever asks for an order that may be paid for is told at
//! worst that it is not ready.

mod actions;
mod dump;
mod pingbacks;
mod refusal;
mod response_format;

use crate::api::{self, ApiRequest, Body};
use crate::codes;
use crate::gateway::PLAIN;
use crate::order_options::{self, BadOption, OptionFields, OrderOptions};
use crate::orders::{Accepted, NotSeen, OrderRequest, OrderService, OrderView};
use crate::tenant::Caller;
use crate::wrong_keys::Visit;
use hyper::header::{ALLOW, AUTHORIZATION, HeaderValue};
use hyper::{Method, Response, StatusCode};
use pingbacks::Pingbacks;
use quittance_engine::Outcome;
use quittance_lifecycle::Value;
use quittance_ports::StoreError;
use quittance_protocol::classic::code::CodePlace;
use quittance_protocol::classic::{BadForm, Form, Part, method};
use response_format::ResponseFormat;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// Some clients hang up after five seconds, and an order that is on record by then is not lost.
const PLACE_WAIT: Duration = Duration::from_secs(4);
/// How long `solve.php` waits for its answer: most clients and proxies hang up after a minute.
const SOLVE_WAIT: Duration = Duration::from_secs(55);

/// Why a request gets no answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Code {
    /// As the protocol spells it: the whole answer to a client that wants plain text.
    code: String,
    /// The true reason in our own words, for a client that reads JSON (`error_text`).
    reason: Option<String>,
}

impl<T: AsRef<str>> From<T> for Code {
    fn from(code: T) -> Self {
        Self { code: codes::in_classic(code.as_ref()).to_owned(), reason: None }
    }
}

impl Code {
    fn because(code: impl AsRef<str>, reason: impl fmt::Display) -> Self {
        Self { reason: Some(reason.to_string()), ..Self::from(code) }
    }

    /// Of an order that has no answer for its caller.
    fn of_outcome(outcome: &Outcome) -> Self {
        Self { reason: codes::reason_of_outcome(outcome), ..Self::from(codes::code_of_outcome(outcome)) }
    }
}

/// `load.php`: there is room. How busy the provider is, is not ours to tell.
const LOAD: &str = "<waiting>0</waiting><load>0</load><minbid>0</minbid>\
    <averageRecognitionTime>0</averageRecognitionTime>";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Page {
    In,
    Res,
    Solve,
    /// How busy the service is.
    Load,
}

impl Page {
    fn of(path: &str) -> Option<Self> {
        match path {
            "/in.php" => Some(Self::In),
            "/res.php" => Some(Self::Res),
            "/solve.php" => Some(Self::Solve),
            "/load.php" => Some(Self::Load),
            _ => None,
        }
    }
}

/// Whose manners are expected, where the two differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ClassicStyle {
    TwoCaptcha,
    CaptchaAi,
}

impl ClassicStyle {
    fn of(name: &str) -> Self {
        if name == "captchaai" { Self::CaptchaAi } else { Self::TwoCaptcha }
    }

    /// How whoever asked to be called is called: by GET at the one, by POST at the other.
    const fn dialect(self) -> &'static str {
        match self {
            Self::TwoCaptcha => crate::webhooks::TWO_CAPTCHA,
            Self::CaptchaAi => crate::webhooks::CAPTCHAAI,
        }
    }
}

/// Clones share the order service and the list of pingbacks.
#[derive(Clone)]
pub(crate) struct ClassicApi {
    orders: OrderService,
    /// Of whoever has chosen none, if the operator has.
    dialect: Option<String>,
    pingbacks: Arc<Pingbacks>,
}

impl fmt::Debug for ClassicApi {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClassicApi").field("orders", &self.orders).finish_non_exhaustive()
    }
}

impl ClassicApi {
    pub(crate) fn new(orders: OrderService, dialect: Option<String>) -> Self {
        Self { orders, dialect, pingbacks: Arc::default() }
    }

    /// Whether a path, without the dialect before it, leads here.
    pub(crate) fn is_for(path: &str) -> bool {
        Page::of(path).is_some()
    }

    /// The page, for the log.
    pub(crate) fn name(path: &str) -> &'static str {
        match Page::of(path) {
            Some(Page::In) => "in.php",
            Some(Page::Res) => "res.php",
            Some(Page::Solve) => "solve.php",
            Some(Page::Load) => "load.php",
            None => "nowhere",
        }
    }

    /// What a request is told that did not get here.
    pub(crate) fn turn_away(asked: &ApiRequest, why: crate::server::RequestError) -> Response<Body> {
        refusal::answer(asked, why)
    }

    /// What whoever may not come in at all is told.
    pub(crate) fn refuse(asked: &ApiRequest, code: &str, why: &str) -> Response<Body> {
        refusal::refuse(asked, &Code::because(code, why))
    }

    pub(crate) async fn answer(&self, mut asked: ApiRequest) -> Response<Body> {
        let Some(page) = Page::of(&asked.path) else {
            return api::answer(StatusCode::NOT_FOUND, PLAIN, "there is no such page");
        };
        if asked.head.method != Method::GET && asked.head.method != Method::POST {
            let mut answer = api::answer(StatusCode::METHOD_NOT_ALLOWED, PLAIN, codes::BAD_PARAMETERS);
            answer.headers_mut().insert(ALLOW, HeaderValue::from_static("GET, POST"));
            return answer;
        }
        let read = Form::read_with_doubles(asked.query(), asked.content_type(), &asked.body);
        let (form, doubled) = match read {
            Ok((form, mut doubled)) => {
                doubled.retain(|name| decides(name));
                (form, doubled)
            }
            Err(bad @ BadForm::Document(_)) => {
                return refusal::refuse(&asked, &Code::because(codes::BAD_PARAMETERS, bad));
            }
            Err(BadForm::Malformed { .. }) => {
                let why = if page == Page::Res { codes::BAD_PARAMETERS } else { "ERROR_UPLOAD" };
                return refusal::refuse(&asked, &why.into());
            }
        };
        // Whoever waits for an answer must not keep his picture in memory twice.
        asked.body = bytes::Bytes::new();
        let response_format = ResponseFormat::of(&form);
        let answer = match page {
            Page::In if form.text("method") == Some("get_server_errors") => {
                Ok(response_format.bare(&server_errors()))
            }
            Page::In | Page::Solve if !doubled.is_empty() => {
                let field = doubled.into_iter().next().unwrap_or_default();
                Err(bad_option(BadOption::SentTwice { field }))
            }
            Page::In => self
                .submit(&asked, form)
                .await
                .map(|accepted| api::with_origin(response_format.ok(&accepted.id.to_string()), &accepted)),
            Page::Solve => self.solve(&asked, form, &response_format).await,
            Page::Res => self.act(&asked, &form, &response_format).await,
            Page::Load => Ok(response_format.xml(LOAD)),
        };
        answer.unwrap_or_else(|why| response_format.refuse(&why))
    }

    /// In the form, or as other services want it, in the head.
    fn caller(&self, asked: &ApiRequest, form: &Form) -> Result<Caller, Code> {
        let in_head = || {
            let said = asked.head.headers.get(AUTHORIZATION)?.to_str().ok()?;
            let (scheme, key) = said.split_once(' ')?;
            scheme.eq_ignore_ascii_case("bearer").then_some(key)
        };
        let key = form.text("key").or_else(in_head).map_or("", str::trim);
        let extensions = &asked.head.extensions;
        let caller = self.orders.tenants().caller(key);
        match &caller {
            Ok(caller) => Visit::note_tenant(extensions, caller.tenant.name()),
            // Where any key will do, there is none to guess.
            Err(_) if self.orders.tenants().is_open() => {}
            Err(_) => Visit::note_wrong(extensions, key, self.orders.wrong_keys()),
        }
        caller.map_err(|why| codes::code_of_not_known(why).into())
    }

    fn dialect(&self, asked: &ApiRequest, caller: &Caller) -> ClassicStyle {
        let of_tenant = caller.tenant.settings.dialect.as_deref();
        let name = asked.dialect.or(of_tenant).or(self.dialect.as_deref());
        name.map_or(ClassicStyle::TwoCaptcha, ClassicStyle::of)
    }

    async fn submit(&self, asked: &ApiRequest, form: Form) -> Result<Accepted, Code> {
        let caller = self.caller(asked, &form)?;
        let request = self.request(asked, &caller, form)?;
        self.place(caller, request).await
    }

    fn request(&self, asked: &ApiRequest, caller: &Caller, mut form: Form) -> Result<OrderRequest, Code> {
        let fields = take_options(&mut form).map_err(bad_option)?;
        let wanted =
            method::understand(&form).map_err(|bad| Code::because(codes::code_of_bad_method(&bad), &bad))?;
        let options = OrderOptions::read(&asked.head.headers, &fields).map_err(bad_option)?;
        let dialect = self.dialect(asked, caller).dialect();
        let callback = form.text("pingback").map(|url| (url.trim().to_owned(), dialect));
        Ok(OrderRequest {
            kind: wanted.kind,
            params: wanted.params,
            collected_in: crate::orders::COLLECTED_IN,
            callback,
            trace: asked.trace(),
            ..options.request()
        })
    }

    /// A caller who hangs up, or whose time is up, does not stop what he began half-way.
    async fn place(&self, caller: Caller, request: OrderRequest) -> Result<Accepted, Code> {
        let orders = self.orders.clone();
        match api::carry_out(async move { orders.place(&caller, request).await }, PLACE_WAIT).await {
            Some(Ok(accepted)) => Ok(accepted),
            Some(Err(declined)) => Err(Code::because(codes::code_of_declined(&declined), &declined)),
            None => Err(Code::because(codes::NO_SLOT, codes::SLOW_STORE)),
        }
    }

    /// What an order has come to, and how long its answer still lives.
    fn answer_with(
        &self,
        seen: &OrderView,
        response_format: &ResponseFormat,
        with_price: bool,
    ) -> Result<Response<Body>, Code> {
        let response = response_format.answer(seen, with_price)?;
        Ok(api::with_remaining_life(response, seen.remaining_life(self.orders.clock().now())))
    }

    /// A picture, and its answer at once.
    async fn solve(
        &self,
        asked: &ApiRequest,
        form: Form,
        response_format: &ResponseFormat,
    ) -> Result<Response<Body>, Code> {
        let caller = self.caller(asked, &form)?;
        let request = self.request(asked, &caller, form)?;
        if !request.params.values().any(|value| matches!(value, Value::Bytes(_))) {
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

/// Whether a parameter says what is ordered. The others say how to talk, and of those the last one counts.
fn decides(name: &str) -> bool {
    name == "method" || order_options::field_named(name).is_some() || !method::CONTROL.contains(&name)
}

/// Takes the fields that are for Quittance itself out of the form.
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

fn bad_option(bad: BadOption) -> Code {
    Code::because(codes::BAD_PARAMETERS, bad)
}

/// Some clients upload everything as if it were a file.
fn as_text(part: &Part) -> String {
    match part {
        Part::Text(text) => text.clone(),
        Part::File(bytes) => String::from_utf8_lossy(bytes).into_owned(),
    }
}

/// A store that is away says nothing about the order, which may be paid for.
fn code_of_not_seen(not_seen: &NotSeen) -> Code {
    match not_seen {
        NotSeen::Unknown => codes::UNKNOWN_ID.into(),
        NotSeen::StoreAway(StoreError::Corrupt { .. }) => {
            Code::because(codes::DAMAGED, codes::DAMAGED_REASON)
        }
        NotSeen::StoreAway(StoreError::Unavailable { .. }) => codes::NOT_READY.into(),
    }
}

/// The codes that `in.php` may answer.
fn server_errors() -> String {
    let codes = quittance_protocol::classic::ClassicCodes::of(
        quittance_protocol::classic::ClassicDialect::TwoCaptcha,
    );
    let listed = codes.rows().filter(|row| row.place != CodePlace::Poll && !row.is_prefix);
    listed.map(|row| row.code).collect::<Vec<_>>().join("|")
}
