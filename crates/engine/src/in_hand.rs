//! The orders that this node has in hand, for a store that can forget. A shared store may be flushed, restored or
//! replaced. What is in flight then is paid for, and this node may be the only one that knows of it.
//!
//! An order that the store has forgotten is put back as it was, marked for an operator, and continues. If the order
//! was placed again meanwhile, its attempts are added to the new order, which is marked. An answered order is put
//! back without a mark: a caller that fetches or repeats it gets the answer and pays nothing. If the order was bought
//! again before that, the new order is marked.

use crate::{Engine, lock};
use futures_util::stream::{StreamExt, iter};
use quittance_lifecycle::{
    Attempt, Counters, Decision, Event, Key, Order, Phase, Progress, TimelineEvent, Timestamp,
};
use quittance_ports::{Commit, StoreError, Version, Versioned, Which};
use std::collections::{BTreeMap, VecDeque};
use std::ops::Bound;
use std::sync::Arc;
use std::time::Duration;

/// How many bytes of terms are held. Orders beyond this limit are not held.
const BYTES_MAX: usize = 64 << 20;
/// The most bytes of terms that are held for answered orders. Over this limit, the oldest are dropped.
const ANSWERED_BYTES_MAX: usize = 16 << 20;
/// How many orders are put back at the same time.
const PUT_BACK_AT_ONCE: usize = 16;
/// How many orders are compared with the store in one round of chores, about once a second.
const CHECKED_MAX: usize = 64;
/// How many of the compared orders may be answered ones, if all others are due, too. Open orders are few and urgent.
const CHECKED_ANSWERED_MIN: usize = 16;
const CHECK_SPAN: Duration = Duration::from_secs(5);
/// An answered order that may be removed within this time is not compared: a node whose clock is ahead may have
/// removed it already.
const REMOVED_SOON: Duration = Duration::from_secs(10);
/// How many orders are read at once when all open ones are visited.
const PAGE: usize = 256;
/// How often a write is tried again after a lost race.
const TRIES_MAX: usize = 8;

#[derive(Default)]
pub(crate) struct InHand {
    orders: BTreeMap<Key, HeldOrder>,
    bytes: usize,
    answered: AnsweredOrders,
    /// Where the last comparison ended.
    checked: Option<Key>,
}

struct HeldOrder {
    record: Versioned,
    /// When the order was last written, or compared with the store.
    at: Timestamp,
}

/// The next orders after `ended`, the end of the last comparison, that have not been compared for a while.
fn next_due(
    orders: &BTreeMap<Key, HeldOrder>,
    ended: &mut Option<Key>,
    now: Timestamp,
    limit: usize,
) -> Vec<Versioned> {
    let after = ended.take().map_or(Bound::Unbounded, Bound::Excluded);
    let due = orders.range((after, Bound::Unbounded)).filter(|(_, held)| now.since(held.at) >= CHECK_SPAN);
    let due: Vec<Versioned> = due.take(limit).map(|(_, held)| held.record.clone()).collect();
    *ended = due.last().map(|record| record.order.key);
    due
}

/// The orders that have their answer, the oldest first.
#[derive(Default)]
struct AnsweredOrders {
    orders: BTreeMap<Key, HeldOrder>,
    oldest: VecDeque<(Key, Version)>,
    bytes: usize,
    /// Where the last comparison ended.
    checked: Option<Key>,
}

impl AnsweredOrders {
    fn hold(&mut self, record: &Versioned, at: Timestamp, orders_max: usize) {
        let key = record.order.key;
        // One that is only compared keeps its age.
        if let Some(held) = self.orders.get_mut(&key).filter(|held| held.record.version == record.version) {
            self.bytes = self.bytes - held.record.order.terms.size() + record.order.terms.size();
            *held = HeldOrder { record: record.clone(), at };
            return;
        }
        self.let_go(&key);
        self.bytes += record.order.terms.size();
        self.orders.insert(key, HeldOrder { record: record.clone(), at });
        self.oldest.push_back((key, record.version));
        while self.bytes > ANSWERED_BYTES_MAX || self.oldest.len() > orders_max {
            let Some((key, version)) = self.oldest.pop_front() else { return };
            if self.orders.get(&key).is_some_and(|held| held.record.version == version) {
                self.let_go(&key);
            }
        }
    }

    fn let_go(&mut self, key: &Key) {
        if let Some(held) = self.orders.remove(key) {
            self.bytes -= held.record.order.terms.size();
        }
    }
}

