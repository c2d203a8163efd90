//! The tasks that are polled next, and those that may join them. One call can poll several tasks, and a task that
//! joins a call costs nothing. So a call takes along every task that the rules of the service allow, even if its own
//! poll is due later, and a call that has room left is not followed by another one at once.

use crate::fair::FairQueue;
use quittance_lifecycle::{EarlyPoll, Key, Order, Policy, Timestamp};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// The least time between two calls that are not full.
const CALL_SPAN: Duration = Duration::from_secs(1);
/// How many tasks are remembered that may join a call.
const EARLY_MAX: usize = 4096;
/// How many tasks are looked at to fill one call, for each task that it has room for.
const LOOKS_MAX: usize = 8;
/// How long after its moment a task may still join a call. Later, another node may be polling it.
const EARLY_LATE: Duration = Duration::from_millis(100);
/// How long the first polls after a start are spread: the tasks that became due while no node ran are not polled all at
/// once.
const START_SPAN: Duration = Duration::from_secs(3);

/// One task to be polled.
#[derive(Clone)]
pub(crate) struct PollItem {
    pub(crate) key: Key,
    pub(crate) born: Timestamp,
    pub(crate) attempt: u32,
    pub(crate) task: String,
}

/// A task that may join a call.
struct EarlyItem {
    from: Timestamp,
    item: PollItem,
}

/// A task that waits for its turn.
struct LaterItem {
    tenant: String,
    placed: Timestamp,
    item: PollItem,
}

/// The turn of a task that is not polled at once, so that many tasks are not polled at the same moment.
pub(crate) fn spread_turn(key: Key, from: Timestamp) -> Timestamp {
    let span = u64::try_from(START_SPAN.as_millis()).unwrap_or(u64::MAX);
    from + Duration::from_millis(key.grain() % span)
}

#[derive(Default)]
pub(crate) struct PollQueue {
    due: FairQueue<(Timestamp, Key, u32), PollItem>,
    later: BTreeMap<(Timestamp, Key, u32), LaterItem>,
    /// By the moment at which the task is polled in any case.
    early: BTreeMap<(Timestamp, Key), EarlyItem>,
    early_at: BTreeMap<Key, Timestamp>,
    /// Tasks that are being polled.
    asked: BTreeSet<(Key, u32)>,
    called_at: Timestamp,
    call_span: Duration,
}

impl PollQueue {
    /// The least time between two calls that are not full, with the intervals of the operator, if there are some.
    pub(crate) fn call_span(policy: &Policy) -> Duration {
        policy.poll_interval.map_or(CALL_SPAN, |interval| interval.min(CALL_SPAN))
    }

    pub(crate) fn new(call_span: Duration) -> Self {
        Self { call_span, ..Self::default() }
    }

    pub(crate) const fn set_call_span(&mut self, call_span: Duration) {
        self.call_span = call_span;
    }

    /// How many tasks wait for a poll that is due.
    pub(crate) fn len(&self) -> usize {
        self.due.len() + self.later.len()
    }

    /// Adds a task, to be polled at `turn` or later. Returns whether there was room. A task that is being polled is
    /// not added again.
    pub(crate) fn push(
        &mut self,
        order: &Order,
        (attempt, task): (u32, String),
        (turn, now): (Timestamp, Timestamp),
        max: usize,
    ) -> bool {
        let key = order.key;
        if self.asked.contains(&(key, attempt)) {
            return true;
        }
        self.forget_early(&key);
        let item = PollItem { key, born: order.born, attempt, task };
        let (tenant, placed) = (&order.terms.tenant, order.placed);
        if turn <= now {
            return self.due.push(tenant, (placed, key, attempt), item, max);
        }
        let has_room = self.len() < max;
        if has_room {
            self.later.insert((turn, key, attempt), LaterItem { tenant: tenant.clone(), placed, item });
        }
        has_room
    }

    /// Remembers that the order's task may join a call, or no longer may.
    pub(crate) fn expect(&mut self, order: &Order, early: Option<EarlyPoll<'_>>) {
        self.forget_early(&order.key);
        let Some(EarlyPoll { attempt, task, from, due }) = early else { return };
        if self.early.len() < EARLY_MAX {
            let item = PollItem { key: order.key, born: order.born, attempt, task: task.to_owned() };
            self.early.insert((due, order.key), EarlyItem { from, item });
            self.early_at.insert(order.key, due);
        }
    }

    fn forget_early(&mut self, key: &Key) {
        if let Some(due) = self.early_at.remove(key) {
            self.early.remove(&(due, *key));
        }
    }

    /// Queues the tasks whose turn has come.
    pub(crate) fn ripen(&mut self, now: Timestamp, max: usize) {
        while let Some(entry) = self.later.first_entry().filter(|entry| entry.key().0 <= now) {
            let LaterItem { tenant, placed, item } = entry.remove();
            self.due.push(&tenant, (placed, item.key, item.attempt), item, max);
        }
    }

    /// When the next call may start, if one call polls up to `batch_max` tasks.
    pub(crate) fn call_at(&self, now: Timestamp, batch_max: usize) -> Timestamp {
        let later = self.later.keys().next().map_or(Timestamp::MAX, |(turn, ..)| *turn);
        let call = match self.due.len() {
            0 => Timestamp::MAX,
            // A clock that was set back must not hold back the polls until it has caught up.
            len if len >= batch_max || self.called_at > now => now,
            _ => self.called_at + self.call_span,
        };
        call.min(later)
    }

    /// Takes the tasks of one call: those that are due, and as many as may join them if `may_join` allows it.
    pub(crate) fn take(&mut self, now: Timestamp, batch_max: usize, may_join: bool) -> Vec<PollItem> {
        self.called_at = now;
        let mut batch: Vec<_> = std::iter::from_fn(|| self.due.pop()).take(batch_max).collect();
        let room = batch_max - batch.len();
        if may_join && room > 0 && !batch.is_empty() {
            let is_free = |early: &&EarlyItem| early.from <= now;
            let near = self.early.range((now - EARLY_LATE, Key([0; 32]))..).map(|(_, early)| early);
            let joined: Vec<_> = near.take(room * LOOKS_MAX).filter(is_free).take(room).collect();
            batch.extend(joined.into_iter().map(|early| early.item.clone()));
        }
        for item in &batch {
            self.forget_early(&item.key);
            self.asked.insert((item.key, item.attempt));
        }
        self.forget_late(now);
        batch
    }

    /// Forgets tasks whose own moment is over: they come back as due, here or at another node.
    fn forget_late(&mut self, now: Timestamp) {
        while let Some(entry) = self.early.first_entry().filter(|entry| entry.key().0 < now - EARLY_LATE) {
            self.early_at.remove(&entry.key().1);
            entry.remove();
        }
    }

    /// The poll of this task has ended.
    pub(crate) fn replied(&mut self, key: Key, attempt: u32) {
        self.asked.remove(&(key, attempt));
    }
}
