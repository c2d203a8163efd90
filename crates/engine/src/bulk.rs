//! Replays or drops many dead letters in one bulk action. A shared document holds the action and its
//! progress, so any node can continue where the last one stopped. One node at a time works on it, on a
//! limited number of dead letters each second.
//!
//! No dead letter is handled twice. After the action the order is not a dead letter any more. If it becomes a dead
//! letter again, the action ignores it. So a node may be killed before it writes its progress.

use crate::settings::listed_price;
use crate::targets::site;
use crate::{ApplyOutcome, Engine, lock};
use futures_util::future::join_all;
use quittance_lifecycle::{Counters, DeadLetterFilter, Event, Key, Order, Timestamp, is_in_another_currency};
use quittance_ports::{
    BulkAction, BulkDocument, Commit, DocumentWritten, SharedDocument, StoreError, StoredDocument, Version,
    Versioned, Which,
};
use std::sync::Arc;
use std::time::Duration;

/// How many bulk actions may be in progress at once.
pub const BULKS_MAX: usize = 16;
/// How many dead letters may be handled in a second.
pub const PER_SECOND_MAX: u32 = 1000;
/// How many documents of bulk actions are kept in all, also of actions that have ended.
const KEPT_MAX: usize = 32;
/// How long the document of a bulk action is kept after its end.
const ENDED_KEPT: Duration = Duration::from_secs(24 * 3600);
/// How often a node looks for bulk actions while there are none.
const IDLE_SPAN: Duration = Duration::from_secs(3);
/// How many dead letters are read at once. After each page the progress is written.
const PAGE: usize = 64;
/// How many pages one round may read. The other chores wait for the round.
const PAGES_MAX: usize = 64;
/// How long one round may take.
const ROUND_SPAN: Duration = Duration::from_millis(500);
const AT_ONCE: usize = 16;

#[derive(Debug, thiserror::Error)]
pub enum BulkError {
    #[error("the rate is from 1 to {PER_SECOND_MAX} dead letters a second")]
    BadRate,
    #[error("{BULKS_MAX} bulk actions are in progress: wait until one has ended, or stop one")]
    TooMany,
    #[error("the store has no space for another document: remove a pool that is not needed")]
    NoRoom,
    #[error("another writer changed the same document: read it again, and try again")]
    Conflict,
    #[error("the document could not be written: try again")]
    Store(#[from] StoreError),
}

/// The result of importing a dead letter from another store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AdoptOutcome {
    New,
    ThereAlready,
    NoDeadLetter,
}

/// The result of dropping a dead letter.
#[derive(Debug)]
pub enum DropOutcome {
    /// The record could not be read. It was removed, and the key is free.
    Discarded,
    Applied(ApplyOutcome),
}

/// When this node last looked for bulk actions, and whether it found one.
#[derive(Default)]
pub(crate) struct BulkWatch {
    looked_at: Timestamp,
    is_busy: bool,
}

fn bulk_of(stored: &StoredDocument) -> Option<&BulkDocument> {
    match &stored.document {
        SharedDocument::Bulk(document) => Some(document),
        _ => None,
    }
}

/// Whether the bulk action is for this order: it fits the filter, and was a dead letter when the action
/// began.
fn is_meant(document: &BulkDocument, order: &Order) -> bool {
    document.filter.fits(order)
        && order.dead_letter().is_some_and(|dead_letter| dead_letter.since < document.begun)
}

impl Engine {
    /// Drops a dead letter for good, also one that cannot be read. A record that a later version wrote stays,
    /// and the error of reading it is returned.
    pub async fn drop_dead_letter(&self, key: &Key) -> Result<DropOutcome, StoreError> {
        match self.drop_dead(key).await {
            Err(StoreError::Corrupt { .. }) => {}
            applied => return applied.map(DropOutcome::Applied),
        }
        if self.world.store.discard(key).await? {
            return Ok(DropOutcome::Discarded);
        }
        // Another process was quicker, or it can be read again.
        self.drop_dead(key).await.map(DropOutcome::Applied)
    }

    /// Begins a bulk action: all present dead letters that fit `filter` are replayed or dropped, `per_second`
    /// of them each second.
    pub async fn begin_bulk(
        &self,
        action: BulkAction,
        filter: DeadLetterFilter,
        per_second: u32,
    ) -> Result<BulkDocument, BulkError> {
        if !(1..=PER_SECOND_MAX).contains(&per_second) {
            return Err(BulkError::BadRate);
        }
        for _ in 0..crate::pools::WRITES_MAX {
            let documents = self.bulk_documents().await?;
            if documents.iter().filter_map(bulk_of).filter(|document| document.ended.is_none()).count()
                >= BULKS_MAX
            {
                return Err(BulkError::TooMany);
            }
            if documents.len() >= KEPT_MAX {
                self.forget_oldest(&documents).await?;
            }
            let number =
                documents.iter().filter_map(bulk_of).map(|document| document.number).max().unwrap_or(0) + 1;
            let document = BulkDocument {
                number,
                action,
                filter: filter.clone(),
                begun: self.now(),
                per_second,
                after: None,
                done: 0,
                passed_over: 0,
                ended: None,
                was_stopped: false,
            };
            match self.write_bulk(Version::ABSENT, &document).await? {
                DocumentWritten::Done(_) => {
                    lock(&self.bulk_watch).is_busy = true;
                    return Ok(document);
                }
                DocumentWritten::Conflict => {}
                DocumentWritten::NoRoom => return Err(BulkError::NoRoom),
            }
        }
        Err(BulkError::Conflict)
    }

