//! Purges orders that can be forgotten: first those that could be forgotten earliest, then by key. Dead letters and
//! unreadable records are never purged.

use crate::failure::EmbeddedError;
use crate::row::TenantMark;
use crate::shared::EmbeddedShared;
use crate::writer::{WriteFailure, transaction};
use quittance_lifecycle::{Key, Target, Timestamp};
use rusqlite::{Connection, OptionalExtension, params};
use std::sync::atomic::Ordering;

/// The time from which an order can be forgotten, the prefix of its key, and its row.
type PurgeEntry = (Timestamp, u64, i64);

pub(crate) fn purge(
    shared: &EmbeddedShared,
    conn: &Connection,
    now: Timestamp,
    limit: usize,
) -> Result<usize, EmbeddedError> {
    let mut entries = shared.ledger().forgettable(now, limit);
    if entries.is_empty() {
        return Ok(0);
    }
    cut_ties(conn, &mut entries, limit)?;
    let erased = transaction(conn, || {
        let erased = erase(conn, &entries)?;
        shared.trail().removes(erased.iter().flatten().map(|gone| &gone.key), 0);
        Ok(erased)
    });
    let erased = erased.map_err(|WriteFailure { failure, .. }| failure)?;
    shared.transactions.fetch_add(1, Ordering::Relaxed);
    shared.wal.written(erased.len() as u64);
    let mut purged = 0;
    let mut ledger = shared.ledger();
    for (entry, gone) in entries.iter().zip(&erased) {
        ledger.is_not_forgettable(entry);
        if let Some(PurgedOrder { key, taken, tenant }) = gone {
            ledger.is_gone(key, entry.2, *tenant, *taken);
            shared.cache.remove(key);
            purged += 1;
        }
    }
    Ok(purged)
}

/// Cuts the entries to `limit`. Only the rows show the order of entries with the same time and prefix.
fn cut_ties(conn: &Connection, entries: &mut Vec<PurgeEntry>, limit: usize) -> rusqlite::Result<()> {
    let Some((at, prefix, _)) = entries.last().copied().filter(|_| entries.len() > limit) else {
        return Ok(());
    };
    let first = entries.partition_point(|entry| (entry.0, entry.1) < (at, prefix));
    let mut find = conn.prepare_cached("SELECT key FROM order_records WHERE id = ?1")?;
    let mut ties = Vec::new();
    for entry in entries.drain(first..) {
        let key: Option<Vec<u8>> = find.query_row([entry.2], |row| row.get(0)).optional()?;
        ties.push((key, entry));
    }
    ties.sort();
    entries.extend(ties.into_iter().map(|(_, entry)| entry));
    entries.truncate(limit);
    Ok(())
}

/// An order that was purged.
struct PurgedOrder {
    key: Key,
    /// The claimant of its answer, and the stock from which the answer came.
    taken: Option<(Key, Target)>,
    tenant: TenantMark,
}

/// Erases these orders. Returns those that still existed and could be removed.
fn erase(conn: &Connection, entries: &[PurgeEntry]) -> Result<Vec<Option<PurgedOrder>>, WriteFailure> {
    let mut erase = conn.prepare_cached(
        "DELETE FROM order_records WHERE id = ?1 AND forget_at = ?2 RETURNING key, taker, target, tenant",
    )?;
    let mut erase_terms = conn.prepare_cached("DELETE FROM large_terms WHERE id = ?1")?;
    let mut erased = Vec::with_capacity(entries.len());
    for (at, _, id) in entries {
        let at = at.as_millis().cast_signed();
        let gone = erase.query_row(params![id, at], |row| {
            let taker: Option<[u8; 32]> = row.get(1)?;
            let target: Option<[u8; 32]> = row.get(2)?;
            let tenant = TenantMark::of(row.get_ref(3)?.as_str()?);
            Ok(PurgedOrder { key: Key(row.get(0)?), taken: taker.map(Key).zip(target.map(Target)), tenant })
        });
        let gone = gone.optional()?;
        if gone.is_some() {
            erase_terms.execute([id])?;
        }
        erased.push(gone);
    }
    Ok(erased)
}
