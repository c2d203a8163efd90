//! The queue of writes, from which writers take as many as fit into one statement. The queue is bounded, and no order
//! is in two statements at once. A call for the same step of the same order as an earlier call needs no statement: it
//! has lost, and gets the winner.

use crate::failure::PostgresError;
use crate::row::{PostgresMarks, SENT_TERMS_BYTES_MAX};
use quittance_lifecycle::{Counters, Key, Order, Timestamp};
use quittance_ports::{Commit, StoreError, UsageRow, Version};
use quittance_record::{encode_order, encode_terms};
use sha2::{Digest, Sha256};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::{Notify, oneshot};

/// The most waiting writes. A further call fails as unavailable.
const WAITING_MAX: usize = 65_536;
const COMMITS_MAX: usize = 256;
const COUNTS_MAX: usize = 1024;
const BATCH_BYTES_MAX: usize = 8 << 20;
/// How many keys fit into one notice, which has less than 8,000 bytes.
const NEWS_MAX: usize = 120;

pub(crate) type WriteReply<T> = oneshot::Sender<Result<T, StoreError>>;

/// An order that is ready to be sent.
pub(crate) struct PendingWrite {
    pub(crate) expected: Version,
    pub(crate) order: Arc<Order>,
    pub(crate) counters: Counters,
    pub(crate) at: Timestamp,
    pub(crate) marks: PostgresMarks,
    pub(crate) record: Vec<u8>,
    pub(crate) terms: Vec<u8>,
    /// The digest of terms that are too long to be sent at every step.
    pub(crate) digest: Option<[u8; 32]>,
    pub(crate) sends_terms: bool,
}

impl PendingWrite {
    pub(crate) fn new(expected: Version, order: &Arc<Order>, counters: &Counters, at: Timestamp) -> Self {
        let terms = encode_terms(&order.terms);
        let digest = (terms.len() > SENT_TERMS_BYTES_MAX).then(|| Sha256::digest(&terms).into());
        Self {
            expected,
            order: Arc::clone(order),
            counters: *counters,
            at,
            marks: PostgresMarks::of(order),
            record: encode_order(order),
            terms,
            digest,
            sends_terms: expected == Version::ABSENT || digest.is_none(),
        }
    }

    fn bytes(&self) -> usize {
        self.record.len() + if self.sends_terms { self.terms.len() } else { 0 }
    }
}

/// An order to write, and all calls for the same step of it.
pub(crate) struct Contest {
    pub(crate) write: Box<PendingWrite>,
    pub(crate) first: WriteReply<Commit>,
    pub(crate) others: Vec<WriteReply<Commit>>,
}

pub(crate) struct Addition {
    pub(crate) line: UsageRow,
    pub(crate) counters: Counters,
    pub(crate) reply: WriteReply<()>,
}

/// The content of one statement.
#[derive(Default)]
pub(crate) struct WriteBatch {
    pub(crate) contests: Vec<Contest>,
    pub(crate) additions: Vec<Addition>,
}

#[derive(Default)]
struct WaitingWrite {
    commits: VecDeque<(Box<PendingWrite>, WriteReply<Commit>)>,
    additions: VecDeque<Addition>,
    /// Orders that are in a statement at the moment.
    away: BTreeSet<Key>,
}

pub(crate) struct WriteQueue {
    waiting: Mutex<WaitingWrite>,
    waiting_max: usize,
    pub(crate) bell: Notify,
}

impl Default for WriteQueue {
    fn default() -> Self {
        Self::for_so_many(WAITING_MAX)
    }
}

impl WriteQueue {
    fn for_so_many(waiting_max: usize) -> Self {
        Self { waiting: Mutex::default(), waiting_max, bell: Notify::new() }
    }

