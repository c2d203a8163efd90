//! Request bodies. They are read field by field, so that an error can name the field without repeating its value.
//! Their OpenAPI description is here too.

use super::problem::{Code, Refused};
use crate::{OrderRequest, order_options};
use axum::extract::{FromRequest, Request};
use base64::Engine as _;
use base64::alphabet;
use base64::engine::{GeneralPurpose, GeneralPurposeConfig};
use hyper::header::{CONTENT_TYPE, HeaderMap};
use quittance_lifecycle::follow_up::WEBHOOK_URL_BYTES_MAX;
use quittance_lifecycle::terms::{
    FILE_BYTES_MAX, IDEMPOTENCY_KEY_BYTES_MAX, KIND_BYTES_MAX, PARAM_NAME_BYTES_MAX, PARAMS_MAX,
    TEXT_BYTES_MAX, TIMEOUT_MAX,
};
use quittance_lifecycle::{Draft, MAX_RETRIES_MAX, Priority, RetryLimits, Reuse, Value as Param};
use quittance_protocol::classic::json_document::{self, BadDocument};
use quittance_webhooks::WebhookFormat;
use serde_json::{Map, Value, json};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;
use utoipa::openapi::schema::{AdditionalProperties, ObjectBuilder, OneOfBuilder, SchemaType, Type};
use utoipa::openapi::{Object, RefOr, Schema};
use utoipa::{PartialSchema, ToSchema};

/// Pattern of the name of a kind.
pub const KIND_PATTERN: &str = "^[A-Za-z0-9_.-]+$";
const BASE64_PATTERN: &str = "^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$";
const ADDRESS_PATTERN: &str = "^https?://";
/// The longest life of an answer that expires.
pub const MIN_LIFE_MAX_S: u64 = 86_400;

const MIN_LIFE_WORDS: &str = "Life that the answer must have left when it is handed out, also when it is read by its id. \
                              Orders with different values are different orders.";

const MAX_RETRIES_WORDS: &str = "Most attempts after the first one; 0 means one attempt only. A number above the operator's limit has no effect.";
const RETRY_BASE_WORDS: &str =
    "First pause before a retry, in seconds. A pause shorter than the operator's has no effect.";
const RETRY_CAP_WORDS: &str =
    "Longest pause before a retry, in seconds. A pause shorter than the operator's has no effect.";

/// Standard base64 with padding. Bits that do not fill a byte are ignored.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &alphabet::STANDARD,
    GeneralPurposeConfig::new().with_decode_allow_trailing_bits(true),
);

/// A body that is one JSON object, read field by field.
pub struct JsonBody(Map<String, Value>);

impl fmt::Debug for JsonBody {
    /// Hides the fields, because parameters must not reach a log.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "JsonBody({} fields)", self.0.len())
    }
}

impl<S: Sync> FromRequest<S> for JsonBody {
    type Rejection = Refused;

    async fn from_request(request: Request, _: &S) -> Result<Self, Refused> {
        if !is_json(request.headers()) {
            return Err(Code::WrongContentType.plain());
        }
        // The server has read it whole and checked its size.
        let body = axum::body::to_bytes(request.into_body(), usize::MAX).await;
        let body = body.map_err(|_| Code::BadJson.because("The body did not arrive."))?;
        match json_document::read(&body) {
            Ok(Value::Object(fields)) => Ok(Self(fields)),
            Ok(_) => Err(Code::BadParams.because("The body must be a JSON object.")),
            Err(BadDocument::SentTwice { name }) => {
                let words = "It was sent twice in one object, with different values: send it once.";
                Err(Refused::bad(&name, words))
            }
            Err(BadDocument::InexactNumber { name }) => {
                Err(Refused::bad(&name, "The number cannot be kept exactly: send it as text, in quotes."))
            }
            Err(BadDocument::NotJson { line, column }) => {
                Err(Code::BadJson.because(format!("The JSON is not valid at line {line}, column {column}.")))
            }
        }
    }
}

