//! Removes unreadable records on an operator's request. A row is read once more before it is removed. A row that is
//! readable after all is an order, and a row of a later version is left for that version.

use crate::failure::EmbeddedError;
use crate::row::{BrokenRow, EmbeddedMarks, EmbeddedRow, RowReader, StoredOrder, place_and_why};
use crate::shared::EmbeddedShared;
use crate::writer::{WriteFailure, transaction};
use quittance_lifecycle::Key;
use quittance_ports::StoreError;
use rusqlite::Connection;
use std::collections::BTreeSet;
use std::sync::atomic::Ordering;

/// What happened to the rows of a key.
#[derive(Default)]
struct DiscardVerdict {
    erased: BTreeSet<i64>,
    /// The order, if it is readable after all.
    whole: Option<StoredOrder>,
    /// What is wrong with a row that is left for a later version.
    later: Option<String>,
}

/// Removes an unreadable record and returns whether there was one. The last version is stored with it, because only
/// this row may have had it.
pub(crate) fn discard(
    shared: &EmbeddedShared,
    conn: &Connection,
    key: &Key,
    last_version: u64,
) -> Result<Result<bool, StoreError>, EmbeddedError> {
    if shared.cache.look(key).is_ok() {
        return Ok(Ok(false));
    }
    let (was_reported, ids) = {
        let ledger = shared.ledger();
        let reported = ledger.rows_set_aside(key);
        (reported.is_some(), reported.unwrap_or_else(|| ledger.rows(key)))
    };
    shared.trail().removes(std::iter::once(key), last_version);
    let corrupt = |detail| Ok(Err(StoreError::Corrupt { key: *key, detail }));
    let DiscardVerdict { erased, whole, later } =
        match transaction(conn, || judge(conn, key, &ids, last_version)) {
            Ok(judged) => judged,
            // The page on which it stands cannot even be written over. Nothing else suffers from it.
            Err(WriteFailure { failure, .. }) if failure.is_damage() => {
                let id = ids.first().copied().unwrap_or_default();
                let why = format!("{failure}: its page cannot be written; restore the store from a backup");
                return corrupt(place_and_why(id, &why));
            }
            Err(WriteFailure { failure, .. }) => return Err(failure),
        };
    if let Some(detail) = later {
        return corrupt(detail);
    }
    if !erased.is_empty() {
        shared.transactions.fetch_add(1, Ordering::Relaxed);
        shared.wal.written(1 + erased.len() as u64);
    }
    let mut ledger = shared.ledger();
    ledger.discard(key, &erased);
    if let Some(StoredOrder { id, versioned, .. }) = whole.as_ref().filter(|_| was_reported) {
        ledger.replace(key, *id, None, EmbeddedMarks::of(&versioned.order));
    }
    drop(ledger);
    // A caller that read it before it went must not put it back into the cache.
    shared.cache.remove(key);
    Ok(Ok(!erased.is_empty() || (was_reported && whole.is_none())))
}

/// Erases the unreadable rows, or none of them if one is of a later version.
fn judge(
    conn: &Connection,
    key: &Key,
    ids: &[i64],
    last_version: u64,
) -> Result<DiscardVerdict, WriteFailure> {
    let mut judged = DiscardVerdict::default();
    let mut reading = RowReader::new(conn)?;
    for id in ids {
        match reading.row(*id)? {
            EmbeddedRow::Broken(BrokenRow { unreadable, is_later: true }) => {
                return Ok(DiscardVerdict { later: Some(unreadable.detail), ..DiscardVerdict::default() });
            }
            EmbeddedRow::Broken(_) => drop(judged.erased.insert(*id)),
            EmbeddedRow::Whole(stored_order) if stored_order.versioned.order.key == *key => {
                judged.whole = Some(stored_order);
            }
            // Another order has the place where this one could not be written.
            EmbeddedRow::Whole(_) | EmbeddedRow::Gone => {}
        }
    }
    for id in &judged.erased {
        conn.prepare_cached("DELETE FROM order_records WHERE id = ?1")?.execute([id])?;
        conn.prepare_cached("DELETE FROM large_terms WHERE id = ?1")?.execute([id])?;
    }
    if !judged.erased.is_empty() {
        let last = last_version.cast_signed();
        conn.prepare_cached("UPDATE counter SET last_version = ?1")?.execute([last])?;
    }
    Ok(judged)
}

#[cfg(test)]
mod tests {
    use crate::home::DATABASE;
    use crate::row::Head;
    use crate::{EmbeddedStore, sum};
    use quittance_lifecycle::Counters;
    use quittance_ports::conformance::{drive, samples};
    use quittance_ports::{Commit, Store, StoreError, Version, Which};
    use quittance_record::{encode_order, encode_terms};
    use rusqlite::{Connection, params};
    use std::time::Duration;

    /// The row is intact, and only its format is newer: a node that goes back a version must not remove it.
    #[test]
    fn what_a_later_version_wrote_is_left_for_it() {
        let now = Duration::from_secs(30);
        let dir = tempfile::tempdir().unwrap();
        let order = samples::queued("of tomorrow", samples::START).order;
        let store = EmbeddedStore::open(dir.path()).unwrap();
        let written = drive(now, store.commit(Version::ABSENT, &order, &Counters::default(), samples::START));
        let Ok(Commit::Done(version)) = written else { panic!("only this test writes here: {written:?}") };
        drop(store);

        let record = String::from_utf8(encode_order(&order)).unwrap().replacen("\"v\":1", "\"v\":99", 1);
        let record_sum = sum::of_bytes(record.as_bytes());
        let terms_sum = crate::row::terms_sum(&order.key, &encode_terms(&order.terms));
        let sum = Head::of(&order, version, record_sum, terms_sum).sum();
        Connection::open(dir.path().join(DATABASE))
            .unwrap()
            .execute(
                "UPDATE order_records SET record = ?1, record_sum = ?2, sum = ?3",
                params![record, record_sum.cast_signed(), sum.cast_signed()],
            )
            .unwrap();

        let store = EmbeddedStore::open(dir.path()).unwrap();
        for _ in 0..2 {
            let refused = drive(now, store.discard(&order.key)).unwrap_err();
            assert!(matches!(&refused, StoreError::Corrupt { key, .. } if *key == order.key), "{refused}");
            assert!(refused.to_string().contains("the version that wrote it or a later one"), "{refused}");
            assert_eq!(drive(now, store.list(Which::ALL, None, 9)).unwrap().len(), 1);
            assert!(drive(now, store.load(&order.key)).is_err());
        }
    }
}
