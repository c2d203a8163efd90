//! An order as a hash: the fields beside its record, and how it is read back.

use crate::failure::RedisFailure;
use crate::layout::{read_taker_mark, score, stock_member, taker_mark};
use quittance_lifecycle::{Key, Order, Terms, Timestamp};
use quittance_ports::{OrderClass, StoreError, Unreadable, Version, Versioned};
use quittance_record::{RecordError, decode_order, decode_terms};
use redis::Value;
use std::sync::Arc;

/// The index values of an order, all derived from its phase, as text.
pub(crate) struct RedisMarks {
    pub(crate) due: String,
    pub(crate) forget: String,
    pub(crate) stock: String,
    /// The timer and the purge time of the order after a take from its stock.
    pub(crate) once_taken: String,
    pub(crate) taker: String,
    pub(crate) class: &'static str,
    pub(crate) awaited: &'static str,
}

impl RedisMarks {
    pub(crate) fn of(order: &Order) -> Self {
        let (mut stock, mut once_taken) = (String::new(), String::new());
        if let Some((target, expires)) = order.list_stock() {
            let (due, forget_at) = order.once_taken();
            stock = stock_member(&target, expires, &order.key);
            once_taken = format!("{}:{}", moment(due), moment(forget_at));
        }
        let taker = order.taker().map(|by| taker_mark(&order.terms.target, &by));
        Self {
            due: moment(order.due()),
            forget: moment(order.forget_at()),
            stock,
            once_taken,
            taker: taker.unwrap_or_default(),
            class: match OrderClass::of(order) {
                OrderClass::Dead => "dead",
                OrderClass::Open => "open",
                OrderClass::AtRest => "rest",
            },
            awaited: if order.is_awaited() { "1" } else { "0" },
        }
    }
}

fn moment(at: Option<Timestamp>) -> String {
    at.map(|at| score(at).to_string()).unwrap_or_default()
}

/// The state of an order's key.
pub(crate) enum RedisRow {
    Gone,
    Whole(Versioned),
    Broken(BrokenRecord),
}

pub(crate) struct BrokenRecord {
    pub(crate) key: Key,
    /// The version as it is stored, to recognize the record again.
    pub(crate) version: Vec<u8>,
    pub(crate) detail: String,
    /// A later version of Quittance wrote it: the record is fine, and nodes of that version can read it.
    pub(crate) is_later: bool,
}

impl BrokenRecord {
    pub(crate) fn corrupt(self) -> StoreError {
        StoreError::Corrupt { key: self.key, detail: self.detail }
    }

    pub(crate) fn unreadable(self) -> Unreadable {
        Unreadable { key: self.key, detail: self.detail }
    }
}

/// Why a row is not accepted. It does not show the content, because records hold secrets and errors are logged.
enum RedisFlaw {
    Damaged(&'static str),
    Record(RecordError),
}

impl From<RecordError> for RedisFlaw {
    fn from(error: RecordError) -> Self {
        Self::Record(error)
    }
}

/// Version, record and terms, and the claimant and time of a take that the record does not hold yet. Each can be
/// missing.
pub(crate) type RedisFields = [Option<Vec<u8>>; 5];

/// Terms in memory and their encoded form. A placement that joins an order mostly has the same terms, and equal text
/// need not be decoded again.
pub(crate) type KnownTerms<'a> = (&'a [u8], &'a Arc<Terms>);

pub(crate) const FIELDS: [&str; 5] = ["version", "record", "terms", "taker", "taken_at"];

pub(crate) fn read_row(values: Vec<Value>) -> Result<RedisFields, RedisFailure> {
    let texts = values.into_iter().map(text).collect::<Result<Vec<_>, _>>()?;
    texts.try_into().map_err(|_| RedisFailure::Garbled)
}

pub(crate) fn text(value: Value) -> Result<Option<Vec<u8>>, RedisFailure> {
    match value {
        Value::Nil => Ok(None),
        Value::BulkString(bytes) => Ok(Some(bytes)),
        Value::SimpleString(text) => Ok(Some(text.into_bytes())),
        Value::Int(number) => Ok(Some(number.to_string().into_bytes())),
        _ => Err(RedisFailure::Garbled),
    }
}

/// Reads a row, which can be missing.
pub(crate) fn read(key: &Key, row: RedisFields, known: Option<KnownTerms<'_>>) -> RedisRow {
    if row.iter().all(Option::is_none) { RedisRow::Gone } else { read_class(key, row, known) }
}

/// Reads a row that exists.
pub(crate) fn read_class(key: &Key, row: RedisFields, known: Option<KnownTerms<'_>>) -> RedisRow {
    match whole(key, row.each_ref().map(Option::as_deref), known) {
        Ok(versioned) => RedisRow::Whole(versioned),
        Err(flaw) => {
            let (detail, is_later) = match flaw {
                RedisFlaw::Damaged(what) => (
                    format!("the record is damaged, {what}: keep a copy, and restore it from a backup"),
                    false,
                ),
                RedisFlaw::Record(error) => (error.to_string(), error.is_later()),
            };
            let [version, ..] = row;
            RedisRow::Broken(BrokenRecord {
                key: *key,
                version: version.unwrap_or_default(),
                detail,
                is_later,
            })
        }
    }
}

/// The result for a key that holds something else than a record.
pub(crate) fn not_a_record(key: &Key) -> BrokenRecord {
    let detail =
        "the value under the key of this order is not a record: keep a copy, and restore it from a backup";
    BrokenRecord { key: *key, version: Vec::new(), detail: detail.to_owned(), is_later: false }
}

fn whole(
    key: &Key,
    [version, record, terms, taker, taken_at]: [Option<&[u8]>; 5],
    known: Option<KnownTerms<'_>>,
) -> Result<Versioned, RedisFlaw> {
    let version =
        version.and_then(read_version).ok_or(RedisFlaw::Damaged("its version is missing or not a number"))?;
    let terms = terms.ok_or(RedisFlaw::Damaged("its terms are missing"))?;
    let terms = match known {
        Some((written, known)) if written == terms => Arc::clone(known),
        _ => Arc::new(decode_terms(terms)?),
    };
    let record = record.ok_or(RedisFlaw::Damaged("its body is missing"))?;
    let order = decode_order(record, terms)?;
    if order.key != *key {
        return Err(RedisFlaw::Damaged("it belongs to another order"));
    }
    let order = match taken_at.filter(|at| !at.is_empty()) {
        None => order,
        Some(at) => {
            let (by, at) = read_taken(taker, at)
                .ok_or(RedisFlaw::Damaged("the order that took its answer cannot be read"))?;
            order.taken(by, at)
        }
    };
    Ok(Versioned { version, order: Arc::new(order) })
}

fn read_taken(taker: Option<&[u8]>, at: &[u8]) -> Option<(Key, Timestamp)> {
    let by = read_taker_mark(std::str::from_utf8(taker?).ok()?)?;
    let at = std::str::from_utf8(at).ok()?.parse().ok()?;
    Some((by, Timestamp::from_millis(at)))
}

pub(crate) fn read_version(text: &[u8]) -> Option<Version> {
    let number = std::str::from_utf8(text).ok()?.parse().ok()?;
    (number > 0).then_some(Version(number))
}
