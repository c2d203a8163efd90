//! Order endpoints: place, read, list, cancel and report. A caller that disconnects while it waits loses nothing,
//! because the order is on record and continues.

use super::caller::{Chosen, Id, Prefer, Tenanted};
use super::list_page::{PageQuery, bad_query, read_limit};
use super::order_problems::{declined, not_seen, store_away, store_problem};
use super::order_view::{OrderInFull, OrderInShort, Source};
use super::problem::{Code, Refused, retry_after};
use super::request_body::{JsonBody, NewOrder, ReportBody};
use super::{AppState, PLACE_WAIT};
use crate::api::IDEMPOTENT_REPLAYED;
use crate::cursor::CursorOf;
use crate::problems;
use crate::{Accepted, OrderId, OrderView, Reported};
use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, State};
use axum::response::Response;
use hyper::header::{HeaderMap, HeaderName, HeaderValue, LOCATION, RETRY_AFTER};
use hyper::{Method, StatusCode};
use quittance_engine::Outcome;
use quittance_lifecycle::FailCause;
use serde::Serialize;
use std::time::Duration;
use utoipa::ToSchema;

/// Shortest and longest `Retry-After` for a pending order.
pub(super) const LOOK_SOONEST: Duration = Duration::from_secs(1);
const LOOK_LATEST: Duration = Duration::from_secs(15);

const PREFERENCE_APPLIED: HeaderName = HeaderName::from_static("preference-applied");

problems!(PlaceProblems: BadJson, BrokenBody, Unauthorized, Forbidden, TargetNotAllowed, KindNotAllowed, TooSlow, InFlight,
    NeedsAPerson, AnswerExpired, TooLarge, WrongContentType, BadParams, BadCallback, IdempotencyMismatch, HeldBack,
    RateLimited, TooManyOpen, TooManyWebhooks, StoreUnavailable);
problems!(ReadProblems: Unauthorized, Forbidden, UnknownOrder, NeedsAPerson, StoreUnavailable);
problems!(CancelProblems: Unauthorized, Forbidden, UnknownOrder, AlreadyOver, NeedsAPerson, StoreUnavailable);
problems!(ReportProblems: BadJson, BrokenBody, Unauthorized, Forbidden, UnknownOrder, TooSlow, Contradicted,
    NothingToReport, NeedsAPerson, TooLarge, WrongContentType, BadParams, StoreUnavailable);
problems!(ListProblems: Unauthorized, Forbidden, NeedsAPerson, BadParams, StoreUnavailable);

/// Place an order, or join an equal one
///
/// The order is durable when this responds, and continues even if the caller disconnects. The same Idempotency-Key is the same
/// job, and is never paid twice. `reuse` decides how equal orders without a key are treated.
#[utoipa::path(
    post, path = "/v1/orders", operation_id = "placeOrder", tag = "orders",
    params(
        ("Idempotency-Key" = Option<String>, Header, min_length = 1, max_length = 255, pattern = "^[!-~]+$",
            description = "Key of the order: a request with the same key is a repeat."),
        ("Prefer" = Option<String>, Header,
            description = "`wait=N`: wait up to N seconds, at most 300, for the end of the order. `handling=strict`: \
            409 if the same order is in flight, instead of a join."),
    ),
    request_body = NewOrder,
    responses(
        (status = 200, body = OrderInFull, description = "The order has ended.", headers(
            ("Preference-Applied" = String, description = "Preferences that were applied."),
            ("Idempotent-Replayed" = bool, description = "The same key was used before."),
        )),
        (status = 202, body = OrderInFull, description = "The order is in progress.", headers(
            ("Location" = String, description = "Address of the order."),
            ("Retry-After" = u64, description = "Seconds to wait before the next read."),
            ("Preference-Applied" = String, description = "Preferences that were applied."),
            ("Idempotent-Replayed" = bool, description = "The same key was used before."),
        )),
        PlaceProblems,
    ),
    security(("bearer" = []), ("api_key" = [])),
)]
pub(super) async fn place(
    State(state): State<AppState>,
    Tenanted(caller): Tenanted,
    Chosen(chosen): Chosen,
    prefer: Prefer,
    headers: HeaderMap,
    body: JsonBody,
) -> Result<Response, Refused> {
    let mut request = body.request(chosen)?;
    request.is_strict = prefer.is_strict;
    request.draft.trace = crate::api::trace_of(&headers);
    let now = state.orders.clock().now();
    let placed = state.orders.place(caller, request, PLACE_WAIT).await;
    let accepted = placed.map_err(|why| declined(why, now))?;
    let seen = state.orders.wait_for_accepted(&accepted, prefer.timeout()).await.ok();
    let Accepted { id, placed, .. } = &accepted;
    let seen = seen.filter(|seen| seen.outcome != Outcome::Forgotten);
    let seen = seen.ok_or_else(|| store_away().see(address(*id)))?;
    let source = Source::of(placed.origin, &seen.order);
    let mut response = state.show(*id, source, &seen, prefer)?;
    if accepted.is_replayed() {
        response.headers_mut().insert(IDEMPOTENT_REPLAYED, HeaderValue::from_static("true"));
    }
    Ok(response)
}

