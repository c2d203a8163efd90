//! An order as a row: how it is written and read back, and when a row counts as broken. Every row has checksums of
//! its parts, so that damage in a record that still parses is noticed.

use crate::failure::is_damage;
use crate::sum::{self, Checksum};
use quittance_lifecycle::{Key, Order, Target, Timestamp};
use quittance_ports::{OrderClass, Unreadable, Version, Versioned};
use quittance_record::{RecordError, decode_order, decode_terms};
use rusqlite::types::ValueRef;
use rusqlite::{CachedStatement, Connection, Row};
use std::sync::Arc;

/// The places of an order in the indices, all derived from its phase.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct EmbeddedMarks {
    pub(crate) due: Option<Timestamp>,
    pub(crate) stock: Option<(Target, Timestamp)>,
    pub(crate) forget_at: Option<Timestamp>,
    /// The claimant of its answer, and the stock from which the answer came.
    pub(crate) taken: Option<(Key, Target)>,
    pub(crate) class: OrderClass,
    pub(crate) tenant: TenantMark,
}

/// A hash of a tenant's name in the indices. Two names can share one, so a list also checks the record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct TenantMark(u64);

impl TenantMark {
    pub(crate) fn of(tenant: &str) -> Self {
        Self(sum::of_bytes(tenant.as_bytes()))
    }
}

impl EmbeddedMarks {
    pub(crate) fn of(order: &Order) -> Self {
        Self {
            due: order.due(),
            stock: order.list_stock(),
            forget_at: order.forget_at(),
            taken: order.taker().map(|by| (by, order.terms.target)),
            class: OrderClass::of(order),
            tenant: TenantMark::of(&order.terms.tenant),
        }
    }
}

/// An order that was read or written, with what its next write needs.
#[derive(Clone, Debug)]
pub(crate) struct StoredOrder {
    pub(crate) id: i64,
    pub(crate) versioned: Versioned,
    pub(crate) terms_sum: u64,
}

/// The state of a row.
#[derive(Debug)]
pub(crate) enum EmbeddedRow {
    Gone,
    Whole(StoredOrder),
    Broken(BrokenRow),
}

/// A row that this version cannot read.
#[derive(Debug)]
pub(crate) struct BrokenRow {
    pub(crate) unreadable: Unreadable,
    /// The checksums are right, but a later version of Quittance wrote the row: nodes of that version can read it.
    pub(crate) is_later: bool,
}

/// All columns but the record and the terms. They have a checksum of their own.
pub(crate) struct Head<'a> {
    pub(crate) key: Key,
    pub(crate) version: Version,
    pub(crate) life: u32,
    pub(crate) marks: EmbeddedMarks,
    pub(crate) phase: &'a str,
    pub(crate) kind: &'a str,
    pub(crate) tenant: &'a str,
    pub(crate) record_sum: u64,
    pub(crate) terms_sum: u64,
}

impl<'a> Head<'a> {
    pub(crate) fn of(order: &'a Order, version: Version, record_sum: u64, terms_sum: u64) -> Self {
        Self {
            key: order.key,
            version,
            life: order.life,
            marks: EmbeddedMarks::of(order),
            phase: order.phase.name(),
            kind: &order.terms.kind,
            tenant: &order.terms.tenant,
            record_sum,
            terms_sum,
        }
    }

    pub(crate) fn sum(&self) -> u64 {
        let EmbeddedMarks { due, stock, forget_at, taken, class: _, tenant: _ } = self.marks;
        let sum = Checksum::new().bytes(&self.key.0).word(self.version.0).word(self.life.into());
        let sum = sum.maybe(due.map(Timestamp::as_millis)).maybe(forget_at.map(Timestamp::as_millis));
        let sum = match stock {
            None => sum.word(0),
            Some((target, expires)) => sum.word(1).bytes(&target.0).word(expires.as_millis()),
        };
        // Where it is not taken there is nothing to add up: that is how rows were summed before there were takers.
        let sum = match taken {
            None => sum,
            Some((by, target)) => sum.bytes(&by.0).bytes(&target.0),
        };
        let sum =
            [self.phase, self.kind, self.tenant].iter().fold(sum, |sum, text| sum.bytes(text.as_bytes()));
        sum.word(self.record_sum).word(self.terms_sum).finish()
    }
}

