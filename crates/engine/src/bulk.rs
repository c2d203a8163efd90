//! A great many dead letters at once. What is to be done stands on a sheet in the store, with how far it has come, so any node
//! goes on where the last one stopped; one of those that are there is at it, a bounded number of letters each second.
//!
//! Nothing is done twice: what was done is no dead letter any more, and what has died again since the work began is not
//! meant. So whoever is killed before he could write down how far he came does no harm to the next one.

use crate::{Applied, Engine, lock};
use futures_util::future::join_all;
use quittance_lifecycle::{Event, Key, LetterFilter, Order, Tally, Timestamp};
use quittance_ports::{
    BulkSheet, Commit, Deed, Sheet, SheetFound, SheetWritten, StoreError, Version, Versioned, Which,
};
use std::sync::Arc;
use std::time::Duration;

/// How many may be under way at once.
pub const BULKS_MAX: usize = 16;
/// How many letters may be seen to in a second.
pub const PER_SECOND_MAX: u32 = 1000;
/// How many sheets are kept in all, those that have ended among them, and for how long.
const KEPT_MAX: usize = 32;
const ENDED_KEPT: Duration = Duration::from_secs(24 * 3600);
/// How often somebody looks whether there is anything to do, while there is nothing.
const IDLE_SPAN: Duration = Duration::from_secs(3);
/// How many letters are read at once; after these it is written down how far it has come.
const PAGE: usize = 64;
/// What one round may take: the other chores wait for it.
const PAGES_MAX: usize = 64;
const ROUND_SPAN: Duration = Duration::from_millis(500);
const AT_ONCE: usize = 16;

#[derive(Debug, thiserror::Error)]
pub enum BulkError {
    #[error("from 1 to {PER_SECOND_MAX} letters can be seen to in a second")]
    BadRate,
    #[error("{BULKS_MAX} of them are under way: wait until one has ended, or stop one")]
    TooMany,
    #[error("there is no room for another sheet in the store: remove a pool that nobody needs")]
    NoRoom,
    #[error("somebody else is at the same sheet: look at it, and try again")]
    Conflict,
    #[error("the sheet could not be written: try again")]
    Store(#[from] StoreError),
}

/// What became of a letter from elsewhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Adopted {
    New,
    ThereAlready,
    NoLetter,
}

/// What became of a letter that a person has given up.
#[derive(Debug)]
pub enum Dropped {
    /// Nobody could read its record. It is gone, and the key is free.
    Discarded,
    Told(Applied),
}

/// When this node last looked, and whether there was anything to do.
#[derive(Default)]
pub(crate) struct BulkWatch {
    looked_at: Timestamp,
    is_busy: bool,
}

fn bulk_of(found: &SheetFound) -> Option<&BulkSheet> {
    match &found.sheet {
        Sheet::Bulk(sheet) => Some(sheet),
        _ => None,
    }
}

/// Whether this letter was there when the work began.
fn is_meant(sheet: &BulkSheet, order: &Order) -> bool {
    sheet.filter.fits(order) && order.letter().is_some_and(|letter| letter.since < sheet.begun)
}

impl Engine {
    /// Gives a dead letter up for good, also if nobody can read it. One that a later version wrote is left for it, with the
    /// error that reading it has.
    pub async fn drop_letter(&self, key: &Key) -> Result<Dropped, StoreError> {
        match self.drop_dead(key).await {
            Err(StoreError::Corrupt { .. }) => {}
            applied => return applied.map(Dropped::Told),
        }
        if self.world.store.discard(key).await? {
            return Ok(Dropped::Discarded);
        }
        // Somebody was quicker, or it can be read again.
        self.drop_dead(key).await.map(Dropped::Told)
    }

    /// Has every dead letter that fits, and is one now, replayed or dropped, so many a second.
    pub async fn begin_bulk(
        &self,
        deed: Deed,
        filter: LetterFilter,
        per_second: u32,
    ) -> Result<BulkSheet, BulkError> {
        if !(1..=PER_SECOND_MAX).contains(&per_second) {
            return Err(BulkError::BadRate);
        }
        for _ in 0..crate::pools::WRITES_MAX {
            let sheets = self.bulk_sheets().await?;
            if sheets.iter().filter_map(bulk_of).filter(|sheet| sheet.ended.is_none()).count() >= BULKS_MAX {
                return Err(BulkError::TooMany);
            }
            if sheets.len() >= KEPT_MAX {
                self.forget_oldest(&sheets).await?;
            }
            let number = sheets.iter().filter_map(bulk_of).map(|sheet| sheet.number).max().unwrap_or(0) + 1;
            let sheet = BulkSheet {
                number,
                deed,
                filter: filter.clone(),
                begun: self.now(),
                per_second,
                after: None,
                done: 0,
                passed_over: 0,
                ended: None,
                was_stopped: false,
            };
            match self.write_bulk(Version::ABSENT, &sheet).await? {
                SheetWritten::Done(_) => {
                    lock(&self.bulk_watch).is_busy = true;
                    return Ok(sheet);
                }
                SheetWritten::Conflict => {}
                SheetWritten::NoRoom => return Err(BulkError::NoRoom),
            }
        }
        Err(BulkError::Conflict)
    }

