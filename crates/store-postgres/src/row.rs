//! One order as a row: what stands in the narrow columns beside the record, and what is read back.

use crate::trouble::Trouble;
use quittance_lifecycle::{Key, Order, Target, Timestamp};
use quittance_ports::{Unreadable, Version, Versioned};
use quittance_record::{RecordError, decode_order, decode_terms};
use std::sync::Arc;
use tokio_postgres::Row;
use tokio_postgres::types::FromSql;

/// The longest terms that are sent at every step. Longer ones stand outside of the row anyway.
pub(crate) const SENT_TERMS_BYTES_MAX: usize = 2000;

pub(crate) const OPEN: i16 = 0;
pub(crate) const DEAD: i16 = 1;
pub(crate) const AT_REST: i16 = 2;

/// All that follows from the phase of an order.
#[derive(Clone, Debug)]
pub(crate) struct Marks {
    pub(crate) alarm: Option<i64>,
    pub(crate) shelf: Option<(Target, i64)>,
    pub(crate) forget_at: Option<i64>,
    pub(crate) standing: i16,
    pub(crate) awaited: bool,
}

impl Marks {
    pub(crate) fn of(order: &Order) -> Self {
        let standing = match &order.phase {
            _ if order.needs_a_person() => DEAD,
            phase if phase.is_open() => OPEN,
            _ => AT_REST,
        };
        Self {
            alarm: order.due().map(moment),
            shelf: order.shelf().map(|(target, spoils)| (target, moment(spoils))),
            forget_at: order.forget_at().map(moment),
            standing,
            awaited: order.is_awaited(),
        }
    }
}

/// Moments in an index must sort as they lie in time; what lies beyond is as far as it goes.
pub(crate) fn moment(at: Timestamp) -> i64 {
    count(at.as_millis())
}

pub(crate) fn count(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

pub(crate) fn read_moment(at: i64) -> Timestamp {
    Timestamp::from_millis(u64::try_from(at).unwrap_or(0))
}

/// A column that the statement promises to have.
pub(crate) fn column<'a, T: FromSql<'a>>(row: &'a Row, at: usize) -> Result<T, Trouble> {
    row.try_get(at).map_err(|error| Trouble::of(&error))
}

pub(crate) fn key(bytes: &[u8]) -> Result<Key, Trouble> {
    bytes.try_into().map(Key).map_err(|_| Trouble::Garbled("a key is not 32 bytes long".into()))
}

pub(crate) fn version(number: i64) -> Version {
    Version(number.cast_unsigned())
}

/// What stands under a key; or that it cannot be understood.
pub(crate) type Found = Result<Versioned, Broken>;

/// A record that cannot be understood, and which write of it.
#[derive(Clone, Debug)]
pub(crate) struct Broken {
    pub(crate) version: Version,
    pub(crate) unreadable: Unreadable,
}

/// The columns `key, version, record, terms`, from `first` on.
pub(crate) fn found(row: &Row, first: usize) -> Result<Found, Trouble> {
    let key = key(column(row, first)?)?;
    let version = version(column(row, first + 1)?);
    let (record, terms) = (column::<&[u8]>(row, first + 2)?, column::<&[u8]>(row, first + 3)?);
    let broken = |detail| Broken { version, unreadable: Unreadable { key, detail } };
    Ok(match decode(record, terms) {
        Ok(order) if order.key == key => Ok(Versioned { version, order: Arc::new(order) }),
        Ok(_) => Err(broken("the row holds the record of another order".to_owned())),
        Err(error) => Err(broken(error.to_string())),
    })
}

fn decode(record: &[u8], terms: &[u8]) -> Result<Order, RecordError> {
    decode_order(record, Arc::new(decode_terms(terms)?))
}