/// Read an order
///
/// With `Prefer: wait=N`, waits until the order has ended.
#[utoipa::path(
    get, path = "/v1/orders/{id}", operation_id = "readOrder", tag = "orders",
    params(
        ("id" = String, Path, pattern = "^[1-9][0-9]{0,15}$", description = "The order's id."),
        ("Prefer" = Option<String>, Header, description = "`wait=N`: wait up to N seconds, at most 300, for the end of the order."),
    ),
    responses(
        (status = 200, body = OrderInFull, description = "The order.", headers(
            ("Preference-Applied" = String, description = "Preferences that were applied."),
            ("Retry-After" = u64, description = "While the order is pending: seconds to wait before the next read."),
        )),
        (status = 202, body = OrderInFull, description = "The node is stopping, and the order is still in progress.", headers(
            ("Location" = String, description = "Address of the order."),
            ("Retry-After" = u64, description = "Seconds to wait before the next read."),
        )),
        ReadProblems,
    ),
    security(("bearer" = []), ("api_key" = [])),
)]
pub(super) async fn read(
    State(state): State<AppState>,
    Tenanted(caller): Tenanted,
    Id(id): Id,
    method: Method,
    prefer: Prefer,
) -> Result<Response, Refused> {
    // The answer does not leave with it, so nothing is collected and nothing is waited for.
    let is_head = method == Method::HEAD;
    let prefer = if is_head { Prefer::default() } else { prefer };
    let timeout = prefer.timeout();
    let seen = match is_head {
        true => state.orders.glance(&caller, id).await,
        false => state.orders.wait(&caller, id, timeout).await,
    };
    let seen = seen.map_err(not_seen)?;
    let mut response = state.show(id, Source::by(id, &seen.order), &seen, prefer)?;
    // The order was found, whatever has become of it. A caller whose wait was cut short is asked to come again, as when it places.
    if timeout.is_zero() || !state.orders.is_closing() {
        *response.status_mut() = StatusCode::OK;
        response.headers_mut().remove(LOCATION);
    }
    Ok(response)
}

/// Cancel an order
///
/// An answer that may have been paid goes to the stock.
#[utoipa::path(
    delete, path = "/v1/orders/{id}", operation_id = "cancelOrder", tag = "orders",
    params(("id" = String, Path, pattern = "^[1-9][0-9]{0,15}$", description = "The order's id.")),
    responses((status = 200, body = OrderInFull, description = "The order, cancelled."), CancelProblems),
    security(("bearer" = []), ("api_key" = [])),
)]
pub(super) async fn cancel(
    State(state): State<AppState>,
    Tenanted(caller): Tenanted,
    Id(id): Id,
) -> Result<Response, Refused> {
    if !state.orders.cancel(&caller, id).await.map_err(not_seen)? {
        return Err(Code::AlreadyOver.plain());
    }
    let order = state.orders.find(&caller, id).await.map_err(not_seen)?;
    // If its task continues, the answer is for the stock and not for this caller.
    let outcome = Outcome::Failed(FailCause::Cancelled);
    state.show(id, Source::by(id, &order), &OrderView { order, outcome }, Prefer::default())
}

#[derive(Serialize, ToSchema)]
pub(super) struct Recorded {
    recorded: bool,
}

