//! The providers: the state, the account and the measured times of each, and what an operator can do with one: pause,
//! resume or drain it, on all nodes.

mod forecast;
mod shown_provider;

pub use forecast::balance_ends;
pub(crate) use shown_provider::account_of;
pub use shown_provider::{
    ChangedProvider, ProviderDetail, ProviderDialect, ProviderList, Resumed, ShownGateFault, ShownMeasured,
    ShownProvider, ShownRouting, ShownWorking,
};

use crate::AppState;
use axum::extract::rejection::PathRejection;
use axum::extract::{FromRequestParts, Path, State};
use axum::http::request::Parts;
use axum::response::Response;
use forecast::spent_last_day;
use hyper::StatusCode;
use quittance_engine::{Engine, ProviderRules, ProviderView};
use quittance_gateway::problems;
use quittance_gateway::v1::Operator;
use quittance_gateway::v1::decimal;
use quittance_gateway::v1::json;
use quittance_gateway::v1::order_problems::store_problem;
use quittance_gateway::v1::problem::{Code, Refused};
use quittance_lifecycle::{Order, Phase, provider_of};
use quittance_ports::moment::rfc3339;
use quittance_ports::{Day, ProviderMode, StoreError, Which};
use shown_provider::fault;
use std::collections::BTreeMap;

/// The most open orders that are read to count the open tasks of each provider.
const COUNTED_MAX: usize = 1000;

problems!(ProvidersProblems: Unauthorized, Forbidden, NeedsAPerson, StoreUnavailable);
problems!(ProviderProblems: Unauthorized, Forbidden, UnknownProvider, NeedsAPerson, StoreUnavailable);

/// The provider that has or may have a task of this order.
fn busy_with(order: &Order) -> Option<&str> {
    let attempt = match &order.phase {
        Phase::Submitting { attempt, .. }
        | Phase::Solving { attempt, .. }
        | Phase::InDoubt { attempt, .. } => *attempt,
        _ => return None,
    };
    Some(provider_of(order.attempt(attempt).map_or(order.account(), |attempt| order.account_of(attempt))))
}

/// The open tasks of each provider; `None` if there are too many open orders to count.
async fn open_tasks(engine: &Engine) -> Result<Option<BTreeMap<String, u64>>, StoreError> {
    if engine.order_counts().await?.open > COUNTED_MAX as u64 {
        return Ok(None);
    }
    let mut tasks: BTreeMap<String, u64> = BTreeMap::new();
    for record in engine.list(Which::OPEN, None, COUNTED_MAX).await?.into_iter().flatten() {
        if let Some(name) = busy_with(&record.order) {
            *tasks.entry(name.to_owned()).or_default() += 1;
        }
    }
    Ok(Some(tasks))
}

impl AppState {
    /// Shows these providers, with what is known of each.
    async fn details(&self, views: Vec<ProviderView>) -> Result<Vec<ProviderDetail>, Refused> {
        let engine = self.orders.engine();
        let tasks = open_tasks(engine).await.map_err(|error| store_problem(&error))?;
        let now = engine.now();
        let (yesterday, today) = (Day(Day::of(now).0.saturating_sub(1)), Day::of(now));
        let usage = engine.usage(yesterday, today).await.map_err(|error| store_problem(&error))?;
        let accounts = self.orders.accounts().read_all(now).await;
        let rules: BTreeMap<String, ProviderRules> =
            engine.provider_rules().into_iter().map(|rules| (rules.name.clone(), rules)).collect();
        let dialects = self.shown().dialects;
        let detail = |view: ProviderView| {
            let account = account_of(&accounts, &view.name);
            let (rules, dialect) = (rules.get(&view.name), dialects.get(&view.name));
            let spent = spent_last_day(&usage, &view.name, &view.currency, now);
            let balance = account.and_then(|account| account.balance);
            ProviderDetail {
                spent_last_day: spent.map(decimal),
                spent_last_day_micros: spent.map(|spent| spent.0),
                balance_ends: balance_ends(balance, spent, now).map(rfc3339),
                protocol: dialect.map(|dialect| dialect.protocol.clone()),
                dialect: dialect.map(|dialect| dialect.dialect.clone()),
                balance: balance.map(decimal),
                since: fault(&view).1.map(rfc3339),
                open_tasks: tasks.as_ref().map(|tasks| tasks.get(&view.name).copied().unwrap_or_default()),
                kinds: rules.and_then(|rules| rules.kinds.clone()),
                tenants: rules.and_then(|rules| rules.tenants.clone()),
                weight: rules.map_or(1, |rules| rules.weight),
                measured: engine.measured(&view.name).into_iter().map(ShownMeasured::of).collect(),
                provider: ShownProvider::of(&view, account, self.is_at_work),
            }
        };
        Ok(views.into_iter().map(detail).collect())
    }

    async fn change(&self, name: &str, mode: ProviderMode) -> Result<Response, Refused> {
        let changed = self.orders.engine().set_provider_mode(name, mode).await;
        let changed = changed.map_err(|error| store_problem(&error))?;
        let (view, continued) = changed.ok_or_else(|| unknown(name))?;
        let provider = self.details(vec![view]).await?.pop().ok_or_else(|| unknown(name))?;
        Ok(json(StatusCode::OK, &ChangedProvider { provider, continued }))
    }
}

