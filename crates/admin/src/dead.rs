//! Dead letters: list, replay, drop, export and import. A request reads a limited number of records, and an export
//! sends records while it reads.

use crate::AppState;
use crate::dead_letter::{
    AnyDeadLetter, DeadLetterQuery, DeadLetterSelection, Found, Record, Walk, is_selected,
};
use crate::extract::ByKey;
use crate::timeline::{TimelineEntryView, operator_error};
use axum::body::{Body, Bytes, to_bytes};
use axum::extract::{Request, State};
use axum::response::Response;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use futures_util::future::join_all;
use futures_util::stream;
use hyper::StatusCode;
use hyper::header::{CONTENT_TYPE, HeaderValue};
use quittance_engine::{AdoptOutcome, ApplyOutcome, DropOutcome};
use quittance_gateway::problems;
use quittance_gateway::v1::Operator;
use quittance_gateway::v1::json;
use quittance_gateway::v1::order_problems::{not_allowed, store_problem};
use quittance_gateway::v1::problem::{Code, Refused};
use quittance_gateway::v1::{JSON_LINES, json_text};
use quittance_gateway::{StreamPermit, plain_json};
use quittance_lifecycle::{DeadLetterCause, DeadLetterFilter, Key, Order};
use quittance_ports::moment::rfc3339;
use quittance_ports::{StoreError, Unreadable, Which};
use serde::{Deserialize, Serialize};
use std::convert::Infallible;
use std::fmt;
use std::sync::Arc;
use utoipa::ToSchema;

/// How many dead letters are written at once.
const AT_ONCE: usize = 32;
/// How many refused lines a response lists.
const REFUSED_MAX: usize = 1000;

problems!(DeadListProblems: Unauthorized, Forbidden, Unreadable, BadParams, StoreUnavailable);
problems!(ReplayProblems: Unauthorized, Forbidden, TargetNotAllowed, KindNotAllowed, UnknownOrder, NotDead, Unreadable,
    StoreUnavailable);
problems!(DropProblems: Unauthorized, Forbidden, UnknownOrder, NotDead, CannotDrop, StoreUnavailable);
problems!(ExportProblems: Unauthorized, Forbidden, BadParams, TooManyStreams);
problems!(ImportProblems: BrokenBody, Unauthorized, Forbidden, TooSlow, NeedsAPerson, TooLarge, StoreUnavailable);

#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct DeadLetters {
    pub orders: Vec<AnyDeadLetter>,
    /// Value of `after` for the next page; absent on the last page. A page may be empty and not the last.
    #[schema(pattern = "^[0-9a-f]{64}$")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
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
pub(crate) async fn list(
    State(state): State<AppState>,
    _: Operator,
    selection: DeadLetterSelection,
) -> Result<Response, Refused> {
    let letters = state.dead_letters(selection).await.map_err(|error| operator_error(&error))?;
    Ok(json(StatusCode::OK, &letters))
}

impl AppState {
    async fn dead_letters(&self, selection: DeadLetterSelection) -> Result<DeadLetters, StoreError> {
        let now = self.orders.clock().now();
        let prices = self.prices().await?;
        let mut walk = Walk::new(Which::DEAD, selection.after);
        let mut orders = Vec::new();
        loop {
            let page = walk.page(self).await?;
            if page.is_empty() {
                return Ok(DeadLetters { orders, next: walk.next() });
            }
            for record in page.into_iter().filter(|record| is_selected(&selection.filter, record)) {
                let (key, letter) = match record {
                    Ok(found) => {
                        (found.order.key, AnyDeadLetter::of(self.orders.engine(), &found.order, &prices, now))
                    }
                    Err(unreadable) => (unreadable.key, Some(AnyDeadLetter::Unread(unreadable.into()))),
                };
                orders.extend(letter);
                if orders.len() == selection.limit {
                    return Ok(DeadLetters { orders, next: Some(key.to_string()) });
                }
            }
        }
    }

