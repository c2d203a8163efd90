//! Orders through the daemon that has the store to itself: placed and waited for over `/v1`, as any caller does. What is told is
//! what this process would have told, had it opened the store itself.

use crate::daemon::{ANSWER_BYTES_MAX, Daemon, Problem, asking};
use crate::exit::{CliError, Exit};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http_body_util::{BodyExt, Limited};
use hyper::header::{HeaderName, HeaderValue};
use hyper::{Method, StatusCode};
use quittance::lifecycle::{Reuse, Value as Param};
use quittance::{DEFAULT_TENANT, Order};
use quittance_config::{Config, Environment, StoreUrl, TENANT_KEY};
use quittance_ports::moment::read_rfc3339;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::time::Duration;
use tokio::time::Instant;

const PREFER: HeaderName = HeaderName::from_static("prefer");
/// How long one request waits for the end of an order; then it is asked for again.
const WAIT: HeaderValue = HeaderValue::from_static("wait=5");
/// More than the daemon waits for the order, and for its store.
const ANSWER_WAIT: Duration = Duration::from_secs(20);

/// When it is asked again after it was busy or away, and how long it may be so.
const PAUSE: Duration = Duration::from_secs(1);
const AWAY_MAX: Duration = Duration::from_secs(60);

pub(crate) struct Beside {
    daemon: Daemon,
}

/// Why there is no answer: a stable code, a sentence, and what the shell is told.
#[derive(Debug)]
pub(crate) struct NoAnswer {
    pub(crate) code: String,
    pub(crate) message: String,
    pub(crate) exit: Exit,
}

impl NoAnswer {
    fn new(code: &str, exit: Exit, message: impl Into<String>) -> Self {
        Self { code: code.to_owned(), message: message.into(), exit }
    }

    fn is_passing(&self) -> bool {
        matches!(self.code.as_str(), "rate_limited" | "store")
    }

    pub(crate) fn json(&self) -> Value {
        json!({ "code": self.code, "message": self.message })
    }
}

impl From<CliError> for NoAnswer {
    fn from(trouble: CliError) -> Self {
        Self::new(
            if trouble.exit == Exit::Config { "not_allowed" } else { "store" },
            trouble.exit,
            trouble.what,
        )
    }
}

impl From<NoAnswer> for CliError {
    fn from(none: NoAnswer) -> Self {
        Self::new(none.exit, none.message)
    }
}

/// An order as `/v1` tells it.
#[derive(Debug, Deserialize)]
pub(crate) struct OrderView {
    pub(crate) id: String,
    pub(crate) key: String,
    status: String,
    pub(crate) phase: String,
    pub(crate) origin: String,
    answer: Option<ToldAnswer>,
    expires_at: Option<String>,
    expires_in_ms: Option<u64>,
    cost_micros: Option<u64>,
    currency: String,
    error: Option<ToldError>,
}

#[derive(Debug, Deserialize)]
struct ToldAnswer {
    text: String,
    json: Option<Value>,
    extras: BTreeMap<String, String>,
    attempt: u32,
}

#[derive(Debug, Deserialize)]
struct ToldError {
    code: String,
    message: String,
}

/// An answer, as text and as the object that `--json` prints.
pub(crate) struct Answered {
    pub(crate) text: String,
    pub(crate) object: Map<String, Value>,
}

impl Beside {
    /// The daemon that runs on an embedded store, if one does.
    pub(crate) fn find(config: &Config, environment: &Environment) -> Result<Option<Self>, CliError> {
        let StoreUrl::Embedded(dir) = &config.store.url else { return Ok(None) };
        let daemon = Daemon::that_runs_in(dir, config, environment)?;
        let daemon = daemon.map(|daemon| daemon.with_key_in(TENANT_KEY, environment)).transpose()?;
        Ok(daemon.map(|daemon| Self { daemon }))
    }

    /// Places an order. It is on record when this returns.
    pub(crate) async fn place(&self, order: &Order) -> Result<OrderView, NoAnswer> {
        if order.draft().tenant != DEFAULT_TENANT {
            let what = format!(
                "a daemon has the store, and whose order it is follows from the key in {TENANT_KEY}: leave the tenant out"
            );
            return Err(NoAnswer::new("bad_request", Exit::Usage, what));
        }
        self.call(Method::POST, "/v1/orders", Some(&body(order)), None).await
    }

    /// Waits for the end of an order; `tell` is given its phase from time to time.
    pub(crate) async fn follow(
        &self,
        mut told: OrderView,
        mut tell: impl FnMut(&str),
    ) -> Result<Answered, NoAnswer> {
        let (origin, mut heard) = (told.origin.clone(), Instant::now());
        loop {
            match told.status.as_str() {
                "pending" => {}
                "solved" => return self.answered(told, &origin),
                _ => return Err(ended(&told)),
            }
            tell(&told.phase);
            told = match self.call(Method::GET, &format!("/v1/orders/{}", told.id), None, Some(WAIT)).await {
                Ok(now) => {
                    heard = Instant::now();
                    now
                }
                // The order is on record: a daemon that is busy, or starts again, is asked again.
                Err(none) if none.is_passing() && heard.elapsed() < AWAY_MAX => {
                    tokio::time::sleep(PAUSE).await;
                    told
                }
                Err(none) => return Err(none),
            };
        }
    }

    pub(crate) async fn cancel(&self, id: &str) -> Result<(), NoAnswer> {
        self.call(Method::DELETE, &format!("/v1/orders/{id}"), None, None).await.map(drop)
    }

