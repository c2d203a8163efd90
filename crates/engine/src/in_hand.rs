//! The orders that this node has in hand, as it knows them, for a store that can forget. A shared store may be flushed, restored or
//! replaced; what is in flight then is paid for, and this node may be the only one that knows of it.
//!
//! An order that the store no longer knows is put back as it was, marked for a person, and goes on. If it was placed again
//! meanwhile, its attempts count for the order that took its place.

use crate::{Engine, lock};
use quittance_lifecycle::{Beat, Decision, Event, Key, Order, Tally, Timestamp};
use quittance_ports::{Commit, StoreError, Version, Versioned};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// How many bytes of terms are held; beyond that, orders are not held.
const BYTES_MAX: usize = 64 << 20;
/// How many orders are compared with the store in a second, and how old the last comparison must be.
const CHECKED_MAX: usize = 64;
const CHECK_SPAN: Duration = Duration::from_secs(5);
/// How often a write may lose a race.
const TRIES_MAX: usize = 8;

#[derive(Default)]
pub(crate) struct InHand {
    orders: BTreeMap<Key, Held>,
    bytes: usize,
    /// Where the last comparison ended.
    checked: Option<Key>,
}

struct Held {
    found: Versioned,
    /// When it was last written or compared.
    at: Timestamp,
}

/// What became of the orders that this node had in hand when the store had forgotten.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PutBack {
    /// The orders that the store did not know, and knows again.
    pub put_back: Vec<Key>,
    /// Those that had been placed again meanwhile.
    pub recalled: Vec<Key>,
    /// Those whose key now belongs to an order for something else, so that they cannot be put back.
    pub lost: Vec<Key>,
    /// The store failed before all were seen to.
    pub is_incomplete: bool,
}

impl PutBack {
    /// How many orders the store had forgotten.
    #[must_use]
    pub fn count(&self) -> usize {
        self.put_back.len() + self.recalled.len() + self.lost.len()
    }
}

/// What became of one of them.
enum One {
    /// The store knows it.
    Known(Versioned),
    PutBack(Versioned),
    Recalled(Versioned),
    Lost,
}

impl InHand {
    fn hold(&mut self, found: &Versioned, at: Timestamp, orders_max: usize) {
        let key = found.order.key;
        self.let_go(&key);
        let bytes = found.order.terms.size();
        if self.bytes + bytes > BYTES_MAX {
            return;
        }
        if self.orders.len() >= orders_max
            && let Some(first) = self.orders.keys().next().copied()
        {
            self.let_go(&first);
        }
        self.bytes += bytes;
        self.orders.insert(key, Held { found: found.clone(), at });
    }

    fn let_go(&mut self, key: &Key) {
        if let Some(held) = self.orders.remove(key) {
            self.bytes -= held.found.order.terms.size();
        }
    }

    /// The next that have not been compared for a while.
    fn next_to_check(&mut self, now: Timestamp) -> Vec<Versioned> {
        let after = self.checked.take();
        let is_later = |key: &Key| after.is_none_or(|after| *key > after);
        let due = self.orders.iter().filter(|(key, held)| is_later(key) && now.since(held.at) >= CHECK_SPAN);
        let due: Vec<Versioned> = due.take(CHECKED_MAX).map(|(_, held)| held.found.clone()).collect();
        self.checked = due.last().map(|found| found.order.key);
        due
    }
}

/// How far an order has come. Versions do not tell: a store that was made again may count from the beginning.
fn how_far(order: &Order) -> (u32, u32, usize, usize) {
    let accepted = order.attempts.iter().filter(|attempt| attempt.accepted).count();
    let steps = order.story.entries.iter().filter(|entry| entry.beat != Beat::PutBack).count();
    (order.life, order.last_attempt, accepted, steps + order.story.left_out as usize)
}

/// Whether something may be lost if this order is forgotten.
fn is_in_hand(order: &Order) -> bool {
    order.phase.is_open() || order.attempts.iter().any(quittance_lifecycle::Attempt::is_open)
}

impl Engine {
    /// This node has written or read an order.
    pub(crate) fn hold(&self, found: &Versioned) {
        let orders_max = self.settings.in_hand_max;
        if orders_max == 0 {
            return;
        }
        let mut in_hand = lock(&self.in_hand);
        if is_in_hand(&found.order) {
            in_hand.hold(found, self.now(), orders_max);
        } else {
            in_hand.let_go(&found.order.key);
        }
    }

    fn held(&self, key: &Key) -> Option<Versioned> {
        lock(&self.in_hand).orders.get(key).map(|held| held.found.clone())
    }