/// What `put_back` did with the orders that this node had in hand.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PutBack {
    /// The orders that the store had forgotten and that are put back.
    pub put_back: Vec<Key>,
    /// Forgotten orders that were placed again before they were put back.
    pub recalled: Vec<Key>,
    /// Orders that cannot be put back, because their key now belongs to an order with other parameters.
    pub lost: Vec<Key>,
    /// How many answered orders were put back. No operator needs to check them.
    pub answered: usize,
    /// The store failed before all orders were compared.
    pub is_incomplete: bool,
}

impl PutBack {
    /// How many orders the store had forgotten.
    #[must_use]
    pub fn count(&self) -> usize {
        self.put_back.len() + self.recalled.len() + self.lost.len() + self.answered
    }
}

/// The result of putting back one order.
enum PutBackOutcome {
    /// The store still has the order.
    Known(Versioned),
    PutBack(Versioned),
    /// The order has its answer.
    Answered(Versioned),
    Recalled(Versioned),
    Lost,
}

impl InHand {
    fn hold(&mut self, record: &Versioned, at: Timestamp, orders_max: usize) {
        let key = record.order.key;
        self.let_go(&key);
        let bytes = record.order.terms.size();
        if self.bytes + bytes > BYTES_MAX {
            return;
        }
        if self.orders.len() >= orders_max
            && let Some(first) = self.orders.keys().next().copied()
        {
            self.let_go(&first);
        }
        self.bytes += bytes;
        self.orders.insert(key, HeldOrder { record: record.clone(), at });
    }

    fn let_go(&mut self, key: &Key) {
        self.let_go_of_open(key);
        self.answered.let_go(key);
    }

    fn let_go_of_open(&mut self, key: &Key) {
        if let Some(held) = self.orders.remove(key) {
            self.bytes -= held.record.order.terms.size();
        }
    }

    fn get(&self, key: &Key) -> Option<&Versioned> {
        self.orders.get(key).or_else(|| self.answered.orders.get(key)).map(|held| &held.record)
    }

    /// All records in hand, open ones first.
    fn records(&self) -> impl Iterator<Item = &Versioned> {
        self.orders.values().chain(self.answered.orders.values()).map(|held| &held.record)
    }

    /// The next orders that have not been compared for a while.
    fn next_to_check(&mut self, now: Timestamp) -> Vec<Versioned> {
        let AnsweredOrders { orders: answered, checked, .. } = &mut self.answered;
        let mut answered = next_due(answered, checked, now, CHECKED_ANSWERED_MIN);
        let mut due = next_due(&self.orders, &mut self.checked, now, CHECKED_MAX - answered.len());
        // What the open ones leave.
        let AnsweredOrders { orders, checked, .. } = &mut self.answered;
        if checked.is_some() && due.len() + answered.len() < CHECKED_MAX {
            answered.extend(next_due(orders, checked, now, CHECKED_MAX - due.len() - answered.len()));
        }
        answered.retain(|held| !is_forgettable(&held.order, now + REMOVED_SOON));
        due.append(&mut answered);
        due
    }
}

/// How far an order has come. Its version does not show this: a store that was created again may count from the
/// beginning.
fn how_far(order: &Order) -> (u32, u32, usize, usize) {
    let accepted = order.attempts.iter().filter(|attempt| attempt.accepted).count();
    let steps = order.timeline.entries.iter().filter(|entry| entry.event != TimelineEvent::PutBack).count();
    (order.life, order.last_attempt, accepted, steps + order.timeline.left_out as usize)
}

/// Whether something may be lost if this order is forgotten.
fn is_in_hand(order: &Order) -> bool {
    order.phase.is_open() || order.attempts.iter().any(Attempt::is_open)
}

/// Whether the order has an answer that its own callers may still fetch. An answer in stock does not count: another
/// order may have claimed it without this node.
fn is_answered(order: &Order) -> bool {
    match order.phase {
        Phase::Solved { .. } => order.list_stock().is_none(),
        Phase::Claimed { .. } => order.taker().is_none(),
        _ => false,
    }
}

/// The attempts of a forgotten order, for the order that was placed again. If the forgotten order has its answer, the
/// attempt that brought it is over for the new order, and was paid for.
fn attempts_to_recall(order: &Order) -> Vec<Attempt> {
    let recall = |attempt: &Attempt| match attempt.progress {
        Progress::Answered if !is_in_hand(order) => {
            Attempt { progress: Progress::GivenUp { counted: true }, ..attempt.clone() }
        }
        _ => attempt.clone(),
    };
    order.attempts.iter().map(recall).collect()
}

/// Whether the store may have removed the order in the normal way.
fn is_forgettable(order: &Order, now: Timestamp) -> bool {
    order.forget_at().is_some_and(|at| at <= now)
}