    /// Locks the queue. A panic elsewhere cannot have left it half-written.
    fn waiting(&self) -> MutexGuard<'_, WaitingWrite> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn commit(
        &self,
        write: PendingWrite,
    ) -> Result<oneshot::Receiver<Result<Commit, StoreError>>, PostgresError> {
        let (reply, answer) = oneshot::channel();
        let mut waiting = self.waiting();
        waiting.has_room(self.waiting_max)?;
        waiting.commits.push_back((Box::new(write), reply));
        drop(waiting);
        self.bell.notify_one();
        Ok(answer)
    }

    pub(crate) fn add(
        &self,
        line: UsageRow,
        counters: Counters,
    ) -> Result<oneshot::Receiver<Result<(), StoreError>>, PostgresError> {
        let (reply, answer) = oneshot::channel();
        let mut waiting = self.waiting();
        waiting.has_room(self.waiting_max)?;
        waiting.additions.push_back(Addition { line, counters, reply });
        drop(waiting);
        self.bell.notify_one();
        Ok(answer)
    }

    /// Takes as much as fits; nothing if nothing can be written now. Writes whose caller has left are dropped.
    pub(crate) fn take(&self) -> WriteBatch {
        let mut waiting = self.waiting();
        let batch = waiting.take();
        let is_more = !waiting.commits.is_empty() || !waiting.additions.is_empty();
        drop(waiting);
        if is_more && !batch.is_empty() {
            self.bell.notify_one();
        }
        batch
    }

    /// Notes that these orders are in no statement any more.
    pub(crate) fn bring_back(&self, keys: &[Key]) {
        let mut waiting = self.waiting();
        for key in keys {
            waiting.away.remove(key);
        }
        let is_more = !waiting.commits.is_empty();
        drop(waiting);
        if is_more {
            self.bell.notify_one();
        }
    }
}

impl WriteBatch {
    pub(crate) fn is_empty(&self) -> bool {
        self.contests.is_empty() && self.additions.is_empty()
    }

    pub(crate) fn len(&self) -> usize {
        self.contests.len() + self.additions.len()
    }

    /// Splits the batch into two halves, neither of which is empty if it has two entries.
    pub(crate) fn halve(mut self) -> (Self, Self) {
        let at = self.len() / 2;
        let contests = self.contests.split_off(at.min(self.contests.len()));
        let additions = self.additions.split_off(at - self.contests.len());
        (self, Self { contests, additions })
    }

    pub(crate) fn keys(&self) -> Vec<Key> {
        self.contests.iter().map(|contest| contest.write.order.key).collect()
    }
}

impl WaitingWrite {
    fn has_room(&self, waiting_max: usize) -> Result<(), PostgresError> {
        let waiting = self.commits.len() + self.additions.len();
        if waiting < waiting_max { Ok(()) } else { Err(PostgresError::Crowded { waiting }) }
    }

    fn take(&mut self) -> WriteBatch {
        let mut batch = WriteBatch::default();
        let mut places: BTreeMap<Key, usize> = BTreeMap::new();
        let (mut bytes, mut news) = (0, 0);
        let mut left = VecDeque::new();
        while let Some((write, reply)) = self.commits.pop_front() {
            if reply.is_closed() {
                continue;
            }
            let key = write.order.key;
            if let Some(place) = places.get(&key) {
                let contest = &mut batch.contests[*place];
                if contest.write.expected == write.expected {
                    contest.others.push(reply);
                } else {
                    left.push_back((write, reply));
                }
                continue;
            }
            if self.away.contains(&key) {
                left.push_back((write, reply));
                continue;
            }
            bytes += write.bytes();
            news += usize::from(!write.marks.awaited);
            let is_full = batch.contests.len() == COMMITS_MAX || bytes > BATCH_BYTES_MAX || news > NEWS_MAX;
            if is_full && !batch.contests.is_empty() {
                left.push_back((write, reply));
                break;
            }
            places.insert(key, batch.contests.len());
            batch.contests.push(Contest { write, first: reply, others: Vec::new() });
        }
        // What was passed over stands before what was not reached.
        left.append(&mut self.commits);
        self.commits = left;
        self.away.extend(places.keys());
        let counts = self.additions.len().min(COUNTS_MAX);
        batch.additions.extend(self.additions.drain(..counts));
        batch
    }
}

