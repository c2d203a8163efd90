//! Writes all waiting commits with one statement, again and again. A call that lost gets the winner. Callers that
//! wait for a written order are woken before the writing call is answered.

use crate::batch::{self, CommitColumns, CommitOutcome};
use crate::failure::PostgresError;
use crate::lane::Lane;
use crate::notices;
use crate::row::{self, BrokenWrite, PostgresRow};
use crate::shared::PostgresShared;
use crate::write_queue::{Contest, WriteBatch, WriteReply};
use futures_util::future::BoxFuture;
use quittance_lifecycle::Key;
use quittance_ports::{Commit, StoreError, Versioned};
use std::collections::BTreeMap;
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};
use std::time::Duration;
use tokio::time::sleep;
use tokio_postgres::types::Type;

pub(crate) const COMMITTING: &str = "committing an order";
pub(crate) const COUNTING: &str = "adding to the usage";

/// How often a statement is tried that was aborted because of others, and how often an order is read again.
const TRIES_MAX: usize = 5;
/// How long a writer without a connection leaves the work to other writers.
const STEP_BACK: Duration = Duration::from_millis(50);

pub(crate) struct BatchWriter {
    pub(crate) shared: Arc<PostgresShared>,
    pub(crate) number: usize,
}

impl BatchWriter {
    pub(crate) async fn run(self) {
        loop {
            // Registered before looking, so that nothing is left between the two.
            let bell = self.shared.queue.bell.notified();
            if self.must_step_back() {
                // The notification went to us and not to another writer.
                self.shared.queue.bell.notify_one();
                sleep(STEP_BACK).await;
                continue;
            }
            let batch = self.shared.queue.take();
            if batch.is_empty() {
                bell.await;
                continue;
            }
            let keys = batch.keys();
            self.settle(batch).await;
            self.shared.queue.bring_back(&keys);
        }
    }

    fn lane(&self) -> &Lane {
        &self.shared.writers[self.number]
    }

    /// Whether a writer without a connection leaves the work to others. If none has a connection, all waiting calls
    /// fail.
    fn must_step_back(&self) -> bool {
        !self.lane().is_up() && self.shared.writers.iter().any(Lane::is_up)
    }