impl Engine {
    /// Remembers an order that this node has written or read.
    pub(crate) fn hold(&self, record: &Versioned) {
        let orders_max = self.settings().in_hand_max;
        if orders_max == 0 {
            return;
        }
        let mut in_hand = lock(&self.in_hand);
        if is_in_hand(&record.order) {
            in_hand.hold(record, self.now(), orders_max);
        } else {
            in_hand.let_go_of_open(&record.order.key);
            if is_answered(&record.order) {
                in_hand.answered.hold(record, self.now(), orders_max);
            } else {
                in_hand.answered.let_go(&record.order.key);
            }
        }
    }

    fn held(&self, key: &Key) -> Option<Versioned> {
        let now = self.now();
        lock(&self.in_hand).get(key).filter(|held| !is_forgettable(&held.order, now)).cloned()
    }

    pub(crate) fn is_held(&self, key: &Key) -> bool {
        self.held(key).is_some()
    }

    /// Reads an order. If this node has it in hand and the store does not know it, the store has forgotten it: it is
    /// put back first.
    pub(crate) async fn load(&self, key: &Key) -> Result<Option<Versioned>, StoreError> {
        let record = self.world.store.load(key).await?;
        if let Some(record) = &record {
            self.see(&record.order);
        }
        let Some(held) = self.held(key) else { return Ok(record) };
        match &record {
            Some(record) if record.order.born == held.order.born => {}
            _ => self.suspect(),
        }
        if record.is_some() {
            return Ok(record);
        }
        Ok(match self.put_back_one(held).await? {
            PutBackOutcome::Known(record)
            | PutBackOutcome::PutBack(record)
            | PutBackOutcome::Answered(record)
            | PutBackOutcome::Recalled(record) => Some(record),
            PutBackOutcome::Lost => None,
        })
    }

    /// The orders in hand, as this node knows them, open ones first.
    #[must_use]
    pub fn orders_in_hand(&self) -> Vec<Arc<Order>> {
        let now = self.now();
        let in_hand = lock(&self.in_hand);
        let orders = in_hand.records().map(|record| &record.order);
        orders.filter(|order| !is_forgettable(order, now)).cloned().collect()
    }

    /// Adds the orders that an earlier process of this node had in hand. The next [`put_back`](Self::put_back)
    /// compares them with the store. With `may_have_ended`, it leaves out orders so old that the store may have
    /// removed them after their end. Returns how many are in hand.
    pub fn take_in_hand(&self, orders: Vec<Order>, may_have_ended: bool) -> usize {
        let now = self.now();
        let mut taken = 0;
        for order in orders {
            let removed_at = order.deadline + self.policy(&order).keep;
            if is_forgettable(&order, now) || (may_have_ended && removed_at <= now) {
                continue;
            }
            self.hold(&Versioned { version: Version::ABSENT, order: Arc::new(order) });
            taken += 1;
        }
        taken
    }

    /// Notes that the store may have forgotten something.
    pub(crate) fn suspect(&self) {
        self.suspicion.ring();
    }

    /// Waits until this node misses an order that it has in hand: the store may have forgotten more.
    pub async fn suspects(&self) {
        self.suspicion.rung().await;
    }

    /// Compares every order in hand with the store, and puts back those that the store has forgotten.
    pub async fn put_back(&self) -> PutBack {
        let now = self.now();
        let held: Vec<Versioned> = {
            let in_hand = lock(&self.in_hand);
            in_hand.records().filter(|held| !is_forgettable(&held.order, now)).cloned().collect()
        };
        let one = async |held: Versioned| {
            let (key, was_put_back) = (held.order.key, held.order.put_back);
            (key, was_put_back, self.put_back_one(held).await)
        };
        let mut handled: Vec<_> = iter(held).map(one).buffer_unordered(PUT_BACK_AT_ONCE).collect().await;
        handled.sort_unstable_by_key(|(key, ..)| *key);
        let mut result = PutBack::default();
        for (key, was_put_back, one) in handled {
            match one {
                Ok(PutBackOutcome::Known(record)) if record.order.put_back == was_put_back => {}
                // Another node, or a caller that placed it again, was quicker.
                Ok(PutBackOutcome::Known(_) | PutBackOutcome::PutBack(_)) => result.put_back.push(key),
                Ok(PutBackOutcome::Answered(_)) => result.answered += 1,
                Ok(PutBackOutcome::Recalled(_)) => result.recalled.push(key),
                Ok(PutBackOutcome::Lost) => result.lost.push(key),
                Err(error) => {
                    self.note_error(&error);
                    result.is_incomplete = true;
                }
            }
        }
        // What came in for them waits in the spill.
        self.expect_spill();
        result
    }