    fn answered(&self, told: OrderView, origin: &str) -> Result<Answered, NoAnswer> {
        let Some(answer) = told.answer else {
            return Err(self.daemon.strange("a solved order has no answer").into());
        };
        let mut object = Map::new();
        object.insert("order".into(), json!(told.key));
        object.insert("origin".into(), json!(origin));
        object.insert("answer".into(), answer.json.unwrap_or_else(|| json!(answer.text)));
        if !answer.extras.is_empty() {
            object.insert("extras".into(), json!(answer.extras));
        }
        let expires = told.expires_at.as_deref().and_then(read_rfc3339);
        object.insert("expires_ms".into(), json!(expires.map(|at| at.as_millis())));
        object.insert("expires_in_ms".into(), json!(told.expires_in_ms));
        object.insert("cost_micros".into(), json!(told.cost_micros));
        object.insert("currency".into(), json!(told.currency));
        object.insert("attempt".into(), json!(answer.attempt));
        Ok(Answered { text: answer.text, object })
    }

    async fn call(
        &self,
        method: Method,
        path: &str,
        body: Option<&Value>,
        prefer: Option<HeaderValue>,
    ) -> Result<OrderView, NoAnswer> {
        let asked = tokio::time::timeout(ANSWER_WAIT, self.ask(method, path, body, prefer)).await;
        let asked = asked.unwrap_or_else(|_| Err(format!("no answer within {} s", ANSWER_WAIT.as_secs())));
        let (status, answer) = asked.map_err(|why| self.daemon.silent(&why))?;
        if status.is_success() {
            let told = serde_json::from_slice(&answer);
            return told.map_err(|error| self.daemon.strange(&error.to_string()).into());
        }
        match serde_json::from_slice::<Problem>(&answer) {
            Ok(problem) => Err(self.refused(status, problem)),
            Err(_) => Err(self.daemon.strange(&format!("it answers with {status}")).into()),
        }
    }

    async fn ask(
        &self,
        method: Method,
        path: &str,
        body: Option<&Value>,
        prefer: Option<HeaderValue>,
    ) -> Result<(StatusCode, hyper::body::Bytes), String> {
        let mut request = asking(method, path, body)?;
        request.headers_mut().extend(prefer.map(|prefer| (PREFER, prefer)));
        let answer = self.daemon.send(request).await?;
        let status = answer.status();
        let whole = Limited::new(answer.into_body(), ANSWER_BYTES_MAX).collect().await;
        Ok((status, whole.map_err(|error| error.to_string())?.to_bytes()))
    }

    fn refused(&self, status: StatusCode, Problem { code, detail }: Problem) -> NoAnswer {
        let (code, exit) = match code.as_str() {
            "unauthorized" | "forbidden" => {
                let what = format!(
                    "{} has tenants, and this is for one of them: put a tenant's key into {TENANT_KEY} ({detail})",
                    self.daemon.named()
                );
                return NoAnswer::new("not_allowed", Exit::Config, what);
            }
            "target_not_allowed" | "kind_not_allowed" => ("not_allowed", Exit::Usage),
            "idempotency_mismatch" => ("other_parameters", Exit::Usage),
            "answer_expired" => ("key_expired", Exit::Bad),
            "refused" => ("held_back", Exit::Bad),
            "unknown_order" => ("forgotten", Exit::Bad),
            "needs_a_person" | "too_many_open" => (code.as_str(), Exit::Bad),
            _ if status == StatusCode::TOO_MANY_REQUESTS => ("rate_limited", Exit::Bad),
            _ if matches!(status.as_u16(), 400 | 413 | 415 | 422) => ("bad_request", Exit::Usage),
            _ => ("store", Exit::Store),
        };
        NoAnswer::new(code, exit, detail)
    }
}

/// The order as `/v1` takes it. What was not said is left to the daemon's own settings.
fn body(order: &Order) -> Value {
    let draft = order.draft();
    let params: Map<String, Value> = draft
        .params
        .iter()
        .map(|(name, value)| match value {
            Param::Text(text) => (name.clone(), json!(text)),
            Param::Bytes(bytes) => (name.clone(), json!({ "base64": STANDARD.encode(bytes) })),
        })
        .collect();
    let mut body = Map::new();
    body.insert("kind".into(), json!(order.kind()));
    body.insert("params".into(), Value::Object(params));
    body.extend(draft.idempotency_key.as_ref().map(|key| ("idempotency_key".into(), json!(key))));
    body.extend(
        draft.reuse.map(|reuse| {
            ("reuse".into(), json!(if reuse == Reuse::Shared { "shared" } else { "exclusive" }))
        }),
    );
    body.extend(draft.timeout.map(|span| ("deadline_s".into(), json!(span.as_secs_f64()))));
    body.extend(draft.min_life.map(|span| ("min_life_s".into(), json!(span.as_secs_f64()))));
    body.extend(draft.no_stock.then(|| ("no_stock".into(), json!(true))));
    Value::Object(body)
}

/// Why an order that has ended has no answer.
fn ended(told: &OrderView) -> NoAnswer {
    let error = told.error.as_ref();
    let code = match told.status.as_str() {
        "failed" if error.is_some_and(|error| error.code == "taken_by_another") => "taken",
        "failed" => "refused",
        status => status,
    };
    let message =
        error.map_or_else(|| format!("the order is {}", told.status), |error| error.message.clone());
    NoAnswer::new(code, Exit::Bad, message)
}
