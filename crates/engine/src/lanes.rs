//! The queue of one tenant: a lane for each priority. The most urgent lane is first, and no lane starves.

use quittance_lifecycle::Priority;
use std::collections::BTreeMap;

/// How many turns in a row may pass over a lane in which an entry waits. With two lanes passed over at once, each
/// still gets one turn in ten.
pub(crate) const PASSED_OVER_MAX: usize = 8;

const LANES: usize = Priority::ALL.len();

/// The rank of a lane in the tenant's next turn, from how many turns in a row have passed over each lane. The lane with
/// the least rank is first: see [`rank`].
pub(crate) type LaneRule = fn(&[usize; LANES], usize) -> (bool, usize);

/// The rank of a lane. A lane that was passed over too often comes first, and the one that is urgent least before the
/// others. Apart from that, the most urgent one comes first.
pub(crate) fn rank(passed_over: &[usize; LANES], lane: usize) -> (bool, usize) {
    let is_overdue = passed_over[lane] >= PASSED_OVER_MAX;
    if is_overdue { (false, LANES - lane) } else { (true, lane) }
}

pub(crate) struct Lanes<K, T> {
    entries: [BTreeMap<K, T>; LANES],
    passed_over: [usize; LANES],
}

impl<K, T> Default for Lanes<K, T> {
    fn default() -> Self {
        Self { entries: std::array::from_fn(|_| BTreeMap::new()), passed_over: [0; LANES] }
    }
}

impl<K: Ord + Copy, T> Lanes<K, T> {
    pub(crate) fn len(&self) -> usize {
        self.entries.iter().map(BTreeMap::len).sum()
    }

    /// Adds an entry. Returns whether it replaces one, which may have been in another lane.
    pub(crate) fn insert(&mut self, priority: Priority, key: K, entry: T) -> bool {
        let replaced = self.remove(&key);
        self.entries[priority as usize].insert(key, entry);
        replaced.is_some()
    }

    pub(crate) fn contains(&self, key: &K) -> bool {
        self.entries.iter().any(|lane| lane.contains_key(key))
    }

    pub(crate) fn keys(&self) -> impl Iterator<Item = &K> {
        self.entries.iter().flat_map(BTreeMap::keys)
    }

    pub(crate) fn remove(&mut self, key: &K) -> Option<T> {
        let lane = self.entries.iter().position(|lane| lane.contains_key(key))?;
        let removed = self.entries[lane].remove(key);
        if self.entries[lane].is_empty() {
            self.passed_over[lane] = 0;
        }
        removed
    }

    /// The newest entry of the least urgent lane.
    pub(crate) fn last(&self) -> Option<(Priority, K)> {
        let lanes = Priority::ALL.into_iter().zip(&self.entries).rev();
        lanes.filter_map(|(priority, lane)| Some((priority, *lane.last_key_value()?.0))).next()
    }

    /// The next entry that may go.
    pub(crate) fn next(&self, rule: LaneRule, may_go: impl Fn(&T) -> bool) -> Option<(Priority, K)> {
        let mut lanes = Priority::ALL;
        lanes.sort_by_key(|lane| rule(&self.passed_over, *lane as usize));
        lanes.into_iter().find_map(|priority| {
            let mut entries = self.entries[priority as usize].iter();
            entries.find(|(_, entry)| may_go(entry)).map(|(key, _)| (priority, *key))
        })
    }

    /// Takes an entry in the tenant's turn.
    pub(crate) fn take(&mut self, priority: Priority, key: &K) -> Option<T> {
        let Self { entries, passed_over } = self;
        for (lane, count) in passed_over.iter_mut().enumerate() {
            let is_passed_over = lane != priority as usize && !entries[lane].is_empty();
            *count = if is_passed_over { *count + 1 } else { 0 };
        }
        entries[priority as usize].remove(key)
    }

    /// The least number of turns of this tenant that pass before a new entry of this priority has its turn.
    pub(crate) fn ahead_of(&self, priority: Priority) -> usize {
        let lane = priority as usize;
        let same = self.entries[lane].len();
        let urgent: usize = self.entries[..lane].iter().map(BTreeMap::len).sum();
        same + urgent.min(PASSED_OVER_MAX * (same + 1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drain(lanes: &mut Lanes<u32, Priority>, turns: usize) -> Vec<Priority> {
        let next = |_| {
            let (priority, key) = lanes.next(rank, |_| true)?;
            lanes.take(priority, &key)
        };
        (0..turns).map_while(next).collect()
    }

    #[test]
    fn the_most_urgent_come_first_and_each_priority_gets_one_turn_in_ten() {
        let mut lanes = Lanes::default();
        for (lane, priority) in (0..).zip(Priority::ALL) {
            (0..100).for_each(|n| _ = lanes.insert(priority, lane * 1000 + n, priority));
        }
        let turns = drain(&mut lanes, 110);
        assert_eq!(turns[..8], [Priority::Interactive; 8]);
        for priority in [Priority::Normal, Priority::Bulk] {
            let at = |turns: &[Priority]| turns.contains(&priority);
            assert!(turns.windows(10).all(at), "{priority:?}: {turns:?}");
        }
        let urgent = turns.iter().filter(|priority| **priority == Priority::Interactive).count();
        assert!(urgent >= 80, "{urgent}");
    }

    #[test]
    fn an_entry_that_becomes_more_urgent_changes_its_lane() {
        let mut lanes = Lanes::default();
        assert!(!lanes.insert(Priority::Normal, 1, Priority::Normal));
        assert!(!lanes.insert(Priority::Bulk, 2, Priority::Bulk));
        assert!(lanes.insert(Priority::Interactive, 2, Priority::Interactive));
        assert_eq!((lanes.len(), lanes.last()), (2, Some((Priority::Normal, 1))));
        assert_eq!(drain(&mut lanes, 3), [Priority::Interactive, Priority::Normal]);
    }

    #[test]
    fn what_waits_ahead_is_never_overestimated() {
        let mut lanes = Lanes::default();
        (0..500).for_each(|n| _ = lanes.insert(Priority::Normal, n, Priority::Normal));
        assert_eq!(lanes.ahead_of(Priority::Interactive), 0);
        assert_eq!(lanes.ahead_of(Priority::Normal), 500);
        assert_eq!(lanes.ahead_of(Priority::Bulk), PASSED_OVER_MAX, "its share of the turns comes before");
        lanes.insert(Priority::Bulk, 1000, Priority::Bulk);
        let turns = drain(&mut lanes, 20);
        let first = turns.iter().position(|priority| *priority == Priority::Bulk);
        assert_eq!(first, Some(PASSED_OVER_MAX));
    }
}
