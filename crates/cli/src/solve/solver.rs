//! Places orders and waits for their outcome: on a node of this process, or through the daemon that uses the store.

use super::follow;
use crate::exit::{CliError, Exit};
use crate::{exit_reason, output};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hyper::Method;
use quittance::lifecycle::{Attempt, FailCause, Phase, Reuse, Value as Param};
use quittance::{DEFAULT_TENANT, NoAnswer, Order, Quittance, SolveError, Solved, StoreOpenError, Ticket};
use quittance_config::{Config, ReuseRules, TENANT_KEY};
use quittance_daemon::configured_node::{self, UnlessInUse};
use quittance_daemon::configured_store::open_error;
use quittance_daemon::{ApiClient, ApiError, SetupFault};
use quittance_gateway::v1::problem::Problem;
use quittance_gateway::v1::{OrderInFull, Status};
use quittance_ports::moment::read_rfc3339;
use serde_json::{Map, Value, json};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// How long one request waits for the end of an order.
const WAIT: &str = "wait=5";
/// The pause after the daemon was busy or unavailable.
const PAUSE: Duration = Duration::from_secs(1);
/// How long a daemon may stay busy or unavailable.
const AWAY_MAX: Duration = Duration::from_secs(60);
/// How often the command tries a store that another command uses.
const IN_USE_LOOK: Duration = Duration::from_millis(100);
/// When the user is informed that another command uses the store.
const IN_USE_NOTE: Duration = Duration::from_secs(1);

pub(super) const NOT_PLACED: &str = "no order was placed, and nothing was paid";
const KEPT: &str = "the order stays on record, and this process works on it no longer: run the same command again to resume it";
const DAEMON_CONTINUES: &str =
    "the order stays on record, and the daemon continues it: run the same command again to get its answer";
const CANCELLED: &str =
    "the order is cancelled, because without --idempotency-key the same command would be a new order.";
/// What happens to a paid answer of a cancelled order while a daemon works on the store.
pub(super) const STOCKED: &str = "An answer that was paid goes to the stock";
/// What happens to it after the only process that worked on the store has ended.
pub(super) const COLLECTED_LATER: &str = "A paid answer goes to the stock only if `quittance serve` or another `quittance solve` runs \
                                          on this store before the answer expires";
const NOT_CANCELLED: &str = "the order stays on record, because it could not be cancelled; without --idempotency-key the same command \
                             would be a new order";

pub(super) enum Solver {
    Local(Box<LocalSolver>),
    Daemon(Arc<ApiClient>),
}

pub(super) struct LocalSolver {
    pub(super) node: Quittance,
    reuse: ReuseRules,
}

/// A placed order. It is durable.
pub(super) struct Placed {
    pub(super) key: String,
    pub(super) origin: &'static str,
    at: PlacedAt,
}

/// Where an order was placed, and is followed and cancelled.
enum PlacedAt {
    Node(Quittance, Box<Ticket>),
    Daemon(Arc<ApiClient>, Box<OrderInFull>),
}

/// An answer, as text and as the object that `--json` prints.
pub(super) struct Answered {
    pub(super) text: String,
    pub(super) object: Value,
}

/// Why there is no answer: a stable code, a sentence, and the exit code.
#[derive(Debug)]
pub(super) struct SolveFailure {
    code: String,
    message: String,
    exit: Exit,
}

impl SolveFailure {
    fn new(code: &str, exit: Exit, message: impl Into<String>) -> Self {
        Self { code: code.to_owned(), message: message.into(), exit }
    }

    /// Whether a later request may succeed.
    fn is_passing(&self) -> bool {
        matches!(self.code.as_str(), "rate_limited" | "store")
    }

    /// An order that did not end, because the command was interrupted.
    pub(super) fn interrupted(exit: Exit, message: impl Into<String>) -> Self {
        Self::new("interrupted", exit, message)
    }

    pub(super) fn json(&self) -> Value {
        json!({ "code": self.code, "message": self.message })
    }
}

impl From<SolveError> for SolveFailure {
    fn from(error: SolveError) -> Self {
        let (code, exit) = exit_reason::code(&error);
        Self::new(code, exit, CliError::of(exit, &error).what)
    }
}

