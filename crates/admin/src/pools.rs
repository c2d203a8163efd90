//! The pools: each with its demand, its size and the reason for it, and its spending.

use crate::AppState;
use crate::pool_request::{NewPool, change_pool, read_pool};
use axum::extract::rejection::PathRejection;
use axum::extract::{FromRequestParts, Path, State};
use axum::http::request::Parts;
use axum::response::{IntoResponse, Response};
use hyper::StatusCode;
use quittance_engine::{PoolError, PoolView};
use quittance_gateway::Tenants;
use quittance_gateway::carry_out;
use quittance_gateway::problems;
use quittance_gateway::v1::Operator;
use quittance_gateway::v1::PLACE_WAIT;
use quittance_gateway::v1::decimal;
use quittance_gateway::v1::json;
use quittance_gateway::v1::order_problems::{declined, not_placed, store_away, store_problem};
use quittance_gateway::v1::problem::{Code, Refused};
use quittance_gateway::v1::request_body::JsonBody;
use quittance_lifecycle::secrets::harmless_param;
use quittance_lifecycle::time::millis;
use quittance_lifecycle::{Draft, Timestamp};
use quittance_ports::moment::rfc3339;
use quittance_ports::{Demand, Goal, LevelView, PoolDocument, PoolSpec};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::time::Duration;
use utoipa::ToSchema;

pub use crate::pool_request::PoolChange;

problems!(PoolsProblems: Unauthorized, Forbidden, NeedsAPerson, StoreUnavailable);
problems!(PoolProblems: Unauthorized, Forbidden, UnknownPool, NeedsAPerson, StoreUnavailable);
problems!(SetPoolProblems: BadJson, BrokenBody, Unauthorized, Forbidden, TargetNotAllowed, KindNotAllowed, TooSlow,
    NeedsAPerson, PoolBusy, SameTarget, TooManyPools, TooLarge, WrongContentType, BadParams, StoreUnavailable);
problems!(ChangePoolProblems: BadJson, BrokenBody, Unauthorized, Forbidden, UnknownPool, TargetNotAllowed, KindNotAllowed, TooSlow,
    NeedsAPerson, PoolBusy, SameTarget, TooManyPools, TooLarge, WrongContentType, BadParams, StoreUnavailable);

/// Size of a pool, as last decided by the node that fills it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ShownLevel {
    #[schema(format = DateTime)]
    pub at: String,
    /// Target number of answers, in stock or ordered.
    pub size: u32,
    pub why: String,
    pub fresh: u32,
    pub on_their_way: u32,
    /// Expected orders per second.
    pub rate_per_s: f64,
    /// Time from the decision to buy an answer until it is in the stock.
    pub lead_ms: u64,
}

impl ShownLevel {
    fn of(level: &LevelView) -> Self {
        Self {
            at: rfc3339(level.at),
            size: level.size,
            why: level.why.clone(),
            fresh: level.fresh,
            on_their_way: level.on_their_way,
            rate_per_s: level.rate_milli as f64 / 1000.0,
            lead_ms: millis(level.lead),
        }
    }
}

/// Demand on all running nodes, since the start of each.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ShownDemand {
    /// Orders served from the stock.
    pub served: u64,
    /// Orders that had to be bought.
    pub missed: u64,
    /// Ratio of orders served from the stock; absent if there were none.
    #[schema(minimum = 0, maximum = 1)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hit_rate: Option<f64>,
}

impl ShownDemand {
    fn of(demand: Demand) -> Self {
        let Demand { served, missed } = demand;
        Self { served, missed, hit_rate: share(served, served.saturating_add(missed)) }
    }
}

/// A ratio with four decimal places; `None` if the whole is zero.
pub(crate) fn share(part: u64, whole: u64) -> Option<f64> {
    (whole > 0).then(|| (part as f64 / whole as f64 * 10_000.0).round().min(10_000.0) / 10_000.0)
}

