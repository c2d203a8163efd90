//! Finds orders by id, by key or its beginning, by idempotency key, by site or URL of a page, or by tenant or kind.

use crate::AppState;
use crate::dead_letter::{Found, UnreadDeadLetter, Walk, key_of};
use crate::timeline::operator_error;
use axum::extract::{FromRequestParts, Query, State};
use axum::http::request::Parts;
use axum::response::Response;
use hyper::StatusCode;
use quittance_engine::targets::canonical_host;
use quittance_gateway::OrderId;
use quittance_gateway::problems;
use quittance_gateway::v1::Operator;
use quittance_gateway::v1::json;
use quittance_gateway::v1::list_page::{bad_query, read_key, read_limit};
use quittance_gateway::v1::problem::Refused;
use quittance_lifecycle::terms::page_host;
use quittance_lifecycle::{Key, KeyPrefix, Order, Timestamp};
use quittance_ports::{StoreError, Unreadable, Which};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

const TEXT_BYTES_MAX: usize = 2048;

problems!(FindProblems: Unauthorized, Forbidden, Unreadable, BadParams, StoreUnavailable);

#[derive(Debug, Serialize, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub struct FindQuery {
    /// An id, a key or its first 6 or more digits, an idempotency key, a part of a site's host name, the URL of one of its
    /// pages, or the name of a tenant or a kind.
    #[param(min_length = 1, max_length = 2048)]
    pub q: String,
    /// `next` of the page before.
    #[param(pattern = "^[0-9a-fA-F]{64}$")]
    pub after: Option<String>,
    /// Most rows in a page; default 50.
    #[param(minimum = 1, maximum = 200)]
    pub limit: Option<usize>,
}

pub(crate) struct FindRequest {
    /// The query as it was sent, in lower case, and as a site would be on record.
    typed: String,
    text: String,
    site: String,
    after: Option<Key>,
    limit: usize,
}

impl FromRequestParts<AppState> for FindRequest {
    type Rejection = Refused;

    async fn from_request_parts(parts: &mut Parts, state: &AppState) -> Result<Self, Refused> {
        let query = Query::<FindQuery>::from_request_parts(parts, state).await.map_err(bad_query)?;
        let Query(FindQuery { q, after, limit }) = query;
        let typed = q.trim().to_owned();
        let text = page_host(&typed).unwrap_or(&typed).to_lowercase();
        // Sites are on record in ASCII. A part of a host in ASCII stays as it is.
        let site = if text.is_ascii() { text.clone() } else { canonical_host(&text) };
        if !(1..=TEXT_BYTES_MAX).contains(&typed.len()) {
            return Err(Refused::bad("q", format!("`q` has 1 to {TEXT_BYTES_MAX} bytes.")));
        }
        Ok(Self { typed, text, site, after: read_key("after", after.as_deref())?, limit: read_limit(limit)? })
    }
}

#[derive(Debug, Serialize, Deserialize, ToSchema)]
#[serde(untagged)]
pub enum FoundOrNot {
    Read(Box<Found>),
    Unread(UnreadDeadLetter),
}

#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct FoundOrders {
    pub orders: Vec<FoundOrNot>,
    /// Value of `after` for the next page; absent on the last page. A page may be empty and not the last.
    #[schema(pattern = "^[0-9a-f]{64}$")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
}

/// Find orders of all tenants
///
/// A request reads a limited number of records; `next` leads to the next page.
#[utoipa::path(
    get, path = "/v1/admin/find", operation_id = "find", tag = "admin",
    params(FindQuery),
    responses((status = 200, body = FoundOrders, description = "The orders found, sorted by key."), FindProblems),
    security(("bearer" = []), ("api_key" = [])),
)]
pub(crate) async fn find(
    State(state): State<AppState>,
    _: Operator,
    request: FindRequest,
) -> Result<Response, Refused> {
    let found = state.find(&request).await.map_err(|error| operator_error(&error))?;
    Ok(json(StatusCode::OK, &found))
}

