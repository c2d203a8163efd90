//! The queue of requests for answers from stocks. One statement serves as many as fit, in the order of their locks.
//! The queue is bounded.

use crate::failure::PostgresError;
use crate::write_queue::WriteReply;
use quittance_lifecycle::{Counters, Key, Target, Timestamp};
use quittance_ports::{StoreError, Versioned};
use std::collections::{BTreeSet, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};
use tokio::sync::{Notify, oneshot};

/// The most waiting requests. A further call fails as unavailable.
const WAITING_MAX: usize = 65_536;
/// The most requests of one statement, which holds a lock for each.
const TAKES_MAX: usize = 128;
/// How many unparseable answers are remembered and passed over without a look. Above that, some are read again.
const BROKEN_MAX: usize = 256;

/// A request for an answer from a stock.
pub(crate) struct StockTake {
    pub(crate) target: Target,
    pub(crate) good_until: Timestamp,
    pub(crate) by: Key,
    pub(crate) at: Timestamp,
    pub(crate) counters: Counters,
}

impl StockTake {
    /// The lock of a request. Two takes by the same claimant must wait for each other. Other requests that share a
    /// lock by chance wait only a short time.
    pub(crate) fn lock(&self) -> i64 {
        let first =
            |bytes: &[u8; 32]| bytes.first_chunk().map_or(0, |eight: &[u8; 8]| i64::from_be_bytes(*eight));
        first(&self.by.0) ^ first(&self.target.0)
    }
}

pub(crate) type WaitingTake = (StockTake, WriteReply<Option<Versioned>>);

pub(crate) struct Takings {
    waiting: Mutex<VecDeque<WaitingTake>>,
    waiting_max: usize,
    /// The versions of answers in a stock that cannot be parsed here.
    broken: Mutex<BTreeSet<i64>>,
    pub(crate) bell: Notify,
}

impl Default for Takings {
    fn default() -> Self {
        Self::for_so_many(WAITING_MAX)
    }
}

impl Takings {
    fn for_so_many(waiting_max: usize) -> Self {
        Self { waiting: Mutex::default(), waiting_max, broken: Mutex::default(), bell: Notify::new() }
    }

    /// Locks the queue. A panic elsewhere cannot have left it half-written.
    fn waiting(&self) -> MutexGuard<'_, VecDeque<WaitingTake>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn broken(&self) -> MutexGuard<'_, BTreeSet<i64>> {
        self.broken.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn ask(
        &self,
        request: StockTake,
    ) -> Result<oneshot::Receiver<Result<Option<Versioned>, StoreError>>, PostgresError> {
        let (reply, answer) = oneshot::channel();
        let mut waiting = self.waiting();
        if waiting.len() >= self.waiting_max {
            return Err(PostgresError::Crowded { waiting: waiting.len() });
        }
        waiting.push_back((request, reply));
        drop(waiting);
        self.bell.notify_one();
        Ok(answer)
    }

    /// The next requests: as many as fit, in the order of their locks. Requests whose caller has left are dropped.
    pub(crate) fn next(&self) -> Vec<WaitingTake> {
        let mut waiting = self.waiting();
        let mut served = Vec::new();
        while served.len() < TAKES_MAX {
            let Some((request, reply)) = waiting.pop_front() else { break };
            if !reply.is_closed() {
                served.push((request, reply));
            }
        }
        let is_more = !waiting.is_empty();
        drop(waiting);
        if is_more {
            self.bell.notify_one();
        }
        served.sort_by_key(|(request, _)| request.lock());
        served
    }

    pub(crate) fn pass_over(&self, version: i64) {
        let mut broken = self.broken();
        if broken.len() >= BROKEN_MAX {
            broken.clear();
        }
        broken.insert(version);
    }

    pub(crate) fn passed_over(&self) -> Vec<i64> {
        self.broken().iter().copied().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::{StockTake, TAKES_MAX, Takings};
    use crate::failure::PostgresError;
    use quittance_lifecycle::{Counters, Key, Target, Timestamp};

    fn request(by: u8) -> StockTake {
        let (good_until, at) = (Timestamp::ZERO, Timestamp::ZERO);
        StockTake {
            target: Target([7; 32]),
            good_until,
            by: Key([by; 32]),
            at,
            counters: Counters::default(),
        }
    }

    #[test]
    fn a_call_at_a_full_queue_fails_at_once() {
        let takings = Takings::for_so_many(1);
        let _first = takings.ask(request(1)).unwrap();
        assert!(matches!(takings.ask(request(2)), Err(PostgresError::Crowded { waiting: 1 })));
        assert_eq!(takings.next().len(), 1);
        assert!(takings.ask(request(2)).is_ok(), "there is room again");
    }

    #[test]
    fn takers_are_served_in_the_order_of_their_locks_and_a_taker_that_left_is_left_out() {
        let takings = Takings::default();
        let _waiting = [200, 3, 90].map(|by| takings.ask(request(by)).unwrap());
        drop(takings.ask(request(1)).unwrap());
        let served = takings.next();
        assert_eq!(served.len(), 3);
        assert!(served.is_sorted_by_key(|(request, _)| request.lock()));
        assert_ne!(request(3).lock(), request(4).lock());
    }

    #[test]
    fn no_more_are_served_at_once_than_fit_and_none_is_left_behind() {
        let takings = Takings::default();
        let _waiting: Vec<_> = (0..=TAKES_MAX).map(|_| takings.ask(request(1)).unwrap()).collect();
        assert_eq!([takings.next().len(), takings.next().len(), takings.next().len()], [TAKES_MAX, 1, 0]);
    }

    #[test]
    fn no_more_is_remembered_than_the_limit() {
        let takings = Takings::default();
        (0..10_000).for_each(|version| takings.pass_over(version));
        let passed_over = takings.passed_over();
        assert!(passed_over.len() <= super::BROKEN_MAX && passed_over.contains(&9_999));
    }
}