/// The checksum of terms together with their key, so that they belong to one order only.
pub(crate) fn terms_sum(key: &Key, terms: &[u8]) -> u64 {
    Checksum::new().bytes(&key.0).bytes(terms).finish()
}

/// The columns in the order in which [`head`] and the other functions read them.
macro_rules! columns {
    () => {
        "id, key, version, life, due, expires, target, forget_at, phase, kind, tenant, record_sum, terms_sum, sum, taker, record"
    };
}
const RECORD: usize = 15;
const TERMS: usize = 16;

/// Reads all columns except large terms, and whether these are missing.
pub(crate) const SCAN: &str = concat!(
    "SELECT ",
    columns!(),
    ", terms, terms IS NULL AND NOT EXISTS (SELECT 1 FROM large_terms AS l WHERE l.id = order_records.id) ",
    "FROM order_records"
);
const TERMS_MISSING: usize = 17;

/// Reads one order in one statement, so that all columns are from one moment.
const READ: &str = concat!(
    "SELECT ",
    columns!(),
    ", coalesce(terms, (SELECT l.terms FROM large_terms AS l WHERE l.id = order_records.id)) ",
    "FROM order_records WHERE id = ?1"
);

/// Why a row is not accepted. It does not show the content, because records hold secrets and errors are logged.
pub(crate) struct RowFlaw {
    pub(crate) why: String,
    is_later: bool,
}

impl RowFlaw {
    fn damaged(what: &str) -> Self {
        let why = format!("the row is damaged, {what}: keep a copy, and restore it from a backup");
        Self { why, is_later: false }
    }
}

impl From<RecordError> for RowFlaw {
    fn from(error: RecordError) -> Self {
        Self { why: error.to_string(), is_later: error.is_later() }
    }
}

fn number(row: &Row<'_>, column: usize) -> Result<Option<u64>, RowFlaw> {
    match row.get_ref(column) {
        Ok(ValueRef::Null) => Ok(None),
        Ok(ValueRef::Integer(number)) => Ok(Some(number.cast_unsigned())),
        _ => Err(RowFlaw::damaged("a number column has another type")),
    }
}

fn need_number(row: &Row<'_>, column: usize) -> Result<u64, RowFlaw> {
    number(row, column)?.ok_or_else(|| RowFlaw::damaged("a number column is empty"))
}

fn digest(row: &Row<'_>, column: usize) -> Option<[u8; 32]> {
    row.get_ref(column).ok()?.as_blob().ok()?.try_into().ok()
}

fn text<'a>(row: &'a Row<'_>, column: usize) -> Result<&'a [u8], RowFlaw> {
    match row.get_ref(column) {
        Ok(ValueRef::Text(bytes)) => Ok(bytes),
        _ => Err(RowFlaw::damaged("a text column is empty or has another type")),
    }
}

fn name<'a>(row: &'a Row<'_>, column: usize) -> Result<&'a str, RowFlaw> {
    std::str::from_utf8(text(row, column)?).map_err(|_| RowFlaw::damaged("a text column is not UTF-8"))
}

/// The key in the row, which may be damaged.
pub(crate) fn claimed_key(row: &Row<'_>) -> Option<Key> {
    digest(row, 1).map(Key)
}

/// The narrow columns, if their checksum is right.
pub(crate) fn head<'a>(row: &'a Row<'_>) -> Result<Head<'a>, RowFlaw> {
    let moment = |column| number(row, column).map(|n| n.map(Timestamp::from_millis));
    let phase = name(row, 8)?;
    let class = match phase {
        "queued" | "submitting" | "solving" | "in_doubt" => OrderClass::Open,
        "dead" => OrderClass::Dead,
        _ => OrderClass::AtRest,
    };
    let (target, tenant) = (digest(row, 6).map(Target), name(row, 10)?);
    let head = Head {
        key: claimed_key(row).ok_or_else(|| RowFlaw::damaged("its key is not 32 bytes long"))?,
        version: Version(need_number(row, 2)?),
        life: u32::try_from(need_number(row, 3)?)
            .map_err(|_| RowFlaw::damaged("its life number is too large"))?,
        marks: EmbeddedMarks {
            due: moment(4)?,
            stock: target.zip(moment(5)?),
            forget_at: moment(7)?,
            taken: digest(row, 14).map(Key).zip(target),
            class,
            tenant: TenantMark::of(tenant),
        },
        phase,
        kind: name(row, 9)?,
        tenant,
        record_sum: need_number(row, 11)?,
        terms_sum: need_number(row, 12)?,
    };
    if need_number(row, 13)? != head.sum() {
        return Err(RowFlaw::damaged("the checksum of its columns is wrong"));
    }
    Ok(head)
}