/// Planned spending in this hour (UTC); null if there are refills and no price is known.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ShownSpent {
    #[schema(pattern = "^[0-9]+(\\.[0-9]{1,6})?$")]
    pub money: Option<String>,
    pub money_micros: Option<u64>,
    pub refills: u64,
    /// Refills whose price is not known; they are not in `money`.
    pub unpriced: u64,
    /// The store forgot, so more may have been spent in this hour than this; absent if not.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub incomplete: bool,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ShownPool {
    #[schema(pattern = "^[A-Za-z0-9._-]{1,64}$")]
    pub name: String,
    pub tenant: String,
    pub kind: String,
    /// Parameters, without passwords and cookies.
    pub params: BTreeMap<String, String>,
    /// Ratio of orders that the stock should serve; absent if the pool has a size.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub service_level: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub size: Option<u32>,
    #[schema(pattern = "^[0-9]+(\\.[0-9]{1,6})?$")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub budget_per_hour: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub budget_per_hour_micros: Option<u64>,
    /// Times of day, in UTC, during which the pool is filled; empty: always.
    pub hours: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min_life_s: Option<f64>,
    pub enabled: bool,
    /// Whether the pool is valid here: a known kind, and an allowed site.
    pub valid: bool,
    /// Absent until a node has handled the pool.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub level: Option<ShownLevel>,
    pub demand: ShownDemand,
    pub spent: ShownSpent,
    /// Price of the next refill: that of the last answer, else from the price list; `null` if it is not known.
    #[schema(pattern = "^[0-9]+(\\.[0-9]{1,6})?$")]
    pub price: Option<String>,
    /// Currency of all amounts.
    #[schema(pattern = "^[A-Z]{3}$", example = "USD")]
    pub currency: String,
    /// Why a pool with a budget buys nothing: the price of an answer, or what was spent in this hour, is not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stopped: Option<String>,
    /// How long after the solve an answer can be handed out.
    pub usable_ms: u64,
    /// Whether this node fills the pool.
    pub kept_here: bool,
}

impl ShownPool {
    /// A pool with these settings that no node has handled yet.
    #[must_use]
    pub fn of_settings(spec: PoolSpec) -> Self {
        let pool = PoolView {
            document: PoolDocument::new(spec, Timestamp::ZERO),
            target: None,
            demand: Demand::default(),
            is_kept_here: false,
            usable: Duration::ZERO,
            price: None,
            currency: String::new(),
        };
        Self::of(&pool, Timestamp::ZERO)
    }

    fn of(pool: &PoolView, now: Timestamp) -> Self {
        let PoolView { document, target, demand, is_kept_here, usable, price, currency } = pool;
        let spec = &document.spec;
        let (service_level, size) = match spec.goal {
            Goal::Served { permille } => (Some(f64::from(permille) / 1000.0), None),
            Goal::Fixed { size } => (None, Some(size)),
        };
        let spent = document.spent.in_hour_of(now);
        Self {
            name: spec.name.clone(),
            tenant: spec.tenant.clone(),
            kind: spec.kind.clone(),
            params: spec
                .params
                .iter()
                .map(|(name, value)| (name.clone(), harmless_param(name, value)))
                .collect(),
            service_level,
            size,
            budget_per_hour: spec.budget.map(decimal),
            budget_per_hour_micros: spec.budget.map(|budget| budget.0),
            hours: spec.hours.iter().map(ToString::to_string).collect(),
            min_life_s: spec.min_life.map(|life| life.as_secs_f64()),
            enabled: spec.is_on,
            valid: target.is_some(),
            level: document.level.as_ref().map(ShownLevel::of),
            demand: ShownDemand::of(*demand),
            spent: ShownSpent {
                money: spent.sum().known().map(decimal),
                money_micros: spent.sum().known().map(|money| money.0),
                refills: spent.refills,
                unpriced: spent.unpriced,
                incomplete: spent.is_incomplete,
            },
            price: price.map(decimal),
            currency: currency.clone(),
            stopped: pool.stopped(now),
            usable_ms: millis(*usable),
            kept_here: *is_kept_here,
        }
    }
}

#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct PoolList {
    pub pools: Vec<ShownPool>,
}

