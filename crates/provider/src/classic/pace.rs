//! Limits our polls to what the provider allows: a client that polls too often is blocked for minutes, and then all
//! orders wait. The engine limits the submits, because a submit that waited here would already be on record. Polls
//! are counted in this process only. Nodes that share an account share its limits, so their settings should divide
//! them.

use quittance_protocol::classic::dialect::PollQuota;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use tokio::time::Instant;

/// Once the quota is used up, one call in this time still goes through, so that a paid answer is still fetched.
const TRICKLE: Duration = Duration::from_secs(5);

/// Allowed calls of `res.php`: some for each task that was taken, and some extra.
pub(crate) struct Allowance {
    quota: PollQuota,
    left: Mutex<(u64, Option<Instant>)>,
}

impl Allowance {
    pub(crate) fn new(quota: PollQuota) -> Self {
        Self { quota, left: Mutex::new((quota.slack.into(), None)) }
    }

    pub(crate) fn earn(&self) {
        let mut left = self.left.lock().unwrap_or_else(PoisonError::into_inner);
        left.0 = left.0.saturating_add(self.quota.per_task.into());
    }

    /// Counts a call if it may be made now, and returns whether it may.
    pub(crate) fn spend(&self) -> bool {
        self.spend_at(Instant::now())
    }

    fn spend_at(&self, now: Instant) -> bool {
        let mut left = self.left.lock().unwrap_or_else(PoisonError::into_inner);
        let (count, last) = &mut *left;
        let may = *count > 0 || last.is_none_or(|last| now.duration_since(last) >= TRICKLE);
        if may {
            *count = count.saturating_sub(1);
            *last = Some(now);
        }
        may
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(n: u64) -> Duration {
        Duration::from_millis(n)
    }

    #[test]
    fn polls_stay_within_the_quota_and_then_trickle() {
        let allowance = Allowance::new(PollQuota { per_task: 2, slack: 1 });
        let now = Instant::now();
        let spend = |after| allowance.spend_at(now + ms(after));
        assert_eq!([spend(0), spend(0)], [true, false]);
        allowance.earn();
        assert_eq!([spend(1), spend(1), spend(1)], [true, true, false]);
        assert_eq!([spend(5001), spend(5001)], [true, false]);
    }
}