    /// Writes the batch and answers all calls in it.
    fn settle(&self, batch: WriteBatch) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            match self.write(&batch).await {
                Ok(outcomes) => self.answer_all(batch, outcomes).await,
                // Of many, one may be what the server cannot take; the others must not fail with it for ever.
                Err(failure) if failure.may_be_of_one() && batch.len() > 1 => {
                    let (some, others) = batch.halve();
                    self.settle(some).await;
                    self.settle(others).await;
                }
                Err(failure) => fail(batch, &failure),
            }
        })
    }

    async fn answer_all(&self, mut batch: WriteBatch, mut outcomes: Vec<CommitOutcome>) {
        for addition in batch.additions.drain(..) {
            // The caller may be gone.
            drop(addition.reply.send(Ok(())));
        }
        for _again in 0..TRIES_MAX {
            let mut again = WriteBatch::default();
            let mut unseen = Vec::new();
            for (mut contest, outcome) in batch.contests.drain(..).zip(outcomes) {
                match outcome {
                    CommitOutcome::Done(version) => {
                        let winner = Versioned { version, order: Arc::clone(&contest.write.order) };
                        tell_winner(contest, &winner);
                    }
                    CommitOutcome::Lost(record) => tell_losers(contest, record.as_ref()),
                    CommitOutcome::LostUnseen => unseen.push(contest),
                    CommitOutcome::WantsTerms => {
                        contest.write.sends_terms = true;
                        again.contests.push(contest);
                    }
                }
            }
            self.look_again(unseen).await;
            if again.contests.is_empty() {
                return;
            }
            batch = again;
            outcomes = match self.write(&batch).await {
                Ok(outcomes) => outcomes,
                Err(failure) => return fail(batch, &failure),
            };
        }
        fail(batch, &PostgresError::Contended);
    }

    /// Sends the batch and wakes the callers that wait for what it wrote.
    async fn write(&self, batch: &WriteBatch) -> Result<Vec<CommitOutcome>, PostgresError> {
        let shared = &self.shared;
        shared.check_whole()?;
        let columns = CommitColumns::of(batch);
        let shard = shared.shard(self.number);
        let mut tries = 0;
        let (number, rows) = loop {
            let number = shared.batches.fetch_add(1, Ordering::Relaxed);
            let notice = notices::news(shared.node, number);
            let fence = *shared.fence.lock().unwrap_or_else(PoisonError::into_inner);
            let identity = fence.known.as_ref().map(|(identity, _)| &identity[..]);
            let epoch = fence.known.map_or(0, |(_, epoch)| epoch.cast_signed());
            let rest: [(&(dyn tokio_postgres::types::ToSql + Sync), Type); 6] = [
                (&shard, Type::INT2),
                (&shared.statements.channel, Type::TEXT),
                (&notice, Type::TEXT),
                (&identity, Type::BYTEA),
                (&epoch, Type::INT8),
                (&fence.file, Type::OID),
            ];
            shared.round_trips.fetch_add(1, Ordering::Relaxed);
            match self.lane().ask(&shared.statements.commit, &columns.params(&rest)).await {
                Ok(rows) => break (number, rows),
                Err(failure) if failure.is_in_the_way() && tries < TRIES_MAX => tries += 1,
                Err(failure) => return Err(failure),
            }
        };
        if rows.is_empty() {
            return Err(PostgresError::Forgot);
        }
        let outcomes = batch::outcomes(&rows, batch)?;
        shared.announced.tell(number, &batch::news(batch, &outcomes), &shared.watchers);
        Ok(outcomes)
    }

    /// Reads the winners again that the statement could not read.
    async fn look_again(&self, contests: Vec<Contest>) {
        if contests.is_empty() {
            return;
        }
        let keys: Vec<Key> = contests.iter().map(|contest| contest.write.order.key).collect();
        let mut record = match self.load(&keys).await {
            Ok(record) => record,
            Err(failure) => return fail(WriteBatch { contests, additions: Vec::new() }, &failure),
        };
        for contest in contests {
            let record = record.remove(&contest.write.order.key);
            tell_losers(contest, record.as_ref());
        }
    }

    async fn load(&self, keys: &[Key]) -> Result<BTreeMap<Key, PostgresRow>, PostgresError> {
        let keys: Vec<&[u8]> = keys.iter().map(|key| &key.0[..]).collect();
        self.shared.round_trips.fetch_add(1, Ordering::Relaxed);
        let rows = self.lane().ask(&self.shared.statements.load, &[(&keys, Type::BYTEA_ARRAY)]).await?;
        let pair = |row| {
            let record = row::stored(row, 0)?;
            let key = match &record {
                Ok(versioned) => versioned.order.key,
                Err(broken) => broken.unreadable.key,
            };
            Ok((key, record))
        };
        rows.iter().map(pair).collect()
    }
}

fn answer<T>(reply: WriteReply<T>, answer: Result<T, StoreError>) {
    // The caller may be gone.
    drop(reply.send(answer));
}

fn tell_winner(contest: Contest, winner: &Versioned) {
    answer(contest.first, Ok(Commit::Done(winner.version)));
    for other in contest.others {
        answer(other, Ok(Commit::Conflict(Some(Box::new(winner.clone())))));
    }
}

fn tell_losers(contest: Contest, record: Option<&PostgresRow>) {
    let conflict = || match record {
        None => Ok(Commit::Conflict(None)),
        Some(Ok(versioned)) => Ok(Commit::Conflict(Some(Box::new(versioned.clone())))),
        Some(Err(BrokenWrite { unreadable, .. })) => {
            Err(StoreError::Corrupt { key: unreadable.key, detail: unreadable.detail.clone() })
        }
    };
    answer(contest.first, conflict());
    for other in contest.others {
        answer(other, conflict());
    }
}

fn fail(batch: WriteBatch, failure: &PostgresError) {
    for Contest { first, others, .. } in batch.contests {
        for reply in std::iter::once(first).chain(others) {
            answer(reply, Err(failure.clone().while_doing(COMMITTING)));
        }
    }
    for addition in batch.additions {
        answer(addition.reply, Err(failure.clone().while_doing(COUNTING)));
    }
}