/// The main settings of a pool, as the list of pools shows them.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct PoolInShort {
    pub name: String,
    pub tenant: String,
    pub kind: String,
    pub enabled: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub level: Option<ShownLevel>,
    pub demand: ShownDemand,
}

impl PoolInShort {
    pub(crate) fn of(pool: &PoolView) -> Self {
        let spec = &pool.document.spec;
        Self {
            name: spec.name.clone(),
            tenant: spec.tenant.clone(),
            kind: spec.kind.clone(),
            enabled: spec.is_on,
            level: pool.document.level.as_ref().map(ShownLevel::of),
            demand: ShownDemand::of(pool.demand),
        }
    }
}

/// The name in the path. An invalid name is an unknown pool.
pub(crate) struct PoolName(String);

impl FromRequestParts<AppState> for PoolName {
    type Rejection = Refused;

    async fn from_request_parts(parts: &mut Parts, state: &AppState) -> Result<Self, Refused> {
        let path: Result<Path<String>, PathRejection> = Path::from_request_parts(parts, state).await;
        path.map(|Path(name)| Self(name)).map_err(|_| Code::UnknownPool.plain())
    }
}

/// List the pools
#[utoipa::path(
    get, path = "/v1/pools", operation_id = "listPools", tag = "stock",
    responses((status = 200, body = PoolList, description = "All pools, sorted by name."), PoolsProblems),
    security(("bearer" = []), ("api_key" = [])),
)]
pub(crate) async fn list(State(state): State<AppState>, _: Operator) -> Result<Response, Refused> {
    let pools = state.orders.engine().pools().await.map_err(|error| store_problem(&error))?;
    let now = state.orders.clock().now();
    let pools = pools.iter().map(|pool| ShownPool::of(pool, now)).collect();
    Ok(json(StatusCode::OK, &PoolList { pools }))
}

/// Read a pool
#[utoipa::path(
    get, path = "/v1/pools/{name}", operation_id = "readPool", tag = "stock",
    params(("name" = String, Path, pattern = "^[A-Za-z0-9._-]{1,64}$", description = "The pool's name.")),
    responses((status = 200, body = ShownPool, description = "The pool."), PoolProblems),
    security(("bearer" = []), ("api_key" = [])),
)]
pub(crate) async fn read(
    State(state): State<AppState>,
    _: Operator,
    PoolName(name): PoolName,
) -> Result<Response, Refused> {
    let pools = state.orders.engine().pools().await.map_err(|error| store_problem(&error))?;
    let pool = pools.iter().find(|pool| pool.document.spec.name == name);
    let pool = pool.ok_or_else(|| Code::UnknownPool.plain())?;
    Ok(json(StatusCode::OK, &ShownPool::of(pool, state.orders.clock().now())))
}

/// Create or replace a pool
///
/// Absent values get their defaults. Answers that the pool has bought stay in its stock, and all nodes apply
/// the change within a few seconds.
#[utoipa::path(
    put, path = "/v1/pools/{name}", operation_id = "setPool", tag = "stock",
    params(("name" = String, Path, pattern = "^[A-Za-z0-9._-]{1,64}$", description = "The pool's name.")),
    request_body = NewPool,
    responses((status = 200, body = ShownPool, description = "The pool."), SetPoolProblems),
    security(("bearer" = []), ("api_key" = [])),
)]
pub(crate) async fn set(
    State(state): State<AppState>,
    _: Operator,
    PoolName(name): PoolName,
    body: JsonBody,
) -> Result<Response, Refused> {
    let now = state.orders.clock().now();
    let only_tenant = state.orders.tenants().is_open().then_some(Tenants::LOCAL);
    let spec = read_pool(body, name, only_tenant)?;
    state.set_pool(spec, now).await
}

