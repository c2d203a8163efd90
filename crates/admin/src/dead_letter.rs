//! How orders and dead letters are shown to the operator, and the filter for dead letters.

use crate::AppState;
use crate::replay_price::Prices;
use axum::extract::{FromRequestParts, Query};
use axum::http::request::Parts;
use quittance_engine::Engine;
use quittance_engine::targets::canonical_host;
use quittance_gateway::v1::OrderInShort;
use quittance_gateway::v1::list_page::{bad_query, read_key, read_limit};
use quittance_gateway::v1::problem::Refused;
use quittance_lifecycle::secrets;
use quittance_lifecycle::{
    DeadLetterCause, DeadLetterFilter, Key, Order, TimelineEvent, Timestamp, Value, provider_of,
};
use quittance_ports::moment::{read_rfc3339, rfc3339};
use quittance_ports::{BulkAction, StoreError, Unreadable, Versioned, Which};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

/// How many records are read at once: they may contain images.
const PAGE: usize = 64;
/// How many records one request may read before it returns `next`.
const RECORDS_MAX: usize = 4096;

/// An order and its tenant.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct Found {
    #[serde(flatten)]
    pub order: OrderInShort,
    pub tenant: String,
    /// Host of the page; empty for orders without a page.
    pub site: String,
    /// URL of the page, without a password.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub page: Option<String>,
    /// Provider of the order.
    pub provider: String,
}

/// A dead letter.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct ReadDeadLetter {
    #[serde(flatten)]
    pub found: Found,
    /// `retries_spent`, `deadline`, `in_doubt`, `budget_spent`, `delivery` or `store_forgot`.
    #[schema(pattern = "^[a-z_]+$")]
    pub cause: String,
    /// The cause as a sentence.
    pub why: String,
    #[schema(format = DateTime)]
    pub dead_at: String,
    pub dead_ms: u64,
    /// Cost of its attempts so far, in millionths; `null` if some were or may have been charged and no price is known.
    pub spent_micros: Option<u64>,
    /// Attempts that were or may have been charged at a price that is not known; they are not in `spent_micros`.
    pub unpriced: u64,
    /// Currency of all amounts.
    #[schema(pattern = "^[A-Z]{3}$", example = "USD")]
    pub currency: String,
    /// Number of possible double payments.
    pub possible_doubles: u32,
    /// What a replay would do: `calls_webhook`, `resumes`, `waits_first`, `may_pay_twice`, `pays` or `not_allowed`.
    #[schema(pattern = "^[a-z_]+$")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub on_replay: Option<String>,
    /// Possible cost of a replay, in millionths; absent if it would not pay, `null` if the price is not known.
    #[serde(default, deserialize_with = "crate::present", skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<u64>)]
    pub price_micros: Option<Option<u64>>,
    /// Last note of a person.
    pub note: Option<String>,
}

/// A dead letter whose record cannot be read.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct UnreadDeadLetter {
    #[schema(pattern = "^[0-9a-f]{64}$")]
    pub key: String,
    #[schema(pattern = "^unreadable$")]
    pub cause: String,
    pub why: String,
}

#[derive(Debug, Serialize, Deserialize, ToSchema)]
#[serde(untagged)]
pub enum AnyDeadLetter {
    Read(Box<ReadDeadLetter>),
    Unread(UnreadDeadLetter),
}

impl Found {
    pub(crate) fn of(order: &Order, now: Timestamp) -> Self {
        let page = match order.terms.params.get("pageurl") {
            Some(Value::Text(page)) => Some(secrets::shown("pageurl", page).into_owned()),
            _ => None,
        };
        Self {
            order: OrderInShort::of(order, now),
            tenant: order.terms.tenant.clone(),
            site: order.terms.site.clone(),
            page,
            provider: provider_of(order.account()).to_owned(),
        }
    }
}

impl AnyDeadLetter {
    /// The order as a dead letter; `None` if it is not one any more.
    pub(crate) fn of(engine: &Engine, order: &Order, prices: &Prices, now: Timestamp) -> Option<Self> {
        let letter = order.dead_letter()?;
        let note = order.timeline.entries.iter().rev().find_map(|entry| match &entry.event {
            TimelineEvent::Noted { text } => Some(text.clone()),
            _ => None,
        });
        Some(Self::Read(Box::new(ReadDeadLetter {
            found: Found::of(order, now),
            cause: letter.cause.name().to_owned(),
            why: letter.why,
            dead_at: rfc3339(letter.since),
            dead_ms: letter.since.as_millis(),
            spent_micros: letter.spent.known().map(|spent| spent.0),
            unpriced: letter.spent.unpriced,
            currency: order.currency(engine.currency()).to_owned(),
            possible_doubles: order.possible_doubles,
            on_replay: engine.on_replay(order).map(|replay| replay.name().to_owned()),
            price_micros: engine
                .on_replay(order)
                .filter(|replay| replay.may_pay())
                .map(|_| prices.of(order).map(|price| price.0)),
            note,
        })))
    }
}

impl From<Unreadable> for UnreadDeadLetter {
    fn from(Unreadable { key, detail }: Unreadable) -> Self {
        Self { key: key.to_string(), cause: DeadLetterCause::Unreadable.name().to_owned(), why: detail }
    }
}

