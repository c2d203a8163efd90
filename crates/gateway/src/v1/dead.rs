//! Dead letters, for the operator: listed by what he is looking for, sent on their way again or given up, and carried from one
//! store to another. However many there are, a request reads a bounded number of them, and an export sends them as it reads.

use super::caller::{ByKey, Operator};
use super::letter::{AskedLetters, Found, Letter, LetterQuery, Record, Walk, is_meant};
use super::moment::rfc3339;
use super::orders::{not_allowed, store_trouble};
use super::problem::{Code, Refused, problems};
use super::story::{ToldBeat, operators_trouble};
use super::{JSON_LINES, Room, json_text};
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
use quittance_lifecycle::{Key, LetterCause, LetterFilter, Order};
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
pub(super) struct Letters {
    orders: Vec<Letter>,
    /// Where to go on, as `after`; absent on the last page. A page may be empty and not the last.
    #[schema(pattern = "^[0-9a-f]{64}$")]
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<String>,
}

/// Lists the dead letters of all tenants
///
/// A request reads a bounded number of records; `next` says where to go on.
#[utoipa::path(
    get, path = "/v1/admin/dead", operation_id = "listDead", tag = "admin",
    params(LetterQuery),
    responses((status = 200, body = Letters, description = "A page of them, in the order of keys."), DeadListProblems),
    security(("bearer" = []), ("api_key" = [])),
)]
pub(super) async fn list(
    State(room): State<Room>,
    _: Operator,
    asked: AskedLetters,
) -> Result<Response, Refused> {
    let letters = room.letters(asked).await.map_err(|error| operators_trouble(&error))?;
    Ok(super::json(StatusCode::OK, &letters))
}

impl Room {
    async fn letters(&self, asked: AskedLetters) -> Result<Letters, StoreError> {
        let now = self.desk.clock().now();
        let prices = self.prices().await?;
        let mut walk = Walk::new(Which::DEAD, asked.after);
        let mut orders = Vec::new();
        loop {
            let page = walk.page(self).await?;
            if page.is_empty() {
                return Ok(Letters { orders, next: walk.next() });
            }
            for record in page.into_iter().filter(|record| is_meant(&asked.filter, record)) {
                let (key, letter) = match record {
                    Ok(found) => {
                        (found.order.key, Letter::of(self.desk.engine(), &found.order, &prices, now))
                    }
                    Err(unreadable) => (unreadable.key, Some(Letter::Unread(unreadable.into()))),
                };
                orders.extend(letter);
                if orders.len() == asked.limit {
                    return Ok(Letters { orders, next: Some(key.to_string()) });
                }
            }
        }
    }

    fn done(&self, applied: Applied) -> Result<Response, Refused> {
        match applied {
            Applied::Advanced { now, .. } | Applied::Act { now, .. } => {
                Ok(super::json(StatusCode::OK, &Found::of(&now.order, self.desk.clock().now())))
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

/// Sends a dead letter on its way again
#[utoipa::path(
    post, path = "/v1/admin/dead/{key}/replay", operation_id = "replayDead", tag = "admin",
    params(("key" = String, Path, pattern = "^[0-9a-fA-F]{64}$", description = "The order's key.")),
    responses((status = 200, body = Found, description = "The order as it is now."), ReplayProblems),
    security(("bearer" = []), ("api_key" = [])),
)]
pub(super) async fn replay(
    State(room): State<Room>,
    _: Operator,
    ByKey(key): ByKey,
) -> Result<Response, Refused> {
    let engine = room.desk.engine();
    let applied = engine.replay(&key).await.map_err(|error| operators_trouble(&error))?;
    if let Applied::Ignored { now, .. } = &applied
        && now.order.phase.is_dead()
        && let Err(why) = engine.check_target(&now.order)
    {
        return Err(not_allowed(&why, why.to_string()));
    }
    room.done(applied)
}

/// A record that nobody could read. It is gone, and its key is free.
#[derive(Serialize, ToSchema)]
pub(super) struct DiscardedRecord {
    #[schema(pattern = "^[0-9a-f]{64}$")]
    key: String,
    #[schema(pattern = "^unreadable$")]
    cause: &'static str,
    /// Always true: placing it again makes a new order.
    discarded: bool,
}

/// What stands after a letter was dropped.
#[derive(Serialize, ToSchema)]
#[serde(untagged)]
#[expect(dead_code, reason = "each is answered with by itself, and they are only described together here")]
pub(super) enum DroppedLetter {
    Order(Box<Found>),
    Record(DiscardedRecord),
}

/// Gives a dead letter up for good
///
/// The record of one that nobody can read is removed, and its key is free: placing it again makes a new order, although nobody
/// knows whether the old one was paid for. What a later version wrote is left for it.
#[utoipa::path(
    post, path = "/v1/admin/dead/{key}/drop", operation_id = "dropDead", tag = "admin",
    params(("key" = String, Path, pattern = "^[0-9a-fA-F]{64}$", description = "The order's key.")),
    responses(
        (status = 200, body = DroppedLetter, description = "The order as it is now, or that its record is gone."),
        DropProblems,
    ),
    security(("bearer" = []), ("api_key" = [])),
)]
pub(super) async fn drop_dead(
    State(room): State<Room>,
    _: Operator,
    ByKey(key): ByKey,
) -> Result<Response, Refused> {
    match room.desk.engine().drop_letter(&key).await {
        Ok(Dropped::Told(applied)) => room.done(applied),
        Ok(Dropped::Discarded) => {
            let cause = LetterCause::Unreadable.name();
            let gone = DiscardedRecord { key: key.to_string(), cause, discarded: true };
            Ok(super::json(StatusCode::OK, &gone))
        }
        Err(error @ StoreError::Corrupt { .. }) => Err(Code::CannotDrop.because(error.to_string())),
        Err(error) => Err(store_trouble(&error)),
    }
}