impl From<CliError> for SolveFailure {
    fn from(error: CliError) -> Self {
        let code = match error.exit {
            Exit::Usage => "bad_request",
            Exit::Config => "config",
            Exit::Provider => "account",
            Exit::Store => "store",
            _ => "failed",
        };
        Self::new(code, error.exit, error.what)
    }
}

impl From<ApiError> for SolveFailure {
    fn from(error: ApiError) -> Self {
        match error {
            // The daemon does not accept the tenant's key.
            ApiError::Setup(error) if error.fault == SetupFault::Config => {
                Self::new("unauthorized", Exit::Config, error.what)
            }
            ApiError::Setup(error) => CliError::from(error).into(),
            ApiError::Problem(problem) => Self::of(*problem),
        }
    }
}

impl From<SolveFailure> for CliError {
    fn from(none: SolveFailure) -> Self {
        Self::new(none.exit, none.message)
    }
}

impl SolveFailure {
    /// The failure with the code that a node of this process would return.
    fn of(Problem { code, detail, status, .. }: Problem) -> Self {
        let (code, exit) = match &*code {
            "target_not_allowed" | "kind_not_allowed" => ("not_allowed", Exit::Usage),
            "idempotency_mismatch" => ("other_parameters", Exit::Usage),
            "answer_expired" => ("key_expired", Exit::Bad),
            "unknown_order" => ("forgotten", Exit::Bad),
            "held_back" | "needs_a_person" | "too_many_open" => (&*code, Exit::Bad),
            _ if status == 429 => ("rate_limited", Exit::Bad),
            _ if matches!(status, 400 | 413 | 415 | 422) => ("bad_request", Exit::Usage),
            _ => ("store", Exit::Store),
        };
        Self::new(code, exit, detail)
    }

    /// Why an order that has ended has no answer.
    fn of_ended(order: &OrderInFull) -> Self {
        let error = order.short.error.as_ref();
        let code = match order.short.status {
            Status::Failed if error.is_some_and(|error| error.code == "claimed_by_another") => "claimed",
            Status::Failed => "rejected",
            Status::Dead => "dead",
            Status::Expired => "expired",
            Status::Cancelled => "cancelled",
            Status::Pending | Status::Solved => "not_yet",
        };
        // The sentences of a node of this process.
        let message = match (error, code) {
            (_, "claimed") => NoAnswer::TakenByAnother.to_string(),
            (_, "expired") => NoAnswer::Expired.to_string(),
            (_, "cancelled") => NoAnswer::Failed(FailCause::Cancelled).to_string(),
            (Some(error), "rejected") => quittance::rejection(&error.message),
            (Some(error), "dead") => format!(
                "the order is a dead letter: {}; see `quittance dead show {}`, then replay or drop it",
                error.message, order.short.key
            ),
            (Some(error), _) => error.message.clone(),
            (None, _) => format!("the order is {code}"),
        };
        Self::new(code, Exit::Bad, message)
    }
}

impl Answered {
    fn of_solved(solved: &Solved, currency: &str) -> Self {
        Self { text: solved.text().to_owned(), object: exit_reason::solved_json(solved, currency) }
    }

    /// The answer of an ended order; `None` if it has none. `origin` is that of the placement.
    fn of_order(order: OrderInFull, origin: &str) -> Option<Self> {
        let answer = order.answer?;
        let expires = order.expires_at.as_deref().and_then(read_rfc3339);
        let object = json!({
            "order": order.short.key,
            "origin": origin,
            "answer": answer.json.unwrap_or_else(|| json!(answer.text)),
            "extras": answer.extras,
            "expires_ms": expires.map(|at| at.as_millis()),
            "expires_in_ms": order.expires_in_ms,
            "cost_micros": order.cost_micros,
            "currency": order.currency,
            "attempt": answer.attempt,
        });
        Some(Self { text: answer.text, object })
    }
}