    /// The bulk actions in progress, and those that ended not long ago, in the order in which they began.
    pub async fn bulks(&self) -> Result<Vec<BulkDocument>, StoreError> {
        let documents = self.bulk_documents().await?;
        Ok(documents.iter().filter_map(bulk_of).cloned().collect())
    }

    /// Stops a bulk action. What it has done stays done. `None` if there is no bulk action of this number.
    pub async fn stop_bulk(&self, number: u64) -> Result<Option<BulkDocument>, BulkError> {
        for _ in 0..crate::pools::WRITES_MAX {
            let documents = self.bulk_documents().await?;
            let stored = documents
                .iter()
                .find(|stored| bulk_of(stored).is_some_and(|document| document.number == number));
            let Some((version, document)) =
                stored.and_then(|stored| Some((stored.version, bulk_of(stored)?)))
            else {
                return Ok(None);
            };
            if document.ended.is_some() {
                return Ok(Some(document.clone()));
            }
            let stopped = BulkDocument { ended: Some(self.now()), was_stopped: true, ..document.clone() };
            if let DocumentWritten::Done(_) = self.write_bulk(version, &stopped).await? {
                return Ok(Some(stopped));
            }
        }
        Err(BulkError::Conflict)
    }

    /// Imports a dead letter from another store. If the order is on record here already, the import undoes a
    /// drop by an operator, and changes nothing else. Site and price of a new order are computed here, as
    /// when an order is placed: the file may have been edited, or written under another price list.
    pub async fn adopt_dead_letter(&self, order: Order) -> Result<AdoptOutcome, StoreError> {
        if !order.needs_a_person() {
            return Ok(AdoptOutcome::NoDeadLetter);
        }
        let terms = &order.terms;
        let site = self.kind(&terms.kind).map(|kind| site(&kind, &terms.params)).unwrap_or_default();
        // Money of the order stays in its own currency, in which this node knows no price.
        let rules = &self.provider_at(&terms.account).unwrap_or_else(|| self.first_provider()).rules;
        let price = listed_price(&rules.prices, terms)
            .filter(|_| !is_in_another_currency(&terms.account, &rules.currency));
        let order = Arc::new(order.imported(site, price));
        let Some(stored) = self.commit_dead_letter(Version::ABSENT, &order).await? else {
            return Ok(AdoptOutcome::New);
        };
        let Some(back) = stored.order.taken_back(&order) else { return Ok(AdoptOutcome::ThereAlready) };
        match self.commit_dead_letter(stored.version, &Arc::new(back)).await? {
            None => Ok(AdoptOutcome::New),
            Some(_) => Ok(AdoptOutcome::ThereAlready),
        }
    }

    /// Commits a dead letter. If another record is there, returns that record.
    async fn commit_dead_letter(
        &self,
        expected: Version,
        order: &Arc<Order>,
    ) -> Result<Option<Box<Versioned>>, StoreError> {
        match self.world.store.commit(expected, order, &Counters::default(), self.now()).await? {
            Commit::Done(_) => {
                self.note_commit(order);
                if let Some(due) = order.due() {
                    self.expect_timer(due);
                }
                Ok(None)
            }
            Commit::Conflict(stored) => Ok(stored),
        }
    }

    /// The shared documents of bulk actions, sorted by number.
    async fn bulk_documents(&self) -> Result<Vec<StoredDocument>, StoreError> {
        let mut documents = self.world.membership.documents().await?;
        documents.retain(|stored| bulk_of(stored).is_some());
        documents.sort_by_key(|stored| bulk_of(stored).map(|document| document.number));
        Ok(documents)
    }

    async fn write_bulk(
        &self,
        expected: Version,
        document: &BulkDocument,
    ) -> Result<DocumentWritten, StoreError> {
        let document = SharedDocument::Bulk(document.clone());
        self.world.membership.write_document(&document.name(), expected, Some(&document)).await
    }

    async fn forget_oldest(&self, documents: &[StoredDocument]) -> Result<(), StoreError> {
        let ended =
            |stored: &&StoredDocument| bulk_of(stored).is_some_and(|document| document.ended.is_some());
        if let Some(oldest) = documents.iter().find(ended) {
            // A quicker writer has removed the same old documents.
            _ = self.world.membership.write_document(&oldest.name, oldest.version, None).await?;
        }
        Ok(())
    }

