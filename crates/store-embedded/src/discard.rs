//! Removes what nobody can read, when a person says so. The row is read once more before it goes: what can be read after all
//! is an order, and what a later version wrote is left for it.

use crate::row::{Broken, Found, Kept, Marks, Reading, place_and_why};
use crate::shared::Shared;
use crate::trouble::EmbeddedError;
use crate::writer::{Failed, transaction};
use quittance_lifecycle::Key;
use quittance_ports::StoreError;
use rusqlite::Connection;
use std::collections::BTreeSet;
use std::sync::atomic::Ordering;

/// What became of the rows of a key.
#[derive(Default)]
struct Judged {
    erased: BTreeSet<i64>,
    /// It can be read after all.
    whole: Option<Kept>,
    /// What is wrong with one that is left for a later version.
    later: Option<String>,
}

/// Says whether there was anything that nobody can read. The last version is written down with it: the row may be the only
/// one that still told of its own.
pub(crate) fn discard(
    shared: &Shared,
    conn: &Connection,
    key: &Key,
    last_version: u64,
) -> Result<Result<bool, StoreError>, EmbeddedError> {
    if shared.cache.look(key).is_ok() {
        return Ok(Ok(false));
    }
    let (was_told, ids) = {
        let ledger = shared.ledger();
        let told = ledger.rows_set_aside(key);
        (told.is_some(), told.unwrap_or_else(|| ledger.rows(key)))
    };
    shared.trail().removes(std::iter::once(key), last_version);
    let corrupt = |detail| Ok(Err(StoreError::Corrupt { key: *key, detail }));
    let Judged { erased, whole, later } = match transaction(conn, || judge(conn, key, &ids, last_version)) {
        Ok(judged) => judged,
        // The page on which it stands cannot even be written over. Nothing else suffers from it.
        Err(Failed { trouble, .. }) if trouble.is_damage() => {
            let id = ids.first().copied().unwrap_or_default();
            let why = format!("{trouble}: its page cannot be written; restore the store from a backup");
            return corrupt(place_and_why(id, &why));
        }
        Err(Failed { trouble, .. }) => return Err(trouble),
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
    if let Some(Kept { id, versioned, .. }) = whole.as_ref().filter(|_| was_told) {
        ledger.replace(key, *id, None, Marks::of(&versioned.order));
    }
    drop(ledger);
    // Whoever read it before it went must not show it again.
    shared.cache.remove(key);
    Ok(Ok(!erased.is_empty() || (was_told && whole.is_none())))
}

/// Erases those that nobody can read; none at all, if one is a later version's.
fn judge(conn: &Connection, key: &Key, ids: &[i64], last_version: u64) -> Result<Judged, Failed> {
    let mut judged = Judged::default();
    let mut reading = Reading::new(conn)?;
    for id in ids {
        match reading.row(*id)? {
            Found::Broken(Broken { unreadable, is_later: true }) => {
                return Ok(Judged { later: Some(unreadable.detail), ..Judged::default() });
            }
            Found::Broken(_) => drop(judged.erased.insert(*id)),
            Found::Whole(kept) if kept.versioned.order.key == *key => judged.whole = Some(kept),
            // Another order has the place where this one could not be written.
            Found::Whole(_) | Found::Gone => {}
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

    /// All of it adds up, and only its format is of tomorrow: whoever goes back a version must not throw it away.
    #[test]
    fn what_a_later_version_wrote_is_left_for_it() {
        let now = Duration::from_secs(30);
        let dir = tempfile::tempdir().unwrap();
        let order = samples::queued("of tomorrow", samples::START).order;
        let store = EmbeddedStore::open(dir.path()).unwrap();
        let written = drive(now, store.commit(Version::ABSENT, &order, &Counters::default(), samples::START));
        let Ok(Commit::Done(version)) = written else { panic!("nobody else writes here: {written:?}") };
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