    /// Those that are under way, and those that ended not long ago, in the order in which they began.
    pub async fn bulks(&self) -> Result<Vec<BulkSheet>, StoreError> {
        let sheets = self.bulk_sheets().await?;
        Ok(sheets.iter().filter_map(bulk_of).cloned().collect())
    }

    /// Nothing more is done; what was done stays done. Nothing, if there is no such one.
    pub async fn stop_bulk(&self, number: u64) -> Result<Option<BulkSheet>, BulkError> {
        for _ in 0..crate::pools::WRITES_MAX {
            let sheets = self.bulk_sheets().await?;
            let found =
                sheets.iter().find(|found| bulk_of(found).is_some_and(|sheet| sheet.number == number));
            let Some((version, sheet)) = found.and_then(|found| Some((found.version, bulk_of(found)?)))
            else {
                return Ok(None);
            };
            if sheet.ended.is_some() {
                return Ok(Some(sheet.clone()));
            }
            let stopped = BulkSheet { ended: Some(self.now()), was_stopped: true, ..sheet.clone() };
            if let SheetWritten::Done(_) = self.write_bulk(version, &stopped).await? {
                return Ok(Some(stopped));
            }
        }
        Err(BulkError::Conflict)
    }

    /// Takes in a dead letter that comes from elsewhere. Of an order that is on record here already, it takes back that a
    /// person dropped it, and changes nothing else.
    pub async fn adopt_letter(&self, order: Order) -> Result<Adopted, StoreError> {
        if !order.needs_a_person() {
            return Ok(Adopted::NoLetter);
        }
        let order = Arc::new(order);
        let Some(found) = self.commit_letter(Version::ABSENT, &order).await? else { return Ok(Adopted::New) };
        let Some(back) = found.order.taken_back(&order) else { return Ok(Adopted::ThereAlready) };
        match self.commit_letter(found.version, &Arc::new(back)).await? {
            None => Ok(Adopted::New),
            Some(_) => Ok(Adopted::ThereAlready),
        }
    }

    /// What stands there instead, if it could not be committed.
    async fn commit_letter(
        &self,
        expected: Version,
        order: &Arc<Order>,
    ) -> Result<Option<Box<Versioned>>, StoreError> {
        match self.world.store.commit(expected, order, &Tally::default(), self.now()).await? {
            Commit::Done(_) => {
                self.note_commit(order);
                if let Some(due) = order.due() {
                    self.expect_alarm(due);
                }
                Ok(None)
            }
            Commit::Conflict(found) => Ok(found),
        }
    }

    /// By number.
    async fn bulk_sheets(&self) -> Result<Vec<SheetFound>, StoreError> {
        let mut sheets = self.world.roster.sheets().await?;
        sheets.retain(|found| bulk_of(found).is_some());
        sheets.sort_by_key(|found| bulk_of(found).map(|sheet| sheet.number));
        Ok(sheets)
    }

    async fn write_bulk(&self, expected: Version, sheet: &BulkSheet) -> Result<SheetWritten, StoreError> {
        let sheet = Sheet::Bulk(sheet.clone());
        self.world.roster.write_sheet(&sheet.name(), expected, Some(&sheet)).await
    }

    async fn forget_oldest(&self, sheets: &[SheetFound]) -> Result<(), StoreError> {
        let ended = |found: &&SheetFound| bulk_of(found).is_some_and(|sheet| sheet.ended.is_some());
        if let Some(oldest) = sheets.iter().find(ended) {
            // Whoever was quicker has made the same room.
            _ = self.world.roster.write_sheet(&oldest.name, oldest.version, None).await?;
        }
        Ok(())
    }

    /// One round of whatever is this node's to do.
    pub(crate) async fn see_to_bulks(&self) {
        let now = self.now();
        {
            let mut watch = lock(&self.bulk_watch);
            // A clock that was set back must not put it off.
            let is_soon = watch.looked_at <= now && now < watch.looked_at + IDLE_SPAN;
            if is_soon && !watch.is_busy {
                return;
            }
            watch.looked_at = now;
        }
        match self.work_on_bulks(now).await {
            Ok(is_busy) => lock(&self.bulk_watch).is_busy = is_busy,
            Err(error) => self.note_error(&error),
        }
    }

