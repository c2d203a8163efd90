//! The books of a store that moves, line by line: each is added in the new store once, whenever whoever copies them is killed.

use super::Progress;
use crate::place::Opened;
use quittance_lifecycle::{Tally, Timestamp};
use quittance_ports::{Day, Line, Store, StoreError};
use std::collections::BTreeMap;

/// Follows the address, with the number of lines of the books that were copied.
pub(super) const BOOKS_MARK: &str = "; lines of the books that were copied: ";
/// Follows that number, with what the next line amounts to in the new store before it is added there.
pub(super) const NEXT_MARK: &str = ", the next amounts to ";

pub(super) async fn all_books(store: &dyn Store) -> Result<Vec<(Line, Tally)>, StoreError> {
    store.books(Day(0), Day::of(Timestamp::MAX)).await
}

/// Whether anything was added to a line can be told from this.
fn amount(tally: &Tally) -> u64 {
    tally.lines().fold(0, |sum, (_, count)| sum.wrapping_add(count))
}

/// How many lines are done, when the world ended before the note could say so of the last.
pub(super) async fn lines_done(
    from: &Opened,
    to: &Opened,
    lines: usize,
    next: Option<u64>,
) -> Result<usize, StoreError> {
    let Some(before) = next else { return Ok(lines) };
    let books = all_books(&*from.store).await?;
    let Some((line, _)) = books.get(lines) else { return Ok(lines) };
    let there = to.store.books(line.day, line.day).await?;
    let now = there.iter().find(|(found, _)| found == line).map_or(0, |(_, tally)| amount(tally));
    Ok(if now == before { lines } else { lines + 1 })
}

/// The old store's note says how many lines are done, and, before one is added, what it amounts to where it goes: so none is
/// added again, whenever the world ends. Nobody else counts there meanwhile.
pub(super) async fn copy_books(
    from: &Opened,
    to: &Opened,
    done: usize,
    moving: &str,
    progress: &mut (dyn FnMut(Progress) + Send),
) -> Result<usize, StoreError> {
    let lines = all_books(&*from.store).await?;
    let there: BTreeMap<_, _> = all_books(&*to.store).await?.into_iter().collect();
    for (number, (line, tally)) in lines.iter().enumerate().skip(done) {
        let next = there.get(line).map_or(0, amount);
        from.roster.seal(Some(&format!("{moving}{BOOKS_MARK}{number}{NEXT_MARK}{next}"))).await?;
        to.store.count(line, tally).await?;
        progress(Progress::Books { lines: number + 1, of: lines.len() });
    }
    from.roster.seal(Some(&format!("{moving}{BOOKS_MARK}{}", lines.len()))).await?;
    Ok(lines.len().saturating_sub(done))
}
