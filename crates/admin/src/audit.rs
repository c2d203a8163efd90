//! The audit: each attempt on record that was or may have been paid, why it was made, and who got its answer.
//! Attempts are sorted by key, in pages.

use crate::AppState;
use crate::days::read_days;
use crate::paid::{Paid, Recipient, paid, passed_on};
use axum::extract::rejection::QueryRejection;
use axum::extract::{FromRequestParts, Query, State};
use axum::http::request::Parts;
use axum::response::Response;
use hyper::StatusCode;
use quittance_gateway::OrderId;
use quittance_gateway::problems;
use quittance_gateway::v1::Operator;
use quittance_gateway::v1::decimal;
use quittance_gateway::v1::json;
use quittance_gateway::v1::order_problems::store_problem;
use quittance_gateway::v1::problem::Refused;
use quittance_lifecycle::{Key, Order, currency_of, provider_of};
use quittance_ports::moment::rfc3339;
use quittance_ports::{Day, StoreError, Which};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

const DAYS_MAX: u64 = 1_097;
const LIMIT: usize = 200;
const LIMIT_MAX: usize = 1000;
/// How many records are read at once.
const PAGE: usize = 256;
const PAGES_MAX: usize = 16;
/// How often an answer is followed from one order to the next.
const HAND_OVERS_MAX: usize = 8;

problems!(AuditProblems: Unauthorized, Forbidden, NeedsAPerson, BadParams, StoreUnavailable);

/// The query parameters of the audit, as the caller typed them.
#[derive(Debug, Serialize, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub struct AuditQuery {
    /// First day, in UTC; default today.
    #[param(format = Date, pattern = "^[0-9]{4}-[0-9]{2}-[0-9]{2}$", example = "2026-11-16")]
    pub from: Option<String>,
    /// Last day; default today.
    #[param(format = Date, pattern = "^[0-9]{4}-[0-9]{2}-[0-9]{2}$", example = "2026-11-16")]
    pub to: Option<String>,
    /// `next` of the page before.
    #[param(pattern = "^[0-9a-fA-F]{64}$")]
    pub after: Option<String>,
    /// Most attempts in a page; default 200. The attempts of one order stay together, so there may be a few more.
    #[param(minimum = 1, maximum = 1000)]
    pub limit: Option<usize>,
}

/// A parsed query of the audit.
pub(crate) struct AuditRequest {
    from: Day,
    to: Day,
    after: Option<Key>,
    limit: usize,
}

impl FromRequestParts<AppState> for AuditRequest {
    type Rejection = Refused;

    async fn from_request_parts(parts: &mut Parts, state: &AppState) -> Result<Self, Refused> {
        let query: Result<Query<AuditQuery>, QueryRejection> = Query::from_request_parts(parts, state).await;
        let Query(AuditQuery { from, to, after, limit }) = query.map_err(|_| {
            Refused::bad(
                "query",
                "The parameters are `from`, `to`, `after` and `limit`; send each at most once.",
            )
        })?;
        let (from, to) = read_days(from, to, state.orders.clock().now(), DAYS_MAX)?;
        let after = after.map(|after| Key::parse(&after)).transpose();
        let after = after.map_err(|_| Refused::bad("after", "`after` is the `next` of the page before."))?;
        match limit.unwrap_or(LIMIT) {
            limit @ 1..=LIMIT_MAX => Ok(Self { from, to, after, limit }),
            _ => Err(Refused::bad("limit", format!("`limit` is a number from 1 to {LIMIT_MAX}."))),
        }
    }
}

#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct Audit {
    /// Current currency of the account; each entry has the currency of its own cost.
    #[schema(pattern = "^[A-Z]{3}$", example = "USD")]
    pub currency: String,
    /// Sorted by the keys of the orders.
    pub entries: Vec<PaidAttempt>,
    /// Records that could not be read; they may contain more attempts.
    pub unreadable: usize,
    /// Value of `after` for the next page; absent on the last page. A page may be empty and not the last.
    #[schema(pattern = "^[0-9a-f]{64}$")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
}

/// An attempt that was or may have been paid.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct PaidAttempt {
    #[schema(pattern = "^[0-9a-f]{64}$")]
    pub key: String,
    #[schema(pattern = "^[1-9][0-9]{0,15}$")]
    pub id: String,
    pub tenant: String,
    pub kind: String,
    /// Host of the page; empty for orders without a page.
    pub site: String,
    pub provider: String,
    pub attempt: u32,
    /// The provider's id of the task, if it is known.
    pub task: Option<String>,
    #[schema(format = DateTime)]
    pub sent_at: String,
    pub sent_ms: u64,
    /// Why the attempt was made.
    pub why: String,
    /// `answered`, `solving`, `in_doubt` (it is not known whether the provider took it), `given_up` (taken, but no answer came
    /// in time), `faulted` or `trailing`.
    #[schema(pattern = "^[a-z_]+$")]
    pub state: String,
    /// Cost; `null` if it is not known, or while the attempt is in progress.
    #[schema(pattern = "^[0-9]+(\\.[0-9]{1,6})?$")]
    pub cost: Option<String>,
    pub cost_micros: Option<u64>,
    /// Currency of the cost.
    #[schema(pattern = "^[A-Z]{3}$", example = "USD")]
    pub currency: String,
    /// Whether the attempt was, or may have been, charged at a price that is not known.
    pub unpriced: bool,
    /// The order that got the answer.
    pub who: String,
    /// Order that took the answer from the stock; also set if no caller got the answer from that order.
    #[schema(pattern = "^[0-9a-f]{64}$")]
    pub claimed_by: Option<String>,
    /// Whether an earlier attempt of the same order may have been paid too.
    pub possible_double: bool,
}