impl Solver {
    /// Finds a node or a daemon. Only one process can open an embedded store. If that is a daemon, the order goes to
    /// it; another command is waited for.
    pub(super) async fn find(config: &Config, wait: Duration) -> Result<Self, CliError> {
        let (began, mut is_noted) = (Instant::now(), false);
        loop {
            if let Some(client) = ApiClient::of_daemon(&config.store, config, TENANT_KEY)? {
                return Ok(Self::Daemon(Arc::new(client)));
            }
            let in_use = match configured_node::start(config, None).await? {
                UnlessInUse::Opened(node) => {
                    return Ok(Self::Local(Box::new(LocalSolver { node, reuse: config.reuse.clone() })));
                }
                UnlessInUse::InUse(error) => error,
            };
            if began.elapsed() >= wait {
                let mut error = open_error(&StoreOpenError::Embedded(in_use));
                error.what += ". Nothing was placed";
                return Err(error.into());
            }
            if !is_noted && began.elapsed() >= IN_USE_NOTE {
                is_noted = true;
                output::tell(&format!(
                    "another command uses the store: waiting for it, at most {}. For many orders at once, use `solve --lines`, or \
                     `quittance serve`, which every `solve` then uses\n",
                    output::roughly(wait)
                ));
            }
            tokio::time::sleep(IN_USE_LOOK).await;
        }
    }

    /// Places an order. It is durable when this returns.
    pub(super) async fn place(&self, order: Order) -> Result<Placed, SolveFailure> {
        match self {
            Self::Local(local) => {
                let order = local.reuse.apply(order);
                let ticket = local.node.place(order).await.map_err(SolveError::from)?;
                let (key, origin) = (ticket.order().to_string(), ticket.placed.origin.name());
                Ok(Placed { key, origin, at: PlacedAt::Node(local.node.clone(), Box::new(ticket)) })
            }
            Self::Daemon(client) => {
                if order.draft().tenant != DEFAULT_TENANT {
                    let what = format!(
                        "a daemon uses the store: set {TENANT_KEY} to the key of the tenant, and leave out --tenant"
                    );
                    return Err(SolveFailure::new("bad_request", Exit::Usage, what));
                }
                let order: OrderInFull = client.send(Method::POST, "/v1/orders", &body(&order)).await?;
                let (key, origin) = (order.short.key.clone(), order.origin.name());
                Ok(Placed { key, origin, at: PlacedAt::Daemon(Arc::clone(client), Box::new(order)) })
            }
        }
    }

    /// Finishes the work of this process's node, unless there is a second Ctrl-C.
    pub(super) async fn stop(&self) -> Result<(), CliError> {
        match self {
            Self::Local(local) => super::stop_or_interrupt(&local.node).await,
            Self::Daemon(_) => Ok(()),
        }
    }
}

impl Placed {
    /// Waits for the outcome. With `progress`, the phase is shown. A node of this process ends the wait if the
    /// provider does not accept the account.
    pub(super) async fn follow(
        &self,
        progress: Option<&mut output::ProgressLine>,
    ) -> Result<Answered, SolveFailure> {
        let (node, ticket) = match &self.at {
            PlacedAt::Node(node, ticket) => (node, ticket),
            PlacedAt::Daemon(client, order) => {
                return follow_at_daemon(client, order.as_ref().clone(), self.origin, progress).await;
            }
        };
        let ended = match progress {
            Some(progress) => match follow(node, ticket, progress).await {
                Ok(ended) => ended?,
                Err(error) => {
                    self.leave().await;
                    return Err(error.into());
                }
            },
            None => ticket.wait().await.map_err(SolveError::from)?,
        };
        Ok(Answered::of_solved(&ended, node.currency()))
    }

    /// Says what happens to an order whose command is interrupted, and cancels it if it must not be left.
    pub(super) async fn leave(&self) -> String {
        match (self.cancel_if_alone().await, &self.at) {
            (Some(true), PlacedAt::Node(node, ticket)) => {
                format!("{CANCELLED} {}", payment_of_cancelled(node, ticket).await)
            }
            (Some(true), PlacedAt::Daemon(..)) => format!("{CANCELLED} {STOCKED}"),
            (Some(false), _) => NOT_CANCELLED.into(),
            (None, PlacedAt::Node(..)) => KEPT.into(),
            (None, PlacedAt::Daemon(..)) => DAEMON_CONTINUES.into(),
        }
    }

