//! How orders and dead letters are shown to the operator, whichever of them he asked for, and how he says which dead letters
//! he means.

use super::Room;
use super::moment::{read_rfc3339, rfc3339};
use super::page::{read_key, read_limit, senseless};
use super::prices::Prices;
use super::problem::Refused;
use super::shown::OrderInShort;
use axum::extract::{FromRequestParts, Query};
use axum::http::request::Parts;
use quittance_engine::Engine;
use quittance_lifecycle::secrets;
use quittance_lifecycle::{Beat, Key, LetterCause, LetterFilter, Order, Timestamp, Value};
use quittance_ports::{Deed, StoreError, Unreadable, Versioned, Which};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

/// How many records are read at once: they may have pictures in them.
const PAGE: usize = 64;
/// How many one request may read before it says "go on from here".
const RECORDS_MAX: usize = 4096;

/// An order, and whose it is.
#[derive(Serialize, ToSchema)]
pub(super) struct Found {
    #[serde(flatten)]
    pub(super) order: OrderInShort,
    pub(super) tenant: String,
    /// The host of the page that it is about; nothing, if it is about none.
    pub(super) site: String,
    /// The page itself, without a password.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) page: Option<String>,
    /// Who is asked for it.
    pub(super) provider: String,
}

/// A dead letter.
#[derive(Serialize, ToSchema)]
pub(super) struct ReadLetter {
    #[serde(flatten)]
    found: Found,
    /// `retries_spent`, `deadline`, `doubt`, `delivery` or `store_forgot`.
    #[schema(pattern = "^[a-z_]+$")]
    cause: &'static str,
    /// The same in words.
    why: String,
    #[schema(format = DateTime)]
    dead_at: String,
    dead_ms: u64,
    /// What its attempts have cost so far, in millionths; `null` if some were or may have been charged and no price is known.
    spent_micros: Option<u64>,
    /// How many of its attempts were or may have been charged at a price that is not known: they are not in `spent_micros`.
    unpriced: u64,
    /// What all money of it is in.
    #[schema(pattern = "^[A-Z]{3}$", example = "USD")]
    currency: String,
    /// How often it may have been paid for twice.
    possible_doubles: u32,
    /// What a replay would do: `tells_again`, `goes_on`, `waits_first`, `may_pay_twice`, `pays` or `not_allowed`.
    #[schema(pattern = "^[a-z_]+$")]
    #[serde(skip_serializing_if = "Option::is_none")]
    on_replay: Option<&'static str>,
    /// What a replay may cost, in millionths; absent if it would not pay, and `null` if the price is not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<u64>)]
    price_micros: Option<Option<u64>>,
    /// What a person last wrote about it.
    note: Option<String>,
}

/// A record that is there, and that nobody can read.
#[derive(Serialize, ToSchema)]
pub(super) struct UnreadLetter {
    #[schema(pattern = "^[0-9a-f]{64}$")]
    key: String,
    #[schema(pattern = "^unreadable$")]
    cause: &'static str,
    why: String,
}

#[derive(Serialize, ToSchema)]
#[serde(untagged)]
pub(super) enum Letter {
    Read(Box<ReadLetter>),
    Unread(UnreadLetter),
}

impl Found {
    pub(super) fn of(order: &Order, now: Timestamp) -> Self {
        let page = match order.terms.params.get("pageurl") {
            Some(Value::Text(page)) => Some(secrets::shown("pageurl", page).into_owned()),
            _ => None,
        };
        Self {
            order: OrderInShort::of(order, now),
            tenant: order.terms.tenant.clone(),
            site: order.terms.site.clone(),
            page,
            provider: order.terms.provider().to_owned(),
        }
    }
}

impl Letter {
    /// Nothing, if it is no dead letter any more.
    pub(super) fn of(engine: &Engine, order: &Order, prices: &Prices, now: Timestamp) -> Option<Self> {
        let letter = order.letter()?;
        let note = order.story.entries.iter().rev().find_map(|entry| match &entry.beat {
            Beat::Noted { text } => Some(text.clone()),
            _ => None,
        });
        Some(Self::Read(Box::new(ReadLetter {
            found: Found::of(order, now),
            cause: letter.cause.name(),
            why: letter.why,
            dead_at: rfc3339(letter.since),
            dead_ms: letter.since.as_millis(),
            spent_micros: letter.spent.known().map(|spent| spent.0),
            unpriced: letter.spent.unpriced,
            currency: order.terms.currency(engine.currency()).to_owned(),
            possible_doubles: order.possible_doubles,
            on_replay: engine.on_replay(order).map(quittance_lifecycle::OnReplay::name),
            price_micros: engine
                .on_replay(order)
                .filter(|replay| replay.may_pay())
                .map(|_| prices.of(order).map(|price| price.0)),
            note,
        })))
    }
}

impl From<Unreadable> for UnreadLetter {
    fn from(Unreadable { key, detail }: Unreadable) -> Self {
        Self { key: key.to_string(), cause: LetterCause::Unreadable.name(), why: detail }
    }
}