    async fn put_back_one(&self, held: Versioned) -> Result<PutBackOutcome, StoreError> {
        let (key, ours) = (held.order.key, &held.order);
        for _ in 0..TRIES_MAX {
            let record = self.world.store.load(&key).await?;
            let (base, event) = match &record {
                Some(record) if record.order.born == ours.born && how_far(&record.order) >= how_far(ours) => {
                    self.hold(record);
                    return Ok(PutBackOutcome::Known(record.clone()));
                }
                // It has its answer, and the order that was placed again has bought nothing.
                Some(record)
                    if record.order.born != ours.born
                        && !is_in_hand(ours)
                        && !record.order.attempts.iter().any(Attempt::is_own) =>
                {
                    // It may be about to: then the next look finds both.
                    if !matches!(record.order.phase, Phase::Queued { .. }) {
                        lock(&self.in_hand).let_go(&key);
                    }
                    return Ok(PutBackOutcome::Known(record.clone()));
                }
                None if !is_in_hand(ours) => {
                    if let Some(answered) = self.put_back_answered(ours).await? {
                        return Ok(PutBackOutcome::Answered(answered));
                    }
                    continue;
                }
                Some(record) if record.order.born != ours.born => {
                    if record.order.terms.target != ours.terms.target {
                        lock(&self.in_hand).let_go(&key);
                        return Ok(PutBackOutcome::Lost);
                    }
                    let recalled = Event::Recalled { born: ours.born, attempts: attempts_to_recall(ours) };
                    (Arc::clone(&record.order), recalled)
                }
                _ => {
                    let others_by = self.now() + self.settings().others_first;
                    (Arc::clone(ours), Event::PutBack { others_by })
                }
            };
            let is_recalled = matches!(event, Event::Recalled { .. });
            let (at, policy) = (self.now(), self.policy(&base));
            let Decision::Advance(advance) = (self.settings().rules.transition)(&base, event, at, &policy)
            else {
                // All of its attempts are known there.
                let record = record.unwrap_or(held);
                self.hold(&record);
                return Ok(PutBackOutcome::Recalled(record));
            };
            let expected = record.as_ref().map_or(Version::ABSENT, |record| record.version);
            let next = Arc::new(advance.next);
            let counters = if is_recalled { advance.counters } else { Counters::default() };
            if let Commit::Done(version) = self.world.store.commit(expected, &next, &counters, at).await? {
                let now = Versioned { version, order: next };
                self.note_commit(&now.order);
                self.hold(&now);
                if let Some(due) = now.order.due() {
                    self.expect_timer(due);
                }
                return Ok(if is_recalled {
                    PutBackOutcome::Recalled(now)
                } else {
                    PutBackOutcome::PutBack(now)
                });
            }
        }
        Err(StoreError::Unavailable {
            doing: "putting back an order that the store forgot",
            source: "other nodes write the order at the same time".into(),
        })
    }

    /// Puts an answered order back as it was. Nothing of it is open, so there is nothing to decide.
    async fn put_back_answered(&self, ours: &Arc<Order>) -> Result<Option<Versioned>, StoreError> {
        let commit = self.world.store.commit(Version::ABSENT, ours, &Counters::default(), self.now()).await?;
        let Commit::Done(version) = commit else { return Ok(None) };
        let now = Versioned { version, order: Arc::clone(ours) };
        self.hold(&now);
        if let Some(due) = now.order.due() {
            self.expect_timer(due);
        }
        Ok(Some(now))
    }

    /// Marks an order whose last steps the store has lost, and no node remembers: only an operator may decide to pay
    /// again.
    pub async fn lose(&self, key: &Key) -> Result<(), StoreError> {
        self.apply(key, None, &Event::Lost).await.map(drop)
    }

    /// Marks every open order for an operator, because the store runs on a copy that was saved when its files were
    /// lost. The orders continue.
    pub async fn list_restored(&self) -> Result<(), StoreError> {
        let mut after = None;
        loop {
            let page = self.world.store.list(Which::OPEN, after.as_ref(), PAGE).await?;
            let Some(last) = page.last() else { return Ok(()) };
            after = Some(last.as_ref().map_or_else(|unreadable| unreadable.key, |record| record.order.key));
            for record in page.into_iter().flatten() {
                let (key, others_by) = (record.order.key, self.now());
                self.apply(&key, Some(record), &Event::PutBack { others_by }).await?;
            }
        }
    }

    /// Forgets orders that other nodes have ended, and notices orders that the store has forgotten.
    pub(crate) async fn check_in_hand(&self) {
        let due = lock(&self.in_hand).next_to_check(self.now());
        for held in due {
            match self.world.store.load(&held.order.key).await {
                Ok(Some(record)) if record.order.born == held.order.born => {
                    self.see(&record.order);
                    self.hold(&record);
                }
                Ok(_) => self.suspect(),
                Err(error) => return self.note_error(&error),
            }
        }
    }
}
