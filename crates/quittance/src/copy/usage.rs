//! Copies the usage of a store, row by row. Each row is added once to the new store, even if the copying process is
//! killed.

use super::CopyStep;
use crate::place::Opened;
use quittance_lifecycle::{Counters, Timestamp};
use quittance_ports::{Day, Store, StoreError, UsageRow};
use std::collections::BTreeMap;

/// The text after the address in a note, followed by the number of copied rows of the usage.
pub(super) const USAGE_MARK: &str = "; lines of the usage that were copied: ";
/// The text after the number of rows, followed by the amount of the next row in the new store before the addition.
pub(super) const NEXT_MARK: &str = ", the next amounts to ";

pub(super) async fn all_usage(store: &dyn Store) -> Result<Vec<(UsageRow, Counters)>, StoreError> {
    store.usage(Day(0), Day::of(Timestamp::MAX)).await
}

/// The sum of all counters of a row, which shows whether anything was added to the row.
fn amount(counters: &Counters) -> u64 {
    counters.lines().fold(0, |sum, (_, count)| sum.wrapping_add(count))
}

/// How many rows are done, if the process died before the note counted the last one.
pub(super) async fn lines_done(
    from: &Opened,
    to: &Opened,
    lines: usize,
    next: Option<u64>,
) -> Result<usize, StoreError> {
    let Some(before) = next else { return Ok(lines) };
    let usage = all_usage(&*from.store).await?;
    let Some((line, _)) = usage.get(lines) else { return Ok(lines) };
    let there = to.store.usage(line.day, line.day).await?;
    let now = there.iter().find(|(record, _)| record == line).map_or(0, |(_, counters)| amount(counters));
    Ok(if now == before { lines } else { lines + 1 })
}

/// Copies the usage. The old store's note contains how many rows are done and, before a row is added, its sum in the
/// new store. So no row is added twice, whenever the process dies. No other process counts there meanwhile.
pub(super) async fn copy_usage(
    from: &Opened,
    to: &Opened,
    done: usize,
    moving: &str,
    progress: &mut (dyn FnMut(CopyStep) + Send),
) -> Result<usize, StoreError> {
    let lines = all_usage(&*from.store).await?;
    let there: BTreeMap<_, _> = all_usage(&*to.store).await?.into_iter().collect();
    for (number, (line, counters)) in lines.iter().enumerate().skip(done) {
        let next = there.get(line).map_or(0, amount);
        from.membership.seal(Some(&format!("{moving}{USAGE_MARK}{number}{NEXT_MARK}{next}"))).await?;
        to.store.count(line, counters).await?;
        progress(CopyStep::Usage { lines: number + 1, of: lines.len() });
    }
    from.membership.seal(Some(&format!("{moving}{USAGE_MARK}{}", lines.len()))).await?;
    Ok(lines.len().saturating_sub(done))
}