    /// Works one round on the bulk actions that this node is responsible for.
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

    /// Works on the bulk actions. Returns whether work is left.
    async fn work_on_bulks(&self, now: Timestamp) -> Result<bool, StoreError> {
        let documents = self.bulk_documents().await?;
        let is_open =
            |stored: &StoredDocument| bulk_of(stored).is_some_and(|document| document.ended.is_none());
        for stored in &documents {
            let ended = bulk_of(stored).and_then(|document| document.ended);
            if ended.is_some_and(|ended| now >= ended + ENDED_KEPT) {
                _ = self.world.membership.write_document(&stored.name, stored.version, None).await?;
            }
        }
        if !documents.iter().any(is_open) {
            return Ok(false);
        }
        let members = self.world.membership.members().await?;
        for stored in documents.into_iter().filter(is_open) {
            if self.is_keeper(&stored.name, &members)
                && let SharedDocument::Bulk(document) = stored.document
            {
                self.continue_bulk(document, stored.version).await?;
            }
        }
        Ok(true)
    }

    async fn continue_bulk(
        &self,
        mut document: BulkDocument,
        mut version: Version,
    ) -> Result<(), StoreError> {
        let until = self.now() + ROUND_SPAN;
        let mut left = document.per_second as usize;
        for _ in 0..PAGES_MAX {
            if left == 0 || self.now() >= until || document.ended.is_some() {
                return Ok(());
            }
            let page = self.world.store.list(Which::DEAD, document.after.as_ref(), PAGE).await?;
            let mut is_last = page.len() < PAGE;
            let (mut meant, mut unreadable) = (Vec::new(), Vec::new());
            for stored in page {
                if left == 0 {
                    is_last = false;
                    break;
                }
                match stored {
                    Ok(stored) => {
                        document.after = Some(stored.order.key);
                        if is_meant(&document, &stored.order) {
                            left -= 1;
                            meant.push(stored);
                        }
                    }
                    Err(stored) => {
                        document.after = Some(stored.key);
                        if document.filter.fits_unreadable() {
                            left -= usize::from(document.action == BulkAction::Drop);
                            unreadable.push(stored.key);
                        }
                    }
                }
            }
            self.do_all(&mut document, meant).await?;
            self.discard_all(&mut document, &unreadable).await?;
            if is_last {
                document.ended = Some(self.now());
            }
            match self.write_bulk(version, &document).await? {
                DocumentWritten::Done(written) => version = written,
                // A person has stopped it, or another node is at it.
                DocumentWritten::Conflict | DocumentWritten::NoRoom => return Ok(()),
            }
        }
        Ok(())
    }

    async fn do_all(&self, document: &mut BulkDocument, meant: Vec<Versioned>) -> Result<(), StoreError> {
        let mut meant = meant.into_iter();
        loop {
            let some: Vec<Versioned> = meant.by_ref().take(AT_ONCE).collect();
            if some.is_empty() {
                return Ok(());
            }
            let actions = join_all(some.into_iter().map(|stored| self.do_one(document, stored))).await;
            for done in actions {
                match done {
                    Ok(true) => document.done += 1,
                    Ok(false) => document.passed_over += 1,
                    Err(error @ StoreError::Corrupt { .. }) => {
                        self.note_error(&error);
                        document.passed_over += 1;
                    }
                    // What was done of this page is no dead letter any more when it is read again.
                    Err(error) => return Err(error),
                }
            }
        }
    }

    /// Removes unreadable records. They cannot be replayed.
    async fn discard_all(&self, document: &mut BulkDocument, keys: &[Key]) -> Result<(), StoreError> {
        if document.action == BulkAction::Replay {
            document.passed_over += keys.len() as u64;
            return Ok(());
        }
        for some in keys.chunks(AT_ONCE) {
            for discarded in join_all(some.iter().map(|key| self.world.store.discard(key))).await {
                match discarded {
                    Ok(true) => document.done += 1,
                    // It can be read again, or a later version can read it.
                    Ok(false) | Err(StoreError::Corrupt { .. }) => document.passed_over += 1,
                    Err(error) => return Err(error),
                }
            }
        }
        Ok(())
    }

    async fn do_one(&self, document: &BulkDocument, stored: Versioned) -> Result<bool, StoreError> {
        let event = match document.action {
            BulkAction::Replay => Event::Replayed,
            BulkAction::Drop => Event::Dropped,
        };
        let key = stored.order.key;
        let may = |order: &Order| document.action != BulkAction::Replay || self.may_replay(order);
        let is_meant = |order: &Order| is_meant(document, order) && may(order);
        let applied = self.apply_if(&key, Some(stored), &event, is_meant).await?;
        Ok(matches!(applied, ApplyOutcome::Advanced { .. } | ApplyOutcome::Act { .. }))
    }
}
