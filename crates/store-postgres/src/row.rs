//! An order as a row: its narrow columns beside the record, and how it is read back.

use crate::failure::PostgresError;
use quittance_lifecycle::{Key, Order, Target, Timestamp};
use quittance_ports::{OrderClass, Unreadable, Version, Versioned};
use quittance_record::{RecordError, decode_order, decode_terms};
use std::sync::Arc;
use tokio_postgres::Row;
use tokio_postgres::types::FromSql;

/// The longest terms that are sent at every step. Longer ones are stored outside of the row anyway.
pub(crate) const SENT_TERMS_BYTES_MAX: usize = 2000;

pub(crate) const OPEN: i16 = 0;
pub(crate) const DEAD: i16 = 1;
pub(crate) const AT_REST: i16 = 2;

/// The columns that are derived from the phase of an order.
#[derive(Clone, Debug)]
pub(crate) struct PostgresMarks {
    pub(crate) timer: Option<i64>,
    /// The stock that holds its answer, or from which its answer was taken.
    pub(crate) target: Option<Target>,
    pub(crate) stocked: Option<StockEntry>,
    pub(crate) taker: Option<Key>,
    pub(crate) forget_at: Option<i64>,
    pub(crate) class: i16,
    pub(crate) awaited: bool,
}

/// What the server needs to give away an answer from a stock by itself.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StockEntry {
    pub(crate) expires: i64,
    /// The timer after the take.
    pub(crate) timer: Option<i64>,
    /// The purge time after the take.
    pub(crate) forget_at: Option<i64>,
}

impl PostgresMarks {
    pub(crate) fn of(order: &Order) -> Self {
        let taker = order.taker();
        let (stock, stocked) =
            order.list_stock().map(|(target, expires)| (target, stocked(order, expires))).unzip();
        Self {
            timer: order.due().map(moment),
            target: stock.or_else(|| taker.map(|_| order.terms.target)),
            stocked,
            taker,
            forget_at: order.forget_at().map(moment),
            class: class(OrderClass::of(order)),
            awaited: order.is_awaited(),
        }
    }
}

pub(crate) const fn class(class: OrderClass) -> i16 {
    match class {
        OrderClass::Open => OPEN,
        OrderClass::Dead => DEAD,
        OrderClass::AtRest => AT_REST,
    }
}

fn stocked(order: &Order, expires: Timestamp) -> StockEntry {
    let (timer, forget_at) = order.once_taken();
    StockEntry { expires: moment(expires), timer: timer.map(moment), forget_at: forget_at.map(moment) }
}

/// A moment as a number that sorts by time. Later moments than the column can hold become the latest one.
pub(crate) fn moment(at: Timestamp) -> i64 {
    count(at.as_millis())
}

pub(crate) fn count(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

pub(crate) fn read_moment(at: i64) -> Timestamp {
    Timestamp::from_millis(u64::try_from(at).unwrap_or(0))
}

/// A column that the statement returns.
pub(crate) fn column<'a, T: FromSql<'a>>(row: &'a Row, at: usize) -> Result<T, PostgresError> {
    row.try_get(at).map_err(|error| PostgresError::of(&error))
}

pub(crate) fn key(bytes: &[u8]) -> Result<Key, PostgresError> {
    bytes.try_into().map(Key).map_err(|_| PostgresError::Garbled("a key is not 32 bytes long".into()))
}

pub(crate) fn version(number: i64) -> Version {
    Version(number.cast_unsigned())
}

/// The order of a row, or the fact that it cannot be parsed.
pub(crate) type PostgresRow = Result<Versioned, BrokenWrite>;

/// A record that cannot be parsed, with its version.
#[derive(Clone, Debug)]
pub(crate) struct BrokenWrite {
    pub(crate) version: Version,
    pub(crate) unreadable: Unreadable,
    /// A later version of Quittance wrote it: the record is fine, and nodes of that version can read it.
    pub(crate) is_later: bool,
}

/// Reads the columns `key, version, record, terms, taker, taken_at`, beginning with `first`. If `taken_at` is set,
/// the server has given the answer away, and the record does not hold that yet.
pub(crate) fn stored(row: &Row, first: usize) -> Result<PostgresRow, PostgresError> {
    let key = key(column(row, first)?)?;
    let version = version(column(row, first + 1)?);
    let (record, terms) = (column::<&[u8]>(row, first + 2)?, column::<&[u8]>(row, first + 3)?);
    let taken = taken(row, first + 4)?;
    let broken = |detail, is_later| BrokenWrite { version, unreadable: Unreadable { key, detail }, is_later };
    Ok(match decode(record, terms) {
        Ok(order) if order.key == key => {
            let order = match taken {
                Some((by, at)) => order.taken(by, at),
                None => order,
            };
            Ok(Versioned { version, order: Arc::new(order) })
        }
        Ok(_) => Err(broken("the row holds the record of another order".to_owned(), false)),
        Err(error) => Err(broken(error.to_string(), error.is_later())),
    })
}

fn taken(row: &Row, first: usize) -> Result<Option<(Key, Timestamp)>, PostgresError> {
    let Some(at) = column::<Option<i64>>(row, first + 1)? else { return Ok(None) };
    Ok(Some((key(column(row, first)?)?, read_moment(at))))
}

fn decode(record: &[u8], terms: &[u8]) -> Result<Order, RecordError> {
    decode_order(record, Arc::new(decode_terms(terms)?))
}
