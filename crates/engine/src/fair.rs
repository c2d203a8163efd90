//! Fairness between tenants: a queue that gives every tenant its turns by its weight, and shares of seats, of which no
//! tenant can take all.

use crate::lanes::{LaneRule, Lanes, rank};
use quittance_lifecycle::Priority;
use std::collections::BTreeMap;

/// How many turns an idle tenant keeps. So a few orders that it places at once do not wait behind the long
/// queue of another tenant.
const TURNS_SAVED: u64 = 4;
/// What one turn costs a tenant of weight 1. A tenant of weight 3 pays a third of it, so it gets three turns for one.
const TURN: u64 = 1_000_000;

/// What one turn costs a tenant of this weight.
pub(crate) const fn turn_cost(weight: u32) -> u64 {
    let weight = if weight == 0 { 1 } else { weight as u64 };
    let cost = TURN / weight;
    if cost == 0 { 1 } else { cost }
}

/// A fair queue. The tenant that has had the fewest turns for its weight is next. Within a tenant, the most urgent come
/// first, and of those the least `K`. `K` also identifies the entry: a push with the same `K` replaces it.
///
/// When the queue is full, the tenant with the most entries loses its newest entry to a tenant with fewer.
pub(crate) struct FairQueue<K, T> {
    tenants: BTreeMap<String, Lanes<K, T>>,
    /// What the turns of each tenant have cost. A tenant that had none for a while is at most [`TURNS_SAVED`] behind the
    /// others.
    turns: BTreeMap<String, u64>,
    /// The most that any tenant's turns have cost.
    most_turns: u64,
    len: usize,
    /// What one turn costs a tenant, if it has another weight than 1.
    costs: BTreeMap<String, u64>,
    lane_rule: LaneRule,
}

impl<K, T> Default for FairQueue<K, T> {
    fn default() -> Self {
        Self {
            tenants: BTreeMap::new(),
            turns: BTreeMap::new(),
            most_turns: 0,
            len: 0,
            costs: BTreeMap::new(),
            lane_rule: rank,
        }
    }
}

impl<K: Ord + Copy, T> FairQueue<K, T> {
    /// A queue in which a turn costs each of these tenants this much, and any other one as much as at weight 1.
    pub(crate) fn weighted(costs: BTreeMap<String, u64>, lane_rule: LaneRule) -> Self {
        Self { costs, lane_rule, ..Self::default() }
    }

    /// Sets what a turn costs from now on. The turns that tenants have had count as before.
    pub(crate) fn set_costs(&mut self, costs: BTreeMap<String, u64>) {
        self.costs = costs;
    }

    pub(crate) const fn len(&self) -> usize {
        self.len
    }

    /// Adds an entry of normal priority. Returns whether there was room.
    pub(crate) fn push(&mut self, tenant: &str, key: K, entry: T, max: usize) -> bool {
        self.push_at(tenant, (Priority::Normal, key), entry, max)
    }

    /// Adds an entry. Returns whether there was room.
    pub(crate) fn push_at(
        &mut self,
        tenant: &str,
        (priority, key): (Priority, K),
        entry: T,
        max: usize,
    ) -> bool {
        if let Some(queue) = self.tenants.get_mut(tenant).filter(|queue| queue.contains(&key)) {
            queue.insert(priority, key, entry);
            return true;
        }
        if self.len >= max && !self.make_room(tenant, (priority, key)) {
            return false;
        }
        if !self.tenants.contains_key(tenant) {
            self.join(tenant);
        }
        self.tenants.entry(tenant.to_owned()).or_default().insert(priority, key, entry);
        self.len += 1;
        true
    }

    /// Adds a tenant that had nothing in the queue.
    fn join(&mut self, tenant: &str) {
        let least = self.least_turns();
        // Those that would join with no fewer turns than a new tenant need not be remembered.
        let Self { tenants, turns, .. } = self;
        turns.retain(|other, had| *had > least || tenants.contains_key(other));
        turns.entry(tenant.to_owned()).or_insert(least);
    }

    /// The least that any tenant's turns count as having cost.
    const fn least_turns(&self) -> u64 {
        self.most_turns.saturating_sub(TURNS_SAVED * TURN)
    }

    /// Removes the newest of the least urgent entries of the longest queue, if that queue would still not be shorter than the tenant's own.
    /// If the tenant's own queue is the longest, that entry is removed only if the new one comes before it.
    fn make_room(&mut self, tenant: &str, place: (Priority, K)) -> bool {
        let own = self.tenants.get(tenant).map_or(0, Lanes::len);
        let Some((longest, queue)) = self.tenants.iter().max_by_key(|(_, queue)| queue.len()) else {
            return false;
        };
        let (longest, length) = (longest.clone(), queue.len());
        let from = if length > own + 1 { longest } else { tenant.to_owned() };
        let Some(queue) = self.tenants.get_mut(&from) else { return false };
        let Some(last) = queue.last() else { return false };
        if from == tenant && last < place {
            return false;
        }
        self.remove(&from, &last.1);
        true
    }

