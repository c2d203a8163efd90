//! Where callers wait for something from a stock. All who wait are served by one statement, as many as fit, and in the order
//! of their locks; the line is bounded.

use crate::desk::Reply;
use crate::trouble::PostgresError;
use quittance_lifecycle::{Counters, Key, Target, Timestamp};
use quittance_ports::{StoreError, Versioned};
use std::collections::{BTreeSet, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};
use tokio::sync::{Notify, oneshot};

/// How many wait at most; whoever comes then is told that the store is not available.
const WAITING_MAX: usize = 65_536;
/// A statement holds a lock for each of them.
const WISHES_MAX: usize = 128;
/// So many writes that could not be understood are passed over without a look. Beyond that some are looked at again.
const BROKEN_MAX: usize = 256;

/// Somebody who wants an answer from a stock.
pub(crate) struct TakeRequest {
    pub(crate) target: Target,
    pub(crate) good_until: Timestamp,
    pub(crate) by: Key,
    pub(crate) at: Timestamp,
    pub(crate) counters: Counters,
}

impl TakeRequest {
    /// Whoever asks twice for the same must wait for himself. Two others that share a lock only wait a little.
    pub(crate) fn lock(&self) -> i64 {
        let first =
            |bytes: &[u8; 32]| bytes.first_chunk().map_or(0, |eight: &[u8; 8]| i64::from_be_bytes(*eight));
        first(&self.by.0) ^ first(&self.target.0)
    }
}

pub(crate) type Waiting = (TakeRequest, Reply<Option<Versioned>>);

pub(crate) struct Takings {
    waiting: Mutex<VecDeque<Waiting>>,
    waiting_max: usize,
    /// The versions of what stands on a stock and cannot be understood here.
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

    /// A panic elsewhere cannot have left a line half-written.
    fn waiting(&self) -> MutexGuard<'_, VecDeque<Waiting>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn broken(&self) -> MutexGuard<'_, BTreeSet<i64>> {
        self.broken.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn ask(
        &self,
        wish: TakeRequest,
    ) -> Result<oneshot::Receiver<Result<Option<Versioned>, StoreError>>, PostgresError> {
        let (reply, answer) = oneshot::channel();
        let mut waiting = self.waiting();
        if waiting.len() >= self.waiting_max {
            return Err(PostgresError::Crowded { waiting: waiting.len() });
        }
        waiting.push_back((wish, reply));
        drop(waiting);
        self.bell.notify_one();
        Ok(answer)
    }

    /// As many as fit, in the order of their locks. Whoever has left is left out.
    pub(crate) fn next(&self) -> Vec<Waiting> {
        let mut waiting = self.waiting();
        let mut served = Vec::new();
        while served.len() < WISHES_MAX {
            let Some((wish, reply)) = waiting.pop_front() else { break };
            if !reply.is_closed() {
                served.push((wish, reply));
            }
        }
        let is_more = !waiting.is_empty();
        drop(waiting);
        if is_more {
            self.bell.notify_one();
        }
        served.sort_by_key(|(wish, _)| wish.lock());
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
    use super::{TakeRequest, Takings, WISHES_MAX};
    use crate::trouble::PostgresError;
    use quittance_lifecycle::{Counters, Key, Target, Timestamp};

    fn wish(by: u8) -> TakeRequest {
        let (good_until, at) = (Timestamp::ZERO, Timestamp::ZERO);
        TakeRequest {
            target: Target([7; 32]),
            good_until,
            by: Key([by; 32]),
            at,
            counters: Counters::default(),
        }
    }

    #[test]
    fn whoever_finds_the_line_full_is_told_so_at_once() {
        let takings = Takings::for_so_many(1);
        let _first = takings.ask(wish(1)).unwrap();
        assert!(matches!(takings.ask(wish(2)), Err(PostgresError::Crowded { waiting: 1 })));
        assert_eq!(takings.next().len(), 1);
        assert!(takings.ask(wish(2)).is_ok(), "there is room again");
    }

    #[test]
    fn they_are_served_in_the_order_of_their_locks_and_whoever_has_left_is_left_out() {
        let takings = Takings::default();
        let _waiting = [200, 3, 90].map(|by| takings.ask(wish(by)).unwrap());
        drop(takings.ask(wish(1)).unwrap());
        let served = takings.next();
        assert_eq!(served.len(), 3);
        assert!(served.is_sorted_by_key(|(wish, _)| wish.lock()));
        assert_ne!(wish(3).lock(), wish(4).lock());
    }

    #[test]
    fn no_more_are_served_at_once_than_fit_and_none_is_left_behind() {
        let takings = Takings::default();
        let _waiting: Vec<_> = (0..=WISHES_MAX).map(|_| takings.ask(wish(1)).unwrap()).collect();
        assert_eq!([takings.next().len(), takings.next().len(), takings.next().len()], [WISHES_MAX, 1, 0]);
    }

    #[test]
    fn not_more_is_remembered_than_there_is_room_for() {
        let takings = Takings::default();
        (0..10_000).for_each(|version| takings.pass_over(version));
        let passed_over = takings.passed_over();
        assert!(passed_over.len() <= super::BROKEN_MAX && passed_over.contains(&9_999));
    }
}