/// Checks record and terms against the checksums in the head. Large terms are checked when they are read.
fn check_body(row: &Row<'_>, head: &Head<'_>) -> Result<(), RowFlaw> {
    if sum::of_bytes(text(row, RECORD)?) != head.record_sum {
        return Err(RowFlaw::damaged("the checksum of its record is wrong"));
    }
    if !matches!(row.get_ref(TERMS), Ok(ValueRef::Null))
        && terms_sum(&head.key, text(row, TERMS)?) != head.terms_sum
    {
        return Err(RowFlaw::damaged("the checksum of its terms is wrong"));
    }
    Ok(())
}

/// Checks a row that [`SCAN`] has read.
pub(crate) fn check_scanned(row: &Row<'_>, head: &Head<'_>) -> Result<(), RowFlaw> {
    check_body(row, head)?;
    if number(row, TERMS_MISSING)? == Some(0) {
        Ok(())
    } else {
        Err(RowFlaw::damaged("its terms are missing"))
    }
}

fn whole(row: &Row<'_>, id: i64) -> Result<StoredOrder, RowFlaw> {
    let head = head(row)?;
    check_body(row, &head)?;
    let terms = decode_terms(text(row, TERMS)?).map_err(|error| {
        let RowFlaw { why, is_later } = error.into();
        RowFlaw { why: format!("its terms: {why}"), is_later }
    })?;
    let order = decode_order(text(row, RECORD)?, Arc::new(terms))?;
    if order.key != head.key {
        return Err(RowFlaw::damaged("it holds the record of another order"));
    }
    let versioned = Versioned { version: head.version, order: Arc::new(order) };
    Ok(StoredOrder { id, versioned, terms_sum: head.terms_sum })
}

/// A substitute key for an order whose key cannot be read: it lists the order and finds its row.
pub(crate) fn stand_in(id: i64) -> Key {
    let mut key = [0; 32];
    key[24..].copy_from_slice(&id.to_be_bytes());
    Key(key)
}

pub(crate) fn place_and_why(id: i64, why: &str) -> String {
    format!("row {id} of order_records: {why}")
}

/// Reads rows by their ids.
pub(crate) struct RowReader<'a>(CachedStatement<'a>);

impl<'a> RowReader<'a> {
    pub(crate) fn new(conn: &'a Connection) -> rusqlite::Result<Self> {
        conn.prepare_cached(READ).map(Self)
    }

    /// Reads a row. A row that SQLite cannot read is broken; any other failure is the disk's.
    pub(crate) fn row(&mut self, id: i64) -> rusqlite::Result<EmbeddedRow> {
        let broken = |key: Option<Key>, why: &str, is_later| {
            let key = key.unwrap_or_else(|| stand_in(id));
            let unreadable = Unreadable { key, detail: place_and_why(id, why) };
            Ok(EmbeddedRow::Broken(BrokenRow { unreadable, is_later }))
        };
        let mut rows = self.0.query([id])?;
        match rows.next() {
            Ok(None) => Ok(EmbeddedRow::Gone),
            Ok(Some(row)) => match whole(row, id) {
                Ok(stored_order) => Ok(EmbeddedRow::Whole(stored_order)),
                Err(RowFlaw { why, is_later }) => broken(claimed_key(row), &why, is_later),
            },
            Err(error) if is_damage(error.sqlite_error_code()) => broken(None, &error.to_string(), false),
            Err(error) => Err(error),
        }
    }
}