    /// Cancels an order that no repeat of the command would find: the repeat would be paid beside it. Returns whether that was
    /// possible; `None` if a repeat finds the order.
    pub(super) async fn cancel_if_alone(&self) -> Option<bool> {
        match &self.at {
            PlacedAt::Node(node, ticket) => {
                let key = ticket.order();
                let order = node.read(&key).await.ok().flatten()?;
                let is_alone = !order.terms.keyed && order.terms.reuse == Reuse::Exclusive;
                if is_alone { Some(node.cancel(&key).await.is_ok()) } else { None }
            }
            PlacedAt::Daemon(client, order) => {
                let path = format!("/v1/orders/{}", order.short.id);
                let cancel = client.call::<OrderInFull>(Method::DELETE, &path);
                if order.short.reuse == Reuse::Exclusive.name() { Some(cancel.await.is_ok()) } else { None }
            }
        }
    }
}

/// Says whether a cancelled order was paid, and what happens to its answer.
async fn payment_of_cancelled(node: &Quittance, ticket: &Ticket) -> String {
    let Some(order) = node.read(&ticket.order()).await.ok().flatten() else { return COLLECTED_LATER.into() };
    let paid = if matches!(order.phase, Phase::Solved { .. }) {
        return "Its answer was paid and is in the stock".into();
    } else if !order.attempts.iter().any(Attempt::may_be_charged) {
        return "Nothing was paid".into();
    } else if order.attempts.iter().any(|attempt| attempt.accepted && attempt.is_open()) {
        "The provider has its task, which is paid."
    } else {
        "It is not known whether it was paid."
    };
    format!("{paid} {COLLECTED_LATER}")
}

async fn follow_at_daemon(
    client: &ApiClient,
    mut order: OrderInFull,
    origin: &str,
    mut progress: Option<&mut output::ProgressLine>,
) -> Result<Answered, SolveFailure> {
    let mut reached = Instant::now();
    loop {
        match order.short.status {
            Status::Pending => {}
            Status::Solved => {
                let answered = Answered::of_order(order, origin);
                return answered.ok_or_else(|| client.not_understood("a solved order has no answer").into());
            }
            _ => return Err(SolveFailure::of_ended(&order)),
        }
        if let Some(progress) = &mut progress {
            progress.show(&order.short.phase);
        }
        match client.wait(&format!("/v1/orders/{}", order.short.id), WAIT).await.map_err(SolveFailure::from) {
            Ok(now) => (order, reached) = (now, Instant::now()),
            // The order is durable, so a daemon that is busy or restarts is asked again.
            Err(none) if none.is_passing() && reached.elapsed() < AWAY_MAX => tokio::time::sleep(PAUSE).await,
            Err(none) => return Err(none),
        }
    }
}

/// The order in the JSON of the API. Absent values are left to the daemon's settings.
fn body(order: &Order) -> Value {
    let draft = order.draft();
    let param = |value: &Param| match value {
        Param::Text(text) => json!(text),
        Param::Bytes(bytes) => json!({ "base64": STANDARD.encode(bytes) }),
    };
    let params: Map<String, Value> =
        draft.params.iter().map(|(name, value)| (name.clone(), param(value))).collect();
    let mut body = json!({ "kind": order.kind(), "params": params });
    let fields = [
        ("idempotency_key", draft.idempotency_key.as_ref().map(|key| json!(key))),
        ("reuse", draft.reuse.map(|reuse| json!(reuse.name()))),
        ("priority", draft.priority.map(|priority| json!(priority.name()))),
        ("deadline_s", draft.timeout.map(|span| json!(span.as_secs_f64()))),
        ("max_retries", draft.retry.max_retries.map(|count| json!(count))),
        ("min_life_s", draft.min_life.map(|span| json!(span.as_secs_f64()))),
        ("no_stock", draft.no_stock.then_some(json!(true))),
    ];
    for (name, value) in fields {
        if let Some(value) = value {
            body[name] = value;
        }
    }
    body
}