    pub(crate) fn is_held(&self, key: &Key) -> bool {
        lock(&self.in_hand).orders.contains_key(key)
    }

    /// Reads an order. One that this node has in hand and the store does not know was forgotten: it is put back first.
    pub(crate) async fn load(&self, key: &Key) -> Result<Option<Versioned>, StoreError> {
        let found = self.world.store.load(key).await?;
        let Some(held) = self.held(key) else { return Ok(found) };
        match &found {
            Some(found) if found.order.born == held.order.born => {}
            _ => self.suspect(),
        }
        if found.is_some() {
            return Ok(found);
        }
        Ok(match self.put_back_one(held).await? {
            One::Known(found) | One::PutBack(found) | One::Recalled(found) => Some(found),
            One::Lost => None,
        })
    }

    /// The store may have forgotten something.
    pub(crate) fn suspect(&self) {
        self.suspicion.ring();
    }

    /// Returns when this node missed an order that it has in hand: the store may have forgotten more.
    pub async fn suspects(&self) {
        self.suspicion.rung().await;
    }

    /// Compares every order in hand with the store, and puts back what it has forgotten.
    pub async fn put_back(&self) -> PutBack {
        let held: Vec<Versioned> =
            lock(&self.in_hand).orders.values().map(|held| held.found.clone()).collect();
        let mut result = PutBack::default();
        for held in held {
            let (key, was_put_back) = (held.order.key, held.order.put_back);
            match self.put_back_one(held).await {
                Ok(One::Known(found)) if found.order.put_back == was_put_back => {}
                // Another node, or a caller who asked for it, was quicker.
                Ok(One::Known(_) | One::PutBack(_)) => result.put_back.push(key),
                Ok(One::Recalled(_)) => result.recalled.push(key),
                Ok(One::Lost) => result.lost.push(key),
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

    async fn put_back_one(&self, held: Versioned) -> Result<One, StoreError> {
        let (key, ours) = (held.order.key, &held.order);
        for _ in 0..TRIES_MAX {
            let found = self.world.store.load(&key).await?;
            let (base, event) = match &found {
                Some(found) if found.order.born == ours.born && how_far(&found.order) >= how_far(ours) => {
                    self.hold(found);
                    return Ok(One::Known(found.clone()));
                }
                Some(found) if found.order.born != ours.born => {
                    if found.order.terms.target != ours.terms.target {
                        lock(&self.in_hand).let_go(&key);
                        return Ok(One::Lost);
                    }
                    let recalled = Event::Recalled { born: ours.born, attempts: ours.attempts.clone() };
                    (Arc::clone(&found.order), recalled)
                }
                _ => {
                    let others_by = self.now() + self.settings.others_first;
                    (Arc::clone(ours), Event::PutBack { others_by })
                }
            };
            let is_recalled = matches!(event, Event::Recalled { .. });
            let (at, policy) = (self.now(), self.policy(&base));
            let Decision::Advance(advance) = (self.settings.rules.transition)(&base, event, at, &policy)
            else {
                // All of its attempts are known there.
                let found = found.unwrap_or(held);
                self.hold(&found);
                return Ok(One::Recalled(found));
            };
            let expected = found.as_ref().map_or(Version::ABSENT, |found| found.version);
            let next = Arc::new(advance.next);
            let tally = if is_recalled { advance.tally } else { Tally::default() };
            if let Commit::Done(version) = self.world.store.commit(expected, &next, &tally, at).await? {
                let now = Versioned { version, order: next };
                self.note_commit(&now.order);
                self.hold(&now);
                if let Some(due) = now.order.due() {
                    self.expect_alarm(due);
                }
                return Ok(if is_recalled { One::Recalled(now) } else { One::PutBack(now) });
            }
        }
        Err(StoreError::Unavailable {
            doing: "putting back an order that the store forgot",
            source: "other nodes write it at the same time".into(),
        })
    }

    /// The store has lost the last steps of this order, and nobody remembers them: only a person may decide to pay again.
    pub async fn lose(&self, key: &Key) -> Result<(), StoreError> {
        self.apply(key, None, &Event::Lost).await.map(drop)
    }

    /// Lets go of what other nodes have brought to an end, and notices what the store has forgotten.
    pub(crate) async fn check_in_hand(&self) {
        let due = lock(&self.in_hand).next_to_check(self.now());
        for held in due {
            match self.world.store.load(&held.order.key).await {
                Ok(Some(found)) if found.order.born == held.order.born => self.hold(&found),
                Ok(_) => self.suspect(),
                Err(error) => return self.note_error(&error),
            }
        }
    }
}