/// A dead letter with all that is needed to put it into another store.
#[derive(Serialize, ToSchema)]
pub(super) struct ExportedLetter {
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
    story: Vec<ToldBeat>,
    /// The record as it is written down, in base64. It holds every parameter.
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

impl ExportedLetter {
    fn of(record: &Record) -> Option<Self> {
        match record {
            Ok(found) => Self::read(&found.order),
            Err(Unreadable { key, detail }) => Some(Self {
                key: key.to_string(),
                cause: LetterCause::Unreadable.name(),
                why: detail.clone(),
                kind: None,
                tenant: None,
                site: None,
                dead_at: None,
                story: Vec::new(),
                record: None,
                terms: None,
            }),
        }
    }

    fn read(order: &Order) -> Option<Self> {
        let letter = order.letter()?;
        let terms = &order.terms;
        Some(Self {
            key: order.key.to_string(),
            cause: letter.cause.name(),
            why: letter.why,
            kind: Some(terms.kind.clone()),
            tenant: Some(terms.tenant.clone()),
            site: Some(terms.site.clone()),
            dead_at: Some(rfc3339(letter.since)),
            story: order.story.entries.iter().map(ToldBeat::of).collect(),
            record: Some(BASE64.encode(quittance_record::encode_order(order))),
            terms: Some(BASE64.encode(quittance_record::encode_terms(terms))),
        })
    }
}

/// An export under way.
struct Export {
    room: Room,
    filter: LetterFilter,
    walk: Walk,
    is_over: bool,
    _permit: crate::seats::Seat,
}

impl Export {
    /// The next lines; nothing, when all have been sent.
    async fn lines(&mut self) -> Option<Bytes> {
        while !self.is_over {
            let page = match self.walk.page(&self.room).await {
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
            for letter in meant.filter_map(ExportedLetter::of) {
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

/// Sends dead letters of all tenants, whole
///
/// Lines of JSON, as many as there are, sent as they are read. A line with `error` is the last one, and says that there was
/// more. They hold every parameter: keep them as you keep the store.
#[utoipa::path(
    get, path = "/v1/admin/dead/export", operation_id = "exportDead", tag = "admin",
    params(LetterQuery),
    responses(
        (status = 200, body = ExportedLetter, content_type = "application/x-ndjson",
            description = "One ExportedLetter on each line."),
        ExportProblems,
    ),
    security(("bearer" = []), ("api_key" = [])),
)]
pub(super) async fn export(
    State(room): State<Room>,
    _: Operator,
    asked: AskedLetters,
) -> Result<Response, Refused> {
    let _permit = room.stream_seat(None)?;
    let walk = Walk::without_end(Which::DEAD, asked.after);
    let export = Export { room, filter: asked.filter, walk, is_over: false, _permit };
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
    /// Orders that are on record here already, and were left as they are.
    there_already: usize,
    /// Lines that could not be taken in; the first thousand of them.
    refused: Vec<RefusedLine>,
    refused_count: usize,
}

#[derive(Serialize, ToSchema)]
pub(super) struct RefusedLine {
    /// Counted from 1.
    line: usize,
    why: String,
}

/// What of a line is read again.
#[derive(Deserialize)]
struct Line {
    key: String,
    record: Option<String>,
    terms: Option<String>,
}

fn read_line(line: &[u8]) -> Result<Order, String> {
    let Ok(Line { key, record, terms }) = serde_json::from_slice(line) else {
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

/// Takes in dead letters that were exported elsewhere
///
/// The body is lines of an export. What is on record here already is left as it is, so the same lines may be sent again.
#[utoipa::path(
    post, path = "/v1/admin/dead/import", operation_id = "importDead", tag = "admin",
    request_body(content = String, content_type = "application/x-ndjson"),
    responses((status = 200, body = Imported, description = "What became of them."), ImportProblems),
    security(("bearer" = []), ("api_key" = [])),
)]
pub(super) async fn import(
    State(room): State<Room>,
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
        let engine = room.desk.engine();
        let adopted =
            adopting.into_iter().map(|(at, order)| async move { (at, engine.adopt_letter(order).await) });
        for (at, adopted) in join_all(adopted).await {
            match adopted {
                Ok(Adopted::New) => told.imported += 1,
                Ok(Adopted::ThereAlready) => told.there_already += 1,
                Ok(Adopted::NoLetter) => told.refuse(at, "it is no dead letter".into()),
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
