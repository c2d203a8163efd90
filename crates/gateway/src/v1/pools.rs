//! The pools, for the operator: each with what is asked of it, the level that follows from that and why, and what it spends.

use super::Room;
use super::caller::Operator;
use super::moment::{decimal, rfc3339};
use super::orders::{PLACE_WAIT, declined, not_placed, store_away, store_trouble};
use super::pool_wish::NewPool;
use super::problem::{Code, Refused, problems};
use super::wish::Said;
use crate::door::carry_out;
use crate::tenant::Tenants;
use axum::extract::rejection::PathRejection;
use axum::extract::{FromRequestParts, Path, State};
use axum::http::request::Parts;
use axum::response::{IntoResponse, Response};
use hyper::StatusCode;
use quittance_engine::{PoolError, PoolShown};
use quittance_lifecycle::secrets::shown_param;
use quittance_lifecycle::time::millis;
use quittance_lifecycle::{Draft, Timestamp};
use quittance_pool::Goal;
use quittance_ports::{Demand, LevelShown, PoolSpec, Spent};
use serde::Serialize;
use std::collections::BTreeMap;
use utoipa::ToSchema;

const HOUR_MS: u64 = 3600 * 1000;

problems!(PoolsProblems: Unauthorized, Forbidden, NeedsAPerson, StoreUnavailable);
problems!(PoolProblems: Unauthorized, Forbidden, UnknownPool, NeedsAPerson, StoreUnavailable);
problems!(SetPoolProblems: BadJson, BrokenBody, Unauthorized, Forbidden, TargetNotAllowed, KindNotAllowed, TooSlow,
    NeedsAPerson, PoolBusy, SameTarget, TooManyPools, TooLarge, WrongContentType, BadParams, StoreUnavailable);

/// How a pool is sized, as the node that keeps it decided last.
#[derive(Serialize, ToSchema)]
pub(super) struct ShownLevel {
    #[schema(format = DateTime)]
    at: String,
    /// How many answers are to stand there fresh or be on their way.
    size: u32,
    why: String,
    fresh: u32,
    on_their_way: u32,
    /// Orders a second, as they are expected.
    rate_per_s: f64,
    /// How long an answer takes from the decision to buy it to the shelf.
    lead_ms: u64,
}

