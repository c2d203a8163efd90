//! Dead letters, for the operator: listed by what he is looking for, sent on their way again or given up, and carried from one
//! store to another. However many there are, a request reads a bounded number of them, and an export sends them as it reads.

use super::caller::{ByKey, Operator};
use super::letter::{DeadLetter, DeadLetterQuery, DeadLetterSelection, Found, Record, Walk, is_meant};
use super::orders::{not_allowed, store_trouble};
use super::problem::{Code, Refused, problems};
use super::timeline::{TimelineEntryView, operators_trouble};
use super::{AppState, JSON_LINES, json_text};
use crate::plain::plain_json;
use axum::body::{Body, Bytes, to_bytes};
use axum::extract::{Request, State};
use axum::response::Response;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use futures_util::future::join_all;
use futures_util::stream;
use hyper::StatusCode;
use hyper::header::{CONTENT_TYPE, HeaderValue};
use quittance_engine::{Adopted, Applied, Dropped};
use quittance_lifecycle::{DeadLetterCause, DeadLetterFilter, Key, Order};
use quittance_ports::moment::rfc3339;
use quittance_ports::{StoreError, Unreadable, Which};
use serde::{Deserialize, Serialize};
use std::convert::Infallible;
use std::sync::Arc;
use utoipa::ToSchema;

/// How many letters are written at once.
const AT_ONCE: usize = 32;
/// Of what was refused, so many are told one by one.
const REFUSED_MAX: usize = 1000;

problems!(DeadListProblems: Unauthorized, Forbidden, Unreadable, BadParams, StoreUnavailable);
problems!(ReplayProblems: Unauthorized, Forbidden, TargetNotAllowed, KindNotAllowed, UnknownOrder, NotDead, Unreadable,
    StoreUnavailable);
problems!(DropProblems: Unauthorized, Forbidden, UnknownOrder, NotDead, CannotDrop, StoreUnavailable);
problems!(ExportProblems: Unauthorized, Forbidden, BadParams, TooManyStreams);
problems!(ImportProblems: BrokenBody, Unauthorized, Forbidden, TooSlow, NeedsAPerson, TooLarge, StoreUnavailable);

#[derive(Serialize, ToSchema)]
pub(super) struct DeadLetters {
    orders: Vec<DeadLetter>,
    /// Value of `after` for the next page; absent on the last page. A page may be empty and not the last.
    #[schema(pattern = "^[0-9a-f]{64}$")]
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<String>,
}

/// List the dead letters of all tenants
///
/// A request reads a limited number of records; `next` leads to the next page.
#[utoipa::path(
    get, path = "/v1/admin/dead", operation_id = "listDead", tag = "admin",
    params(DeadLetterQuery),
    responses((status = 200, body = DeadLetters, description = "A page of dead letters, sorted by key."), DeadListProblems),
    security(("bearer" = []), ("api_key" = [])),
)]
pub(super) async fn list(
    State(state): State<AppState>,
    _: Operator,
    asked: DeadLetterSelection,
) -> Result<Response, Refused> {
    let letters = state.letters(asked).await.map_err(|error| operators_trouble(&error))?;
    Ok(super::json(StatusCode::OK, &letters))
}

impl AppState {
    async fn letters(&self, asked: DeadLetterSelection) -> Result<DeadLetters, StoreError> {
        let now = self.orders.clock().now();
        let prices = self.prices().await?;
        let mut walk = Walk::new(Which::DEAD, asked.after);
        let mut orders = Vec::new();
        loop {
            let page = walk.page(self).await?;
            if page.is_empty() {
                return Ok(DeadLetters { orders, next: walk.next() });
            }
            for record in page.into_iter().filter(|record| is_meant(&asked.filter, record)) {
                let (key, letter) = match record {
                    Ok(found) => {
                        (found.order.key, DeadLetter::of(self.orders.engine(), &found.order, &prices, now))
                    }
                    Err(unreadable) => (unreadable.key, Some(DeadLetter::Unread(unreadable.into()))),
                };
                orders.extend(letter);
                if orders.len() == asked.limit {
                    return Ok(DeadLetters { orders, next: Some(key.to_string()) });
                }
            }
        }
    }

