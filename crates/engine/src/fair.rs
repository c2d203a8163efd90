//! Fairness between tenants: a queue that gives every tenant its turn, and shares of seats, of which no tenant can
//! take all.

use std::collections::BTreeMap;

/// How many turns an idle tenant keeps. So a few orders that it places at once do not wait behind the long
/// queue of another tenant.
const TURNS_SAVED: u64 = 4;

/// A fair queue. The tenant that has had the fewest turns is next, and within a tenant the least `K` comes first. `K`
/// also identifies the entry: a push with the same `K` replaces it.
///
/// When the queue is full, the tenant with the most entries loses its newest entry to a tenant with fewer.
pub(crate) struct FairQueue<K, T> {
    tenants: BTreeMap<String, BTreeMap<K, T>>,
    /// How many turns each tenant has had. A tenant that had none for a while is at most [`TURNS_SAVED`] behind the
    /// others.
    turns: BTreeMap<String, u64>,
    /// The most turns that any tenant has had.
    most_turns: u64,
    len: usize,
}

impl<K, T> Default for FairQueue<K, T> {
    fn default() -> Self {
        Self { tenants: BTreeMap::new(), turns: BTreeMap::new(), most_turns: 0, len: 0 }
    }
}

impl<K: Ord + Copy, T> FairQueue<K, T> {
    pub(crate) const fn len(&self) -> usize {
        self.len
    }

    /// Adds an entry. Returns whether there was room.
    pub(crate) fn push(&mut self, tenant: &str, key: K, entry: T, max: usize) -> bool {
        if let Some(queued) = self.tenants.get_mut(tenant).and_then(|queue| queue.get_mut(&key)) {
            *queued = entry;
            return true;
        }
        if self.len >= max && !self.make_room(tenant, &key) {
            return false;
        }
        if !self.tenants.contains_key(tenant) {
            self.join(tenant);
        }
        self.tenants.entry(tenant.to_owned()).or_default().insert(key, entry);
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

    /// The fewest turns that any tenant counts as having had.
    const fn least_turns(&self) -> u64 {
        self.most_turns.saturating_sub(TURNS_SAVED)
    }

    /// Removes the newest entry of the longest queue, if that queue would still not be shorter than the tenant's own.
    /// If the tenant's own queue is the longest, its newest entry is removed only if the new one is older.
    fn make_room(&mut self, tenant: &str, key: &K) -> bool {
        let own = self.tenants.get(tenant).map_or(0, BTreeMap::len);
        let Some((longest, queue)) = self.tenants.iter().max_by_key(|(_, queue)| queue.len()) else {
            return false;
        };
        let (longest, length) = (longest.clone(), queue.len());
        let from = if length > own + 1 { longest } else { tenant.to_owned() };
        let Some(queue) = self.tenants.get_mut(&from) else { return false };
        let is_newest = |last: &K| from == tenant && last < key;
        let Some(last) = queue.last_key_value().map(|(last, _)| *last) else { return false };
        if is_newest(&last) {
            return false;
        }
        self.remove(&from, &last);
        true
    }

    pub(crate) fn remove(&mut self, tenant: &str, key: &K) -> Option<T> {
        let queue = self.tenants.get_mut(tenant)?;
        let removed = queue.remove(key)?;
        self.len -= 1;
        if queue.is_empty() {
            self.tenants.remove(tenant);
        }
        Some(removed)
    }

    /// Whether this tenant has an entry for which `is_it` is true.
    pub(crate) fn has(&self, tenant: &str, is_it: impl Fn(&K) -> bool) -> bool {
        self.tenants.get(tenant).is_some_and(|queue| queue.keys().any(is_it))
    }

    /// Whether a tenant for which `is_it` is true has an entry.
    pub(crate) fn has_tenant(&self, is_it: impl Fn(&str) -> bool) -> bool {
        self.tenants.keys().any(|tenant| is_it(tenant))
    }

    pub(crate) fn pop(&mut self) -> Option<T> {
        self.pop_where(|_, _| true)
    }

    /// Takes the first entry that may go now, from the tenant with the fewest turns that has such an entry.
    pub(crate) fn pop_where(&mut self, may_go: impl Fn(&str, &T) -> bool) -> Option<T> {
        let Self { tenants, turns, .. } = &*self;
        let least = self.least_turns();
        let had = |tenant: &String| turns.get(tenant).copied().unwrap_or_default().max(least);
        let mut in_turn: Vec<_> = tenants.iter().collect();
        in_turn.sort_by_key(|(tenant, _)| had(tenant));
        let (tenant, key) = in_turn.into_iter().find_map(|(tenant, queue)| {
            let (key, _) = queue.iter().find(|(_, entry)| may_go(tenant, entry))?;
            Some((tenant.clone(), *key))
        })?;
        let had = had(&tenant) + 1;
        self.most_turns = self.most_turns.max(had);
        self.turns.insert(tenant.clone(), had);
        self.remove(&tenant, &key)
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