/// Which dead letters, as it is typed; in a query or in a body.
#[derive(Clone, Debug, Default, Deserialize, IntoParams, ToSchema)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(super) struct LetterQuery {
    /// `retries_spent`, `deadline`, `doubt`, `delivery`, `unreadable` or `store_forgot`.
    #[param(pattern = "^(retries_spent|deadline|doubt|delivery|unreadable|store_forgot)$")]
    pub(super) cause: Option<String>,
    pub(super) kind: Option<String>,
    /// The host of the page.
    pub(super) site: Option<String>,
    pub(super) tenant: Option<String>,
    /// Dead since before this moment.
    #[param(format = DateTime)]
    pub(super) before: Option<String>,
    /// Dead since this moment, or later.
    #[param(format = DateTime)]
    pub(super) since: Option<String>,
    /// The `next` of the page before.
    #[param(pattern = "^[0-9a-fA-F]{64}$")]
    pub(super) after: Option<String>,
    /// How many at most; 50, if not said.
    #[param(minimum = 1, maximum = 200)]
    pub(super) limit: Option<usize>,
}

/// The same, understood.
pub(super) struct AskedLetters {
    pub(super) filter: LetterFilter,
    pub(super) after: Option<Key>,
    pub(super) limit: usize,
}

fn read_moment(field: &str, text: Option<&str>) -> Result<Option<Timestamp>, Refused> {
    let read = |text| {
        let wrong = || format!("`{field}` is a moment such as 2026-11-16T03:34:28Z, or a date.");
        read_rfc3339(text).ok_or_else(|| Refused::bad(field, wrong()))
    };
    text.map(read).transpose()
}

impl LetterQuery {
    pub(super) fn read(self) -> Result<AskedLetters, Refused> {
        let cause = self.cause.as_deref().map(|name| {
            let names = LetterCause::ALL.map(LetterCause::name).join("`, `");
            LetterCause::named(name)
                .ok_or_else(|| Refused::bad("cause", format!("`cause` is one of `{names}`.")))
        });
        Ok(AskedLetters {
            after: read_key("after", self.after.as_deref())?,
            limit: read_limit(self.limit)?,
            filter: LetterFilter {
                cause: cause.transpose()?,
                kind: self.kind,
                site: self.site.map(|site| site.trim_end_matches('.').to_lowercase()),
                tenant: self.tenant,
                before: read_moment("before", self.before.as_deref())?,
                since: read_moment("since", self.since.as_deref())?,
            },
        })
    }
}

impl FromRequestParts<Room> for AskedLetters {
    type Rejection = Refused;

    async fn from_request_parts(parts: &mut Parts, room: &Room) -> Result<Self, Refused> {
        let Query(typed) = Query::<LetterQuery>::from_request_parts(parts, room).await.map_err(senseless)?;
        typed.read()
    }
}

/// A filter, as it was said.
#[derive(Serialize, ToSchema)]
pub(super) struct ShownFilter {
    #[serde(skip_serializing_if = "Option::is_none")]
    cause: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    kind: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    site: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tenant: Option<String>,
    #[schema(format = DateTime)]
    #[serde(skip_serializing_if = "Option::is_none")]
    before: Option<String>,
    #[schema(format = DateTime)]
    #[serde(skip_serializing_if = "Option::is_none")]
    since: Option<String>,
}

impl ShownFilter {
    pub(super) fn of(filter: &LetterFilter) -> Self {
        Self {
            cause: filter.cause.map(LetterCause::name),
            kind: filter.kind.clone(),
            site: filter.site.clone(),
            tenant: filter.tenant.clone(),
            before: filter.before.map(rfc3339),
            since: filter.since.map(rfc3339),
        }
    }
}

pub(super) const fn deed_name(deed: Deed) -> &'static str {
    match deed {
        Deed::Replay => "replay",
        Deed::Drop => "drop",
    }
}

/// One record, as it was read.
pub(super) type Record = Result<Versioned, Unreadable>;

/// Records one after the other, from where somebody stopped, a bounded number of them.
pub(super) struct Walk {
    pub(super) which: Which<'static>,
    pub(super) after: Option<Key>,
    left: usize,
    is_over: bool,
}

impl Walk {
    pub(super) fn new(which: Which<'static>, after: Option<Key>) -> Self {
        Self { which, after, left: RECORDS_MAX, is_over: false }
    }

    pub(super) fn without_end(which: Which<'static>, after: Option<Key>) -> Self {
        Self { left: usize::MAX, ..Self::new(which, after) }
    }

    /// The next few; none, when there are no more or enough were read.
    pub(super) async fn page(&mut self, room: &Room) -> Result<Vec<Record>, StoreError> {
        let wanted = PAGE.min(self.left);
        if self.is_over || wanted == 0 {
            return Ok(Vec::new());
        }
        let page = room.desk.engine().list(self.which, self.after.as_ref(), wanted).await?;
        self.is_over = page.len() < wanted;
        self.left -= page.len();
        if let Some(last) = page.last() {
            self.after = Some(key_of(last));
        }
        Ok(page)
    }

    /// Where to go on, if there may be more.
    pub(super) fn next(&self) -> Option<String> {
        self.after.filter(|_| !self.is_over).map(|key| key.to_string())
    }
}

pub(super) fn key_of(record: &Record) -> Key {
    record.as_ref().map_or_else(|unreadable| unreadable.key, |found| found.order.key)
}

/// Whether a record is one of the dead letters that are meant.
pub(super) fn is_meant(filter: &LetterFilter, record: &Record) -> bool {
    match record {
        Ok(found) => filter.fits(&found.order),
        Err(_) => filter.fits_unreadable(),
    }
}