fn is_json(headers: &HeaderMap) -> bool {
    let essence = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
    let essence = essence.and_then(|value| value.split(';').next()).unwrap_or_default().trim();
    essence.eq_ignore_ascii_case("application/json")
}

impl JsonBody {
    /// Removes a field; null is the same as absent.
    pub fn take(&mut self, field: &str) -> Option<Value> {
        self.0.remove(field).filter(|value| !value.is_null())
    }

    /// Whether the field has a value.
    pub fn has(&self, field: &str) -> bool {
        self.0.get(field).is_some_and(|value| !value.is_null())
    }

    /// Whether the field is this text.
    pub fn is(&self, field: &str, text: &str) -> bool {
        self.0.get(field).and_then(Value::as_str) == Some(text)
    }

    /// Whether the field is an object with this entry.
    pub fn has_entry(&self, field: &str, entry: &str) -> bool {
        self.0.get(field).is_some_and(|value| value.get(entry).is_some())
    }

    /// Applies the body to `base` as a merge patch (RFC 7396); objects are merged one level deep.
    #[must_use]
    pub fn merge_into(self, mut base: Map<String, Value>) -> Self {
        for (name, value) in self.0 {
            match (base.get_mut(&name), value) {
                (Some(Value::Object(before)), Value::Object(entries)) => {
                    before.extend(entries);
                    before.retain(|_, entry| !entry.is_null());
                }
                (_, value) => drop(base.insert(name, value)),
            }
        }
        Self(base)
    }

    pub fn text(&mut self, field: &str) -> Result<Option<String>, Refused> {
        match self.take(field) {
            None => Ok(None),
            Some(Value::String(text)) => Ok(Some(text)),
            Some(_) => Err(Refused::bad(field, format!("`{field}` must be a string."))),
        }
    }

    pub fn truth(&mut self, field: &str) -> Result<Option<bool>, Refused> {
        match self.take(field) {
            None => Ok(None),
            Some(Value::Bool(truth)) => Ok(Some(truth)),
            Some(_) => Err(Refused::bad(field, format!("`{field}` must be true or false."))),
        }
    }

    pub fn seconds(&mut self, field: &str, least: u64, most: u64) -> Result<Option<Duration>, Refused> {
        let Some(value) = self.take(field) else { return Ok(None) };
        let span = value.as_f64().and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
        let is_within =
            |span: &Duration| (Duration::from_secs(least)..=Duration::from_secs(most)).contains(span);
        let span = span.filter(is_within);
        span.map(Some).ok_or_else(|| {
            Refused::bad(field, format!("`{field}` must be a number of seconds from {least} to {most}."))
        })
    }

    /// A whole number from 0 to `most`.
    pub fn count(&mut self, field: &str, most: u8) -> Result<Option<u8>, Refused> {
        let Some(value) = self.take(field) else { return Ok(None) };
        let count = value.as_u64().and_then(|count| u8::try_from(count).ok()).filter(|count| *count <= most);
        count
            .map(Some)
            .ok_or_else(|| Refused::bad(field, format!("`{field}` must be a whole number from 0 to {most}.")))
    }

    pub fn objects(&mut self, field: &str) -> Result<Map<String, Value>, Refused> {
        match self.take(field) {
            None => Ok(Map::new()),
            Some(Value::Object(fields)) if fields.len() <= PARAMS_MAX => Ok(fields),
            Some(_) => Err(Refused::bad(
                field,
                format!("`{field}` must be an object of at most {PARAMS_MAX} entries."),
            )),
        }
    }

    pub fn done(self) -> Result<(), Refused> {
        match self.0.keys().next() {
            None => Ok(()),
            Some(field) => Err(Refused::bad(field, "There is no such field here.")),
        }
    }