impl ShownLevel {
    fn of(level: &LevelShown) -> Self {
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

/// What was asked of it, on all nodes that are there, since each of them was started.
#[derive(Serialize, ToSchema)]
pub(super) struct ShownDemand {
    /// From the shelf.
    served: u64,
    /// Had to be bought.
    missed: u64,
    /// The share that was served; absent if nothing was asked.
    #[schema(minimum = 0, maximum = 1)]
    #[serde(skip_serializing_if = "Option::is_none")]
    hit_rate: Option<f64>,
}

impl ShownDemand {
    fn of(demand: Demand) -> Self {
        let Demand { served, missed } = demand;
        Self { served, missed, hit_rate: share(served, served.saturating_add(missed)) }
    }
}

/// To four places; none, of nothing.
pub(super) fn share(part: u64, whole: u64) -> Option<f64> {
    (whole > 0).then(|| (part as f64 / whole as f64 * 10_000.0).round().min(10_000.0) / 10_000.0)
}

/// What it has set out to spend in this hour (UTC); null if there are refills and no price of them is known.
#[derive(Serialize, ToSchema)]
pub(super) struct ShownSpent {
    #[schema(pattern = "^[0-9]+(\\.[0-9]{1,6})?$")]
    money: Option<String>,
    money_micros: Option<u64>,
    refills: u64,
    /// How many of the refills had no known price: they are not in `money`.
    unpriced: u64,
}

/// What was spent in an hour that has passed is no longer of this one.
pub(crate) fn spent_this_hour(spent: &Spent, now: Timestamp) -> Spent {
    let hour = now.as_millis() / HOUR_MS;
    if spent.hour == hour { *spent } else { Spent { hour, ..Spent::default() } }
}

#[derive(Serialize, ToSchema)]
pub(super) struct ShownPool {
    #[schema(pattern = "^[A-Za-z0-9._-]{1,64}$")]
    name: String,
    tenant: String,
    kind: String,
    /// Passwords and cookies are left out.
    params: BTreeMap<String, String>,
    /// The share of orders that the shelf is to serve; absent if it has a size.
    #[serde(skip_serializing_if = "Option::is_none")]
    service_level: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    size: Option<u32>,
    #[schema(pattern = "^[0-9]+(\\.[0-9]{1,6})?$")]
    #[serde(skip_serializing_if = "Option::is_none")]
    budget_per_hour: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    budget_per_hour_micros: Option<u64>,
    /// When it is kept filled, in UTC; always, if there is none.
    hours: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    min_life_s: Option<f64>,
    enabled: bool,
    /// Whether what it asks for makes sense here: a kind that there is, and a site that may be automated.
    valid: bool,
    /// Absent until a node has looked at it.
    #[serde(skip_serializing_if = "Option::is_none")]
    level: Option<ShownLevel>,
    demand: ShownDemand,
    spent: ShownSpent,
    /// What the next refill costs: what the last answer cost, or else what the price list says; `null` if it is not known.
    #[schema(pattern = "^[0-9]+(\\.[0-9]{1,6})?$")]
    price: Option<String>,
    /// What all money of it is in.
    #[schema(pattern = "^[A-Z]{3}$", example = "USD")]
    currency: String,
    /// Why its budget lets it buy nothing, whatever is left of it: the price of an answer is not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    stopped: Option<String>,
    /// How long after its solve an answer can be handed out.
    usable_ms: u64,
    /// Whether it is this node that keeps it filled.
    kept_here: bool,
}

impl ShownPool {
    fn of(pool: &PoolShown, now: Timestamp) -> Self {
        let PoolShown { sheet, target, demand, is_kept_here, usable, price, currency } = pool;
        let spec = &sheet.spec;
        let (service_level, size) = match spec.goal {
            Goal::Served { permille } => (Some(f64::from(permille) / 1000.0), None),
            Goal::Fixed { size } => (None, Some(size)),
        };
        let spent = spent_this_hour(&sheet.spent, now);
        Self {
            name: spec.name.clone(),
            tenant: spec.tenant.clone(),
            kind: spec.kind.clone(),
            params: spec
                .params
                .iter()
                .map(|(name, value)| (name.clone(), shown_param(name, value)))
                .collect(),
            service_level,
            size,
            budget_per_hour: spec.budget.map(decimal),
            budget_per_hour_micros: spec.budget.map(|budget| budget.0),
            hours: spec.hours.iter().map(ToString::to_string).collect(),
            min_life_s: spec.min_life.map(|life| life.as_secs_f64()),
            enabled: spec.is_on,
            valid: target.is_some(),
            level: sheet.level.as_ref().map(ShownLevel::of),
            demand: ShownDemand::of(*demand),
            spent: ShownSpent {
                money: spent.sum().known().map(decimal),
                money_micros: spent.sum().known().map(|money| money.0),
                refills: spent.refills,
                unpriced: spent.unpriced,
            },
            price: price.map(decimal),
            currency: currency.clone(),
            stopped: pool.stopped_by_price(),
            usable_ms: millis(*usable),
            kept_here: *is_kept_here,
        }
    }
}

#[derive(Serialize, ToSchema)]
pub(super) struct PoolList {
    pools: Vec<ShownPool>,
}

/// A pool where much else is told.
#[derive(Serialize, ToSchema)]
pub(super) struct PoolInShort {
    name: String,
    tenant: String,
    kind: String,
    enabled: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    level: Option<ShownLevel>,
    demand: ShownDemand,
}

impl PoolInShort {
    pub(super) fn of(pool: &PoolShown) -> Self {
        let spec = &pool.sheet.spec;
        Self {
            name: spec.name.clone(),
            tenant: spec.tenant.clone(),
            kind: spec.kind.clone(),
            enabled: spec.is_on,
            level: pool.sheet.level.as_ref().map(ShownLevel::of),
            demand: ShownDemand::of(pool.demand),
        }
    }
}

/// The pool that the path names. What cannot be read names none.
pub(super) struct PoolName(String);

impl FromRequestParts<Room> for PoolName {
    type Rejection = Refused;

    async fn from_request_parts(parts: &mut Parts, room: &Room) -> Result<Self, Refused> {
        let path: Result<Path<String>, PathRejection> = Path::from_request_parts(parts, room).await;
        path.map(|Path(name)| Self(name)).map_err(|_| Code::UnknownPool.plain())
    }
}

/// Lists the pools
#[utoipa::path(
    get, path = "/v1/pools", operation_id = "listPools", tag = "stock",
    responses((status = 200, body = PoolList, description = "All of them, by name."), PoolsProblems),
    security(("bearer" = []), ("api_key" = [])),
)]
pub(super) async fn list(State(room): State<Room>, _: Operator) -> Result<Response, Refused> {
    let pools = room.desk.engine().pools().await.map_err(|error| store_trouble(&error))?;
    let now = room.desk.clock().now();
    let pools = pools.iter().map(|pool| ShownPool::of(pool, now)).collect();
    Ok(super::json(StatusCode::OK, &PoolList { pools }))
}