    pub(crate) fn remove(&mut self, tenant: &str, key: &K) -> Option<T> {
        let queue = self.tenants.get_mut(tenant)?;
        let removed = queue.remove(key)?;
        self.len -= 1;
        self.forget_if_empty(tenant);
        Some(removed)
    }

    fn forget_if_empty(&mut self, tenant: &str) {
        if self.tenants.get(tenant).is_some_and(|queue| queue.len() == 0) {
            self.tenants.remove(tenant);
        }
    }

    /// The least number of turns that pass before a new entry of this tenant and priority has its turn.
    pub(crate) fn ahead_of(&self, tenant: &str, priority: Priority) -> usize {
        self.tenants.get(tenant).map_or(0, |queue| queue.ahead_of(priority))
    }

    /// Whether this tenant has an entry for which `is_it` is true.
    pub(crate) fn has(&self, tenant: &str, is_it: impl Fn(&K) -> bool) -> bool {
        self.tenants.get(tenant).is_some_and(|queue| queue.keys().any(is_it))
    }

    /// The tenants that have an entry.
    pub(crate) fn tenants(&self) -> impl Iterator<Item = &str> {
        self.tenants.keys().map(String::as_str)
    }

    pub(crate) fn pop(&mut self) -> Option<T> {
        self.pop_where(|_, _| true)
    }

    /// Takes the first entry of the tenant with the fewest turns among those that may go now.
    pub(crate) fn pop_of(&mut self, mut may_go: impl FnMut(&str) -> bool) -> Option<T> {
        let tenant = self.in_turn().into_iter().find(|tenant| may_go(tenant))?.to_owned();
        let (priority, key) = self.tenants.get(&tenant)?.next(self.lane_rule, |_| true)?;
        self.take(&tenant, priority, &key)
    }

    /// Takes the first entry that may go now, from the tenant with the fewest turns for its weight that has such an entry.
    pub(crate) fn pop_where(&mut self, may_go: impl Fn(&str, &T) -> bool) -> Option<T> {
        let (tenant, priority, key) = self.in_turn().into_iter().find_map(|tenant| {
            let queue = self.tenants.get(tenant)?;
            let (priority, key) = queue.next(self.lane_rule, |entry| may_go(tenant, entry))?;
            Some((tenant.to_owned(), priority, key))
        })?;
        self.take(&tenant, priority, &key)
    }

    /// The tenants with entries, the one with the fewest turns for its weight first.
    fn in_turn(&self) -> Vec<&str> {
        let mut in_turn: Vec<_> = self.tenants().collect();
        in_turn.sort_by_key(|tenant| self.had(tenant));
        in_turn
    }

    fn had(&self, tenant: &str) -> u64 {
        self.turns.get(tenant).copied().unwrap_or_default().max(self.least_turns())
    }

    /// Takes an entry, and counts a turn of its tenant.
    fn take(&mut self, tenant: &str, priority: Priority, key: &K) -> Option<T> {
        let had = self.had(tenant) + self.costs.get(tenant).copied().unwrap_or(TURN);
        self.most_turns = self.most_turns.max(had);
        self.turns.insert(tenant.to_owned(), had);
        let taken = self.tenants.get_mut(tenant)?.take(priority, key)?;
        self.len -= 1;
        self.forget_if_empty(tenant);
        Some(taken)
    }
}

/// How many of a limited number of seats each tenant has. A tenant may take another seat only while it has fewer than
/// are free. So one tenant gets at most half of them, a second one at most half of the rest, and so on.
#[derive(Debug)]
pub struct Shares {
    max: usize,
    taken: usize,
    by_tenant: BTreeMap<String, usize>,
}

impl Shares {
    #[must_use]
    pub const fn new(max: usize) -> Self {
        Self { max, taken: 0, by_tenant: BTreeMap::new() }
    }

    #[must_use]
    pub const fn taken(&self) -> usize {
        self.taken
    }

    #[must_use]
    pub const fn is_free(&self) -> bool {
        self.taken < self.max
    }

    #[must_use]
    pub fn of(&self, tenant: &str) -> usize {
        self.by_tenant.get(tenant).copied().unwrap_or_default()
    }

    #[must_use]
    pub fn may_take(&self, tenant: &str) -> bool {
        self.of(tenant) < self.max.saturating_sub(self.taken)
    }

    pub fn take(&mut self, tenant: &str) {
        self.taken += 1;
        *self.by_tenant.entry(tenant.to_owned()).or_default() += 1;
    }