    /// The order to place; `in_header` is the idempotency key of the headers, if any.
    pub(super) fn request(mut self, in_header: Option<String>) -> Result<OrderRequest, Refused> {
        let in_body = self.text("idempotency_key")?;
        let idempotency_key = order_options::one_key(in_header, in_body)
            .map_err(|bad| Refused::bad("idempotency_key", bad.to_string()))?;
        let kind = self.kind()?;
        let params = self.params()?;
        let reuse = match self.text("reuse")?.as_deref() {
            None => None,
            Some("shared") => Some(Reuse::Shared),
            Some("exclusive") => Some(Reuse::Exclusive),
            Some(_) => return Err(Refused::bad("reuse", "`reuse` is `shared` or `exclusive`.")),
        };
        let priority = match self.text("priority")? {
            None => None,
            Some(name) => Some(Priority::parse(&name).ok_or_else(|| {
                Refused::bad("priority", "`priority` is `interactive`, `normal` or `bulk`.")
            })?),
        };
        let timeout = self.seconds("deadline_s", 1, TIMEOUT_MAX.as_secs())?;
        let pause_max = *order_options::RETRY_PAUSE_S.end();
        let retry = RetryLimits {
            max_retries: self.count("max_retries", MAX_RETRIES_MAX)?,
            base: self.seconds("retry_base_s", 0, pause_max)?,
            cap: self.seconds("retry_cap_s", 0, pause_max)?,
        };
        let min_life = self.seconds("min_life_s", 0, MIN_LIFE_MAX_S)?;
        let no_stock = self.truth("no_stock")?.unwrap_or(false);
        let webhook = self.callback()?;
        self.done()?;
        let draft = Draft {
            params,
            idempotency_key,
            reuse,
            priority,
            timeout,
            retry,
            min_life,
            no_stock,
            ..Draft::default()
        };
        Ok(OrderRequest { kind, draft, webhook, is_strict: false })
    }

    pub fn kind(&mut self) -> Result<String, Refused> {
        let kind = self.text("kind")?.ok_or_else(|| Refused::bad("kind", "`kind` is missing."))?;
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.' | b'-');
        if kind.is_empty() || kind.len() > KIND_BYTES_MAX || !kind.bytes().all(is_plain) {
            return Err(Refused::bad(
                "kind",
                format!("`kind` has 1 to {KIND_BYTES_MAX} letters, digits, dots, dashes or underscores."),
            ));
        }
        Ok(kind)
    }

    fn params(&mut self) -> Result<BTreeMap<String, Param>, Refused> {
        let mut params = BTreeMap::new();
        for (name, value) in self.objects("params")? {
            check_param_name("params", &name)?;
            let value = param(value).ok_or_else(|| {
                Refused::bad(
                    &format!("params.{name}"),
                    "It must be a string, a number, true, false or {\"base64\": \"...\"}.",
                )
            })?;
            params.insert(name, value);
        }
        for (name, value) in self.objects("files")? {
            check_param_name("files", &name)?;
            let field = format!("files.{name}");
            let bytes = value.as_str().and_then(bytes);
            let bytes =
                bytes.ok_or_else(|| Refused::bad(&field, "It must be the file in base64, padded."))?;
            if params.insert(name, bytes).is_some() {
                return Err(Refused::bad(&field, "It is in `params`, too: send it once."));
            }
        }
        Ok(params)
    }

    fn callback(&mut self) -> Result<Option<(String, WebhookFormat)>, Refused> {
        match self.text("callback_url")? {
            None => Ok(None),
            Some(url) if url.len() > WEBHOOK_URL_BYTES_MAX || !is_address(&url) => {
                let words =
                    format!("It must be an http or https address of at most {WEBHOOK_URL_BYTES_MAX} bytes.");
                Err(Code::BadCallback.because(words).at("callback_url"))
            }
            Some(url) => Ok(Some((url, WebhookFormat::V1))),
        }
    }

    /// Reads whether the caller reports a good answer.
    pub(super) fn verdict(mut self) -> Result<bool, Refused> {
        let Some(Value::Bool(is_good)) = self.take("good") else {
            return Err(Refused::bad("good", "`good` must be true or false."));
        };
        self.done()?;
        Ok(is_good)
    }
}