/// Change a pool
///
/// A merge patch (RFC 7396): absent values stay as they are, so values that the API does not show are kept. Null resets a value to its
/// default, and removes a parameter. `service_level` and `size` replace each other; a new `kind` starts without parameters.
#[utoipa::path(
    patch, path = "/v1/pools/{name}", operation_id = "changePool", tag = "stock",
    params(("name" = String, Path, pattern = "^[A-Za-z0-9._-]{1,64}$", description = "The pool's name.")),
    request_body = PoolChange,
    responses((status = 200, body = ShownPool, description = "The pool."), ChangePoolProblems),
    security(("bearer" = []), ("api_key" = [])),
)]
pub(crate) async fn change(
    State(state): State<AppState>,
    _: Operator,
    PoolName(name): PoolName,
    body: JsonBody,
) -> Result<Response, Refused> {
    let now = state.orders.clock().now();
    let pools = state.orders.engine().pools().await.map_err(|error| store_problem(&error))?;
    let pool = pools.into_iter().find(|pool| pool.document.spec.name == name);
    let pool = pool.ok_or_else(|| Code::UnknownPool.plain())?;
    let spec = change_pool(body, &pool.document.spec)?;
    // A write would make the node that fills the pool compute its level again.
    if spec == pool.document.spec {
        return Ok(json(StatusCode::OK, &ShownPool::of(&pool, now)));
    }
    state.set_pool(spec, now).await
}

/// Remove a pool
///
/// Its answers stay in the stock until they are handed out or expire.
#[utoipa::path(
    delete, path = "/v1/pools/{name}", operation_id = "removePool", tag = "stock",
    params(("name" = String, Path, pattern = "^[A-Za-z0-9._-]{1,64}$", description = "The pool's name.")),
    responses((status = 204, description = "The pool is removed."), PoolProblems),
    security(("bearer" = []), ("api_key" = [])),
)]
pub(crate) async fn remove(
    State(state): State<AppState>,
    _: Operator,
    PoolName(name): PoolName,
) -> Result<Response, Refused> {
    let orders = state.orders.clone();
    let removing = carry_out(async move { orders.engine().remove_pool(&name).await }, PLACE_WAIT);
    match removing.await.ok_or_else(store_away)?.map_err(|error| store_problem(&error))? {
        true => Ok(StatusCode::NO_CONTENT.into_response()),
        false => Err(Code::UnknownPool.plain()),
    }
}

impl AppState {
    async fn set_pool(&self, spec: PoolSpec, now: Timestamp) -> Result<Response, Refused> {
        self.check_tenant(&spec, now)?;
        let orders = self.orders.clone();
        let setting = carry_out(async move { orders.engine().set_pool(spec).await }, PLACE_WAIT);
        let pool = setting.await.ok_or_else(store_away)?.map_err(|why| not_set(why, now))?;
        Ok(json(StatusCode::OK, &ShownPool::of(&pool, now)))
    }

    /// Refuses a pool for a tenant that may not place its orders: its answers could never be used.
    fn check_tenant(&self, spec: &PoolSpec, now: Timestamp) -> Result<(), Refused> {
        let tenants = self.orders.tenants();
        let tenant = tenants.named(&spec.tenant);
        let tenant = tenant.ok_or_else(|| Refused::bad("tenant", "There is no tenant of this name."))?;
        let draft = Draft { params: spec.params.clone(), ..Draft::new(spec.tenant.clone()) };
        self.orders.check_for(&tenant.settings, &spec.kind, &draft).map_err(|why| declined(why, now))
    }
}

fn not_set(why: PoolError, now: Timestamp) -> Refused {
    let detail = why.to_string();
    match why {
        PoolError::BadName { .. } => {
            Refused::bad("name", "A pool's name has 1 to 64 letters, digits, dots, dashes and underscores.")
        }
        PoolError::TooLarge { .. } => Refused::bad("params", detail),
        PoolError::BadGoal => Refused::bad("service_level", detail),
        PoolError::BadHours => Refused::bad("hours", detail),
        PoolError::Place(why) => not_placed(why, detail, now),
        PoolError::CannotBeKept { .. } => Refused::bad("kind", detail),
        PoolError::SameTarget { .. } => Code::SameTarget.because(detail),
        PoolError::NoRoom => Code::TooManyPools.because(detail),
        PoolError::Conflict => Code::PoolBusy.because(detail),
        PoolError::Store(error) => store_problem(&error),
    }
}