/// Reads a pool
#[utoipa::path(
    get, path = "/v1/pools/{name}", operation_id = "readPool", tag = "stock",
    params(("name" = String, Path, pattern = "^[A-Za-z0-9._-]{1,64}$", description = "The pool's name.")),
    responses((status = 200, body = ShownPool, description = "The pool."), PoolProblems),
    security(("bearer" = []), ("api_key" = [])),
)]
pub(super) async fn read(
    State(room): State<Room>,
    _: Operator,
    PoolName(name): PoolName,
) -> Result<Response, Refused> {
    let pools = room.desk.engine().pools().await.map_err(|error| store_trouble(&error))?;
    let pool = pools.iter().find(|pool| pool.sheet.spec.name == name);
    let pool = pool.ok_or_else(|| Code::UnknownPool.plain())?;
    Ok(super::json(StatusCode::OK, &ShownPool::of(pool, room.desk.clock().now())))
}

/// Sets a pool up, or changes it
///
/// What is not said is as if it had never been said. What a pool has bought stays on its shelf, and all nodes learn of
/// the change within a few seconds.
#[utoipa::path(
    put, path = "/v1/pools/{name}", operation_id = "setPool", tag = "stock",
    params(("name" = String, Path, pattern = "^[A-Za-z0-9._-]{1,64}$", description = "The pool's name.")),
    request_body = NewPool,
    responses((status = 200, body = ShownPool, description = "The pool as it is now."), SetPoolProblems),
    security(("bearer" = []), ("api_key" = [])),
)]
pub(super) async fn set(
    State(room): State<Room>,
    _: Operator,
    PoolName(name): PoolName,
    said: Said,
) -> Result<Response, Refused> {
    let now = room.desk.clock().now();
    let only_tenant = room.desk.tenants().is_open().then_some(Tenants::LOCAL);
    let spec = said.pool(name, only_tenant)?;
    room.check_tenant(&spec, now)?;
    let desk = room.desk.clone();
    let setting = carry_out(async move { desk.engine().set_pool(spec).await }, PLACE_WAIT);
    let pool = setting.await.ok_or_else(store_away)?.map_err(|why| not_set(why, now))?;
    Ok(super::json(StatusCode::OK, &ShownPool::of(&pool, now)))
}

/// Takes a pool away
///
/// What it has bought stays on its shelf until it is handed out or spoils.
#[utoipa::path(
    delete, path = "/v1/pools/{name}", operation_id = "removePool", tag = "stock",
    params(("name" = String, Path, pattern = "^[A-Za-z0-9._-]{1,64}$", description = "The pool's name.")),
    responses((status = 204, description = "It is gone."), PoolProblems),
    security(("bearer" = []), ("api_key" = [])),
)]
pub(super) async fn remove(
    State(room): State<Room>,
    _: Operator,
    PoolName(name): PoolName,
) -> Result<Response, Refused> {
    let desk = room.desk.clone();
    let removing = carry_out(async move { desk.engine().remove_pool(&name).await }, PLACE_WAIT);
    match removing.await.ok_or_else(store_away)?.map_err(|error| store_trouble(&error))? {
        true => Ok(StatusCode::NO_CONTENT.into_response()),
        false => Err(Code::UnknownPool.plain()),
    }
}

impl Room {
    /// A pool for somebody who could never order from it would buy for nobody.
    fn check_tenant(&self, spec: &PoolSpec, now: Timestamp) -> Result<(), Refused> {
        let tenant = self.desk.tenants().named(&spec.tenant);
        let tenant = tenant.ok_or_else(|| Refused::bad("tenant", "There is no tenant of this name."))?;
        let draft = Draft { params: spec.params.clone(), ..Draft::new(spec.tenant.clone()) };
        self.desk.check_for(&tenant.settings, &spec.kind, &draft).map_err(|why| declined(why, now))
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
        PoolError::Store(error) => store_trouble(&error),
    }
}