fn unknown(name: &str) -> Refused {
    Code::UnknownProvider.because(format!("No provider is called `{}`.", name.escape_debug()))
}

/// The name of a provider in the path. One that cannot be read is the name of no provider.
pub(crate) struct ByName(String);

impl<S: Send + Sync> FromRequestParts<S> for ByName {
    type Rejection = Refused;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Refused> {
        let path: Result<Path<String>, PathRejection> = Path::from_request_parts(parts, state).await;
        path.map(|Path(name)| Self(name)).map_err(|_| Code::UnknownProvider.plain())
    }
}

/// List the providers
///
/// In the order of the configuration, with their state and their accounts. A balance may be half a minute old.
#[utoipa::path(
    get, path = "/v1/admin/providers", operation_id = "listProviders", tag = "admin",
    responses((status = 200, body = ProviderList, description = "All providers."), ProvidersProblems),
    security(("bearer" = []), ("api_key" = [])),
)]
pub(crate) async fn list(State(state): State<AppState>, _: Operator) -> Result<Response, Refused> {
    let engine = state.orders.engine();
    let views = engine.provider_views().await.map_err(|error| store_problem(&error))?;
    let providers = state.details(views).await?;
    Ok(json(StatusCode::OK, &ProviderList { routing: ShownRouting::of(engine), providers }))
}

/// Read a provider
#[utoipa::path(
    get, path = "/v1/admin/providers/{name}", operation_id = "readProvider", tag = "admin",
    params(("name" = String, Path, pattern = "^[A-Za-z0-9_-]{1,64}$", description = "The provider's name.")),
    responses((status = 200, body = ProviderDetail, description = "The provider."), ProviderProblems),
    security(("bearer" = []), ("api_key" = [])),
)]
pub(crate) async fn read(
    State(state): State<AppState>,
    _: Operator,
    ByName(name): ByName,
) -> Result<Response, Refused> {
    let mut views = state.orders.engine().provider_views().await.map_err(|error| store_problem(&error))?;
    views.retain(|view| view.name == name);
    let provider = state.details(views).await?.pop().ok_or_else(|| unknown(&name))?;
    Ok(json(StatusCode::OK, &provider))
}

/// Pause a provider
///
/// It gets no submit until it is resumed. Its open tasks are still polled, and its answers are used. Orders go to
/// another provider, or wait.
#[utoipa::path(
    post, path = "/v1/admin/providers/{name}/pause", operation_id = "pauseProvider", tag = "admin",
    params(("name" = String, Path, pattern = "^[A-Za-z0-9_-]{1,64}$", description = "The provider's name.")),
    responses((status = 200, body = ChangedProvider, description = "The provider, paused on all nodes."), ProviderProblems),
    security(("bearer" = []), ("api_key" = [])),
)]
pub(crate) async fn pause(
    State(state): State<AppState>,
    _: Operator,
    ByName(name): ByName,
) -> Result<Response, Refused> {
    state.change(&name, ProviderMode::Paused).await
}

/// Resume a provider
///
/// Ends a pause, a drain, and a pause because of a faulty account, and resets the circuit breaker. Orders that waited
/// for the account continue.
#[utoipa::path(
    post, path = "/v1/admin/providers/{name}/resume", operation_id = "resumeProvider", tag = "admin",
    params(("name" = String, Path, pattern = "^[A-Za-z0-9_-]{1,64}$", description = "The provider's name.")),
    responses((status = 200, body = ChangedProvider, description = "The provider, resumed on all nodes."), ProviderProblems),
    security(("bearer" = []), ("api_key" = [])),
)]
pub(crate) async fn resume(
    State(state): State<AppState>,
    _: Operator,
    ByName(name): ByName,
) -> Result<Response, Refused> {
    state.change(&name, ProviderMode::Active).await
}

/// Drain a provider
///
/// It finishes the tasks that it has, and gets no more until it is resumed: `open_tasks` falls to 0.
#[utoipa::path(
    post, path = "/v1/admin/providers/{name}/drain", operation_id = "drainProvider", tag = "admin",
    params(("name" = String, Path, pattern = "^[A-Za-z0-9_-]{1,64}$", description = "The provider's name.")),
    responses((status = 200, body = ChangedProvider, description = "The provider, drained on all nodes."), ProviderProblems),
    security(("bearer" = []), ("api_key" = [])),
)]
pub(crate) async fn drain(
    State(state): State<AppState>,
    _: Operator,
    ByName(name): ByName,
) -> Result<Response, Refused> {
    state.change(&name, ProviderMode::Drained).await
}

/// Resume all providers
///
/// Orders that wait for an account continue, on all nodes.
#[utoipa::path(
    post, path = "/v1/admin/resume", operation_id = "resumeAll", tag = "admin",
    responses((status = 200, body = Resumed, description = "Number of orders that continue."), ProvidersProblems),
    security(("bearer" = []), ("api_key" = [])),
)]
pub(crate) async fn resume_all(State(state): State<AppState>, _: Operator) -> Result<Response, Refused> {
    let continued = state.orders.engine().resume_all().await.map_err(|error| store_problem(&error))?;
    Ok(json(StatusCode::OK, &Resumed { continued }))
}
