//! How long answers take to reach the stock. Leads are grouped by when the answers were bought, not by when they
//! came: of many that are bought at once the quick ones come first, and when buying stops only slow ones are still to
//! come.

use super::regimes::{Regimes, Settings};
use quittance_lifecycle::Timestamp;
use std::collections::VecDeque;
use std::time::Duration;

/// The length of a cohort, in leads. A cohort holds the answers that were bought in that time.
const COHORT_LEADS: f64 = 4.0;
/// A cohort is judged this many leads later, when almost all of it has come.
const WAIT_LEADS: f64 = 8.0;
/// A cohort is judged only if it has at least this many answers.
const COHORT_MIN: u32 = 16;
/// The most measurements that one cohort counts for, whatever its size: one bad minute at a provider makes all its
/// answers slow.
const PROOF_MAX: f64 = 8.0;
/// The most cohorts that are kept, in case the clock jumps or leads are very long.
const COHORTS_MAX: usize = 16;
/// The lead that the kind states counts as much as this many measured leads.
const STATED_WEIGHT: f64 = 2.0;
/// The model assumes one change of the lead in this many cohorts.
const COHORTS_BETWEEN_CHANGES: f64 = 500.0;
/// The shortest lead, in seconds: precise enough, and avoids a division by zero.
const LEAD_S_MIN: f64 = 0.001;

#[derive(Clone, Debug)]
pub(crate) struct Leads {
    regimes: Regimes,
    /// The cohorts, the oldest first.
    cohorts: VecDeque<Cohort>,
}

/// Answers that were bought at about the same time and have come.
#[derive(Clone, Copy, Debug)]
struct Cohort {
    since: Timestamp,
    count: u32,
    sum_s: f64,
}

impl Leads {
    pub(crate) fn new(stated: Duration) -> Self {
        let settings =
            Settings { apart: 0.0, change: 1.0 / COHORTS_BETWEEN_CHANGES, prior: 2.0, rate_min: 0.0 };
        let stated_s = stated.as_secs_f64().max(LEAD_S_MIN);
        Self {
            regimes: Regimes::new(STATED_WEIGHT, STATED_WEIGHT * stated_s, settings),
            cohorts: VecDeque::new(),
        }
    }

    pub(crate) fn mean_s(&self) -> f64 {
        1.0 / self.regimes.rate()
    }

    /// Counts an answer that has just come. An answer that comes too late for its own cohort counts in the oldest.
    pub(crate) fn came(&mut self, now: Timestamp, lead: Duration) {
        if self.cohorts.is_empty() {
            self.cohorts.push_back(Cohort { since: now, count: 0, sum_s: 0.0 });
        }
        let was_bought_in = |cohort: &Cohort| cohort.since + lead <= now;
        let at = self.cohorts.iter().rposition(was_bought_in).unwrap_or(0);
        self.cohorts[at].count = self.cohorts[at].count.saturating_add(1);
        self.cohorts[at].sum_s += lead.as_secs_f64();
    }

    pub(crate) fn look(&mut self, now: Timestamp) {
        let mean_s = self.mean_s();
        let is_past = |at: Timestamp, leads: f64| now.since(at).as_secs_f64() >= leads * mean_s;
        match self.cohorts.back() {
            Some(last) if now < last.since => {
                // The clock went back, and what they were bought before or after is not known any more.
                let merged = self.cohorts.drain(..).reduce(|all, next| all.and(&next));
                self.cohorts.extend(merged.map(|all| Cohort { since: now, ..all }));
            }
            Some(last) if !is_past(last.since, COHORT_LEADS) => {}
            _ => self.cohorts.push_back(Cohort { since: now, count: 0, sum_s: 0.0 }),
        }
        while let Some(next) = self.cohorts.get(1)
            && (is_past(next.since, WAIT_LEADS) || self.cohorts.len() > COHORTS_MAX)
        {
            let Some(first) = self.cohorts.pop_front() else { return };
            if first.count < COHORT_MIN {
                self.cohorts[0] = self.cohorts[0].and(&first);
            } else {
                let count = f64::from(first.count);
                let sum_s = first.sum_s.max(count * LEAD_S_MIN);
                self.regimes.saw(count, sum_s, (PROOF_MAX / count).min(1.0));
            }
        }
    }
}

impl Cohort {
    fn and(&self, other: &Self) -> Self {
        let count = self.count.saturating_add(other.count);
        Self { since: self.since, count, sum_s: self.sum_s + other.sum_s }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIX_S: [u64; 4] = [5, 10, 20, 45];
    const MIX_MEAN_S: f64 = 20.0;

    /// Answers that were bought and have not come yet: when each comes, and its lead.
    struct World {
        leads: Leads,
        second: u64,
        bought: usize,
        coming: Vec<(u64, u64)>,
    }

    impl World {
        fn new(stated_s: u64) -> Self {
            let leads = Leads::new(Duration::from_secs(stated_s));
            Self { leads, second: 1_000, bought: 0, coming: Vec::new() }
        }

        fn buy(&mut self, count: usize) {
            for _ in 0..count {
                let lead = MIX_S[self.bought % MIX_S.len()];
                self.bought += 1;
                self.coming.push((self.second + lead, lead));
            }
        }

        fn after(&mut self, seconds: u64, each: usize) -> f64 {
            for _ in 0..seconds {
                self.second += 1;
                let now = Timestamp::from_millis(self.second * 1000);
                let second = self.second;
                for (_, lead) in self.coming.extract_if(.., |(at, _)| *at <= second) {
                    self.leads.came(now, Duration::from_secs(lead));
                }
                self.buy(each);
                self.leads.look(now);
            }
            self.leads.mean_s()
        }
    }

    fn is_near(found: f64, wanted: f64) -> bool {
        (found / wanted - 1.0).abs() < 0.1
    }

    #[test]
    fn the_mean_is_learned_whatever_lead_was_stated() {
        for stated_s in [1, 20, 100] {
            let found = World::new(stated_s).after(4_000, 1);
            assert!(is_near(found, MIX_MEAN_S), "stated {stated_s}: {found}");
        }
    }

    #[test]
    fn quick_ones_that_come_first_and_slow_ones_that_come_last_are_no_change() {
        let mut world = World::new(20);
        world.after(2_000, 1);
        for _ in 0..5 {
            world.buy(300);
            for _ in 0..60 {
                let found = world.after(10, 0);
                assert!(is_near(found, MIX_MEAN_S), "{found}");
            }
        }
    }

    #[test]
    fn a_clock_that_jumps_leaves_the_mean_alone() {
        let mut world = World::new(20);
        world.after(2_000, 1);
        for second in [1_000_000, 10, 500_000] {
            world.second = second;
            world.coming.clear();
            let found = world.after(2_000, 1);
            assert!(is_near(found, MIX_MEAN_S), "{found}");
            assert!(world.leads.cohorts.len() <= COHORTS_MAX + 1);
        }
    }
}