    fn applied_response(&self, applied: ApplyOutcome) -> Result<Response, Refused> {
        match applied {
            ApplyOutcome::Advanced { now, .. } | ApplyOutcome::Act { now, .. } => {
                Ok(json(StatusCode::OK, &Found::of(&now.order, self.orders.clock().now())))
            }
            ApplyOutcome::Ignored { now, .. } => {
                let (key, phase) = (now.order.key, now.order.phase.name());
                let why = format!(
                    "Order {key} is {phase}, and no dead letter. GET /v1/admin/dead lists the dead letters."
                );
                Err(Code::NotDead.because(why))
            }
            ApplyOutcome::Missing => Err(Code::UnknownOrder.plain()),
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
pub(crate) async fn replay(
    State(state): State<AppState>,
    _: Operator,
    ByKey(key): ByKey,
) -> Result<Response, Refused> {
    let engine = state.orders.engine();
    let applied = engine.replay(&key).await.map_err(|error| operator_error(&error))?;
    if let ApplyOutcome::Ignored { now, .. } = &applied
        && now.order.phase.is_dead()
        && let Err(why) = engine.check_target(&now.order)
    {
        return Err(not_allowed(&why, why.to_string()));
    }
    state.applied_response(applied)
}

/// An unreadable record that was removed. Its key is free.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct DiscardedRecord {
    #[schema(pattern = "^[0-9a-f]{64}$")]
    pub key: String,
    #[schema(pattern = "^unreadable$")]
    pub cause: String,
    /// Always true: a new placement with this key is a new order.
    pub discarded: bool,
}

/// State after the drop.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
#[serde(untagged)]
pub enum DroppedDeadLetter {
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
pub(crate) async fn drop_dead(
    State(state): State<AppState>,
    _: Operator,
    ByKey(key): ByKey,
) -> Result<Response, Refused> {
    match state.orders.engine().drop_dead_letter(&key).await {
        Ok(DropOutcome::Applied(applied)) => state.applied_response(applied),
        Ok(DropOutcome::Discarded) => {
            let cause = DeadLetterCause::Unreadable.name().to_owned();
            let gone = DiscardedRecord { key: key.to_string(), cause, discarded: true };
            Ok(json(StatusCode::OK, &gone))
        }
        Err(error @ StoreError::Corrupt { .. }) => Err(Code::CannotDrop.because(error.to_string())),
        Err(error) => Err(store_problem(&error)),
    }
}

/// A complete dead letter, for import into another store.
#[derive(Serialize, Deserialize, ToSchema)]
pub struct ExportedDeadLetter {
    #[schema(pattern = "^[0-9a-f]{64}$")]
    pub key: String,
    pub cause: String,
    pub why: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tenant: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub site: Option<String>,
    #[schema(format = DateTime)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dead_at: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub timeline: Vec<TimelineEntryView>,
    /// The stored record, in base64. It contains every parameter.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub record: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub terms: Option<String>,
}

/// The last line of an export that is not complete.
#[derive(Serialize)]
struct ExportError {
    error: &'static str,
}

impl fmt::Debug for ExportedDeadLetter {
    /// Leaves out the record, because it contains every parameter.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ExportedDeadLetter({}, {})", self.key, self.cause)
    }
}

impl ExportedDeadLetter {
    fn of(record: &Record) -> Option<Self> {
        match record {
            Ok(found) => Self::read(&found.order),
            Err(Unreadable { key, detail }) => Some(Self {
                key: key.to_string(),
                cause: DeadLetterCause::Unreadable.name().to_owned(),
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
            cause: letter.cause.name().to_owned(),
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

/// An export in progress.
struct Export {
    state: AppState,
    filter: DeadLetterFilter,
    walk: Walk,
    is_over: bool,
    _seat: StreamPermit,
}

impl Export {
    /// The next lines; `None` at the end.
    async fn lines(&mut self) -> Option<Bytes> {
        while !self.is_over {
            let page = match self.walk.page(&self.state).await {
                Ok(page) => page,
                Err(_) => {
                    self.is_over = true;
                    let error = ExportError {
                        error: "the store is not available: the export is not complete, run it again",
                    };
                    return Some(format!("{}\n", json_text(&error)).into());
                }
            };
            self.is_over = page.is_empty();
            let selected = page.iter().filter(|record| is_selected(&self.filter, record));
            let mut lines = String::new();
            for letter in selected.filter_map(ExportedDeadLetter::of) {
                // Escaped, so that a terminal that shows the file is safe.
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
pub(crate) async fn export(
    State(state): State<AppState>,
    _: Operator,
    selection: DeadLetterSelection,
) -> Result<Response, Refused> {
    let _seat = state.orders.streams().take(None)?;
    let walk = Walk::unlimited(Which::DEAD, selection.after);
    let export = Export { state, filter: selection.filter, walk, is_over: false, _seat };
    let lines = stream::unfold(export, |mut export| async {
        let lines = export.lines().await?;
        Some((Ok::<_, Infallible>(lines), export))
    });
    let mut response = Response::new(Body::from_stream(lines));
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(JSON_LINES));
    Ok(response)
}

#[derive(Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct Imported {
    pub imported: usize,
    /// Orders that exist here already, and are unchanged.
    pub there_already: usize,
    /// Lines that could not be imported; the first thousand of them.
    pub refused: Vec<RefusedLine>,
    pub refused_count: usize,
}

#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct RefusedLine {
    /// Line number, from 1.
    pub line: usize,
    pub why: String,
}

/// The parts of a line that an import reads.
#[derive(Deserialize)]
struct ImportLine {
    key: String,
    record: Option<String>,
    terms: Option<String>,
}

fn read_line(line: &[u8]) -> Result<Order, String> {
    let Ok(ImportLine { key, record, terms }) = serde_json::from_slice(line) else {
        return Err("this line is not from an export of dead letters".into());
    };
    let (Some(record), Some(terms)) = (record, terms) else {
        return Err("the exporting store could not read this order".into());
    };
    let bytes = |text: &str| {
        BASE64.decode(text).map_err(|_| "the `record` or `terms` of this line is not base64".to_owned())
    };
    let strange =
        |error: quittance_record::RecordError| format!("the record of this line cannot be read: {error}");
    let terms = quittance_record::decode_terms(&bytes(&terms)?).map_err(strange)?;
    let order = quittance_record::decode_order(&bytes(&record)?, Arc::new(terms)).map_err(strange)?;
    match Key::parse(&key) {
        Ok(key) if key == order.key => Ok(order),
        _ => Err("the `key` of this line differs from the key in its record".into()),
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
pub(crate) async fn import(
    State(state): State<AppState>,
    _: Operator,
    request: Request,
) -> Result<Response, Refused> {
    // The server has read it whole and within its limits.
    let body = to_bytes(request.into_body(), usize::MAX).await.map_err(|_| Code::BrokenBody.plain())?;
    let mut result = Imported { imported: 0, there_already: 0, refused: Vec::new(), refused_count: 0 };
    // Some editors write a byte order mark.
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
                Err(why) => result.refuse(*at, why),
            }
        }
        let engine = state.orders.engine();
        let adopted = adopting
            .into_iter()
            .map(|(at, order)| async move { (at, engine.adopt_dead_letter(order).await) });
        for (at, adopted) in join_all(adopted).await {
            match adopted {
                Ok(AdoptOutcome::New) => result.imported += 1,
                Ok(AdoptOutcome::ThereAlready) => result.there_already += 1,
                Ok(AdoptOutcome::NoDeadLetter) => result.refuse(at, "it is no dead letter".into()),
                Err(error @ StoreError::Corrupt { .. }) => result.refuse(at, error.to_string()),
                Err(error) => return Err(store_problem(&error)),
            }
        }
    }
    Ok(json(StatusCode::OK, &result))
}

impl Imported {
    fn refuse(&mut self, line: usize, why: String) {
        self.refused_count += 1;
        if self.refused.len() < REFUSED_MAX {
            self.refused.push(RefusedLine { line, why });
        }
    }
}