    fn done(&self, applied: Applied) -> Result<Response, Refused> {
        match applied {
            Applied::Advanced { now, .. } | Applied::Act { now, .. } => {
                Ok(super::json(StatusCode::OK, &Found::of(&now.order, self.orders.clock().now())))
            }
            Applied::Ignored { now, .. } => {
                let (key, phase) = (now.order.key, now.order.phase.name());
                let why = format!(
                    "Order {key} is {phase}, and waits for no person. GET /v1/admin/dead lists the dead letters."
                );
                Err(Code::NotDead.because(why))
            }
            Applied::Missing => Err(Code::UnknownOrder.plain()),
        }
    }
}

/// Replay a dead letter
#[utoipa::path(
    post, path = "/v1/admin/dead/{key}/replay", operation_id = "replayDead", tag = "admin",
    params(("key" = String, Path, pattern = "^[0-9a-fA-F]{64}$", description = "The order's key.")),
    responses((status = 200, body = Found, description = "The order."), ReplayProblems),
    security(("bearer" = []), ("api_key" = [])),
)]
pub(super) async fn replay(
    State(state): State<AppState>,
    _: Operator,
    ByKey(key): ByKey,
) -> Result<Response, Refused> {
    let engine = state.orders.engine();
    let applied = engine.replay(&key).await.map_err(|error| operators_trouble(&error))?;
    if let Applied::Ignored { now, .. } = &applied
        && now.order.phase.is_dead()
        && let Err(why) = engine.check_target(&now.order)
    {
        return Err(not_allowed(&why, why.to_string()));
    }
    state.done(applied)
}

/// An unreadable record that was removed. Its key is free.
#[derive(Serialize, ToSchema)]
pub(super) struct DiscardedRecord {
    #[schema(pattern = "^[0-9a-f]{64}$")]
    key: String,
    #[schema(pattern = "^unreadable$")]
    cause: &'static str,
    /// Always true: a new placement with this key is a new order.
    discarded: bool,
}

/// State after the drop.
#[derive(Serialize, ToSchema)]
#[serde(untagged)]
#[expect(dead_code, reason = "each is answered with by itself, and they are only described together here")]
pub(super) enum DroppedDeadLetter {
    Order(Box<Found>),
    Record(DiscardedRecord),
}

/// Drop a dead letter for good
///
/// An unreadable record is removed, and its key is free: a new placement is a new order, although it is not
/// known whether the old one was paid. Records that a later version wrote are kept.
#[utoipa::path(
    post, path = "/v1/admin/dead/{key}/drop", operation_id = "dropDead", tag = "admin",
    params(("key" = String, Path, pattern = "^[0-9a-fA-F]{64}$", description = "The order's key.")),
    responses(
        (status = 200, body = DroppedDeadLetter, description = "The order, or the removed record."),
        DropProblems,
    ),
    security(("bearer" = []), ("api_key" = [])),
)]
pub(super) async fn drop_dead(
    State(state): State<AppState>,
    _: Operator,
    ByKey(key): ByKey,
) -> Result<Response, Refused> {
    match state.orders.engine().drop_dead_letter(&key).await {
        Ok(Dropped::Applied(applied)) => state.done(applied),
        Ok(Dropped::Discarded) => {
            let cause = DeadLetterCause::Unreadable.name();
            let gone = DiscardedRecord { key: key.to_string(), cause, discarded: true };
            Ok(super::json(StatusCode::OK, &gone))
        }
        Err(error @ StoreError::Corrupt { .. }) => Err(Code::CannotDrop.because(error.to_string())),
        Err(error) => Err(store_trouble(&error)),
    }
}