impl AppState {
    async fn find(&self, request: &FindRequest) -> Result<FoundOrders, StoreError> {
        let now = self.orders.clock().now();
        // The beginning of a key may be an id or a word, too.
        if let Some(prefix) = KeyPrefix::parse(&request.text)
            && request.after.is_none_or(|after| prefix.begins(&after))
        {
            let found = self.find_keys(&prefix, request, now).await?;
            if !found.orders.is_empty() {
                return Ok(found);
            }
        }
        if let Ok(id) = request.text.parse::<OrderId>()
            && request.after.is_none()
        {
            let found = self.orders.engine().find(id.head()).await?;
            if !found.is_empty() {
                let orders = found.iter().map(|order| read(order, now)).collect();
                return Ok(FoundOrders { orders, next: None });
            }
        }
        if request.after.is_none() {
            let orders = self.find_chosen(&request.typed, now).await?;
            if !orders.is_empty() {
                return Ok(FoundOrders { orders, next: None });
            }
        }
        self.find_words(request, now).await
    }

    /// Finds orders by idempotency key. It is not on record, but the order's key follows from it and from the tenant. An
    /// order that follows the first has the same idempotency key.
    async fn find_chosen(&self, chosen: &str, now: Timestamp) -> Result<Vec<FoundOrNot>, StoreError> {
        let tenants = self.orders.tenants();
        let keys = tenants.names().map(|tenant| self.orders.engine().chosen_key(tenant, chosen));
        let mut orders = Vec::new();
        let mut keys: Vec<Key> = keys.collect();
        while let Some(key) = keys.pop() {
            match self.orders.engine().read(&key).await {
                Ok(found) => {
                    keys.extend(found.as_ref().and_then(|order| order.followed_by));
                    orders.extend(found.map(|order| read(&order, now)));
                }
                Err(StoreError::Corrupt { key, detail }) => {
                    orders.push(FoundOrNot::Unread(Unreadable { key, detail }.into()));
                }
                Err(error) => return Err(error),
            }
        }
        Ok(orders)
    }

    /// Finds orders by the beginning of the key. Only these records are read.
    async fn find_keys(
        &self,
        prefix: &KeyPrefix,
        request: &FindRequest,
        now: Timestamp,
    ) -> Result<FoundOrders, StoreError> {
        let mut walk = Walk::new(Which::ALL, request.after.or_else(|| prefix.before()));
        let mut orders = Vec::new();
        loop {
            let page = walk.page(self).await?;
            if page.is_empty() {
                return Ok(FoundOrders { orders, next: walk.next() });
            }
            for record in page {
                let key = key_of(&record);
                if !prefix.begins(&key) {
                    return Ok(FoundOrders { orders, next: None });
                }
                orders.push(match record {
                    Ok(found) => read(&found.order, now),
                    Err(unreadable) => FoundOrNot::Unread(unreadable.into()),
                });
                if orders.len() == request.limit {
                    return Ok(FoundOrders { orders, next: Some(key.to_string()) });
                }
            }
        }
    }

    async fn find_words(&self, request: &FindRequest, now: Timestamp) -> Result<FoundOrders, StoreError> {
        let is_it = |order: &Order| {
            let terms = &order.terms;
            terms.site.contains(&request.site)
                || terms.tenant.eq_ignore_ascii_case(&request.text)
                || terms.kind.eq_ignore_ascii_case(&request.text)
        };
        let mut walk = Walk::new(Which::ALL, request.after);
        let mut orders = Vec::new();
        loop {
            let page = walk.page(self).await?;
            if page.is_empty() {
                return Ok(FoundOrders { orders, next: walk.next() });
            }
            for found in page.into_iter().flatten().filter(|found| is_it(&found.order)) {
                orders.push(read(&found.order, now));
                if orders.len() == request.limit {
                    return Ok(FoundOrders { orders, next: Some(found.order.key.to_string()) });
                }
            }
        }
    }
}

fn read(order: &Order, now: Timestamp) -> FoundOrNot {
    FoundOrNot::Read(Box::new(Found::of(order, now)))
}