#[cfg(test)]
mod tests {
    use super::{NEWS_MAX, PendingWrite, WriteBatch, WriteQueue};
    use crate::failure::PostgresError;
    use quittance_lifecycle::Counters;
    use quittance_ports::conformance::samples::{self, START, SampleOrder};
    use quittance_ports::{UsageRow, Version};

    fn write(sample: &SampleOrder, expected: u64) -> PendingWrite {
        PendingWrite::new(Version(expected), &sample.order, &Counters::default(), START)
    }

    fn sizes(batch: &WriteBatch) -> Vec<usize> {
        batch.contests.iter().map(|contest| 1 + contest.others.len()).collect()
    }

    #[test]
    fn a_call_at_a_full_queue_fails_at_once() {
        let queue = WriteQueue::for_so_many(2);
        let order = samples::queued("one", START);
        let _first = queue.commit(write(&order, 0)).unwrap();
        let line = UsageRow::of(&order.order, START);
        let _second = queue.add(line.clone(), Counters::default()).unwrap();
        assert!(matches!(queue.commit(write(&order, 0)), Err(PostgresError::Crowded { waiting: 2 })));
        assert!(matches!(queue.add(line, Counters::default()), Err(PostgresError::Crowded { waiting: 2 })));
        assert_eq!(queue.take().len(), 2);
        assert!(queue.commit(write(&order, 0)).is_ok(), "there is room again");
    }

    #[test]
    fn entries_for_the_same_step_share_a_place_and_no_order_is_away_twice() {
        let queue = WriteQueue::default();
        let (one, two) = (samples::queued("one", START), samples::queued("two", START));
        let _waiting = [(&one, 0), (&one, 0), (&one, 7), (&two, 3), (&one, 0)]
            .map(|(sample, expected)| queue.commit(write(sample, expected)).unwrap());
        let batch = queue.take();
        assert_eq!(sizes(&batch), [3, 1], "the one with another version waits");
        assert!(queue.take().is_empty(), "its order is away");
        queue.bring_back(&batch.keys());
        assert_eq!(sizes(&queue.take()), [1]);
    }

    #[test]
    fn a_caller_that_left_is_left_out() {
        let queue = WriteQueue::default();
        let [one, two] = ["one", "two"].map(|name| samples::queued(name, START));
        drop(queue.commit(write(&one, 0)).unwrap());
        let _stays = queue.commit(write(&two, 0)).unwrap();
        assert_eq!(queue.take().keys(), [two.order.key]);
    }

    #[test]
    fn no_more_news_are_taken_than_one_notice_holds_and_none_is_left_behind() {
        let queue = WriteQueue::default();
        let news: Vec<_> = (0..=NEWS_MAX).map(|n| samples::failed(&format!("order {n}"), START)).collect();
        let _waiting: Vec<_> = news.iter().map(|sample| queue.commit(write(sample, 0)).unwrap()).collect();
        assert_eq!([queue.take().len(), queue.take().len(), queue.take().len()], [NEWS_MAX, 1, 0]);
    }

    #[test]
    fn a_batch_is_halved_until_each_entry_is_alone() {
        let queue = WriteQueue::default();
        let orders: Vec<_> = (0..3).map(|n| samples::queued(&format!("order {n}"), START)).collect();
        let _waiting: Vec<_> = orders.iter().map(|sample| queue.commit(write(sample, 0)).unwrap()).collect();
        let _added: Vec<_> = orders
            .iter()
            .map(|sample| queue.add(UsageRow::of(&sample.order, START), Counters::default()).unwrap())
            .collect();
        let mut whole = vec![queue.take()];
        let mut alone = 0;
        while let Some(batch) = whole.pop() {
            if batch.len() == 1 {
                alone += 1;
            } else {
                whole.extend(<[WriteBatch; 2]>::from(batch.halve()));
            }
        }
        assert_eq!(alone, 6);
    }
}