/// A complete dead letter, for import into another store.
#[derive(Serialize, ToSchema)]
pub(super) struct ExportedDeadLetter {
    #[schema(pattern = "^[0-9a-f]{64}$")]
    key: String,
    cause: &'static str,
    why: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    kind: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tenant: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    site: Option<String>,
    #[schema(format = DateTime)]
    #[serde(skip_serializing_if = "Option::is_none")]
    dead_at: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    timeline: Vec<TimelineEntryView>,
    /// The stored record, in base64. It contains every parameter.
    #[serde(skip_serializing_if = "Option::is_none")]
    record: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    terms: Option<String>,
}

/// The last line of an export that broke off.
#[derive(Serialize)]
struct BrokeOff {
    error: &'static str,
}

impl ExportedDeadLetter {
    fn of(record: &Record) -> Option<Self> {
        match record {
            Ok(found) => Self::read(&found.order),
            Err(Unreadable { key, detail }) => Some(Self {
                key: key.to_string(),
                cause: DeadLetterCause::Unreadable.name(),
                why: detail.clone(),
                kind: None,
                tenant: None,
                site: None,
                dead_at: None,
                timeline: Vec::new(),
                record: None,
                terms: None,
            }),
        }
    }

    fn read(order: &Order) -> Option<Self> {
        let letter = order.dead_letter()?;
        let terms = &order.terms;
        Some(Self {
            key: order.key.to_string(),
            cause: letter.cause.name(),
            why: letter.why,
            kind: Some(terms.kind.clone()),
            tenant: Some(terms.tenant.clone()),
            site: Some(terms.site.clone()),
            dead_at: Some(rfc3339(letter.since)),
            timeline: order.timeline.entries.iter().map(TimelineEntryView::of).collect(),
            record: Some(BASE64.encode(quittance_record::encode_order(order))),
            terms: Some(BASE64.encode(quittance_record::encode_terms(terms))),
        })
    }
}

/// An export under way.
struct Export {
    state: AppState,
    filter: DeadLetterFilter,
    walk: Walk,
    is_over: bool,
    _permit: crate::seats::Seat,
}

impl Export {
    /// The next lines; nothing, when all have been sent.
    async fn lines(&mut self) -> Option<Bytes> {
        while !self.is_over {
            let page = match self.walk.page(&self.state).await {
                Ok(page) => page,
                Err(_) => {
                    self.is_over = true;
                    let broke = BrokeOff { error: "the store went away: this is not all of it" };
                    return Some(format!("{}\n", json_text(&broke)).into());
                }
            };
            self.is_over = page.is_empty();
            let meant = page.iter().filter(|record| is_meant(&self.filter, record));
            let mut lines = String::new();
            for letter in meant.filter_map(ExportedDeadLetter::of) {
                // Whoever looks at the file is safe from it, too.
                lines += &plain_json(&json_text(&letter));
                lines.push('\n');
            }
            if !lines.is_empty() {
                return Some(lines.into());
            }
        }
        None
    }
}

/// Export complete dead letters of all tenants
///
/// JSON lines, sent as they are read. A line with `error` is the last line and means that the export is not
/// complete. The lines contain every parameter: protect them like the store.
#[utoipa::path(
    get, path = "/v1/admin/dead/export", operation_id = "exportDead", tag = "admin",
    params(DeadLetterQuery),
    responses(
        (status = 200, body = ExportedDeadLetter, content_type = "application/x-ndjson",
            description = "One ExportedDeadLetter per line."),
        ExportProblems,
    ),
    security(("bearer" = []), ("api_key" = [])),
)]
pub(super) async fn export(
    State(state): State<AppState>,
    _: Operator,
    asked: DeadLetterSelection,
) -> Result<Response, Refused> {
    let _permit = state.stream_seat(None)?;
    let walk = Walk::without_end(Which::DEAD, asked.after);
    let export = Export { state, filter: asked.filter, walk, is_over: false, _permit };
    let lines = stream::unfold(export, |mut export| async {
        let lines = export.lines().await?;
        Some((Ok::<_, Infallible>(lines), export))
    });
    let mut response = Response::new(Body::from_stream(lines));
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(JSON_LINES));
    Ok(response)
}