impl PaidAttempt {
    fn of(order: &Order, paid: Paid, currency: &str) -> Self {
        let terms = &order.terms;
        Self {
            key: order.key.to_string(),
            id: OrderId::new(&order.key, false).to_string(),
            tenant: terms.tenant.clone(),
            kind: terms.kind.clone(),
            site: terms.site.clone(),
            provider: provider_of(&paid.account).to_owned(),
            attempt: paid.attempt,
            task: paid.task,
            sent_at: rfc3339(paid.sent),
            sent_ms: paid.sent.as_millis(),
            why: paid.why,
            state: paid.state.name().to_owned(),
            cost: paid.cost.map(decimal),
            cost_micros: paid.cost.map(|cost| cost.0),
            currency: currency_of(&paid.account).unwrap_or(currency).to_owned(),
            unpriced: paid.is_unpriced,
            who: paid.recipient.words(&terms.tenant),
            claimed_by: paid.claimed_by.map(|key| key.to_string()),
            possible_double: paid.is_possible_double,
        }
    }
}

impl AppState {
    /// One page of paid attempts.
    async fn audited(&self, request: AuditRequest) -> Result<Audit, StoreError> {
        let AuditRequest { from, to, mut after, limit } = request;
        let currency = self.orders.engine().currency().to_owned();
        let (mut entries, mut unreadable) = (Vec::new(), 0);
        for _ in 0..PAGES_MAX {
            let page = self.orders.engine().list(Which::ALL, after.as_ref(), PAGE).await?;
            let is_last = page.len() < PAGE;
            for found in page {
                let order = match found {
                    Ok(found) => found.order,
                    Err(found) => {
                        (unreadable, after) = (unreadable + 1, Some(found.key));
                        continue;
                    }
                };
                if entries.len() >= limit {
                    let next = after.map(|key| key.to_string());
                    return Ok(Audit { currency, entries, unreadable, next });
                }
                after = Some(order.key);
                for mut paid in paid(&order) {
                    if !(from..=to).contains(&Day::of(paid.sent)) {
                        continue;
                    }
                    self.follow(&order, &mut paid).await?;
                    entries.push(PaidAttempt::of(&order, paid, &currency));
                }
            }
            if is_last {
                return Ok(Audit { currency, entries, unreadable, next: None });
            }
        }
        Ok(Audit { currency, entries, unreadable, next: after.map(|key| key.to_string()) })
    }

    /// Finds who got an answer that went to the stock, or from there to another order. Each order on the way knows the
    /// next as long as it is on record.
    async fn follow(&self, order: &Order, paid: &mut Paid) -> Result<(), StoreError> {
        let mut from = order.key;
        for _ in 0..HAND_OVERS_MAX {
            let (Recipient::Stock(key) | Recipient::Taker(Some(key))) = paid.recipient else { return Ok(()) };
            let holder = match self.orders.engine().read(&key).await {
                Ok(Some(holder)) => holder,
                Ok(None) | Err(StoreError::Corrupt { .. }) => return Ok(()),
                Err(error) => return Err(error),
            };
            let recipient = match passed_on(&holder, &from) {
                // The order has it, or still has it for the next order that needs one.
                None | Some(Recipient::Caller) => return Ok(()),
                Some(Recipient::StockPlace) if matches!(paid.recipient, Recipient::Stock(_)) => return Ok(()),
                Some(recipient) => recipient,
            };
            paid.claimed_by = recipient.taker().or(paid.claimed_by);
            (paid.recipient, from) = (recipient, key);
        }
        Ok(())
    }
}

/// List the paid attempts
///
/// For these days and for orders still on record: why each was made, its outcome, and who got the answer.
#[utoipa::path(
    get, path = "/v1/admin/audit", operation_id = "audit", tag = "admin",
    params(AuditQuery),
    responses((status = 200, body = Audit, description = "A page of paid attempts."), AuditProblems),
    security(("bearer" = []), ("api_key" = [])),
)]
pub(crate) async fn audit(
    State(state): State<AppState>,
    _: Operator,
    request: AuditRequest,
) -> Result<Response, Refused> {
    let audit = state.audited(request).await.map_err(|error| store_problem(&error))?;
    Ok(json(StatusCode::OK, &audit))
}