/// Report whether an answer was good
///
/// The report is sent to the provider once.
#[utoipa::path(
    post, path = "/v1/orders/{id}/report", operation_id = "reportOrder", tag = "orders",
    params(("id" = String, Path, pattern = "^[1-9][0-9]{0,15}$", description = "The order's id.")),
    request_body = ReportBody,
    responses((status = 200, body = Recorded, description = "The report is on record."), ReportProblems),
    security(("bearer" = []), ("api_key" = [])),
)]
pub(super) async fn report(
    State(state): State<AppState>,
    Tenanted(caller): Tenanted,
    Id(id): Id,
    body: JsonBody,
) -> Result<Response, Refused> {
    let is_good = body.verdict()?;
    match state.orders.report(&caller, id, is_good).await.map_err(not_seen)? {
        Reported::Recorded => Ok(super::json(StatusCode::OK, &Recorded { recorded: true })),
        Reported::Contradicted => Err(Code::Contradicted.plain()),
        Reported::NothingToReport => Err(Code::NothingToReport.plain()),
    }
}

#[derive(Serialize, ToSchema)]
pub(super) struct OrderList {
    orders: Vec<OrderInShort>,
    /// Value of `after` for the next page; absent on the last page. A page may be short or empty and not the last.
    #[schema(pattern = "^[0-9a-f]{96}$")]
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<String>,
}

/// List the orders of the caller
///
/// Sorted by key, without answers.
#[utoipa::path(
    get, path = "/v1/orders", operation_id = "listOrders", tag = "orders",
    params(PageQuery),
    responses((status = 200, body = OrderList, description = "A page of orders."), ListProblems),
    security(("bearer" = []), ("api_key" = [])),
)]
pub(super) async fn list(
    State(state): State<AppState>,
    Tenanted(caller): Tenanted,
    query: Result<Query<PageQuery>, QueryRejection>,
) -> Result<Response, Refused> {
    let Query(query) = query.map_err(bad_query)?;
    let which = query.status.unwrap_or_default().which().of(caller.tenant.name());
    let limit = read_limit(query.limit)?;
    let (root, list) = (state.orders.webhooks().root_secret(), CursorOf(which));
    let not_ours = || {
        let why = "`after` must be the `next` of the page before, of the same list: the same key, `status` and store. Leave it \
                   out to begin again.";
        Refused::bad("after", why)
    };
    let after = match query.after {
        Some(cursor) => Some(list.open(&root, &cursor).ok_or_else(not_ours)?),
        None => None,
    };
    let listed = state.orders.list(which, after, limit).await;
    let (orders, next) = listed.map_err(|error| store_problem(&error))?;
    let now = state.orders.clock().now();
    let orders = orders.iter().map(|order| OrderInShort::of(order, now)).collect();
    Ok(super::json(StatusCode::OK, &OrderList { orders, next: next.map(|key| list.seal(&root, &key)) }))
}

impl AppState {
    fn show(
        &self,
        id: OrderId,
        source: Source,
        seen: &OrderView,
        prefer: Prefer,
    ) -> Result<Response, Refused> {
        let shown = self.view(id, source, seen)?;
        let status = if shown.is_pending() { StatusCode::ACCEPTED } else { StatusCode::OK };
        let mut response = super::json(status, &shown);
        let headers = response.headers_mut();
        if shown.is_pending() {
            headers.insert(RETRY_AFTER, retry_after(self.pause(seen)));
            headers.extend(HeaderValue::try_from(address(id)).ok().map(|address| (LOCATION, address)));
        }
        let applied = prefer.applied().and_then(|applied| HeaderValue::try_from(applied).ok());
        headers.extend(applied.map(|applied| (PREFERENCE_APPLIED, applied)));
        Ok(response)
    }

    pub(super) fn view(&self, id: OrderId, source: Source, seen: &OrderView) -> Result<OrderInFull, Refused> {
        let now = self.orders.clock().now();
        let currency = self.orders.engine().currency();
        OrderInFull::of(id, source, &seen.order, &seen.outcome, now, currency)
            .ok_or_else(|| Code::UnknownOrder.plain())
    }

    /// When an answer may be there: half of the answers take no longer than the kind's median.
    fn pause(&self, seen: &OrderView) -> Duration {
        let usual =
            self.orders.engine().kind(&seen.order.terms.kind).map_or(LOOK_LATEST, |kind| kind.pace.p50);
        let passed = self.orders.clock().now().since(seen.order.placed);
        usual.saturating_sub(passed).clamp(LOOK_SOONEST, LOOK_LATEST)
    }
}

pub(super) fn address(id: OrderId) -> String {
    format!("/v1/orders/{id}")
}