    pub fn give_back(&mut self, tenant: &str) {
        if let Some(count) = self.by_tenant.get_mut(tenant) {
            self.taken = self.taken.saturating_sub(1);
            *count -= 1;
            if *count == 0 {
                self.by_tenant.remove(tenant);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tenants_take_turns_and_each_ones_oldest_comes_first() {
        let mut queue = FairQueue::default();
        for n in [3, 1, 2, 5, 4] {
            assert!(queue.push("alice", n, ("alice", n), 100));
        }
        assert!(queue.push("bob", 9, ("bob", 9), 100));
        let popped: Vec<_> = std::iter::from_fn(|| queue.pop()).collect();
        assert_eq!(
            popped,
            [("alice", 1), ("bob", 9), ("alice", 2), ("alice", 3), ("alice", 4), ("alice", 5)]
        );
        assert_eq!(queue.len(), 0);
    }

    /// A tenant with a few orders at once is not held up by as many of a tenant with a long queue, and gains nothing
    /// by waiting.
    #[test]
    fn a_tenant_that_had_fewer_turns_catches_up_on_some_of_them() {
        let mut queue = FairQueue::default();
        (0..100).for_each(|n| assert!(queue.push("alice", n, "alice", 1000)));
        let before: Vec<_> = (0..20).filter_map(|_| queue.pop()).collect();
        assert_eq!(before, ["alice"; 20]);
        (0..8).for_each(|n| assert!(queue.push("bob", n, "bob", 1000)));
        let popped: Vec<_> = (0..12).filter_map(|_| queue.pop()).collect();
        let (first, rest) = popped.split_at(4);
        assert_eq!(first, ["bob"; 4]);
        assert_eq!(
            rest.iter().filter(|tenant| **tenant == "bob").count(),
            4,
            "then they take turns: {rest:?}"
        );
    }

    #[test]
    fn a_tenant_with_weight_three_gets_three_turns_for_one() {
        let costs = BTreeMap::from([("alice".to_owned(), turn_cost(3))]);
        let mut queue = FairQueue::weighted(costs, rank);
        for n in 0..400 {
            queue.push("alice", n, "alice", 1000);
            queue.push("bob", n, "bob", 1000);
        }
        let popped: Vec<_> = (0..400).filter_map(|_| queue.pop()).collect();
        let of_alice = popped.iter().filter(|tenant| **tenant == "alice").count();
        assert!((299..=301).contains(&of_alice), "{of_alice}");
        assert!(popped.windows(5).all(|turns| turns.contains(&"bob")), "{popped:?}");
    }

    #[test]
    fn an_urgent_entry_takes_the_room_of_the_newest_that_is_not() {
        let mut queue = FairQueue::default();
        (0..10).for_each(|n| assert!(queue.push_at("alice", (Priority::Bulk, n), n, 10)));
        assert!(queue.push_at("alice", (Priority::Interactive, 10), 10, 10));
        assert_eq!((queue.len(), queue.pop(), queue.pop()), (10, Some(10), Some(0)));
    }

    #[test]
    fn a_full_queue_has_room_for_a_tenant_with_fewer_entries() {
        let mut queue = FairQueue::default();
        for n in 0..10 {
            assert!(queue.push("alice", n, n, 10));
        }
        assert!(!queue.push("alice", 10, 10, 10), "newer than all of its own");
        assert!(queue.push("bob", 100, 100, 10) && queue.push("bob", 101, 101, 10));
        assert_eq!(queue.len(), 10);
        assert!(queue.push("alice", -1, -1, 10), "older than some of its own");
        let popped: Vec<_> = std::iter::from_fn(|| queue.pop()).collect();
        assert_eq!(popped, [-1, 100, 0, 101, 1, 2, 3, 4, 5, 6]);
    }

    #[test]
    fn the_same_entry_waits_once() {
        let mut queue = FairQueue::default();
        assert!(queue.push("alice", 1, "old", 1) && queue.push("alice", 1, "new", 1));
        assert_eq!((queue.pop(), queue.pop()), (Some("new"), None));
    }

    #[test]
    fn what_may_not_go_yet_is_passed_over() {
        let mut queue = FairQueue::default();
        for n in 0..4 {
            queue.push(if n < 2 { "alice" } else { "bob" }, n, n, 10);
        }
        assert_eq!(queue.pop_where(|tenant, _| tenant == "bob"), Some(2));
        assert_eq!(queue.pop_where(|_, n| n % 2 == 1), Some(1));
        assert_eq!(queue.pop_where(|_, _| false), None);
        assert_eq!(queue.len(), 2);
    }

    #[test]
    fn no_tenant_takes_the_last_seat_from_one_that_has_none() {
        let mut shares = Shares::new(64);
        while shares.may_take("alice") {
            shares.take("alice");
        }
        assert_eq!(shares.of("alice"), 32);
        while shares.may_take("eve") {
            shares.take("eve");
        }
        assert_eq!(shares.of("eve"), 16);
        assert!(shares.may_take("bob"));
        shares.give_back("alice");
        assert_eq!((shares.taken(), shares.of("alice")), (47, 31));
        shares.give_back("unknown");
        assert_eq!(shares.taken(), 47);
        let mut one = Shares::new(1);
        assert!(one.may_take("alice"));
        one.take("alice");
        assert!(!one.may_take("bob"), "one seat is one seat");
    }
}