/// The query of a list of dead letters.
#[derive(Clone, Debug, Default, Serialize, Deserialize, IntoParams, ToSchema)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub struct DeadLetterQuery {
    /// `retries_spent`, `deadline`, `in_doubt`, `budget_spent`, `delivery`, `unreadable` or `store_forgot`.
    #[param(pattern = "^(retries_spent|deadline|in_doubt|budget_spent|delivery|unreadable|store_forgot)$")]
    pub cause: Option<String>,
    pub kind: Option<String>,
    /// Host of the page.
    pub site: Option<String>,
    pub tenant: Option<String>,
    /// Dead letters since before this moment.
    #[param(format = DateTime)]
    pub before: Option<String>,
    /// Dead letters since this moment or later.
    #[param(format = DateTime)]
    pub since: Option<String>,
    /// `next` of the page before.
    #[param(pattern = "^[0-9a-fA-F]{64}$")]
    pub after: Option<String>,
    /// Most rows in a page; default 50.
    #[param(minimum = 1, maximum = 200)]
    pub limit: Option<usize>,
}

/// The dead letters that a query selects.
pub(crate) struct DeadLetterSelection {
    pub(crate) filter: DeadLetterFilter,
    pub(crate) after: Option<Key>,
    pub(crate) limit: usize,
}

fn read_moment(field: &str, text: Option<&str>) -> Result<Option<Timestamp>, Refused> {
    let read = |text| {
        let wrong = || format!("`{field}` is a moment such as 2026-11-16T03:34:28Z, or a date.");
        read_rfc3339(text).ok_or_else(|| Refused::bad(field, wrong()))
    };
    text.map(read).transpose()
}

impl DeadLetterQuery {
    pub(crate) fn read(self) -> Result<DeadLetterSelection, Refused> {
        let cause = self.cause.as_deref().map(|name| {
            let names = DeadLetterCause::ALL.map(DeadLetterCause::name).join("`, `");
            DeadLetterCause::named(name)
                .ok_or_else(|| Refused::bad("cause", format!("`cause` is one of `{names}`.")))
        });
        Ok(DeadLetterSelection {
            after: read_key("after", self.after.as_deref())?,
            limit: read_limit(self.limit)?,
            filter: DeadLetterFilter {
                cause: cause.transpose()?,
                kind: self.kind,
                site: self.site.as_deref().map(canonical_host),
                tenant: self.tenant,
                before: read_moment("before", self.before.as_deref())?,
                since: read_moment("since", self.since.as_deref())?,
            },
        })
    }
}

impl FromRequestParts<AppState> for DeadLetterSelection {
    type Rejection = Refused;

    async fn from_request_parts(parts: &mut Parts, state: &AppState) -> Result<Self, Refused> {
        let Query(typed) =
            Query::<DeadLetterQuery>::from_request_parts(parts, state).await.map_err(bad_query)?;
        typed.read()
    }
}

/// The filter of the request.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct ShownFilter {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cause: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub site: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tenant: Option<String>,
    #[schema(format = DateTime)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub before: Option<String>,
    #[schema(format = DateTime)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub since: Option<String>,
}

impl ShownFilter {
    pub(crate) fn of(filter: &DeadLetterFilter) -> Self {
        Self {
            cause: filter.cause.map(|cause| cause.name().to_owned()),
            kind: filter.kind.clone(),
            site: filter.site.clone(),
            tenant: filter.tenant.clone(),
            before: filter.before.map(rfc3339),
            since: filter.since.map(rfc3339),
        }
    }
}

pub(crate) const fn action_name(action: BulkAction) -> &'static str {
    match action {
        BulkAction::Replay => "replay",
        BulkAction::Drop => "drop",
    }
}

/// A record, or why it cannot be read.
pub(crate) type Record = Result<Versioned, Unreadable>;

/// Reads a limited number of records, page by page, sorted by key.
pub(crate) struct Walk {
    pub(crate) which: Which<'static>,
    pub(crate) after: Option<Key>,
    left: usize,
    is_over: bool,
}

impl Walk {
    pub(crate) fn new(which: Which<'static>, after: Option<Key>) -> Self {
        Self { which, after, left: RECORDS_MAX, is_over: false }
    }

    pub(crate) fn unlimited(which: Which<'static>, after: Option<Key>) -> Self {
        Self { left: usize::MAX, ..Self::new(which, after) }
    }

    /// The next page; empty at the end, or when the limit is reached.
    pub(crate) async fn page(&mut self, state: &AppState) -> Result<Vec<Record>, StoreError> {
        let wanted = PAGE.min(self.left);
        if self.is_over || wanted == 0 {
            return Ok(Vec::new());
        }
        let page = state.orders.engine().list(self.which, self.after.as_ref(), wanted).await?;
        self.is_over = page.len() < wanted;
        self.left -= page.len();
        if let Some(last) = page.last() {
            self.after = Some(key_of(last));
        }
        Ok(page)
    }

    /// The key to continue after, if there may be more records.
    pub(crate) fn next(&self) -> Option<String> {
        self.after.filter(|_| !self.is_over).map(|key| key.to_string())
    }
}

pub(crate) fn key_of(record: &Record) -> Key {
    record.as_ref().map_or_else(|unreadable| unreadable.key, |found| found.order.key)
}

/// Whether a record is a dead letter that the filter selects.
pub(crate) fn is_selected(filter: &DeadLetterFilter, record: &Record) -> bool {
    match record {
        Ok(found) => filter.fits(&found.order),
        Err(_) => filter.fits_unreadable(),
    }
}