#[derive(Serialize, ToSchema)]
pub(super) struct Imported {
    imported: usize,
    /// Orders that exist here already, and are unchanged.
    there_already: usize,
    /// Lines that could not be imported; the first thousand of them.
    refused: Vec<RefusedLine>,
    refused_count: usize,
}

#[derive(Serialize, ToSchema)]
pub(super) struct RefusedLine {
    /// Line number, from 1.
    line: usize,
    why: String,
}

/// What of a line is read again.
#[derive(Deserialize)]
struct ImportLine {
    key: String,
    record: Option<String>,
    terms: Option<String>,
}

fn read_line(line: &[u8]) -> Result<Order, String> {
    let Ok(ImportLine { key, record, terms }) = serde_json::from_slice(line) else {
        return Err("this is no line of an export".into());
    };
    let (Some(record), Some(terms)) = (record, terms) else {
        return Err("it could not be read where it comes from".into());
    };
    let bytes = |text: &str| BASE64.decode(text).map_err(|_| "its record is no base64".to_owned());
    let strange = |error: quittance_record::RecordError| format!("its record cannot be read: {error}");
    let terms = quittance_record::decode_terms(&bytes(&terms)?).map_err(strange)?;
    let order = quittance_record::decode_order(&bytes(&record)?, Arc::new(terms)).map_err(strange)?;
    match Key::parse(&key) {
        Ok(key) if key == order.key => Ok(order),
        _ => Err("its key is not that of its record".into()),
    }
}

/// Import exported dead letters
///
/// The body is the lines of an export. Existing orders stay unchanged, so the same lines can be sent again.
#[utoipa::path(
    post, path = "/v1/admin/dead/import", operation_id = "importDead", tag = "admin",
    request_body(content = String, content_type = "application/x-ndjson"),
    responses((status = 200, body = Imported, description = "The result of the import."), ImportProblems),
    security(("bearer" = []), ("api_key" = [])),
)]
pub(super) async fn import(
    State(state): State<AppState>,
    _: Operator,
    request: Request,
) -> Result<Response, Refused> {
    // It has arrived whole, and within the limits of whoever listens: a letter may be larger than the order that it tells of.
    let body = to_bytes(request.into_body(), usize::MAX).await.map_err(|_| Code::BrokenBody.plain())?;
    let mut told = Imported { imported: 0, there_already: 0, refused: Vec::new(), refused_count: 0 };
    // Some editors put a mark in front of a text that they save.
    let lines: Vec<(usize, &[u8])> = body
        .strip_prefix("\u{feff}".as_bytes())
        .unwrap_or(&body)
        .split(|byte| *byte == b'\n')
        .enumerate()
        .filter(|(_, line)| !line.trim_ascii().is_empty())
        .map(|(at, line)| (at + 1, line))
        .collect();
    for some in lines.chunks(AT_ONCE) {
        let mut adopting = Vec::new();
        for (at, line) in some {
            match read_line(line) {
                Ok(order) => adopting.push((*at, order)),
                Err(why) => told.refuse(*at, why),
            }
        }
        let engine = state.orders.engine();
        let adopted = adopting
            .into_iter()
            .map(|(at, order)| async move { (at, engine.adopt_dead_letter(order).await) });
        for (at, adopted) in join_all(adopted).await {
            match adopted {
                Ok(Adopted::New) => told.imported += 1,
                Ok(Adopted::ThereAlready) => told.there_already += 1,
                Ok(Adopted::NoDeadLetter) => told.refuse(at, "it is no dead letter".into()),
                Err(error @ StoreError::Corrupt { .. }) => told.refuse(at, error.to_string()),
                Err(error) => return Err(store_trouble(&error)),
            }
        }
    }
    Ok(super::json(StatusCode::OK, &told))
}

impl Imported {
    fn refuse(&mut self, line: usize, why: String) {
        self.refused_count += 1;
        if self.refused.len() < REFUSED_MAX {
            self.refused.push(RefusedLine { line, why });
        }
    }
}