    /// Says whether anything is left to do.
    async fn work_on_bulks(&self, now: Timestamp) -> Result<bool, StoreError> {
        let sheets = self.bulk_sheets().await?;
        let is_open = |found: &SheetFound| bulk_of(found).is_some_and(|sheet| sheet.ended.is_none());
        for found in &sheets {
            let ended = bulk_of(found).and_then(|sheet| sheet.ended);
            if ended.is_some_and(|ended| now >= ended + ENDED_KEPT) {
                _ = self.world.roster.write_sheet(&found.name, found.version, None).await?;
            }
        }
        if !sheets.iter().any(is_open) {
            return Ok(false);
        }
        let roll = self.world.roster.roll().await?;
        for found in sheets.into_iter().filter(is_open) {
            if self.is_keeper(&found.name, &roll)
                && let Sheet::Bulk(sheet) = found.sheet
            {
                self.go_on_with(sheet, found.version).await?;
            }
        }
        Ok(true)
    }

    async fn go_on_with(&self, mut sheet: BulkSheet, mut version: Version) -> Result<(), StoreError> {
        let until = self.now() + ROUND_SPAN;
        let mut left = sheet.per_second as usize;
        for _ in 0..PAGES_MAX {
            if left == 0 || self.now() >= until || sheet.ended.is_some() {
                return Ok(());
            }
            let page = self.world.store.list(Which::DEAD, sheet.after.as_ref(), PAGE).await?;
            let mut is_last = page.len() < PAGE;
            let (mut meant, mut unreadable) = (Vec::new(), Vec::new());
            for found in page {
                if left == 0 {
                    is_last = false;
                    break;
                }
                match found {
                    Ok(found) => {
                        sheet.after = Some(found.order.key);
                        if is_meant(&sheet, &found.order) {
                            left -= 1;
                            meant.push(found);
                        }
                    }
                    Err(found) => {
                        sheet.after = Some(found.key);
                        if sheet.filter.fits_unreadable() {
                            left -= usize::from(sheet.deed == Deed::Drop);
                            unreadable.push(found.key);
                        }
                    }
                }
            }
            self.do_all(&mut sheet, meant).await?;
            self.discard_all(&mut sheet, &unreadable).await?;
            if is_last {
                sheet.ended = Some(self.now());
            }
            match self.write_bulk(version, &sheet).await? {
                SheetWritten::Done(written) => version = written,
                // A person has stopped it, or another node is at it.
                SheetWritten::Conflict | SheetWritten::NoRoom => return Ok(()),
            }
        }
        Ok(())
    }

    async fn do_all(&self, sheet: &mut BulkSheet, meant: Vec<Versioned>) -> Result<(), StoreError> {
        let mut meant = meant.into_iter();
        loop {
            let some: Vec<Versioned> = meant.by_ref().take(AT_ONCE).collect();
            if some.is_empty() {
                return Ok(());
            }
            let deeds = join_all(some.into_iter().map(|found| self.do_one(sheet, found))).await;
            for done in deeds {
                match done {
                    Ok(true) => sheet.done += 1,
                    Ok(false) => sheet.passed_over += 1,
                    Err(error @ StoreError::Corrupt { .. }) => {
                        self.note_error(&error);
                        sheet.passed_over += 1;
                    }
                    // What was done of this page is no dead letter any more when it is read again.
                    Err(error) => return Err(error),
                }
            }
        }
    }

    /// What nobody can read cannot be sent on its way, only given up.
    async fn discard_all(&self, sheet: &mut BulkSheet, keys: &[Key]) -> Result<(), StoreError> {
        if sheet.deed == Deed::Replay {
            sheet.passed_over += keys.len() as u64;
            return Ok(());
        }
        for some in keys.chunks(AT_ONCE) {
            for discarded in join_all(some.iter().map(|key| self.world.store.discard(key))).await {
                match discarded {
                    Ok(true) => sheet.done += 1,
                    // It can be read again, or a later version can read it.
                    Ok(false) | Err(StoreError::Corrupt { .. }) => sheet.passed_over += 1,
                    Err(error) => return Err(error),
                }
            }
        }
        Ok(())
    }

    async fn do_one(&self, sheet: &BulkSheet, found: Versioned) -> Result<bool, StoreError> {
        let event = match sheet.deed {
            Deed::Replay => Event::Replayed,
            Deed::Drop => Event::Dropped,
        };
        let key = found.order.key;
        let may = |order: &Order| sheet.deed != Deed::Replay || self.may_replay(order);
        let is_meant = |order: &Order| is_meant(sheet, order) && may(order);
        let applied = self.apply_if(&key, Some(found), &event, is_meant).await?;
        Ok(matches!(applied, Applied::Advanced { .. } | Applied::Act { .. }))
    }
}