/// Refuses parameter names that are about the order or the request. They are not sent to a provider, and a caller
/// might rely on one that is silently dropped.
pub fn check_param_name(object: &str, name: &str) -> Result<(), Refused> {
    let refuse = |words: &str| Err(Refused::bad(&format!("{object}.{name}"), words));
    if order_options::field_named(name).is_some() {
        return refuse("It is about the order: write it beside `params`.");
    }
    if let Err(bad) = order_options::check_not_misspelt(name) {
        return refuse(&format!("{bad} It is about the order: write it beside `params`."));
    }
    match name {
        "pingback" | "callbackUrl" => refuse("Write the address as `callback_url` beside `params`."),
        "key" | "clientKey" => refuse("Send the key in the header `Authorization: Bearer`."),
        "method" => refuse("Write what is ordered as `kind` beside `params`."),
        "json" | "header_acao" | "debug_dump" => refuse("It belongs to the classic API: leave it out."),
        "soft_id" | "softId" => refuse("It is set for a provider in the settings: leave it out."),
        _ => Ok(()),
    }
}

fn is_address(url: &str) -> bool {
    url.starts_with("http://") || url.starts_with("https://")
}

/// The value of a parameter. Booleans become 1 and 0, as providers write them.
pub fn param(value: Value) -> Option<Param> {
    match value {
        Value::String(text) => Some(Param::Text(text)),
        Value::Number(number) => Some(Param::Text(number.to_string())),
        Value::Bool(flag) => Some(Param::Text(if flag { "1" } else { "0" }.to_owned())),
        Value::Object(file) if file.len() == 1 => file.get("base64")?.as_str().and_then(bytes),
        _ => None,
    }
}

fn bytes(text: &str) -> Option<Param> {
    BASE64.decode(text).ok().map(Param::Bytes)
}

/// An order to be placed.
pub(super) struct NewOrder;

pub fn or_null(kind: Type) -> SchemaType {
    SchemaType::Array(vec![kind, Type::Null])
}

fn base64_text() -> ObjectBuilder {
    // Four letters for three bytes, and one such group for what is left.
    let characters_max = FILE_BYTES_MAX.div_ceil(3) * 4;
    ObjectBuilder::new()
        .schema_type(Type::String)
        .max_length(Some(characters_max))
        .pattern(Some(BASE64_PATTERN))
        .content_encoding("base64")
}

fn param_schema() -> OneOfBuilder {
    let file = ObjectBuilder::new()
        .property("base64", base64_text())
        .required("base64")
        .additional_properties(Some(AdditionalProperties::FreeForm(false)));
    OneOfBuilder::new()
        .item(ObjectBuilder::new().schema_type(Type::String).max_length(Some(TEXT_BYTES_MAX)))
        .item(ObjectBuilder::new().schema_type(Type::Number))
        .item(ObjectBuilder::new().schema_type(Type::Boolean))
        .item(file)
}

pub fn by_name(value: impl Into<RefOr<Schema>>, words: &str) -> ObjectBuilder {
    let name: Object = ObjectBuilder::new()
        .schema_type(Type::String)
        .min_length(Some(1))
        .max_length(Some(PARAM_NAME_BYTES_MAX))
        .build();
    ObjectBuilder::new()
        .schema_type(or_null(Type::Object))
        .description(Some(words))
        .property_names(Some(name))
        .max_properties(Some(PARAMS_MAX))
        .additional_properties(Some(AdditionalProperties::RefOr(value.into())))
}

pub fn seconds(least: u64, most: u64, words: &str) -> ObjectBuilder {
    ObjectBuilder::new()
        .schema_type(or_null(Type::Number))
        .minimum(Some(least as f64))
        .maximum(Some(most as f64))
        .description(Some(words))
}

impl ToSchema for NewOrder {}

impl PartialSchema for NewOrder {
    fn schema() -> RefOr<Schema> {
        let kind = ObjectBuilder::new()
            .schema_type(Type::String)
            .min_length(Some(1))
            .max_length(Some(KIND_BYTES_MAX))
            .pattern(Some(KIND_PATTERN))
            .description(Some("A kind from GET /v1/kinds."));
        let reuse = ObjectBuilder::new()
            .schema_type(or_null(Type::String))
            .enum_values(Some([json!("shared"), json!("exclusive"), Value::Null]))
            .description(Some("How to treat equal orders: `shared` (one job, one answer) or `exclusive` (each its own job)."));
        let priorities =
            Priority::ALL.map(|priority| json!(priority.name())).into_iter().chain([Value::Null]);
        let priority = ObjectBuilder::new()
            .schema_type(or_null(Type::String))
            .enum_values(Some(priorities))
            .description(Some(
                "How urgent the order is among the orders of this tenant. Absent: as the operator sets it.",
            ));
        let idempotency_key = ObjectBuilder::new()
            .schema_type(or_null(Type::String))
            .min_length(Some(1))
            .max_length(Some(IDEMPOTENCY_KEY_BYTES_MAX))
            .pattern(Some("^[!-~]+$"))
            .description(Some("Same as the header Idempotency-Key, for clients that cannot set headers."));
        let no_stock = ObjectBuilder::new()
            .schema_type(or_null(Type::Boolean))
            .description(Some("Whether to buy an answer instead of taking one from the stock."));
        let max_retries = ObjectBuilder::new()
            .schema_type(or_null(Type::Integer))
            .minimum(Some(0.0))
            .maximum(Some(f64::from(MAX_RETRIES_MAX)))
            .description(Some(MAX_RETRIES_WORDS));
        let pause_max = *order_options::RETRY_PAUSE_S.end();
        let callback = ObjectBuilder::new()
            .schema_type(or_null(Type::String))
            .max_length(Some(WEBHOOK_URL_BYTES_MAX))
            .pattern(Some(ADDRESS_PATTERN))
            .description(Some(
                "Webhook address that is called with the order when the order has an outcome.",
            ));
        ObjectBuilder::new()
            .description(Some("An order to place."))
            .property("kind", kind)
            .property(
                "params",
                by_name(param_schema(), "Parameters of the kind. A file is {\"base64\": \"...\"}."),
            )
            .property("files", by_name(base64_text(), "Parameters that are files, in base64."))
            .property("idempotency_key", idempotency_key)
            .property("reuse", reuse)
            .property("priority", priority)
            .property("deadline_s", seconds(1, TIMEOUT_MAX.as_secs(), "How long the order may take."))
            .property("max_retries", max_retries)
            .property("retry_base_s", seconds(0, pause_max, RETRY_BASE_WORDS))
            .property("retry_cap_s", seconds(0, pause_max, RETRY_CAP_WORDS))
            .property("min_life_s", seconds(0, MIN_LIFE_MAX_S, MIN_LIFE_WORDS))
            .property("no_stock", no_stock)
            .property("callback_url", callback)
            .required("kind")
            .additional_properties(Some(AdditionalProperties::FreeForm(false)))
            .examples([json!({
                "kind": "turnstile",
                "params": { "sitekey": "0x4AAAAAAA", "pageurl": "https://shop.example.com/login" },
                "deadline_s": 60,
            })])
            .into()
    }
}

/// Whether an answer was any good.
pub(super) struct ReportBody;

impl ToSchema for ReportBody {
    fn name() -> Cow<'static, str> {
        "Verdict".into()
    }
}

impl PartialSchema for ReportBody {
    fn schema() -> RefOr<Schema> {
        ObjectBuilder::new()
            .description(Some("Whether an answer was good."))
            .property("good", ObjectBuilder::new().schema_type(Type::Boolean))
            .required("good")
            .additional_properties(Some(AdditionalProperties::FreeForm(false)))
            .examples([json!({ "good": true })])
            .into()
    }
}
